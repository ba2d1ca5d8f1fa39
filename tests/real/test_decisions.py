"""Decisions of SmolLM2: the usual prompt and readout give the options most of the probability."""

from __future__ import annotations

import statistics
from typing import Any

import pytest
from tokentrie import Model
from tokentrie.decisions import Question

#: Options, what is asked, and states.
NAMED: list[tuple[list[str], str, list[str]]] = [
    (
        ["positive", "negative"],
        "Is the review positive or negative?",
        ["The film is a joy from start to end.", "What a boring, lifeless film.", "I loved every minute of it."],
    ),
    (
        ["sports", "politics", "business", "technology", "science"],
        "What is the topic?",
        ["The team won the final after extra time.", "Shares fell by five percent.", "Astronomers found a planet."],
    ),
    (
        ["red", "green", "blue", "yellow", "black", "white", "brown", "orange"],
        "What color is it?",
        ["The grass after the rain.", "The sky on a clear day.", "A ripe banana.", "Fresh snow."],
    ),
    (
        ["English", "French", "German", "Spanish"],
        "Which language is this?",
        ["Guten Morgen, wie geht es dir?", "Bonjour tout le monde", "Where is the station?", "Hola amigo"],
    ),
]
YES_OR_NO = [
    ("Does the customer want a refund?", ["I was charged twice, refund one please.", "How do I log in?"]),
    ("Is the lamp on?", ["The lamp is on.", "The lamp is off."]),
    ("Is this about sports?", ["The team won the final.", "The parliament passed the budget."]),
]


def masses(model: Model, kind: Any, asked: str, states: list[str], **options: Any) -> list[float]:
    answers = model.decide_many(states, {"q": Question(kind, instructions=asked)}, **options)
    return [answer["q"].mass for answer in answers]


def test_options_get_most_of_the_probability(real: Model) -> None:
    named = [mass for options, asked, states in NAMED for mass in masses(real, options, asked, states)]
    assert statistics.median(named) >= 0.3, named
    of_two = [mass for asked, states in YES_OR_NO for mass in masses(real, bool, asked, states)]
    assert statistics.median(of_two) >= 0.3, of_two


@pytest.mark.filterwarnings("ignore::tokentrie.errors.TokenTrieWarning")
def test_what_is_optional_is_what_raised_the_mass(real: Model) -> None:
    options, asked, states = NAMED[0]
    usual = masses(real, options, asked, states)
    strict = masses(real, options, asked, states, end="required", spellings=False, prefix="")
    assert all(mass > 10 * before for mass, before in zip(usual, strict, strict=True)), (usual, strict)
    label = masses(real, options, asked, states, readout="label")
    assert statistics.median(label) >= 0.1, label


def test_examples_are_followed(real: Model) -> None:
    options, asked, states = NAMED[0]
    examples = [("It was awful.", {"q": "negative"}), ("It was superb.", {"q": "positive"})]
    question = {"q": Question(options, instructions=asked)}
    with_them = real.decide_many(states, question, examples=examples)
    assert statistics.median(answer["q"].mass for answer in with_them) >= 0.5
    assert [answer["q"].value for answer in with_them] == ["positive", "negative", "positive"]


def test_no_order_of_the_options_changes_a_bit(real: Model) -> None:
    found = []
    for options, asked, states in NAMED:
        for state in states:
            orders = [options, options[::-1], sorted(options, key=len)]
            questions = [{"q": Question(order, instructions=asked)} for order in orders]
            answers = [real.decide(state, question, order="independent")["q"] for question in questions]
            assert {answer.order for answer in answers} == {"independent"}
            assert len({tuple(answer.probabilities[option] for option in options) for answer in answers}) == 1
            found.append(answers[0].mass)
    assert statistics.median(found) >= 0.3, found
