"""Requests a second that many callers get of one model: `pytest benches/bench_requests.py --benchmark-only`."""

from __future__ import annotations

import random
import time
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
        if done := model.engine:
            benchmark.extra_info["own microseconds a pass"] = round(1e6 * done.own_seconds / done.passes, 1)


@pytest.mark.parametrize("how", ["one by one", "choose_many, one slot", "choose_many, eight slots"])
def test_rows(benchmark: BenchmarkFixture, how: str, quick: bool) -> None:
    """A choice for each of 2,000 rows of 200 tokens, of which the first 150 are the same."""
    benchmark.group = "rows of 200 tokens that begin alike"
    with tokentrie.Model(n_ctx=1024, slots=8 if "eight" in how else 1) as model:
        beginning, rest = SYSTEM, "letters and parcels, "
        while len(model.vocab.tokenize(beginning)) < 150:
            beginning += rest
        row_of = random.Random(2).choices
        rows = [f"{beginning}Row {number}: " for number in range(16 if quick else 2000)]
        rows = [row + " ".join(row_of(VERBS, k=30)) + "\n" for row in rows]

        def one_by_one() -> list[str]:
            return [model.choose(row, NAMES).name for row in rows]

        def together() -> list[str]:
            return [choice.name for choice in model.choose_many(rows, NAMES)]

        benchmark.extra_info["tokens a row"] = sum(len(model.vocab.tokenize(row)) for row in rows) // len(rows)
        work = one_by_one if how == "one by one" else together
        same = sum(one == other for one, other in zip(one_by_one(), work(), strict=True))
        assert same >= len(rows) * 0.95  # values that are as probable as each other may change places
        benchmark.pedantic(work, rounds=1 if quick else 3)


def test_a_short_request_beside_a_long_prompt(benchmark: BenchmarkFixture, quick: bool) -> None:
    """The first token of a short request while a prompt of 4,000 tokens is decoded, in times of one of its pieces."""
    benchmark.group = "first token beside a long prompt"
    count = 1000 if quick else 4000
    with tokentrie.Model(n_ctx=6144, slots=2) as model, ThreadPoolExecutor(1) as pool:
        numbers = random.Random(3)

        def prompt() -> list[int]:
            return [numbers.randrange(300, 2000) for _ in range(count)]

        def long() -> float:
            begun = time.perf_counter()
            model.generate(prompt(), NAMES)
            return time.perf_counter() - begun

        def first_token() -> float:
            begun, at = time.perf_counter(), []
            model.generate("Request: please open it\n", NAMES, on_step=lambda _: at.append(time.perf_counter()))
            return at[0] - begun

        piece = sorted(long() for _ in range(3))[1] / (count / 512)
        waits = []
        for share in (0.1, 0.3, 0.5, 0.7) * (1 if quick else 3):
            running = pool.submit(long)
            time.sleep(share * piece * count / 512)
            waits.append(first_token())
            assert not running.done() or quick
            running.result()
        benchmark.extra_info["pieces waited, median and most"] = [
            round(wait / piece, 2) for wait in (sorted(waits)[len(waits) // 2], max(waits))
        ]
        benchmark.pedantic(first_token, rounds=1)
