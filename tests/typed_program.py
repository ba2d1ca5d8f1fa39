"""A program for `mypy --strict`: what is right must pass, and each ignored line must be wrong. It is not run."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tokentrie
from numpy.typing import NDArray
from pydantic import TypeAdapter
from tokentrie import (
    Choice,
    Form,
    Generated,
    JsonSchema,
    Message,
    Model,
    Regex,
    Sampler,
    Sampling,
    Slot,
    Text,
    Trie,
    Vocab,
    rules,
    run_tools,
)
from tokentrie.chat import ToolRun, ToolStream
from tokentrie.rules import Integer, Number
from tokentrie.sets import Leaf, TrieCache
from tokentrie.streaming import ChatStream
from typing_extensions import TypedDict, assert_type

PAYLOAD: dict[str, Any] = {"descriptors": [{"path": "action", "leaves": [{"name": "STOP", "tokens": [2]}]}]}


def sets(path: Path, vocab: Vocab) -> Iterator[Trie]:
    yield Trie.from_payload(PAYLOAD, path="action", vocab=vocab)
    yield Trie.from_sequences([[1, 2], (3,)], names=["a", "b"])
    yield Trie.from_sequences(np.array([[1, 2], [3, 4]]))
    trie = Trie.from_strings(vocab, ["yes", "no"], suffix="\n", tokenization="all")
    yield trie | trie & trie - trie
    yield trie.filter(lambda leaf: leaf.index > 0)
    trie.save(path, vocab)
    yield Trie.open(str(path))
    assert_type(trie.find([1]), int | None)
    assert_type(trie.leaf(0), Leaf | None)
    assert_type(trie.to_numpy(table=True), NDArray[np.int32])
    assert_type(trie.to_numpy(), tuple[NDArray[np.int32], NDArray[np.int64]])
    assert_type([leaf.name for leaf in trie], list[str | None])
    Trie.from_strings(vocab, ["yes"], tokenization="best")  # type: ignore[arg-type]
    trie.nodes = 5  # type: ignore[misc]


def loop(vocab: Vocab, trie: Trie, logits: NDArray[np.float32]) -> list[int]:
    sampling = Sampling("sampled", temperature=0.7).replace(seed=1)
    samplers = [
        Sampler(vocab, trie, sampling=sampling),
        Sampler(10, PAYLOAD, mode="sampled", top_k=5),
        Sampler(vocab, ["yes", "no"], end_tokens=[1], after="stop"),
        TrieCache(capacity=8).sampler(vocab, '{"descriptors": []}', sampling=sampling),
    ]
    assert_type(samplers[0].allowed(), NDArray[np.int32])
    assert_type(sampling.seed, int | None)
    samplers[0].apply(logits)
    samplers[0].accept(samplers[0].sample(logits))
    Sampler(10, trie, mode="best")  # type: ignore[arg-type]
    Sampler(10, trie, sampling={"temperature": 1.0})  # type: ignore[arg-type]
    sampling.temperature = 1.0  # type: ignore[misc]
    return samplers[0].advance(logits)


def generate(model: Model) -> Generated:
    form = Form('{"a": "', Slot("a", ["x", "y"]), '", "b": "', Text("b", stop='"'), '"}')
    with model:
        choice = model.choose("Is it? ", ["yes", "no"], top=1)
        assert_type(choice, Choice[str])
        assert_type(choice.value, str | None)
        assert_type(model.choose("Is it? ", Integer(1, 5)).value, int | None)
        assert_type(model.choose("Is it? ", bool).value, bool | None)
        assert_type(choice.probabilities, dict[str | int, float])
        assert_type([one.name for one in model.choose_many(["a", "b"], ["yes", "no"])], list[str])
        assert_type(list(model.choose_many(["a"], ["yes"], on_error="return")), list[Choice[str] | Exception])
        assert_type(model.choose_many(["a", "b"], ["yes", "no"])[-1], Choice[str])
        assert_type(model.choose_many(["a", "b"], ["yes", "no"])[1:], list[Choice[str]])
        model.choose("Is it? ", 5)  # type: ignore[call-overload]
        model.generate("Is it? ", form, mode="exact", on_step=lambda step: print(step.token))
        return model.generate([1, 2], ["yes", "no"], sampling=Sampling())


class Colour(Enum):
    RED = "red"


class Row(TypedDict):
    size: int


@dataclass
class Person:
    age: int


def values(model: Model, trie: Trie) -> None:
    """What a value is follows from the constraint."""
    assert_type(model.generate("x", Integer(1, 9)).value, int)
    assert_type(model.generate("x", Number()).value, float)
    assert_type(model.generate("x", rules.Date()).value, date)
    assert_type(model.generate("x", rules.Time()).value, time)
    assert_type(model.generate("x", rules.DateTime("2024-01-01T00:00", utc=True)).value, datetime)
    assert_type(model.generate("x", Number(0, 1.5)).value, float)
    assert_type(model.generate("x", Regex("a|b"), seed=1).value, str)
    assert_type(model.generate("x", ["yes", "no"]).value, str)
    assert_type(model.generate("x", int).value, int)
    assert_type(model.generate("x", Annotated[int, 5]).value, int)
    assert_type(model.generate("x", Literal["a", "b"]).value, Literal["a", "b"])
    assert_type(model.generate("x", int | None).value, int | None)
    assert_type(model.generate("x", Colour).value, Colour)
    assert_type(model.generate("x", list[int]).value, list[int])
    assert_type(model.generate("x", Person).value, Person)
    assert_type(model.generate("x", Row).value, Row)
    assert_type(model.generate("x", re.compile("a")).value, str)
    assert_type(model.generate("x", trie), Generated)
    assert_type(model.generate("x", PAYLOAD), Generated)
    assert_type(model.generate("x"), Generated)
    assert_type(model.generate("x", Form("a", Slot("b", Colour))), Generated)
    assert_type(JsonSchema(Person).parse("{}"), Person)
    assert_type(JsonSchema(TypeAdapter(Person)).parse("{}"), Person)
    assert_type(JsonSchema(list[Colour]).parse("[]"), list[Colour])
    assert_type(JsonSchema({"type": "object"}).parse("{}"), Any)
    assert_type(JsonSchema('{"type": "object"}'), JsonSchema)
    assert_type(model.generate("x", JsonSchema(Person)).value, Person)
    assert_type(model.generate("x", Person, max_tokens=None, on_invalid="none").value, Person | None)
    assert_type(model.generate("x", Integer(1, 9), on_invalid="none").value, int | None)
    assert_type(model.generate("x", ["yes"], on_invalid="none").value, str | None)
    assert_type(model.generate("x", Person, n=2, on_invalid="none")[0].value, Person | None)
    assert_type(model.generate("x", on_invalid="none"), Generated)
    try:
        model.generate("x", Person)
    except tokentrie.errors.TruncatedError as error:
        assert_type(error.text, str | None)
    assert_type(model.choose("x", ["yes", "no"]).name, str)
    assert_type(model.choose("x", Literal["yes", "no"]).name, str)
    assert_type(model.choose("x", Integer(1, 3)).name, str)
    assert_type(model.choose("x", trie).name, str | None)
    assert_type(tokentrie.sets.choose(lambda rows: [{1: 0.0}] * len(rows), trie), Choice[str | None, Any])
    model.generate("x", 5)  # type: ignore[call-overload]
    JsonSchema(5)  # type: ignore[call-overload]


async def awaited(model: Model) -> None:
    assert_type((await model.agenerate("x", Integer(1, 9))).value, int)
    assert_type((await model.agenerate("x", Literal["a"])).value, Literal["a"])
    assert_type((await model.agenerate("x", Integer(1, 9), n=2))[0].value, int)
    assert_type((await model.agenerate("x", Integer(1, 9), on_invalid="none")).value, int | None)
    assert_type((await model.achoose("x", ["a"])).name, str)


async def chats(model: Model) -> None:
    asked = [{"role": "user", "content": "Hello"}]
    assert_type(model.chat(asked, stop=["a"], response_format={"type": "json_object"}, retries=1), Message)
    assert_type(model.chat(asked, stream=lambda event: print(event.text)), Message)
    assert_type(model.chat(asked, stream=True), ChatStream)
    # The value of the content has the type of its class.
    assert_type(model.chat(asked, constraint=Ticket), Message[Ticket])
    assert_type(model.chat(asked, constraint=Ticket).parsed, Ticket)
    assert_type(model.chat(asked, response_format=Ticket, max_tokens=9).parsed, Ticket)
    assert_type(model.chat(asked, constraint=Integer(1, 9)).parsed, int)
    assert_type(model.chat(asked, constraint=Ticket, on_invalid="none").parsed, Ticket | None)
    assert_type(model.chat(asked, constraint=Ticket, stream=True), ChatStream[Ticket])
    assert_type(model.chat(asked, constraint=Ticket, stream=True).result.parsed, Ticket)
    assert_type((await model.achat(asked, constraint=JsonSchema(Ticket), retries=2)).parsed, Ticket)
    assert_type(model.chat(asked).parsed, Any)
    print(model.chat(asked, constraint=Ticket).parsed.z)  # type: ignore[attr-defined]
    assert_type(run_tools(model, asked, [len], max_rounds=2), ToolRun)
    assert_type(run_tools(model, asked, [len], stream=True), ToolStream)
    model.chat(asked, whitespace="loose")  # type: ignore[call-overload]
    print([event.kind async for event in model.achat(asked, stream=True)])
    assert_type(await model.achat(asked, constraint=["yes"], on_invalid="none"), Message)
    model.chat(asked, max_token=3)  # type: ignore[call-overload]
    model.chat(asked, stream="yes")  # type: ignore[call-overload]
    model.achat(asked, temprature=1.0)  # type: ignore[call-overload]
    model.generate("x", stops=["a"])  # type: ignore[call-overload]


@dataclass
class Ticket:
    team: Literal["billing", "access"]
    refund: bool


async def decisions(model: Model) -> None:
    answers = model.decide("x", {"refund": bool, "anger": tokentrie.decisions.Score(["calm", "furious"])}, permute=2)
    assert_type(answers["refund"].probability, float)
    assert_type(answers.parsed, dict[str, Any])
    assert_type(model.decide({"text": "x"}, Ticket).parsed, Ticket)
    assert_type([one.parsed for one in model.decide_many(["x"], Ticket, prior="batch")], list[Ticket])
    assert_type((await model.adecide("x", Ticket)).parsed.refund, bool)
    model.decide("x", {"refund": bool}, readout="logits")  # type: ignore[call-overload]
    model.decide("x", {"refund": bool}, temperature=1.0)  # type: ignore[call-overload]


def careful(payload: str) -> Trie | str:
    try:
        return Trie.from_payload(payload)
    except tokentrie.errors.PayloadError as error:
        return str(error)
