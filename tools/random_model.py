"""Writes a tiny llama-architecture GGUF with random weights and the real vocabulary of another GGUF.

    python tools/random_model.py ggml-vocab-qwen2.gguf random-qwen2.gguf --width 64 --layers 2

It says nothing sensible, but it loads in llama.cpp, decodes in about a millisecond and has the tokenizer, the special
tokens and the vocabulary size of the original: what tests and benchmarks of samplers need. The same arguments give the
same file. Vocabulary-only files will do. Needs the package `gguf`.
"""

from __future__ import annotations

import argparse
import mmap
import os
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gguf import GGUFValueType, GGUFWriter, LlamaFileType

HEAD = 32
"""Width of one attention head."""

SCALARS = dict(zip(map(GGUFValueType, [0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12]), "BbHhIif?Qqd", strict=True))
"""The letter under which `struct` knows each type of number."""


class Field(NamedTuple):
    """One entry of a GGUF header."""

    name: str
    value: Any
    kind: GGUFValueType
    item: GGUFValueType | None = None


class RandomModelError(Exception):
    """An argument or a vocabulary file that cannot be used."""


def write_random_model(
    vocabulary: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    width: int = 64,
    layers: int = 2,
    context: int = 4096,
    seed: int = 0,
    f32: bool = False,
) -> None:
    """Writes `output`, which appears only when complete, with the tokenizer of `vocabulary`; weights are f16 or f32."""
    if width < HEAD or width % HEAD:
        raise RandomModelError(f"width must be a positive multiple of {HEAD}, not {width}")
    if layers < 1 or context < 1 or seed < 0:
        raise RandomModelError(f"layers and context must be 1 or more, seed 0 or more: {layers}, {context}, {seed}")
    fields, size = _tokenizer_fields(Path(vocabulary))
    output = Path(output)
    if not output.parent.is_dir():
        raise RandomModelError(f"no such folder: {output.parent}")
    handle, temporary = tempfile.mkstemp(prefix=f".{output.name}.", dir=output.parent)
    os.close(handle)
    try:
        writer = GGUFWriter(temporary, "llama")
        _add_header(writer, Path(vocabulary).stem, size, width, layers, context, f32)
        for field in fields:
            writer.add_key_value(field.name, field.value, field.kind, sub_type=field.item)
        for name, values in _tensors(np.random.default_rng(seed), size, width, layers, f32):
            writer.add_tensor(name, values)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        os.chmod(temporary, 0o644)
        os.replace(temporary, output)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _tokenizer_fields(path: Path) -> tuple[list[Field], int]:
    """The fields that make up the tokenizer, and the number of tokens.

    Read here and not by `GGUFReader`, which makes several numpy objects a token: many seconds for a big vocabulary.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            fields = [field for field in _Header(data).fields() if field.name.startswith("tokenizer.")]
    except OSError as error:
        raise RandomModelError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, struct.error) as error:
        raise RandomModelError(f"{path} is not a readable GGUF file: {error}") from error
    size = next((len(field.value) for field in fields if field.name == "tokenizer.ggml.tokens"), 0)
    if not size:
        raise RandomModelError(f"{path} has no vocabulary (tokenizer.ggml.tokens)")
    return fields, size


class _Header:
    """The key-value part at the start of a little-endian GGUF file of version 2 or later."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0

    def fields(self) -> Iterator[Field]:
        magic, version, _tensors, count = self.unpack("4sIQQ")
        if magic != b"GGUF" or not 2 <= version <= 3:
            raise ValueError(f"it starts with {magic!r}, version {version}")
        for _ in range(count):
            name = self.string().decode()
            kind = GGUFValueType(self.unpack("I")[0])
            if kind != GGUFValueType.ARRAY:
                yield Field(name, self.values(kind, 1)[0], kind)
                continue
            item, length = self.unpack("IQ")
            yield Field(name, self.values(GGUFValueType(item), length), kind, GGUFValueType(item))

    def values(self, kind: GGUFValueType, count: int) -> list[Any]:
        if kind == GGUFValueType.STRING:
            return [self.string() for _ in range(count)]
        if kind not in SCALARS:
            raise ValueError(f"arrays of {kind.name} are not supported")
        return list(self.unpack(f"{count}{SCALARS[kind]}"))

    def string(self) -> bytes:
        """Bytes, for not every string need be valid UTF-8."""
        (length,) = self.unpack("Q")
        start, self.at = self.at, self.at + length
        if self.at > len(self.data):
            raise ValueError("it ends within a string")
        return self.data[start : self.at]

    def unpack(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self.data, self.at)
        self.at += struct.calcsize(f"<{layout}")
        return values


def _add_header(writer: GGUFWriter, name: str, size: int, width: int, layers: int, context: int, f32: bool) -> None:
    writer.add_name(f"random weights, vocabulary of {name}")
    writer.add_file_type(LlamaFileType.ALL_F32 if f32 else LlamaFileType.MOSTLY_F16)
    writer.add_vocab_size(size)
    writer.add_context_length(context)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(2 * width)
    writer.add_block_count(layers)
    writer.add_head_count(width // HEAD)
    writer.add_head_count_kv(width // HEAD)
    writer.add_rope_dimension_count(HEAD)
    writer.add_layer_norm_rms_eps(1e-5)


def _tensors(
    random: np.random.Generator, size: int, width: int, layers: int, f32: bool
) -> Iterator[tuple[str, np.ndarray]]:
    """Every tensor of the model. The output matrix is its own: tied to the embedding it would only echo."""

    def matrix(rows: int, columns: int) -> np.ndarray:
        values = random.standard_normal((rows, columns), dtype=np.float32) / np.sqrt(columns)
        return values.astype(np.float32 if f32 else np.float16)

    ones = np.ones(width, dtype=np.float32)
    yield "token_embd.weight", matrix(size, width)
    yield "output_norm.weight", ones
    yield "output.weight", matrix(size, width)
    for layer in range(layers):
        block = f"blk.{layer}"
        yield f"{block}.attn_norm.weight", ones
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"{block}.{part}.weight", matrix(width, width)
        yield f"{block}.ffn_norm.weight", ones
        for part in ("ffn_gate", "ffn_up"):
            yield f"{block}.{part}.weight", matrix(2 * width, width)
        yield f"{block}.ffn_down.weight", matrix(width, 2 * width)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vocabulary", help="GGUF file whose vocabulary to copy")
    parser.add_argument("output", help="GGUF file to write")
    parser.add_argument("--width", type=int, default=64, help=f"embedding width, a multiple of {HEAD} (default 64)")
    parser.add_argument("--layers", type=int, default=2, help="transformer layers (default 2)")
    parser.add_argument("--context", type=int, default=4096, help="context length in the header (default 4096)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the weights (default 0)")
    parser.add_argument(
        "--f32", action="store_true", help="weights in float32 instead of float16: sums then round less"
    )
    options = vars(parser.parse_args())
    try:
        write_random_model(**options)
    except (RandomModelError, OSError) as error:
        sys.exit(f"random_model: {error}")


if __name__ == "__main__":
    main()
