"""vLLM: a constraint for each request, in both interfaces of its logits processors; tries on the device.

vLLM finds it by itself: installed beside it, tokentrie is in its entry points. A request names its set in `extra_args`
(`vllm_xargs` over HTTP); a request that does not is left alone.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import tokentrie
from tokentrie.integrations._host_slots import HostSlots
from tokentrie.integrations._lazy import Lazy
from tokentrie.integrations._request_sets import Asked, RequestError, RequestSets
from tokentrie.integrations._require import required
from tokentrie.integrations.torch import FREE, TrieTensors

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]

else:
    torch = Lazy("torch", "vllm")

__all__ = ["RequestError", "RequestSets", "SlotWalk"]


_MADE: dict[str, type] = {}
_SETS: list[RequestSets] = []


def sets_of_requests() -> RequestSets:
    """The sets of this process, by its environment when a request first asked for one."""
    if not _SETS:
        _SETS.append(RequestSets.of_environment())
    return _SETS[0]


class SlotWalk:
    """Where the requests of an engine are, one in each slot. What both interfaces are made of.

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
        self.tensors: TrieTensors = TrieTensors(closing, device, vocab=vocab, blocking=blocking)
        self.end_tokens = ends
        self.states: torch.Tensor = self.tensors.start([None] * slots)
        self._numbers: dict[int, int] = {}
        self._known: dict[tuple[int, str], tuple[int, tokentrie.Trie]] = {}
        self._staged: dict[int, int] = {}
        self.on_host = HostSlots(ends or [0])
        """HostSlots: the slots whose constraint is no Trie."""

    @property
    def any(self) -> bool:
        """bool: whether a slot has a constraint."""
        return bool(self._numbers) or self.on_host.any

    def has(self, slot: int) -> bool:
        """Whether a slot has a constraint.

        Args:
            slot: its number.

        Returns:
            bool.
        """
        return slot in self._numbers or slot in self.on_host

    def assign(self, slot: int, asked: Asked | None) -> bool:
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
        """Lets a slot say its end alone: its set was there when the request came, and is gone.

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
            # Nobody is in it any more; it may be asked for again soon, so a few stay.
            unused = [key for key, (known, _) in self._known.items() if known not in self._numbers.values()]
            for key in unused[: len(unused) - 8 if len(unused) > 8 else 0]:
                self.tensors.remove(self._known.pop(key)[0])

    def _number(self, asked: Asked, trie: tokentrie.Trie) -> int:
        # The set itself is kept beside its number, so that its identity is that of no other.
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


def _end_tokens(config: Any) -> list[int]:
    """The model's end of sequence."""
    model = getattr(config, "model_config", None)
    for source in (getattr(model, "hf_text_config", None), getattr(model, "hf_config", None)):
        found = getattr(source, "eos_token_id", None)
        if isinstance(found, int):
            return [found]
        if isinstance(found, (list, tuple)) and found:
            return [int(token) for token in found]
    return []


def _validate(sampling_params: Any) -> None:
    sets_of_requests().asked(getattr(sampling_params, "extra_args", None))


def _assign(walk: SlotWalk, slot: int, sampling_params: Any) -> bool:
    try:
        return walk.assign(slot, sets_of_requests().asked(getattr(sampling_params, "extra_args", None)))
    except (RequestError, tokentrie.TokenTrieError):
        # It was looked at when the request came: a file has gone since. The others must go on.
        walk.assign_nothing(slot)
        return True


