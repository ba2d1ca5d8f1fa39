"""The arrays of one or several sets as tensors on a device: what `TrieTensors` walks."""

from __future__ import annotations

import bisect
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import tokentrie
from tokentrie.integrations._shared.lazy import Lazy

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]
    from numpy.typing import NDArray
else:
    torch = Lazy("torch", "torch")

MOST_NODES = 2**31 - 1
"""Node numbers are int32 on the device."""

NEVER = -1
"""Fills tables of tokens; no token."""


@dataclass
class Set:
    """One set and where it lies."""

    trie: tokentrie.Trie
    arrays: tokentrie.sets.TrieArrays
    begin: int
    """The number of its root: that of its first node among those of all sets."""
    nodes: int
    ends: list[int]
    """Tokens that may follow a value."""
    stops: list[int]
    """Tokens that may follow after that; empty where anything may."""
    widths: list[int]
    """The most children at each depth; empty where the set is not a tree."""
    hot: NDArray[np.int64]
    """Its nodes with very many children, ascending; counted from its root."""
    narrow: int
    """The most children of the others."""

    @property
    def widest(self) -> int:
        return max(self.widths, default=self.narrow)

    @property
    def opens(self) -> bool:
        """Returns True if some node is open: no end token tells a value from a longer one."""
        return not self.ends and len(self.arrays.inner_terminals) > 0

    @property
    def frees(self) -> bool:
        """Returns True if some row may be free: at an open node, or after a value if nothing stops."""
        return not self.stops or self.opens

    @property
    def overlaps(self) -> bool:
        """Returns True if a value may go on with one of the tokens that may end it."""
        return len(self.arrays.inner_terminals) > 0 and bool(np.isin(self.ends, self.arrays.tokens[1:]).any())


def as_list(trie: tokentrie.Trie | Iterable[tokentrie.Trie]) -> list[tokentrie.Trie]:
    """One set or several. Rules have no arrays that could go to a device."""
    if isinstance(trie, tokentrie.rules.Rule):
        name = type(trie).__name__
        raise TypeError(f"a {name} has no arrays for a device: LogitsConstraint and Batch take rules, this takes tries")
    return [trie] if isinstance(trie, tokentrie.Trie) else list(trie)


def describe_set(
    trie: tokentrie.Trie, ends: list[int] | None, eog: list[int], after: str, wide: int, most_hot: int, verify: bool
) -> Set:
    """Returns the description of a set before it is on a device. `ends` None: those that it brings."""
    if trie.is_weighted:
        # Better none than one that leaves half of the table out.
        problem = "the set has weights, which are not added on a device"
        raise tokentrie.errors.TrieError(f"{problem}: Batch adds them, trie.without_weights() is the set without them")
    arrays = trie.arrays(verify=verify)
    if arrays.nodes > MOST_NODES:
        raise tokentrie.errors.TrieError(f"a set of {arrays.nodes} nodes: tensors take up to {MOST_NODES}")
    ends = sorted(set(arrays.end_tokens if ends is None else ends))
    stops = [] if after == "free" else sorted(set(eog)) or ends
    first = arrays.first_child
    counts = np.diff(first)
    limit = wide
    hot = np.flatnonzero(counts > limit)
    while len(hot) > most_hot:
        limit *= 2
        hot = hot[counts[hot] > limit]
    narrow = int(counts.max()) if not len(hot) else int(np.where(counts > limit, 0, counts).max())
    widths = [] if arrays.targets is not None else _widths(first, counts)
    return Set(trie, arrays, 0, arrays.nodes, ends, stops, widths, hot.astype(np.int64), narrow)


def _widths(first: NDArray[np.uint32], counts: NDArray[np.uint32]) -> list[int]:
    """The most children of a node at each depth of a tree. Nodes are numbered depth by depth."""
    widths, begin, end = [], 0, 1
    while begin < len(counts):
        widths.append(int(counts[begin:end].max(initial=0)))
        begin, end = end, int(first[min(end, len(first) - 1)])
    return widths


def as_tensor(array: NDArray[np.generic]) -> torch.Tensor:
    """A tensor over the memory of a read-only array; the tensor must not be written to."""
    if array.dtype == np.uint32:
        array = array.view(np.int32)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(array)


