"""Specs: one JSON form for every host, and the same masks as the classes give at every step."""

from __future__ import annotations

import datetime
import decimal
import json
import pickle
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokentrie
from budget import cases
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from tokentrie import (
    Batch,
    ChatFormat,
    Form,
    JsonSchema,
    Model,
    Regex,
    RuleError,
    Sampler,
    Slot,
    Text,
    Trie,
    Vocab,
    constraint,
)
from tokentrie.errors import OptionError, PayloadError
from tokentrie.rules import (
    Date,
    DateTime,
    Gbnf,
    Grammar,
    Integer,
    Lark,
    Number,
    OneOf,
    Repeat,
    Rule,
    Sequence,
    String,
    ThinkGate,
    Time,
    Unconstrained,
)

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "specs.json").read_text())
PIECES = [bytes([byte]) for byte in range(256)] + [b"12", b"20", b"ab", b'"a', b" k", b"-0", b"</s>"]
END = len(PIECES) - 1
Pair = tuple[Any, dict[str, Any]]


@cache
def pieces() -> Vocab:
    return Vocab.from_tokens(PIECES, eog=[END], control=[END])


@cache
def model() -> Model:
    return Model()


def texts() -> st.SearchStrategy[str]:
    return st.text("abk01- ", min_size=1, max_size=4)


def leaves() -> st.SearchStrategy[Pair]:
    """Rules by their class and by their spec. None of them allows only the empty text, which is refused."""
    bounds = st.tuples(st.integers(-(10**20), 10**20) | st.none(), st.integers(0, 10**20) | st.none())

    def integer(bound: tuple[int | None, int | None]) -> Pair:
        low, span = bound
        high = None if span is None else (low or 0) + span
        fields = {name: value for name, value in (("min", low), ("max", high)) if value is not None}
        return Integer(low, high), {
            "integer": {name: str(value) if abs(value) >= 2**63 else value for name, value in fields.items()}
        }

    def number(digits: tuple[int, int, int]) -> Pair:
        names = ("integer_digits", "fraction_digits", "exponent_digits")
        fields = dict(zip(names, digits, strict=True))
        return Number(**fields), {"number": fields}

    def amount(bounds: list[decimal.Decimal]) -> Pair:
        low, high = bounds
        fields = {"min": str(low), "max": float(high) if float(high) == high else str(high), "fraction_digits": 3}
        return Number(low, high, fraction_digits=3), {"number": fields}

    def string(options: tuple[int, int | None, bool]) -> Pair:
        low, more, quotes = options
        high = None if more is None else low + more
        fields = {"min_chars": low, "max_chars": high, "quotes": quotes}
        return String(min_chars=low, max_chars=high, quotes=quotes), {"string": fields}

    def days(bounds: list[datetime.date]) -> Pair:
        low, high = bounds
        return Date(low, str(high)), {"date": {"min": str(low), "max": str(high)}}

    def times(drawn: tuple[list[datetime.datetime], str, bool, bool]) -> Pair:
        (low, high), timespec, utc, with_day = drawn
        zone = datetime.timezone.utc if utc else None
        bounds = [one.replace(tzinfo=zone) if with_day else one.timetz().replace(tzinfo=zone) for one in (low, high)]
        said = [one.replace(tzinfo=None).isoformat() + "Z" * utc for one in bounds]
        fields = {"min": said[0], "max": said[1], "timespec": timespec, "utc": utc}
        kind: Any = DateTime if with_day else Time
        return kind(*bounds, timespec=timespec, utc=utc), {"date_time" if with_day else "time": fields}

    def in_format(drawn: tuple[list[datetime.datetime], str, str, str]) -> Pair:
        (low, high), day, clock, order = drawn
        fields = {"min": low.isoformat(), "max": high.isoformat()}
        if order == "day":
            written = {"min": str(low.date()), "max": str(high.date()), "format": day}
            return Date(low.date(), high.date(), format=day), {"date": written}
        if order == "clock":
            written = {"min": str(low.time()), "max": str(high.time()), "format": clock}
            return Time(low.time(), high.time(), format=clock), {"time": written}
        both = f"{day}, {clock}" if order == "both" else f"{clock} on {day}"
        return DateTime(low, high, format=both), {"date_time": fields | {"format": both}}

    # On one day, and not both within a minute, in which there may be none.
    on_one_day = st.datetimes(datetime.datetime(2024, 2, 29), datetime.datetime(2024, 2, 29, 23, 58))
    clocks = st.lists(on_one_day, min_size=2, max_size=2)
    clocks = clocks.map(lambda both: [min(both), max(both) + datetime.timedelta(minutes=1)])
    specs = st.sampled_from(["minutes", "seconds", "milliseconds", "microseconds"])
    patterns = st.sampled_from(["[0-9]{2}", "a|b+", "(ab)*k", "[^x]"])
    return st.one_of(
        bounds.map(integer),
        st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(0, 2)).map(number),
        st.lists(st.decimals(-200, 200, places=3), min_size=2, max_size=2).map(sorted).map(amount),
        st.tuples(st.integers(0, 3), st.integers(1, 3) | st.none(), st.booleans()).map(string),
        patterns.map(lambda pattern: (Regex(pattern), {"regex": pattern})),
        st.just((Date(), {"date": {}})),
        st.lists(st.dates(), min_size=2, max_size=2).map(sorted).map(days),
        st.tuples(clocks, specs, st.booleans(), st.booleans()).map(times),
        st.tuples(
            clocks,
            st.sampled_from(["%d.%m.%Y", "%A, %-d %B %Y", "%b %d %y", "%Y/%j"]),
            st.sampled_from(["%H:%M", "%-I.%M %p", "%H%M%S.%f"]),
            st.sampled_from(["day", "clock", "both", "other"]),
        ).map(in_format),
    )


