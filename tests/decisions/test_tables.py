"""Decisions about the rows of a table of pandas, polars or pyarrow, which gives such a table back."""

from __future__ import annotations

import asyncio
import enum
import importlib
import random
from collections.abc import Iterator
from typing import Any

import pytest
from tokentrie import Model
from tokentrie.decisions import Answers, Question, Score
from tokentrie.errors import OptionError

pytestmark = pytest.mark.model


class Team(enum.Enum):
    """Options that are an Enum."""

    BILLING = "billing"
    ACCESS = "access"


QUESTIONS: dict[str, Any] = {
    "on": Question(bool, instructions="Is the lamp on?"),
    "team": Team,
    "size": Question([1, 2, 30]),
    "mixed": Question(["a", True]),
    "anger": Score(["calm", "annoyed", "furious"]),
}
#: Values of each question's answer, as columns have them.
KINDS: dict[str, Any] = {"on": bool, "team": str, "size": int, "mixed": str, "anger": float}


class Library:
    """One that makes tables; rows are dicts."""

    def __init__(self, name: str) -> None:
        self.name, self.module = name, importlib.import_module(name)

    def table(self, rows: list[dict[str, Any]], names: list[str]) -> Any:
        columns = {name: [row[name] for row in rows] for name in names}
        if self.name == "pandas":
            return self.module.DataFrame(columns, index=[10 * number for number in range(len(rows))])
        return self.module.DataFrame(columns) if self.name == "polars" else self.module.table(columns)

    def rows(self, table: Any) -> list[dict[str, Any]]:
        """The rows as Python has them; probabilities are dicts."""
        if self.name == "pandas":
            found = [
                {key: None if value is self.module.NA else value for key, value in row.items()}
                for row in table.to_dict("records")
            ]
        else:
            found = table.to_dicts() if self.name == "polars" else table.to_pylist()
        for row in found:
            for name, value in row.items():
                if name.endswith("_probabilities") and isinstance(value, list):
                    row[name] = dict(tuple(one.values()) if isinstance(one, dict) else one for one in value)
                elif value != value:
                    row[name] = None
        return list(found)


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(n_threads=1) as opened:
        yield opened


@pytest.fixture(params=["pandas", "polars", "pyarrow"])
def library(request: pytest.FixtureRequest) -> Library:
    pytest.importorskip(request.param, reason=f"the package {request.param} is not installed")
    return Library(request.param)


