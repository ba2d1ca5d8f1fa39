"""A sampler by its definition: a set of sequences and the tokens accepted so far. Slow and short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Oracle:
    """Everything is computed anew from `leaves` and `history`."""

    def __init__(
        self,
        n_vocab: int,
        leaves: Iterable[Sequence[int]],
        ends: Iterable[int] = (),
        after: str = "free",
        eog: Iterable[int] = (),
    ) -> None:
        self.n_vocab, self.leaves, self.ends, self.after = n_vocab, set(map(tuple, leaves)), set(ends), after
        self.stop = set(eog) or self.ends
        self.history: list[int] = []

    @property
    def walk(self) -> tuple[int, ...]:
        """The longest part of the history that lies in the trie."""
        fits = [
            n for n in range(len(self.history) + 1) if any(leaf[:n] == tuple(self.history[:n]) for leaf in self.leaves)
        ]
        return tuple(self.history[: max(fits)])

    @property
    def children(self) -> set[int]:
        n = len(self.walk)
        return {leaf[n] for leaf in self.leaves if len(leaf) > n and leaf[:n] == self.walk}

    @property
    def complete(self) -> bool:
        ends_by_itself = self.walk in self.leaves and not self.children and not self.ends
        return len(self.history) > len(self.walk) or ends_by_itself

    @property
    def open(self) -> bool:
        return not self.complete and self.walk in self.leaves and not self.ends

    @property
    def allowed(self) -> set[int]:
        if self.complete:
            return self.stop if self.after == "stop" else set(range(self.n_vocab))
        return self.children | (self.ends if self.walk in self.leaves else set())

    @property
    def legal(self) -> set[int]:
        """What may be accepted: at an open leaf that is everything, though only children go on."""
        return set(range(self.n_vocab)) if self.open else self.allowed

    @property
    def forced(self) -> list[int]:
        run: list[int] = []
        ahead = self.copy()
        while not ahead.complete and not ahead.open and len(ahead.allowed) == 1:
            run += ahead.allowed
            ahead.history += ahead.allowed
        return run

    def copy(self) -> Oracle:
        twin = Oracle(self.n_vocab, self.leaves, self.ends, self.after, self.stop)
        twin.history = list(self.history)
        return twin

    def best(self, row: Sequence[float]) -> int:
        """The highest logit, ties to the lowest id, NaN as −inf; if all are, the lowest of the allowed."""
        alive = [(-row[token], token) for token in self.legal if row[token] > float("-inf")]
        return min(alive)[1] if alive else min(self.allowed)
