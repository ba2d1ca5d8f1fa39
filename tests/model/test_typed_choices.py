"""The value of a choice is what its constraint makes of the text, as the value of a generation is."""

from __future__ import annotations

import datetime
import enum
import json
import pickle
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import numpy as np
import pytest
import tokentrie
from tokentrie import Choice, Model, Trie
from tokentrie.rules import Date, Integer, OneOf, Regex

pytestmark = pytest.mark.model


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model() as model:
        yield model


TYPED: list[tuple[Any, Any]] = [
    (Integer(1, 5), int),
    (Date("2024-02-27", "2024-03-02"), datetime.date),
    (Colour, Colour),
    (bool, bool),
    (Literal[3, 4], int),
    (Literal["a", "b"], str),
    (["a", "b"], str),
    (Regex("[ab]c"), str),
    (OneOf("none", Integer(1, 3)), (int, str)),
    ({"integer": {"min": 1, "max": 5}}, int),
]


@pytest.mark.parametrize(("choices", "kind"), TYPED, ids=[repr(choices) for choices, _ in TYPED])
def test_a_value_has_the_type_of_its_constraint(model: Model, choices: Any, kind: Any) -> None:
    choice = model.choose("So: ", choices)
    assert isinstance(choice.value, kind)
    assert not isinstance(choice.value, bool) or kind is bool
    assert isinstance(choice.name, str)
    generated = model.generate("So: ", choices)
    assert type(generated.value) in {type(choice.value), str, int}
    assert next(one.value for one in model.choose_many(["So: ", "And: "], choices)) == choice.value
    assert pickle.loads(pickle.dumps(choice)) == choice
    assert json.loads(json.dumps(choice.to_dict()))["name"] == choice.name
    assert model.choose("So: ", choices, threshold=1).value is None


def test_a_set_without_names_has_numbers(model: Model) -> None:
    choice: Choice[Any, Any] = model.choose([5], Trie.from_sequences([[3], [4]]))
    assert (choice.name, choice.value) == (None, choice.index)


def test_a_function_gives_typed_values_too(model: Model) -> None:
    row = np.zeros(len(model.vocab), np.float32)
    row[model.vocab.tokenize("2", add_special=False)] = 9
    scorer = lambda prefixes: np.tile(row, (len(prefixes), 1))  # noqa: E731
    choice = tokentrie.sets.choose(scorer, Integer(1, 3), vocab=model.vocab)
    assert (choice.value, choice.name) == (2, "2")


def test_a_value_that_its_class_refuses_says_why(model: Model) -> None:
    pydantic = pytest.importorskip("pydantic")

    def odd(value: int) -> int:
        if value % 2 == 0:
            raise ValueError("an odd number is wanted")
        return value

    kind = pydantic.TypeAdapter(Annotated[Literal[2, 4], pydantic.AfterValidator(odd)])
    choice = model.choose("So: ", tokentrie.JsonSchema(kind))
    assert choice.name in ("2", "4")
    assert choice.value is None
    assert "an odd number is wanted" in str(choice.reason)
