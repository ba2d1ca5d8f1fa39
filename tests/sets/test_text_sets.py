"""A list of str is a set wherever a set is taken; one str is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from models import TINY, precise_model
from tokentrie import Form, Sampler, Slot, Trie, Vocab
from tokentrie.errors import OptionError, PayloadError, TrieError, VocabularyError
from tokentrie.sets import TrieCache

VALUES = ["open the door", "open the window", "stop"]


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return Vocab.from_gguf(TINY)


FACES: dict[str, Callable[..., Sampler]] = {"sampler": Sampler, "session": TrieCache().sampler}


@pytest.mark.model
@pytest.mark.parametrize("make", FACES.values(), ids=FACES)
@pytest.mark.parametrize("form", [list, tuple])
def test_a_list_of_texts_is_their_set(vocab: Vocab, make: Callable[..., Sampler], form: Callable[..., Any]) -> None:
    sampler = make(vocab, form(VALUES))
    assert sampler.trie == Trie.from_strings(vocab, VALUES)
    assert (sampler.path, sampler.paths) == ("", [""])
    logits = np.zeros(len(vocab), np.float32)
    logits[vocab.tokenize("stop")[0]] = 1.0
    assert vocab.detokenize(sampler.advance(logits)) == "stop"
    assert sampler.leaf is not None
    assert sampler.leaf.name == "stop"


@pytest.mark.model
@pytest.mark.parametrize("make", FACES.values(), ids=FACES)
def test_repeated_texts_are_one_leaf(vocab: Vocab, make: Callable[..., Sampler]) -> None:
    assert len(make(vocab, ["yes", "no", "yes"]).trie) == 2


@pytest.mark.model
@pytest.mark.parametrize("make", FACES.values(), ids=FACES)
def test_lists_that_are_no_set(vocab: Vocab, make: Callable[..., Sampler]) -> None:
    with pytest.raises(TrieError, match="no leaf"):
        make(vocab, [])
    with pytest.raises(TrieError, match="value 1 is empty"):
        make(vocab, ["yes", ""])
    with pytest.raises(TypeError, match="value 1 must be a str, not 5 of type int"):
        make(vocab, ["yes", 5])
    with pytest.raises(VocabularyError, match="value 0: half a surrogate pair"):
        make(vocab, ["\ud800"])


@pytest.mark.parametrize("make", FACES.values(), ids=FACES)
def test_texts_need_a_tokenizer(make: Callable[..., Sampler]) -> None:
    with pytest.raises(TypeError, match=r"a list of str needs a Vocab that can tokenize, not only the size 10"):
        make(10, ["yes", "no"])
    pieces = Vocab.from_tokens([b"yes", b"no"])
    with pytest.raises(VocabularyError, match="made from a list of tokens: it cannot tokenize"):
        make(pieces, ["yes", "no"])


def test_a_tokenizer_of_python_gives_its_ids() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ye": 256, b"yes": 257}
    encoding = tiktoken.Encoding("toy", pat_str=r".+", mergeable_ranks=ranks, special_tokens={})
    sampler = Sampler(Vocab.from_tiktoken(encoding), ["yes", "no"])
    assert [leaf.tokens for leaf in sampler.trie] == [[110, 111], [257]]


@pytest.mark.model
def test_slots_take_the_same_texts() -> None:
    out = precise_model("trained").generate("Do: ", Form("-", Slot("what", VALUES), "."))
    assert out.values["what"] in VALUES


ONE = ["yes", "  no", '"yes"', "true", "5", "a {", "null"]


@pytest.mark.model
@pytest.mark.parametrize("text", ONE)
def test_one_text_is_no_list(vocab: Vocab, text: str) -> None:
    """A str is a payload's JSON. What does not begin like that was meant as a value."""
    model = precise_model("trained")
    calls: dict[str, Callable[[], object]] = {
        "constraint": lambda: Sampler(vocab, text),
        "values": lambda: Slot("x", text),
        "choices": lambda: model.choose("Is it?", text),
    }
    for what, call in calls.items():
        with pytest.raises(PayloadError, match=rf"^{what} must be a list of str, not one str: give") as caught:
            call()
        assert f"give [{json.dumps(text)}]" in str(caught.value)
        assert "line 1, column" in str(caught.value), "and why it is no payload"
    with pytest.raises(PayloadError, match=r"^constraint must be a list of str"):
        model.generate("Is it?", text)
    with pytest.raises(PayloadError, match=r"^choices must be a list of str"):
        next(model.choose_many(["Is it?"], text))
    with pytest.raises(TypeError, match=r"^values must be a list of str, not one str: give"):
        Trie.from_strings(vocab, text)


@pytest.mark.model
def test_long_texts_are_not_shown_whole(vocab: Vocab) -> None:
    with pytest.raises(PayloadError) as caught:
        Sampler(vocab, "word " * 10_000)
    assert len(str(caught.value)) < 400


@pytest.mark.model
@pytest.mark.parametrize("text", ["{", ' {"descriptors": []}', '{"a": 1} yes'])
def test_what_begins_like_json_is_a_payload(vocab: Vocab, text: str) -> None:
    for call in (lambda: Sampler(vocab, text), lambda: precise_model("trained").choose("Is it?", text)):
        with pytest.raises(PayloadError, match=r"^payload, line|^payload: no"):
            call()
    with pytest.raises((PayloadError, OptionError), match=r"^payload, line|^payload: no"):
        Slot("x", text)


@pytest.mark.model
@pytest.mark.parametrize("text", ["[1]", '\n["yes", "no"]', "[a-z]+"])
def test_what_begins_like_a_list_is_none(vocab: Vocab, text: str) -> None:
    with pytest.raises(PayloadError, match=r"^constraint must be a list of str, not one str: .* Regex"):
        Sampler(vocab, text)


def test_a_payload_is_wanted_where_no_list_is_taken() -> None:
    with pytest.raises(PayloadError, match=r"^payload, line 1, column 1"):
        Trie.from_payload("yes")
    with pytest.raises(PayloadError, match=r"^payload, line 1, column 1"):
        Sampler(10, b"yes")
