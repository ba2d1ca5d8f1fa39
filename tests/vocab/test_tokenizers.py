"""Vocabularies of tokenizers, transformers and tiktoken: their ids, and llama.cpp's for the same tokens."""

from __future__ import annotations

import copy
import json
import os
import pickle
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budget import cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pairs import BYTE_LEVEL, PATHS, encoding, hugging_face, write
from test_strings import names as values_with_an_empty_one
from tokentrie import Sampler, Trie, Vocab
from tokentrie.errors import OptionError, VocabularyError

tokenizers = pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
try:
    import tiktoken
except ImportError:
    tiktoken = None
needs_tiktoken = pytest.mark.skipif(tiktoken is None, reason="the package tiktoken is not installed")

TEXTS = ["", "x", " x", "  two  spaces ", "naïve café 日本語 🙂", "e\u0301", "nul\0byte", "\n", "1984 (new)", "a" * 300]
SPECIAL = ["<|im_end|>", "a<|endoftext|>b", "<s>", "</s>", "<unk>", "<|eot_id|>", "<bos>", "<|im_<|im_end|>end|>"]


def names(count: int) -> list[str]:
    """Different ones, none of them empty."""
    return [name for name in values_with_an_empty_one(count + 1) if name][:count]


@cache
def of_gguf(name: str) -> Vocab:
    return Vocab.from_gguf(PATHS[name])


@cache
def of_hugging_face(name: str) -> Vocab:
    return Vocab.from_tokenizer(hugging_face(name))


@cache
def of_tiktoken(name: str) -> Vocab:
    return Vocab.from_tiktoken(encoding(name))


@cache
def plain(name: str) -> Any:
    """A tokenizer of the library to which nothing is special."""
    tokenizer = copy.deepcopy(hugging_face(name))
    tokenizer.encode_special_tokens = True
    return tokenizer


def own_ids(name: str, texts: list[str]) -> list[list[int]]:
    """What the library itself says."""
    return [found.ids for found in plain(name).encode_batch(texts, add_special_tokens=False)]


@pytest.mark.model
@pytest.mark.parametrize("name", PATHS)
def test_the_same_tokens_as_the_gguf(name: str) -> None:
    gguf, made = of_gguf(name), of_hugging_face(name)
    assert [made[token] for token in range(len(made))] == [gguf[token] for token in range(len(gguf))]
    assert made.eog == gguf.eog
    # A file may call a token text that looks like a control token: `<|"|>` of gemma-4.
    apart = {made[token] for token in {*made.control} ^ {*gguf.control}}
    assert apart == ({b'<|"|>'} if name == "gemma-4" else set())
    assert (made.fingerprint == gguf.fingerprint) == (not apart)
    kinds = {(made.kind(token), gguf.kind(token)) for token in range(len(made)) if made[token] not in apart}
    assert {(one, other) for one, other in kinds if one != other} <= {("unknown", "control")}
    assert made.kind(made.tokenize("a")[0]) == "text"


@pytest.mark.model
@pytest.mark.parametrize("name", PATHS)
def test_ten_thousand_names(name: str) -> None:
    vocab, values = of_hugging_face(name), names(10_000)
    own, llama = own_ids(name, values), Trie.from_strings(of_gguf(name), values)
    trie = Trie.from_strings(vocab, values)
    assert {leaf.name: leaf.tokens for leaf in trie} == dict(zip(values, own, strict=True))
    assert trie == llama
    assert trie.report == {"values": len(values), "crossing": 0, "first_crossing": []}
    around = Trie.from_strings(vocab, values[:2000], prefix='{"title": "', suffix='"}', heal=True)
    assert around == Trie.from_strings(of_gguf(name), values[:2000], prefix='{"title": "', suffix='"}', heal=True)


@pytest.mark.model
@needs_tiktoken
@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_ten_thousand_names_in_tiktoken(name: str) -> None:
    vocab, gguf, values = of_tiktoken(name), of_gguf(name), names(10_000)
    assert [vocab[token] for token in range(len(vocab))] == [gguf[token] for token in range(len(gguf))]
    trie = Trie.from_strings(vocab, values)
    own = encoding(name).encode_ordinary_batch(values)
    assert {leaf.name: leaf.tokens for leaf in trie} == dict(zip(values, own, strict=True))
    # The GGUF of qwen2 looks for its unused tokens in texts, which are control tokens here.
    plain = [value for value in values if "[PAD" not in value]
    assert Trie.from_strings(vocab, plain) == Trie.from_strings(gguf, plain)
    assert (vocab.fingerprint == gguf.fingerprint) == (name != "qwen2")


