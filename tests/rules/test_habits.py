"""What is written from habit, of other libraries and of Python: it is taken, or the error says what to write."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import tokentrie
from budget import cases
from models import precise_model
from tokentrie import Model, Regex, Sampler, Slot, TokenTrieError
from tokentrie.errors import OptionError, PayloadError
from tokentrie.rules import Integer, OneOf, Rule

pytestmark = pytest.mark.model

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}


@pytest.fixture(scope="module")
def model() -> Model:
    return precise_model("trained")


def uses(model: Model) -> dict[str, Callable[[Any], object]]:
    """The places that take a constraint."""
    return {
        "generate": lambda given: model.generate("x", given, max_tokens=40, on_invalid="none"),
        "constraint": tokentrie.constraint,
        "sampler": lambda given: Sampler(model.vocab, given),
        "slot": lambda given: Slot("x", given),
        "gate": lambda given: tokentrie.rules.ThinkGate("<think>", "</think>", then=given),
        "chat": lambda given: model.chat([{"role": "user", "content": "x"}], constraint=given, on_invalid="none"),
    }


@pytest.mark.parametrize("name", ["generate", "constraint", "sampler", "slot", "gate", "chat"])
def test_a_json_schema_is_one(model: Model, name: str) -> None:
    for given in (SCHEMA, json.dumps(SCHEMA), json.dumps(SCHEMA, indent=1).replace("{", "\n{", 1)):
        uses(model)[name](given)
    named = {"type": "object", "properties": {"descriptors": {"type": "integer"}}, "required": ["descriptors"]}
    uses(model)[name](json.dumps(named))


def test_its_value(model: Model) -> None:
    for given in (SCHEMA, json.dumps(SCHEMA)):
        assert tokentrie.constraint(given) == tokentrie.constraint({"json_schema": SCHEMA})
    assert set(model.generate("x", SCHEMA).value) == {"a"}


KINDS = ["choice", "regex", "grammar", "lark", "gbnf", "json_schema", "integer", "number", "string", "sequence", "form"]


@pytest.mark.parametrize("number", range(cases(100)))
def test_a_slip_in_a_kind_is_no_payload(model: Model, number: int) -> None:
    seed = random.SystemRandom().getrandbits(32)
    draw = random.Random(seed)
    kind = draw.choice(KINDS)
    at = draw.randrange(len(kind))
    slip = draw.choice([kind[:at] + kind[at + 1 :], kind[:at] + draw.choice("qxz_") + kind[at:], kind.upper()])
    for name, use in uses(model).items():
        with pytest.raises(OptionError, match=r"unknown kind of spec: expected .* did you mean") as caught:
            use({slip: draw.choice(["a", {}, ["a"], 5])})
        assert f'"{slip}"' in str(caught.value), (seed, name)
        assert "descriptors" not in str(caught.value), (seed, name)


def refused(call: Callable[[], object], *says: str) -> None:
    with pytest.raises((TokenTrieError, TypeError)) as caught:
        call()
    for part in says:
        assert part in str(caught.value)


def test_rows(model: Model) -> None:
    """One line for each habit."""
    prompts, names = ["Is it on? ", "Is it off? "], ["yes", "no"]
    refused(lambda: model.generate("x", r"\d{3}"), "Regex(...)", "must be a list of str")
    refused(lambda: model.generate("x", "[0-9]{3}"), "Regex(...)")
    refused(lambda: model.generate("x", 'root ::= "a"'), "Gbnf(...)")
    refused(lambda: model.generate("x", "start: /a/"), "Lark(...)")
    refused(lambda: model.choose("x", {"yes": "it is so", "no": "it is not"}), "Model.decide", "list(...)")
    refused(lambda: model.generate("x", [1, 2]), "Literal[1, 2]", "Integer(1, 9)")
    refused(lambda: model.generate("x", range(1, 10)), "Literal[1, 2]", "Integer(1, 9)")
    refused(lambda: model.choose("x", [1, 2]), "Literal[1, 2]")
    refused(lambda: model.choose(prompts, names), "choose_many")
    refused(lambda: model.generate([{"role": "user", "content": "x"}], names), "Model.chat", "chat_prompt")
    refused(lambda: model.choose_many(prompts, names, progress=True), "progress must be a function")
    refused(lambda: list(model.choose_many(["Is it on? ", float("nan")], names)), "prompt 1", "missing (nan)")
    refused(lambda: list(model.choose_many(["Is it on? ", None], names)), "prompt 1", "missing (None)")
    refused(lambda: Model(n_gpu_layers=-2), "n_gpu_layers is -2", "-1 for all")
    refused(lambda: tokentrie.constraint({"type": "regex", "pattern": "a"}), 'did you mean "regex"')
    refused(lambda: tokentrie.constraint({"guided_json": SCHEMA}), 'did you mean "json_schema"')
    refused(lambda: tokentrie.constraint({}), "unknown kind of spec", "got one with none")


def test_payloads_stay_payloads(model: Model) -> None:
    for text in ("{", '{"descriptors": 5}', '{"modelId": "a", "descriptors": []}'):
        with pytest.raises((PayloadError, OptionError)):
            model.generate("x", text)
    leaves = [{"name": "a", "tokens": [5]}]
    payload = {"modelId": "x", "descriptors": [{"path": "p", "leaves": leaves}]}
    for given in (payload, json.dumps(payload), json.dumps(payload).encode()):
        assert model.generate("x", given).leaf.name == "a"


def test_all_layers() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Model(n_gpu_layers=-1).close()
    # Of a build that uses no graphics card.
    assert all("n_gpu_layers has no effect" in str(one.message) for one in caught)


def test_either() -> None:
    one: Rule[Any] = Regex("a+") | Integer(1, 3)
    assert isinstance(one, OneOf)
    assert [text for text in ("aa", "3") if not one.matches(text)] == []
    assert (Regex("a") | "b").matches("b")
    assert ("b" | Regex("a")).matches("b")
    with pytest.raises(TypeError):
        Regex("a") | 5  # type: ignore[operator]


def test_a_whole_table_names_its_column_of_texts(model: Model) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"id": [1, 2], "text": ["a", "b"]})
    refused(lambda: list(model.choose_many(table, ["yes", "no"])), "['text'] of it")


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "object", "properties": {"p": {"type": "string", "pattern": r"^(a|b)\1$"}}}, "back reference"),
        ({"type": "array", "items": {"$ref": "https://example.org/a.json"}}, "https://example.org/a.json"),
    ],
)
def test_not_supported_says_why(schema: dict[str, Any], says: str) -> None:
    refused(lambda: tokentrie.JsonSchema(schema), "not supported", says)
