"""Cost of a step through Python, beside numpy and llguidance: `./dev bench`.

Every case checks its answer before it is timed. llguidance takes part where it is installed
(`.venv/bin/pip install llguidance`).
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import tokentrie
from pytest_benchmark.fixture import BenchmarkFixture

N_VOCAB = 151_936
Row = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def row() -> Row:
    """One row of logits, the same in every run."""
    return np.random.default_rng(7).normal(size=N_VOCAB).astype(np.float32)


def legal_ids(k: int) -> npt.NDArray[np.int32]:
    """`k` ascending ids, spread over the vocabulary."""
    return np.sort(np.random.default_rng(k).choice(N_VOCAB, k, replace=False)).astype(np.int32)


def sampler_of(ids: npt.NDArray[np.int32]) -> tokentrie.Sampler:
    """A sampler with these legal tokens."""
    return tokentrie.Sampler(N_VOCAB, tokentrie.Trie.from_sequences([[int(i), 0] for i in ids]))


def numpy_best(row: Row, ids: npt.NDArray[np.int32]) -> int:
    """The best of `k`, in numpy."""
    return int(ids[row[ids].argmax()])


def numpy_mask(row: Row, ids: npt.NDArray[np.int32]) -> None:
    """Gather, fill, scatter, in numpy."""
    kept = row[ids]
    row.fill(-np.inf)
    row[ids] = kept


@pytest.mark.benchmark(group="sample")
@pytest.mark.parametrize("k", [8, 32, 256, 4096])
@pytest.mark.parametrize("who", ["tokentrie", "numpy"])
def test_sample(benchmark: BenchmarkFixture, row: Row, who: str, k: int) -> None:
    """The best of `k` legal tokens, without touching the row."""
    ids = legal_ids(k)
    sampler = sampler_of(ids)
    assert sampler.sample(row) == numpy_best(row, ids)
    if who == "tokentrie":
        benchmark(sampler.sample, row)
    else:
        benchmark(numpy_best, row, ids)


@pytest.mark.benchmark(group="apply")
@pytest.mark.parametrize("k", [8, 256])
@pytest.mark.parametrize("who", ["tokentrie", "numpy", "fill alone"])
def test_apply(benchmark: BenchmarkFixture, row: Row, who: str, k: int) -> None:
    """Masking a row in place; the fill is what must be written in any case."""
    ids = legal_ids(k)
    sampler = sampler_of(ids)
    ours, theirs = row.copy(), row.copy()
    sampler.apply(ours)
    numpy_mask(theirs, ids)
    assert ours.tobytes() == theirs.tobytes()
    work = row.copy()
    if who == "tokentrie":
        benchmark(sampler.apply, work)
    elif who == "numpy":
        benchmark(numpy_mask, work, ids)
    else:
        benchmark(work.fill, -np.inf)


@pytest.fixture(scope="module")
def payload() -> str:
    """Thirty names of four tokens."""
    leaves = [{"name": f"ACTION_NUMBER_{n:02}", "tokens": [n // 4, 1000 + n, 7 * n, 100_000 + n]} for n in range(30)]
    return json.dumps({"modelId": "bench", "descriptors": [{"path": "action", "leaves": leaves}]})


@pytest.mark.benchmark(group="payload to sampler")
@pytest.mark.parametrize("who", ["cold", "cached", "json.loads alone"])
def test_payload(benchmark: BenchmarkFixture, payload: str, who: str) -> None:
    """JSON text to a sampler that is ready."""
    sampler = tokentrie.Sampler(N_VOCAB, payload)
    assert len(sampler.trie) == 30
    assert len(sampler.allowed()) == 8
    if who == "cold":
        benchmark(lambda: tokentrie.sets.TrieCache().sampler(N_VOCAB, payload))
    elif who == "cached":
        benchmark(tokentrie.Sampler, N_VOCAB, payload)
    else:
        benchmark(json.loads, payload)


def vocabulary() -> list[bytes]:
    """An invented vocabulary for the text engines: all bytes, then the names and their pieces, then filler."""
    pieces = [bytes([byte]) for byte in range(256)]
    pieces += [f"{n:02}_ACTION".encode() for n in range(30)] + [b"_ACTION", b"ACTION"]
    return pieces + [f" filler{n}".encode() for n in range(N_VOCAB - len(pieces) - 1)] + [b"</s>"]


def llguidance_step() -> Callable[[Row], None]:
    """Mask and apply by llguidance, on its own terms: its matcher, its numpy kernel."""
    llguidance = pytest.importorskip("llguidance", reason="llguidance is not installed: its row is missing")
    numpy_kernel = pytest.importorskip("llguidance.numpy")

    class Tokenizer:
        eos_token_id = N_VOCAB - 1
        bos_token_id = None
        tokens = vocabulary()
        special_token_ids = (N_VOCAB - 1,)

        def __call__(self, text: bytes) -> list[int]:
            return list(text)

    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()))
    names = " | ".join(f'"{n:02}_ACTION"' for n in range(30))
    matcher = llguidance.LLMatcher(tokenizer, f"start: {names}")
    mask = numpy_kernel.allocate_token_bitmask(1, N_VOCAB)

    def step(row: Row) -> None:
        numpy_kernel.fill_next_token_bitmask(matcher, mask, 0)
        numpy_kernel.apply_token_bitmask_inplace(row.reshape(1, -1), mask)

    return step


@pytest.mark.benchmark(group="mask a row for thirty names")
@pytest.mark.parametrize("who", ["tokentrie", "llguidance"])
def test_thirty_names(benchmark: BenchmarkFixture, row: Row, who: str) -> None:
    """The first step over thirty names: each engine's own mask and apply on the whole row."""
    pieces = vocabulary()
    index = {piece: token for token, piece in enumerate(pieces)}
    names = [[index[f"{n:02}_ACTION".encode()]] for n in range(30)]
    step = tokentrie.Sampler(N_VOCAB, tokentrie.Trie.from_sequences(names)).apply
    if who == "llguidance":
        step = llguidance_step()
    checked = row.copy()
    step(checked)
    alive = {pieces[token] for token in np.flatnonzero(checked > -np.inf)}
    # A text engine allows every tokenisation, the trie the one it was given: both allow the whole names and nothing
    # else.
    assert all(any(f"{n:02}_ACTION".encode().startswith(piece) for n in range(30)) for piece in alive)
    assert all(pieces[token] in alive for (token,) in names)
    benchmark(step, row.copy())


@pytest.mark.benchmark(group="union of two sets of 100,000")
@pytest.mark.parametrize("who", ["tokentrie", "set of tuples"])
def test_union(benchmark: BenchmarkFixture, who: str) -> None:
    """Half of their leaves are the same; six tokens each, and the first three repeat."""
    widths, random = (50, 200, 500, N_VOCAB, N_VOCAB, N_VOCAB), np.random.default_rng(11)
    rows = np.stack([random.integers(0, width, 150_000, dtype=np.int32) for width in widths], axis=1)
    left, right = rows[:100_000], rows[50_000:]
    a, b = tokentrie.Trie.from_sequences(left), tokentrie.Trie.from_sequences(right)
    x, y = set(map(tuple, left.tolist())), set(map(tuple, right.tolist()))
    assert [tuple(leaf.tokens) for leaf in a | b] == sorted(x | y)
    if who == "tokentrie":
        benchmark(lambda: a | b)
    else:
        benchmark(lambda: x | y)
