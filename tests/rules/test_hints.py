"""Hints of pydantic's types: what a schema holds of them, and that what it does not hold is named and warned of.

The judge is pydantic: documents drawn from the rule validate, or the rule says which hint it does not hold.
"""

from __future__ import annotations

import datetime
import decimal
import pickle
import random
import uuid
import warnings
from typing import Annotated, Any, Literal

import pydantic
import pytest
from budget import cases
from pydantic import Field, TypeAdapter, ValidationError
from tokentrie import JsonSchema
from tokentrie.errors import TokenTrieWarning

DAY = datetime.date(2000, 1, 1)


def day(draw: random.Random) -> datetime.date:
    return DAY + datetime.timedelta(days=draw.randrange(-30000, 30000))


def bounds(draw: random.Random, one: Any, other: Any) -> dict[str, Any]:
    """Bounds with room between them."""
    low, high = sorted((one, other))
    chosen = {draw.choice(["ge", "gt"]): low, draw.choice(["le", "lt"]): high}
    return {key: value for key, value in chosen.items() if draw.random() < 0.8}


def drawn(draw: random.Random, deep: int = 2) -> Any:
    """A type with hints."""
    kinds = ["date", "decimal", "uuid", "int", "float", "str", "bytes", "datetime", "time", "delta", "url", "base64"]
    kind = draw.choice(kinds + ["list", "set", "dict", "optional", "literal", "model"] * (deep > 0))
    match kind:
        case "date":
            one, other = day(draw), day(draw) + datetime.timedelta(days=9)
            return Annotated[datetime.date, Field(**bounds(draw, one, other))]
        case "decimal":
            places = draw.choice([None, 0, 1, 2])
            digits = draw.choice([None, 4, 6])
            low = draw.randrange(-300, 300)
            hints = bounds(draw, low, low + 50) | {"max_digits": digits, "decimal_places": places}
            return Annotated[decimal.Decimal, Field(**{k: v for k, v in hints.items() if v is not None})]
        case "uuid":
            kinds = [uuid.UUID, pydantic.UUID1, pydantic.UUID3, pydantic.UUID4, pydantic.UUID5]
            return draw.choice(
                kinds + [getattr(pydantic, f"UUID{n}") for n in (6, 7, 8) if hasattr(pydantic, f"UUID{n}")]
            )
        case "int":
            return Annotated[int, Field(**bounds(draw, draw.randrange(-99, 0), draw.randrange(9, 99)))]
        case "float":
            return Annotated[float, Field(**bounds(draw, draw.randrange(-99, 0) / 4, draw.randrange(9, 99) / 4))]
        case "str":
            strips = {"strip_whitespace": True} if draw.random() < 0.5 else {}
            return Annotated[str, pydantic.StringConstraints(min_length=draw.randrange(3), max_length=9, **strips)]
        case "bytes":
            return Annotated[bytes, Field(min_length=draw.randrange(3), max_length=9)]
        case "datetime":
            return draw.choice(
                [pydantic.NaiveDatetime, pydantic.AwareDatetime, pydantic.PastDatetime, datetime.datetime]
            )
        case "time":
            return Annotated[datetime.time, Field(ge=datetime.time(9))] if draw.random() < 0.5 else datetime.time
        case "delta":
            limit = datetime.timedelta(days=draw.randrange(9))
            return Annotated[datetime.timedelta, Field(ge=limit)] if draw.random() < 0.5 else datetime.timedelta
        case "url":
            return draw.choice([pydantic.HttpUrl, pydantic.AnyHttpUrl, pydantic.WebsocketUrl])
        case "base64":
            return draw.choice(
                [pydantic.Base64Bytes, pydantic.Base64UrlBytes, pydantic.IPvAnyNetwork, pydantic.Json[int]]
            )
        case "list":
            return Annotated[list[drawn(draw, deep - 1)], Field(min_length=1, max_length=2)]
        case "set":
            return draw.choice([set, frozenset])[draw.choice([str, int, Literal["a", "b"], bool])]
        case "dict":
            return dict[draw.choice([str, int]), drawn(draw, 0)]
        case "optional":
            return drawn(draw, deep - 1) | None
        case "literal":
            return Literal["a", "b", 3]
    return pydantic.create_model("Row", **{name: (drawn(draw, deep - 1), ...) for name in ("a", "b")})


