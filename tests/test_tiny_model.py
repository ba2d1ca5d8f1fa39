"""The right value, not only a legal one: held-out questions for the tiny model, asked through llama.cpp.

The floors lie a few questions below what the model card reports, because processors round differently.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tokentrie import Model

QUESTIONS = Path(__file__).parents[1] / "tools" / "tiny_model" / "heldout.jsonl"
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


@pytest.fixture(scope="module")
def questions() -> dict[str, list[dict[str, Any]]]:
    by_task: dict[str, list[dict[str, Any]]] = {}
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        by_task.setdefault(row["task"], []).append(row)
    return by_task


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
    assert len(results) >= 100
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