class Sets:
    """Sets side by side in the same arrays, each from a node of its own on; sets may come and go.

    One set on the CPU lies where the trie has it: nothing is copied. Node numbers of the others do not change when a
    set comes or goes.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.all: dict[int, Set] = {}
        self._lent = False
        self.tokens = self.first = torch.zeros(1, dtype=torch.int32, device=device)
        self.targets: torch.Tensor | None = None
        self._tables()

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        tensors = [self.tokens, self.first, self.targets, self.terminals, self.begins, self.ends, self.stops, self.hot]
        tensors += [self.hot_edges]
        return sum(tensor.nbytes for tensor in tensors if tensor is not None)

    def add(self, new: Set) -> int:
        """The number of the set here."""
        number = next(free for free in range(len(self.all) + 1) if free not in self.all)
        graph = new.arrays.targets
        if not self.all:
            # Alone, it lies as it is.
            self.tokens = as_tensor(new.arrays.tokens).to(self.device)
            self.first = as_tensor(new.arrays.first_child).to(self.device)
            self.targets = None if graph is None else as_tensor(graph).to(self.device)
            self._lent = True
        else:
            self._spread()
            new.begin = self._room(_space(new))
            self._write(new)
        self.all[number] = new
        self._tables()
        return number

    def remove(self, number: int) -> None:
        """Forgets a set; its room is used again."""
        del self.all[number]
        self._tables()

    def _spread(self) -> None:
        """Copies the arrays of one set, which may belong to its trie, into arrays with room for several."""
        if not self._lent:
            return
        (only,) = self.all.values()
        self._lent = False
        self._grow(only.begin + _space(only), keep=False)
        self._write(only)

    def _grow(self, space: int, *, keep: bool = True) -> None:
        if space > MOST_NODES:
            raise tokentrie.errors.TrieError(f"sets of {space} nodes together: tensors take up to {MOST_NODES}")
        graph = self.targets is not None
        for name in ("tokens", "first", *(["targets"] if graph else [])):
            grown = torch.zeros(space, dtype=torch.int32, device=self.device)
            if keep:
                old = getattr(self, name)
                grown[: len(old)] = old
            setattr(self, name, grown)

    def _room(self, space: int) -> int:
        """The first place that is large enough; grows the arrays where there is none."""
        at = 0
        for other in sorted(self.all.values(), key=lambda known: known.begin):
            if other.begin - at >= space:
                return at
            at = other.begin + _space(other)
        if at + space > len(self.tokens):
            self._grow(max(at + space, min(2 * len(self.tokens), MOST_NODES)))
        return at

    def _write(self, new: Set) -> None:
        begin, arrays = new.begin, new.arrays
        if arrays.targets is not None and self.targets is None:
            # Until now all were trees: an edge led to the node of its number.
            self.targets = torch.arange(len(self.tokens), dtype=torch.int32, device=self.device)
        self.tokens[begin : begin + len(arrays.tokens)] = as_tensor(arrays.tokens).to(self.device)
        first = as_tensor(arrays.first_child).to(self.device) + begin
        self.first[begin : begin + len(first)] = first
        self.first[begin + len(first) : begin + _space(new)] = first[-1]
        if self.targets is not None:
            edges = len(arrays.tokens)
            targets = torch.arange(edges, dtype=torch.int32, device=self.device)
            if arrays.targets is not None:
                targets = as_tensor(arrays.targets).to(self.device)
            self.targets[begin : begin + edges] = targets + begin

    def _tables(self) -> None:
        """The small tables, by the order in which the sets lie."""
        self._leaves: tuple[torch.Tensor, torch.Tensor] | None = None
        self.order = sorted(self.all, key=lambda number: self.all[number].begin)
        sets = [self.all[number] for number in self.order]
        self.alone = len(sets) == 1
        self.begins = self._ints([known.begin for known in sets])
        self.begin_of = {number: self.all[number].begin for number in self.order}
        inner = [known.arrays.inner_terminals.astype(np.int64) + known.begin for known in sets]
        self.terminals = self._ints(np.concatenate(inner) if inner else [])
        self.ends = self._table([known.ends for known in sets])
        self.stops = self._table([known.stops for known in sets])
        self.narrow = max((known.narrow for known in sets), default=0)
        self.widest = max((known.widest for known in sets), default=0)
        self.frees, self.opens = any(known.frees for known in sets), any(known.opens for known in sets)
        self.overlaps = any(known.overlaps for known in sets)
        self.has_ends, self.has_stops = ((table >= 0).any(dim=1) for table in (self.ends, self.stops))
        self.trees = self.targets is None
        self.max_token = max((known.arrays.max_token for known in sets), default=0)
        self._hot_tables(sets)

    def _hot_tables(self, sets: list[Set]) -> None:
        """Returns the edge of every token, or 0, for nodes with very many children: their rows need no list."""
        hot = [int(node) + known.begin for known in sets for node in known.hot]
        self.hot = self._ints(hot)
        self.hot_edges = torch.zeros(len(hot), self.max_token + 1 if hot else 0, dtype=torch.int32, device=self.device)
        for row, node in enumerate(hot):
            of = sets[bisect.bisect_right([known.begin for known in sets], node) - 1]
            first = of.arrays.first_child
            low, high = (int(first[node - of.begin + end]) for end in (0, 1))
            tokens = as_tensor(of.arrays.tokens[low:high]).to(self.device)
            edges = torch.arange(low + of.begin, high + of.begin, dtype=torch.int32, device=self.device)
            self.hot_edges[row].index_copy_(0, tokens.long(), edges)

    def leaves(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The nodes that end a leaf, ascending, and the leaf of each in its set. Made when first asked for."""
        if self._leaves is None:
            nodes, numbers = [], []
            for known in (self.all[number] for number in self.order):
                ends, leaves = known.arrays.end_nodes()
                # A step may be the first to ask, and does not wait.
                nodes.append(as_tensor(ends).to(self.device, non_blocking=True) + known.begin)
                numbers.append(as_tensor(leaves).to(self.device, non_blocking=True))
            none = [torch.zeros(0, dtype=torch.int32, device=self.device)]
            self._leaves = torch.cat(nodes or none), torch.cat(numbers or none)
        return self._leaves

    def _ints(self, numbers: list[int] | NDArray[np.int64]) -> torch.Tensor:
        return torch.as_tensor(np.asarray(numbers, dtype=np.int64)).to(self.device)

    def _table(self, lists: list[list[int]]) -> torch.Tensor:
        width = max(map(len, lists), default=0)
        return self._ints(np.array([row + [NEVER] * (width - len(row)) for row in lists]).reshape(len(lists), width))


def _space(of: Set) -> int:
    """Entries that a set needs in each array: one more than nodes, or edges."""
    return max(of.nodes + 1, len(of.arrays.tokens), len(of.arrays.first_child))
