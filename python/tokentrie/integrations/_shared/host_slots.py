"""Requests of an engine whose constraints are not tries: one a slot, walked on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import tokentrie
from tokentrie.integrations._shared import rows as _rows
from tokentrie.integrations._shared.constraint_rows import ConstraintRows

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]


class HostSlots:
    """Slots that follow a constraint on the host, and their rows.

    Args:
        end_tokens: ids that follow a value; at least one, so that a row always allows some token.
    """

    def __init__(self, end_tokens: Sequence[int]) -> None:
        self._ends = list(end_tokens)
        self._slots: dict[str, list[int]] = {}
        """The slots of those rows, by what follows a value."""
        self._rows: dict[str, ConstraintRows] = {}

    @property
    def any(self) -> bool:
        """bool: True if a slot follows a constraint."""
        return any(self._slots.values())

    def __contains__(self, slot: int) -> bool:
        return any(slot in slots for slots in self._slots.values())

    def assign(self, slot: int, constraint: Any, vocab: tokentrie.Vocab | int, after: str) -> None:
        """Gives a slot to another request.

        Args:
            slot: its number.
            constraint: as for `Sampler`.
            vocab: the vocabulary of the constraint.
            after: "stop" or "free".

        Raises:
            TokenTrieError, TypeError: as `Batch`. The slot is free then.
        """
        self.release(slot)
        slots, rows = self._slots.setdefault(after, []), self._rows.get(after)
        if rows is None or not slots:
            self._rows[after] = ConstraintRows([constraint], vocab, end_tokens=self._ends, after=after)
        else:
            rows.assign(len(rows), constraint)
        slots.append(slot)

    def release(self, slot: int) -> None:
        """Forgets what a slot had.

        Args:
            slot: its number.
        """
        for after, slots in self._slots.items():
            if slot in slots:
                left = [row for row, other in enumerate(slots) if other != slot]
                self._rows[after].reorder(left)
                slots.remove(slot)

    def move(self, one: int, other: int, *, swap: bool) -> None:
        """Moves what is in a slot to another, or exchanges both.

        Args:
            one: the slot that it is in.
            other: where it goes.
            swap: exchange them; otherwise `one` is free afterwards.
        """
        if not swap:
            self.release(other)
        places = {one: other, other: one if swap else other}
        for slots in self._slots.values():
            slots[:] = [places.get(slot, slot) for slot in slots]

    def accept(self, slot: int, tokens: Sequence[int]) -> None:
        """Takes tokens in a slot; a token that is not allowed ends its request.

        Args:
            slot: its number.
            tokens: ids.
        """
        for after, slots in self._slots.items():
            if slot in slots:
                self._rows[after].accept(slots.index(slot), tokens)

    def mask_(self, logits: torch.Tensor, first: Mapping[int, int], drafts: Mapping[int, Sequence[int]]) -> None:
        """Masks the rows of these slots, in place.

        Args:
            logits: float32, float16 or bfloat16 [rows, V] or wider.
            first: the row of each slot; those of its drafts follow it.
            drafts: ids after which its next rows come.

        Raises:
            ValueError: the rows are narrower than the vocabulary.
        """
        for after, slots in self._slots.items():
            if not any(slot in first for slot in slots):
                continue
            said = [list(drafts.get(slot, ())) if slot in first else [] for slot in slots]
            masks = self._rows[after].verify(said)
            rows, words = [], []
            for number, slot in enumerate(slots):
                if slot in first:
                    rows += [first[slot] + nth for nth in range(len(said[number]) + 1)]
                    words.append(masks[number, : len(said[number]) + 1])
            _rows.put_words_(logits, rows, np.concatenate(words))
