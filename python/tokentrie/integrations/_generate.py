"""Generation with transformers and jump-forward: forced tokens need no forward pass of their own."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import tokentrie
from tokentrie.integrations._head import SHARE, LegalHead
from tokentrie.integrations._shared.constraint_rows import constraints
from tokentrie.integrations._shared.lazy import Lazy

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]
    from numpy.typing import NDArray
else:
    torch = Lazy("torch", "transformers")


@dataclass(frozen=True)
class Generation:
    """Result of `generate`: the output after each prompt, and its cost.

    Attributes:
        tokens: the ids after each prompt, end token included.
        leaves: the value of each row; None where `max_tokens` cut it off.
        forward_passes: forward passes of the model, that over the prompts included.
        sampled_tokens: tokens that were chosen from logits, of all rows.
        forced_tokens: tokens that had to come, of all rows.
        logits: logits computed by the output head.
    """

    tokens: list[list[int]]
    leaves: list[tokentrie.sets.Leaf | None]
    forward_passes: int
    sampled_tokens: int
    forced_tokens: int
    logits: int


def generate(
    model: Any,
    input_ids: torch.Tensor,
    trie: Any,
    *,
    attention_mask: torch.Tensor | None = None,
    end_tokens: Iterable[int] | None = None,
    vocab: tokentrie.Vocab | None = None,
    temperature: float = 0.0,
    seed: int | None = None,
    max_tokens: int = 256,
    skip_ahead: bool = True,
    legal_head: bool = True,
) -> Generation:
    """Writes one value after each prompt. Forward passes are steps with a choice, and the head computes legal tokens.

    After a token is chosen, those that must follow it are appended, and all of them go through the model together. Rows
    that need fewer are filled up and the filling is masked, so rows need not agree. The result is that of `generate` of
    transformers with `TokenTrieLogitsProcessor`, up to rounding: a model computes several tokens at once in another
    order than one by one.

    Args:
        model: a decoder-only model of transformers, with a cache and position ids.
        input_ids: integers [rows, n]: the prompts, padded on the left where they differ in length.
        trie: a Trie for all rows, or any other constraint that `Batch` takes; or a list with one for each row.
        attention_mask: as transformers takes it: 0 where there is padding. None: there is none.
        end_tokens: ids that follow a value. None: those of the set, or else the model's end of sequence.
        vocab: the tokens of the model, which rules and lists of str need; None: their number is enough.
        temperature: 0: the best token, ties to the lowest id. Above: drawn from the legal ones with this temperature.
        seed: of the draw; None takes one from the operating system.
        max_tokens: most tokens after a prompt.
        skip_ahead: False computes every token on its own, to compare.
        legal_head: False computes the whole output head.

    Returns:
        Generation.

    Raises:
        OptionError: nothing is known that ends a sequence, or a number is out of range.
        TrieError, VocabularyError, TypeError, ValueError: as `Batch`.

    Example:
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> from tokentrie.integrations.transformers import generate
        >>> size = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
        >>> model = LlamaForCausalLM(LlamaConfig(vocab_size=20, **size))
        >>> trie = tokentrie.Trie.from_sequences([[4, 5, 6, 7], [8, 9, 10, 11]])
        >>> found = generate(model, torch.tensor([[1, 3]]), trie, end_tokens=[2])
        >>> (len(found.tokens[0]), found.forward_passes, found.sampled_tokens, found.forced_tokens)
        (5, 1, 1, 4)
    """
    if input_ids.ndim != 2 or not input_ids.shape[1]:
        raise ValueError(f"input_ids must have shape [rows, n] with n at least 1, not {list(input_ids.shape)}")
    if not (temperature >= 0 and np.isfinite(temperature)) or max_tokens < 1:
        raise tokentrie.errors.OptionError(
            f"temperature {temperature} must be 0 or more, max_tokens {max_tokens} 1 or more"
        )
    count = len(input_ids)
    ends = _ends(model, trie, end_tokens)
    listed = constraints(trie)
    rows = tokentrie.Batch(
        listed * count if len(listed) == 1 else listed,
        vocab=model.get_output_embeddings().weight.shape[0] if vocab is None else vocab,
        end_tokens=ends,
    )
    if len(rows) != count:
        raise ValueError(f"{len(rows)} sets for {count} prompts")
    run = _Run(model, input_ids, attention_mask, rows, max_tokens, skip_ahead)
    random = np.random.default_rng(seed)
    with torch.no_grad(), LegalHead(model.get_output_embeddings()) if legal_head else nullcontext() as head:
        run.append([[] for _ in range(count)])
        while run.live:
            logits, columns = run.forward(head)
            chosen: list[list[int]] = [[] for _ in range(count)]
            for row, legal in zip(run.live, _legal(run, logits, columns), strict=True):
                ids = rows.allowed(row)
                chosen[row] = [int(ids[_pick(legal, temperature, random)])]
            run.append(chosen)
    leaves = [rows.leaf(row) for row in range(count)]
    computed = head.computed if head is not None else run.positions * rows.n_vocab
    return Generation(run.tokens, leaves, run.passes, run.sampled, run.forced, computed)


def _ends(model: Any, trie: Any, given: Iterable[int] | None) -> list[int] | None:
    """Returns the end tokens; None if the sets bring their own."""
    if given is not None:
        return [int(token) for token in given]
    if all(len(getattr(one, "end_tokens", ())) for one in constraints(trie)):
        return None
    found = getattr(model.generation_config, "eos_token_id", None)
    if found is None:
        raise tokentrie.errors.OptionError("the model names no end of sequence: give end_tokens")
    return [int(found)] if isinstance(found, int) else [int(token) for token in found]


class _Run:
    """Rows of a generation: the tokens written, and those of them that the model has not computed yet."""

    def __init__(
        self,
        model: Any,
        prompts: torch.Tensor,
        mask: torch.Tensor | None,
        rows: tokentrie.Batch,
        max_tokens: int,
        skip_ahead: bool,
    ) -> None:
        count = len(prompts)
        self.model, self.rows, self.max_tokens, self.skip_ahead = model, rows, max_tokens, skip_ahead
        self.prompts: torch.Tensor | None = prompts
        self.mask = torch.ones_like(prompts) if mask is None else mask.to(prompts.dtype)
        self.tokens: list[list[int]] = [[] for _ in range(count)]
        self.unseen: list[list[int]] = [[] for _ in range(count)]
        self.live = list(range(count))
        self.last: torch.Tensor | None = None
        self.cache: Any = None
        self.passes = self.sampled = self.forced = self.positions = 0

    def append(self, chosen: list[list[int]]) -> None:
        """Appends the chosen tokens and the forced tokens after them."""
        for row in self.live:
            new = chosen[row]
            only = len(new) == 1 == len(self.rows.allowed(row))  # a step without a choice, where nothing is skipped
            self.rows.accept(new, row=row)
            run = [int(token) for token in self.rows.forced(row)] if self.skip_ahead else []
            run = run[: self.max_tokens - len(self.tokens[row]) - len(new)]
            self.rows.accept(run, row=row)
            self.sampled += len(new) - only
            self.forced += len(run) + only
            self.tokens[row] += new + run
            self.unseen[row] += new + run
        finished = self.rows.finished
        self.live = [row for row in self.live if not finished[row] and len(self.tokens[row]) < self.max_tokens]
        # The end token of a row never goes through the model.
        self.unseen = [unseen if row in set(self.live) else [] for row, unseen in enumerate(self.unseen)]

    def forward(self, head: LegalHead | None) -> tuple[torch.Tensor, NDArray[np.int64] | None]:
        """The logits after the last token of each row, and the token of each column where those are not all."""
        columns = None
        if head is not None:
            legal = np.unique(np.concatenate([self.rows.allowed(row) for row in self.live])).astype(np.int64)
            columns = legal if len(legal) * SHARE <= self.rows.n_vocab else None
            head.compact = columns is not None
            weight = head.linear.weight
            head.limit_to(None if columns is None else torch.from_numpy(columns).to(weight.device))
        return self._pass(self.unseen), columns

    def _pass(self, tokens: list[list[int]]) -> torch.Tensor:
        """Computes these tokens of each row, after the prompts in the first pass; the logits after each row's last."""
        device = self.mask.device
        width = max(map(len, tokens))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in tokens], dtype=torch.int64, device=device)
        real = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in tokens], device=device)
        ids, real = ids.reshape(len(tokens), width), real.reshape(len(tokens), width).to(self.mask.dtype)
        before, prompt = self.mask, 0
        if self.prompts is not None:
            ids, real = torch.cat([self.prompts, ids.to(self.prompts.dtype)], 1), torch.cat([self.mask, real], 1)
            before, prompt, self.prompts = self.mask[:, :0], self.prompts.shape[1], None
        self.mask = torch.cat([before, real], dim=1)
        positions = (self.mask.cumsum(1) - 1).clamp(min=0)[:, before.shape[1] :]
        # The last token of each row; the logits of a row without a new token are not used.
        last = [max(prompt + len(row) - 1, 0) for row in tokens]
        keep = sorted(set(last))
        output = self.model(
            input_ids=ids,
            attention_mask=self.mask,
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=torch.tensor(keep, device=device),
        )
        self.cache, self.passes = output.past_key_values, self.passes + 1
        self.positions += len(ids) * len(keep)
        self.unseen = [[] for _ in tokens]
        logits: torch.Tensor = output.logits
        at = torch.tensor([row * len(keep) + keep.index(place) for row, place in enumerate(last)], device=logits.device)
        return logits.reshape(len(last) * len(keep), -1).index_select(0, at)


def _legal(run: _Run, logits: torch.Tensor, columns: NDArray[np.int64] | None) -> list[NDArray[np.float64]]:
    """The logits of the allowed tokens of each live row. Only these logits come to the host."""
    ids = [run.rows.allowed(row).astype(np.int64) for row in run.live]
    wanted = ids if columns is None else [np.searchsorted(columns, row) for row in ids]
    width = logits.shape[1]
    flat = np.concatenate([row * width + at for row, at in zip(run.live, wanted, strict=True)])
    values = logits.reshape(-1).index_select(0, torch.from_numpy(flat).to(logits.device)).double().cpu().numpy()
    return np.split(values, np.cumsum([len(row) for row in ids])[:-1])


def _pick(legal: NDArray[np.float64], temperature: float, random: np.random.Generator) -> int:
    """The place of the best, the first of equals, or of one drawn. NaN counts as -inf; if all are, the first."""
    legal = np.where(np.isnan(legal), -np.inf, legal)
    best = legal.max()
    if temperature == 0 or not np.isfinite(best):
        return int(legal.argmax())
    weights = np.exp((legal - best) / temperature)
    return int(random.choice(len(legal), p=weights / weights.sum()))
