"""Batches: each row is where a sampler of its own would be, whatever is done to all of them."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
import tokentrie
from budget import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from tokentrie import Batch, Form, JsonSchema, Regex, Slot, Vocab
from tokentrie.errors import InvalidValueError
from tokentrie.rules import Integer

VOCABULARY = 40

tokens = st.lists(st.integers(0, 6), min_size=1, max_size=4)
sets = st.lists(tokens, min_size=1, max_size=8)
end_tokens = st.sampled_from([None, [30], [2, 30]])


def items(*sequences: list[int]) -> tokentrie.Trie:
    return tokentrie.Trie.from_sequences(list(sequences))


def bits(row: np.ndarray[Any, Any]) -> list[int]:
    return [token for token in range(len(row) * 32) if row[token // 32] >> (token % 32) & 1]


class Twin:
    """A sampler for each row."""

    def __init__(self, rows: list[tokentrie.Trie | None], ends: list[int] | None) -> None:
        self.rows = [self.sampler(trie, ends) for trie in rows]

    @staticmethod
    def sampler(trie: tokentrie.Trie | None, ends: list[int] | None) -> tokentrie.Sampler:
        constraint = tokentrie.rules.Unconstrained() if trie is None else trie
        after = "stop" if ends and trie is not None else "free"
        if trie is None:
            return tokentrie.Sampler(VOCABULARY, constraint)
        return tokentrie.Sampler(VOCABULARY, constraint, end_tokens=ends, after=after)


@settings(deadline=None)
@given(data=st.data(), same=st.booleans(), ends=end_tokens, seed=st.integers(0, 2**32 - 1))
def test_each_row_is_a_sampler(data: st.DataObject, same: bool, ends: list[int] | None, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tries = [tokentrie.Trie.from_sequences(data.draw(sets)) for _ in range(1 if same else data.draw(st.integers(1, 4)))]
    rows: list[tokentrie.Trie | None] = [*tries * 3] if same else [*tries, None]
    batch = tokentrie.Batch(rows, vocab=VOCABULARY, end_tokens=ends)
    twin = Twin(rows, ends)
    for _ in range(5):
        assert len(batch) == len(twin.rows)
        words = np.full((len(batch), 3), -7, np.int32)
        batch.fill_bitmask(words)
        assert (words[:, 2] == 0).all(), "the tail is never legal"
        np.testing.assert_array_equal(batch.bitmask(), words[:, :2])
        logits = rng.integers(-3, 3, (len(batch), VOCABULARY)).astype(np.float32)
        logits[rng.random(logits.shape) < 0.2] = -np.inf
        logits[rng.random(logits.shape) < 0.1] = np.nan
        masked = np.concatenate([logits, np.full((len(batch), 2), 9.0, np.float32)], axis=1)
        batch.apply(masked)
        assert (masked[:, VOCABULARY:] == -np.inf).all(), "nor in free rows"
        selected = batch.select(logits)
        for row, sampler in enumerate(twin.rows):
            np.testing.assert_array_equal(batch.allowed(row), sampler.allowed())
            mask = np.zeros(2, np.int32)
            sampler.fill_bitmask(mask)
            assert bits(words[row]) == bits(mask)
            want = logits[row].copy()
            sampler.apply(want)
            np.testing.assert_array_equal(masked[row, :VOCABULARY].view(np.int32), want.view(np.int32))
            assert selected[row] == sampler.sample(logits[row])
            assert batch.leaf(row) == sampler.leaf
            assert batch.accepted[row] == sampler.accepted
            np.testing.assert_array_equal(batch.forced(row), sampler.forced())
        batch.accept(selected)
        for sampler, token in zip(twin.rows, selected, strict=True):
            sampler.accept(int(token))
        parents = rng.integers(0, len(batch), rng.integers(1, 6))
        batch.reorder(parents)
        twin.rows = [twin.rows[parent].clone() for parent in parents]
    steps = int(rng.integers(0, 6))
    batch.rollback(steps)
    for row, sampler in enumerate(twin.rows):
        sampler.rollback(steps)
        np.testing.assert_array_equal(batch.allowed(row), sampler.allowed())


def naive_top(
    batch: tokentrie.Batch, logits: np.ndarray[Any, Any], k: int, scores: list[float], score: str
) -> list[tuple[int, int, float]]:
    """Masks all rows, sorts everything that is left of them, and cuts."""
    found = []
    for row in range(len(batch)):
        legal = batch.allowed(row)
        if batch.finished[row] or len(legal) == VOCABULARY:
            continue
        values = logits[row].astype(np.float64)
        competing = values if score == "model" else values[legal]
        log_sum = 0.0 if score == "given" else np.log(np.exp(competing).sum())
        found += [(row, int(token), scores[row] + values[token] - log_sum) for token in legal]
    return sorted(found, key=lambda child: (-child[2], child[0], child[1]))[:k]


@settings(deadline=None)
@given(data=st.data(), score=st.sampled_from(["model", "renormalised", "given"]), k=st.integers(0, 12))
def test_top_children_are_the_top_of_the_masked_matrix(data: st.DataObject, score: Any, k: int) -> None:
    # Sets without open leaves: there everything competes.
    sequences = [[a, b] for a, b in data.draw(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1))]
    batch = tokentrie.Batch(tokentrie.Trie.from_sequences(sequences), rows=3, vocab=VOCABULARY)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    logits = rng.normal(size=(3, VOCABULARY)).astype(np.float32)
    batch.accept(batch.select(logits)[1:2], row=1)
    scores = [0.0, -1.5, -0.25]
    parents, found, values = batch.top_children(logits, k, scores, score)
    want = naive_top(batch, logits, k, scores, score)
    assert [*zip(parents.tolist(), found.tolist(), strict=True)] == [(row, token) for row, token, _ in want]
    np.testing.assert_allclose(values, [value for *_, value in want], atol=1e-5)
    # Groups are batches of their own.
    parents, found, _ = batch.top_children(logits, k, scores, score, groups=[1, 2])
    first = naive_top(batch, logits, 99, scores, score)
    want = [child for child in first if child[0] == 0][:k] + [child for child in first if child[0] > 0][:k]
    assert [*zip(parents.tolist(), found.tolist(), strict=True)] == [(row, token) for row, token, _ in want]


def test_ties_go_to_the_row_then_to_the_token() -> None:
    batch = tokentrie.Batch(items([3], [1], [2]), rows=2, vocab=VOCABULARY)
    parents, found, _ = batch.top_children(np.zeros((2, VOCABULARY), np.float32), 4, score="renormalised")
    assert parents.tolist() == [0, 0, 0, 1]
    assert found.tolist() == [1, 2, 3, 1]


def test_a_search_begins_with_one_beam() -> None:
    batch = tokentrie.Batch(items([3], [1]), rows=2, vocab=VOCABULARY)
    logits = np.zeros((2, VOCABULARY), np.float32)
    parents, found, _ = batch.top_children(logits, 9, [0.0, -np.inf])
    assert (parents.tolist(), found.tolist()) == ([0, 0], [1, 3])


def test_verify_changes_nothing() -> None:
    batch = tokentrie.Batch(items([5, 6, 7], [5, 8]), rows=3, vocab=VOCABULARY)
    accepted, masks = batch.verify([[5, 6, 7], [5, 9, 1], []])
    assert accepted.tolist() == [3, 1, 0]
    assert masks.shape == (3, 4, 2)
    assert [bits(row) for row in masks[0]] == [[5], [6, 8], [7], [*range(VOCABULARY)]]
    assert [bits(row) for row in masks[1]] == [[5], [6, 8], [6, 8], [6, 8]]
    assert [bits(row) for row in masks[2]] == [[5]] * 4, "no mask is empty"
    assert batch.accepted.tolist() == [0, 0, 0]
    as_table, _ = batch.verify(np.array([[5], [6], [5]]))
    assert as_table.tolist() == [1, 0, 1]


def test_children_are_ragged_lists() -> None:
    batch = tokentrie.Batch(items([5, 6], [2]), rows=2, vocab=VOCABULARY, end_tokens=[9])
    batch.accept([5, 2])
    offsets, found, following = batch.children()
    assert (offsets.tolist(), found.tolist()) == ([0, 1, 2], [6, 9])
    assert batch.nodes.tolist() == [2, 1]
    assert following.tolist() == [3, 1]
    assert [array.dtype for array in batch.children()] == [np.int64, np.int32, np.int32]


def test_requests_come_and_go() -> None:
    batch = tokentrie.Batch([None], vocab=VOCABULARY)
    batch.assign(1, items([5]))
    assert (len(batch), batch.allowed(1).tolist()) == (2, [5])
    batch.assign(-1, items([6]))
    batch.assign(0, items([7]))
    assert [batch.allowed(row).tolist() for row in range(2)] == [[7], [6]]
    with pytest.raises(IndexError, match="row 5 is out of range: the batch has 2 rows"):
        batch.assign(5, items([6]))
    with pytest.raises(tokentrie.errors.PayloadError):
        batch.assign(0, "{")
    assert batch.allowed(0).tolist() == [7]


def test_seeded_draws_are_those_of_a_sampler() -> None:
    trie = items(*[[token] for token in range(12)])
    batch = tokentrie.Batch(trie, rows=3, vocab=VOCABULARY, mode="sampled", seed=7)
    sampler = tokentrie.Sampler(VOCABULARY, trie, mode="sampled", seed=7)
    rng = np.random.default_rng(0)
    for _ in range(20):
        logits = rng.normal(size=(3, VOCABULARY)).astype(np.float32)
        assert batch.select(logits)[0] == sampler.sample(logits[0])
    flat = np.zeros((3, VOCABULARY), np.float32)
    assert any(len({*batch.select(flat).tolist()}) > 1 for _ in range(9)), "places do not draw alike"
    again = tokentrie.Batch(trie, rows=3, vocab=VOCABULARY, mode="sampled", seed=7)
    batch.reset()
    np.testing.assert_array_equal(batch.select(flat), again.select(flat))
    assert batch.seed == 7


def test_rows_may_be_strided_and_padded() -> None:
    batch = tokentrie.Batch(items([1], [39]), rows=2, vocab=VOCABULARY)
    wide = np.zeros((4, VOCABULARY + 9), np.float32)
    wide[:, 39] = 1.0
    wide[:, 45] = 5.0
    every_other = wide[::2]
    assert batch.select(every_other).tolist() == [39, 39]
    assert batch.select(wide[2:, : VOCABULARY + 3]).tolist() == [39, 39]
    batch.apply(every_other)
    assert np.isinf(wide[::2, 45]).all()
    assert (wide[1::2, 45] == 5.0).all(), "only rows are written"
    assert batch.select(np.broadcast_to(wide[1], (2, wide.shape[1]))).tolist() == [39, 39]


@pytest.mark.parametrize("dtype", [np.float16, "bfloat16"])
def test_halves_are_read_as_they_lie(dtype: Any) -> None:
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    batch = tokentrie.Batch(items([1], [39]), rows=2, vocab=VOCABULARY)
    logits = np.random.default_rng(1).normal(size=(2, VOCABULARY)).astype(dtype)
    single = logits.astype(np.float32)
    np.testing.assert_array_equal(batch.select(logits), batch.select(single))
    best = batch.top_children(logits, 3)
    for one, other in zip(best, batch.top_children(single, 3), strict=True):
        np.testing.assert_array_equal(one, other)
    before = logits.copy()
    batch.apply(logits)
    assert logits.dtype == dtype
    assert np.isfinite(logits.astype(np.float32)).sum() == 4
    assert (logits[:, [1, 39]] == before[:, [1, 39]]).all()


class TestRefusals:
    """Nothing changes in any row."""

    def test_one_bad_token(self) -> None:
        batch = tokentrie.Batch(items([5, 6], [2]), rows=3, vocab=VOCABULARY)
        batch.accept([5, 2, 5])
        with pytest.raises(tokentrie.TokenNotAllowedError, match=r"row 2: token 7 .* not allowed there: .*6"):
            batch.accept([6, 9, 7])
        assert batch.accepted.tolist() == [1, 1, 1]
        with pytest.raises(tokentrie.errors.VocabularyError, match=r"row 0: .*40.*outside"):
            batch.accept([40, 9, 6])
        with pytest.raises(tokentrie.errors.OptionError, match="2 tokens for a batch of 3 rows"):
            batch.accept([6, 9])
        with pytest.raises(TypeError, match="position 1: a token id must be an integer, not 'x'"):
            batch.accept([6, "x", 6])  # type: ignore[list-item]
        with pytest.raises(tokentrie.errors.VocabularyError):
            batch.accept([6, 50], row=0)
        assert batch.accepted.tolist() == [1, 1, 1]

    def test_parents_and_rollbacks(self) -> None:
        batch = tokentrie.Batch(items([5, 6], [2]), rows=2, vocab=VOCABULARY)
        with pytest.raises(tokentrie.errors.OptionError, match="parent 2 is out of range: the batch has 2 rows"):
            batch.reorder([0, 2])
        with pytest.raises(tokentrie.errors.VocabularyError, match=r"parents, position 1: .*-1"):
            batch.reorder([0, -1])
        batch.accept([5], row=0)
        with pytest.raises(tokentrie.errors.OptionError, match="row 1: "):
            batch.rollback(1)
        assert batch.accepted.tolist() == [1, 0]
        with pytest.raises(IndexError, match="row 2"):
            batch.rollback(0, row=2)

    @pytest.mark.parametrize(
        ("logits", "error", "message"),
        [
            (np.zeros((2, VOCABULARY)), TypeError, "float32, float16 or bfloat16, not float64: array.astype"),
            (np.zeros((2, VOCABULARY), np.int32), TypeError, "not int32"),
            (
                np.zeros((3, VOCABULARY), np.float32),
                tokentrie.errors.OptionError,
                "3 rows of logits for a batch of 2 rows",
            ),
            (np.zeros((2, VOCABULARY - 1), np.float32), ValueError, "39 entries wide: .* at least 40"),
            (np.zeros((2, VOCABULARY, 1), np.float32), ValueError, "shape"),
            (np.zeros((2, VOCABULARY * 2), np.float32)[:, ::2], ValueError, "contiguous"),
            (np.zeros((2, VOCABULARY), np.float32)[::-1], ValueError, "contiguous"),
            ("logits", TypeError, "float32 array, not str"),
            ([[0.0] * VOCABULARY] * 2, TypeError, "float32 array, not list"),
        ],
    )
    def test_logits(self, logits: Any, error: type[Exception], message: str) -> None:
        batch = tokentrie.Batch(items([1]), rows=2, vocab=VOCABULARY)
        for call in (batch.select, batch.apply, lambda rows: batch.top_children(rows, 3)):
            with pytest.raises(error, match=message):
                call(logits)

    def test_what_may_not_be_written(self) -> None:
        batch = tokentrie.Batch(items([1]), rows=2, vocab=VOCABULARY)
        logits = np.zeros((2, VOCABULARY), np.float32)
        logits.setflags(write=False)
        batch.select(logits)
        with pytest.raises(ValueError, match="cannot be written"):
            batch.apply(logits)
        with pytest.raises(ValueError, match=r"overlap|share"):
            batch.apply(np.lib.stride_tricks.as_strided(np.zeros(99, np.float32), (2, VOCABULARY), (4, 4)))
        with pytest.raises(TypeError, match="int32"):
            batch.fill_bitmask(np.zeros((2, 2), np.uint32))
        with pytest.raises(ValueError, match="at least 2"):
            batch.fill_bitmask(np.zeros((2, 1), np.int32))
        view = batch.bitmask()
        with pytest.raises(ValueError, match="read-only"):
            view[0, 0] = 1

    def test_settings(self) -> None:
        trie = items([1])
        with pytest.raises(tokentrie.errors.OptionError, match="rows is not given"):
            tokentrie.Batch(trie, vocab=VOCABULARY)
        with pytest.raises(tokentrie.errors.OptionError, match="rows is 3, but 2 constraints are given"):
            tokentrie.Batch([trie, None], rows=3, vocab=VOCABULARY)
        with pytest.raises(tokentrie.errors.OptionError, match="rows is 4000000000: a batch has up to 4194304"):
            tokentrie.Batch(trie, rows=4_000_000_000, vocab=VOCABULARY)
        with pytest.raises(TypeError, match="drafts must be a list of token ids for each row, not int"):
            tokentrie.Batch(trie, rows=1, vocab=VOCABULARY).verify(5)  # type: ignore[arg-type]
        with pytest.raises(tokentrie.errors.OptionError, match="rows is -1"):
            tokentrie.Batch(trie, rows=-1, vocab=VOCABULARY)
        with pytest.raises(TypeError, match="row 1"):
            tokentrie.Batch([trie, "yes"], vocab=VOCABULARY)
        with pytest.raises(tokentrie.errors.VocabularyError):
            tokentrie.Batch([trie, items([99])], vocab=VOCABULARY)
        with pytest.raises(tokentrie.errors.OptionError, match=r'score is .* "model"'):
            tokentrie.Batch(trie, rows=1, vocab=VOCABULARY).top_children(
                np.zeros((1, VOCABULARY), np.float32),
                1,
                score="best",  # type: ignore[arg-type]
            )
        with pytest.warns(tokentrie.errors.TokenTrieWarning, match="top_k"):
            tokentrie.Batch(trie, rows=1, vocab=VOCABULARY, mode="greedy", top_k=3)

    def test_scores_and_groups(self) -> None:
        batch = tokentrie.Batch(items([1]), rows=2, vocab=VOCABULARY)
        logits = np.zeros((2, VOCABULARY), np.float32)
        with pytest.raises(tokentrie.errors.OptionError, match="row 1: its score is NaN"):
            batch.top_children(logits, 1, [0.0, np.nan])
        with pytest.raises(tokentrie.errors.OptionError, match="1 scores for a batch of 2 rows"):
            batch.top_children(logits, 1, [0.0])
        with pytest.raises(TypeError, match="scores must be a list or array of numbers"):
            batch.top_children(logits, 1, "ab")  # type: ignore[arg-type]
        with pytest.raises(tokentrie.errors.OptionError, match="groups is 3: 2 rows"):
            batch.top_children(logits, 1, groups=3)
        with pytest.raises(tokentrie.errors.OptionError, match="group"):
            batch.top_children(logits, 1, groups=[1, 2])
        with pytest.raises(tokentrie.errors.OptionError, match="lists of drafts"):
            batch.verify([[1]])


def test_no_rows_are_a_batch() -> None:
    batch = tokentrie.Batch([], vocab=VOCABULARY)
    nothing = np.zeros((0, VOCABULARY), np.float32)
    batch.apply(nothing)
    assert batch.select(nothing).shape == batch.finished.shape == (0,)
    assert batch.top_children(nothing, 3)[1].shape == (0,)
    assert batch.bitmask().shape == (0, 2)


def test_sets_of_other_vocabularies_do_not_mix(tmp_path: Any) -> None:
    pieces = [bytes([letter]) for letter in b"abcdef"]
    one, other = (tokentrie.Vocab.from_tokens(tokens) for tokens in (pieces, pieces[::-1]))
    opened = []
    for number, vocab in enumerate([one, other]):
        path = tmp_path / f"{number}.ttrie"
        items([1], [2]).save(path, vocab=vocab)
        opened.append(tokentrie.Trie.open(path))
    with pytest.raises(tokentrie.errors.VocabularyError, match=r"row 1: .*another vocabulary"):
        tokentrie.Batch(opened, vocab=6)
    with pytest.raises(tokentrie.errors.VocabularyError, match="row 1"):
        tokentrie.Batch(opened, vocab=one)


def test_a_list_of_str_is_one_constraint() -> None:
    with pytest.raises(TypeError, match="needs a Vocab"):
        tokentrie.Batch(["yes", "no"], rows=2, vocab=VOCABULARY)


def test_threads_take_turns() -> None:
    batch = tokentrie.Batch(items(*[[a, b] for a in range(30) for b in range(30)]), rows=64, vocab=VOCABULARY)
    logits = np.random.default_rng(0).normal(size=(64, VOCABULARY)).astype(np.float32)
    want = batch.select(logits)
    failures = []

    def work() -> None:
        for _ in range(200):
            if (batch.select(logits) != want).any() or batch.bitmask()[0, 0] == 0:
                failures.append(1)
            batch.clone().accept(want)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


FORKED = """
import os, sys
import numpy as np, tokentrie
trie = tokentrie.Trie.from_sequences([[a, b] for a in range(99) for b in range(9)])
batch = tokentrie.Batch(trie, rows=64, vocab=60000)
logits = np.zeros((64, 60000), np.float32)
batch.apply(logits)  # on all threads
child = os.fork()
batch.apply(logits)
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os._exit(0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_process_has_threads_again() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], timeout=60, check=False)
    assert done.returncode == 0


