"""Output of all commands: results on standard output, for people or as JSON; all else on standard error."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

import tokentrie
from tokentrie.cli.lines import standard_input, strip_mark
from tokentrie.files import only_files

# Where nobody watches, nothing is cut off: lines are as long as they must be.
UNWATCHED_WIDTH = 10_000
# Standard input may never end.
MOST_BYTES = 1 << 30


# Whether standard output is taken by what `-o -` writes: all else is then said on standard error.
_aside = ContextVar("_aside", default=False)


def is_standard(output: Path | None) -> bool:
    """Returns True if results go to standard output: `-`."""
    return str(output) == "-"


@contextmanager
def redirect_messages(output: Path | None) -> Iterator[None]:
    """Says on standard error what is said in the block, where the results go to standard output."""
    before = _aside.set(is_standard(output))
    try:
        yield
    finally:
        _aside.reset(before)


def standard_output() -> BinaryIO:
    """Returns standard output as a stream of bytes."""
    sys.stdout.flush()
    return sys.stdout.buffer


def screen() -> Console:
    """Standard output for people. Texts are shown as they are: no markup, no guessing at what to highlight."""
    console = Console(stderr=_aside.get(), highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = UNWATCHED_WIDTH
    return console


def print_json(document: dict[str, Any]) -> None:
    """One JSON document on one line."""
    stream = sys.stderr if _aside.get() else sys.stdout
    stream.write(json.dumps(document) + "\n")
    stream.flush()


def say(message: str) -> None:
    """One line on standard error, whatever the message holds."""
    print(f"tokentrie: {printable(' '.join(message.split()))}", file=sys.stderr)


def working(on: str) -> AbstractContextManager[object]:
    """Shows that something takes time, on standard error and only on a terminal."""
    console = Console(stderr=True, highlight=False, markup=False)
    return console.status(f"{on} …") if console.is_terminal else nullcontext()


@contextmanager
def progress(on: str) -> Iterator[Callable[[int, int | None], None]]:
    """Shows how much of something is done, on standard error and only on a terminal: call with done and total."""
    console = Console(stderr=True, highlight=False, markup=False)
    if not console.is_terminal:
        yield lambda done, total: None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(on, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def say_warnings(warnings: Iterable[str]) -> None:
    """One line each, on standard error."""
    for warning in warnings:
        say(f"warning: {warning}")


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collects the library's warnings; the list is filled when the block ends."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", tokentrie.errors.TokenTrieWarning)
        yield messages
    messages += [
        str(entry.message) for entry in caught if issubclass(entry.category, tokentrie.errors.TokenTrieWarning)
    ]


def read(path: Path) -> bytes:
    """The content of a file, or of standard input for `-`; text with a byte order mark as plain UTF-8."""
    with working(f"reading {path}"):
        if str(path) != "-":
            return strip_mark(only_files(path).read_bytes(), path)
        content = standard_input().read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise tokentrie.TokenTrieError(f"-: standard input is longer than {MOST_BYTES >> 20:,} MiB")
    return strip_mark(content, path)


def printable(text: str) -> str:
    """The text with control characters, and whatever else could move a cursor, as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def quote_bytes(piece: bytes) -> str:
    """A token's bytes in quotes, escaped where they are no printable text."""
    try:
        return printable(json.dumps(piece.decode("utf-8"), ensure_ascii=False))
    except UnicodeDecodeError:
        return f'"{printable(piece.decode("utf-8", "backslashreplace"))}"'


def milliseconds(seconds: float) -> str:
    """Such as `0.42 ms`, `7 ms`, `1.3 s`."""
    ms = seconds * 1000
    if ms >= 1000:
        return f"{seconds:.1f} s"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.2g} ms"


def count(number: int, one: str, many: str) -> str:
    """Such as `1 leaf`, `2,000 leaves`."""
    return f"{number:,} {one if number == 1 else many}"
