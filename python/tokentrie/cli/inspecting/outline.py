"""The shape of a trie: counts over all of it, and as much of it as shall be drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rich.text import Text
from rich.tree import Tree

import tokentrie
from tokentrie._native import _levels, _outline
from tokentrie.cli import console
from tokentrie.cli.loading import token_text


@dataclass(frozen=True)
class Level:
    """One depth of a trie. A step counts once for each leaf that it leads to."""

    nodes: int
    leaves: int
    choices: int
    most_children: int
    steps: int
    forced_steps: int


class Counts:
    """Counts over a trie. One pass over its nodes."""

    def __init__(self, trie: tokentrie.Trie) -> None:
        self.levels = [Level(*row) for row in _levels(trie)]
        self.max_depth = len(self.levels) - 1
        self.steps = sum(level.steps for level in self.levels)
        """Tokens of all leaves together."""
        self.forced_steps = sum(level.forced_steps for level in self.levels)
        """Nodes at which exactly one token is allowed."""

    def forced_share(self) -> str:
        """Returns the share of forced tokens as text for people."""
        share = round(100 * self.forced_steps / self.steps)
        return f"{self.forced_steps:,} of {self.steps:,} steps forced ({share} %)"


@dataclass(frozen=True)
class Node:
    """A run of tokens up to the next choice or the end of a leaf, and what follows. All but the first are forced."""

    run: list[int]
    terminal: bool
    name: str | None
    leaves: int
    hidden_branches: int
    hidden_leaves: int
    children: list[Node] = field(default_factory=list)

    @classmethod
    def root(cls, trie: tokentrie.Trie, depth: int | None, max_children: int | None) -> Node:
        """The tree to draw. Without limits all of a small trie and the beginnings of a large one."""
        nodes: list[Node] = []
        for parent, run, terminal, name, leaves, branches, below in _outline(trie, depth, max_children):
            nodes.append(cls(run, terminal, name, leaves, branches, below))
            if parent is not None:
                nodes[parent].children.append(nodes[-1])
        return nodes[0]


def widest(trie: tokentrie.Trie, most: int = 10) -> list[Node]:
    """The branches after the first choice that have the most ways to go on, and of those the largest."""
    children = Node.root(trie, 1, 2**31 - 1).children
    return sorted(children, key=lambda node: (-node.hidden_branches, -node.leaves))[:most]


def run_text(node: Node, vocab: tokentrie.Vocab | None) -> str:
    """The tokens of a run: their text, or their numbers without a vocabulary."""
    if vocab:
        return " ".join(console.quote_bytes(vocab[token]) for token in node.run)
    return f"[{' '.join(map(str, node.run))}]"


def grow(tree: Tree, root: Node, vocab: tokentrie.Vocab | None) -> None:
    """Draws what is below the root; the root itself only where it holds something."""
    below = [(tree, root)]
    if root.run or root.name is not None:
        below = [(tree.add(_label(root, vocab)), root)]
    while below:
        branch, node = below.pop()
        below += [(branch.add(_label(child, vocab)), child) for child in node.children]
        if node.hidden_branches:
            more = f"… {node.hidden_branches:,} more" if node.children else "…"
            branch.add(Text(f"{more} ({console.count(node.hidden_leaves, 'leaf', 'leaves')})", style="dim"))


def _label(node: Node, vocab: tokentrie.Vocab | None) -> Text:
    """One line: ids, their text, the value that ends here, and the leaves below where there is more than one."""
    label = Text().append(f"[{' '.join(map(str, node.run))}]", style="cyan")
    if vocab:
        label.append(" " + " ".join(console.quote_bytes(vocab[token]) for token in node.run))
    if node.terminal:
        label.append(" → ", style="dim")
        label.append(console.printable(node.name or "(no name)"), style="bold green")
    if node.leaves > 1:
        label.append(f" ({console.count(node.leaves, 'leaf', 'leaves')})")
    return label


def document(node: Node, vocab: tokentrie.Vocab | None) -> dict[str, Any]:
    """Returns the counts as JSON values."""
    text = {"text": [token_text(vocab, token) for token in node.run]} if vocab else {}
    return (
        {"tokens": node.run}
        | text
        | {
            "terminal": node.terminal,
            "name": node.name,
            "leaves": node.leaves,
            "children": [document(child, vocab) for child in node.children],
            "hidden": {"branches": node.hidden_branches, "leaves": node.hidden_leaves},
        }
    )
