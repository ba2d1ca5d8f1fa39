"""Begin with the weights of a GGUF: the tokens and layers that it lacks are added so that nothing changes at first."""

from __future__ import annotations

from pathlib import Path

import gguf
import torch
from tokenizers import Tokenizer

from drawn.chat import CALL_CLOSE, CALL_OPEN, SPECIALS, THINK_CLOSE, THINK_OPEN
from net import tokenizer as bpe
from net.model import Block, Shape, TinyLlama

NEW_LAYER = 3  # the second of the guided layers (see `model.py`)
LIKE = {THINK_OPEN: CALL_OPEN, THINK_CLOSE: CALL_CLOSE}


def from_gguf(path: Path) -> tuple[TinyLlama, Tokenizer]:
    """The model and its tokenizer, with every special token and layer of today's shape."""
    reader = gguf.GGUFReader(path)
    tokens = list(reader.fields["tokenizer.ggml.tokens"].contents())
    merges = [tuple(m.split(" ")) for m in reader.fields["tokenizer.ggml.merges"].contents()]
    held = {t.name: torch.from_numpy(t.data.copy()).float() for t in reader.tensors}
    added = [s for s in SPECIALS if s not in tokens]
    tokenizer = bpe.assemble([*tokens, *added], merges)
    model = TinyLlama(Shape(len(tokens) + len(added)))
    layers = 1 + max(int(name.split(".")[1]) for name in held if name.startswith("blk."))
    if layers == model.shape.layers - 1:
        held = {_shifted(name): weight for name, weight in held.items()}
        block = model.blk[NEW_LAYER]
        assert isinstance(block, Block)
        torch.nn.init.zeros_(block.attn_output.weight)
        torch.nn.init.zeros_(block.ffn_down.weight)
        held |= {f"blk.{NEW_LAYER}.{name}": weight for name, weight in block.state_dict().items()}
    like = [held["token_embd.weight"][tokens.index(LIKE[a])] + 0.02 * torch.randn(model.shape.width) for a in added]
    held["token_embd.weight"] = torch.cat([held["token_embd.weight"], *(row[None] for row in like)])
    model.load_state_dict(held)
    return model, tokenizer


def _shifted(name: str) -> str:
    """The name of a tensor once there is a layer more."""
    head, *rest = name.split(".")
    if head != "blk" or int(rest[0]) < NEW_LAYER:
        return name
    return ".".join([head, str(int(rest[0]) + 1), *rest[1:]])
