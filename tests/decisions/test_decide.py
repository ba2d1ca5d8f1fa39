"""`Model.decide`: questions as Python says them, answers that are the choices they stand for, and what is refused."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import json
import math
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
import pytest
import tokentrie
from tokentrie import Answers, CancelToken, Message, Model
from tokentrie.decisions import Question, Score
from tokentrie.errors import (
    CancelledError,
    ContextError,
    InvalidValueError,
    OptionError,
    TimedOutError,
    VocabularyError,
)

pytestmark = pytest.mark.model

STATE = "Customer wrote: I was charged twice, <|im_end|> refund one please."
QUESTIONS: dict[str, Any] = {
    "refund": bool,
    "team": ["billing", "access", "sales", "bill"],
    "area": {"billing": "Payments and refunds", "access": None, True: {"any": "thing"}},
    "anger": Score(["calm", "annoyed", "furious"]),
}


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(n_threads=1, precise=True) as model:
        yield model


def close(one: dict[Any, float], other: dict[Any, float], within: float = 5e-3) -> bool:
    return list(one) == list(other) and all(abs(one[key] - other[key]) < within for key in one)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"readout": "label", "permute": 3},
        {"end": "required", "spellings": False},
        {"prefix": "Answer:", "examples": [("I cannot log in.", {"team": "access", "refund": False})]},
        {"list_options": False, "instructions": ["be", "brief"]},
        {"permute": 24, "system": "Decide.", "prompt": "{instructions}? {options} {answer} {state}"},
    ],
    ids=str,
)
def test_every_answer_is_the_choice_that_it_stands_for(model: Model, options: dict[str, Any]) -> None:
    answers = model.decide(STATE, QUESTIONS, **options)
    assert list(answers) == list(QUESTIONS)
    for name, answer in answers.items():
        boundary = model.vocab.boundary_tokens if options.get("end") != "required" else []
        choices = [
            model.choose(one.tokens, one.values, end_tokens=[*one.end_tokens, *boundary]) for one in answer.prompts
        ]
        shares = [
            np.bincount(one.options, weights=[*choice.probabilities.values()])
            for one, choice in zip(answer.prompts, choices, strict=True)
        ]
        mean = np.mean(shares, axis=0)
        assert np.allclose(mean, list(answer.probabilities.values()), atol=5e-3), name
        assert math.isclose(answer.mass, np.mean([choice.mass for choice in choices]), abs_tol=5e-3)
        assert math.isclose(sum(answer.probabilities.values()), 1, abs_tol=1e-9)
        winners = [int(np.argmax(of)) for of in shares]
        assert abs(answer.flips - sum(winner != answer.index for winner in winners) / len(winners)) < 0.2
        for one in answer.prompts:
            text = model.vocab.detokenize(one.tokens)
            assert "refund one please" in text
            assert (
                one.tokens.count(model.vocab.tokenize("<|im_end|>", parse_special=True)[0])
                == text.count("<|im_end|>") - 1
            ), "what the customer wrote is text"
    assert answers.prompt_tokens["team"] == answers["team"].prompts[0].tokens


def test_a_state_is_decoded_once_where_questions_are_asked_together() -> None:
    with Model(n_threads=1) as model:
        # Spellings are tokens beside the prompts.
        answers = model.decide(STATE, QUESTIONS, spellings=False)
    assert answers.stats.tokens_decoded < sum(len(one.tokens) for a in answers.values() for one in a.prompts)


def test_values_are_those_that_were_given(model: Model) -> None:
    answers = model.decide(STATE, QUESTIONS)
    assert answers["refund"].value is (answers["refund"].probability >= 0.5)
    assert list(answers["refund"].probabilities) == [True, False]
    assert answers["team"].value == QUESTIONS["team"][answers["team"].index]
    assert list(answers["area"].probabilities) == ["billing", "access", True]
    level = sum(level * share for level, share in enumerate(answers["anger"].probabilities.values()))
    assert math.isclose(answers["anger"].value, level)
    assert list(answers["anger"].probabilities) == ["calm", "annoyed", "furious"]
    assert answers.parsed == {name: answer.value for name, answer in answers.items()}
    assert answers.probabilities["team"] == answers["team"].probabilities
    assert json.loads(json.dumps(answers.to_dict()))["area"]["probabilities"][2]["value"] is True
    assert repr(answers).startswith("<tokentrie.Answers: refund: ")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Ticket:
    team: Literal["billing", "access"]
    colour: Colour
    refund: bool
    size: Literal[1, 2, None]
    anger: Annotated[int, Score(["calm", "furious"])]
    mood: Annotated[str, Score({"low": None, "high": "very"}), "How is the mood?"]
    level: Annotated[float, Score(["low", "high"])]
    urgent: Annotated[bool, Question(bool, instructions="Is it urgent?")] = False
    note: bool | None = None


class Typed(TypedDict):
    team: Literal["billing", "access"]
    refund: bool


def test_classes_are_questions_and_become_objects(model: Model) -> None:
    answers = model.decide(STATE, Ticket)
    ticket = answers.parsed
    assert isinstance(ticket, Ticket)
    assert ticket.team in ("billing", "access")
    assert isinstance(ticket.colour, Colour)
    assert ticket.size in (1, 2, None)
    assert ticket.anger in (0, 1)
    assert ticket.mood in ("low", "high")
    assert 0 <= ticket.level <= 1
    assert isinstance(ticket.urgent, bool)
    assert set(answers.parsed.__dict__) == set(answers)
    assert set(model.decide(STATE, Typed).parsed) == {"team", "refund"}
    by_hand = {"team": ["billing", "access"], "refund": bool}
    assert model.decide(STATE, Typed)["team"].prompts == model.decide(STATE, by_hand)["team"].prompts


def test_pydantic_models(model: Model) -> None:
    pydantic = pytest.importorskip("pydantic")

    class Form(pydantic.BaseModel):
        team: Literal["billing", "access"] = pydantic.Field(description="Who answers it?", alias="Team")
        refund: bool

    answers = model.decide(STATE, Form)
    assert isinstance(answers.parsed, Form)
    assert "Who answers it?" in model.vocab.detokenize(answers["team"].prompts[0].tokens)


def test_below_the_threshold_there_is_no_value(model: Model) -> None:
    answers = model.decide(STATE, {"team": ["a", "b", "c"]}, threshold=1.0)
    assert answers["team"].value is None
    assert "below the threshold 1" in str(answers["team"].reason)
    assert answers.parsed == {"team": None}
    with pytest.raises(InvalidValueError, match="team has no value: the probability"):
        model.decide(STATE, Typed, threshold=1.0).parsed  # noqa: B018
    assert model.decide(STATE, Typed, threshold=0.0).parsed["team"]


def test_questions_are_independent_and_states_too(model: Model) -> None:
    whole = model.decide(STATE, QUESTIONS)
    for name, kind in reversed(QUESTIONS.items()):
        alone = model.decide(STATE, {name: kind})[name]
        assert close(alone.probabilities, whole[name].probabilities)
        assert alone.prompts == whole[name].prompts
    states = ["other", STATE, {"text": STATE}, [{"role": "user", "content": STATE}, Message("Hello")]]
    for state, one in zip(states * 10, model.decide_many(states * 10, QUESTIONS), strict=True):
        alone = model.decide(state, QUESTIONS)["team"]
        assert close(alone.probabilities, one["team"].probabilities)
        assert alone.prompts == one["team"].prompts
    columns = model.decide_many(np.array(["a", "b"]), {"on": bool})
    assert len(columns) == 2


def test_priors(model: Model) -> None:
    question: dict[str, Any] = {"q": ["red", "green", "a much longer name"]}
    states = ["It is red.", "It is green.", "It is green and blue."]
    plain, batch = (model.decide_many(states, question, prior=prior) for prior in ("none", "batch"))
    shares = np.array([list(one["q"].probabilities.values()) for one in plain])
    expected = shares / shares.mean(axis=0)
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.allclose([list(one["q"].probabilities.values()) for one in batch], expected, atol=1e-2)
    nothing = model.decide("N/A", question, prior="content-free")["q"]
    assert np.allclose(list(nothing.probabilities.values()), 1 / 3, atol=1e-3)
    with pytest.raises(OptionError, match='prior: "batch" is the mean over several states'):
        model.decide("s", question, prior="batch")


def test_many_options(model: Model) -> None:
    options = [f"item {number}" for number in range(20_000)]
    answer = model.decide("Take item 77.", {"q": options}, list_options=False, top=3)["q"]
    known = {option: share for option, share in answer.probabilities.items() if share == share}
    assert answer.value == max(known, key=lambda option: known[option])
    assert 3 <= len(known) < 20_000
    with pytest.raises(ContextError, match='the question "q" about state 0: '):
        model.decide("Take item 77.", {"q": options})


@pytest.mark.parametrize(
    ("questions", "says"),
    [
        ([bool], "questions must be a dict of questions by name"),
        ({1: bool}, "the name 1: names must be str"),
        ({"q": int}, "q: invalid question: expected bool, a list"),
        ({"q": 7}, "q: invalid question: .*got int"),
        ({"q": {"a", "b"}}, "q: a set has no order"),
        ({"q": "chioce"}, "q: unknown kind of question 'chioce'"),
        ({"q": "choice"}, "q: unknown kind of question 'choice'|q: a choice has options"),
        ({"q": Question("predicate", options={"yes": "x"})}, "options of a predicate are {True"),
        ({"q": Question(bool, options=["a"])}, "q: options go with one of the words"),
        ({"q": [b"a", "b"]}, "the option b'a' is a bytes: it must be a str or a bool"),
        ({"q": Score("abc")}, "q: levels must be a list of str"),
        ({"q": Score(["a", 1])}, "q: the level 1 is a int"),  # type: ignore[list-item]
        ({"q": Question(bool, instructions={1: 2})}, "the instructions of q has the key 1"),
    ],
)
def test_what_is_no_question(model: Model, questions: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        model.decide("s", questions)


@pytest.mark.parametrize(
    ("questions", "options", "says"),
    [
        ({}, {}, "questions: there is no question"),
        ({"q": []}, {}, "questions.q: there is nothing to choose from"),
        ({"q": ["a", "a"]}, {}, "q: the options 'a' and 'a' are equal"),
        ({"q": [1, True]}, {}, "q: the options 1 and True are equal"),
        ({"q": ["a", ""]}, {}, "questions.q: an option has no text"),
        ({"q": bool}, {"permute": 0}, "permute: it is 0: it must be from 1 to 64"),
        ({"q": bool}, {"readout": "logits"}, "readout: invalid value: expected"),
        ({"q": bool}, {"prompt": "{state} {name}"}, "prompt: there is no place"),
        ({"q": bool}, {"threshold": 2}, "threshold: invalid value: expected a number from 0 to 1"),
        ({"q": bool}, {"timeout": -1}, "timeout"),
    ],
)
def test_what_cannot_be_asked(model: Model, questions: Any, options: Any, says: str) -> None:
    with pytest.raises(OptionError, match=re.escape(says)):
        model.decide("s", questions, **options)


def test_states_and_keywords_that_are_wrong(model: Model) -> None:
    for state, says in ((7, "not int"), ({"a": {1}}, "state has a set"), ({"a": float("nan")}, "state has a float")):
        with pytest.raises(TypeError, match=says):
            model.decide(state, {"q": bool})  # type: ignore[arg-type]
    with pytest.raises(OptionError, match='state 0: message 0: the role "usr" is unknown'):
        model.decide([{"role": "usr", "content": "Hi"}], {"q": bool})
    with pytest.raises(TypeError, match="unexpected keyword argument 'temperature'"):
        model.decide("s", {"q": bool}, temperature=1)  # type: ignore[call-overload]
    for states in ("one", {"a": 1}, 7):
        with pytest.raises(TypeError, match="`decide` takes one"):
            model.decide_many(states, {"q": bool})  # type: ignore[arg-type]
    assert model.decide_many([], {"q": bool}) == []
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(OptionError, match="state is nested too deeply"):
        model.decide(deep, {"q": bool})
    with pytest.raises(OptionError, match="nested"):
        model.decide(json.loads("[" * 500 + "]" * 500), {"q": bool})
    for state, options in (("half \ud800", ["a"]), ("s", ["a", "b\udfff"])):
        with pytest.raises(VocabularyError, match="half a surrogate pair"):
            model.decide(state, {"q": options})
    with pytest.raises(ContextError, match=r'the question "q" about state 0: \d+ tokens after 0 do not fit'):
        model.decide("s", {"q": ["word " * 6000, "b"]})
    long = "word " * 9000
    with pytest.raises(ContextError, match=r'the question "q" about state 40: .*tokens'):
        model.decide_many(["s"] * 40 + [long], {"q": bool})
    assert model.decide("", {"q": bool})["q"].kind == "predicate"


def test_a_call_can_be_ended(model: Model) -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(CancelledError):
        model.decide("s", QUESTIONS, cancel=token)
    many = ["a long state " * 100 + str(number) for number in range(200)]
    with pytest.raises(TimedOutError, match=r"0\.2"):
        model.decide_many(many, QUESTIONS, timeout=0.2)
    assert model.decide("s", QUESTIONS, timeout=60)["team"].reason is None


def test_beside_each_other() -> None:
    with Model(n_threads=1, precise=True, slots=4, n_ctx=1024) as model:

        async def all_of(states: list[str]) -> list[Answers[Any]]:
            return list(await asyncio.gather(*(model.adecide(state, QUESTIONS) for state in states)))

        states = [f"state {number}" for number in range(12)]
        for state, one in zip(states, asyncio.run(all_of(states)), strict=True):
            assert close(one["team"].probabilities, model.decide(state, QUESTIONS)["team"].probabilities)


def test_shown() -> None:
    assert repr(Question(bool, instructions="On?")) == "tokentrie.decisions.Question(bool, instructions='On?')"
    assert repr(Question("choice", options=["a"])) == "tokentrie.decisions.Question('choice', options=['a'])"
    assert repr(Score(["a", "b"])) == "tokentrie.decisions.Score(['a', 'b'])"
    assert tokentrie.decisions.Score is Score
