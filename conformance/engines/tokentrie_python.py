"""Adapter of tokentrie's Python package."""

from __future__ import annotations

from typing import Any

import numpy as np
import tokentrie

from loop import Clock, Engine, RefusedError, serve
from reference.cases import model_logit
from tokentrie_specs import spec


class Tokentrie(Engine):
    name = "tokentrie"
    version = tokentrie.__version__
    settings = "JSON without white space"

    def vocabulary(self, pieces: list[bytes], eog: list[int]) -> None:
        control = [token for token, piece in enumerate(pieces) if not piece and token not in eog]
        self._vocab = tokentrie.Vocab.from_tokens(pieces, eog=eog, control=control)
        self._eog = eog
        self._words = np.zeros(-(-len(pieces) // 32), np.int32)

    def compile(self, kind: str, constraint: dict[str, Any]) -> None:
        try:
            self._constraint = tokentrie.constraint(spec(kind, constraint))
            self.begin()
        except tokentrie.TokenTrieError as error:
            raise RefusedError(str(error)) from error

    def begin(self) -> None:
        self._sampler = tokentrie.Sampler(self._vocab, self._constraint, end_tokens=self._eog)

    def mask(self) -> tuple[bytes, float]:
        self._words.fill(0)
        if self._sampler.state != "active":
            return self._words.tobytes(), 0.0
        with Clock() as clock:
            self._sampler.fill_bitmask(self._words)
        return self._words.tobytes(), clock.us

    def may_end(self) -> bool | None:
        return True if self._sampler.state == "complete" else None

    def advance(self, token: int) -> bool:
        try:
            self._sampler.accept(token)
        except tokentrie.TokenTrieError:
            return False
        return True

    def rollback(self, count: int) -> None:
        self._sampler.rollback(count)

    def forced(self) -> bytes | None:
        return self._vocab.detokenize_bytes(self._sampler.forced()) if self._sampler.state == "active" else b""

    def logprobs(self, constraint: dict[str, Any], seed: int, size: int) -> list[float]:
        def scorer(prefixes: list[list[int]]) -> Any:
            before = [(prefix[-1] if len(prefix) else -1) for prefix in prefixes]
            return np.array([[model_logit(seed, one, token) for token in range(size)] for one in before], np.float32)

        trie = tokentrie.Trie.from_sequences(constraint["sequences"])
        return list(tokentrie.sets.choose(scorer, trie, end_tokens=[constraint["end"]]).logprobs)


if __name__ == "__main__":
    serve(Tokentrie())
