"""The output head of a model for legal tokens alone: k rows of its matrix instead of the vocabulary's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import tokentrie
from tokentrie.integrations._shared.lazy import Lazy

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]

    from tokentrie.integrations.transformers import TokenTrieLogitsProcessor
else:
    torch = Lazy("torch", "transformers")

PANEL = 64
"""Rows of the head are taken in multiples of so many: matrix products then mostly add in the order of the whole."""

SHARE = 4
"""A head is computed whole where more than one token in so many is legal: one dense product is faster then."""


class LegalHead:
    """The output head of a model inside `legal_head`: which tokens it computes, and what that saved.

    Example:
        >>> import torch
        >>> from tokentrie.integrations.transformers import LegalHead
        >>> linear = torch.nn.Linear(4, 9)
        >>> head = LegalHead(linear)
        >>> with head:
        ...     head.limit_to(torch.tensor([2, 5]))
        ...     logits = linear(torch.ones(1, 4))
        >>> (logits.isfinite().nonzero()[:, 1].tolist(), head.computed, head.whole)
        ([2, 5], 2, 9)
    """

    def __init__(self, linear: Any) -> None:
        if type(linear) is not torch.nn.Linear:
            name = type(linear).__name__
            raise tokentrie.errors.OptionError(
                f"the output head is a {name}: only torch.nn.Linear can be computed in part"
            )
        self.linear = linear
        self.compact = False
        """bool: True if logits have a column a legal token, instead of one a token of the vocabulary."""
        self.computed = 0
        """int: logits computed so far."""
        self.whole = 0
        """int: logits that the whole head would have computed."""
        self._ids: torch.Tensor | None = None

    def limit_to(self, ids: torch.Tensor | None) -> None:
        """From now on only these.

        Args:
            ids: integers [k], each once, on the device of the head; None: all.
        """
        self._ids = ids

    def __enter__(self) -> LegalHead:
        self._before = vars(self.linear).get("forward")
        self.linear.forward = self._forward
        return self

    def __exit__(self, *_: object) -> None:
        del self.linear.forward
        if self._before is not None:
            self.linear.forward = self._before
        self._ids = None

    def _forward(self, hidden: torch.Tensor) -> torch.Tensor:
        linear, ids = self.linear, self._ids
        size, positions = len(linear.weight), hidden.shape[:-1].numel()
        self.whole += positions * size
        if ids is None:
            self.computed += positions * size
            whole: torch.Tensor = type(linear).forward(linear, hidden)
            return whole
        self.computed += positions * len(ids)
        padded = torch.cat([ids, ids.new_zeros(-len(ids) % PANEL)])
        bias = None if linear.bias is None else linear.bias.index_select(0, padded)
        logits = torch.nn.functional.linear(hidden, linear.weight.index_select(0, padded), bias)[..., : len(ids)]
        if self.compact:
            return logits
        spread = logits.new_full((*hidden.shape[:-1], size), float("-inf"))
        return spread.index_copy_(-1, ids, logits)


@contextmanager
def legal_head(model: Any, processor: TokenTrieLogitsProcessor) -> Iterator[LegalHead]:
    """While it is open, `model.generate` computes the logits of legal tokens alone; the others are -inf.

    Before each forward pass it looks at the ids, and takes the rows of the head's matrix for what may come in any row
    of the batch. Where that is more than a quarter of the vocabulary the whole head is computed. The legal logits are
    those of the whole head, bit for bit in most shapes, and else up to the order in which a matrix product adds; the
    page on transformers says what was measured. Greedy choice and sampling are the same then. Beams are ranked by the
    probability among the legal tokens, because transformers normalises what it is given.

    It waits for the device once a step, to learn how many tokens are legal. One generation at a time.

    Args:
        model: a decoder-only model of transformers whose output embeddings are a `torch.nn.Linear`.
        processor: that which `generate` is given.

    Yields:
        LegalHead, which counts.

    Raises:
        OptionError: the head is not a `torch.nn.Linear`.

    Example:
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> from tokentrie.integrations.transformers import TokenTrieLogitsProcessor, legal_head
        >>> size = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
        >>> model = LlamaForCausalLM(LlamaConfig(vocab_size=20, **size))
        >>> processor = TokenTrieLogitsProcessor(tokentrie.Trie.from_sequences([[4, 5], [4, 6]]), 1, end_tokens=[2])
        >>> prompt, options = torch.tensor([[1]]), {"do_sample": False, "max_new_tokens": 3}
        >>> with legal_head(model, processor) as head:
        ...     ids = model.generate(prompt, logits_processor=[processor], pad_token_id=0, eos_token_id=2, **options)
        >>> (ids[0, 1].item(), ids[0, 3].item(), head.computed, head.whole)
        (4, 2, 4, 60)
    """
    head = LegalHead(model.get_output_embeddings())
    before = vars(model).get("prepare_inputs_for_generation")
    prepare = model.prepare_inputs_for_generation

    @wraps(prepare)  # transformers reads its signature
    def prepare_inputs(input_ids: torch.Tensor, *arguments: Any, **keywords: Any) -> Any:
        states = processor.follow(input_ids)
        walk = processor.walk
        ids = None
        # Where every token is allowed, the whole head is needed.
        if walk is not None and not walk.may_be_unbound:
            ids = torch.unique(walk.children(states).tokens).to(head.linear.weight.device)
            ids = None if len(ids) * SHARE > len(head.linear.weight) else ids
        head.limit_to(ids)
        return prepare(input_ids, *arguments, **keywords)

    with head:
        model.prepare_inputs_for_generation = prepare_inputs
        try:
            yield head
        finally:
            del model.prepare_inputs_for_generation
            if before is not None:
                model.prepare_inputs_for_generation = before