class _SecondInterface:
    """Walks the tokens where they are: on the device, committed ones and drafts."""

    def __init__(self, vllm_config: Any, req_states: Any) -> None:
        self.req_states = req_states
        slots, device = req_states.max_num_reqs, req_states.device
        self.walk = SlotWalk(device, slots, req_states.vocab_size, _end_tokens(vllm_config))
        self.taken = torch.zeros(slots, dtype=torch.int64, device=device)
        """How many ids of each slot its state has taken, those of the prompt included."""
        self._taken_on_host: dict[int, int] = {}
        self._behind: dict[int, int] = {}
        self._prompts: dict[int, int] = {}
        drafts = getattr(getattr(vllm_config, "speculative_config", None), "num_speculative_tokens", None)
        self.most_drafts = int(drafts or 0)

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuses a request whose set is not there, alone."""
        _validate(sampling_params)

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Puts a request at the start of its set."""
        has = _assign(self.walk, req_idx, sampling_params)
        self._behind.pop(req_idx, None)
        self._taken_on_host.pop(req_idx, None)
        if has and req_idx in self.walk.on_host:
            self._taken_on_host[req_idx] = int(self.req_states.prompt_len.np[req_idx])
        elif has:
            prompt = int(self.req_states.prompt_len.np[req_idx])
            # What a request had written before it was preempted comes with it.
            self._behind[req_idx] = max(int(self.req_states.prefill_len.np[req_idx]) - prompt, 0)
            self._prompts[req_idx] = prompt
        return has

    def apply_staged_writes(self) -> None:
        """Writes the slots of new requests."""
        self.walk.flush()
        if self._prompts:
            slots, prompts = (torch.tensor(list(part)) for part in zip(*self._prompts.items(), strict=True))
            device = self.taken.device
            self.taken.index_copy_(0, slots.to(device, non_blocking=True), prompts.to(device, non_blocking=True))
            self._prompts.clear()

    def apply(self, logits: Any, ctx: Any) -> Any:
        """Masks the rows of requests with constraints, drafts included. Of tries no value comes to the host."""
        asked = [int(slot) for slot in ctx.idx_mapping_np if self.walk.has(int(slot))]
        if any(slot in self.walk.on_host for slot in asked):
            self._apply_on_host(logits, ctx)
        slots = [slot for slot in asked if slot not in self.walk.on_host]
        if not slots:
            return logits
        # A request has a row a draft and one more: so many tokens may have been committed since the last step.
        drafts = len(logits) - len(ctx.idx_mapping_np)
        drafts = min(drafts, self.most_drafts) if self.most_drafts else drafts
        self._catch_up(max(self._behind.get(slot, 0) for slot in slots), ctx.idx_mapping)
        for slot in slots:
            self._behind[slot] = max(drafts + 1, self.most_drafts + 1)
        states = self._draft_states(ctx, drafts)
        return self.walk.tensors.mask_(logits, states)

    def _apply_on_host(self, logits: Any, ctx: Any) -> None:
        """Masks the rows of slots that are walked on the host: their committed tokens and drafts come there."""
        rows, place, inputs = (
            part.cpu().tolist() for part in (ctx.expanded_idx_mapping, ctx.expanded_local_pos, ctx.input_ids)
        )
        tokens, total = self.req_states.all_token_ids.gpu, self.req_states.total_len.gpu.cpu().tolist()
        first, drafts = {}, {}
        for row, (slot, nth) in enumerate(zip(rows, place, strict=True)):
            if slot not in self.walk.on_host:
                continue
            if nth == 0:
                first[slot], drafts[slot] = row, []
                taken, end = self._taken_on_host[slot], int(total[slot])
                self.walk.on_host.accept(slot, tokens[slot, taken:end].cpu().tolist())
                self._taken_on_host[slot] = end
            else:
                drafts[slot].append(inputs[row])
        self.walk.on_host.mask_(logits, first, drafts)

    def _catch_up(self, steps: int, slots: Any) -> None:
        """Takes the tokens that were committed since; `steps` is the most that any slot may lack."""
        tokens, total = self.req_states.all_token_ids.gpu, self.req_states.total_len.gpu
        slots = slots.long()
        states, taken = self.walk.states.index_select(0, slots), self.taken.index_select(0, slots)
        ends = total.index_select(0, slots).long()
        rows, width = tokens.index_select(0, slots), tokens.shape[1]
        for _ in range(steps):
            token = rows.gather(1, taken.clamp(max=width - 1)[:, None])[:, 0].long()
            due = taken < ends
            states = torch.where(due, self.walk.tensors.step(states, token), states)
            taken = taken + due.long()
        self.walk.states.index_copy_(0, slots, states)
        self.taken.index_copy_(0, slots, taken)

    def _draft_states(self, ctx: Any, drafts: int) -> Any:
        """The state of each row: that of its request, and the drafts before it."""
        rows, place = ctx.expanded_idx_mapping.long(), ctx.expanded_local_pos.long()
        states = self.walk.states.index_select(0, rows)
        first = torch.arange(len(rows), device=states.device) - place
        for draft in range(1, drafts + 1):
            # The first row of a request has its last committed token, the next ones its drafts.
            token = ctx.input_ids.index_select(0, (first + draft).clamp(max=len(rows) - 1)).long()
            states = torch.where(place >= draft, self.walk.tensors.step(states, token), states)
        return states


