"""Python functions as tools: definitions from their hints and docstrings, and calls with the arguments of a model."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import textwrap
import typing
from collections.abc import Callable
from typing import Any

from tokentrie import schemas
from tokentrie._native import OptionError, ToolCall


def of_function(function: Callable[..., Any]) -> dict[str, Any]:
    """The definition of a function as chat APIs have it."""
    name = _name(function)
    text, described = _docstring(inspect.getdoc(function) or "")
    fields, notes = _fields(function)
    cls = dataclasses.make_dataclass(name if name.isidentifier() else "arguments", fields, kw_only=True)
    # Its fields are of types that are known: nothing has to be looked up in its module.
    cls.__module__ = __name__
    adapter = schemas._adapter(cls)
    schema = _plain(schemas.closed(adapter.json_schema()) if adapter else schemas.of_dataclass(cls))
    parameters = _of_root(schema)
    for key, found in parameters.get("properties", {}).items():
        if note := notes.get(key) or described.get(key):
            found.setdefault("description", note)
    parameters.setdefault("properties", {})
    parameters.setdefault("required", [])
    return {"name": name, "description": text, "parameters": parameters}


def run(function: Callable[..., Any], call: ToolCall) -> Any:
    """Calls a function with the arguments of a call, as objects of the types that its hints name."""
    given = call.parsed
    if not isinstance(given, dict):
        raise OptionError(f"the arguments of {call.name} are {call.arguments}: they must be an object")
    fields, _ = _fields(function)
    cls = dataclasses.make_dataclass("arguments", fields, kw_only=True)
    cls.__module__ = __name__
    read = schemas.parse(cls, call.arguments)
    return function(**{key: getattr(read, key) for key in given if hasattr(read, key)})


def _name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise TypeError(f"{function!r} has no name: give a function that is defined with def")
    return name


def _fields(function: Callable[..., Any]) -> tuple[list[Any], dict[str, str]]:
    """Its parameters as fields of a dataclass, and what `Annotated` says of them."""
    name = _name(function)
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"{name}: a type of its arguments is not known: {error}") from error
    fields: list[Any] = []
    notes: dict[str, str] = {}
    for key, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{name}: the argument {parameter} cannot be given by name: a tool takes named arguments")
        hint = hints.get(key, Any)
        if typing.get_origin(hint) is typing.Annotated:
            hint, *said = typing.get_args(hint)
            texts = [note if isinstance(note, str) else getattr(note, "description", None) for note in said]
            if note := next(filter(None, texts), None):
                notes[key] = note
        if parameter.default is parameter.empty:
            fields.append((key, hint))
        else:
            # A dataclass takes no list for a default, but what makes one.
            fields.append((key, hint, dataclasses.field(default_factory=functools.partial(_same, parameter.default))))
    return fields, notes


def _same(value: Any) -> Any:
    return value


def _plain(schema: Any) -> Any:
    """A schema without titles, which say nothing that the names do not."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    done = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        inside = isinstance(value, dict) and key in ("properties", "$defs")
        done[key] = {name: _plain(part) for name, part in value.items()} if inside else _plain(value)
    return done


def _of_root(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object, where its root is a reference to one."""
    defs = schema.get("$defs", {})
    if "$ref" not in schema:
        return schema
    name = schema["$ref"].rpartition("/")[2]
    others = {key: value for key, value in defs.items() if key != name}
    return {**defs[name], "$defs": others} if others else dict(defs[name])


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """What a function does, and what its arguments are: from sections as Google writes them, or `:param x:`."""
    described: dict[str, str] = {}
    for match in re.finditer(r"^:param (?:[^:]*\s)?(\w+):\s*(.*(?:\n[ \t]+\S.*)*)", text, re.MULTILINE):
        described[match[1]] = " ".join(match[2].split())
    text = re.split(r"^:\w+", text, maxsplit=1, flags=re.MULTILINE)[0]
    parts = re.split(r"^(\w+(?: \w+)?):[ \t]*\n(?=[ \t]+\S)", text, flags=re.MULTILINE)
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if title in ("Args", "Arguments", "Parameters"):
            lines = textwrap.dedent(body)
            for match in re.finditer(r"^(\w+)(?:\s*\([^)]*\))?:\s*(.*(?:\n[ \t]+\S.*)*)", lines, re.MULTILINE):
                described[match[1]] = " ".join(match[2].split())
    return parts[0].strip(), described
