"""XGrammar, by its compiler and matcher."""

from __future__ import annotations

import json
from importlib import metadata
from typing import Any

import numpy as np
import xgrammar

from loop import Clock, Engine, RefusedError, serve
from reference.notation import gbnf


class XGrammar(Engine):
    name = "xgrammar"
    version = metadata.version("xgrammar")
    settings = "JSON without white space; strict mode; caches off"

    def vocabulary(self, pieces: list[bytes], eog: list[int]) -> None:
        tokens = [piece or b"<|%d|>" % token for token, piece in enumerate(pieces)]
        others = [token for token, piece in enumerate(pieces) if not piece and token not in eog]
        self._others = np.array(others, dtype=np.int64)
        self._tokenizer = xgrammar.TokenizerInfo(
            tokens, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=eog
        )
        self._compiler = xgrammar.GrammarCompiler(self._tokenizer, max_threads=1, cache_enabled=False)
        self._mask = xgrammar.allocate_token_bitmask(1, len(tokens))

    def compile(self, kind: str, constraint: dict[str, Any]) -> None:
        try:
            if kind == "set":
                if not constraint["values"]:
                    raise RefusedError("no values")
                alternatives = {"or": [{"text": value} for value in constraint["values"]]}
                self._compiled = self._compiler.compile_grammar(gbnf(alternatives, {}))
            elif kind == "regex":
                self._compiled = self._compiler.compile_regex(constraint["pattern"])
            elif kind == "grammar":
                self._compiled = self._compiler.compile_grammar(constraint["gbnf"])
            elif kind == "schema":
                schema = json.dumps(constraint["schema"])
                separators = (",", ":")
                self._compiled = self._compiler.compile_json_schema(schema, any_whitespace=False, separators=separators)
            else:
                raise RefusedError(f"no constraints of kind {kind}")
        except RuntimeError as error:
            raise RefusedError(str(error)) from error
        self.begin()

    def begin(self) -> None:
        self._matcher = xgrammar.GrammarMatcher(self._compiled)

    def mask(self) -> tuple[bytes, float]:
        with Clock() as clock:
            restricted = self._matcher.fill_next_token_bitmask(self._mask)
        if not restricted:
            self._mask.fill_(-1)
        words = self._mask.numpy().view(np.uint32).reshape(-1)
        # Tokens without text are not known to it as such.
        np.bitwise_and.at(words, self._others // 32, ~(np.uint32(1) << (self._others % 32).astype(np.uint32)))
        return words.tobytes(), clock.us

    def advance(self, token: int) -> bool:
        return bool(self._matcher.accept_token(token))

    def rollback(self, count: int) -> None:
        self._matcher.rollback(count)

    def forced(self) -> bytes | None:
        try:
            return str(self._matcher.find_jump_forward_string()).encode()
        except UnicodeDecodeError:
            return None  # It raises where what must come begins or ends inside of a character.


if __name__ == "__main__":
    serve(XGrammar())
