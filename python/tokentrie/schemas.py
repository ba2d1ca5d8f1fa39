"""Schemas and Python types for `JsonSchema`, and their objects from JSON."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import importlib
import json
import re
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any

from tokentrie import hints, patterns
from tokentrie._native import Constraint, RuleError, _Typed

PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
    list: {"type": "array"},
    dict: {"type": "object"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    datetime.datetime: {"type": "string", "format": "date-time"},
}


def read(schema: Any) -> tuple[str, Any, list[hints.Unheld]]:
    """The schema in JSON, the class or adapter that reads its documents, if there is one, and its hints that no schema
    holds."""
    if isinstance(schema, str):
        return schema, None, []
    if isinstance(schema, bytes):
        try:
            return schema.decode("utf-8"), None, []
        except UnicodeDecodeError as error:
            raise RuleError(f"invalid schema: expected UTF-8: {error}") from error
    if isinstance(schema, (dict, bool)):
        return _dump(schema), None, []
    if _is_adapter(schema) or is_type(schema):
        said, unheld = hints.collect_unheld(_marked_schema(schema))
        return _dump(said), schema, unheld
    raise TypeError(
        "schema must be a dict, a bool, JSON as str or bytes, a type such as list[int], a pydantic model, a dataclass "
        f"or a TypedDict, or a TypeAdapter, not of type {type(schema).__name__}"
    )


#: Returns True for a type: a class, `list[int]`, `Literal["a"]`, `int | None`, a compiled pattern, an adapter.
is_type = _Typed.is_type


def _is_adapter(given: Any) -> bool:
    """Returns True if it has a schema and reads documents, as pydantic's `TypeAdapter`; a class does not."""
    return not isinstance(given, type) and hasattr(given, "validate_json") and hasattr(given, "json_schema")


def is_class(given: Any) -> bool:
    """Returns True for a class that describes an object: a pydantic model, a dataclass, a TypedDict."""
    is_model = isinstance(given, type) and callable(getattr(given, "model_json_schema", None))
    return is_model or _is_dataclass(given) or _is_typed_dict(given)


def of_type(kind: Any) -> dict[str, Any]:
    """The schema of a type."""
    schema: dict[str, Any] = hints.collect_unheld(_marked_schema(kind))[0]
    return schema


def of_adapter(adapter: Any) -> dict[str, Any]:
    """The schema of a pydantic adapter."""
    schema: dict[str, Any] = hints.collect_unheld(_marked_schema(adapter))[0]
    return schema


def _marked_schema(kind: Any) -> dict[str, Any]:
    """The schema of a type or an adapter, with the hints that it does not hold."""
    if _is_adapter(kind):
        return _close_schema(hints.of_adapter(kind))
    if isinstance(kind, re.Pattern):
        return {"type": "string", "pattern": f"^(?:{patterns.translate(kind)})$"}
    if isinstance(kind, type) and issubclass(kind, Constraint):
        raise TypeError(f"{kind.__name__} is the class of rules and no rule: give {kind.__name__}(...)")
    if callable(getattr(kind, "model_json_schema", None)):
        return _close_schema(hints.of_model(kind))
    adapter = _adapter(kind)
    if not adapter:
        return of_plain(kind)
    try:
        return _close_schema(hints.of_adapter(adapter, kind))
    except Exception as error:
        raise TypeError(f"{name(kind)}: pydantic makes no schema of it: {error}") from error


def readable(hint: Any) -> Any:
    """A hint as pydantic reads it: before Python 3.12 it takes the TypedDict of typing_extensions alone."""
    if sys.version_info >= (3, 12):
        return hint
    if _is_typed_dict(hint) and type(hint).__module__ == "typing":
        return _typed_dict(hint)
    arguments = typing.get_args(hint)
    read = tuple(readable(part) for part in arguments)
    if all(one is other for one, other in zip(arguments, read, strict=True)):
        return hint
    if typing.get_origin(hint) is types.UnionType:
        return typing.Union[read]  # noqa: UP007
    if typing.get_origin(hint) is typing.Annotated:
        return typing.Annotated[(read[0], *hint.__metadata__)]
    return hint.copy_with(read) if hasattr(hint, "copy_with") else typing.get_origin(hint)[read]