def rules() -> st.SearchStrategy[Pair]:
    """Leaves, and what is put together of them."""

    def together(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Pair]:
        listed: st.SearchStrategy[Any] = st.lists(texts(), min_size=1, max_size=3).map(
            lambda all_: (all_, {"choice": all_})
        )
        text: st.SearchStrategy[Any] = texts().map(lambda text: (text, text))

        def one_of(parts: list[Pair]) -> Pair:
            return OneOf(*(part for part, _ in parts)), {"one_of": [spec for _, spec in parts]}

        def repeat(drawn: tuple[Pair, int, int | None, str]) -> Pair:
            (rule, spec), low, more, separator = drawn
            high = None if more is None else low + more
            fields = {"rule": spec, "min": low, "max": high, "separator": separator}
            try:
                return Repeat(rule, low, high, separator), {"repeat": fields}
            except RuleError as error:
                assert "raise the limit" in str(error)  # noqa: PT017
                reject()

        def then(parts: tuple[Pair, list[Pair]]) -> Pair:
            (rule, first), rest = parts
            try:
                for part, _ in rest:
                    rule = rule + part
            except RuleError as error:
                # Numbers after numbers may need more states than there may be.
                assert "raise the limit" in str(error)  # noqa: PT017
                reject()
            return rule, {"then": [first, *(spec for _, spec in rest)]}

        counts = (st.integers(0, 3), st.integers(1, 3) | st.none(), st.sampled_from(["", ", ", "a"]))
        return (
            st.lists(inner | listed | text, min_size=1, max_size=3).map(one_of)
            | st.tuples(inner, st.lists(inner | text, min_size=1, max_size=2)).map(then)
            | st.tuples(inner | listed | text, *counts).map(repeat)
        )

    return st.recursive(leaves(), together, max_leaves=4)


def walk(one: Sampler, other: Sampler, data: st.DataObject, steps: int = 12) -> None:
    """The same tokens are allowed and forced all the way."""
    for _ in range(steps):
        allowed = one.allowed()
        assert allowed.tolist() == other.allowed().tolist()
        assert one.forced().tolist() == other.forced().tolist()
        assert (one.state, one.open) == (other.state, other.open)
        if not len(allowed) or one.state != "active":
            return
        token = int(data.draw(st.sampled_from(allowed.tolist())))
        one.accept(token)
        other.accept(token)


@settings(max_examples=cases(150), deadline=None)
@given(rules(), st.data())
def test_what_classes_build_and_what_json_says_allow_the_same(pair: Pair, data: st.DataObject) -> None:
    rule, spec = pair
    read = constraint(spec)
    assert constraint(json.dumps(spec)) == read
    walk(Sampler(pieces(), rule), Sampler(pieces(), read), data)
    again = constraint(constraint(rule).to_json())
    assert constraint(again.to_json()) == again
    walk(Sampler(pieces(), again), Sampler(pieces(), spec), data)


