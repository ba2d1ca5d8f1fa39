"""What a client puts together from the events of a stream."""

from __future__ import annotations

import json
from typing import Any


def events(body: bytes) -> list[tuple[str | None, str]]:
    """The kind and the data of each event."""
    found = []
    for block in body.decode().split("\n\n"):
        lines = [line.partition(": ") for line in block.split("\n") if line and not line.startswith(":")]
        kinds = [value for name, _, value in lines if name == "event"]
        data = [value for name, _, value in lines if name == "data"]
        if data:
            found.append((kinds[0] if kinds else None, "\n".join(data)))
    return found


def put_together(body: bytes) -> dict[str, Any]:
    """All of it, as `conventions.stream` of the cases says."""
    told, parsed, bad = events(body), [], 0
    for _, data in told:
        if data == "[DONE]":
            continue
        try:
            one = json.loads(data)
        except ValueError:
            bad += 1
            continue
        bad += not isinstance(one, dict)
        parsed.append(one)
    whole: dict[str, Any] = {"events": parsed, "done": [data for _, data in told][-1:] == ["[DONE]"], "bad": bad}
    if any(kind is not None for kind, _ in told):
        return whole | _of_responses([kind for kind, _ in told if kind is not None], parsed)
    return whole | _of_chunks(parsed)


def _of_chunks(parsed: list[Any]) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "ids": sorted({one["id"] for one in parsed if "id" in one}),
        "objects": sorted({one["object"] for one in parsed if "object" in one}),
        "role": None, "text": "", "reasoning": "", "tool_calls": [], "finish": None, "usage": None, "error": None,
        "after_finish": 0, "logprobs": [],
    }  # fmt: skip
    for one in parsed:
        whole["error"] = one.get("error", whole["error"])
        whole["usage"] = one.get("usage") or whole["usage"]
        for choice in one.get("choices", []):
            whole["after_finish"] += whole["finish"] is not None
            delta = choice.get("delta", {"content": choice.get("text", "")})
            whole["role"] = delta.get("role", whole["role"])
            whole["text"] += delta.get("content") or ""
            whole["reasoning"] += delta.get("reasoning_content") or ""
            for call in delta.get("tool_calls", []):
                if call["index"] == len(whole["tool_calls"]):
                    whole["tool_calls"].append({"id": None, "type": None, "name": "", "arguments": ""})
                known = whole["tool_calls"][call["index"]]
                known["id"], known["type"] = call.get("id", known["id"]), call.get("type", known["type"])
                known["name"] += call["function"].get("name", "")
                known["arguments"] += call["function"].get("arguments", "")
            whole["logprobs"] += (choice.get("logprobs") or {}).get("content") or []
            whole["finish"] = choice.get("finish_reason") or whole["finish"]
    return whole


def _of_responses(kinds: list[str], parsed: list[Any]) -> dict[str, Any]:
    def all_of(kind: str) -> str:
        return "".join(one["delta"] for one in parsed if one.get("type") == kind)

    return {
        "types": kinds,
        "text": all_of("response.output_text.delta"),
        "arguments": all_of("response.function_call_arguments.delta"),
        "completed": parsed[-1].get("response"),
    }
