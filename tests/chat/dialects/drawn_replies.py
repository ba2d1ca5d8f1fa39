"""Replies of a drawn template, cut out of what it renders, and what they mean."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

import jinja2_reference
from drawn_base import Calls, Draw

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "Does it.",
            "parameters": {"type": "object", "properties": properties, "required": [next(iter(properties))]},
        },
    }
    for name, properties in {
        "ring_bell": {
            "place": {"type": "string"},
            "times": {"type": "integer"},
            "loud": {"type": "boolean"},
            "hours": {"type": "array", "items": {"type": "integer"}},
            "how": {"type": "object", "properties": {"kind": {"type": "string"}}},
        },
        "ring": {"place": {"type": "string"}, "note": {"type": "string"}},
        "find-song": {"title": {"type": "string"}},
    }.items()
]
TOOLS.append(
    {
        "type": "function",
        "function": {"name": "hush", "description": "Stops.", "parameters": {"type": "object", "properties": {}}},
    }
)
EOS = "</s>"
THOUGHT = "The bells ring at 7, or is it 8?\n\nAt 7 - sure."
ANSWER = 'At **seven**, as always:\n- "early" {1}'


@dataclass
class Case:
    """A reply, and what it means."""

    name: str
    prompt: str
    reply: str
    message: dict[str, Any]
    thinking: bool = True


@dataclass
class Dialect:
    seed: str
    axes: dict[str, str]
    template: str
    cases: list[Case]
    wrong: list[tuple[str, str]]
    """Replies that call a tool there is not, each with its prompt."""
    ends: tuple[str, str] = ("", "")
    """What ends a turn, and one with calls."""


@dataclass
class Thinks:
    """How reasoning is written: in the template, and in the prompt."""

    piece: str = ""
    before: str = ""
    prompt: str = ""
    prompt_off: str = ""
    added: tuple[str, str] | None = None
    """What a reply has around reasoning that the template leaves out."""
    closed: str = ""
    """What a reply without reasoning begins with where the prompt has opened some."""
    end: str = ""
    calls_only: bool = False
    """Whether the template shows reasoning beside calls only."""
    as_part: bool = False
    """Whether the template takes reasoning as a part of the content."""

    def ended(self, begun: str) -> bool:
        """Whether a prompt has ended what it has begun."""
        return bool(self.end) and begun.rstrip().endswith(self.end)


class Maker:
    """Renders replies and cuts them out."""

    def __init__(
        self,
        seed: str,
        draw: Draw,
        template: str,
        how: Thinks,
        written: Calls | None,
        header: str,
        ends: tuple[str, str],
        model: str,
    ) -> None:
        self.seed, self.draw, self.template, self.how = seed, draw, template, how
        self.written, self.header, self.ends, self.model = written, header, ends, model

    def render(self, messages: list[dict[str, Any]], tools: bool, thinking: bool, prompt: bool) -> str:
        given = copy.deepcopy(messages)
        for message in given:
            for call in message.get("tool_calls") or []:
                if self.written and self.written.text:
                    call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=False)
        return jinja2_reference.render(
            self.template,
            messages=given,
            tools=copy.deepcopy(TOOLS) if tools else None,
            add_generation_prompt=prompt,
            enable_thinking=thinking,
            eos=EOS,
        )

    def case(self, name: str, message: dict[str, Any], thinking: bool = True) -> Case | None:
        user = [{"role": "user", "content": "When?"}]
        tools = self.written is not None
        asked = self.render(user, tools, thinking, False)
        opened = self.render(user, tools, thinking, True)
        field = self.draw.axes.get("field of reasoning", "reasoning_content")
        given = {"role": "assistant", "content": message.get("content") or ""}
        if message.get("reasoning") and self.how.as_part:
            parts = [{"type": "thinking", "thinking": message["reasoning"]}]
            given["content"] = parts + [{"type": "text", "text": given["content"]}] * bool(given["content"])
        elif message.get("reasoning"):
            given[field] = message["reasoning"]
        if message.get("tool_calls"):
            given["tool_calls"] = message["tool_calls"]
        whole = self.render([*user, given], tools, thinking, False)
        assert whole.startswith(asked), (self.seed, whole)
        assert opened.startswith(asked), (self.seed, opened)
        text = whole[len(asked) :]
        prompt = opened[len(asked) :]
        turns = bool(self.written and self.written.turns and message.get("tool_calls"))
        begin = self.header.rstrip() if turns and not (self.how.piece and message.get("reasoning")) else self.header
        assert text.startswith(begin), (self.seed, text)
        text = text[len(begin) :]
        end = self.ends[1 if message.get("tool_calls") else 0]
        assert text.endswith(end), (self.seed, text)
        text = text[: len(text) - len(end)]
        begun = prompt[len(self.header) :]
        if turns and not (self.how.piece and message.get("reasoning")):
            # The header goes on where the prompt breaks it off.
            if begun or self.header != self.header.rstrip():
                return None
        elif message.get("reasoning") and self.how.added and not (self.how.calls_only and message.get("tool_calls")):
            text = self.how.added[0] + message["reasoning"] + self.how.added[1] + text
        elif begun and text.startswith(begun):
            text = text[len(begun) :]
        elif begun:
            assert not message.get("reasoning"), (self.seed, text, begun)
            block = begun if self.how.ended(begun) else begun.rstrip() + self.how.closed.lstrip()
            for written in (block, begun + self.how.closed):
                if text.startswith(written):
                    text = text[len(written) :]
                    break
            # What the prompt has begun, the model ends.
            text = text if self.how.ended(begun) else self.how.closed + text
        return Case(name, prompt, text, message, thinking)

    def dialect(self) -> Dialect:
        thinks = self.draw.axes["reasoning"] != "none"
        called = self.draw.axes["calls"] != "none"
        numbers = [f"k7Jd93Lq{number}" for number in range(3)]

        def call(number: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
            return {"id": numbers[number], "type": "function", "function": {"name": name, "arguments": arguments}}

        bell = call(0, "ring_bell", {"place": "Old harbour 9"})
        ring = call(1, "ring", {"place": "here", "note": "42"})
        typed: dict[str, Any] = {"place": "a b", "times": 3}
        if self.written and not self.written.flat:
            typed |= {"loud": True, "hours": [7, 19], "how": {"kind": "soft"}}
        content, reasoning = {"content": ANSWER}, {"reasoning": THOUGHT}
        plans: list[tuple[str, dict[str, Any], bool]] = [
            ("content", content, True),
            ("content, no thinking", content, False),
        ]
        if thinks:
            plans.append(("reasoning and content", content | reasoning, True))
        if called and self.written:
            plans.append(("call", {"tool_calls": [bell]}, True))
            plans.append(("call, no thinking", {"tool_calls": [bell]}, False))
            plans.append(("call with types", {"tool_calls": [call(0, "ring_bell", typed)]}, True))
            plans.append(("call without arguments", {"tool_calls": [call(0, "hush", {})]}, True))
            if thinks and not (self.written.turns and not self.how.piece):
                plans.append(("reasoning and call", reasoning | {"tool_calls": [bell]}, True))
            if self.written.says_before:
                plans.append(("content and call", content | {"tool_calls": [bell]}, True))
                if thinks:
                    plans.append(("all three", content | reasoning | {"tool_calls": [bell]}, True))
            if self.written.parallel and not self.written.turns:
                plans.append(("two calls", {"tool_calls": [bell, ring]}, True))
        cases = [case for name, message, thinking in plans if (case := self.case(name, message, thinking))]
        wrong = []
        one = next((case for case in cases if case.name == "call"), None)
        if one:
            if self.written and self.written.marked:
                wrong.append((one.prompt, one.reply.replace("ring_bell", "sing_bell")))
            for start in self.written.starts if self.written else []:
                for space in ("\n", " "):
                    spaced = one.reply.replace(start, start + space, 1)
                    name = (
                        "call, white space" if "{" in one.reply[len(start) :][:3] else "call, white space before a name"
                    )
                    cases.append(Case(name, one.prompt, spaced, one.message))
        return Dialect(self.seed, self.draw.axes, self.template, cases, wrong, self.ends)
