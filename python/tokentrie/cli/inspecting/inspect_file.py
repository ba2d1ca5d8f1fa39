"""`tokentrie inspect` of a .ttrie file: counts by depth and some of its leaves, or one that is looked for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.inspecting import outline
from tokentrie.cli.inspecting.outline import Counts, Level, Node
from tokentrie.cli.loading import token_text

MAGIC = b"\x89ttrie\r\n"
SAMPLES = 10
# Leaves of a set whose branches are listed.
MANY = 200

Limits = tuple[int | None, int | None]
"""Levels and branches to draw; without one, all of a small trie and the beginnings of a large one."""


@dataclass(frozen=True)
class Summary:
    """Summary of a file."""

    path: Path
    trie: tokentrie.Trie
    counts: Counts
    leaves: list[tokentrie.sets.Leaf]
    """The one that was found, or some from all over the file."""
    root: Node | None
    """The drawing that was asked for."""


def is_file(path: Path) -> bool:
    """Returns True if the file begins as a .ttrie file does. A file that cannot be read gives False."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read(path: Path, vocab: tokentrie.Vocab | None, find: str | None, limits: Limits | None) -> Summary:
    """Reads and verifies all of it."""
    with console.working(f"reading {path}"):
        trie = tokentrie.Trie.open(path, vocab=vocab, verify=True)
        leaves = _samples(trie) if find is None else [_find(path, trie, find)]
        root = None if limits is None else Node.root(trie, *limits)
        return Summary(path, trie, Counts(trie), leaves, root)


def _samples(trie: tokentrie.Trie) -> list[tokentrie.sets.Leaf]:
    count = min(SAMPLES, len(trie))
    last = max(count - 1, 1)
    leaves = (trie.leaf(number * (len(trie) - 1) // last) for number in range(count))
    return [leaf for leaf in leaves if leaf]


def _find(path: Path, trie: tokentrie.Trie, what: str) -> tokentrie.sets.Leaf:
    """The leaf with these token ids, such as `12 84,7`; if there is none, the one with this name."""
    ids = what.replace(",", " ").split()
    found = None
    if ids and all(part.isascii() and part.isdecimal() and int(part) < 2**31 for part in ids):
        index = trie.find([int(part) for part in ids])
        found = None if index is None else trie.leaf(index)
    found = found or next((leaf for leaf in trie if leaf.name == what), None)
    if found is None:
        raise tokentrie.TokenTrieError(f"{path}: no leaf has the tokens or the name {what!r}")
    return found


def render(summary: Summary, vocab: tokentrie.Vocab | None) -> list[Text | Table | Tree]:
    """Returns the summary as text for people."""
    trie = summary.trie
    heading = Text().append(console.printable(summary.path.name), style="bold")
    if not trie.is_tree:
        heading.append(", where several sequences stand for one value and the canonical ones are shown")
    heading.append(
        f": {console.count(len(trie), 'leaf', 'leaves')}, {trie.nodes:,} nodes, "
        f"{summary.path.stat().st_size:,} bytes in the file, {summary.counts.forced_share()}"
    )
    parts: list[Text | Table | Tree] = [heading, _depths(summary.counts.levels)]
    if len(trie) > MANY:
        parts.append(_widest(trie, vocab))
    parts.append(_leaves(summary.leaves, vocab))
    if summary.root:
        tree = Tree(Text(console.printable(summary.path.name)), guide_style="dim")
        outline.grow(tree, summary.root, vocab)
        parts.append(tree)
    return parts


def _depths(levels: list[Level]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    columns = ["depth", "nodes", "leaves", "with a choice", "children each", "at most", "steps forced"]
    rows: list[list[str]] = []
    for depth, level in enumerate(levels):
        below = levels[depth + 1].nodes if depth + 1 < len(levels) else 0
        inner = level.nodes - level.leaves
        forced = f"{100 * level.forced_steps / level.steps:.0f} %" if level.steps else ""
        each = f"{below / level.nodes:.3g}" if inner or below else ""
        counts = (level.nodes, level.leaves, level.choices)
        rows.append([str(depth), *(f"{n:,}" for n in counts), each, f"{level.most_children:,}", forced])
    for at, column in enumerate(columns):
        # On a narrow terminal the headings wrap, and no number does.
        table.add_column(column, justify="right", min_width=max((len(row[at]) for row in rows), default=1))
    for row in rows:
        table.add_row(*row)
    return table


def _widest(trie: tokentrie.Trie, vocab: tokentrie.Vocab | None) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("widest branches after the first choice", overflow="fold")
    table.add_column("ways on", justify="right", no_wrap=True)
    table.add_column("leaves", justify="right", no_wrap=True)
    for node in outline.widest(trie):
        table.add_row(
            Text(outline.run_text(node, vocab), style="cyan"), f"{node.hidden_branches:,}", f"{node.leaves:,}"
        )
    return table


def _leaves(leaves: list[tokentrie.sets.Leaf], vocab: tokentrie.Vocab | None) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in ["leaf", "tokens", "name"] + ["text"] * bool(vocab):
        table.add_column(
            column, justify="right" if column == "leaf" else "left", no_wrap=column == "leaf", overflow="fold"
        )
    for leaf in leaves:
        row = [
            Text(f"{leaf.index:,}"),
            Text(f"[{' '.join(map(str, leaf.tokens))}]", style="cyan"),
            Text(console.printable("(no name)" if leaf.name is None else leaf.name), style="bold green"),
        ]
        if vocab:
            row.append(Text(" ".join(console.quote_bytes(vocab[token]) for token in leaf.tokens)))
        table.add_row(*row)
    return table


def document(summary: Summary, vocab: tokentrie.Vocab | None) -> dict[str, Any]:
    """Returns the summary as JSON values."""
    trie, counts = summary.trie, summary.counts
    tree = {"tree": outline.document(summary.root, vocab)} if summary.root else {}
    return {
        "file": str(summary.path),
        "vocabulary": len(vocab) if vocab else None,
        "leaves": len(trie),
        "nodes": trie.nodes,
        "is_tree": trie.is_tree,
        "bytes": summary.path.stat().st_size,
        "max_depth": counts.max_depth,
        "steps": counts.steps,
        "forced_steps": counts.forced_steps,
        "levels": [asdict(level) for level in counts.levels],
        "sample": [_leaf(leaf, vocab) for leaf in summary.leaves],
    } | tree


def _leaf(leaf: tokentrie.sets.Leaf, vocab: tokentrie.Vocab | None) -> dict[str, Any]:
    text = {"text": [token_text(vocab, token) for token in leaf.tokens]} if vocab else {}
    return {"index": leaf.index, "name": leaf.name, "tokens": leaf.tokens} | text
