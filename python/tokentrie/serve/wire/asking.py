"""Common part of both decision formats: questions as the library asks them, and its answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from tokentrie import CancelToken
from tokentrie._native import OpenCall
from tokentrie.serve.errors import WireError
from tokentrie.serve.models import ServedModel

T = TypeVar("T")
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]

#: Fields in which clients send what is not text: Ollama's, System One's, OpenAI's audio.
MEDIA = ("images", "image", "image_url", "audio", "audios", "video", "videos", "files", "assets")


class RequestPart(BaseModel):
    """A part of a request. Its types are meant: a number is not text."""

    model_config = ConfigDict(extra="forbid", strict=True)


class DecisionOptions(BaseModel):
    """Fields that both formats take beside their own: options of `Model.decide`."""

    readout: Literal["text", "label"] = "text"
    list_options: bool = True
    permute: Annotated[int, Field(ge=1, le=64)] = 1
    order: Literal["given", "independent", "balanced"] = "given"
    order_confidence: Annotated[float, Field(gt=0, le=1)] = 0.95
    prior: Literal["none", "content-free"] = "none"
    threshold: Share | None = None
    target_accuracy: Share | None = None
    coverage: Share | None = None
    calibration: dict[str, Any] | None = None
    out_of_scope: bool = False
    escalate: Share | None = None
    think_tokens: Count = 64
    top: Count = 10
    max_rows: Count = 2048
    return_prompt: bool = False

    def library_options(self, ids: Mapping[str, str]) -> dict[str, Any]:
        """Returns the options as the library reads them. `ids` has the client's name of each of its questions."""
        options = self.model_dump(include=DecisionOptions.model_fields.keys() - {"return_prompt"}, exclude_none=True)
        questions = options.get("calibration", {}).get("questions")
        if isinstance(questions, dict):
            options["calibration"] |= {
                "questions": {name: questions[one] for name, one in ids.items() if one in questions}
            }
        return options


class LibraryAnswers:
    """Answers of the library to the questions about a state."""

    def __init__(self, done: Mapping[str, Any], tells_prompts: bool, tells_flips: bool) -> None:
        self._answers, self._end, self._ends = done["answers"], done["end"], done["end_tokens"]
        self._tells_prompts, self._tells_flips = tells_prompts, tells_flips
        self._decoded: int = done["stats"]["tokens_decoded"]

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        return self._answers[name]  # type: ignore[no-any-return]

    @property
    def prompt_tokens(self) -> int:
        """Tokens of all prompts."""
        return sum(len(prompt["tokens"]) for answer in self._answers.values() for prompt in answer["prompts"])

    @property
    def cached_tokens(self) -> int:
        """Tokens of prompts that were not decoded again: the state is decoded once."""
        return max(self.prompt_tokens - self._decoded, 0)

    def own_fields(self, name: str) -> dict[str, Any]:
        """Returns the vendor extension fields of an answer (`x_…`)."""
        answer = self._answers[name]
        found = {"x_mass": answer["mass"]}
        if answer["warning"] is not None:
            found["x_warning"] = answer["warning"]
        if self._tells_flips:
            found["x_flips"] = answer["flips"]
        if answer["order"] != "given":
            found |= {"x_order": answer["order"], "x_orders": len(answer["prompts"])}
        told = ("order_reason", "reason", "prediction_set", "out_of_scope", "thought", "certain", "unscored")
        found |= {f"x_{part}": answer[part] for part in told if answer[part] is not None}
        if self._tells_prompts:
            prompts = [
                {
                    "token_ids": one["tokens"],
                    **({"branches": one["branches"]} if one["branches"] else {}),
                    "values": one["values"][: len(answer["probabilities"])],
                    "spellings": one["values"],
                    "options": one["options"],
                    "end": self._end,
                    "end_tokens": self._ends,
                }
                for one in answer["prompts"]
            ]
            found["x_prompts"] = prompts
        return found


async def decide(
    request: Request,
    served: ServedModel,
    state: Any,
    questions: Mapping[str, Any],
    how: DecisionOptions,
    ids: Mapping[str, str],
) -> LibraryAnswers:
    """Asks the model. `ids` has the client's name of each question that has one."""
    text = json.dumps({"state": state, "questions": questions, **how.library_options(ids)})

    def work(*, cancel: CancelToken) -> str:
        return served.model._decide(text, 0, OpenCall(cancel, served.timeout, 0))

    (done,) = json.loads(await served.call(request, work))
    return LibraryAnswers(done, how.return_prompt, how.permute > 1 or how.order != "given")


def refuse_media(fields: Mapping[str, Any], place: str = "") -> None:
    """Refuses what stands beside the text of a request and is none.

    Raises:
        WireError: a field of `MEDIA` has something in it.
    """
    for name in MEDIA:
        if fields.get(name):
            message = f"{place}{name} is not supported by this server: it has text models; leave it out"
            raise WireError(message, param=place + name)


def first_repeated(items: Iterable[T]) -> T | None:
    """The first item that repeats an earlier one."""
    seen: set[T] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None


def as_text(said: Any) -> str:
    """Text as it is, and data as JSON."""
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, separators=(",", ":"))


def shares(answer: Mapping[str, Any]) -> Iterable[float]:
    """The probability of each option; 0 for options that were not scored, where there are thousands."""
    return [one["probability"] or 0.0 for one in answer["probabilities"]]
