"""The formats in which results of a data set are given, made of the rows that were written as JSON lines."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import typer

import tokentrie
from tokentrie.cli.lines import LONGEST_LINE
from tokentrie.cli.rows.input import DELIMITERS, JSON_LINES
from tokentrie.cli.values import PARQUET
from tokentrie.files import replacing

KNOWN = [*sorted(JSON_LINES), *DELIMITERS, PARQUET]
ERROR = "error"
# The line of a row that could not be read.
RAW = "raw"
# Rows of a Parquet file that are held at once.
BATCH = 4096
# What JSON counts as an integer and a Parquet column can hold.
INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True)
class Columns:
    """Columns that a finished row gets beside its own fields."""

    names: tuple[str, ...]
    """All of it, in this order."""
    numbers: tuple[str, ...]
    """Probabilities and the like."""
    shares: tuple[str, ...]
    """The probability of each value, by name. A row without them has an error in their place."""

    def is_error(self, row: dict[str, Any]) -> bool:
        """Returns True if a row has an error in place of a result."""
        return not any(name in row for name in self.shares)

    def restore(self, row: dict[str, Any], shares: Any) -> dict[str, Any]:
        """A row of a file as JSON lines have it; `shares` reads a column of them."""
        found = {name: dict(shares(row[name]) or ()) for name in self.shares}
        if not any(found.values()):
            return {name: value for name, value in row.items() if name not in self.names}
        return row | {name: float(row[name]) for name in self.numbers} | found


def check(path: Path) -> None:
    """Refuses a format that cannot be written, before any work.

    Raises:
        BadParameter: no such format, or pyarrow is missing.
    """
    kind = path.suffix.lower()
    if kind not in KNOWN:
        raise typer.BadParameter(f"{path}: the name must end with {', '.join(KNOWN)}", param_hint="--output")
    if kind == PARQUET:
        _arrow(path)


def convert(lines: Path, path: Path, leave_out_errors: bool, first: Sequence[str], results: Columns) -> None:
    """Makes a file of JSON lines the file of results. It appears whole or not at all.

    Args:
        first: the columns of the input, which come first whether a row has them or not.
    """

    def rows() -> Iterator[dict[str, Any]]:
        with lines.open("rb") as collected:
            for line in collected:
                row = json.loads(line)
                if not (leave_out_errors and results.is_error(row)):
                    yield row

    kind = path.suffix.lower()
    try:
        with replacing(path) as partial:
            if kind in JSON_LINES:
                with partial.open("w", encoding="utf-8") as text:
                    text.writelines(json.dumps(row, allow_nan=False) + "\n" for row in rows())
            elif kind == PARQUET:
                _write_parquet(partial, rows, first, results)
            else:
                _write_csv(partial, rows, first, results, DELIMITERS[kind])
            with partial.open("rb") as file:
                os.fsync(file.fileno())
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def read(path: Path, results: Columns) -> Iterator[dict[str, Any]]:
    """The rows of a file of results, with their numbers and shares; other values as the format has them."""
    kind = path.suffix.lower()
    if kind in JSON_LINES:
        with path.open("rb") as file:
            yield from map(json.loads, file)
    elif kind == PARQUET:
        with path.open("rb") as file:
            for batch in _arrow(path).ParquetFile(file).iter_batches(BATCH):
                for row in batch.to_pylist():
                    yield results.restore(row, lambda shares: shares)
    else:
        csv.field_size_limit(LONGEST_LINE)
        with path.open(encoding="utf-8", errors="surrogatepass", newline="") as text:
            for row in csv.DictReader(text, delimiter=DELIMITERS[kind]):
                yield results.restore(row, lambda shares: json.loads(shares or "{}"))


def _columns(rows: Iterable[dict[str, Any]], first: Iterable[str], results: Columns) -> dict[str, set[str]]:
    """The columns of all rows in the order in which they come, results last, and the kinds of their values."""
    found: dict[str, set[str]] = {name: set() for name in first}
    for row in rows:
        for name, value in row.items():
            found.setdefault(name, set()).add(_kind(value))
    last = [name for name in (*results.names, ERROR, RAW) if name in found or name in results.names]
    return {name: found[name] for name in found if name not in last} | {name: found.get(name, set()) for name in last}


def _kind(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return "int" if value in INT64 else "text"
    kinds: dict[type, str] = {bool: "bool", float: "float", type(None): "null"}
    return kinds.get(type(value), "text")


def _as_text(value: object) -> str:
    """Text as it is, without halves of surrogate pairs, which no file can hold; all else as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode()


def _write_csv(path: Path, rows: Any, first: Sequence[str], results: Columns, delimiter: str) -> None:
    columns = [*_columns(rows(), first, results)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow([_as_text(name) for name in columns])
        for row in rows():
            values = (row.get(name) for name in columns)
            writer.writerow(["" if value is None else _as_text(value) for value in values])


def _write_parquet(path: Path, rows: Any, first: Sequence[str], results: Columns) -> None:
    """Columns of one kind keep it; mixed ones, objects and arrays become text."""
    parquet = _arrow(path)
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]

    kinds = {"int": pyarrow.int64(), "float": pyarrow.float64(), "bool": pyarrow.bool_(), "text": pyarrow.string()}
    types = {name: kinds[_one_kind(found)] for name, found in _columns(rows(), first, results).items()}
    types |= dict.fromkeys(results.numbers, pyarrow.float64())
    types |= dict.fromkeys(results.shares, pyarrow.map_(pyarrow.string(), pyarrow.float64()))
    schema = pyarrow.schema([(_as_text(name), kind) for name, kind in types.items()])
    with parquet.ParquetWriter(path, schema) as writer:
        remaining = rows()
        while group := list(islice(remaining, BATCH)):
            columns = [
                pyarrow.array([_cell(row.get(name), kind, pyarrow) for row in group], kind)
                for name, kind in types.items()
            ]
            writer.write_table(pyarrow.Table.from_arrays(columns, schema=schema))


def _one_kind(found: set[str]) -> str:
    kinds = found - {"null"}
    if kinds == {"int", "float"}:
        return "float"
    return next(iter(kinds)) if len(kinds) == 1 else "text"


def _cell(value: Any, kind: Any, pyarrow: Any) -> Any:
    if value is None:
        return None
    if pyarrow.types.is_map(kind):
        return [(_as_text(key), share) for key, share in value.items()]
    return _as_text(value) if kind == pyarrow.string() else value


def _arrow(path: Path) -> Any:
    try:
        from pyarrow import parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        problem = f"{path}: Parquet needs pyarrow: pip install 'tokentrie[parquet]', or pip install pyarrow"
        raise tokentrie.TokenTrieError(problem) from None
    return parquet
