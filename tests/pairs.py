"""Tokenizers of the Python libraries with the tokens of a GGUF, so that both must write the same ids."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from models import FOUND, TINY

if TYPE_CHECKING:
    import tiktoken
    import tokenizers

PATHS = {"tiny": TINY} | {
    name: FOUND[name] for name in ("gpt-2", "llama-bpe", "qwen2", "llama-spm", "gemma-4") if name in FOUND
}
"""Vocabularies that can be converted, by name."""
BYTE_LEVEL = [name for name in PATHS if name not in {"llama-spm", "gemma-4"}]
"""Those of them that tiktoken can hold."""

NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
WORDS = {"tiny": GPT2, "gpt-2": GPT2, "llama-bpe": LLAMA3, "qwen2": LLAMA3.replace("{1,3}", "")}
"""How each tokenizer cuts a text into words."""


def alphabet() -> dict[str, int]:
    """The byte of each character of GPT-2's alphabet."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(0x100 + nth): byte for nth, byte in enumerate(others)}


TEXT, LIST = 8, 9
NUMBERS = dict(enumerate(["u1", "i1", "<u2", "<i2", "<u4", "<i4", "<f4", "?"])) | {10: "<u8", 11: "<i8", 12: "<f8"}


@cache
def fields(name: str) -> dict[str, Any]:
    """What a GGUF says of its tokenizer. The library gguf takes 15 seconds for the larger ones."""
    data, at = PATHS[name].read_bytes(), 24

    def number(kind: str) -> int:
        nonlocal at
        at += struct.calcsize(kind)
        return int(struct.unpack_from(kind, data, at - struct.calcsize(kind))[0])

    def text() -> str:
        nonlocal at
        length = number("<Q")
        at += length
        return data[at - length : at].decode()

    def value(kind: int) -> Any:
        nonlocal at
        if kind == TEXT:
            return text()
        if kind == LIST:
            inner, count = number("<I"), number("<Q")
            if inner in (TEXT, LIST):
                return [value(inner) for _ in range(count)]
            kind = inner
        else:
            count = 0
        found = np.frombuffer(data, NUMBERS[kind], count or 1, at)
        at += found.nbytes
        return found.tolist() if count else found[0].item()

    (count,) = struct.unpack_from("<Q", data, 16)
    found = {text(): value(number("<I")) for _ in range(count)}
    prefix = "tokenizer.ggml."
    return {key.removeprefix(prefix): found for key, found in found.items() if key.startswith(prefix)}


def added_tokens(name: str) -> list[dict[str, Any]]:
    """All that are no normal tokens, as in a tokenizer.json."""
    tokens, types = fields(name)["tokens"], fields(name)["token_type"]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return [
        {"id": token, "content": tokens[token], "special": kind != USER_DEFINED, **plain}
        for token, kind in enumerate(types)
        if kind in (UNKNOWN, CONTROL, USER_DEFINED)
    ]


def document(name: str) -> dict[str, Any]:
    """The tokenizer.json that a GGUF's tokens and merges make."""
    given, added = fields(name), added_tokens(name)
    spaces = name in ("llama-spm", "gemma-4")
    # The library numbers added tokens by itself unless they are among the others.
    outside = {token["id"] for token in added} if name in ("llama-bpe", "qwen2") else set()
    vocab = {text: token for token, text in enumerate(given["tokens"]) if token not in outside}
    merges = [pair.split(" ") for pair in given["merges"]] if "merges" in given else merges_by_score(given)
    model = {"type": "BPE", "vocab": vocab, "merges": merges, "dropout": None, "unk_token": None}
    model |= {"continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": spaces}
    model |= {"byte_fallback": spaces, "ignore_merges": name == "llama-bpe"}
    if spaces:
        model["unk_token"] = "<unk>"
        replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
        first = [{"type": "Prepend", "prepend": "▁"}] if name == "llama-spm" else []
        normalizer = {"type": "Sequence", "normalizers": [*first, replace]}
        before = None
        back = [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
        ]
        decoder: dict[str, Any] = {"type": "Sequence", "decoders": back}
        if first:
            back.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    else:
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
        split = {"type": "Split", "pattern": {"Regex": WORDS[name]}, "behavior": "Isolated", "invert": False}
        normalizer, before = None, {"type": "Sequence", "pretokenizers": [split, level]}
        decoder = level
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": before,
        "post_processor": None,
        "decoder": decoder,
        "model": model,
    }


def merges_by_score(given: dict[str, Any]) -> list[list[str]]:
    """SentencePiece merges two tokens if both together are one, the best score first."""
    tokens = {text: token for token, text in enumerate(given["tokens"]) if given["token_type"][token] == NORMAL}
    pairs = [
        (-given["scores"][token], tokens[text[:at]], tokens[text[at:]], [text[:at], text[at:]])
        for text, token in tokens.items()
        for at in range(1, len(text))
        if text[:at] in tokens and text[at:] in tokens
    ]
    return [pair for *_, pair in sorted(pairs)]


@cache
def hugging_face(name: str) -> tokenizers.Tokenizer:
    """The same tokens in the library tokenizers."""
    library = pytest.importorskip("tokenizers")
    return library.Tokenizer.from_str(json.dumps(document(name)))


@cache
def encoding(name: str) -> tiktoken.Encoding:
    """The same tokens in tiktoken: ids are ranks, because merges made them in this order."""
    library = pytest.importorskip("tiktoken")
    byte_of, added = alphabet(), added_tokens(name)
    special = {token["content"]: token["id"] for token in added}
    tokens: list[str] = fields(name)["tokens"]
    ranks = {bytes(map(byte_of.__getitem__, text)): token for token, text in enumerate(tokens) if text not in special}
    return library.Encoding(name, pat_str=WORDS[name], mergeable_ranks=ranks, special_tokens=special)


def write(name: str, path: Path, change: Callable[[dict[str, Any]], None] = lambda document: None) -> Path:
    """A tokenizer.json, with changes."""
    made = document(name)
    change(made)
    path.write_text(json.dumps(made), encoding="utf-8")
    return path
