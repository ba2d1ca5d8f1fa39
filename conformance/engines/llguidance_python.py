"""llguidance, by its matcher."""

from __future__ import annotations

import json
from importlib import metadata
from typing import Any

import llguidance.numpy
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from loop import Clock, Engine, RefusedError, serve
from reference.notation import lark, pattern, quoted


class Tokenizer:
    """What llguidance asks of a tokenizer."""

    bos_token_id = None

    def __init__(self, pieces: list[bytes], eog: list[int]) -> None:
        self.eos_token_id = eog[0]
        self.special_token_ids = tuple(token for token, piece in enumerate(pieces) if not piece or token in eog)
        self.tokens = tuple(piece or b"<|%d|>" % token for token, piece in enumerate(pieces))
        self._bytes = {piece: token for token, piece in enumerate(pieces) if len(piece) == 1}

    def __call__(self, text: bytes | str) -> list[int]:
        data = text.encode() if isinstance(text, str) else text
        return [self._bytes[bytes([byte])] for byte in data if bytes([byte]) in self._bytes]


class LLGuidance(Engine):
    name = "llguidance"
    version = metadata.version("llguidance")
    settings = (
        "no_forcing: all spellings of what must come; JSON without white space; what has no rules is one terminal"
    )

    def vocabulary(self, pieces: list[bytes], eog: list[int]) -> None:
        self._tokenizer = LLTokenizer(TokenizerWrapper(Tokenizer(pieces, eog)))
        self._words = llguidance.numpy.allocate_token_bitmask(1, len(pieces))

    def compile(self, kind: str, constraint: dict[str, Any]) -> None:
        if kind == "set":
            if not constraint["values"]:
                raise RefusedError("no values")
            grammar = "start: " + " | ".join(map(quoted, constraint["values"]))
        elif kind == "regex":
            grammar = f"start: /{constraint['pattern']}/"
        elif kind == "grammar":
            grammar = lark(constraint["start"], constraint["rules"])
        elif kind == "schema":
            schema = {"x-guidance": {"whitespace_flexible": False}, **constraint["schema"]}
            grammar = f"start: %json {json.dumps(schema)}"
        elif kind == "gate":
            trigger, end = quoted(constraint["trigger"]), quoted(constraint["end"])
            body = f"/{pattern(constraint['body'])}/"
            grammar = f"start: before {body} {end}\nbefore[suffix={trigger}]: /(.|\\n)*/\n"
        else:
            raise RefusedError(f"no constraints of kind {kind}")
        grammar = LLMatcher.grammar_from_lark('%llguidance {"no_forcing": true}\n' + grammar)
        self._grammar = grammar
        self.begin()
        if self._matcher.is_error():
            raise RefusedError(self._matcher.get_error())

    def begin(self) -> None:
        self._matcher = LLMatcher(self._tokenizer, self._grammar)

    def mask(self) -> tuple[bytes, float]:
        with Clock() as clock:
            llguidance.numpy.fill_next_token_bitmask(self._matcher, self._words, 0)
        if self._matcher.is_error():
            raise RuntimeError(self._matcher.get_error())
        return self._words.tobytes(), clock.us

    def may_end(self) -> bool | None:
        return self._matcher.is_accepting()

    def advance(self, token: int) -> bool:
        return bool(self._matcher.consume_token(token)) and not self._matcher.is_error()

    def rollback(self, count: int) -> None:
        if not self._matcher.rollback(count):
            raise RuntimeError("it took no token back")

    def forced(self) -> bytes | None:
        return bytes(self._matcher.compute_ff_bytes())


if __name__ == "__main__":
    serve(LLGuidance())
