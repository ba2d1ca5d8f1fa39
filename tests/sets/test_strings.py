"""Sets of text: what the tokenizer writes, healed boundaries, every tokenisation, and what is refused."""

from __future__ import annotations

import pickle
import random
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tokentrie
from models import TINY
from support import vocabulary_files
from tokentrie import Trie, Vocab
from tokentrie.errors import OptionError, TrieError, VocabularyError

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
    "'S",
    "don't",
    "iPhone",
    "12345",
    "٣٤",
    "½",
    "e\u0301",
    "\u0301x",
    "👩\u200d👩\u200d👧",
    "한국어",
    "nul\0",
    "\ufeff",
    "\x85",
    "<unk>",
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
        found[
            "".join(
                word + chance.choice([" "] * 20 + ["  ", ", ", "\n", "\t ", "   ", "\r\n", " \n ", "\u3000", ""])
                for word in words
            ).rstrip()
        ] = None
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
    crossing = [row for row, tokens in enumerate(whole.values()) if tokens[: len(before)] != before]
    assert trie.report == {
        "values": len(values),
        "crossing": len(crossing),
        "first_crossing": crossing[:8],
    }
    assert trie.heal_bytes == sum(len(vocab[token]) for token in before[kept:])
    healed = prefix.encode()[max(0, len(prefix.encode()) - trie.heal_bytes) :]
    own = b" " if kept == 0 and has_own_space(vocab) else b""
    for leaf in trie:
        assert leaf.name is not None
        assert b"".join(vocab[token] for token in leaf.tokens) == own + healed + f"{leaf.name}{suffix}".encode()
    return trie


@pytest.mark.model
@pytest.mark.parametrize(("prefix", "suffix"), [("", "\n"), ('{"title": "', '"}'), ("The title is", ".")])
def test_many_names(vocab: Vocab, prefix: str, suffix: str) -> None:
    check(vocab, names(2_000), prefix, suffix)


@pytest.mark.model
def test_a_token_over_the_boundary(vocab: Vocab) -> None:
    values, prefix = ["//example.org", "dog", "//"], "see http:"
    crossing = sum(
        vocab.tokenize(prefix + value)[: len(vocab.tokenize(prefix))] != vocab.tokenize(prefix) for value in values
    )
    healed = check(vocab, values, prefix, "\n")
    if not crossing:
        assert healed.heal_bytes == 0
        assert Trie.from_strings(vocab, values, prefix, "\n") == healed
        return
    assert healed.heal_bytes > 0
    message = rf'value 0: "//example.org" has a token that crosses the boundary.* "{prefix}"; {crossing} of 3'
    with pytest.raises(VocabularyError, match=message + " values do: .* heal=True"):
        Trie.from_strings(vocab, values, prefix, "\n")


@pytest.mark.model
def test_some_tokens_cross_a_boundary() -> None:
    vocab = vocabulary(TINY)
    letters = [chr(byte) for byte in range(33, 127)]
    for prefix in ("the r", "a", "1"):
        trie = check(vocab, [a + b for a in letters for b in letters], prefix, "")
        assert trie.report is not None
        assert trie.report["crossing"] > 0
        assert trie.heal_bytes > 0


@pytest.mark.model
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
    with pytest.raises(TrieError, match="value 1 is empty"):
        Trie.from_strings(vocab, [" a", ""], "in")
    with pytest.raises(TrieError, match="no leaf"):
        Trie.from_strings(vocab, [], heal=True)


@pytest.mark.model
def test_a_prefix_that_is_all_taken_back(vocab: Vocab) -> None:
    """Where nothing of the prompt is kept, an empty value is the prompt itself."""
    trie = check(vocab, ["e", "he", "1"], "t", "")
    if trie.heal_bytes:
        assert len(check(vocab, ["", "e", "he", "1"], "t", "")) == 4


@pytest.mark.model
def test_values_that_do_not_round_trip(tmp_path: Path) -> None:
    path = next((path for path in vocabulary_files() if path.stem.endswith("spm")), None)
    if path is None:
        pytest.skip("needs a vocabulary that writes ▁ for a space")
    with pytest.raises(VocabularyError, match='value 1: the tokens of "in a\u2581b" spell " in a b"'):
        Trie.from_strings(vocabulary(path), ["ok", "a\u2581b"], "in ", heal=True)
    with pytest.raises(VocabularyError, match='prefix: the tokens of "\u2581" spell'):
        Trie.from_strings(vocabulary(path), ["ok"], "\u2581")


