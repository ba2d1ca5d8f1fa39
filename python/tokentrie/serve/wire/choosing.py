"""`POST /v1/choose`: the exact probability of every value after a prompt or a conversation."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from fastapi import Request
from pydantic import Field

from tokentrie import CancelToken, Choice
from tokentrie.serve.errors import WireError
from tokentrie.serve.models import Models, Served
from tokentrie.serve.wire.asking import Said, repeated


class ChooseRequest(Said):
    """Values, and what they come after: one of `prompt` and `messages`."""

    model: str | None = None
    prompt: str | list[int] | None = None
    messages: list[dict[str, Any]] | None = None
    values: Annotated[list[str], Field(min_length=1)]
    top: Annotated[int, Field(ge=1)] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    return_prompt: bool = False


async def answer(request: Request, models: Models, said: ChooseRequest) -> dict[str, Any]:
    """The answer to a request."""
    served = models.named(said.model)
    if (said.prompt is None) == (said.messages is None):
        raise WireError("give one of prompt and messages", param="prompt")
    if (again := repeated(said.values)) is not None:
        raise WireError(f"values: {again!r} is there twice", param="values")
    ends = served.model.vocab.eog if said.messages is not None else None

    def work(*, cancel: CancelToken) -> tuple[Choice, list[int]]:
        prompt = _prompt(served, said)
        choice = served.model.choose(
            prompt, said.values, top=said.top, end_tokens=ends, cancel=cancel, timeout=served.timeout
        )
        return choice, prompt if isinstance(prompt, list) else served.model.vocab.tokenize(prompt)

    choice, tokens = await served.call(request, work)
    found: dict[str, Any] = {
        "id": f"choose-{uuid.uuid4().hex}",
        "object": "choose",
        "model": served.name,
        "choice": choice.name,
        "index": choice.index,
        "values": _values(choice, said),
        "mass": choice.mass,
        "usage": {"prompt_tokens": len(tokens), "completion_tokens": 0, "total_tokens": len(tokens)},
    }
    if said.return_prompt:
        found |= {"prompt_token_ids": [*map(int, tokens)], "end_tokens": [*map(int, ends or [])]}
    return found


def _prompt(served: Served, said: ChooseRequest) -> Any:
    if said.messages is None:
        return said.prompt
    variables = {"enable_thinking": False, **(said.chat_template_kwargs or {})}
    thinks = bool(variables.pop("enable_thinking"))
    prompt = served.model.chat_prompt(said.messages, enable_thinking=thinks, template_variables=variables)
    return [*map(int, prompt)]


def _values(choice: Choice, said: ChooseRequest) -> list[dict[str, Any]]:
    """In the order of the request; with `top` the best of them, best first."""
    shares, logprobs = choice.probabilities, choice.logprobs
    order = range(len(said.values)) if said.top is None else [*choice.ranking][: said.top]
    return [
        {
            "value": said.values[at],
            "index": int(at),
            "probability": float(shares[at]),
            "logprob": max(float(logprobs[at]), -1e30),
        }
        for at in order
    ]
