"""Distance of `choose` from scoring every value token by token, over 400 held-out prompts of the tiny model.

python benches/rounding.py
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import numpy as np
from tokentrie import Model

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "model"))

from test_choose import QUESTIONS, ids, naive, precise_model, tokens

PROMPTS = 400


def main() -> None:
    lines = random.Random(0).sample(QUESTIONS.read_text(encoding="utf-8").splitlines(), PROMPTS)
    print("| model | median | 99 % | worst | worst probability | same best value |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, model in (("as shipped", Model(n_ctx=2048)), ("f32, `precise=True`", precise_model("trained"))):
        logs: list[float] = []
        shares: list[float] = []
        same = 0
        for row in map(json.loads, lines):
            expected = naive(model, ids(model, row["prompt"]), tokens(model, row["choices"]))
            choice = model.choose(row["prompt"], row["choices"])
            logs += np.abs(choice.logprobs - expected).tolist()
            shares += np.abs(np.exp(choice.logprobs) - np.exp(expected)).tolist()
            same += int(choice.index == expected.argmax())
        median, most = np.quantile(logs, [0.5, 0.99])
        print(f"| {name} | {median:.2g} | {most:.2g} | {max(logs):.2g} | {max(shares):.2g} | {same} of {len(lines)} |")


if __name__ == "__main__":
    main()
