"""Common part of chats, completions and responses: the draw of tokens, the answer, the stream."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import AsyncIterator
from typing import Annotated, Any, cast

from fastapi.sse import EventSourceResponse, format_sse_event
from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator

from tokentrie import Model, Sampling
from tokentrie.options import SamplingOptions
from tokentrie.results import ChatStats, Stats, TokenLogprob
from tokentrie.serve.errors import REFUSALS, of_library
from tokentrie.serve.models import Parts

MOST_CHOICES = 128
#: The logarithm of 0, where JSON has no infinities.
NEVER = -9999.0

Share = Annotated[float, Field(ge=0, le=1)]
#: Range of whole numbers in the library.
MOST = 2**31 - 1
#: The largest single-precision number, about.
MOST_BIAS = 3e38
Whole = Annotated[int, Field(ge=-MOST, le=MOST)]
Count = Annotated[int, Field(ge=0, le=MOST)]
Positive = Annotated[int, Field(ge=1, le=MOST)]


#: Options of the library that are for the server to say, or that clients say in words of their own.
SERVERS = {"mode", "timeout", "on_invalid", "retries", "enable_thinking", "probabilities", "logprobs", "max_tokens"}
#: Annotations of options that are plain values of JSON.
PLAIN = re.compile(r"(bool|int|float|str)( \| None)?|Literal\[[^\]]*\]")


class Passes(BaseModel):
    """Fields of a request that are options of the library under the same name, None where they are left out."""

    def model_options(self) -> dict[str, Any]:
        """Returns the given fields that no other class of the request reads."""
        read = {name for cls in type(self).__mro__ if cls not in MADE for name in vars(cls).get("__annotations__", {})}
        return {name: value for name, value in self if value is not None and name in self._options() - read}

    @classmethod
    def _options(cls) -> set[str]:
        return {name for made in MADE if issubclass(cls, made) for name in made.model_fields}


#: Classes that `passing` made.
MADE: set[type[Passes]] = set()


def passing(options: type) -> type[Passes]:
    """A class with the options of a TypedDict that are plain values: who adds one adds it here, too."""
    fields: dict[str, Any] = {}
    for name, annotation in options.__annotations__.items():
        text = getattr(annotation, "__forward_arg__", annotation)
        is_own = name in SERVERS or name in SamplingOptions.__annotations__
        if not is_own and isinstance(text, str) and PLAIN.fullmatch(text):
            fields[name] = (text if text.endswith("None") else f"{text} | None", None)
    made = create_model(options.__name__, __base__=Passes, __module__=options.__module__, **fields)
    MADE.add(made)
    return cast("type[Passes]", made)


class Draws(BaseModel):
    """Settings of the draw: OpenAI's names, and those that llama-server and vLLM add. Further fields change nothing."""

    model_config = ConfigDict(extra="allow", strict=True)

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Share | None = None
    top_k: Whole | None = None
    min_p: Share | None = None
    typical_p: Share | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repeat_penalty: float | None = None
    repetition_penalty: float | None = None
    repeat_last_n: Whole | None = None
    logit_bias: dict[str, float] | None = None
    stop: str | list[str] | None = None
    priority: Whole = 0

    @field_validator("logit_bias")
    @classmethod
    def by_tokens(cls, given: dict[str, float] | None) -> dict[str, float] | None:
        """Keys that are ids of tokens, and numbers that are some."""
        for token, bias in (given or {}).items():
            if not (token.isascii() and token.isdecimal() and str(int(token[:11])) == token):
                raise ValueError(f"invalid token id {token!r}: expected a number such as '17'")
            if not abs(bias) < MOST_BIAS:
                raise ValueError(f"invalid bias {bias} of token {token}: expected a number below {MOST_BIAS:g}")
        return given

    def bias(self) -> dict[int, float]:
        """Returns the numbers that are added to the logits of tokens."""
        return {int(token): bias for token, bias in (self.logit_bias or {}).items()}

    def sampling(self, nth: int = 0) -> Sampling:
        """The draw of a choice: each has the seed after that of the one before."""
        given = {name: getattr(self, name) for name in ("top_p", "min_p", "typical_p")}
        given |= {name: getattr(self, name) for name in ("presence_penalty", "frequency_penalty")}
        given["repeat_penalty"] = self.repeat_penalty if self.repeat_penalty is not None else self.repetition_penalty
        # -1 is "all" in vLLM, and 0 in llama.cpp.
        given["top_k"] = None if self.top_k is None else max(self.top_k, 0)
        given["penalty_last_n"] = self.repeat_last_n
        settings = {name: value for name, value in given.items() if value is not None}
        temperature = 1.0 if self.temperature is None else self.temperature
        if temperature == 0:
            kept = {name: value for name, value in settings.items() if "penalty" in name}
            return Sampling("greedy", **kept)
        # Other servers draw another seed for -1.
        seed = None if self.seed in (None, -1) else (self.seed + nth) % 2**32
        return Sampling("sampled", temperature=temperature, seed=seed, **settings)


class StreamOptions(BaseModel):
    """Options of a stream. Further fields change nothing."""

    model_config = ConfigDict(strict=True)

    include_usage: bool = False


def new_id(kind: str) -> str:
    """An id of an answer or of a part of one."""
    return f"{kind}-{uuid.uuid4().hex}"


def current_time() -> int:
    """The time of an answer."""
    return int(time.time())


def token_text(token: int, model: Model) -> str:
    """The text of a token; U+FFFD where it ends inside a character."""
    return model.vocab[token].decode("utf-8", "replace")


def logprob_json(known: TokenLogprob, model: Model) -> dict[str, Any]:
    """Returns the log-probability of a token in the form of chats."""

    def one(token: int, logprob: float) -> dict[str, Any]:
        return {"token": token_text(token, model), "logprob": finite(logprob), "bytes": [*model.vocab[token]]}

    return one(known.token, known.logprob) | {"top_logprobs": [one(*rival) for rival in known.top]}


def finite(logprob: float) -> float:
    """A logarithm that JSON can write, and that is none of a probability above 1."""
    return min(max(logprob, NEVER), 0.0)


def passes(stats: Stats | ChatStats) -> dict[str, int]:
    """Returns the numbers of forward passes, and of those saved because a token was forced or drafted."""
    names = ("forward_passes", "forward_passes_saved", "forced_tokens", "drafted_tokens", "accepted_tokens")
    return {name: getattr(stats, name) for name in names}


def usage(prompt: int, cached: int, written: int, reasoning: int) -> dict[str, Any]:
    """Returns the usage of an answer."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def event(data: Any, kind: str | None = None) -> bytes:
    """One event of a stream."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return format_sse_event(data_str=text, event=kind)


def streaming(parts: Parts[Any, Any], events: AsyncIterator[bytes]) -> EventSourceResponse:
    """An answer that comes event by event. A late error is its last event; a client that leaves ends the calls."""

    async def guard_events() -> AsyncIterator[bytes]:
        try:
            async for one in events:
                yield one
        except REFUSALS as error:
            yield event({"error": of_library(error).envelope()})
        finally:
            await parts.close()

    return EventSourceResponse(guard_events(), headers={"cache-control": "no-cache"})
