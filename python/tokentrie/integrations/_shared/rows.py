"""Row operations of `TrieTensors`. None of them reads a value on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokentrie.integrations._shared.lazy import Lazy
from tokentrie.integrations._shared.walk import DEAD, NOTHING, Entries, Place, Walk, items

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]
    from numpy.typing import NDArray
else:
    torch = Lazy("torch", "torch")

NO = float("-inf")


def flat(rows: torch.Tensor) -> torch.Tensor:
    """All memory from the first entry of the first row to the last of the last, for rows that may be strided."""
    count, width = rows.shape
    size = (count - 1) * rows.stride(0) + width if count else 0
    return rows.as_strided((size,), (1,))


def logits_of(rows: torch.Tensor, row: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
    """The logit of each entry."""
    return flat(rows).gather(0, row * rows.stride(0) + token)


class KeptLogits(NamedTuple):
    """The values kept from -inf, and of each row the lowest legal token and whether any logit is usable."""

    row: torch.Tensor
    token: torch.Tensor
    value: torch.Tensor
    real: torch.Tensor  # whether the row has an entry at all
    low: torch.Tensor
    alive: torch.Tensor


def keep_logits(logits: torch.Tensor, entries: Entries) -> KeptLogits:
    """The logits of these tokens."""
    rows = len(logits)
    low = entries.lowest(rows)
    some = low < NOTHING
    # An unused entry repeats the write of another entry of its row, or writes nothing new if the row has none.
    token = torch.where(entries.valid, entries.token, items(torch.where(some, low, 0), entries.row))
    value, real = logits_of(logits, entries.row, token), items(some, entries.row)
    alive = torch.zeros(rows, dtype=torch.int32, device=low.device)
    alive = alive.index_add_(0, entries.row, (real & (value > NO)).to(torch.int32)) > 0
    return KeptLogits(entries.row, token, value, real, low, alive)


def put_wide(masked: torch.Tensor, logits: torch.Tensor, walk: Walk, at: Place, kept: KeptLogits) -> KeptLogits:
    """Writes the rows that are at a node with very many children, from its table."""
    nth, hot = walk.hot(at)
    edges = walk.sets.hot_edges.index_select(0, nth)
    legal, seen = (edges > 0) & hot[:, None], edges.shape[1]
    alive = kept.alive | (legal & (logits[:, :seen] > NO)).any(dim=1)
    masked[:, :seen] = torch.where(legal & alive[:, None], logits[:, :seen], NO)
    low = torch.where(hot, legal.to(torch.int8).argmax(dim=1), NOTHING)
    return kept._replace(low=torch.minimum(kept.low, low), alive=alive)


def write_logits(masked: torch.Tensor, kept: KeptLogits) -> torch.Tensor:
    """Writes the logits; in a row without a usable one the lowest legal token gets 0, all others -inf."""
    starved = ~kept.alive & (kept.low < NOTHING)
    there = logits_of(masked, kept.row, kept.token)
    value = torch.where(kept.real, torch.where(items(starved, kept.row), NO, kept.value), there)
    flat(masked).scatter_(0, kept.row * masked.stride(0) + kept.token, value)
    low = torch.where(starved, kept.low, 0)[:, None]
    return masked.scatter_(1, low, torch.where(starved[:, None], 0, masked.gather(1, low)).to(masked.dtype))


def put_unbound(masked: torch.Tensor, logits: torch.Tensor, unbound: torch.Tensor, *, blocking: bool) -> torch.Tensor:
    """Gives rows in which anything may come their logits back."""
    if not blocking:
        return torch.where(unbound[:, None], logits, masked)
    (rows,) = unbound.nonzero(as_tuple=True)
    if len(rows):
        masked.index_copy_(0, rows, logits.index_select(0, rows))
    return masked


def put_words_(logits: torch.Tensor, at: Sequence[int], words: NDArray[np.int32]) -> None:
    """Masks the rows `at` in place; `words` has a row for each, with bit i % 32 of word i // 32 for token i.

    As `put` does: where no legal logit is usable, the lowest legal token gets 0, and nothing else is left.
    """
    width = logits.shape[1]
    legal = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, count=width, bitorder="little")
    legal = legal.view(np.bool_)
    if logits.device.type == "cpu" and logits.dtype != torch.bfloat16:
        # Row by row in this thread: torch would wake others for every one of its operations, which takes longer.
        rows = logits.numpy()
        for row, keep in zip(at, legal, strict=True):
            np.copyto(rows[row], NO, where=~keep)
            if not (rows[row] > NO).any() and keep.any():
                rows[row] = NO
                rows[row, keep.argmax()] = 0
        return
    where = torch.tensor(at).to(logits.device, non_blocking=True)
    kept = torch.from_numpy(legal).to(logits.device, non_blocking=True)
    masked = logits.index_select(0, where).masked_fill_(~kept, NO)
    starved = ~(masked > NO).any(dim=1) & kept.any(dim=1)
    masked = masked.masked_fill_(starved[:, None], NO)
    low = kept.to(torch.int8).argmax(dim=1)[:, None]
    masked.scatter_(1, low, torch.where(starved[:, None], 0, masked.gather(1, low)).to(masked.dtype))
    logits.index_copy_(0, where, masked)


def log_sums(logits: torch.Tensor, *, blocking: bool) -> torch.Tensor:
    """ln of the sum of exp of each row; NaN counts as -inf."""
    if blocking:
        sums = torch.logsumexp(logits.float(), dim=1)
        if not sums.isnan().any():
            return sums
    return torch.logsumexp(torch.where(logits.isnan(), NO, logits).float(), dim=1)


def log_sums_of(row: torch.Tensor, values: torch.Tensor, rows: int) -> torch.Tensor:
    """Returns the log-sums of entries: -inf for a row without any."""
    top = torch.full((rows,), NO, dtype=values.dtype, device=values.device).scatter_reduce_(0, row, values, "amax")
    shift = torch.where(top.isinf(), 0.0, top)
    total = torch.zeros_like(top).index_add_(0, row, torch.exp(values - items(shift, row)))
    return torch.where(top.isinf(), top, shift + total.log())


def best_entries(
    entries: Entries, scores: torch.Tensor, k: int, size: int, groups: int, *, blocking: bool
) -> tuple[torch.Tensor, ...]:
    """Row, token, score and state of the k best entries of each group of `size` rows; what is not there is filled."""
    row, token, state, valid = entries
    if blocking:
        if groups == 1 and k < len(scores):
            valid = valid & (scores >= scores.topk(k).values[-1])
        (there,) = valid.nonzero(as_tuple=True)
        row, token, state, valid, scores = (items(part, there) for part in (row, token, state, valid, scores))
    group = torch.where(valid, row // max(size, 1), groups)
    # Stable sorts, the last key first.
    order = torch.argsort(row * 2**32 + token)
    order = items(order, torch.argsort(items(scores, order), stable=True, descending=True))
    order = items(order, torch.argsort(items(group, order), stable=True))
    numbers, sorted_groups = torch.arange(groups, device=row.device), items(group, order)
    begin, end = (torch.searchsorted(sorted_groups, numbers, right=right) for right in (False, True))
    nth = begin[:, None] + torch.arange(k, device=row.device)
    # One extra entry is the filler.
    nth = torch.where(nth < end[:, None], nth, len(order)).view(-1)
    if blocking and groups == 1:
        nth = nth[: int((nth < len(order)).sum())]
    fills = ((row, -1), (token, -1), (scores, NO), (state, DEAD))
    return tuple(items(torch.cat([items(part, order), part.new_full((1,), fill)]), nth) for part, fill in fills)
