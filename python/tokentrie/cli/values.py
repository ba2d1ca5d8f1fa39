"""The values of a set, from a file of lines, a column of a table, or an array of token ids."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import typer

import tokentrie
from tokentrie.cli.rows import DELIMITERS, JSON_LINES, LONGEST_LINE, Input

ARRAY = ".npy"
PARQUET = ".parquet"
TABLES = {*JSON_LINES, *DELIMITERS, PARQUET}


def texts(path: Path, field: str | None) -> Iterator[tuple[int, str]]:
    """Line (of a Parquet file: row, from 1) and text of every value."""
    kind = path.suffix.lower()
    if kind in TABLES and field is None:
        raise typer.BadParameter(f"which column of {path.name} holds the values?", param_hint="--field")
    if kind not in TABLES and field is not None:
        known = ", ".join(sorted(TABLES))
        raise typer.BadParameter(f"{path.name} has no columns: they are read from {known}", param_hint="--field")
    if kind == PARQUET:
        return _parquet(path, str(field))
    return _table(path, str(field)) if kind in TABLES else _lines(path)


def ids(path: Path) -> np.ndarray:
    """Rows of token ids, mapped: [rows, length] of an integer type."""
    try:
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise tokentrie.TokenTrieError(f"{path}: no array that numpy saved: {error}") from error
    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.dtype.kind not in "iu":
        shape = getattr(rows, "shape", "?")
        raise tokentrie.TokenTrieError(f"{path}: needs integers of shape [rows, length], not {shape} of {rows.dtype}")
    return rows


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """A line is a value; empty ones are none."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                _fail(path, number, f"longer than {LONGEST_LINE >> 20} MiB")
            line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            try:
                text = line.decode().removesuffix("\n").removesuffix("\r")
            except UnicodeDecodeError as error:
                _fail(path, number, f"not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}")
            if text:
                yield number, text


def _table(path: Path, field: str) -> Iterator[tuple[int, str]]:
    with Input(path, {field}) as rows:
        for row in rows:
            if row.problem is not None:
                _fail(path, row.line, row.problem)
            if field not in row.fields:
                _fail(path, row.line, f"there is no field {field!r}")
            yield row.line, _text(path, row.line, field, row.fields[field])


def _parquet(path: Path, field: str) -> Iterator[tuple[int, str]]:
    try:
        from pyarrow import ArrowException, parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise tokentrie.TokenTrieError(f"{path}: to read Parquet, install pyarrow") from None
    try:
        file = parquet.ParquetFile(path)
        if field not in file.schema_arrow.names:
            names = ", ".join(map(repr, file.schema_arrow.names))
            raise tokentrie.TokenTrieError(f"{path}: there is no column {field!r}, only {names}")
        row = 0
        for batch in file.iter_batches(columns=[field]):
            for value in batch.column(0).to_pylist():
                row += 1
                yield row, _text(path, row, field, value)
    except ArrowException as error:
        raise tokentrie.TokenTrieError(f"{path}: {error}") from error


def _text(path: Path, line: int, field: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        _fail(path, line, f"the field {field!r} is {type(value).__name__}, not text")
    return str(value)


def _fail(path: Path, line: int, problem: object) -> NoReturn:
    raise tokentrie.TokenTrieError(f"{path}, line {line}: {problem}")
