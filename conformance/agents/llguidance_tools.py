"""Adapter of llguidance: a call under the chat template of Hermes, as a grammar with `%json`."""

from __future__ import annotations

import json
import time
from importlib import metadata
from typing import Any

import llguidance.numpy
from calls import parameters
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper


def pieces_of(vocabulary: str | None) -> list[bytes]:
    """Returns the tokens of a GGUF file whose tokenizer is GPT-2's; without a file each byte is one."""
    if vocabulary is None:
        return [bytes([byte]) for byte in range(256)]
    import gguf

    field = gguf.GGUFReader(vocabulary).fields["tokenizer.ggml.tokens"]
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    of_sign = {chr(byte): byte for byte in plain} | {chr(256 + nth): byte for nth, byte in enumerate(others)}
    texts = (bytes(field.parts[at]).decode() for at in field.data)
    # A control token is none of these signs, and never comes in a call here.
    return [bytes(of_sign[sign] for sign in text) if all(sign in of_sign for sign in text) else b"" for text in texts]


class Tokenizer:
    """The tokenizer that llguidance asks."""

    bos_token_id = None

    def __init__(self, pieces: list[bytes]) -> None:
        self.eos_token_id = len(pieces)
        self.special_token_ids = (len(pieces), *(token for token, piece in enumerate(pieces) if not piece))
        self.tokens = (*(piece or b"<|%d|>" % token for token, piece in enumerate(pieces)), b"<|end|>")
        self.bytes = {piece[0]: token for token, piece in enumerate(pieces) if len(piece) == 1}

    def __call__(self, text: bytes | str) -> list[int]:
        data = text.encode() if isinstance(text, str) else text
        return [self.bytes[byte] for byte in data]


class LLGuidance:
    """Constrains a reply to one call of a tool."""

    name = "llguidance"
    version = metadata.version("llguidance")

    def __init__(self, vocabulary: str | None) -> None:
        self._own = Tokenizer(pieces_of(vocabulary))
        self._tokenizer = LLTokenizer(TokenizerWrapper(self._own))
        self._words = llguidance.numpy.allocate_token_bitmask(1, len(self._own.tokens))
        self.settings = f"a vocabulary of {len(self._own.tokens):,} tokens"
        self.warnings: list[str] = []

    def compile(self, tools: list[dict[str, Any]]) -> None:
        """Raises RuntimeError with the reason if the tools cannot be held."""
        rules, ways = [], []
        for nth, tool in enumerate(tools):
            name = json.dumps(tool["function"]["name"] + '", "arguments": ')
            ways.append(f"{name} args_{nth}")
            rules.append(f"args_{nth}: %json {json.dumps(parameters(tool))}")
        head = json.dumps('<tool_call>\n{"name": "')
        rules = [
            f"start: {head} call {json.dumps('}' + chr(10) + '</tool_call>')}",
            "call: " + " | ".join(ways),
            *rules,
        ]
        try:
            self._grammar = LLMatcher.grammar_from_lark("\n".join(rules))
            matcher = LLMatcher(self._tokenizer, self._grammar)
        except ValueError as error:
            raise RuntimeError(str(error)) from error
        if matcher.is_error():
            raise RuntimeError(matcher.get_error())

    def masks(self) -> tuple[float, float]:
        """Returns the processor seconds of the mask of a reply's first token, and of that of a tool's name."""
        matcher = LLMatcher(self._tokenizer, self._grammar)
        begun = time.process_time()
        llguidance.numpy.fill_next_token_bitmask(matcher, self._words, 0)
        first = time.process_time() - begun
        for token in self._own('<tool_call>\n{"name": "'):
            matcher.consume_token(token)
        begun = time.process_time()
        llguidance.numpy.fill_next_token_bitmask(matcher, self._words, 0)
        return first, time.process_time() - begun

    def accepts(self, name: str, arguments: str) -> bool:
        """Returns whether this call may be written, and the reply may end after it."""
        matcher = LLMatcher(self._tokenizer, self._grammar)
        text = f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'
        for token in self._own(text):
            if not matcher.consume_token(token) or matcher.is_error():
                return False
        return bool(matcher.is_accepting())
