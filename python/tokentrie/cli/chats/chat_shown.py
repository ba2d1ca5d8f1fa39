"""A reply on the screen while it comes: reasoning dimmed, names and enums of calls highlighted."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.text import Text

import tokentrie
from tokentrie.cli import console

DIM, NAME, CHOICE, ARGUMENTS = "dim", "bold cyan", "bold yellow", "cyan"


def choices_of(tools: tokentrie.Tools | None) -> dict[str, set[str]]:
    """The arguments of each tool whose values are one of a few."""
    found: dict[str, set[str]] = {}
    for one in tools.definitions if tools is not None else []:
        parameters = one["function"].get("parameters")
        properties = parameters.get("properties") if isinstance(parameters, dict) else None
        found[one["function"]["name"]] = {
            key
            for key, schema in (properties.items() if isinstance(properties, dict) else ())
            if isinstance(schema, dict) and ("enum" in schema or "const" in schema or schema.get("type") == "boolean")
        }
    return found


class Arguments:
    """Finds the values of some keys in JSON that comes in parts. Keys inside other values do not count."""

    def __init__(self, keys: set[str]) -> None:
        self._keys = keys
        self._depth = 0
        self._in_string = self._escaped = self._at_key = False
        self._key = ""

    def feed(self, text: str) -> list[tuple[str, bool]]:
        """The text in parts, and whether each belongs to such a value."""
        parts: list[tuple[str, bool]] = []
        for letter in text:
            chosen = self._step(letter)
            if parts and parts[-1][1] == chosen:
                parts[-1] = (parts[-1][0] + letter, chosen)
            else:
                parts.append((letter, chosen))
        return parts

    def _step(self, letter: str) -> bool:
        value = self._depth == 1 and not self._at_key and self._key in self._keys
        if self._in_string:
            if self._escaped:
                self._escaped = False
            elif letter == "\\":
                self._escaped = True
            elif letter == '"':
                self._in_string = False
                return value
            if self._at_key and self._depth == 1:
                self._key += letter
            return value
        if letter == '"':
            self._in_string = True
            if self._at_key and self._depth == 1:
                self._key = ""
            return value
        if letter in "{[":
            self._depth += 1
            self._at_key = self._depth == 1
        elif letter in "}]":
            self._depth -= 1
        elif self._depth == 1 and letter in ":,":
            self._at_key = letter == ","
        else:
            return value and not letter.isspace()
        return False


class EventPrinter:
    """Prints events. Without a terminal nothing is styled, and only the reply is printed, without its reasoning."""

    def __init__(self, tools: tokentrie.Tools | None, quiet: bool) -> None:
        """`quiet` prints nothing of replies."""
        self._choices = choices_of(tools)
        self._quiet = quiet
        self._screen = console.screen()
        self._beside = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._arguments = Arguments(set())
        self._line_begun = False
        self._kind = ""

    def event(self, event: tokentrie.results.ChatEvent) -> None:
        """One event of a reply."""
        if self._quiet or (event.kind == "reasoning" and not self._screen.is_terminal):
            return
        if event.kind in ("reasoning", "content", "call_begins") and event.kind != self._kind:
            self.end_line()
        self._kind = event.kind
        match event.kind:
            case "reasoning":
                self._write(event.text, DIM)
            case "content":
                self._write(event.text)
            case "call_begins":
                self._arguments = Arguments(self._choices.get(event.name, set()))
                self._write(event.name, NAME)
                self._write(" ")
            case "arguments":
                for text, chosen in self._arguments.feed(event.text):
                    self._write(text, CHOICE if chosen else ARGUMENTS)
            case "call_ends" | "message_ends":
                self.end_line()

    def result(self, name: str, result: str) -> None:
        """Prints the result of a function."""
        if not self._quiet:
            self.end_line()
            self._write(f"{name} → {result}", DIM)
            self.end_line()

    def stats(self, stats: tokentrie.results.ChatStats | None) -> None:
        """The line after a reply, on standard error."""
        self.end_line()
        self._kind = ""
        if stats is None or self._quiet:
            return
        saved = console.count(stats.forward_passes_saved, "forward pass", "forward passes")
        tokens = console.count(stats.tokens, "token", "tokens")
        line = f"{stats.tokens_per_second:,.0f} tokens/s, {tokens}, {saved} saved"
        self._beside.print(Text(line, style=DIM), soft_wrap=True)

    def note(self, text: str) -> None:
        """Something about the chat, on standard error."""
        self.end_line()
        self._beside.print(Text(console.printable(text), style=DIM), soft_wrap=True)

    def end_line(self) -> None:
        """Begins a new line unless one has just begun."""
        if self._line_begun:
            self._write("\n")

    def _write(self, text: str, style: str = "") -> None:
        if not text:
            return
        self._line_begun = not text.endswith("\n")
        if not self._screen.is_terminal:
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        # Control characters in the output of a model must not move the cursor.
        safe = "".join(c if c in "\n\t" else console.printable(c) for c in text)
        self._screen.print(Text(safe, style=style), end="", soft_wrap=True)


def json_of(messages: list[Any]) -> list[dict[str, Any]]:
    """A conversation as chat APIs write it."""
    return [one.to_dict() if isinstance(one, tokentrie.Message) else one for one in messages]
