"""Choices and searches over functions: rows that say nothing, what ends a call, and who hears how far it is."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tokentrie
from hypothesis import given, settings
from hypothesis import strategies as st

Call = Callable[..., Any]
CALLS: list[Call] = [
    functools.partial(tokentrie.sets.choose),
    functools.partial(tokentrie.sets.choose, top=1),
    functools.partial(tokentrie.sets.beam_search, width=4),
    functools.partial(tokentrie.sets.beam_search, width=4, score="renormalised"),
    functools.partial(tokentrie.sets.beam_search, width=4, score="given"),
    functools.partial(tokentrie.sets.beam_search, width=4, sample=True, seed=1),
]
calls = pytest.mark.parametrize("call", CALLS)
VOCABULARY = 9


def pairs() -> tokentrie.Trie:
    return tokentrie.Trie.from_sequences([[1, 3], [1, 4], [2, 3], [2, 4]], names=["a", "b", "c", "d"])


def alike(prefixes: list[list[int]]) -> np.ndarray[Any, Any]:
    return np.zeros((len(prefixes), VOCABULARY), np.float32)


@calls
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("nothing", "found"), [(np.nan, "NaN"), (-np.inf, "-inf")])
def test_rows_that_say_nothing(call: Call, dtype: Any, nothing: float, found: str) -> None:
    """They gave the first value with p 0.5, or no hypothesis."""

    def model(prefixes: list[list[int]]) -> np.ndarray[Any, Any]:
        rows = alike(prefixes).astype(dtype)
        rows[[prefix == bad for prefix in prefixes]] = nothing
        return rows

    for bad in ([], [2]):
        with pytest.raises(
            ValueError, match=rf"the row of logits after .* says nothing: .* entries are {found}"
        ) as error:
            call(model, pairs())
        assert (str(bad) if bad else "after no tokens") in str(error.value)


@calls
def test_rows_of_nothing_after_what_never_comes(call: Call) -> None:
    def model(prefixes: list[list[int]]) -> np.ndarray[Any, Any]:
        rows = alike(prefixes)
        rows[[prefix == [] for prefix in prefixes], 2] = -np.inf
        rows[[prefix == [2] for prefix in prefixes]] = np.nan
        return rows

    found = call(model, pairs())
    names = [found.name] if isinstance(found, tokentrie.Choice) else [one.leaf.name for one in found]
    assert set(names) <= {"a", "b"}


@calls
def test_lists_that_list_nothing(call: Call) -> None:
    if call.keywords.get("score") == "given":  # type: ignore[attr-defined]
        pytest.skip("lists are log-probabilities")
    for nothing in ({}, {1: -math.inf}):
        with pytest.raises(ValueError, match="says nothing"):
            call(lambda prefixes, nothing=nothing: [nothing for _ in prefixes], pairs())


@settings(deadline=None)
@given(
    sequences=st.sets(st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple), min_size=1, max_size=40),
    top=st.none() | st.integers(1, 12),
    ends=st.sampled_from([[], [7]]),
    at_once=st.integers(1, 50),
    spread=st.sampled_from([0.0, 1.0, 5.0]),
)
def test_no_row_is_read_twice_and_none_that_is_no_prefix(
    sequences: set[tuple[int, ...]], top: int | None, ends: list[int], at_once: int, spread: float
) -> None:
    trie = tokentrie.Trie.from_sequences([list(one) for one in sorted(sequences)])
    going_on = {one[:end] for one in sequences for end in range(len(one) + bool(ends))}
    going_on |= {
        one for one in sequences if any(len(other) > len(one) and other[: len(one)] == one for other in sequences)
    }
    asked: list[tuple[int, ...]] = []

    def model(prefixes: list[list[int]]) -> np.ndarray[Any, Any]:
        asked.extend(map(tuple, prefixes))
        assert len(prefixes) <= at_once
        rows = [np.random.default_rng([7, *prefix]).normal(0, spread, VOCABULARY) for prefix in prefixes]
        return np.array(rows, np.float32)

    choice = tokentrie.sets.choose(model, trie, top=top, end_tokens=ends, rows_at_once=at_once)
    assert len(asked) == len(set(asked)) == choice.stats.rows
    assert set(asked) <= going_on
    if top is None:
        assert set(asked) == going_on


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[int, int | None]] = []
    tokentrie.sets.choose(alike, pairs(), rows_at_once=2, progress=lambda done, total: told.append((done, total)))
    # The first row tells how many there are.
    assert told == [(1, None), (2, 3), (3, 3)]
    told.clear()
    tokentrie.sets.beam_search(alike, pairs(), 4, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, None), (3, None)]
    for shown in (True, False, None):
        assert tokentrie.sets.choose(alike, pairs(), progress=shown).name == "a"
        assert len(tokentrie.sets.beam_search(alike, pairs(), 4, progress=shown)) == 4
    assert capsys.readouterr() == ("", ""), "this is no terminal"

    def fails(done: int, total: int | None) -> None:
        raise LookupError(done)

    for call in CALLS:
        with pytest.raises(LookupError):
            call(alike, pairs(), progress=fails)
        with pytest.raises(TypeError, match="progress must be True, False or a function, not int"):
            call(alike, pairs(), progress=5)


@calls
def test_calls_that_are_ended(call: Call) -> None:
    cancel, asked = tokentrie.CancelToken(), []

    def cancels(prefixes: list[list[int]]) -> np.ndarray[Any, Any]:
        asked.append(prefixes)
        cancel.cancel()
        return alike(prefixes)

    with pytest.raises(tokentrie.errors.CancelledError, match="stopped on request after 1 row of logits"):
        call(cancels, pairs(), cancel=cancel)
    with pytest.raises(tokentrie.errors.CancelledError, match="after 0 rows"):
        call(cancels, pairs(), cancel=cancel)
    assert len(asked) == 1

    def slow(prefixes: list[list[int]]) -> np.ndarray[Any, Any]:
        time.sleep(0.02)
        return alike(prefixes)

    with pytest.raises(tokentrie.errors.TimedOutError, match=r"the timeout of 0.01 s was over after 1 row"):
        call(slow, pairs(), timeout=0.01)
    assert call(slow, pairs(), timeout=60, cancel=tokentrie.CancelToken())
    with pytest.raises(tokentrie.errors.OptionError, match="timeout"):
        call(slow, pairs(), timeout=-1)