def _made_typed_dict(cls: Any) -> Any:
    """Returns the TypedDict as one of typing_extensions."""
    extensions = importlib.import_module("typing_extensions")
    optional, required = extensions.NotRequired, extensions.Required
    annotated = typing.get_type_hints(cls, include_extras=True)
    fields = {
        key: (required if key in cls.__required_keys__ else optional)[_strip_required(readable(hint))]
        for key, hint in annotated.items()
    }
    made = extensions.TypedDict(cls.__name__, fields)
    made.__doc__ = cls.__doc__
    return made


_typed_dict = functools.lru_cache(maxsize=64)(_made_typed_dict)


def _strip_required(hint: Any) -> Any:
    """A hint without `Required` and `NotRequired` around it."""
    origin = typing.get_origin(hint)
    return typing.get_args(hint)[0] if getattr(origin, "_name", None) in ("Required", "NotRequired") else hint


def normal(text: str) -> str:
    """Returns the JSON as Python writes it."""
    return json.dumps(json.loads(text), ensure_ascii=False)


def parse(given: Any, text: str) -> Any:
    """Returns the value of a document: itself, or an object of the class that the schema came from."""
    if given is None or isinstance(given, re.Pattern):
        return json.loads(text)
    if hasattr(given, "model_validate_json"):
        return given.model_validate_json(text)
    adapter = given if _is_adapter(given) else _adapter(given)
    return adapter.validate_json(text) if adapter else make_object(given, json.loads(text))


def name(given: Any) -> str:
    """Returns the name of a class or an adapter."""
    return given.__qualname__ if isinstance(given, type) else repr(given)


