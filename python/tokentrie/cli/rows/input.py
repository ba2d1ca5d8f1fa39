"""Rows of a JSONL, CSV or Parquet file, read one at a time, and the prompts made of them."""

from __future__ import annotations

import csv
import json
import math
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import typer

import tokentrie
from tokentrie.cli.lines import LONGEST_LINE, Lines, not_utf8
from tokentrie.cli.rows import parquet

JSON_LINES = {".jsonl", ".ndjson"}
DELIMITERS = {".csv": ",", ".tsv": "\t"}
SURROGATE = re.compile("[\ud800-\udfff]")
# Half a surrogate pair: no text has it.
BORDER = "\ud800"
# Bytes of a file whose rows are counted before they are read.
COUNTED = 256 << 20
ESCAPES = {r"\n": "\n", r"\t": "\t", r"\\": "\\"}


@dataclass(frozen=True)
class Row:
    """One row: its line (of a Parquet file: its number), what it holds, and what is wrong with it, if anything."""

    line: int
    fields: dict[str, Any]
    problem: str | None = None
    raw: str | None = None
    """The line, where it cannot be read."""


class RowError(Exception):
    """Error of one row."""


class Input:
    """A file of rows; `-` is standard input, as JSONL. Iterate once.

    A row that cannot be read is given with its problem; damage that affects all later rows is an error.
    """

    def __init__(self, path: Path, needed: set[str]) -> None:
        """Opens it. `needed` are the columns that a CSV or Parquet file must have."""
        self.path = path
        self._needed = needed
        self._kind = ".jsonl" if str(path) == "-" else path.suffix.lower()
        if self._kind not in JSON_LINES | DELIMITERS.keys() | {parquet.SUFFIX}:
            problem = f"{path}: the name must end with {', '.join([*sorted(JSON_LINES), *DELIMITERS, parquet.SUFFIX])}"
            raise typer.BadParameter(problem, param_hint="--input")
        self.columns: list[str] = []
        """Names of the fields of a CSV file, once its header was read, or of a Parquet file."""
        self.lines: Any = parquet.ParquetRows(path, needed) if self._kind == parquet.SUFFIX else Lines(path)
        """The file that is read, and how far."""

    def __enter__(self) -> Input:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.lines.__exit__(kind, error, at)

    def __iter__(self) -> Iterator[Row]:
        if self._kind == parquet.SUFFIX:
            self.columns = self.lines.columns
            return (Row(number, fields) for number, fields in self.lines.rows())
        return self._json_rows() if self._kind in JSON_LINES else self._csv_rows(DELIMITERS[self._kind])

    def _json_rows(self) -> Iterator[Row]:
        for number, line in self.lines:
            if not line.strip():
                continue
            try:
                fields = json.loads(line.decode(), parse_constant=_no_number, parse_float=_finite)
            except UnicodeDecodeError as error:
                yield _unread(number, line, not_utf8(error))
            except json.JSONDecodeError as error:
                yield _unread(number, line, f"malformed JSON at column {error.colno}: {error.msg}")
            except (ValueError, RecursionError) as error:
                yield _unread(number, line, f"malformed JSON: {error}")
            else:
                if isinstance(fields, dict):
                    yield Row(number, fields)
                else:
                    yield _unread(number, line, "not a JSON object")

    def _csv_rows(self, delimiter: str) -> Iterator[Row]:
        csv.field_size_limit(LONGEST_LINE)
        taken: list[str] = []
        """The lines of a row: more than one where a line break is quoted."""

        def texts() -> Iterator[str]:
            for _, text in self.lines.texts():
                taken.append(text)
                yield text

        reader = csv.reader(texts(), delimiter=delimiter, strict=True)
        header: list[str] = []
        line = 1
        while True:
            taken.clear()
            try:
                values = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                self.lines.fail(line, f"malformed CSV: {error}")
            if not header:
                header = self.columns = self._header(line, values)
            elif len(values) == len(header):
                yield Row(line, dict(zip(header, values, strict=True)))
            elif values:
                problem = f"the number of fields is {len(values)}, that of the columns {len(header)}"
                fields = dict.fromkeys(header) | dict(zip(header, values, strict=False))
                yield Row(line, fields, problem, "".join(taken).rstrip("\r\n"))
            line = reader.line_num + 1

    def _header(self, line: int, names: list[str]) -> list[str]:
        if repeated := {name for name in names if names.count(name) > 1}:
            self.lines.fail(line, f"two columns have the name {min(repeated)!r}")
        if names and (missing := self._needed - set(names)):
            self.lines.fail(line, f"unknown column {min(missing)!r}: the columns are {', '.join(map(repr, names))}")
        return names


