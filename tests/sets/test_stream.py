"""Rows and texts that come one after the other, sorted in temporary files: the same sets as from lists."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokentrie import Trie, Vocab
from tokentrie.errors import OptionError, TrieError, VocabularyError

ROWS = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=5), min_size=1, max_size=60)
MEMORY = st.sampled_from([None, 0, 1, 400, 1 << 20])


def same(trie: Trie, expected: Trie) -> None:
    assert trie == expected
    assert trie.to_bytes() == expected.to_bytes()
    assert trie.input_rows.tolist() == expected.input_rows.tolist()


@given(ROWS, st.booleans(), MEMORY)
def test_sequences(tmp_path_factory: Any, rows: list[list[int]], named: bool, memory: int | None) -> None:
    names = [f"é{row * 7919 % 13}" for row in range(len(rows))] if named else None
    expected = Trie.from_sequences(rows, names)
    same(Trie.from_sequences(iter(rows), names and iter(names), memory=memory), expected)
    path = tmp_path_factory.getbasetemp() / "streamed.ttrie"
    opened = Trie.from_sequences((tuple(row) for row in rows), names, 6, memory=memory, path=path)
    assert opened == expected
    assert path.read_bytes() == expected.to_bytes(6)


@given(st.lists(st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), max_size=9), max_size=9), MEMORY)
def test_arrays_among_the_rows(parts: list[list[list[int]]], memory: int | None) -> None:
    parts.append([[1, 2, 3]])
    rows = [row for part in parts for row in part]
    arrays = (np.array(part, np.int64).reshape(-1, 3) for part in parts)
    same(
        Trie.from_sequences(arrays, map(str, range(len(rows))), memory=memory),
        Trie.from_sequences(rows, [*map(str, range(len(rows)))]),
    )
    for dtype in (np.int32, np.uint16):
        same(Trie.from_sequences(np.array(rows, dtype), memory=memory), Trie.from_sequences(rows))


def test_more_than_one_portion() -> None:
    table = np.random.default_rng(3).integers(0, 99, (200_000, 4), dtype=np.int32)
    expected = Trie.from_sequences(table)
    same(Trie.from_sequences(table, memory=1 << 20), expected)
    same(Trie.from_sequences(iter(table[:, ::-1][:, ::-1]), memory=1 << 22), expected)
    bad = table.astype(np.int64)
    bad[190_000, 2] = -5
    with pytest.raises(VocabularyError, match="row 190000, position 2: token id -5"):
        Trie.from_sequences(bad, memory=1 << 20)
    with pytest.raises(VocabularyError, match="row 3, position 1: token id 98 is outside the vocabulary of 98"):
        Trie.from_sequences(np.array([[1, 2]] * 3 + [[3, 98]]), vocab=98, memory=1)


@pytest.mark.parametrize("memory", [None, 0])
@pytest.mark.parametrize(
    ("rows", "names", "error", "says"),
    [
        ([], None, TrieError, "no leaf"),
        ([[1], [], [2]], None, TrieError, "row 1 is empty"),
        ([[1], [2, -3]], None, VocabularyError, "row 1, position 1: token id -3"),
        ([[1], [2]], ["a"], TrieError, "1 names for 2 sequences"),
        ([[1], [2]], ["a", "b", "c"], TrieError, "3 names for 2 sequences"),
        ([[1], [2]], ["a", 5], TypeError, "name 1 must be a str, not 5 of type int"),
        ([[1], [2]], "ab", TypeError, "not one str"),
        ([np.zeros((2, 2))], None, TypeError, "row 0, .*float64"),
    ],
)
def test_rejected(tmp_path: Path, rows: Any, names: Any, memory: Any, error: type[Exception], says: str) -> None:
    path = tmp_path / "set.ttrie"
    path.write_bytes(b"old")
    with pytest.raises(error, match=says):
        Trie.from_sequences(rows, names, memory=memory, path=path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_iterators_of_unequal_length() -> None:
    with pytest.raises(TrieError, match="1 names for 2 sequences"):
        Trie.from_sequences(iter([[1], [2]]), iter(["a"]))
    with pytest.raises(TrieError, match="2 names for 1 sequences"):
        Trie.from_sequences(iter([[1]]), iter(["a", "b", "c"]))


def test_an_iterator_that_raises(tmp_path: Path) -> None:
    def rows() -> Iterator[list[int]]:
        yield [1]
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        Trie.from_sequences(rows(), memory=0, path=tmp_path / "set.ttrie")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def vocab(tiny_path: Path) -> Vocab:
    return Vocab.from_gguf(tiny_path)


class TestTexts:
    @pytest.mark.model
    @pytest.mark.parametrize("memory", [None, 0, 1 << 14])
    @pytest.mark.parametrize("around", [("", ""), ('{"a": "', '"')])
    def test_the_same_as_from_a_list(
        self, tmp_path: Path, vocab: Vocab, memory: int | None, around: tuple[str, str]
    ) -> None:
        values = [f"open the {row * 7919 % 900} door é{row % 7}" for row in range(1000)]
        expected = Trie.from_strings(vocab, values, *around)
        same(Trie.from_strings(vocab, iter(values), *around, memory=memory), expected)
        trie = Trie.from_strings(vocab, iter(values), *around, memory=memory)
        assert trie.report == expected.report
        path = tmp_path / "set.ttrie"
        assert Trie.from_strings(vocab, values, *around, memory=memory, path=path) == expected
        assert path.read_bytes() == expected.to_bytes(vocab)

    @pytest.mark.model
    def test_errors_are_those_of_a_list(self, vocab: Vocab) -> None:
        # A part of 2^20 bytes and one more value.
        values = ["a"] * 30_000 + ["x" * (1 << 20), "the end"]
        for prefix, change in [("open th", "e door"), ("", "")]:
            texts = [*values, change]
            messages = []
            for given_as in (list, iter):
                with pytest.raises((VocabularyError, TrieError)) as error:
                    Trie.from_strings(vocab, given_as(texts), prefix)
                messages.append(str(error.value))
            assert messages[0] == messages[1]
        with pytest.raises(TypeError, match="value 1 must be a str, not 5 of type int"):
            Trie.from_strings(vocab, iter(["a", 5]))  # type: ignore[list-item]
        with pytest.raises(OptionError, match="memory and path go with"):
            Trie.from_strings(vocab, ["a"], heal=True, memory=5)


LIMITED = """
import resource, sys
import numpy as np
from tokentrie import Trie
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
table = np.random.default_rng(3).integers(0, 9999, (300_000, 4), dtype=np.int32)
try:
    Trie.from_sequences(iter([table]), memory=int(sys.argv[2]), path=sys.argv[3])
except OSError as error:
    print(error.errno, error.filename)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.parametrize(
    ("limit", "memory", "at"),
    [(100_000, 1 << 22, "runs"), (5_000_000, 1 << 22, "runs"), (5_000_000, 1 << 40, "set.ttrie")],
)
def test_a_full_disk(tmp_path: Path, limit: int, memory: int, at: str) -> None:
    # What the limit does to a write is what a full disk does.
    (tmp_path / "runs").mkdir()
    path = tmp_path / "set.ttrie"
    path.write_bytes(b"old")
    command = [sys.executable, "-c", LIMITED, str(limit), str(memory), str(path)]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "runs")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == ["27", str(tmp_path / at)], done.stderr
    assert path.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs", "set.ttrie"]
    assert not list((tmp_path / "runs").iterdir())


PEAK = """
import resource, sys
from tokentrie import Trie
rows = 1_000_000
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
sequences = ((row * 7919 % 997, row * 31 % 991, row) for row in range(rows))
trie = Trie.from_sequences(sequences, memory=8 << 20, path=sys.argv[1])
assert len(trie) == rows
print(peak() - before)
"""


def test_memory_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "set.ttrie"
    done = subprocess.run([sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 20 << 20 < 2 * path.stat().st_size, done.stdout
