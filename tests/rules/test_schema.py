"""JSON Schemas and Lark grammars as rules: texts that are valid, errors with their place, and every face."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import gc
import itertools
import json
import pickle
import random
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, Optional

import numpy as np
import pytest
import tokentrie
import tokentrie.schemas
from budget import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from tokentrie import Batch, Form, JsonSchema, Model, Regex, RuleError, Sampler, Slot, Text, TokenNotAllowedError, Vocab
from tokentrie.errors import OptionError, TokenTrieWarning, VocabularyError
from tokentrie.rules import Lark, ThinkGate
from typing_extensions import TypedDict

PIECES = [bytes([byte]) for byte in range(256)]
PIECES += [b'{"', b'": ', b'":', b"12", b"tru", b"true", b'", "', b'"}', b"ab", b'{"a": ', b"}}", b'a"', b"<end>"]
END = len(PIECES) - 1

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 6},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
CALL = 'start: NAME "(" [NUMBER ["," NUMBER]] ")"\nNAME: /[a-z]{1,6}/\nNUMBER: /[0-9]{1,3}/'


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    """All bytes, some longer tokens, and an end token."""
    return Vocab.from_tokens(PIECES, eog=[END], control=[END])


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model() as model:
        yield model


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Place:
    city: str
    zip: int | None = None


@dataclasses.dataclass
class Trip:
    who: str
    days: int
    rate: float
    fixed: bool
    when: datetime.date
    colour: Colour
    kind: Literal["car", "train"]
    stops: list[Place]
    notes: dict[str, int]
    back: Place | None
    other: Optional[int] = None  # noqa: UP045
    extra: Any = dataclasses.field(default=None)


@dataclasses.dataclass
class Node:
    value: int
    next: Node | None = None


@dataclasses.dataclass
class Odd:
    what: complex


TRIP = (
    '{"who": "Ann", "days": 3, "rate": 2, "fixed": true, "when": "2024-02-29", "colour": "blue", "kind": "car", '
    '"stops": [{"city": "Rome"}, {"city": "Bern", "zip": 3000}], "notes": {"a": 1}, "back": null, "other": 7}'
)


@pytest.fixture(params=["pydantic", "alone"])
def converted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With pydantic where it is installed, and as if it were not."""
    if request.param == "pydantic":
        pytest.importorskip("pydantic")
    else:
        monkeypatch.setattr(tokentrie.schemas, "_adapter", lambda cls: None)
    return request.param


def valid(schema: Any, value: Any) -> bool:
    """Whether a value is valid under a schema, as far as the schemas of these tests go."""
    if isinstance(schema, bool):
        return schema
    kinds: dict[str, Callable[[Any], bool]] = {
        "string": lambda value: isinstance(value, str),
        "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
        "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
        "boolean": lambda value: isinstance(value, bool),
        "null": lambda value: value is None,
        "array": lambda value: isinstance(value, list),
        "object": lambda value: isinstance(value, dict),
    }
    if "enum" in schema and not any(value == one and type(value) is type(one) for one in schema["enum"]):
        return False
    if "anyOf" in schema and not any(valid(one, value) for one in schema["anyOf"]):
        return False
    kind = schema.get("type")
    if kind is not None and not kinds[kind](value):
        return False
    if kind == "string":
        return schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 1 << 30)
    if kind in ("integer", "number"):
        return bool(schema.get("minimum", -1e30) <= value <= schema.get("maximum", 1e30))
    if kind == "array":
        many = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 1 << 30)
        return many and all(valid(schema.get("items", True), item) for item in value)
    if kind == "object":
        named = schema.get("properties", {})
        others = [item for key, item in value.items() if key not in named]
        return (
            set(schema.get("required", [])) <= set(value)
            and all(valid(named[key], value[key]) for key in set(named) & set(value))
            and all(valid(schema.get("additionalProperties", True), item) for item in others)
        )
    return True


