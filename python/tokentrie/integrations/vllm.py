"""vLLM: a constraint for each request, in both interfaces of its logits processors; tries on the device.

vLLM finds tokentrie by its entry points if both are installed. A request names its set in `extra_args` (`vllm_xargs`
over HTTP); a request without a set is left alone. `_vllm_requests` checks requests, and prepares vLLM.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import tokentrie
from tokentrie.integrations._shared.lazy import Lazy
from tokentrie.integrations._shared.request_sets import RequestError, RequestSets
from tokentrie.integrations._shared.require import require
from tokentrie.integrations._slot_walk import SlotWalk
from tokentrie.integrations._vllm_requests import PROCESSOR, SETS, is_named, register, sets_of_requests, validate

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]

else:
    torch = Lazy("torch", "vllm")

__all__ = ["RequestError", "RequestSets", "SlotWalk", "register"]

_log = logging.getLogger(__name__)

_MADE: dict[str, type] = {}
_SETS = SETS


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


def _assign(walk: SlotWalk, slot: int, sampling_params: Any) -> bool:
    try:
        return walk.assign(slot, sets_of_requests().asked(getattr(sampling_params, "extra_args", None)))
    except (RequestError, tokentrie.TokenTrieError) as error:
        # The set was checked when the request came, but its file is gone now. Other requests must go on.
        _log.error("a request ends without a value: %s", error)
        walk.assign_nothing(slot)
        return True


class _SecondInterface:
    """Walks the tokens where they are: on the device, committed ones and drafts."""

    def __init__(self, vllm_config: Any, req_states: Any) -> None:
        self.req_states = req_states
        slots, device = req_states.max_num_reqs, req_states.device
        self.walk = SlotWalk(device, slots, req_states.vocab_size, _end_tokens(vllm_config))
        self.taken = torch.zeros(slots, dtype=torch.int64, device=device)
        """Number of ids of each slot that its state has taken, those of the prompt included."""
        self._taken_on_host: dict[int, int] = {}
        self._behind: dict[int, int] = {}
        self._prompts: dict[int, int] = {}
        drafts = getattr(getattr(vllm_config, "speculative_config", None), "num_speculative_tokens", None)
        self.most_drafts = int(drafts or 0)

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuses a request whose set is not there, alone."""
        validate(sampling_params)

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
        first: dict[int, int] = {}
        drafts: dict[int, list[int]] = {}
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
        validate(sampling_params)

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
        new = {}
        for place, ids in list(self.outputs.items()):
            taken = self.taken[place]
            if len(ids) < taken or any(token < 0 for token in ids[taken:]):
                self._end(place)
            elif len(ids) > taken:
                new[place], self.taken[place] = ids[taken:], len(ids)
        for place in [place for place in new if place in self.walk.on_host]:
            self.walk.on_host.accept(place, new.pop(place))
        device = self.walk.states.device
        while new:
            places, tokens = (
                torch.tensor(part).to(device, non_blocking=True)
                for part in (list(new), [ids[0] for ids in new.values()])
            )
            moved = self.walk.tensors.step(self.walk.states.index_select(0, places), tokens)
            self.walk.states.index_copy_(0, places, moved)
            new = {place: ids[1:] for place, ids in new.items() if len(ids) > 1}

    def _end(self, place: int) -> None:
        """Ends a request whose last tokens are unknown (-1) or were taken back: its place in the set is unknown."""
        _log.error(
            "a request ends without a value: vLLM withholds the tokens that it has written; start the server with"
            " --logits-processors %s",
            PROCESSOR,
        )
        self.walk.assign_nothing(place)
        self.walk.flush()
        self.outputs[place] = []
        self.taken[place] = 0


class _Idle:
    """Idle processor of the entry point if the processor is also named: the named one does the work."""

    def __init__(self, *_: Any) -> None:
        pass

    def is_argmax_invariant(self) -> bool:
        """True: nothing changes."""
        return True

    def update_state(self, batch_update: Any) -> None:
        """Does nothing: requests are read one by one."""

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Returns False: no request is changed."""
        return False

    def apply(self, logits: Any, ctx: Any = None) -> Any:
        """Returns the logits as they are."""
        return logits


class _InterfaceProcessor:
    """Class that vLLM loads: it makes the processor for the interface that vLLM calls."""

    def __new__(cls, vllm_config: Any, *arguments: Any) -> Any:
        """V1 gives a device and whether memory is pinned, V2 the states of the requests."""
        return _make_class("V1" if len(arguments) == 2 else "V2")(vllm_config, *arguments)

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuses a request whose set is not there, alone.

        Raises:
            RequestError: it says what is wrong, and which sets there are.
        """
        validate(sampling_params)


class _EntryPointProcessor(_InterfaceProcessor):
    """Class that vLLM finds by the entry point: idle if the configuration names the processor."""

    def __new__(cls, vllm_config: Any, *arguments: Any) -> Any:
        """The arguments are those of the processor that vLLM would load by name."""
        if is_named(vllm_config):
            return _make_class("V1" if len(arguments) == 2 else "V2", _Idle)(vllm_config, *arguments)
        return super().__new__(cls, vllm_config, *arguments)


INTERFACES = {
    "V1": ("vllm.v1.sample.logits_processor.interface", _FirstInterface),
    "V2": ("vllm.v1.worker.gpu.sample.logits_processor.interface", _SecondInterface),
}

FACES = {"TokenTrieProcessor": _InterfaceProcessor, "InstalledProcessor": _EntryPointProcessor}
"""Classes that vLLM may load: by name, and by its entry points."""


def _make_class(name: str, methods: type | None = None) -> type:
    """A class of vLLM's with our methods, made once."""
    module, own = INTERFACES[name]
    methods = methods or own
    key = f"{methods.__name__} {name}"
    if key not in _MADE:
        base = require(module, "vllm").LogitsProcessor
        _MADE[key] = type(f"TokenTrieProcessor{name}", (methods, base), {"__module__": __name__})
    return _MADE[key]


def _face(name: str) -> type:
    """A class that the loaders of both interfaces accept."""
    if name not in _MADE:
        require("vllm", "vllm")
        bases = []
        for module, _ in INTERFACES.values():
            # Older versions have the first alone, later ones may drop it.
            with suppress(ImportError):
                bases.append(import_module(module).LogitsProcessor)
        if not bases:
            raise ImportError(
                "this version of vllm has none of the interfaces that tokentrie knows: 0.32 and 0.33 have"
            )
        _MADE[name] = type(name, (FACES[name], *bases), {"__module__": __name__})
    return _MADE[name]


def __getattr__(name: str) -> Any:
    if name in FACES:
        return _face(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
