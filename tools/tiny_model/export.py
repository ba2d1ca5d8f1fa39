"""Write a checkpoint as GGUF: f16 matrices, f32 norms, the tokenizer and the chat template.

python export.py --out out --to tiny.gguf
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import gguf
import numpy as np
from tokenizers import Tokenizer

from drawn.chat import END_OF_TEXT, IM_END, SPECIALS, TEMPLATE_PATH, check_against_template
from net.checkpoint import load
from net.model import TinyLlama

NAME = "tokentrie-tiny"


def _add_tokenizer(writer: gguf.GGUFWriter, tokenizer: Tokenizer) -> None:
    data = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(data["vocab"], key=data["vocab"].__getitem__)
    kinds = [gguf.TokenType.CONTROL if t in SPECIALS else gguf.TokenType.NORMAL for t in tokens]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(m) for m in data["merges"]])
    end_of_turn, filler = data["vocab"][IM_END], data["vocab"][END_OF_TEXT]
    writer.add_eos_token_id(end_of_turn)
    writer.add_eot_token_id(end_of_turn)
    writer.add_bos_token_id(filler)
    writer.add_pad_token_id(filler)
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(False)
    writer.add_chat_template(TEMPLATE_PATH.read_text())


def write_gguf(model: TinyLlama, tokenizer: Tokenizer, path: Path) -> None:
    """Write the file beside `path` and rename it, so that readers never see half a model."""
    shape = model.shape
    partial = path.with_name(path.name + ".partial")
    writer = gguf.GGUFWriter(partial, "llama")
    writer.add_name(NAME)
    writer.add_license("MIT OR Apache-2.0")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    # It was trained to decide after options that stand in a line each, with nothing before its answer.
    writer.add_string("tokentrie.decision.layout", "list")
    writer.add_vocab_size(shape.vocabulary)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_rope_dimension_count(shape.width // shape.heads)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(shape.epsilon)
    _add_tokenizer(writer, tokenizer)
    for name, tensor in model.state_dict().items():
        array = tensor.detach().float().numpy()
        writer.add_tensor(name, array.astype(np.float16 if array.ndim == 2 else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(partial, path)


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("out"), help="folder of the checkpoint")
    parser.add_argument("--to", type=Path, default=Path(__file__).with_name("out") / "tiny.gguf")
    options = parser.parse_args()
    check_against_template()
    model, tokenizer = load(options.out)
    write_gguf(model, tokenizer, options.to)
    print(f"{options.to}: {options.to.stat().st_size} bytes")


if __name__ == "__main__":
    main()