LEAVES: Any = st.one_of(
    st.fixed_dictionaries({"type": st.just("string"), "maxLength": st.integers(0, 5)}),
    st.fixed_dictionaries({"type": st.just("integer"), "minimum": st.integers(-9, 9), "maximum": st.integers(10, 99)}),
    st.fixed_dictionaries({"enum": st.lists(st.sampled_from(["a", "b é", 1, None, True, 'q"']), min_size=1)}),
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
)
SCHEMAS: Any = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(
            lambda items, fewest: {"type": "array", "items": items, "minItems": fewest, "maxItems": fewest + 1},
            inner,
            st.integers(0, 1),
        ),
        st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(
            lambda members, needed: {
                "type": "object",
                "properties": members,
                "required": [key for key in members if key in needed],
                "additionalProperties": False,
            },
            st.dictionaries(st.sampled_from(["a", "bc", "x y"]), inner, max_size=3),
            st.sets(st.sampled_from(["a", "bc", "x y"])),
        ),
    ),
    max_leaves=5,
)


@pytest.mark.model
@settings(max_examples=cases(40), deadline=None)
@given(schema=SCHEMAS, seed=st.integers(0, 99))
def test_what_is_generated_is_valid(model: Model, schema: Any, seed: int) -> None:
    rule = JsonSchema(schema, whitespace="none")
    out = model.generate("JSON: ", rule, mode="sampled", temperature=1.5, seed=seed, max_tokens=400)
    assert out.value == json.loads(out.text)
    assert valid(schema, out.value), (schema, out.text)
    assert rule.matches(out.text)
    assert not rule.matches(out.text[:-1] + "\x00")


@pytest.mark.model
def test_what_is_generated_is_valid_by_jsonschema(model: Model) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    rule = JsonSchema(PERSON)
    for seed in range(5):
        jsonschema.validate(model.generate("A person: ", rule, mode="sampled", seed=seed, max_tokens=300).value, PERSON)


@pytest.mark.parametrize("rule", [JsonSchema(PERSON), JsonSchema({"type": "number"}), Lark(CALL)], ids=repr)
def test_masks_are_those_of_single_tokens(vocab: Vocab, rule: Any) -> None:
    draws = np.random.default_rng(4)
    for _ in range(12):
        sampler, written = Sampler(vocab, rule, end_tokens=[END]), b""
        for _ in range(12):
            allowed = sampler.allowed().tolist()
            taken = []
            for token in range(len(PIECES)):
                other = sampler.clone()
                try:
                    other.accept(token)
                except TokenNotAllowedError:
                    continue
                taken.append(token)
            assert allowed == taken
            goes_on = [token for token in allowed if token != END]
            assert (END in allowed) == rule.matches(written)
            if not goes_on:
                break
            token = int(draws.choice(goes_on))
            sampler.accept(token)
            written += PIECES[token]


def test_the_texts_of_a_schema() -> None:
    rule = JsonSchema(PERSON, whitespace="flexible")
    good = ['{"name": "", "age": 0}', '{"name":"A","age":130,"tags":["a","b"]}', '{ "name": "\\u00e9", "age" : 7 }']
    bad = ["", "{", '{"age": 1, "name": ""}', '{"name": "", "age": 131}', '{"name": "", "age": 1, "x": 1}', "[]"]
    assert all(rule.matches(text) for text in good)
    assert not any(rule.matches(text) for text in bad)
    assert rule.matches(good[0].encode())
    assert not rule.matches(b"\xff")
    with pytest.raises(TypeError, match="text must be str or bytes"):
        rule.matches(1)  # type: ignore[arg-type]


def nested_document(draws: random.Random, depth: int) -> Any:
    """A document so many levels deep."""
    scalars = ["", 'a "b": {c}', 0, -1.5e3, True, None, [], {}]
    if depth == 0:
        return draws.choice(scalars)
    inner = [nested_document(draws, depth - 1), *draws.choices(scalars, k=draws.randrange(3))]
    draws.shuffle(inner)
    return inner if draws.random() < 0.5 else {f"k{number}": one for number, one in enumerate(inner)}


