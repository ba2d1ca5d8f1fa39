"""Sets in which several sequences stand for one value: samplers against the oracle, generations, bounds."""

from __future__ import annotations

import itertools
import os
import signal
import struct
import threading
from pathlib import Path

import numpy as np
import pytest
import tokentrie
from budget import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Oracle
from test_strings import sequences
from tokentrie import Sampler, Trie, Vocab
from tokentrie.errors import TrieError

PIECES = [b"a", b"b", b"c", b"ab", b"bc", b"abc", b"ca", b"."]
TEXTS = st.lists(st.text("abc", min_size=1, max_size=5), min_size=1, max_size=5)
VOCAB = Vocab.from_tokens(PIECES)


def brute_force(text: bytes) -> list[tuple[int, ...]]:
    """Every way to spell a text: any number of any tokens."""
    ways = itertools.chain.from_iterable(
        itertools.product(range(len(PIECES)), repeat=n) for n in range(1, len(text) + 1)
    )
    return [way for way in ways if b"".join(PIECES[token] for token in way) == text]


def test_brute_force() -> None:
    trie = Trie.from_strings(VOCAB, ["abc", "ab", "cabc"], tokenization="all")
    names = trie.names or []
    expected = {way: text for text in ("ab", "abc", "cabc") for way in brute_force(text.encode())}
    assert {tokens: names[leaf] for tokens, leaf in sequences(trie).items()} == expected


@given(texts=TEXTS, steps=st.lists(st.integers(0, 7), max_size=9), end=st.booleans(), data=st.data())
@settings(max_examples=cases(150))
def test_a_sampler_does_what_its_sequences_say(
    texts: list[str], steps: list[int], end: bool, data: st.DataObject
) -> None:
    trie = Trie.from_strings(VOCAB, texts, tokenization="all")
    ends = [7] if end else []
    sampler, oracle = Sampler(VOCAB, trie, end_tokens=ends), Oracle(len(PIECES), sequences(trie), ends)
    values = sorted(set(texts), key=str.encode)
    for step in steps:
        assert sampler.allowed().tolist() == sorted(oracle.allowed)
        assert sampler.state == ("complete" if oracle.complete else "active")
        assert (sampler.open, sampler.depth) == (oracle.open, len(oracle.walk))
        row = np.array(data.draw(st.lists(st.floats(-3, 3, width=32), min_size=8, max_size=8)), np.float32)
        assert sampler.sample(row) == oracle.best(row.tolist())
        words = np.zeros(1, np.int32)
        sampler.fill_bitmask(words)
        assert {i for i in range(8) if words[0] >> i & 1} == (set(range(8)) if oracle.open else oracle.allowed)
        # Forced text: what stays possible is the same set of values.
        walk = oracle.walk
        for token in sampler.forced().tolist():
            below = {values[leaf] for tokens, leaf in sequences(trie).items() if tokens[: len(walk)] == walk}
            walk = (*walk, token)
            still = {values[leaf] for tokens, leaf in sequences(trie).items() if tokens[: len(walk)] == walk}
            assert still == below or token in ends
        legal = sorted(oracle.legal)
        if not legal:
            break
        token = legal[step % len(legal)]
        sampler.accept(token)
        oracle.history.append(token)
    if sampler.leaf is not None:
        assert b"".join(PIECES[token] for token in oracle.walk).decode() == sampler.leaf.name
    back = data.draw(st.integers(0, sampler.accepted))
    copy = sampler.clone()
    sampler.rollback(back)
    del oracle.history[len(oracle.history) - back :]
    assert sampler.allowed().tolist() == sorted(oracle.allowed)
    assert copy.accepted == sampler.accepted + back
    sampler.reset()
    assert sampler.accepted == 0


