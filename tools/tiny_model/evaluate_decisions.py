"""Decisions of the shipped model: held-out questions in both readouts, in several layouts and with priors.

python evaluate_decisions.py --per-task 200 --rows 40
"""

from __future__ import annotations

import argparse
import statistics
from itertools import groupby
from pathlib import Path
from typing import Any

import tokentrie

from drawn import heldout_decisions
from drawn.corpus import LABELS
from drawn.heldout_decisions import Decision

MODEL = Path(__file__).with_name("out") / "tiny.gguf"
BINS = 10
ANOTHER = {"prompt": "{instructions}\n{options}\n{answer}\n\n{state}"}
READOUTS: dict[str, dict[str, Any]] = {"text": {}, "label": {"readout": "label"}}
VARIANTS: dict[str, dict[str, Any]] = {
    "options not listed": {"list_options": False},
    "permute=6": {"permute": 6},
    "label, permute=6": {"readout": "label", "permute": 6},
    "another layout": ANOTHER,
}
"""More ways to ask one task, and what a prompt that the model does not know does."""
OF_VARIANTS = ("review_choice", "request_of_5")
SENTIMENT = tokentrie.decisions.Question(LABELS, instructions="What is the sentiment of the review?")
"""One question about all reviews: only then a prior over the batch means something."""


def question(one: Decision) -> tokentrie.decisions.Question:
    """As `Model.decide` takes it."""
    kind: Any = bool
    if one.kind == "score":
        kind = tokentrie.decisions.Score([text for text, _ in one.options])
    elif one.kind == "choice":
        kind = {text: meaning or None for text, meaning in one.options}
    return tokentrie.decisions.Question(kind, instructions=one.instructions)


def figures(answers: list[tokentrie.decisions.Answer], right: list[int]) -> dict[str, float]:
    """Accuracy, Brier score (the sum over options), calibration error in ten bins, median mass, mean flips."""
    brier = 0.0
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for answer, index in zip(answers, right, strict=True):
        shares = list(answer.probabilities.values())
        brier += sum((share - (option == index)) ** 2 for option, share in enumerate(shares))
        best = max(range(len(shares)), key=shares.__getitem__)
        bins[min(int(shares[best] * BINS), BINS - 1)].append((shares[best], best == index))
    wrong = sum(abs(sum(most - hit for most, hit in one)) for one in bins)
    return {
        "accuracy": sum(hit for one in bins for _, hit in one) / len(right),
        "Brier": brier / len(right),
        "ECE": wrong / len(right),
        "mass": statistics.median(answer.mass for answer in answers),
        "flips": statistics.mean(answer.flips for answer in answers),
    }


def asked(model: tokentrie.Model, group: list[Decision], options: dict[str, Any]) -> list[tokentrie.decisions.Answer]:
    """The answers. What training took for the prompt must be what is asked."""
    usual = set(options) <= {"readout"}
    answers = []
    for one in group:
        [answer] = model.decide(one.state, {"q": question(one)}, **options).values()
        if usual:
            want = one.prompt(options.get("readout") == "label")
            assert model.vocab.detokenize(answer.prompts[0].tokens) == want, want
        answers.append(answer)
    return answers


def with_priors(model: tokentrie.Model, group: list[Decision]) -> None:
    """One question about all reviews, in the usual layout and in another, with and without priors."""
    states = [one.state for one in group]
    right = [LABELS.index(one.options[one.right][0]) for one in group]
    for layout, options in {"usual layout": {}, "another layout": ANOTHER}.items():
        for prior in ("none", "content-free", "batch"):
            answers = model.decide_many(states, {"q": SENTIMENT}, prior=prior, **options)
            show("one question", f"{layout}, {prior}", [one["q"] for one in answers], right)


def show(task: str, name: str, answers: list[tokentrie.decisions.Answer], right: list[int]) -> None:
    """A line of the table."""
    shown = "  ".join(f"{what} {value:.3g}" for what, value in figures(answers, right).items())
    print(f"{task:16}{len(right):5} {name:24} {shown}", flush=True)


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--per-task", type=int, default=200)
    parser.add_argument("--only", default="", help="only tasks whose name starts like this")
    parser.add_argument("--rows", type=int, default=0, help="write so many a task to heldout_decisions.jsonl")
    options = parser.parse_args()
    drawn = list(heldout_decisions.drawn(options.seed, options.per_task))
    heldout_decisions.check(drawn)
    if options.rows:
        heldout_decisions.write(drawn, options.rows)
    model = tokentrie.Model(str(options.model), n_threads=1)
    chosen = [one for one in drawn if one.task.startswith(options.only)]
    for task, of_task in groupby(chosen, key=lambda one: one.task):
        group = list(of_task)
        right = [one.right for one in group]
        for name, variant in READOUTS.items():
            if name == "text" or group[0].kind != "predicate":
                show(task, name, asked(model, group, variant), right)
        if task in OF_VARIANTS:
            for name, variant in VARIANTS.items():
                show(task, name, asked(model, group, variant), right)
        if task == "review_choice":
            with_priors(model, group)


if __name__ == "__main__":
    main()