@pytest.mark.parametrize("schema", [{}, {"type": ["object", "array", "number"]}])
def test_flexible_whitespace_takes_indented_documents_of_any_depth(schema: Any) -> None:
    blanks = [b"\n" + b" " * count for count in (2, 4, 8, 16, 32)] + [b" " * count for count in (2, 4, 8, 16)]
    signs = [b",\n", b"{\n    ", b"[\n  ", b"],\n", b"}\n", b'": {\n']
    pieces = [bytes([byte]) for byte in range(256)] + blanks + signs
    numbers = {piece: number for number, piece in enumerate(pieces)}
    longest = max(map(len, pieces))
    rule, draws = JsonSchema(schema, whitespace="flexible"), random.Random(7)
    vocab = Vocab.from_tokens([*pieces, b"<end>"], eog=[len(pieces)], control=[len(pieces)])
    for _ in range(cases(150)):
        document = {"k": nested_document(draws, draws.randrange(14))}
        separators = draws.choice([None, (",", ":")])
        text = json.dumps(document, indent=draws.choice([1, 2]), separators=separators, ensure_ascii=False).encode()
        assert rule.matches(text), text
        # The masks say the same as the rule, token by token.
        sampler, at = Sampler(vocab, rule), 0
        while at < len(text):
            ends = range(min(len(text), at + longest), at, -1)
            token = next(text[at:end] for end in ends if text[at:end] in numbers)
            assert numbers[token] in sampler.allowed(), (text[:at], token)
            sampler.accept(numbers[token])
            at += len(token)


def test_whitespace_and_escapes() -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    for whitespace, texts in (
        ("compact", ['["a","b"]', '["a", "b"]']),
        ("flexible", ['["a","b"]', '["a", "b"]', '[\n "a" ]', '["a"   ]']),
        ("none", ['["a","b"]']),
        (r" ?", ['["a","b"]', '["a", "b"]']),
    ):
        rule = JsonSchema(schema, whitespace=whitespace)
        assert [text for text in ('["a","b"]', '["a", "b"]', '[\n "a" ]', '["a"   ]') if rule.matches(text)] == texts
        assert rule.whitespace == whitespace
    assert JsonSchema(schema).matches('["\\u0061"]')
    assert not JsonSchema(schema, unicode_escapes=False).matches('["\\u0061"]')
    assert JsonSchema(schema, unicode_escapes=False).matches('["\\u0001"]')
    assert JsonSchema(schema) == JsonSchema(schema, whitespace="compact") != JsonSchema(schema, whitespace="flexible")
    assert not JsonSchema(schema, whitespace="flexible").matches(f'[{" " * 9}"a"]')
    deep = json.dumps([[[[["a"]]]]], indent=2)
    nested = JsonSchema({"type": "array"}, whitespace="flexible")
    assert nested.matches(deep)
    assert not nested.matches(deep.replace('          "a"', '           "a"')), "two spaces a level"
    words = '"compact", "flexible", "none" or the str of a regular expression'
    with pytest.raises(TypeError, match=f"whitespace must be {words}, not 3 of"):
        JsonSchema(schema, whitespace=3)  # type: ignore[arg-type]
    with pytest.raises(tokentrie.RuleError, match=f'invalid whitespace: expected {words[:29]}.*got "compat"'):
        JsonSchema(schema, whitespace="compat")


def test_formats_order_and_numerals_are_options() -> None:
    schema = {"properties": {"a": {"enum": [100]}, "b": {"format": "date"}}, "required": ["a"], "type": "object"}
    texts = {
        '{"a": 100, "b": "2024-02-29"}': (),
        '{"b": "2024-02-29", "a": 100}': ("order",),
        '{"a": 1e2, "b": "2024-02-29"}': ("any_numerals",),
        '{"a": 100, "b": "soon"}': ("formats",),
        '{"b": "soon", "a": 100.0}': ("formats", "order", "any_numerals"),
        '{"b": "soon"}': ("never",),
    }
    options = {"formats": "annotate", "order": "any", "any_numerals": True}
    for count in range(len(options) + 1):
        for names in itertools.combinations(options, count):
            given = {name: options[name] for name in names}
            rule = JsonSchema(schema, **given)  # type: ignore[arg-type]
            assert {name: getattr(rule, name) for name in names} == given
            assert json.loads(rule.to_json()) == {"json_schema": schema, **given}
            for text, needed in texts.items():
                assert rule.matches(text) == (set(needed) <= set(names)), (names, text)
    with pytest.raises(OptionError, match='formats is "ignore": it must be one of "assert", "annotate"'):
        JsonSchema(schema, formats="ignore")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match='order is true: it must be one of "schema", "any"'):
        JsonSchema(schema, order=True)  # type: ignore[arg-type]


