"""The callable for other people's loops, walked beside a set of sequences; and the page that says what was tested."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokentrie
from hypothesis import given
from hypothesis import strategies as st
from tokentrie.integrations.logits import LogitsConstraint

V = 8
sequences = st.lists(st.lists(st.integers(0, V - 1), min_size=1, max_size=4), min_size=1, max_size=8)


def row() -> np.ndarray:
    return np.arange(V, dtype=np.float32)


def legal(masked: np.ndarray) -> list[int]:
    return np.flatnonzero(np.isfinite(masked)).tolist()


def trie(*found: list[int]) -> tokentrie.Trie:
    return tokentrie.Trie.from_sequences(list(found))


@given(sequences, st.lists(st.integers(0, V - 2), max_size=3), st.data())
def test_any_order_of_calls_gives_what_the_set_says(found: list[list[int]], prompt: list[int], data: Any) -> None:
    """Also where a loop goes back and takes another way. The last id ends values."""
    end = V
    constrain = LogitsConstraint(V + 1, trie(*found), prompt=len(prompt), end_tokens=[end], after="free")
    for _ in range(6):
        whole = [*data.draw(st.sampled_from(found)), end]
        output = whole[: data.draw(st.integers(0, len(whole) - 1))]
        begun = [[*one, end] for one in found if one[: len(output)] == output]
        expected = sorted({one[len(output)] for one in begun})
        assert legal(constrain([*prompt, *output], np.zeros(V + 1, dtype=np.float32))) == expected


def test_what_is_refused_changes_nothing() -> None:
    constrain = LogitsConstraint(V, trie([1, 2], [1, 3]), after="free")
    constrain([7, 7], row())
    constrain([7, 7, 1], row())
    for ids, kind in (([7, 7, 5], tokentrie.TokenNotAllowedError), ([7], tokentrie.errors.OptionError)):
        with pytest.raises(kind):
            constrain(ids, row())
        assert constrain.sampler.depth == 1
    for ids in ([[7, 7]], [7.5, 1.0], ["a"]):
        with pytest.raises(TypeError, match="integers of shape"):
            constrain(ids, row())
    assert legal(constrain([7, 7, 1], row())) == [2, 3]
    with pytest.raises(tokentrie.errors.OptionError, match="prompt is -1"):
        LogitsConstraint(V, trie([1]), prompt=-1)


def test_rows_of_any_shape() -> None:
    constrain = LogitsConstraint(V, trie([1], [6]), after="free")
    wide, spread = np.zeros(V + 5, dtype=np.float32), np.zeros(2 * V, dtype=np.float32)[::2]
    assert constrain([3], wide) is wide, "in place"
    assert legal(wide) == [1, 6]
    masked = constrain([3], spread)
    assert (legal(masked), np.isfinite(spread).all()) == ([1, 6], True), "a copy"
    fixed = row()
    fixed.flags.writeable = False
    assert legal(constrain([3], fixed)) == [1, 6]
    with pytest.raises(TypeError):
        constrain([3], row().astype(np.float64))
    with pytest.raises(ValueError, match="7"):
        constrain([3], row()[: V - 1])


def test_one_object_for_one_sequence_and_reset() -> None:
    constrain = LogitsConstraint(V, trie([1, 2]), after="free")
    assert legal(constrain(np.array([5, 5]), row())) == [1]
    assert legal(constrain(np.array([5, 5, 1]), row())) == [2]
    constrain.reset()
    assert legal(constrain([1, 1, 1, 1], row())) == [1], "all of it is the prompt"
    vocab = tokentrie.Vocab.from_tokens([bytes([65 + id]) for id in range(V)], eog=[7], control=[7])
    stop = LogitsConstraint(vocab, trie([1, 2]))
    stop([0], row())
    assert legal(stop([0, 1, 2], row())) == [7]
    assert stop.sampler.leaf is not None


def test_the_page_of_hosts_has_the_versions_that_are_installed() -> None:
    root = Path(__file__).parents[2]
    if not (root / "tests" / "hosts" / "requirements.txt").is_file():
        pytest.skip("only a checkout has the lists")
    spec = importlib.util.spec_from_file_location("versions", root / "tests" / "hosts" / "versions.py")
    assert spec is not None
    assert spec.loader is not None
    versions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(versions)
    page = (root / "docs" / "hosts.md").read_text(encoding="utf-8").lower()
    assert len(versions.pinned()) > 8
    missing = [f"{name} {version}" for name, version in versions.pinned().items() if version not in page]
    assert not missing


def test_rules() -> None:
    vocab = tokentrie.Vocab.from_tokens([bytes([byte]) for byte in range(256)] + [b"</s>"], eog=[256], control=[256])
    constraint = LogitsConstraint(vocab, tokentrie.rules.Integer(10, 29))
    masked = constraint([7, 8], np.zeros(257, dtype=np.float32))
    assert np.flatnonzero(np.isfinite(masked)).tolist() == [ord("1"), ord("2")]
    masked = constraint([7, 8, ord("2")], np.zeros(257, dtype=np.float32))
    assert np.flatnonzero(np.isfinite(masked)).tolist() == list(range(ord("0"), ord("9") + 1))
    assert np.isfinite(constraint([7, 8, ord("2"), ord("9")], np.zeros(257, dtype=np.float32))).nonzero()[
        0
    ].tolist() == [256]
