"""The right decision, not only probabilities: held-out questions for the tiny model, in both readouts.

The floors lie a few questions below what the model card reports, because processors round differently.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokentrie
from budget import every

pytestmark = pytest.mark.model

DECISIONS = Path(__file__).parents[2] / "tools" / "tiny_model" / "heldout_decisions.jsonl"
FLOORS = {
    "review_yes_no": (0.94, 0.0),
    "review_choice": (0.97, 0.94),
    "review_level": (0.97, 0.97),
    "fact_yes_no": (0.92, 0.0),
    "fact_choice": (0.87, 0.87),
    "fact_level": (0.92, 0.87),
    "request_yes_no": (0.96, 0.0),
    "request_of_3": (0.88, 0.85),
    "request_of_5": (0.78, 0.75),
    "request_of_10": (0.68, 0.72),
    "request_of_20": (0.58, 0.55),
}
"""Shares of right answers of each task, by text and by label; yes and no have no labels."""


def by_task() -> dict[str, list[dict[str, Any]]]:
    tasks: dict[str, list[dict[str, Any]]] = {}
    for line in DECISIONS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        tasks.setdefault(row["task"], []).append(row)
    return {task: rows[:: every(2)] for task, rows in tasks.items()}


def question(row: dict[str, Any]) -> tokentrie.decisions.Question:
    kind: Any = bool
    if row["kind"] == "score":
        kind = tokentrie.decisions.Score([text for text, _ in row["options"]])
    elif row["kind"] == "choice":
        kind = {text: meaning or None for text, meaning in row["options"]}
    return tokentrie.decisions.Question(kind, instructions=row["instructions"])


@pytest.fixture(scope="module")
def model(tiny_path: Path) -> tokentrie.Model:
    return tokentrie.Model(n_threads=1)


@pytest.mark.parametrize("task", FLOORS)
@pytest.mark.parametrize("readout", ["text", "label"])
def test_decides_rightly(model: tokentrie.Model, task: str, readout: Any) -> None:
    rows, floor = by_task()[task], FLOORS[task][readout == "label"]
    if readout == "label" and rows[0]["kind"] == "predicate":
        pytest.skip("yes and no have no labels")
    right, masses = 0, []
    for row in rows:
        answer = model.decide(row["state"], {"q": question(row)}, readout=readout)["q"]
        shares = list(answer.probabilities.values())
        right += shares.index(max(shares)) == row["right"]
        masses.append(answer.mass)
    assert right / len(rows) >= floor
    assert sorted(masses)[len(masses) // 2] > 0.5, "the usual layout is a prompt that the model knows"


def test_every_task_has_a_floor() -> None:
    assert set(FLOORS) == set(by_task())