@pytest.mark.model
@pytest.mark.parametrize("name", PATHS)
def test_texts_come_back(name: str) -> None:
    vocab = of_hugging_face(name)
    for text in TEXTS:
        ids = vocab.tokenize(text)
        assert ids == own_ids(name, [text])[0]
        assert vocab.detokenize(ids) == text
    tokenisations = Trie.from_strings(vocab, ["yes", "no"], suffix="\n", tokenization="all")
    assert {leaf.name for leaf in tokenisations} == {"yes", "no"}
    assert vocab.tokens_with_prefix(b"hell").tolist() == of_gguf(name).tokens_with_prefix(b"hell").tolist()
    trie = Trie.from_strings(vocab, ["yes", "no"])
    row = np.random.default_rng(0).normal(size=len(vocab)).astype(np.float32)
    sampler = Sampler(vocab, trie, after="stop")
    tokens = sampler.advance(row)
    assert sampler.leaf is None or tokens == sampler.leaf.tokens


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("kind", ["tokenizers", pytest.param("tiktoken", marks=needs_tiktoken)])
def test_names_of_control_tokens_stay_text(name: str, kind: str) -> None:
    if kind == "tiktoken" and name not in BYTE_LEVEL:
        pytest.skip("not a byte-level vocabulary")
    vocab = of_hugging_face(name) if kind == "tokenizers" else of_tiktoken(name)
    never = {*vocab.control, *vocab.eog}
    for control in [vocab[token].decode() for token in vocab.control[:20]] + SPECIAL:
        for text in (control, f"a {control} b"):
            assert never.isdisjoint(vocab.tokenize(text))
            assert vocab.detokenize(vocab.tokenize(text)) == text
            (leaf,) = Trie.from_strings(vocab, [text])
            assert never.isdisjoint(leaf.tokens)
            parts = vocab.tokenize_parts([(text, False)])
            assert never.isdisjoint(parts)
            assert vocab.detokenize(parts) == text
    token = vocab.eog[-1]
    if vocab[token] != b"</s>" or name == "llama-spm":
        assert vocab.tokenize(vocab[token].decode(), parse_special=True)[-1] == token


TINY_VOCAB = {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "▁a": 4, "##b": 5, "[CLS]": 6, "</s>": 7, "▁": 8, "X": 9, "x": 10}


def small(model: Any, **parts: Any) -> Any:
    """A tokenizer of few tokens."""
    made = tokenizers.Tokenizer(model)
    for part, value in parts.items():
        setattr(made, part, value)
    return made


def test_models_that_read_names_in_text() -> None:
    """Unigram and whole words find control tokens without being told to: such values are refused."""
    unigram = small(
        tokenizers.models.Unigram([("<unk>", 0.0), ("</s>", 0.0), *((letter, -9.0) for letter in "ab</s>")], 0, False),
    )
    unigram.add_special_tokens(["</s>"])
    vocab = Vocab.from_tokenizer(unigram)
    assert [vocab.kind(token) for token in range(3)] == ["unknown", "control", "text"]
    with pytest.raises(
        VocabularyError, match=r'value 1: the tokenizer: it reads a part of "a</s>" as the control token 1'
    ):
        Trie.from_strings(vocab, ["ab", "a</s>", "b</s>"])
    with pytest.raises(VocabularyError, match="control token 1"):
        vocab.tokenize("</s>")
    assert vocab.tokenize("</s>", parse_special=True) == [1]
    with pytest.raises(VocabularyError, match='value 0: the tokens of "aç" spell "a<unk>"'):
        Trie.from_strings(vocab, ["aç"])
    word = small(tokenizers.models.WordLevel(TINY_VOCAB, "<unk>"))
    word.add_special_tokens(["[CLS]"])
    vocab = Vocab.from_tokenizer(word, eog=[1])
    with pytest.raises(VocabularyError, match="control token 6"):
        Trie.from_strings(vocab, ["ab", "[CLS]"])
    with pytest.raises(VocabularyError, match="control token 1"):
        Trie.from_strings(vocab, ["ab", "a"])
    with pytest.raises(VocabularyError, match='"<unk>" as the control token 0'):
        Trie.from_strings(vocab, ["ab", "<unk>"])
    many = [*["ab"] * 90_000, "[CLS]", "ab"]
    for kind in ({}, {"memory": 1 << 20}):
        with pytest.raises(VocabularyError, match="value 90000: "):
            Trie.from_strings(vocab, iter(many), **kind)


