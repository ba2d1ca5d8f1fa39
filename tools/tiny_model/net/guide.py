"""A teacher for attention: where two heads have to look while an answer is copied out of a list or a question.

The loss on answers alone says nothing until a whole chain of heads works: gather the request, gather each
description, match them, copy the name. Where an answer comes from is known when a document is drawn, so the matching
heads are told: their softmax gets its own cross-entropy against the source token. The rest of the chain follows by
gradient. The weights are ordinary llama weights, and nothing of this is left at inference.

For the keys of a call two heads of the layer after are told: one looks at the key in the list, the other at where
the request gives its value. Where a name stands before what it means, the end of its line is what matches, and two
heads of the layer before are told to look from there at the name.
"""

from __future__ import annotations

import torch
import torch.nn.functional as functional
from torch import Tensor

from net.packing import Batch


def guide_loss(scores: list[Tensor], batch: Batch) -> tuple[Tensor, list[Tensor]]:
    """Cross-entropy of the guided heads, and for each guided layer the share of places where they look rightly."""
    losses, found = [], []
    for layer, given in enumerate(scores):
        row, _, query, first, second = batch.guides[batch.guides[:, 1] == layer].unbind(1)
        if not len(row):
            continue
        chosen = given[row, :, query].float()
        chosen = chosen.masked_fill(~batch.mask[row, :, query], float("-inf"))
        keys = torch.stack((first, second), 1)
        losses.append(functional.cross_entropy(chosen.flatten(0, 1), keys.flatten()))
        found.append((chosen.argmax(-1) == keys).float().mean())
    return torch.stack(losses).sum(), found
