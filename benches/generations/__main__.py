"""Whole generations: the trie beside llama.cpp's grammars, llguidance and the free model, after the same prompts.

    python -m benches.generations [--mode MODE] [--set NAME] [--output REPORT.json]

Every output is checked before its time counts. Prints a table for a record; the report defines each of its figures.
llguidance takes part where the module was built with its feature: `./dev setup` with `--features llguidance`.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import tokentrie
from tokentrie.files import only_files

from benches.generations import figures, report, sets
from benches.generations.engines import ROWS
from benches.generations.measure import Plan, kept_memory, measure


def arguments(args: Sequence[str] | None) -> argparse.Namespace:
    """Parses and checks the options."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.generations",
        description=(__doc__ or "").partition("\n")[0],
        epilog="llguidance takes part where the module was built with its feature.",
    )
    parser.add_argument("--mode", choices=ROWS, default="all", help="what to measure; a grammar is the yardstick")
    parser.add_argument("--model", type=Path, help="a GGUF file; without it the tiny model")
    parser.add_argument("--prompt", type=Path, help='a file: one a line, .jsonl with "prompt"; without it examples')
    parser.add_argument("--token-tree-descriptor", dest="payload", type=Path, help="a payload: one set a descriptor")
    parser.add_argument("--set", dest="sets", action="append", choices=sets.NAMES, help="may be repeated; else all")
    parser.add_argument("--repeats", type=int, default=5, help="timed generations a prompt, set and mode")
    parser.add_argument("--budget", type=float, default=60, help="the most seconds of a mode on a set")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--output", "-o", type=Path, metavar="REPORT.json")
    given = parser.parse_args(args)
    if given.repeats < 1 or given.budget < 0:
        parser.error("--repeats is at least 1, --budget at least 0")
    if given.output and not given.output.parent.is_dir():
        parser.error(f"--output: no such folder: {given.output.parent}")
    return given


def main(args: Sequence[str] | None = None) -> int:
    """Measures, writes and prints; 1 if a row ended with an error."""
    given = arguments(args)
    started = time.perf_counter()
    model = tokentrie.Model(given.model, n_threads=given.threads)
    loaded = {
        "path": str(model.path),
        "bytes": model.path.stat().st_size,
        "vocabulary": len(model.vocab),
        "n_ctx": model.n_ctx,
        "n_threads": model.n_threads,
        "load_seconds": time.perf_counter() - started,
    }
    asked = None
    if given.prompt:
        asked = sets.prompts_of_file(given.prompt, only_files(given.prompt).read_bytes(), model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", tokentrie.errors.TokenTrieWarning)
        values = [*sets.of_payload(given.payload.read_bytes(), model.vocab)] if given.payload else []
        names = dict.fromkeys(given.sets or ([] if given.payload else sets.NAMES))
        values += [sets.built_in(name, model.vocab) for name in names]
    plan = Plan(given.repeats, given.budget, lambda name, mode: print(f"{name}: {mode}", file=sys.stderr))
    with kept_memory() as kept:
        measured = [
            measure(model, one, asked or sets.prompts_of_set(one.name, model), ROWS[given.mode], plan) for one in values
        ]
    rows = [row for one in measured for row in figures.rows(one, model.path.name)]
    settings = {"mode": given.mode, "repeats": given.repeats, "budget_seconds": given.budget, "memory_kept": kept}
    document = report.document(measured, rows, loaded, settings, [str(entry.message) for entry in caught])
    if given.output:
        report.write(given.output, document)
    print(report.record(document))
    return int(any(row["status"] == "error" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
