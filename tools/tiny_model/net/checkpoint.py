"""Checkpoints: the weights with their shape, and the tokenizer beside them."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import torch
from tokenizers import Tokenizer

from net.model import Shape, TinyLlama


def save(folder: Path, model: TinyLlama, tokenizer: Tokenizer) -> None:
    """Write `model.pt` and `tokenizer.json`, replacing older ones in one move."""
    tokenizer.save(str(folder / "tokenizer.json"))
    partial = folder / "model.pt.partial"
    torch.save({"shape": asdict(model.shape), "weights": model.state_dict()}, partial)
    os.replace(partial, folder / "model.pt")


def load(folder: Path) -> tuple[TinyLlama, Tokenizer]:
    """Read what `save` wrote."""
    data = torch.load(folder / "model.pt", weights_only=True)
    model = TinyLlama(Shape(**data["shape"]))
    model.load_state_dict(data["weights"])
    return model.eval(), Tokenizer.from_file(str(folder / "tokenizer.json"))
