"""The results of a data set: in the order of the input, and continued where an earlier run stopped."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NoReturn

import typer

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.rows import formats
from tokentrie.cli.rows.input import JSON_LINES, Row
from tokentrie.files import replacing

ERROR = {formats.ERROR}
UNREAD = {formats.ERROR, formats.RAW}
WAY_OUT = "take another --output, or begin anew with --restart"


class Output:
    """A file of results that appears when all rows are done, and replaces an earlier one then.

    Until then results are collected as JSON lines in `NAME.partial`; a note, `NAME.run.json`, says what they are made
    with. Only whole groups of rows are kept: a run may be stopped at any time and by any means, and what an unfinished
    group left behind is cut off before the next one goes on. Nothing is cut off or overwritten unless note and rows
    show that it comes from the same run, or `restart` says so. What is finished is not made again; results in JSON
    lines go on where rows were added to the input.
    """

    goes_on = True
    """True if an interrupted run goes on when the same command is given again."""

    def __init__(
        self,
        path: Path,
        settings: dict[str, object],
        restart: bool,
        leave_out_errors: bool,
        source: str | None,
        results: formats.Columns,
    ) -> None:
        """Opens it.

        Args:
            settings: what the results depend on, by the words that name them in messages.
            leave_out_errors: the finished file has no rows with an error in place of a result.
            source: tells the input from others, if that can be told.
            results: what a row has when it is done.
        """
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if path.exists() and not path.is_file():
            raise tokentrie.TokenTrieError(f"{path}: not a file: an interrupted run could not go on")
        self.path = path
        self.results = results
        self._target = Path(os.path.realpath(path))
        self._note = path.with_name(f"{path.name}.run.json")
        self._partial = path.with_name(f"{path.name}.partial")
        self._settings, self._source = settings, source
        self._leave_out_errors = leave_out_errors
        # True if the finished file has the collected rows as they are.
        self._plain = path.suffix.lower() in JSON_LINES and not leave_out_errors
        self._line = 0
        self._at_end = True
        self.finished = False
        """True if an earlier run did all of this: then `rows` has its results."""
        self._file = self._open()
        self._reader: BinaryIO = self._file
        try:
            self._lock()
            self._begin(restart)
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()

    def holds(self, group: Sequence[Row]) -> list[dict[str, Any]] | None:
        """The results of the next rows, if an earlier run wrote them; otherwise `append` writes them at this place."""
        if self._at_end:
            return None
        start, found = self._reader.tell(), []
        for row in group:
            line = self._reader.readline()
            if not line.endswith(b"\n"):
                self._go_on(start)
                return None
            self._line += 1
            found.append(self._match_line(row, line))
        return found

    def append(self, results: Sequence[dict[str, Any]]) -> None:
        """Adds the results of a group."""
        content = "".join(json.dumps(result, allow_nan=False) + "\n" for result in results)
        try:
            self._file.write(content.encode())
            self._file.flush()
        except OSError as error:
            with suppress(OSError):
                self._file.close()
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    def finish(self, left_out: int, columns: Sequence[str]) -> None:
        """To be called after the last row: makes the file. `left_out` are the rows that it does not have, `columns`
        those of the input.
        """
        if not self._at_end and self._reader.read(1):
            self._refuse(f"holds more than the results of the {self._line:,} rows of the input")
        if self._reader is not self._file:
            return
        os.fsync(self._file.fileno())
        if self._plain:
            os.replace(self._partial, self._target)
            return
        formats.convert(self._partial, self._target, self._leave_out_errors, columns, self.results)
        made = {"output": digest(self._target), "input": self._source, "left_out": left_out}
        self._write_note({"finished": made})
        self._file.truncate(0)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields the rows of a finished file."""
        return formats.read(self._target, self.results)

    def count_kept(self) -> int:
        """Returns the number of rows whose result is written; nothing can be added after this."""
        self._reader.seek(0)
        return sum(part.count(b"\n") for part in iter(lambda: self._reader.read(1 << 20), b""))

    @property
    def left_out(self) -> int:
        """Rows of the input that a finished file does not have."""
        return int(self._read_note()["finished"]["left_out"])

    def _open(self) -> BinaryIO:
        try:
            return os.fdopen(os.open(self._partial, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    def _close(self) -> None:
        """Leaves no empty file behind."""
        if self._reader is not self._file:
            self._reader.close()
        with suppress(OSError):
            if not self._file.closed and self._is_ours() and not os.fstat(self._file.fileno()).st_size:
                self._partial.unlink()
        self._file.close()

    def _lock(self) -> None:
        """Two runs must not write the same file; where the system has no locks, nothing is checked."""
        try:
            import fcntl

            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise tokentrie.TokenTrieError(f"{self.path}: another run is writing it") from None
        except (ImportError, OSError):
            return
        if not self._is_ours():
            self._file.close()
            raise tokentrie.TokenTrieError(f"{self.path}: another run has just finished it")

    def _is_ours(self) -> bool:
        """Returns True if the name still stands for the file that was opened."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), self._partial.stat())
        except OSError:
            return False

    def _begin(self, restart: bool) -> None:
        """Finds where to go on."""
        if restart:
            self._file.truncate(0)
        if os.fstat(self._file.fileno()).st_size:
            self._compare_note()
            self._at_end = False
        elif restart or not self._target.exists() or not self._target.stat().st_size:
            self._write_note()
        else:
            noted = self._compare_note()
            if self._plain:
                self._reader, self._at_end = self._target.open("rb"), False
            elif (made := noted.get("finished")) is None or made.get("output") != digest(self._target):
                self._refuse("is not as the run left it that its note tells of")
            else:
                # Unless the input is known to be the same, all rows are made anew; the finished file stays until then.
                self.finished = self._source is not None and made.get("input") == self._source

    def _go_on(self, start: int) -> None:
        """After the results up to `start`: in the same file, or behind a copy of them."""
        if self._reader is self._file:
            self._file.seek(start)
            self._file.truncate()
        else:
            self._reader.seek(0)
            left = start
            while left and (part := self._reader.read(min(left, 1 << 20))):
                self._file.write(part)
                left -= len(part)
            self._reader.close()
            self._reader = self._file
        self._at_end = True

    def _refuse(self, problem: str) -> NoReturn:
        raise tokentrie.TokenTrieError(f"{self.path} {problem}: {WAY_OUT}")

    def _write_note(self, more: dict[str, object] | None = None) -> None:
        with replacing(self._note) as partial:
            partial.write_text(json.dumps(self._settings | (more or {}), indent=1) + "\n", encoding="utf-8")

    def _read_note(self) -> Any:
        return json.loads(self._note.read_text(encoding="utf-8"))

    def _compare_note(self) -> dict[str, Any]:
        try:
            noted = self._read_note()
        except FileNotFoundError:
            self._refuse(f"is not empty, and no {self._note.name} beside it says that it comes from this command")
        except ValueError:
            noted = None
        if not isinstance(noted, dict):
            self._refuse(f"cannot be continued, its {self._note.name} is damaged")
        if others := [name for name, value in self._settings.items() if noted.get(name) != value]:
            self._refuse(f"was made with another {' and another '.join(others)}")
        return noted

    def _match_line(self, row: Row, line: bytes) -> dict[str, Any]:
        """Returns the content of a line if it comes from this row."""
        try:
            stored = json.loads(line)
        except (ValueError, RecursionError):
            stored = None
        added = stored.keys() - row.fields.keys() if isinstance(stored, dict) else set()
        if (
            isinstance(stored, dict)
            and added in ({*self.results.names}, ERROR, UNREAD)
            and {name: stored.get(name) for name in row.fields} == row.fields
        ):
            return stored
        return self._refuse(f"has in line {self._line:,} no result of line {row.line:,} of the input")


class StreamOutput:
    """Results on standard output, as JSON lines, a group at a time. Nothing is kept, so nothing goes on."""

    goes_on = False
    finished = False
    left_out = 0

    def __init__(self, leave_out_errors: bool, results: formats.Columns) -> None:
        """The arguments are those of `Output`."""
        self.path = Path("-")
        self.results = results
        self._leave_out_errors = leave_out_errors
        self._written = 0

    def __enter__(self) -> StreamOutput:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass

    def holds(self, group: Sequence[Row]) -> None:
        """There are no results of earlier runs."""

    def append(self, results: Sequence[dict[str, Any]]) -> None:
        """Writes the results of a group."""
        stream = console.standard_output()
        for result in results:
            if not (self._leave_out_errors and self.results.is_error(result)):
                stream.write((json.dumps(result, allow_nan=False) + "\n").encode())
        stream.flush()
        self._written += len(results)

    def finish(self, left_out: int, columns: Sequence[str]) -> None:
        """Ends the output; nothing is left to write."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields nothing: standard output keeps no rows."""
        return iter(())

    def count_kept(self) -> int:
        """Returns the number of rows that were done."""
        return self._written


def check_output(path: Path | None, source: Path, restart: bool = False) -> None:
    """Refuses a file that cannot take the results of a data set, before any work.

    Raises:
        BadParameter: there is none, it is the input itself, or of no known format; or nothing is kept there.
    """
    if path is None:
        raise typer.BadParameter(
            "give a file, where an interrupted run goes on, or - for standard output", param_hint="--output"
        )
    if console.is_standard(path):
        if restart:
            raise typer.BadParameter("standard output keeps nothing of an earlier run", param_hint="--restart")
        return
    if path.exists() and source.exists() and path.samefile(source):
        raise typer.BadParameter(f"{path} is the input", param_hint="--output")
    formats.check(path)


def round_share(share: float, digits: int = 6) -> float:
    """A probability as results have it. The weights are float32 at best: more digits would be noise."""
    return float(f"{share:.{digits}g}")


def digest(path: Path, pieces: int = 16, length: int = 1 << 16) -> str:
    """Tells files apart without reading all of them: the size, and pieces from all over the file."""
    found = hashlib.sha256()
    size = path.stat().st_size
    with path.open("rb") as file:
        for piece in range(pieces):
            file.seek(max(size - length, 0) * piece // (pieces - 1))
            found.update(file.read(length))
    return f"{size} bytes, {found.hexdigest()}"