def _unread(number: int, line: bytes, problem: str) -> Row:
    return Row(number, {}, problem, line.decode("utf-8", "backslashreplace").rstrip("\r\n"))


def count(path: Path) -> int | None:
    """The rows of a file, for people who wait; None where that would take long or cannot be told."""
    if not path.is_file() or path.stat().st_size > COUNTED:
        return None
    try:
        if path.suffix.lower() == parquet.SUFFIX:
            with Input(path, set()) as rows:
                return int(rows.lines.size)
        if path.suffix.lower() in JSON_LINES:
            with Lines(path) as lines:
                return sum(1 for _, line in lines if line.strip())
        with Input(path, set()) as rows:
            return sum(1 for _ in rows)
    except tokentrie.TokenTrieError:
        return None


class Prompts(string.Formatter):
    """Makes the prompt of a row: of a field alone, or of a template with fields in braces, as in `str.format`."""

    def __init__(self, field: str | None, template: str | None) -> None:
        self._field = field
        self._template = None if template is None else re.sub(r"\\[nt\\]", lambda found: ESCAPES[found[0]], template)
        self.needed = {field} if field is not None else set()
        """The fields that every row must have."""
        if self._template is not None:
            self.needed |= self._used(self._template)

    def _used(self, template: str) -> set[str]:
        try:
            pieces = list(self.parse(template))
        except ValueError as error:
            raise typer.BadParameter(f"{error}: write {{{{ and }}}} for braces", param_hint="--template") from error
        used = {re.split(r"[.\[]", name, maxsplit=1)[0] for _, name, _, _ in pieces if name is not None}
        if not used or any(not name or name.isdecimal() for name in used):
            raise typer.BadParameter("name the fields that it uses, such as {text}", param_hint="--template")
        if self._field is not None and self._field not in used:
            raise typer.BadParameter(f"it does not use the field {self._field!r}", param_hint="--template")
        return used

    def prompt_parts(self, row: Row) -> list[tuple[str, bool]]:
        """The prompt of a row, in parts, each with whether it is trusted: the template is, the row is not."""
        if row.problem is not None:
            raise RowError(row.problem)
        if self._template is None:
            if self._field not in row.fields:
                raise _missing(self._field, row.fields)
            prompt = self.format_field(plain_text(self._field, row.fields[self._field]), "")
        else:
            try:
                prompt = self.vformat(self._template, (), row.fields)
            except ValueError as error:
                raise RowError(f"the template: {error}") from error
        # In turn: template, field, template, …
        parts = [(part, not at % 2) for at, part in enumerate(prompt.split(BORDER)) if part]
        if not parts:
            raise RowError("the prompt is empty")
        return parts

    def format_field(self, value: Any, format_spec: str) -> str:
        """Called for every field of a template: marks where it begins and ends."""
        return f"{BORDER}{super().format_field(value, format_spec)}{BORDER}"

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        """Called for every field of a template."""
        try:
            value, _ = super().get_field(field_name, args, kwargs)
        except (LookupError, AttributeError, TypeError):
            raise _missing(field_name, kwargs) from None
        return plain_text(field_name, value), field_name


def plain_text(name: str | None, value: object) -> str | float:
    """Returns the text of a field, or its number written as text."""
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str):
        kind = {dict: "an object", list: "an array", type(None): "null"}.get(type(value), type(value).__name__)
        raise RowError(f"the field {name!r} is {kind}, not text")
    if SURROGATE.search(value):
        raise RowError("invalid text: half a surrogate pair")
    return value


def _missing(name: str | None, fields: Mapping[str, Any]) -> RowError:
    return RowError(f"unknown field {name!r}: the row has {', '.join(map(repr, fields)) or 'no fields'}")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"invalid number {name}")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is too large a number")
    return value