def test_names_and_implied_types_are_options() -> None:
    schema = {"properties": {"a": {"minimum": 3}, "b": {"properties": {"c": {}}}}}
    texts = {
        '{"a": 3, "b": {"c": null}}': (set(), {"names"}, {"implied_types"}, {"names", "implied_types"}),
        '{"a": 3, "d": 1}': (set(), {"implied_types"}),
        '{"b": {"d": 1}}': (set(), {"implied_types"}),
        '{"a": "x"}': (set(), {"names"}),
        '{"b": 1}': (set(), {"names"}),
        "3": (set(), {"names"}),
        '{"a": 2}': (),
    }
    options = {"names": "closed", "implied_types": True}
    for count in range(len(options) + 1):
        for names in itertools.combinations(options, count):
            given = {name: options[name] for name in names}
            rule = JsonSchema(schema, **given)  # type: ignore[arg-type]
            assert {name: getattr(rule, name) for name in names} == given
            assert json.loads(rule.to_json()) == {"json_schema": schema, **given}
            for text, under in texts.items():
                assert rule.matches(text) == (set(names) in under), (names, text)
    with pytest.raises(OptionError, match='names is "shut": it must be one of "open", "closed"'):
        JsonSchema(schema, names="shut")  # type: ignore[arg-type]


def test_a_schema_may_be_text_bytes_or_bool() -> None:
    text = json.dumps(PERSON)
    assert JsonSchema(text) == JsonSchema(text.encode()) == JsonSchema(PERSON)
    assert JsonSchema(text).schema == PERSON
    assert JsonSchema(True).matches('{"a": [1, {}]}')
    assert JsonSchema(True).schema is True
    assert JsonSchema({}) != JsonSchema(PERSON)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ('{"type": \n nonsense}', "the schema is not JSON: line 2, column 3"),
        ({"properties": {"a": {"pattern": r"(b)\1"}}}, "at /properties/a: invalid pattern"),
        ({"type": "array", "items": {"type": "sting"}}, r"at /items: .*sting"),
        (False, "no document is allowed: schema is false"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "no document is allowed"),
        ({"$ref": "#/$defs/nobody"}, "nobody"),
        ({"type": "string", "pattern": "(a"}, r"\(a"),
        ("5", "a schema is an object or a boolean, not 5"),
        (b"\xff", "invalid schema: expected UTF-8"),
        ({"enum": [float("nan")]}, "invalid schema: expected JSON: Out of range"),
        ({"enum": [{1, 2}]}, "invalid schema: expected JSON: .*set"),
        (
            {
                "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]}},
                "$ref": "#/$defs/n",
            },
            "without end",
        ),
    ],
)
def test_what_makes_no_schema_is_said(schema: Any, message: str) -> None:
    with pytest.raises(RuleError, match=message):
        JsonSchema(schema)


@pytest.mark.parametrize(("schema", "message"), [(5, "not of type int"), (None, "not of type NoneType")])
def test_what_is_no_schema_at_all(schema: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"schema must be a dict, a bool, .*{message}"):
        JsonSchema(schema)


def test_lenient_schemas_warn() -> None:
    tags = {"type": "array", "items": {"type": "integer"}, "contains": {"pattern": r"(b)\1"}}
    schema = {"type": "object", "properties": {"a/b": tags, "c": {"type": "string", "pattern": r"(a)\1"}}}
    with pytest.raises(RuleError, match=r"at /properties/.*: invalid pattern"):
        JsonSchema(schema)
    with pytest.warns(TokenTrieWarning, match="is not held"):
        rule = JsonSchema(schema, lenient=True)
    assert rule.lenient
    assert rule.unheld == [("/properties/a~1b/contains", "pattern"), ("/properties/c", "pattern")]
    assert rule.matches('{"a/b": [1, 2], "c": "ab"}')
    assert not rule.matches('{"a/b": [1, "1"]}'), "the rest is held"
    assert not rule.matches('{"c": 5}'), "the rest is held"
    assert JsonSchema({"type": "array"}, lenient=True).unheld == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('start: "a"\nb ( "x" )', r"Lark: line 2, column \d"),
        ("", "Lark: "),
        ('start: "a" start', "start never ends"),
        ("start: nobody", "nobody"),
        ("start: x\nx[max_tokens=3]: /.*/", "max_tokens=, stop=.* is not supported"),
        ("start: <|tool|>", "a special token"),
        ("start: /(/", r"\("),
    ],
)
def test_what_makes_no_grammar_is_said(text: str, message: str) -> None:
    with pytest.raises(RuleError, match=message):
        Lark(text)


