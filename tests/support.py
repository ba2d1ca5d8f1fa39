"""What several test files need and is no fixture."""

from __future__ import annotations

import inspect
import os
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import tokentrie
from hypothesis import strategies as st

WITHOUT_LLAMA = "without llama.cpp"
"""In the sentence by which a package that was built so refuses what it cannot do."""

VECTORS = Path(__file__).parent / "vectors"

GRAMMAR_ALPHABETS = [
    st.characters(min_codepoint=1, max_codepoint=0x7F)
    | st.characters(min_codepoint=low, max_codepoint=high, exclude_categories=["Cs"])
    for low, high in [(0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, 0x10FFFF)]
]
"""Characters for sets of texts in GBNF, without NUL, which it cannot spell, and without halves of characters.

Beside ASCII each has characters of one length in bytes: where a value of the set begins with the same byte, llama.cpp
also takes overlong UTF-8, such as E0 82 80, for the shorter character that it would mean.
"""


@cache
def has_llama() -> bool:
    """Whether this package can load a model."""
    try:
        tokentrie.Model(n_ctx=64)
    except tokentrie.TokenTrieError as error:
        return WITHOUT_LLAMA not in str(error)
    return True


def payload(leaves: dict[str, list[int]], path: str = "action", model: str = "m") -> dict[str, Any]:
    """A payload with one descriptor."""
    rows = [{"name": name, "tokens": tokens} for name, tokens in leaves.items()]
    return {"modelId": model, "descriptors": [{"path": path, "leaves": rows}]}


def vocabulary_files() -> list[Path]:
    """GGUF files of the folder that TOKENTRIE_VOCAB_DIR names."""
    folder = os.environ.get("TOKENTRIE_VOCAB_DIR")
    return sorted(Path(folder).glob("*.gguf")) if folder else []


def write_encoder(path: Path) -> None:
    """A text encoder of one layer: a model that llama.cpp loads and that cannot generate."""
    width, tokens = 32, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"▁{letter}" for letter in "abcdef")]
    attention = [f"blk.0.attn_{part}" for part in ("q", "k", "v", "output")]
    feed_forward = ["blk.0.ffn_up", "blk.0.ffn_down"]
    norms = ["token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm"]
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_context_length(32)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(width)
    writer.add_block_count(1)
    writer.add_head_count(1)
    writer.add_layer_norm_eps(1e-5)
    writer.add_causal_attention(False)
    writer.add_tokenizer_model("bert")
    writer.add_token_list(tokens)
    writer.add_token_type_count(2)
    for name, rows in {"token_embd": len(tokens), "position_embd": 32, "token_types": 2}.items():
        writer.add_tensor(f"{name}.weight", np.zeros((rows, width), np.float32))
    for name in attention + feed_forward:
        writer.add_tensor(f"{name}.weight", np.zeros((width, width), np.float32))
    for name in norms:
        writer.add_tensor(f"{name}.weight", np.ones(width, np.float32))
    for name in attention + feed_forward + norms:
        writer.add_tensor(f"{name}.bias", np.zeros(width, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def public_names() -> dict[str, Any]:
    """The public names under `tokentrie.`, of the package and of its modules, each object once."""
    found: dict[str, Any] = {name: getattr(tokentrie, name) for name in tokentrie.__all__}
    modules = {name: value for name, value in found.items() if inspect.ismodule(value)}
    found = {name: value for name, value in found.items() if name not in modules and name != "__version__"}
    known = {id(value) for value in found.values()}
    for module, value in modules.items():
        for name in value.__all__:
            if id(getattr(value, name)) not in known:
                known.add(id(getattr(value, name)))
                found[f"{module}.{name}"] = getattr(value, name)
    return found
