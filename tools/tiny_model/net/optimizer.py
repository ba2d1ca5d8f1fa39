"""Muon: momentum whose update is made orthogonal, for the matrices inside the blocks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from net.model import TinyLlama


def split_parameters(model: TinyLlama) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The matrices of the blocks, and everything else (embedding and norms)."""
    matrices = [p for n, p in model.named_parameters() if n.startswith("blk.") and p.ndim == 2]
    chosen = set(map(id, matrices))
    return matrices, [p for p in model.parameters() if id(p) not in chosen]


def orthogonalised(update: Tensor) -> Tensor:
    """Newton-Schulz iteration towards the nearest orthogonal matrix, for a stack of matrices."""
    x = update / (update.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    for _ in range(5):
        square = x @ x.mT
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x.mT if tall else x


class Muon:
    """Nesterov momentum, orthogonalised shape by shape so that equal matrices share one batched product."""

    def __init__(self, parameters: list[nn.Parameter], learning_rate: float, momentum: float = 0.95) -> None:
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.scale = 1.0
        groups: dict[torch.Size, list[nn.Parameter]] = {}
        for parameter in parameters:
            groups.setdefault(parameter.shape, []).append(parameter)
        self.groups = list(groups.values())
        self.buffers = [torch.zeros(len(g), *g[0].shape) for g in self.groups]

    @torch.no_grad()
    def step(self) -> None:
        """One update from the gradients."""
        for group, buffer in zip(self.groups, self.buffers, strict=True):
            gradient = torch.stack([p.grad for p in group if p.grad is not None])
            buffer.mul_(self.momentum).add_(gradient, alpha=1 - self.momentum)
            update = orthogonalised(gradient.lerp(buffer, self.momentum).bfloat16()).float()
            rate = self.learning_rate * self.scale * max(1.0, group[0].shape[0] / group[0].shape[1]) ** 0.5
            for parameter, change in zip(group, update, strict=True):
                parameter.add_(change, alpha=-rate)
