"""Tries as sets, against Python's own sets, dicts and sorted lists."""

from __future__ import annotations

import copy
import multiprocessing
import operator
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokentrie import TokenNotAllowedError, Trie
from tokentrie.errors import OptionError, TrieError, VocabularyError
from tokentrie.sets import Leaf

Row = tuple[int, ...]
ROWS = st.sets(st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple), min_size=1, max_size=30)
NAMED = st.dictionaries(
    st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple),
    st.text("ab\N{LATIN SMALL LETTER SHARP S}\N{GRINNING FACE}", max_size=2),
    min_size=1,
    max_size=30,
)

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "union": operator.or_,
    "intersection": operator.and_,
    "difference": operator.sub,
    "symmetric_difference": operator.xor,
}


def trie(rows: set[Row]) -> Trie:
    return Trie.from_sequences(list(rows))


def named_trie(rows: dict[Row, str]) -> Trie:
    return Trie.from_sequences(list(rows), list(rows.values()))


def rows_of(trie: Trie) -> list[Row]:
    return [tuple(leaf.tokens) for leaf in trie]


@pytest.mark.parametrize("name", OPERATORS)
@given(a=ROWS, b=ROWS)
def test_operations(name: str, a: set[Row], b: set[Row]) -> None:
    expected = OPERATORS[name](a, b)
    for operation in (OPERATORS[name], getattr(Trie, name)):
        if expected:
            found = operation(trie(a), trie(b))
            assert found == trie(expected)
            assert found.names is None
            assert found.input_rows.tolist() == list(range(len(expected)))
        else:
            with pytest.raises(TrieError, match=r"is empty: a trie has at least one leaf"):
                operation(trie(a), trie(b))


@given(ROWS, ROWS)
def test_comparisons(a: set[Row], b: set[Row]) -> None:
    x, y = trie(a), trie(b)
    for compare in (operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne):
        assert compare(x, y) == compare(a, b)
        assert compare(x, trie(a)) == compare(a, a)
    for name in ("issubset", "issuperset", "isdisjoint"):
        assert getattr(x, name)(y) == getattr(a, name)(b)
    assert (x < x | y) == (a < a | b)


@given(NAMED, NAMED)
def test_names(a: dict[Row, str], b: dict[Row, str]) -> None:
    both = {row: min(a[row], b[row]) for row in a.keys() & b.keys()}
    assert named_trie(a) | named_trie(b) == named_trie(a | b | both)
    plain = trie(set(b))
    if both:
        assert named_trie(a) & named_trie(b) == named_trie(both)
        mine = named_trie({row: a[row] for row in both})
        assert named_trie(a) & plain == plain & named_trie(a) == mine
    if rest := {row: a[row] for row in a.keys() - b.keys()}:
        assert named_trie(a) - named_trie(b) == named_trie(a) - plain == named_trie(rest)
    for operation in (operator.or_, operator.xor):
        with pytest.raises(TrieError, match=r"of a trie with names and one without"):
            operation(named_trie(a), plain)


@given(st.lists(ROWS, max_size=6), ROWS)
def test_several_at_once(others: list[set[Row]], a: set[Row]) -> None:
    tries = [trie(rows) for rows in others]
    assert trie(a).union(*tries) == trie(a.union(*others))
    for name in ("intersection", "difference"):
        if expected := getattr(a, name)(*others):
            assert getattr(trie(a), name)(*tries) == trie(expected)
        else:
            with pytest.raises(TrieError, match="is empty"):
                getattr(trie(a), name)(*tries)


def test_only_tries() -> None:
    one = Trie.from_sequences([[1]])
    for operation in (*OPERATORS.values(), operator.le, operator.lt, operator.ge, operator.gt):
        with pytest.raises(TypeError):
            operation(one, {(1,)})
        with pytest.raises(TypeError):
            operation({(1,)}, one)
    with pytest.raises(TypeError, match="only a Trie can be combined with one, not list"):
        one.union([[1]])  # type: ignore[arg-type]
    assert one != {(1,)}


