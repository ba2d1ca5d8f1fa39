"""Invented and real-looking tool names and argument values, split by a hash into training and held-out ones."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from random import Random

from drawn.lexicon import NAME_PARTS, NEUTRAL, OBJECTS, VERBS

SINGLE = "b c d f g h j k l m n p r s t v w z"
ONSETS = f"{SINGLE} br ch cl dr fl gr kr pl pr qu sh sk sl st th tr vr".split()
VOWELS = ["a", "e", "i", "o", "u", "ai", "ea", "oo", "ou"]
CODAS = ["", "", "", "b", "d", "k", "l", "m", "n", "r", "s", "t", "x", "nd", "rt", "sk"]
ALPHANUMERIC = "abcdefghijklmnopqrstuvwxyz0123456789"


def is_held_out(kind: str, text: str) -> bool:
    """True for the one eighth of all strings that training never sees; needs no list, only the string."""
    return zlib.crc32(f"{kind}:{text.lower()}".encode()) % 8 == 0


def _until(make: Callable[[], str], kind: str, held_out: bool) -> str:
    while is_held_out(kind, text := make()) != held_out:
        pass
    return text


def syllables(rng: Random, count: int) -> str:
    """A pronounceable word that means nothing."""
    return "".join(rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS) for _ in range(count))


def style(rng: Random, words: list[str]) -> str:
    """Join words the way tool names are written."""
    kind = rng.random()
    if kind < 0.5:
        return "_".join(words)
    if kind < 0.65:
        return "_".join(words).upper()
    if kind < 0.8:
        return words[0] + "".join(w.capitalize() for w in words[1:])
    if kind < 0.9:
        return "".join(w.capitalize() for w in words)
    return rng.choice("-.").join(words)


def _opaque(rng: Random) -> str:
    kind = rng.random()
    if kind < 0.4:
        return style(rng, rng.sample(NEUTRAL, rng.choice((1, 2, 2))))
    if kind < 0.65:
        return style(rng, [syllables(rng, rng.choice((1, 2))) for _ in range(rng.choice((1, 2)))])
    if kind < 0.75:
        return "".join(rng.choice(ALPHANUMERIC) for _ in range(rng.randint(2, 5)))
    if kind < 0.85:
        return style(rng, [rng.choice(NAME_PARTS), rng.choice(NEUTRAL)])
    return style(rng, rng.sample(NAME_PARTS, rng.choice((1, 2))))


def opaque_name(rng: Random, held_out: bool) -> str:
    """A name that says nothing about what the tool does."""
    return _until(lambda: _opaque(rng), "name", held_out)


def _real(rng: Random, verb: int, thing: int) -> str:
    words = f"{rng.choice(VERBS[verb])} {rng.choice(OBJECTS[thing])}".split()
    if rng.random() < 0.2:
        words.insert(rng.choice((0, len(words))), rng.choice(NAME_PARTS))
    return style(rng, words)


def matching_name(rng: Random, verb: int, thing: int, held_out: bool) -> str:
    """A name made of synonyms of what the tool does, as real tools have."""
    return _until(lambda: _real(rng, verb, thing), "name", held_out)


def misleading_name(rng: Random, held_out: bool) -> str:
    """A real-looking name of some other action: only the description in the list is to be believed."""
    return _until(lambda: _real(rng, rng.randrange(len(VERBS)), rng.randrange(len(OBJECTS))), "name", held_out)


def _value(rng: Random, key: str) -> str:
    if key in ("city", "name"):
        return syllables(rng, rng.choice((1, 2, 2, 3))).capitalize()
    if key == "file":
        stem = rng.choice(NEUTRAL) if rng.random() < 0.5 else syllables(rng, 2)
        return f"{stem}.{rng.choice(('txt', 'csv', 'pdf', 'png', 'md'))}"
    if key == "number":
        return str(rng.randrange(10 ** rng.randint(1, 5)))
    if key == "code":
        return f"{rng.choice('ABCDEFGHKLMNPRSTXZ')}{rng.randrange(10, 1000)}"
    if key == "time":
        clock, hour = f"{rng.randrange(24)}:{rng.randrange(60):02}", f"{rng.randint(1, 12)}{rng.choice(('am', 'pm'))}"
        return rng.choice((clock, hour))
    words = [rng.choice(NEUTRAL) if rng.random() < 0.7 else syllables(rng, 2) for _ in range(rng.choice((1, 1, 2)))]
    return " ".join(words)


def value(rng: Random, key: str, held_out: bool) -> str:
    """A value for an argument key."""
    return _until(lambda: _value(rng, key), "value", held_out)
