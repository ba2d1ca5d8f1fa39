"""Questions of decisions, as Python says them: types, lists, levels, and what JSON has for them."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from tokentrie import schemas
from tokentrie._native import OpenCall, OptionError
from tokentrie.results import Message

T = TypeVar("T")

#: The call that questions and states are read for: its time counts meanwhile.
CALL: ContextVar[OpenCall | None] = ContextVar("CALL", default=None)

#: Items between two looks at it.
BETWEEN = 1024


def iterate(items: Iterable[T]) -> Iterator[T]:
    """Yields the items until the call that reads them is cancelled or out of time."""
    call = CALL.get()
    for number, item in enumerate(items):
        if call is not None and number % BETWEEN == 0:
            call.check()
        yield item


@dataclass(frozen=True)
class Score:
    """A question for a level: its answer is the expected level, counted from 0, and the probability of each level.

    Attributes: `levels`, lowest first: a list of str, or a dict of levels with what they mean.

    Example:
        >>> model = tokentrie.Model()
        >>> answer = model.decide("I am furious!", {"anger": tokentrie.decisions.Score(["calm", "furious"])})["anger"]
        >>> answer.kind, round(answer.probabilities["furious"] - answer.value, 6)
        ('score', 0.0)
    """

    levels: Sequence[str] | Mapping[str, Any]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        levels = dict(self.levels) if isinstance(self.levels, Mapping) else list(self.levels)
        return f"tokentrie.decisions.Score({levels!r})"


@dataclass(frozen=True)
class Question:
    """A question with its wording; a question without one is asked by its name.

    Attributes: `kind`, the kind of answer: any question that `Model.decide` takes, or one of "predicate", "choice" and
    "score"; `instructions`, the wording: a str, or a dict or a list that is shown as JSON; an empty str adds no
    wording; `options`, only with one of these three words: the options, the levels, or the meanings of yes and no, as
    {True: ..., False: ...}.

    Example:
        >>> model = tokentrie.Model()
        >>> on = tokentrie.decisions.Question(bool, instructions="Is the lamp on?")
        >>> 0 <= model.decide("The lamp is on.", {"on": on})["on"].probability <= 1
        True
    """

    kind: Any
    _: dataclasses.KW_ONLY
    instructions: Any = None
    options: Any = None

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        said = [repr(self.kind) if isinstance(self.kind, str) else schemas.name(self.kind)]
        said += [f"{name}={getattr(self, name)!r}" for name in ("instructions", "options") if getattr(self, name)]
        return f"tokentrie.decisions.Question({', '.join(said)})"


def alias(cls: Any, name: str) -> str:
    """Returns the name of a field in the constructor."""
    field = getattr(cls, "model_fields", {}).get(name)
    return getattr(field, "alias", None) or name


def plain(name: str, value: Any) -> Any:
    """Returns the value as JSON values. Raises for what JSON cannot hold."""
    try:
        return _plain(name, value)
    except RecursionError as error:
        raise OptionError(f"{name} is nested too deeply") from error


def _plain(name: str, value: Any) -> Any:
    inner = functools.partial(_plain, name)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Message):
        return value.to_dict()
    if isinstance(value, enum.Enum):
        return inner(value.value)
    if isinstance(value, Mapping):
        wrong = next((key for key in iterate(value) if not isinstance(key, str)), None)
        if wrong is not None:
            raise TypeError(f"{name} has the key {wrong!r}: keys must be str")
        return {key: inner(item) for key, item in iterate(value.items())}
    if isinstance(value, (list, tuple)):
        return [inner(item) for item in iterate(value)]
    if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and abs(value) < float("inf")):
        return value
    if (one := _scalar(value)) is not value:
        return inner(one)
    raise TypeError(f"{name} has a {type(value).__name__}, {str(value)[:60]!r}: it must be what JSON can hold")


def _scalar(value: Any) -> Any:
    """Returns a number or bool of numpy as Python's; others as they are."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "ndim", None) == 0 else value


@dataclass
class AskedQuestion:
    """One question: what is said of it, and what stands for its options in Python."""

    said: dict[str, Any]
    options: list[Any]
    #: Form of a score in a field: its most probable level as a number, its expected level, or its label.
    wanted: Any = None
    is_optional: bool = False

    def parse_value(self, value: Any, index: int) -> Any:
        """Returns the value of a field."""
        if value is None or self.said["type"] != "score":
            return value
        if self.wanted is int:
            return index
        return self.options[index] if self.wanted is str else value


