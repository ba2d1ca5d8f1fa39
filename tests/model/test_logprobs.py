"""How probable tokens were: beside a twin that masks the model's rows itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tokentrie
from models import TINY
from tokentrie import Form, Model, Regex, Sampler, Slot
from tokentrie.errors import OptionError
from tokentrie.results import Step, TokenLogprob

pytestmark = pytest.mark.model

PROMPT = "The sky is "
CLOSE = 0.05
"""Rows differ a little with what is decoded beside them."""


@pytest.fixture(scope="module", params=[1, 4], ids=["alone", "slots"])
def model(request: pytest.FixtureRequest) -> Model:
    return Model(TINY, slots=request.param)


def twin(model: Model, prompt: list[int], steps: list[Step], sampler: Sampler | None, top: int) -> list[Any]:
    """Every row by itself; where one text alone can come, nothing is left to chance."""
    found: list[Any] = []
    tokens = [step.token for step in steps]
    for number, token in enumerate(tokens):
        row = model.logits(prompt + tokens[:number]).astype(np.float64)
        legal = sampler.allowed() if sampler is not None else np.arange(len(row))
        if steps[number].forced:
            pieces = sorted((model.vocab[int(one)] for one in legal), key=len)
            assert all(pieces[-1].startswith(piece) for piece in pieces)
            legal = np.array([token])
        logs = row[legal] - row[legal].max()
        logs -= np.log(np.exp(logs).sum())
        order = np.lexsort((legal, -logs))[:top]
        found.append((token, logs[list(legal).index(token)], [(int(legal[at]), logs[at]) for at in order]))
        if sampler is not None:
            sampler.accept(token)
    return found


def check(known: list[TokenLogprob], expected: list[Any]) -> None:
    assert [one.token for one in known] == [token for token, _, _ in expected]
    for one, (_, logprob, top) in zip(known, expected, strict=True):
        assert abs(one.logprob - logprob) < CLOSE
        np.testing.assert_allclose([log for _, log in one.top], [log for _, log in top], atol=CLOSE)
        assert [log for _, log in one.top] == sorted((log for _, log in one.top), reverse=True)


def test_rivals_have_texts(model: Model) -> None:
    out = model.generate(PROMPT, max_tokens=4, logprobs=5)
    for one in out.logprobs:
        pieces = [model.vocab[token].decode(errors="replace") for token, _ in one.top]
        assert one.texts(model.vocab) == list(zip(pieces, (log for _, log in one.top), strict=True))
    small = tokentrie.Vocab.from_tokens([b"a"])
    with pytest.raises(tokentrie.errors.VocabularyError, match="outside the vocabulary of 1 tokens"):
        out.logprobs[0].texts(small)


@pytest.mark.parametrize("settings", [{}, {"mode": "sampled", "seed": 3, "temperature": 3.0, "top_k": 5}])
def test_of_free_text_and_of_constraints(model: Model, settings: dict[str, Any]) -> None:
    prompt = [*map(int, model.vocab.tokenize(PROMPT))]
    for rule in (None, Regex("(blue|red|[0-9]{3}) sky")):
        steps: list[Step] = []
        out = model.generate(prompt, rule, max_tokens=6, logprobs=3, on_step=steps.append, **settings)
        check(out.logprobs, twin(model, prompt, steps[: len(out.tokens)], rule and Sampler(model.vocab, rule), 3))


def test_what_had_to_come_is_certain(model: Model) -> None:
    out = model.generate(PROMPT, ["blue as the sea"], logprobs=1)
    assert [(one.logprob, one.top) for one in out.logprobs] == [(0.0, [(token, 0.0)]) for token in out.tokens]
    assert model.generate(PROMPT, ["blue"]).logprobs == []
    assert all(one.top == [] for one in model.generate(PROMPT, max_tokens=3, logprobs=0).logprobs)


def test_steps_and_stop_texts_and_several(model: Model) -> None:
    seen: list[Step] = []
    # Held to letters, so that no model ends by itself.
    out = model.generate(PROMPT, Regex("[a-h]{20}"), max_tokens=12, logprobs=2, on_step=seen.append, on_invalid="none")
    assert [step.logprob for step in seen] == out.logprobs
    assert [one.token for one in out.logprobs] == out.tokens
    for one in model.generate(PROMPT, max_tokens=3, logprobs=1, mode="sampled", seed=1, n=3):
        assert [known.token for known in one.logprobs] == one.tokens


def test_of_forms(model: Model) -> None:
    form = Form("It is ", Slot("colour", ["blue", "red"]), " and ", Slot("size", ["big", "small"]), ".")
    out = model.generate(PROMPT, form, logprobs=1)
    assert [one.token for one in out.logprobs] == out.tokens
    assert all(one.logprob > -20 for one in out.logprobs)
    with pytest.raises(OptionError, match="logprobs"):
        model.generate(PROMPT, form, mode="exact", logprobs=1)
    with pytest.raises(OptionError, match="logprobs"):
        model.generate(PROMPT, logprobs=-1)


def test_of_the_content_of_chats(model: Model) -> None:
    messages = [{"role": "user", "content": "Say three letters."}]
    message = model.chat(messages, constraint=Regex("[a-z]{3}"), logprobs=2)
    text = b"".join(model.vocab[one.token] for one in message.logprobs)
    assert message.content.encode() in text
    assert all(len(one.top) <= 2 and one.logprob <= 0 for one in message.logprobs)
    free = model.chat(messages, max_tokens=8, logprobs=1)
    assert free.content.encode() in b"".join(model.vocab[one.token] for one in free.logprobs)
    assert model.chat(messages, max_tokens=4).logprobs == []
