"""The pictures of the documentation, light and dark, from the records of `benches/record` and the tables of the pages.

    python tools/docs_pictures.py [FOLDER]    into docs/pictures unless a folder is named

Nothing in them depends on the day or the machine: the same records and the same matplotlib give the same bytes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Path2D

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "pictures"
STEPS = ROOT / "benches" / "record" / "2026-11-30.md"
GENERATIONS = ROOT / "benches" / "record" / "2026-11-30.md"
DECISIONS = ROOT / "docs" / "decisions.md"

SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",  # texts stay texts, in the reader's font
    "svg.hashsalt": "tokentrie",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.spines.bottom": False,
    "xtick.bottom": False,
    "ytick.left": False,
}
UNITS = {"ns": 1e-3, "us": 1.0, "ms": 1e3}
"""Units of records, in microseconds."""


class Ink(NamedTuple):
    """The colours of a picture: what is read, what stands behind, ours, and what others do."""

    text: str
    dim: str
    faint: str
    ours: str
    other: str


INKS = {
    "light": Ink("#1f2933", "#66727f", "#dfe4ea", "#3f51b5", "#b4bfca"),
    "dark": Ink("#e6eaee", "#9aa5b1", "#3a424b", "#8c9eff", "#5d6975"),
}


def rows(path: Path, heading: str) -> Iterator[list[str]]:
    """The cells of each line of the first table after a line that begins so, without its head."""
    after = path.read_text("utf-8").split(f"\n{heading}", 1)[1]
    table = re.search(r"^\|.*\n\| ?-.*\n((?:\|.*\n)+)", after, re.MULTILINE)
    assert table, f"{path.name}: no table after {heading!r}"
    for line in table[1].splitlines():
        yield [cell.strip() for cell in line.strip("|").split("|")]


def microseconds() -> dict[str, float]:
    """The least time of each case of the record of single steps."""
    found = re.findall(r"^\| (\S+) \| ([\d.]+) (ns|us|ms) \|", STEPS.read_text("utf-8"), re.MULTILINE)
    return {case: float(number) * UNITS[unit] for case, number, unit in found}


def shown(microseconds: float) -> str:
    """A time in the unit that suits it."""
    unit, size = next((each for each in reversed(UNITS.items()) if microseconds >= each[1]), ("ns", 1e-3))
    return f"{microseconds / size:,.3g} {unit.replace('us', 'µs')}"


def titled(figure: Figure, ink: Ink, title: str, under: str) -> None:
    """Adds a title to a picture, in a sentence, and the way it was measured."""
    at: dict[str, Any] = {"xycoords": "figure fraction", "textcoords": "offset points", "va": "baseline"}
    axes = figure.axes[0]
    axes.annotate(title, (0, 1), (8, -22), color=ink.text, fontsize=12.5, fontweight="bold", **at)
    axes.annotate(under, (0, 1), (8, -39), color=ink.dim, fontsize=9.5, **at)


def bare(figure: Figure, ink: Ink, box: tuple[float, float, float, float]) -> Axes:
    """Axes without lines, ticks or grid: what is drawn has its labels beside it."""
    axes = figure.add_axes(box)
    axes.patch.set_visible(False)
    axes.tick_params(colors=ink.dim, labelsize=9.5, pad=6)
    return axes


def beside(axes: Axes, words: str, at: tuple[float, float], points: float, **style: Any) -> None:
    """Writes words so many points right of a place; left of it where there are fewer than none."""
    side = "right" if points < 0 else "left"
    axes.annotate(words, at, (points, 0), textcoords="offset points", ha=side, va="center_baseline", **style)


def skipping(ink: Ink) -> Figure:
    """Forward passes of a generation with and without skipping over forced tokens."""
    figure = Figure(figsize=(8, 3.2))
    axes = bare(figure, ink, (0.13, 0.02, 0.68, 0.74))
    found = {(name, mode): cells for name, mode, *cells in rows(GENERATIONS, "## Tiny model")}
    sets = {"8-actions": "8 actions", "30-tools": "30 tools", "300-tools": "300 tools", "5000-titles": "5,000 titles"}
    for place, name in enumerate(sets):
        ours, every = found[name, "strict-trie-ffi"], found[name, "strict-trie-ffi, no skip"]
        passes, tokens = int(ours[5]), int(every[5])
        faster = float(ours[0].replace(",", "")) / float(every[0].replace(",", ""))
        axes.barh(place, 1, 0.5, color=ink.faint)
        axes.barh(place, passes / tokens, 0.5, color=ink.ours)
        beside(axes, f"{passes} of {tokens}", (passes / tokens, place), 6, color=ink.text)
        beside(axes, f"{faster:.1f} × as fast", (1, place), 10, color=ink.ours, fontweight="bold")
    axes.set(xlim=(0, 1), ylim=(3.5, -0.5), xticks=[], yticks=range(4))
    axes.set_yticklabels(sets.values(), color=ink.text)
    titled(
        figure,
        ink,
        "What must come costs no forward pass",
        "forward passes of a generation, of those that every token would take; tiny model, greedy",
    )
    return figure


def steps(ink: Ink) -> Figure:
    """Draws the cost of a step by the size of the vocabulary, and that of others at the size that was measured."""
    figure = Figure(figsize=(8, 4.6))
    axes = bare(figure, ink, (0.085, 0.08, 0.68, 0.76))
    took, sizes = microseconds(), [32_000, 128_256, 151_936, 262_144]
    lines = {
        "choosing among\nthe 8 legal logits": ("select/{}/kernel/8", sizes),
        "masking a\nwhole row in place": ("mask/{}/kernel/8", [sizes[0], *sizes[2:]]),
    }
    for words, (case, at) in lines.items():
        values = [took[case.format(size)] for size in at]
        axes.plot(at, values, "-o", color=ink.ours, markersize=4.5, linewidth=1.8)
        cost = f"{shown(values[0])} … {shown(values[-1])}" if "mask" in case else f"{shown(min(values))} at any size"
        beside(axes, f"tokentrie, {words}:\n{cost}", (at[-1], values[-1]), 9, color=ink.ours, fontsize=9.5)
    others = {
        "chain/151936/k=13/greedy/gbnf": "llama.cpp's grammar (GBNF)",
        "chain/151936/k=13/greedy/llguidance": "llguidance",
        "chain/151936/k=13/greedy/free": "no constraint",
        "chain/151936/k=13/greedy/trie": "tokentrie",
    }
    for case, words in others.items():
        colour = ink.ours if words == "tokentrie" else ink.dim
        axes.plot([sizes[2]], [took[case]], "D", color=colour, markersize=6)
        beside(axes, f"{words}, {shown(took[case])}", (sizes[2], took[case]), -9, color=colour, fontsize=9.5)
    axes.set(xscale="log", yscale="log", xlim=(28_000, 290_000), ylim=(2.5e-3, 5e4))
    axes.set_xticks(sizes[:2] + sizes[3:], ["32,000", "128,256", "262,144 tokens"], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_yticks([1e-2, 1, 1e2, 1e4], ["10 ns", "1 µs", "100 µs", "10 ms"], color=ink.dim)
    axes.set_yticks([], minor=True)
    axes.grid(axis="y", color=ink.faint, linewidth=0.8)
    axes.set_axisbelow(True)
    titled(
        figure,
        ink,
        "A step costs what is legal, not what there is",
        "one step by the size of the vocabulary; ◆ a step in a chain of llama.cpp, 30 tool names, 151,936 tokens",
    )
    return figure


def decisions(ink: Ink) -> Figure:
    """Draws the accuracy of decisions, by question and readout."""
    figure = Figure(figsize=(8, 4.4))
    axes = bare(figure, ink, (0.36, 0.01, 0.555, 0.845))
    table = list(rows(DECISIONS, "## Order, length and prior"))
    names = []
    for place, (question, text, _, _, label, *_) in enumerate(table):
        words = re.sub(r"`permute=(\d+)`.*", r"asked in \1 orders", question)
        names.append(f"request: one {words}" if words.startswith("of ") else words)
        share = float(text)
        axes.barh(place, 1, 0.56, color=ink.faint)
        axes.barh(place, share, 0.56, color=ink.ours)
        if label:
            axes.plot([float(label)] * 2, [place - 0.28, place + 0.28], color=ink.text, linewidth=2)
        beside(axes, f"{100 * share:.3g} %", (1, place), 8, color=ink.text)
    axes.set(xlim=(0, 1), ylim=(len(table) - 0.5, -0.5), xticks=[], yticks=range(len(table)))
    axes.set_yticklabels(names, color=ink.text)
    titled(
        figure,
        ink,
        "How often the tiny model decides right",
        "bar: the text of each option is read; line: a label before it; 200 held-out questions a row",
    )
    return figure


class Run(NamedTuple):
    """Tokens between two choices: the first was chosen, those after it are forced."""

    texts: list[str]
    then: list[Run]


def runs(trie: Any, vocab: Any, before: list[int]) -> list[Run]:
    """Returns the allowed tokens after some others, each with all that is forced behind it."""
    found = []
    for first in trie.allowed(before).tolist():
        ids = [*before, first]
        ids += trie.forced(ids).tolist()
        texts = [vocab.detokenize([token]) for token in ids[len(before) :]]
        found.append(Run(texts, [] if trie.find(ids) is not None else runs(trie, vocab, ids)))
    return found


LETTER = 0.602
"""Width of a letter of a monospaced font, relative to its size."""


def tools(ink: Ink) -> Figure:
    """A trie of 30 tools: where the model chooses, and what is forced."""
    import tokentrie

    sys.path.insert(0, str(ROOT))
    from benches.generations import sets

    vocab = tokentrie.Model().vocab
    trie = sets.built_in("30-tools", vocab).constraint
    width, size, column = 4.4, 9.5, 0.13
    figure = Figure(figsize=(width, 7))
    axes = bare(figure, ink, (0.02, 0.01, 0.96, 0.895))
    letter = LETTER * size / (72 * width * 0.96)  # of the width of the axes
    places = iter(range(len(trie)))

    def put(run: Run, left: float) -> float:
        """Draws a run and all behind it, and says at which height."""
        right = left + letter * (sum(map(len, run.texts)) + 0.6)
        heights = [put(each, right + column) for each in run.then] or [float(next(places))]
        here = sum(heights) / len(heights)
        for there in heights if run.then else []:
            curve(right, here, right + column - letter * 0.5, there)
        at = left
        for place, text in enumerate(run.texts):
            colour = ink.dim if place else ink.ours
            style: dict[str, Any] = {"family": "monospace", "fontsize": size, "va": "center_baseline"}
            axes.text(at, here, text.strip(), color=colour, fontweight="normal" if place else "bold", **style)
            at += letter * len(text.strip())
        return here

    def curve(left: float, low: float, right: float, high: float) -> None:
        bend = (left + right) / 2
        path = Path2D([(left, low), (bend, low), (bend, high), (right, high)], [1, 4, 4, 4])
        axes.add_patch(PathPatch(path, fill=False, edgecolor=ink.other, linewidth=1))

    first = runs(trie, vocab, [])
    heights = [put(run, column) for run in first]
    for there in heights:
        curve(0.0, sum(heights) / len(heights), column - letter * 0.5, there)
    axes.set(xlim=(0, 1), ylim=(len(trie) - 0.3, -0.7), xticks=[], yticks=[])
    titled(
        figure,
        ink,
        "30 tools: one choice, seldom two",
        "in colour: chosen; grey: must come, without a forward pass",
    )
    return figure


PICTURES: dict[str, Callable[[Ink], Figure]] = {
    "decisions": decisions,
    "skipping": skipping,
    "steps": steps,
    "tools": tools,
}


def draw(folder: Path) -> None:
    """Writes each picture in both inks."""
    with mpl.rc_context(SETTINGS):
        for name, picture in PICTURES.items():
            for kind, ink in INKS.items():
                path = folder / f"{name}-{kind}.svg"
                picture(ink).savefig(path, transparent=True, metadata={"Date": None})
                text = path.read_text("utf-8").replace("'DejaVu Sans'", "system-ui, 'DejaVu Sans'")
                path.write_text(re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE), "utf-8")
                print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else OUT)
