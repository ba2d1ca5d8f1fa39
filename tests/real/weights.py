"""The weights of a GGUF in float32, for judges that read them otherwise: as a GGUF, and as a folder of transformers.

python tests/real/weights.py MODEL.gguf FOLDER

Both hold the same numbers: the weights are taken out of their blocks once, by the package `gguf`, and what transformers
loads comes from that file. So what differs between two engines is how they compute.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any


def write_float32(source: Path, written: Path) -> None:
    """Writes a GGUF with the weights of another in float32, and all that it says of itself."""
    import gguf

    reader = gguf.GGUFReader(source)
    fields = {name: field for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    architecture = fields.pop(gguf.Keys.General.ARCHITECTURE).contents()
    writer = gguf.GGUFWriter(written, architecture)
    for name, field in fields.items():
        kind, inner = field.types[0], field.types[-1]
        value = int(gguf.LlamaFileType.ALL_F32) if name == gguf.Keys.General.FILE_TYPE else field.contents()
        writer.add_key_value(name, value, kind, sub_type=inner if kind == gguf.GGUFValueType.ARRAY else None)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype("float32"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_folder(source: Path, folder: Path) -> None:
    """Writes what transformers makes of a GGUF: weights as safetensors, and the tokenizer with its chat template."""
    import torch
    import transformers

    loaded: dict[str, Any] = {"gguf_file": source.name}
    read = transformers.AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **loaded)
    # What came from a GGUF counts as quantised, whatever its type, and is not saved.
    config = read.config
    del config.quantization_config
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(read.state_dict())
    model.save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source.parent, **loaded)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizer(source)
    tokenizer.save_pretrained(folder)


def pre_tokenizer(source: Path) -> Any:
    """How a model's texts are cut before they are merged.

    transformers reads the tokenizer of every GGUF as GPT-2's, which is wrong where digits stand alone, as in SmolLM's
    own tokenizer.json.
    """
    import gguf
    from tokenizers import pre_tokenizers

    name = gguf.GGUFReader(source).get_field("tokenizer.ggml.pre").contents()
    if name != "smollm":
        raise ValueError(f"tokenizer.ggml.pre: expected 'smollm', got {name!r}: say here how this tokenizer cuts texts")
    parts = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    return pre_tokenizers.Sequence(parts)


def float32_weights(source: Path, folder: Path) -> tuple[Path, Path]:
    """Returns a GGUF and a folder of transformers with the weights of a GGUF in float32; made once for each folder."""
    written, unpacked = folder / "float32.gguf", folder / "transformers"
    if not written.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        half = folder / f"float32.{os.getpid()}.part"
        write_float32(source, half)
        half.replace(written)
    if not (unpacked / "config.json").is_file():
        half = folder / f"transformers.{os.getpid()}.part"
        write_folder(written, half)
        half.rename(unpacked)
    return written, unpacked


if __name__ == "__main__":
    for made in float32_weights(Path(sys.argv[1]), Path(sys.argv[2])):
        print(made)
