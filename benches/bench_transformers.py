"""Cost of a step inside transformers: 64 rows of 151,936 logits. Every case checks its answer before it is timed.

The hosts' environment runs it: `pytest benches/bench_transformers.py --benchmark-only`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tokentrie
from pytest_benchmark.fixture import BenchmarkFixture

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from tokentrie.integrations.torch import TrieTensors
from tokentrie.integrations.transformers import TokenTrieLogitsProcessor

N_VOCAB, ROWS, END = 151_936, 64, 2
DEPTHS = [0, 2]


@pytest.fixture(scope="module")
def leaves(quick: bool) -> Any:
    """A million semantic ids of four tokens, each from 256."""
    random = np.random.default_rng(5)
    codes = np.stack([random.choice(np.arange(3, N_VOCAB), 256, replace=False) for _ in range(4)])
    picked = random.integers(0, 256, (10_000 if quick else 1_000_000, 4))
    return np.stack([codes[level][picked[:, level]] for level in range(4)], axis=1).astype(np.int32)


@pytest.fixture(scope="module")
def trie(leaves: Any) -> tokentrie.Trie:
    return tokentrie.Trie.from_sequences(leaves)


@pytest.fixture(scope="module")
def scores() -> Any:
    return torch.randn(ROWS, N_VOCAB, generator=torch.Generator().manual_seed(1))


def dict_trie(leaves: Any) -> dict[int, Any]:
    """As people write it."""
    root: dict[int, Any] = {}
    for row in leaves.tolist():
        node = root
        for token in row:
            node = node.setdefault(token, {})
        node[END] = {}
    return root


@pytest.fixture(scope="module")
def host(leaves: Any) -> Any:
    """The processor that transformers makes of a function over a dict trie."""
    root = dict_trie(leaves)

    def allowed(_: int, ids: Any) -> list[int]:
        node = root
        for token in ids[1:].tolist():
            node = node[token]
        return list(node)

    return transformers.PrefixConstrainedLogitsProcessor(allowed, num_beams=1)


@pytest.mark.benchmark(group="a step of a logits processor, 64 rows")
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("who", ["tokentrie", "host", "torch writes the mask once", "torch fills rows alone"])
def test_processor(
    benchmark: BenchmarkFixture, trie: tokentrie.Trie, leaves: Any, scores: Any, host: Any, who: str, depth: int
) -> None:
    """Taking the last tokens and masking."""
    # Neighbouring values share their first tokens: every row is somewhere else.
    spread = leaves[np.linspace(0, len(leaves) - 1, ROWS).astype(int)]
    ids = torch.cat([torch.ones(ROWS, 1, dtype=torch.int64), torch.from_numpy(spread[:, :depth]).long()], dim=1)
    ours = TokenTrieLogitsProcessor(trie, 1, end_tokens=[END])
    for length in range(1, depth + 2):
        masked = ours(ids[:, :length], scores)
    expected = host(ids, scores)
    assert torch.equal(masked, expected)
    legal = expected > -torch.inf
    states, before = ours._states, ours._ids
    if depth:
        before, states = ids[:, 1:depth], ours._from_start(ours.walk, ids[:, 1:depth])  # type: ignore[arg-type]

    def step() -> Any:
        ours._ids, ours._states, ours._seen = before, states, None
        return ours(ids, scores)

    calls: dict[str, Callable[[], Any]] = {
        "tokentrie": step,
        "host": lambda: host(ids, scores),
        "torch writes the mask once": lambda: torch.where(legal, scores, float("-inf")),
        "torch fills rows alone": lambda: torch.full_like(scores, float("-inf")),
    }
    assert who == "torch fills rows alone" or torch.equal(calls[who](), expected)
    benchmark(calls[who])


@pytest.mark.benchmark(group="the walk alone, 256 rows")
@pytest.mark.parametrize("what", ["step", "top_children", "children"])
@pytest.mark.parametrize("depth", DEPTHS)
def test_walk(benchmark: BenchmarkFixture, trie: tokentrie.Trie, leaves: Any, what: str, depth: int) -> None:
    """Measures `TrieTensors` on the CPU."""
    rows = torch.from_numpy(leaves[np.linspace(0, len(leaves) - 1, 256).astype(int)]).long()
    walk = TrieTensors(trie, vocab=N_VOCAB, end_tokens=[END])
    states = walk.start(256)
    for column in range(depth):
        states = walk.step(states, rows[:, column])
    assert not walk.dead(walk.step(states, rows[:, depth])).any()
    scores = torch.randn(256, N_VOCAB)
    calls: dict[str, Callable[[], Any]] = {
        "step": lambda: walk.step(states, rows[:, depth]),
        "top_children": lambda: walk.top_children(scores, states, 50, score="renormalised"),
        "children": lambda: walk.children(states),
    }
    benchmark(calls[what])


@pytest.mark.benchmark(group="output head, 64 rows, 2048 wide")
@pytest.mark.parametrize("who", ["legal rows", "whole"])
@pytest.mark.parametrize("k", [16, 256])
def test_head(benchmark: BenchmarkFixture, who: str, k: int, quick: bool) -> None:
    """k rows of a float32 matrix of 151,936 rows."""
    from tokentrie.integrations.transformers import LegalHead

    size = 10_000 if quick else N_VOCAB
    linear = torch.nn.Linear(2048, size, bias=False)
    hidden = torch.randn(ROWS, 2048)
    ids = torch.randperm(size)[:k].sort().values
    with torch.no_grad(), LegalHead(linear) as head:
        head.compact = True
        whole = linear(hidden)[:, ids]
        head.limit_to(ids)
        assert torch.allclose(linear(hidden), whole, rtol=1e-4, atol=1e-5)
        if who == "whole":
            head.limit_to(None)
        benchmark(linear, hidden)


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


@pytest.fixture(scope="module")
def on_gpu(trie: tokentrie.Trie) -> TrieTensors:
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    return TrieTensors(trie, "cuda", vocab=N_VOCAB, end_tokens=[END])


@pytest.mark.parametrize("as_graph", [False, True], ids=["calls", "graph"])
@pytest.mark.parametrize("what", ["fill", "where", "mask", "step", "top 4"])
@pytest.mark.parametrize("rows", [1, 64, 512])
def test_gpu(
    benchmark: BenchmarkFixture, on_gpu: TrieTensors, leaves: Any, rows: int, what: str, as_graph: bool
) -> None:
    """On a GPU, beside writing the same rows: the least that a new tensor can cost."""
    logits = torch.randn(rows, N_VOCAB, device="cuda")
    first = torch.from_numpy(leaves[:rows, 0].astype(np.int64)).cuda()
    states = on_gpu.step(on_gpu.start(rows), first)
    masked = on_gpu.mask(logits, states)
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
        "mask": lambda: on_gpu.mask(logits, states),
        "step": lambda: on_gpu.step(states, second),
        "top 4": lambda: on_gpu.top_children(logits, states, 4),
    }
    timed(benchmark, captured(works[what]) if as_graph else works[what])
