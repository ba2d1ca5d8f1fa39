"""JSON Schemas that hold what pydantic's own leave out: bounds of dates and Decimals, versions of UUIDs, and the like.

pydantic's schema of a type says less than the type itself checks. Checks that JSON Schema can express are added here;
the others are listed by name, so that nobody relies on them.
"""

from __future__ import annotations

import datetime
import functools
import importlib
import typing
from collections.abc import Callable
from typing import Any

#: A hint of a type that its schema does not hold: the JSON pointer of the schema, and the name of the hint.
Unheld = tuple[str, str]

#: Under this key a schema names such hints, until they are collected.
MARK = "x-unheld-hints"

#: Formats of pydantic's that mean the same as one of JSON Schema.
SAME = {f"uuid{version}": "uuid" for version in range(1, 9)}
#: Formats that have a pattern.
PATTERNS = {
    "base64": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    "base64url": "^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}==|[A-Za-z0-9_-]{3}=)?$",
}
#: Formats that the engine holds, and those that any text has.
KNOWN = {
    *("date", "time", "date-time", "duration", "uuid", "ipv4", "ipv6", "hostname", "email", "uri", "json-pointer"),
    *("path", "password", "binary"),
}

HOST = "(?:[a-z0-9]{1,30}\\.){0,3}[a-z]{2,12}(?::[1-9][0-9]{0,3})?"
PATH = "(?:/[A-Za-z0-9._~-]{0,40}){0,8}(?:\\?[A-Za-z0-9=&_-]{0,60})?(?:#[A-Za-z0-9_-]{0,40})?"
CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?"

Bounds = tuple[str, ...]
ORDER: Bounds = ("ge", "gt", "le", "lt")


def of_model(model: Any) -> dict[str, Any]:
    """The schema of a pydantic model, with what it leaves out under `MARK`."""
    made: dict[str, Any] = model.model_json_schema(schema_generator=_generator())
    return made


def of_adapter(adapter: Any, kind: Any = None) -> dict[str, Any]:
    """The schema of a TypeAdapter, of a type where that is known, with what it leaves out under `MARK`."""
    made: dict[str, Any] = adapter.json_schema(schema_generator=_generator())
    return _add_descriptions(made, kind)


def said_by(hint: Any) -> str | None:
    """Returns the description in `Annotated`: the first str, `Field(description=)` or `Doc` beside the type."""
    if typing.get_origin(hint) is not typing.Annotated:
        return None
    said = (
        note if isinstance(note, str) else getattr(note, "description", None) or getattr(note, "documentation", None)
        for note in typing.get_args(hint)[1:]
    )
    return next((text for text in said if isinstance(text, str) and text), None)


def _add_descriptions(made: Any, hint: Any) -> Any:
    """A schema of a type with the descriptions that pydantic passes over: a str in `Annotated`."""
    if not isinstance(made, dict):
        return made
    if typing.get_origin(hint) is typing.Annotated:
        made = _add_descriptions(made, typing.get_args(hint)[0])
        said = said_by(hint)
        return made | ({"description": said} if said is not None and "description" not in made else {})
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if getattr(origin, "_name", None) in ("Required", "NotRequired"):
        return _add_descriptions(made, arguments[0])
    inner: dict[str, Any] = {}
    if origin in (list, set, frozenset, tuple) and arguments and "items" in made:
        inner["items"] = _add_descriptions(made["items"], arguments[0])
    elif origin is dict and "additionalProperties" in made:
        inner["additionalProperties"] = _add_descriptions(made["additionalProperties"], arguments[1])
    for key, of in (("anyOf", made.get("anyOf")), ("prefixItems", made.get("prefixItems"))):
        if isinstance(of, list) and len(of) == len(arguments):
            inner[key] = [_add_descriptions(part, argument) for part, argument in zip(of, arguments, strict=True)]
    return made | inner


def _of_class(made: dict[str, Any], cls: Any) -> dict[str, Any]:
    """The schema of a class, its properties described as the hints of its fields say."""
    properties = made.get("properties")
    if not isinstance(properties, dict):
        return made
    described = {
        key: _add_descriptions(properties[key], hint) for key, hint in _hints_of(cls).items() if key in properties
    }
    return made | {"properties": properties | described}


def _hints_of(cls: Any) -> dict[str, Any]:
    """The hints of the fields of a class, by the names that its schema has for them."""
    fields = getattr(cls, "__pydantic_fields__", None)
    if fields is None:
        try:
            return typing.get_type_hints(cls, include_extras=True)
        except (NameError, TypeError):
            # Of types that are known where the class was made.
            return {}
    return {
        field.alias or name: typing.Annotated[(field.annotation, *field.metadata)]
        if field.metadata
        else field.annotation
        for name, field in fields.items()
    }


