"""Held-out chats: what training never saw, as messages and tools, with the message that is right."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from drawn import calls, naming
from drawn.chat import CALL_CLOSE, CALL_OPEN, IM_END, IM_START, NO_THOUGHT, THINK_CLOSE, THINK_OPEN
from drawn.corpus import Branch, Document

FILE = Path(__file__).parents[1] / "heldout_chats.jsonl"
THOUGHT = re.compile(rf"{THINK_OPEN}\n(.*?)\n{THINK_CLOSE}\n\n", re.DOTALL)
CALL = re.compile(rf"\n?{CALL_OPEN}\n(.*?)\n{CALL_CLOSE}", re.DOTALL)
SIZES = {"call": (3, 5, 10), "none": (5,), "two": (5,), "result": (5,), "next": (5,)}


@dataclass(frozen=True)
class Chat:
    """A chat up to where the model answers; `prompt` is what the template makes of it, `expected` the right answer."""

    task: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    thinking: bool
    prompt: str
    expected: dict[str, Any]


def _call(text: str) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key comes twice")
        return dict(pairs)

    call = json.loads(text, object_pairs_hook=unique)
    if not isinstance(call, dict) or set(call) != {"name", "arguments"}:
        raise ValueError("no call")
    return call


def read(text: str) -> dict[str, Any]:
    """A reply as a message; anything that is not a call between the markers of one stays content."""
    thought = THOUGHT.match(text)
    message: dict[str, Any] = {"role": "assistant"}
    if thought:
        message["reasoning_content"] = thought[1]
        text = text[thought.end() :]
    try:
        found = [_call(c) for c in CALL.findall(text)]
    except ValueError:
        found = []
    if found:
        text = CALL.sub("", text)
        message["tool_calls"] = [{"type": "function", "function": c} for c in found]
    return message | {"content": text}


def _messages(prompt: str) -> Iterator[dict[str, Any]]:
    """The closed turns of a prompt after its head."""
    for part in prompt.split(IM_START)[1:-1]:
        role, _, content = part.removesuffix(f"{IM_END}\n").partition("\n")
        yield read(content) if role == "assistant" else {"role": role, "content": content}


def _chat(task: str, doc: Document, branch: Branch, thinking: bool) -> Chat:
    tools = [t.schema() for t in doc.tools]
    expected = read(branch.answer.removesuffix(IM_END))
    return Chat(task, list(_messages(branch.prompt)), tools, thinking, doc.head + branch.prompt, expected)


def chats(seed: int, per_task: int) -> Iterator[Chat]:
    """Every task, `per_task` chats each, without and with thinking; both draw from seeds of their own."""
    for what, sizes in SIZES.items():
        for size in sizes:
            for thinking in (False, True):
                for dense in (False, True) if what == "call" else (False,):
                    task = f"{what}{size}{'_dense' if dense else ''}{'_thinking' if thinking else ''}"
                    rng = Random(f"{seed} {task}")
                    for _ in range(per_task):
                        doc = calls.call_document(
                            rng, size, 1, what=what, thinking=thinking, dense=dense, held_out=True
                        )
                        yield _chat(task, doc, doc.branches[0], thinking)


def check(drawn: list[Chat]) -> None:
    """Assert that names, keys and values are on the held-out side, and that the template makes these prompts."""
    from jinja2 import Environment

    from drawn.arguments import BOOLEANS, ENUMERATIONS, INTEGERS
    from drawn.chat import TEMPLATE_PATH
    from drawn.lexicon import VALUE_PHRASES

    environment = Environment()
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
    template = environment.from_string(TEMPLATE_PATH.read_text())
    known = {*BOOLEANS, *ENUMERATIONS, *INTEGERS, *VALUE_PHRASES}
    for one in drawn:
        rendered = template.render(
            messages=one.messages, tools=one.tools, add_generation_prompt=True, enable_thinking=one.thinking
        )
        assert rendered == one.prompt, (rendered, one.prompt)
        assert one.prompt.endswith(NO_THOUGHT) == (not one.thinking)
        for tool in one.tools:
            function = tool["function"]
            assert naming.is_held_out("name", function["name"]), one
            assert all(k in known or naming.is_held_out("key", k) for k in function["parameters"]["properties"]), one
        for call in one.expected.get("tool_calls", []):
            for value in call["function"]["arguments"].values():
                assert isinstance(value, bool) or naming.is_held_out("value", str(value)), one


SHIPPED = ["call5", "call5_thinking", "none5", "none5_thinking", "result5", "result5_thinking", "two5"]


def write(drawn: list[Chat], per_task: int) -> None:
    """Write the chats that the project's own tests ask through llama.cpp."""
    with FILE.open("w", encoding="utf-8") as out:
        for task in SHIPPED:
            for one in [c for c in drawn if c.task == task][:per_task]:
                row = {k: v for k, v in asdict(one).items() if k != "prompt"}
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