def of_classes() -> list[Pair]:
    """A constraint of each class and its spec, over the tiny model's vocabulary."""
    schema = {"type": "object", "properties": {"a": {"enum": [1, "x"]}}, "required": ["a"]}
    grammar, lark = 'NUMBER : "/[0-9]+/" ; sum : NUMBER | sum "+" NUMBER ;', 'start: "a" | "b" start'
    gbnf = 'root ::= "(" root ")" | [a-z]+'
    answers = {"descriptors": [{"path": "a", "leaves": [{"name": "x", "tokens": [65, 66]}]}]}
    fmt = model().chat_format
    tools = [{"name": "ring", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}]
    return [
        (["yes", "no"], {"choice": ["yes", "no"]}),
        (Unconstrained(), {"any": {}}),
        (Grammar(grammar), {"grammar": grammar}),
        (Lark(lark), {"lark": lark}),
        (Gbnf(gbnf), {"gbnf": gbnf}),
        (JsonSchema(schema), {"json_schema": schema}),
        (
            JsonSchema(schema, whitespace="none", unicode_escapes=False),
            {"json_schema": schema, "whitespace": "none", "unicode_escapes": False},
        ),
        (Sequence(["get", "set"], ["a", "b"]), {"sequence": [{"choice": ["get", "set"]}, {"choice": ["a", "b"]}]}),
        (Sequence(["get"], Unconstrained()), {"sequence": [{"choice": ["get"]}, {"any": {}}]}),
        (answers, {"payload": answers}),
        (
            ThinkGate("<think>", "</think>", budget=4, then=["yes", "no"], started=False),
            {
                "think": {
                    "begin": "<think>",
                    "end": "</think>",
                    "budget": 4,
                    "then": {"choice": ["yes", "no"]},
                    "started": False,
                }
            },
        ),
        (
            ThinkGate([7], [8, 9], 3, Integer(0, 9), message=[5], budget_from="begin", at_once=False, masked=[2]),
            {
                "think": {
                    "begin": [7],
                    "end": [8, 9],
                    "budget": 3,
                    "then": {"integer": {"min": 0, "max": 9}},
                    "message": [5],
                    "budget_from": "begin",
                    "at_once": False,
                    "masked": [2],
                }
            },
        ),
        (
            fmt.constraint(tools, tool_choice="required", parallel_tool_calls=True),
            {
                "reply": {
                    "tools": tools,
                    "tool_choice": "required",
                    "parallel_tool_calls": True,
                    "template": fmt.template.text,
                    "bos": fmt.template.bos,
                    "eos": fmt.template.eos,
                }
            },
        ),
    ]


@pytest.mark.model
@settings(max_examples=cases(60), deadline=None)
@given(st.integers(0, 11), st.data())
def test_every_class_allows_what_its_spec_does(number: int, data: st.DataObject) -> None:
    given_, spec = of_classes()[number]
    vocab = model().vocab
    walk(Sampler(vocab, given_), Sampler(vocab, spec), data)
    walk(Sampler(vocab, constraint(given_)), Sampler(vocab, constraint(spec)), data)


@pytest.mark.model
def test_classes_say_their_specs() -> None:
    for given_, spec in of_classes():
        said = constraint(given_)
        assert constraint(said.to_dict()) == said
        if "reply" not in spec:  # tools are written out with their descriptions
            assert said == constraint(spec), spec
            assert hash(said) == hash(constraint(spec))
        assert pickle.loads(pickle.dumps(said)) == said


@pytest.mark.parametrize("case", VECTORS["valid"], ids=lambda case: next(iter(case["spec"])))
def test_vectors_are_read_and_written(case: dict[str, Any]) -> None:
    if "set" in case["spec"]:
        pytest.skip("a file")
    names = {"cities": ["Rome"]}
    read = constraint(json.dumps(case["spec"]), names=names)
    assert read.to_dict() == case.get("canonical", case["spec"])
    assert list(read.to_dict()) == list(case.get("canonical", case["spec"]))
    if read.kind == "choice":
        return  # tokenised, which these tokens are not
    for text in case.get("legal", []):
        Sampler(pieces(), read).accept(list(text.encode()))


