"""Skipping ahead changes what generation costs and nothing else: the same tokens, one forward pass for each choice."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from budget import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from models import PRECISE, precise_model
from tokentrie import Generated, Model, Sampler, Trie

pytestmark = pytest.mark.model

# Prefixes of each other, long forced runs, single tokens.
VALUES = [
    "cancel_meeting",
    "cancel_meeting_series",
    "create_reminder",
    "create_reminder_for_a_whole_group_of_people",
    "stop",
    "x",
    "translate document",
    "translate document into German",
]
PROMPTS = ["The next action is ", "Please call off the conference. ", "a", '<tool_call>\n{"name": "']
DRAWS: list[dict[str, Any]] = [
    {},
    *({"mode": "sampled", "seed": seed} for seed in range(3)),
    {"mode": "sampled", "seed": 3, "temperature": 5.0},
    {"mode": "sampled", "seed": 4, "temperature": 0.0},
    {"mode": "sampled", "seed": 5, "temperature": 3.0, "top_k": 2},
    {"mode": "sampled", "seed": 6, "temperature": 3.0, "top_p": 0.7},
    {"mode": "sampled", "seed": 7, "temperature": 3.0, "min_p": 0.2},
    {"mode": "sampled", "seed": 8, "temperature": 2.0, "top_k": 5, "top_p": 0.9, "min_p": 0.05},
]
QUESTIONS = Path(__file__).parents[2] / "tools" / "tiny_model" / "heldout.jsonl"


def branches(leaves: Sequence[Sequence[int]], ends: Sequence[int], tokens: Sequence[int]) -> int:
    """How many of these tokens, from the root on, had a rival."""
    legal = set(map(tuple, leaves))
    count = 0
    for depth in range(len(tokens)):
        walk = tuple(tokens[:depth])
        children = {leaf[depth] for leaf in legal if len(leaf) > depth and leaf[:depth] == walk}
        inside = depth == 0 or any(leaf[:depth] == walk for leaf in legal)
        open_leaf = walk in legal and not ends
        allowed = children | (set(ends) if walk in legal else set())
        count += not inside or open_leaf or len(allowed) > 1
    return count


def run(model: Model, prompt: Any, trie: Trie, **options: Any) -> tuple[Generated, list[int]]:
    """From an empty context; also every token that was taken, one that ended the span from outside included."""
    taken: list[int] = []
    model.clear()
    out = model.generate(prompt, trie, on_step=lambda step: taken.append(step.token), **options)
    return out, taken


def both(model: Model, prompt: Any, trie: Trie, **options: Any) -> tuple[Generated, list[int]]:
    """Generates with and without skipping and checks what both must agree in and what each must cost."""
    ahead, taken = run(model, prompt, trie, **options)
    slow, taken_slowly = run(model, prompt, trie, skip_ahead=False, **options)
    assert len(taken) == len(taken_slowly)
    assert (ahead.tokens, ahead.text, ahead.leaf) == (slow.tokens, slow.text, slow.leaf)
    assert ahead.finish == slow.finish

    ends = options.get("end_tokens", ())
    choices = branches([leaf.tokens for leaf in trie], ends, taken)
    for out in (ahead, slow):
        assert out.stats.sampled_tokens == choices
        assert out.stats.forced_tokens == len(taken) - choices
        assert out.stats.starved == 0
    assert ahead.stats.forward_passes == choices
    assert ahead.stats.forward_passes_saved == ahead.stats.forced_tokens
    assert (slow.stats.forward_passes, slow.stats.forward_passes_saved) == (len(taken), 0)
    held = len(prompt) if not isinstance(prompt, str) else len(model.vocab.tokenize(prompt, True, True))
    assert slow.stats.tokens_decoded == held + len(taken) - 1, "the last token is not decoded"
    assert ahead.stats.tokens_decoded <= slow.stats.tokens_decoded
    assert (choices == 0) == (ahead.stats.tokens_decoded == 0)
    return ahead, taken


@pytest.mark.parametrize("name", PRECISE)
@pytest.mark.parametrize("ends", [False, True])
def test_the_same_tokens_in_fewer_passes(name: str, ends: bool) -> None:
    model = precise_model(name)
    trie = Trie.from_strings(model.vocab, VALUES)
    seen = set()
    for prompt in PROMPTS[:2] if name == "qwen2" else PROMPTS:
        for options in DRAWS:
            end_tokens = {"end_tokens": model.vocab.eog} if ends else {}
            out, _ = both(model, prompt, trie, **options, **end_tokens)
            assert out.finish == "span"
            assert out.leaf is not None
            assert out.text.removeprefix(" ") == out.leaf.name  # some tokenizers put a space before a text
            seen.add(out.text)
    assert len(seen) > 1


@pytest.mark.parametrize("name", [name for name in PRECISE if name != "qwen2"])
def test_free_text_after_the_value(name: str) -> None:
    model = precise_model(name)
    trie = Trie.from_strings(model.vocab, VALUES)
    # Over a flat row of 32,000 tokens one rounding can move a draw to the neighbour: few candidates, wide gaps.
    for options in [{}, *({"mode": "sampled", "seed": seed, "top_k": 3} for seed in range(5))]:
        for end_tokens in ({}, {"end_tokens": model.vocab.tokenize('"')[-1:]}):
            out, taken = both(model, PROMPTS[0], trie, after="free", max_tokens=24, **options, **end_tokens)
            assert out.leaf is not None
            assert out.tokens[: len(out.leaf.tokens)] == out.leaf.tokens
            assert out.finish in {"max_tokens", "end_of_generation"}
            assert len(taken) <= 24


@pytest.mark.parametrize("name", PRECISE)
def test_a_value_without_a_choice_costs_nothing(name: str) -> None:
    model = precise_model(name)
    trie = Trie.from_strings(model.vocab, [VALUES[3]])
    for options in DRAWS[:3]:
        out, _ = both(model, PROMPTS[0], trie, **options)
        assert out.leaf is not None
        assert (out.leaf.name, out.stats.forward_passes, out.stats.tokens_decoded) == (VALUES[3], 0, 0)
        assert out.stats.forward_passes_saved == len(out.tokens)


SEQUENCES = st.lists(st.lists(st.integers(300, 304), min_size=1, max_size=6), min_size=1, max_size=8)


@settings(max_examples=cases(100), deadline=None)
@given(SEQUENCES, st.lists(st.integers(303, 306), max_size=2, unique=True), st.sampled_from(DRAWS), st.integers(1, 8))
def test_any_set_of_sequences(
    leaves: list[list[int]], ends: list[int], options: dict[str, Any], max_tokens: int
) -> None:
    model, trie = precise_model("tiny"), Trie.from_sequences(leaves)
    out, _ = both(model, [9], trie, end_tokens=ends, max_tokens=max_tokens, **options)
    assert out.finish in {"span", "max_tokens"}
    assert len(out.tokens) <= max_tokens


def loop(model: Model, sampler: Sampler, prompt: list[int]) -> list[int]:
    """A host's own: a row for each branch, and what is forced after it comes along."""
    taken: list[int] = []
    while sampler.state == "active":
        taken += sampler.advance(model.logits(prompt + taken))
    return taken


