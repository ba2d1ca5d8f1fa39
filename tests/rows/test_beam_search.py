"""Beam search and exact choice over functions: against lists, and against each other."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tokentrie
from hypothesis import given, settings
from hypothesis import strategies as st
from models import precise_model

VOCABULARY = 20

tokens = st.lists(st.integers(0, 4), min_size=1, max_size=3)
sets = st.lists(tokens, min_size=1, max_size=9)


class Model:
    """Logits that depend on all that came before; counts its calls."""

    def __init__(self, seed: int, width: int = VOCABULARY) -> None:
        self.seed, self.width, self.calls, self.rows = seed, width, 0, 0

    def row(self, prefix: list[int]) -> np.ndarray[Any, Any]:
        rng = np.random.default_rng([self.seed, *prefix])
        return (rng.normal(size=self.width) * 2).astype(np.float32)

    def __call__(self, prefixes: list[list[int]]) -> np.ndarray[Any, Any]:
        self.calls, self.rows = self.calls + 1, self.rows + len(prefixes)
        return np.stack([self.row(prefix) for prefix in prefixes])


def log_softmax(row: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    row = row.astype(np.float64)
    return row - row.max() - np.log(np.exp(row - row.max()).sum())


def logprob(model: Model, leaf: list[int], ends: list[int], leaves: list[list[int]]) -> float:
    """By the definition: each token, then that an end token follows, or that no child does."""
    total = sum(log_softmax(model.row(leaf[:at]))[token] for at, token in enumerate(leaf))
    children = {other[len(leaf)] for other in leaves if len(other) > len(leaf) and other[: len(leaf)] == leaf}
    after = np.exp(log_softmax(model.row(leaf)))
    if ends:
        return total + math.log(sum(after[end] for end in ends if end not in children))
    return total + (math.log(1 - sum(after[child] for child in children)) if children else 0.0)


@settings(deadline=None)
@given(sequences=sets, seed=st.integers(0, 99), ends=st.sampled_from([[], [9], [9, 10]]))
def test_a_wide_beam_and_a_choice_know_every_probability(
    sequences: list[list[int]], seed: int, ends: list[int]
) -> None:
    trie = tokentrie.Trie.from_sequences(sequences)
    leaves = [trie.leaf(index).tokens for index in range(len(trie))]
    model = Model(seed)
    found = tokentrie.sets.beam_search(model, trie, len(trie), end_tokens=ends)
    assert sorted(one.leaf.index for one in found) == [*range(len(trie))]
    assert [one.logprob for one in found] == sorted((one.logprob for one in found), reverse=True)
    choice = tokentrie.sets.choose(model, trie, end_tokens=ends)
    assert choice.certain
    for one in found:
        want = logprob(model, leaves[one.leaf.index], ends, leaves)
        assert one.logprob == pytest.approx(want, abs=1e-5)
        assert choice.logprobs[one.leaf.index] == pytest.approx(want, abs=1e-5)
        assert one.tokens == leaves[one.leaf.index]
    assert found[0].leaf.index == choice.index


@settings(deadline=None)
@given(sequences=sets, seed=st.integers(0, 99), width=st.integers(1, 12))
def test_never_a_filler(sequences: list[list[int]], seed: int, width: int) -> None:
    trie = tokentrie.Trie.from_sequences(sequences)
    for options in ({}, {"score": "renormalised"}, {"sample": True, "seed": seed}, {"length_penalty": 0.6}):
        found = tokentrie.sets.beam_search(Model(seed), trie, width, **options)  # type: ignore[arg-type]
        assert len(found) == min(width, len(trie))
        assert len({one.leaf.index for one in found}) == len(found)
        assert all(one.leaf == trie.leaf(one.leaf.index) for one in found)


def test_a_narrow_beam_is_greedy() -> None:
    trie = tokentrie.Trie.from_sequences([[a, b, c] for a in range(4) for b in range(4) for c in range(4)])
    model = Model(3)
    sampler = tokentrie.Sampler(VOCABULARY, trie)
    walk: list[int] = []
    while sampler.state == "active":
        walk.append(sampler.sample(model.row(walk)))
        sampler.accept(walk[-1])
    assert tokentrie.sets.beam_search(model, trie, 1)[0].tokens == walk


def test_rows_come_with_their_parents() -> None:
    trie = tokentrie.Trie.from_sequences([[a, b, c] for a in range(3) for b in range(3) for c in range(3)])
    seen: list[list[list[int]]] = []
    parents: list[np.ndarray[Any, Any]] = []

    def step(prefixes: list[list[int]]) -> np.ndarray[Any, Any]:
        seen.append(prefixes)
        return Model(1)(prefixes)

    found = tokentrie.sets.beam_search(step, trie, 4, reorder=parents.append)
    assert len(found) == 4
    assert seen[0] == [[]]
    assert len(parents) == len(seen) - 1
    for before, after, rows in zip(seen, seen[1:], parents, strict=False):
        assert rows.dtype == np.int64
        assert [prefix[:-1] for prefix in after] == [before[row] for row in rows]


def test_forced_steps_are_skipped_where_scores_do_not_need_them() -> None:
    trie = tokentrie.Trie.from_sequences([[1, 2, 3, 4], [1, 2, 5, 6]])
    calls = {}
    for score in ("model", "renormalised"):
        model = Model(0)
        tokentrie.sets.beam_search(model, trie, 2, score=score, vocab=VOCABULARY)  # type: ignore[arg-type]
        calls[score] = model.calls
    assert calls == {"model": 4, "renormalised": 2}


def test_draws_follow_their_shares() -> None:
    trie = tokentrie.Trie.from_sequences([[1], [2], [3]])
    shares = np.array([0.5, 0.3, 0.2])
    row = np.full((1, VOCABULARY), -np.inf, np.float32)
    row[0, 1:4] = np.log(shares)
    counts = np.zeros((3, 3))
    draws = 4000
    for seed in range(draws):
        first, second = tokentrie.sets.beam_search(lambda prefixes: row, trie, 2, sample=True, seed=seed * 7919)
        counts[first.leaf.index, second.leaf.index] += 1
    for one in range(3):
        for other in range(3):
            want = 0.0 if one == other else shares[one] * shares[other] / (1 - shares[one])
            assert abs(counts[one, other] / draws - want) < 5 * math.sqrt(0.25 / draws)


TOP_K: dict[tuple[int, ...], dict[int, float]] = {
    (): {1: math.log(0.6), 2: math.log(0.3)},
    (1,): {3: math.log(0.5), 4: math.log(0.25), 700: math.log(0.2)},
    (2,): {3: 0.0},
}


def listed(prefixes: list[list[int]]) -> list[dict[int, float]]:
    return [TOP_K[tuple(prefix)] for prefix in prefixes]


@pytest.mark.parametrize("vocab", [None, 1000])
def test_an_interface_that_lists_log_probabilities(vocab: int | None) -> None:
    trie = tokentrie.Trie.from_sequences([[1, 3], [1, 4], [2, 3], [2, 4]], names=["a", "b", "c", "d"])
    found = tokentrie.sets.beam_search(listed, trie, 4, vocab=vocab)
    want = {"a": 0.3, "c": 0.3, "b": 0.15}
    assert {one.leaf.name: pytest.approx(math.exp(one.logprob), abs=1e-6) for one in found} == want
    choice = tokentrie.sets.choose(listed, trie, vocab=vocab)
    assert choice.mass == pytest.approx(0.75, abs=1e-6)
    np.testing.assert_allclose(np.exp(choice.logprobs), [0.3, 0.15, 0.3, 0.0], atol=1e-6)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ([{1: 0.5}], ValueError, "token 1 has the log-probability 0.5: it must be at most 0"),
        ([{1: math.nan}], ValueError, "log-probability NaN"),
        ([{1: -0.1, 2: -0.1}], ValueError, "add up to 1.8"),
        ([{"a": -1.0}], TypeError, "keys are token ids, not str"),
        ([{1: "x"}], ValueError, "values are numbers"),
        ([{1: -1.0}, {1: -1.0}], ValueError, "2 rows for 1 prefixes"),
        (np.zeros((2, VOCABULARY), np.float32), ValueError, "2 rows for 1 prefixes"),
        (np.zeros((1, 3), np.float32), ValueError, "rows of 3 entries: 5 are needed"),
        (np.zeros((1, VOCABULARY)), TypeError, "float64"),
        (None, TypeError, "not NoneType"),
    ],
)
def test_answers_that_are_none(answer: Any, error: type[Exception], message: str) -> None:
    trie = tokentrie.Trie.from_sequences([[1, 3], [4]])
    for call in (
        lambda step: tokentrie.sets.beam_search(step, trie, 2),
        lambda step: tokentrie.sets.choose(step, trie),
    ):
        with pytest.raises(error, match=message):
            call(lambda prefixes: answer)


def test_what_cannot_be_searched() -> None:
    trie = tokentrie.Trie.from_sequences([[1, 3], [4]])
    model = Model(0)
    with pytest.raises(tokentrie.errors.OptionError, match="width is 0"):
        tokentrie.sets.beam_search(model, trie, 0)
    with pytest.raises(tokentrie.errors.OptionError, match="seed is given, but nothing is drawn"):
        tokentrie.sets.beam_search(model, trie, 2, seed=1)
    with pytest.raises(tokentrie.errors.OptionError, match="length penalty"):
        tokentrie.sets.beam_search(model, trie, 2, length_penalty=math.nan)
    with pytest.raises(tokentrie.errors.TrieError, match="anything may come"):
        tokentrie.sets.beam_search(model, tokentrie.rules.Unconstrained(), 2)
    with pytest.raises(TypeError, match="step must be a function"):
        tokentrie.sets.beam_search(5, trie, 2)  # type: ignore[arg-type]
    with pytest.raises(tokentrie.errors.VocabularyError):
        tokentrie.sets.beam_search(model, trie, 2, vocab=3)
    with pytest.raises(ValueError, match="rows of 20 entries: 100 are needed"):
        tokentrie.sets.choose(model, trie, end_tokens=[99])
    with pytest.raises(tokentrie.errors.TrieError):
        tokentrie.sets.choose(model, tokentrie.rules.Unconstrained())
    with pytest.raises(tokentrie.errors.OptionError, match="top is 0"):
        tokentrie.sets.choose(model, trie, top=0)

    def fails(prefixes: list[list[int]]) -> Any:
        raise LookupError(str(len(prefixes)))

    for call in (lambda: tokentrie.sets.beam_search(fails, trie, 2), lambda: tokentrie.sets.choose(fails, trie)):
        with pytest.raises(LookupError):
            call()


@pytest.mark.model
def test_texts_need_a_vocabulary_and_keep_their_order(tiny_path: Any) -> None:
    vocab = tokentrie.Vocab.from_gguf(tiny_path)
    model = Model(0, len(vocab))
    names = ["yes", "no", "perhaps"]
    choice = tokentrie.sets.choose(model, names, vocab=vocab)
    assert choice.name == names[choice.index]
    assert choice[names[0]] == choice.probabilities[names[0]]
    found = tokentrie.sets.beam_search(model, names, 3, vocab=vocab)
    assert {one.leaf.name for one in found} == set(names)
    assert found[0].leaf.name == choice.name
    with pytest.raises(TypeError, match="needs a Vocab"):
        tokentrie.sets.choose(model, names, vocab=len(vocab))
    for call in (lambda: tokentrie.sets.choose(model, names), lambda: tokentrie.sets.beam_search(model, names, 2)):
        with pytest.raises(TypeError, match="needs a Vocab that can tokenize: give it as vocab="):
            call()


@pytest.mark.model
@pytest.mark.model
def test_the_model_itself_as_a_function() -> None:
    """What `Model.choose` says, said by its rows of logits."""
    model = precise_model("trained")
    prompt = model.vocab.tokenize("The sky is ")
    trie = tokentrie.Trie.from_strings(model.vocab, ["blue", "red", "reddish"])

    def scorer(prefixes: list[list[int]]) -> np.ndarray[Any, Any]:
        return np.stack([model.logits([*prompt, *prefix]) for prefix in prefixes])

    want = model.choose([*prompt], trie)
    got = tokentrie.sets.choose(scorer, trie, vocab=model.vocab)
    np.testing.assert_allclose(got.logprobs, want.logprobs, atol=1e-4)


def test_a_hypothesis_is_a_value() -> None:
    found = tokentrie.results.Hypothesis(tokentrie.sets.Leaf(0, "a", [1]), [1], -0.5)
    for same in (pickle.loads(pickle.dumps(found)), copy.copy(found), copy.deepcopy(found)):
        assert same == found
    match found:
        case tokentrie.results.Hypothesis(leaf, [1], logprob):
            assert (leaf.name, logprob) == ("a", -0.5)
        case _:
            pytest.fail("it matches")
    assert repr(found) == 'Hypothesis(Leaf(index=0, name="a", tokens=[1]), logprob=-0.5000)'
    step: Callable[..., Any] = Model(0)
    assert all(
        isinstance(one, tokentrie.results.Hypothesis) for one in tokentrie.sets.beam_search(step, found_trie(), 2)
    )


def found_trie() -> tokentrie.Trie:
    return tokentrie.Trie.from_sequences([[1], [2]])
