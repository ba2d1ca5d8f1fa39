"""Texts of arguments that hold what ends them, where templates write them as they are: read rightly, and allowed."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from budget import cases
from tokentrie import ChatFormat, Sampler, Vocab

FOLDER = Path(os.environ.get("TOKENTRIE_TEMPLATE_DIR") or Path(__file__).parents[3] / "shared" / "templates")
CALLS = {
    "google-gemma-4-31B-it": ("<|tool_call>", "<tool_call|>", '<|"|>'),
    "MiniMax-M3": ("]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>", "]<]minimax[>[</text>"),
    "Qwen3-Coder": ("<tool_call>", "</tool_call>", "</parameter>"),
    "GLM-4.6": ("<tool_call>", "</tool_call>", "</arg_value>"),
}
"""The texts that calls begin and end with in a template, and the one that ends the value of the argument `text`."""
INNER = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "all": {"type": "array", "items": {"type": "string"}}},
    "additionalProperties": False,
}
PARAMETERS = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "text": {"type": "string"}, "line": {"type": "integer"}, "more": INNER},
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "edit", "description": "Edits.", "parameters": PARAMETERS}}]


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_text_may_hold_what_ends_it(name: str) -> None:
    path = FOLDER / f"{name}.jinja"
    if not path.is_file():
        pytest.skip(f"no {path}")
    format, vocab = ChatFormat(path.read_text("utf-8")), Vocab.from_tokens([bytes([byte]) for byte in range(256)])
    held = format.constraint(TOOLS, vocab, tool_choice="required", generation_prompt="")
    seed = random.SystemRandom().getrandbits(32)
    draw = random.Random(seed)
    begin, close, end = CALLS[name]
    pieces = [end, end, end[:-1], "x", " ", "y\n z", "<b>", "</b>", '"', "</", "<", "é", "/>"]
    for _ in range(cases(60)):
        # White space at the ends is what templates trim.
        text = "a" + "".join(draw.choices(pieces, k=draw.randint(1, 6))) + draw.choice(["b", end, '"'])
        # Inside of others GLM and Qwen write JSON.
        arguments: dict[str, Any] = {"path": "p", "text": text, "line": 3}
        if draw.random() < 0.5:
            arguments["more"] = {"text": text, "all": [text, "x"]}
        call = {"id": "a1", "type": "function", "function": {"name": "edit", "arguments": arguments}}
        messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
        rendered = format.render(messages, TOOLS)
        reply = rendered[rendered.index(begin, rendered.rindex("Hi")) : rendered.rindex(close)] + close
        message = format.parse(reply, TOOLS)
        assert [json.loads(call.arguments) for call in message.tool_calls] == [arguments], f"seed {seed}: {reply!r}"
        sampler = Sampler(vocab, held)
        for at, byte in enumerate(reply.encode()):
            assert byte in sampler.allowed().tolist(), f"seed {seed}: {reply.encode()[:at]!r} of {reply!r}"
            sampler.accept(byte)
