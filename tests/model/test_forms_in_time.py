"""Values of forms that could go on for ever end where the room does: judged by `re` and `json`."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from budget import cases
from models import TINY
from tokentrie import Form, JsonSchema, Model, Regex, Slot, Text
from tokentrie.errors import ContextError
from tokentrie.receipts import verify_receipt

pytestmark = pytest.mark.model

PROMPT = "A record: "
N_CTX = 256


@pytest.fixture(scope="module", params=[1, 2], ids=["alone", "slots"])
def model(request: pytest.FixtureRequest) -> Model:
    return Model(TINY, slots=request.param, n_ctx=N_CTX)


def never_ending(model: Model, letters: str) -> dict[int, float]:
    """A bias to tokens of nothing but these letters: what they may stand in never ends."""
    tokens = (int(token) for token in range(len(model.vocab)))
    return {token: 50.0 for token in tokens if (piece := model.vocab[token]) and set(piece) <= set(letters.encode())}


ENDLESS = [
    ("(ab|c)+x?", "abc"),
    ("[0-9]+", "7"),
    ("-?[1-9][0-9]*", "7"),
    ("([a-z]{3},)+[a-z]{2};", "abc,"),
    ("(\\([a-z]*\\) )*end", "ab() "),
]


@pytest.mark.parametrize(
    "settings", [{}, {"mode": "sampled", "seed": 5, "temperature": 2.0}], ids=["greedy", "sampled"]
)
@pytest.mark.parametrize(("pattern", "letters"), ENDLESS)
def test_endless_rules(model: Model, pattern: str, letters: str, settings: dict[str, Any]) -> None:
    form = Form('{"v": "', Slot("v", Regex(pattern)), '", "n": ', Slot("n", ["one", "two"]), "}")
    bias = never_ending(model, letters)
    out = model.generate(PROMPT, form, logit_bias=bias, **settings)
    assert re.fullmatch(f'\\{{"v": "({pattern})", "n": (one|two)\\}}', out.text), out.text
    assert re.fullmatch(pattern, out.values["v"])
    assert out.completed
    assert "v" in out.completed_fields
    assert len(out.tokens) > 150
    assert len(model.vocab.tokenize(PROMPT)) + len(out.tokens) <= N_CTX + 8
    again = model.generate(PROMPT, form, logit_bias=bias, logprobs=2, receipt=True, **settings)
    assert (again.tokens, again.completed_fields) == (out.tokens, out.completed_fields)
    assert len(again.logprobs) == len(again.tokens)
    assert again.receipt is not None
    verify_receipt(again.receipt, form, vocab=model.vocab)
    # Nothing is wrong with the context afterwards, and what ends by itself is as ever.
    short = model.generate(PROMPT, Form("x ", Slot("v", ["one", "two"])))
    assert not short.completed
    assert short.completed_fields == []


def endless_schema(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.choice(["string", "integer", "number", "array", "object"] if depth < 2 else ["string", "integer"])
    if kind == "array":
        return {"type": "array", "items": endless_schema(rng, depth + 1)}
    if kind == "object":
        return endless_object(rng, depth)
    return {"type": kind}


def endless_object(rng: random.Random, depth: int = 0) -> Any:
    names = rng.sample(["id", "name", "note", "tags", "size"], rng.randrange(1, 4))
    properties = {name: endless_schema(rng, depth + 1) for name in names}
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def fits(schema: Any, value: Any) -> bool:
    match schema["type"]:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list) and all(fits(schema["items"], one) for one in value)
    inside = schema["properties"]
    return (
        isinstance(value, dict) and set(value) == set(inside) and all(fits(inside[name], value[name]) for name in value)
    )


@pytest.mark.parametrize("seed", range(cases(80)))
def test_json_without_bounds(model: Model, seed: int) -> None:
    rng = random.Random(seed)
    schema, after = endless_object(rng), rng.choice([" ok", "\n", ""])
    form = Form("It is ", Slot("it", JsonSchema(schema)), after)
    bias = never_ending(model, rng.choice(["abc de", "123", "{}[],", " "]))
    settings: dict[str, Any] = rng.choice([{}, {"mode": "sampled", "seed": seed, "temperature": 1.5}])
    out = model.generate(PROMPT, form, logit_bias=bias, **settings)
    assert out.text.startswith("It is ")
    assert out.text.endswith(after)
    assert fits(schema, json.loads(out.text.removeprefix("It is ").removesuffix(after))), (schema, out.text)
    assert out.completed == (len(out.completed_fields) > 0)
    assert out.completed or len(out.tokens) < 240


def test_many_slots_share_the_room(model: Model) -> None:
    parts: list[Any] = []
    for name in "abcdefgh":
        parts += [f" {name}=", Slot(name, Regex("[0-9]+"))]
    out = model.generate(PROMPT, Form(*parts), logit_bias=never_ending(model, "7"))
    assert re.fullmatch("".join(f" {name}=[0-9]+" for name in "abcdefgh"), out.text)
    assert out.completed_fields == list("abcdefgh")


def test_text_ends_in_time(model: Model) -> None:
    form = Form('{"note": "', Text("note", stop='"', max_tokens=2000), '", "n": ', Slot("n", Regex("[0-9]{1,3}")), "}")
    out = model.generate(PROMPT, form, logit_bias=never_ending(model, "abc de"))
    assert re.fullmatch('\\{"note": "[^"]*", "n": [0-9]{1,3}\\}', out.text)
    assert out.completed_fields[0] == "note"


def test_what_cannot_end_says_so(model: Model) -> None:
    form = Form("x", Slot("far", Regex("a{3000,}")))
    with pytest.raises(ContextError, match=r'"far".*n_ctx'):
        model.generate(PROMPT, form)


def test_room_changes_nothing(model: Model) -> None:
    wide = Model(TINY, n_ctx=2048)
    form = Form("a ", Slot("w", Regex("[a-z]{1,9}")), " b ", Slot("n", Regex("[0-9]{1,4}")), ".")
    for seed in range(8):
        settings: dict[str, Any] = {"mode": "sampled", "seed": seed, "temperature": 2.0}
        near, far = (one.generate(PROMPT, form, **settings) for one in (model, wide))
        assert near.tokens == far.tokens
        assert not near.completed
