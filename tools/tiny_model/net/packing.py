"""Documents to training rows: fixed length, several documents a row, branches that cannot see each other.

Each token carries a document number and a branch number (0 = the head). It sees earlier tokens of its own
document that are in the head or in its own branch, and its position counts as if the branch came right after
the head: every branch is exactly the prompt that inference will see, at a fraction of the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as functional
from tokenizers import Encoding, Tokenizer
from torch import Tensor

from drawn.chat import TOOL
from drawn.corpus import Branch, Copy, Document

PREDICTIONS = 512
Guide = tuple[int, int, tuple[int, bool], tuple[int, bool]]
COPIED, KEYED, LISTED = range(3)


@dataclass
class Row:
    """Tokens with, for each, its place; `weight[i]` is the loss weight of predicting token i."""

    tokens: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    documents: list[int] = field(default_factory=list)
    branches: list[int] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    guides: list[tuple[int, int, int, int]] = field(default_factory=list)

    def _extend(self, ids: list[int], start: int, document: int, branch: int, weights: list[float]) -> None:
        self.tokens += ids
        self.positions += range(start, start + len(ids))
        self.documents += [document] * len(ids)
        self.branches += [branch] * len(ids)
        self.weight += weights

    def add(self, encoded: EncodedDocument, limit: int, head_weight: float, gap: int = 0) -> bool:
        """Append the head and as many branches as fit; False (and nothing changed) if not even one does.

        `gap` widens the distance between head and branch, as a longer list would.
        """
        room = limit - len(self.tokens) - len(encoded.head)
        if room < len(encoded.prompts[0]) + len(encoded.answers[0]):
            return False
        number = self.documents[-1] + 1 if self.documents else 0
        start, origin = len(encoded.head), len(self.tokens)
        self._extend(encoded.head, 0, number, 0, [0.0] + [head_weight] * (start - 1))
        parts = zip(encoded.prompts, encoded.answers, encoded.guides, strict=True)
        for index, (prompt, answer, guides) in enumerate(parts, 1):
            if len(prompt) + len(answer) > room:
                break
            room -= len(prompt) + len(answer)
            here = len(self.tokens)
            for kind, token, first, second in guides:
                query = here + len(prompt) + token - 1
                sources = [(origin if in_head else here) + at for at, in_head in (first, second)]
                self.guides.append((kind, query, *sources))
            # The first token of a branch has no place from which to predict it.
            weights = [0.0, *[head_weight] * (len(prompt) - 1)][: len(prompt)] + [1.0] * len(answer)
            self._extend(prompt + answer, start + gap, number, index, weights)
        return True


@dataclass
class EncodedDocument:
    """A document's token ids, part by part; a guide says where two heads must look for a token of the answer.

    It holds its kind, the token's number in the answer and two sources (number in the head or the prompt, whether in
    the head): twice the same where the token is copied from there, two different ones for a key. The end of a line of
    a list, a token before the answer, looks at what the line is known by.
    """

    head: list[int]
    prompts: list[list[int]]
    answers: list[list[int]]
    guides: list[list[Guide]]


def _copied(length: int, answer: Encoding, at: int, source: Encoding, start: int) -> list[tuple[int, int]]:
    """Pairs of tokens for a text at character `at` of the answer and `start` of its source, with the token after it."""
    pairs = []
    for token, (begin, end) in enumerate(answer.offsets):
        if begin < end and at <= begin <= at + length:
            found = source.char_to_token(start + begin - at)
            if found is not None:
                pairs.append((token, found))
            if begin == at + length:
                break
    return pairs


def _copies(document: Document, branch: Branch) -> list[Copy]:
    copies = list(branch.copies)
    if branch.name:
        start = document.head.index(TOOL + branch.name) + len(TOOL)
        copies.append(Copy(branch.answer.index(branch.name), len(branch.name), start, in_head=True))
    if branch.value:
        start, at = branch.prompt.rindex(branch.value), branch.answer.rindex(branch.value)
        copies.append(Copy(at, len(branch.value), start, in_head=False))
    return copies


def _guides(document: Document, branch: Branch, head: Encoding, prompt: Encoding, answer: Encoding) -> list[Guide]:
    guides: list[Guide] = []
    for one in _copies(document, branch):
        pairs = _copied(one.length, answer, one.at, head if one.in_head else prompt, one.start)
        guides += [(COPIED, token, (source, one.in_head), (source, one.in_head)) for token, source in pairs]
    for start, end in branch.lines:
        source, at = prompt.char_to_token(start), prompt.char_to_token(end)
        if source is not None and at is not None:
            guides.append((LISTED, at - len(prompt.ids) + 1, (source, False), (source, False)))
    for look in branch.looks:
        value = prompt.char_to_token(look.value)
        for token, (begin, end) in enumerate(answer.offsets):
            if begin < end and look.decision <= begin < look.at + look.length:
                key = head.char_to_token(look.key + max(0, begin - look.at))
                if key is not None and value is not None:
                    guides.append((KEYED, token, (key, True), (value, False)))
    return guides


def encode(tokenizer: Tokenizer, documents: list[Document]) -> list[EncodedDocument]:
    """Tokenise part by part; parts meet only where the pre-tokeniser splits anyway."""
    texts = [t for d in documents for t in (d.head, *(s for b in d.branches for s in (b.prompt, b.answer)))]
    encodings = iter(tokenizer.encode_batch(texts))
    result = []
    for document in documents:
        head = next(encodings)
        pairs = [(next(encodings), next(encodings)) for _ in document.branches]
        guides = [_guides(document, b, head, p, a) for b, (p, a) in zip(document.branches, pairs, strict=True)]
        result.append(EncodedDocument(head.ids, [p.ids for p, _ in pairs], [a.ids for _, a in pairs], guides))
    return result


@dataclass
class Batch:
    """Tensors of several rows: `targets` and `target_weight` belong to the positions in `predict`."""

    tokens: Tensor
    positions: Tensor
    mask: Tensor
    predict: Tensor
    targets: Tensor
    target_weight: Tensor
    guides: Tensor


def visibility(documents: Tensor, branches: Tensor) -> Tensor:
    """[rows, 1, length, length]: True where the second token is visible to the first."""
    length = documents.shape[1]
    same = documents[:, :, None] == documents[:, None, :]
    head = branches[:, None, :] == 0
    own = branches[:, :, None] == branches[:, None, :]
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    return (same & (head | own) & causal)[:, None]


def collate(rows: list[Row], length: int) -> Batch:
    """Pad rows to one length and list the positions that carry a loss."""

    def padded(values: Sequence[Sequence[float]], fill: float, dtype: type) -> Tensor:
        out = np.full((len(rows), length), fill, dtype=dtype)
        for i, value in enumerate(values):
            out[i, : len(value)] = value
        return torch.from_numpy(out)

    tokens = padded([r.tokens for r in rows], 0, np.int64)
    documents = padded([r.documents for r in rows], -1, np.int64)
    branches = padded([r.branches for r in rows], 0, np.int64)
    weight = padded([r.weight for r in rows], 0.0, np.float32)
    row, column = (weight[:, 1:] > 0).nonzero(as_tuple=True)
    spare = -len(row) % PREDICTIONS  # few distinct sizes: kernels are prepared once per size
    row, column = functional.pad(row, (0, spare)), functional.pad(column, (0, spare))
    target_weight = weight[row, column + 1]
    target_weight[len(row) - spare :] = 0.0
    return Batch(
        tokens,
        padded([r.positions for r in rows], 0, np.int64),
        visibility(documents, branches),
        row * length + column,
        tokens[row, column + 1],
        target_weight,
        torch.tensor([(i, *g) for i, r in enumerate(rows) for g in r.guides], dtype=torch.int64).reshape(-1, 5),
    )
