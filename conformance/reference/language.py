"""Languages in a neutral notation, which every engine's own notation is written from.

A language is data (JSON): `{"text": "ab"}`, `{"chars": [[97, 122]]}` (ranges of code points), `{"seq": [...]}`,
`{"or": [...]}`, `{"repeat": X, "min": 0, "max": null}` and `{"rule": "name"}`. A grammar is `{"start": X, "rules":
{"name": X}}`. A text is in a language as a whole, in UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Language = dict[str, Any]
Rules = dict[str, Language]

SURROGATES = (0xD800, 0xDFFF)


def text(value: str) -> Language:
    return {"text": value}


def chars(*ranges: str) -> Language:
    """Characters: `chars("az", "_")` are those from a to z, and the underscore."""
    return {"chars": sorted([ord(one[0]), ord(one[-1])] for one in ranges)}


def seq(*parts: Language) -> Language:
    return {"seq": list(parts)}


def either(*parts: Language) -> Language:
    return {"or": list(parts)}


def repeat(part: Language, least: int = 0, most: int | None = None) -> Language:
    return {"repeat": part, "min": least, "max": most}


def rule(name: str) -> Language:
    return {"rule": name}


def parts_of(language: Language) -> list[Language]:
    """What it is made of."""
    if "repeat" in language:
        return [language["repeat"]]
    found: list[Language] = language.get("seq") or language.get("or") or []
    return found


def utf8_ranges(first: int, last: int) -> Iterator[list[tuple[int, int]]]:
    """Sequences of byte ranges that together spell the code points from `first` to `last`, and no others.

    A range is cut where the length of the encoding changes and where a byte would not run through all of its values.
    """
    if first <= SURROGATES[1] and last >= SURROGATES[0]:
        if first < SURROGATES[0]:
            yield from utf8_ranges(first, SURROGATES[0] - 1)
        if last > SURROGATES[1]:
            yield from utf8_ranges(SURROGATES[1] + 1, last)
        return
    for limit in (0x7F, 0x7FF, 0xFFFF):
        if first <= limit < last:
            yield from utf8_ranges(first, limit)
            yield from utf8_ranges(limit + 1, last)
            return
    for bits in (6, 12, 18):
        below = (1 << bits) - 1
        if last > 0x7F and first & ~below != last & ~below:
            if first & below:
                yield from utf8_ranges(first, first | below)
                yield from utf8_ranges((first | below) + 1, last)
                return
            if last & below != below:
                yield from utf8_ranges(first, (last & ~below) - 1)
                yield from utf8_ranges(last & ~below, last)
                return
    yield list(zip(chr(first).encode(), chr(last).encode(), strict=True))
