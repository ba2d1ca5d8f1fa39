"""What is added to logits: beside a twin that adds it to the model's rows itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from budget import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from models import TINY
from tokentrie import Form, Model, Regex, Sampler, Slot, Text, Trie
from tokentrie.errors import OptionError, VocabularyError

pytestmark = pytest.mark.model

PROMPT = "The sky is "
CLOSE = 0.05
"""Rows differ a little with what is decoded beside them."""
BIASES = st.dictionaries(st.integers(0, 2553), st.floats(-200, 200, width=32), min_size=1, max_size=300)


@pytest.fixture(scope="module", params=[1, 4], ids=["alone", "slots"])
def model(request: pytest.FixtureRequest) -> Model:
    return Model(TINY, slots=request.param)


def agrees(
    model: Model, tokens: list[int], sampler: Sampler | None, bias: dict[int, float], skip: bool = False
) -> None:
    """Each token is the best of its row after the bias, or one that rounding may prefer; with `skip` text that must
    come is in the tokenizer's tokens, whatever their rows say."""
    prompt = model.vocab.tokenize(PROMPT, add_special=True)
    for number, token in enumerate(tokens):
        row = model.logits(prompt + tokens[:number])
        for one, number_of_it in bias.items():
            row[one] += np.float32(number_of_it)
        legal = sampler.allowed() if sampler is not None else np.arange(len(row))
        assert token in legal
        must = [int(one) for one in sampler.forced()] if sampler is not None and skip else []
        assert [token] == must[:1] or row[token] >= row[legal].max() - CLOSE
        if sampler is not None:
            sampler.accept(token)


@settings(max_examples=cases(60), deadline=None)
@given(bias=BIASES, skip=st.booleans())
def test_free_text_takes_the_best_after_it(model: Model, bias: dict[int, float], skip: bool) -> None:
    prompt = model.vocab.tokenize(PROMPT, add_special=True)
    out = model.generate(prompt, max_tokens=6, logit_bias=bias, skip_ahead=skip)
    agrees(model, out.tokens, None, bias)


@settings(max_examples=cases(60), deadline=None)
@given(bias=BIASES, skip=st.booleans())
def test_nothing_comes_by_it_that_may_not_come(model: Model, bias: dict[int, float], skip: bool) -> None:
    rule = Regex("[a-f]{2,4}(blue|red)")
    prompt = model.vocab.tokenize(PROMPT, add_special=True)
    out = model.generate(prompt, rule, logit_bias=bias, skip_ahead=skip)
    assert out.text.endswith(("blue", "red"))
    agrees(model, out.tokens, Sampler(model.vocab, rule), bias, skip)


def test_a_value_is_banned_by_its_first_token_unless_it_is_the_only_one(model: Model) -> None:
    names = ["blue", "red", "green"]
    trie = Trie.from_strings(model.vocab, names)
    first = {leaf.name: leaf.tokens[0] for leaf in trie}
    assert len({*first.values()}) == 3
    prompt = model.vocab.tokenize(PROMPT, add_special=True)
    for name in names:
        others = {token: -1000.0 for other, token in first.items() if other != name}
        assert model.generate(prompt, trie, logit_bias=others).leaf.name == name
        assert model.generate(prompt, trie, logit_bias={first[name]: 1000}, mode="sampled", seed=1).leaf.name == name
    every = dict.fromkeys(first.values(), -1000.0)
    assert model.generate(prompt, trie, logit_bias=every).leaf.name in names


def test_it_acts_in_forms_chats_and_what_is_told(model: Model) -> None:
    star = model.vocab.tokenize("*")[0]
    form = Form("A: ", Slot("a", Regex("[*x]{3}")), ", ", Text("b", stop="!", max_tokens=3))
    out = model.generate(PROMPT, form, logit_bias={star: 1000.0}, logprobs=0)
    assert (out.values["a"], out.values["b"]) == ("***", "***")
    assert [one.logprob for one in out.logprobs if one.token == star] == [0.0] * 6
    messages = [{"role": "user", "content": "hello"}]
    said = model.chat(messages, logit_bias={star: 1000.0}, max_tokens=5, enable_thinking=False)
    assert said.content == "*****"
    assert model.chat(messages, logit_bias={}).content == model.chat(messages).content


@pytest.mark.parametrize(
    ("bias", "error", "says"),
    [
        ([5], TypeError, "logit_bias must map token ids to numbers, got list"),
        ({"5": 1}, TypeError, "logit_bias: a token id must be an integer"),
        ({5: "x"}, TypeError, r"logit_bias\[5\] must be a number, not 'x' of type str"),
        ({5: float("nan")}, OptionError, r"logit_bias\[5\] is NaN: it must be finite"),
        ({5: 1e300}, OptionError, r"logit_bias\[5\] is inf"),
        ({-1: 1}, VocabularyError, "logit_bias: token id -1"),
        ({2554: 1}, OptionError, "logit_bias.*2554: it must be from 0 to 2553"),
    ],
)
def test_what_is_wrong_is_named(model: Model, bias: Any, error: type[Exception], says: str) -> None:
    for call in (model.generate, model.chat):
        given = PROMPT if call == model.generate else [{"role": "user", "content": "hi"}]
        with pytest.raises(error, match=says):
            call(given, logit_bias=bias)


def test_whole_values_are_not_weighed_by_tokens(model: Model) -> None:
    form = Form("A: ", Slot("a", ["x", "y"]))
    for more in ({"mode": "exact"}, {"probabilities": True}):
        with pytest.raises(OptionError, match="logit_bias is for tokens that are chosen one by one"):
            model.generate(PROMPT, form, logit_bias={1: 1.0}, **more)
