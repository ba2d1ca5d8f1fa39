"""Opening models, with a sign of life while it takes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import tokentrie
from tokentrie import hub
from tokentrie.cli import console


@dataclass(frozen=True)
class OpenedModel:
    """A model and how long it took to load."""

    model: tokentrie.Model
    seconds: float

    def describe(self) -> dict[str, Any]:
        """Returns the facts about the model as JSON values."""
        return {
            "path": str(self.model.path),
            "bytes": self.model.path.stat().st_size,
            "vocabulary": len(self.model.vocab),
            "n_ctx": self.model.n_ctx,
            "n_threads": self.model.n_threads,
            "load_seconds": self.seconds,
        }

    def line(self) -> str:
        """Returns the facts about the model as one line of text."""
        path, n_threads = self.model.path, self.model.n_threads
        return (
            f"{console.printable(path.name)}: {path.stat().st_size / 1e6:.1f} MB, "
            f"{len(self.model.vocab):,} tokens in the vocabulary, "
            f"{console.count(n_threads, 'thread', 'threads')}, loaded in {console.milliseconds(self.seconds)}"
        )


def packaged_model() -> Path:
    """The tiny model inside the package."""
    return Path(str(files("tokentrie") / "models" / "tiny.gguf"))


def locate(path: Path | None) -> Path:
    """Returns the file of a model: that of a name such as `hf:OWNER/MODEL`, and of the tiny model if none is given."""
    if path is None:
        return packaged_model()
    return hub.model_file(str(path)) if hub.is_name(str(path)) else path


def open_vocab(path: Path | None) -> tokentrie.Vocab:
    """The vocabulary alone; of the tiny model if no path is given."""
    path = locate(path)
    with console.working(f"reading the vocabulary of {path.name}"):
        from_json = path.suffix.lower() == ".json"
        return tokentrie.Vocab.from_tokenizer(path) if from_json else tokentrie.Vocab.from_gguf(path)


def open_model(
    path: Path | None,
    n_ctx: int | None = None,
    n_threads: int | None = None,
    n_gpu_layers: int = 0,
    draft: str | None = None,
) -> OpenedModel:
    """A model; the tiny one if no path is given."""
    path = locate(path)
    with console.working(f"loading {path.name}"), console.collected_warnings() as warnings:
        started = time.perf_counter()
        model = tokentrie.Model(path, n_ctx=n_ctx, n_gpu_layers=n_gpu_layers, n_threads=n_threads, draft=draft)
        opened = OpenedModel(model, time.perf_counter() - started)
    for warning in warnings:
        console.say(f"warning: {warning.replace('n_gpu_layers', '--gpu-layers')}")
    return opened


def token_text(vocab: tokentrie.Vocab, token: int) -> str:
    """A token for JSON: bytes that are no UTF-8 become U+FFFD."""
    return vocab[token].decode("utf-8", "replace")