@pytest.mark.model
def test_lark_is_walked_and_generated(model: Model) -> None:
    rule = Lark(CALL)
    assert rule.matches("max(1,20)")
    assert not rule.matches("max(1,)")
    for seed in range(4):
        out = model.generate("Call: ", rule, mode="sampled", seed=seed, max_tokens=200)
        assert rule.matches(out.text)
        assert out.value == out.text
    mixed = Lark('start: "call " %json {"type": "array", "items": {"type": "integer"}, "maxItems": 2}')
    assert mixed.matches("call [1, 2]")
    assert not mixed.matches("call [true]")


def test_a_vocabulary_that_lacks_a_byte_is_named() -> None:
    sampler = Sampler(Vocab.from_tokens([b"a", b"b", b"<end>"], eog=[2], control=[2]), Lark('start: "a" "c" | "b"'))
    sampler.accept(0)
    with pytest.raises(RuleError, match="no token goes on here: the rule wants 'c'"):
        sampler.sample(np.zeros(3, np.float32))


def test_they_compare_and_can_be_pickled() -> None:
    rules = [
        JsonSchema(PERSON),
        JsonSchema(PERSON, whitespace="none"),
        JsonSchema(PERSON, whitespace=" ?"),
        JsonSchema(PERSON, unicode_escapes=False),
        JsonSchema(PERSON, formats="annotate"),
        JsonSchema(PERSON, order="any"),
        JsonSchema(PERSON, any_numerals=True),
        JsonSchema(PERSON, names="closed"),
        JsonSchema(PERSON, implied_types=True),
        JsonSchema({"type": "string"}),
        JsonSchema(Place),
        Lark(CALL),
        Lark('start: "a"'),
    ]
    for index, rule in enumerate(rules):
        copy = pickle.loads(pickle.dumps(rule))
        assert copy == rule
        assert hash(copy) == hash(rule)
        assert repr(copy) == repr(rule)
        assert [other == rule for other in rules].index(True) == index
    assert repr(rules[9]) == '<tokentrie.JsonSchema: {"type": "string"}>'
    assert repr(rules[10]) == "<tokentrie.JsonSchema: Place>"
    assert repr(rules[11]).startswith("tokentrie.rules.Lark('start: ")
    assert len(repr(rules[0])) < 120
    assert rules[0] != 5


def test_classes_are_given_back() -> None:
    @dataclasses.dataclass
    class Own:
        a: int

    Own.rule = JsonSchema(Own)  # type: ignore[attr-defined]
    lost = weakref.ref(Own)
    tokentrie.schemas._adapters.cache_clear()
    del Own
    gc.collect()
    assert lost() is None


@pytest.mark.model
def test_what_only_finite_automata_can(model: Model) -> None:
    rule = JsonSchema({"enum": ["a", "b"]}, whitespace="none")
    assert rule.texts() == ['"a"', '"b"']
    assert rule.check()
    lark = Lark('start: COLOUR "!"~1..2\nCOLOUR: "red" | "blue"')
    assert lark.texts() == ["red!", "blue!", "red!!", "blue!!"]
    assert lark.check()
    assert model.choose("x", lark).value in lark.texts()
    with pytest.raises(TypeError, match="JsonSchema, not a finite automaton"):
        Regex("a") + rule


def test_a_vocabulary_must_be_able_to_begin() -> None:
    poor = Vocab.from_tokens([b"x", b"y"], eog=[1])
    with pytest.raises(VocabularyError, match=r"it would have to begin with '\{'"):
        Sampler(poor, JsonSchema({"type": "object"}))
    with pytest.raises(RuleError, match="only the empty text"):
        Sampler(Vocab.from_tokens(PIECES), Lark('start: ""'))
    with pytest.raises(TypeError, match="a json_schema needs a Vocab"):
        Sampler(100, JsonSchema(PERSON))  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [5_000, 100_000])
