"""The lines of a file, one at a time, so that none of any length fills the memory."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NoReturn

import tokentrie
from tokentrie.cli import console
from tokentrie.files import only_files

LONGEST_LINE = 16 << 20


class Lines:
    """The lines of a file with their numbers, from 1; `-` is standard input. Iterate once."""

    def __init__(self, path: Path) -> None:
        """Opens it."""
        standard = str(path) == "-"
        self._path = path
        self._stream: BinaryIO = console.standard_input() if standard else only_files(path).open("rb")
        self._standard = standard
        self.size = None if standard else path.stat().st_size
        """Bytes in all, if known."""
        self.position = 0
        """Bytes read so far."""

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._standard:
            self._stream.close()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """As bytes, with their line breaks."""
        number = 0
        while line := self._stream.readline(LONGEST_LINE + 1):
            number += 1
            self.position += len(line)
            if len(line) > LONGEST_LINE:
                self.fail(number, f"longer than {LONGEST_LINE >> 20} MiB")
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line

    def texts(self) -> Iterator[tuple[int, str]]:
        """As text, with their line breaks."""
        return ((number, self._text(number, line)) for number, line in self)

    def _text(self, number: int, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            self.fail(number, not_utf8(error))

    def place(self, line: int) -> str:
        """For messages."""
        return f"{self._path}, line {line}"

    def fail(self, line: int, problem: object) -> NoReturn:
        """What makes all that follows doubtful."""
        raise tokentrie.TokenTrieError(f"{self.place(line)}: {problem}")


def not_utf8(error: UnicodeDecodeError) -> str:
    """Which byte of a line is no text."""
    return f"not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}"
