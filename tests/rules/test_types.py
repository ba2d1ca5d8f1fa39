"""Types of Python as constraints: what is written, what value comes back, in every place; patterns of `re`."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import importlib
import pickle
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NewType

import pytest
import tokentrie.schemas
import tokentrie.typed
from annotated_types import Ge, Interval, Le, Lt
from budget import cases
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter
from tokentrie import Batch, Form, JsonSchema, Model, Regex, RuleError, Sampler, Slot, Text, patterns
from tokentrie.errors import InvalidValueError
from tokentrie.rules import Date, DateTime, Integer, Number, Sequence, String, ThinkGate, Time
from typing_extensions import TypedDict

pytestmark = pytest.mark.model


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Word(str, enum.Enum):
    YES = "yes"
    NO = "no"


class Person(BaseModel):
    age: Annotated[int, Field(ge=1, le=9)]
    happy: bool


@dataclasses.dataclass
class Sizes:
    a: Literal["small", "big"]
    b: Annotated[int, Interval(ge=0, le=9)]


class Answer(TypedDict):
    right: bool


UTC, PLUS_TWO = datetime.timezone.utc, datetime.timezone(datetime.timedelta(hours=2))
HALF_PAST_NINE = datetime.datetime(2024, 2, 29, 9, 30, tzinfo=UTC)
Digit = Annotated[int, Field(ge=0, le=9)]
PLAIN: list[tuple[Any, dict[str, Any]]] = [
    (bool, {"true": True, "false": False}),
    (type(None), {"null": None}),
    (Literal["a", "b"], {"a": "a", "b": "b"}),
    (Literal["a", 1, None, True], {"a": "a", "1": 1, "null": None, "true": True}),
    (Colour, {"red": Colour.RED, "blue": Colour.BLUE}),
    (Level, {"1": Level.LOW, "2": Level.HIGH}),
    (Word, {"yes": Word.YES, "no": Word.NO}),
    (Literal[Colour.RED, "x"], {"red": Colour.RED, "x": "x"}),
    (Literal["a"] | None, {"a": "a", "null": None}),
    (Annotated[Literal["a", "b"], "said in words"], {"a": "a", "b": "b"}),
    (Annotated[int, Field(ge=1, le=3)], {"1": 1, "2": 2, "3": 3}),
    (Annotated[int, Ge(1), Lt(3)], {"1": 1, "2": 2}),
    (Annotated[int, Field(gt=-2, lt=0)] | None, {"-1": -1, "null": None}),
    (Literal["2"] | Annotated[int, Interval(ge=1, le=2)], {"2": "2", "1": 1}),
    (re.compile("A|b", re.IGNORECASE), {text: text for text in "aAbB"}),
]
"""Types of few values, and those by their texts."""


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model() as model:
        yield model


def same(one: Any, other: Any) -> bool:
    return bool(one == other) and type(one) is type(other)


@pytest.mark.parametrize(("kind", "values"), PLAIN, ids=repr)
def test_plain_values(kind: Any, values: dict[str, Any], model: Model) -> None:
    choice = model.choose("It is ", kind)
    assert choice.names is not None
    assert set(choice.names) == set(values)
    seen = set()
    for seed in range(20):
        out = model.generate("It is ", kind, mode="sampled", temperature=5.0, seed=seed)
        assert same(out.value, values[out.text])
        seen.add(out.text)
    assert len(seen) > 1 or len(values) == 1
    form = Form("<", Slot("it", kind), ">")
    out = model.generate("It is ", form)
    assert same(out.values["it"], values[out.text[1:-1]])
    assert model.generate("It is ", pickle.loads(pickle.dumps(form))).values == out.values
    gated = model.generate("<t>", ThinkGate("<t>", "</t>", budget=2, then=kind), max_tokens=40)
    assert any(same(gated.value, value) for value in values.values())


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (int, "-12", -12),
        (float, "1.5", 1.5),
        (str, '"a\\n"', "a\n"),
        (datetime.time, "09:30:00", datetime.time(9, 30)),
        (datetime.datetime, "2024-02-29T09:30:00", datetime.datetime(2024, 2, 29, 9, 30)),
        (datetime.datetime | datetime.date | None, "2024-02-29", datetime.date(2024, 2, 29)),
        (int | float, "2", 2),
        (int | float, "2.5", 2.5),
        (str | None, "null", None),
        (str | None, '"null"', "null"),
        (datetime.date, "2024-02-29", datetime.date(2024, 2, 29)),
        (NewType("Count", int), "7", 7),
        (Annotated[float, Field(ge=0, le=1)], "0.5", 0.5),
        (list[Digit], "[1, 2]", [1, 2]),
        (tuple[Digit, bool], "[1, true]", (1, True)),
        (dict[str, bool], '{"a": true}', {"a": True}),
        (list[Colour], '["red"]', [Colour.RED]),
        (Person, '{"age": 3, "happy": false}', Person(age=3, happy=False)),
        (Person | None, "null", None),
        (list[Sizes], '[{"a": "big", "b": 2}]', [Sizes("big", 2)]),
        (Answer, '{"right": true}', {"right": True}),
        (TypeAdapter(list[Digit]), "[3]", [3]),
    ],
    ids=repr,
)
def test_texts_without_end(kind: Any, text: str, value: Any) -> None:
    rule = tokentrie.typed.constraint(kind)
    held = getattr(rule, "held", rule)
    assert same(rule.parse(text), value)
    if isinstance(held, tokentrie.rules.Rule):
        assert held.matches(text)


def test_rules_that_there_are() -> None:
    for kind, rule in [
        (int, Integer()),
        (Annotated[int, Field(gt=1, le=9)], Integer(2, 9)),
        (Annotated[float, Field(ge=0, le=1.5)], Number(0, 1.5)),
        (Annotated[float, Field(ge=0), "in words", Le(2)], Number(0, 2)),
        (Annotated[float, Field(gt=0)], JsonSchema({"type": "number", "exclusiveMinimum": 0})),
        (datetime.date, Date()),
        (datetime.time, Time()),
        (datetime.datetime, DateTime()),
        (str, String(quotes=True)),
        (re.compile("a"), Regex("a")),
        (list[int], JsonSchema(list[int])),
        (Annotated[int, Field(multiple_of=3)], JsonSchema({"type": "integer", "multipleOf": 3})),
    ]:
        made = tokentrie.typed.constraint(kind)
        assert type(made) is type(rule)
        assert made == rule or (isinstance(made, JsonSchema) and made.schema == rule.schema)


def test_models_in_generate(model: Model) -> None:
    out = model.generate("A person: ", Person, max_tokens=60)
    assert isinstance(out.value, Person)
    assert 1 <= out.value.age <= 9
    pair = Annotated[list[Digit], Field(min_length=2, max_length=2)]
    out = model.generate('{"a":[1,2],"b":', pair, max_tokens=60)
    assert len(out.value) == 2
    form = Form("x", Slot("it", pair), "y")
    assert len(model.generate('{"a":[1,2],"b":', form, max_tokens=60).values["it"]) == 2


def test_a_validator_in_a_hint_refuses(model: Model) -> None:
    def never(value: int) -> int:
        raise ValueError(f"{value} will not do")

    with pytest.raises(InvalidValueError, match="will not do") as caught:
        model.generate("One: ", Annotated[int, Field(ge=1, le=9), AfterValidator(never)])
    assert caught.value.text is not None


def test_every_place(model: Model) -> None:
    vocab = model.vocab
    first = {vocab[int(token)][:1] for token in Sampler(vocab, Literal["a", "b"]).allowed()}
    assert first == {b"a", b"b"}
    batch = Batch([bool, Colour, re.compile("[xy]"), None], vocab=vocab)
    assert {vocab[int(token)][:1] for token in batch.allowed(2)} == {b"x", b"y"}
    assert len(model.generate("It: ", Sequence(Colour, bool)).leaves) == 2
    assert tokentrie.constraint(Colour).to_dict() == {"choice": ["red", "blue"]}
    assert tokentrie.constraint(Annotated[float, Le(5)]) == tokentrie.constraint({"number": {"max": 5}})
    assert tokentrie.constraint(Annotated[int, Le(5)]) == tokentrie.constraint({"integer": {"max": 5}})
    note = Text("note", stop='"', pattern=re.compile("[ab]{1,3}"), max_tokens=5)
    assert re.fullmatch("[ab]*", model.generate("A: ", Form('"', note, '"')).values["note"])
    asked = [{"role": "user", "content": "Which?"}]
    assert isinstance(model.chat(asked, constraint=Colour, enable_thinking=False).parsed, Colour)
    short = Annotated[list[bool], Field(max_length=1)]
    assert model.chat(asked, response_format=short, enable_thinking=False).parsed in ([], [True], [False])
    choices = model.choose_many(["a ", "b "], Colour)
    assert all(choice.name in ("red", "blue") for choice in choices)


@pytest.mark.parametrize("installed", [True, False], ids=["with pydantic", "without"])
@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (list[int], "[1, 2]", [1, 2]),
        (int, "3", 3),
        (Literal["a", 1], '"a"', "a"),
        (Colour | None, '"blue"', Colour.BLUE),
        (Level, "2", Level.HIGH),
        (tuple[int, bool], "[1, true]", (1, True)),
        (tuple[bool, ...], "[true]", (True,)),
        (list[tuple[int, Literal["a"]]] | bool, '[[1, "a"]]', [(1, "a")]),
        (dict[str, list[bool]], '{"a": [true]}', {"a": [True]}),
        (list[Sizes], '[{"a": "big", "b": 2}]', [Sizes("big", 2)]),
        (re.compile(r"\d+"), '"12"', "12"),
        (list[datetime.date], '["2024-02-29"]', [datetime.date(2024, 2, 29)]),
        (datetime.time, '"09:30:00.25+02:00"', datetime.time(9, 30, 0, 250_000, PLUS_TWO)),
        (list[datetime.datetime], '["2024-02-29T09:30:00.5Z"]', [HALF_PAST_NINE.replace(microsecond=500_000)]),
        (datetime.datetime, '"2024-02-29t09:30:00z"', HALF_PAST_NINE),
    ],
    ids=repr,
)
def test_documents(kind: Any, text: str, value: Any, installed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not installed:
        monkeypatch.setattr(tokentrie.schemas, "_adapter", lambda kind: None)
    rule = JsonSchema(kind)
    assert rule.matches(text)
    assert same(rule.parse(text), value)
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert not rule.matches("{}{}")


def test_the_first_kind_of_moment_that_fits_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokentrie.schemas, "_adapter", lambda kind: None)
    rule = JsonSchema(list[datetime.datetime | datetime.time | datetime.date | None])
    text = '["2024-02-29", "09:30:00.1234567Z", "2024-02-29T23:59:59-02:00", null]'
    assert rule.matches(text)
    assert rule.parse(text) == [
        datetime.date(2024, 2, 29),
        datetime.time(9, 30, 0, 123_456, UTC),
        datetime.datetime(2024, 3, 1, 1, 59, 59, 0, UTC),
        None,
    ]


def test_one_place_says_what_a_type_is(model: Model) -> None:
    """An adapter was a type as a constraint and none as a format."""
    asked = [{"role": "user", "content": "Which?"}]
    adapter = TypeAdapter(Annotated[list[bool], Field(max_length=1)])
    assert model.chat(asked, response_format=adapter, enable_thinking=False).parsed in ([], [True], [False])
    assert model.chat(asked, constraint=adapter, enable_thinking=False).parsed in ([], [True], [False])
    assert JsonSchema(adapter).parse("[true]") == [True]
    hints = (int, Person, Sizes, Answer, list[int], Literal["a"], int | None, NewType("N", int))
    for kind in (*hints, re.compile("a"), adapter):
        assert tokentrie.schemas.is_type(kind), kind
    for none in (5, "int", {"type": "object"}, ["a"], Integer(), Colour.RED, None, Person(age=1, happy=True)):
        assert not tokentrie.schemas.is_type(none), none


def quietly(pattern: str, flags: int = 0, how: Any = re.compile) -> Any:
    """Python warns of what may mean another thing one day."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return how(pattern, flags)


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        (Literal["1", 1], TypeError, "'1' and 1 are written alike"),
        (Literal[b"x"], TypeError, "invalid member b'x': expected a str, int, float"),
        (enum.Enum("Odd", {"A": object()}), TypeError, "expected a str, int"),
        (Integer, TypeError, r"Integer is the class of rules and no rule: give Integer\(...\)"),
        (Model, TypeError, "Model: pydantic"),
        (re.compile(b"a"), RuleError, "pattern of bytes, b'a'"),
        (re.compile("a", re.ASCII), RuleError, "re.ASCII cannot be held"),
        (re.compile(b"a", re.LOCALE), RuleError, "pattern of bytes"),
        (re.compile(r"(?P<b>a)(?P=b)"), RuleError, r"a back-reference, \(\?P=, cannot"),
        (re.compile("(x)?(?(1)a|b)"), RuleError, "a condition"),
        (re.compile("(?=a)a"), RuleError, "look"),
        (quietly(r"[[]\b]"), RuleError, "word boundary"),
        (5, TypeError, "not int"),
    ],
    ids=repr,
)
def test_what_cannot_be_held(kind: Any, error: type[Exception], message: str, model: Model) -> None:
    if kind == set[bool]:
        pytest.importorskip("pydantic")
    with pytest.raises(error, match=message):
        model.generate("It: ", kind)
    with pytest.raises(error):
        Sampler(model.vocab, kind)
    with pytest.raises(error):
        Slot("it", kind)


