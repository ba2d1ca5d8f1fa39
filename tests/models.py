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
def recurrent_path() -> Path:
    """A Mamba model of two layers with random float32 weights: it has a state in place of a cache."""
    width, inner, states, rank, kernel, size = 32, 64, 8, 4, 4, 0
    reader, random = gguf.GGUFReader(TINY), np.random.default_rng(7)
    writer = gguf.GGUFWriter(path := file("recurrent"), "mamba")
    for field in reader.fields.values():
        if field.name.startswith("tokenizer."):
            inner_kind = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=inner_kind)
            size = len(field.data) if field.name == "tokenizer.ggml.tokens" else size
    writer.add_context_length(1024)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_block_count(2)
    writer.add_ssm_conv_kernel(kernel)
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(states)
    writer.add_ssm_time_step_rank(rank)
    writer.add_layer_norm_rms_eps(1e-5)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, random.standard_normal(shape, dtype=np.float32) / np.float32(np.sqrt(shape[-1])))

    add("token_embd.weight", size, width)
    add("output.weight", size, width)
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    for block in ("blk.0", "blk.1"):
        writer.add_tensor(f"{block}.attn_norm.weight", np.ones(width, np.float32))
        add(f"{block}.ssm_in.weight", 2 * inner, width)
        add(f"{block}.ssm_conv1d.weight", inner, kernel)
        add(f"{block}.ssm_conv1d.bias", inner)
        add(f"{block}.ssm_x.weight", rank + 2 * states, inner)
        add(f"{block}.ssm_dt.weight", inner, rank)
        add(f"{block}.ssm_dt.bias", inner)
        writer.add_tensor(f"{block}.ssm_a", -np.tile(np.arange(1, states + 1, dtype=np.float32), (inner, 1)))
        writer.add_tensor(f"{block}.ssm_d", np.ones(inner, np.float32))
        add(f"{block}.ssm_out.weight", width, inner)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
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
