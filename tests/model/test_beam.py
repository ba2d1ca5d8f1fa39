"""`Model.beam` against a score of every leaf, each alone."""

from __future__ import annotations

import asyncio
import random
import threading

import numpy as np
import pytest
from budget import cases
from tokentrie import CancelToken, Model, Trie, Vocab
from tokentrie.errors import CancelledError, OptionError, TimedOutError, TrieError, VocabularyError
from tokentrie.results import Hypothesis

pytestmark = pytest.mark.model

PROMPT = "The next name is"
# The tiny model's weights are quantised: what is decoded together differs by that much from what is decoded alone.
ROUNDING = 2e-2
SYLLABLES = ["ka", "lo", "mi", "red", "star", "ban", "é", "el", "su", " of", "gra", "ho", "\u00fc", "wood", "-"]


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(n_ctx=512, n_threads=1, precise=True)


def names(rng: random.Random, count: int) -> list[str]:
    return sorted({" " + "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(1, 4))) for _ in range(count)})


def log_softmax(row: np.ndarray) -> np.ndarray:
    row = row.astype(np.float64) - row.max()
    return np.asarray(row - np.log(np.exp(row).sum()))


def scored(model: Model, trie: Trie) -> dict[int, float]:
    """The log-probability of each leaf, token by token; of one that others go on from, that none of them does."""
    prompt, rows = model.vocab.tokenize(PROMPT, add_special=True, parse_special=True), {}

    def after(tokens: tuple[int, ...]) -> np.ndarray:
        if tokens not in rows:
            rows[tokens] = log_softmax(model.logits([*prompt, *tokens]))
        return rows[tokens]

    scores = {}
    for leaf in trie:
        score = sum(after(tuple(leaf.tokens[:at]))[token] for at, token in enumerate(leaf.tokens))
        children = trie.allowed(leaf.tokens)
        if len(children):
            score += np.log1p(-np.exp(after(tuple(leaf.tokens))[children]).sum())
        scores[leaf.index] = float(score)
    return scores


@pytest.mark.parametrize("seed", range(cases(20)))
def test_against_a_score_of_every_leaf(model: Model, seed: int) -> None:
    rng = random.Random(seed)
    texts = names(rng, rng.randint(1, 40))
    trie, k = Trie.from_strings(model.vocab, texts), rng.randint(1, 12)
    exact = scored(model, trie)
    best = sorted(exact, key=lambda leaf: -exact[leaf])[:k]

    # As wide as the set: the best, in order, each with its probability.
    found = model.beam(PROMPT, trie, k, width=len(trie))
    np.testing.assert_allclose([one.logprob for one in found], [exact[leaf] for leaf in best], atol=ROUNDING)
    np.testing.assert_allclose([exact[one.leaf.index] for one in found], [exact[leaf] for leaf in best], atol=ROUNDING)
    assert all(isinstance(one, Hypothesis) and one.leaf.tokens == one.tokens for one in found)
    assert all(trie.leaf(one.leaf.index) == one.leaf for one in found)

    # Narrow: what is found is as probable as it says, best first, and no value comes twice.
    narrow = model.beam(PROMPT, trie, k, width=rng.randint(1, 3))
    assert len(narrow) <= k
    assert len({one.leaf.index for one in narrow}) == len(narrow)
    scores = [one.logprob for one in narrow]
    assert scores == sorted(scores, reverse=True)
    np.testing.assert_allclose(scores, [exact[one.leaf.index] for one in narrow], atol=ROUNDING)

    # A list of texts is as a set of them, numbered as it was given.
    rng.shuffle(texts)
    listed = model.beam(PROMPT, texts, k, width=len(texts))
    assert [texts[one.leaf.index] for one in listed] == [one.leaf.name for one in listed]
    np.testing.assert_allclose(sorted(-one.logprob for one in listed), sorted(-one.logprob for one in found), atol=0.5)

    # What a text begins, ranked: the way from half a name to its probable ends.
    begin = rng.choice(texts)[: rng.randint(1, 4)]
    near = trie.complete(begin, None)
    ranked = model.beam(PROMPT, trie.filtered(allow=near), 100, width=100)
    assert {one.leaf.name for one in ranked} == {leaf.name for leaf in near}


def test_several_spellings_of_a_value_count_together(model: Model) -> None:
    texts = [" red", " redwood", " star"]
    every = Trie.from_strings(model.vocab, texts, tokenization="all")
    exact = model.choose(PROMPT, every)
    found = model.beam(PROMPT, every, 3, width=2000)
    assert [one.leaf.index for one in found] == exact.ranking.tolist()
    np.testing.assert_allclose([one.logprob for one in found], exact.logprobs[exact.ranking], atol=ROUNDING)
    for width in (1, 4):
        for one in model.beam(PROMPT, every, 3, width=width):
            assert one.logprob <= exact.logprobs[one.leaf.index] + ROUNDING


def test_a_choice_by_a_beam_says_what_it_passed_over(model: Model) -> None:
    trie = Trie.from_strings(model.vocab, names(random.Random(1), 300))
    exact, narrow = model.choose(PROMPT, trie), model.choose(PROMPT, trie, beam=2)
    wide = model.choose(PROMPT, trie, beam=len(trie))
    assert exact.certain
    assert wide.certain
    assert wide.index == exact.index
    assert narrow.stats.rows < wide.stats.rows <= exact.stats.rows
    assert len(narrow.ranking) == 2
    low, high = narrow.mass_bounds
    assert low <= exact.mass + 1e-6
    assert exact.mass <= high + 1e-6
    assert not narrow.certain or narrow.index == exact.index
    many = list(model.choose_many([PROMPT, "The sky is"], trie, beam=2))
    np.testing.assert_allclose(many[0].logprobs, narrow.logprobs, atol=ROUNDING)


def test_end_tokens_count(model: Model) -> None:
    texts, ends = [" red", " redwood", " star"], model.vocab.eog
    exact = model.choose(PROMPT, texts, end_tokens=ends)
    found = model.beam(PROMPT, texts, end_tokens=ends, width=50)
    assert [one.leaf.index for one in found] == exact.ranking.tolist()
    np.testing.assert_allclose([one.logprob for one in found], exact.logprobs[exact.ranking], atol=ROUNDING)


def test_what_cannot_be_searched_is_said(model: Model) -> None:
    texts = [" red", " blue"]
    for k in (0, -1, 2**32):
        with pytest.raises(OptionError, match=f"k is {k}: it must be from 1 to 4294967295"):
            model.beam(PROMPT, texts, k)
        with pytest.raises(OptionError, match=f"width is {k}: it must be from 1 to 4294967295"):
            model.beam(PROMPT, texts, width=k)
        with pytest.raises(OptionError, match=f"beam is {k}: it must be from 1 to 4294967295"):
            model.choose(PROMPT, texts, beam=k)
    with pytest.raises(TrieError):
        model.beam(PROMPT, [])
    with pytest.raises(TrieError):
        model.beam(PROMPT, ["a", "a"])
    other = Vocab.from_tokens([bytes([byte]) for byte in range(256)])
    with pytest.raises(VocabularyError):
        model.beam(PROMPT, Trie.from_strings(other, texts, tokenization="all"))
    assert len(model.beam(PROMPT, texts, 10)) == 2


def test_it_is_cancelled_and_awaited(model: Model) -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(CancelledError):
        model.beam(PROMPT, [" red", " blue"], cancel=token)
    awaited = asyncio.run(model.abeam(PROMPT, [" red", " blue"], 1, width=4))
    assert [one.leaf.name for one in awaited] == [one.leaf.name for one in model.beam(PROMPT, [" red", " blue"], 1)]


def test_many_choices_are_awaited_and_ended_by_time(model: Model) -> None:
    prompts, told = [PROMPT, "The sky is", "It is"], []
    awaited = asyncio.run(
        model.achoose_many(prompts, [" red", " blue"], progress=lambda done, of: told.append((done, of)))
    )
    assert [choice.index for choice in awaited] == [one.index for one in model.choose_many(prompts, [" red", " blue"])]
    assert told == [(3, 3)]
    with pytest.raises(TimedOutError):
        list(model.choose_many(prompts, [" red", " blue"], timeout=0.0))
    with pytest.raises(OptionError, match="timeout"):
        model.choose_many(prompts, [" red", " blue"], timeout=-1.0)

    async def cancelled() -> None:
        task = asyncio.ensure_future(model.achoose_many(prompts * 200, [" red", " blue"]))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert model.choose(PROMPT, [" red", " blue"]).name


def test_slots_search_side_by_side(model: Model) -> None:
    """An engine gives what one context does."""
    trie = Trie.from_strings(model.vocab, names(random.Random(2), 200))
    alone = model.beam(PROMPT, trie, 5)
    with Model(n_ctx=512, n_threads=1, precise=True, slots=2) as shared:
        found: list[list[Hypothesis]] = []
        threads = [threading.Thread(target=lambda: found.append(shared.beam(PROMPT, trie, 5))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 3
    for one in found:
        assert [each.leaf.index for each in one] == [each.leaf.index for each in alone]
        np.testing.assert_allclose([each.logprob for each in one], [each.logprob for each in alone], atol=ROUNDING)
