"""Help pages that fit into any terminal: no line is wider, and nothing is left out."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from typing import Any

# Terminals from here on have room for two columns beside each other.
WIDE = 80
NARROWEST = 16
INDENT = 2
# A word that is too long is broken behind these characters; an alternative begins on the next line.
JOINTS = "|,=/."


def readable(command: Any) -> Any:
    """A command, and those in it, with help pages that fit into the terminal."""
    for one in (command, *getattr(command, "commands", {}).values()):
        of_typer = one.context_class

        class Context(of_typer):  # type: ignore[misc, valid-type]
            formatter_class = _formatter(of_typer.formatter_class)

        one.context_class = Context
    return command


def fold(text: str, width: int, end: str = "") -> Iterator[str]:
    """Words in lines of a width, with something at the end of each but the last; too long words are broken."""
    line = ""
    room = max(width - len(end), 1)
    for word in _words(text):
        if line and len(line) + 1 + len(word) > room:
            yield line + end
            line = ""
        line = f"{line} {word}" if line else word
        while len(line) > room:
            at = max((line.rfind(joint, 1, room - 1) + 1 for joint in JOINTS), default=0)
            at = at if at > room // 2 else room
            # In a word that is broken nothing is put in.
            yield line[:at]
            line = line[at:]
    yield line


def _words(text: str) -> list[str]:
    """Words; what is quoted is one."""
    words: list[str] = []
    quote = ""
    for part in text.split(" "):
        if quote:
            words[-1] += f" {part}"
        elif part:
            words.append(part)
        for char in part:
            quote = "" if char == quote else quote or (char if char == '"' or (char == "'" and part[0] == "'") else "")
    return words


def _formatter(base: type[Any]) -> type[Any]:
    class Formatter(base):  # type: ignore[misc, valid-type]
        """The base formatter in a wide terminal; in a narrow one everything stands in one column."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.columns = max(shutil.get_terminal_size().columns, NARROWEST)
            if self.columns < WIDE:
                # The text about a command is not cut off.
                self.width = WIDE - 2

        def _lines(self, text: str, indent: int, end: str = "") -> None:
            hanging = indent + INDENT
            first, *rest = fold(text, self.columns - hanging, end)
            self.write(f"{'':{indent}}{first}\n")
            for line in rest:
                self.write(f"{'':{hanging if end else indent}}{line}\n")

        def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
            if self.columns >= WIDE:
                super().write_usage(prog, args, prefix)
                return
            self._lines(f"{prefix or 'Usage: '}{prog} {args}", self.current_indent)

        def write_text(self, text: str) -> None:
            if self.columns >= WIDE:
                super().write_text(text)
                return
            for number, paragraph in enumerate(text.split("\n\n")):
                if number:
                    self.write("\n")
                lines = paragraph.split("\n")
                if lines[0].strip() != "\b":
                    self._lines(" ".join(line.strip() for line in lines), self.current_indent)
                    continue
                for line in lines[1:]:
                    # Commands can be copied as they stand.
                    is_command = line.startswith(" ")
                    self._lines(line.strip(), self.current_indent + INDENT * is_command, " \\" if is_command else "")

        def write_dl(self, rows: Sequence[tuple[str, str]], *args: Any, **kwargs: Any) -> None:
            if self.columns >= WIDE:
                super().write_dl(rows, *args, **kwargs)
                return
            for name, about in rows:
                self._lines(name, self.current_indent)
                if about:
                    self._lines(" ".join(about.split()), self.current_indent + 2 * INDENT)

    return Formatter
