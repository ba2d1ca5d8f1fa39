"""A language in the notations that engines read: regular expressions, GBNF and Lark.

Every notation says the same as the neutral one. What a notation cannot say raises `NotationError`; an engine that has
no other way then refuses the case.
"""

from __future__ import annotations

from collections.abc import Callable

from .language import Language, Rules, parts_of

CLASS_SPECIALS = "\\]^-[/"
PATTERN_SPECIALS = '\\.+*?()|[]{}^$/-&~#"'


class NotationError(ValueError):
    """This notation cannot say it."""


def pattern(language: Language) -> str:
    """A regular expression that matches the texts as a whole, in what all common dialects share."""
    if "text" in language:
        return "".join(_escaped(one, PATTERN_SPECIALS) for one in language["text"])
    if "chars" in language:
        return _class(language["chars"], _pattern_member)
    if "seq" in language:
        return "".join(_grouped(part) for part in language["seq"])
    if "or" in language:
        return "|".join(pattern(part) for part in language["or"])
    if "repeat" in language:
        return _atom(language["repeat"]) + _count(language)
    raise NotationError("a regular expression has no rules")


def gbnf(start: Language, rules: Rules) -> str:
    """A grammar of llama.cpp; XGrammar reads the same."""
    lines = [f"root ::= {_gbnf(start)}"] + [f"{name} ::= {_gbnf(body)}" for name, body in rules.items()]
    return "\n".join(lines) + "\n"


def lark(start: Language, rules: Rules) -> str:
    """A Lark grammar. Whatever has no rules in it is one terminal: engines read those as regular expressions."""
    lines = [f"start: {_lark(start)}"] + [f"{name}: {_lark(body)}" for name, body in rules.items()]
    return "\n".join(lines) + "\n"


def has_rules(language: Language) -> bool:
    """Whether a rule is named somewhere in it."""
    return "rule" in language or any(map(has_rules, parts_of(language)))


def quoted(text: str) -> str:
    """A literal of GBNF and Lark."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(one, one) for one in text) + '"'


def _escaped(one: str, specials: str) -> str:
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return named.get(one) or ("\\" + one if one in specials else one)


def _class(ranges: list[list[int]], escaped: Callable[[str], str]) -> str:
    def member(first: int, last: int) -> str:
        low, high = escaped(chr(first)), escaped(chr(last))
        return low if first == last else f"{low}-{high}"

    return "[" + "".join(member(first, last) for first, last in ranges) + "]"


def _pattern_member(one: str) -> str:
    return _escaped(one, CLASS_SPECIALS)


def _gbnf_member(one: str) -> str:
    """llama.cpp knows few escapes by a sign, and all by a number."""
    return f"\\x{ord(one):02X}" if one in '\\]^-["' else _escaped(one, "")


def _count(language: Language) -> str:
    least, most = language["min"], language["max"]
    short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    if short:
        return short
    if least == most:
        return f"{{{least}}}"
    return f"{{{least},{'' if most is None else most}}}"


def _grouped(part: Language) -> str:
    return f"(?:{pattern(part)})" if "or" in part else pattern(part)


def _atom(part: Language) -> str:
    if "chars" in part or ("text" in part and len(part["text"]) == 1):
        return pattern(part)
    return f"(?:{pattern(part)})"


def _gbnf(language: Language) -> str:
    if "text" in language:
        return quoted(language["text"])
    if "chars" in language:
        return _class(language["chars"], _gbnf_member)
    return _composed(language, _gbnf)


def _lark(language: Language) -> str:
    if not has_rules(language):
        return quoted(language["text"]) if "text" in language else f"/{pattern(language)}/"
    return _composed(language, _lark)


def _composed(language: Language, written: Callable[[Language], str]) -> str:
    """What is made of parts, and names of rules: both notations write them alike."""
    if "seq" in language:
        return " ".join(f"({written(part)})" if "or" in part else written(part) for part in language["seq"])
    if "or" in language:
        return " | ".join(map(written, language["or"]))
    if "repeat" in language:
        return f"({written(language['repeat'])}){_count(language)}"
    return str(language["rule"])
