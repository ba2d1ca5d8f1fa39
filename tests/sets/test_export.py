"""Tries as grammars for other hosts, and drawn."""

from __future__ import annotations

import json
import random
import re
from xml.etree import ElementTree

import pytest
from budget import cases
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import GRAMMAR_ALPHABETS
from tokentrie import Model, Trie, Vocab
from tokentrie.errors import OptionError, TrieError, VocabularyError

BYTES = Vocab.from_tokens([bytes([byte]) for byte in range(256)])

TEXT = st.text(
    st.one_of(st.sampled_from('ab"\\\n.|)(?*[]{}^$-#/&~ \0\x7f\x85é日🙂'), st.characters(exclude_categories=["Cs"]))
)
TEXTS = st.sets(TEXT.filter(bool), min_size=1, max_size=30)


def spelled(texts: set[str]) -> Trie:
    """Their bytes as tokens, without names."""
    return Trie.from_sequences([list(text.encode()) for text in texts])


def named(texts: list[str]) -> Trie:
    return Trie.from_sequences([[token] for token in range(len(texts))], texts)


@given(TEXTS, TEXT)
@settings(deadline=None)
@example({"REPLY", "REPLY_THREAD"}, "REPLY_")
@example({"a" * length for length in range(1, 200)}, "a" * 200)
def test_a_regex_matches_exactly_the_values(texts: set[str], other: str) -> None:
    for pattern in (spelled(texts).to_regex(BYTES), named([*texts]).to_regex()):
        compiled = re.compile(pattern)
        assert all(compiled.fullmatch(text) for text in texts)
        candidates = {other, "", *(text[:-1] for text in texts), *(text + text[-1] for text in texts)}
        assert all(bool(compiled.fullmatch(text)) == (text in texts) for text in candidates)
        # It prefers the longest value, and can stand inside another pattern.
        longest = max((text for text in texts if other.startswith(text)), key=len, default=None)
        found = compiled.match(other)
        assert (found[0] if found else None) == longest
        assert re.fullmatch(f"<{pattern}>", f"<{min(texts)}>")


@given(TEXTS)
def test_an_empty_name_is_a_value(texts: set[str]) -> None:
    compiled = re.compile(named(["", *texts]).to_regex())
    assert all(compiled.fullmatch(text) for text in ["", *texts])
    assert named([""]).to_regex() == ""


def test_ten_thousand_values_stay_compact() -> None:
    texts = [f"com.example.service{n // 100:02}.method{n % 100:02}" for n in range(10_000)]
    trie, plain = named(texts), sum(map(len, texts))
    pattern, grammar = trie.to_regex(), trie.to_gbnf()
    assert len(pattern) < plain / 15
    assert len(grammar) < plain / 10
    compiled = re.compile(pattern)
    assert all(map(compiled.fullmatch, texts))
    assert not compiled.fullmatch("com.example.service00.method0")


@given(TEXTS)
def test_json_schema(texts: set[str]) -> None:
    schema = spelled(texts).to_json_schema_enum(BYTES)
    assert schema == {"type": "string", "enum": sorted(texts, key=str.encode)}
    assert json.loads(json.dumps(schema)) == schema
    assert named([*texts]).to_json_schema_enum()["enum"] == [*texts]
    assert named(["a", "b", "a"]).to_json_schema_enum()["enum"] == ["a", "b"]


def test_gbnf() -> None:
    assert named(["REPLY", "REPLY_ALL", "STOP"]).to_gbnf() == 'root ::= ("REPLY" ("_ALL")? | "STOP")\n'
    assert named(['"\\\n\x7fé日🙂', ""]).to_gbnf() == 'root ::= "" | "\\"\\\\\\x0A\\x7F\\xE9\\u65E5\\U0001F642"\n'
    with pytest.raises(TrieError, match=r"GBNF cannot spell the character NUL in"):
        named(["a", "b\0"]).to_gbnf()


def test_what_is_no_text() -> None:
    broken = Trie.from_sequences([[0x61], [0xC3, 0x28]], ["a", "b"])
    for export in (broken.to_gbnf, broken.to_regex, broken.to_json_schema_enum):
        with pytest.raises(TrieError, match=r'leaf 1 spells b"\\xc3\(", which is not UTF-8'):
            export(BYTES)
        with pytest.raises(VocabularyError, match="token id 195 of the trie is outside the vocabulary of 1 tokens"):
            export(Vocab.from_tokens([b"a"]))
        export()
    unnamed = Trie.from_sequences([[1]])
    for export in (unnamed.to_gbnf, unnamed.to_regex, unnamed.to_json_schema_enum):
        with pytest.raises(TrieError, match="the leaves have no names: give a vocab"):
            export()


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(n_ctx=1024, n_threads=1)


SPELLABLE = st.sampled_from(GRAMMAR_ALPHABETS).flatmap(
    lambda alphabet: st.sets(st.text(alphabet | st.sampled_from('ab"\\\n[]^-'), min_size=1), min_size=1, max_size=30)
)


