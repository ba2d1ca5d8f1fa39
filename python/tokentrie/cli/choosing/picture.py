"""Probabilities as a picture: of the values after one prompt, or of the rows of a file by label. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.choosing.summary import BANDS, Tally
from tokentrie.files import replacing

FORMATS = (".svg", ".png")
# Bars of a picture, characters of a label.
MOST_BARS, LONGEST = 30, 40
COLOURS = ("#1b6ca8", "#5b9bc7", "#a9cbe3", "#d9534f")


class PlotError(tokentrie.TokenTrieError):
    """Error raised where no picture can be drawn."""


def check(path: Path) -> None:
    """Refuses a picture that cannot be drawn, before any work.

    Raises:
        BadParameter: no such format or folder.
        PlotError: matplotlib is missing.
    """
    if path.suffix.lower() not in FORMATS:
        raise typer.BadParameter(f"{path} must end in {' or '.join(FORMATS)}", param_hint="--plot")
    if not path.parent.is_dir():
        raise typer.BadParameter(f"no such folder: {path.parent}", param_hint="--plot")
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder", param_hint="--plot")
    try:
        import_module("matplotlib.figure")
    except ImportError as error:
        problem = f"--plot {path} needs matplotlib: pip install 'tokentrie[plot]', or pip install matplotlib"
        raise PlotError(problem) from error


def of_choice(path: Path, shares: Mapping[str, float], title: str) -> None:
    """A bar a value, best first."""
    shown = list(shares.items())[:MOST_BARS]
    figure, axes = _axes([name for name, _ in shown], title)
    bars = axes.barh(range(len(shown)), [share for _, share in shown], color=COLOURS[0])
    axes.bar_label(bars, [f"{share:.3g}" for _, share in shown], padding=3, fontsize="small")
    axes.set_xlim(0, 1.12)
    axes.set_xlabel("probability, of the values among each other")
    _save(figure, path, len(shares) - len(shown))


def of_rows(path: Path, tally: Tally, title: str) -> None:
    """A bar a label, of its rows; parts of it tell how probable the label was."""
    labels = tally.all_labels()
    shown = labels[:MOST_BARS]
    figure, axes = _axes(shown, title)
    lefts = [0] * len(shown)
    for band, least in enumerate(BANDS):
        counts = [tally.bands[label, band] for label in shown]
        name = f"probability {least} or more" if least else f"less than {BANDS[-2]}"
        axes.barh(range(len(shown)), counts, left=lefts, color=COLOURS[band], label=name)
        lefts = [left + count for left, count in zip(lefts, counts, strict=True)]
    longest = max(lefts, default=0) or 1
    for place, count in enumerate(lefts):
        axes.text(count + longest / 100, place, f"{count:,}", va="center", fontsize="small")
    axes.set_xlim(0, 1.12 * longest)
    axes.set_xlabel("rows")
    figure.legend(loc="outside lower center", ncols=2, fontsize="small", frameon=False)
    _save(figure, path, len(labels) - len(shown))


def _axes(labels: list[str], title: str) -> tuple[Any, Any]:
    figure = import_module("matplotlib.figure").Figure(
        figsize=(7, 1.6 + 0.3 * max(len(labels), 1)), layout="constrained"
    )
    axes = figure.add_subplot()
    axes.set_yticks(range(len(labels)), [_label(name) for name in labels])
    axes.invert_yaxis()
    axes.set_title(_label(title), fontsize="medium", loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _label(text: str) -> str:
    """As it is, on one line; matplotlib takes dollar signs for formulas."""
    text = console.printable(text)
    return (text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…").replace("$", r"\$")


def _save(figure: Any, path: Path, more: int) -> None:
    if more:
        figure.text(0.01, 0.005, f"{more:,} more are not shown", fontsize="x-small")
    with replacing(path) as partial:
        figure.savefig(partial, format=path.suffix[1:].lower())