def test_enums_of_any_size(vocab: Vocab, count: int) -> None:
    values = [f"item {number} of {count}" for number in range(count)]
    rule = JsonSchema({"type": "object", "properties": {"a": {"enum": values}}, "required": ["a"]}, whitespace="none")
    assert rule.matches(f'{{"a":"{values[-1]}"}}')
    assert not rule.matches('{"a":"item"}')
    sampler, draws = Sampler(vocab, rule), np.random.default_rng(1)
    written = b""
    while sampler.state == "active":
        token = int(draws.choice(sampler.allowed()))
        sampler.accept(token)
        written += PIECES[token]
    assert json.loads(written)["a"] in set(values)


def test_every_call_of_a_sampler(vocab: Vocab) -> None:
    sampler = Sampler(vocab, JsonSchema({"type": "integer", "minimum": 5, "maximum": 42}), end_tokens=[END])
    assert sampler.allowed().tolist() == [*range(ord("1"), ord("9") + 1), PIECES.index(b"12")]
    sampler.accept(ord("4"))
    assert not sampler.open
    other = sampler.clone()
    other.accept(ord("2"))
    assert other.allowed().tolist() == [END]
    other.accept(END)
    assert other.state == "complete"
    assert sampler.state == "active"
    sampler.rollback(1)
    assert sampler.allowed().tolist()[0] == ord("1")
    sampler.accept([ord("7"), END])
    sampler.reset()
    logits = np.full(len(PIECES), -1.0, np.float32)
    logits[ord("x")] = 9
    logits[ord("8")] = 1
    assert sampler.sample(logits) == ord("8")
    logits[END] = 8
    sampler.accept(ord("8"))
    assert sampler.sample(logits) == END


def test_a_batch_equals_its_rows(vocab: Vocab) -> None:
    rules = [JsonSchema(PERSON), Lark(CALL), Regex("[ab]{3}"), JsonSchema({"type": "number"})]
    batch = Batch([rules[row % 4] for row in range(8)], vocab=vocab, after="free")
    rows = [Sampler(vocab, rules[row % 4]) for row in range(8)]
    draws = np.random.default_rng(3)
    for _ in range(3):
        logits = draws.normal(size=(8, len(vocab))).astype(np.float32)
        want = np.stack(logits)
        for row, sampler in enumerate(rows):
            sampler.apply(want[row])
        got = logits.copy()
        batch.apply(got)
        assert np.array_equal(got, want)
        tokens = batch.select(logits)
        assert tokens.tolist() == [sampler.sample(row) for sampler, row in zip(rows, logits, strict=True)]
        batch.accept(tokens)
        for sampler, token in zip(rows, tokens, strict=True):
            sampler.accept(int(token))


