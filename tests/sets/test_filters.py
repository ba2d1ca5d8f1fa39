"""Filters over tries, without dead ends."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
import tokentrie
from hypothesis import given
from hypothesis import strategies as st
from support import VECTORS
from tokentrie import Batch, Model, Sampler, TokenNotAllowedError, Trie
from tokentrie.errors import OptionError, TrieError
from tokentrie.sets import FilteredTrie

CASES: list[dict[str, Any]] = json.loads((VECTORS / "think_and_items.json").read_text())["cases"]
ITEMS = Trie.from_sequences([[1, 2], [1, 3], [4, 2]], names=["a", "b", "c"])


def cases(kind: str) -> Any:
    return pytest.mark.parametrize("case", [pytest.param(c, id=c["id"]) for c in CASES if c["kind"] == kind])


def test_every_kind_of_case_is_run() -> None:
    kinds = {"think_steps", "think_marker", "think_off", "item_filter", "item_rows"}
    assert {case["kind"] for case in CASES} == kinds


@cases("item_filter")
def test_bans(case: dict[str, Any]) -> None:
    left = Trie.from_sequences(case["items"]).filtered(deny=case["deny"])
    for step in case["steps"]:
        assert left.allowed(step["prefix"]).tolist() == step["legal"]
        sampler = Sampler(40, left)
        sampler.accept(step["prefix"])
        assert sampler.allowed().tolist() == step["legal"]


@cases("item_rows")
def test_rows_do_not_repeat(case: dict[str, Any]) -> None:
    trie = Trie.from_sequences(case["items"])
    rows = Batch(trie, rows=len(case["write"]), vocab=16, no_repeat=case["repeat"])
    for tokens in zip(*case["write"], strict=True):
        rows.accept(list(tokens))
    assert rows.next_item() == len(case["write"])
    rows.reorder(case["reorder"])
    assert [rows.allowed(row).tolist() for row in range(len(rows))] == case["legal"]
    written = [leaf.tokens for leaf in rows.items(0)]
    assert written == [case["write"][case["reorder"][0]]]


sequences = st.lists(
    st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple), min_size=1, max_size=30, unique=True
)


@given(items=sequences, picks=st.lists(st.integers(0, 99), max_size=12), deny=st.booleans(), flags=st.booleans())
def test_a_filter_is_a_set_of_what_is_left(
    items: list[tuple[int, ...]], picks: list[int], deny: bool, flags: bool
) -> None:
    trie = Trie.from_sequences(items)
    chosen = sorted({pick % len(trie) for pick in picks})
    given_as: Any = chosen
    if flags:
        given_as = np.isin(np.arange(len(trie)), chosen)
    left = [leaf.tokens for leaf in trie if (leaf.index in chosen) != deny]
    keywords = {"deny" if deny else "allow": given_as}
    if not left:
        with pytest.raises(TrieError, match="none of the"):
            trie.filtered(**keywords)
        return
    filtered, twin = trie.filtered(**keywords), Trie.from_sequences(left)
    assert (len(filtered), filtered.to_trie()) == (len(left), twin)
    assert filtered.allowed_leaves.ids.tolist() == [leaf.index for leaf in trie if leaf.tokens in left]
    assert pickle.loads(pickle.dumps(filtered)) == filtered
    for prefix in {tuple(tokens[:end]) for tokens in left for end in range(len(tokens) + 1)}:
        assert filtered.allowed(prefix).tolist() == twin.allowed(prefix).tolist()
        one, other = Sampler(6, filtered, end_tokens=[5]), Sampler(6, twin, end_tokens=[5])
        one.accept(prefix)
        other.accept(prefix)
        assert one.allowed().tolist() == other.allowed().tolist()
        assert one.forced().tolist() == other.forced().tolist()


def test_leaves_by_number_name_and_tokens() -> None:
    assert list(ITEMS.leaf_set([0, "c"])) == list(ITEMS.leaf_set([[1, 2], [4, 2]])) == [0, 2]
    assert list(ITEMS.leaf_set(np.array([2, 0]))) == [0, 2]
    assert list(ITEMS.leaf_set(np.array([[1, 3], [4, 2]]))) == [1, 2]
    assert list(ITEMS.leaf_set(np.array([True, False, True]))) == [0, 2]
    assert list(ITEMS.leaf_set([])) == []
    one, other = ITEMS.leaf_set(["a", "b"]), ITEMS.leaf_set(["b", "c"])
    assert [list(both) for both in (one & other, one | other, one - other, ~one)] == [[1], [0, 1, 2], [0], [2]]
    assert (len(one), 0 in one, 2 in one, -1 in one) == (2, True, False, False)
    assert pickle.loads(pickle.dumps(one)) == one != other
    twice = Trie.from_sequences([[1], [2], [3]], names=["x", "y", "x"])
    assert list(twice.leaf_set(["x"])) == [0, 2], "all leaves of a name"
    assert list(ITEMS.filtered(allow=one, deny=other).allowed_leaves) == [0]
    assert list(ITEMS.filtered(deny=["a"]).filtered(allow=["a", "c"]).allowed_leaves) == [2]


def test_wherever_a_trie_may_stand() -> None:
    left = ITEMS.filtered(deny=["a"])
    assert (len(left), left.trie is ITEMS, [4, 2] in left, [1, 2] in left) == (2, True, True, False)
    sampler = Sampler(6, left)
    sampler.accept(1)
    assert sampler.forced().tolist() == [3]
    with pytest.raises(TokenNotAllowedError):
        sampler.accept(2)
    sampler.accept(3)
    assert (sampler.leaf.index, sampler.leaf.name) == (1, "b"), "leaves keep their numbers"
    sampler.rollback(2)
    assert sampler.allowed().tolist() == [1, 4]
    rows = Batch([left, ITEMS, None], vocab=6)
    assert [rows.allowed(row).tolist() for row in range(2)] == [[1, 4], [1, 4]]
    rows.accept([1, 1, 5])
    assert [rows.allowed(row).tolist() for row in range(2)] == [[3], [2, 3]]
    gate = tokentrie.rules.ThinkGate([], [5], 0, left, vocab=6)
    gate.accept([5, 1])
    assert gate.forced().tolist() == [3]


def test_a_batch_with_a_filter() -> None:
    rows = Batch(ITEMS, rows=2, vocab=6, deny=["b"], no_repeat=True)
    assert rows.allowed(0).tolist() == [1, 4]
    rows.accept([1, 4])
    assert rows.forced(0).tolist() == [2]
    rows.accept([2, 2])
    assert rows.next_item() == 2
    assert [rows.forced(row).tolist() for row in range(2)] == [[4, 2], [1, 2]]
    rows.accept([4, 1])
    rows.accept([2, 2])
    with pytest.raises(TrieError, match="row 0: all items that it may write are written"):
        rows.next_item()
    assert rows.finished.tolist() == [True, True], "no row has changed"
    rows.reset()
    assert [rows.allowed(row).tolist() for row in range(2)] == [[1, 4], [1, 4]]
    groups = Batch(ITEMS, rows=4, vocab=6, no_repeat="siblings")
    groups.accept([1, 1, 4, 4])
    groups.accept([2, 3, 2, 2])
    groups.next_item(groups=2)
    assert [groups.allowed(row).tolist() for row in range(4)] == [[1, 4], [4], [1], [1]]


def test_beams_stay_in_what_is_left() -> None:
    def step(prefixes: list[list[int]]) -> Any:
        return np.log(np.full((len(prefixes), 6), 1 / 6, dtype=np.float32))

    found = tokentrie.sets.beam_search(step, ITEMS.filtered(deny=["b"]), width=8, vocab=6)
    assert sorted(hypothesis.leaf.name for hypothesis in found) == ["a", "c"]


def test_bad_input() -> None:
    with pytest.raises(TrieError, match="none of the 3 leaves is left"):
        ITEMS.filtered(deny=[0, 1, 2])
    with pytest.raises(OptionError, match=r"deny: entry 1: leaf 3 is out of range"):
        ITEMS.filtered(deny=[0, 3])
    with pytest.raises(OptionError, match=r"entry 0: leaf -1 is out of range"):
        ITEMS.leaf_set(np.array([-1]))
    with pytest.raises(OptionError, match=r"allow: entry 1: no leaf is named 'x'"):
        ITEMS.filtered(allow=["a", "x"])
    # A ban of another length bans nothing: it is an error, which names the entry.
    with pytest.raises(OptionError, match=r"entry 0: \[1\] is not a leaf of the trie: it only begins 2 of them"):
        ITEMS.filtered(deny=[[1]])
    with pytest.raises(OptionError, match=r"entry 0: \[1, 2, 3\] is not a leaf of the trie: token 3 at position 2"):
        ITEMS.filtered(deny=[[1, 2, 3]])
    with pytest.raises(ValueError, match="a bool array of 2 for 3 leaves"):
        ITEMS.filtered(deny=np.array([True, False]))
    with pytest.raises(TypeError, match="must have one dimension"):
        ITEMS.filtered(deny=np.ones((3, 1), dtype=bool))
    bad: list[Any] = ["a", {"a": 1}, 3]
    for leaves in bad:
        with pytest.raises(TypeError, match="leaves must be a list"):
            ITEMS.leaf_set(leaves)
    other = Trie.from_sequences([[1]]).leaf_set([0])
    with pytest.raises(OptionError, match="of another trie"):
        ITEMS.filtered(deny=other)
    with pytest.raises(OptionError, match="of two tries"):
        _ = other & ITEMS.leaf_set([0])
    with pytest.raises(OptionError, match="no_repeat is 3"):
        Batch(ITEMS, rows=1, vocab=6, no_repeat=3)
    with pytest.raises(OptionError, match="go with one Trie for all rows"):
        Batch([ITEMS, ITEMS], vocab=6, deny=[0])
    rows = Batch([ITEMS, None], vocab=6, no_repeat=True)
    assert rows.next_item() == 0
    with pytest.raises(TokenNotAllowedError):
        ITEMS.filtered(deny=["a"]).allowed([1, 2])
    with pytest.raises(TokenNotAllowedError):
        ITEMS.filtered(deny=["a"]).allowed([1, 3, 0])


def test_where_several_sequences_stand_for_one_leaf() -> None:
    vocab = tokentrie.Vocab.from_tokens([b"a", b"b", b"ab", b"c"])
    trie = Trie.from_sequences([[0]])
    try:
        trie = Trie.from_strings(vocab, ["ab", "ac", "b"], tokenization="all")
    except tokentrie.errors.VocabularyError:
        pytest.skip("this vocabulary tokenises nothing")
    left = trie.filtered(deny=["ac", "b"])
    assert left.allowed().tolist() == [0, 2]
    assert left.allowed([0]).tolist() == [1]


@pytest.mark.model
def test_in_the_model() -> None:
    model = Model()
    colours = Trie.from_strings(model.vocab, ["blue", "red", "green"])
    best = model.choose("The sky is ", colours)
    left = colours.filtered(deny=[best.index])
    assert isinstance(left, FilteredTrie)
    out = model.generate("The sky is ", left)
    assert out.leaf.name in {"blue", "red", "green"} - {best.name}
    rest = model.choose("The sky is ", left)
    assert best.name not in [leaf.name for leaf in left.to_trie()]
    assert rest.name != best.name
    assert len(rest.probabilities) == 2


def test_the_cases_of_others(shared_cases: list[dict[str, Any]]) -> None:
    """The same cases as they were handed over, where they are at hand."""
    ran = 0
    for case in shared_cases:
        if case["kind"] == "item_ban":
            ban = case["banned"][0]
            siblings = [[*ban[:-1], last] for last in (ban[-1] - 1, ban[-1] + 1)]
            for extra in (siblings, []):
                trie = Trie.from_sequences([*case["banned"], *extra, [ban[0], ban[1] + 1, 5]])
                legal = trie.filtered(deny=case["banned"]).allowed(case["prefix"] if extra else ban[:1]).tolist()
                assert not set(legal) & set(case["expect_masked"])
                if extra:
                    assert set(legal) >= set(case.get("expect_free", []))
                else:
                    assert legal == [ban[1] + 1], "a ban that removes everything below masks the way there"
            ran += 1
        elif case["kind"] == "item_dedup" and "sequences" in case:
            trie = Trie.from_sequences([*case["sequences"], [90, 91, 92]])
            rows = Batch(trie, rows=2, vocab=100, no_repeat="siblings")
            for tokens in zip(*case["sequences"], strict=True):
                rows.accept(list(tokens))
            rows.next_item()
            for row, banned in enumerate(case["expect_banned"]):
                left = {tuple(leaf.tokens) for leaf in trie} - {tuple(item) for item in banned}
                assert rows.allowed(row).tolist() == sorted({tokens[0] for tokens in left})
            ran += 1
    assert ran == 3