@pytest.mark.parametrize("name", PRECISE)
def test_as_a_loop_by_hand(name: str) -> None:
    model = precise_model(name)
    trie = Trie.from_strings(model.vocab, VALUES)
    for text in PROMPTS[:2]:
        prompt = model.vocab.tokenize(text, add_special=True)
        for options in DRAWS:
            for end_tokens in (None, model.vocab.eog):
                out, taken = run(model, prompt, trie, end_tokens=end_tokens, **options)
                sampler = Sampler(model.vocab, trie, after="stop", end_tokens=end_tokens, **options)
                by_hand = loop(model, sampler, prompt)
                assert by_hand[: len(out.tokens)] == out.tokens
                assert len(by_hand) == len(taken)
                assert sampler.leaf == out.leaf


@pytest.mark.parametrize("options", DRAWS)
def test_after_a_reset(options: dict[str, Any]) -> None:
    model = precise_model("trained")
    prompt = model.vocab.tokenize(PROMPTS[0])
    sampler = Sampler(model.vocab, Trie.from_strings(model.vocab, VALUES), after="stop", **options)
    first = loop(model, sampler, prompt)
    for _ in range(2):
        sampler.reset()  # the draws begin again, too
        assert loop(model, sampler, prompt) == first


@pytest.mark.parametrize("ends", [False, True])
def test_after_a_rollback(ends: bool) -> None:
    model = precise_model("trained")
    trie = Trie.from_strings(model.vocab, VALUES)
    ends_of = model.vocab.eog if ends else None
    # From here on, as long a value as a model writes after one of these prompts.
    prompts = [model.vocab.tokenize(prompt) for prompt in PROMPTS]
    samplers = [Sampler(model.vocab, trie, after="stop", end_tokens=ends_of) for _ in prompts]
    walks = [loop(model, sampler, prompt) for sampler, prompt in zip(samplers, prompts, strict=True)]
    taken, sampler, prompt = max(zip(walks, samplers, prompts, strict=True), key=lambda one: len(one[0]))
    assert len(taken) > 3
    for n in range(1, len(taken) + 1):
        sampler.rollback(n)
        kept = taken[: len(taken) - n]
        assert kept + loop(model, sampler, prompt + kept) == taken


def test_limits_are_met_at_the_same_token() -> None:
    model = Model(n_ctx=64, n_threads=1)
    trie = Trie.from_strings(model.vocab, VALUES[2:4])
    length = max(len(leaf.tokens) for leaf in trie)
    for max_tokens in range(1, length + 2):
        out, taken = both(model, [9, 10], trie, max_tokens=max_tokens)
        assert out.finish == ("span" if out.leaf else "max_tokens")
        assert len(taken) <= max_tokens
    for room in range(length + 2):
        prompt = [40 + n for n in range(64 - room)]
        out, taken = both(model, prompt, trie)
        assert out.finish == ("span" if out.leaf else "context_full")
        assert len(taken) <= room + 1


def test_what_is_held_is_not_decoded_again() -> None:
    model = precise_model("trained")
    trie = Trie.from_strings(model.vocab, VALUES)
    prompt = model.vocab.tokenize("one two three four five six seven")
    first, _ = run(model, prompt, trie)
    again = model.generate(prompt, trie)
    assert again.tokens == first.tokens
    assert first.stats.tokens_decoded - again.stats.tokens_decoded >= len(prompt) - 1


def test_real_questions() -> None:
    """Long lists and long prompts, with the model as it is shipped."""
    model = Model(n_ctx=2048, n_threads=1)
    lines = [line for line in QUESTIONS.read_text(encoding="utf-8").splitlines() if '"tool5_opaque"' in line]
    saved = 0
    for row in map(json.loads, random.Random(0).sample(lines, 20)):
        out, _ = both(model, row["prompt"], Trie.from_strings(model.vocab, row["choices"]))
        saved += out.stats.forward_passes_saved
    assert saved > 0
