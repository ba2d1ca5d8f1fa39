"""Prints the peak memory of each build beyond its input, each in a process of its own, as a Markdown table. Linux only.

    cargo build --release -p tokentrie-benches --example peak && python benches/peak.py [--quick]

Titles need TOKENTRIE_VOCAB_DIR; `peers/` says what is optional.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import peers
from bench_strings import COUNT, PATHS, titles
from memory import peak_of

ROOT = Path(__file__).resolve().parent.parent
RUST = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "examples" / "peak"


def finished(made: Any) -> str:
    """Bytes of the set, where it can tell them."""
    if isinstance(made, tuple):
        return str(sum(part.nbytes for part in made if hasattr(part, "nbytes")))
    size = getattr(made, "nbytes", None)
    return str(len(made.tobytes()) if size is None and hasattr(made, "tobytes") else size)


def measure(make: Any, given: Any) -> None:
    """Builds once in this process and prints the peak and the finished set."""
    made, peak = peak_of(lambda: make(given))
    print(peak, finished(made))


def one(who: str, count: int, path: str | None = None) -> None:
    """Runs one case in a process of its own: rows, or titles for the vocabulary in a GGUF."""
    if path is None:
        measure(peers.ROWS[who], peers.table(count))
    else:
        measure(peers.TITLES[who](Path(path)), titles()[:count])


def megabytes(text: str) -> str:
    return f"{int(text) / 1e6:.1f}" if text.isdecimal() else ""


def row(name: str, command: list[str]) -> None:
    """Runs a build in a process of its own and prints its row, or why it has none."""
    try:
        result = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        print(f"| {name} | not built: see the command above | |")
        return
    if result.returncode == 0:
        peak, size = result.stdout.split()[-2:]
        print(f"| {name} | {megabytes(peak)} | {megabytes(size)} |", flush=True)
    else:
        print(f"| {name} | {(result.stderr.strip() or 'failed').splitlines()[-1]} | |", flush=True)


def main() -> None:
    """All builds, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sets, to see that all runs")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        who, count, *path = arguments.one
        try:
            one(who, int(count), *path)
        except peers.MissingError as error:
            sys.exit(str(error))
        return
    again = [sys.executable, __file__, "--one"]
    rows, lines = (10_000, 1_000) if arguments.quick else (1_000_000, COUNT)
    print("| build | peak beyond the input, MB | finished, MB |\n| --- | ---: | ---: |")
    for who in [who for who in peers.ROWS if who != "one sort of u64"]:  # Rust's has no copies that pack the rows
        row(f"{rows:,} rows of four: {who}", [*again, who, str(rows)])
    for who in ("tokentrie", "fst", "sort"):
        row(f"{rows:,} rows of four, Rust: {who}", [str(RUST), who, str(rows)])
    if not PATHS:
        print("| titles: TOKENTRIE_VOCAB_DIR names no folder with GGUF files | | |")
    for path in PATHS:
        for who in peers.TITLES:
            row(f"{lines:,} titles, {path.stem}: {who}", [*again, who, str(lines), str(path)])


if __name__ == "__main__":
    main()