@pytest.mark.model
def test_generations_end_with_a_value() -> None:
    model = tokentrie.Model(n_threads=1)
    values = [f"create_calendar_{what}_{when}" for what in ("entry", "reminder") for when in ("daily", "once")]
    spelled = Trie.from_strings(model.vocab, values, tokenization="all")
    canonical = Trie.from_strings(model.vocab, values)
    prompt = "Call the tool that makes a daily reminder: "
    for mode, seed in (("greedy", None), ("sampled", 5), ("sampled", 6)):
        ahead = model.generate(prompt, spelled, mode=mode, seed=seed, after="stop")
        assert ahead.text in values
        assert ahead.leaf is not None
        assert (ahead.leaf.name, ahead.partial_token) == (ahead.text, b"")
        slow = model.generate(prompt, spelled, mode=mode, seed=seed, after="stop", skip_ahead=False)
        assert slow.text in values
        assert ahead.stats.forward_passes < slow.stats.forward_passes
    own = model.generate(prompt, canonical, after="stop")
    ahead = model.generate(prompt, spelled, after="stop")
    assert ahead.stats.forward_passes <= own.stats.forward_passes, "text that must come is not asked for"


@pytest.mark.model
def test_what_runs_over_is_the_beginning_of_the_free_text() -> None:
    model = tokentrie.Model(n_threads=1)
    values = ["may", "res", "no"]
    trie = Trie.from_strings(model.vocab, values, open_end=True)
    canonical = {tuple(leaf.tokens) for leaf in trie}
    over = {tokens: leaf for tokens, leaf in sequences(trie).items() if tokens not in canonical}
    assert over
    seen = set()
    for seed in range(40):
        out = model.generate("The answer: ", trie, mode="sampled", temperature=3.0, seed=seed, after="stop")
        assert out.leaf is not None
        assert out.leaf.name is not None
        assert out.text.encode() == out.leaf.name.encode() + out.partial_token
        assert bool(out.partial_token) == (tuple(out.tokens) in over)
        slow = model.generate(
            "The answer: ", trie, mode="sampled", temperature=3.0, seed=seed, after="stop", skip_ahead=False
        )
        assert (slow.tokens, slow.partial_token) == (out.tokens, out.partial_token)
        seen.add(bool(out.partial_token))
    assert seen == {True, False}
    free = model.generate("The answer: ", trie, max_tokens=12, after="free")
    assert free.leaf is not None
    assert free.text.startswith(f"{free.leaf.name}{free.partial_token.decode()}")


@pytest.mark.model
@pytest.mark.parametrize("kind", [{"tokenization": "all"}, {"open_end": True}])
def test_a_value_is_at_least_as_probable_as_its_own_tokens(kind: dict[str, str]) -> None:
    model = tokentrie.Model(n_threads=1, precise=True)
    values = ["no", "yes", "maybe"]
    canonical = Trie.from_strings(model.vocab, values)
    trie = Trie.from_strings(model.vocab, values, **kind)  # type: ignore[arg-type]
    prompt = "Is the sky green? "
    own, choice = model.choose(prompt, canonical), model.choose(prompt, trie)
    places = [(canonical.names or []).index(name) for name in trie.names or []]
    assert np.all(choice.logprobs >= own.logprobs[places] - 1e-3)
    assert choice.logprobs.sum() > own.logprobs.sum() + 1e-3
    assert choice.certain
    np.testing.assert_array_equal(choice.logprobs, choice.logprobs_high)
    assert choice.mass_bounds[0] == choice.mass_bounds[1]
    assert sum(choice.probabilities.values()) == pytest.approx(1)
    (many,) = model.choose_many([prompt], trie)
    np.testing.assert_allclose(many.logprobs, choice.logprobs, atol=1e-4)


