"""What a payload may look like, and what is said of one that may not."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from support import payload
from tokentrie import Sampler, TokenTrieError, Trie
from tokentrie.errors import OptionError, PayloadError, TokenTrieWarning, VocabularyError
from tokentrie.sets import TrieCache

LEAF = '{"modelId":"m","descriptors":[{"path":"a","leaves":[{"name":"x","tokens":%s}]}]}'

# What is wrong: the text, and what the error must name.
REJECTED = {
    "empty": ("", "line 1, column 0"),
    "not JSON": ("{", "line 1, column 1"),
    "second line": ('{"modelId": "m",\n  "descriptors": oops}', "line 2, column 1[0-9]"),
    "no path": ('{"descriptors":[{"leaves":[]}]}', r"descriptors\[0\].*path"),
    "no leaves": ('{"descriptors":[{"path":"a"}]}', r"descriptors\[0\].*leaves"),
    "no name": ('{"descriptors":[{"path":"a","leaves":[{"tokens":[1]}]}]}', r"leaves\[0\].*name"),
    "no tokens": ('{"descriptors":[{"path":"a","leaves":[{"name":"x"}]}]}', r"leaves\[0\].*tokens"),
    "tokens is a number": (LEAF % "5", r"descriptors\[0\]\.leaves\[0\]\.tokens"),
    "negative id": (LEAF % "[-1]", r"tokens\[0\].*-1"),
    "fraction": (LEAF % "[1, 1.5]", r"tokens\[1\].*1\.5"),
    "id over 2^31-1": (LEAF % "[2147483648]", r"tokens\[0\].*2147483648"),
    "huge id": (LEAF % "[1e400]", r"tokens\[0\]"),
    "id as text": (LEAF % '["1"]', r"tokens\[0\]"),
    "NaN": (LEAF % "[NaN]", r"tokens\[0\]"),
    "text after the end": (LEAF % "[1]" + "x", "line 1"),
    "two descriptors of one path": (
        '{"descriptors":[{"path":"a","leaves":[]},{"path":"a","leaves":[{"name":"x","tokens":[1]}]}]}',
        '"a"',
    ),
    "no leaf at all": ('{"descriptors":[]}', "no usable leaf"),
    "only empty leaves": (LEAF % "[]", "no usable leaf.*1 leaves have no tokens"),
    "deeply nested": ('{"other":' + "[" * 100_000, "line 1"),
}

NO_SPEC = {
    "[]": ("line 1", "expected an object .*got an array of 0"),
    "null": ("line 1", "expected an object .*got null"),
    '{"modelId":"m"}': ("descriptors", 'unknown kind of spec: .* got one with "modelId"'),
}
"""No payload, and no other constraint that JSON may be."""

ENTRANCES: dict[str, Callable[[Any], object]] = {
    "sampler": lambda text: Sampler(10, text),
    "session": lambda text: TrieCache().sampler(10, text),
    "trie": Trie.from_payload,
}


@pytest.mark.parametrize("entrance", ENTRANCES.values(), ids=ENTRANCES)
@pytest.mark.parametrize(("text", "says"), REJECTED.values(), ids=REJECTED)
def test_rejected(text: str, says: str, entrance: Callable[[Any], object]) -> None:
    for form in (text, text.encode()):
        with pytest.raises(PayloadError, match=says) as caught:
            entrance(form)
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, TokenTrieError)


@pytest.mark.parametrize(("text", "says"), NO_SPEC.items(), ids=NO_SPEC)
def test_no_payload_and_no_other_constraint(text: str, says: tuple[str, str]) -> None:
    for name, entrance in ENTRANCES.items():
        error, match = (PayloadError, says[0]) if name == "trie" else (OptionError, says[1])
        with pytest.raises(error, match=match):
            entrance(text.encode())


def test_unknown_fields_are_ignored() -> None:
    data: dict[str, Any] = payload({"A": [1, 2]})
    data["other"] = data["descriptors"][0]["other"] = data["descriptors"][0]["leaves"][0]["other"] = [{"x": None}]
    assert Trie.from_payload(data) == Trie.from_payload(payload({"A": [1, 2]}))


def test_order_and_white_space_do_not_matter() -> None:
    forwards, backwards = payload({"A": [1, 2], "B": [3]}), payload({"B": [3], "A": [1, 2]})
    trie = Trie.from_payload(json.dumps(forwards))
    assert trie == Trie.from_payload(json.dumps(backwards, indent=8)) == Trie.from_payload(backwards)
    assert [leaf.name for leaf in trie] == ["A", "B"]


def test_empty_leaves_are_skipped_and_equal_ones_take_the_smallest_name() -> None:
    leaves = [("", []), ("b", [1]), ("a", [1]), ("\U0001f600", [1]), ("\uffff", [2]), ("\U00010000", [2])]
    rows = [{"name": name, "tokens": tokens} for name, tokens in leaves]
    trie = Trie.from_payload({"descriptors": [{"path": "", "leaves": rows}]})
    assert [(leaf.name, leaf.tokens) for leaf in trie] == [("a", [1]), ("\uffff", [2])]


def test_paths() -> None:
    data = payload({"A": [1]})
    data["descriptors"] += payload({"B": [2]}, "other")["descriptors"]
    data["descriptors"].insert(0, {"path": "empty", "leaves": []})
    assert [leaf.name for leaf in Trie.from_payload(data)] == ["A"]
    assert [leaf.name for leaf in Trie.from_payload(data, "other")] == ["B"]
    with pytest.raises(OptionError, match=r'"empty".*"action", "other"'):
        Trie.from_payload(data, path="empty")
    assert Sampler(10, data).paths == ["action", "other"]


def test_leaves_outside_the_vocabulary_are_dropped_with_a_warning() -> None:
    data = payload({"IN": [1], "OUT": [2, 10], "FAR": [2**31 - 1]})
    for make in (Sampler, TrieCache().sampler):
        with pytest.warns(TokenTrieWarning, match=r'2 leaves.*10 tokens.*"OUT" of "action" with id 10'):
            sampler = make(10, data)
        assert [leaf.name for leaf in sampler.trie] == ["IN"]
    with pytest.warns(TokenTrieWarning):
        assert len(Trie.from_payload(data, vocab=10)) == 1
    assert len(Trie.from_payload(data)) == 3
    with pytest.raises(PayloadError, match=r"no usable leaf.*2 need ids outside"):
        Sampler(10, payload({"OUT": [10], "FAR": [11]}))


def test_a_warning_made_an_error_is_raised() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TokenTrieWarning):
            Sampler(10, payload({"IN": [1], "OUT\0": [10]}))


@pytest.mark.parametrize("wrong", [None, 5, 1.5, ["x"], bytearray(b"{}"), object()])
def test_other_types_are_refused(wrong: Any) -> None:
    for entrance in ENTRANCES.values():
        with pytest.raises(TypeError, match=type(wrong).__name__):
            entrance(wrong)


def test_a_dictionary_that_is_no_json() -> None:
    with pytest.raises(PayloadError, match="set"):
        Trie.from_payload({"descriptors": {1}})
    loop: dict[str, Any] = {}
    loop["descriptors"] = loop
    with pytest.raises(PayloadError, match="Circular"):
        Trie.from_payload(loop)
    with pytest.raises(PayloadError, match="surrogates"):
        Trie.from_payload('{"\ud800"')


@pytest.mark.parametrize("size", [0, -1, 2**31 + 1, 2**70])
def test_impossible_vocabularies(size: int, actions: str) -> None:
    with pytest.raises(VocabularyError, match=rf"a vocabulary of {size} tokens"):
        Sampler(size, Trie.from_payload(actions))


def test_session_cache() -> None:
    session = TrieCache(capacity=2)
    text = json.dumps(payload({"A": [1, 2], "B": [3]}))
    session.sampler(10, text)
    session.sampler(10, text)
    session.sampler(10, json.dumps(payload({"B": [3], "A": [1, 2]}), indent=1))
    info = session.cache_info()
    assert (info.hits, info.content_hits, info.misses, info.evictions, info.size, info.capacity) == (1, 1, 1, 0, 2, 2)

    # Another model, name, token or vocabulary is another trie.
    for other in (payload({"A": [1, 2], "B": [3]}, model="n"), payload({"A": [1, 2], "C": [3]})):
        session.sampler(10, other)
    assert (session.cache_info().misses, session.cache_info().evictions) == (3, 2)
    session.clear()
    assert session.cache_info().size == 0
    assert repr(session.cache_info()).startswith("CacheInfo(hits=1, ")


def test_an_evicted_trie_lives_on() -> None:
    session = TrieCache(1)
    sampler = session.sampler(10, payload({"A": [1, 2]}))
    session.sampler(10, payload({"B": [3]}))
    sampler.accept([1, 2])
    assert sampler.leaf is not None
    assert sampler.leaf.name == "A"


@pytest.mark.parametrize("capacity", [0, -1, 2**40])
def test_session_capacity(capacity: int) -> None:
    with pytest.raises(OptionError, match=str(capacity)):
        TrieCache(capacity)
