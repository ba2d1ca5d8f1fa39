"""The llama architecture in plain PyTorch, with exactly the operations that llama.cpp runs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

GUIDED_LAYERS, GUIDED_HEADS = (2, 3, 1), 2  # the heads that training tells where to look, by kind of guide


@dataclass(frozen=True)
class Shape:
    """Hyper-parameters; all of them end up in the GGUF header."""

    vocabulary: int
    width: int = 160
    layers: int = 5
    heads: int = 5
    feed_forward: int = 416
    rope_base: float = 100_000.0
    epsilon: float = 1e-5
    context: int = 8192


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary embedding on interleaved pairs, the layout of llama.cpp: nothing to permute at export."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1).flatten(-2)


class Block(nn.Module):
    """Attention and gated feed-forward, each behind an RMS norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        d, f = shape.width, shape.feed_forward
        self.heads = shape.heads
        self.attn_norm = nn.RMSNorm(d, eps=shape.epsilon)
        self.attn_q = nn.Linear(d, d, bias=False)
        self.attn_k = nn.Linear(d, d, bias=False)
        self.attn_v = nn.Linear(d, d, bias=False)
        self.attn_output = nn.Linear(d, d, bias=False)
        self.ffn_norm = nn.RMSNorm(d, eps=shape.epsilon)
        self.ffn_gate = nn.Linear(d, f, bias=False)
        self.ffn_up = nn.Linear(d, f, bias=False)
        self.ffn_down = nn.Linear(f, d, bias=False)

    def scores(self, x: Tensor, cosine: Tensor, sine: Tensor, heads: int) -> Tensor:
        """Attention scores before the softmax of the first `heads` heads: [rows, heads, length, length]."""
        rows, length, width = x.shape
        size = width // self.heads
        h = self.attn_norm(x)
        q, k = (
            rotate(
                functional.linear(h, m.weight[: heads * size]).view(rows, length, heads, size).transpose(1, 2),
                cosine,
                sine,
            )
            for m in (self.attn_q, self.attn_k)
        )
        return q @ k.mT * size**-0.5

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor, mask: Tensor) -> Tensor:
        rows, length, width = x.shape
        h = self.attn_norm(x)
        q, k, v = (
            m(h).view(rows, length, self.heads, -1).transpose(1, 2) for m in (self.attn_q, self.attn_k, self.attn_v)
        )
        q, k = rotate(q, cosine, sine), rotate(k, cosine, sine)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.attn_output(mixed.transpose(1, 2).reshape(rows, length, width))
        h = self.ffn_norm(x)
        return x + self.ffn_down(functional.silu(self.ffn_gate(h)) * self.ffn_up(h))


class TinyLlama(nn.Module):
    """Token ids, positions and a visibility mask in; hidden states out. The embedding is also the head."""

    frequency: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Embedding(shape.vocabulary, shape.width)
        self.blk = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.output_norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
        half = shape.width // shape.heads // 2
        self.register_buffer("frequency", shape.rope_base ** (-torch.arange(half) / half), persistent=False)
        self.apply(self._initialise)

    @staticmethod
    def _initialise(module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=module.in_features**-0.5 * 0.6)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.05)

    def forward(self, tokens: Tensor, positions: Tensor, mask: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Final hidden states [rows, length, width], and the scores of the guided heads (see `guide.py`).

        `mask` is True where a token may look.
        """
        x = self.token_embd(tokens)
        angle = positions[:, None, :, None].float() * self.frequency
        cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        scores = {}
        for number, block in enumerate(self.blk):
            if number in GUIDED_LAYERS:
                scores[number] = block.scores(x, cosine, sine, GUIDED_HEADS)
            x = block(x, cosine, sine, mask)
        return self.output_norm(x), [scores[number] for number in GUIDED_LAYERS]

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores over the vocabulary for the given hidden states."""
        return functional.linear(hidden, self.token_embd.weight)