@given(ROWS, st.lists(st.integers(0, 3), max_size=4))
def test_leaves_of_a_prefix(rows: set[Row], prefix: list[int]) -> None:
    whole = trie(rows)
    below = [row for row in sorted(rows) if row[: len(prefix)] == tuple(prefix)]
    if not below:
        with pytest.raises(TokenNotAllowedError):
            whole.leaves(prefix)
        return
    found = whole.leaves(prefix)
    assert operator.length_hint(found) == len(below)
    leaves = list(found)
    assert [tuple(leaf.tokens) for leaf in leaves] == below
    assert all(whole.leaf(leaf.index) == leaf for leaf in leaves)
    assert list(whole.leaves()) == list(whole)
    assert next(found, None) is None


@given(NAMED, st.randoms())
def test_filter(rows: dict[Row, str], random: Any) -> None:
    whole, mask = named_trie(rows), [random.random() < 0.5 for _ in rows]
    kept = {row: rows[row] for row, keep in zip(sorted(rows), mask, strict=True) if keep}
    for keep in (mask, np.array(mask), lambda leaf: mask[leaf.index], np.array([mask, mask]).T[:, 0]):
        if kept:
            assert whole.filter(keep) == named_trie(kept)
        else:
            with pytest.raises(TrieError, match="the selection is empty"):
                whole.filter(keep)


def test_bad_filters() -> None:
    two = Trie.from_sequences([[1], [2]])
    with pytest.raises(ValueError, match="a mask of 3 for 2 leaves"):
        two.filter([True] * 3)
    with pytest.raises(TypeError, match=r"one of dtype int64 and shape \[2\]"):
        two.filter(np.array([0, 1]))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="dtype bool and shape"):
        two.filter(np.ones((2, 1), bool))
    with pytest.raises(TypeError, match="must be a function or a bool array, not 5 of type int"):
        two.filter(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        two.filter([0, 1])  # type: ignore[list-item]

    def fails(leaf: Leaf) -> bool:
        raise KeyError(leaf.index)

    with pytest.raises(KeyError, match="0"):
        two.filter(fails)


@given(NAMED, st.data())
def test_sample(rows: dict[Row, str], data: st.DataObject) -> None:
    whole = named_trie(rows)
    n, seed = data.draw(st.integers(1, len(rows))), data.draw(st.integers(0, 2**64))
    drawn = whole.sample(n, seed)
    assert len(drawn) == n
    assert drawn <= whole
    numbers = np.random.default_rng(seed).choice(len(whole), n, replace=False, shuffle=False)
    assert (
        drawn == whole.sample(n, np.random.default_rng(seed)) == whole.filter(np.isin(np.arange(len(whole)), numbers))
    )
    assert whole.sample(len(whole)) == whole


@pytest.mark.parametrize("n", [0, -1, 4, 2**40])
def test_bad_sample_sizes(n: int) -> None:
    with pytest.raises(OptionError, match=f"n is {n}: it must be from 1 to 3, the number of leaves"):
        Trie.from_sequences([[1], [2], [3]]).sample(n)


@given(NAMED)
def test_equal_content_equal_hash(rows: dict[Row, str]) -> None:
    one, same = named_trie(rows), named_trie(dict(reversed(rows.items())))
    assert one == same
    assert hash(one) == hash(same)
    assert len({one, same, trie(set(rows))}) == 2


def test_hashes_differ() -> None:
    tries = [Trie.from_sequences([[0], [token], [1000]]) for token in range(1, 1000)]
    assert len(set(map(hash, tries))) == len(tries)


@given(NAMED)
def test_pickles(rows: dict[Row, str]) -> None:
    for whole in (named_trie(rows), trie(set(rows))):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(whole, protocol))
            assert again == whole
            assert hash(again) == hash(whole)
        assert copy.copy(whole) is copy.deepcopy(whole) is whole


def test_other_processes() -> None:
    whole = Trie.from_sequences([[1, 2], [3]], ["a", "b"])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(rows_of, (whole,)) == [(1, 2), (3,)]
        assert pool.apply(operator.or_, (whole, whole)) == whole


