"""Prints time and peak memory of builds in bounded memory, each in a process of its own, as Markdown. Linux only.

    python benches/memory.py [--quick]

The peak is what the process held at most beyond what it held before, what it mapped included. Temporary files go where
TMPDIR says: choose a folder on a disk.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tokentrie
from tokentrie import Trie

MEMORY = 64 << 20
CHUNK = 100_000


def status(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found
    return 1024 * int(found[1])


def peak_of(make: Callable[[], Any]) -> tuple[Any, int]:
    """Returns the result, and the bytes that this process held at most beyond what it held before."""
    Path("/proc/self/clear_refs").write_text("5")  # sets the peak back to what is held now
    before = status("VmRSS")
    made = make()
    return made, status("VmHWM") - before


def arrays(rows: int, ids: int) -> Iterator[np.ndarray]:
    """Rows of four random ids."""
    random = np.random.default_rng(5)
    for begin in range(0, rows, CHUNK):
        yield random.integers(0, ids, (min(CHUNK, rows - begin), 4), dtype=np.int32)


def lists(rows: int) -> Iterator[list[int]]:
    """The same as lists of int."""
    for table in arrays(rows, 256):
        yield from table.tolist()


def lines(folder: Path, rows: int) -> Path:
    """Names of some 17 bytes, in no order; all differ."""
    path = folder / "names.txt"
    with path.open("w", encoding="utf-8") as file:
        for row in range(rows):
            file.write(f"item {row * 7919 % 1009} {row:08x}\n")
    return path


def from_lines(path: Path, out: Path) -> Trie:
    """As `tokentrie build` reads them."""
    with path.open(encoding="utf-8") as file:
        vocab = tokentrie.Model().vocab
        return Trie.from_strings(vocab, (line[:-1] for line in file), memory=MEMORY, path=out)


CASES: dict[str, Callable[[Path, int], Trie]] = {
    "arrays, ids below 256, into memory": lambda _, n: Trie.from_sequences(arrays(n, 256), memory=MEMORY),
    "arrays, ids below 256, into a file": lambda out, n: Trie.from_sequences(arrays(n, 256), memory=MEMORY, path=out),
    "arrays, ids below 151,936, into memory": lambda _, n: Trie.from_sequences(arrays(n, 151_936), memory=MEMORY),
    "arrays, ids below 151,936, into a file": lambda out, n: Trie.from_sequences(
        arrays(n, 151_936), memory=MEMORY, path=out
    ),
    "lists of int, into a file": lambda out, n: Trie.from_sequences(lists(n), memory=MEMORY, path=out),
    "a file of lines, canonical, with names, into a file": lambda out, _: from_lines(out.with_name("names.txt"), out),
}


def one(case: str, folder: Path, rows: int) -> None:
    """Runs one case in a process of its own."""
    tokentrie.Model().vocab.tokenize("loaded")
    started = time.perf_counter()
    trie, peak = peak_of(lambda: CASES[case](folder / "set.ttrie", rows))
    seconds = time.perf_counter() - started
    file = folder / "set.ttrie"
    size = file.stat().st_size if file.exists() else trie.nbytes
    check(trie, case, rows)
    print(seconds, peak, size, len(trie))


def check(trie: Trie, case: str, rows: int) -> None:
    """Checks that the last portion is in the set."""
    if "lines" in case:
        assert len(trie) == rows
        return
    for table in arrays(rows, 151_936 if "151" in case else 256):
        last = table
    assert all(row in trie for row in last[::997].tolist())


def measured(case: str, folder: Path, rows: int) -> str:
    """A row of the table."""
    command = [sys.executable, __file__, "--one", case, str(folder), str(rows)]
    output: Any = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    seconds, peak, size, leaves = (float(number) for number in output)
    return (
        f"| {rows:,} rows from {case} | {seconds:.1f} | {peak / 1e6:.0f} | {peak / leaves:.1f} | {size / 1e6:.0f} "
        f"| {peak / size:.2f} |"
    )


def main() -> None:
    """All builds, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sets, to see that all runs")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        case, folder, rows = arguments.one
        one(case, Path(folder), int(rows))
        return
    count = 50_000 if arguments.quick else 10_000_000
    print(f"memory={MEMORY >> 20} MiB, load {os.getloadavg()[0]:.1f}\n")
    head = ["build", "s", "peak, MB", "peak, bytes a leaf", "finished, MB", "peak / finished"]
    print(f"| {' | '.join(head)} |\n| --- {'| ---: ' * (len(head) - 1)}|")
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            if "lines" in case:
                lines(Path(folder), count)
            print(measured(case, Path(folder), count), flush=True)


if __name__ == "__main__":
    main()
