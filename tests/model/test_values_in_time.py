"""Values and calls that would go on past the limit end in time: judged by `re`, `json` and `jsonschema`."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import jsonschema
import pytest
from budget import cases
from models import TINY, precise_path
from tokentrie import JsonSchema, Model, Regex
from tokentrie.errors import TruncatedError
from tokentrie.receipts import verify_chat_receipt, verify_receipt

pytestmark = pytest.mark.model

PROMPT = "A record: "
ASK = [{"role": "user", "content": "Write a long note about everything."}]


@pytest.fixture(scope="module", params=[1, 2], ids=["alone", "slots"])
def model(request: pytest.FixtureRequest) -> Model:
    return Model(precise_path("trained"), slots=request.param, n_ctx=1024, n_threads=1, precise=True)


def never_ending(model: Model, letters: str) -> dict[int, float]:
    """A bias to tokens of nothing but these letters: what they may stand in never ends."""
    tokens = (int(token) for token in range(len(model.vocab)))
    return {token: 50.0 for token in tokens if (piece := model.vocab[token]) and set(piece) <= set(letters.encode())}


def endless_schema(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    simple = ["string", "integer", "number", "boolean", "enum"]
    match rng.choice([*simple, "array", "object", "either"] if depth < 2 else simple):
        case "array":
            return {"type": "array", "items": endless_schema(rng, depth + 1), "minItems": rng.randrange(3)}
        case "object":
            return endless_object(rng, depth)
        case "enum":
            return {"enum": rng.sample(["red", "green", "dark blue", 17, None], 3)}
        case "either":
            return {"anyOf": [endless_object(rng, depth), {"type": "string", "minLength": rng.randrange(8)}]}
        case kind:
            return {"type": kind}


def endless_object(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    names = rng.sample(["id", "name", "note", "tags", "size"], rng.randrange(1, 4))
    properties = {name: endless_schema(rng, depth + 1) for name in names}
    required = rng.sample(names, rng.randrange(1, len(names) + 1))
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def settings_of(rng: random.Random, model: Model) -> dict[str, Any]:
    how: dict[str, Any] = rng.choice([{}, {"mode": "sampled", "seed": rng.randrange(99), "temperature": 1.5}])
    letters = rng.choice(["abc de", "123", "{}[],", " ", ""])
    return {**how, "logit_bias": never_ending(model, letters)} if letters else how


@pytest.mark.parametrize("seed", range(cases(100)))
def test_documents_end_in_time(model: Model, seed: int) -> None:
    rng = random.Random(seed)
    schema, how, most = endless_object(rng), settings_of(rng, model), rng.randrange(110, 200)
    out = model.generate(PROMPT, JsonSchema(schema), max_tokens=most, **how)
    jsonschema.validate(json.loads(out.text), schema)
    assert out.value == json.loads(out.text)
    assert len(out.tokens) <= most
    assert out.finish == "span"
    # The same with a row for each token, and with nobody who listens.
    again = model.generate(PROMPT, JsonSchema(schema), max_tokens=most, logprobs=1, receipt=True, **how)
    assert (again.tokens, again.completed) == (out.tokens, out.completed)
    assert len(again.logprobs) == len(again.tokens)
    assert again.receipt is not None
    verify_receipt(again.receipt, JsonSchema(schema), vocab=model.vocab)


ENDLESS = [
    ("(ab|c)+x?", "abc", 4),
    ("[0-9]+", "7", 3),
    ("-?[1-9][0-9]*(\\.[0-9]+)?", "7.", 3),
    ("([a-z]{3},)+[a-z]{2};", "abc,", 8),
    ("(\\([a-z]*\\) )*end", "ab() ", 5),
    ('"([^"\\\\]|\\\\.)*"', "ab\\", 4),
]


@pytest.mark.parametrize("seed", range(cases(60)))
def test_rules_end_in_time(model: Model, seed: int) -> None:
    rng = random.Random(seed)
    pattern, letters, least = rng.choice(ENDLESS)
    most = rng.randrange(least, 40)
    how: dict[str, Any] = rng.choice([{}, {"mode": "sampled", "seed": seed, "temperature": 2.0}])
    bias = never_ending(model, letters)
    out = model.generate(PROMPT, Regex(pattern), max_tokens=most, logit_bias=bias, **how)
    assert re.fullmatch(pattern, out.text), (pattern, most, out.text)
    assert out.value == out.text
    # One token of the limit is the end of the output.
    assert len(out.tokens) <= most
    # As much as there is room for is the model's.
    assert not out.completed or len(out.tokens) >= most - 12
    slow = model.generate(PROMPT, Regex(pattern), max_tokens=most, logit_bias=bias, skip_ahead=False, **how)
    assert re.fullmatch(pattern, slow.text)
    if not how:
        assert (slow.text, slow.completed) == (out.text, out.completed)


@pytest.mark.parametrize("seed", range(cases(40)))
def test_room_changes_nothing(model: Model, seed: int) -> None:
    rng = random.Random(seed)
    rule = rng.choice([Regex("[a-z]{1,9}( [a-z]{1,5}){0,3}"), JsonSchema({"enum": ["a", "bc", 12]}), ["yes", "no"]])
    how: dict[str, Any] = {"mode": "sampled", "seed": seed, "temperature": 2.0}
    far = model.generate(PROMPT, rule, **how)
    near = model.generate(PROMPT, rule, max_tokens=len(far.tokens) + 1, **how)
    assert not far.completed
    assert (near.tokens, near.value, near.completed) == (far.tokens, far.value, False)


def test_a_value_that_has_no_room_is_cut_off_as_ever(model: Model) -> None:
    for rule in (Regex("a{30}b*"), JsonSchema({"type": "string", "minLength": 90})):
        with pytest.raises(TruncatedError) as caught:
            model.generate(PROMPT, rule, max_tokens=4)
        assert not caught.value.partial.completed
        assert len(caught.value.partial.tokens) == 4
    assert not model.generate(PROMPT, max_tokens=4).completed


def test_the_context_is_a_limit_too() -> None:
    small = Model(TINY, n_ctx=96)
    schema = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
    out = small.generate(PROMPT, JsonSchema(schema), logit_bias=never_ending(small, "abc de"))
    jsonschema.validate(json.loads(out.text), schema)
    assert out.completed
    assert len(out.tokens) > 60


def tool(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "note", "description": "Notes.", "parameters": schema}}


@pytest.mark.parametrize("seed", range(cases(100)))
def test_required_calls_end_in_time(model: Model, seed: int) -> None:
    rng = random.Random(seed)
    schema, how, most = endless_object(rng), settings_of(rng, model), rng.randrange(140, 220)
    said: dict[str, Any] = {"tools": [tool(schema)], "tool_choice": "required", "enable_thinking": False}
    said["parallel_tool_calls"] = rng.random() < 0.5
    message = model.chat(ASK, max_tokens=most, **said, **how)
    assert message.finish == "tool_calls"
    assert message.tool_calls
    for call in message.tool_calls:
        jsonschema.validate(json.loads(call.arguments), schema)
    assert message.stats is not None
    assert message.stats.tokens <= most
    heard = model.chat(ASK, max_tokens=most, receipt=True, **said, **how)
    assert [call.arguments for call in heard.tool_calls] == [call.arguments for call in message.tool_calls]
    assert heard.completed == message.completed
    assert heard.receipt is not None
    verify_chat_receipt(heard.receipt, model.chat_format, ASK, **said)


def test_a_text_that_never_ends(model: Model) -> None:
    properties = {"text": {"type": "string"}, "number": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    bias = never_ending(model, "abc de")
    said: dict[str, Any] = {"tools": [tool(schema)], "tool_choice": "required", "enable_thinking": False}
    message = model.chat(ASK, max_tokens=120, logit_bias=bias, **said)
    arguments = json.loads(message.tool_calls[0].arguments)
    jsonschema.validate(arguments, schema)
    assert len(arguments["text"]) > 30
    assert message.completed
    assert message.to_dict()
    # Content that is held is the same.
    held = model.chat(ASK, max_tokens=60, logit_bias=bias, constraint=JsonSchema(schema), enable_thinking=False)
    jsonschema.validate(json.loads(held.content), schema)
    assert (held.completed, held.finish) == (True, "span")
    # Calls that end by themselves do so as ever, and free text is cut off.
    word = tool({"type": "object", "properties": {"word": {"enum": ["yes", "no"]}}, "required": ["word"]})
    near, far = (model.chat(ASK, [word], tool_choice="required", max_tokens=most) for most in (90, 400))
    assert [call.arguments for call in near.tool_calls[:1]] == [call.arguments for call in far.tool_calls[:1]]
    free = model.chat(ASK, [word], tool_choice="none", max_tokens=8)
    assert (free.completed, free.finish) == (False, "max_tokens")