@pytest.mark.model
def test_the_budget_of_a_choice() -> None:
    model = tokentrie.Model(n_threads=1, precise=True)
    values = ["reply_to_all", "reply", "forward"]
    exact = model.choose("Next: ", values, tokenization="all", max_rows=4000)
    assert exact.certain
    before = np.full(3, np.inf)
    for max_rows in (1, 3, 30, 300, 3000):
        choice = model.choose("Next: ", values, tokenization="all", max_rows=max_rows)
        assert choice.stats.rows <= max_rows
        # Rows of other batches differ by rounding: the weights are half precision.
        assert np.all(np.exp(choice.logprobs) <= np.exp(exact.logprobs_high) * 1.02 + 1e-12)
        assert np.all(np.exp(choice.logprobs_high) * 1.02 + 1e-12 >= np.exp(exact.logprobs))
        gaps = np.exp(choice.logprobs_high) - np.exp(choice.logprobs)
        assert np.all(gaps <= before + 1e-9)
        before = gaps
    assert before.max() < 1e-9
    assert choice.name == exact.name == values[choice.index]
    best = model.choose("Next: ", values, tokenization="all", top=1)
    assert (best.name, best.certain) == (exact.name, True)
    assert best.stats.rows <= exact.stats.rows
    with pytest.raises(tokentrie.errors.OptionError, match="max_rows is 0: it must be from 1"):
        model.choose("Next: ", values, max_rows=0)
    with pytest.raises(tokentrie.errors.OptionError, match="made of tokens already"):
        model.choose("Next: ", Trie.from_strings(model.vocab, values), tokenization="all")
    with pytest.raises(tokentrie.errors.OptionError, match="'some'"):
        model.choose("Next: ", values, tokenization="some")
    own = model.choose("Next: ", values)
    for top in (None, 1):
        few = model.choose("Next: ", values, top=top, max_rows=1)
        assert not np.isnan([few.logprobs, few.logprobs_high]).any()
        assert np.all(few.logprobs <= own.logprobs + 0.02)
        assert np.all(few.logprobs_high >= own.logprobs - 0.02)
        assert few.mass_bounds[0] <= few.mass_bounds[1]
        assert len(few.ranking) == (top or 3)


@pytest.mark.model
def test_a_damaged_set_ends_in_an_error(tmp_path: Path) -> None:
    model = tokentrie.Model(n_threads=1)
    path = tmp_path / "set.ttrie"
    for kind in ({"tokenization": "all"}, {}):
        trie = Trie.from_strings(model.vocab, ["reply_to_all", "reply_to_one", "no"], **kind)  # type: ignore[arg-type]
        trie.save(path)
        data = bytearray(path.read_bytes())
        sections = struct.unpack_from("<I", data, 44)[0]
        for at in range(64, 64 + 32 * sections, 32):
            number, _, begin, length = struct.unpack_from("<IIQQ", data, at)
            if number == (9 if kind else 2):
                # Where edges lead, or where children begin: nowhere, but for the root's.
                keep = 0 if kind else 8
                data[begin + keep : begin + length] = (b"\xff" if kind else b"\1\0\0\0") * (
                    (length - keep) // (1 if kind else 4)
                )
        path.write_bytes(data)
        with pytest.raises(TrieError):
            Trie.open(path, verify=True)
        damaged = Trie.open(path)
        for skip_ahead in (True, False):
            with pytest.raises(TrieError, match="damaged"):
                model.generate("Next: ", damaged, skip_ahead=skip_ahead, after="stop", max_tokens=8)


def test_long_names_of_files(tmp_path: Path) -> None:
    trie = Trie.from_sequences([[1, 2]])
    path = tmp_path / ("n" * 247 + ".ttrie")
    trie.save(path)
    assert Trie.open(path) == trie
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.model
def test_ctrl_c_ends_a_build() -> None:
    vocab = tokentrie.Model(n_threads=1).vocab
    values = [f"value {number * 7919 % 100_003} of many" for number in range(100_000)]
    for kind in ({"tokenization": "all"}, {"open_end": True}):
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            Trie.from_strings(vocab, values, **kind)  # type: ignore[arg-type]
        assert len(Trie.from_strings(vocab, values[:10], **kind)) == 10  # type: ignore[arg-type]
