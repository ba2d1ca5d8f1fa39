"""outlines-core: its index over a regular expression."""

from __future__ import annotations

import json
from importlib import metadata
from typing import Any

import numpy as np
import outlines_core
from outlines_core.json_schema import build_regex_from_schema

from loop import Clock, Engine, RefusedError, serve
from reference.notation import pattern


class OutlinesCore(Engine):
    name = "outlines-core"
    version = metadata.version("outlines-core")
    settings = "JSON without white space; values of a set with the longest first"

    def vocabulary(self, pieces: list[bytes], eog: list[int]) -> None:
        tokens: dict[bytes, list[int]] = {}
        for token, piece in enumerate(pieces):
            if piece:
                tokens.setdefault(piece, []).append(token)
        self._vocabulary = outlines_core.Vocabulary(eog[0], tokens)
        self._words = np.zeros(-(-len(pieces) // 32), np.int32)

    def compile(self, kind: str, constraint: dict[str, Any]) -> None:
        try:
            if kind == "set":
                if not constraint["values"]:
                    raise RefusedError("no values")
                values = sorted(constraint["values"], key=len, reverse=True)
                found = pattern({"or": [{"text": value} for value in values]})
            elif kind == "regex":
                found = constraint["pattern"]
            elif kind == "schema":
                found = build_regex_from_schema(json.dumps(constraint["schema"]), whitespace_pattern="")
            else:
                raise RefusedError(f"no constraints of kind {kind}")
            self._index = outlines_core.Index(found, self._vocabulary)
        except (ValueError, RuntimeError) as error:
            raise RefusedError(str(error)) from error
        self.begin()

    def begin(self) -> None:
        self._guide = outlines_core.Guide(self._index)

    def mask(self) -> tuple[bytes, float]:
        self._words.fill(0)
        with Clock() as clock:
            self._guide.write_mask_into(self._words.ctypes.data, self._words.size, self._words.itemsize)
        return self._words.tobytes(), clock.us

    def advance(self, token: int) -> bool:
        try:
            self._guide.advance(token)
        except ValueError:
            return False
        return True

    def rollback(self, count: int) -> None:
        self._guide.rollback_state(count)


if __name__ == "__main__":
    serve(OutlinesCore())
