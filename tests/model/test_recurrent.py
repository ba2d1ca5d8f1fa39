"""Recurrent models have a state that cannot be shared by branches or cut: the same results, one branch at a time."""

from __future__ import annotations

import json

import numpy as np
import pytest
from models import recurrent_path
from tokentrie import Form, Model, Slot, Trie

pytestmark = pytest.mark.model

PROMPT = "The next action is "
VALUES = ["send_mail", "send_mail_now", "send", "cancel", "x", "translate document"]


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(recurrent_path(), n_ctx=256, n_threads=1)


def row(model: Model, tokens: list[int]) -> np.ndarray:
    model.clear()
    logits = model.logits(tokens).astype(np.float64)
    return logits - np.logaddexp.reduce(logits)


def test_a_choice_is_that_of_scoring_token_by_token(model: Model) -> None:
    prompt = model.vocab.tokenize(PROMPT)
    rows = [model.vocab.tokenize(value) for value in VALUES]
    expected = []
    for tokens in rows:
        logprob = sum(row(model, prompt + tokens[:at])[token] for at, token in enumerate(tokens))
        after = {other[len(tokens)] for other in rows if other[: len(tokens)] == tokens and len(other) > len(tokens)}
        if after:
            logprob += np.log1p(-np.exp(row(model, prompt + tokens)[sorted(after)]).sum())
        expected.append(logprob)
    choice = model.choose(prompt, VALUES)
    np.testing.assert_allclose(choice.logprobs, expected, atol=1e-4)
    many = list(model.choose_many([prompt, "Now ", prompt], VALUES))
    np.testing.assert_allclose(many[2].logprobs, expected, atol=1e-4)
    assert abs(choice.probabilities.sum() - 1) < 1e-6
    best = model.choose(prompt, VALUES, top=2)
    assert list(best.ranking) == list(choice.ranking[:2])


@pytest.mark.parametrize("seed", range(5))
def test_skipping_ahead_changes_nothing(model: Model, seed: int) -> None:
    settings = {"mode": "sampled", "seed": seed, "temperature": 3.0}
    model.clear()
    ahead = model.generate(PROMPT, VALUES, **settings)
    model.clear()
    each = model.generate(PROMPT, VALUES, skip_ahead=False, **settings)
    assert ahead.tokens == each.tokens
    assert ahead.stats.forward_passes <= each.stats.forward_passes


def test_forms_and_repeated_prompts(model: Model) -> None:
    form = Form('{"a": "', Slot("a", VALUES), '", "b": "', Slot("b", ["1", "2", ""]), '"}')
    out = model.generate(PROMPT, form, probabilities=True)
    assert json.loads(out.text) == out.values
    again = model.generate(PROMPT, form)
    assert again.text == out.text
    assert model.generate(PROMPT + "once more ", Trie.from_sequences([[5, 6], [5, 7]])).leaf is not None
