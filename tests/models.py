"""Models that several test files share: each is written once a run, into a folder that goes away with it."""

from __future__ import annotations

import sys
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path

import gguf
import numpy as np
from support import vocabulary_files
from tokentrie import Model

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from random_model import write_random_model

TINY = Path(str(files("tokentrie") / "models" / "tiny.gguf"))
FAMILIES = ["gpt-2", "llama-spm", "phi-3", "qwen2"]
"""Vocabularies of different tokenizers: those of them that TOKENTRIE_VOCAB_DIR has are tested with."""

VOCABULARIES = {"tiny": TINY} | {
    path.stem.removeprefix("ggml-vocab-"): path
    for path in vocabulary_files()
    if path.stem.removeprefix("ggml-vocab-") in FAMILIES
}
_FOLDER = tempfile.TemporaryDirectory(prefix="tokentrie-tests-")


def file(name: str) -> Path:
    """Where a model of this name is written."""
    return Path(_FOLDER.name) / f"{name}.gguf"


@cache
def precise_tiny() -> Path:
    """The tiny model with float32 weights."""
    return copy_tiny("tiny-f32", np.float32)


@cache
def random_path(family: str) -> Path:
    """Random float32 weights under the vocabulary of this name."""
    write_random_model(VOCABULARIES[family], path := file(f"random-{family}"), width=32, layers=1, f32=True)
    return path


@cache
def precise_model(name: str) -> Model:
    """`tiny`, or random weights under a vocabulary: log-probabilities are good to 1e-5."""
    path = precise_tiny() if name == "tiny" else random_path(name.removeprefix("random "))
    return Model(path, n_ctx=1024, n_threads=1, precise=True)


PRECISE = ["tiny", *(f"random {family}" for family in VOCABULARIES)]


def copy_tiny(name: str, kind: type = np.float16, without: str = "") -> Path:
    """The tiny model with matrices of this type, and without one of its fields."""
    reader = gguf.GGUFReader(TINY)
    writer = gguf.GGUFWriter(path := file(name), "llama")
    if kind is np.float32:
        writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name not in {
            "general.architecture",
            "general.file_type",
            without,
        }:
            inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=inner)
    for tensor in reader.tensors:
        values = tensor.data.astype(kind) if tensor.data.ndim > 1 else tensor.data
        writer.add_tensor(tensor.name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
