"""The prompt format: the chat template's output, rebuilt in plain Python for speed.

`chat_template.jinja` is what ships inside the GGUF; `check_against_template` proves that both agree.
The description stands *before* the name, so that under causal attention the marker and the name already
know what they stand for, and the name always follows a special token, a newline or a quote: the same
tokens in the list, in a bare answer and inside a JSON call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

END_OF_TEXT, IM_START, IM_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
TOOL, CALL_OPEN, CALL_CLOSE = "<|tool|>", "<tool_call>", "</tool_call>"
SPECIALS = [END_OF_TEXT, IM_START, IM_END, TOOL, CALL_OPEN, CALL_CLOSE]

TEMPLATE_PATH = Path(__file__).with_name("chat_template.jinja")
ASK_NAME = "Answer with one name."
ASK_CALL = "Answer with a tool call."


@dataclass(frozen=True)
class Tool:
    """One line of a tool list."""

    name: str
    description: str = ""
    parameters: list[str] = field(default_factory=list)

    def line(self) -> str:
        """Description, marker, name and, where it has any, its argument names."""
        arguments = f"({', '.join(self.parameters)})" if self.parameters else ""
        return f"{self.description}{TOOL}{self.name}{arguments}\n"


def system(tools: list[Tool], content: str = "") -> str:
    """The system turn, or nothing if there is nothing to say."""
    if not tools and not content:
        return ""
    body = content
    if tools:
        body += ("\n" if content else "") + "Tools:\n" + "".join(t.line() for t in tools)
    return f"{IM_START}system\n{body}{IM_END}\n"


def user(content: str) -> str:
    """A user turn with the opened assistant turn after it."""
    return f"{IM_START}user\n{content}{IM_END}\n{IM_START}assistant\n"


def call(name: str, key: str, value: str) -> str:
    """A tool call as the model writes it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{CALL_OPEN}\n{{"name": "{name}", "arguments": {{"{key}": "{escaped}"}}}}\n{CALL_CLOSE}'


def check_against_template() -> None:
    """Fail if the shipped template renders anything else than the functions above."""
    from jinja2 import Environment

    template = Environment(trim_blocks=False).from_string(TEMPLATE_PATH.read_text())
    tools = [Tool("create_event", "Create an event.", ["title", "day"]), Tool("STOP", "", [])]
    flat = [{"name": t.name, "description": t.description} for t in tools]
    nested = [
        {
            "type": "function",
            "function": {
                "name": t.name,
                "description": t.description,
                "parameters": {"type": "object", "properties": {p: {"type": "string"} for p in t.parameters}},
            },
        }
        for t in tools
    ]
    turns = [{"role": "user", "content": "Hi"}]
    for content in ("", ASK_NAME):
        messages = ([{"role": "system", "content": content}] if content else []) + turns
        got = template.render(messages=messages, tools=nested, add_generation_prompt=True)
        assert got == system(tools, content) + user("Hi"), got
        bare = [Tool(t.name, t.description) for t in tools]
        got = template.render(messages=messages, tools=flat, add_generation_prompt=True)
        assert got == system(bare, content) + user("Hi"), got
    calls = [{"type": "function", "function": {"name": "f", "arguments": {"k": "v"}}}]
    messages = [*turns, {"role": "assistant", "content": "", "tool_calls": calls}, {"role": "user", "content": "Hi"}]
    got = template.render(messages=messages, add_generation_prompt=True)
    assert got == user("Hi") + call("f", "k", "v") + f"{IM_END}\n" + user("Hi"), got
