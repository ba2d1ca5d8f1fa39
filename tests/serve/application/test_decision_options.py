"""Options of decisions over HTTP do what they do in Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi")

import tokentrie
from serve.application.in_process import InProcess
from tokentrie.decisions import Question

pytestmark = pytest.mark.model

STATE = "The lamp is on."
QUESTION = Question({"red": None, "blue": None}, instructions="Which colour?")
SAID = {"type": "choice", "instructions": "Which colour?", "criteria": {"red": None, "blue": None}}


@pytest.fixture(scope="module")
def model() -> Iterator[tokentrie.Model]:
    # Decisions have the same bits then, whatever stands beside them.
    with tokentrie.Model(n_ctx=512, n_threads=1, batching="fixed") as model:
        yield model


def systemone(app: InProcess, **options: Any) -> dict[str, Any]:
    status, told = app.ask(
        "POST", "/v1/systemone", {"model": "m", "state": STATE, "questions": {"colour": SAID}, **options}
    )
    assert status == 200, told
    return told["answers"]["colour"]  # type: ignore[no-any-return]


def decision(app: InProcess, **options: Any) -> dict[str, Any]:
    choices = [{"value": value} for value in ("red", "blue")]
    asked = {"type": "choice", "name": "colour", "instructions": "Which colour?", "choices": choices}
    status, told = app.ask("POST", "/v1/decisions", {"model": "m", "input": STATE, "questions": [asked], **options})
    assert status == 200, told
    return told["answers"][0]  # type: ignore[no-any-return]


def test_answers_say_what_they_say_in_python(app: InProcess, model: tokentrie.Model) -> None:
    options: dict[str, Any] = {"threshold": 1.0, "out_of_scope": True, "escalate": 1.0, "think_tokens": 4}
    same = model.decide(STATE, {"colour": QUESTION}, **options)["colour"]
    for found in (systemone(app, **options), decision(app, **options)):
        assert (found["x_reason"], found["x_out_of_scope"]) == (same.reason, same.out_of_scope)
        assert same.thought is not None
        before = [*same.thought.probabilities.values()]
        assert found["x_thought"] == {"text": same.thought.text, "probabilities": before}
    assert {"x_reason", "x_out_of_scope", "x_thought", "x_certain"}.isdisjoint(decision(app))


def test_thousands_of_options_say_how_many_are_certain(app: InProcess, model: tokentrie.Model) -> None:
    many: dict[Any, Any] = dict.fromkeys(f"item {number}" for number in range(9000))
    options: dict[str, Any] = {"top": 3, "max_rows": 40, "list_options": False}
    same = model.decide(STATE, {"q": Question(many, instructions="Which?")}, **options)["q"]
    asked = {"q": {**SAID, "instructions": "Which?", "criteria": many}}
    status, told = app.ask("POST", "/v1/systemone", {"model": "m", "state": STATE, "questions": asked, **options})
    assert status == 200, told
    found = told["answers"]["q"]
    assert same.certain is not None
    assert (found["choice"], found["x_certain"], found["x_unscored"]) == (same.value, same.certain, same.unscored)


def test_a_calibration_has_the_names_of_the_request(app: InProcess, model: tokentrie.Model) -> None:
    states = [f"The {what} is {colour}." for colour in ("red", "blue") for what in ("lamp", "door", "box", "cup")] * 2
    gold = {"colour": [colour for colour in ("red", "blue") for _ in range(4)] * 2}
    made = model.calibrate(states, {"colour": QUESTION}, gold=gold)
    for options in ({"coverage": 0.8}, {"target_accuracy": 0.9}):
        same = model.decide(STATE, {"colour": QUESTION}, calibration=made, **options)["colour"]
        sets = same.prediction_set and [["red", "blue"].index(one) for one in same.prediction_set]
        for found in (systemone, decision):
            answer = found(app, calibration=made.to_dict(), **options)
            assert (answer.get("x_reason"), answer.get("x_prediction_set")) == (same.reason, sets)
    body = {"model": "m", "state": STATE, "questions": {"other": SAID}, "calibration": made.to_dict()}
    status, told = app.ask("POST", "/v1/systemone", body)
    assert (status, "the calibration does not have this question" in told["error"]["message"]) == (422, True)