def collect_unheld(schema: Any) -> tuple[Any, list[Unheld]]:
    """A schema without the marks, and what they name."""
    found: list[Unheld] = []

    def plain(part: Any, at: str) -> Any:
        if isinstance(part, list):
            return [plain(one, f"{at}/{number}") for number, one in enumerate(part)]
        if not isinstance(part, dict):
            return part
        found.extend((at, hint) for hint in part.get(MARK, ()))
        rest = ((key, value) for key, value in part.items() if key != MARK)
        return {key: plain(value, f"{at}/{_escape(key)}") for key, value in rest}

    return plain(schema, ""), found


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


@functools.lru_cache(maxsize=1)
def _generator() -> Any:
    """A generator of schemas as pydantic's own, whose schemas hold more."""
    base: Any = importlib.import_module("pydantic.json_schema").GenerateJsonSchema

    class Generator(base):  # type: ignore[misc]
        def generate_inner(self, schema: Any) -> Any:
            made = super().generate_inner(schema)
            # A URL is a class around the schema that says what it may be.
            inner = schema.get("schema")
            if isinstance(inner, dict) and inner.get("type") in ("url", "multi-host-url"):
                schema = inner
            fill = FILLS.get(schema.get("type"))
            if fill is not None and "$ref" not in made:
                fill(made, schema)
            return _with_format(made)

        def dataclass_schema(self, schema: Any) -> Any:
            return _of_class(super().dataclass_schema(schema), schema.get("cls"))

        def typed_dict_schema(self, schema: Any) -> Any:
            return _of_class(super().typed_dict_schema(schema), schema.get("cls"))

        def model_schema(self, schema: Any) -> Any:
            return _of_class(super().model_schema(schema), schema.get("cls"))

    return Generator


def _mark(made: dict[str, Any], *hints: str) -> None:
    for hint in hints:
        if hint not in made.setdefault(MARK, []):
            made[MARK].append(hint)


def _unheld(made: dict[str, Any], schema: dict[str, Any], hints: Bounds) -> None:
    """Marks those of the hints that are given."""
    _mark(made, *(hint for hint in hints if schema.get(hint) is not None))


def _with_format(made: dict[str, Any]) -> dict[str, Any]:
    """Formats that only pydantic knows."""
    form = made.get("format")
    if made.get("type") == "string" and isinstance(form, str):
        if form in SAME:
            made["format"] = SAME[form]
        elif form in PATTERNS and "pattern" not in made:
            made["pattern"] = PATTERNS[form]
        elif form not in KNOWN and form not in PATTERNS:
            _mark(made, f"format {made.pop('format')}")
    if "contentSchema" in made:
        _mark(made, "contentSchema")
    return made


def _date(made: dict[str, Any], schema: dict[str, Any]) -> None:
    day = datetime.timedelta(days=1)
    low, high = datetime.date.min, datetime.date.max
    try:
        low = max(low, schema.get("ge") or low, schema["gt"] + day if schema.get("gt") else low)
        high = min(high, schema.get("le") or high, schema["lt"] - day if schema.get("lt") else high)
    except (OverflowError, TypeError):
        return _unheld(made, schema, ORDER)
    if low > high:
        return _unheld(made, schema, ORDER)
    if (low, high) != (datetime.date.min, datetime.date.max):
        made["pattern"] = f"^(?:{range_pattern(low.isoformat(), high.isoformat())})$"
    if schema.get("now_op"):
        _mark(made, f"in the {schema['now_op']}")
    return None


def range_pattern(low: str, high: str) -> str:
    """A pattern of the texts from one to another, which differ in digits alone and are of one length."""
    if not low:
        return ""
    if low[0] == high[0]:
        return low[0] + range_pattern(low[1:], high[1:])
    parts = [low[0] + _bound_pattern(low[1:], True), high[0] + _bound_pattern(high[1:], False)]
    if int(high[0]) - int(low[0]) > 1:
        parts.append(f"[{int(low[0]) + 1}-{int(high[0]) - 1}]" + _any(low[1:]))
    return f"(?:{'|'.join(parts)})"


def _bound_pattern(bound: str, is_low: bool) -> str:
    """Returns the rule of texts that are not below a bound, or not above it."""
    if not bound or not any(char.isdigit() for char in bound):
        return bound
    if not bound[0].isdigit():
        return bound[0] + _bound_pattern(bound[1:], is_low)
    digit = int(bound[0])
    parts = [bound[0] + _bound_pattern(bound[1:], is_low)]
    if digit != (9 if is_low else 0):
        rest = f"[{digit + 1}-9]" if is_low else f"[0-{digit - 1}]"
        parts.append(rest + _any(bound[1:]))
    return f"(?:{'|'.join(parts)})"


def _any(like: str) -> str:
    return "".join("[0-9]" if char.isdigit() else char for char in like)


