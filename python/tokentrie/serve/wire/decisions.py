"""`POST /v1/decisions`, as OpenAI's clients send it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import Field, StrictBool, StrictStr

from tokentrie.serve.errors import WireError
from tokentrie.serve.models import Models
from tokentrie.serve.wire.asking import (
    DecisionOptions,
    LibraryAnswers,
    RequestPart,
    as_text,
    decide,
    first_repeated,
    shares,
)


class InputPart(RequestPart):
    """Part of an input; further fields change nothing."""

    prompt_cache_breakpoint: Any = None


class TextPart(InputPart):
    """A part that is text."""

    type: Literal["input_text", "output_text"]
    text: str
    annotations: Any = None
    logprobs: Any = None


class RefusalPart(RequestPart):
    """Refusal of an assistant."""

    type: Literal["refusal"]
    refusal: str


class JsonPart(InputPart):
    """A part that is data."""

    type: Literal["input_json"]
    data: dict[str, Any] | list[Any]


class ImagePart(InputPart):
    """A part that this server refuses by name."""

    type: Literal["input_image"]
    image_url: Any = None
    file_id: Any = None
    detail: Any = None


Part = Annotated[TextPart | RefusalPart | JsonPart | ImagePart, Field(discriminator="type")]
Content = str | list[Part]


class Item(RequestPart):
    """Item of an input; further fields change nothing."""

    id: Any = None
    status: Any = None


class MessageItem(Item):
    """Something that was said."""

    type: Literal["message"] = "message"
    role: Literal["user", "developer", "system", "assistant"]
    content: Content


class CallItem(Item):
    """A call of a tool."""

    type: Literal["function_call", "custom_tool_call"]
    call_id: str
    name: str
    arguments: str | None = None
    input: str | None = None
    namespace: Any = None


class OutputItem(Item):
    """Result of a tool."""

    type: Literal["function_call_output", "custom_tool_call_output"]
    call_id: str
    output: Content


class Choice(RequestPart):
    """An option of a question, and its description."""

    value: StrictBool | StrictStr
    description: str | None = None


class Level(RequestPart):
    """A level of a score."""

    label: str
    description: str | None = None


class PredicateQuestion(RequestPart):
    """A question that is answered with yes or no."""

    type: Literal["predicate"]
    instructions: Content
    name: str | None = None


class ChoiceQuestion(RequestPart):
    """One of some options."""

    type: Literal["choice"]
    instructions: Content
    name: str | None = None
    choices: Annotated[list[Choice], Field(min_length=2)]


class ScoreQuestion(RequestPart):
    """A question that is answered with a level."""

    type: Literal["score"]
    instructions: Content
    name: str | None = None
    levels: Annotated[list[Level], Field(min_length=2)]


Question = Annotated[PredicateQuestion | ChoiceQuestion | ScoreQuestion, Field(discriminator="type")]


class DecisionRequest(RequestPart, DecisionOptions):
    """A state and questions about it; fields of caches and end users change nothing."""

    model: str
    input: str | list[MessageItem | CallItem | OutputItem]
    questions: Annotated[list[Question], Field(min_length=1)]
    prompt_cache_key: Any = None
    prompt_cache_options: Any = None
    safety_identifier: Any = None


async def answer(request: Request, models: Models, said: DecisionRequest) -> dict[str, Any]:
    """The answer to a request."""
    served = models.get_or_first(said.model)
    asked = {f"q{number}": _question(number, question) for number, question in enumerate(said.questions)}
    ids = {f"q{number}": one.name for number, one in enumerate(said.questions) if one.name is not None}
    done = await decide(request, served, _state(said.input), asked, said, ids)
    answers = [_answer(question, done, name) for question, name in zip(said.questions, asked, strict=True)]
    return {
        "object": "decision",
        "model": served.name,
        "answers": answers,
        "usage": {
            "input_tokens": done.prompt_tokens,
            "input_tokens_details": {"cached_tokens": done.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": done.prompt_tokens,
        },
    }


def _text(content: Content, place: str) -> Any:
    """Text, or parts as text: what is data becomes JSON."""
    if isinstance(content, str):
        return content
    texts: list[Any] = []
    for number, part in enumerate(content):
        if isinstance(part, ImagePart):
            message = f"{place}[{number}]: images are not read by this server: it has a text model"
            raise WireError(message, param=f"{place}[{number}]", code="unsupported_image")
        if isinstance(part, TextPart):
            texts.append(part.text)
        else:
            texts.append(part.refusal if isinstance(part, RefusalPart) else part.data)
    return texts[0] if len(texts) == 1 else "\n".join(map(as_text, texts))


def _state(given: str | list[MessageItem | CallItem | OutputItem]) -> Any:
    """The state as the library takes it: text, or a conversation."""
    if isinstance(given, str):
        return given
    if not given:
        raise WireError("input: expected at least one item, got none", param="input")
    turns: list[dict[str, Any]] = []
    calls: set[str] = set()
    for number, item in enumerate(given):
        place = f"input[{number}]"
        if isinstance(item, CallItem):
            calls.add(item.call_id)
            arguments = item.arguments if item.input is None else item.input
            call = {"call": item.call_id, "name": item.name, "arguments": arguments}
            turns.append({"role": "user", "content": as_text(call)})
        elif isinstance(item, OutputItem):
            if item.call_id not in calls:
                message = f"{place}.call_id: unknown call {item.call_id!r}: it must come before its output"
                raise WireError(message, param=f"{place}.call_id")
            output = _text(item.output, f"{place}.output")
            turns.append({"role": "user", "content": as_text({"result_of": item.call_id, "output": output})})
        else:
            text = _text(item.content, f"{place}.content")
            role = "system" if item.role == "developer" else item.role
            turns.append({"role": role, "content": as_text(text)})
    return turns


def _question(number: int, question: PredicateQuestion | ChoiceQuestion | ScoreQuestion) -> dict[str, Any]:
    """As the library asks it."""
    place = f"questions[{number}]"
    told = {"type": question.type, "instructions": _text(question.instructions, f"{place}.instructions")}
    if isinstance(question, ChoiceQuestion):
        # true and "true" are two different values.
        if (again := first_repeated((type(one.value), one.value) for one in question.choices)) is not None:
            message = f"{place}.choices: {again[1]!r} is given twice: values must differ"
            raise WireError(message, param=f"{place}.choices")
        told["options"] = [{"value": one.value, "description": one.description} for one in question.choices]
    elif isinstance(question, ScoreQuestion):
        told["levels"] = [{"label": one.label, "description": one.description} for one in question.levels]
    return told


def _answer(
    question: PredicateQuestion | ChoiceQuestion | ScoreQuestion, done: LibraryAnswers, name: str
) -> dict[str, Any]:
    found = done[name]
    head = {"type": question.type, "name": question.name}
    if isinstance(question, PredicateQuestion):
        return {**head, "probability": found["probability"], **done.own_fields(name)}
    if isinstance(question, ChoiceQuestion):
        listed = [
            {"value": one.value, "probability": share}
            for one, share in zip(question.choices, shares(found), strict=True)
        ]
        chosen = {"choice": question.choices[found["index"]].value, "confidence": found["confidence"]}
        return {**head, **chosen, "probabilities": listed, **done.own_fields(name)}
    listed = [
        {"value": number, "label": level.label, "probability": share}
        for number, (level, share) in enumerate(zip(question.levels, shares(found), strict=True))
    ]
    scored = {"score": found["value"], "confidence": found["confidence"]}
    return {**head, **scored, "probabilities": listed, **done.own_fields(name)}