def test_word_pieces() -> None:
    wordpiece = small(
        tokenizers.models.WordPiece(TINY_VOCAB, unk_token="<unk>"),
        pre_tokenizer=tokenizers.pre_tokenizers.BertPreTokenizer(),
        decoder=tokenizers.decoders.WordPiece(),
    )
    vocab = Vocab.from_tokenizer(wordpiece)
    assert [vocab[token] for token in (1, 3, 5)] == [b" a", b" ab", b"b"]
    assert vocab.tokenize("ab a") == [3, 1]
    assert vocab.detokenize([3, 1]) == "ab a"
    assert [leaf.tokens for leaf in Trie.from_strings(vocab, ["ab a", "a"])] == [[1], [3, 1]]
    for text in (" a", "a  b", "a-b"):
        with pytest.raises(VocabularyError, match="value 1: the tokens of"):
            Trie.from_strings(vocab, ["a", text])


@pytest.mark.parametrize("scheme", ["always", "first", "never"])
def test_metaspace(scheme: str) -> None:
    pieces = {"<unk>": 0, "▁": 1, "a": 2, "b": 3, "▁a": 4, **{f"<0x{byte:02X}>": 5 + byte for byte in range(256)}}
    made = small(
        tokenizers.models.BPE(pieces, [("▁", "a")], unk_token="<unk>", byte_fallback=True),
        pre_tokenizer=tokenizers.pre_tokenizers.Metaspace(prepend_scheme=scheme),
        decoder=tokenizers.decoders.Sequence(
            [tokenizers.decoders.ByteFallback(), tokenizers.decoders.Metaspace(prepend_scheme=scheme)]
        ),
    )
    vocab = Vocab.from_tokenizer(made)
    assert [vocab[token] for token in (1, 4, 5, 260)] == [b" ", b" a", b"\0", b"\xff"]
    assert (vocab.kind(5), vocab.kind(4), vocab.kind(0)) == ("byte", "text", "unknown")
    for value in ("a", "b a", "é b", "a  b"):
        (leaf,) = Trie.from_strings(vocab, [value])
        assert leaf.tokens == made.encode(value, add_special_tokens=False).ids
        assert vocab.detokenize(leaf.tokens) == value
    if scheme == "never":
        assert len(Trie.from_strings(vocab, [" a"])) == 1
    else:
        # A space is put in front only if there is none: it cannot be told which it was.
        with pytest.raises(VocabularyError, match='value 1: the tokens of " a" spell " a"'):
            Trie.from_strings(vocab, ["b", " a"])


@pytest.mark.parametrize(
    ("normalizer", "text", "spelled"), [("Lowercase", "Hello", "hello"), ("NFKC", "①ﬁ", "1fi"), ("NFC", "e\u0301", "é")]
)
def test_normalizers_that_change_text(normalizer: str, text: str, spelled: str, tmp_path: Path) -> None:
    path = write("tiny", tmp_path / "tokenizer.json", lambda made: made.update(normalizer={"type": normalizer}))
    vocab = Vocab.from_tokenizer(path)
    assert len(Trie.from_strings(vocab, ["hello", "1fi"])) == 2
    with pytest.raises(VocabularyError, match="value 1: the tokens of") as caught:
        Trie.from_strings(vocab, ["hello", text])
    assert f'spell "{spelled}"' in str(caught.value)


@pytest.mark.model
def test_what_would_change_texts_is_left_out() -> None:
    made = copy.deepcopy(hugging_face("tiny"))
    made.enable_truncation(2)
    made.enable_padding(length=50)
    made.model.dropout = 0.9
    text = "the history of the city"
    whole = own_ids("tiny", [text])[0]
    vocab = Vocab.from_tokenizer(made)
    assert all(vocab.tokenize(text) == whole for _ in range(20))
    assert vocab.fingerprint == of_gguf("tiny").fingerprint
    # Later changes of the caller's object do not matter either.
    made = copy.deepcopy(hugging_face("tiny"))
    vocab = Vocab.from_tokenizer(made)
    made.enable_truncation(1)
    made.normalizer = tokenizers.normalizers.Lowercase()
    assert vocab.tokenize(f"The {text}") == own_ids("tiny", [f"The {text}"])[0]


