"""The figures of `docs/decisions.md`: held-out reviews and statements as decisions, in several layouts and with priors.

PYTHONPATH=python python tools/tiny_model/evaluate_decisions.py --model python/tokentrie/models/tiny.gguf
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from pathlib import Path
from typing import Any

import tokentrie

HERE = Path(__file__).parent
MODEL = HERE.parents[1] / "python/tokentrie/models/tiny.gguf"
LABELS = ["positive", "negative", "neutral"]
REVIEW = tokentrie.Question(LABELS, instructions="What is the sentiment of the review?")
OF_REVIEWS: dict[str, Any] = {
    "system": "Label the review: positive, negative or neutral.",
    "prompt": "{state}",
}
OF_STATEMENTS: dict[str, Any] = {"system": "Answer yes or no.", "prompt": "{state}"}
BINS = 10

CASES: dict[str, tuple[Any, dict[str, dict[str, Any]]]] = {
    "sentiment": (
        REVIEW,
        {
            "usual layout": {},
            "label readout": {"readout": "label"},
            "options not listed": {"list_options": False},
            "permute=6": {"permute": 6},
            "batch prior": {"prior": "batch"},
            "content-free prior": {"prior": "content-free"},
            "own prompt": OF_REVIEWS,
            "own prompt, batch prior": OF_REVIEWS | {"prior": "batch"},
            "own prompt, content-free prior": OF_REVIEWS | {"prior": "content-free"},
        },
    ),
    "yes_no": (
        tokentrie.Question(bool, instructions=""),
        {
            "usual layout": {},
            "batch prior": {"prior": "batch"},
            "own prompt": OF_STATEMENTS,
            "own prompt, batch prior": OF_STATEMENTS | {"prior": "batch"},
        },
    ),
}


def rows(task: str) -> list[tuple[str, str]]:
    """What the user says, and the right answer."""
    found = map(json.loads, (HERE / "heldout.jsonl").read_text(encoding="utf-8").splitlines())
    said = re.compile(r"<\|im_start\|>user\n(.*)<\|im_end\|>\n<\|im_start\|>assistant", re.DOTALL)
    chosen = [row for row in found if row["task"] == task]
    return [(match[1], row["answer"]) for row in chosen if (match := said.search(row["prompt"]))]


def figures(answers: list[tokentrie.Answer], right: list[int]) -> dict[str, float]:
    """Accuracy, Brier score (the sum over options), calibration error in ten bins, median mass, mean flips."""
    brier = 0.0
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for answer, index in zip(answers, right, strict=True):
        shares = list(answer.probabilities.values())
        brier += sum((share - (option == index)) ** 2 for option, share in enumerate(shares))
        most = shares[answer.index]
        bins[min(int(most * BINS), BINS - 1)].append((most, answer.index == index))
    wrong = sum(abs(sum(most - hit for most, hit in one)) for one in bins)
    return {
        "accuracy": sum(hit for one in bins for _, hit in one) / len(right),
        "Brier": brier / len(right),
        "ECE": wrong / len(right),
        "mass": statistics.median(answer.mass for answer in answers),
        "flips": statistics.mean(answer.flips for answer in answers),
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=MODEL)
    options = parser.parse_args()
    model = tokentrie.Model(str(options.model), n_threads=1)
    for task, (question, variants) in CASES.items():
        asked = rows(task)
        states, names = [said for said, _ in asked], LABELS if task == "sentiment" else ["yes", "no"]
        right = [names.index(answer) for _, answer in asked]
        for name, variant in variants.items():
            answers = [one["q"] for one in model.decide_many(states, {"q": question}, **variant)]
            found = figures(answers, right)
            shown = "  ".join(f"{what} {value:.3g}" for what, value in found.items())
            print(f"{task:10} {len(right)} {name:32} {shown}", flush=True)
        gold = [names[index] for index in right]
        for name in ("usual layout", "own prompt"):
            found = model.calibrate(states, {"q": question}, {"q": gold}, **variants[name]).questions["q"]
            shown = f"temperature {found.temperature:.3g}  before {found.before}  after {found.after}"
            print(f"{task:10} {len(right)} {name + ', calibrated':32} {shown}", flush=True)


if __name__ == "__main__":
    main()