class _FirstInterface:
    """Keeps the state of each place of the batch; places are given away and exchanged."""

    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None:
        slots = vllm_config.scheduler_config.max_num_seqs
        self.walk = SlotWalk(device, slots, vllm_config.model_config.get_vocab_size(), _end_tokens(vllm_config))
        self.outputs: dict[int, list[int]] = {}
        """The output of each place with a set: the list that the engine appends to."""
        self.taken: dict[int, int] = {}

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuses a request whose set is not there, alone."""
        _validate(sampling_params)

    def is_argmax_invariant(self) -> bool:
        """False: the best token is often not in the set."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Takes places away, gives them to new requests, and moves or exchanges them; in this order."""
        if batch_update is None:
            return
        for place in batch_update.removed:
            self._leave(place)
        for place, params, _, outputs in batch_update.added:
            self._leave(place)
            if _assign(self.walk, place, params):
                self.outputs[place], self.taken[place] = outputs, 0
        self.walk.flush()
        for one, other, how in batch_update.moved:
            self._move(one, other, swap=how.name == "SWAP")

    def _leave(self, place: int) -> None:
        self.outputs.pop(place, None)
        self.taken.pop(place, None)
        self.walk.assign(place, None)

    def _move(self, one: int, other: int, *, swap: bool) -> None:
        self.walk.move(one, other, swap=swap)
        for table in (self.outputs, self.taken):
            mine, theirs = table.pop(one, None), table.pop(other, None)
            if mine is not None:
                table[other] = mine  # type: ignore[assignment]
            if swap and theirs is not None:
                table[one] = theirs  # type: ignore[assignment]

    def apply(self, logits: Any) -> Any:
        """Takes the new tokens and masks the rows of requests with constraints."""
        if not self.outputs:
            return logits
        self._catch_up()
        self.walk.on_host.mask_(logits, {at: at for at in self.outputs if at in self.walk.on_host}, {})
        if all(at in self.walk.on_host for at in self.outputs):
            return logits
        return self.walk.tensors.mask_(logits, self.walk.states[: len(logits)])

    def _catch_up(self) -> None:
        for place in [place for place in self.outputs if place in self.walk.on_host]:
            known = [token for token in self.outputs[place][self.taken[place] :] if token >= 0]
            self.walk.on_host.accept(place, known)
            self.taken[place] += len(known)
        while True:
            # A token that is not known yet stands as -1.
            due = [at for at, ids in self.outputs.items() if len(ids) > self.taken[at] and ids[self.taken[at]] >= 0]
            if not due:
                return
            tokens = [self.outputs[place][self.taken[place]] for place in due]
            device = self.walk.states.device
            places = torch.tensor(due).to(device, non_blocking=True)
            moved = self.walk.tensors.step(
                self.walk.states.index_select(0, places), torch.tensor(tokens).to(device, non_blocking=True)
            )
            self.walk.states.index_copy_(0, places, moved)
            for place in due:
                self.taken[place] += 1


class _Either:
    """What vLLM loads: it makes the processor of the interface by which it is made."""

    def __new__(cls, vllm_config: Any, *arguments: Any) -> Any:
        """V1 gives a device and whether memory is pinned, V2 the states of the requests."""
        return _made("V1" if len(arguments) == 2 else "V2")(vllm_config, *arguments)

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuses a request whose set is not there, alone.

        Raises:
            RequestError: it says what is wrong, and which sets there are.
        """
        _validate(sampling_params)


INTERFACES = {
    "V1": ("vllm.v1.sample.logits_processor.interface", _FirstInterface),
    "V2": ("vllm.v1.worker.gpu.sample.logits_processor.interface", _SecondInterface),
}


def _made(name: str) -> type:
    """A class of vLLM's with our methods, made once."""
    if name not in _MADE:
        module, methods = INTERFACES[name]
        base = required(module, "vllm").LogitsProcessor
        _MADE[name] = type(f"TokenTrieProcessor{name}", (methods, base), {"__module__": __name__})
    return _MADE[name]


def _either() -> type:
    """A class that both loaders take for theirs."""
    if "either" not in _MADE:
        required("vllm", "vllm")
        bases = []
        for module, _ in INTERFACES.values():
            # Older versions have the first alone, later ones may drop it.
            with suppress(ImportError):
                bases.append(import_module(module).LogitsProcessor)
        if not bases:
            raise ImportError(
                "this version of vllm has none of the interfaces that tokentrie knows: 0.32 and 0.33 have"
            )
        _MADE["either"] = type("TokenTrieProcessor", (_Either, *bases), {"__module__": __name__})
    return _MADE["either"]


def __getattr__(name: str) -> Any:
    if name == "TokenTrieProcessor":
        return _either()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