@pytest.mark.model
def test_added_tokens_that_are_text(tmp_path: Path) -> None:
    def change(made: dict[str, Any]) -> None:
        plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
        ids = range(len(made["model"]["vocab"]), 10_000)
        added = ["<muse>", "<|fim_prefix|>", "<|eom_id|>", "  two"]
        made["added_tokens"] += [
            {"id": token, "content": text, **plain} for token, text in zip(ids, added, strict=False)
        ]

    path = write("tiny", tmp_path / "tokenizer.json", change)
    vocab = Vocab.from_tokenizer(path)
    first = len(of_gguf("tiny"))
    assert [vocab.kind(token) for token in range(first, first + 4)] == ["text", "control", "control", "text"]
    assert vocab.eog == [*of_gguf("tiny").eog, first + 2]
    assert vocab.tokenize("a<muse>b")[1:-1] == [first]
    for name in ("<|fim_prefix|>", "<|eom_id|>"):
        text = f"a{name}b"
        assert {first + 1, first + 2}.isdisjoint(vocab.tokenize(text))
        assert vocab.detokenize(vocab.tokenize(text)) == text
        assert len(vocab.tokenize(text, parse_special=True)) == 3
    assert len(Trie.from_strings(vocab, ["a  two", "<muse>"])) == 2


def test_prompts_get_what_the_model_wants() -> None:
    made = copy.deepcopy(hugging_face("tiny"))
    begin, end = made.token_to_id("<|im_start|>"), made.token_to_id("<|im_end|>")
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", begin)]
    )
    vocab = Vocab.from_tokenizer(made)
    inner = vocab.tokenize("hello")
    assert vocab.tokenize("hello", add_special=True) == [begin, *inner]
    assert vocab.tokenize("hello<|im_end|>", add_special=True, parse_special=True) == [begin, *inner, end]
    assert end not in vocab.tokenize("hello<|im_end|>", add_special=True)
    assert vocab.tokenize_parts([("<|im_start|>", True), ("<|im_end|>", False)])[0] == begin


def test_sizes_holes_and_ends() -> None:
    made = small(tokenizers.models.WordLevel({"a": 0, "b": 3}, "a"))
    vocab = Vocab.from_tokenizer(made, n_vocab=6, eog=[3, 3])
    assert [vocab[token] for token in range(6)] == [b"a", b"", b"", b"b", b"", b""]
    assert [vocab.kind(token) for token in range(6)] == ["unknown", "unused", "unused", "text", "unused", "unused"]
    assert vocab.eog == [3]
    assert Vocab.from_tokenizer(made).eog == []
    for size in (3, 2**24 + 1):
        with pytest.raises(OptionError, match=f"n_vocab is {size}: it must be from 4 to 16777216"):
            Vocab.from_tokenizer(made, n_vocab=size)
    with pytest.raises(VocabularyError, match="token id 9"):
        Vocab.from_tokenizer(made, eog=[9])
    for outside in (-1, 6):
        with pytest.raises(IndexError, match=f"token id {outside} is outside"):
            vocab.kind(outside)
    with pytest.raises(VocabularyError, match="eog, position 0"):
        Vocab.from_tokenizer(made, eog=[-1])


def test_what_is_no_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(VocabularyError, match=r"cannot read .*tokenizer\.json: No such file"):
        Vocab.from_tokenizer(path)
    for content, says in [
        ("", "EOF"),
        ("{}", "missing field `model`"),
        ('{"model": {"vocab": {"a": 0, "b": 0}}}', 'the tokens "a" and "b" both have id 0'),
        ('{"model": {"vocab": {"a": 0}}, "decoder": {"type": "CTC"}}', 'decoder of type "CTC"'),
        ('{"model": {"vocab": {"a": 0}}}', "tokenizers: "),
    ]:
        path.write_text(content)
        with pytest.raises(VocabularyError, match=says) as caught:
            Vocab.from_tokenizer(str(path))
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
    path.write_bytes(b"\xff")
    with pytest.raises(VocabularyError, match="UTF-8"):
        Vocab.from_tokenizer(path)
    for other in (5, None, object()):
        with pytest.raises(TypeError, match=f"path to a tokenizer.json, not {type(other).__name__}"):
            Vocab.from_tokenizer(other)
    write("tiny", path, lambda made: made["model"]["vocab"].pop("<|im_end|>"))
    with pytest.raises(VocabularyError, match=r'the token "<\|im_end\|>" has id 2, but tokenizers gives it \d+'):
        Vocab.from_tokenizer(path)
    write("tiny", path)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(
        VocabularyError, match=r"tokenizer\.json: this needs the Python package tokenizers: pip install tok"
    ):
        Vocab.from_tokenizer(path)


