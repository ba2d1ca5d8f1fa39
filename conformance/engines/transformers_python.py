"""transformers: its own logits processor, with the function over tokenised values that its users write."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import torch
from transformers import PrefixConstrainedLogitsProcessor

from loop import Clock, PrefixEngine, RefusedError, bits, serve
from reference.masks import Tokens


class Transformers(PrefixEngine):
    name = "transformers"
    version = metadata.version("transformers")
    settings = "PrefixConstrainedLogitsProcessor over a tree of the values in their longest tokens: no other spelling"

    def vocabulary(self, pieces: list[bytes], eog: list[int]) -> None:
        self._tokens, self._eog, self._size = Tokens(pieces, others=eog), eog, len(pieces)

    def compile(self, kind: str, constraint: dict[str, Any]) -> None:
        if kind != "set" or not constraint["values"]:
            raise RefusedError(f"no constraints of kind {kind}")
        self._tree: dict[int, Any] = {}
        for value in constraint["values"]:
            spelled = self._tokens.spelled(value.encode())
            if spelled is None:
                raise RefusedError(f"no tokens spell {value!r}")
            node = self._tree
            for token in [*spelled, self._eog[0]]:
                node = node.setdefault(token, {})
        self._processor = PrefixConstrainedLogitsProcessor(lambda _, ids: self._after(ids.tolist()), num_beams=1)
        self.begin()

    def _after(self, ids: list[int]) -> list[int]:
        node = self._tree
        for token in ids[1:]:  # A prompt has one token at least.
            node = node[token]
        return list(node)

    def begin(self) -> None:
        self.written = [0]

    def following(self) -> list[int]:
        return self._after(self.written)

    def mask(self) -> tuple[bytes, float]:
        row = torch.zeros((1, self._size))
        with Clock() as clock:
            scores = self._processor(torch.tensor([self.written]), row)
        return bits(torch.nonzero(scores[0] == 0).flatten().tolist(), self._size), clock.us


if __name__ == "__main__":
    serve(Transformers())
