"""Random schemas beside the package jsonschema: what may be written is valid, and what is valid may be written."""

from __future__ import annotations

import itertools
import json
import math
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tokentrie
from budget import BUDGET, cases

jsonschema = pytest.importorskip("jsonschema")

SEED = 0 if BUDGET < 1 else random.SystemRandom().randrange(10**9)
"""Other schemas each time at full size."""
NAMES = ["a", "b", "c", "ab"]
TEXTS = ["", "a", "b", "ab", "abc", "x"]
NUMBERS = [-2, -1, 0, 1, 2, 3, 1.5, 10]
PATTERNS = ["^a", "b$", "^[ab]+$", "^.{2}$"]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
VOCAB = tokentrie.Vocab.from_tokens([bytes([byte]) for byte in range(256)] + [b"<end>"], eog=[256], control=[256])

NOT_TOLD = object()

Draw = random.Random
Words = dict[str, Callable[[], Any]]


def a_value(draw: Draw, depth: int = 2) -> Any:
    kind = draw.random()
    if depth == 0 or kind < 0.5:
        return draw.choice([None, True, False, draw.choice(TEXTS), draw.choice(TEXTS), draw.choice(NUMBERS)])
    if kind < 0.7:
        return [a_value(draw, depth - 1) for _ in range(draw.randrange(4))]
    return {name: a_value(draw, depth - 1) for name in draw.sample(NAMES, draw.randrange(4))}


def leaves(draw: Draw) -> Words:
    """Keywords whose values are no schemas."""
    return {
        "enum": lambda: [a_value(draw, 1) for _ in range(draw.randrange(1, 4))],
        "const": lambda: a_value(draw, 1),
        "minimum": lambda: draw.choice(NUMBERS),
        "maximum": lambda: draw.choice(NUMBERS),
        "exclusiveMinimum": lambda: draw.choice(NUMBERS),
        "multipleOf": lambda: draw.choice([1, 2, 3, 0.5]),
        "minLength": lambda: draw.randrange(3),
        "maxLength": lambda: draw.randrange(4),
        "pattern": lambda: draw.choice(PATTERNS),
        "required": lambda: draw.sample(NAMES, draw.randrange(1, 3)),
        "minProperties": lambda: draw.randrange(3),
        "maxProperties": lambda: draw.randrange(4),
        "minItems": lambda: draw.randrange(3),
        "maxItems": lambda: draw.randrange(4),
        "uniqueItems": lambda: draw.random() < 0.5,
        "dependentRequired": lambda: {draw.choice(NAMES): draw.sample(NAMES, draw.randrange(3))},
        "minContains": lambda: draw.randrange(3),
        "maxContains": lambda: draw.randrange(1, 3),
    }


def holders(draw: Draw, depth: int) -> Words:
    """Keywords whose values have schemas in them."""

    def one() -> Any:
        return a_schema(draw, depth - 1)

    def some() -> list[Any]:
        return [one() for _ in range(draw.randrange(1, 3))]

    return {
        "properties": lambda: {name: one() for name in draw.sample(NAMES, draw.randrange(1, 4))},
        "additionalProperties": lambda: draw.choice([False, one()]),
        "patternProperties": lambda: {draw.choice(["^a", "b$"]): one()},
        "propertyNames": lambda: draw.choice([{"maxLength": 1}, {"pattern": "^a"}, {"enum": ["a", "b"]}, one()]),
        "unevaluatedProperties": lambda: draw.choice([False, one()]),
        "dependentSchemas": lambda: {draw.choice(NAMES): one()},
        "items": one,
        "prefixItems": some,
        "contains": one,
        "unevaluatedItems": lambda: draw.choice([False, one()]),
        "anyOf": some,
        "oneOf": some,
        "allOf": some,
        "not": one,
        "if": one,
        "then": one,
        "else": one,
    }


FIT = {
    "integer": ["enum", "const", "minimum", "maximum", "exclusiveMinimum", "multipleOf"],
    "string": ["enum", "minLength", "maxLength", "pattern"],
    "array": ["minItems", "maxItems", "uniqueItems", "items", "prefixItems", "contains", "maxContains"],
    "object": ["required", "minProperties", "maxProperties", "dependentRequired", "properties", "additionalProperties"],
}


def a_schema(draw: Draw, depth: int = 2) -> Any:
    if draw.random() < 0.05:
        return draw.choice([True, False])
    schema: dict[str, Any] = {}
    if draw.random() < 0.75:
        schema["type"] = draw.choice(TYPES) if draw.random() < 0.8 else draw.sample(TYPES, 2)
    words = leaves(draw) | (holders(draw, depth) if depth else {})
    fit = FIT.get(str(schema.get("type")), [])
    for _ in range(draw.randrange(1, 4)):
        word = draw.choice(fit) if fit and draw.random() < 0.6 else draw.choice(list(words))
        if word in words:
            schema[word] = words[word]()
    if "if" in schema and depth:
        schema["then"] = words["then"]()
    return schema


