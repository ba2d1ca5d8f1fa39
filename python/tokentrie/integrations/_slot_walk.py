"""Positions of an engine's requests, one in each slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tokentrie
from tokentrie.integrations._shared.host_slots import HostSlots
from tokentrie.integrations._shared.lazy import Lazy
from tokentrie.integrations._shared.request_sets import RequestedConstraint
from tokentrie.integrations.torch import FREE, TrieTensors

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]
else:
    torch = Lazy("torch", "vllm")


class SlotWalk:
    """Positions of an engine's requests, one in each slot. Both interfaces are made of it.

    Slots with a Trie have their states on the device. Those with a constraint of another kind are rows on the host:
    each step waits for their new tokens.

    Args:
        device: where logits are.
        slots: how many requests there may be at once.
        vocab: number of tokens.
        end_tokens: what follows a value where neither the set nor the request says.
        blocking: as for `TrieTensors`.

    Example:
        >>> import torch
        >>> from tokentrie.integrations.vllm import RequestSets, SlotWalk
        >>> walk = SlotWalk("cpu", slots=2, vocab=8, end_tokens=[2])
        >>> walk.assign(1, RequestSets().asked({"tokentrie": {"sequences": [[4, 5], [4, 6]]}}))
        True
        >>> walk.flush()
        >>> walk.states = walk.tensors.step(walk.states, torch.tensor([0, 4]))
        >>> walk.tensors.mask(torch.zeros(2, 8), walk.states)[1].isfinite().nonzero().flatten()
        tensor([5, 6])
    """

    def __init__(
        self, device: Any, slots: int, vocab: int, end_tokens: list[int], *, blocking: bool | None = None
    ) -> None:
        ends = [token for token in end_tokens if 0 <= token < vocab]
        # A set that ends at once, for requests whose set is gone; something to say is always left.
        closing = tokentrie.Trie.from_sequences([[token] for token in ends or [0]]).with_end_tokens(ends or [0])
        self.tensors: TrieTensors = TrieTensors(closing, device, vocab=vocab, eog=ends, blocking=blocking)
        self.end_tokens = ends
        self.states: torch.Tensor = self.tensors.start([None] * slots)
        self._numbers: dict[int, int] = {}
        self._known: dict[tuple[int, str], tuple[int, tokentrie.Trie]] = {}
        self._staged: dict[int, int] = {}
        self.on_host = HostSlots(ends or [0])
        """HostSlots: the slots whose constraint is not a Trie."""

    @property
    def any(self) -> bool:
        """bool: True if a slot has a constraint."""
        return bool(self._numbers) or self.on_host.any

    def has(self, slot: int) -> bool:
        """Returns True if a slot has a constraint.

        Args:
            slot: its number.

        Returns:
            bool.
        """
        return slot in self._numbers or slot in self.on_host

    def assign(self, slot: int, asked: RequestedConstraint | None) -> bool:
        """Gives a slot to another request; `flush` writes it.

        Args:
            slot: its number.
            asked: what the request is to follow, or None.

        Returns:
            bool: whether it has a constraint.
        """
        self.release(slot)
        self._staged[slot] = FREE
        if asked is None:
            return False
        trie = asked.trie
        if trie is None:
            assert asked.vocab is not None
            self.on_host.assign(slot, asked.constraint, asked.vocab, asked.after)
        else:
            if not len(trie.end_tokens) and self.end_tokens:
                trie = trie.with_end_tokens(self.end_tokens)
            self._numbers[slot] = self._number(asked, trie)
            self._staged[slot] = self.tensors.begin(self._numbers[slot])
        return True

    def assign_nothing(self, slot: int) -> None:
        """Allows a slot its end tokens alone: its set was there when the request came, and is gone.

        Args:
            slot: its number.
        """
        self.release(slot)
        self._numbers[slot], self._staged[slot] = 0, self.tensors.begin(0)

    def move(self, one: int, other: int, *, swap: bool) -> None:
        """Moves what is in a slot to another, or exchanges both.

        Args:
            one: the slot that it is in.
            other: where it goes.
            swap: exchange them; otherwise `one` is free afterwards.
        """
        self.flush()
        self.on_host.move(one, other, swap=swap)
        mine, theirs = self._numbers.pop(one, None), self._numbers.pop(other, None)
        kept = self.states[[one, other]] if swap else torch.stack([self.states.new_tensor(FREE), self.states[one]])
        self.states[[other, one]] = kept if swap else kept.flip(0)
        if mine is not None:
            self._numbers[other] = mine
        if swap and theirs is not None:
            self._numbers[one] = theirs

    def release(self, slot: int) -> None:
        """Forgets what a slot had.

        Args:
            slot: its number.
        """
        self.on_host.release(slot)
        number = self._numbers.pop(slot, None)
        if number and number not in self._numbers.values():
            # No slot uses the set any more; a few such sets are kept, since they may be requested again soon.
            unused = [key for key, (known, _) in self._known.items() if known not in self._numbers.values()]
            for key in unused[: len(unused) - 8 if len(unused) > 8 else 0]:
                self.tensors.remove(self._known.pop(key)[0])

    def _number(self, asked: RequestedConstraint, trie: tokentrie.Trie) -> int:
        # The set itself is kept beside its number, so that no other object can get the same identity.
        key = (id(asked.constraint), asked.after)
        if key not in self._known:
            self._known[key] = self.tensors.add(trie, after=asked.after), asked.constraint
        return self._known[key][0]

    def flush(self) -> None:
        """Writes what was assigned. Nothing waits for the device."""
        if self._staged:
            slots, starts = (
                torch.tensor(list(part), dtype=torch.int64) for part in zip(*self._staged.items(), strict=True)
            )
            device = self.states.device
            self.states.index_copy_(0, slots.to(device, non_blocking=True), starts.to(device, non_blocking=True))
            self._staged.clear()