@pytest.mark.model
def test_what_is_no_list_of_text() -> None:
    vocab = vocabulary(TINY)
    with pytest.raises(TypeError, match="not one str"):
        Trie.from_strings(vocab, "abc")
    with pytest.raises(TypeError, match="value 1 must be a str, not 5 of type int"):
        Trie.from_strings(vocab, ["a", 5])  # type: ignore[list-item]
    with pytest.raises(VocabularyError, match="half a surrogate pair"):
        Trie.from_strings(vocab, ["a", "\ud800"])
    with pytest.raises(OptionError, match='"best": it must be "canonical" or "all"'):
        Trie.from_strings(vocab, ["a"], tokenization="best")  # type: ignore[arg-type]
    for heal in (False, True):
        with pytest.raises(VocabularyError, match="cannot tokenize"):
            Trie.from_strings(LETTERS, ["a"], heal=heal)
    assert len(Trie.from_strings(vocab, (value for value in ("a", "b")))) == 2
    assert Trie.from_sequences([[1]]).report is None
    assert Trie.from_sequences([[1]]).heal_bytes == 0


def sequences(trie: Trie) -> dict[tuple[int, ...], int]:
    """Every sequence that ends at a leaf, with the leaf: one step at a time."""
    found: dict[tuple[int, ...], int] = {}
    open_: list[tuple[int, ...]] = [()]
    while open_:
        tokens = open_.pop()
        leaf = trie.find(tokens)
        if leaf is not None:
            found[tokens] = leaf
        open_ += [(*tokens, token) for token in trie.allowed(tokens).tolist()]
    return found


def test_every_tokenisation_of_a_list_of_tokens() -> None:
    trie = Trie.from_strings(LETTERS, ["b", "aba", "b"], tokenization="all")
    # Tokens 0 and 4 are both "a"; "aa" ends a generation and is no text.
    aba = [[a, 1, b] for a in (0, 4) for b in (0, 4)] + [[2, a] for a in (0, 4)] + [[a, 3] for a in (0, 4)]
    assert sequences(trie) == {tuple(tokens): 0 for tokens in aba} | {(1,): 1}
    assert (len(trie), trie.names, trie.input_rows.tolist(), trie.is_tree) == (2, ["aba", "b"], [1, 0], False)
    assert [leaf.tokens for leaf in trie] == [[2, 0], [1]], "the fewest tokens, where no tokenizer says"
    assert len(sequences(Trie.from_strings(LETTERS, ["aa"], tokenization="all"))) == 4
    with pytest.raises(VocabularyError, match='value 1: no tokens of this vocabulary spell "xa"'):
        Trie.from_strings(LETTERS, ["a", "xa"], tokenization="all")
    with pytest.raises(TrieError, match="value 0 is empty"):
        Trie.from_strings(LETTERS, [""], tokenization="all")
    with pytest.raises(OptionError, match="open_end goes with"):
        Trie.from_strings(LETTERS, ["a"], tokenization="all", open_end=True)


def test_tokenisations_without_number() -> None:
    trie = Trie.from_strings(LETTERS, ["ab" * 5000, "b"], tokenization="all")
    assert len(trie) == 2
    assert trie.nodes == 10_002
    assert trie.nbytes < 600_000
    assert [4, 1] * 5000 in trie
    assert [2] * 4999 + [0, 1] in trie
    assert [2] * 4999 not in trie


@pytest.mark.model
def test_forced_text_comes_in_canonical_tokens(vocab: Vocab) -> None:
    values = ["create_calendar_entry", "create_calendar_invitation"]
    trie = Trie.from_strings(vocab, values, tokenization="all")
    canonical = [vocab.tokenize(value) for value in values]
    common = next(at for at, (a, b) in enumerate(zip(*canonical, strict=False)) if a != b)
    forced = trie.forced().tolist()
    assert forced == canonical[0][:common], "what the tokenizer writes for both"
    assert set(trie.names or []) == set(values)
    # After another tokenisation the rest is spelled as the tokenizer spells it, and no value is lost.
    for token in trie.allowed().tolist():
        walked = [token, *trie.forced([token]).tolist()]
        text = vocab.detokenize_bytes(walked).lstrip()
        assert b"create_calendar_".startswith(text) or text.startswith(b"create_calendar_")
        assert len(list(trie.leaves(walked))) == 2
    one = Trie.from_strings(vocab, values[:1], tokenization="all")
    assert one.forced().tolist() == canonical[0]


