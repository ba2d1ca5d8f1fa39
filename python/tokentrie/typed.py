"""Python's types as constraints: the texts of a type, and the value of each text.

Types that are one plain value, such as `int`, `Literal["a", "b"]`, an Enum or `int | None`, are written as text without
quotes. All others are documents in JSON.
"""

from __future__ import annotations

import datetime
import enum
import functools
import json
import math
import re
import typing
from typing import Any

from tokentrie import patterns, rules, schemas
from tokentrie._native import _Typed
from tokentrie.rules import Integer, JsonSchema, Number, OneOf, Regex, Rule, String

#: Values by their texts; or a rule, which reads its texts itself.
Part = dict[str, Any] | Rule


def constraint(kind: Any) -> Any:
    """A type as a constraint: a rule, or texts with what reads them."""
    try:
        # Types that say the same in another order are equal to Python.
        return _kept(kind, repr(kind))
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return _make_constraint(kind)


def _make_constraint(kind: Any, _said: str = "") -> Any:
    parts = _parts(kind)
    if parts is None:
        return JsonSchema(kind)
    if len(parts) == 1 and isinstance(parts[0], Rule):
        return parts[0]
    if all(isinstance(part, dict) for part in parts):
        return _Typed(kind, list(_together(kind, parts)))
    return _Typed(kind, OneOf(*(list(part) if isinstance(part, dict) else part for part in parts)))


_kept = functools.lru_cache(maxsize=256)(_make_constraint)


def read(kind: Any, text: str) -> Any:
    """The value that a text of a type stands for."""
    for part in _parts(kind) or ():
        if isinstance(part, Rule):
            if part.matches(text):
                return part.parse(text)
        elif text in part:
            return part[text]
    return text


def _together(kind: Any, parts: list[Any]) -> dict[str, Any]:
    """Values of several parts, each of which has a text of its own."""
    done: dict[str, Any] = {}
    for text, value in (item for part in parts for item in part.items()):
        if text in done and done[text] is not value:
            raise TypeError(_alike(kind, done[text], value))
        done[text] = value
    return done


def _alike(kind: Any, one: Any, other: Any) -> str:
    name = schemas.name(kind)
    return f"{name}: {one!r} and {other!r} are written alike: give JsonSchema({name}), where texts have quotes"


def _parts(kind: Any) -> list[Part] | None:
    """Returns the rules of a type that is one plain value, in the order in which texts are read; None for others."""
    try:
        if kind in PLAIN:
            return [PLAIN[kind]]
    except TypeError:  # not hashable
        pass
    if isinstance(kind, re.Pattern):
        return [Regex(patterns.translate(kind))]
    if isinstance(kind, enum.EnumMeta):
        return _value_parts(kind, list(kind))
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return _value_parts(kind, arguments)
    if origin is typing.Annotated:
        return _annotated_parts(arguments[0], arguments[1:])
    if schemas.is_union(origin):
        parts = [_parts(part) for part in arguments]
        return None if None in parts else [part for several in parts for part in several or ()]
    return None


PLAIN: dict[Any, Part] = {
    bool: {"true": True, "false": False},
    int: Integer(),
    float: Number(),
    str: String(quotes=True),
    type(None): {"null": None},
    datetime.date: rules.Date(),
    datetime.time: rules.Time(),
    datetime.datetime: rules.DateTime(),
}


def _value_parts(kind: Any, values: typing.Sequence[Any]) -> list[Part]:
    """The values of a Literal or an Enum by their texts: a str is its own, others are as JSON writes them."""
    done: dict[str, Any] = {}
    for value in values:
        said = schemas.to_json_value(value)
        if not isinstance(said, (str, int, float, type(None))):
            raise TypeError(f"{schemas.name(kind)}: invalid member {value!r}: expected a str, int, float, bool or None")
        text = str(said) if isinstance(said, str) else json.dumps(said)
        if text in done and done[text] is not value:
            raise TypeError(_alike(kind, done[text], value))
        done[text] = value
    return [done]


def _annotated_parts(kind: Any, notes: typing.Sequence[Any]) -> list[Part] | None:
    """Returns the rules of a type with notes: numbers may have bounds, other notes need a schema."""
    low, high, plain = None, None, True
    for note in notes:
        # pydantic's Field has the notes in it.
        inside = note.metadata if type(note).__name__ == "FieldInfo" else [note]
        for one in inside:
            if isinstance(one, str):
                continue
            ge, gt, le, lt = (getattr(one, key, None) for key in ("ge", "gt", "le", "lt"))
            named = type(one).__name__ in ("Ge", "Gt", "Le", "Lt", "Interval")
            if not named or kind not in (int, float) or not all(_bounds(kind, bound) for bound in (ge, gt, le, lt)):
                return None
            if kind is float and (gt, lt) != (None, None):
                return None  # a rule of numbers has its bounds among them
            plain = False
            low = _closest(max, low, ge, None if gt is None else gt + 1)
            high = _closest(min, high, le, None if lt is None else lt - 1)
    if plain:
        return _parts(kind)
    return [Integer(low, high) if kind is int else Number(low, high)]


def _bounds(kind: Any, bound: Any) -> bool:
    """Returns True if it is not a bound, or one that a rule of the kind has."""
    if bound is None or type(bound) is int:
        return True
    return kind is float and type(bound) is float and math.isfinite(bound)


def _closest(choose: Any, *bounds: float | None) -> Any:
    known = [bound for bound in bounds if bound is not None]
    return choose(known) if known else None
