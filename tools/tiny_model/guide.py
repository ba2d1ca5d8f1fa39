"""A teacher for attention: where two heads have to look while an answer is copied out of a list or a question.

The loss on answers alone says nothing until a whole chain of heads works: gather the request, gather each
description, match them, copy the name. Where an answer comes from is known when a document is drawn, so the matching
heads are told: their softmax gets its own cross-entropy against the source token. The rest of the chain follows by
gradient. The weights are ordinary llama weights, and nothing of this is left at inference.
"""

from __future__ import annotations

import torch.nn.functional as functional
from torch import Tensor

from packing import Batch


def guide_loss(scores: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy of the guided heads, and the share of places where the first of them looks rightly."""
    row, query, key = batch.guides.unbind(1)
    chosen = scores[row, :, query].float()
    visible = batch.mask[row, :, query]
    chosen = chosen.masked_fill(~visible, float("-inf"))
    heads = chosen.shape[1]
    loss = functional.cross_entropy(chosen.flatten(0, 1), key.repeat_interleave(heads))
    return loss, (chosen[:, 0].argmax(-1) == key).float().mean()
