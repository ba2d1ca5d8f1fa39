#!/usr/bin/env python3
"""Runs engines through the cases and writes what came of it: `python run.py CASES --engine NAME [...]`.

An engine is one of `engines/*`, or any program that speaks the protocol: `--engine "name=command and arguments"`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shlex
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from reference.vocabulary import name_of
from report import matrix, page, worse
from runner import CrashedError, HungError, Process, run

HERE = Path(__file__).parent


SHARED = ("__init__", "loop", "tokentrie_specs")


def engines() -> dict[str, Path]:
    """The adapters that are here, by name."""
    found = sorted(path for path in (HERE / "engines").iterdir() if path.suffix in (".py", ".ts"))
    return {path.stem: path for path in found if path.stem not in SHARED}


def command_of(name: str, python: str) -> list[str]:
    """How an engine is started."""
    if "=" in name:
        return shlex.split(name.partition("=")[2])
    program = engines().get(name)
    if program is None:
        raise SystemExit(f"run.py: there is no engine {name!r}; there are {', '.join(engines())}")
    if program.suffix == ".ts":
        return [os.environ.get("TOKENTRIE_BUN", "bun"), str(program)]
    return [sys.executable if name.startswith("tokentrie") else python, str(program)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path, help="a file of cases, or a folder of them")
    parser.add_argument("--engine", action="append", help="which one; may come several times (default: all)")
    parser.add_argument(
        "--python", default=sys.executable, help="the interpreter that has the other engines (default: this one)"
    )
    parser.add_argument("--gguf", type=Path, nargs="*", default=[], help="vocabularies that cases name by their hash")
    parser.add_argument("--seconds", type=float, default=10, help="for one answer (default 10)")
    parser.add_argument("--out", type=Path, help="a folder for results.json, matrix.md and index.html")
    parser.add_argument("--ratchet", type=Path, help="earlier results.json: what was right there must be")
    options = parser.parse_args()
    files = sorted(options.cases.glob("*.jsonl")) if options.cases.is_dir() else [options.cases]
    if not files or not files[0].is_file():
        raise SystemExit(f"run.py: there are no cases at {options.cases}; generate.py writes them")
    vocabularies = {name_of(path): path for path in options.gguf}
    before = json.loads(options.ratchet.read_text("utf-8")) if options.ratchet else {}
    results: dict[str, Any] = {}
    for name in options.engine or engines():
        process = Process(
            command_of(name, options.python), options.seconds, {"PYTHONPATH": f"{HERE}:{HERE / 'engines'}"}
        )
        try:
            found = run(process, files, vocabularies)
        except (CrashedError, HungError) as error:
            print(f"run.py: {name} does not start: {error}", file=sys.stderr)
            continue
        about = {"date": f"{datetime.date.today()}", "machine": f"{platform.system()} {platform.machine()}"}
        results[name.partition("=")[0]] = {**found, **about}
        print(f"{name}: {found['engine']} {found['version']}", file=sys.stderr, flush=True)
        if options.out:
            keep(options.out, results)
    print(matrix(results))
    if lost := worse(before, results, files):
        raise SystemExit("run.py: what was right is not any more:\n" + "\n".join(lost))
    if not results:
        raise SystemExit("run.py: no engine started")


def keep(folder: Path, results: dict[str, Any]) -> None:
    """Writes results in all forms."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n", "utf-8")
    (folder / "matrix.md").write_text(matrix(results), "utf-8")
    (folder / "index.html").write_text(page(results), "utf-8")


if __name__ == "__main__":
    main()
