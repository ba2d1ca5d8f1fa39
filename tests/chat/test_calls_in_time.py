"""Calls that would go on past `max_tokens` end in time, by arguments that hold: judged by `json`."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from budget import cases
from models import TINY
from tokentrie import Model, verify_chat_receipt

pytestmark = pytest.mark.model

ASK = [{"role": "user", "content": "Write a long note about everything."}]


def tool(properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return {"type": "function", "function": {"name": "note", "description": "Notes.", "parameters": parameters}}


@pytest.fixture(scope="module", params=[1, 2], ids=["alone", "slots"])
def model(request: pytest.FixtureRequest) -> Model:
    return Model(TINY, slots=request.param, n_ctx=1024)


def never_ending(model: Model, letters: str) -> dict[int, float]:
    tokens = (int(token) for token in range(len(model.vocab)))
    return {token: 50.0 for token in tokens if (piece := model.vocab[token]) and set(piece) <= set(letters.encode())}


KINDS: dict[str, Any] = {
    "text": {"type": "string"},
    "number": {"type": "integer"},
    "real": {"type": "number"},
    "list": {"type": "array", "items": {"type": "string"}},
    "inner": {"type": "object", "properties": {"deep": {"type": "string"}}, "required": ["deep"]},
}
PYTHON = {"text": str, "number": int, "real": (int, float), "list": list, "inner": dict}


@pytest.mark.parametrize("seed", range(cases(60)))
def test_required_calls_end_in_time(model: Model, seed: int) -> None:
    rng = random.Random(seed)
    names = rng.sample([*KINDS], rng.randrange(1, 4))
    tools = [tool({name: KINDS[name] for name in names})]
    bias = never_ending(model, rng.choice(["abc de", "123", "xyz"]))
    most = rng.randrange(100, 220)
    said: dict[str, Any] = {"tools": tools, "tool_choice": "required", "enable_thinking": False}
    settings: dict[str, Any] = rng.choice([{}, {"mode": "sampled", "seed": seed, "temperature": 1.2}])
    message = model.chat(ASK, max_tokens=most, logit_bias=bias, receipt=True, **said, **settings)
    assert message.finish == "tool_calls"
    for call in message.tool_calls:
        arguments = json.loads(call.arguments)
        assert set(arguments) == set(names)
        assert all(isinstance(arguments[name], PYTHON[name]) for name in names)
    assert message.stats is not None
    assert message.stats.tokens <= most
    assert message.receipt is not None
    verify_chat_receipt(message.receipt, model.chat_format, ASK, **said)
    heard = model.chat(ASK, max_tokens=most, logit_bias=bias, **said, **settings)
    assert [call.arguments for call in heard.tool_calls] == [call.arguments for call in message.tool_calls]


def test_a_text_that_never_ends(model: Model) -> None:
    tools, bias = [tool({"text": {"type": "string"}, "number": {"type": "integer"}})], never_ending(model, "abc de")
    said: dict[str, Any] = {"tools": tools, "tool_choice": "required", "enable_thinking": False}
    message = model.chat(ASK, max_tokens=120, logit_bias=bias, **said)
    arguments = json.loads(message.tool_calls[0].arguments)
    assert len(arguments["text"]) > 60
    assert isinstance(arguments["number"], int)
    assert message.completed
    # The context is a limit, too.
    full = Model(TINY, n_ctx=128).chat(ASK, logit_bias=bias, **said)
    assert full.finish == "tool_calls"
    assert full.completed
    assert len(json.loads(full.tool_calls[0].arguments)["text"]) > 20


def test_a_call_that_ends_by_itself_is_as_ever(model: Model) -> None:
    tools = [tool({"word": {"enum": ["yes", "no"]}})]
    near, far = (model.chat(ASK, tools, tool_choice="required", max_tokens=most) for most in (60, 400))
    assert [call.arguments for call in near.tool_calls] == [call.arguments for call in far.tool_calls]
    assert not far.completed


def test_free_text_is_cut_off_as_ever(model: Model) -> None:
    message = model.chat(ASK, [tool({"text": {"type": "string"}})], tool_choice="none", max_tokens=8)
    assert not message.completed