def _dump(schema: Any) -> str:
    try:
        return json.dumps(schema, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise RuleError(f"invalid schema: expected JSON: {error}") from error
    except RecursionError as error:
        raise RuleError("the schema is too large: nested too deeply for JSON") from error


def _adapter(kind: Any) -> Any:
    """pydantic's adapter of a type; None where pydantic is not installed."""
    try:
        # Types that say the same in another order are equal to Python.
        return _adapters(kind, repr(kind))
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return _made_adapter(kind)


def _made_adapter(kind: Any, _said: str = "") -> Any:
    try:
        pydantic = importlib.import_module("pydantic")
    except ModuleNotFoundError:
        return None
    if not hasattr(pydantic, "TypeAdapter"):
        return None
    try:
        return pydantic.TypeAdapter(readable(kind))
    except Exception as error:
        raise TypeError(f"{name(kind)}: pydantic cannot convert it: {error}") from error


_adapters = functools.lru_cache(maxsize=64)(_made_adapter)


def close_objects(schema: Any) -> Any:
    """The schema of a class that ignores what it does not know: objects have the properties they name and no others."""
    if not isinstance(schema, dict):
        return schema
    done = dict(schema)
    for key in ("items", "additionalProperties"):
        done.update({key: close_objects(schema[key])} if key in schema else {})
    for key in ("anyOf", "oneOf", "prefixItems"):
        done.update({key: [close_objects(part) for part in schema[key]]} if key in schema else {})
    for key in ("properties", "$defs"):
        done.update({key: {name: close_objects(part) for name, part in schema[key].items()}} if key in schema else {})
    if schema.get("type") == "object" and "properties" in schema:
        done.setdefault("additionalProperties", False)
    return done


def _close_schema(schema: dict[str, Any]) -> dict[str, Any]:
    done: dict[str, Any] = close_objects(schema)
    return done


def of_plain(kind: Any) -> dict[str, Any]:
    """The schema of a type, where pydantic is not there to make it."""
    defs: dict[type, tuple[str, dict[str, Any]]] = {}
    root = _of_type(kind, name(kind), defs)
    return {**root, "$defs": dict(defs.values())} if defs else root


def _of_fields(cls: Any, defs: dict[type, tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    hints = _hints(cls)
    properties, required = {}, []
    if _is_typed_dict(cls):
        properties = {
            key: _of_type(_strip_required(hint), f"{cls.__qualname__}.{key}", defs) for key, hint in hints.items()
        }
        required = [key for key in hints if key in cls.__required_keys__]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        properties[field.name] = _of_type(hints[field.name], f"{cls.__qualname__}.{field.name}", defs)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            required.append(field.name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def fields(cls: Any) -> dict[str, Any]:
    """The types of what an object of a class is made of, by name; pydantic's descriptions are notes."""
    hints = {name: _strip_required(hint) for name, hint in _hints(cls).items()}
    known = getattr(cls, "model_fields", None)
    if known is not None:
        notes = {name: field.description for name, field in known.items()}
        return {name: typing.Annotated[hints[name], note] if note else hints[name] for name, note in notes.items()}
    if _is_dataclass(cls):
        return {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}
    return hints


def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise TypeError(f"{cls.__qualname__}: a type of its fields is not known: {error}") from error


def _is_dataclass(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def _is_typed_dict(kind: Any) -> bool:
    # Those of typing_extensions are classes of their own kind.
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__required_keys__")


def is_union(origin: Any) -> bool:
    return origin is typing.Union or origin is types.UnionType


def _of_type(kind: Any, place: str, defs: dict[type, tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    try:
        if kind in PLAIN:
            return dict(PLAIN[kind])
    except TypeError:  # not hashable
        pass
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        schema = _of_type(arguments[0], place, defs)
        said = hints.said_by(kind)
        schema |= {key: value for note in arguments[1:] for key, value in _note_keywords(note, schema)}
        return schema if said is None else {**schema, "description": said}
    if is_union(origin):
        return {"anyOf": [_of_type(part, place, defs) for part in arguments]}
    if origin is tuple and arguments[-1:] != (...,):
        items = [_of_type(part, place, defs) for part in arguments]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items), "maxItems": len(items)}
    if origin in (list, tuple, set, frozenset):
        return {"type": "array", "items": _of_type(arguments[0], place, defs)}
    if origin is dict and arguments[0] is str:
        return {"type": "object", "additionalProperties": _of_type(arguments[1], place, defs)}
    if origin is typing.Literal and all(
        isinstance(to_json_value(value), (str, int, type(None))) for value in arguments
    ):
        return {"enum": [to_json_value(value) for value in arguments]}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        values = [member.value for member in kind]
        if values and all(isinstance(value, (str, int, float, type(None))) for value in values):
            return {"enum": values}
    if _is_dataclass(kind) or _is_typed_dict(kind):
        # By reference, because it may hold itself.
        if kind not in defs:
            defs[kind] = (f"class{len(defs)}", {})
            defs[kind][1].update(_of_fields(kind, defs))
        return {"$ref": f"#/$defs/{defs[kind][0]}"}
    raise TypeError(
        f"{place} is of type {kind!r}, which cannot be converted: use str, int, float, bool, None, Any, list, tuple, "
        "dict[str, X], Literal, an Enum, date, time, datetime, dataclasses, unions of these; or install pydantic; or "
        "give a schema"
    )


def to_json_value(value: Any) -> Any:
    """Returns a value of a Literal or an Enum as a JSON value."""
    return value.value if isinstance(value, enum.Enum) else value


def _is_written(value: Any, known: Any) -> bool:
    return bool(value == to_json_value(known)) and type(value) is type(to_json_value(known))


#: Names of JSON Schema keywords in `annotated_types` and its like.
HELD = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
HELD |= {"multiple_of": "multipleOf", "pattern": "pattern"}


def _note_keywords(note: Any, schema: dict[str, Any]) -> list[tuple[str, Any]]:
    """The keywords that a note in `Annotated` stands for."""
    of = {"string": "Length", "array": "Items", "object": "Properties"}.get(schema.get("type", ""), "Length")
    names = HELD | {"min_length": f"min{of}", "max_length": f"max{of}"}
    known = ((key, getattr(note, name, None)) for name, key in names.items())
    return [(key, value) for key, value in known if isinstance(value, (int, float, str))]


def make_object(kind: Any, value: Any) -> Any:
    """An object of a type from what JSON gave for it."""
    if typing.get_origin(kind) is typing.Annotated:
        return make_object(typing.get_args(kind)[0], value)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if is_union(origin):
        return make_object(next((part for part in arguments if _fits(part, value)), Any), value)
    if origin is tuple and arguments[-1:] != (...,):
        return tuple(make_object(part, item) for part, item in zip(arguments, value, strict=True))
    if origin in (list, tuple, set, frozenset):
        return origin(make_object(arguments[0], item) for item in value)
    if origin is dict:
        return {key: make_object(arguments[1], item) for key, item in value.items()}
    if origin is typing.Literal:
        return next((known for known in arguments if _is_written(value, known)), value)
    if kind is float or kind is int:
        return kind(value)
    if kind in (*MOMENTS,):
        return _moment(kind, value)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(value)
    if _is_typed_dict(kind):
        hints = _hints(kind)
        return {key: make_object(_strip_required(hints[key]), item) for key, item in value.items()}
    if _is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{key: make_object(hints[key], item) for key, item in value.items()})
    return value


def _fits(kind: Any, value: Any) -> bool:
    """Returns True if a value fits a part of a union: the first that fits counts."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return True
    if origin is typing.Annotated:
        return _fits(arguments[0], value)
    if _is_typed_dict(kind):
        hints = _hints(kind)
        if not isinstance(value, Mapping) or not kind.__required_keys__ <= set(value) <= set(hints):
            return False
        return all(_fits(_strip_required(hints[key]), item) for key, item in value.items())
    if is_union(origin):
        return any(_fits(part, value) for part in arguments)
    if origin is typing.Literal:
        return any(_is_written(value, known) for known in arguments)
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind in (*MOMENTS,):
        return isinstance(value, str) and _moment(kind, value) is not None
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return any(_is_written(value, member) for member in kind)
    if _is_dataclass(kind):
        hints = _hints(kind)
        if not isinstance(value, Mapping) or not set(value) <= set(hints):
            return False
        needed = {
            field.name
            for field in dataclasses.fields(kind)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        }
        return needed <= set(value) and all(_fits(hints[key], item) for key, item in value.items())
    if origin is tuple and arguments[-1:] != (...,):
        fits = isinstance(value, list) and len(value) == len(arguments)
        return fits and all(map(_fits, arguments, value))
    if origin in (list, tuple, set, frozenset):
        return isinstance(value, list) and all(_fits(arguments[0], item) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(arguments[1], item) for item in value.values())
    # A bool is an int in Python, but not a number in JSON.
    return type(value) is (type(None) if kind is None else kind)


#: Days and times, and how the formats of JSON Schema begin that they are written in.
MOMENTS = {datetime.date: r"[0-9-]{10}$", datetime.time: "[0-9]{2}:", datetime.datetime: "[0-9-]{10}[tT]"}


def _moment(kind: Any, text: str) -> Any:
    """Returns the value of a text in such a format, to the microsecond; None if it has no format of this kind."""
    plain = re.sub(r"\.(\d{1,6})\d*", lambda found: f".{found[1]:0<6}", text.upper()).replace("Z", "+00:00")
    try:
        return kind.fromisoformat(plain) if re.match(MOMENTS[kind], text) else None
    except ValueError:
        return None
