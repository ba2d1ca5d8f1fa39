"""A body of any kind as a constraint."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import tokentrie
from tokentrie import Model
from tokentrie.serve.errors import WireError
from tokentrie.serve.store import contents
from tokentrie.serve.store.contents import Content
from tokentrie.serve.store.references import COMPILED, resolve_names
from tokentrie.serve.wire.asking import first_repeated

#: Fields beside `kind` in JSON.
FIELDS = {"set": ("values", "payload"), "spec": ("spec",)} | {kind: (kind,) for kind in sorted(COMPILED)}
#: The media types that are read.
READ = "application/json, application/octet-stream (.ttrie), application/wasm, text/plain (a value a line), text/csv"
UTF_8 = {"utf-8", "utf8", "us-ascii"}


def read(
    media: str, body: bytes, column: str | None, models: Sequence[Model], names: Mapping[str, Any]
) -> tuple[Content, bytes]:
    """Returns the content of a body, with the bytes that are kept of it.

    Raises WireError, and what the library says of it; 415 where the media type is none that is read.
    """
    kind, _, parameters = media.lower().partition(";")
    kind = kind.strip()
    if column is not None and kind != "text/csv":
        raise WireError("column: only text/csv has columns", param="column")
    if kind == "application/octet-stream":
        return contents.of_trie(body, models), body
    if kind == "application/json":
        return _json(body, names)
    if kind == "application/wasm":
        return contents.of_module(body)
    if kind not in ("text/plain", "text/csv"):
        said = f"a body of {kind!r}" if kind else "a body without a content type"
        raise WireError(f"{said} is not supported: send {READ}", status=415)
    for parameter in parameters.split(";"):
        name, _, charset = parameter.strip().partition("=")
        if name == "charset" and charset.strip('"') not in UTF_8:
            raise WireError(f"the charset {charset} is not supported: send UTF-8", status=415)
    text = _text(body)
    values = _lines(text) if kind == "text/plain" else _column(text, column)
    # A column says the same again, as lines may.
    return _set([*dict.fromkeys(values)], "the body")


def _json(body: bytes, names: Mapping[str, Any]) -> tuple[Content, bytes]:
    said = _parse_json(body)
    if not isinstance(said, dict):
        raise WireError("the body must be an object with a kind")
    kind = said.get("kind")
    if not isinstance(kind, str) or kind not in FIELDS:
        raise WireError(f"kind: invalid value: expected one of {', '.join(FIELDS)}", param="kind")
    fields = FIELDS[kind]
    if unknown := [field for field in said if field not in ("kind", *fields)]:
        there = " or ".join(fields)
        message = f"{unknown[0]}: unknown field beside kind {kind!r}: expected {there}"
        raise WireError(message, param=unknown[0])
    given = [field for field in fields if said.get(field) is not None]
    if len(given) != 1:
        raise WireError(f"{fields[0]}: give {'one of ' * (len(fields) > 1)}{' and '.join(fields)}", param=fields[0])
    (field,) = given
    value = said[field]
    if field == "values":
        return _set(_values(value), "values")
    if field == "payload":
        return _payload(value)
    if field == "spec":
        if not isinstance(value, dict):
            raise WireError("spec: invalid value: expected an object of one kind", param="spec")
        spec, _ = resolve_names(value, names)
        return contents.of_spec(json.dumps(spec), names)
    return contents.of_spec(json.dumps({field: value}), {})


def _parse_json(body: bytes) -> Any:
    def refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs) and (again := first_repeated(name for name, _ in pairs)) is not None:
            raise WireError(f"the field {again!r} is given twice", param=again)
        return found

    def none(said: str) -> Any:
        raise WireError(f"invalid number {said}: JSON has no NaN and no infinity")

    try:
        return json.loads(body, object_pairs_hook=refuse_repeated, parse_constant=none)
    except RecursionError:
        raise WireError("the body is nested too deep") from None
    except ValueError as error:
        raise WireError(f"invalid JSON in the body: {error}") from None


def _values(given: Any) -> list[str]:
    if not isinstance(given, list):
        raise WireError("values: invalid value: expected a list of texts", param="values")
    if not all(type(one) is str for one in given):
        index = next(index for index, one in enumerate(given) if type(one) is not str)
        raise WireError(f"values.{index}: invalid value: expected a text", param=f"values.{index}")
    if "" in given:
        index = given.index("")
        raise WireError(f"values.{index}: it is empty", param=f"values.{index}")
    if len({*given}) < len(given):
        raise WireError(f"values: {first_repeated(given)!r} is given twice", param="values")
    return given


def _set(values: list[str], where: str) -> tuple[Content, bytes]:
    if not values:
        raise WireError(
            f"{where}: expected at least one value, got none", param="values" if where == "values" else None
        )
    return contents.of_spec(tokentrie.constraint(values), {}, len(values))


def _payload(payload: Any) -> tuple[Content, bytes]:
    if not isinstance(payload, dict):
        raise WireError("payload: invalid value: expected an object", param="payload")
    if isinstance(descriptors := payload.get("descriptors"), list) and len(descriptors) > 1:
        message = 'payload: a set has one descriptor; put several as kind "spec", {"payload": …}'
        raise WireError(message, param="payload")
    return contents.of_spec(json.dumps({"payload": payload}), {})


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise WireError(f"line {line:,}: not UTF-8: byte {error.start:,} is 0x{body[error.start]:02x}") from None


def _lines(text: str) -> list[str]:
    """A line is a value; empty ones are none."""
    return [line for line in text.replace("\r\n", "\n").split("\n") if line]


def _column(text: str, column: str | None) -> list[str]:
    """The values of a column; empty ones are none."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        if column is None or header.count(column) != 1:
            named = ", ".join(map(repr, header[:20]))
            raise WireError(f"column: name one of the columns {named}, as in ?column=NAME", param="column")
        at, found = header.index(column), []
        for row in reader:
            if len(row) != len(header):
                if not row:
                    continue
                message = f"line {reader.line_num:,}: {len(row)} fields where the header has {len(header)}"
                raise WireError(message)
            if row[at]:
                found.append(row[at])
    except csv.Error as error:
        raise WireError(f"line {reader.line_num:,}: malformed CSV: {error}") from None
    return found
