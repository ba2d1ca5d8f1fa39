"""The right value, not only a legal one: held-out questions for the tiny model, asked through llama.cpp.

The floors lie a few questions below what the model card reports, because processors round differently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from budget import every
from tokentrie import Model

pytestmark = pytest.mark.model

TOOLS = Path(__file__).parents[2] / "tools" / "tiny_model"
QUESTIONS, CHATS = TOOLS / "heldout.jsonl", TOOLS / "heldout_chats.jsonl"
FLOORS = {
    "tool5_opaque": 0.85,
    "tool20_opaque": 0.85,
    "tool20_matching": 0.85,
    "tool20_opaque_dense": 0.8,
    "yes_no": 0.8,
    "sentiment": 0.9,
}


@pytest.fixture(scope="module")
def model(tiny_path: Path) -> Model:
    return Model(n_ctx=4096, n_threads=1)


def by_task(path: Path) -> dict[str, list[dict[str, Any]]]:
    tasks: dict[str, list[dict[str, Any]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        tasks.setdefault(row["task"], []).append(row)
    return {task: rows[:: every(3)] for task, rows in tasks.items()}


@pytest.fixture(scope="module")
def questions() -> dict[str, list[dict[str, Any]]]:
    return by_task(QUESTIONS)


@pytest.fixture(scope="module")
def chats() -> dict[str, list[dict[str, Any]]]:
    return by_task(CHATS)


def asked(model: Model, rows: list[dict[str, Any]]) -> Iterator[tuple[bool, bool]]:
    """Whether the greedy walk ends in the right value, and whether that is the most probable one."""
    for row in rows:
        out = model.generate(row["prompt"], row["choices"])
        choice = model.choose(row["prompt"], row["choices"])  # the prompt is still held
        assert out.text in row["choices"]
        assert choice.name == row["choices"][choice.index]
        yield out.text == row["answer"], choice.name == row["answer"]


def share(hits: Iterable[bool]) -> float:
    results = list(hits)
    assert len(results) >= 100 // every(3)
    return sum(results) / len(results)


@pytest.mark.parametrize("task", FLOORS)
def test_the_right_value(model: Model, questions: dict[str, list[dict[str, Any]]], task: str) -> None:
    walked, chosen = zip(*asked(model, questions[task]), strict=True)
    assert share(walked) >= FLOORS[task]
    assert share(chosen) >= FLOORS[task]


def test_without_the_list_it_is_a_guess(model: Model, questions: dict[str, list[dict[str, Any]]]) -> None:
    walked, chosen = zip(*asked(model, questions["tool20_opaque_nolist"]), strict=True)
    assert share(walked) <= 0.15
    assert share(chosen) <= 0.15


def test_a_call_with_a_value_copied_from_the_request(model: Model, questions: dict[str, list[dict[str, Any]]]) -> None:
    """Free text after the opening tag: the model itself writes the JSON."""

    def right(row: dict[str, Any]) -> bool:
        text = model.generate(row["prompt"] + "<tool_call>", max_tokens=80).text
        try:
            return json.loads(text.removesuffix("</tool_call>")) == row["expected"]
        except json.JSONDecodeError:
            return False

    assert share(map(right, questions["json5"])) >= 0.8


# Chats: messages and tools in, a message out, all through the model's own template.

CHAT_FLOORS = {
    "call5": 0.85,
    "call5_thinking": 0.85,
    "none5": 0.8,
    "none5_thinking": 0.8,
    "result5": 0.85,
    "result5_thinking": 0.85,
    "two5": 0.5,
}


def message(text: str) -> dict[str, Any]:
    """A reply of the tiny model as a message."""
    found: dict[str, Any] = {"role": "assistant"}
    if thought := re.match(r"<think>\n(.*?)\n</think>\n\n", text, re.DOTALL):
        found["reasoning_content"], text = thought[1], text[thought.end() :]
    pattern = re.compile(r"\n?<tool_call>\n(.*?)\n</tool_call>", re.DOTALL)
    try:
        calls = [{"type": "function", "function": json.loads(call)} for call in pattern.findall(text)]
    except json.JSONDecodeError:
        calls = []
    if calls:
        found["tool_calls"], text = calls, pattern.sub("", text)
    return found | {"content": text}


def same(one: Any, other: Any) -> bool:
    """Equal as JSON, where true is not 1; the order of keys does not matter."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def prompt_of(model: Model, row: dict[str, Any]) -> list[int]:
    return model.chat_prompt(row["messages"], row["tools"], enable_thinking=row["thinking"])


@pytest.mark.parametrize("task", CHAT_FLOORS)
def test_the_right_message(model: Model, chats: dict[str, list[dict[str, Any]]], task: str) -> None:
    """Nothing holds the model: it opens the thought and the calls itself, and writes every argument."""

    def right(row: dict[str, Any]) -> bool:
        return same(message(model.generate(prompt_of(model, row), max_tokens=200).text), row["expected"])

    assert share(map(right, chats[task])) >= CHAT_FLOORS[task]


def test_the_thought_names_the_tool_that_is_called(model: Model, chats: dict[str, list[dict[str, Any]]]) -> None:
    def agrees(row: dict[str, Any]) -> bool:
        said = message(model.generate(prompt_of(model, row), max_tokens=200).text)
        names = [call["function"]["name"] for call in said.get("tool_calls", [])]
        return len(names) == 1 and said.get("reasoning_content") == f'I should call "{names[0]}".'

    assert share(map(agrees, chats["call5_thinking"])) >= 0.9


@pytest.mark.parametrize("task", ["call5", "call5_thinking"])
def test_a_held_call(model: Model, chats: dict[str, list[dict[str, Any]]], task: str) -> None:
    """With names, keys and enumerations held, what is left to get wrong is the choice and the values."""

    def right(row: dict[str, Any]) -> bool:
        thinks = {"enable_thinking": row["thinking"]}
        reply = model.chat(
            row["messages"], row["tools"], "required", parallel_tool_calls=False, max_tokens=200, **thinks
        )
        [expected] = row["expected"]["tool_calls"]
        return [same({"name": c.name, "arguments": c.parsed}, expected["function"]) for c in reply.tool_calls] == [True]

    assert share(map(right, chats[task])) >= 0.9
