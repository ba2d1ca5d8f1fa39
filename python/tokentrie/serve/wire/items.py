"""The items of a response, and the events that tell of them while they come."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from tokentrie import Message
from tokentrie.results import ChatEvent
from tokentrie.serve.wire.generating import call_id, new_id

Event = dict[str, Any]


class Items:
    """Thoughts, texts and calls, in their order. One is open at a time: what is of another kind ends it."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []
        self._is_open = False

    def has(self, kind: str) -> bool:
        """Returns True if an item of this kind is there."""
        return any(item["type"] == kind for item in self.all)

    def add_message(self, message: Message) -> None:
        """All of a message at once."""
        if message.reasoning:
            [*self.add("reasoning", message.reasoning)]
        if message.content or not message.tool_calls:
            [*self.add("message", message.content)]
        for call in message.tool_calls:
            [*self.begin_call(call.id, call.name)]
            [*self.add("function_call", call.arguments)]

    def see(self, part: ChatEvent) -> Iterator[Event]:
        """Adds an event of a chat."""
        if part.kind == "call_begins":
            yield from self.begin_call(part.id, part.name)
        elif part.kind in KINDS:
            yield from self.add(KINDS[part.kind], part.text)

    def begin_call(self, identity: str, name: str) -> Iterator[Event]:
        """A call of a tool."""
        item = {"call_id": identity or call_id(), "name": name, "arguments": ""}
        yield from self._open("function_call", "fc", item)

    def add(self, kind: str, text: str) -> Iterator[Event]:
        """More text of an item of this kind, which begins where none is open."""
        if not (self._is_open and self.all[-1]["type"] == kind):
            if kind == "reasoning":
                yield from self._open(kind, "rs", {"summary": [], "content": []})
                yield self._begin_part({"type": "reasoning_text", "text": ""})
            elif kind == "message":
                yield from self._open(kind, "msg", {"role": "assistant", "content": []})
                yield self._begin_part({"type": "output_text", "text": "", "annotations": [], "logprobs": []})
        item = self.all[-1]
        if kind == "function_call":
            item["arguments"] += text
            yield self._event("response.function_call_arguments.delta", delta=text)
        elif kind == "reasoning":
            item["content"][0]["text"] += text
            yield self._event("response.reasoning_text.delta", content_index=0, delta=text)
        else:
            item["content"][0]["text"] += text
            yield self._event("response.output_text.delta", content_index=0, delta=text, logprobs=[])

    def close(self, logprobs: list[Any] | None = None) -> Iterator[Event]:
        """Ends the item that is open. `logprobs` are those of the text, which stand at its last item."""
        if logprobs:
            texts = [item for item in self.all if item["type"] == "message"]
            texts[-1]["content"][0]["logprobs"] = logprobs
        if not self._is_open:
            return
        item = self.all[-1]
        if item["type"] == "function_call":
            said = {"name": item["name"], "arguments": item["arguments"]}
            yield self._event("response.function_call_arguments.done", **said)
        else:
            part = item["content"][0]
            said = {name: value for name, value in part.items() if name in ("text", "logprobs")}
            yield self._event(f"response.{part['type']}.done", content_index=0, **said)
            yield self._event("response.content_part.done", content_index=0, part=part)
        item["status"], self._is_open = "completed", False
        yield {"type": "response.output_item.done", "output_index": len(self.all) - 1, "item": item}

    def _open(self, kind: str, prefix: str, more: dict[str, Any]) -> Iterator[Event]:
        yield from self.close()
        self._is_open = True
        self.all.append({"type": kind, "id": new_id(prefix), "status": "in_progress", **more})
        yield {"type": "response.output_item.added", "output_index": len(self.all) - 1, "item": deepcopy(self.all[-1])}

    def _begin_part(self, part: dict[str, Any]) -> Event:
        self.all[-1]["content"].append(part)
        return self._event("response.content_part.added", content_index=0, part=dict(part))

    def _event(self, kind: str, **more: Any) -> Event:
        return {"type": kind, "item_id": self.all[-1]["id"], "output_index": len(self.all) - 1, **more}


#: Which items the events of a chat belong to.
KINDS = {"reasoning": "reasoning", "content": "message", "arguments": "function_call"}
