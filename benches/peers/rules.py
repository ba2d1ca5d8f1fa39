"""Engines that make masks over a vocabulary of patterns and grammars, each asked for the same answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import tokentrie

from peers import package

Words = npt.NDArray[np.int32]


class Engine:
    """One engine over one vocabulary. `legal` begins a pattern anew and tells what may come after some tokens."""

    def __init__(self, vocab: tokentrie.Vocab) -> None:
        self.vocab = vocab
        self.words = np.zeros(-(-len(vocab) // 32), dtype=np.int32)

    @cached_property
    def end(self) -> int:
        return self.vocab.eog[0]

    @cached_property
    def pieces(self) -> list[bytes]:
        """The bytes of each token that is text; none of others."""
        other = {*self.vocab.control, *self.vocab.eog}
        return [b"" if token in other else self.vocab[token] for token in range(len(self.vocab))]

    def bits(self) -> npt.NDArray[np.bool_]:
        """The mask that was filled last, over tokens that are text."""
        bits = np.unpackbits(self.words.view(np.uint8), bitorder="little")[: len(self.vocab)].astype(np.bool_)
        return bits & np.array([bool(piece) for piece in self.pieces])


class Ours(Engine):
    def regex(self, pattern: str) -> Any:
        return tokentrie.Regex(pattern)

    def json(self) -> Any:
        return tokentrie.rules.Grammar.example("json")

    def begin(self, rule: Any) -> Any:
        return tokentrie.Sampler(self.vocab, rule, end_tokens=[self.end])

    def fill(self, state: Any) -> None:
        state.fill_bitmask(self.words)

    def accept(self, state: Any, token: int) -> None:
        state.accept(token)


class LLGuidance(Engine):
    @cached_property
    def tokenizer(self) -> Any:
        llguidance, end, pieces = package("llguidance"), self.end, self.pieces

        class Tokenizer:
            eos_token_id = end
            bos_token_id = None
            special_token_ids = tuple(token for token, piece in enumerate(pieces) if not piece)
            tokens = tuple(piece or b"<|%d|>" % token for token, piece in enumerate(pieces))

            def __call__(self, text: bytes) -> list[int]:
                return [pieces.index(bytes([byte])) for byte in text]

        return llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()))

    def regex(self, pattern: str) -> Any:
        return package("llguidance").LLMatcher.grammar_from_regex(pattern)

    def json(self) -> Any:
        return package("llguidance").LLMatcher.grammar_from_json_schema("{}", defaults={"whitespace_flexible": True})

    def begin(self, rule: Any) -> Any:
        matcher = package("llguidance").LLMatcher(self.tokenizer, rule)
        assert not matcher.is_error(), matcher.get_error()
        return matcher

    def fill(self, state: Any) -> None:
        package("llguidance.numpy").fill_next_token_bitmask(state, self.words.reshape(1, -1), 0)

    def accept(self, state: Any, token: int) -> None:
        state.consume_token(token)


class XGrammar(Engine):
    @cached_property
    def tokenizer(self) -> Any:
        xgrammar = package("xgrammar")
        tokens = [piece or b"<|%d|>" % token for token, piece in enumerate(self.pieces)]
        return xgrammar.TokenizerInfo(
            tokens, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[self.end]
        )

    def compiler(self) -> Any:
        return package("xgrammar").GrammarCompiler(self.tokenizer, max_threads=2, cache_enabled=False)

    def regex(self, pattern: str) -> Any:
        return self.compiler().compile_regex(pattern)

    def json(self) -> Any:
        return self.compiler().compile_builtin_json_grammar()

    def begin(self, rule: Any) -> Any:
        return package("xgrammar").GrammarMatcher(rule)

    @cached_property
    def tensor(self) -> Any:
        return package("torch").from_numpy(self.words)

    def fill(self, state: Any) -> None:
        state.fill_next_token_bitmask(self.tensor)

    def accept(self, state: Any, token: int) -> None:
        assert state.accept_token(token)


class Outlines(Engine):
    """outlines-core: regular expressions only, all states walked when the pattern is compiled."""

    @cached_property
    def tokenizer(self) -> Any:
        tokens: dict[bytes, list[int]] = {}
        for token, piece in enumerate(self.pieces):
            if piece:
                tokens.setdefault(piece, []).append(token)
        return package("outlines_core").Vocabulary(self.end, tokens)

    def regex(self, pattern: str) -> Any:
        return package("outlines_core").Index(pattern, self.tokenizer)

    def begin(self, rule: Any) -> Any:
        return package("outlines_core").Guide(rule)

    def fill(self, state: Any) -> None:
        state.write_mask_into(self.words.ctypes.data, self.words.size, self.words.itemsize)

    def accept(self, state: Any, token: int) -> None:
        state.advance(token)


ENGINES: dict[str, Callable[[tokentrie.Vocab], Any]] = {
    "tokentrie": Ours,
    "llguidance": LLGuidance,
    "xgrammar": XGrammar,
    "outlines-core": Outlines,
}
