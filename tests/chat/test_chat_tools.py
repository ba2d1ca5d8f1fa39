"""Functions and classes as tools: what hints, docstrings and classes say, and what comes back."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
import functools
import json
import sys
import typing
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import jsonschema
import pydantic
import pytest
import tokentrie
from pydantic import BaseModel, Field
from tokentrie import Model, Tools, run_tools, schemas
from tokentrie import tools as functions_of
from tokentrie.chat import arun_tools
from tokentrie.errors import OptionError
from tokentrie.results import ToolCall

ASK = [{"role": "user", "content": "please delete the file a.txt"}]


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Place(BaseModel):
    """Where it is."""

    city: str = Field(pattern="^[A-Z][a-z]{2,9}$")
    floor: Annotated[int, Field(ge=1, le=5)] = 1


class Options(typing.TypedDict, total=False):
    loud: bool
    color: Color


@dataclasses.dataclass(frozen=True)
class AtLeast:
    ge: int


@dataclasses.dataclass
class Size:
    """How large it is.

    Args:
        width: in metres.
    """

    width: int
    name: Literal["s", "m"] = "s"


def paint(
    color: Color,
    times: Annotated[int, Field(ge=1, le=3)],
    place: Place,
    title: Annotated[str, Field(max_length=4, description="what it is called")],
    tone: Literal["low", "high"] | None = None,
    level: Level = Level.LOW,
    options: Options | None = None,
    sizes: list[Size] | None = None,
    count: int = Field(2, multiple_of=2),
) -> dict[str, Any]:
    """Paints it."""
    return dict(locals())


def parameters(function: Any) -> dict[str, Any]:
    return Tools([function]).definitions[0]["function"]["parameters"]


class TestHints:
    @pytest.fixture(params=["pydantic", "alone"])
    def reader(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
        """With and without pydantic to read hints."""
        if request.param == "alone":
            monkeypatch.setattr(schemas, "_adapter", lambda cls: None)
        return request.param

    def test_constraints_are_in_the_schema(self) -> None:
        wrong = [
            {"times": 0},
            {"times": 4},
            {"color": "blue"},
            {"place": {"city": "riga"}},
            {"place": {"city": "Riga", "floor": 6}},
            {"title": "long title"},
            {"tone": "middle"},
            {"level": 3},
            {"options": {"color": "blue"}},
            {"sizes": [{"width": 1, "name": "l"}]},
            {"count": 3},
        ]
        right = {"color": "red", "times": 2, "place": {"city": "Riga", "floor": 5}, "title": "abcd"}
        right |= {"tone": None, "level": 2, "options": {"loud": True}, "sizes": [{"width": 2}], "count": 4}
        schema = parameters(paint)
        jsonschema.validate(right, schema)
        for change in wrong:
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(right | change, schema)

    def test_without_pydantic_too(self, reader: str) -> None:
        def f(a: Annotated[int, AtLeast(3)], b: Options, c: Color, d: Literal["x"] | None = None) -> Any:
            return a, b, c, d

        schema = parameters(f)
        jsonschema.validate({"a": 3, "b": {"loud": True}, "c": "red", "d": "x"}, schema)
        for change in ({"b": {"no": 1}}, {"c": "x"}, {"d": "y"}, {"a": "3"}):
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate({"a": 3, "b": {}, "c": "red"} | change, schema)
        if reader == "alone":
            assert schema["properties"]["a"]["minimum"] == 3
        call = ToolCall("", "f", '{"a": 3, "b": {"color": "red"}, "c": "green"}')
        assert functions_of.run(f, call) == (3, {"color": Color.RED}, Color.GREEN, None)

    def test_arguments_are_converted_and_validated(self) -> None:
        given = {"color": "green", "times": 2, "place": {"city": "Riga"}, "title": "x", "options": {"color": "red"}}
        made = functions_of.run(paint, ToolCall("", "paint", json.dumps(given | {"sizes": [{"width": 2}]})))
        assert made["color"] is Color.GREEN
        assert made["place"] == Place(city="Riga", floor=1)
        assert made["options"] == {"color": Color.RED}
        assert made["sizes"] == [Size(2)]
        assert (made["level"], made["count"]) == (Level.LOW, 2)
        for change in ({"times": 9}, {"place": {"city": "x"}}, {"title": "too long"}):
            with pytest.raises(pydantic.ValidationError):
                functions_of.run(paint, ToolCall("", "paint", json.dumps(given | change)))

    @pytest.mark.parametrize("cls", [Place, Size, Options])
    def test_a_class_is_a_tool(self, cls: Any) -> None:
        definition = Tools([cls]).definitions[0]["function"]
        assert definition["name"] == cls.__name__
        assert definition["parameters"]["additionalProperties"] is False
        if cls is Size:
            assert definition["description"] == "How large it is."
            assert definition["parameters"]["properties"]["width"]["description"] == "in metres."
            assert functions_of.run(cls, ToolCall("", "Size", '{"width": 2}')) == Size(2)
        if cls is Place:
            assert definition["description"] == "Where it is."
            with pytest.raises(pydantic.ValidationError):
                functions_of.run(cls, ToolCall("", "Place", '{"city": "riga"}'))

    def test_what_is_no_tool_is_refused_by_name(self) -> None:
        def numbers(most: int) -> Iterator[int]:
            yield from range(most)

        async def lines(most: int) -> AsyncIterator[int]:
            yield most

        for generator in (numbers, lines):
            with pytest.raises(TypeError, match=f"{generator.__name__} is a generator"):
                Tools([generator])
        with pytest.raises(TypeError, match="the class Path describes no arguments"):
            Tools([Path])

    def test_a_class_that_holds_itself(self) -> None:
        class Tree(BaseModel):
            name: str
            below: list[Tree] = []

        sys.modules[__name__].__dict__["Tree"] = Tree
        schema = parameters(Tree)
        jsonschema.validate({"name": "a", "below": [{"name": "b"}]}, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"name": "a", "below": [{"name": 1}]}, schema)


GOOGLE = """Rings the bell.

    It is loud: be careful.

    Args:
        tone (str): how it
            sounds.
        times: how often.

    Returns:
        str: nothing.

    Example:
        >>> ring("low")
    """
NUMPY = """Rings the bell.

    It is loud: be careful.

    Parameters
    ----------
    tone : str
        how it
        sounds.
    times : int, optional
        how often.

    Returns
    -------
    str
        nothing.
    """
SPHINX = """Rings the bell.

    It is loud: be careful.

    :param str tone: how it
        sounds.
    :param times: how often.
    :returns: nothing.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_docstrings(text: str) -> None:
    def ring(tone: str, times: int = 1) -> str:
        return tone * times

    ring.__doc__ = text
    definition = Tools([ring]).definitions[0]["function"]
    assert definition["description"] == "Rings the bell.\n\nIt is loud: be careful."
    said = {name: value["description"] for name, value in definition["parameters"]["properties"].items()}
    assert said == {"tone": "how it sounds.", "times": "how often."}


