"""How many requests a second many callers get of one model: `pytest benches/bench_requests.py --benchmark-only`."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import pytest
import tokentrie
from pytest_benchmark.fixture import BenchmarkFixture

VERBS = [
    "open", "close", "show", "delete", "send", "read", "write", "move", "copy", "find", "sort", "list", "pay", "book",
    "call", "cancel", "start", "stop", "lock", "unlock", "share", "print", "scan", "play", "pause", "skip", "ring",
    "dim", "heat", "cool", "mute", "zoom",
]  # fmt: skip
NAMES = [f"tool_{verb}" for verb in VERBS]
SYSTEM = "You sort requests into tools: " + ", ".join(NAMES) + ". "


@pytest.mark.parametrize(
    ("slots", "batching", "callers"), [(1, "free", 1), (8, "free", 32), (1, "fixed", 1), (8, "fixed", 32)]
)
def test_requests(
    benchmark: BenchmarkFixture, slots: int, batching: Literal["free", "fixed"], callers: int, quick: bool
) -> None:
    """Each picks one of 32 tools, after a beginning that all have."""
    benchmark.group = "requests: one of 32 tools"
    verbs = random.Random(1).choices(VERBS, k=8 if quick else 96)
    prompts = [f"{SYSTEM}Request {number}: please {verb} it\n" for number, verb in enumerate(verbs)]

    def answers(model: tokentrie.Model, pool: ThreadPoolExecutor) -> list[str]:
        return list(pool.map(lambda prompt: model.generate(prompt, NAMES).value, prompts))

    with (
        tokentrie.Model(n_ctx=1024) as alone,
        tokentrie.Model(n_ctx=1024, slots=slots, batching=batching) as model,
        ThreadPoolExecutor(callers) as pool,
    ):
        expected = answers(alone, ThreadPoolExecutor(1))
        given = answers(model, pool)
        # Tokens that are as probable as each other may change places where batches differ.
        assert sum(one != other for one, other in zip(expected, given, strict=True)) <= len(prompts) // 20
        assert batching == "free" or answers(model, pool) == given
        benchmark.extra_info["requests"] = len(prompts)
        benchmark.pedantic(answers, (model, pool), rounds=1 if quick else 5)