def orders(value: Any) -> Iterator[Any]:
    """The same with its members in any order: a document has them in one."""
    if isinstance(value, dict):
        for names in itertools.permutations(value):
            members = [list(itertools.islice(orders(value[name]), 6)) for name in names]
            for each in itertools.product(*members):
                yield dict(zip(names, each, strict=True))
    elif isinstance(value, list):
        for each in itertools.product(*[list(itertools.islice(orders(item), 6)) for item in value]):
            yield list(each)
    else:
        yield value


def may_be_written(rule: tokentrie.JsonSchema, value: Any) -> bool:
    texts = (json.dumps(one, separators=(",", ":")) for one in orders(value))
    return any(rule.matches(text) for text in texts)


def a_walk(rule: tokentrie.JsonSchema, draw: Draw) -> bytes | None:
    """A text of tokens that the mask allows, where it ended soon enough."""
    sampler, text = tokentrie.Sampler(VOCAB, rule, end_tokens=[256]), bytearray()
    while len(text) < 120:
        allowed = sampler.allowed().tolist()
        assert allowed, f"nothing may follow {bytes(text)!r}"
        if allowed == [256] or (256 in allowed and draw.random() < 0.4):
            return bytes(text)
        plain = [token for token in allowed if token < 127 and token != ord("\\")]
        ends = [token for token in plain if chr(token) in '"]}']
        token = draw.choice(ends) if ends and draw.random() < 0.35 else draw.choice(plain or allowed)
        if token == 256:
            return bytes(text)
        sampler.accept(token)
        text.append(token)
    return None


def told(text: bytes) -> Any:
    """The document, where jsonschema can say whether it is valid: not of a number beyond floats, of which it does not
    know what it is a multiple of, and not of names that come twice, which it never sees.
    """

    def number(text: str) -> float:
        if math.isinf(value := float(text)):
            raise OverflowError(text)
        return value

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(value := dict(pairs)) < len(pairs):
            raise OverflowError(pairs)
        return value

    try:
        return json.loads(text, parse_float=number, object_pairs_hook=members)
    except OverflowError:
        return NOT_TOLD


def made(schema: Any, *, lenient: bool = False) -> tokentrie.JsonSchema | str:
    """The rule, or why there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return tokentrie.JsonSchema(schema, whitespace="none", lenient=lenient)
        except tokentrie.RuleError as error:
            return str(error)


def test_what_may_be_written_is_what_is_valid() -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEED, SEED + cases(5000)):
        draw = random.Random(seed)
        schema = a_schema(draw)
        validator = jsonschema.Draft202012Validator(schema)
        values = [a_value(draw) for _ in range(40)]
        rule = made(schema)
        if isinstance(rule, str):
            is_nothing = "no document is allowed" in rule
            assert is_nothing or "not supported" in rule, (seed, schema, rule)
            assert not is_nothing or not any(map(validator.is_valid, values)), (seed, schema, rule)
            seen["allows nothing" if is_nothing else "refused"] += 1
            continue
        seen["made"] += 1
        for _ in range(4):
            if (text := a_walk(rule, draw)) and (value := told(text)) is not NOT_TOLD:
                assert validator.is_valid(value), (seed, schema, text)
                seen["walked"] += 1
        for value in values:
            valid = validator.is_valid(value)
            assert may_be_written(rule, value) == valid, (seed, schema, value)
            seen["valid" if valid else "invalid"] += 1
    assert seen["made"] > 2 * seen["refused"], seen
    assert seen["walked"] > seen["made"], seen
    assert min(seen["valid"], seen["invalid"]) > seen["made"], seen


def test_lenient_holds_the_rest() -> None:
    unheld = 0
    for seed in range(SEED, SEED + cases(2000)):
        draw = random.Random(seed)
        schema = {"type": "object", "properties": {"a": a_schema(draw), "b": {"enum": [1, 2]}}, "required": ["b"]}
        rule = made(schema, lenient=True)
        if isinstance(rule, str):
            assert "no document is allowed" in rule, (seed, schema, rule)
            continue
        strict = made(schema)
        unheld += bool(rule.unheld)
        assert isinstance(strict, str) == bool(rule.unheld), (seed, schema, rule.unheld, strict)
        assert all(place.startswith("/properties/a") for place, _ in rule.unheld), (seed, schema, rule.unheld)
        assert not may_be_written(rule, {"b": 3}), (seed, schema)
    assert unheld < cases(100), "hardly anything is left out"