def test_numpy_describes_several_at_once() -> None:
    def area(width: int, height: int = 1) -> int:
        """How large it is.

        Parameters
        ----------
        width, height : int
            In metres.
        """
        return width * height

    properties = Tools([area]).definitions[0]["function"]["parameters"]["properties"]
    assert {name: value["description"] for name, value in properties.items()} == dict.fromkeys(
        ["width", "height"], "In metres."
    )


def test_results_are_json() -> None:
    when = datetime.date(2026, 1, 31)
    for result, text in [
        ("as it is", "as it is"),
        (None, "null"),
        (Place(city="Riga"), '{"city": "Riga", "floor": 1}'),
        ([Size(2), Size(3, "m")], '[{"width": 2, "name": "s"}, {"width": 3, "name": "m"}]'),
        ({Color.RED: {1}, 2: (when, float("nan"))}, '{"red": [1], "2": ["2026-01-31", null]}'),
        (Color.GREEN, "green"),
        ({"n": "größer"}, '{"n": "größer"}'),
    ]:
        assert functions_of.result_text(result) == text
    with pytest.raises(TypeError, match="generator"):
        functions_of.result_text(number for number in range(3))


@pytest.fixture(scope="module")
def model(tiny_path: Path) -> Model:
    return Model(tiny_path, n_ctx=2048, n_threads=1)


@pytest.mark.model
class TestRuns:
    OPTIONS: typing.ClassVar[dict[str, Any]] = {
        "tool_choice": "required",
        "max_rounds": 2,
        "max_tokens": 90,
        "parallel_tool_calls": False,
    }

    def test_async_functions_are_awaited(self, model: Model) -> None:
        async def erase(path: str) -> Size:
            """Delete a file."""
            await asyncio.sleep(0)
            return Size(len(path))

        run = run_tools(model, ASK, [erase], **self.OPTIONS)
        assert set(json.loads(run.messages[2]["content"])) == {"width", "name"}

        async def inside() -> str:
            with pytest.raises(OptionError, match="use arun_tools"):
                run_tools(model, ASK, [erase], **self.OPTIONS)
            run = await arun_tools(model, ASK, [erase], **self.OPTIONS)
            return str(run.messages[2]["content"])

        assert asyncio.run(inside()) == run.messages[2]["content"]

    def test_arun_tools_runs_others_on_threads(self, model: Model) -> None:
        import threading

        seen = []

        def erase(path: str) -> str:
            """Delete a file."""
            seen.append(threading.current_thread() is threading.main_thread())
            raise FileNotFoundError(path)

        run = asyncio.run(arun_tools(model, ASK, [erase], **self.OPTIONS))
        assert seen == [False]
        assert run.messages[2]["content"].startswith("error: FileNotFoundError")
        with pytest.raises(FileNotFoundError):
            asyncio.run(arun_tools(model, ASK, [erase], on_error="raise", **self.OPTIONS))

    def test_hints_are_held_and_every_choice_has_a_probability(self, model: Model) -> None:
        def paint(
            color: Color,
            tone: Optional[Literal["low", "high"]],  # noqa: UP045
            level: Level,
            only: Literal["one"],
            loud: bool | None,
            times: Annotated[int, Field(ge=1, le=5)],
            place: Place,
        ) -> str:
            """Paints."""
            return "done"

        for seed in range(6):
            message = model.chat(
                ASK, [paint], "paint", parallel_tool_calls=False, probabilities=True, max_tokens=400,
                sampling=tokentrie.Sampling("sampled", temperature=2.0, seed=seed),
            )  # fmt: skip
            if message.finish == "max_tokens":
                continue
            call = message.tool_calls[0]
            jsonschema.validate(call.parsed, parameters(paint))
            assert set(call.probabilities) == {"color", "tone", "level", "only", "loud"}
            assert all(0 < share <= 1 for share in call.probabilities.values())

    def test_a_class_is_made(self, model: Model) -> None:
        run = run_tools(model, ASK, [Size], **self.OPTIONS)
        assert set(json.loads(run.messages[2]["content"])) == {"width", "name"}

    def test_functions_without_a_hash(self) -> None:
        @dataclasses.dataclass
        class Bell:
            tone: str

            def ring(self, times: int) -> str:
                return self.tone * times

        bell = Bell("ding ")
        assert functions_of.run(bell.ring, ToolCall("", "ring", '{"times": 2}')) == "ding ding "

    def test_partial_functions_have_no_name(self) -> None:
        with pytest.raises(TypeError, match="has no name"):
            Tools([functools.partial(print)])
