"""Compiled patterns of Python's `re` in the syntax of the crate `regex`, which `Regex` reads."""

from __future__ import annotations

import ast
import re
from typing import Any

from tokentrie._native import RuleError

#: Flags that mean the same there, and their letters.
LETTERS = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s", re.VERBOSE: "x"}

#: An escape that says a character by its number or name; any other.
ESCAPE = r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|0[0-7]{0,2}|[1-3][0-7]{2}|.)"
#: An escape; a class, whose first ] is one of its characters; a repetition and what follows; any other character.
PART = (
    rf"(?P<escape>{ESCAPE})|(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<repeated>(?:[*+?]|\{\d+(?:,\d*)?\}|\{,\d+\})[+?]?)|(?P<group>\(\?(?:[>#(]|P=))|."
)
#: Parts of a pattern, without and with comments, which match no group.
PARTS = {False: re.compile(PART, re.DOTALL), True: re.compile(rf"#[^\n]*|{PART}", re.DOTALL)}
#: One of a class. There digits are never the number of a group.
ITEM = re.compile(rf"\\[0-7]{{1,3}}|{ESCAPE}|.", re.DOTALL)

#: Syntax after a question mark, and its name.
GROUPS = {">": "an atomic group", "#": "a comment in brackets", "(": "a condition", "P=": "a back-reference"}


def translate(pattern: re.Pattern[Any]) -> str:
    """Returns the pattern for `Regex`, where the whole text matches."""
    text = pattern.pattern
    if not isinstance(text, str):
        raise RuleError(f"a pattern of bytes, {text!r}, cannot be held: a model writes text; compile a str")
    if pattern.flags & re.ASCII:
        raise RuleError(
            rf"{text!r}: re.ASCII cannot be held: leave it out, and write [0-9] for \d, [A-Za-z0-9_] for \w and "
            r"[ \t\n\r\f\v] for \s"
        )
    flags = "".join(letter for flag, letter in LETTERS.items() if pattern.flags & flag)
    body = PARTS[bool(pattern.flags & re.VERBOSE)].sub(lambda part: _part(part, text), text)
    return f"(?{flags}){body}" if flags else body


def _part(part: re.Match[str], pattern: str) -> str:
    """One part of a pattern where the two syntaxes differ."""
    found = part.group()
    if part["escape"]:
        return _escape(found)
    if part["group"]:
        raise RuleError(f"{pattern!r}: {GROUPS[found[2:]]}, {found}, cannot be held")
    if part["repeated"]:
        if found.endswith("+") and len(found) > 1:
            raise RuleError(
                f"{pattern!r}: {found} never gives back what it took, which cannot be held: write {found[:-1]}"
            )
        return found.replace("{,", "{0,")
    return _class(found) if part["class"] else found


def _escape(found: str) -> str:
    """An escape outside of classes."""
    if found == r"\Z":
        return r"\z"
    # To the crate \< and \> are the ends of words, and digits are not characters.
    return _one(found) if found[1] in "<>N" or (found[1].isdigit() and len(found) > 2) or found == r"\0" else found


def _class(found: str) -> str:
    """A class of characters: the crate knows operations, nested classes and, in verbose patterns, blanks inside one."""
    start = 2 if found[1] == "^" else 1
    # The first bracket is one of the characters.
    first = found[start : start + 1] if found[start] == "]" else ""
    items = [*first, *ITEM.findall(found[start + len(first) : -1])]
    done = [found[:start]]
    while items:
        done.append(_one(items.pop(0)))
        # A hyphen between two characters is a range, whatever they are; at the end it is a hyphen.
        if len(items) > 1 and items[0] == "-":
            done.append("-" + _one(items[1]))
            del items[:2]
    return "".join(done) + "]"


def _one(item: str) -> str:
    """One character so that it says nothing but itself to the crate; a class such as digits as it is."""
    if item[0] == "\\":
        if item[1] in "dDsSwW":
            return item
        if item[1].isalnum():
            return _number(ast.literal_eval(f"'{item}'"))
        item = item[1]
    if item.isspace():
        return _number(item)
    return "\\" + item if item in r"\[]^-&~#" else item


def _number(character: str) -> str:
    return rf"\x{{{ord(character):x}}}"
