"""What a step costs on a GPU: rows of 151,936 logits in a set of a million values of four tokens. Every case checks its
answer before it is timed, and stands beside writing the same rows, which is the least that a new tensor can cost.

    pytest benches/bench_gpu.py --benchmark-only
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tokentrie
from pytest_benchmark.fixture import BenchmarkFixture

torch = pytest.importorskip("torch", reason="torch is not installed")
if not torch.cuda.is_available():
    pytest.skip("torch sees no CUDA device", allow_module_level=True)

from tokentrie.integrations.torch import TrieTensors

N_VOCAB, END = 151_936, 2
ROWS = [1, 64, 512]


@pytest.fixture(scope="module")
def leaves(quick: bool) -> Any:
    """Semantic ids of four tokens, each from 256."""
    random = np.random.default_rng(5)
    codes = np.stack([random.choice(np.arange(3, N_VOCAB), 256, replace=False) for _ in range(4)])
    picked = random.integers(0, 256, (10_000 if quick else 1_000_000, 4))
    return np.stack([codes[level][picked[:, level]] for level in range(4)], axis=1).astype(np.int32)


@pytest.fixture(scope="module")
def walk(leaves: Any) -> TrieTensors:
    return TrieTensors(tokentrie.Trie.from_sequences(leaves), "cuda", vocab=N_VOCAB, end_tokens=[END])


def timed(benchmark: BenchmarkFixture, work: Callable[[], Any]) -> None:
    """Twenty calls and one wait, so that starting them is not what is measured."""

    def twenty() -> None:
        for _ in range(20):
            work()
        torch.cuda.synchronize()

    twenty()
    benchmark.extra_info["card"] = torch.cuda.get_device_name()
    benchmark.extra_info["calls a round"] = 20
    benchmark.pedantic(twenty, rounds=20)


def captured(work: Callable[[], Any]) -> Callable[[], Any]:
    """The same as a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


@pytest.mark.parametrize("as_graph", [False, True], ids=["calls", "graph"])
@pytest.mark.parametrize("what", ["fill", "where", "mask", "step", "top 4"])
@pytest.mark.parametrize("rows", ROWS)
def test_step(
    benchmark: BenchmarkFixture, walk: TrieTensors, leaves: Any, rows: int, what: str, as_graph: bool
) -> None:
    logits = torch.randn(rows, N_VOCAB, device="cuda")
    first = torch.from_numpy(leaves[:rows, 0].astype(np.int64)).cuda()
    states = walk.step(walk.start(rows), first)
    masked = walk.mask(logits, states)
    second = torch.from_numpy(leaves[:rows, 1].astype(np.int64)).cuda()
    legal = masked.isfinite()
    assert bool(legal.gather(1, second[:, None]).all())
    assert int(legal.sum(1).min()) > 0
    assert int(legal.sum(1).max()) <= 256
    assert torch.equal(masked[legal], logits[legal])
    gone = torch.tensor(float("-inf"), device="cuda")
    works: dict[str, Callable[[], Any]] = {
        "fill": lambda: torch.full_like(logits, float("-inf")),
        "where": lambda: torch.where(legal, logits, gone),
        "mask": lambda: walk.mask(logits, states),
        "step": lambda: walk.step(states, second),
        "top 4": lambda: walk.top_children(logits, states, 4),
    }
    timed(benchmark, captured(works[what]) if as_graph else works[what])
