"""Rows of a Parquet file for `choose --input`, some at a time; what stands for the lines of a text file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import tokentrie
from tokentrie.files import only_files

SUFFIX = ".parquet"
# Rows and bytes that are read at once.
BATCH, BUFFER = 1024, 1 << 16


class ParquetRows:
    """The rows of a file, with their numbers from 1. Iterate once."""

    def __init__(self, path: Path, needed: set[str]) -> None:
        """Opens it. `needed` are the columns that it must have."""
        try:
            import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
            from pyarrow import parquet
        except ImportError:
            problem = f"{path}: Parquet needs pyarrow: pip install 'tokentrie[parquet]', or pip install pyarrow"
            raise tokentrie.TokenTrieError(problem) from None
        self._path = path
        self._stream = only_files(path).open("rb")
        # Damage in the pages of a column is an OSError.
        self._damage = (pyarrow.ArrowException, OSError)
        try:
            self._file = parquet.ParquetFile(self._stream, buffer_size=BUFFER)
            names = self._file.schema_arrow.names
            if repeated := {name for name in names if names.count(name) > 1}:
                self._fail(f"two columns have the name {min(repeated)!r}")
            if missing := needed - set(names):
                self._fail(f"unknown column {min(missing)!r}: the columns are {', '.join(map(repr, names))}")
        except self._damage as error:
            self._stream.close()
            raise tokentrie.TokenTrieError(f"{path}: {error}") from error
        except BaseException:
            self._stream.close()
            raise
        self.size: int = self._file.metadata.num_rows
        """Number of rows in the whole file."""
        self.columns: list[str] = names
        self.position = 0
        """Rows read so far."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stream.close()

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Number and fields of every row, as JSON has them: dates and decimals are text, NaN is nothing."""
        try:
            for group in range(self._file.num_row_groups):
                for batch in self._file.iter_batches(BATCH, row_groups=[group]):
                    for row in batch.to_pylist():
                        self.position += 1
                        yield self.position, {name: as_json(value) for name, value in row.items()}
        except self._damage as error:
            self.fail(self.position + 1, error)

    def place(self, row: int) -> str:
        """Returns the place for messages."""
        return f"{self._path}, row {row}"

    def fail(self, row: int, problem: object) -> NoReturn:
        """Raises an error that makes the rest of the file doubtful."""
        raise tokentrie.TokenTrieError(f"{self.place(row)}: {problem}")

    def _fail(self, problem: str) -> NoReturn:
        raise tokentrie.TokenTrieError(f"{self._path}: {problem}")


def as_json(value: Any) -> Any:
    """The value of a column as JSON can hold it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, dict):
        return {str(name): as_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(part) for part in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, Decimal | timedelta) else repr(value)
