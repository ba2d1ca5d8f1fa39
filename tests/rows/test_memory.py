"""Nothing leaks over 10^5 objects, errors included."""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support import payload
from tokentrie import Model, Sampler, TokenTrieError, Trie
from tokentrie.sets import TrieCache

pytestmark = pytest.mark.alone

ROUNDS = 100_000
ROOM = 4 << 20


def resident() -> int:
    """Bytes in memory now."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except FileNotFoundError:
        pytest.skip("no /proc/self/statm here")
    return pages * resource.getpagesize()


def growth(work: Callable[[], object], rounds: int) -> int:
    for _ in range(rounds // 10):
        work()
    gc.collect()
    before = resident()
    for _ in range(rounds):
        work()
    gc.collect()
    return resident() - before


def test_samplers(actions: str, row: np.ndarray) -> None:
    def work() -> None:
        sampler = Sampler(10, actions, mode="sampled", seed=1)
        sampler.advance(row)
        sampler.clone().allowed()

    assert growth(work, ROUNDS) < ROOM


def test_sessions_and_tries() -> None:
    number = 0
    session = TrieCache(16)

    def work() -> None:
        nonlocal number
        number += 1
        data = payload({f"N{number}": [number % 1000, 1], "x" * 100: [1, 2]})
        session.sampler(1000, data)
        for leaf in Trie.from_payload(data):
            _ = leaf.tokens

    assert growth(work, ROUNDS // 5) < ROOM


def test_errors(actions: str) -> None:
    sampler = Sampler(10, actions)
    short = np.zeros(3, np.float32)

    def work() -> None:
        for call, argument in ((sampler.accept, 9), (sampler.apply, short), (sampler.activate, "none")):
            with pytest.raises((TokenTrieError, ValueError)):
                call(argument)  # type: ignore[arg-type]

    assert growth(work, ROUNDS // 10) < ROOM


def test_arrays_are_not_kept(actions: str, row: np.ndarray) -> None:
    sampler = Sampler(10, actions)
    count = sys.getrefcount(row)
    for _ in range(100):
        sampler.apply(row)
        sampler.sample(row)
        with pytest.raises(ValueError, match="at least 10"):
            sampler.apply(row[:5])
    assert sys.getrefcount(row) == count


@pytest.mark.model
def test_models_and_generations(tiny_path: Path) -> None:
    model = Model(n_ctx=256, n_threads=1)
    seen: list[int] = []
    assert growth(lambda: model.generate("Next: ", ["A", "B"], on_step=lambda step: seen.append(1)), 200) < ROOM
    assert growth(lambda: Model(n_ctx=256, n_threads=1).generate("Next: ", ["A", "B"]), 20) < 16 << 20
