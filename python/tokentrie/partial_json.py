"""Values of JSON documents that are not yet whole."""

from __future__ import annotations

import json
import re
from typing import Any

#: What may follow a text up to its last whole character: an escape that is not over, or half of a pair of them.
UNFINISHED = re.compile(
    r"(?<!\\)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?)\Z"
)
CLOSED_BY = {"{": "}", "[": "]"}


class BegunJson:
    """The beginning of a JSON document, which comes in parts."""

    def __init__(self) -> None:
        self._text = ""
        self._open: list[str] = []
        self._in_text = self._is_escaped = self._is_name = self._takes_name = False
        #: Length of the beginning that has a value once what is open is closed, and the closing brackets.
        self._safe: tuple[int, str] | None = None
        self._last = ""

    def push(self, part: str) -> bool:
        """Reads more of the document; whether its value is another one than before."""
        for at, sign in enumerate(part, len(self._text)):
            if self._in_text:
                self._step_in_text(sign, at)
            else:
                self._step(sign, at)
        self._text += part
        is_new = (text := self._close_open_parts()) != self._last
        self._last = text
        return is_new

    def value(self) -> Any:
        """Returns the value so far.

        Raises:
            ValueError: there is none yet.
        """
        return json.loads(self._last)

    def _keep(self, length: int) -> None:
        self._safe = (length, "".join(reversed(self._open)))

    def _step_in_text(self, sign: str, at: int) -> None:
        if self._is_escaped:
            self._is_escaped = False
        elif sign == "\\":
            self._is_escaped = True
        elif sign == '"':
            self._in_text = False
            if not self._is_name:
                self._keep(at + 1)

    def _step(self, sign: str, at: int) -> None:
        if sign == '"':
            self._in_text, self._is_name = True, self._takes_name
        elif sign in CLOSED_BY:
            self._open.append(CLOSED_BY[sign])
            self._takes_name = sign == "{"
            self._keep(at + 1)
        elif sign in "}]":
            self._open = self._open[:-1]
            self._takes_name = False
            self._keep(at + 1)
        elif sign == ",":
            # Before it a number is over, too.
            self._keep(at)
            self._takes_name = self._open[-1:] == ["}"]
        elif sign == ":":
            self._takes_name = False

    def _close_open_parts(self) -> str:
        """The text that was read, closed where a value is open; empty where there is no value yet."""
        if self._in_text and not self._is_name:
            text = self._text
            if found := UNFINISHED.search(text):
                text = text[: found.start(1)]
            return f'{text}"{"".join(reversed(self._open))}'
        if self._safe is None:
            return ""
        length, closing = self._safe
        return self._text[:length] + closing