@pytest.mark.parametrize("case", VECTORS["invalid"], ids=lambda case: case["text"][:40])
def test_vectors_of_what_is_refused(case: dict[str, str]) -> None:
    with pytest.raises(OptionError) as caught:
        # A str that is no object of JSON is taken for a value.
        constraint(case["text"] if case["text"].startswith("{") else case["text"].encode())
    message = str(caught.value)
    assert case["says"] in message
    assert message.startswith(case["place"] + ":") or case["place"] == "$"


def test_a_dictionary_stands_where_a_constraint_does() -> None:
    spec = {"integer": {"min": 10, "max": 99}}
    sampler = Sampler(pieces(), spec)
    assert {PIECES[token] for token in sampler.allowed()} == {*(b"%d" % digit for digit in range(1, 10)), b"12", b"20"}
    rows = Batch(spec, rows=2, vocab=pieces())
    assert rows.allowed(1).tolist() == sampler.allowed().tolist()
    assert Batch([spec, {"date": {}}, None], vocab=pieces()).allowed(0).tolist() == sampler.allowed().tolist()
    gate = ThinkGate([65], [66], 2, {"integer": {"min": 1, "max": 1}}, vocab=pieces())
    gate.accept([67, 66])
    assert [PIECES[token] for token in gate.allowed()] == [b"1"]
    form = Form("n: ", Slot("n", spec), " t: ", Text("t", stop=".", pattern={"regex": "[a-z]"}))
    assert constraint(form).to_dict() == {
        "form": ["n: ", {"slot": "n", "value": spec}, " t: ", {"text": "t", "stop": ".", "pattern": {"regex": "[a-z]"}}]
    }


@pytest.mark.model
def test_a_model_takes_specs() -> None:
    out = model().generate("A number: ", {"integer": {"min": 10, "max": 99}})
    assert isinstance(out.value, int)
    assert out == model().generate("A number: ", Integer(10, 99)) or out.text == str(out.value)
    assert out.tokens == model().generate("A number: ", Integer(10, 99)).tokens
    day = model().generate("The day: ", constraint({"date": {}}))
    assert isinstance(day.value, datetime.date)
    assert model().generate("The sky is ", {"choice": ["blue", "red"]}).leaf is not None
    assert (
        model().generate("The sky is ", {"choice": ["blue", "red"]}).tokens
        == model().generate("The sky is ", ["blue", "red"]).tokens
    )
    choice = model().choose("The sky is ", {"one_of": ["blue", {"choice": ["red"]}]})
    assert choice.name == model().choose("The sky is ", ["blue", "red"]).name
    document = model().generate("JSON: ", {"json_schema": {"enum": [{"a": 1}, {"a": 2}]}}).value
    assert document in ({"a": 1}, {"a": 2})


@pytest.mark.model
def test_a_model_fills_a_form_that_is_a_spec() -> None:
    spec = {
        "form": [
            '{"colour": "',
            {"slot": "colour", "value": {"choice": ["red", "blue"]}},
            '", "n": ',
            {"slot": "n", "value": {"integer": {"min": 1, "max": 20}}},
            "}",
        ]
    }
    classes = Form('{"colour": "', Slot("colour", ["red", "blue"]), '", "n": ', Slot("n", Integer(1, 20)), "}")
    one, other = model().generate("JSON: ", spec), model().generate("JSON: ", classes)
    assert (one.tokens, one.values) == (other.tokens, other.values)
    assert isinstance(one.values["n"], int)
    # Whoever walks it, and writes what must come as the tokenizer does, writes the same tokens.
    prompt = model().vocab.tokenize("JSON: ", add_special=True)
    for form in (spec, classes):
        sampler, tokens = Sampler(model().vocab, form), list[int]()
        while sampler.state == "active":
            tokens += sampler.advance(model().logits([*prompt, *tokens])) if not len(sampler.forced()) else []
            forced = sampler.forced().tolist()
            sampler.accept(forced)
            tokens += forced
        assert tokens == one.tokens
    rows = Batch([spec, classes, None], vocab=model().vocab)
    assert rows.allowed(0).tolist() == rows.allowed(1).tolist()


