"""`POST /v1/responses`: a chat as items. Nothing is stored."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from tokentrie import Message
from tokentrie.results import CUT, ChatEvent
from tokentrie.serve.errors import REFUSALS, WireError, of_library
from tokentrie.serve.models import Models, Parts
from tokentrie.serve.store import Store
from tokentrie.serve.wire.asking import as_text
from tokentrie.serve.wire.chatting import ChatRequest, PreparedChat, prepare_chat
from tokentrie.serve.wire.generating import Count, Draws, Positive, current_time, event, logprob_json, new_id, streaming
from tokentrie.serve.wire.holding import ConstraintFields
from tokentrie.serve.wire.items import Event, Items
from tokentrie.serve.wire.places import in_places

LOGPROBS = "message.output_text.logprobs"
#: Fields that only a server with stored answers supports.
STORED = ("previous_response_id", "conversation", "prompt", "background")


class ResponsesRequest(Draws, ConstraintFields):
    """Text or items, and tools in the flat form."""

    model: str | None = None
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    tools_in: str | None = None
    show_schema: bool | None = None
    parallel_tool_calls: bool | None = None
    text: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    max_output_tokens: Positive | None = None
    include: list[str] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    metadata: dict[str, Any] | None = None
    truncation: str | None = None
    stream: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    thinking_budget: Count | None = None
    return_prompt: bool = False
    receipt: bool = False


async def answer(request: Request, models: Models, store: Store, said: ResponsesRequest) -> Response:
    """The answer to a request."""
    for name in STORED:
        if (said.model_extra or {}).get(name) not in (None, False):
            raise WireError(f"{name}: this server stores nothing: send the items of the conversation", param=name)
    turns, places = _messages(said)
    with in_places(places):
        chat = prepare_chat(models, store, _as_chat(said, turns))
        head = _head(said, chat)
        if said.stream:
            parts = await chat.served.stream(request, chat.works())
            return streaming(parts, _events(chat, head, parts))
        (message,) = await chat.served.run_all(request, chat.works())
    items = Items()
    items.add_message(message)
    [*items.close(_logprobs(chat, message))]
    body = _response_body(chat, head, items, message)
    if said.return_prompt:
        body["prompt_token_ids"] = chat.prompt()
    return JSONResponse(body)


def _as_chat(said: ResponsesRequest, turns: list[dict[str, Any]]) -> ChatRequest:
    """Returns the request as a chat."""
    shared = ChatRequest.model_fields.keys() & ResponsesRequest.model_fields.keys()
    given = {**(said.model_extra or {}), **{name: getattr(said, name) for name in shared}}
    if said.text is not None and (form := said.text.get("format")) is not None:
        if said.response_format is not None:
            raise WireError("text.format and response_format are both given: give one of them", param="text.format")
        given["response_format"] = _format(form)
    with_logprobs = LOGPROBS in (said.include or []) or said.top_logprobs is not None
    given |= {"logprobs": with_logprobs, "top_logprobs": said.top_logprobs, "n": None, "stream": None}
    given |= {"tools": [_tool(number, tool) for number, tool in enumerate(said.tools or [])] or None}
    given |= {"messages": turns, "tool_choice": said.tool_choice}
    given |= {"max_completion_tokens": said.max_output_tokens, "max_tokens": None, "n_probs": None}
    return ChatRequest.model_validate(given)


def _format(form: Any) -> dict[str, Any]:
    kind = form.get("type") if isinstance(form, dict) else None
    if kind != "json_schema":
        return {"type": kind}
    inner = {name: form[name] for name in ("name", "schema", "strict", "description") if form.get(name) is not None}
    return {"type": kind, "json_schema": inner}


#: The fields of each type of tool.
TOOLS = {
    "function": ("name", "description", "parameters", "strict"),
    "custom": ("name", "description", "format"),
}


def _tool(number: int, tool: dict[str, Any]) -> dict[str, Any]:
    kind = tool.get("type")
    if not isinstance(kind, str) or kind not in TOOLS:
        place = f"tools[{number}].type"
        raise WireError(f"{place}: unknown type of tool {kind!r}: expected 'function' or 'custom'", param=place)
    return {"type": kind, kind: {name: tool[name] for name in TOOLS[kind] if tool.get(name) is not None}}


def _messages(said: ResponsesRequest) -> tuple[list[dict[str, Any]], list[str]]:
    """The items as a conversation, and where each message came from: calls belong to what the assistant said before."""
    places = ["instructions"] if said.instructions else []
    turns: list[dict[str, Any]] = [{"role": "system", "content": said.instructions}] if said.instructions else []
    items = [{"role": "user", "content": said.input}] if isinstance(said.input, str) else said.input
    if not items:
        raise WireError("input: expected at least one item, got none", param="input")
    for number, item in enumerate(items):
        place, kind = f"input[{number}]", item.get("type", "message")
        before = len(turns)
        if kind == "message":
            turns.append({"role": item.get("role"), "content": _text(item.get("content"), f"{place}.content")})
        elif kind in ("function_call", "custom_tool_call"):
            if not (turns and turns[-1]["role"] == "assistant"):
                turns.append({"role": "assistant", "content": ""})
            call: dict[str, Any] = {"id": item.get("call_id"), "type": "function"}
            if kind == "function_call":
                call["function"] = {"name": item.get("name"), "arguments": item.get("arguments") or "{}"}
            else:
                call |= {"type": "custom", "custom": {"name": item.get("name"), "input": item.get("input")}}
            turns[-1].setdefault("tool_calls", []).append(call)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            text = _text(item.get("output"), f"{place}.output")
            turns.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": text})
        elif kind != "reasoning":
            raise WireError(f"{place}.type: {kind!r} is not supported by this server", param=f"{place}.type")
        places += [place] * (len(turns) - before)
    return turns, places


def _text(content: Any, place: str) -> str | None:
    if not isinstance(content, list):
        return content if content is None else as_text(content)
    texts = []
    for number, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in ("input_text", "output_text", "text", "refusal"):
            where = f"{place}[{number}]"
            raise WireError(f"{where}.type: {kind!r}: only text is read by this server", param=f"{where}.type")
        texts.append(str(part.get("refusal" if kind == "refusal" else "text", "")))
    return "".join(texts)


def _head(said: ResponsesRequest, chat: PreparedChat) -> dict[str, Any]:
    """Returns the fields that are known before the model writes."""
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": current_time(),
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": said.instructions,
        "max_output_tokens": said.max_output_tokens,
        "model": chat.served.name,
        "output": [],
        "parallel_tool_calls": said.parallel_tool_calls is not False,
        "previous_response_id": None,
        "reasoning": said.reasoning or {"effort": None, "summary": None},
        "store": False,
        "temperature": 1.0 if said.temperature is None else said.temperature,
        "text": said.text or {"format": {"type": "text"}},
        "tool_choice": said.tool_choice or "auto",
        "tools": said.tools or [],
        "top_p": 1.0 if said.top_p is None else said.top_p,
        "truncation": said.truncation or "disabled",
        "usage": None,
        "metadata": said.metadata or {},
    }


def _logprobs(chat: PreparedChat, message: Message) -> list[dict[str, Any]]:
    return [logprob_json(one, chat.served.model) for one in message.logprobs]


def _response_body(chat: PreparedChat, head: dict[str, Any], items: Items, message: Message) -> dict[str, Any]:
    """The response, once its message is there."""
    stats, is_cut = message.stats, message.finish in CUT
    assert stats is not None
    return {
        **head,
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "output": items.all,
        "usage": {
            "input_tokens": stats.prompt_tokens,
            "input_tokens_details": {"cached_tokens": stats.prompt_tokens_reused},
            "output_tokens": stats.tokens,
            "output_tokens_details": {"reasoning_tokens": stats.reasoning_tokens},
            "total_tokens": stats.prompt_tokens + stats.tokens,
        },
        **({"receipt": message.receipt} if chat.said.receipt else {}),
    }


async def _events(chat: PreparedChat, head: dict[str, Any], parts: Parts[ChatEvent, Message]) -> AsyncIterator[bytes]:
    numbers = itertools.count()

    def number_event(one: Event) -> bytes:
        return event({**one, "sequence_number": next(numbers)}, one["type"])

    items = Items()
    yield number_event({"type": "response.created", "response": head})
    yield number_event({"type": "response.in_progress", "response": head})
    try:
        async for _, part in parts:
            for one in items.see(part):
                yield number_event(one)
    except REFUSALS as error:
        told_of = of_library(error)
        failed = {"code": told_of.code or "server_error", "message": told_of.message}
        yield number_event({"type": "error", "param": None, **failed})
        yield number_event({"type": "response.failed", "response": {**head, "status": "failed", "error": failed}})
        return
    (message,) = parts.results
    if not items.has("message") and not message.tool_calls:
        for one in items.add("message", ""):
            yield number_event(one)
    for one in items.close(_logprobs(chat, message)):
        yield number_event(one)
    whole = _response_body(chat, head, items, message)
    yield number_event({"type": f"response.{whole['status']}", "response": whole})
