"""Models that several test files share: each is written once a run, into a folder that goes away with it."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Mapping
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
FAMILIES = {"gpt-2", "llama-spm", "phi-3", "qwen2"}
"""Tokenizers of different kinds: those of them that TOKENTRIE_VOCAB_DIR holds are tested with."""

FOUND = {path.stem.removeprefix("ggml-vocab-"): path for path in vocabulary_files()}
VOCABULARIES = {"tiny": TINY} | {name: path for name, path in FOUND.items() if name in FAMILIES}
PRECISE = ["trained", *VOCABULARIES]
"""Names for `precise_model`."""

_FOLDER = Path(tempfile.mkdtemp(prefix="tokentrie-tests-"))
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)


def file(name: str) -> Path:
    """Where a model of this name is written."""
    return _FOLDER / f"{name}.gguf"


@cache
def precise_path(name: str) -> Path:
    """The tiny model if `trained`, else random weights under the vocabulary of this name; all weights are float32."""
    return copy_tiny(name, f32=True) if name == "trained" else random_path(name)


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
    """That model in one context for all tests: log-probabilities hardly depend on how tokens are batched."""
    return Model(precise_path(name), n_ctx=1024, n_threads=1, precise=True)


def copy_tiny(name: str, *, f32: bool = False, changes: Mapping[str, str | float | None] | None = None) -> Path:
    """The tiny model with other weights, or other fields of text or numbers (None leaves one out)."""
    reader, path = gguf.GGUFReader(TINY), file(name)
    writer = gguf.GGUFWriter(path, "llama")
    changes = {"general.architecture": None, **(changes or {})}
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name not in changes:
            item = field.types[-1] if len(field.types) > 1 else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=item)
    for key, value in changes.items():
        if isinstance(value, str):
            writer.add_string(key, value)
        elif value is not None:
            writer.add_float32(key, value)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data.astype(np.float32) if f32 else tensor.data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
