"""Thinking before a value."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import tokentrie
from hypothesis import given
from hypothesis import strategies as st
from models import precise_model
from support import VECTORS
from tokentrie import Batch, Sampler, TokenNotAllowedError, Trie, Vocab
from tokentrie.errors import OptionError, TrieError
from tokentrie.rules import ThinkGate

CASES: list[dict[str, Any]] = json.loads((VECTORS / "think_and_items.json").read_text())["cases"]
ANSWERS = Trie.from_sequences([[1], [2]], names=["yes", "no"])


def cases(kind: str) -> Any:
    return pytest.mark.parametrize("case", [pytest.param(c, id=c["id"]) for c in CASES if c["kind"] == kind])


def gate_of(config: dict[str, Any], **options: Any) -> ThinkGate:
    return ThinkGate(config["begin"], config["end"], config["budget"], vocab=config["n_vocab"], **options)


def filler(config: dict[str, Any]) -> int:
    """A token that stands in no marker."""
    return next(token for token in range(config["n_vocab"]) if token not in [*config["begin"], *config["end"]])


@cases("think_steps")
def test_steps(case: dict[str, Any]) -> None:
    config = case["config"]
    gate = gate_of(config)
    for step in case["steps"]:
        gate.accept(step.get("accept", []))
        while gate.accepted < step.get("written", 0):
            gate.accept(gate.forced()[:1] if len(gate.forced()) else filler(config))
        logits = np.zeros(config["n_vocab"], dtype=np.float32)
        gate.apply(logits)
        legal = np.flatnonzero(logits == 0.0)
        assert np.array_equal(legal, gate.allowed())
        if "forced" in step:
            assert legal.tolist() == [step["forced"]] == gate.forced()[:1].tolist()
        else:
            assert sorted(set(range(config["n_vocab"])) - set(legal.tolist())) == step["masked"]


@cases("think_marker")
def test_how_much_of_the_marker_stands_there(case: dict[str, Any]) -> None:
    for before, token, after in zip(case["before"], case["token"], case["after"], strict=True):
        gate = ThinkGate([], case["end"], at_once=False, vocab=16)
        gate.accept(case["end"][:before])
        gate.accept(token)
        assert gate.end_matched == after


@cases("think_off")
def test_no_thinking_and_no_budget(case: dict[str, Any]) -> None:
    config = case["config"]
    gate = gate_of(config)
    if case["thinks"]:
        # A budget of 0 is not no limit: the end marker comes at once.
        assert gate.forced().tolist() == config["end"]
        with pytest.raises(TokenNotAllowedError):
            gate.accept(filler(config))
    else:
        assert len(Sampler(config["n_vocab"], tokentrie.rules.Unconstrained()).allowed()) == config["n_vocab"]


markers = st.lists(st.integers(0, 4), min_size=1, max_size=3)


@given(
    begin=markers, end=markers, budget=st.none() | st.integers(0, 5), choices=st.lists(st.integers(0, 99), max_size=20)
)
def test_walks(begin: list[int], end: list[int], budget: int | None, choices: list[int]) -> None:
    """Once the end marker begins it is written to its end, and thinking is never longer than the budget."""
    gate = ThinkGate(begin, end, budget, ANSWERS, vocab=8)
    rows = Batch(gate, rows=2, vocab=8, after="free")
    written: list[int] = []
    for choice in choices:
        legal = gate.allowed().tolist()
        assert rows.allowed(0).tolist() == rows.allowed(1).tolist() == legal
        forced = gate.forced().tolist()
        if gate.thinking == len(written) and gate.state == "active" and gate.end_matched == 0 and not forced:
            assert legal == [token for token in range(8) if token != begin[0] or token == end[0]]
        token = legal[choice % len(legal)]
        assert not forced or token == forced[0]
        copy = gate.clone()
        gate.accept(token)
        rows.accept([token, token])
        assert rows.thinking.tolist() == [gate.thinking] * 2
        gate.rollback(1)
        assert gate.allowed().tolist() == copy.allowed().tolist()
        gate.accept(token)
        written.append(token)
    assert budget is None or gate.thinking <= budget
    if gate.end_matched == len(end):
        closing = written[gate.thinking :]
        assert closing[: len(end)] == end
        assert gate.cut_short == (gate.thinking == budget)


def test_options() -> None:
    def legal(**options: Any) -> list[int]:
        return ThinkGate([7], [8, 9], then=ANSWERS, vocab=10, **options).forced().tolist()

    assert legal(started=False) == [7]
    assert legal(started=False, budget=0) == [7, 8, 9]
    assert legal(budget=0, message=[5, 6]) == [5, 6, 8, 9]
    assert ThinkGate([7], [8], then=ANSWERS, started=False, optional=True, vocab=10).allowed().tolist() == [1, 2, 7]
    skipped = ThinkGate([7], [8], then=ANSWERS, started=False, optional=True, vocab=10)
    skipped.accept(1)
    assert (skipped.leaf.name, skipped.thinking) == ("yes", 0)
    counted = ThinkGate([7], [8], 1, ANSWERS, started=False, budget_from="begin", vocab=10)
    counted.accept(7)
    assert counted.forced().tolist() == []
    masked = ThinkGate([], [8], masked=[3, 4], vocab=6 + 4)
    assert masked.allowed().tolist() == [0, 1, 2, 5, 6, 7, 8, 9]


def test_the_vocabulary_ends_no_thinking() -> None:
    vocab = Vocab.from_tokens([b"<", b"think", b">", b"</s>", b"yes", b"</"], eog=[3])
    yes = Trie.from_sequences([[4]])
    gate = ThinkGate([0], [5], then=yes, vocab=vocab)
    assert gate.allowed().tolist() == [1, 2, 4, 5], "neither the begin marker nor the end of the output"
    assert Sampler(vocab, ThinkGate([0], [5], then=yes)).allowed().tolist() == [1, 2, 4, 5]
    assert ThinkGate([0], [5], then=yes, masked=[], vocab=vocab).allowed().tolist() == [1, 2, 3, 4, 5]


def test_then_a_sampler() -> None:
    after = Sampler(12, ANSWERS, mode="sampled", seed=7, end_tokens=[4, 3], after="stop")
    gate = ThinkGate([7], [8, 9], 1, after)
    assert gate.seed == 7
    gate.accept([5, 8, 9, 1])
    assert gate.allowed().tolist() == [3, 4]
    gate.accept(4)
    assert (gate.state, gate.leaf.name, gate.allowed().tolist()) == ("complete", "yes", [3, 4])
    gate.reset()
    assert (gate.thinking, gate.state) == (0, "active")
    # As a constraint it begins anew, with the end tokens of its sampler.
    again = Sampler(12, gate)
    again.accept([8, 9, 2])
    assert again.allowed().tolist() == [3, 4]
    with pytest.raises(OptionError, match="end_tokens is given beside the Sampler"):
        ThinkGate([7], [8], then=after, end_tokens=[3])


def test_every_path_of_a_payload_is_behind_the_gate() -> None:
    leaves = [{"name": "A", "tokens": [1]}]
    payload = {"descriptors": [{"path": path, "leaves": leaves} for path in ("action", "colour")]}
    gate = ThinkGate([], [8], 0, payload, vocab=10)
    assert gate.paths == ["action", "colour"]
    gate.activate("colour")
    assert gate.forced().tolist() == [8, 1]


def test_free_text_after_it_has_no_markers() -> None:
    gate = ThinkGate([7], [8, 9], vocab=10)
    gate.accept([8, 9])
    assert gate.allowed().tolist() == [0, 1, 2, 3, 4, 5, 6, 9]
    gate = ThinkGate([7], [8, 9], then=ANSWERS, vocab=10)
    gate.accept([8, 9, 1])
    assert (gate.state, gate.allowed().tolist()) == ("complete", [0, 1, 2, 3, 4, 5, 6, 9])
    # A value that has such a token keeps it.
    named = Trie.from_sequences([[7, 8]], names=["odd"])
    gate = ThinkGate([7], [8, 9], then=named, vocab=10)
    gate.accept([8, 9])
    assert gate.forced().tolist() == [7, 8]


def test_bad_input() -> None:
    with pytest.raises(OptionError, match="end marker has no tokens"):
        ThinkGate([1], [])
    with pytest.raises(OptionError, match="ends after 1 tokens already"):
        ThinkGate([1], [2], message=[2, 3])
    with pytest.raises(OptionError, match="budget is -1"):
        ThinkGate([1], [2], -1)
    with pytest.raises(OptionError, match="budget_from is"):
        ThinkGate([1], [2], budget_from="marker")
    with pytest.raises(OptionError, match="optional=True goes with started=False"):
        ThinkGate([1], [2], optional=True)
    with pytest.raises(OptionError, match="knows no vocabulary"):
        ThinkGate([1], [2]).allowed()
    with pytest.raises(tokentrie.errors.VocabularyError, match="token id 12 is outside"):
        ThinkGate([1], [12], vocab=10)
    with pytest.raises(tokentrie.errors.VocabularyError, match="begin is the str"):
        ThinkGate("<think>", [2], vocab=10)
    with pytest.raises(OptionError, match="token 1 begins both"):
        ThinkGate([1], [3], then=ANSWERS, started=False, optional=True, vocab=10)
    with pytest.raises(TypeError):
        ThinkGate([1], [2], then=3, vocab=10)
    with pytest.raises(TypeError, match="cannot stand in a slot"):
        tokentrie.Slot("x", ThinkGate([1], [2]))
    gate = ThinkGate([1], [2, 3], then=ANSWERS, vocab=10)
    with pytest.raises(TokenNotAllowedError):
        gate.accept([4, 2, 4])
    assert gate.accepted == 0, "all of it or nothing"
    with pytest.raises(TrieError, match="anything may come"):
        tokentrie.sets.beam_search(lambda prefixes: np.zeros((len(prefixes), 10), np.float32), gate, width=2, vocab=10)


def test_in_a_batch_each_row_has_its_own() -> None:
    rows = Batch([ThinkGate([7], [8, 9], budget, ANSWERS) for budget in (0, 1)], vocab=10)
    assert [rows.allowed(row).tolist() for row in range(2)] == [[8], [0, 1, 2, 3, 4, 5, 6, 8, 9]]
    rows.accept([8, 5])
    rows.accept([9, 8])
    rows.reorder([1, 0, 1])
    assert (rows.thinking.tolist(), rows.forced(0).tolist()) == ([1, 0, 1], [9])


@pytest.mark.model
@pytest.mark.parametrize("budget", [0, 1, 6, None])
def test_in_the_model(budget: int | None) -> None:
    # With float16 weights a draw may fall otherwise where tokens are batched otherwise.
    model = precise_model("trained")
    end = model.vocab.tokenize("</think>", parse_special=True)
    message = model.vocab.tokenize(" Enough.")
    gate = ThinkGate("<think>", "</think>", budget, ["yes", "no"], message=" Enough.")
    sampling = tokentrie.Sampling("sampled", temperature=3.0, seed=3)
    outs = [
        model.generate("Is it? <think>", gate, sampling=sampling, skip_ahead=skip, max_tokens=200)
        for skip in (True, False)
    ]
    assert outs[0].tokens == outs[1].tokens
    out = outs[0]
    thought = out.stats.thinking_tokens
    if out.finish == "max_tokens":
        assert budget is None
        return
    assert out.leaf.name in ("yes", "no")
    assert out.text.endswith("</think>" + out.leaf.name)
    if budget is not None:
        assert thought <= budget
    if out.tokens[thought : thought + len(message)] == message and thought == budget:
        assert outs[0].stats.forward_passes_saved >= len(message) + len(end)
        assert outs[0].stats.forward_passes < outs[1].stats.forward_passes
    with pytest.raises(TrieError, match="cannot be listed"):
        model.choose("Is it?", gate)


def test_the_cases_of_others(shared_cases: list[dict[str, Any]]) -> None:
    """The same cases as they were handed over, where they are at hand."""
    ran = 0
    for case in shared_cases:
        if case["kind"] == "think_script":
            config = case["config"]
            gate = ThinkGate(
                config["begin_think"], config["end_think"], config["max_thinking_tokens"], vocab=config["vocab_size"]
            )
            for step in case["script"]:
                gate.accept(step.get("accept", []))
                while gate.accepted < step.get("output_len", 0):
                    gate.accept(gate.forced()[:1] if len(gate.forced()) else 3)
                legal, mask = set(gate.allowed().tolist()), step.get("mask", {})
                assert not legal & set(mask.get("masked", []))
                assert legal >= set(mask.get("free", []))
                assert "forced" not in mask or legal == {mask["forced"]}
            ran += 1
        elif case["kind"] == "think_update":
            for before, token, after in zip(case["initial_status"], case["feed"], case["expect_status"], strict=True):
                gate = ThinkGate([], case["end_think"], at_once=False, vocab=16)
                gate.accept([*case["end_think"][:before], token])
                assert gate.end_matched == after
            ran += 1
        elif case["kind"] == "think_config" and case["config"]["in_think_mode"]:
            config = case["config"]
            gate = ThinkGate(config["begin_think"], config["end_think"], 0, vocab=config["vocab_size"])
            assert gate.forced().tolist() == config["end_think"]
            ran += 1
    assert ran == 7


def test_masks_are_ascending() -> None:
    allowed = ThinkGate([7], [8], vocab=100).allowed().tolist()
    assert all(one < other for one, other in pairwise(allowed))
