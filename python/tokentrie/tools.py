"""Python functions and classes as tools: definitions from hints and docstrings, calls, results."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import math
import typing
from collections.abc import Callable, Mapping
from typing import Any

import docstring_parser

from tokentrie import schemas
from tokentrie.hints import said_by
from tokentrie.results import ToolCall


def of_function(function: Callable[..., Any]) -> dict[str, Any]:
    """The definition of a function, or of a class that describes arguments, as chat APIs have it."""
    if isinstance(function, type):
        return _of_class(function)
    name = _name(function)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{name} is a generator, which gives no result when it is called: return a list, or text")
    text, described = _docstring(inspect.getdoc(function) or "")
    cls, notes, _ = _arguments(function)
    adapter = schemas._adapter(cls)
    schema = _plain(schemas.of_adapter(adapter) if adapter else schemas.of_plain(cls))
    parameters = _of_root(schema)
    for key, found in parameters.get("properties", {}).items():
        if note := notes.get(key) or described.get(key):
            found.setdefault("description", note)
    return _definition(name, text, parameters)


def run(function: Callable[..., Any], call: ToolCall) -> Any:
    """Runs the function of a tool call with its arguments, as objects of the types that its hints name.

    The result is an object of the class for a class, and the awaitable for an `async def` function.
    """
    given = call.parsed
    if not isinstance(given, dict):
        raise ValueError(  # noqa: TRY004
            f"the arguments of {call.name} are {call.arguments}: they must be an object"
        )
    if isinstance(function, type):
        return schemas.parse(function, call.arguments)
    cls, _, described = _arguments(function)
    read = schemas.parse(cls, call.arguments)
    # What is missing has the function's own default, unless only pydantic knows it.
    return function(**{key: getattr(read, key) for key in (*given, *described) if hasattr(read, key)})


def result_text(result: Any) -> str:
    """Returns the text of a result for the model: a str as it is, all else as JSON."""
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise TypeError(f"the result is {type(result).__name__}: return a list, or text")
    if isinstance(result, str) and not isinstance(result, enum.Enum):
        return result
    plain = _as_json(result)
    return plain if isinstance(plain, str) else schemas._dump(plain)


def _as_json(value: Any) -> Any:
    """Returns an object as JSON values: of models and dataclasses their fields, of enums their values."""
    if isinstance(value, enum.Enum):
        return _as_json(value.value)
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else str(_as_json(key)): _as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_as_json(item) for item in value]
    if callable(dump := getattr(value, "model_dump", None)) and not isinstance(value, type):
        return _as_json(dump(mode="json"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if callable(tolist := getattr(value, "tolist", None)):  # numpy's
        return _as_json(tolist())
    return str(value)


def _of_class(cls: type) -> dict[str, Any]:
    """A class that describes arguments as a tool: a pydantic model, a dataclass or a TypedDict."""
    if not schemas.is_class(cls):
        raise TypeError(
            f"the class {cls.__name__} describes no arguments: give a pydantic model, a dataclass or a TypedDict"
        )
    text, described = _docstring("" if _has_made_docstring(cls) else inspect.cleandoc(cls.__doc__ or ""))
    parameters = _of_root(_plain(schemas.of_type(cls)))
    parameters.pop("description", None)
    for key, found in parameters.get("properties", {}).items():
        if note := described.get(key):
            found.setdefault("description", note)
    return _definition(cls.__name__, text, parameters)


def _has_made_docstring(cls: type) -> bool:
    """Returns True if Python made the docstring: a dataclass without one has its signature."""
    return dataclasses.is_dataclass(cls) and (cls.__doc__ or "").startswith(f"{cls.__name__}(")


def _definition(name: str, text: str, parameters: dict[str, Any]) -> dict[str, Any]:
    parameters.setdefault("properties", {})
    parameters.setdefault("required", [])
    return {"name": name, "description": text, "parameters": parameters}


def _name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise TypeError(f"{function!r} has no name: give a function that is defined with def")
    return name


def _arguments(function: Callable[..., Any]) -> tuple[type, dict[str, str], list[str]]:
    """A dataclass of its parameters, what `Annotated` says of them, and those whose default pydantic knows."""
    try:
        return _kept(function)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return _read(function)


def _read(function: Callable[..., Any]) -> tuple[type, dict[str, str], list[str]]:
    name = _name(function)
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"{name}: a type of its arguments is not known: {error}") from error
    fields: list[Any] = []
    notes: dict[str, str] = {}
    described: list[str] = []
    for key, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{name}: the argument {parameter} cannot be given by name: a tool takes named arguments")
        hint = hints.get(key, Any)
        if note := said_by(hint):
            notes[key] = note
        hint = schemas.readable(hint)
        if parameter.default is parameter.empty:
            fields.append((key, hint))
        elif type(parameter.default).__name__ == "FieldInfo":  # pydantic's: `times: int = Field(3, ge=1)`
            fields.append((key, hint, parameter.default))
            described.append(key)
        else:
            # A dataclass takes a factory for a default that is a list.
            fields.append(
                (key, hint, dataclasses.field(default_factory=functools.partial(_identity, parameter.default)))
            )
    cls = dataclasses.make_dataclass(name if name.isidentifier() else "arguments", fields, kw_only=True)
    # Its fields are of types that are known: nothing has to be looked up in its module.
    cls.__module__ = __name__
    return cls, notes, described


_kept = functools.lru_cache(maxsize=256)(_read)


def _identity(value: Any) -> Any:
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
        if key in ("enum", "const", "default", "examples"):
            done[key] = value
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
    # A schema that contains itself stays among the definitions.
    held = schema["$ref"] in str(defs)
    others = {key: value for key, value in defs.items() if held or key != name}
    return {**defs[name], "$defs": others} if others else dict(defs[name])


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """Returns a docstring's description and those of its arguments, as Google, numpy, Sphinx or epydoc write them."""
    try:
        read = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return text.strip(), {}
    notes = {
        name.strip().lstrip("*"): " ".join((note.description or "").split())
        for note in read.params
        for name in note.arg_name.split(",")  # numpy describes several at once
    }
    return (read.description or "").strip(), notes