def asked(question: dict[str, Any]) -> Any:
    """A question of the JSON form, as Python says it."""
    if question["type"] == "predicate":
        return bool
    return question["options"] if question["type"] == "choice" else tokentrie.decisions.Score(question["levels"])


@pytest.mark.model
def test_the_examples_of_every_host() -> None:
    vectors = json.loads((Path(__file__).parents[1] / "vectors" / "examples.json").read_text(encoding="utf-8"))
    for example in vectors["generations"]:
        out = model().generate(example["prompt"], example["constraint"])
        assert (out.text, out.tokens) == (example["text"], example["tokens"]), example["name"]
        assert {name: str(value) for name, value in out.values.items()} == example.get("values", {})
    request = dict(vectors["chat"]["request"])
    reply = model().chat(request.pop("messages"), request.pop("tools"), **request)
    calls = [{"name": call.name, "arguments": json.loads(call.arguments)} for call in reply.tool_calls]
    assert calls == vectors["chat"]["tool_calls"]
    near = partial(pytest.approx, abs=vectors["near"])
    for example in vectors["choices"]:
        request = dict(example["request"])
        chosen = model().choose(request.pop("prompt"), request.pop("choices"), **request)
        told = chosen.to_dict()
        assert (told["name"], told["value"]) == (example["chosen"], example["value"]), example["name"]
        assert type(told["value"]) is type(example["value"]), example["name"]
        assert chosen.probabilities == near(example["probabilities"])
        assert told["probabilities"] == near(example["probabilities"])
    for example in vectors["probabilities"]:
        request = dict(example["request"])
        odds = model().probability(request.pop("prompt"), request.pop("constraint"), **request)
        assert odds.exact == example["exact"], example["name"]
        assert {"lower": odds.lower, "upper": odds.upper} == near(example["found"]), example["name"]
        assert "share" not in example or (odds.text and odds.text.share == near(example["share"])), example["name"]
    for example in vectors["forms"]:
        request = dict(example["request"])
        out = model().generate(request.pop("prompt"), request.pop("constraint"), **request)
        assert out.probabilities.keys() == example["probabilities"].keys()
        for slot, shares in example["probabilities"].items():
            assert out.probabilities[slot] == near(shares)
    for example in vectors["decisions"]:
        request = dict(example["request"])
        questions = {name: asked(question) for name, question in request.pop("questions").items()}
        answers = model().decide(request.pop("state"), questions, **request)
        assert answers.keys() == example["answers"].keys()
        for question, expected in example["answers"].items():
            told = answers[question].to_dict()
            assert [one["value"] for one in told["probabilities"]] == [
                one["value"] for one in expected["probabilities"]
            ]
            for one, other in zip(told["probabilities"], expected["probabilities"], strict=True):
                assert one["probability"] == near(other["probability"])
            assert told["value"] == (near(expected["value"]) if told["kind"] == "score" else expected["value"])


def test_names_and_files_are_what_the_caller_says(tmp_path: Path) -> None:
    trie = Trie.from_sequences([[1, 2], [3]], names=["a", "b"])
    trie.save(tmp_path / "letters.ttrie")
    spec = {"sequence": [{"set": "letters.ttrie"}, {"name": "end"}]}
    made = constraint(spec, names={"end": {"any": {}}}, sets=tmp_path)
    assert Sampler(8, made).allowed().tolist() == [1, 3]
    assert made.to_dict() == spec
    for refused in ["../letters.ttrie", "/etc/passwd", "", ".hidden", "a/b"]:
        with pytest.raises(OptionError, match=r"\$\.set: there is no saved set"):
            constraint({"set": refused}, sets=tmp_path)
    with pytest.raises(OptionError, match=r"\$\.set: there is no saved set"):
        Sampler(8, {"set": "letters.ttrie"})
    with pytest.raises(OptionError, match=r"\$\.name: nothing is registered here as \"x\""):
        Sampler(8, {"name": "x"})