def test_schemas_in_several_threads(vocab: Vocab) -> None:
    rule, failed = JsonSchema(PERSON), []

    def walk(seed: int) -> None:
        draws = np.random.default_rng(seed)
        sampler, written = Sampler(vocab, rule), b""
        while sampler.state == "active" and len(written) < 300:
            token = int(draws.choice(sampler.allowed()))
            sampler.accept(token)
            written += PIECES[token]
        if sampler.state == "complete" and not valid(PERSON, json.loads(written)):
            failed.append(written)

    threads = [threading.Thread(target=walk, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert rule.stats(vocab).masks > 10
    assert rule.stats(vocab).hits > 0


@pytest.mark.model
@pytest.mark.parametrize("skip_ahead", [True, False])
def test_generation_gives_documents(model: Model, skip_ahead: bool) -> None:
    rule = JsonSchema(PERSON)
    out = model.generate("A person: ", rule, max_tokens=300, skip_ahead=skip_ahead)
    assert isinstance(out.value, dict)
    assert valid(PERSON, out.value)
    assert out.value == json.loads(out.text) == rule.parse(out.text)
    assert pickle.loads(pickle.dumps(out)) == out


@pytest.mark.model
def test_text_that_must_come_is_skipped_in_the_tokenizers_tokens(model: Model) -> None:
    schema = {"type": "object", "properties": {"the colour of the sky": {"enum": ["blue", "red"]}}}
    schema |= {"required": ["the colour of the sky"], "additionalProperties": False}
    out = model.generate("JSON: ", JsonSchema(schema, whitespace="none"), max_tokens=200)
    assert list(out.value) == ["the colour of the sky"]
    assert out.stats.forced_tokens > 3
    own = model.vocab.tokenize('{"the colour of the sky":"')
    assert out.stats.forward_passes < len(out.tokens)
    # The first one is the end of the prompt, which is healed.
    assert out.tokens[1 : len(own) - 1] == own[: len(own) - 2]


@pytest.mark.model
def test_a_stream_and_thinking(model: Model) -> None:
    rule = JsonSchema({"enum": ["blue", "red", 5]})
    with model.stream("The sky is ", rule) as stream:
        text = "".join(stream)
    assert stream.result.value == json.loads(text)
    gate = ThinkGate("<think>", "</think>", budget=5, then=rule)
    assert model.generate("How? ", gate, max_tokens=60).value in ("blue", "red", 5)


@pytest.mark.model
@pytest.mark.parametrize("mode", ["greedy", "sampled"])
def test_forms_with_schemas(model: Model, mode: Any) -> None:
    form = Form(
        '{"name": ',
        Slot("name", ['"get"', '"set"']),
        ', "args": ',
        Slot("args", JsonSchema(PERSON)),
        ', "n": ',
        Slot("n", JsonSchema({"type": "integer", "minimum": 0, "maximum": 9999})),
        ', "when": "',
        Slot("when", Regex("20[0-9]{2}")),
        '", "extra": ',
        Text("extra", stop="}", pattern=JsonSchema({"type": "array", "items": {"type": "boolean"}, "maxItems": 3})),
        "}",
    )
    for seed in range(8 if mode == "sampled" else 1):
        out = model.generate("Call: ", form, mode=mode, seed=seed if mode == "sampled" else None)
        whole = json.loads(out.text)
        assert valid(PERSON, out.values["args"])
        assert whole["args"] == out.values["args"]
        assert whole["n"] == out.values["n"]
        assert isinstance(out.values["n"], int)
        assert whole["when"] == out.values["when"]
        assert whole["extra"] == out.values["extra"]
        assert model.vocab.detokenize(out.tokens).removeprefix(" ") == out.text


@pytest.mark.model
def test_schemas_next_to_other_slots(model: Model) -> None:
    number = JsonSchema({"type": "integer", "minimum": 0, "maximum": 999})
    for form in (
        Form(Slot("n", number)),
        Form(Slot("n", number), Slot("unit", ["kg", "lb"])),
        Form(Slot("n", number), Slot("letters", Regex("[a-c]{2}"))),
        Form(Slot("letters", Regex("[a-c]{2}")), Slot("n", number), "."),
        Form(Slot("n", number), Slot("call", Lark(CALL)), "!"),
        Form(Text("t", stop=":", max_tokens=3), ":", Slot("n", number), ";", Text("u", stop=".", max_tokens=3)),
    ):
        for seed in range(4):
            out = model.generate("It is ", form, mode="sampled", seed=seed)
            written = "".join(part if isinstance(part, str) else str(out.values[part.name]) for part in form.parts)
            assert written == out.text


@pytest.mark.model
def test_texts_with_schemas_that_are_cut_off(model: Model) -> None:
    form = Form("<", Text("a", stop=">", pattern=JsonSchema({"type": "array", "minItems": 90}), max_tokens=3), ">")
    with pytest.raises(RuleError, match=r'text "a": .* after 3 tokens: raise max_tokens'):
        model.generate("x", form)


def test_dataclasses_make_schemas(converted: str) -> None:
    rule = JsonSchema(Trip)
    assert rule.matches(TRIP)
    assert not rule.matches(TRIP.replace('"days": 3', '"days": "3"'))
    assert not rule.matches(TRIP.replace('"other": 7', '"more": 7'))
    trip = rule.parse(TRIP)
    assert trip == Trip(
        who="Ann",
        days=3,
        rate=2.0,
        fixed=True,
        when=datetime.date(2024, 2, 29),
        colour=Colour.BLUE,
        kind="car",
        stops=[Place("Rome"), Place("Bern", 3000)],
        notes={"a": 1},
        back=None,
        other=7,
    )
    assert isinstance(trip.rate, float)
    places = [part for part in rule.schema["$defs"].values() if part["type"] == "object"]
    assert all(part["additionalProperties"] is False for part in places)


def test_dataclasses_that_hold_themselves(converted: str) -> None:
    rule = JsonSchema(Node, whitespace="none")
    assert rule.matches('{"value":1,"next":{"value":2,"next":null}}')
    assert rule.parse('{"value":1,"next":{"value":2}}') == Node(1, Node(2))


def test_a_field_that_cannot_be_converted_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokentrie.schemas, "_adapter", lambda cls: None)
    with pytest.raises(TypeError, match=r"Odd\.what is of type <class 'complex'>, which cannot be converted"):
        JsonSchema(Odd)


@pytest.mark.model
def test_generation_gives_objects(model: Model, converted: str) -> None:
    @dataclasses.dataclass
    class Answer:
        colour: Colour
        sure: bool

    out = model.generate("The sky: ", JsonSchema(Answer), max_tokens=200)
    assert isinstance(out.value, Answer)
    assert out.value.colour in Colour
    form = Form("Answer: ", Slot("answer", JsonSchema(Answer)), ".")
    assert isinstance(model.generate("The sky: ", form).values["answer"], Answer)


@pytest.mark.model
def test_pydantic_models_make_schemas(model: Model) -> None:
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        size: int = pydantic.Field(ge=1, le=9)

    class Outer(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        name: Literal["x", "y"]
        inner: Inner
        many: list[Inner] = pydantic.Field(max_length=2)

    rule = JsonSchema(Outer)
    out = model.generate("Model: ", rule, mode="sampled", seed=3, max_tokens=300)
    assert isinstance(out.value, Outer)
    assert out.value == Outer.model_validate_json(out.text)
    assert rule == JsonSchema(Outer)
    assert rule != JsonSchema(rule.schema)
    # What it would ignore is not written; what it would keep may be.
    assert not rule.matches('{"name": "x", "inner": {"size": 1, "more": 2}, "many": []}')
    wider = pydantic.create_model("Wider", __config__={"extra": "allow"}, a=(int, ...))
    assert JsonSchema(wider).matches('{"a": 1, "b": 2}')
    listed = JsonSchema(pydantic.TypeAdapter(list[Inner]))
    assert listed.parse('[{"size": 2}]') == [Inner(size=2)]


def test_what_a_class_refuses_is_raised() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Even(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def even(cls, n: int) -> int:
            if n % 2:
                raise ValueError("odd")
            return n

    assert JsonSchema(Even).parse('{"n": 2}').n == 2
    with pytest.raises(ValueError, match="odd"):
        JsonSchema(Even).parse('{"n": 3}')


def test_no_warning_without_need() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        JsonSchema(PERSON)
        Lark(CALL)


@dataclasses.dataclass
class Noted:
    """A class whose fields say what they are beside their types."""

    size: Annotated[int, "in metres"]
    tags: list[Annotated[str, "one word"]]
    best: Annotated[int | None, "if there is one"] = None


class NotedRow(TypedDict):
    """The same as a TypedDict."""

    size: Annotated[int, "in metres"]
    inner: Annotated[Noted, "what is inside"]


def test_notes_are_descriptions(converted: str) -> None:
    def properties(kind: Any) -> dict[str, Any]:
        schema = JsonSchema(kind).schema
        target = schema.get("$ref", "").rpartition("/")[2]
        return dict((schema["$defs"][target] if target else schema)["properties"])

    found = properties(Noted)
    assert found["size"]["description"] == "in metres"
    assert found["tags"]["items"]["description"] == "one word"
    assert found["best"]["description"] == "if there is one"
    row = properties(NotedRow)
    assert (row["size"]["description"], row["inner"]["description"]) == ("in metres", "what is inside")
    assert '"description": "in metres"' in json.dumps(JsonSchema(list[Noted]).schema)
    assert JsonSchema(Annotated[list[int], "all of them"]).schema["description"] == "all of them"
    assert JsonSchema(Noted).parse('{"size": 1, "tags": ["a"]}') == Noted(1, ["a"])
    assert JsonSchema(NotedRow).matches('{"size": 1, "inner": {"size": 2, "tags": []}}')
    if converted == "pydantic":
        pydantic = pytest.importorskip("pydantic")

        class Model(pydantic.BaseModel):  # type: ignore[misc, name-defined]
            size: Annotated[int, "in metres", pydantic.Field(ge=1)]
            said: Annotated[int, "not this"] = pydantic.Field(description="this")

        made = properties(Model)
        assert made["size"] == {"description": "in metres", "minimum": 1, "title": "Size", "type": "integer"}
        assert made["said"]["description"] == "this"
