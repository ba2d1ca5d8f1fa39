"""The report: rows, what they mean, and the machine, versions and command that they come from; a table of them."""

from __future__ import annotations

import datetime
import json
import mmap
import os
import platform
import re
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import tokentrie
from tokentrie.files import replacing

from benches.generations.engines import WHAT
from benches.generations.figures import DEFINITIONS
from benches.generations.measure import SetResult
from benches.record import cpu

VERSION = 3
COLUMNS = {
    "tokens/s": "tokens_per_second",
    "x GBNF": "tokens_per_second_vs_grammar",
    "x no constraint": "tokens_per_second_vs_unconstrained",
    "us a token, p50": "latency_per_token_us_p50",
    "p99": "latency_per_token_us_p99",
    "passes": "forward_passes_total",
    "branch points": "branch_points",
    "own us a token": "own_us_per_token_p50",
}
"""The columns of a record and their figures; `tools/docs_pictures.py` draws from them."""
CONTRACT = (
    "mode",
    "model",
    "skip_ratio_mean",
    "skip_ratio_std",
    "tokens_per_second",
    "tokens_per_second_vs_grammar",
    "token_accuracy",
    "forward_passes_saved",
    "forward_passes_total",
)
"""Header of a report of one mode on one set, for other programs."""


def document(
    measured: Sequence[SetResult],
    rows: list[dict[str, Any]],
    model: dict[str, Any],
    settings: dict[str, Any],
    warnings: list[str],
) -> dict[str, Any]:
    """Returns the whole report for JSON."""
    return {
        **_of_one(rows, settings["mode"]),
        "report": "benches.generations",
        "report_version": VERSION,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join(["python", "-m", "benches.generations", *sys.argv[1:]]),
        "machine": machine() | {"threads": model["n_threads"]},
        "versions": versions(),
        "loaded": model,
        "settings": settings,
        "sets": [_set(one) for one in measured],
        "modes": WHAT,
        "rows": rows,
        "definitions": DEFINITIONS,
        "warnings": warnings,
    }


def _of_one(rows: list[dict[str, Any]], mode: str) -> dict[str, Any]:
    """The row of the mode that was asked for, in short; nothing where there are several, or several sets."""
    asked = [row for row in rows if row["mode"] == mode]
    if len(asked) != 1:
        return {}
    return {name: asked[0][name] for name in (*CONTRACT, "status", "reason")}


def _set(measured: SetResult) -> dict[str, Any]:
    values, trie = measured.values, measured.values.trie
    return {
        "name": values.name,
        "values": values.size,
        "trie_nodes": trie.nodes if trie else None,
        "trie_bytes": trie.nbytes if trie else None,
        "max_bytes": values.max_bytes if values.parts else None,
        "prompts": [{"text": prompt.text, "tokens": len(prompt.tokens)} for prompt in measured.prompts],
    }


def machine() -> dict[str, Any]:
    """Returns the machine on which the figures depend; null where the system does not tell."""
    return {
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
    }


def versions() -> dict[str, str | None]:
    """Returns the versions of all participants; null where one cannot be read."""
    return {
        "tokentrie": tokentrie.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "llama-cpp-2": _llama(),
    }


def _llama() -> str | None:
    """As it stands in the paths that the compiler left in the native module."""
    spec = find_spec("tokentrie._native")
    if spec is None or spec.origin is None:
        return None
    with open(spec.origin, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = re.search(rb"llama-cpp-2-(\d+\.\d+\.\d+)", content)
        return found[1].decode() if found else None


def write(path: Path, report: dict[str, Any]) -> None:
    """The file appears whole or not at all."""
    with replacing(path) as partial:
        partial.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def record(report: dict[str, Any]) -> str:
    """Returns the rows as a table in Markdown, and below it a line for each row that is not as it should be."""
    machine, loaded = report["machine"], Path(report["loaded"]["path"]).name
    lines = [f"- machine: {machine['cpu']}, {machine['threads']} threads; model: {loaded}"]
    lines += [f"- command: `{report['command']}`", ""]
    lines += [f"| set | mode | {' | '.join(COLUMNS)} |", f"| --- | --- |{' ---: |' * len(COLUMNS)}"]
    for row in report["rows"]:
        if row["generations"]:
            cells = (_cell(row[figure]) for figure in COLUMNS.values())
            lines.append(f"| {row['set']} | {row['mode']} | {' | '.join(cells)} |")
    notes = [
        f"- {row['set']}, {row['mode']}: {row['status']}: {row['reason']}" for row in report["rows"] if row["reason"]
    ]
    return "\n".join([*lines, "", *notes])


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