@pytest.mark.model
def test_replies_of_templates_without_calls_are_json_in_tags() -> None:
    """A spec says nothing of the prompt: whoever wrote that has told of the tools."""
    tiny = model()
    plain = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}"
    tools = [{"type": "function", "function": {"name": "ring", "parameters": {"type": "object", "properties": {}}}}]
    sampler = Sampler(tiny.vocab, constraint({"reply": {"tools": tools, "tool_choice": "required", "template": plain}}))
    told = ChatFormat(plain).with_tools_in("system").constraint(tools, tiny.vocab, "required")
    same = Sampler(tiny.vocab, told)
    for token in tiny.vocab.tokenize(
        '<tool_call>\n{"name": "ring", "arguments": {}}\n</tool_call>', parse_special=True
    ):
        assert np.array_equal(sampler.allowed(), same.allowed())
        assert np.array_equal(sampler.forced(), same.forced())
        sampler.accept(token)
        same.accept(token)
    assert sampler.state == same.state == "complete"


@pytest.mark.model
def test_replies_take_the_template_that_the_caller_gives() -> None:
    tiny = model()
    template = tiny.chat_format.template
    ring = {"reply": {"tools": [{"type": "function", "function": {"name": "ring"}}], "tool_choice": "required"}}
    written = {"reply": {**ring["reply"], "template": template.text, "bos": template.bos, "eos": template.eos}}
    other = {"reply": {**written["reply"], "template": "{% for m in messages %}{{ m.content }}{% endfor %}"}}
    for around in (
        lambda reply: reply,
        lambda reply: {"sequence": [{"regex": "x?"}, reply]},
        lambda reply: {"form": ["a", {"text": "b", "pattern": reply}]},
        lambda reply: {"think": {"end": "</t>", "then": reply}},
    ):
        with pytest.raises(OptionError, match='give "template"'):
            Sampler(tiny.vocab, constraint(around(ring)))
        made = constraint(around(ring), template=template)
        assert made.to_dict() == around(ring), "what it was made of"
        found, wanted = Sampler(tiny.vocab, made), Sampler(tiny.vocab, constraint(around(written)))
        for _ in range(12):
            assert found.allowed().tolist() == wanted.allowed().tolist()
            token = int(wanted.allowed()[-1])
            found.accept([token])
            wanted.accept([token])
    # Its own template, which writes no calls, counts: not that of the caller.
    own = Sampler(tiny.vocab, constraint(other, template=template))
    own.accept(tiny.vocab.tokenize("<tool_call>", parse_special=True))
    assert tiny.vocab.detokenize(own.forced()).startswith('\n{"name": "ring"')


def test_what_is_no_data_says_so() -> None:
    class Never(Rule):
        def start(self) -> int:
            return 0

        def step(self, state: int, byte: int) -> int | None:
            return 1 if byte == 65 and not state else None

        def is_end(self, state: int) -> bool:
            return bool(state)

    made = constraint(Never())
    assert Sampler(pieces(), made).allowed().tolist() == [65]
    for no_data in [made, constraint(Trie.from_sequences([[1]]))]:
        with pytest.raises(OptionError, match="cannot be written as JSON"):
            no_data.to_json()


def test_payloads_and_specs_are_told_apart() -> None:
    payload = {"descriptors": [{"path": "a", "leaves": [{"name": "x", "tokens": [65]}]}], "name": "mine"}
    assert Sampler(128, payload).allowed().tolist() == [65]
    with pytest.raises(OptionError, match='got one with "descriptor"'):
        Sampler(128, {"descriptor": []})
    with pytest.raises(PayloadError, match=r"descriptors\[0\].*path"):
        Sampler(128, {"descriptors": [{}]})
    with pytest.raises(OptionError, match="several"):
        Sampler(128, {"regex": "a", "any": {}})
    assert constraint(json.dumps(payload)).kind == "payload"


def test_errors_say_where() -> None:
    with pytest.raises(OptionError, match=r"^\$\.form\[1\]\.value\.integer\.mni: unknown field"):
        constraint({"form": ["a", {"slot": "n", "value": {"integer": {"mni": 1}}}]})
    with pytest.raises(RuleError, match=r"^\$\.one_of\[1\]\.regex: "):
        Sampler(pieces(), {"one_of": ["a", {"regex": "("}]})
    with pytest.raises(TypeError, match="a regex needs a Vocab"):
        Sampler(10, {"regex": "a"})
    with pytest.raises(TypeError):
        constraint(7)  # type: ignore[arg-type]
    assert repr(constraint({"date": {}})) == '<tokentrie.rules.Spec: {"date":{}}>'
    assert tokentrie.constraint is constraint
