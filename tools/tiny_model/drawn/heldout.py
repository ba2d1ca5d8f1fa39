"""Held-out questions: names, values, verb-object pairs and sentence patterns that training never draws.

The splits are made by a hash (names, values, pairs) or by two lists (patterns), so no list of seen items is
needed; `check_disjoint` asserts them on what was drawn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from drawn import corpus, naming
from drawn.chat import Tool
from drawn.corpus import HELD_OUT_PAIRS, TRAIN_PAIRS, Document

FILE = Path(__file__).parents[1] / "heldout.jsonl"


@dataclass(frozen=True)
class Question:
    """One prompt with the values to choose from and the right one."""

    task: str
    prompt: str
    choices: list[str]
    answer: str
    tools: list[Tool] = field(default_factory=list)
    expected: dict[str, Any] | None = None

    def row(self) -> dict[str, Any]:
        """The question as one line of `heldout.jsonl`."""
        row: dict[str, Any] = {"task": self.task, "prompt": self.prompt, "choices": self.choices, "answer": self.answer}
        if self.expected is not None:
            row["tools"] = [
                {"name": t.name, "description": t.description, "parameters": [p.name for p in t.parameters]}
                for t in self.tools
            ]
            row["expected"] = self.expected
        return row


def _tools(task: str, rng: Random, count: int, *, kind: str, dense: bool, with_list: bool) -> Question:
    doc = corpus.tool_document(rng, count, 1, kind=kind, dense=dense, held_out=True, with_list=with_list)
    names = [t.name for t in doc.tools]
    return Question(task, doc.head + doc.branches[0].prompt, names, names[doc.targets[0]], doc.tools)


def _json(task: str, rng: Random, count: int) -> Question:
    doc = corpus.tool_document(rng, count, 1, kind="mixed", held_out=True, mode="call")
    expected = json.loads(doc.branches[0].answer.split("\n")[1])
    names = [t.name for t in doc.tools]
    return Question(task, doc.head + doc.branches[0].prompt, names, expected["name"], doc.tools, expected)


def _label(task: str, make: Callable[[], Document], choices: list[str]) -> Question:
    doc = make()
    branch = doc.branches[0]
    return Question(task, doc.head + branch.prompt, choices, branch.answer.removesuffix("<|im_end|>"))


def questions(seed: int, per_task: int) -> Iterator[Question]:
    """Every task of the table, `per_task` questions each; the same seed gives the same questions."""
    for kind in ("opaque", "misleading", "matching"):
        for count in (3, 5, 10, 20):
            for dense in (False, True):
                for with_list in (True, False):
                    task = f"tool{count}_{kind}{'_dense' if dense else ''}{'' if with_list else '_nolist'}"
                    rng = Random(f"{seed} {task.removesuffix('_nolist')}")
                    for _ in range(per_task):
                        yield _tools(task, rng, count, kind=kind, dense=dense, with_list=with_list)
    for count in (3, 5, 10):
        rng = Random(f"{seed} json{count}")
        for _ in range(per_task):
            yield _json(f"json{count}", rng, count)
    rng = Random(f"{seed} labels")
    for _ in range(per_task):
        yield _label("yes_no", lambda: corpus.fact_document(rng, 1, held_out=True), ["yes", "no"])
    for _ in range(per_task):
        yield _label("sentiment", lambda: corpus.review_document(rng, 1, held_out=True), corpus.LABELS)


def check_disjoint(drawn: list[Question]) -> None:
    """Assert that what was drawn is on the held-out side of every split."""
    assert not set(TRAIN_PAIRS) & set(HELD_OUT_PAIRS)
    for question in drawn:
        assert all(naming.is_held_out("name", t.name) for t in question.tools), question
        if question.expected is not None:
            [argument] = question.expected["arguments"].values()
            assert naming.is_held_out("value", argument), question


SHIPPED = [
    "tool5_opaque",
    "tool20_opaque",
    "tool20_matching",
    "tool20_opaque_dense",
    "tool20_opaque_nolist",
    "json5",
    "yes_no",
    "sentiment",
]


def write(drawn: list[Question], per_task: int) -> None:
    """Write the questions that the project's own tests ask through llama.cpp."""
    with FILE.open("w", encoding="utf-8") as out:
        for task in SHIPPED:
            for question in [q for q in drawn if q.task == task][:per_task]:
                out.write(json.dumps(question.row(), ensure_ascii=False) + "\n")
