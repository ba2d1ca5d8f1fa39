"""`Batch` over rows of logits on another device: only lists of legal tokens cross the bus.

`Batch.apply`, `select` and `top_children` come here by themselves when they get a tensor that is not on the CPU. The
legal token ids of all rows are sent to the device; there their logits are gathered, or put back over -inf. `select` and
`top_children` bring those few logits back. No row of logits is ever copied to the host. `TrieTensors` goes further: it
keeps states on the device, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import tokentrie
from tokentrie.integrations._shared import rows as _rows
from tokentrie.integrations._shared.lazy import Lazy
from tokentrie.integrations._shared.walk import DEAD, Entries

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]
else:
    torch = Lazy("torch", "torch")

__all__ = ["apply", "select", "top_children"]


def _check_logits(rows: tokentrie.Batch, logits: torch.Tensor) -> None:
    if logits.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"logits must have dtype float32, float16 or bfloat16, not {logits.dtype}")
    if logits.ndim != 2 or (logits.shape[1] > 1 and logits.stride(1) != 1):
        raise ValueError(f"logits must be [rows, V], the last axis contiguous, not {list(logits.shape)}")
    if len(logits) != len(rows):
        raise tokentrie.errors.OptionError(f"{len(logits)} rows of logits for a batch of {len(rows)} rows")
    if logits.shape[1] < rows.n_vocab:
        raise ValueError(f"rows of logits are {logits.shape[1]} entries wide: at least {rows.n_vocab} are needed")


def _legal(rows: tokentrie.Batch, device: torch.device, *, bound: bool) -> Entries:
    """The legal tokens of all rows, as they are listed; `bound`: only of rows that are limited to them."""
    offsets, tokens, _ = rows.children()
    row = np.repeat(np.arange(len(rows)), np.diff(offsets))
    if bound:
        held = ~rows.unbound[row]
        row, tokens = row[held], tokens[held]
    # One transfer.
    both = torch.from_numpy(np.stack([row, tokens.astype(np.int64)])).to(device, non_blocking=True)
    return Entries(both[0], both[1], torch.full_like(both[0], DEAD), torch.ones_like(both[0], dtype=torch.bool))


def apply(rows: tokentrie.Batch, logits: torch.Tensor) -> None:
    """`Batch.apply` on the logits' own device. Waits for nothing; starved rows are treated, but not counted.

    Args:
        rows: the batch.
        logits: float32, float16 or bfloat16 [rows, V] or wider; written in place.

    Raises:
        TypeError, ValueError, OptionError: as for `Batch.apply`. Nothing was written.

    Warns:
        TokenTrieWarning: sets have weights, which are not added here.

    Example:
        >>> import torch
        >>> from tokentrie.integrations.device import apply
        >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1], [2]]), rows=1, vocab=4)
        >>> logits = torch.arange(4.0)[None]
        >>> apply(rows, logits)  # on the CPU here; rows.apply(logits) does so for other devices
        >>> logits
        tensor([[-inf, 1., 2., -inf]])
    """
    _check_logits(rows, logits)
    rows._warn_of_weights()
    kept = _rows.keep_logits(logits, _legal(rows, logits.device, bound=True))
    held = torch.from_numpy(np.flatnonzero(~rows.unbound)).to(logits.device, non_blocking=True)
    logits.index_fill_(0, held, float("-inf"))
    logits[:, rows.n_vocab :] = float("-inf")
    _rows.write_logits(logits, kept)


def _legal_logits(rows: tokentrie.Batch, logits: torch.Tensor) -> torch.Tensor:
    legal = _legal(rows, logits.device, bound=False)
    return _rows.logits_of(logits, legal.row, legal.token).float()


def select(rows: tokentrie.Batch, logits: torch.Tensor) -> NDArray[np.int32]:
    """`Batch.select` of rows on a device: the legal logits come to the host, no row does.

    Args:
        rows: the batch.
        logits: as for `apply`.

    Returns:
        int32 [rows], on the host, where the batch is.

    Raises:
        TypeError, ValueError: as for `Batch.select`.
        OptionError: another number of rows, or anything may come in a row that is to be drawn from: a draw from a whole
            row is the device's own business.

    Example:
        >>> import torch
        >>> from tokentrie.integrations.device import select
        >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1], [2]]), rows=1, vocab=4)
        >>> select(rows, torch.arange(4.0)[None])
        array([2], dtype=int32)
    """
    _check_logits(rows, logits)
    unbound = np.flatnonzero(rows.unbound)
    if len(unbound) and rows.mode == "sampled":
        raise tokentrie.errors.OptionError(
            f"row {unbound[0]}: every token is allowed there: draw from it on {logits.device}"
        )
    rows._warn_of_weights()
    chosen = rows._select_listed(_legal_logits(rows, logits).cpu().numpy())
    if len(unbound):
        whole = logits[torch.from_numpy(unbound).to(logits.device), : rows.n_vocab]
        clean = torch.where(whole.isnan(), float("-inf"), whole)
        # The first of the highest, which argmax does not promise.
        best = clean == clean.amax(dim=1, keepdim=True)
        chosen[unbound] = best.to(torch.uint8).argmax(dim=1).cpu().numpy()
    return chosen


def top_children(
    rows: tokentrie.Batch,
    logits: torch.Tensor,
    k: int,
    scores: Any = None,
    score: str = "model",
    groups: Any = None,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """`Batch.top_children` of rows on a device: scores of legal tokens are computed there and come to the host.

    Args:
        rows: the batch.
        logits: as for `apply`.
        k, scores, score, groups: as for `Batch.top_children`.

    Returns:
        (parents, tokens, scores), on the host. Scores are rounded to single precision before those of rows are added.

    Raises:
        TypeError, ValueError, OptionError: as for `Batch.top_children`.

    Example:
        >>> import torch
        >>> from tokentrie.integrations.device import top_children
        >>> rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1], [2], [3]]), rows=1, vocab=4)
        >>> top_children(rows, torch.arange(4.0)[None], 2, score="given")[1]
        array([3, 2], dtype=int32)
    """
    _check_logits(rows, logits)
    rows._warn_of_weights()
    legal = _legal(rows, logits.device, bound=False)
    adds = _rows.logits_of(logits, legal.row, legal.token).float()
    adds = torch.where(adds.isnan(), float("-inf"), adds)
    if score != "given":
        exact = torch.float32 if logits.device.type == "mps" else torch.float64
        whole = logits[:, : rows.n_vocab]
        if score == "model":
            total = _rows.log_sums(whole, blocking=False).to(exact)
        else:
            total = _rows.log_sums_of(legal.row, adds.to(exact), len(rows))
            unbound = torch.from_numpy(np.flatnonzero(rows.unbound)).to(logits.device)
            # There everything competes.
            total[unbound] = _rows.log_sums(whole[unbound], blocking=False).to(exact)
        of_row = total[legal.row]
        certain = torch.where(adds == float("inf"), 0.0, float("-inf")).to(exact)
        adds = torch.where(of_row == float("inf"), certain, (adds.to(exact) - of_row).clamp(max=0)).float()
        adds = torch.where(adds.isnan(), float("-inf"), adds)
    return rows._top_listed(adds.cpu().numpy(), k, scores, groups)
