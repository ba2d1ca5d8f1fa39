"""`tokentrie inspect --svg`: small sets as a tree, large ones as a summary that a person can read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.inspecting.outline import Counts, Level, Node, run_text, widest
from tokentrie.files import replacing

# Leaves of a set that is drawn as a tree where nothing else is asked for.
SMALL = 200
# Pixels.
WIDTH, ROW, MARGIN, LABEL, VALUES = 760, 20, 16, 220, 220
# Depths that are shown one by one.
DEPTHS = 40
SIZE = re.compile(r'width="(\d+)" height="(\d+)"')
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2933}.mono{font-family:ui-monospace,Menlo,Consolas,monospace}"
    ".head{font-weight:600;font-size:15px}.dim{fill:#6b7885}.right{text-anchor:end}.bar{fill:#1b6ca8}.end{fill:#2f8f56}"
    "svg{background:#fff}@media(prefers-color-scheme:dark){svg{background:#16191d}text{fill:#e4e8ec}.dim{fill:#9aa5b1}}"
)


@dataclass(frozen=True)
class Part:
    """One set, and how much of it was asked for."""

    name: str
    trie: tokentrie.Trie
    counts: Counts
    depth: int | None = None
    max_children: int | None = None


def save(path: Path, parts: list[Part], vocab: tokentrie.Vocab | None) -> None:
    """The sets below each other. The file appears whole or not at all."""
    pictures = [picture(part, vocab) for part in parts]
    text = pictures[0] if len(pictures) == 1 else _below_each_other([part.name for part in parts], pictures)
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def picture(part: Part, vocab: tokentrie.Vocab | None) -> str:
    """A tree if it is small or its limits are given; otherwise a summary."""
    if len(part.trie) <= SMALL or part.depth is not None or part.max_children is not None:
        return part.trie.to_svg(vocab, part.depth, part.max_children)
    return _summary(part, vocab)


def _below_each_other(names: list[str], pictures: list[str]) -> str:
    y, wide, inside = MARGIN, 0, []
    for name, one in zip(names, pictures, strict=True):
        found = SIZE.search(one)
        assert found is not None
        inside.append(_text(MARGIN, y + 15, name or '""', "head"))
        inside.append(one.replace("<svg ", f'<svg y="{y + ROW}" ', 1))
        wide, y = max(wide, int(found[1])), y + ROW + int(found[2])
    return _document(max(wide, 2 * MARGIN + 9 * max(map(len, names))), y + MARGIN, ", ".join(names), inside)


def _summary(part: Part, vocab: tokentrie.Vocab | None) -> str:
    trie, levels, counts = part.trie, part.counts.levels, part.counts
    parts = [
        _text(MARGIN, 32, part.name or '""', "head"),
        _text(MARGIN, 54, f"{len(trie):,} leaves, {trie.nodes:,} nodes, at most {counts.max_depth} tokens"),
        _text(MARGIN, 74, counts.forced_share()),
    ]
    y = 112
    parts += [_text(MARGIN, y, "Depth", "head"), _legend(y)]
    most = max(level.nodes for level in levels)
    for depth, level in enumerate(levels[:DEPTHS]):
        y += ROW
        parts += _bars(y, depth, level, most)
    if len(levels) > DEPTHS:
        y += ROW
        parts.append(_text(MARGIN, y, f"… {len(levels) - DEPTHS} more", "dim"))
    y += 2 * ROW
    parts.append(_text(MARGIN, y, "Widest branches after the first choice", "head"))
    branches = widest(trie)
    top = max((node.hidden_branches for node in branches), default=1) or 1
    for node in branches:
        y += ROW
        parts += _branch(y, node, top, vocab)
    return _document(WIDTH, y + 2 * MARGIN, f"{part.name}: {len(trie):,} leaves", parts)


def _legend(y: int) -> str:
    end = _bar(LABEL + 90, y, 12, "end") + _text(LABEL + 108, y, "leaves that end there", "dim")
    return _bar(LABEL, y, 12, "bar") + _text(LABEL + 18, y, "nodes", "dim") + end


def _bars(y: int, depth: int, level: Level, most: int) -> list[str]:
    room = WIDTH - LABEL - VALUES - MARGIN
    name = "root" if depth == 0 else f"{depth} {'token' if depth == 1 else 'tokens'}"
    parts = [_text(MARGIN, y, name), _bar(LABEL, y, max(room * level.nodes // most, 1), "bar")]
    if level.leaves:
        parts.append(_bar(LABEL, y, max(room * level.leaves // most, 1), "end"))
    parts.append(_text(WIDTH - MARGIN, y, f"{level.nodes:,} / {level.leaves:,}", "right"))
    return parts


def _branch(y: int, node: Node, top: int, vocab: tokentrie.Vocab | None) -> list[str]:
    room = WIDTH - LABEL - VALUES - MARGIN
    ways = console.count(node.hidden_branches, "way on", "ways on")
    return [
        _text(MARGIN, y, _shorten(run_text(node, vocab), 26), "mono"),
        _bar(LABEL, y, max(room * node.hidden_branches // top, 1), "bar"),
        _text(WIDTH - MARGIN, y, f"{ways}, {console.count(node.leaves, 'leaf', 'leaves')}", "right"),
    ]


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _bar(x: int, y: int, width: int, kind: str) -> str:
    return f'<rect class="{kind}" x="{x}" y="{y - 11}" width="{width}" height="13"/>'


def _text(x: int, y: int, text: str, kind: str = "") -> str:
    shown = escape(console.printable(text), quote=False)
    return f'<text x="{x}" y="{y}" class="{kind}" xml:space="preserve">{shown}</text>'


def _document(width: int, height: int, title: str, parts: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    title = f"<title>{escape(console.printable(title), quote=False)}</title>"
    return "\n".join([f'{head} role="img">', title, f"<style>{STYLE}</style>", *parts, "</svg>\n"])
