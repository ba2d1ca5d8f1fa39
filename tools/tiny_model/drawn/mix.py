"""Choice of the next document: the mixture of tasks, by the tokens seen and the room that is left in a row."""

from __future__ import annotations

from random import Random

from drawn import calls, corpus, decisions
from drawn.corpus import Document

GROWTH = 1_800_000
DRILL = 600_000
DECISIONS = 0.25


def draw(rng: Random, seen: int, room: int) -> Document:
    """From random weights on: one document that should fit; lists grow with the tokens `seen`, some are very long."""
    grown = 17 * max(0, seen - DRILL // 2) // GROWTH
    longest = 60 if seen > GROWTH and rng.random() < 0.04 else 3 + min(grown, 17)
    longest = min(longest, (room - 60) // 14)
    kind = rng.random()
    if longest < 3 or kind < 0.18:
        return small(rng, room)
    count = rng.randint(max(3, longest // 3), longest)
    branches = 12
    if rng.random() < (0.7 if seen < DRILL else 0.1):
        if kind < 0.55:
            return corpus.pair_document(rng, count, 2 * branches)
        if kind < 0.7:
            return corpus.word_document(rng, count, 2 * branches, drill=True)
        return corpus.drill_document(rng, count, 2 * branches)
    if kind < 0.34:
        return corpus.word_document(rng, count, branches)
    mode = "call" if kind > 0.82 else "name"
    return corpus.tool_document(rng, count, branches, kind=names(rng), dense=rng.random() < 0.4, mode=mode)


def small(rng: Random, room: int) -> Document:
    """A document without a list of tools."""
    branches = max(1, min(8, room // 28))
    pick = rng.random()
    if pick < 0.5:
        return corpus.fact_document(rng, branches)
    return corpus.review_document(rng, branches) if pick < 0.8 else corpus.repeat_document(rng, branches)


def names(rng: Random) -> str:
    """A kind of names."""
    return rng.choice(("opaque", "opaque", "misleading", "mixed", "matching"))


def chat(rng: Random, room: int) -> Document:
    """Once single words are chosen well: chats with calls, decisions, and enough of everything else to keep it."""
    if room < 200:
        return calls.bare_document(rng, 2) if rng.random() < 0.1 else small(rng, room)
    if rng.random() < DECISIONS:
        return decisions.document(rng, 8, 20 if room > 700 and rng.random() < 0.1 else 6)
    kind = rng.random()
    dense = rng.random() < 0.7
    if kind < 0.42:
        most = min(10, (room - 150) // 26)
        if most < 2:
            return small(rng, room)
        return calls.call_document(rng, rng.randint(1 if rng.random() < 0.1 else 2, most), 10, dense=dense)
    count = rng.randint(3, max(3, min(60 if rng.random() < 0.04 else 20, (room - 60) // 14)))
    if kind < 0.46:
        return small(rng, room)
    if kind < 0.49:
        return corpus.word_document(rng, count, 12)
    mode = "call" if kind > 0.95 else "name"
    return corpus.tool_document(rng, count, 12, kind=names(rng), dense=dense, mode=mode)
