"""Vocabularies from lists and from GGUF files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import vocabulary_files
from tokentrie import Model, Sampler, Trie, Vocab
from tokentrie.errors import ModelError, OptionError, TrieError, VocabularyError

TEXTS = [
    "",
    "x",
    "Hello, world!",
    "  two  spaces\n\ttab",
    "naïve café 日本語 🙂",
    '{"name": "REPLY_THREAD"}',
    "a" * 1000,
]


def test_from_tokens() -> None:
    vocab = Vocab.from_tokens([b"a", b"bc", b"\xff", b""], eog=[3, 1, 3], control=[3])
    assert len(vocab) == 4
    assert [vocab[1], vocab[2], vocab[3]] == [b"bc", b"\xff", b""]
    assert (vocab.eog, vocab.control) == ([1, 3], [3])
    assert vocab.detokenize([0, 1, 2]) == "abc\ufffd"
    assert vocab.detokenize_bytes(np.array([2, 0], np.uint16)) == b"\xffa"
    assert repr(vocab) == "<tokentrie.Vocab: 4 tokens>"
    with pytest.raises(VocabularyError, match="cannot tokenize"):
        vocab.tokenize("abc")


def test_ids_outside_are_named() -> None:
    vocab = Vocab.from_tokens(iter([b"a", b"b"]))
    with pytest.raises(VocabularyError, match="token id 2 at position 1 is outside the vocabulary of 2 tokens"):
        vocab.detokenize([0, 2])
    with pytest.raises(VocabularyError, match="position 0: token id -1"):
        vocab.detokenize_bytes([-1])
    for outside in (2, -1, 2**40):
        with pytest.raises(IndexError, match=f"token id {outside} is outside the vocabulary of 2"):
            vocab[outside]
    with pytest.raises(VocabularyError, match="token id 2"):
        Vocab.from_tokens([b"a", b"b"], eog=[2])
    with pytest.raises(VocabularyError, match="control, position 0: token id -2"):
        Vocab.from_tokens([b"a", b"b"], control=[-2])
    with pytest.raises(TypeError, match="token 1: a piece must be bytes, not str"):
        Vocab.from_tokens([b"a", "b"])  # type: ignore[list-item]
    with pytest.raises(OptionError, match="number of tokens is 0"):
        Vocab.from_tokens([])


def test_fingerprint() -> None:
    def fingerprint(*arguments: Any) -> str:
        return Vocab.from_tokens(*arguments).fingerprint

    same = fingerprint([b"a", b"bc"], [1], [0])
    assert same == fingerprint([b"a", b"bc"], [1, 1], [0])
    assert len(same) == 64
    assert int(same, 16) >= 0
    others = [
        fingerprint([b"ab", b"c"], [1], [0]),
        fingerprint([b"bc", b"a"], [1], [0]),
        fingerprint([b"a", b"bc", b""], [1], [0]),
        fingerprint([b"a", b"bc"], [0], [0]),
        fingerprint([b"a", b"bc"], [1], []),
    ]
    assert len({same, *others}) == 6


# What is wrong with a file: its content, and what the error must name.
BAD_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "GGUF"),
    "short": (b"GGUF\x03\x00", "GGUF"),
    "header only": (b"GGUF\x03\x00\x00\x00" + b"\x01" + b"\x00" * 7, "header"),
    "text": (b'{"model": "no"}' * 10, "GGUF"),
    "version": (b"GGUF\x63\x00\x00\x00" + b"\x00" * 64, "version is 99"),
    "counts without content": (b"GGUF\x03\x00\x00\x00" + b"\xff" * 16, "it ends after 24 bytes"),
}


@pytest.mark.model
@pytest.mark.parametrize(("content", "says"), BAD_FILES.values(), ids=BAD_FILES)
@pytest.mark.parametrize("load", [Vocab.from_gguf, Model], ids=["vocab", "model"])
def test_files_that_are_no_model(load: Any, content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "some.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=rf"(?s)some\.gguf.*{says}|{says}.*some\.gguf"):
        load(path)


@pytest.mark.model
@pytest.mark.parametrize("load", [Vocab.from_gguf, Model], ids=["vocab", "model"])
def test_paths_that_are_no_file(load: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"missing\.gguf"):
        load(tmp_path / "missing.gguf")
    with pytest.raises(ModelError, match="folder"):
        load(str(tmp_path))
    with pytest.raises(TypeError):
        load(5)
    with pytest.raises((ModelError, ValueError)):
        load("with\0zero.gguf")


@pytest.mark.model
@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.999])
def test_truncated_files(tiny_path: Path, share: float, tmp_path: Path) -> None:
    content, path = tiny_path.read_bytes(), tmp_path / "cut.gguf"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ModelError, match=r"cut\.gguf"):
        Model(path)


def round_trip(vocab: Vocab) -> None:
    for text in TEXTS:
        ids = vocab.tokenize(text)
        assert vocab.detokenize(ids) == text
        assert vocab.detokenize_bytes(np.array(ids, np.int32)) == text.encode()
    long = "word " * 20_000
    assert vocab.detokenize(vocab.tokenize(long)) == long
    assert b"".join(vocab[token] for token in vocab.tokenize("REPLY")).strip() == b"REPLY"


@pytest.mark.model
def test_tiny_vocabulary(tiny_path: Path) -> None:
    vocab = Vocab.from_gguf(tiny_path)
    assert len(vocab) > 256
    assert vocab.eog
    assert set(vocab.eog) <= set(vocab.control)
    round_trip(vocab)
    assert vocab.fingerprint == Vocab.from_gguf(str(tiny_path)).fingerprint
    name = vocab[vocab.eog[0]].decode()
    assert vocab.tokenize(name, parse_special=True) == [vocab.eog[0]]
    assert vocab.eog[0] not in vocab.tokenize(name), "text that is not trusted makes no control token"


@pytest.mark.model
def test_strings(tiny_path: Path) -> None:
    vocab = Vocab.from_gguf(tiny_path)
    trie = Trie.from_strings(vocab, ["yes", "no", "日本語"], suffix='"')
    assert {leaf.name: vocab.detokenize(leaf.tokens) for leaf in trie} == {
        "yes": 'yes"',
        "no": 'no"',
        "日本語": '日本語"',
    }
    assert trie.find(vocab.tokenize('no"')) is not None
    with pytest.raises(TrieError, match="value 1 is empty"):
        Trie.from_strings(vocab, ["yes", ""])
    with pytest.raises(TrieError, match="no leaf"):
        Trie.from_strings(vocab, [])
    with pytest.raises(OptionError, match='tokenization is "other"'):
        Trie.from_strings(vocab, ["yes"], tokenization="other")  # type: ignore[arg-type]
    with pytest.raises(VocabularyError, match="cannot tokenize"):
        Trie.from_strings(Vocab.from_tokens([b"a"]), ["a"])


@pytest.mark.model
@pytest.mark.skipif(not vocabulary_files(), reason="TOKENTRIE_VOCAB_DIR names no folder with GGUF files")
@pytest.mark.parametrize("path", vocabulary_files(), ids=lambda path: path.stem)
def test_big_vocabularies(path: Path) -> None:
    vocab = Vocab.from_gguf(path)
    round_trip(vocab)
    assert max(len(vocab[token]) for token in range(len(vocab))) >= 16, "long pieces come whole"
    assert vocab.eog
    names = ["REPLY", "REPLY_THREAD", "STOP", "日本語"]
    sampler = Sampler(vocab, Trie.from_strings(vocab, names), after="stop")
    row = np.random.default_rng(0).normal(size=len(vocab)).astype(np.float32)
    sampler.advance(row)
    with pytest.raises(ModelError, match="vocabulary only"):
        Model(path)


@pytest.mark.model
@pytest.mark.parametrize("text", [" ?", "a , b", "don 't", "x .", "  two  spaces ", "\n !"])
def test_spaces_before_punctuation_stay(tiny_path: Path, text: str) -> None:
    vocab = Vocab.from_gguf(tiny_path)
    assert vocab.detokenize(vocab.tokenize(text)) == text
