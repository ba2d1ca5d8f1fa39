"""Cost of a generation of one token beside the pass of llama.cpp in it: what of a call is ours.

    python benches/one_token.py --calls 2000

Each call times its own pass, so both are of the same moment; the medians are printed in microseconds. The module of
`./dev setup` has assertions: build one with `pip install --no-build-isolation .` for figures.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import tokentrie
from tokentrie.rules import Regex


def measured(call: Callable[[], Any], calls: int) -> tuple[float, float, float, float]:
    """Returns the medians of the whole call, of its passes, of ours inside of it and of ours around it, in µs."""
    times = []
    for _ in range(calls):
        began = time.perf_counter()
        out = call()
        whole = time.perf_counter() - began
        assert len(out.tokens) == 1
        passes = out.stats.prompt_seconds + out.stats.decode_seconds
        times.append((whole, passes, out.stats.seconds - passes, whole - out.stats.seconds))
    whole, passes, inside, around = (statistics.median(column) * 1e6 for column in zip(*times, strict=True))
    return whole, passes, inside, around


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=2000)
    calls: int = parser.parse_args().calls
    model = tokentrie.Model(n_ctx=256, n_threads=1)
    # They differ in the last token alone, so that each call makes a pass of one token.
    prompts = itertools.cycle([model.vocab.tokenize(f"The answer {end}") for end in ("is", "was")])
    two = sorted(set(range(300, 900)) - set(model.vocab.eog))[:2]
    trie = tokentrie.Trie.from_sequences([[one] for one in two], names=["a", "b"])
    cases: dict[str, Callable[[], Any]] = {
        "free text": lambda: model.generate(next(prompts), max_tokens=1),
        "a trie": lambda: model.generate(next(prompts), trie),
        "a trie, drawn": lambda: model.generate(next(prompts), trie, mode="sampled", seed=1),
        "a rule": lambda: model.generate(next(prompts), Regex("[a-z]+"), max_tokens=1, on_invalid="none"),
    }
    print(f"{'':16} {'call':>8} {'passes':>8} {'in Rust':>8} {'around':>8}")
    for name, call in cases.items():
        measured(call, 50)
        print(f"{name:16} " + " ".join(f"{micros:8.1f}" for micros in measured(call, calls)))


if __name__ == "__main__":
    main()
