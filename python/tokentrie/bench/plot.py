"""The report as a picture: tokens a second, by set and mode. Needs matplotlib, the package's extra `plot`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import tokentrie
from tokentrie.files import replacing

FORMATS = (".svg", ".png")
COLOURS = ("#1b6ca8", "#7fb4d9", "#8a8a8a", "#d1495b", "#edae49")


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
    """Bars on a logarithmic scale; what has no figure has no bar. The file appears whole or not at all."""
    figure_class = import_module("matplotlib.figure").Figure
    sets = [one["name"] for one in report["sets"]]
    rates = {(row["set"], row["mode"]): row["tokens_per_second"] for row in report["rows"] if row["tokens_per_second"]}
    modes = list(dict.fromkeys(mode for _, mode in rates))
    figure = figure_class(figsize=(2 + 2 * len(sets), 4.5), layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / max(len(modes), 1)
    for number, mode in enumerate(modes):
        places = [place for place, name in enumerate(sets) if (name, mode) in rates]
        heights = [rates[sets[place], mode] for place in places]
        offset = (number - (len(modes) - 1) / 2) * width
        axes.bar([place + offset for place in places], heights, width, label=mode, color=COLOURS[number % len(COLOURS)])
    axes.set_yscale("log")
    axes.set_ylabel("tokens a second, after the prompt")
    axes.set_xticks(range(len(sets)), sets)
    axes.set_title(f"{Path(report['model']['path']).name}, {report['machine']['cpu']}, {report['date'][:10]}")
    figure.legend(loc="outside lower center", ncols=len(COLOURS), fontsize="small", frameon=False)
    with replacing(path) as partial:
        figure.savefig(partial, format=path.suffix[1:].lower())
