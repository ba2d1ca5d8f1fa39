"""Writes a GGUF with the first layers of another one: a small draft model for it, with the same vocabulary.

    python tools/cut_model.py SmolLM2-135M.gguf smol-8.gguf --layers 8

The tensors are copied bit for bit, so the weights keep their number formats. Nobody trained the model to speak after so
few layers: it guesses worse than a trained one of the same size. Needs the package `gguf`.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from gguf import GGUFReader, GGUFValueType, GGUFWriter

BLOCK = re.compile(r"blk\.(\d+)\.")
OF_WRITER = {"GGUF.version", "GGUF.tensor_count", "GGUF.kv_count", "general.architecture"}
"""Fields that the writer states itself."""


class CutError(Exception):
    """A model or a number of layers that cannot be used."""


def write_cut_model(model: Path, output: Path, layers: int) -> None:
    """Writes `output` with the first `layers` of `model`.

    Raises:
        CutError: The model has no such number of layers.
    """
    reader = GGUFReader(model)
    architecture = str(reader.fields["general.architecture"].contents())
    count = f"{architecture}.block_count"
    if count not in reader.fields:
        raise CutError(f"{model} is not supported: it has no {count}")
    has = int(reader.fields[count].contents())
    if not 1 <= layers < has:
        raise CutError(f"invalid --layers: expected 1 to {has - 1}, got {layers}")
    writer = GGUFWriter(output, architecture)
    for field in reader.fields.values():
        if field.name in OF_WRITER:
            continue
        kind, item = field.types[0], field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
        value = layers if field.name == count else field.contents()
        writer.add_key_value(field.name, value, kind, item)
    for tensor in reader.tensors:
        block = BLOCK.match(tensor.name)
        if block is None or int(block[1]) < layers:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path, help="GGUF file")
    parser.add_argument("output", type=Path, help="GGUF file that is written")
    parser.add_argument("--layers", type=int, required=True, help="number of layers that are kept")
    args = parser.parse_args()
    try:
        write_cut_model(args.model, args.output, args.layers)
    except (CutError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
