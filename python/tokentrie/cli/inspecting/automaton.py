"""Finite automata as tables: counts of states and texts, and the display of bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import tokentrie

Ranges = list[tuple[int, int]]
"""Bytes, from the first to the last of each range."""
# States of an automaton that is looked at whole: a second.
MOST_STATES = 50_000
# Texts whose number JSON can hold exactly.
EXACT = 2**53


@dataclass(frozen=True)
class Automaton:
    """The table of a regular expression, as `Regex.table` gives it: state 0 is the start."""

    table: list[tuple[bool, list[tuple[Ranges, int]]]]

    @classmethod
    def from_regex(cls, regex: tokentrie.Regex) -> Automaton | None:
        """Returns the automaton of a rule; None if it is too large to be looked at."""
        return cls(regex.table()) if regex.states <= MOST_STATES else None

    def classes(self) -> int:
        """Returns the number of classes of legal bytes; no state tells the bytes of a class apart."""
        kinds: list[list[tuple[int, int]]] = [[] for _ in range(256)]
        for state, (_, ways) in enumerate(self.table):
            for ranges, after in ways:
                for byte in bytes_of(ranges):
                    kinds[byte].append((state, after))
        return len({tuple(kind) for kind in kinds if kind})

    def texts(self) -> int | None:
        """Returns the number of texts; None if it is infinite."""
        counts: dict[int, int | None] = {}
        below = [(0, False)]
        while below:
            state, done = below.pop()
            end, ways = self.table[state]
            if done:
                # In a minimal automaton every state leads to an end, so a state on a cycle means infinitely many texts.
                counts[state] = end + sum(_size(ranges) * (counts[after] or 0) for ranges, after in ways)
            elif state not in counts:
                counts[state] = None
                below.append((state, True))
                for _, after in ways:
                    if after not in counts:
                        below.append((after, False))
                    elif counts[after] is None:
                        return None
        return counts[0]

    def layers(self) -> list[list[int]]:
        """States by the length of the shortest text that leads to them."""
        depth = {0: 0}
        for state, (_, ways) in enumerate(self.table):
            for _, after in ways:
                depth.setdefault(after, depth[state] + 1)
        found: list[list[int]] = [[] for _ in range(max(depth.values()) + 1)]
        for state, layer in depth.items():
            found[layer].append(state)
        return found


def number(count: int) -> str:
    """A number of texts for people: exact while that can be read."""
    return f"{count:,}" if count < 10**15 else f"some 10^{math.log10(count):.0f}"


def bytes_of(ranges: Ranges) -> Iterator[int]:
    """Each byte of the ranges."""
    for first, last in ranges:
        yield from range(first, last + 1)


def ranges_text(ranges: Ranges) -> str:
    """Such as `0-9 A-Z _ \\x80-\\xBF`."""
    return " ".join(_range_text(*one) for one in ranges)


def _range_text(first: int, last: int) -> str:
    return f"{_byte(first)}-{_byte(last)}" if last - first > 1 else " ".join(map(_byte, range(first, last + 1)))


def _byte(byte: int) -> str:
    if byte in b" -":
        return f"'{chr(byte)}'"
    return chr(byte) if 0x21 <= byte <= 0x7E else f"\\x{byte:02X}"


def _size(ranges: Sequence[tuple[int, int]]) -> int:
    return sum(last - first + 1 for first, last in ranges)
