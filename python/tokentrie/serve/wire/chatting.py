"""`POST /v1/chat/completions`, as OpenAI's clients send it."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

import tokentrie
from tokentrie import CancelToken, Message, Tools
from tokentrie.options import ReplyOptions
from tokentrie.results import ChatEvent, ChatPrompt, ToolCall
from tokentrie.serve.errors import WireError
from tokentrie.serve.metrics import finish_reason
from tokentrie.serve.models import Models, Parts, ServedModel
from tokentrie.serve.store import Constraint, Store
from tokentrie.serve.wire.asking import refuse_media
from tokentrie.serve.wire.generating import (
    MOST_CHOICES,
    Count,
    Draws,
    Positive,
    StreamOptions,
    current_time,
    event,
    logprob_json,
    new_id,
    passes,
    passing,
    streaming,
    usage,
)
from tokentrie.serve.wire.holding import ConstraintFields

#: Template variables that clients do not set, and keywords of the library.
RESERVED = {"tools", "messages", "now", "adapt", "answer_prefix", "add_generation_prompt", "continue_final_message"}
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class ChatRequest(Draws, ConstraintFields, passing(ReplyOptions)):  # type: ignore[misc]
    """A conversation that the model answers."""

    model: str | None = None
    messages: Annotated[list[dict[str, Any]], Field(min_length=1)]
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    tools_in: str | None = None
    show_schema: bool | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: Positive | None = None
    max_completion_tokens: Positive | None = None
    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    n_probs: Count | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    thinking_budget: Count | None = None
    continue_final_message: bool | None = None
    return_prompt: bool = False
    return_details: bool = False
    receipt: bool = False


@dataclass(frozen=True)
class PreparedChat:
    """A chat as the library takes it."""

    served: ServedModel
    messages: list[dict[str, Any]]
    tools: Tools | None
    choice: str | dict[str, Any]
    options: dict[str, Any]
    said: ChatRequest

    @property
    def n(self) -> int:
        """Returns the number of answers that the request asks for."""
        return self.said.n or 1

    def works(self) -> list[Callable[..., Message]]:
        """A call for each choice, which takes `cancel` and `put`."""
        return [functools.partial(self._work, number) for number in range(self.n)]

    def _work(self, number: int, *, cancel: CancelToken, put: Callable[[ChatEvent], object] | None = None) -> Message:
        with self.said.name_field():
            done: Message = self.served.model.chat(
                self.messages,
                self.tools,
                self.choice,
                sampling=self.said.sampling(number),
                stream=put,
                # A constraint tells where its value ends.
                stop=None if self.said.stop == [] or self.options["constraint"] is not None else self.said.stop,
                priority=self.said.priority,
                timeout=self.served.timeout,
                cancel=cancel,
                on_invalid="none",
                receipt=self.said.receipt and (self.served.receipt_key or True),
                logit_bias=self.said.bias(),
                **self.options,
                **self.said.model_options(),
            )
        self.served.note_end(done)
        return done

    def prompt(self) -> list[int]:
        """The tokens of the prompt that the model sees."""
        messages, options, held = self.messages, self.options, self.options["constraint"]
        written = self.served.model.chat_format
        if self.tools is not None:
            written = written.with_tools_in(options["tools_in"])
        if held is not None and options["show_schema"]:
            messages = written._with_schema(messages, held)
        prompt = written.prompt(
            messages,
            None if self.tools is None else self.tools.definitions,
            enable_thinking=options["enable_thinking"],
            continue_final_message=options["continue_final_message"],
            **variables_of(options),
        )
        return tokens_of(self.served, prompt)


def tools_of(given: list[dict[str, Any]] | None) -> Tools | None:
    """The tools that may be called, as chats write them."""
    for number, tool in enumerate(given or []):
        place, kind = f"tools[{number}]", tool.get("type")
        if kind not in ("function", "custom"):
            message = f"{place}.type: unknown type of tool {kind!r}: expected 'function' or 'custom'"
            raise WireError(message, param=f"{place}.type")
        inner = tool.get(kind)
        name = inner.get("name") if isinstance(inner, dict) else None
        if not isinstance(name, str) or not NAME.fullmatch(name):
            message = f"{place}.{kind}.name: {name!r} must be 1 to 64 of the letters A-Z, a-z, 0-9, _, . and -"
            raise WireError(message, param=f"{place}.{kind}.name")
    if not given:
        return None
    try:
        return _kept_tools(json.dumps(given))
    except tokentrie.errors.OptionError as error:
        raise WireError(f"tools: {error}", param="tools") from None


@functools.lru_cache(maxsize=128)
def _kept_tools(text: str) -> Tools:
    # What was worked out for them is found again.
    return Tools(json.loads(text))


def forget() -> None:
    """Forgets the tools of requests that were kept for those that come again."""
    _kept_tools.cache_clear()


def choice_of(given: str | dict[str, Any] | None, tools: Tools | None) -> str | dict[str, Any]:
    """Returns the tool choice: whether a tool may or must be called, and which."""
    if given is None:
        return "auto"
    # This API takes no name alone.
    if isinstance(given, str) and given not in ("auto", "none", "required"):
        message = f"tool_choice: expected auto, none, required or an object that names a tool, got {given!r}"
        raise WireError(message, param="tool_choice")
    if given == "required" and tools is None:
        raise WireError("tool_choice: a call is required, but tools is empty", param="tool_choice")
    try:
        return (Tools([]) if tools is None else tools)._choice(given)
    except tokentrie.errors.OptionError as error:
        message = str(error).removeprefix("$.tool_choice: ")
        raise WireError(f"tool_choice: {message}", param="tool_choice") from None


def template_options(variables: dict[str, Any] | None, thinks: bool = True) -> dict[str, Any]:
    """Returns the template variables in the fields of vLLM's clients; `thinks` if they do not say."""
    variables = dict(variables or {})
    thinks = variables.pop("enable_thinking", thinks)
    if not isinstance(thinks, bool):
        place = "chat_template_kwargs.enable_thinking"
        raise WireError(f"{place}: invalid value: expected true or false, got {thinks!r}", param=place)
    return {"enable_thinking": thinks, "template_variables": variables or None}