def _moment(made: dict[str, Any], schema: dict[str, Any]) -> None:
    zone, whole = schema.get("tz_constraint"), schema["type"] == "datetime"
    if zone == "naive":
        # The formats of JSON Schema have an offset always.
        made.pop("format", None)
        day = "[1-9][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T" if whole else ""
        made["pattern"] = f"^{day}{CLOCK}$"
    elif isinstance(zone, int):
        _mark(made, "tz_constraint")
    _unheld(made, schema, ORDER)
    if schema.get("now_op"):
        _mark(made, f"in the {schema['now_op']}")


def _timedelta(made: dict[str, Any], schema: dict[str, Any]) -> None:
    # pydantic reads fewer durations than there are.
    made.pop("format", None)
    time = "T(?:[0-9]|1[0-9]|2[0-3])H(?:[1-5]?[0-9]M(?:[1-5]?[0-9]S)?)?"
    made["pattern"] = f"^-?P(?:[0-9]{{1,6}}D(?:{time})?|{time})$"
    _unheld(made, schema, ORDER)


def _decimal(made: dict[str, Any], schema: dict[str, Any]) -> None:
    """A number: pydantic would take a string, too, which no bound of JSON Schema holds."""
    number = next((part for part in made.pop("anyOf", ()) if part.get("type") in ("number", "integer")), None)
    if number is not None:
        made.update(number)
    digits, places = schema.get("max_digits"), schema.get("decimal_places")
    if places is not None and schema.get("multiple_of") is None:
        if places == 0:
            made["type"] = "integer"
        else:
            made["multipleOf"] = float(f"1e-{places}")
    if digits is not None and places is not None and digits >= places:
        limit = 10 ** (digits - places)
        if made.get("maximum", limit) >= limit and made.get("exclusiveMaximum", limit) >= limit:
            made.pop("maximum", None)
            made["exclusiveMaximum"] = limit
        if made.get("minimum", -limit) <= -limit and made.get("exclusiveMinimum", -limit) <= -limit:
            made.pop("minimum", None)
            made["exclusiveMinimum"] = -limit
    elif digits is not None:
        _mark(made, "max_digits")


def _uuid(made: dict[str, Any], schema: dict[str, Any]) -> None:
    version = schema.get("version")
    made["format"] = "uuid"
    if version is not None:
        part = "[0-9a-fA-F]"
        made["pattern"] = f"^{part}{{8}}-{part}{{4}}-{version}{part}{{3}}-[89abAB]{part}{{3}}-{part}{{12}}$"


def _url(made: dict[str, Any], schema: dict[str, Any]) -> None:
    schemes = schema.get("allowed_schemes")
    if schema["type"] != "url" or not schemes or not {*schemes} <= {"http", "https", "ws", "wss", "ftp"}:
        if schemes or schema.get("host_required"):
            _mark(made, "allowed_schemes")
        return
    # Hosts of URLs have rules of their own: these are hosts whatever they are.
    made.pop("format", None)
    made["pattern"] = f"^(?:{'|'.join(schemes)})://{HOST}{PATH}$"
    made.pop("minLength", None)
    if made.get("maxLength", 2083) >= 2083:
        made.pop("maxLength", None)


def _bytes(made: dict[str, Any], schema: dict[str, Any]) -> None:
    if schema.get("min_length") is not None or schema.get("max_length") is not None:
        # Bytes are counted, and a character of ASCII is one.
        made.setdefault("pattern", "^[ -~]*$")


def _str(made: dict[str, Any], schema: dict[str, Any]) -> None:
    if schema.get("strip_whitespace"):
        # Lengths and patterns count after it.
        if schema.get("pattern") is not None:
            _mark(made, "strip_whitespace")
        else:
            made["pattern"] = r"^(?:[^\s\x00-\x1f](?:[^\x00-\x1f]*[^\s\x00-\x1f])?)?$"
    if schema.get("ascii_only"):
        _mark(made, "ascii_only")


def _set(made: dict[str, Any], schema: dict[str, Any]) -> None:
    """Schema of a set: repeated items collapse into one, so they must differ only where items are counted."""
    items = made.get("items", {})
    few = isinstance(items, dict) and ("const" in items or len(items.get("enum", [None] * 6)) < 6)
    if not few and made.pop("uniqueItems", False) and (schema.get("min_length") or 0) > 1:
        _mark(made, "minItems of items that differ")


def _dict(made: dict[str, Any], schema: dict[str, Any]) -> None:
    keys = schema.get("keys_schema") or {"type": "any"}
    if keys.get("type") not in ("str", "any") and "propertyNames" not in made and "patternProperties" not in made:
        _mark(made, "the type of keys")


FILLS: dict[Any, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "date": _date,
    "datetime": _moment,
    "time": _moment,
    "timedelta": _timedelta,
    "decimal": _decimal,
    "uuid": _uuid,
    "url": _url,
    "multi-host-url": _url,
    "bytes": _bytes,
    "str": _str,
    "set": _set,
    "frozenset": _set,
    "dict": _dict,
}
