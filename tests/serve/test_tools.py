"""Tools over HTTP: custom tools, tools that are allowed, a format beside tools; streams say what whole answers say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from serve.server import Server, serving
from serve.streams import events

pytestmark = pytest.mark.model

CHAT, RESPONSE, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
HI = [{"role": "user", "content": "please patch it"}]
PATTERN = r'(\+|-)[a-z]{1,4}\n"end"'
LARK = 'start: ("+" | "-") /[a-z]{1,4}/ LF "\\"end\\""\n%import common.LF'
GRAMMAR = {"syntax": "lark", "definition": LARK}
PATCH = {"name": "patch", "description": "Patch it."}
CUSTOM = {"type": "custom", "custom": {**PATCH, "format": {"type": "grammar", "grammar": GRAMMAR}}}
FLAT = {"type": "custom", **PATCH, "format": {"type": "grammar", **GRAMMAR}}
SCHEMA = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}
FUNCTIONS = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("f", "g", "h")]
LIMIT: dict[str, dict[str, Any]] = {
    CHAT: {"max_tokens": 90},
    RESPONSE: {"max_output_tokens": 90},
    MESSAGES: {"max_tokens": 90},
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def ask(server: Server, path: str, body: dict[str, Any]) -> Any:
    reply = server.ask("POST", path, {"temperature": 1.5, **LIMIT[path], **body})
    assert reply.status == 200, reply.body
    return reply.json()


def refusal_of(server: Server, path: str, body: dict[str, Any]) -> tuple[int, str, str | None]:
    reply = server.ask("POST", path, {**LIMIT[path], **body})
    error = reply.json()["error"]
    return reply.status, error["message"], error.get("param")


def stream_of(server: Server, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    reply = server.ask("POST", path, {"temperature": 1.5, **LIMIT[path], **body, "stream": True})
    assert reply.status == 200, reply.body
    return [json.loads(data) for _, data in events(reply.body) if data != "[DONE]"]


def request_of(path: str, tools: list[dict[str, Any]], choice: Any, **more: Any) -> dict[str, Any]:
    return {"input" if path == RESPONSE else "messages": HI, "tools": tools, "tool_choice": choice, **more}


@pytest.mark.parametrize("seed", range(3))
def test_a_custom_tool_in_chats(server: Server, seed: int) -> None:
    named = {"type": "custom", "custom": {"name": "patch"}}
    body = request_of(CHAT, [CUSTOM, *FUNCTIONS], named, seed=seed, parallel_tool_calls=False)
    (choice,) = ask(server, CHAT, body)["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert (choice["finish_reason"], call["type"], call["custom"]["name"]) == ("tool_calls", "custom", "patch")
    assert re.fullmatch(PATTERN, call["custom"]["input"])
    told = {"id": None, "name": "", "input": ""}
    for chunk in stream_of(server, CHAT, body):
        for delta in chunk["choices"][0]["delta"].get("tool_calls", []) if chunk["choices"] else []:
            told["id"] = delta.get("id", told["id"])
            for name, text in delta["custom"].items():
                told[name] += text
    assert (told["name"], told["input"]) == ("patch", call["custom"]["input"])
    # The next turn reads what it wrote.
    turns = [*HI, choice["message"], {"role": "tool", "tool_call_id": call["id"], "content": "done"}]
    shown = server.ask("POST", "/apply-template", {"messages": turns}).json()["prompt"]
    assert json.dumps(call["custom"]["input"])[1:-1] in shown
    assert ask(server, CHAT, {"messages": turns, "tools": [CUSTOM], "max_tokens": 1})["usage"]


@pytest.mark.parametrize("seed", range(3))
def test_a_custom_tool_in_responses(server: Server, seed: int) -> None:
    body = request_of(RESPONSE, [FLAT], {"type": "custom", "name": "patch"}, seed=seed, parallel_tool_calls=False)
    done = ask(server, RESPONSE, body)
    (item,) = [item for item in done["output"] if item["type"] == "custom_tool_call"]
    assert re.fullmatch(PATTERN, item["input"])
    assert (item["name"], item["status"], item["id"][:4]) == ("patch", "completed", "ctc-")
    told = stream_of(server, RESPONSE, body)
    kinds = [one["type"] for one in told if "custom" in one["type"]]
    assert {*kinds} == {f"response.custom_tool_call_input.{part}" for part in ("delta", "done")}
    text = "".join(one["delta"] for one in told if one["type"] == "response.custom_tool_call_input.delta")
    (end,) = [one for one in told if one["type"] == "response.custom_tool_call_input.done"]
    assert text == end["input"] == item["input"]
    output = {"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "done"}
    turns = [{"role": "user", "content": "please patch it"}, item, output]
    assert ask(server, RESPONSE, {"input": turns, "tools": [FLAT], "max_output_tokens": 4})["status"]


@pytest.mark.parametrize("path", [CHAT, RESPONSE])
@pytest.mark.parametrize("mode", ["auto", "required"])
def test_only_allowed_tools_are_called(server: Server, path: str, mode: str) -> None:
    flat = path == RESPONSE
    tools = [{"type": "function", **tool["function"]} for tool in FUNCTIONS] if flat else FUNCTIONS
    names = [{"type": "function", "name": name} for name in ("g", "h")]
    names = names if flat else [{"type": one["type"], "function": {"name": one["name"]}} for one in names]
    inner = {"mode": mode, "tools": names}
    choice = {"type": "allowed_tools", **inner} if flat else {"type": "allowed_tools", "allowed_tools": inner}
    called, prompts = [], set()
    for seed in range(5):
        done = ask(server, path, request_of(path, tools, choice, seed=seed, return_prompt=True))
        prompts.add(str(done["prompt_token_ids"]))
        if flat:
            called += [item["name"] for item in done["output"] if item["type"] == "function_call"]
        else:
            called += [call["function"]["name"] for call in done["choices"][0]["message"].get("tool_calls", [])]
    assert {*called} <= {"g", "h"}
    assert called or mode == "auto"
    free = ask(server, path, request_of(path, tools, "auto", return_prompt=True))
    assert prompts == {str(free["prompt_token_ids"])}


def reply_of(path: str, done: dict[str, Any]) -> tuple[list[str], str]:
    """The arguments of the calls, and the text."""
    if path == CHAT:
        message = done["choices"][0]["message"]
        return [call["function"]["arguments"] for call in message.get("tool_calls", [])], message["content"] or ""
    if path == RESPONSE:
        texts = [part["text"] for item in done["output"] if item["type"] == "message" for part in item["content"]]
        return [one["arguments"] for one in done["output"] if one["type"] == "function_call"], "".join(texts)
    blocks = done["content"]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    return [json.dumps(block["input"]) for block in blocks if block["type"] == "tool_use"], "".join(texts)


@pytest.mark.parametrize("path", [CHAT, RESPONSE, MESSAGES])
@pytest.mark.parametrize("choice", ["auto", "none", "required"])
def test_a_format_beside_tools(server: Server, path: str, choice: str) -> None:
    tools: dict[str, list[dict[str, Any]]] = {
        CHAT: FUNCTIONS,
        RESPONSE: [{"type": "function", **tool["function"]} for tool in FUNCTIONS],
        MESSAGES: [{"name": tool["function"]["name"], "input_schema": SCHEMA} for tool in FUNCTIONS],
    }
    formats: dict[str, dict[str, Any]] = {
        CHAT: {"response_format": FORMAT},
        RESPONSE: {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}},
        MESSAGES: {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    }
    said: Any = {"auto": "auto", "none": "none", "required": "any"}[choice]
    said = {"type": said} if path == MESSAGES else choice
    kinds = set()
    for seed in range(6):
        body = request_of(path, tools[path], said, seed=seed, temperature=2 if path != MESSAGES else 1, **formats[path])
        calls, text = reply_of(path, ask(server, path, body))
        kinds.add("calls" if calls else "text")
        assert all(json.loads(call)["a"] in (1, 2) for call in calls)
        assert calls or json.loads(text)["a"] in (1, 2)
        assert not (calls and text.strip())
    assert kinds == {"required": {"calls"}, "none": {"text"}}.get(choice, kinds)


@pytest.mark.parametrize(
    ("path", "more", "param", "says"),
    [
        (CHAT, {"tools": [{"type": "web_search"}]}, "tools[0].type", "expected 'function' or 'custom'"),
        (CHAT, {"tools": [{"type": "custom", "custom": {}}]}, "tools[0].custom.name", "must be 1 to 64"),
        (
            CHAT,
            {
                "tools": [
                    {"type": "custom", "custom": {**PATCH, "format": {"type": "grammar", "grammar": {"syntax": "x"}}}}
                ]
            },
            "tools",
            'expected "lark" or "regex"',
        ),
        (
            RESPONSE,
            {
                "tools": [
                    {**FLAT, "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "a" start | "b"'}}
                ]
            },
            "tools",
            "a rule that contains itself is not supported",
        ),
        (CHAT, {"tools": FUNCTIONS, "tool_choice": {"type": "allowed_tools"}}, "tool_choice", '"mode"'),
        (CHAT, {"tools": FUNCTIONS, "tool_choice": "f"}, "tool_choice", "an object that names a tool"),
        (
            CHAT,
            {"tools": FUNCTIONS, "tool_choice": {"type": "custom", "custom": {"name": "z"}}},
            "tool_choice",
            "unknown",
        ),
        (CHAT, {"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice", "unknown tool"),
        (CHAT, {"tools": [{"type": "function", "function": {"name": "f", "strict": "yes"}}]}, "tools", "strict"),
        (RESPONSE, {"tools": [{"type": "function", "name": "f", "strict": "yes"}]}, "tools", "strict"),
        (MESSAGES, {"tools": [{"name": "f", "input_schema": {}, "strict": "yes"}]}, "tools", "strict"),
        (
            CHAT,
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "strict": 1}}},
            None,
            "strict",
        ),
        (CHAT, {"tools": FUNCTIONS, "parallel_tool_calls": "yes"}, "parallel_tool_calls", "parallel_tool_calls"),
    ],
)
def test_what_cannot_be_held_is_refused_by_name(
    server: Server, path: str, more: dict[str, Any], param: str | None, says: str
) -> None:
    status, message, named = refusal_of(server, path, {"input" if path == RESPONSE else "messages": HI, **more})
    assert status == 400
    assert path == MESSAGES or param is None or named == param
    assert says in message


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.mark.parametrize(
    ("path", "field", "image"),
    [
        (CHAT, "messages", IMAGE),
        (RESPONSE, "input", {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}),
        (
            MESSAGES,
            "messages",
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        ),
        ("/apply-template", "messages", IMAGE),
        ("/v1/choose", "messages", IMAGE),
    ],
)
def test_content_comes_in_parts_and_images_are_refused(server: Server, path: str, field: str, image: Any) -> None:
    kind = "input_text" if path == RESPONSE else "text"
    parts = [{"type": kind, "text": "please "}, {"type": kind, "text": "patch it"}]
    more = {"values": ["a", "b"]} if path == "/v1/choose" else {}
    roles = ["user"] if path == MESSAGES else ["developer", "user"]
    turns = [{"role": role, "content": parts} for role in roles]
    assert server.ask("POST", path, {**LIMIT.get(path, {}), field: turns, **more}).status == 200
    turns[-1]["content"] = [*parts, image]
    reply = server.ask("POST", path, {**LIMIT.get(path, {}), field: turns, **more})
    assert reply.status == 400
    assert image["type"] in reply.json()["error"]["message"]


def test_each_call_has_an_id_of_its_own(server: Server) -> None:
    ids: list[str] = []
    turns: list[dict[str, Any]] = [*HI]
    for seed in range(3):
        done = ask(server, CHAT, {"messages": turns, "tools": FUNCTIONS, "tool_choice": "required", "seed": seed})
        message = done["choices"][0]["message"]
        ids += [call["id"] for call in message["tool_calls"]]
        answers = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in message["tool_calls"]]
        turns += [message, *answers]
    assert len({*ids}) == len(ids) >= 3
    assert all(ids)
