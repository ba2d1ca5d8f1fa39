"""LM Format Enforcer: its parsers over characters, and its token enforcer."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from lmformatenforcer import (
    JsonSchemaParser,
    RegexParser,
    StringParser,
    TokenEnforcer,
    TokenEnforcerTokenizerData,
    UnionParser,
)

from loop import Clock, PrefixEngine, RefusedError, bits, serve


class LmFormatEnforcer(PrefixEngine):
    name = "lm-format-enforcer"
    version = metadata.version("lm-format-enforcer")
    settings = "defaults: it writes JSON with white space, too"

    def vocabulary(self, pieces: list[bytes], eog: list[int]) -> None:
        self._size = len(pieces)
        regular = []
        for token, piece in enumerate(pieces):
            try:
                text = piece.decode()
            except UnicodeDecodeError:
                continue  # It knows characters alone.
            if piece and token not in eog:
                regular.append((token, text, text.startswith(" ")))

        def decode(tokens: list[int]) -> str:
            return b"".join(pieces[token] for token in tokens).decode(errors="replace")

        self._data = TokenEnforcerTokenizerData(regular, decode, eog[0], False, self._size)

    def compile(self, kind: str, constraint: dict[str, Any]) -> None:
        if kind == "set" and constraint["values"]:
            self._parser: Any = UnionParser([StringParser(value) for value in constraint["values"]])
        elif kind == "regex":
            self._parser = RegexParser(constraint["pattern"])
        elif kind == "schema":
            self._parser = JsonSchemaParser(constraint["schema"])
        else:
            raise RefusedError(f"no constraints of kind {kind}")
        self.begin()

    def begin(self) -> None:
        self._enforcer = TokenEnforcer(self._data, self._parser)
        self.written = []

    def following(self) -> list[int]:
        return list(self._enforcer.get_allowed_tokens(self.written).allowed_tokens)

    def mask(self) -> tuple[bytes, float]:
        with Clock() as clock:
            legal = self._enforcer.get_allowed_tokens(self.written).allowed_tokens
        return bits(legal, self._size), clock.us


if __name__ == "__main__":
    serve(LmFormatEnforcer())
