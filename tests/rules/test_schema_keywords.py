"""One table of what is held of JSON Schema: in the arguments of tools, and in JsonSchema."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import tokentrie
from budget import BUDGET, cases
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
TABLE = json.loads((ROOT / "tests/vectors/schema_keywords.json").read_text(encoding="utf-8"))["keywords"]
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
    "{% for c in m.tool_calls %}<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
VOCAB = tokentrie.Vocab.from_tokens([bytes([byte]) for byte in range(256)] + [b"<end>"], eog=[256], control=[256])


def around(schema: Any) -> dict[str, Any]:
    """Arguments are an object: the schema of one of them."""
    whole = {"type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False}
    return whole | ({"$defs": schema["$defs"]} if "$defs" in schema else {})


def written(value: Any) -> str:
    return json.dumps({"x": value}, ensure_ascii=False)


class Tools:
    """The arguments of a tool with this schema."""

    def __init__(self, schema: Any) -> None:
        format_ = tokentrie.ChatFormat(TEMPLATE, VOCAB)
        tool = {"type": "function", "function": {"name": "f", "parameters": around(schema)}}
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.constraint = format_.constraint([tool], tool_choice="required")
        self.warnings = [str(warning.message) for warning in told]

    def matches(self, value: Any) -> bool:
        return self.takes(written(value))

    def takes(self, arguments: str) -> bool:
        sampler = tokentrie.Sampler(VOCAB, self.constraint)
        call = f'<call>{{"name": "f", "arguments": {arguments}}}</call>'
        try:
            for byte in call.encode():
                sampler.accept(byte)
        except tokentrie.TokenNotAllowedError:
            return False
        return True


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["keyword"])
def test_what_the_table_says_is_so(row: dict[str, Any]) -> None:
    schema, good, bad = row["schema"], row["good"], row["bad"]
    tools = Tools(schema)
    assert all(tools.matches(value) for value in good)
    if row["tools"] == "held":
        assert tools.warnings == []
        assert not any(tools.matches(value) for value in bad)
    else:
        assert row["tools"] == "warned"
        assert any("is not held" in warning for warning in tools.warnings)
        assert any(tools.matches(value) for value in bad), "it is held: say so in the table"
    assert row["rule"] == "held"
    rule = tokentrie.JsonSchema(around(schema))
    assert all(rule.matches(written(value)) for value in good)
    assert not any(rule.matches(written(value)) for value in bad)


def test_the_page_has_the_table() -> None:
    page = (ROOT / "docs/json-schema.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| (held|left out, with a warning) \| (held|refused) \|$", page, re.MULTILINE)
    words = {"held": "held", "warned": "left out, with a warning", "refused": "refused"}
    listed = {
        keyword.replace("`", "").strip(): (tools, rule)
        for keywords, tools, rule in rows
        for keyword in keywords.split(";")
    }
    assert listed == {row["keyword"]: (words[row["tools"]], words[row["rule"]]) for row in TABLE}


NARROWED = re.findall(
    r"^\| `([^`]+)` \| `([^`]+)` \| (yes|no) \| (yes|no) \| [^|]+ \|$",
    (ROOT / "docs/json-schema.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_the_page_says_what_is_left_out() -> None:
    assert len(NARROWED) == 19


@pytest.mark.parametrize(("schema", "value", "in_tools", "in_rule"), NARROWED, ids=str)
def test_what_is_left_out_is_left_out(schema: str, value: str, in_tools: str, in_rule: str) -> None:
    tools, rule = Tools(json.loads(schema)), tokentrie.JsonSchema(around(json.loads(schema)))
    assert tools.warnings == []
    json.loads(value)
    text = f'{{"x": {value}}}'
    assert (tools.takes(text), rule.matches(text)) == (in_tools == "yes", in_rule == "yes")


NUMBERS = st.integers(-40, 40)


@st.composite
def held_alike(draw: st.DrawFn, depth: int = 2) -> Any:
    """A schema of keywords that both readers hold alike. Objects are closed, and say their order."""
    kind = draw(st.sampled_from(["enum", "integer", "number", "string", "array", "object", "anyOf", "nullable"]))
    if depth == 0 and kind in {"array", "object", "anyOf", "nullable"}:
        kind = "integer"
    if kind == "enum":
        return {"enum": draw(st.lists(st.sampled_from(["a", "ab", 1, 2, None, True]), min_size=1, unique_by=repr))}
    if kind in {"integer", "number"}:
        low = draw(NUMBERS)
        schema: dict[str, Any] = {"type": kind, "minimum": low, "maximum": low + draw(st.integers(10, 40))}
        if draw(st.booleans()):
            schema["multipleOf"] = draw(st.integers(1, 9)) / (2 if kind == "number" else 1)
            schema["multipleOf"] = int(schema["multipleOf"]) if kind == "integer" else schema["multipleOf"]
        return schema
    if kind == "string":
        return {"type": "string", "minLength": draw(st.integers(0, 2)), "maxLength": draw(st.integers(2, 4))}
    inner = held_alike(depth=depth - 1)
    if kind == "array":
        return {"type": "array", "items": draw(inner), "minItems": draw(st.integers(0, 1)), "maxItems": 2}
    if kind == "anyOf":
        return {"anyOf": draw(st.lists(inner, min_size=1, max_size=3))}
    if kind == "nullable":
        return draw(inner) | {"nullable": True}
    names = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
    if draw(st.booleans()):
        least = draw(st.integers(0, 2))
        return {
            "type": "object",
            "properties": {},
            "additionalProperties": draw(inner),
            "minProperties": least,
            "maxProperties": least + draw(st.integers(0, 2)),
        }
    return {
        "type": "object",
        "properties": {name: draw(inner) for name in names},
        "required": [name for name in names if draw(st.booleans())],
        "additionalProperties": False,
    }


def values_of(schema: Any) -> st.SearchStrategy[Any]:
    """Values near a schema, in the order of its properties: some fit and some do not."""
    numbers = NUMBERS | NUMBERS.map(lambda number: number + 0.5)  # 1.0 is written as 1
    leaf = st.none() | st.booleans() | numbers | st.sampled_from(["", "a", "ab", "abcde"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) | leaf
    if "anyOf" in schema:
        return st.one_of([values_of(branch) for branch in schema["anyOf"]])
    if schema["type"] == "array":
        return st.lists(values_of(schema["items"]), max_size=3)
    if schema["type"] == "object":
        if inner := schema["additionalProperties"]:
            return st.dictionaries(st.sampled_from("abcd"), values_of(inner), max_size=4)
        parts = {name: values_of(inner) for name, inner in schema["properties"].items()}
        return st.fixed_dictionaries({}, optional=parts).map(
            lambda value: {name: value[name] for name in schema["properties"] if name in value}
        )
    return leaf


@settings(max_examples=cases(60), deadline=None)
@given(st.data())
def test_both_readers_hold_alike(data: st.DataObject) -> None:
    schema = data.draw(held_alike())
    try:
        rule = tokentrie.JsonSchema(around(schema))
    except tokentrie.RuleError:
        with pytest.raises(tokentrie.RuleError):
            Tools(schema)
        return
    tools = Tools(schema)
    assert tools.warnings == []
    for value in data.draw(st.lists(values_of(schema), min_size=1, max_size=12)):
        assert rule.matches(written(value)) == tools.matches(value), (schema, value)


def document_of(schema: Any) -> Any:
    return tokentrie.JsonSchema(around(schema))


def test_conditions_over_one_key_are_held_value_by_value() -> None:
    """Random ones, overlapping, with and without `else`, beside the package jsonschema over all small documents."""
    jsonschema = pytest.importorskip("jsonschema")
    draw = random.Random(0 if BUDGET < 1 else None)
    kinds = ["x", "y", "z", 1, None]
    documents = [
        {**({} if kind == "absent" else {"t": kind}), **dict.fromkeys(names, 1)}
        for kind in [*kinds, "absent", "other"]
        for size in range(3)
        for names in itertools.combinations("pq", size)
    ]

    def some() -> Any:
        return draw.choice([{"required": ["p"]}, {"required": ["q"]}, {"properties": {"p": False}}, True, False])

    def rule() -> dict[str, Any]:
        one = (
            {"const": draw.choice(kinds)} if draw.random() < 0.6 else {"enum": draw.sample(kinds, draw.randrange(1, 4))}
        )
        condition: dict[str, Any] = {"properties": {"t": one}}
        if draw.random() < 0.3:
            condition["required"] = ["t"]
        made: dict[str, Any] = {"if": condition}
        for word in ("then", "else"):
            if draw.random() < 0.7:
                made[word] = some()
        return made

    tried = 0
    for _ in range(cases(300)):
        own = draw.choice([{}, {"enum": [*kinds, "other"]}, {"enum": kinds[:3]}, {"type": "string"}])
        schema: dict[str, Any] = {"type": "object", "properties": {"t": own, "p": {"const": 1}, "q": {"const": 1}}}
        schema |= {"additionalProperties": False, "allOf": [rule() for _ in range(draw.randrange(1, 5))]}
        if draw.random() < 0.4:
            schema |= rule()
        if draw.random() < 0.3:
            schema["required"] = ["t"]
        valid = [document for document in documents if jsonschema.Draft202012Validator(schema).is_valid(document)]
        for name, reader in (("tool", Tools), ("document", document_of)):
            texts: list[Any] = [document if name == "tool" else written(document) for document in documents]
            if not valid:
                with contextlib.suppress(tokentrie.TokenTrieError):
                    assert not any(reader(schema).matches(text) for text in texts), (name, schema)
                continue
            held = reader(schema)
            allowed = [one for one, text in zip(documents, texts, strict=True) if held.matches(text)]
            assert allowed == valid, (name, schema)
            tried += 1
    assert tried > cases(300)