def tokens_of(served: ServedModel, prompt: ChatPrompt, length: int | None = None) -> list[int]:
    """The tokens of a prompt, or of so many characters of its beginning, as a chat has them."""
    length = len(prompt.text) if length is None else length
    parts, bos = [], served.model.chat_format.template.bos
    for text, is_own in prompt.parts:
        parts.append((text[: max(length, 0)], is_own))
        length -= len(text)
    return [*served.model.vocab.tokenize_parts(parts, add_special=not (bos and prompt.text.startswith(bos)))]


def prompt_of(served: ServedModel, messages: list[dict[str, Any]], options: dict[str, Any]) -> list[int]:
    """The tokens of a conversation without tools; `options` as `template_options` gives them."""
    variables = variables_of(options)
    written = served.model.chat_format
    return tokens_of(served, written.prompt(messages, enable_thinking=options["enable_thinking"], **variables))


def contents(messages: list[dict[str, Any]]) -> Iterator[str]:
    """The texts of the contents of messages; what has another shape is refused where it is read."""
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [content]
        for part in parts:
            text = part.get("text") if isinstance(part, dict) else part
            if isinstance(text, str):
                yield text


def variables_of(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the clients' own variables from those of `template_options`."""
    variables: dict[str, Any] = options["template_variables"] or {}
    if taken := RESERVED & set(variables):
        name = min(taken)
        place = f"chat_template_kwargs.{name}"
        raise WireError(f"{place} is not accepted from clients", param=place)
    return variables


def prepare_chat(models: Models, store: Store, said: ChatRequest) -> PreparedChat:
    """A request as the library takes it.

    Raises:
        WireError: what it asks for cannot be.
    """
    if said.top_logprobs is not None and not said.logprobs:
        raise WireError("top_logprobs: it needs logprobs to be true", param="top_logprobs")
    for number, one in enumerate(said.messages):
        refuse_media(one, f"messages[{number}].")
    refuse_media(said.model_extra or {})
    served = models.get_or_first(said.model)
    served.check_room(contents(said.messages), "messages", len(said.messages))
    tools = tools_of(said.tools)
    choice = choice_of(said.tool_choice, tools)
    held: Constraint | None = said.build_constraint(store)
    # Reasoning may go on without end, and a client that asks for a value waits for that value.
    thinks = held is None or said.thinking_budget is not None
    options: dict[str, Any] = {"constraint": held, **template_options(said.chat_template_kwargs, thinks)}
    options["parallel_tool_calls"] = said.parallel_tool_calls is not False
    options["show_schema"] = served.show_schema if said.show_schema is None else said.show_schema
    options["tools_in"] = "auto" if tools is None else said.tools_in or served.tools_in
    options["whitespace"] = said.whitespace or "compact"
    most = said.max_completion_tokens if said.max_completion_tokens is not None else said.max_tokens
    options |= {"max_tokens": most, "thinking_budget": said.thinking_budget}
    options["continue_final_message"] = "auto" if said.continue_final_message else None
    options["probabilities"] = said.return_details
    options["logprobs"] = said.top_logprobs or 0 if said.logprobs else said.n_probs or None
    return PreparedChat(served, said.messages, tools, choice, options, said)


async def answer(request: Request, models: Models, store: Store, said: ChatRequest) -> Response:
    """The answer to a request."""
    chat = prepare_chat(models, store, said)
    head = {"id": new_id("chatcmpl"), "object": "chat.completion", "created": current_time(), "model": chat.served.name}
    if said.stream:
        parts = await chat.served.stream(request, chat.works())
        head["object"] = "chat.completion.chunk"
        with_usage = said.stream_options is not None and said.stream_options.include_usage
        return streaming(parts, _chunks(chat, head, parts, with_usage))
    done = await chat.served.run_all(request, chat.works())
    choices = [_choice(chat, number, message) for number, message in enumerate(done)]
    body = {**head, "choices": choices, "usage": _usage(done)}
    if said.return_prompt:
        body["prompt_token_ids"] = chat.prompt()
    return JSONResponse(body)


def _choice(chat: PreparedChat, number: int, message: Message) -> dict[str, Any]:
    calls = [call.to_dict() | (_shares(call) if chat.said.return_details else {}) for call in message.tool_calls]
    said: dict[str, Any] = {"role": "assistant", "content": message.content or (None if calls else ""), "refusal": None}
    if calls:
        said["tool_calls"] = calls
    if message.reasoning:
        said["reasoning_content"] = message.reasoning
    known = _logprobs(chat, message)
    choice = {"index": number, "message": said, "finish_reason": finish_reason(message), "logprobs": known}
    return choice | _reply_details(chat, message)


def _shares(call: ToolCall) -> dict[str, Any]:
    """Returns the probabilities of a call's name, and of its arguments with few values."""
    return {"x_probability": call.probability, "x_probabilities": call.probabilities}


def _reply_details(chat: PreparedChat, message: Message) -> dict[str, Any]:
    """Returns the details beside a reply that were asked for."""
    stats = {"x_stats": passes(message.stats)} if chat.said.return_details and message.stats is not None else {}
    return stats | ({"receipt": message.receipt} if chat.said.receipt else {})


def _logprobs(chat: PreparedChat, message: Message) -> dict[str, Any] | None:
    if chat.options["logprobs"] is None:
        return None
    return {"content": [logprob_json(one, chat.served.model) for one in message.logprobs], "refusal": None}


def _usage(done: list[Message]) -> dict[str, Any]:
    """Returns the usage of all choices: their prompt counts once."""
    stats = [message.stats for message in done if message.stats is not None]
    return usage(
        stats[0].prompt_tokens,
        stats[0].prompt_tokens_reused,
        sum(one.tokens for one in stats),
        sum(one.reasoning_tokens for one in stats),
    )


async def _chunks(
    chat: PreparedChat, head: dict[str, Any], parts: Parts[ChatEvent, Message], with_usage: bool
) -> AsyncIterator[bytes]:
    more = {"usage": None} if with_usage else {}

    def chunk(number: int, delta: dict[str, Any], finish: str | None = None, known: Any = None, **own: Any) -> bytes:
        choice = {"index": number, "delta": delta, "finish_reason": finish, "logprobs": known, **own}
        return event({**head, "choices": [choice], **more})

    for number in range(chat.n):
        yield chunk(number, {"role": "assistant", "content": ""})
    deltas = [Deltas() for _ in range(chat.n)]
    async for number, part in parts:
        if (delta := deltas[number].delta(part)) is not None:
            yield chunk(number, delta)
    for number, message in enumerate(parts.results):
        if (known := _logprobs(chat, message)) is not None:
            yield chunk(number, {}, known=known)
        if chat.said.return_details and message.tool_calls:
            shares = [{"index": nth, **_shares(call)} for nth, call in enumerate(message.tool_calls)]
            yield chunk(number, {"tool_calls": shares})
        yield chunk(number, {}, finish_reason(message), **_reply_details(chat, message))
    if with_usage:
        yield event({**head, "choices": [], "usage": _usage(parts.results)})
    yield event("[DONE]")


class Deltas:
    """The additions of events to a message."""

    def __init__(self) -> None:
        # The field of each call that has its name and arguments, and the name of the latter.
        self._fields: dict[int | None, tuple[str, str]] = {}

    def delta(self, part: ChatEvent) -> dict[str, Any] | None:
        """Returns the addition of an event to the message."""
        if part.kind == "content":
            return {"content": part.text}
        if part.kind == "reasoning":
            return {"reasoning_content": part.text}
        if part.kind == "call_begins":
            kind, arguments = ("custom", "input") if part.tool == "custom" else ("function", "arguments")
            self._fields[part.index] = kind, arguments
            named = {"name": part.name, arguments: ""}
            return {"tool_calls": [{"index": part.index, "id": part.id, "type": kind, kind: named}]}
        if part.kind == "arguments":
            kind, arguments = self._fields[part.index]
            return {"tool_calls": [{"index": part.index, kind: {arguments: part.text}}]}
        return None
