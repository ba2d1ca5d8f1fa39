"""The tokens of a real vocabulary as bytes, read from a GGUF file without any engine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gguf import GGUFReader

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
BYTE_NAME = re.compile("<0x([0-9A-F]{2})>")


@dataclass
class Vocabulary:
    """The bytes of each token, those that end a generation, and all that are no text."""

    pieces: list[bytes]
    eog: list[int]
    others: list[int]


def sha256(pieces: Iterable[bytes]) -> str:
    """What names a vocabulary: SHA-256 of each token's length, four bytes little-endian, and its bytes."""
    found = hashlib.sha256()
    for piece in pieces:
        found.update(len(piece).to_bytes(4, "little") + piece)
    return found.hexdigest()


def name_of(path: Path) -> str:
    """What cases call the vocabulary of a file."""
    return path.stem.removeprefix("ggml-vocab-")


def read_gguf(path: Path) -> Vocabulary:
    """Reads a GGUF file that holds a vocabulary."""
    fields = GGUFReader(path).fields
    texts: list[str] = fields["tokenizer.ggml.tokens"].contents()
    kinds: list[int] = fields["tokenizer.ggml.token_type"].contents()
    by_bytes = fields["tokenizer.ggml.model"].contents() == "gpt2"
    spelled = byte_characters()
    pieces = []
    for text, kind in zip(texts, kinds, strict=True):
        if kind in (CONTROL, UNKNOWN, UNUSED):
            pieces.append(b"")
        elif kind == BYTE and (named := BYTE_NAME.fullmatch(text)):
            pieces.append(bytes.fromhex(named[1]))
        elif by_bytes and kind != USER_DEFINED:
            pieces.append(bytes(spelled[one] for one in text))
        else:
            pieces.append(text.encode() if by_bytes else text.replace("\u2581", " ").encode())
    eog = sorted({int(fields[key].contents()) for key in _EOG_KEYS if key in fields})
    others = sorted({token for token, piece in enumerate(pieces) if not piece} | set(eog))
    return Vocabulary(pieces, eog, others)


_EOG_KEYS = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id")


def byte_characters() -> dict[str, int]:
    """The characters that byte-level BPE writes bytes as."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + at): byte for at, byte in enumerate(others)}
