"""Sets of text: what the tokenizer writes, healed borders, every spelling, and what is refused."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from models import TINY
from support import vocabulary_files
from tokentrie import OptionError, Trie, TrieError, Vocab, VocabularyError

PATHS = [TINY, *vocabulary_files()]
LETTERS = Vocab.from_tokens([b"a", b"b", b"ab", b"ba", b"a", b"", b"<s>", b"aa"], eog=[7], control=[6])
WORDS = [
    "the",
    "of",
    "history",
    "Winter",
    "city",
    "river",
    "cloud",
    "Zürich",
    "naïve",
    "東京",
    "I'll",
    "1984",
    "(new)",
    "C++",
    "x-ray",
    "e.g.",
    "<|tool_call>",
    "[PAD151646]",
]


@cache
def vocabulary(path: Path) -> Vocab:
    """Loaded once."""
    return Vocab.from_gguf(path)


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def vocab(request: pytest.FixtureRequest) -> Vocab:
    """Each vocabulary in turn."""
    return vocabulary(request.param)


def has_own_space(vocab: Vocab) -> bool:
    """Whether the tokenizer puts a space before a text."""
    return b"".join(vocab[token] for token in vocab.tokenize("a")) == b" a"


def names(count: int, seed: int = 7) -> list[str]:
    """Different titles: known words, made-up ones, odd spaces."""
    chance, found = random.Random(seed), dict[str, None]()
    while len(found) < count:
        made = "".join(chance.choice("aeioubcdfgklmnprstvz") for _ in range(chance.randint(2, 9)))
        words = [chance.choice([*WORDS, made.capitalize(), made]) for _ in range(chance.randint(1, 6))]
        found["".join(word + chance.choice([" "] * 20 + ["  ", ", ", "\n", "\t "]) for word in words).rstrip()] = None
    return list(found)


def check(vocab: Vocab, values: list[str], prefix: str, suffix: str) -> Trie:
    """Leaves are what llama.cpp writes for each whole text."""
    trie = Trie.from_strings(vocab, values, prefix, suffix, heal=True)
    before = vocab.tokenize(prefix)
    whole = {value: vocab.tokenize(f"{prefix}{value}{suffix}") for value in values}
    kept = min(
        next((at for at, token in enumerate(before) if at >= len(tokens) or tokens[at] != token), len(before))
        for tokens in whole.values()
    )
    assert {leaf.name: leaf.tokens for leaf in trie} == {value: tokens[kept:] for value, tokens in whole.items()}
    assert [values[row] for row in trie.input_rows] == [leaf.name for leaf in trie]
    straddling = [row for row, tokens in enumerate(whole.values()) if tokens[: len(before)] != before]
    assert trie.report == {
        "values": len(values),
        "straddling": len(straddling),
        "first_straddling": straddling[:8],
    }
    assert trie.heal_bytes == min(len(prefix.encode()), sum(len(vocab[token]) for token in before[kept:]))
    healed = prefix.encode()[len(prefix.encode()) - trie.heal_bytes :]
    own = b" " if kept == 0 and has_own_space(vocab) else b""
    for leaf in trie:
        assert leaf.name is not None
        assert b"".join(vocab[token] for token in leaf.tokens) == own + healed + f"{leaf.name}{suffix}".encode()
    return trie


@pytest.mark.parametrize(("prefix", "suffix"), [("", "\n"), ('{"title": "', '"}'), ("The title is", ".")])
def test_many_names(vocab: Vocab, prefix: str, suffix: str) -> None:
    check(vocab, names(2_000), prefix, suffix)


def test_a_token_over_the_border(vocab: Vocab) -> None:
    values, prefix = ["//example.org", "dog", "//"], "see http:"
    straddling = sum(
        vocab.tokenize(prefix + value)[: len(vocab.tokenize(prefix))] != vocab.tokenize(prefix) for value in values
    )
    healed = check(vocab, values, prefix, "\n")
    if not straddling:
        assert healed.heal_bytes == 0
        assert Trie.from_strings(vocab, values, prefix, "\n") == healed
        return
    assert healed.heal_bytes > 0
    message = rf'value 0: "//example.org" has a token that spans the border .* "{prefix}"; {straddling} of 3 values do'
    with pytest.raises(VocabularyError, match=message + ": .* heal=True"):
        Trie.from_strings(vocab, values, prefix, "\n")


def test_borders_straddle_somewhere() -> None:
    vocab = vocabulary(TINY)
    letters = [chr(byte) for byte in range(33, 127)]
    for prefix in ("the r", "a", "1"):
        trie = check(vocab, [a + b for a in letters for b in letters], prefix, "")
        assert trie.report is not None
        assert trie.report["straddling"] > 0
        assert trie.heal_bytes > 0


def test_odd_values(vocab: Vocab) -> None:
    odd = [
        " lead",
        "  two",
        "tail ",
        "a",
        "ab",
        "abc",
        "nul\0byte",
        "\0",
        "é",
        "e\u0301",
        "\n",
        " ",
        "日本語",
        "x" * 3000,
        "🙂",
    ]
    check(vocab, odd, "", "")
    check(vocab, ["", *odd], "", "\n;")
    again = Trie.from_strings(vocab, ["b", "a", "b", "b"])
    assert len(again) == 2
    assert sorted(again.input_rows) == [0, 1]
    with pytest.raises(TrieError, match="row 1 is empty"):
        Trie.from_strings(vocab, [" a", ""], "in")
    with pytest.raises(TrieError, match="no leaf"):
        Trie.from_strings(vocab, [], heal=True)


def test_a_prefix_that_is_all_taken_back(vocab: Vocab) -> None:
    """Where nothing of the prompt is kept, an empty value is the prompt itself."""
    trie = check(vocab, ["e", "he", "1"], "t", "")
    if trie.heal_bytes:
        assert len(check(vocab, ["", "e", "he", "1"], "t", "")) == 4


def test_values_that_do_not_round_trip(tmp_path: Path) -> None:
    path = next((path for path in vocabulary_files() if path.stem.endswith("spm")), None)
    if path is None:
        pytest.skip("needs a vocabulary that writes ▁ for a space")
    with pytest.raises(VocabularyError, match='value 1: the tokens of "in a\u2581b" spell " in a b"'):
        Trie.from_strings(vocabulary(path), ["ok", "a\u2581b"], "in ", heal=True)
    with pytest.raises(VocabularyError, match='prefix: the tokens of "\u2581" spell'):
        Trie.from_strings(vocabulary(path), ["ok"], "\u2581")


def test_what_is_no_list_of_text() -> None:
    vocab = vocabulary(TINY)
    with pytest.raises(TypeError, match="not one str"):
        Trie.from_strings(vocab, "abc")
    with pytest.raises(TypeError, match="value 1 must be a str, not 5 of type int"):
        Trie.from_strings(vocab, ["a", 5])  # type: ignore[list-item]
    with pytest.raises(UnicodeEncodeError, match="surrogates"):
        Trie.from_strings(vocab, ["a", "\ud800"])
    with pytest.raises(OptionError, match='"best": it must be "canonical" or "all"'):
        Trie.from_strings(vocab, ["a"], tokenization="best")  # type: ignore[arg-type]
    for heal in (False, True):
        with pytest.raises(VocabularyError, match="cannot tokenize"):
            Trie.from_strings(LETTERS, ["a"], heal=heal)
    assert len(Trie.from_strings(vocab, (value for value in ("a", "b")))) == 2
    assert Trie.from_sequences([[1]]).report is None
    assert Trie.from_sequences([[1]]).heal_bytes == 0


def test_every_spelling_of_a_list_of_tokens() -> None:
    trie = Trie.from_strings(LETTERS, ["aba", "b", "aba"], tokenization="all")
    # Tokens 0 and 4 are both "a"; "aa" ends a generation and is no text.
    aba = [[a, 1, b] for a in (0, 4) for b in (0, 4)] + [[2, a] for a in (0, 4)] + [[a, 3] for a in (0, 4)]
    assert {tuple(leaf.tokens): leaf.name for leaf in trie} == {tuple(tokens): "aba" for tokens in aba} | {(1,): "b"}
    assert sorted(trie.input_rows) == [0] * 8 + [1]
    assert len(Trie.from_strings(LETTERS, ["aa"], tokenization="all")) == 4
    with pytest.raises(VocabularyError, match='value 1: no tokens of this vocabulary spell "xa"'):
        Trie.from_strings(LETTERS, ["a", "xa"], tokenization="all")
    with pytest.raises(
        TrieError, match='value 1: with the 1 spellings of "bb" there are 3 token sequences, over the limit of 2'
    ):
        Trie.from_strings(LETTERS, ["a", "bb"], tokenization="all", max_sequences=2)
    with pytest.raises(TrieError, match="over the limit of 1000000"):
        Trie.from_strings(LETTERS, ["ab" * 5000], tokenization="all")
    with pytest.raises(TrieError, match="row 0 is empty"):
        Trie.from_strings(LETTERS, [""], tokenization="all")


@pytest.mark.parametrize(("prefix", "heal"), [("", False), ("see http:", False), ("see http:", True), ("t", True)])
def test_every_spelling(vocab: Vocab, prefix: str, heal: bool) -> None:
    values = ["yes", "//a b", "日"]
    trie = Trie.from_strings(vocab, values, prefix, "\n", tokenization="all", heal=heal)
    own = b" " if has_own_space(vocab) and len(prefix) == trie.heal_bytes else b""
    text = own + prefix.encode()[len(prefix) - trie.heal_bytes :]
    for leaf, row in zip(trie, trie.input_rows, strict=True):
        assert b"".join(vocab[token] for token in leaf.tokens) == text + f"{leaf.name}\n".encode()
        assert leaf.name == values[row]
    canonical = Trie.from_strings(vocab, values, prefix, "\n", heal=True)
    if canonical.heal_bytes == trie.heal_bytes:
        assert all(leaf.tokens in trie for leaf in canonical)
    assert {leaf.name for leaf in trie} == set(values)
    assert len(trie) > len(values)


def test_tokens_by_their_bytes(vocab: Vocab) -> None:
    none = {*vocab.eog, *vocab.control}
    texts = {token: vocab[token] for token in range(len(vocab)) if token not in none and vocab[token]}
    for text in (b"", b"a", b" the", b"\xe6", b"hello world", b"\0\0"):
        found = vocab.tokens_with_prefix(text)
        assert found.dtype == np.int32
        assert set(found.tolist()) <= {token for token, piece in texts.items() if piece.startswith(text)}
        assert found.tolist() == sorted(found.tolist())
        begin = vocab.prefix_tokens(text)
        assert begin.dtype == np.int32
        assert begin.tolist() == sorted(
            (token for token, piece in texts.items() if text.startswith(piece)),
            key=lambda token: (len(texts[token]), token),
        )
    assert {token for token, piece in texts.items() if piece.startswith(b"a")} == set(
        vocab.tokens_with_prefix(b"a").tolist()
    )


def test_tokens_of_a_list_by_their_bytes() -> None:
    assert LETTERS.tokens_with_prefix(b"").tolist() == [0, 1, 2, 3, 4]
    assert LETTERS.tokens_with_prefix(b"a").tolist() == [0, 2, 4]
    assert LETTERS.prefix_tokens(b"aba").tolist() == [0, 4, 2]
    assert LETTERS.prefix_tokens(b"").tolist() == []
    with pytest.raises(TypeError):
        LETTERS.prefix_tokens("a")  # type: ignore[arg-type]
