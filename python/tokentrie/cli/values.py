"""The values of a set, from a file of lines, a column of a table, or an array of token ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import typer

import tokentrie
from tokentrie.cli.lines import Lines
from tokentrie.cli.rows.input import DELIMITERS, JSON_LINES, Input, RowError, plain_text
from tokentrie.files import only_files

ARRAY = ".npy"
PARQUET = ".parquet"
# Rows and bytes of a Parquet file that are read at once.
BATCH, BUFFER = 4096, 1 << 16
TABLES = {*JSON_LINES, *DELIMITERS, PARQUET}

Seen = Callable[[int, int | None], None]


def _unseen(_done: int, _total: int | None) -> None:
    """Progress that nobody sees."""


def texts(path: Path, field: str | None, seen: Seen = _unseen) -> Iterator[tuple[int, str]]:
    """Line (of a Parquet file: row, from 1) and text of every value.

    `seen` hears now and then how much was read and how much there is: bytes, or rows of a Parquet file.
    """
    kind = path.suffix.lower()
    if kind in TABLES and field is None:
        raise typer.BadParameter(f"which column of {path.name} holds the values?", param_hint="--field")
    if kind not in TABLES and field is not None:
        known = ", ".join(sorted(TABLES))
        raise typer.BadParameter(f"{path.name} has no columns: they are read from {known}", param_hint="--field")
    if kind == PARQUET:
        return _parquet(path, str(field), seen)
    return _table(path, str(field), seen) if kind in TABLES else _lines(path, seen)


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


def _lines(path: Path, seen: Seen) -> Iterator[tuple[int, str]]:
    """A line is a value; empty ones are none."""
    with Lines(path) as lines:
        for number, line in lines.texts():
            if not number % BATCH:
                seen(lines.position, lines.size)
            if text := line.removesuffix("\n").removesuffix("\r"):
                yield number, text


def _table(path: Path, field: str, seen: Seen) -> Iterator[tuple[int, str]]:
    with Input(path, {field}) as rows:
        for number, row in enumerate(rows):
            if not number % BATCH:
                seen(rows.lines.position, rows.lines.size)
            if row.problem is not None:
                rows.lines.fail(row.line, row.problem)
            if field not in row.fields:
                rows.lines.fail(row.line, f"unknown field {field!r}")
            yield row.line, _text(rows.lines.place(row.line), field, row.fields[field])


def _parquet(path: Path, field: str, seen: Seen) -> Iterator[tuple[int, str]]:
    """One column, some rows at a time, so that neither a long file nor a long row group fills the memory."""
    try:
        from pyarrow import ArrowException, parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise tokentrie.TokenTrieError(f"{path}: to read Parquet, install pyarrow") from None
    with only_files(path).open("rb") as stream:
        try:
            file = parquet.ParquetFile(stream, buffer_size=BUFFER)
            if field not in file.schema_arrow.names:
                names = ", ".join(map(repr, file.schema_arrow.names))
                raise tokentrie.TokenTrieError(f"{path}: unknown column {field!r}: the columns are {names}")
            row = 0
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(BATCH, row_groups=[group], columns=[field]):
                    seen(row, file.metadata.num_rows)
                    for value in batch.column(field).to_pylist():
                        row += 1
                        yield row, _text(f"{path}, row {row}", field, value)
        except (ArrowException, OSError) as error:
            # Damage in the pages of a column is an OSError.
            raise tokentrie.TokenTrieError(f"{path}: {error}") from error


def _text(place: str, field: str, value: object) -> str:
    try:
        if isinstance(value, bool):
            raise RowError(f"the field {field!r} is true or false, not text")
        return str(plain_text(field, value))
    except RowError as error:
        raise tokentrie.TokenTrieError(f"{place}: {error}") from error