def drawn_rows(seed: int, count: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    words = ["lamp", "refund", "login", "off", "on", "angry"]
    return [
        {"id": draw.randrange(1000), "text": " ".join(draw.choices(words, k=5)), "note": None} for _ in range(count)
    ]


def expected(answer: Any) -> tuple[Any, dict[Any, float]]:
    """The value and the probabilities as columns have them."""
    kind = KINDS[answer.name]

    def plain(option: Any) -> Any:
        option = option.value if isinstance(option, Team) else option
        return "true" if kind is str and option is True else option

    return plain(answer.value), {plain(option): share for option, share in answer.probabilities.items()}


@pytest.mark.parametrize(("seed", "count"), [(1, 40), (2, 1), (3, 0)])
def test_a_table_gets_the_columns_of_the_answers(library: Library, model: Model, seed: int, count: int) -> None:
    names, rows = ["id", "text", "note"], drawn_rows(seed, count)
    table = library.table(rows, names)
    done = model.decide_many(table, QUESTIONS, column="text")
    assert type(done) is type(table)
    answers = model.decide_many([row["text"] for row in rows], QUESTIONS)
    found = library.rows(done)
    assert len(found) == count
    added = [f"{name}_{part}" for name in QUESTIONS for part in ("answer", "probability", "mass", "probabilities")]
    assert list(done.columns if library.name != "pyarrow" else done.column_names) == [*names, *added]
    for row, given, answer in zip(found, rows, answers, strict=True):
        assert {name: row[name] for name in names} == given
        for name in QUESTIONS:
            value, shares = expected(answer[name])
            shown = row[f"{name}_answer"]
            assert isinstance(shown, KINDS[name])
            own = row[f"{name}_probabilities"]
            assert own == pytest.approx(shares, abs=0.05)
            if KINDS[name] is float:
                assert shown == pytest.approx(value, abs=0.1)
            else:
                assert own[shown] == max(own.values())
            assert row[f"{name}_probability"] == pytest.approx(answer[name].probability, abs=0.05)
            assert row[f"{name}_mass"] == pytest.approx(answer[name].mass, abs=0.05)
    if library.name == "pandas":
        assert done.index.equals(table.index)


def test_columns_have_their_types_without_rows(library: Library, model: Model) -> None:
    done = model.decide_many(library.table([], ["text"]), QUESTIONS, column="text")
    one = model.decide_many(library.table([{"text": "on"}], ["text"]), QUESTIONS, column="text")
    assert len(library.rows(one)) == 1
    dtypes = [str(table.schema if library.name == "pyarrow" else table.dtypes) for table in (done, one)]
    if library.name == "pyarrow":
        assert done.schema.types[1:] == one.schema.types[1:]
    else:
        assert dtypes[0].split("\n")[1:] == dtypes[1].split("\n")[1:]


def test_below_a_threshold_there_is_no_value(library: Library, model: Model) -> None:
    table = library.table(drawn_rows(4, 5), ["text"])
    found = library.rows(model.decide_many(table, QUESTIONS, column="text", threshold=1.0))
    assert [row[f"{name}_answer"] for row in found for name in QUESTIONS] == [None] * 25
    assert all(row["on_probability"] is not None for row in found)
    none = library.rows(model.decide_many(table, {"team": Team, "size": [1, 2]}, column="text", none_of_these=True))
    assert all("none of these" in row["team_probabilities"] for row in none)
    assert all(set(row["size_probabilities"]) == {1, 2} for row in none)


def test_errors_are_a_column_or_left_out(library: Library) -> None:
    rows = drawn_rows(5, 6)
    rows[2]["text"] = "word " * 400
    with Model(n_threads=1, n_ctx=256) as small:
        table = library.table(rows, ["id", "text"])
        kept = library.rows(small.decide_many(table, {"on": bool}, column="text", on_error="return"))
        assert [row["error"] is None for row in kept] == [True, True, False, True, True, True]
        assert "state 2" in kept[2]["error"]
        assert kept[2]["on_answer"] is kept[2]["on_probabilities"] is None
        short = library.rows(small.decide_many(table, {"on": bool}, column="text", on_error="skip"))
        assert [row["id"] for row in short] == [row["id"] for row in rows if row is not rows[2]]
        assert "error" not in short[0]


def test_several_columns_are_one_state(library: Library, model: Model) -> None:
    rows = [{"subject": "lamp", "body": "It is on."}, {"subject": "lamp", "body": "It is off."}]
    table = library.table(rows, ["subject", "body"])
    done = library.rows(model.decide_many(table, {"on": bool}, column=["subject", "body"]))
    plain = model.decide_many(rows, {"on": bool})
    for row, answers in zip(done, plain, strict=True):
        assert row["on_probability"] == pytest.approx(answers["on"].probability, abs=0.05)


def test_faulty_columns_are_named(library: Library, model: Model) -> None:
    table = library.table(drawn_rows(6, 2), ["id", "text"])
    with pytest.raises(TypeError, match=r"name the column of the states with column=, one of 'id', 'text'"):
        model.decide_many(table, {"on": bool})  # type: ignore[call-overload]
    with pytest.raises(OptionError, match=r"unknown column 'body': the columns are 'id', 'text'"):
        model.decide_many(table, {"on": bool}, column="body")
    with pytest.raises(OptionError, match="column is empty"):
        model.decide_many(table, {"on": bool}, column=[])
    with pytest.raises(TypeError, match=r"states\[0\] must be a str, a dict or a list, not int"):
        model.decide_many(table, {"on": bool}, column="id")
    taken = library.table([{"text": "on", "on_mass": 1}], ["text", "on_mass"])
    with pytest.raises(OptionError, match="the table has a column 'on_mass' already"):
        model.decide_many(taken, {"on": bool}, column="text")
    with pytest.raises(TypeError, match="column is 'text': it names a column of a table, and states is a list"):
        model.decide_many(["on"], {"on": bool}, column="text")


def test_an_event_loop_gets_tables_and_lists(library: Library, model: Model) -> None:
    table, states = library.table([{"text": "It is on."}], ["text"]), ["It is on.", "It is off."]

    async def ask() -> tuple[Any, list[Answers[Any]]]:
        done = await model.adecide_many(table, {"on": bool}, column="text")
        return done, await model.adecide_many(states, {"on": bool})

    done, answers = asyncio.run(ask())
    assert type(done) is type(table)
    assert [type(one) for one in answers] == [Answers, Answers]
