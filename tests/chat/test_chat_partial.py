"""A reply that is cut off anywhere says a part of what it says as a whole: nothing of a marker or a call."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import budget
import pytest
from tokentrie import ChatFormat, Message, TemplateError, Tools

OURS = Path(__file__).parents[2] / "crates/chat-format/tests/templates"
OTHERS = os.environ.get("TOKENTRIE_TEMPLATE_DIR")
TEMPLATES = [*sorted(OURS.glob("*.jinja")), *(sorted(Path(OTHERS).glob("*.jinja")) if OTHERS else [])]

TOOLS = Tools(
    [
        {
            "name": name,
            "description": "Does it.",
            "parameters": {
                "type": "object",
                "properties": {
                    "place": {"type": "string"},
                    "count": {"type": "integer"},
                    "deep": {
                        "type": "object",
                        "properties": {"flags": {"type": "array", "items": {"type": "boolean"}}},
                    },
                },
                "required": ["place"],
            },
        }
        for name in ("get_weather", "get_weather_now")
    ]
)
WORDS = ["rain", "a } b", "] and )", '"quoted"', "größer", "{}", "line\nbreak", "</x>", "<b>", "'s", "``", "1.5"]


def reply(draw: random.Random) -> dict[str, Any]:
    """A message with some of content, reasoning and calls."""
    call = {
        "place": " ".join(draw.sample(WORDS, 2)),
        "count": draw.randrange(-5, 2000),
        "deep": {"flags": [draw.random() < 0.5 for _ in range(draw.randrange(3))]},
    }
    names = [key for key in call if key == "place" or draw.random() < 0.6]
    calls = [
        {
            "type": "function",
            "id": f"call_{number:05}",
            "function": {"name": draw.choice(TOOLS.names), "arguments": {key: call[key] for key in names}},
        }
        for number in range(draw.choice([0, 1, 1, 2]))
    ]
    said: dict[str, Any] = {"role": "assistant", "content": draw.choice(["", "It rains.", "Look, a } there"])}
    if draw.random() < 0.5:
        said["reasoning_content"] = "Let me see."
    if calls:
        said["tool_calls"] = calls
    elif not said["content"]:
        said["content"] = "It rains."
    return said


def written(form: ChatFormat, said: dict[str, Any]) -> tuple[str, str] | None:
    """What the template writes for a reply after its prompt, and the end of that prompt; None where it takes none."""
    asked = [{"role": "user", "content": "How is it in Riga?"}]
    definitions = TOOLS.definitions
    try:
        prompt = form.prompt(asked, definitions)
        whole = form.render([*asked, said], definitions, add_generation_prompt=False)
    except TemplateError:
        return None
    turn = prompt.generation_prompt
    begins = prompt.text[: len(prompt.text) - len(turn)]
    if not whole.startswith(begins):
        return None
    # The prompt may open the reasoning, which the template leaves out of what was said.
    if whole.startswith(prompt.text):
        return whole[len(prompt.text) :], turn
    return None


def assert_is_begun(part: Message, whole: Message, cut: str) -> None:
    assert whole.content.startswith(part.content.rstrip()), cut
    assert whole.reasoning.startswith(part.reasoning.rstrip()), cut
    for begun, call in zip(part.tool_calls, whole.tool_calls, strict=False):
        assert begun.name == call.name, cut
        assert call.arguments.startswith(begun.arguments), cut
    assert len(part.tool_calls) <= len(whole.tool_calls), cut


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_every_cut(path: Path) -> None:
    form = ChatFormat(path.read_text(encoding="utf-8"), bos="<s>", eos="</s>")
    draw = random.Random(path.stem)
    for _ in range(budget.cases(40)):
        said = reply(draw)
        found = written(form, said)
        if found is None:
            continue
        text, turn = found
        options: dict[str, Any] = {"generation_prompt": turn, "parallel_tool_calls": True}
        whole = form.parse(text, TOOLS, **options)
        named = [call["function"]["name"] for call in said.get("tool_calls", [])]
        if [call.name for call in whole.tool_calls] != named[: len(whole.tool_calls)] or whole.warnings:
            continue  # The template cannot say this: that is for the tests of analyses.
        for call, asked in zip(whole.tool_calls, said.get("tool_calls", []), strict=False):
            assert json.loads(call.arguments).keys() == asked["function"]["arguments"].keys()
        data = text.encode()
        for end in range(len(data)):
            part = form.parse(data[:end], TOOLS, partial=True, **options)
            assert_is_begun(part, whole, f"{data[:end]!r} of {text!r}: {part!r}")
