"""The items of a response, and the events that tell of them while they come."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from tokentrie import Message
from tokentrie.results import ChatEvent
from tokentrie.serve.wire.generating import new_id

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
            [*self.begin_call(call.id, call.name, call.kind), *self.add_arguments(call.arguments)]

    def see(self, part: ChatEvent) -> Iterator[Event]:
        """Adds an event of a chat."""
        if part.kind == "call_begins":
            yield from self.begin_call(part.id, part.name, part.tool)
        elif part.kind == "arguments":
            yield from self.add_arguments(part.text)
        elif part.kind in KINDS:
            yield from self.add(KINDS[part.kind], part.text)

    def begin_call(self, identity: str, name: str, tool: str) -> Iterator[Event]:
        """A call of a tool."""
        kind = "custom_tool_call" if tool == "custom" else "function_call"
        item = {"call_id": identity, "name": name, ARGUMENTS[kind][0]: ""}
        yield from self._open(kind, ARGUMENTS[kind][1], item)

    def add_arguments(self, text: str) -> Iterator[Event]:
        """More of the arguments of the call that is open, or of its input."""
        item = self.all[-1]
        field = ARGUMENTS[item["type"]][0]
        item[field] += text
        yield self._event(f"response.{item['type']}_{field}.delta", delta=text)

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
        if kind == "reasoning":
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
        if item["type"] in ARGUMENTS:
            field = ARGUMENTS[item["type"]][0]
            named = {} if field == "input" else {"name": item["name"]}
            yield self._event(f"response.{item['type']}_{field}.done", **named, **{field: item[field]})
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
KINDS = {"reasoning": "reasoning", "content": "message"}
#: The field of each kind of call that has its arguments, and the beginning of its ids.
ARGUMENTS = {"function_call": ("arguments", "fc"), "custom_tool_call": ("input", "ctc")}
