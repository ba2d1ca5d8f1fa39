"""The same sets as grammars: in GBNF for llama.cpp, in Lark for llguidance."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

Parts = Sequence[str | Sequence[str]]
"""Text that stands there, and lists with one value that stands there."""


class GrammarError(ValueError):
    """A text that the grammar cannot spell."""


def gbnf(parts: Parts) -> str:
    """A grammar whose root rule is `root`.

    Raises:
        GrammarError: a text holds the character NUL, which ends a text in llama.cpp.
    """
    return _rule("root ::=", parts, gbnf_literal)


def lark(parts: Parts) -> str:
    """A grammar whose root rule is `start`."""
    return _rule("start:", parts, lark_literal)


def gbnf_literal(text: str) -> str:
    """A text in GBNF: printable ASCII stands for itself, all else is escaped by its code point."""
    if "\0" in text:
        raise GrammarError(f"GBNF cannot spell the character NUL in {text!r}")
    return f'"{"".join(map(_gbnf_character, text))}"'


def _gbnf_character(character: str) -> str:
    code = ord(character)
    if character in '"\\':
        return f"\\{character}"
    if 0x20 <= code < 0x7F:
        return character
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def lark_literal(text: str) -> str:
    """A text in llguidance's Lark, whose strings are those of JSON."""
    return json.dumps(text, ensure_ascii=False)


def _rule(head: str, parts: Parts, literal: Callable[[str], str]) -> str:
    """One rule that puts the parts in a row."""
    row = [literal(part) if isinstance(part, str) else " | ".join(map(literal, part)) for part in parts]
    if len(parts) > 1:
        row = [text if isinstance(part, str) else f"({text})" for text, part in zip(row, parts, strict=True)]
    return f"{head} {' '.join(row)}\n"