def made(kind: Any) -> tuple[JsonSchema[Any], list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rule = JsonSchema(kind)
    return rule, [str(one.message) for one in caught if issubclass(one.category, TokenTrieWarning)]


def refusal(adapter: TypeAdapter[Any], text: str) -> str | None:
    """Why pydantic refuses a document."""
    try:
        adapter.validate_json(text)
    except ValidationError as error:
        return str(error)
    return None


@pytest.mark.parametrize("number", range(cases(200)))
def test_documents_validate_or_the_hint_is_named(number: int) -> None:
    seed = random.SystemRandom().getrandbits(32)
    draw = random.Random(seed)
    kind = drawn(draw)
    rule, told = made(kind)
    assert all(any(hint in one for one in told) for _, hint in rule.unheld), (seed, kind, told)
    adapter = TypeAdapter(kind)
    for text in rule.samples(6, seed % 1000):
        assert rule.unheld or refusal(adapter, text) is None, (seed, kind, text, refusal(adapter, text))


HELD: list[tuple[Any, list[str], list[str]]] = [
    (
        Annotated[datetime.date, Field(ge=datetime.date(2024, 2, 27), lt=datetime.date(2025, 1, 2))],
        ["2024-02-27", "2024-02-29", "2024-12-31", "2025-01-01"],
        ["2024-02-26", "2025-01-02", "2023-12-31", "2024-13-01", "2024-02-30"],
    ),
    (pydantic.UUID4, ["12345678-1234-4234-9234-123456789abc"], ["12345678-1234-1234-9234-123456789abc"]),
    (pydantic.UUID1, ["12345678-1234-1234-9234-123456789abc"], ["12345678-1234-4234-9234-123456789abc"]),
]


@pytest.mark.parametrize(("kind", "right", "wrong"), HELD, ids=lambda part: str(part)[:30])
def test_texts(kind: Any, right: list[str], wrong: list[str]) -> None:
    rule, told = made(kind)
    assert (rule.unheld, told) == ([], [])
    assert [text for text in right if not rule.matches(f'"{text}"')] == []
    assert [text for text in wrong if rule.matches(f'"{text}"')] == []


def test_decimals() -> None:
    rule, told = made(Annotated[decimal.Decimal, Field(ge=1, lt=20, max_digits=4, decimal_places=2)])
    assert (rule.unheld, told) == ([], [])
    assert [text for text in ("1", "1.5", "19.99") if not rule.matches(text)] == []
    assert [text for text in ("0.99", "20", "1.555", '"1"', "-3", "100") if rule.matches(text)] == []
    assert rule.parse("1.25") == decimal.Decimal("1.25")


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        (Annotated[decimal.Decimal, Field(max_digits=3)], "max_digits"),
        (pydantic.FutureDate, "in the future"),
        (Annotated[datetime.datetime, Field(ge=datetime.datetime(2024, 1, 1))], "ge"),
        (Annotated[set[str], Field(min_length=2)], "minItems of items that differ"),
        (dict[int, str], "the type of keys"),
        (pydantic.IPvAnyNetwork, "format ipvanynetwork"),
        (pydantic.Json[int], "contentSchema"),
    ],
)
def test_what_is_not_held_is_named_and_warned_of(kind: Any, hint: str) -> None:
    row = pydantic.create_model("Row", field=(kind, ...))
    rule, told = made(row)
    assert rule.unheld == [("/properties/field", hint)]
    assert told == [f"schema: at /properties/field: {hint} is not held"]
    assert "x-unheld-hints" not in str(rule.schema)


def test_a_pickle_keeps_what_is_not_held() -> None:
    rule, _ = made(dict[int, str])
    with pytest.warns(TokenTrieWarning, match="the type of keys is not held"):
        assert pickle.loads(pickle.dumps(rule)).unheld == rule.unheld == [("", "the type of keys")]


def test_a_set_is_held() -> None:
    rule, told = made(set[str])
    assert (rule.unheld, told) == ([], [])
    assert rule.parse('["a", "b"]') == {"a", "b"}