def test_files_are_pickled_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rows = tmp_path / "sét.ttrie", np.stack([np.arange(100_000) // 300, np.arange(100_000) % 300], axis=1)
    whole = Trie.from_sequences(rows, [f"name {row}" for row in range(100_000)])
    whole.save(path)
    monkeypatch.chdir(tmp_path)
    opened, verified = Trie.open(path.name), Trie.open(path, verify=True)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert len(pickle.dumps(opened, protocol)) < 1000
    monkeypatch.chdir("/")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        arguments = [(trie, tokens) for trie in (opened, verified) for tokens in ([5, 7], [5, 300], [333, 99], [333])]
        expected = [True, False, True, False] * 2
        assert pool.starmap(operator.contains, arguments) == expected
        # What comes back is a file again, and equal.
        assert pool.apply(copy.copy, (opened,)) == whole
    assert len(pickle.dumps(pickle.loads(pickle.dumps(verified)))) < 1000
    assert len(pickle.dumps(opened.union())) > 100_000


def test_a_pickled_file_must_be_there_and_the_same(tmp_path: Path) -> None:
    path = tmp_path / "set.ttrie"
    whole = Trie.from_sequences([[1, 2], [3]], ["a", "b"])
    whole.save(path)
    opened = Trie.open(path)
    by_path = pickle.dumps(opened)
    path.unlink()
    with pytest.raises(FileNotFoundError) as error:
        pickle.loads(by_path)
    assert error.value.filename == str(path)
    # Equal but for one name of the same length.
    Trie.from_sequences([[1, 2], [3]], ["a", "c"]).save(path)
    with pytest.raises(TrieError, match=f"{path}: not the file that was pickled") as changed:
        pickle.loads(by_path)
    assert "trie.union()" in str(changed.value)
    path.write_bytes(b"no trie")
    with pytest.raises(TrieError, match=r"not a \.ttrie file"):
        pickle.loads(by_path)
    # The process that has it open still has all of it, so what it pickles now holds the leaves themselves.
    again = pickle.loads(pickle.dumps(opened))
    assert again == whole
    whole.save(path)
    assert pickle.loads(by_path) == whole


@given(NAMED)
def test_arrays(rows: dict[Row, str]) -> None:
    whole = named_trie(rows)
    tokens, offsets = whole.to_numpy()
    assert (tokens.dtype, offsets.dtype) == (np.int32, np.int64)
    assert [tuple(row.tolist()) for row in np.split(tokens, offsets[1:-1])] == sorted(rows)
    assert whole.names == [rows[row] for row in sorted(rows)]
    assert Trie.from_numpy(tokens, offsets, whole.names) == whole
    assert Trie.from_numpy(tokens.tolist(), offsets.astype(np.uint32)) == trie(set(rows))
    if len({*map(len, rows)}) == 1:
        assert whole.to_numpy(table=True).tolist() == [list(row) for row in sorted(rows)]
    else:
        with pytest.raises(TrieError, match=r"leaf 0 has \d tokens? and leaf \d+ has \d"):
            whole.to_numpy(table=True)


FLAT: dict[str, tuple[Any, Any, Any, type[Exception], str]] = {
    "no offsets": ([1], [], None, TrieError, "there are no offsets"),
    "late start": ([1, 2], [1, 2], None, TrieError, "offsets go from 1 to 2: they must go from 0 to .* tokens, 2"),
    "early end": ([1, 2], [0, 1], None, TrieError, "offsets go from 0 to 1"),
    "nothing": ([], [0], None, TrieError, "no leaf"),
    "empty": ([1], [0, 0, 1], None, TrieError, "row 0 is empty"),
    "descending": ([1, 2], [0, 2, 1, 2], None, TrieError, "row 1 goes from 2 to 1: offsets must ascend"),
    "negative": ([1, 2], [0, -1, 2], None, TrieError, "row 0 goes from 0 to -1"),
    "outside": ([1, 2], [0, 5, 2], None, TrieError, "row 0 goes from 0 to 5"),
    "names": ([1, 2], [0, 1, 2], ["a"], TrieError, "1 names for 2 sequences"),
    "fractions": ([1], [0.0, 1.0], None, TypeError, "offsets must be a one-dimensional integer array"),
    "no token": ([-1], [0, 1], None, VocabularyError, "tokens, position 0: token id -1"),
}


@pytest.mark.parametrize(("tokens", "offsets", "names", "error", "says"), FLAT.values(), ids=FLAT)
def test_bad_flat_arrays(tokens: Any, offsets: Any, names: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Trie.from_numpy(tokens, offsets, names)
