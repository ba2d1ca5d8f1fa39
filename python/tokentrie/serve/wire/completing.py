"""`POST /v1/completions`: text that goes on."""

from __future__ import annotations

import codecs
import functools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from tokentrie import CancelToken, Generated, Model
from tokentrie._native import OpenCall
from tokentrie.options import GenerateOptions
from tokentrie.results import Step, TokenLogprob
from tokentrie.serve.errors import WireError
from tokentrie.serve.metrics import finish_reason
from tokentrie.serve.models import Models, Parts, ServedModel
from tokentrie.serve.store import Constraint, Store
from tokentrie.serve.wire.generating import (
    MOST_CHOICES,
    Count,
    Draws,
    StreamOptions,
    Whole,
    current_time,
    event,
    finite,
    new_id,
    passes,
    passing,
    streaming,
    token_text,
    usage,
)
from tokentrie.serve.wire.holding import ConstraintFields

Prompt = str | list[int]
Part = tuple[str, Step | None]


class CompletionOutput(NamedTuple):
    """Output of one completion."""

    out: Generated
    steps: list[Step]
    """Steps, if they were asked for."""
    read: list[TokenLogprob]
    """Log-probabilities of the prompt's tokens but the first, if it is echoed with logprobs."""


class CompletionRequest(Draws, ConstraintFields, passing(GenerateOptions)):  # type: ignore[misc]
    """Prompts, as text or as token ids."""

    model: str | None = None
    prompt: str | list[int] | list[str] | list[list[int]]
    max_tokens: Count | None = None
    n_predict: Whole | None = None
    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] | None = None
    best_of: Whole | None = None
    suffix: str | None = None
    echo: bool | None = None
    logprobs: Annotated[int, Field(ge=0, le=100)] | None = None
    n_probs: Annotated[int, Field(ge=0, le=100)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    return_prompt: bool = False
    return_details: bool = False
    receipt: bool = False


@dataclass(frozen=True)
class PreparedCompletion:
    """Prompts as the library takes them."""

    served: ServedModel
    prompts: list[Prompt]
    n: int
    held: Constraint | None
    logprobs: int | None
    said: CompletionRequest

    def works(self) -> list[Callable[..., CompletionOutput]]:
        """A call for each choice, which takes `cancel` and `put`: all of the first prompt come first."""
        return [functools.partial(self._work, prompt, number) for prompt in self.prompts for number in range(self.n)]

    def _work(
        self,
        prompt: Prompt,
        number: int,
        *,
        cancel: CancelToken,
        put: Callable[[Part], object] | None = None,
    ) -> CompletionOutput:
        said, model = self.said, self.served.model
        length, steps = 0, []
        read = self._read(prompt, cancel) if said.echo and self.logprobs is not None else []

        def see(step: Step) -> None:
            nonlocal length
            length += len(step.text)
            if put is None:
                steps.append(step)
            elif step.text or step.logprob is not None or said.return_details:
                put((step.text, step))

        with said.name_field():
            out: Generated = model.generate(
                prompt,
                self.held,
                max_tokens=model.n_ctx if self.max_tokens is None else max(self.max_tokens, 1),
                sampling=said.sampling(number),
                # A constraint says where its value ends.
                stop=None if said.stop == [] or self.held is not None else said.stop,
                logprobs=self.logprobs,
                receipt=said.receipt and (self.served.receipt_key or True),
                logit_bias=said.bias(),
                priority=said.priority,
                timeout=self.served.timeout,
                cancel=cancel,
                on_invalid="none",
                on_step=see if put is not None or said.return_details else None,
                **said.model_options(),
            )
        self.served.note_end(out)
        if put is not None and out.text[length:]:
            put((out.text[length:], None))
        return CompletionOutput(out, steps, read)

    def _read(self, prompt: Prompt, cancel: CancelToken) -> list[TokenLogprob]:
        call = OpenCall(cancel, self.served.timeout, self.said.priority)
        return self.served.model._prompt_logprobs(self.tokens(prompt), self.logprobs or 0, call)

    def visible_output(self, written: CompletionOutput) -> tuple[str, list[TokenLogprob]]:
        """The text that is told, and its tokens: none where only the prompt was asked for."""
        return ("", []) if self.max_tokens == 0 else (written.out.text, written.out.logprobs)

    @property
    def max_tokens(self) -> int | None:
        """The most tokens; None is what the context has room for."""
        if self.said.max_tokens is None and self.said.n_predict is not None and self.said.n_predict > 0:
            return self.said.n_predict
        return self.said.max_tokens

    def tokens(self, prompt: Prompt) -> list[int]:
        """The tokens of a prompt."""
        if not isinstance(prompt, str):
            return prompt
        return [*map(int, self.served.model.vocab.tokenize(prompt, add_special=True, parse_special=True))]

    def echo_text(self, prompt: Prompt) -> str:
        """The text that stands before an answer."""
        if not self.said.echo:
            return ""
        vocab = self.served.model.vocab
        return prompt if isinstance(prompt, str) else b"".join(vocab[one] for one in prompt).decode("utf-8", "replace")


def prepare_completion(models: Models, store: Store, said: CompletionRequest) -> PreparedCompletion:
    """A request as the library takes it.

    Raises:
        WireError: what it asks for cannot be.
    """
    for name, given in (("suffix", said.suffix), ("best_of", said.best_of if said.best_of != 1 else None)):
        if given is not None:
            raise WireError(f"{name} is not supported by this server: leave it out", param=name)
    known = said.logprobs if said.logprobs is not None else said.n_probs or None
    if said.echo and known is not None and said.stream:
        raise WireError("echo: with logprobs it is not streamed: leave stream out", param="echo")
    if said.max_tokens == 0 and (not said.echo or said.stream):
        message = "max_tokens: it is 0: it must be at least 1, but for an echo that is not streamed"
        raise WireError(message, param="max_tokens")
    given_prompt: Any = said.prompt
    is_one = isinstance(given_prompt, str) or (bool(given_prompt) and isinstance(given_prompt[0], int))
    prompts: list[Prompt] = [given_prompt] if is_one else [*given_prompt]
    if not prompts or any(not isinstance(prompt, str) and not prompt for prompt in prompts):
        raise WireError("prompt: it is empty", param="prompt")
    if len(prompts) * (said.n or 1) > MOST_CHOICES * 8:
        raise WireError(f"prompt: at most {MOST_CHOICES * 8} answers a request", param="prompt")
    served = models.get_or_first(said.model)
    for prompt in prompts:
        served.check_room([prompt] if isinstance(prompt, str) else [], "prompt")
    return PreparedCompletion(served, prompts, said.n or 1, said.build_constraint(store), known, said)


async def answer(request: Request, models: Models, store: Store, said: CompletionRequest) -> Response:
    """The answer to a request."""
    asks = prepare_completion(models, store, said)
    head = {"id": new_id("cmpl"), "object": "text_completion", "created": current_time(), "model": asks.served.name}
    if said.stream:
        parts = await asks.served.stream(request, asks.works())
        with_usage = said.stream_options is not None and said.stream_options.include_usage
        return streaming(parts, _chunks(asks, head, parts, with_usage))
    done = await asks.served.run_all(request, asks.works())
    choices = [_choice(asks, number, written) for number, written in enumerate(done)]
    body = {**head, "choices": choices, "usage": _usage(asks, done)}
    if said.return_prompt:
        body["prompt_token_ids"] = asks.tokens(asks.prompts[0])
    return JSONResponse(body)


def _choice(asks: PreparedCompletion, number: int, written: CompletionOutput) -> dict[str, Any]:
    (out, steps, read), known = written, None
    (text, likely), prompt = asks.visible_output(written), asks.prompts[number // asks.n]
    echoed = asks.echo_text(prompt)
    if asks.logprobs is not None:
        known = _logprobs(asks.served.model, likely, len(echoed) - out.stats.healed_bytes)
        if asks.said.echo:
            before = _of_prompt(asks.served.model, asks.tokens(prompt), read, len(echoed))
            known = {name: before[name] + known[name] for name in known}
    text = echoed + text
    choice = {"index": number, "text": text, "finish_reason": finish_reason(out), "logprobs": known}
    if asks.said.return_details:
        choice |= {"x_steps": [*map(_step, steps)], "x_stats": passes(out.stats)}
    return choice | _accounts(asks, out)


def _accounts(asks: PreparedCompletion, out: Generated) -> dict[str, Any]:
    """Returns the accounts of a generation that were asked for: of the allowed tokens, and of a draw as a whole."""
    told: dict[str, Any] = {"receipt": out.receipt} if asks.said.receipt else {}
    if out.correction is not None:
        told["correction"] = out.correction.to_dict()
        told["correction"]["log_normalizer"] = finite(out.correction.log_normalizer)
    return told


def _step(step: Step) -> dict[str, Any]:
    """Returns the reason for a token: it was forced, chosen among some, or free."""
    legal = len(step.allowed)
    role = "forced" if step.forced else "chosen" if legal else "free"
    return {"token": step.token, "role": role, "legal": 1 if step.forced else legal or None}


def _logprobs(model: Model, known: list[TokenLogprob], begin: int) -> dict[str, Any]:
    """Returns log-probabilities as completions have them; the first token begins at character `begin`."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces, places = [model.vocab[one.token] for one in known], []
    for piece in pieces:
        places.append(max(begin, 0))
        begin += len(decoder.decode(piece))
    best = [{token_text(token, model): finite(logprob) for token, logprob in one.top} for one in known]
    return {
        "tokens": [token_text(one.token, model) for one in known],
        "token_logprobs": [finite(one.logprob) for one in known],
        "top_logprobs": best,
        "text_offset": places,
    }


def _of_prompt(model: Model, tokens: list[int], read: list[TokenLogprob], length: int) -> dict[str, Any]:
    """Returns the log-probabilities of a prompt, whose text has this length.

    The first token has none, since nothing comes before it; it may be one that the text does not have.
    """
    behind = b"".join(model.vocab[token] for token in tokens[1:]).decode("utf-8", "replace")
    rest = _logprobs(model, read, length - len(behind))
    unknown = {"tokens": token_text(tokens[0], model), "token_logprobs": None, "top_logprobs": None, "text_offset": 0}
    return {name: [unknown[name], *rest[name]] for name in rest}


def _usage(asks: PreparedCompletion, done: list[CompletionOutput]) -> dict[str, Any]:
    prompt = sum(len(asks.tokens(one)) for one in asks.prompts)
    cached = sum(one.out.stats.prompt_tokens_reused for one in done[:: asks.n])
    written = 0 if asks.max_tokens == 0 else sum(len(one.out.tokens) for one in done)
    return usage(prompt, min(cached, prompt), written, 0)


async def _chunks(
    asks: PreparedCompletion, head: dict[str, Any], parts: Parts[Part, CompletionOutput], with_usage: bool
) -> AsyncIterator[bytes]:
    more = {"usage": None} if with_usage else {}
    places = [0] * (len(asks.prompts) * asks.n)

    def chunk(number: int, text: str, finish: str | None = None, known: Any = None, **own: Any) -> bytes:
        choice = {"index": number, "text": text, "finish_reason": finish, "logprobs": known, **own}
        return event({**head, "choices": [choice], **more})

    for number, prompt in enumerate(asks.prompts):
        if text := asks.echo_text(prompt):
            for nth in range(asks.n):
                yield chunk(number * asks.n + nth, text)
    tells = asks.said.return_details
    async for number, (text, step) in parts:
        logprob = None if step is None else step.logprob
        known = None if logprob is None else _logprobs(asks.served.model, [logprob], places[number])
        places[number] += len(text)
        own: dict[str, Any] = {} if step is None or not tells else {"x_steps": [_step(step)]}
        yield chunk(number, text, known=known, **own)
    for number, (out, _, _) in enumerate(parts.results):
        own = {"x_stats": passes(out.stats)} if tells else {}
        yield chunk(number, "", finish_reason(out), **own, **_accounts(asks, out))
    if with_usage:
        yield event({**head, "choices": [], "usage": _usage(asks, parts.results)})
    yield event("[DONE]")
