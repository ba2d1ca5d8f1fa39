"""transformers: sets in `generate`, greedy, sampled and with beams; skipping ahead; a head of the legal tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

import tokentrie
from tokentrie.integrations._generate import Generation, generate
from tokentrie.integrations._head import LegalHead, legal_head
from tokentrie.integrations._shared.constraint_rows import constraints
from tokentrie.integrations._shared.lazy import Lazy
from tokentrie.integrations._shared.sets import as_list
from tokentrie.integrations.torch import DEAD, ConstraintRows, TrieTensors

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]
    from numpy.typing import NDArray
else:
    torch = Lazy("torch", "transformers")

__all__ = [
    "Generation",
    "LegalHead",
    "TokenTrieLogitsProcessor",
    "generate",
    "legal_head",
    "prefix_allowed_tokens_fn",
    "tree_of_model",
]


class TokenTrieLogitsProcessor:
    """Lets `generate` write what a constraint allows and nothing else: greedy, sampled, with beams, several prompts.

    Give it as `logits_processor=[processor]`. It keeps the state of every row and takes one step a call. Where the rows
    of a call are others than before, as beams are, it finds the row from which each comes by its ids. A call with no
    ids after the prompt begins anew, so one object serves one `generate` after the other.

    Of tries nothing is copied to the host: states are on the device of the scores, and the walk is that of
    `TrieTensors`. Constraints of other kinds (Regex, JsonSchema, the reply of a chat, ThinkGate, sets with weights) are
    walked on the host by `ConstraintRows`: the new ids come there once a step.

    With fewer legal continuations than beams, transformers fills beams up: with ids that score -inf, for which `leaves`
    gives None, and with what it has already, at a score of about -1e9, which gives the same leaf again.

    Args:
        trie: a Trie for all prompts, or any other constraint that `Sampler` takes; or a list with one for each prompt.
            With n beams or returned sequences a prompt has n rows.
        prompt_length: ids before the first one that is constrained: `input_ids.shape[1]` of a decoder-only model,
            padding on the left included; 1 for an encoder-decoder model, whose decoder starts with one id.
        end_tokens: ids that follow a value, as a rule the model's end of sequence. None: those that the set brings.
        vocab: a Vocab or the number of tokens of the tokenizer, where models pad: scores beyond it are -inf.
            Constraints that are not tries need it, rules a Vocab (`Vocab.from_tokenizer(tokenizer)`).
        after: what follows a value: "stop": end of generation (the end tokens, where `vocab` names none); "free":
            anything, so something else must end the generation.

    Raises:
        OptionError: nothing is known that could end a sequence, `prompt_length` is negative, or `vocab` is missing.
        TrieError, VocabularyError: as `TrieTensors`. For other kinds also what `Batch` raises.

    Example:
        >>> import torch
        >>> from tokentrie.integrations.transformers import TokenTrieLogitsProcessor
        >>> processor = TokenTrieLogitsProcessor(tokentrie.Trie.from_sequences([[4, 5], [4, 6]]), 3, end_tokens=[2])
        >>> prompt = torch.tensor([[1, 7, 7]])
        >>> processor(prompt, torch.zeros(1, 8)).isfinite().nonzero()[:, 1]
        tensor([4])
        >>> processor(torch.tensor([[1, 7, 7, 4]]), torch.zeros(1, 8)).isfinite().nonzero()[:, 1]
        tensor([5, 6])
    """

    def __init__(
        self,
        trie: Any,
        prompt_length: int,
        *,
        end_tokens: Iterable[int] | None = None,
        vocab: tokentrie.Vocab | int | None = None,
        after: str = "stop",
    ) -> None:
        if not isinstance(prompt_length, int) or isinstance(prompt_length, bool):
            raise TypeError(
                f"prompt_length must be an int, the tokens of the prompt such as inputs['input_ids'].shape[1], not of "
                f"type {type(prompt_length).__name__}: the constraint comes first, and the vocabulary goes into vocab="
            )
        if prompt_length < 0:
            raise tokentrie.errors.OptionError(f"prompt_length is {prompt_length}: it must be 0 or more")
        self.prompt_length = prompt_length
        self.tries: list[Any] = constraints(trie)
        """list: the constraint of each prompt, or the one of all."""
        self.on_host = not all(isinstance(one, tokentrie.Trie) and not one.is_weighted for one in self.tries)
        """bool: True if the constraints are walked on the host, because not all are tries without weights."""
        self._make: dict[str, Any] = {"end_tokens": end_tokens, "vocab": vocab, "after": after}
        if end_tokens is not None:
            self._make["end_tokens"] = list(end_tokens)
        eog = isinstance(vocab, tokentrie.Vocab) and len(vocab.eog)
        ends = [end_tokens is not None or eog or len(getattr(one, "end_tokens", ())) for one in self.tries]
        if after == "stop" and not all(ends):
            raise tokentrie.errors.OptionError(
                f"set {[bool(end) for end in ends].index(False)} ends with no token that is known: "
                "end_tokens=[model.generation_config.eos_token_id]"
            )
        if self.on_host and vocab is None:
            raise tokentrie.errors.OptionError(
                "vocab is missing: constraints that are not tries need it, such as Vocab.from_tokenizer(tokenizer)"
            )
        self.walk: TrieTensors | None = None
        """TrieTensors | None: the sets on the device of the scores, from the first call on; None on the host."""
        self.rows: ConstraintRows | None = None
        """ConstraintRows | None: the rows on the host, from the first call on; None for tries."""
        if self.on_host:
            self.rows = self._rows(1)  # an unusable constraint is refused here
        self.reset()

    def reset(self) -> None:
        """Forgets all rows. A call with no ids after the prompt does so by itself."""
        self._states: torch.Tensor | None = None
        self._ids: Any = None
        self._seen: tuple[torch.Tensor, int] | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Takes the new ids and masks the scores.

        Args:
            input_ids: integers [rows, n], the ids of prompts and outputs.
            scores: float32, float16 or bfloat16 [rows, V].

        Returns:
            The masked scores, a new tensor.

        Raises:
            OptionError: the rows are not those of as many prompts as there are sets, or others than in the call before
                although ids have been written: `reset()` says that it is another generation.
            ValueError: there are fewer ids than the prompt has.
        """
        if self.on_host:
            self.follow(input_ids)
            assert self.rows is not None
            return self.rows.mask(scores)
        walk = self._walk_on(scores.device)
        states = self.follow(input_ids)
        assert states is not None
        return walk.mask(scores, states, depth=input_ids.shape[1] - self.prompt_length)

    def follow(self, input_ids: torch.Tensor) -> torch.Tensor | None:
        """Takes the new ids of every row.

        Args:
            input_ids: as for a call.

        Returns:
            int64 [rows]: the states, as `TrieTensors` has them; None where the rows are on the host.

        Raises:
            OptionError, ValueError: as for a call.
        """
        if self._seen is not None and self._seen[0] is input_ids and self._seen[1] == input_ids._version:
            return self._states
        rows, length = input_ids.shape
        written = length - self.prompt_length
        if written < 0:
            raise ValueError(f"{length} ids were given, but the prompt has {self.prompt_length} (prompt_length)")
        if rows % len(self.tries):
            raise tokentrie.errors.OptionError(
                f"{rows} rows for {len(self.tries)} sets: every prompt needs as many rows"
            )
        before = self._ids
        if written == 0:
            self.reset()
        elif before is not None and len(before) != rows:
            raise tokentrie.errors.OptionError(
                f"{rows} rows, but {len(before)} in the call before, in the middle of a generation: one object follows "
                "one generation at a time, reset() makes it ready for another"
            )
        ids = input_ids[:, self.prompt_length :]
        if self.on_host:
            self._ids, self._seen = self._follow_on_host(ids.cpu().numpy()), (input_ids, input_ids._version)
            return None
        walk, states = self._walk_on(input_ids.device), None
        if before is not None and self._states is not None and written == before.shape[1] + 1:
            states = self._on_from(walk, before, self._states, ids)
        if states is None:
            states = self._from_start(walk, ids)
        self._ids, self._states, self._seen = ids.clone(), states, (input_ids, input_ids._version)
        return states

    def _on_from(
        self, walk: TrieTensors, before: torch.Tensor, states: torch.Tensor, ids: torch.Tensor
    ) -> torch.Tensor | None:
        """The states by those of the rows that the ids go on from; None where there is no such row."""
        rows, groups = len(ids), len(self.tries)
        # Rows of one prompt may come from each other.
        new, old = (part.reshape(groups, rows // groups, -1) for part in (ids[:, :-1], before))
        same = (new[:, :, None] == old[:, None]).all(dim=-1)
        parent = (
            same.to(torch.int8).argmax(dim=-1) + (torch.arange(groups, device=ids.device) * (rows // groups))[:, None]
        )
        found = same.any(dim=-1).view(-1)
        if walk.blocking and not bool(found.all()):
            return None
        # A device is not waited for: a row without a parent becomes dead and allows at most the end tokens.
        return walk.step(torch.where(found, states[parent.view(-1)], DEAD), ids[:, -1])

    def _from_start(self, walk: TrieTensors, ids: torch.Tensor) -> torch.Tensor:
        each = len(ids) // len(self.tries)
        states = walk.start([number for number in range(len(self.tries)) for _ in range(each)])
        for column in range(ids.shape[1]):
            states = walk.step(states, ids[:, column])
        return states

    def _rows(self, each: int) -> ConstraintRows:
        """Returns `each` rows for each prompt, at the start."""
        return ConstraintRows([one for one in self.tries for _ in range(each)], **self._make)

    def _follow_on_host(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Moves the rows to these ids, and gives a copy of them."""
        before, each = self._ids, len(ids) // len(self.tries)
        if self.rows is not None and before is not None and ids.shape[1] == before.shape[1] + 1:
            # Rows of one prompt may come from each other.
            places: dict[tuple[int, bytes], int] = {}
            for number, row in enumerate(before):
                places.setdefault((number // each, row.tobytes()), number)
            parents = [places.get((number // each, row[:-1].tobytes()), -1) for number, row in enumerate(ids)]
            if -1 not in parents:
                self.rows.reorder(parents)
                self.rows.step(ids[:, -1])
                return ids.copy()
        self.rows = self._rows(each)
        for number, row in enumerate(ids):
            self.rows.accept(number, row.tolist())
        return ids.copy()

    def _walk_on(self, device: torch.device) -> TrieTensors:
        if self.walk is None or self.walk.device != torch.empty(0, device=device).device:
            self.walk = TrieTensors(self.tries, device, **self._make)  # type: ignore[arg-type]
            self.reset()
        return self.walk

    def leaves(self, sequences: torch.Tensor) -> list[tokentrie.sets.Leaf | None]:
        """The values in what `generate` returned. Waits for the device.

        Args:
            sequences: integers [rows, n], prompts included.

        Returns:
            list[Leaf | None]: None where a sequence is cut off or a filler of beam search, not a value. Texts of rules
            are not leaves.
        """
        if self.on_host:
            return self._leaves_on_host(sequences[:, self.prompt_length :].cpu().numpy())
        walk = self._walk_on(sequences.device)
        each = len(sequences) // len(self.tries)
        numbers = [number for number in range(len(self.tries)) for _ in range(each)]
        states = walk.start(numbers)
        leaves = walk.leaf(states)
        for ids in sequences[:, self.prompt_length :].T:
            states = walk.step(states, ids)
            leaves = torch.where(leaves < 0, walk.leaf(states), leaves)
        found = leaves.tolist()
        return [
            self.tries[number].leaf(leaf) if leaf >= 0 else None for number, leaf in zip(numbers, found, strict=True)
        ]

    def _leaves_on_host(self, ids: NDArray[np.int64]) -> list[tokentrie.sets.Leaf | None]:
        rows = self._rows(len(ids) // len(self.tries))
        leaves = [rows.leaf(number) for number in range(len(rows))]
        for tokens in ids.T:
            rows.step(tokens)
            leaves = [leaf or rows.leaf(number) for number, leaf in enumerate(leaves)]
        return leaves

    def __repr__(self) -> str:
        rows = (
            "no rows yet" if self._ids is None else f"{len(self._ids)} rows, {self._ids.shape[1]} ids after the prompt"
        )
        return f"<TokenTrieLogitsProcessor: {len(self.tries)} sets, {rows}>"


def prefix_allowed_tokens_fn(
    trie: tokentrie.Trie | Sequence[tokentrie.Trie],
    prompt_length: int,
    *,
    end_tokens: Iterable[int],
    vocab: tokentrie.Vocab | int | None = None,
) -> Callable[[int, Any], list[int]]:
    """A function for `generate(prefix_allowed_tokens_fn=...)`, for code that is built on that argument.

    transformers asks it row by row, on the host, and pays milliseconds a step for that: `TokenTrieLogitsProcessor` does
    the same for a hundredth.

    Args:
        trie: a Trie for all prompts, or one for each.
        prompt_length: ids before the first one that is constrained.
        end_tokens: ids that follow a value.
        vocab: a Vocab, or the vocabulary size.

    Returns:
        A function of the number of a prompt and its ids, which gives the ids that may come. For ids that are no part of
        a value it gives the end tokens.

    Raises:
        OptionError: there is no end token.

    Example:
        >>> import torch
        >>> from tokentrie.integrations.transformers import prefix_allowed_tokens_fn
        >>> allowed = prefix_allowed_tokens_fn(tokentrie.Trie.from_sequences([[4, 5], [4, 6]]), 1, end_tokens=[2])
        >>> [allowed(0, torch.tensor(ids)) for ids in ([1], [1, 4], [1, 4, 6])]
        [[4], [5, 6], [2]]
    """
    ends = sorted({int(token) for token in end_tokens})
    if not ends:
        raise tokentrie.errors.OptionError("end_tokens is empty: something must follow a value")
    tries = as_list(trie)
    size = max([*ends, *(one.arrays(verify=False).max_token for one in tries)]) + 1 if vocab is None else vocab
    samplers = [tokentrie.Sampler(size, one, end_tokens=ends, after="stop") for one in tries]

    def allowed_tokens(prompt: int, ids: Any) -> list[int]:
        sampler = samplers[0 if len(samplers) == 1 else prompt]
        sampler.reset()
        try:
            sampler.accept(ids[prompt_length:].tolist())
        except tokentrie.TokenNotAllowedError:
            return ends
        found: list[int] = sampler.allowed().tolist()
        return found

    return allowed_tokens


def tree_of_model(model_folder: str | PathLike[str]) -> tokentrie.Trie:
    """The set that a model's folder brings: the prefix table that `TREE_DECODE_CONFIG` names there.

    Args:
        model_folder: what the model was loaded from.

    Returns:
        Trie, with the end token of the table.

    Raises:
        OptionError: the variable is not set.
        PayloadError, OSError: as `tokentrie.integrations.tree_decode.load_tree_decode`.
    """
    from tokentrie.integrations.tree_decode import load_tree_decode

    found = load_tree_decode(model_folder)
    if found is None:
        raise tokentrie.errors.OptionError(f"{model_folder}: the environment names no table in TREE_DECODE_CONFIG")
    return found
