"""Figures of SmolLM2 in docs/first-choice.md, docs/first-form.md and docs/small-mass.md hold on the model."""

from __future__ import annotations

import datetime

import pytest
from tokentrie import Form, Model, Slot
from tokentrie.rules import Date, Integer

LABELS = ["positive", "negative", "neutral"]
SHOWN = [
    ("The soup was cold and the waiter rude.", "negative"),
    ("What a wonderful evening!", "positive"),
    ("The museum opens at ten.", "neutral"),
]
EXAMPLES = "".join(f"Review: {review}\nLabel: {label}\n\n" for review, label in SHOWN)
REQUESTS = [
    ("Book a hotel in Oslo for three guests on May 1st.", ("Oslo", 5, 1, 3)),
    ("We are five, and we want to stay in Rome on July 14th.", ("Rome", 7, 14, 5)),
    ("One person, Bergen, 2 February.", ("Bergen", 2, 2, 1)),
    ("A room in Rome for two from September 30th.", ("Rome", 9, 30, 2)),
    ("Four of us will be in Bergen on the 8th of June.", ("Bergen", 6, 8, 4)),
    ("Oslo, August 21, 6 people", ("Oslo", 8, 21, 6)),
]


def booking(day: Date) -> Form:
    """Returns the form of docs/first-form.md with a rule for its day."""
    city, guests = Slot("city", ["Oslo", "Bergen", "Rome"]), Slot("guests", Integer(1, 9))
    return Form('{"city": "', city, '", "day": "', Slot("day", day), '", "guests": ', guests, "}")


def right_values(real: Model, pattern: str) -> list[int]:
    """Returns how many cities, days and numbers of guests are right, with two filled forms in the prompt."""
    one, two = (datetime.date(2026, 3, 9), datetime.date(2026, 11, 20))
    shown = (
        "Request: Two of us come to Rome on the 9th of March.\n"
        f'{{"city": "Rome", "day": "{one.strftime(pattern)}", "guests": 2}}\n\n'
        "Request: A room in Bergen from November 20th, four people.\n"
        f'{{"city": "Bergen", "day": "{two.strftime(pattern)}", "guests": 4}}\n\n'
    )
    form, right = booking(Date("2026-01-01", "2026-12-31", format=pattern)), [0, 0, 0]
    for text, (city, month, day, guests) in REQUESTS:
        found = real.generate(f"{shown}Request: {text}\n", form).values
        fits = [found["city"] == city, found["day"] == datetime.date(2026, month, day), found["guests"] == guests]
        right = [count + fit for count, fit in zip(right, fits, strict=True)]
    return right


def test_examples_in_the_prompt_raise_the_mass(real: Model) -> None:
    review = "The service is so great."
    asked = [{"role": "system", "content": "Label the review: positive, negative or neutral."}]
    bare = real.choose(real.chat_prompt([*asked, {"role": "user", "content": review}]), LABELS)
    shown = real.choose(f"{EXAMPLES}Review: {review}\nLabel: ", LABELS)
    assert bare.name == shown.name == "positive"
    assert bare.mass == pytest.approx(0.0008, abs=0.0004)
    assert shown.mass == pytest.approx(0.967, abs=0.01)


def test_a_day_is_copied_as_people_write_it(real: Model) -> None:
    as_people, as_iso = right_values(real, "%B %-d, %Y"), right_values(real, "%Y-%m-%d")
    assert as_people == [6, 6, 6]
    assert as_iso[0] == as_iso[2] == 6
    assert as_iso[1] < 4
