"""Rows of a host in constraints of any kind: a `Batch` that a host cannot make fail. It decides nothing of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import tokentrie
from tokentrie.integrations._shared.lazy import Lazy

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]
    from numpy.typing import NDArray
else:
    torch = Lazy("torch", "torch")


class ConstraintRows:
    """Rows of logits in constraints of any kind: a Regex, a JsonSchema, a ThinkGate, the reply of a chat, weights.

    Each row has a constraint and a place in it. The walk is that of `Batch`, on the host: a step needs tokens there.
    `TrieTensors` keeps all of it on the device and takes tries alone.

    A host does not check tokens. A token that is not allowed makes the row dead: the row then allows the end tokens, or
    nothing where none are known. A row without a constraint is free.

    Args:
        constraints: what each row follows, as for `Sampler`; None leaves the row free.
        vocab: a Vocab, or the vocabulary size, which is enough for sets of token ids.
        end_tokens: ids that may follow a value. None: those that each set brings.
        after: what follows a value: "stop", end of generation alone, or "free", anything.

    Raises:
        PayloadError, VocabularyError, TrieError, RuleError, TypeError: as `Batch`, naming the row.

    Example:
        >>> import torch
        >>> from tokentrie.integrations.torch import ConstraintRows
        >>> vocab = tokentrie.Vocab.from_tokens([b"0", b"1", b"x", b"</s>"], eog=[3])
        >>> rows = ConstraintRows([tokentrie.Regex("[01]{2}"), None], vocab)
        >>> rows.mask(torch.zeros(2, 4))
        tensor([[0., 0., -inf, -inf],
                [0., 0., 0., 0.]])
        >>> rows.step([2, 2])
        >>> rows.dead
        array([ True, False])
    """

    def __init__(
        self,
        constraints: Sequence[Any],
        vocab: tokentrie.Vocab | int,
        *,
        end_tokens: Iterable[int] | None = None,
        after: str = "stop",
    ) -> None:
        self._ends = None if end_tokens is None else sorted({int(token) for token in end_tokens})
        eog = [int(token) for token in vocab.eog] if isinstance(vocab, tokentrie.Vocab) else []
        self._stops = torch.tensor(eog or self._ends or [], dtype=torch.int64)
        options: dict[str, Any] = {"vocab": vocab, "end_tokens": self._ends, "after": after}
        self._batch = tokentrie.Batch(list(constraints), **options)
        self.dead: NDArray[np.bool_] = np.zeros(len(self._batch), dtype=np.bool_)
        """bool [rows]: which rows took a token that was not allowed."""

    def __len__(self) -> int:
        return len(self._batch)

    @property
    def finished(self) -> NDArray[np.bool_]:
        """bool [rows]: which rows have their value."""
        return self._batch.finished & ~self.dead

    def leaf(self, row: int) -> tokentrie.sets.Leaf | None:
        """The value of a row, where it follows a set and is complete.

        Args:
            row: its number.

        Returns:
            Leaf | None. Rules have no leaves.
        """
        return None if self.dead[row] else self._batch.leaf(row)

    def step(self, tokens: Sequence[int] | NDArray[np.integer[Any]] | torch.Tensor) -> None:
        """Takes a token in each row.

        Args:
            tokens: one id a row; -1 leaves the row where it is.
        """
        for row, token in enumerate(_host(tokens)):
            if token >= 0:
                self.accept(row, [int(token)])

    def accept(self, row: int, tokens: Iterable[int]) -> None:
        """Takes tokens in one row, one after the other.

        Args:
            row: its number.
            tokens: ids.
        """
        if self.dead[row]:
            return
        try:
            self._batch.accept(list(tokens), row=row)
        except (tokentrie.TokenNotAllowedError, tokentrie.errors.VocabularyError):
            self.kill(row)

    def kill(self, row: int) -> None:
        """Makes a row dead, because its constraint is missing.

        Args:
            row: its number.
        """
        self._batch.assign(row, None)
        self.dead[row] = True

    def assign(self, row: int, constraint: Any) -> None:
        """Gives a row to another request.

        Args:
            row: its number; that of the row after the last adds one.
            constraint: as for `Sampler`; None leaves the row free.

        Raises:
            PayloadError, VocabularyError, TrieError, RuleError, TypeError: as `Batch`. The row is as before.
        """
        self._batch.assign(row, constraint)
        if row == len(self.dead):
            self.dead = np.append(self.dead, False)
        self.dead[row] = False

    def reorder(self, parents: Sequence[int] | NDArray[np.integer[Any]]) -> None:
        """Row i goes on where row parents[i] is.

        Args:
            parents: row numbers.

        Raises:
            OptionError: a parent is not a row.
        """
        self._batch.reorder(parents)
        self.dead = self.dead[np.asarray(parents, dtype=np.int64)]

    def verify(self, drafts: Sequence[Sequence[int]]) -> NDArray[np.int32]:
        """Computes the allowed tokens of each row after each of its first drafts.

        Args:
            drafts: ids of each row.

        Returns:
            int32 [rows, n + 1, ceil(V / 32)], as of `Batch.verify`: behind a draft that may not come the mask repeats.
        """
        masks = self._batch.verify(drafts)[1]
        if self.dead.any():
            words = np.zeros(masks.shape[2], dtype=np.uint32)
            for token in self._stops.tolist():
                words[token // 32] |= np.uint32(1 << token % 32)
            masks = masks.copy()
            masks[self.dead] = words.view(np.int32)
        return masks

    def mask(self, logits: torch.Tensor) -> torch.Tensor:
        """Rows of logits with -inf for tokens that are not allowed; the others keep their bits, but for weights.

        Args:
            logits: float32, float16 or bfloat16 [rows, V] or wider, on any device.

        Returns:
            A tensor like `logits`.

        Raises:
            TypeError, ValueError: another dtype, shape or order.
        """
        return self.mask_(logits.clone(memory_format=torch.contiguous_format))

    def mask_(self, logits: torch.Tensor) -> torch.Tensor:
        """`mask`, in place.

        Args:
            logits: as for `mask`; rows may be strided.

        Returns:
            `logits`.

        Raises:
            TypeError, ValueError: another dtype, shape or order. Nothing was written then.
        """
        dead = torch.from_numpy(np.flatnonzero(self.dead)).to(logits.device)
        closing = logits.index_select(0, dead).index_select(1, self._stops.to(logits.device)) if len(dead) else None
        self._batch.apply(logits)
        if closing is not None:
            rest = torch.full((len(dead), logits.shape[1]), float("-inf"), dtype=logits.dtype, device=logits.device)
            logits.index_copy_(0, dead, rest.index_copy_(1, self._stops.to(logits.device), closing))
        return logits

    def __repr__(self) -> str:
        return f"<ConstraintRows: {len(self)} rows, {int(self.dead.sum())} of them dead>"


def constraints(given: Any) -> list[Any]:
    """One constraint or several: a list of str is one, any other list has one for each prompt."""
    listed = isinstance(given, (list, tuple)) and not (given and all(isinstance(one, str) for one in given))
    return list(given) if listed else [given]


def _host(tokens: Any) -> NDArray[np.int64]:
    return np.asarray(tokens.cpu() if hasattr(tokens, "cpu") else tokens, dtype=np.int64)
