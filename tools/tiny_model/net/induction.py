"""A start that can already copy: a previous-token head and an induction head are planted before training.

From random weights, copying out of a list takes millions of tokens to appear, and nothing else can be learned
before it. The circuit is known, so it is written down: a head of the first layer looks one token back and notes
what stood there; a head of the second looks for the token whose note equals the present token, and copies it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from net.model import Block, TinyLlama

CONTENT = 16  # dimensions that carry "which token"; they use the slow rotations, which distance hardly turns


def _directions(width: int, count: int) -> Tensor:
    """Orthonormal columns which leave the constant first dimension alone."""
    columns = torch.linalg.qr(torch.randn(width - 1, count))[0]
    return torch.cat([torch.zeros(1, count), columns])


@torch.no_grad()
def plant(model: TinyLlama) -> None:
    """Write the two heads; everything else in the residual stream starts at zero."""
    shape = model.shape
    size = shape.width // shape.heads
    blocks = [b for b in model.blk if isinstance(b, Block)]
    for block in blocks:
        block.attn_output.weight.zero_()
        block.ffn_down.weight.zero_()
    for block in blocks[1:]:
        block.attn_k.weight.copy_(block.attn_q.weight)
    model.token_embd.weight[:, 0] = 0.15  # the same for every token: a constant that position heads can use
    first, second = blocks[0], blocks[1]
    seen, noted = _directions(shape.width, CONTENT), _directions(shape.width, CONTENT)

    # Look one token back: constant queries and keys whose phases agree at distance one, on the fast rotations.
    for matrix in (first.attn_q.weight, first.attn_k.weight):
        matrix[:size] = 0.0
    angle = model.frequency[:4]
    first.attn_q.weight[0:8:2, 0] = 4.0
    first.attn_k.weight[0:8:2, 0] = 4.0 * angle.cos()
    first.attn_k.weight[1:8:2, 0] = 4.0 * angle.sin()
    first.attn_v.weight[:CONTENT] = seen.T
    first.attn_output.weight[:, :CONTENT] = 0.06 * noted

    # Look for the token that noted the present one, and copy it.
    for matrix in (second.attn_q.weight, second.attn_k.weight):
        matrix[:size] = 0.0
    second.attn_q.weight[size - CONTENT : size] = 3.0 * seen.T
    second.attn_k.weight[size - CONTENT : size] = 3.0 * noted.T
    copied = _directions(shape.width, size)
    second.attn_v.weight[:size] = copied.T
    second.attn_output.weight[:, :size] = 0.5 * copied
