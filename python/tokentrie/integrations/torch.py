"""The walk through sets on a device: all rows at once, in torch operations, with no token or state on the host.

`TrieTensors` is for tries; `ConstraintRows` takes every kind of constraint, and walks it on the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import tokentrie
from tokentrie.integrations._shared import rows as _rows
from tokentrie.integrations._shared.constraint_rows import ConstraintRows
from tokentrie.integrations._shared.lazy import Lazy
from tokentrie.integrations._shared.sets import Set, Sets, as_list, describe_set
from tokentrie.integrations._shared.walk import COMPLETE, DEAD, FREE, NOTHING, Entries, Place, Walk, concatenate, items

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]
else:
    torch = Lazy("torch", "torch")

__all__ = ["COMPLETE", "DEAD", "FREE", "Children", "ConstraintRows", "TopChildren", "TrieTensors"]

WIDE = 1024
"""A node with more children is walked by a table of the whole vocabulary."""


class Children(NamedTuple):
    """Allowed tokens of each row: row i has the entries `offsets[i]` up to `offsets[i + 1]`.

    Where a capacity was given, entries after the last row's are -1.
    """

    offsets: torch.Tensor
    tokens: torch.Tensor
    states: torch.Tensor


class TopChildren(NamedTuple):
    """The best continuations, best first: the row of each, its token, its score and the state after it.

    Where fewer than `k` are possible, and nothing may be cut off without looking, parent and token are -1 and the
    score is -inf from there on.
    """

    parents: torch.Tensor
    tokens: torch.Tensor
    scores: torch.Tensor
    states: torch.Tensor


class TrieTensors:
    """The arrays of sets as tensors on a device, and the walk through them for all rows at once.

    A state is one int64: the number of a node (0 and above: inside a value), `COMPLETE - n` (the value that ends at
    node n is complete), `DEAD` (a token was not allowed) or `FREE` (no set). Rows are a tensor of states, so beams are
    reordered by indexing, and a rollback uses the tensor of an earlier step. A state is a node, not the path to it;
    in a tree the node determines the path.

    Nothing that is called at every step looks at values: no token, state or logit comes to the host, so a GPU is not
    waited for and the calls can be captured in a CUDA graph. Where `blocking` is true, which is the default on the CPU,
    a call may look at the number of children, and rows with few do not pay for one with many. Otherwise each pays for
    the widest node up to 1,024 children, and nodes with more for one pass over the rows; `depth` narrows that down.

    Args:
        trie: a Trie, or several; a row walks one of them.
        device: where tokens and logits are: "cpu", "cuda:0", a torch.device.
        vocab: a Vocab or a vocabulary size. Logits beyond it are never legal. None: rows of logits are as wide
            as the vocabulary, and there are no end-of-generation tokens.
        end_tokens: ids that may follow a value. None: those that each set brings, often none.
        eog: ids of end of generation. None: those of a Vocab.
        after: what follows a value: "stop", end of generation alone (where none is known, the end tokens; where there
            are none either, anything), or "free", anything.
        resident: False leaves the arrays where they are, in memory or in a mapped file, for sets that do not fit on the
            device. States then live on the CPU, the tokens of a step are copied there, and only the children of live
            rows are sent to the device.
        blocking: whether calls may wait for the device. None: on the CPU only.
        verify: look at all of a file that was not verified. Without it a damaged file gives wrong children.
        hot_bytes: most memory for tables of nodes with very many children.

    Raises:
        TrieError: there is no set, one is damaged or has weights, or they are too large for node numbers of 31 bits.
        VocabularyError: the vocabulary does not have an id.
        OptionError: an option has an unknown value.
        ImportError: torch is not installed.

    Example:
        >>> import torch
        >>> from tokentrie.integrations.torch import TrieTensors
        >>> walk = TrieTensors(tokentrie.Trie.from_sequences([[1, 2], [1, 3], [4, 2]]), vocab=6)
        >>> states = walk.step(walk.start(2), torch.tensor([1, 4]))
        >>> walk.mask(torch.zeros(2, 6), states)
        tensor([[-inf, -inf, 0., 0., -inf, -inf],
                [-inf, -inf, 0., -inf, -inf, -inf]])
        >>> walk.finished(walk.step(states, torch.tensor([3, 2])))
        tensor([True, True])
    """

    def __init__(
        self,
        trie: tokentrie.Trie | Iterable[tokentrie.Trie],
        device: str | torch.device = "cpu",
        *,
        vocab: tokentrie.Vocab | int | None = None,
        end_tokens: Iterable[int] | None = None,
        eog: Iterable[int] | None = None,
        after: str = "stop",
        resident: bool = True,
        blocking: bool | None = None,
        verify: bool = True,
        hot_bytes: int = 64 << 20,
    ) -> None:
        if after not in ("stop", "free"):
            raise tokentrie.errors.OptionError(f'after must be "stop" or "free", not {after!r}')
        # A device without a number becomes the one that its tensors name, such as cuda:0.
        self._logits_device = torch.empty(0, device=device).device
        self.device = self._logits_device if resident else torch.device("cpu")
        """torch.device: where states are."""
        self.blocking = self.device.type == "cpu" if blocking is None or not resident else blocking
        self.vocab_size = vocab if isinstance(vocab, int) or vocab is None else len(vocab)
        if self.vocab_size is not None and not 0 < self.vocab_size <= 2**31:
            raise tokentrie.errors.VocabularyError(
                f"a vocabulary of {self.vocab_size} tokens: from 1 to 2147483648 are"
            )
        known = vocab.eog if eog is None and isinstance(vocab, tokentrie.Vocab) else eog or []
        self._eog = [int(token) for token in known]
        self._ends = None if end_tokens is None else [int(token) for token in end_tokens]
        self._after, self._hot_bytes, self._verify = after, hot_bytes, verify
        self._check_tokens("end tokens", [*(self._ends or []), *self._eog])
        self._sets, self._free_rows = Sets(self.device), False
        self._walk = Walk(self._sets, blocking=self.blocking)
        tries = as_list(trie)
        if not tries:
            raise tokentrie.errors.TrieError("the list of sets is empty: give at least one Trie")
        for one in tries:
            self.add(one)

    # Sets

    def add(self, trie: tokentrie.Trie, *, after: str | None = None) -> int:
        """Takes one more set. Cost: O(nodes); states of other sets do not change.

        Args:
            trie: the set.
            after: what follows its values; None: what the class was given.

        Returns:
            The number by which `start` knows it.

        Raises:
            TrieError, VocabularyError: as for the class.
        """
        self._check_tokens("a set", [trie.arrays(verify=False).max_token])
        width = self.vocab_size or trie.arrays(verify=False).max_token + 1
        most_hot = max(self._hot_bytes // (4 * width), 1)
        new = describe_set(trie, self._ends, self._eog, after or self._after, WIDE, most_hot, self._verify)
        self._check_tokens("end tokens", new.ends)
        return self._sets.add(new)

    def remove(self, number: int) -> None:
        """Forgets a set; rows that are in it must not be used any more. The number is given out again.

        Args:
            number: what `add` gave; those of the constructor count from 0.

        Raises:
            OptionError: there is no such set.
        """
        self._set(number)
        self._sets.remove(number)

    def begin(self, number: int) -> int:
        """The state at the start of a set, as a number.

        Args:
            number: what `add` gave.

        Returns:
            int.

        Raises:
            OptionError: there is no such set.
        """
        return self._set(number).begin

    @property
    def nbytes(self) -> int:
        """int: bytes of the tensors on the device; on the CPU, one set lies where the Trie has it and counts too."""
        return self._sets.nbytes

    def _set(self, number: int) -> Set:
        if number not in self._sets.all:
            raise tokentrie.errors.OptionError(f"unknown set {number}: the sets have the numbers {[*self._sets.all]}")
        return self._sets.all[number]

    def _check_tokens(self, what: str, tokens: Sequence[int]) -> None:
        worst = max(tokens, default=0)
        if min(tokens, default=0) < 0 or worst >= (self.vocab_size or 2**31):
            raise tokentrie.errors.VocabularyError(
                f"{what}: token id {worst} is outside the vocabulary of {self.vocab_size}"
            )

    # States

    def start(self, rows: int | Sequence[int | None]) -> torch.Tensor:
        """States at the start of a set.

        Args:
            rows: how many, all in the first set; or the number of the set of each row, None for one that is free.

        Returns:
            int64 [rows].

        Raises:
            OptionError: there is no such set.
        """
        if isinstance(rows, int):
            first = min(self._sets.all, default=0)
            rows = [first] * rows
        self._free_rows |= None in rows
        begins = [FREE if number is None else self._set(number).begin for number in rows]
        return torch.tensor(begins, dtype=torch.int64).to(self.device, non_blocking=True)

    def step(self, states: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """The states after one token in each row.

        A token that may not come makes the row `DEAD`, which it stays; nothing is raised, because that would wait for
        the device. `check` does.

        Args:
            states: int64 [rows].
            tokens: integers [rows], where `states` are; from any device where the arrays are not resident.

        Returns:
            int64 [rows].

        Raises:
            TypeError, ValueError: another dtype, shape or device.
        """
        self._check_states(states)
        if tokens.dtype.is_floating_point or tokens.dtype.is_complex or tokens.dtype == torch.bool:
            raise TypeError(f"tokens must be integers, not {tokens.dtype}")
        if tokens.shape != states.shape:
            raise ValueError(f"tokens have shape {list(tokens.shape)}, states {list(states.shape)}")
        tokens = self._home(tokens, "tokens").long()
        known = tokens >= 0 if self.vocab_size is None else (tokens >= 0) & (tokens < self.vocab_size)
        return self._walk.step(self._walk.place(states), tokens, known)

    def finished(self, states: torch.Tensor) -> torch.Tensor:
        """Returns a mask of the rows whose value is complete.

        Args:
            states: int64 [rows].

        Returns:
            bool [rows].
        """
        self._check_states(states)
        return self._walk.place(states).over

    def leaf(self, states: torch.Tensor) -> torch.Tensor:
        """The leaf of each finished row, by its number in its set.

        Args:
            states: int64 [rows].

        Returns:
            int64 [rows], -1 where there is none yet.
        """
        self._check_states(states)
        at = self._walk.place(states)
        nodes, leaves = self._sets.leaves()
        node = at.node.to(torch.int32)
        nth = torch.searchsorted(nodes, node).clamp_(max=len(nodes) - 1)
        return torch.where(at.over & (items(nodes, nth) == node), items(leaves, nth).long(), -1)

    def dead(self, states: torch.Tensor) -> torch.Tensor:
        """Returns a mask of the rows that took a token that was not allowed.

        Args:
            states: int64 [rows].

        Returns:
            bool [rows].
        """
        self._check_states(states)
        return states == DEAD

    def check(self, states: torch.Tensor) -> None:
        """Raises if a row is dead. Waits for the device.

        Args:
            states: int64 [rows].

        Raises:
            TokenNotAllowedError: it names the rows.
        """
        rows = self.dead(states).nonzero().flatten().tolist()
        if rows:
            shown = ", ".join(map(str, rows[:8])) + (" and others" if len(rows) > 8 else "")
            raise tokentrie.TokenNotAllowedError(f"rows {shown} took a token that is not allowed there")

    # What may come

    def mask(self, logits: torch.Tensor, states: torch.Tensor, *, depth: int | None = None) -> torch.Tensor:
        """Rows of logits with -inf for tokens that are not allowed; the others keep their bits. One pass over the rows.

        If every legal logit of a row is -inf or NaN, the lowest legal id has 0. A dead row allows only what may follow
        a value, or nothing. Cost: O(rows · V) to write, and the children.

        Args:
            logits: float32, float16 or bfloat16 [rows, V], on the device; may be wider than the vocabulary.
            states: int64 [rows].
            depth: how many tokens every row that is inside a value has taken, where the caller knows it. Then only
                nodes at that depth count as wide. Ignored in sets that are not trees.

        Returns:
            A tensor like `logits`.

        Raises:
            TypeError, ValueError: another dtype, shape or device.
        """
        self._check_logits(logits, states)
        at = self._walk.place(states)
        width, widest = self._walk.widths(depth)
        masked = torch.full_like(logits, float("-inf"), memory_format=torch.contiguous_format)
        kept = _rows.keep_logits(logits, self._legal(at, width))
        if not self.blocking and widest > width:
            kept = _rows.put_wide(masked, logits, self._walk, at, kept)
        _rows.write_logits(masked, kept)
        if self.may_be_unbound:
            unbound = at.unbound.to(logits.device)
            masked = _rows.put_unbound(masked, logits, unbound, blocking=self.blocking)
            if self.vocab_size is not None:
                masked[:, self.vocab_size :] = float("-inf")
        return masked

    def mask_(self, logits: torch.Tensor, states: torch.Tensor, *, depth: int | None = None) -> torch.Tensor:
        """`mask`, in place.

        Args:
            logits: as for `mask`; rows may be strided.
            states, depth: as for `mask`.

        Returns:
            `logits`.

        Raises:
            TypeError, ValueError: another dtype, shape or device. Nothing was written then.
        """
        self._check_logits(logits, states)
        at = self._walk.place(states)
        width, widest = self._walk.widths(depth)
        if self.may_be_unbound or not (self.blocking or widest <= width):
            return logits.copy_(self.mask(logits, states, depth=depth))
        kept = _rows.keep_logits(logits, self._legal(at, width))
        return _rows.write_logits(logits.fill_(float("-inf")), kept)

    def children(self, states: torch.Tensor, *, capacity: int | None = None) -> Children:
        """Returns the allowed tokens of each row, end tokens included, and where they lead: for kernels of your own.

        Without a capacity the number of entries has to be known to make the tensors: that waits for the device. A row
        that allows every token lists only those that lead to a longer value.

        Args:
            states: int64 [rows].
            capacity: make room for so many entries in any case and wait for nothing. If `offsets[-1]` is larger, some
                are missing.

        Returns:
            Children: offsets int64 [rows + 1]; tokens int64 and states int64, both [entries] or [capacity]. Tokens
            ascend in each row.
        """
        self._check_states(states)
        at = self._walk.place(states)
        entries = self._walk.list_children(at, capacity=capacity)
        closing = self._walk.closing(at, stops=True)
        # By row, then by token; what is not an entry goes to the end.
        row, token, state, valid = entries if closing is None else concatenate(entries, closing)
        counts = torch.zeros_like(states).index_add_(0, row, valid.long())
        offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        size = capacity if capacity is not None else int(offsets[-1])
        order = torch.argsort(torch.where(valid, row * 2**32 + token, NOTHING))[:size]
        token, state = items(torch.where(valid, token, -1), order), items(torch.where(valid, state, DEAD), order)
        return Children(offsets, token, state)

    def top_children(
        self,
        logits: torch.Tensor,
        states: torch.Tensor,
        k: int,
        scores: torch.Tensor | None = None,
        *,
        score: str = "model",
        groups: int = 1,
        depth: int | None = None,
    ) -> TopChildren:
        """The best continuations of all rows: the `k` best of the masked rows, found without a mask.

        Ties go to the lower row, then to the lower token. A finished, dead or free row has none, an open one those that
        go on to a longer value. Impossible tokens (-inf or NaN) are not continuations, unless all of a row's
        are: then the lowest of its tokens stands for them, with -inf.

        Args:
            logits: float32, float16 or bfloat16 [rows, V], on the device.
            states: int64 [rows].
            k: how many.
            scores: floats [rows], to which those of the continuations are added; -inf takes a row out.
            score: "model": log-probability under the whole vocabulary. "renormalised": among what may come.
            groups: in so many equal groups of neighbouring rows, `k` for each, group after group: prompts with beams.
            depth: as for `mask`.

        Returns:
            TopChildren of k · groups entries. With one group and `blocking`, without filler.

        Raises:
            OptionError: `score` is another, `k` or `groups` is not positive, or the rows are no such groups.
            TypeError, ValueError: another dtype, shape or device.
        """
        self._check_logits(logits, states)
        if score not in ("model", "renormalised"):
            raise tokentrie.errors.OptionError(f'score must be "model" or "renormalised", not {score!r}')
        rows = len(states)
        if k < 1 or groups < 1 or rows % groups:
            raise tokentrie.errors.OptionError(
                f"the {k} best in {groups} groups of {rows} rows: groups must be equally large"
            )
        if scores is not None and scores.shape != states.shape:
            raise ValueError(f"scores have shape {list(scores.shape)}, states {list(states.shape)}")
        at = self._walk.place(states)
        children = self._walk.list_children(at, width=None if self.blocking else self._walk.widths(depth)[1])
        closing = self._walk.closing(at, stops=False)
        entries = (children if closing is None else concatenate(children, closing)).to(logits.device)
        exact = torch.float32 if logits.device.type == "mps" else torch.float64
        base = torch.zeros(rows, dtype=exact, device=logits.device) if scores is None else scores.to(exact)
        row, token = entries.row, torch.where(entries.valid, entries.token, 0)
        valid = entries.valid & items(base > float("-inf"), row)
        logit = _rows.logits_of(logits, row, token).to(exact)
        usable = valid & (logit > float("-inf"))
        logit = torch.where(usable, logit, float("-inf"))
        whole, total = logits[:, : self.vocab_size], _rows.log_sums_of(row, logit, rows)
        if score == "model" or self._sets.opens:
            # At an open leaf every token is allowed, so the probability is that over the whole vocabulary.
            of_all = _rows.log_sums(whole, blocking=self.blocking).to(exact)
            total = of_all if score == "model" else torch.where(at.unbound.to(of_all.device), of_all, total)
        certain = torch.where(logit == float("inf"), 0.0, float("-inf"))
        whole_of = items(total, row)
        adds = torch.where(whole_of == float("inf"), certain, (logit - whole_of).clamp(max=0))
        best = torch.where(usable, items(base, row) + adds, float("-inf"))
        # A row without any usable token is represented by its lowest.
        some = torch.zeros_like(base, dtype=torch.int64).index_add_(0, row, usable.long())
        lowest = entries._replace(valid=valid).lowest(rows)
        starved = valid & items(some == 0, row) & (token == items(lowest, row))
        offered = Entries(row, token, entries.state, (usable & (best > float("-inf"))) | starved)
        found = _rows.best_entries(offered, best, k, rows // groups, groups, blocking=self.blocking)
        parents, tokens, scores, states = found
        return TopChildren(parents, tokens, scores, states.to(self.device))

    def _legal(self, at: Place, width: int) -> Entries:
        """Returns the allowed tokens of rows at nodes without very many children; of all rows if waiting is allowed."""
        listed = self._walk.list_children(at, width=None if self.blocking else width)
        closing = self._walk.closing(at, stops=True)
        return (listed if closing is None else concatenate(listed, closing)).to(self._logits_device)

    @property
    def may_be_unbound(self) -> bool:
        """bool: True if the sets can put a row where every token is allowed; rows are not looked at."""
        return self._sets.frees or self._free_rows

    def _home(self, tensor: torch.Tensor, what: str) -> torch.Tensor:
        if tensor.device == self.device:
            return tensor
        if self.device == self._logits_device:
            raise ValueError(f"{what} are on {tensor.device}, the sets on {self.device}")
        return tensor.to(self.device)

    def _check_states(self, states: torch.Tensor) -> None:
        if states.dtype != torch.int64:
            raise TypeError(f"states must be int64, not {states.dtype}")
        if states.ndim != 1:
            raise ValueError(f"states must have shape [rows], not {list(states.shape)}")
        if states.device != self.device:
            raise ValueError(f"states are on {states.device}, the sets on {self.device}")

    def _check_logits(self, logits: torch.Tensor, states: torch.Tensor) -> None:
        self._check_states(states)
        if logits.dtype not in (torch.float32, torch.float16, torch.bfloat16):
            raise TypeError(f"logits must be float32, float16 or bfloat16, not {logits.dtype}")
        if logits.ndim != 2 or len(logits) != len(states):
            raise ValueError(f"logits must have shape [{len(states)}, V], one row a state, not {list(logits.shape)}")
        if logits.shape[1] > 1 and logits.stride(1) != 1:
            raise ValueError(f"logits must be contiguous along the last axis: strides {logits.stride()}")
        need = self.vocab_size or self._sets.max_token + 1
        if logits.shape[1] < need:
            raise ValueError(f"rows of {logits.shape[1]} logits: at least {need} are needed")
        if logits.device != self._logits_device:
            raise ValueError(f"logits are on {logits.device}, this was made for {self._logits_device}")