PARSER: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
ATOMS = ["a", "b", "1", r"\d", r"\w", ".", " ", "#b\n", "[ab]", "[^a]", "[]a]", "[^]a]", "[[a]", "[a&&b]", "[a~~b]"]
ATOMS += [r"[\]a]", "[a -]", "[# ]", r"\<", "(?:a|b)", "(?P<n>b)", "(?i:a)", r"\.", "[a-b1]", "[+--]"]
ATOMS += ["[--a]", "[---]", "[a-]", "[-a]", "[^-]", "[^--a]", "[!-/&&~~-]", "[&-a]", "[[-^]", r"[\--a]"]
ATOMS += [r"[+-\-a-b]", r"[\[-\]]"]
ATOMS += [r"[\x2b-\x2d]", r"[\053-\55]", r"\043", r"\N{HYPHEN-MINUS}", r"[\b\t]", r"[^\d-]", r"[\w-]", "# [-\n"]
ATOMS += [r"[\]\b]", r"[^]\b]"]
CLASSES = st.text(r"ab+,-&~[]^ #\.", min_size=1, max_size=6).map(lambda characters: f"[{characters}]")
REPEATS = ["", "", "", "*", "+", "?", "{2}", "{1,}", "{,2}", "*?", "{1,2}?"]


@st.composite
def compiled(draw: st.DrawFn) -> re.Pattern[str]:
    atoms = st.sampled_from(ATOMS) | CLASSES
    parts = draw(st.lists(st.tuples(atoms, st.sampled_from(REPEATS)), max_size=4))
    text = "".join(atom + repeat if atom not in (" ", "#b\n", "# [-\n") else atom for atom, repeat in parts)
    flags = draw(st.sampled_from([0, re.I, re.S, re.X, re.X | re.I, re.M]))
    try:
        pattern: re.Pattern[str] = quietly(text, flags)
    except re.error:
        reject()
    # Behind a class that ended early \b is no backspace but a boundary, which no rule holds.
    if "AT_BOUNDARY" in repr(quietly(text, flags, PARSER.parse)):
        reject()
    return pattern


@settings(max_examples=cases(2000), deadline=None)
@example(pattern=quietly("[+--]"), texts=["+", ",", "-", "."])
@given(pattern=compiled(), texts=st.lists(st.text("ab1 +,#[]-^&~\\<.\n", max_size=4), min_size=1, max_size=8))
def test_patterns_mean_what_they_mean_to_python(pattern: re.Pattern[str], texts: list[str]) -> None:
    try:
        rule = Regex(patterns.translate(pattern))
    except RuleError as error:
        assert re.search("empty|no text|nothing|gives back", str(error)), (pattern, error)  # noqa: PT017
        return
    for text in texts:
        assert rule.matches(text) == bool(pattern.fullmatch(text)), (pattern, text)