def test_custom_parts_cannot_be_copied() -> None:
    class Whole:
        def pre_tokenize(self, text: Any) -> None: ...

    made = small(tokenizers.models.WordLevel({"a": 0}, "a"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.PreTokenizer.custom(Whole())
    with pytest.raises(VocabularyError, match=r"Tokenizer: tokenizers: .*[Cc]ustom") as caught:
        Vocab.from_tokenizer(made)
    assert caught.value.__cause__ is not None


@pytest.mark.model
def test_fast_tokenizers_of_transformers() -> None:
    class Fast:
        backend_tokenizer = hugging_face("tiny")
        eos_token_id = 3

    assert Vocab.from_tokenizer(Fast()).eog == [0, 2, 3]
    assert Vocab.from_tokenizer(Fast(), eog=[1]).eog == [1]
    assert Vocab.from_tokenizer(Fast()).tokenize("hello") == of_gguf("tiny").tokenize("hello")


def test_transformers_itself() -> None:
    transformers = pytest.importorskip("transformers", reason="the package transformers is not installed")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=hugging_face("tiny"), eos_token="<|im_end|>")
    vocab = Vocab.from_tokenizer(fast)
    assert vocab.eog == of_gguf("tiny").eog
    for text in [*TEXTS, *SPECIAL]:
        assert vocab.tokenize(text) == fast.encode(text, add_special_tokens=False, split_special_tokens=True)


class Faulty:
    """As tiktoken.Encoding, but it fails where it is told to."""

    n_vocab = 256
    special_tokens_set: frozenset[str] = frozenset()

    def __init__(self, fault: BaseException) -> None:
        self.fault = fault

    def decode_single_token_bytes(self, token: int) -> bytes:
        return bytes([token])

    def encode_ordinary(self, text: str) -> list[int]:
        if "!" in text:
            raise self.fault
        return [*text.encode()]


def test_errors_of_the_library_say_which_value() -> None:
    fault = ValueError("no exclamations")
    vocab = Vocab.from_tiktoken(Faulty(fault))
    values = [f"v{number}" for number in range(3000)]
    values[1234] = values[2000] = "no!"
    with pytest.raises(VocabularyError, match=r"^value 1234: the tokenizer: ValueError: no exclamations$") as caught:
        Trie.from_strings(vocab, values)
    assert caught.value.__cause__ is fault
    with pytest.raises(VocabularyError, match=r"^the tokenizer: ValueError"):
        vocab.tokenize("!")
    with pytest.raises(KeyboardInterrupt):
        Trie.from_strings(Vocab.from_tiktoken(Faulty(KeyboardInterrupt())), values)

    class Panic(BaseException):
        """What libraries in Rust raise."""

    with pytest.raises(VocabularyError, match=r"value 1234: the tokenizer: .*Panic"):
        Trie.from_strings(Vocab.from_tiktoken(Faulty(Panic())), values)


def test_odd_answers_of_the_library() -> None:
    class Odd(Faulty):
        def __init__(self, answer: Any) -> None:
            self.answer = answer

        def encode_ordinary(self, text: str) -> Any:
            return self.answer if "!" in text else [*text.encode()]

    for answer, says in [
        ([256], "token id 256 at position 0 is outside the vocabulary of 256 tokens"),
        ([2**31], "the tokenizer: it gave the token id 2147483648"),
        ([-1], "OverflowError"),
        (None, "TypeError"),
        (["a"], "TypeError"),
    ]:
        with pytest.raises(VocabularyError, match=f"value 1: .*{says}"):
            Trie.from_strings(Vocab.from_tiktoken(Odd(answer)), ["a", "!"])
    with pytest.raises(VocabularyError, match='value 1: the tokens of "!" spell ""'):
        Trie.from_strings(Vocab.from_tiktoken(Odd([])), ["a", "!"])


@needs_tiktoken
def test_encodings(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256}
    made = tiktoken.Encoding("holes", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|return|>": 260})
    vocab = Vocab.from_tiktoken(made)
    assert [vocab.kind(token) for token in range(255, 261)] == ["text", "text", *["unused"] * 3, "control"]
    assert (vocab.eog, vocab.control, vocab[260]) == ([260], [260], b"<|return|>")
    assert vocab.tokenize("ab<|return|>", parse_special=True) == [256, 260]
    assert 260 not in vocab.tokenize("ab<|return|>", add_special=True)
    assert len(Vocab.from_tiktoken(made, n_vocab=300)) == 300
    with pytest.raises(VocabularyError, match='the encoding "no_such": tiktoken: '):
        Vocab.from_tiktoken("no_such")
    with pytest.raises(TypeError, match=r"must be a tiktoken.Encoding or its name, not int"):
        Vocab.from_tiktoken(5)
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(VocabularyError, match='"cl100k_base": this needs the Python package tiktoken'):
        Vocab.from_tiktoken("cl100k_base")


def same(one: Vocab, other: Vocab) -> None:
    assert one.fingerprint == other.fingerprint
    assert [one.kind(token) for token in range(len(one))] == [other.kind(token) for token in range(len(other))]


@pytest.mark.model
def test_pickles(tiny_path: Path) -> None:
    listed = Vocab.from_tokens([b"a", b"", b"<s>"], eog=[0], control=[2])
    same(pickle.loads(pickle.dumps(listed)), listed)
    same(pickle.loads(pickle.dumps(Vocab.from_gguf(tiny_path))), Vocab.from_gguf(tiny_path))
    vocab = Vocab.from_tokenizer(hugging_face("tiny"), eog=[7], n_vocab=3000)
    for again in (pickle.loads(pickle.dumps(vocab)), copy.deepcopy(vocab)):
        same(again, vocab)
        assert again.tokenize("hello <|im_end|>") == vocab.tokenize("hello <|im_end|>")


@needs_tiktoken
def test_pickled_encodings() -> None:
    vocab = of_tiktoken("tiny")
    again = pickle.loads(pickle.dumps(vocab))
    same(again, vocab)
    assert again.tokenize("hello") == vocab.tokenize("hello")


@pytest.mark.model
def test_threads_do_not_wait_for_each_other() -> None:
    values = names(300)
    expected = [Trie.from_strings(of_gguf("tiny"), values), of_gguf("tiny").tokenize("a b c")]
    vocab = Vocab.from_tokenizer(hugging_face("tiny"))
    found: list[list[Any]] = [[] for _ in range(8)]

    def work(number: int) -> None:
        for _ in range(5):
            found[number] = [Trie.from_strings(vocab, values), vocab.tokenize("a b c")]
            assert vocab.detokenize(vocab.tokenize("a b", parse_special=True)) == "a b"
            vocab.tokens_with_prefix(b"a")

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive(), "threads wait for each other"
    assert found == [expected] * 8


LETTERS = "abAB 1.\n<|>é日▁\u0301"


@settings(max_examples=cases(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_text(data: st.DataObject) -> None:
    """The ids of the library, or a refusal by name: never a leaf that spells something else."""
    name = data.draw(st.sampled_from([name for name in ("tiny", "llama-spm") if name in PATHS]))
    part = st.text(LETTERS, max_size=8) | st.sampled_from(SPECIAL)
    values = data.draw(st.lists(st.builds(str.__add__, part, part).filter(bool), min_size=1, max_size=5, unique=True))
    vocab = of_hugging_face(name)
    try:
        trie = Trie.from_strings(vocab, values)
    except VocabularyError as error:
        # Only the character that stands for a space is lost.
        assert name == "llama-spm"
        row = int(str(error).split(":")[0].removeprefix("value "))
        assert "▁" in values[row]
        return
    own = dict(zip(values, own_ids(name, values), strict=True))
    assert {leaf.name: leaf.tokens for leaf in trie} == own
    assert all(vocab.detokenize(leaf.tokens) == leaf.name for leaf in trie)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_pipes_and_devices_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "tokenizer.json")
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(VocabularyError, match=f"cannot read {path}: it is a pipe or a device, not a file"):
            Vocab.from_tokenizer(path)


def test_decoders_that_grow_without_bound(tmp_path: Path) -> None:
    doubles = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    file = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file | {"decoder": {"type": "Sequence", "decoders": [doubles] * 60}}))
    with pytest.raises(VocabularyError, match='the decoder makes 131072 bytes of the token "a"'):
        Vocab.from_tokenizer(path)
    path.write_text(json.dumps(file | {"normalizer": {"type": "Sequence", "normalizers": [doubles] * 60}}))
    with pytest.raises(VocabularyError, match=r"the normalizer can make a text 1\.15.*e18 times as long"):
        Vocab.from_tokenizer(path)
    path.write_text(json.dumps({"model": {"type": "BPE", "vocab": {"a": 2**32 - 1}, "merges": []}}))
    with pytest.raises(VocabularyError, match="token id 4294967295 is over the limit of 16777215"):
        Vocab.from_tokenizer(path)
