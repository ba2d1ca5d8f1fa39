"""Held-out decisions: states and questions that training never saw, with the option that is right."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from drawn import chat, corpus, decisions, naming, templates
from drawn.corpus import Action
from drawn.decisions import DrawnQuestion
from drawn.lexicon import GRADES

FILE = Path(__file__).parents[1] / "heldout_decisions.jsonl"
REQUESTS = (3, 5, 10, 20)


@dataclass(frozen=True)
class Decision:
    """A state and a question; `right` is the place of the right option."""

    task: str
    state: str
    kind: str
    instructions: str
    options: tuple[tuple[str, str], ...]
    right: int

    def prompt(self, label: bool) -> str:
        """As training would have it."""
        asked = DrawnQuestion(self.kind, self.instructions, self.options, self.right)
        return f"{chat.IM_START}user\n{self.state}{asked.branch(label).prompt}"


def _until(kind: str, make: Callable[[], DrawnQuestion]) -> DrawnQuestion:
    while (asked := make()).kind != kind:
        pass
    return asked


def _of_review(rng: Random, kind: str) -> tuple[str, DrawnQuestion]:
    state, label = corpus.review(rng, held_out=True)
    return state, _until(kind, lambda: decisions.about_review(rng, label, held_out=True))


def _of_fact(rng: Random, kind: str) -> tuple[str, DrawnQuestion]:
    while True:
        state, known = decisions.facts(rng, 2, held_out=True)
        fact = rng.choice(known)
        if kind != "score" or fact.row in GRADES:
            break
    return state, _until(kind, lambda: decisions.about_fact(rng, fact, held_out=True))


def _of_request(rng: Random, kind: str, count: int) -> tuple[str, DrawnQuestion]:
    pairs = corpus.choose_pairs(rng, count, rng.random() < 0.3, held_out=True)
    target = rng.randrange(count)
    pattern = rng.choice(templates.REQUESTS.held_out)
    state = corpus.phrase(rng, pattern, Action(*pairs[target], "city"))
    return state, _until(kind, lambda: decisions.about_request(rng, pairs, target, held_out=True))


TASKS: dict[str, Callable[[Random], tuple[str, DrawnQuestion]]] = {
    "review_yes_no": lambda rng: _of_review(rng, "predicate"),
    "review_choice": lambda rng: _of_review(rng, "choice"),
    "review_level": lambda rng: _of_review(rng, "score"),
    "fact_yes_no": lambda rng: _of_fact(rng, "predicate"),
    "fact_choice": lambda rng: _of_fact(rng, "choice"),
    "fact_level": lambda rng: _of_fact(rng, "score"),
    "request_yes_no": lambda rng: _of_request(rng, "predicate", 5),
    **{f"request_of_{n}": lambda rng, n=n: _of_request(rng, "choice", n) for n in REQUESTS},  # type: ignore[misc]
}


def drawn(seed: int, per_task: int) -> Iterator[Decision]:
    """Every task, so many decisions each; the same seed gives the same ones."""
    for task, make in TASKS.items():
        rng = Random(f"{seed} {task}")
        for _ in range(per_task):
            state, asked = make(rng)
            yield Decision(task, state, asked.kind, asked.instructions, asked.options, asked.right)


def check(found: list[Decision]) -> None:
    """Assert that names of options with a meaning are on the held-out side."""
    for one in found:
        if one.task.startswith("request_of"):
            assert all(naming.is_held_out("name", text) for text, meaning in one.options if meaning), one


def write(found: list[Decision], per_task: int) -> None:
    """Write the decisions that the project's own tests ask."""
    with FILE.open("w", encoding="utf-8") as out:
        for task in TASKS:
            for one in [one for one in found if one.task == task][:per_task]:
                out.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
