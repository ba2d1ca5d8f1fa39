"""The best ten of 200,000 names after a prompt: `Model.beam` beside `choose(top=10)` and `generate`: `./dev bench`.

Both give probabilities of the whole names, and what both found has the same; `choose` proves that nothing is better.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
import tokentrie
from pytest_benchmark.fixture import BenchmarkFixture

SYLLABLES = [
    "ka",
    "lo",
    "mi",
    "red",
    "star",
    "ban",
    "tor",
    "el",
    "su",
    "vin",
    "gra",
    "ho",
    "ne",
    "wood",
    "field",
    "ton",
]
PROMPT = "The winner is "


@pytest.fixture(scope="module")
def model() -> tokentrie.Model:
    return tokentrie.Model(n_threads=1)


@pytest.fixture(scope="module")
def names(model: tokentrie.Model, quick: bool) -> tokentrie.Trie:
    rng, count = random.Random(1), 2_000 if quick else 200_000
    made: set[str] = set()
    while len(made) < count:
        words = ("".join(rng.choice(SYLLABLES) for _ in range(rng.randint(2, 4))).capitalize() for _ in range(2))
        made.add(" ".join(words))
    return tokentrie.Trie.from_strings(model.vocab, sorted(made), prefix=PROMPT, heal=True)


@pytest.fixture(scope="module")
def exact(model: tokentrie.Model, names: tokentrie.Trie) -> tokentrie.Choice:
    return model.choose(PROMPT, names, top=10)


@pytest.mark.parametrize("width", [10, 64, 256])
def test_beam(
    benchmark: BenchmarkFixture, model: tokentrie.Model, names: tokentrie.Trie, exact: tokentrie.Choice, width: int
) -> None:
    found = model.beam(PROMPT, names, 10, width=width)
    assert len(found) == 10
    best = dict(zip(exact.ranking.tolist(), exact.logprobs[exact.ranking].tolist(), strict=True))
    both = [one for one in found if one.leaf.index in best]
    np.testing.assert_allclose([one.logprob for one in both], [best[one.leaf.index] for one in both], atol=0.05)
    assert all(one.logprob <= max(best.values()) + 0.05 for one in found)
    benchmark.extra_info["of the best ten"] = len(both)
    benchmark(model.beam, PROMPT, names, 10, width=width)


def test_choose_top(benchmark: BenchmarkFixture, model: tokentrie.Model, names: tokentrie.Trie) -> None:
    assert len(model.choose(PROMPT, names, top=10).ranking) == 10
    benchmark.pedantic(model.choose, (PROMPT, names), {"top": 10}, rounds=1)


def test_generate(benchmark: BenchmarkFixture, model: tokentrie.Model, names: tokentrie.Trie) -> None:
    assert model.generate(PROMPT, names).leaf is not None
    benchmark(model.generate, PROMPT, names)
