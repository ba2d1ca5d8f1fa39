"""Looking leaves up by text: names and the bytes of tokens, against brute force over all leaves."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tokentrie
from budget import cases
from tokentrie import Trie, Vocab
from tokentrie.errors import OptionError, TrieError, VocabularyError
from tokentrie.sets import Leaf

PIECES = [*"abcé ü🙂", "ab", "bc", "a b", "éa", "é\u00e9", "abc", "cab", "🙂a", "\n", *"xyz"]
#: Tokens of single bytes, then tokens of several characters, then tokens that cut a character in the middle.
TOKENS = (
    [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in PIECES] + [b"a\xc3", b"\xa9b", b"\xf0\x9f"]
)


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return Vocab.from_tokens(dict.fromkeys(TOKENS))


def some_text(rng: random.Random) -> str:
    return "".join(rng.choice(PIECES[:9]) for _ in range(rng.randint(1, 6)))


def some_tokens(rng: random.Random, vocab: Vocab, text: bytes) -> list[int]:
    """Tokens that spell a text, drawn: whoever looks it up knows nothing of them."""
    tokens = []
    while text:
        token = rng.choice(vocab.prefix_tokens(text).tolist())
        tokens.append(token)
        text = text[len(vocab[token]) :]
    return tokens


def beginnings(rng: random.Random, texts: list[bytes]) -> list[bytes]:
    whole = rng.choice(texts)
    return [b"", whole, whole[: rng.randint(0, len(whole))], whole + b"a", some_text(rng).encode(), b"\xff", b"\xc3"]


def expected(trie: Trie, begin: bytes, text: Callable[[Leaf], bytes]) -> list[Leaf]:
    return sorted((leaf for leaf in trie if text(leaf).startswith(begin)), key=lambda leaf: (text(leaf), leaf.index))


@pytest.mark.parametrize("seed", range(cases(300)))
def test_names_and_bytes_against_brute_force(vocab: Vocab, seed: int) -> None:
    rng = random.Random(seed)
    texts = [some_text(rng) for _ in range(rng.randint(1, 30))]
    # One name may stand for several leaves here, and each is spelled at random.
    rows = {tuple(some_tokens(rng, vocab, text.encode())): text for text in texts}
    trie = Trie.from_sequences([list(row) for row in rows], names=list(rows.values()), vocab=vocab)

    def name(leaf: Leaf) -> bytes:
        return str(leaf.name).encode()

    def spelled(leaf: Leaf) -> bytes:
        return b"".join(vocab[token] for token in leaf.tokens)

    for begin in beginnings(rng, [text.encode() for text in texts]):
        k = rng.choice([1, 2, 5, 100])
        for by, text, options in ((trie, name, {}), (trie, spelled, {"vocab": vocab})):
            found: dict[str, Any] = dict(options)
            assert by.complete(begin, None, **found) == expected(by, begin, text)
            assert by.complete(begin, k, **found) == expected(by, begin, text)[:k]
            whole = [leaf.index for leaf in by if text(leaf) == begin]
            assert by.find(begin, **found) == (min(whole) if whole else None)
        assert (begin in trie) == any(name(leaf) == begin for leaf in trie)
        try:
            readable = begin.decode()
        except UnicodeDecodeError:
            continue
        assert trie.complete(readable, k) == trie.complete(begin, k)
        assert (readable in trie) == (begin in trie)
        if len(trie) > 1:
            assert (readable in trie.filtered(deny=[0])) == any(leaf.name == readable for leaf in list(trie)[1:])


@pytest.mark.parametrize("seed", range(cases(100)))
def test_every_spelling_of_a_leaf(vocab: Vocab, seed: int) -> None:
    """A leaf with several spellings is found once, and by its bytes whichever tokens begin so."""
    rng = random.Random(seed)
    texts = sorted({some_text(rng) for _ in range(8)}, key=str.encode)
    trie = Trie.from_strings(vocab, texts, suffix="x", tokenization="all")
    assert not trie.is_tree
    for begin in beginnings(rng, [text.encode() for text in texts]):
        names = [text for text in texts if text.encode().startswith(begin)]
        assert [leaf.name for leaf in trie.complete(begin, None)] == names
        spelled = sorted((text + "x" for text in texts if (text + "x").encode().startswith(begin)), key=str.encode)
        assert [f"{leaf.name}x" for leaf in trie.complete(begin, None, vocab=vocab)] == spelled
        exact = [text for text in texts if (text + "x").encode() == begin]
        found = trie.find(begin, vocab=vocab)
        assert [leaf.name for leaf in trie if leaf.index == found] == exact


@pytest.mark.model
def test_what_a_healed_set_has_of_the_prompt_is_no_part_of_a_text() -> None:
    model = tokentrie.Model(n_ctx=256, n_threads=1)
    trie = Trie.from_strings(model.vocab, [" red", " reddish", " blue"], prefix="The sky is", heal=True)
    healed = Trie.from_strings(model.vocab, ["red", "reddish", "blue"], prefix="The sky is ", heal=True)
    for begin, set_ in ((" re", trie), ("re", healed)):
        assert [leaf.name for leaf in set_.complete(begin, vocab=model.vocab)] == [
            leaf.name for leaf in set_.complete(begin)
        ]
        assert set_.find(f"{begin}d", vocab=model.vocab) == set_.find(f"{begin}d") is not None
    # The point of it: tokens of half a word find some of what it begins, the text finds all.
    assert {leaf.name for leaf in trie.complete(" re")} == {" red", " reddish"}


def test_what_cannot_be_looked_up_is_said(vocab: Vocab) -> None:
    named, unnamed = Trie.from_sequences([[1]], names=["a"]), Trie.from_sequences([[97, 98]])
    for look in (lambda: "a" in unnamed, lambda: unnamed.find("a"), lambda: unnamed.complete("")):
        with pytest.raises(TrieError, match="no names to look a text up in: give a Vocab as vocab="):
            look()
    assert [leaf.tokens for leaf in unnamed.complete("a", vocab=vocab)] == [[97, 98]]
    for k in (0, -1, 2**32):
        with pytest.raises(OptionError, match=f"k is {k}"):
            named.complete("a", k)
    for wrong in (5, None, [1]):
        with pytest.raises(TypeError, match="text must be a str or bytes"):
            named.complete(wrong)  # type: ignore[arg-type]
    other = Vocab.from_tokens([b"a", b"b"])
    foreign = Trie.from_strings(vocab, ["ab"], tokenization="all")
    for look in (lambda: foreign.complete("a", vocab=other), lambda: foreign.find("a", vocab=other)):
        with pytest.raises(VocabularyError):
            look()
    with pytest.raises(VocabularyError):
        unnamed.complete("a", vocab=other)
    with pytest.raises(OptionError, match="vocab goes with a text"):
        named.find([1], vocab=vocab)
    assert named.complete("b") == []
    assert named.find("b") is None
    assert "b" not in named


def test_leaves_that_were_found_can_be_filtered_by() -> None:
    trie = Trie.from_sequences([[1, 2], [3], [4]], names=["Red Star", "Red Sky", "Blue"])
    near = trie.filtered(allow=trie.complete("Red", k=None))
    assert len(near) == 2
    assert [leaf.name for leaf in near.to_trie()] == ["Red Star", "Red Sky"]
    assert "Red Sky" in near
    assert "Blue" not in near
    assert [1, 2] in near
    with pytest.raises(OptionError, match="entry 0"):
        trie.filtered(allow=[Leaf(0, "other", [9])])


def test_ctrl_c_ends_a_long_look_up(vocab: Vocab) -> None:
    tokens = np.random.default_rng(3).integers(97, 123, size=(300_000, 8), dtype=np.int32)
    trie = Trie.from_sequences(tokens)
    begun = time.process_time()
    assert len(trie.complete("", None, vocab=vocab)) == len(trie)
    whole = time.process_time() - begun
    begun = time.process_time()
    threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        trie.complete("", None, vocab=vocab)
    assert time.process_time() - begun < whole / 2
    assert len(trie.complete("a", 5, vocab=vocab)) == 5