@pytest.mark.model
@pytest.mark.parametrize(("prefix", "heal"), [("", False), ("see http:", False), ("see http:", True), ("t", True)])
def test_every_tokenisation(vocab: Vocab, prefix: str, heal: bool) -> None:
    values = ["yes", "//a b", "日"]
    trie = Trie.from_strings(vocab, values, prefix, "\n", tokenization="all", heal=heal)
    own = b" " if has_own_space(vocab) and len(prefix) <= trie.heal_bytes else b""
    text = own + prefix.encode()[max(0, len(prefix) - trie.heal_bytes) :]
    names = trie.names or []
    for tokens, leaf in sequences(trie).items():
        assert b"".join(vocab[token] for token in tokens) == text + f"{names[leaf]}\n".encode()
    assert [values[row] for row in trie.input_rows] == names
    canonical = Trie.from_strings(vocab, values, prefix, "\n", heal=True)
    if canonical.heal_bytes == trie.heal_bytes:
        assert all(leaf.tokens in trie for leaf in canonical)
        assert {leaf.name: leaf.tokens for leaf in trie} == {leaf.name: leaf.tokens for leaf in canonical}
    assert len(sequences(trie)) > len(trie) == len(values)


@pytest.mark.model
def test_open_ends(vocab: Vocab) -> None:
    values = ["yes", "no", "yes, sir"]
    for suffix in ("", '"'):
        trie = Trie.from_strings(vocab, values, suffix=suffix, open_end=True)
        own = {leaf.name: leaf.tokens for leaf in Trie.from_strings(vocab, values, suffix=suffix)}
        assert {leaf.name: leaf.tokens for leaf in trie} == own
        prefixes = {tuple(tokens[:end]) for tokens in own.values() for end in range(len(tokens) + 1)}
        expected = {tuple(tokens): name for name, tokens in own.items()}
        # Of several values that a token goes beyond, the longest.
        for name, tokens in sorted(own.items(), key=lambda item: len(item[0])):
            for kept in range(len(tokens)):
                rest = vocab.detokenize_bytes(tokens[kept:]) if kept else b"".join(map(vocab.__getitem__, tokens))
                for token in vocab.tokens_with_prefix(rest).tolist():
                    sequence = (*tokens[:kept], token)
                    if vocab[token] != rest and sequence not in prefixes:
                        expected[sequence] = name
        names = trie.names or []
        assert {tokens: names[leaf] for tokens, leaf in sequences(trie).items()} == expected


def test_sets_of_many_sequences_are_no_trees(tmp_path: Path) -> None:
    vocab = Vocab.from_tokens([b"a", b"b", b"ab", b"ba", b'"', b'",'])
    spelled = Trie.from_strings(vocab, ["ab", "aba"], suffix='"', tokenization="all")
    other = Trie.from_strings(vocab, ["ab"], suffix='"', tokenization="all")
    for trie in (spelled, other):
        assert pickle.loads(pickle.dumps(trie)) == trie
        trie.save(tmp_path / "set.ttrie", vocab)
        opened = Trie.open(tmp_path / "set.ttrie", vocab=vocab, verify=True)
        assert opened == trie
        assert opened == Trie.from_bytes(trie.to_bytes(vocab), vocab=vocab)
        assert hash(opened) == hash(trie)
        assert sequences(opened) == sequences(trie)
        assert not opened.is_tree
    assert other <= spelled
    assert not spelled <= other
    assert not other.isdisjoint(spelled)
    for change in (lambda: spelled | other, lambda: spelled & other, lambda: spelled.filter(lambda _: True)):
        with pytest.raises(TrieError, match="several sequences stand for one value"):
            change()
    with pytest.raises(TrieError, match="several sequences stand for one value"):
        spelled.sample(1)
    assert re.fullmatch(spelled.to_regex(), "aba")
    assert spelled.to_json_schema_enum()["enum"] == ["ab", "aba"]
    assert spelled.to_svg(vocab).count("ab") >= 2
    with pytest.raises(TrieError, match="a slot takes texts"):
        tokentrie.Form(tokentrie.Slot("x", spelled))


@pytest.mark.model
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