def make_question(name: str, kind: Any, options: Any = None) -> AskedQuestion:
    """Returns one question as data: see `Model.decide`."""
    if isinstance(kind, Question):
        found = make_question(name, kind.kind, kind.options)
        if kind.instructions is not None:
            found.said["instructions"] = plain(f"the instructions of {name}", kind.instructions)
        return found
    if isinstance(kind, str):
        return _question_of_word(name, kind, options)
    if options is not None:
        raise TypeError(
            f'{name}: options go with one of the words "predicate", "choice" and "score", not with {kind!r}'
        )
    if kind is bool:
        return AskedQuestion({"type": "predicate"}, [True, False])
    if isinstance(kind, Score):
        return _score(name, kind.levels)
    if isinstance(kind, enum.EnumMeta):
        return _choice(name, list(kind))
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return _choice(name, list(arguments))
    if origin is typing.Annotated:
        return _question_of_annotated(name, arguments[0], arguments[1:])
    if schemas.is_union(origin):
        rest = [part for part in arguments if part is not type(None)]
        if len(rest) == 1 and len(rest) < len(arguments):
            found = make_question(name, rest[0])
            found.is_optional = True
            return found
    if isinstance(kind, (set, frozenset)):
        raise TypeError(f"{name}: a set has no order: give a list of options")
    if isinstance(kind, (Mapping, Iterable)) and not schemas.is_type(kind) and not isinstance(kind, bytes):
        return _choice(name, kind)
    shown = schemas.name(kind) if schemas.is_type(kind) else type(kind).__name__
    raise TypeError(
        f"{name}: invalid question: expected bool, a list or a dict of options, a Literal, an Enum, a Score or a "
        f"Question, got {shown}"
    )


def _question_of_word(name: str, word: str, options: Any) -> AskedQuestion:
    if word == "predicate":
        said = {"type": "predicate"}
        if options is not None:
            wrong = [key for key in options if not isinstance(key, bool)] if isinstance(options, Mapping) else [options]
            if wrong:
                raise TypeError(f"{name}: {wrong[0]!r}: options of a predicate are {{True: ..., False: ...}}")
            said |= {word: plain(name, options[key]) for key, word in ((True, "yes"), (False, "no")) if key in options}
        return AskedQuestion(said, [True, False])
    if word in ("choice", "score"):
        if options is None:
            raise TypeError(f"{name}: a {word} has options: give options=[...]")
        return _choice(name, options) if word == "choice" else _score(name, options)
    raise TypeError(f'{name}: unknown kind of question {word!r}: expected "predicate", "choice" or "score"')


def _question_of_annotated(name: str, kind: Any, notes: Sequence[Any]) -> AskedQuestion:
    """A type with notes: a Score, a Question, and words, which are its instructions."""
    found, told = None, None
    for note in notes:
        if isinstance(note, Score):
            found = _score(name, note.levels)
            found.wanted = next((wanted for wanted in (int, float, str) if kind in (wanted, wanted | None)), float)
            found.is_optional = schemas.is_union(typing.get_origin(kind))
        elif isinstance(note, Question):
            found = make_question(name, note)
        else:
            told = note if isinstance(note, str) else getattr(note, "description", None) or told
    found = found or make_question(name, kind)
    if isinstance(told, str):
        found.said.setdefault("instructions", told)
    return found


def _choice(name: str, options: Any) -> AskedQuestion:
    values, meanings = list(iterate(options)), list(options.values()) if isinstance(options, Mapping) else None
    said: list[Any] = []
    seen: dict[Any, Any] = {}
    for number, value in enumerate(iterate(values)):
        text = _scalar(schemas.to_json_value(value))
        if not isinstance(text, (str, bool)):
            if not isinstance(text, (int, float, type(None))):
                raise TypeError(f"{name}: the option {value!r} is a {type(value).__name__}: it must be a str or a bool")
            text = json.dumps(text)
        # To Python True is 1: as keys of the answer they would be one.
        if value in seen:
            raise OptionError(f"{name}: the options {seen[value]!r} and {value!r} are equal")
        seen[value] = value
        meaning = None if meanings is None else meanings[number]
        said.append(text if meaning is None else {"value": text, "description": plain(name, meaning)})
    return AskedQuestion({"type": "choice", "options": said}, values)


def _score(name: str, levels: Any) -> AskedQuestion:
    if isinstance(levels, str) or not isinstance(levels, Iterable):
        raise TypeError(f"{name}: levels must be a list of str, or a dict, not {type(levels).__name__}")
    labels = list(iterate(levels))
    wrong = next((label for label in iterate(labels) if not isinstance(label, str)), None)
    if wrong is not None:
        raise TypeError(f"{name}: the level {wrong!r} is a {type(wrong).__name__}: it must be a str")
    said: list[Any] = labels
    if isinstance(levels, Mapping):
        said = [
            label if meaning is None else {"label": label, "description": plain(name, meaning)}
            for label, meaning in levels.items()
        ]
    return AskedQuestion({"type": "score", "levels": said}, labels)
