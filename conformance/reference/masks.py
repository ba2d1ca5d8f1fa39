"""Which tokens of a vocabulary may come: all of whose bytes may, one after the other. A brute force over bytes."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol


class Bytewise(Protocol):
    """What tells what may come byte by byte: `Machine`, and what stands around it."""

    start: int

    def step(self, state: int, byte: int) -> int: ...

    def may_end(self, state: int) -> bool: ...


@dataclass
class Node:
    """A place in the tree of the bytes of all tokens."""

    children: dict[int, Node] = field(default_factory=dict)
    tokens: list[int] = field(default_factory=list)


class Tokens:
    """The tokens of a vocabulary that are text; of others (control tokens, ends of a generation) none may come."""

    def __init__(self, pieces: list[bytes], others: Iterable[int] = ()) -> None:
        self.pieces = pieces
        self.others = frozenset(others)
        self._root = Node()
        for token, piece in enumerate(pieces):
            if token in self.others or not piece:
                continue
            node = self._root
            for byte in piece:
                node = node.children.setdefault(byte, Node())
            node.tokens.append(token)

    def legal(self, machine: Bytewise, state: int) -> list[int]:
        """The tokens after which a text of the language can still be finished, ascending."""
        found: list[int] = []
        left = [(self._root, state)]
        while left:
            node, at = left.pop()
            for byte, child in node.children.items():
                if after := machine.step(at, byte):
                    found.extend(child.tokens)
                    left.append((child, after))
        return sorted(found)

    def spelled(self, data: bytes) -> list[int] | None:
        """A text in tokens, at each place the longest that fits; `None` where no token does."""
        tokens: list[int] = []
        at = 0
        while at < len(data):
            node, best = self._root, (0, -1)
            for length, byte in enumerate(data[at:], 1):
                following = node.children.get(byte)
                if following is None:
                    break
                node = following
                if node.tokens:
                    best = (length, node.tokens[0])
            if not best[0]:
                return None
            tokens.append(best[1])
            at += best[0]
        return tokens


def digest(tokens: Iterable[int]) -> str:
    """What stands for a long list of ids: SHA-256 of them, ascending, as 32-bit little-endian integers."""
    words = array("I", sorted(tokens))
    if words.itemsize != 4:
        raise RuntimeError("an unsigned int has not four bytes here")
    return hashlib.sha256(words.tobytes()).hexdigest()[:32]
