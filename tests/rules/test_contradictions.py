"""Values that are listed beside a type that none of them has: an error in documents; in tools the values win."""

from __future__ import annotations

import json
import random
import warnings
from typing import Any

import pytest
import tokentrie
from budget import cases
from tokentrie import ChatFormat, JsonSchema, RuleError, Vocab
from tokentrie.errors import TokenTrieWarning

TEMPLATE = """\
{%- for m in messages -%}<|{{ m.role }}|>{{ m.content or '' }}
{%- for c in m.tool_calls -%}<tool_call>
{{ {"name": c.function.name, "arguments": c.function.arguments} | tojson }}
</tool_call>{%- endfor -%}<|end|>{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"""

VALUES: list[Any] = [None, True, False, 0, 7, -3, 2.5, "", "a", "1", [], ["a"], {}, {"a": 1}]
TYPES = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def drawn(draw: random.Random) -> tuple[dict[str, Any], str, bool]:
    """A schema that lists values beside types, the keyword that lists them, and whether a value has a type."""
    names = draw.sample(sorted(TYPES), draw.choice([1, 1, 1, 2, 3]))
    values = draw.sample(VALUES, draw.randint(1, 5))
    keyword = draw.choice(["enum", "enum", "const"])
    values = values[:1] if keyword == "const" else values
    schema = {"type": names[0] if len(names) == 1 and draw.random() < 0.8 else names}
    schema[keyword] = values[0] if keyword == "const" else values
    return schema, keyword, any(TYPES[name](value) for name in names for value in values)


@pytest.fixture(scope="module")
def chat() -> tuple[ChatFormat, Vocab]:
    tokens = [bytes([byte]) for byte in range(256)]
    return ChatFormat(TEMPLATE), Vocab.from_tokens(tokens)


@pytest.mark.parametrize("number", range(cases(60)))
def test_what_meets_is_named(chat: tuple[ChatFormat, Vocab], number: int) -> None:
    seed = random.SystemRandom().getrandbits(32)
    schema, keyword, fits = drawn(random.Random(seed))
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}, "tone": schema}, "required": ["tone"]}
    format, vocab = chat
    tools = [{"name": "paint", "parameters": parameters}, {"name": "stop"}]
    note = f"seed {seed}: {schema}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if fits:
            JsonSchema(schema)
            format.constraint(tools, vocab)
            return
        for given in (schema, parameters):
            with pytest.raises(RuleError) as caught:
                JsonSchema(given)
            place = "at /properties/tone: " if given is parameters else ""
            assert f"{place}no document is allowed: {keyword} and type exclude each other" in str(caught.value), note
            assert json.dumps(schema["type"], separators=(",", ":")) in str(caught.value), note
        strict = [{"name": "paint", "parameters": {**parameters, "additionalProperties": False}, "strict": True}]
        with pytest.raises(RuleError) as caught:
            format.constraint(strict, vocab)
        said = str(caught.value)
        assert all(word in said for word in ('"paint"', "/properties/tone", f"{keyword} and type exclude")), said + note
    # The listed values, whether the argument is required or not, and no others.
    for required in (["tone"], []):
        tools = [{"name": "paint", "parameters": {**parameters, "required": required}}, {"name": "stop"}]
        with pytest.warns(TokenTrieWarning, match=f'"paint".*/properties/tone.*"type" is not held: {keyword} lists'):
            constraint = format.constraint(tools, vocab, tool_choice="required")
        listed = [schema["const"]] if keyword == "const" else schema["enum"]
        for value in VALUES:
            is_listed = any(value == one and type(value) is type(one) for one in listed)
            assert takes(vocab, constraint, call({"tone": value})) == is_listed, (note, value)
        assert takes(vocab, constraint, call({"n": 1})) == (not required), note


def call(arguments: dict[str, Any]) -> str:
    return f"<tool_call>\n{json.dumps({'name': 'paint', 'arguments': arguments})}\n</tool_call>"


def takes(vocab: Vocab, constraint: Any, text: str) -> bool:
    sampler = tokentrie.Sampler(vocab, constraint)
    for byte in text.encode():
        if byte not in sampler.allowed().tolist():
            return False
        sampler.accept(byte)
    return True


def test_a_reference_and_what_holds_at_once(chat: tuple[ChatFormat, Vocab]) -> None:
    format, vocab = chat
    for schema in ({"$ref": "#/$defs/tone", "type": "integer"}, {"allOf": [{"type": "integer"}, {"enum": ["low"]}]}):
        parameters = {"type": "object", "properties": {"tone": schema}, "$defs": {"tone": {"enum": ["low", "high"]}}}
        with pytest.raises(
            RuleError, match=r'enum and type exclude each other: type is "integer", and enum lists "low"'
        ):
            format.constraint([{"name": "paint", "parameters": {**parameters, "required": ["tone"]}}], vocab)
        with pytest.warns(TokenTrieWarning, match="an optional argument is left out: enum and type"):
            format.constraint([{"name": "paint", "parameters": parameters}], vocab)
