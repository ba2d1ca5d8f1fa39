"""Content that is held beside tools, in formats whose content and calls begin alike, and in formats drawn at random."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from budget import BUDGET, cases
from models import copy_tiny
from tokentrie import Message, Model
from tokentrie.results import ChatEvent

pytest.importorskip("jinja2", reason="the package jinja2 is not installed")
sys.path.insert(0, str(Path(__file__).parent / "dialects"))

from drawn_dialects import drawn
from drawn_replies import TOOLS

pytestmark = pytest.mark.model

TEMPLATES = Path(__file__).parents[2] / "crates" / "chat-format" / "tests" / "templates"
#: Formats in which a mark says to whom the message is: to the user, or to a tool.
ALIKE = ("recipients", "recipients-on-lines", "channels")
SEED = 0 if BUDGET < 1 else random.SystemRandom().randrange(10**9)
ASK = [{"role": "user", "content": "please ring the bell"}]
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"enum": ["yes", "no"]}, "places": {"type": "integer", "minimum": 1, "maximum": 99}},
    "required": ["answer", "places"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
PARAMETERS = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}  # type: ignore[index]


def judge(message: Message, choice: str) -> str:
    """Returns what the reply is: calls, or content that obeys. Anything else fails."""
    if message.tool_calls:
        assert choice != "none"
        assert (message.content.strip(), message.parsed) == ("", None), message
        # What ends a call may take more tokens than the limit leaves.
        is_cut = message.finish == "max_tokens"
        assert is_cut or message.finish == "tool_calls", message
        for call in message.tool_calls[: -1 if is_cut else None]:
            jsonschema.validate(json.loads(call.arguments), PARAMETERS[call.name])
        return "calls"
    assert choice != "required", message
    assert message.finish == "span", message
    jsonschema.validate(json.loads(message.content), SCHEMA)
    return "content"


def replies(model: Model, choice: str, seeds: range) -> Counter[str]:
    """Counts what the replies of a model to a format beside tools are, in streams and whole."""
    found: Counter[str] = Counter()
    for seed in seeds:
        draw: Any = {"mode": "sampled", "temperature": 3.0, "seed": seed, "thinking_budget": 2, "max_tokens": 250}
        events: list[ChatEvent] = []
        message = model.chat(ASK, TOOLS, choice, response_format=FORMAT, stream=events.append, **draw)
        found[judge(message, choice)] += 1
        assert "".join(event.text for event in events if event.kind == "content") == message.content
        assert [event.name for event in events if event.kind == "call_begins"] == [c.name for c in message.tool_calls]
    return found


@pytest.mark.parametrize("name", ALIKE)
def test_where_calls_and_content_begin_alike(name: str) -> None:
    template = (TEMPLATES / f"{name}.jinja").read_text("utf-8")
    with Model(copy_tiny(name, changes={"tokenizer.chat_template": template}), n_ctx=4096, n_threads=1) as model:
        content = model.chat_format.analysis.content
        assert (content.mode, bool(content.start)) == ("wrapped", True)
        found = replies(model, "auto", range(8))
        assert all(found[kind] for kind in ("calls", "content")), found
        assert replies(model, "none", range(1)) == {"content": 1}
        assert replies(model, "required", range(1)) == {"calls": 1}
        # Without tools, too, and where one of a list is decided.
        alone = model.chat(ASK, response_format=FORMAT, max_tokens=100)
        assert judge(alone, "none") == "content"
        assert 0 <= model.decide("It rings.", {"loud": bool})["loud"].probability <= 1


@pytest.mark.filterwarnings("ignore::tokentrie.errors.TokenTrieWarning")
def test_formats_drawn_at_random() -> None:
    for number in range(cases(40)):
        # pytest shows the last seed that is printed.
        dialect = drawn(f"held {SEED} {number}")
        path = copy_tiny(f"held-{number}", changes={"tokenizer.chat_template": dialect.template})
        with Model(path, n_ctx=4096, n_threads=1) as model:
            for choice, seeds in (("auto", range(3)), ("none", range(1))):
                print(dialect.seed, choice, dict(replies(model, choice, seeds)))
