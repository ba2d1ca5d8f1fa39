"""The tiny model of the Python package as transformers.js reads models: ONNX and the files of its tokenizer.

python hosts/web/tools/tiny_onnx.py python/tokentrie/models/tiny.gguf target/web/models/tiny
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from gguf import GGUFReader
from onnx import TensorProto, helper, numpy_helper

CONTROL, USER_DEFINED = 3, 4
HIDDEN = -1e9


class Graph:
    """Nodes and weights, in order; each method gives the name of what it made."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def op(self, kind: str, *inputs: str, outputs: int = 1, name: str | None = None, **attributes: Any) -> Any:
        made = [name or f"{kind.lower()}{len(self.nodes)}.{nth}" for nth in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), made, **attributes))
        return made[0] if outputs == 1 else made

    def constant(self, value: Any, kind: Any = np.int64) -> str:
        name = f"constant{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(value, dtype=kind), name))
        return name

    def weight(self, value: Any) -> str:
        """In 16 bits, where that is what they were; runtimes make 32 of them once."""
        if value.dtype != np.float16:
            return self.constant(value, np.float32)
        return self.op("Cast", self.constant(np.ascontiguousarray(value), np.float16), to=TensorProto.FLOAT)

    def norm(self, x: str, weight: Any, epsilon: float) -> str:
        square = self.op("ReduceMean", self.op("Mul", x, x), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", square, self.constant(epsilon, np.float32)))
        return self.op("Mul", self.op("Div", x, root), self.weight(weight))


def model_of(reader: GGUFReader) -> Any:
    """The graph. Its rotations are of neighbours, as llama.cpp has them."""
    field = {name: entry.contents() for name, entry in reader.fields.items()}
    tensor = {entry.name: entry.data for entry in reader.tensors}
    heads, layers = field["llama.attention.head_count"], field["llama.block_count"]
    width, epsilon = field["llama.embedding_length"], field["llama.attention.layer_norm_rms_epsilon"]
    size, words = width // heads, field["llama.vocab_size"]
    assert heads == field["llama.attention.head_count_kv"], "one key for each head"

    graph = Graph()
    op, constant = graph.op, graph.constant

    def linear(x: str, weight: Any) -> str:
        return op("MatMul", x, graph.weight(weight.T))

    def split(x: str) -> str:
        return op("Transpose", op("Reshape", x, constant([0, 0, heads, size])), perm=[0, 2, 1, 3])

    frequencies = field["llama.rope.freq_base"] ** (-np.arange(0, size, 2) / size)
    positions = op("Unsqueeze", op("Cast", "position_ids", to=TensorProto.FLOAT), constant([1, 3]))
    angles = op("Mul", positions, constant(frequencies, np.float32))
    cos, sin = op("Cos", angles), op("Sin", angles)

    def rotated(x: str) -> str:
        pairs = op("Reshape", x, constant([0, 0, 0, size // 2, 2]))
        even, odd = (op("Gather", pairs, constant(nth), axis=4) for nth in (0, 1))
        first = op("Sub", op("Mul", even, cos), op("Mul", odd, sin))
        second = op("Add", op("Mul", even, sin), op("Mul", odd, cos))
        both = [op("Unsqueeze", half, constant([4])) for half in (first, second)]
        return op("Reshape", op("Concat", *both, axis=4), constant([0, 0, 0, size]))

    total = op("Gather", op("Shape", "attention_mask"), constant(1))
    fresh = op("Gather", op("Shape", "input_ids"), constant(1))
    ones = constant(1)
    keys = op("Unsqueeze", op("Range", constant(0), total, ones), constant([0]))
    queries = op("Unsqueeze", op("Range", op("Sub", total, fresh), total, ones), constant([1]))
    seen = op("Unsqueeze", op("Cast", "attention_mask", to=TensorProto.BOOL), constant([1, 2]))
    shown = op("And", op("LessOrEqual", keys, queries), seen)
    mask = op("Where", shown, constant(0, np.float32), constant(HIDDEN, np.float32))

    table = graph.weight(tensor["token_embd.weight"])
    x = op("Gather", table, "input_ids", axis=0)
    ins, outs = [], []
    for layer in range(layers):

        def of(name: str, block: int = layer) -> Any:
            return tensor[f"blk.{block}.{name}.weight"]

        h = graph.norm(x, of("attn_norm"), epsilon)
        query, key = (rotated(split(linear(h, of(name)))) for name in ("attn_q", "attn_k"))
        pair = {"key": key, "value": split(linear(h, of("attn_v")))}
        for name, now in pair.items():
            past = f"past_key_values.{layer}.{name}"
            pair[name] = op("Concat", past, now, axis=2, name=f"present.{layer}.{name}")
            shape = ["batch", heads, "past", size]
            ins.append(helper.make_tensor_value_info(past, TensorProto.FLOAT, shape))
            shape = ["batch", heads, "total", size]
            outs.append(helper.make_tensor_value_info(pair[name], TensorProto.FLOAT, shape))
        scores = op("MatMul", query, op("Transpose", pair["key"], perm=[0, 1, 3, 2]))
        scaled = op("Mul", scores, constant(size**-0.5, np.float32))
        shares = op("Softmax", op("Add", scaled, mask), axis=-1)
        mixed = op("Transpose", op("MatMul", shares, pair["value"]), perm=[0, 2, 1, 3])
        x = op("Add", x, linear(op("Reshape", mixed, constant([0, 0, width])), of("attn_output")))
        h = graph.norm(x, of("ffn_norm"), epsilon)
        gate = linear(h, of("ffn_gate"))
        swish = op("Mul", gate, op("Sigmoid", gate))
        x = op("Add", x, linear(op("Mul", swish, linear(h, of("ffn_up"))), of("ffn_down")))
    last = graph.norm(x, tensor["output_norm.weight"], epsilon)
    op("MatMul", last, op("Transpose", table, perm=[1, 0]), name="logits")

    given = [("input_ids", "fresh"), ("attention_mask", "total"), ("position_ids", "fresh")]
    ids = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", length]) for name, length in given]
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "fresh", words])
    made = helper.make_graph(graph.nodes, "tiny", ids + ins, [logits, *outs], graph.weights)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def files_of(reader: GGUFReader) -> dict[str, Any]:
    """Returns the contents of the files beside the graph, by name."""
    field = {name: entry.contents() for name, entry in reader.fields.items()}
    names, kinds = field["tokenizer.ggml.tokens"], field["tokenizer.ggml.token_type"]
    special = [n for n, kind in enumerate(kinds) if kind in (CONTROL, USER_DEFINED)]
    first, end = names[field["tokenizer.ggml.bos_token_id"]], names[field["tokenizer.ggml.eos_token_id"]]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [{"id": n, "content": names[n], "special": kinds[n] == CONTROL, **flags} for n in special]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    merges = [merge.split(" ", 1) for merge in field["tokenizer.ggml.merges"]]
    bpe = {"type": "BPE", "vocab": {name: n for n, name in enumerate(names)}, "merges": merges}
    return {
        "config.json": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": field["llama.embedding_length"],
            "intermediate_size": field["llama.feed_forward_length"],
            "num_attention_heads": field["llama.attention.head_count"],
            "num_key_value_heads": field["llama.attention.head_count_kv"],
            "num_hidden_layers": field["llama.block_count"],
            "max_position_embeddings": field["llama.context_length"],
            "vocab_size": field["llama.vocab_size"],
            "bos_token_id": field["tokenizer.ggml.bos_token_id"],
            "eos_token_id": field["tokenizer.ggml.eos_token_id"],
        },
        "generation_config.json": {"eos_token_id": field["tokenizer.ggml.eos_token_id"]},
        "tokenizer.json": {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": added,
            "normalizer": None,
            "pre_tokenizer": level,
            "post_processor": None,
            "decoder": level,
            "model": bpe,
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": first,
            "eos_token": end,
            "pad_token": first,
            "chat_template": field["tokenizer.chat_template"],
            "clean_up_tokenization_spaces": False,
        },
    }


def main(source: str, target: str) -> None:
    reader, folder = GGUFReader(source), Path(target)
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    for name, content in files_of(reader).items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    onnx.save(model_of(reader), str(folder / "onnx" / "model.onnx"))


if __name__ == "__main__":
    main(*sys.argv[1:])
