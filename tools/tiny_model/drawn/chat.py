"""The prompt format: the chat template's output, rebuilt in plain Python for speed.

`chat_template.jinja` is what ships inside the GGUF; `check_against_template` proves that both agree.
The description stands *before* the name, so that under causal attention the marker and the name already
know what they stand for, and the name always follows a special token, a newline or a quote: the same
tokens in the list, in a bare answer, in a thought and inside a JSON call.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

END_OF_TEXT, IM_START, IM_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
TOOL, CALL_OPEN, CALL_CLOSE = "<|tool|>", "<tool_call>", "</tool_call>"
THINK_OPEN, THINK_CLOSE = "<think>", "</think>"
SPECIALS = [END_OF_TEXT, IM_START, IM_END, TOOL, CALL_OPEN, CALL_CLOSE, THINK_OPEN, THINK_CLOSE]

TEMPLATE_PATH = Path(__file__).with_name("chat_template.jinja")
ASK_NAME = "Answer with one name."
ASK_CALL = "Answer with a tool call."
NO_THOUGHT = f"{THINK_OPEN}\n\n{THINK_CLOSE}\n\n"


@dataclass(frozen=True)
class Parameter:
    """An argument of a tool: a string unless `kind` says integer or boolean, or `choices` says which values."""

    name: str
    kind: str = "string"
    choices: tuple[str, ...] = ()
    optional: bool = False

    def text(self) -> str:
        """As a tool list has it."""
        kind = "|".join(self.choices) or ("" if self.kind == "string" else self.kind)
        return self.name + ("?" if self.optional else "") + (f":{kind}" if kind else "")

    def schema(self) -> dict[str, Any]:
        """Returns the parameters as JSON Schema."""
        return {"type": self.kind} | ({"enum": list(self.choices)} if self.choices else {})


@dataclass(frozen=True)
class Tool:
    """One line of a tool list."""

    name: str
    description: str = ""
    parameters: list[Parameter] = field(default_factory=list)

    def line(self) -> str:
        """Description, marker, name and, where it has any, its arguments."""
        arguments = f"({', '.join(p.text() for p in self.parameters)})" if self.parameters else ""
        return f"{self.description}{TOOL}{self.name}{arguments}\n"

    def schema(self) -> dict[str, Any]:
        """As a chat takes it."""
        parameters = {
            "type": "object",
            "properties": {p.name: p.schema() for p in self.parameters},
            "required": [p.name for p in self.parameters if not p.optional],
            "additionalProperties": False,
        }
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}


def system(tools: list[Tool], content: str = "") -> str:
    """The system turn, or nothing if there is nothing to say."""
    if not tools and not content:
        return ""
    body = content
    if tools:
        body += ("\n" if content else "") + "Tools:\n" + "".join(t.line() for t in tools)
    return f"{IM_START}system\n{body}{IM_END}\n"


def turn(role: str, content: str) -> str:
    """Returns a closed turn of a role."""
    return f"{IM_START}{role}\n{content}{IM_END}\n"


def opened(thinking: bool = True) -> str:
    """The opened assistant turn; without thinking, an empty thought stands there already."""
    return f"{IM_START}assistant\n" + ("" if thinking else NO_THOUGHT)


def user(content: str, thinking: bool = True) -> str:
    """A user turn with the opened assistant turn after it."""
    return turn("user", content) + opened(thinking)


def thought(content: str) -> str:
    """A closed thought, up to where the answer begins."""
    return f"{THINK_OPEN}\n{content}\n{THINK_CLOSE}\n\n"


def call(name: str, arguments: dict[str, Any]) -> str:
    """A tool call as the model writes it."""
    body = json.dumps(arguments, ensure_ascii=False)
    return f'{CALL_OPEN}\n{{"name": "{name}", "arguments": {body}}}\n{CALL_CLOSE}'


def check_against_template() -> None:
    """Fail if the shipped template renders anything else than the functions above."""
    from jinja2 import Environment

    environment = Environment()
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
    template = environment.from_string(TEMPLATE_PATH.read_text())

    def check(expected: str, messages: list[dict[str, Any]], **options: Any) -> None:
        got = template.render(messages=messages, **options)
        assert got == expected, got

    strings = [Parameter("title"), Parameter("day")]
    plain = {"type": "object", "properties": {p.name: {"type": "string"} for p in strings}}
    nested = [
        {"type": "function", "function": {"name": "create", "description": "Create it.", "parameters": plain}},
        {"type": "function", "function": {"name": "STOP", "description": ""}},
    ]
    tools = [Tool("create", "Create it.", strings), Tool("STOP")]
    size = Parameter("size", choices=("small", "big"))
    typed = [
        Tool("a", "A.", [Parameter("x"), Parameter("n", "integer", optional=True), size]),
        Tool("b", "B.", [Parameter("on", "boolean", optional=True)]),
    ]
    hi = {"role": "user", "content": "Hi"}
    for content in ("", ASK_NAME):
        messages = ([{"role": "system", "content": content}] if content else []) + [hi]
        for listed, given in ((tools, nested), (typed, [t.schema() for t in typed])):
            check(system(listed, content) + user("Hi"), messages, tools=given, add_generation_prompt=True)
        flat = [{"name": t.name, "description": t.description} for t in tools]
        bare = [Tool(t.name, t.description) for t in tools]
        check(system(bare, content) + user("Hi"), messages, tools=flat, add_generation_prompt=True)
    for thinking in (True, False):
        check(user("Hi", thinking), [hi], add_generation_prompt=True, enable_thinking=thinking)
    calls = [{"type": "function", "function": {"name": n, "arguments": {"k": n}}} for n in ("f", "g")]
    both = call("f", {"k": "f"}) + "\n" + call("g", {"k": "g"})
    said = {"role": "assistant", "content": "", "reasoning_content": "So.", "tool_calls": calls}
    result = {"role": "tool", "content": "42"}
    asked, told = turn("user", "Hi"), turn("tool", "42")
    check(asked + turn("assistant", thought("So.") + both) + told, [hi, said, result])
    check(asked + turn("assistant", both) + told + asked, [hi, said, result, hi])
    check(asked + turn("assistant", "Yes.\n" + both), [hi, said | {"content": "Yes.", "reasoning_content": ""}])
