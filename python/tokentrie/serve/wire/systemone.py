"""`POST /v1/systemone`, as typesafe-sdk sends it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import ConfigDict, Field, model_validator

from tokentrie.serve.models import Models
from tokentrie.serve.wire.asking import (
    DecisionOptions,
    LibraryAnswers,
    RequestPart,
    as_text,
    decide,
    refuse_media,
    shares,
)

#: Text, or data that is shown as JSON.
Told = str | dict[str, Any] | list[Any]


class Sides(RequestPart):
    """Meanings of yes and no."""

    true: Told | None = None
    false: Told | None = None


class Noul(RequestPart):
    """A question that is answered with yes or no."""

    type: Literal["noul"]
    instructions: Told | None = None
    criteria: Sides | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Noul:
        if self.instructions is None and (self.criteria is None or self.criteria == Sides()):
            raise ValueError("without instructions at least one of criteria.true and criteria.false must be described")
        return self


class Choice(RequestPart):
    """One of some options, which are keys."""

    type: Literal["choice"]
    instructions: Told | None = None
    criteria: Annotated[dict[str, Told | None], Field(min_length=1)]


class Score(RequestPart):
    """A level, the lowest first."""

    type: Literal["score"]
    instructions: Told | None = None
    criteria: Annotated[list[Told], Field(min_length=1)]


Question = Annotated[Noul | Choice | Score, Field(discriminator="type")]


class SystemOneRequest(DecisionOptions):
    """A state and questions by id; further fields beside these are left alone."""

    model_config = ConfigDict(extra="allow", strict=True)

    model: str
    state: Told
    questions: Annotated[dict[Annotated[str, Field(min_length=1)], Question], Field(min_length=1)]


async def answer(request: Request, models: Models, said: SystemOneRequest) -> dict[str, Any]:
    """The answer to a request."""
    refuse_media(said.model_extra or {})
    served = models.get_or_first(said.model)
    # A question with one option has a certain answer and is not asked.
    asked = {f"q{number}": _question(one) for number, one in enumerate(said.questions.values()) if not _is_certain(one)}
    ids = {f"q{number}": identity for number, identity in enumerate(said.questions)}
    done = await decide(request, served, said.state, asked, said, ids) if asked else None
    answers = {
        identity: _answer(question, done, f"q{number}")
        for number, (identity, question) in enumerate(said.questions.items())
    }
    tokens = done.prompt_tokens if done else 0
    return {"model": served.name, "answers": answers, "usage": {"input_tokens": tokens, "output_tokens": 0}}


def _is_certain(question: Noul | Choice | Score) -> bool:
    return not isinstance(question, Noul) and len(question.criteria) == 1


def _question(question: Noul | Choice | Score) -> dict[str, Any]:
    """As the library asks it. Ids are never shown to the model."""
    told: dict[str, Any] = {"instructions": "" if question.instructions is None else question.instructions}
    if isinstance(question, Noul):
        sides = question.criteria or Sides()
        described = {"yes": sides.true, "no": sides.false}
        return {"type": "predicate", **told, **{side: one for side, one in described.items() if one is not None}}
    if isinstance(question, Choice):
        options = [{"value": name, "description": about} for name, about in question.criteria.items()]
        return {"type": "choice", **told, "options": options}
    return {"type": "score", **told, "levels": [as_text(level) for level in question.criteria]}


def _answer(question: Noul | Choice | Score, done: LibraryAnswers | None, name: str) -> dict[str, Any]:
    if done is None or _is_certain(question):
        return _certain(question)
    found = done[name]
    if isinstance(question, Noul):
        return {"type": "noul", "noul": found["probability"], **done.own_fields(name)}
    of = dict(zip(_keys(question), shares(found), strict=True))
    if isinstance(question, Choice):
        chosen = {"choice": [*question.criteria][found["index"]], "confidence": found["confidence"]}
        return {"type": "choice", **chosen, "probabilities": of, **done.own_fields(name)}
    legend = dict(zip(_keys(question), question.criteria, strict=True))
    scored = {"score": found["value"], "confidence": found["confidence"], "legend": legend}
    return {"type": "score", **scored, "probabilities": of, **done.own_fields(name)}


def _certain(question: Noul | Choice | Score) -> dict[str, Any]:
    assert not isinstance(question, Noul)
    (key,) = _keys(question)
    found = {"confidence": 1.0, "probabilities": {key: 1.0}}
    if isinstance(question, Choice):
        return {"type": "choice", "choice": key, **found}
    return {"type": "score", "score": 0.0, "legend": {key: question.criteria[0]}, **found}


def _keys(question: Choice | Score) -> list[str]:
    criteria = question.criteria
    return [*criteria] if isinstance(criteria, dict) else [str(number) for number in range(len(criteria))]
