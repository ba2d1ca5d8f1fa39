"""Text files: how their bytes become text, whole or a line at a time, so that none of any length fills the memory.

The encoding is UTF-8, or UTF-16 if a byte order mark says so. Invalid text is an error with line and byte.
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NoReturn

import tokentrie
from tokentrie.files import only_files

LONGEST_LINE = 16 << 20
CHUNK = 1 << 16
UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def standard_input() -> BinaryIO:
    """Returns standard input as a stream of bytes."""
    if sys.stdin is None:
        raise tokentrie.TokenTrieError("-: standard input is closed")
    return sys.stdin.buffer


class Lines:
    """The lines of a file with their numbers, from 1; `-` is standard input. Iterate once."""

    def __init__(self, path: Path, content: bytes | None = None) -> None:
        """Opens it; `content` is what it holds, if that was read already."""
        self._path = path
        self._stream: BinaryIO
        self.size: int | None
        """Bytes in all, if known."""
        if content is not None:
            self._stream, self.size = io.BytesIO(content), len(content)
        elif str(path) == "-":
            self._stream, self.size = standard_input(), None
        else:
            self._stream, self.size = only_files(path).open("rb"), path.stat().st_size
        self.position = 0
        """Bytes read so far."""

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if sys.stdin is None or self._stream is not sys.stdin.buffer:
            self._stream.close()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """As bytes of UTF-8 (where the file has no text, as they are), with their line breaks."""
        first = self._readline()
        if first.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
            self.fail(1, "UTF-32 is not supported: save it as UTF-8")
        encoding = UTF_16.get(first[:2])
        rest = iter(self._readline, b"") if encoding is None else self._of_utf_16(first, encoding)
        if encoding is None:
            first = first.removeprefix(codecs.BOM_UTF8)
            rest = _chain(first, rest)
        for number, line in enumerate(rest, 1):
            if len(line) > LONGEST_LINE:
                self.fail(number, f"longer than {LONGEST_LINE >> 20} MiB")
            yield number, line

    def texts(self) -> Iterator[tuple[int, str]]:
        """As text, with their line breaks."""
        return ((number, self._text(number, line)) for number, line in self)

    def _readline(self) -> bytes:
        line = self._stream.readline(LONGEST_LINE + 1)
        self.position += len(line)
        return line

    def _of_utf_16(self, begun: bytes, encoding: str) -> Iterator[bytes]:
        """The lines as UTF-8. `begun` is what was read, with the byte order mark."""
        decoder = codecs.getincrementaldecoder(encoding)()
        number, offset, held, chunk = 1, 2, "", begun[2:]
        while True:
            waiting = len(decoder.getstate()[0])
            try:
                held += decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                good = held + error.object[: error.start].decode(encoding)
                at = offset - waiting + error.start
                self.fail(number + good.count("\n"), f"not UTF-16: byte {at:,} of the file, {error.reason}")
            offset += len(chunk)
            *lines, held = held.split("\n")
            for line in lines:
                number += 1
                yield f"{line}\n".encode()
            if len(held) > LONGEST_LINE:
                self.fail(number, f"longer than {LONGEST_LINE >> 20} MiB")
            if not chunk:
                break
            chunk = self._stream.read(CHUNK)
            self.position += len(chunk)
        if held:
            yield held.encode()

    def _text(self, number: int, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            self.fail(number, not_utf8(error))

    def place(self, line: int) -> str:
        """Returns the place for messages."""
        return f"{self._path}, line {line}"

    def fail(self, line: int, problem: object) -> NoReturn:
        """Raises an error after which the rest of the file cannot be trusted."""
        raise tokentrie.TokenTrieError(f"{self.place(line)}: {problem}")


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


def not_utf8(error: UnicodeDecodeError) -> str:
    """Returns a message that names the byte of a line that is not UTF-8."""
    return f"not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}"


def as_text(content: bytes, path: Path) -> str:
    """Returns the text of a whole file without its byte order mark, its lines ended by `\\n`.

    Raises:
        TokenTrieError: it is not text; with line and byte.
    """
    return "".join(text for _, text in Lines(path, content).texts()).replace("\r\n", "\n")


def strip_mark(content: bytes, path: Path) -> bytes:
    """Returns the bytes as UTF-8 without a byte order mark if one names the encoding; otherwise as they are.

    Raises:
        TokenTrieError: the mark is that of UTF-16, and the rest is not; with line and byte.
    """
    if content.startswith(codecs.BOM_UTF8) or content[:2] in UTF_16:
        return b"".join(line for _, line in Lines(path, content))
    return content


def blank_ends(text: str) -> bool:
    """Returns True if a value begins or ends with blanks, which become part of it and are rarely meant."""
    return text != text.strip()
