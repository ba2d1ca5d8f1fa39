"""The report as a picture: tokens a second, by set and mode. Needs matplotlib, the package's extra `plot`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import tokentrie
from tokentrie.bench.engines import FREE, GRAMMAR, LLGUIDANCE, NO_SKIP, TRIE
from tokentrie.files import replacing

FORMATS = (".svg", ".png")
COLOURS = ("#1b6ca8", "#7fb4d9", "#8a8a8a", "#d1495b", "#edae49")
NAMES = {
    TRIE: "tokentrie, skipping ahead",
    NO_SKIP: "tokentrie, token by token",
    FREE: "no constraint",
    GRAMMAR: "llama.cpp grammar (GBNF)",
    LLGUIDANCE: "llguidance",
}
"""The modes in plain words, in the order of their bars."""
# Characters of a line of explanation.
LONGEST = 120


class PlotError(tokentrie.TokenTrieError):
    """Why there can be no picture."""


def check(path: Path) -> None:
    """Whether a picture can be drawn, before anything is measured for it.

    Raises:
        PlotError: matplotlib is missing.
    """
    try:
        import_module("matplotlib.figure")
    except ImportError as error:
        problem = f"--plot {path} needs matplotlib: pip install 'tokentrie[plot]', or pip install matplotlib"
        raise PlotError(problem) from error


def save(path: Path, report: dict[str, Any]) -> None:
    """Bars on a logarithmic scale with their figures; below, why some are missing. Appears whole or not at all."""
    figure_class = import_module("matplotlib.figure").Figure
    sets = [one["name"] for one in report["sets"]]
    rows = {(row["set"], row["mode"]): row for row in report["rows"]}
    modes = [mode for mode in NAMES if any(rate(rows.get((name, mode))) for name in sets)]
    missing = notes(report)
    figure = figure_class(figsize=(max(3 + 2.4 * len(sets), 7), 4.8 + 0.16 * len(missing)), layout="constrained")
    axes = figure.add_subplot()
    width = 0.84 / max(len(modes), 1)
    for number, mode in enumerate(modes):
        places = [place for place, name in enumerate(sets) if rate(rows.get((name, mode)))]
        heights = [rate(rows[sets[place], mode]) for place in places]
        offset = (number - (len(modes) - 1) / 2) * width
        colour = COLOURS[number % len(COLOURS)]
        bars = axes.bar([place + offset for place in places], heights, width, label=NAMES[mode], color=colour)
        axes.bar_label(bars, [short(height) for height in heights], padding=2, fontsize="x-small")
    axes.set_yscale("log")
    axes.margins(y=0.1)
    axes.yaxis.set_major_formatter(lambda value, _: short(value))
    axes.yaxis.set_minor_formatter(lambda _value, _: "")
    axes.set_ylabel("tokens a second, after the prompt")
    axes.set_xticks(range(len(sets)), [_escaped(name) for name in sets])
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.set_title(_title(report), fontsize="small", loc="left")
    explained = "\n".join(missing)
    if explained:
        axes.set_xlabel(_escaped(explained), fontsize="x-small", loc="left", labelpad=8)
    figure.legend(loc="outside lower center", ncols=3, fontsize="small", frameon=False)
    with replacing(path) as partial:
        figure.savefig(partial, format=path.suffix[1:].lower())


def notes(report: dict[str, Any]) -> list[str]:
    """For each bar that is missing or rests on less than was planned: which, and why."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in report["rows"]:
        reason = row["reason"] or ("" if rate(row) else row["reasons"].get("tokens_per_second"))
        if reason:
            what = "" if rate(row) else "no bar: "
            found.setdefault((row["mode"], what + str(reason)), []).append(row["set"])
    lines = []
    for (mode, why), names in found.items():
        where = "" if len(names) == len(report["sets"]) > 1 else f", {', '.join(names)}"
        line = f"{NAMES.get(mode, mode)}{where}: {why}"
        lines.append(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…")
    return lines


def rate(row: dict[str, Any] | None) -> float:
    """Tokens a second; 0 where there is no such figure."""
    return float(row["tokens_per_second"] or 0) if row else 0.0


def short(value: float) -> str:
    """A figure as it fits above a bar: 950, 1.2k, 35k, 1.1M."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.2g}{unit}" if value < 100 * size else f"{value / size:.0f}{unit}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _title(report: dict[str, Any]) -> str:
    machine = report["machine"]
    threads = machine["threads"]
    where = f"{machine['cpu'] or 'unknown processor'}, {threads} {'thread' if threads == 1 else 'threads'}"
    return _escaped(f"{Path(report['loaded']['path']).name} on {where}, {report['date'][:10]}")


def _escaped(text: str) -> str:
    """matplotlib takes dollar signs for formulas."""
    return text.replace("$", r"\$")
