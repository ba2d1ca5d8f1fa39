"""Compiled patterns of Python's `re` in the syntax of the crate `regex`, which `Regex` reads."""

from __future__ import annotations

import re
from typing import Any

from tokentrie._native import RuleError

#: Flags that mean the same there, and their letters.
LETTERS = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s", re.VERBOSE: "x"}

#: An escape; a class, whose first ] is one of its characters; a repetition and what follows; any other character.
PART = re.compile(
    r"(?P<escape>\\.)|(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<repeated>(?:[*+?]|\{\d+(?:,\d*)?\}|\{,\d+\})[+?]?)|(?P<group>\(\?(?:[>#(]|P=))|.",
    re.DOTALL,
)

#: What stands after a question mark, and how it is called.
GROUPS = {">": "an atomic group", "#": "a comment in brackets", "(": "a condition", "P=": "a back-reference"}


def translated(pattern: re.Pattern[Any]) -> str:
    """The same pattern for `Regex`: the whole text matches."""
    text = pattern.pattern
    if not isinstance(text, str):
        raise RuleError(f"a pattern of bytes, {text!r}, cannot be held: a model writes text; compile a str")
    if pattern.flags & re.ASCII:
        raise RuleError(
            rf"{text!r}: re.ASCII cannot be held: leave it out, and write [0-9] for \d, [A-Za-z0-9_] for \w and "
            r"[ \t\n\r\f\v] for \s"
        )
    verbose = bool(pattern.flags & re.VERBOSE)
    flags = "".join(letter for flag, letter in LETTERS.items() if pattern.flags & flag)
    body = PART.sub(lambda part: _part(part, text, verbose), text)
    return f"(?{flags}){body}" if flags else body


def _part(part: re.Match[str], pattern: str, verbose: bool) -> str:
    """One part of a pattern where the two syntaxes differ."""
    found = part.group()
    if part["escape"]:
        # To the crate these are the ends of words.
        return found[1] if found in (r"\<", r"\>") else {r"\Z": r"\z"}.get(found, found)
    if part["group"]:
        raise RuleError(f"{pattern!r}: {GROUPS[found[2:]]}, {found}, cannot be held")
    if part["repeated"]:
        if found.endswith("+") and len(found) > 1:
            raise RuleError(
                f"{pattern!r}: {found} never gives back what it took, which cannot be held: write {found[:-1]}"
            )
        return found.replace("{,", "{0,")
    return _class(found, pattern, verbose) if part["class"] else found


def _class(found: str, pattern: str, verbose: bool) -> str:
    """A class of characters without the operations that the crate knows inside one."""
    if "--" in found[1:-1].strip("-^"):
        raise RuleError(rf"{pattern!r}: {found} has a range with a hyphen at its end, which cannot be held: write \-")
    start = 2 if found[1] == "^" else 1
    done = [found[:start]]
    # The first bracket is one of the characters.
    if found[start] == "]":
        done.append(r"\]")
        start += 1
    for one in re.findall(r"\\.|.", found[start:-1], re.DOTALL):
        apart = one in "[&~" or (verbose and one in " #\t\n\r\f\v")
        done.append(_ESCAPED.get(one, "\\" + one) if apart else one)
    return "".join(done) + "]"


_ESCAPED = {"\t": r"\t", "\n": r"\n", "\r": r"\r", "\f": r"\f", "\v": r"\v"}