@pytest.mark.model
@settings(max_examples=cases(60), deadline=None)
@given(SPELLABLE)
@example({"REPLY", "REPLY_THREAD", "STOP"})
@example({"a" * length for length in range(1, 60)})
@example({'"\\\n\r\t', "é", "]-[^", "]^", "]]", "\x85\x7f"})
@example({"🙂🙃", "🙂", "🙃"})
def test_llama_cpp_writes_one_of_the_values(model: Model, texts: set[str]) -> None:
    grammar = named(sorted(texts)).to_gbnf()
    out = model._generate_with_grammar("Answer: ", "gbnf", grammar, 256)
    written = model.vocab.detokenize_bytes([token for token in out.tokens if token not in model.vocab.eog])
    assert written.decode() in texts


@pytest.mark.model
@pytest.mark.parametrize("seed", range(3))
def test_the_grammar_of_a_tokenized_set(model: Model, seed: int) -> None:
    words = random.Random(seed).sample(["alpha", "beta", "alphabet", "be", "gamma ray", 'say "hi"', "naïve"], 4)
    trie = Trie.from_strings(model.vocab, words, suffix="\n")
    schema = trie.to_json_schema_enum(model.vocab)
    assert sorted(schema["enum"]) == sorted(f"{word}\n" for word in words)
    out = model._generate_with_grammar("Say a word: ", "gbnf", trie.to_gbnf(model.vocab), 64)
    written = model.vocab.detokenize_bytes([token for token in out.tokens if token not in model.vocab.eog]).decode()
    assert written in schema["enum"]
    assert re.fullmatch(trie.to_regex(model.vocab), written)


ACTIONS = Trie.from_sequences([[1, 2], [1, 2, 3], [1, 2, 4], [9, 8]], ["REPLY", "REPLY_ALL", 'REPLY_"#1"', "STOP"])


def drawn(picture: str) -> tuple[list[str], list[tuple[float, float, float, float]]]:
    """The text in the boxes of a picture, and where they are: left, top, right, bottom."""
    space = "{http://www.w3.org/2000/svg}"
    root = ElementTree.fromstring(picture)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    labels, boxes = [], []
    for group in root.iter(f"{space}g"):
        label, rect, text = (group.find(space + name) for name in ("title", "rect", "text"))
        assert label is not None
        assert rect is not None
        assert text is not None
        labels.append(label.text or "")
        x, y, w, h = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        assert (x >= 0, y >= 0, x + w <= width, y + h <= height) == (True,) * 4
        assert float(text.attrib["x"]) + float(text.attrib.get("textLength", 0)) <= x + w
        boxes.append((x, y, x + w, y + h))
    return labels, boxes


@given(TEXTS)
@settings(deadline=None)
@example({"<&>\0\ud7ff\uffff", "]]>", "x" * 200})
@example({f"{a}{b}" for a in "abcdef" for b in "ghijkl"})
def test_a_picture_has_every_leaf_in_a_box_of_its_own(texts: set[str]) -> None:
    for trie in (named([*texts]), spelled(texts)):
        picture = trie.to_svg(BYTES)
        assert picture == trie.to_svg(BYTES), "the same trie gives the same text"
        labels, boxes = drawn(picture)
        assert sum("→" in label for label in labels) >= len(trie)
        assert picture.count("<path") == len(boxes) - 1
        for number, (left, top, right, bottom) in enumerate(boxes):
            for other in boxes[:number]:
                assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top


def test_a_picture_shows_names_and_what_is_hidden() -> None:
    labels, _ = drawn(named(["REPLY", "<b>&amp;</b>", "日本"]).to_svg())
    assert [label.partition("→ ")[2] for label in labels[1:]] == ["REPLY", "<b>&amp;</b>", "日本"]
    labels, boxes = drawn(named([str(n) for n in range(500)]).to_svg())
    assert (len(boxes), labels[-1]) == (1 + 12 + 1, "… 488 more (488 leaves)")
    assert drawn(ACTIONS.to_svg(max_depth=1, max_children=1))[0][-1].startswith("… ")
    for limit in ("max_depth", "max_children"):
        with pytest.raises(OptionError, match=f"{limit} is -1: it must be at least 0"):
            ACTIONS.to_svg(**{limit: -1})  # type: ignore[arg-type]
    large = Trie.from_sequences([[a, b, c] for a in range(20) for b in range(20) for c in range(3)])
    labels, boxes = drawn(large.to_svg())
    assert len(boxes) - 1 == 12 + 1 + 12 * (12 + 1) + 12 * 12
    assert "… 8 more (480 leaves)" in labels


def test_a_picture_shows_the_text_of_tokens() -> None:
    vocab = Vocab.from_tokens([b"", b"RE", b"PLY", b'"\\&', b"\xff\n", b"", b"", b"", b"OP", b"ST"])
    assert drawn(ACTIONS.to_svg(vocab))[0] == [
        "(4 leaves)",
        '"RE" "PLY" → REPLY (3 leaves)',
        r'"\"\\&" → REPLY_ALL',
        r'"\xff\n" → REPLY_"#1"',
        '"ST" "OP" → STOP',
    ]
    with pytest.raises(VocabularyError, match="token id 9 of the trie is outside the vocabulary of 2 tokens"):
        ACTIONS.to_svg(Vocab.from_tokens([b"a", b"b"]))
