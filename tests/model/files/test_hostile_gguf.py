"""GGUF files that llama.cpp would abort on: refused with the key, the value and what is wrong, before it reads them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import gguf
import pytest
from models import TINY
from support import vocabulary_files
from tokentrie import Model, TokenTrieError, Vocab
from tokentrie.errors import ModelError

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

from mutate_gguf import F32, STRING, U32, Gguf, Value

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(sys.platform != "linux", reason="each file is used in a forked child"),
]

SENTENCE_PIECE = (b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % byte for byte in range(256)), "▁".encode(), b"a", b"b")
TOOL = Path(__file__).parents[3] / "tools" / "mutate_gguf.py"
CPU = Path("/proc/cpuinfo")
# llama.cpp multiplies sound quantised weights by instructions that some virtual machines claim to have.
AMX = CPU.exists() and "amx_tile" in CPU.read_text()
QUANTISED = [f"type {kind}, laid out" for kind in (2, 3, 8)] if AMX else []


def change_tokens(file: Gguf, change: Callable[[list[bytes]], list[bytes]]) -> Gguf:
    held = file.get(b"tokenizer.ggml.tokens")
    assert held is not None
    return file.put(b"tokenizer.ggml.tokens", Value(9, change(list(held.held)), STRING))


def vocabulary(model: bytes, tokens: tuple[bytes, ...], kinds: list[int] | None = None) -> Gguf:
    """A file without weights."""
    file = Gguf()
    file.put(b"general.architecture", Value(STRING, b"llama"))
    file.put(b"tokenizer.ggml.model", Value(STRING, model))
    file.put(b"tokenizer.ggml.tokens", Value(9, list(tokens), STRING))
    file.put(b"tokenizer.ggml.scores", Value(9, [0.0] * len(tokens), F32))
    file.put(b"tokenizer.ggml.token_type", Value(9, kinds or [1] * len(tokens), 5))
    return file


@pytest.fixture(scope="module")
def tiny() -> Gguf:
    return Gguf.read(TINY)


def refused(path: Path, file: Gguf, *parts: str) -> str:
    """By a typed error, in this process, because nothing of it may abort."""
    path.write_bytes(file.written())
    with pytest.raises(ModelError) as raised:
        Model(path)
    message = str(raised.value)
    assert str(path) in message
    assert all(part in message for part in parts), message
    return message


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("block_count", Value(U32, 0), "llama.block_count is 0: it must be in 1..=512"),
        ("block_count", Value(U32, 2**31), "llama.block_count is 2147483648: it must be in 1..=512"),
        ("context_length", Value(U32, 2**31), "llama.context_length is 2147483648: it must be in 1..=2147483647"),
        ("nextn_predict_layers", Value(U32, 6), "llama.nextn_predict_layers is 6: it must be in 0..=5"),
        ("expert_count", Value(U32, 2000), "llama.expert_count is 2000: it must be in 0..=1024"),
        ("expert_count", Value(U32, 8), "llama.expert_used_count is 0: of 8 experts it must be in 1..=8"),
        ("expert_used_count", Value(U32, 3), "llama.expert_used_count is 3: of 0 experts it must be in 0..=0"),
        ("expert_group_count", Value(U32, 1), "llama.expert_group_count is 1: it must be less than the 0 experts"),
        ("attention.layer_norm_rms_epsilon", Value(F32, -1.0), "layer_norm_rms_epsilon is -1: it must be a number"),
        ("attention.layer_norm_rms_epsilon", Value(F32, float("nan")), "epsilon is NaN: it must be a number"),
        ("rope.scaling.type", Value(STRING, b"?"), 'llama.rope.scaling.type is "?": it must be one of ["none", '),
    ],
)
def test_numbers(tiny: Gguf, tmp_path: Path, name: str, value: Value, says: str) -> None:
    refused(tmp_path / "model.gguf", tiny.copy().put(b"llama." + name.encode(), value), says)


def test_numbers_that_hang_together(tiny: Gguf, tmp_path: Path) -> None:
    file = tiny.copy().put(b"llama.expert_count", Value(U32, 8)).put(b"llama.expert_used_count", Value(U32, 2))
    refused(tmp_path / "a.gguf", file.put(b"llama.expert_group_count", Value(U32, 3)), "expert_group_count is 3")
    file.put(b"llama.expert_group_count", Value(U32, 4))
    refused(tmp_path / "b.gguf", file, "expert_group_used_count is 0: it must be in 1..4")
    for kind in ("bert", "wavtokenizer-dec"):
        file = tiny.copy().put(b"general.architecture", Value(STRING, kind.encode()))
        refused(tmp_path / "c.gguf", file, f'is a "{kind}" model: only models that predict')


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("smallthinker", "expert_count"),
        ("llada-moe", "expert_count"),
        ("bailingmoe2", "expert_count"),
        ("glm4moe", "expert_count"),
        ("grovemoe", "expert_count"),
        ("lfm2moe", "expert_count"),
        ("hrm_text", "hrm.layers_per_stack"),
        ("minimax-m3", "attention.indexer.block_size"),
        ("paddleocr", "rope.dimension_sections"),
        ("qwen2vl", "rope.dimension_sections"),
    ],
)
def test_numbers_that_an_architecture_asserts(tiny: Gguf, tmp_path: Path, kind: str, name: str) -> None:
    file = tiny.copy().put(b"general.architecture", Value(STRING, kind.encode()))
    for key in (b"context_length", b"embedding_length", b"block_count", b"attention.head_count"):
        held = tiny.get(b"llama." + key)
        assert held is not None
        file.put(kind.encode() + b"." + key, held)
    refused(tmp_path / "model.gguf", file, f"{kind}.{name} is ")


def test_two_tokens_of_one_text(tiny: Gguf, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    file = change_tokens(tiny.copy(), lambda tokens: [*tokens[:-1], tokens[7]])
    last = len(file.get(b"tokenizer.ggml.tokens").held) - 1  # type: ignore[union-attr]
    refused(path, file, f"tokenizer.ggml.tokens[{last}] is ", "token 7 has the same text")
    with pytest.raises(ModelError, match="token 7 has the same text"):
        Vocab.from_gguf(path)
    # llama.cpp reads up to the first zero.
    file = change_tokens(tiny.copy(), lambda tokens: [*tokens[:-1], tokens[7] + b"\0more"])
    refused(path, file, f"tokenizer.ggml.tokens[{last}] is ", "token 7 has the same text")
    # llama.cpp calls a token without text so.
    file = change_tokens(tiny.copy(), lambda tokens: [b"[EMPTY_9]", *tokens[1:9], b"", *tokens[10:]])
    refused(path, file, 'tokenizer.ggml.tokens[9] is "[EMPTY_9]": token 0 has the same text')


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (vocabulary(b"llama", SENTENCE_PIECE[:13] + SENTENCE_PIECE[15:]), "2 have none, such as <0x0A>"),
        (
            vocabulary(b"llama", (b"<unk>", b"a", b"b")),
            "is a list of 3: texts with bytes that have no token cannot be tokenized: 254",
        ),
        (vocabulary(b"bert", (b"[UNK]", b"a"), [2, 6]), 'token_type[1] is 6: the tokenizer "bert" has no tokens'),
        (vocabulary(b"rwkv", (b"a", b"b")), "is a list of 2: none of them is a newline"),
        (
            vocabulary(b"t5", (b"<unk>", b"a")).put(
                b"tokenizer.ggml.precompiled_charsmap", Value(9, [255, 255, 0, 0, 1], 0)
            ),
            "precompiled_charsmap is 5 bytes: its first part has 65535 bytes, and 1 are there",
        ),
    ],
    ids=["two bytes", "no bytes", "bytes of words", "no newline", "charsmap"],
)
def test_tokenizers(tmp_path: Path, file: Gguf, says: str) -> None:
    path = tmp_path / "vocabulary.gguf"
    path.write_bytes(file.written())
    with pytest.raises(TokenTrieError) as raised:
        Vocab.from_gguf(path)
    assert says in str(raised.value)


def test_what_is_sound_is_read(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.gguf"
    kinds = [2, 3, 3, *[6] * 256, 1, 1, 1]
    for tokens in (
        SENTENCE_PIECE,
        (*(bytes([byte]) if 0 < byte < 128 else SENTENCE_PIECE[3 + byte] for byte in range(256)), b"<unk>"),
    ):
        path.write_bytes(vocabulary(b"llama", tokens, kinds if tokens is SENTENCE_PIECE else None).written())
        assert len(Vocab.from_gguf(path)) == len(tokens)
    for real in vocabulary_files():
        assert len(Vocab.from_gguf(real)) > 1000


@pytest.mark.parametrize("kind", [gguf.GGMLQuantizationType.I8, gguf.GGMLQuantizationType.F64])
@pytest.mark.parametrize("name", ["token_embd.weight", "blk.0.attn_q.weight"])
def test_weights_that_are_no_weights(tiny: Gguf, tmp_path: Path, name: str, kind: gguf.GGMLQuantizationType) -> None:
    file = tiny.copy()
    next(one for one in file.tensors if one.name == name.encode()).kind = int(kind)
    refused(
        tmp_path / "model.gguf", file.laid_out(), f'the tensor "{name}" is of type {int(kind)} with the shape [160, '
    )


def test_norms_that_are_not_f32(tiny: Gguf, tmp_path: Path) -> None:
    file = tiny.copy()
    next(one for one in file.tensors if one.name == b"output_norm.weight").kind = 1
    says = "weights of one dimension must be of type 0 (f32)"
    refused(tmp_path / "model.gguf", file.laid_out(), 'the tensor "output_norm.weight" is of type 1', says)


def test_headers(tiny: Gguf, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    file = tiny.copy()
    file.metadata.append(file.metadata[-1])
    refused(path, file, 'it has the key "tokenizer.chat_template" twice')
    file.metadata[-1] = (b"llama.block_count\0", Value(U32, 0))
    refused(path, file, 'it has the key "llama.block_count" twice')
    file = tiny.copy()
    file.counts = (len(file.tensors), 2**40)
    refused(path, file, "is not a GGUF file that llama.cpp reads")
    refused(path, tiny.copy().put(b"x", Value(255, 0)), 'the value of "x" has the unknown type 255')
    path.write_bytes(tiny.written()[:900])
    with pytest.raises(ModelError, match="it ends after 900 bytes, inside the value of "):
        Model(path)


def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """In a process without threads, because each file is used in a fork of it."""
    return subprocess.run([sys.executable, *map(str, args)], capture_output=True, text=True, check=False, timeout=300)


def test_mutations_end_no_process(tmp_path: Path) -> None:
    """Some of all single changes, and some at random; the tool makes thousands."""
    small = tmp_path / "small.gguf"
    small.write_bytes(vocabulary(b"llama", SENTENCE_PIECE, [2, 3, 3, *[6] * 256, 1, 1, 1]).written())
    without = [part for kind in QUANTISED for part in ("--without", kind)]
    done = run(TOOL, TINY, small, "--every", "37", "--random", "24", "--seed", "7", *without)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    found = re.match(r"\n0 of (\d+) ended their process", done.stdout)
    assert found is not None, done.stdout
    assert int(found[1]) > 120


def test_a_mutation_is_seen_to_end_a_process(tmp_path: Path) -> None:
    code = f"""
import os, sys
sys.path.insert(0, {str(TOOL.parent)!r})
import mutate_gguf, pathlib
for end in (os.abort, lambda: os.kill(os.getpid(), 11), lambda: 1 / 0, lambda: None):
    mutate_gguf.use = lambda path: end()
    print(mutate_gguf.attempt(b"", pathlib.Path({str(tmp_path)!r})).end)
"""
    done = run("-c", code)
    assert (done.returncode, done.stdout.split()) == (0, ["SIGABRT", "SIGSEGV", "exception", "None"]), done.stderr
