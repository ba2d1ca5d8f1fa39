"""The judge of documents: the package jsonschema over decimal numbers, so that nothing is rounded; and how documents
are written.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from decimal import Decimal, localcontext
from typing import Any

import jsonschema
from jsonschema import validators

DRAFTS = {
    "draft4": jsonschema.Draft4Validator,
    "draft6": jsonschema.Draft6Validator,
    "draft7": jsonschema.Draft7Validator,
    "draft2019-09": jsonschema.Draft201909Validator,
    "draft2020-12": jsonschema.Draft202012Validator,
}


def read(text: str | bytes) -> Any:
    """A document whose numbers are exact: whole ones are int, however they are written."""

    def number(text: str) -> int | Decimal:
        value = Decimal(text)
        return int(value) if value == value.to_integral_value() and value.adjusted() < 1000 else value

    return json.loads(text, parse_float=number)


def _is_integer(_checker: Any, value: Any) -> bool:
    whole = isinstance(value, Decimal) and value == value.to_integral_value()
    return whole or (isinstance(value, int) and not isinstance(value, bool))


def _multiple_of(_validator: Any, step: Any, value: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return
    with localcontext() as context:
        context.prec = 3000
        if Decimal(value) % Decimal(step) != 0:
            yield jsonschema.ValidationError(f"{value} is not a multiple of {step}")


def judge(schema: Any, draft: str = "draft2020-12", *, formats: bool = False) -> Any:
    """The validator of a schema as `read` gives it; formats are those of the latest draft."""
    base = DRAFTS[draft]
    types = base.TYPE_CHECKER.redefine("integer", _is_integer)
    exact = validators.extend(base, {"multipleOf": _multiple_of}, type_checker=types)
    return exact(schema, format_checker=DRAFTS["draft2020-12"].FORMAT_CHECKER if formats else None)


def written(value: Any) -> str:
    """JSON without white space; numbers without exponents and without zeros at the end."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{written(name)}:{written(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return json.dumps(value, ensure_ascii=False)


def escaped(value: Any, draw: random.Random) -> str:
    """The text of a value in which some characters of strings, of names too, are written as escapes."""

    def unit(code: int) -> str:
        digits = f"{code:04x}" if draw.random() < 0.5 else f"{code:04X}"
        return f"\\u{digits}"

    def char(plain: str) -> str:
        if draw.random() < 0.5:
            return json.dumps(plain, ensure_ascii=False)[1:-1]
        code = ord(plain)
        if code < 0x10000:
            return unit(code)
        return unit(0xD800 + (code - 0x10000 >> 10)) + unit(0xDC00 + (code - 0x10000 & 0x3FF))

    if isinstance(value, dict):
        return "{" + ",".join(f"{escaped(name, draw)}:{escaped(inner, draw)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(escaped(inner, draw) for inner in value) + "]"
    return f'"{"".join(map(char, value))}"' if isinstance(value, str) else written(value)


def orders(value: Any, each: int = 6) -> Iterator[Any]:
    """The same with its members in any order: a document has them in one."""
    if isinstance(value, dict):
        for names in itertools.permutations(value):
            members = [list(itertools.islice(orders(value[name]), each)) for name in names]
            for chosen in itertools.product(*members):
                yield dict(zip(names, chosen, strict=True))
    elif isinstance(value, list):
        for chosen in itertools.product(*[list(itertools.islice(orders(item), each)) for item in value]):
            yield list(chosen)
    else:
        yield value


def texts(value: Any, most: int = 200) -> list[str]:
    """The texts of a value, in several orders of its members."""
    return list(dict.fromkeys(written(one) for one in itertools.islice(orders(value), most)))
