"""256 rows through Python, beside numpy, torch, llguidance, xgrammar and transformers: `./dev bench`.

Every case checks its answer before it is timed. A peer takes part where it is installed; transformers and torch are in
the environment of `./dev hosts`. What a case of a peer leaves out is said at the case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tokentrie
from pytest_benchmark.fixture import BenchmarkFixture

ROWS, V = 256, 175_000
WORDS = -(-V // 32)
Table = npt.NDArray[np.int32]


@pytest.fixture(scope="module")
def logits() -> npt.NDArray[np.float32]:
    """[256, 175,000], the same in every run."""
    one = np.random.default_rng(7).normal(size=V).astype(np.float32)
    return one + np.linspace(0, 1, ROWS, dtype=np.float32)[:, None]


def items(rows: int, widths: tuple[int, ...]) -> Table:
    """Rows of ids as of a catalogue of items: so many ids in each place, spread over the vocabulary."""
    table = np.random.default_rng(4).integers(0, widths, (rows, len(widths)))
    return (table * 7919 % V).astype(np.int32)


def spread(batch: tokentrie.Batch) -> list[Table]:
    """Each row one token further, each at a child of its own. What may come then."""
    batch.accept([int(legal[row * 31 % len(legal)]) for row, legal in enumerate(lists(batch))])
    return lists(batch)


def lists(batch: tokentrie.Batch) -> list[Table]:
    """Returns the allowed tokens of each row."""
    offsets, tokens, _ = batch.children()
    return np.split(tokens, offsets[1:-1])


def byte_mask(legal: list[Table], mask: npt.NDArray[np.bool_]) -> None:
    """A byte a token, as tree decoders in numpy write it."""
    mask.fill(True)
    for row, tokens in enumerate(legal):
        mask[row, tokens] = False


SHAPES = {"32 children": (1_000_000, (32, 32, 32, 32)), "4,096 children": (2_000_000, (256, 4096, 4, 4))}


def xgrammar_fill(legal: list[Table], words: Table) -> Callable[[], None]:
    """XGrammar, each row at a rule that lists its tokens, filled by its batch matcher."""
    xgrammar = pytest.importorskip("xgrammar", reason="xgrammar is not installed: its row is missing")
    torch = pytest.importorskip("torch")
    info = xgrammar.TokenizerInfo([f"<{token}>" for token in range(V)], stop_token_ids=[V - 1])
    compiler = xgrammar.GrammarCompiler(info, max_threads=1)
    matchers = []
    for tokens in legal:
        rule = " | ".join(f"Token({token})" for token in tokens)
        matchers.append(xgrammar.GrammarMatcher(compiler.compile_grammar(f"root ::= {rule}")))
    bits, filler = torch.from_numpy(words), xgrammar.BatchGrammarMatcher()
    return lambda: filler.batch_fill_next_token_bitmask(matchers, bits)


def llguidance_fill(legal: list[Table], words: Table) -> Callable[[], None]:
    """llguidance, each row at a rule of token ids, filled by its executor."""
    llguidance = pytest.importorskip("llguidance", reason="llguidance is not installed: its row is missing")
    kernel = pytest.importorskip("llguidance.numpy")

    class Tokenizer:
        eos_token_id = V - 1
        bos_token_id = None
        tokens = [bytes([byte]) for byte in range(256)] + [f" filler{token}".encode() for token in range(V - 257)]
        tokens += [b"</s>"]
        special_token_ids = (V - 1,)

        def __call__(self, text: bytes) -> list[int]:
            return list(text)

    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()))
    rules = ["start: " + " | ".join(f"<[{token}]>" for token in tokens) for tokens in legal]
    matchers = [(llguidance.LLMatcher(tokenizer, rule), row) for row, rule in enumerate(rules)]
    executor = llguidance.LLExecutor()
    return lambda: kernel.fill_next_token_bitmask_par(executor, matchers, words)


@pytest.mark.benchmark(group="bit mask, 256 x 175,000")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "who", ["bitmask", "fill_bitmask", "zero the words", "numpy byte mask", "xgrammar", "llguidance"]
)
def test_bitmask(benchmark: BenchmarkFixture, who: str, shape: str) -> None:
    """The masks of one step. `bitmask` alternates between two states, so it always has all rows to write."""
    table, widths = SHAPES[shape]
    batch = tokentrie.Batch(tokentrie.Trie.from_sequences(items(table, widths)), rows=ROWS, vocab=V)
    legal = spread(batch)
    other = batch.clone()
    other.reorder([(row * 77 + 5) % ROWS for row in range(ROWS)])
    words = np.full((ROWS, WORDS), -1, np.int32)
    want = np.ones((ROWS, V), np.bool_)
    byte_mask(legal, want)
    batch.fill_bitmask(words)
    got = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, :V]
    np.testing.assert_array_equal(got == 0, want)
    np.testing.assert_array_equal(batch.bitmask(), words)
    if who == "bitmask":
        order = [(row * 77 + 5) % ROWS for row in range(ROWS)]
        benchmark.pedantic(batch.bitmask, setup=lambda: batch.reorder(order), rounds=200)
    elif who == "fill_bitmask":
        benchmark(batch.fill_bitmask, words)
    elif who == "zero the words":
        benchmark(words.fill, 0)
    elif who == "numpy byte mask":
        benchmark(byte_mask, legal, want)
    else:
        if max(map(len, legal)) > 64:
            pytest.skip("compiling its rules of thousands of tokens takes longer than all the others together")
        theirs = np.zeros_like(words)
        fill = (xgrammar_fill if who == "xgrammar" else llguidance_fill)(legal, theirs)
        fill()
        np.testing.assert_array_equal(theirs, words)
        benchmark(fill)


def masked_top(logits: npt.NDArray[np.float32], legal: list[Table], scores: Any, k: int) -> Any:
    """Masks a copy of all rows and takes the best of all of it."""
    masked = np.full_like(logits, -np.inf)
    for row, tokens in enumerate(legal):
        masked[row, tokens] = logits[row, tokens] + scores[row]
    best = np.argpartition(masked, -k, axis=None)[-k:]
    return best[np.argsort(-masked.ravel()[best])]


@pytest.mark.benchmark(group="top_children, 256 rows, k = 50")
@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize(
    "who", ["given", "renormalised", "model", "numpy masked top-k", "torch masked top-k", "gather"]
)
def test_top_children(benchmark: BenchmarkFixture, logits: npt.NDArray[np.float32], who: str, width: int) -> None:
    """One step of a beam search over rows of log-probabilities; "gather" only reads the logits that it needs."""
    trie = tokentrie.Trie.from_sequences(items(4_000_000, (256, width, width, 2)))
    batch = tokentrie.Batch(trie, rows=ROWS, vocab=V)
    legal = spread(batch)
    scores = np.linspace(0, -3, ROWS)
    parents, tokens, _ = batch.top_children(logits, 50, scores, "given")
    want = masked_top(logits, legal, scores, 50)
    np.testing.assert_array_equal(parents * V + tokens, want)
    if who == "numpy masked top-k":
        benchmark.pedantic(masked_top, (logits, legal, scores, 50), rounds=5)
    elif who == "torch masked top-k":
        torch = pytest.importorskip("torch", reason="torch is not installed: its row is missing")
        rows = torch.from_numpy(logits)
        row = torch.from_numpy(np.repeat(np.arange(ROWS), [*map(len, legal)]))
        column, add = torch.from_numpy(np.concatenate(legal)).long(), torch.from_numpy(scores).float()[:, None]

        def masked() -> Any:
            only = torch.full_like(rows, -torch.inf)
            only[row, column] = rows[row, column]
            return (only + add).flatten().topk(50)

        np.testing.assert_array_equal(masked().indices.numpy(), want)
        benchmark.pedantic(masked, rounds=5)
    elif who == "gather":
        row, column = np.repeat(np.arange(ROWS), [*map(len, legal)]), np.concatenate(legal)
        benchmark(lambda: logits[row, column])
    else:
        benchmark(batch.top_children, logits, 50, scores, who)


@pytest.mark.benchmark(group="accept and reorder, 256 beams")
@pytest.mark.parametrize("who", ["tokentrie", "list of prefixes"])
def test_accept_and_reorder(benchmark: BenchmarkFixture, who: str) -> None:
    """A token among 32 in each row, and each row from another; five tokens were taken before."""
    table = np.array([[1, 2, 3, 4, 5, *divmod(item, 32)] for item in range(1024)], np.int32)
    trie = tokentrie.Trie.from_sequences(table)
    batch = tokentrie.Batch(trie, rows=ROWS, vocab=V)
    for token in range(1, 6):
        batch.accept([token] * ROWS)
    tokens = (np.arange(ROWS) * 77 % 32).astype(np.int32)
    parents = np.arange(ROWS, dtype=np.int32)[::-1].copy()
    prefixes = [[1, 2, 3, 4, 5] for _ in range(ROWS)]

    def step(prefixes: list[list[int]]) -> list[list[int]]:
        for prefix, token in zip(prefixes, tokens.tolist(), strict=True):
            prefix.append(token)
        return [prefixes[parent].copy() for parent in parents.tolist()]

    check = batch.clone()
    check.accept(tokens)
    check.reorder(parents)
    for row, prefix in enumerate(step([prefix.copy() for prefix in prefixes])):
        np.testing.assert_array_equal(check.allowed(row), trie.allowed(prefix))

    if who == "tokentrie":

        def ours() -> None:
            batch.accept(tokens)
            batch.reorder(parents)

        benchmark.pedantic(ours, setup=lambda: batch.rollback(int(batch.accepted[0]) - 5), rounds=500)
    else:
        benchmark.pedantic(step, setup=lambda: (([prefix.copy() for prefix in prefixes],), {}), rounds=500)


@pytest.mark.benchmark(group="beam search, 10^6 items, width 64, 4 levels")
@pytest.mark.parametrize("who", ["tokentrie", "transformers' prefix function"])
def test_beam_search(benchmark: BenchmarkFixture, logits: npt.NDArray[np.float32], who: str) -> None:
    """Our share: the model is a view of rows that are there already. The peer gets the same rows and a dict trie, and
    what its processor does to them is all that is counted; ranking the beams comes on top of it.
    """
    table = items(1_000_000, (256, 256, 256, 256))
    trie = tokentrie.Trie.from_sequences(table)
    rows = logits[:64]

    def step(prefixes: list[list[int]]) -> Any:
        return rows[: len(prefixes)]

    found = tokentrie.sets.beam_search(step, trie, 64, vocab=V, score="renormalised")
    assert len(found) == 64
    assert all(one.tokens in trie for one in found)
    if who == "tokentrie":
        benchmark(tokentrie.sets.beam_search, step, trie, 64, vocab=V, score="renormalised")
        return
    torch = pytest.importorskip("torch", reason="torch is not installed: this row is missing")
    transformers = pytest.importorskip("transformers")
    nodes: dict[int, Any] = {}
    for item in table[:100_000].tolist():
        node = nodes
        for token in item:
            node = node.setdefault(token, {})

    def allowed(_batch: int, prefix: Any) -> list[int]:
        node = nodes
        for token in prefix.tolist():
            node = node[token]
        return [*node]

    processor = transformers.PrefixConstrainedLogitsProcessor(allowed, num_beams=64)
    prefixes = torch.from_numpy(table[:64].astype(np.int64))
    scores = torch.from_numpy(rows)

    def four_steps() -> None:
        for length in range(4):
            processor(prefixes[:, :length], scores)

    benchmark.pedantic(four_steps, rounds=5)