DIGITS = Vocab.from_tokens([*(b"%d" % digit for digit in range(10)), b"<end>", b"a"], eog=[10])


def test_free_rows_end_with_the_generation() -> None:
    rows = Batch([None, Integer(0, 99), None], vocab=DIGITS)
    rows.accept([11, 4, 10])
    assert rows.finished.tolist() == [False, False, True]
    rows.accept([10, 2, 10])
    assert rows.finished.tolist() == [True, True, True]
    assert rows.values == [None, 42, None]
    # A vocabulary that is a size alone names no such tokens.
    rows = Batch([None], vocab=12)
    rows.accept([10])
    assert rows.finished.tolist() == [False]


def test_values_are_what_a_sampler_gives() -> None:
    constraints: list[Any] = [
        Integer(0, 999),
        Regex("[0-9]{2}"),
        tokentrie.Trie.from_sequences([[1], [2, 3]], names=["1", "23"]),
        tokentrie.Trie.from_sequences([[7], [7, 7]], names=["7", "77"]),
        None,
        JsonSchema({"type": "integer", "minimum": 5, "maximum": 7}),
    ]
    draw = random.Random(3)
    for _ in range(cases(200)):
        chosen = [draw.choice(constraints) for _ in range(4)]
        rows = Batch(chosen, vocab=DIGITS)
        texts = ["" for _ in chosen]
        for _ in range(3):
            tokens = [int(draw.choice(legal)) for legal in (rows.allowed(row) for row in range(4))]
            rows.accept(tokens)
            for row, token in enumerate(tokens):
                texts[row] += "" if token > 9 else str(token)
        for row, constraint in enumerate(chosen):
            value = rows.value(row)
            assert value == rows.values[row] == rows.clone().value(row - 4)
            if not rows.finished[row] or constraint is None:
                assert value is None
            elif constraint == constraints[0] or constraint is constraints[5]:
                assert isinstance(value, int)
                assert texts[row].startswith(str(value))
            else:
                assert str(value) == texts[row][: len(str(value))]
    with pytest.raises(IndexError):
        rows.value(4)


def test_values_of_forms_and_classes() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Small(pydantic.BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def is_small(cls, n: int) -> int:
            if n > 5:
                raise ValueError("not small")
            return n

    vocab = Vocab.from_tokens([bytes([byte]) for byte in range(256)] + [b"<end>"], eog=[256])
    form = Form("a=", Slot("a", Integer(0, 9)), ", b=", Slot("b", Regex("[xy]")))
    rows = Batch([form, Small, Small], vocab=vocab)
    for texts in itertools.zip_longest(b"a=3, b=y", b'{"n":3}', b'{"n":7}', fillvalue=256):
        rows.accept(list(texts))
    assert rows.value(0) == {"a": 3, "b": "y"}
    assert rows.value(1) == Small(n=3)
    with pytest.raises(InvalidValueError, match="not small") as caught:
        rows.value(2)
    assert caught.value.text == '{"n":7}'
