"""One step of a walk, for all rows at once, as `TrieTensors` uses it. No value is read on the host, unless allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tokentrie.integrations._shared.lazy import Lazy
from tokentrie.integrations._shared.sets import Sets

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]
else:
    torch = Lazy("torch", "torch")

DEAD = -1
FREE = -(2**62)
COMPLETE = -2
NOTHING = 2**62
"""A number above every token id."""


class Place(NamedTuple):
    """State of each row."""

    states: torch.Tensor
    node: torch.Tensor  # 0 where there is none
    of: torch.Tensor | None  # the set, None where there is one alone
    begin: torch.Tensor  # its first edge
    count: torch.Tensor  # its edges; 0 where the row is not inside a value
    inside: torch.Tensor
    terminal: torch.Tensor  # a value ends here and is not complete
    over: torch.Tensor  # the value is complete
    has_ends: torch.Tensor
    has_stops: torch.Tensor

    @property
    def unbound(self) -> torch.Tensor:
        """Rows in which anything may come."""
        return (self.states == FREE) | (self.over & ~self.has_stops) | (self.terminal & ~self.has_ends)


class Entries(NamedTuple):
    """Tokens that may come, one entry each: its row, the token, the state after it, and whether it is one."""

    row: torch.Tensor
    token: torch.Tensor
    state: torch.Tensor
    valid: torch.Tensor

    def to(self, device: torch.device) -> Entries:
        return Entries(*(part.to(device, non_blocking=True) for part in self))

    def lowest(self, rows: int) -> torch.Tensor:
        """The lowest token of each row, `NOTHING` where there is none."""
        tokens = torch.where(self.valid, self.token, NOTHING)
        start = torch.full((rows,), NOTHING, dtype=torch.int64, device=tokens.device)
        return start.scatter_reduce_(0, self.row, tokens, "amin")


def concatenate(one: Entries, other: Entries) -> Entries:
    return Entries(*(torch.cat(parts) for parts in zip(one, other, strict=True)))


class Walk:
    """Rows in sets. `blocking`: whether a call may wait for the device to learn how many children there are."""

    def __init__(self, sets: Sets, *, blocking: bool) -> None:
        self.sets, self.blocking = sets, blocking

    def place(self, states: torch.Tensor) -> Place:
        sets = self.sets
        inside = states >= 0
        complete = (states <= COMPLETE) & (states != FREE)
        node = torch.where(complete, COMPLETE - states, states.clamp(min=0))
        of = None
        if not sets.alone:
            of = (torch.searchsorted(sets.begins, node, right=True) - 1).clamp_(min=0)
        has_ends, has_stops = (has[:1] if of is None else items(has, of) for has in (sets.has_ends, sets.has_stops))
        begin, end = (_take(sets.first, node + plus).long() for plus in (0, 1))
        terminal = childless = end == begin
        if len(sets.terminals):
            nth = torch.searchsorted(sets.terminals, node)
            terminal = childless | (_take(sets.terminals, nth) == node)
        over = complete | (inside & childless & ~has_ends)
        count = torch.where(inside, end - begin, 0)
        return Place(states, node, of, begin, count, inside, terminal & inside & ~over, over, has_ends, has_stops)

    def step(self, at: Place, tokens: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
        """The states after these tokens; `known` says which of them the vocabulary has."""
        edge = self.edge(at, tokens)
        node = edge if self.sets.targets is None else _take(self.sets.targets, edge).long()
        closes = at.terminal & torch.where(at.has_ends, self._has(self.sets.ends, at, tokens), known)
        stays = at.over & torch.where(at.has_stops, self._has(self.sets.stops, at, tokens), known)
        after = torch.where(closes | stays, COMPLETE - at.node, DEAD)
        after = torch.where(at.inside & (edge > 0), node, after)
        return torch.where(at.states == FREE, at.states, after)

    def edge(self, at: Place, tokens: torch.Tensor) -> torch.Tensor:
        """The edge of each row's token, 0 where there is none."""
        sets = self.sets
        if self.blocking:
            # By halves: the first edge whose token is not below.
            low, high = at.begin, at.begin + at.count
            for _ in range(int(at.count.max()).bit_length() if len(tokens) else 0):
                middle = (low + high) >> 1
                below = (_take(sets.tokens, middle) < tokens) & (low < high)
                low, high = torch.where(below, middle + 1, low), torch.where(below, high, middle)
            hit = (low < at.begin + at.count) & (_take(sets.tokens, low) == tokens)
            return torch.where(hit, low, 0)
        slots = torch.arange(max(sets.narrow, 1), device=tokens.device)
        edges = at.begin[:, None] + slots
        hit = (slots < at.count[:, None]) & (_take(sets.tokens, edges) == tokens[:, None])
        edge = torch.where(hit, edges, 0).amax(dim=1)
        if len(sets.hot):
            nth, hot = self.hot(at)
            seen = (tokens >= 0) & (tokens < sets.hot_edges.shape[1])
            flat = nth * sets.hot_edges.shape[1] + torch.where(seen, tokens, 0)
            wide = items(sets.hot_edges.view(-1), flat).long()
            edge = torch.where(hot, torch.where(seen, wide, 0), edge)
        return edge

    def hot(self, at: Place) -> tuple[torch.Tensor, torch.Tensor]:
        """The table of each row's node, and whether there is one: nodes with very many children have."""
        nth = torch.searchsorted(self.sets.hot, at.states).clamp_(max=len(self.sets.hot) - 1)
        return nth, items(self.sets.hot, nth) == at.states

    def widths(self, depth: int | None) -> tuple[int, int]:
        """The most children of a row that is not hot, and of any row, where the rows are at this depth."""
        sets = self.sets
        if depth is None or depth < 0 or not sets.trees:
            return sets.narrow, sets.widest
        widest = max((of.widths[depth] for of in sets.all.values() if depth < len(of.widths)), default=0)
        return min(widest, sets.narrow), widest

    def list_children(self, at: Place, *, width: int | None = None, capacity: int | None = None) -> Entries:
        """The children of each row.

        With `width` there is room for so many a row, and rows with more are left out; with `capacity`, for so many of
        all rows; otherwise for the actual number, which may wait for the device.
        """
        rows = len(at.states)
        if width is not None:
            row = torch.arange(rows, device=at.states.device).repeat_interleave(width, output_size=rows * width)
            slot = torch.arange(width, device=at.states.device).repeat(rows)
            count = torch.where(at.count > width, 0, at.count)
            valid = slot < items(count, row)
        else:
            ends = at.count.cumsum(0)
            size = capacity if capacity is not None else (int(ends[-1]) if rows else 0)
            entry = torch.arange(size, device=at.states.device)
            if capacity is None:
                row = torch.repeat_interleave(at.count, output_size=size)
            else:
                row = torch.searchsorted(ends, entry, right=True).clamp_(max=max(rows - 1, 0))
            slot = entry - items(ends - at.count, row)
            valid = slot < items(at.count, row)
        edge = items(at.begin, row) + torch.where(valid, slot, 0)
        target = edge if self.sets.targets is None else _take(self.sets.targets, edge).long()
        return Entries(row, _take(self.sets.tokens, edge).long(), target, valid)

    def closing(self, at: Place, *, stops: bool) -> Entries | None:
        """End tokens of the rows whose value may end here, and, with `stops`, those after a complete value."""
        sets, rows, complete = self.sets, len(at.states), COMPLETE - at.node
        parts = [(sets.ends, at.terminal, complete)]
        if stops:
            parts.append((sets.stops, at.over | (at.states == DEAD), torch.where(at.over, complete, DEAD)))
        found = None
        for table, where, after in parts:
            for column in range(table.shape[1]):
                token = table[:, column].expand(rows) if at.of is None else items(table[:, column], at.of)
                valid = where & (token >= 0)
                if table is sets.ends and sets.overlaps:
                    valid = valid & (self.edge(at, token) == 0)  # a token that continues the value counts as a child
                part = Entries(torch.arange(rows, device=token.device), token, after, valid)
                found = part if found is None else concatenate(found, part)
        return found

    def _has(self, table: torch.Tensor, at: Place, tokens: torch.Tensor) -> torch.Tensor:
        """Returns True where the token is in the table of the row's set."""
        of = table[:1] if at.of is None else table.index_select(0, at.of)
        return ((of == tokens[:, None]) & (tokens >= 0)[:, None]).any(dim=1)


def items(array: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """Items of an array. On a busy CPU `array[at]`, which wakes threads, takes milliseconds."""
    return array.index_select(0, at.reshape(-1)).view(at.shape)


def _take(array: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """Items of an array; an index outside gives an arbitrary item."""
    return items(array, at.clamp(0, max(len(array) - 1, 0)))
