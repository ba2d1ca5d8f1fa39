"""The shape of a trie: counts over all of it, and as much of it as shall be drawn.

Leaves come in the order of their token sequences, so those below a node are neighbours: a node is a range of leaves
and a depth, and what the first and the last of a range have in common, all of them have.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import tokentrie


@dataclass(frozen=True)
class Limits:
    """How much to draw."""

    depth: int
    children: int

    SMALL = 200

    @classmethod
    def choose(cls, leaves: int, depth: int | None, children: int | None) -> Limits:
        """What was asked for; otherwise all of a small trie and the beginnings of a large one."""
        small = leaves <= cls.SMALL
        return cls(depth or (cls.SMALL if small else 2), children or (cls.SMALL if small else 12))


@dataclass(frozen=True)
class Node:
    """A run of tokens up to the next choice or the end of a leaf, and what follows. All but the first are forced."""

    run: list[int]
    terminal: bool
    name: str | None
    leaves: int
    children: list[Node]
    hidden_branches: int
    hidden_leaves: int


class Outline:
    """The leaves of a trie with what can be counted on them."""

    def __init__(self, trie: tokentrie.Trie) -> None:
        leaves = list(trie)
        self._tokens = [leaf.tokens for leaf in leaves]
        self._names = [leaf.name for leaf in leaves]
        self.max_depth = max(map(len, self._tokens))
        self.steps = sum(map(len, self._tokens))
        """Tokens of all leaves together."""
        self.forced_steps = self.steps - self._chosen_steps()
        """Those of which exactly one is allowed."""

    def _chosen_steps(self) -> int:
        """Steps with a choice.

        Two neighbours part, or one ends and the other goes on, at a node that has a choice, and every such node is met
        this way; all leaves below it have that choice. One pass, with a stack of the nodes that are still open.
        """
        total = 0
        open_nodes: list[tuple[int, int]] = []  # depth, and the first leaf below
        for index, common in enumerate(self._common_prefixes()):
            first = index
            while open_nodes and open_nodes[-1][0] > common:
                depth, first = open_nodes.pop()
                total += self._leaves_strictly_below(depth, first, index + 1)
            if common >= 0 and (not open_nodes or open_nodes[-1][0] < common):
                open_nodes.append((common, first))
        return total

    def _common_prefixes(self) -> Iterator[int]:
        """Of each leaf and the next one; -1 after the last."""
        yield from (_common_prefix(left, right) for left, right in pairwise(self._tokens))
        yield -1

    def _leaves_strictly_below(self, depth: int, low: int, high: int) -> int:
        return high - low - (len(self._tokens[low]) == depth)

    def draw(self, limits: Limits) -> Node:
        """The tree from the root down. The root's run is what all leaves begin with."""
        return self._node(0, len(self._tokens), 0, limits.depth, limits.children)

    def _node(self, low: int, high: int, depth: int, levels: int, most: int) -> Node:
        first = self._tokens[low]
        end = _common_prefix(first, self._tokens[high - 1])
        terminal = len(first) == end
        branches = self._branches(low + terminal, high, end)
        drawn = list(islice(branches, most)) if levels else []
        hidden = list(branches)
        return Node(
            run=first[depth:end],
            terminal=terminal,
            name=self._names[low] if terminal else None,
            leaves=high - low,
            children=[self._node(*branch, end, levels - 1, most) for branch in drawn],
            hidden_branches=len(hidden),
            hidden_leaves=sum(high - low for low, high in hidden),
        )

    def _branches(self, low: int, high: int, depth: int) -> Iterator[tuple[int, int]]:
        """Ranges of leaves that have the same token at this depth."""
        while low < high:
            end = bisect_right(self._tokens, self._tokens[low][depth], low, high, key=lambda tokens: tokens[depth])
            yield low, end
            low = end


def _common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    for depth, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return depth
    return min(len(left), len(right))
