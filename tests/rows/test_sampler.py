"""The life of a sampler, against the oracle and case by case."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from budget import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Oracle
from support import payload
from tokentrie import Sampler, TokenNotAllowedError, TokenTrieError, Trie, Vocab
from tokentrie.errors import OptionError, VocabularyError
from tokentrie.sets import Leaf

N_VOCAB = 8
TOKENS = st.integers(0, N_VOCAB - 1)
LEAVES = st.lists(st.lists(TOKENS, min_size=1, max_size=4), min_size=1, max_size=10)
LOGITS = st.one_of(st.floats(-3, 3, width=32), st.sampled_from([0.0, -0.0, 1.0, np.nan, np.inf, -np.inf]))
ROWS = st.lists(LOGITS, min_size=N_VOCAB, max_size=N_VOCAB)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("accept"), TOKENS),
        st.tuples(st.just("accept_all"), st.lists(TOKENS, max_size=4)),
        st.tuples(st.just("follow"), st.integers(0, 7)),
        st.tuples(st.just("advance"), ROWS),
        st.tuples(st.just("rollback"), st.integers(0, 5)),
        st.tuples(st.just("clone"), st.none()),
        st.tuples(st.just("reset"), st.none()),
    ),
    max_size=12,
)


def check(sampler: Sampler, oracle: Oracle, row: list[float]) -> None:
    """Everything that a sampler shows, against the definition."""
    assert sampler.allowed().tolist() == sorted(oracle.allowed)
    assert sampler.forced().tolist() == oracle.forced
    assert sampler.state == ("complete" if oracle.complete else "active")
    assert sampler.open == oracle.open
    assert sampler.depth == len(oracle.walk)
    assert sampler.accepted == len(oracle.history)
    complete = oracle.complete and oracle.walk in oracle.leaves
    assert (sampler.leaf.tokens if sampler.leaf else None) == (list(oracle.walk) if complete else None)

    logits = np.array([*row, 99.0, 99.0], np.float32)  # a padded row: the tail is never legal
    assert sampler.sample(logits) == oracle.best(row)

    words = np.full(2, 77, np.int32)
    sampler.fill_bitmask(words)
    assert words.tolist() == [sum(1 << token for token in oracle.legal), 0]

    masked = logits.copy()
    sampler.apply(masked)
    if oracle.open or (oracle.complete and oracle.after == "free"):
        assert masked.tobytes() == logits.tobytes()
    elif any(row[token] > -np.inf for token in oracle.legal):
        expected = np.full_like(logits, -np.inf)
        legal = sorted(oracle.legal)
        expected[legal] = logits[legal]
        assert masked.tobytes() == expected.tobytes()
    else:
        assert np.flatnonzero(masked > -np.inf).tolist() == [min(oracle.legal)]


@settings(max_examples=cases(300), deadline=None)
@given(
    LEAVES,
    st.lists(TOKENS, max_size=2),
    st.lists(TOKENS, max_size=2),
    st.sampled_from(["free", "stop"]),
    OPERATIONS,
    ROWS,
)
def test_against_the_oracle(
    leaves: list[list[int]],
    ends: list[int],
    eog: list[int],
    after: str,
    operations: list[tuple[str, Any]],
    row: list[float],
) -> None:
    vocab = Vocab.from_tokens([bytes([token]) for token in range(N_VOCAB)], eog=eog)
    make = {"end_tokens": ends or None, "after": after}
    if after == "stop" and not ends and not eog:
        with pytest.raises(OptionError, match="neither"):
            Sampler(vocab, Trie.from_sequences(leaves), **make)  # type: ignore[arg-type]
        return
    sampler = Sampler(vocab, Trie.from_sequences(leaves), **make)  # type: ignore[arg-type]
    oracle = Oracle(N_VOCAB, leaves, ends, after, eog)
    check(sampler, oracle, row)
    for operation, argument in operations:
        sampler = apply_operation(sampler, oracle, operation, argument)
        check(sampler, oracle, row)


def apply_operation(sampler: Sampler, oracle: Oracle, operation: str, argument: Any) -> Sampler:
    """Does the same to both; returns the sampler to go on with."""
    if operation == "follow":  # a legal token, so that walks get deep
        operation, argument = "accept", sorted(oracle.legal)[argument % len(oracle.legal)]
    if operation in {"accept", "accept_all"}:
        before = list(oracle.history)
        for token in [argument] if operation == "accept" else argument:
            if token not in oracle.legal:
                oracle.history = before
                with pytest.raises(TokenNotAllowedError, match=f"token {token} "):
                    sampler.accept(argument)
                return sampler
            oracle.history.append(token)
        sampler.accept(argument)
    elif operation == "advance":
        tokens = [oracle.best(argument)]
        oracle.history += tokens
        tokens += oracle.forced
        oracle.history[len(oracle.history) :] = tokens[1:]
        assert sampler.advance(np.array(argument, np.float32)) == tokens
    elif operation == "rollback" and argument > len(oracle.history):
        with pytest.raises(OptionError, match=f"{argument} tokens: {len(oracle.history)} were"):
            sampler.rollback(argument)
    elif operation == "rollback":
        sampler.rollback(argument)
        oracle.history = oracle.history[: len(oracle.history) - argument]
    elif operation == "clone":
        clone = sampler.clone()
        sampler.reset()  # must not move the clone
        return clone
    else:
        sampler.reset()
        oracle.history = []
    return sampler


def test_a_walk(actions: str, row: np.ndarray) -> None:
    sampler = Sampler(10, actions)
    assert (sampler.state, sampler.path, sampler.leaf) == ("active", "action", None)
    assert sampler.allowed().tolist() == [2, 5]
    assert sampler.allowed().dtype == sampler.forced().dtype == np.int32
    assert sampler.sample(row) == 5
    assert sampler.depth == 0, "sample does not accept"
    assert sampler.advance(row) == [5]
    assert sampler.allowed().tolist() == [6, 8]
    row[6] = 99
    assert sampler.advance(row) == [6, 7], "what is forced comes along"
    assert sampler.leaf == Leaf(1, "THINK", [5, 6, 7])
    assert sampler.state == "complete"
    sampler.accept(9)
    sampler.rollback(2)
    assert (sampler.state, sampler.forced().tolist()) == ("active", [7])
    assert repr(sampler).startswith('<tokentrie.Sampler: active, path "action", depth 2')


def test_a_list_is_taken_whole_or_not_at_all(actions: str) -> None:
    sampler = Sampler(10, actions)
    with pytest.raises(TokenNotAllowedError, match=r"token 9 at position 1 .*only \[6, 8\]"):
        sampler.accept([5, 9])
    assert sampler.accepted == 0
    several: list[Any] = [[5, 6], (7,), np.array([], np.int64), iter([])]
    for ids in several:
        sampler.accept(ids)
    assert sampler.leaf is not None
    sampler.reset()
    sampler.accept(np.int64(5))
    sampler.accept(np.array([8], np.uint8))
    assert sampler.leaf == Leaf(2, "REPLY", [5, 8])


@pytest.mark.parametrize(
    ("tokens", "error", "says"),
    [
        (10, VocabularyError, "token id 10 is outside the vocabulary of 10 tokens"),
        (-1, VocabularyError, "token id -1 must be from 0"),
        (2**31, VocabularyError, "2147483648"),
        (2**80, VocabularyError, str(2**80)),
        ([5, -1], VocabularyError, "position 1: token id -1"),
        (np.array([5, -1]), VocabularyError, "position 1: token id -1"),
        (1.5, TypeError, "float"),
        ("5", TypeError, "str"),
        (b"5", TypeError, "bytes"),
        (None, TypeError, "NoneType"),
        ([5, "6"], TypeError, "position 1: .*'6' of type str"),
        (np.array([[5]]), TypeError, r"shape \[1, 1\]"),
        (np.array([5.0]), TypeError, "float64"),
    ],
)
def test_what_is_no_token_is_refused(actions: str, tokens: Any, error: type[Exception], says: str) -> None:
    sampler = Sampler(10, actions)
    with pytest.raises(error, match=says):
        sampler.accept(tokens)
    assert sampler.accepted == 0


def test_paths_are_never_merged(row: np.ndarray) -> None:
    data = payload({"A": [1]})
    data["descriptors"] += payload({"en": [2, 3]}, "parameters.lang")["descriptors"]
    sampler = Sampler(10, data)
    assert sampler.allowed().tolist() == [1]
    sampler.activate("parameters.lang")
    assert (sampler.path, sampler.allowed().tolist()) == ("parameters.lang", [2])
    assert sampler.trie == Trie.from_payload(data, "parameters.lang")
    with pytest.raises(OptionError, match=r'"other"; there are \["action", "parameters.lang"\]'):
        sampler.activate("other")
    assert sampler.path == "parameters.lang"
    sampler.deactivate()
    assert (sampler.state, sampler.sample(row), len(sampler.allowed())) == ("idle", 9, 10)
    sampler.reset()
    assert (sampler.state, sampler.path) == ("active", "action")


def test_all_illegal_is_answered_by_a_legal_token(actions: str) -> None:
    for dead in (-np.inf, np.nan):
        sampler = Sampler(10, actions)
        row = np.full(10, dead, np.float32)
        row[9] = 50.0
        assert sampler.sample(row) == 2
        assert sampler.starved == 1
        sampler.apply(row)
        assert np.flatnonzero(row > -np.inf).tolist() == [2]
        assert sampler.starved == 2


def test_draws_stay_inside_and_follow_the_seed(actions: str) -> None:
    row = np.zeros(10, np.float32)
    row[9] = 50.0
    drawn = Counter(Sampler(10, actions, mode="sampled", seed=seed).sample(row) for seed in range(1000))
    assert set(drawn) == {2, 5}
    assert min(drawn.values()) > 400

    def run(seed: int | None) -> list[int]:
        sampler = Sampler(10, actions, mode=1, seed=seed)
        return [sampler.sample(row) for _ in range(64)]

    assert run(7) == run(7) != run(8)
    sampler = Sampler(10, actions, mode="sampled")
    first = [sampler.sample(row) for _ in range(64)]
    assert first == run(sampler.seed), "a seed from the operating system can be asked for"
    sampler.reset()
    assert [sampler.sample(row) for _ in range(64)] == first
    assert run(None) != run(None)


def test_settings_of_the_draw() -> None:
    trie = Trie.from_sequences([[token] for token in range(4)])
    row = np.log(np.array([0.4, 0.3, 0.2, 0.1, 999.0], np.float32))

    def support(**options: Any) -> set[int]:
        return {Sampler(5, trie, mode="sampled", seed=seed, **options).sample(row) for seed in range(300)}

    assert support() == {0, 1, 2, 3}
    assert support(top_k=2) == {0, 1}
    assert support(top_p=0.65) == {0, 1}
    assert support(min_p=0.45) == {0, 1, 2}
    assert support(temperature=0.0) == {0}
    share = sum(Sampler(5, trie, mode=1, temperature=0.5, seed=seed).sample(row) == 0 for seed in range(2000)) / 2000
    assert share == pytest.approx(16 / 30, abs=0.05)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"mode": "fast"}, "mode is 'fast'"),
        ({"mode": 2}, "mode is 2"),
        ({"mode": None}, "mode is None"),
        ({"after": "later"}, "after is 'later'"),
        ({"after": 0}, "after is 0"),
        ({"after": "stop"}, "neither end-of-generation nor end tokens"),
        ({"temperature": -1.0}, "temperature is -1"),
        ({"temperature": float("nan")}, "temperature is NaN"),
        ({"top_k": -1}, "top_k is -1"),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"min_p": -0.1}, "min_p is -0.1"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**32}, "seed is 4294967296"),
    ],
)
def test_settings_out_of_range(actions: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(OptionError, match=says) as caught:
        Sampler(10, actions, **options)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, TokenTrieError)


def test_end_tokens(actions: str, row: np.ndarray) -> None:
    sampler = Sampler(10, actions, end_tokens=[9, 9, 1])
    sampler.accept(2)
    assert (sampler.state, sampler.allowed().tolist(), sampler.forced().tolist()) == ("active", [1, 9], [])
    assert sampler.advance(row) == [9]
    assert sampler.leaf == Leaf(0, "STOP", [2])
    with pytest.raises(VocabularyError, match="end tokens: token id 10 is outside the vocabulary of 10"):
        Sampler(10, actions, end_tokens=[10])
    with pytest.raises(TypeError, match="end_tokens, position 0"):
        Sampler(10, actions, end_tokens=["x"])  # type: ignore[list-item]


def test_after_stop_allows_only_end_of_generation(actions: str, row: np.ndarray) -> None:
    vocab = Vocab.from_tokens([b"x"] * 10, eog=[4, 3])
    sampler = Sampler(vocab, actions, after="stop")
    sampler.accept(2)
    assert sampler.allowed().tolist() == [3, 4]
    sampler.apply(row)
    assert np.flatnonzero(row > -np.inf).tolist() == [3, 4]
    with pytest.raises(TokenNotAllowedError, match="token 5"):
        sampler.accept(5)


def test_open_leaf(row: np.ndarray) -> None:
    sampler = Sampler(10, payload({"REPLY": [1, 2], "REPLY_THREAD": [1, 2, 3]}))
    sampler.accept([1, 2])
    assert sampler.open
    assert (sampler.state, sampler.allowed().tolist(), sampler.forced().tolist()) == ("active", [3], [])
    copy = row.copy()
    sampler.apply(row)
    assert (row == copy).all()
    assert sampler.sample(row) == 9
    sampler.accept(9)
    assert sampler.leaf == Leaf(0, "REPLY", [1, 2])


def test_a_trie_must_fit_the_vocabulary() -> None:
    with pytest.raises(VocabularyError, match="token id 10 is outside the vocabulary of 10 tokens"):
        Sampler(10, Trie.from_sequences([[1], [10]]))
    with pytest.raises(TypeError, match="vocab must be a Vocab or the vocabulary size, not str"):
        Sampler("10", Trie.from_sequences([[1]]))  # type: ignore[arg-type]


def test_text_bytes_and_dictionaries_are_one_payload(actions: str) -> None:
    tries = {Sampler(10, form).trie for form in (actions, actions.encode(), json.loads(actions))}
    assert tries == {Trie.from_payload(actions)}
