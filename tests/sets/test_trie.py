"""Building a trie from sequences and asking it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokentrie import TokenNotAllowedError, Trie
from tokentrie.errors import TrieError, VocabularyError
from tokentrie.sets import Leaf

TOKENS = st.integers(0, 6)
SEQUENCES = st.lists(st.lists(TOKENS, min_size=1, max_size=5), min_size=1, max_size=20)


@given(SEQUENCES, st.lists(TOKENS, max_size=6))
def test_against_a_set(sequences: list[list[int]], prefix: list[int]) -> None:
    trie, leaves = Trie.from_sequences(sequences), sorted(set(map(tuple, sequences)))
    assert len(trie) == len(leaves)
    assert trie.nodes == len({leaf[:n] for leaf in leaves for n in range(len(leaf) + 1)})
    assert [tuple(leaf.tokens) for leaf in trie] == leaves
    assert [leaf.index for leaf in trie] == list(range(len(leaves)))
    assert trie.input_rows.tolist() == [sequences.index(list(leaf)) for leaf in leaves]
    assert (prefix in trie) == (tuple(prefix) in leaves)
    assert trie.find(prefix) == (leaves.index(tuple(prefix)) if tuple(prefix) in leaves else None)

    def children(path: tuple[int, ...]) -> list[int]:
        return sorted({leaf[len(path)] for leaf in leaves if leaf[: len(path)] == path and len(leaf) > len(path)})

    path = tuple(prefix)
    if not any(leaf[: len(path)] == path for leaf in leaves):
        with pytest.raises(TokenNotAllowedError):
            trie.allowed(prefix)
        with pytest.raises(TokenNotAllowedError):
            trie.forced(prefix)
        return
    assert trie.allowed(prefix).tolist() == children(path)
    forced = []
    while len(children(path)) == 1 and path not in leaves:
        forced += children(path)
        path = (*path, forced[-1])
    assert trie.forced(prefix).tolist() == forced


@given(SEQUENCES, st.randoms())
def test_order_of_the_input_does_not_matter(sequences: list[list[int]], random: Any) -> None:
    names = [str(tokens) for tokens in sequences]
    rows = list(zip(sequences, names, strict=True))
    random.shuffle(rows)
    trie = Trie.from_sequences(sequences, names)
    shuffled = Trie.from_sequences([tokens for tokens, _ in rows], [name for _, name in rows])
    assert trie == shuffled
    assert hash(trie) == hash(shuffled)
    assert list(trie) == list(shuffled)


DTYPES = ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", ">i4", ">u8"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F", "sparse", "reversed"])
def test_arrays(dtype: str, order: str) -> None:
    table = np.array([[1, 2, 3], [1, 2, 4], [9, 9, 9], [1, 2, 3]], dtype)
    if order == "F":
        table = np.asfortranarray(table)
    elif order == "sparse":
        table = np.repeat(np.repeat(table, 2, axis=0), 3, axis=1)[::2, ::3]
    elif order == "reversed":
        table = table[::-1]
    trie = Trie.from_sequences(table)
    assert trie == Trie.from_sequences(table.tolist()) == Trie.from_sequences(list(table))
    assert trie.input_rows.tolist() == ([0, 2, 1] if order == "reversed" else [0, 1, 2])
    assert trie.find(table[0]) is not None


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("above", [4, 1000, 2**31])
def test_large_arrays(width: int, above: int) -> None:
    """Arrays that are used where they lie, large enough for several threads, against lists."""
    table = np.random.default_rng(width).integers(0, above, (40_000, width)).astype(np.int32)
    trie, rows = Trie.from_sequences(table), table.tolist()
    unique, first = np.unique(table, axis=0, return_index=True)
    assert trie.input_rows.tolist() == first.tolist()
    assert [leaf.tokens for leaf in trie] == unique.tolist()
    names = [str(row) for row in range(len(rows))]
    assert trie == Trie.from_sequences(rows) == Trie.from_sequences(table[::-1])
    assert Trie.from_sequences(table, names) == Trie.from_sequences(rows, names)
    table[:7], table[7, 0] = 0, 2**31 - 1
    with pytest.raises(VocabularyError, match=r"row 7, position 0: token id 2147483647 .* of 2147483647"):
        Trie.from_sequences(table, vocab=2**31 - 1)
    table[8, 0] = -1
    with pytest.raises(VocabularyError, match="row 8, position 0: token id -1"):
        Trie.from_sequences(table)


def test_any_iterable_of_iterables() -> None:
    rows = (tuple(row) for row in [[1, 2], [3]])
    assert Trie.from_sequences(rows) == Trie.from_sequences([range(1, 3), {3: None}])
    assert Trie.from_sequences([[np.int32(1), np.uint8(2)], [True]]) == Trie.from_sequences([[1, 2], [1]])


def test_types_of_answers() -> None:
    trie = Trie.from_sequences([[1, 2], [1, 3]], ["a", "b"])
    assert trie.allowed().dtype == trie.forced().dtype == np.int32
    assert trie.input_rows.dtype == np.int64
    assert trie.leaf(0) == Leaf(0, "a", [1, 2])
    assert trie.leaf(2) is trie.leaf(-1) is trie.leaf(2**32) is None
    assert trie.nbytes > 0
    assert repr(trie) == f"<tokentrie.Trie: 2 leaves, 4 nodes, {trie.nbytes} bytes>"
    match trie.leaf(1):
        case Leaf(index, name, tokens):
            assert (index, name, tokens) == (1, "b", [1, 3])
    assert len({Leaf(0, "a", [1]), Leaf(0, "a", [1]), Leaf(0, None, [1])}) == 2
    assert repr(Leaf(0, None, [1])) == "Leaf(index=0, name=None, tokens=[1])"


def test_names_belong_to_content() -> None:
    named, other = Trie.from_sequences([[1]], ["a"]), Trie.from_sequences([[1]], ["b"])
    plain = Trie.from_sequences([[1]])
    assert named != other
    assert named != plain
    assert plain != "trie"
    assert Trie.from_sequences([[1], [1]], ["b", "a"]) == named
    assert Trie.from_sequences([[1], [1]], ["b", "a"]).input_rows.tolist() == [0]


# What is wrong: rows, names, vocabulary, the error and what it must name.
REJECTED: dict[str, tuple[Any, Any, Any, type[Exception], str]] = {
    "nothing": ([], None, None, TrieError, "no leaf"),
    "no rows": (np.zeros((0, 3), np.int32), None, None, TrieError, "no leaf"),
    "empty row": ([[1], []], None, None, TrieError, "row 1 is empty"),
    "no columns": (np.zeros((3, 0), np.int64), None, None, TrieError, "row 0 is empty"),
    "too few names": ([[1], [2]], ["a"], None, TrieError, "1 names for 2 sequences"),
    "no names": ([[1], [2]], [], None, TrieError, "0 names for 2 sequences"),
    "negative": ([[1], [2, -3]], None, None, VocabularyError, "row 1, position 1: token id -3"),
    "too large": ([[2**31]], None, None, VocabularyError, "row 0, position 0: token id 2147483648"),
    "far too large": ([[2**100]], None, None, VocabularyError, str(2**100)),
    "negative in an array": (
        np.array([[1, 2], [3, -4]]),
        None,
        None,
        VocabularyError,
        "row 1, position 1: token id -4",
    ),
    "over int64": (np.array([[2**64 - 1]], np.uint64), None, None, VocabularyError, "token id 18446744073709551615"),
    "outside": ([[1], [2, 10]], None, 10, VocabularyError, "row 1, position 1: token id 10 .* of 10 tokens"),
    "array outside": (np.array([[1, 10]]), None, 10, VocabularyError, "row 0, position 1: token id 10"),
    "fraction": ([[1.0]], None, None, TypeError, "row 0, position 0: .*1.0 of type float"),
    "text": ([[1], ["2"]], None, None, TypeError, "row 1, position 0: .*'2' of type str"),
    "texts": (["12"], None, None, TypeError, "row 0, .*'12' of type str"),
    "bytes": ([b"12"], None, None, TypeError, "row 0, .*bytes"),
    "flat": ([1, 2], None, None, TypeError, "row 0, .*1 of type int"),
    "float array": (np.zeros((2, 2)), None, None, TypeError, "dtype float64 and shape"),
    "flat array": (np.array([1, 2]), None, None, TypeError, r"shape \[2\]"),
    "cube": (np.zeros((2, 2, 2), int), None, None, TypeError, r"shape \[2, 2, 2\]"),
    "rows of float": ([np.zeros(2)], None, None, TypeError, "row 0, .*float64"),
    "no iterable": (5, None, None, TypeError, "int"),
    "vocabulary": ([[1]], None, "ten", TypeError, "vocab must be a Vocab or the vocabulary size, not str"),
}


@pytest.mark.parametrize(("rows", "names", "vocab", "error", "says"), REJECTED.values(), ids=REJECTED)
def test_rejected(rows: Any, names: Any, vocab: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Trie.from_sequences(rows, names=names, vocab=vocab)


def test_an_iterator_that_raises() -> None:
    def rows() -> Any:
        yield [1]
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Trie.from_sequences(rows())


def test_a_prefix_that_leaves_the_trie_is_named() -> None:
    trie = Trie.from_sequences([[1, 2], [1, 3]])
    with pytest.raises(TokenNotAllowedError, match=r"token 4 at position 1 .* only \[2, 3\]"):
        trie.allowed([1, 4])
    with pytest.raises(TypeError, match="position 0: "):
        trie.find(["x"])  # type: ignore[list-item]
    assert [1, 4] not in trie
