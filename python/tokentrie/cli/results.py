"""The file of results: in the order of the input, one JSON object a row, and continued where an earlier run stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import tokentrie
from tokentrie.cli.rows import Row
from tokentrie.files import replacing

RESULT = {"choice", "probability", "probabilities"}
ERROR = {"error"}
WAY_OUT = "take another --output, or begin anew with --restart"


class Output:
    """Results, and beside them a note (`NAME.run.json`) of what they are made with.

    Only whole groups of rows are kept: a run may be stopped at any time and by any means, and what an unfinished group
    left behind is cut off before the next one goes on. Nothing is cut off or overwritten unless note and rows show that
    it comes from the same run, or `restart` says so.
    """

    def __init__(self, path: Path, settings: dict[str, object], restart: bool) -> None:
        """Opens it. `settings` are what the results depend on, by the words that name them in messages."""
        if path.exists() and not path.is_file() and not path.is_dir():
            raise tokentrie.TokenTrieError(f"{path}: not a file: an interrupted run could not go on")
        self._path = path
        self._note = path.with_name(f"{path.name}.run.json")
        self._line = 0
        self.errors = 0
        """Rows that have an error in place of a result."""
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        try:
            self._lock()
            if restart:
                self._file.truncate(0)
            self._at_end = not self._file.peek(1)
            if self._at_end:
                self._write_note(settings)
            else:
                self._compare_note(settings)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def holds(self, group: Sequence[Row]) -> bool:
        """Whether the results of these rows, the next ones, are there. If not, the file now ends before them."""
        if self._at_end:
            return False
        start, errors = self._file.tell(), 0
        for row in group:
            line = self._file.readline()
            if not line.endswith(b"\n"):
                self._file.seek(start)
                self._file.truncate()
                self._at_end = True
                return False
            self._line += 1
            errors += self._is_error(row, line)
        self.errors += errors
        return True

    def append(self, results: Sequence[dict[str, Any]]) -> None:
        """Adds the results of a group."""
        content = "".join(json.dumps(result, allow_nan=False) + "\n" for result in results)
        try:
            self._file.write(content.encode())
            self._file.flush()
        except OSError as error:
            with suppress(OSError):
                self._file.close()
            raise OSError(error.errno, error.strerror, str(self._path)) from error
        self.errors += sum("error" in result for result in results)

    def finish(self) -> None:
        """To be called after the last row: nothing may follow."""
        if not self._at_end and self._file.read(1):
            self._refuse(f"holds more than the results of the {self._line:,} rows of the input")

    def _refuse(self, problem: str) -> NoReturn:
        raise tokentrie.TokenTrieError(f"{self._path} {problem}: {WAY_OUT}")

    def _lock(self) -> None:
        """Two runs must not write the same file; where the system has no locks, nothing is checked."""
        try:
            import fcntl

            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise tokentrie.TokenTrieError(f"{self._path}: another run is writing it") from None
        except (ImportError, OSError):
            pass

    def _write_note(self, settings: dict[str, object]) -> None:
        with replacing(self._note) as partial:
            partial.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")

    def _compare_note(self, settings: dict[str, object]) -> None:
        try:
            noted = json.loads(self._note.read_text(encoding="utf-8"))
        except FileNotFoundError:
            self._refuse(f"is not empty, and no {self._note.name} beside it says that it comes from this command")
        except ValueError:
            noted = None
        if not isinstance(noted, dict):
            self._refuse(f"cannot be continued, its {self._note.name} is damaged")
        if others := [name for name, value in settings.items() if noted.get(name) != value]:
            self._refuse(f"was made with another {' and another '.join(others)}")

    def _is_error(self, row: Row, line: bytes) -> bool:
        """Compares a line with the row it must come from. Returns whether it has an error in place of a result."""
        try:
            stored = json.loads(line)
        except (ValueError, RecursionError):
            stored = None
        added = stored.keys() - row.fields.keys() if isinstance(stored, dict) else set()
        if added not in (RESULT, ERROR) or {name: stored.get(name) for name in row.fields} != row.fields:
            self._refuse(f"has in line {self._line:,} no result of line {row.line:,} of the input")
        return added == ERROR
