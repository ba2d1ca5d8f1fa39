"""Sets that change: as one that is made anew from what is there."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokentrie
from hypothesis import given
from hypothesis import strategies as st
from tokentrie import Sampler, Trie, Vocab
from tokentrie.errors import OptionError, TrieError
from tokentrie.sets import LiveSet

TOKENS = st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)
CHANGES = st.lists(st.tuples(st.lists(TOKENS, max_size=6), st.lists(TOKENS, max_size=6)), max_size=5)


@given(st.sets(TOKENS, min_size=1, max_size=12), CHANGES, st.booleans())
def test_it_is_the_set_of_what_is_there(begin: set[Any], changes: list[Any], compacts: bool) -> None:
    live, there = LiveSet(Trie.from_sequences([*map(list, begin)])), {*begin}
    for remove, add in changes:
        after = (there - {*remove}) | {*add}
        before = Sampler(6, live)
        if not after:
            with pytest.raises(TrieError, match="nothing would be left"):
                live.change([*map(list, add)], [*map(list, remove)])
            continue
        came = len({*add} - (there - {*remove}))
        went = len({*remove} & there)
        walked = before.allowed().tolist()
        assert live.change([*map(list, add)], [*map(list, remove)]) == (came, went)
        assert before.allowed().tolist() == walked, "who has a set keeps it"
        there = after
        twin = Trie.from_sequences([*map(list, there)])
        assert (len(live), live.to_trie()) == (len(there), twin)
        one, other = Sampler(6, live, end_tokens=[5]), Sampler(6, twin, end_tokens=[5])
        for value in sorted(there)[:4]:
            one.reset()
            other.reset()
            for token in value:
                assert one.allowed().tolist() == other.allowed().tolist()
                assert one.forced().tolist() == other.forced().tolist()
                one.accept(token)
                other.accept(token)
            assert one.allowed().tolist() == other.allowed().tolist()
        assert all(list(value) in live for value in there)
        assert not any(list(value) in live for value in begin - there)
        if compacts:
            live.compact()
            assert live.patches == 0


@pytest.fixture(scope="module")
def vocab(tiny_path: Path) -> Vocab:
    return Vocab.from_gguf(tiny_path)


@pytest.mark.model
def test_texts_and_names(vocab: Vocab) -> None:
    live = LiveSet(Trie.from_strings(vocab, ["ab", "bc"]), vocab)
    assert live.change(add=["abc", "ab"], remove=["bc", "nothing"]) == (1, 1)
    assert ("abc" in live, "bc" in live, len(live)) == (True, False, 2)
    assert {leaf.name for leaf in live.to_trie().leaves()} == {"ab", "abc"}
    assert live.change(add=["bc"]) == (1, 0)
    assert live.patches == 1, "what comes back is what was there"
    without = LiveSet(Trie.from_strings(vocab, ["ab", "bc"]))
    assert without.change(remove=["ab"]) == (0, 1)
    with pytest.raises(OptionError, match=r"add: .*LiveSet\(trie, vocab\)"):
        without.change(add=["c"])


@pytest.mark.model
def test_what_cannot_be_changes_nothing(vocab: Vocab) -> None:
    live = LiveSet(Trie.from_strings(vocab, ["ab", "bc"]), vocab)
    for add, error, said in (
        ([[1, 2]], TrieError, "entry 0 that is added has no name"),
        ("abc", TypeError, "values must be a list"),
        (7, TypeError, "values must be a list"),
        ([""], tokentrie.TokenTrieError, "value 0 is empty"),
        ([["x"]], TypeError, "must be an integer"),
        (Trie.from_sequences([[1]]), TrieError, "entry 0 that is added has no name"),
    ):
        with pytest.raises(error, match=said):
            live.change(add=add, remove=["ab"])  # type: ignore[arg-type]
    assert (len(live), live.patches) == (2, 0)
    with pytest.raises(TrieError, match="several sequences"):
        LiveSet(Trie.from_strings(vocab, ["abc"], tokenization="all"))
    assert "2 leaves, 0 patches" in repr(live)


@pytest.mark.model
def test_it_stands_wherever_a_trie_does(tmp_path: Path, vocab: Vocab) -> None:
    Trie.from_strings(vocab, ["ab", "bc"]).save(tmp_path / "set.ttrie", vocab=vocab)
    live = LiveSet(Trie.open(tmp_path / "set.ttrie"), vocab)
    live.change(add=["abc"], remove=["bc"])
    rows = tokentrie.Batch([live, None], vocab=vocab)
    assert rows.allowed(0).tolist() == Sampler(vocab, live).allowed().tolist() == live.allowed().tolist()
    assert rows.select(np.zeros((2, len(vocab)), np.float32))[0] in live.allowed()
    both = Sampler(vocab, live + " and " + live)
    for leaf in live.to_trie().leaves():
        both.accept(leaf.tokens)
        assert vocab.tokenize(" and ")[0] in both.allowed()
        both.reset()


@pytest.mark.model
def test_a_model_follows_it() -> None:
    model = tokentrie.Model()
    live = LiveSet(Trie.from_strings(model.vocab, ["red", "blue"]), model.vocab)
    live.change(add=["green"], remove=["red", "blue"])
    assert model.generate("The colour is ", live).text == "green"
    live.change(add=["red"])
    choice = model.choose("The colour is ", live)
    assert sorted(choice.names or []) == ["green", "red"]


def test_threads_lose_no_change() -> None:
    live = LiveSet(Trie.from_sequences([[0]]))

    def add(first: int) -> None:
        for number in range(50):
            live.change(add=[[first, number]])
            assert Sampler(64, live).allowed().tolist()

    threads = [threading.Thread(target=add, args=(first,)) for first in range(1, 5)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        live.compact()
    for thread in threads:
        thread.join()
    assert len(live) == 201
