"""Cost of sets of a million rows, beside numpy, marisa-trie and STATIC: to build, to step in, to open.

`./dev bench`; see `peers/` for what is optional. Every answer is checked before it is timed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import peers
import pytest
from peers import Table
from pytest_benchmark.fixture import BenchmarkFixture
from tokentrie import Trie
from tokentrie.sets import LiveSet

SIZES = [30, 1_000_000, 10_000_000]


def sized(rows: int, quick: bool) -> int:
    """Returns the number of rows to measure in place of so many."""
    return min(rows, max(30, rows // 100)) if quick else rows


@pytest.mark.benchmark(group="a million rows of four")
@pytest.mark.parametrize("who", peers.ROWS)
def test_build(benchmark: BenchmarkFixture, who: str, quick: bool) -> None:
    """The trie of a large table, beside others, and beside numpy that only sorts it or drops duplicates."""
    table = peers.table(sized(1_000_000, quick))
    make = peers.ROWS[who]
    try:
        made = make(table)
    except peers.MissingError as error:
        pytest.skip(f"{error}: its row is missing")
    leaves, rows = np.unique(peers.packed(table), return_index=True)
    assert np.array_equal(peers.LEAVES[who](made, table), leaves)
    if who == "tokentrie":
        assert np.array_equal(made.input_rows, rows)
    if who == "one sort of u64":
        # The least that any of them must do: the numbers are there already.
        make, table = np.sort, peers.packed(table)
    benchmark.pedantic(make, (table,), rounds=1 if quick else 5, warmup_rounds=0 if quick else 1)


@lru_cache(maxsize=1)
def steps(rows: int) -> Table:
    """Rows; about eight begin with the same two ids, however many there are."""
    return peers.table(rows, (-(-rows // 2048), 256, 8, 256) if rows > 2048 else (2, -(-rows // 16), 8, 256))


def of_trie(table: Table) -> Callable[[Table], list[int]]:
    trie = Trie.from_sequences(table)
    return lambda prefix: trie.allowed(prefix).tolist()


def of_marisa(table: Table) -> Callable[[Table], list[int]]:
    """As GENRE does: all keys below the prefix are listed."""
    trie = peers.marisa(table)

    def step(prefix: Table) -> list[int]:
        below = trie.keys(prefix.astype(">u4").tobytes())
        return sorted({int.from_bytes(key[8:12], "big") for key in below})

    return step


def of_numpy(table: Table) -> Callable[[Table], list[int]]:
    """Sorted packed rows, and where the prefix lies among them."""
    rows = np.unique(peers.packed(table))

    def step(prefix: Table) -> list[int]:
        first = int(prefix[0]) << 48 | int(prefix[1]) << 32
        low, high = np.searchsorted(rows, np.array([first, first + (1 << 32)], np.uint64))
        return np.unique(rows[low:high] >> np.uint64(16) & np.uint64(0xFFFF)).tolist()

    return step


def of_dicts(table: Table) -> Callable[[Table], list[int]]:
    """Dicts in dicts, as in many home-made decoders."""
    root: dict[int, Any] = {}
    for row in table.tolist():
        at = root
        for token in row:
            at = at.setdefault(token, {})
    return lambda prefix: sorted(root[int(prefix[0])][int(prefix[1])])


STEPS: dict[str, Callable[[Table], Callable[[Table], list[int]]]] = {
    "tokentrie": of_trie,
    "numpy searchsorted": of_numpy,
    "marisa-trie": of_marisa,
    "dicts": of_dicts,
}


@pytest.mark.parametrize("who", STEPS)
@pytest.mark.parametrize("rows", SIZES)
def test_step(benchmark: BenchmarkFixture, rows: int, who: str, quick: bool) -> None:
    """The tokens after a prefix of two, of about eight leaves: what one step asks of a set of any size."""
    benchmark.group = f"tokens after two, {rows} rows"
    if who == "dicts" and rows > 1_000_000:
        pytest.skip("dicts of ten million rows need over 5 GB")
    table = steps(sized(rows, quick))
    try:
        step = STEPS[who](table)
    except peers.MissingError as error:
        pytest.skip(f"{error}: its row is missing")
    prefixes = list(np.ascontiguousarray(table[:: max(1, len(table) // 30), :2]))
    for prefix in prefixes:
        below = table[(table[:, 0] == prefix[0]) & (table[:, 1] == prefix[1])]
        assert step(prefix) == np.unique(below[:, 2]).tolist()
    turn = iter(prefixes * 1_000_000)
    benchmark.pedantic(lambda: step(next(turn)), rounds=10 if quick else 2000, iterations=10, warmup_rounds=5)


@pytest.mark.benchmark(group="a thousand changes in a million rows")
@pytest.mark.parametrize("who", ["LiveSet", "a trie made anew"])
def test_change(benchmark: BenchmarkFixture, who: str, quick: bool) -> None:
    """Half of them come and half go, again and again; beside set operations that make another trie."""
    table = np.unique(peers.table(sized(1_000_000, quick)), axis=0)
    going, coming = table[:500].tolist(), (table[:500] + np.array([0, 0, 0, 60_000], table.dtype)).tolist()
    trie, live = Trie.from_sequences(table), LiveSet(Trie.from_sequences(table))
    sets = [(coming, going), (going, coming)]
    turn = iter(sets * 1_000_000)

    def change() -> Trie:
        come, go = next(turn)
        if who == "LiveSet":
            live.change(add=come, remove=go)
            return trie
        return (trie - Trie.from_sequences(going)) | Trie.from_sequences(coming)

    expected = (trie - Trie.from_sequences(going)) | Trie.from_sequences(coming)
    made = change()
    assert (live.to_trie() if who == "LiveSet" else made) == expected
    benchmark.pedantic(change, rounds=2 if quick else 20, warmup_rounds=1)


def save_trie(table: Table, path: Path) -> None:
    Trie.from_sequences(table).save(path)


def find_trie(opened: Any, row: Table) -> bool:
    return row in opened


def save_marisa(table: Table, path: Path) -> None:
    peers.marisa(table).save(str(path))


def open_marisa(path: Path) -> Any:
    return peers.package("marisa_trie").BinaryTrie().mmap(str(path))


def find_marisa(opened: Any, row: Table) -> bool:
    return row.astype(">u4").tobytes() in opened


def save_numpy(table: Table, path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.unique(peers.packed(table)))


def open_numpy(path: Path) -> Any:
    return np.load(path, mmap_mode="r")


def find_numpy(opened: Any, row: Table) -> bool:
    wanted = int(peers.packed(row.reshape(1, 4))[0])
    at = bisect_left(opened, wanted)
    return bool(at < len(opened) and opened[at] == wanted)


FILES: dict[str, tuple[Callable[[Table, Path], None], Callable[[Path], Any], Callable[[Any, Table], bool]]] = {
    "tokentrie": (save_trie, Trie.open, find_trie),
    "marisa-trie": (save_marisa, open_marisa, find_marisa),
    "numpy": (save_numpy, open_numpy, find_numpy),
}


@pytest.mark.parametrize("who", FILES)
@pytest.mark.parametrize("rows", SIZES)
def test_open(benchmark: BenchmarkFixture, rows: int, who: str, quick: bool, tmp_path: Path) -> None:
    """A file that is in memory becomes a set, by being mapped; numpy maps the sorted rows."""
    benchmark.group = f"open, {rows} rows"
    save, open_file, find = FILES[who]
    table, path = peers.table(sized(rows, quick)), tmp_path / "set"
    try:
        save(table, path)
        opened = open_file(path)
    except peers.MissingError as error:
        pytest.skip(f"{error}: its row is missing")
    asked = table[:: max(1, len(table) // 500)]
    # Rows of mixed halves: most are in no set but the largest.
    asked = np.concatenate([asked, np.hstack([asked[:, :2], asked[::-1, 2:]])])
    known = np.isin(peers.packed(asked), peers.packed(table))
    assert [find(opened, row) for row in asked] == known.tolist()
    benchmark.extra_info["bytes"] = path.stat().st_size
    del opened
    benchmark.pedantic(open_file, (path,), rounds=10 if quick else 500, warmup_rounds=5)
