"""`POST /v1/messages` and `/v1/messages/count_tokens`: a chat as turns of blocks, in Anthropic's format."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pydantic_core
from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from tokentrie import Message
from tokentrie.results import ChatEvent, ChatStats
from tokentrie.serve.errors import REFUSALS, WireError, of_library
from tokentrie.serve.models import Models, Parts
from tokentrie.serve.store import Store
from tokentrie.serve.wire.chatting import ChatRequest, PreparedChat, prepare_chat
from tokentrie.serve.wire.generating import Draws, Positive, event, new_id, streaming
from tokentrie.serve.wire.holding import ConstraintFields
from tokentrie.serve.wire.places import in_places

#: `stop_reason` by the way in which a reply ended; of others the turn has ended.
REASONS = {
    "tool_calls": "tool_use",
    "stop_text": "stop_sequence",
    "max_tokens": "max_tokens",
    "context_full": "model_context_window_exceeded",
}
#: `tool_choice` of chats by its type; "tool" names one.
CHOICES = {"auto": "auto", "any": "required", "none": "none"}
#: Fields that only a server supports that stores files, or runs tools itself.
STORED = ("container", "mcp_servers")
#: Types of tools that clients run; others are run by Anthropic, or have a schema of their own.
OWN_TOOLS = (None, "custom")


class MessagesRequest(Draws, ConstraintFields):
    """A conversation as turns of blocks. `max_tokens` may be left out where tokens are only counted."""

    model: str | None = None
    messages: Annotated[list[dict[str, Any]], Field(min_length=1)]
    max_tokens: Positive | None = None
    system: str | list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: dict[str, Any] | None = None
    tools_in: str | None = None
    show_schema: bool | None = None
    thinking: dict[str, Any] | None = None
    stop_sequences: list[str] | None = None
    output_config: dict[str, Any] | None = None
    output_format: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    thread: dict[str, Any] | None = None
    stream: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None


async def answer(request: Request, models: Models, store: Store, said: MessagesRequest) -> Response:
    """Returns the reply as a message of blocks, or as a stream of events."""
    if said.max_tokens is None:
        raise WireError("max_tokens: expected a number of tokens, got none", param="max_tokens")
    with _prepare(models, store, said) as chat:
        head = {"id": new_id("msg"), "type": "message", "role": "assistant", "model": chat.served.name}
        if said.stream:
            parts = await chat.served.stream(request, chat.works())
            return streaming(parts, _events(chat, head, parts))
        (message,) = await chat.served.run_all(request, chat.works())
    return JSONResponse(_whole(chat, head, message))


async def count(models: Models, store: Store, said: MessagesRequest) -> dict[str, int]:
    """Returns the number of tokens of the prompt, with tools and system message."""
    with _prepare(models, store, said) as chat:
        return {"input_tokens": len(await asyncio.to_thread(chat.prompt))}


@contextlib.contextmanager
def _prepare(models: Models, store: Store, said: MessagesRequest) -> Iterator[PreparedChat]:
    """Prepares the chat; errors inside name the fields of this request."""
    _refuse_stored(said)
    turns, places = _turns(said)
    format_place, response_format = _response_format(said)
    with in_places(places, format_place and f"{format_place}.schema"):
        yield prepare_chat(models, store, _as_chat(said, turns, response_format))


def _refuse_stored(said: MessagesRequest) -> None:
    """Refuses what only a server supports that stores conversations, or runs tools.

    A thread may begin: the request has the whole conversation. One that goes on has its last turn alone; clients that
    are told that the thread is gone send all of it again.
    """
    for name in STORED:
        if (said.model_extra or {}).get(name) not in (None, [], {}):
            raise WireError(f"{name}: this server stores nothing and runs no tools", param=name)
    kind = "create" if said.thread is None else said.thread.get("type")
    if kind == "continue":
        message = "thread.previous_message_id: this server stores nothing: send the whole conversation"
        details = {"error_code": "thread_not_found"}
        raise WireError(message, status=404, param="thread.previous_message_id", details=details)
    if kind != "create":
        raise WireError(f"thread.type: expected create or continue, got {kind!r}", param="thread.type")


def _as_chat(said: MessagesRequest, turns: list[dict[str, Any]], response_format: dict[str, Any] | None) -> ChatRequest:
    """Returns the request as a chat."""
    if said.stop is not None and said.stop_sequences is not None:
        raise WireError("stop and stop_sequences are both given: give one of them", param="stop")
    shared = ChatRequest.model_fields.keys() & MessagesRequest.model_fields.keys()
    given = {**(said.model_extra or {}), **{name: getattr(said, name) for name in shared}}
    given |= {"messages": turns, "stream": None, "n": None, "stop": said.stop_sequences or said.stop}
    given["response_format"] = response_format
    given["tools"] = [_tool(number, tool) for number, tool in enumerate(said.tools or [])] or None
    choice = said.tool_choice or {"type": "auto"}
    kind = choice.get("type")
    if kind == "tool":
        given["tool_choice"] = {"type": "function", "function": {"name": choice.get("name")}}
    elif isinstance(kind, str) and kind in CHOICES:
        given["tool_choice"] = CHOICES[kind]
    else:
        message = f"tool_choice.type: expected auto, any, tool or none, got {kind!r}"
        raise WireError(message, param="tool_choice.type")
    given["parallel_tool_calls"] = not choice.get("disable_parallel_tool_use", False)
    # As in Anthropic's API, a model thinks only if the request asks for it.
    thinks, given["thinking_budget"] = _thinking(said.thinking)
    given["chat_template_kwargs"] = {"enable_thinking": thinks, **(said.chat_template_kwargs or {})}
    # Text of the assistant at the end is the beginning of the reply.
    last = turns[-1]
    given["continue_final_message"] = last["role"] == "assistant" and "tool_calls" not in last
    return ChatRequest.model_validate(given)


def _thinking(given: dict[str, Any] | None) -> tuple[bool, int | None]:
    """Returns whether the model may think, and with how many tokens at most."""
    kind = "disabled" if given is None else given.get("type")
    if kind not in ("enabled", "disabled", "adaptive"):
        message = f"thinking.type: expected enabled, adaptive or disabled, got {kind!r}"
        raise WireError(message, param="thinking.type")
    budget = (given or {}).get("budget_tokens") if kind == "enabled" else None
    if budget is not None and (type(budget) is not int or not 0 < budget < 2**31):
        message = f"thinking.budget_tokens: expected a number of tokens of at least 1, got {budget!r}"
        raise WireError(message, param="thinking.budget_tokens")
    return kind != "disabled", budget


def _response_format(said: MessagesRequest) -> tuple[str | None, dict[str, Any] | None]:
    """Returns the `response_format` of the chat, and the field of Anthropic's clients that it stands for, if any."""
    fields = {
        "output_config.format": (said.output_config or {}).get("format"),
        "output_format": said.output_format,
        "response_format": said.response_format,
    }
    places = [place for place, value in fields.items() if value is not None]
    if len(places) > 1:
        raise WireError(f"{places[0]} and {places[1]} are both given: give one of them", param=places[1])
    if not places or places == ["response_format"]:
        return None, said.response_format
    (place,) = places
    value = fields[place]
    if not isinstance(value, dict) or value.get("type") != "json_schema" or "schema" not in value:
        message = f'{place}: expected {{"type": "json_schema", "schema": …}}, got {json.dumps(value)[:80]}'
        raise WireError(message, param=place)
    return place, {"type": "json_schema", "json_schema": {"name": "output", "schema": value["schema"]}}


def _tool(number: int, tool: dict[str, Any]) -> dict[str, Any]:
    """Returns a tool as chats write it."""
    if (kind := tool.get("type")) not in OWN_TOOLS:
        place = f"tools[{number}].type"
        message = f"{place}: {kind!r} is not supported: this server runs no tools: give a name and an input_schema"
        raise WireError(message, param=place)
    if not isinstance(tool.get("input_schema"), dict):
        place = f"tools[{number}].input_schema"
        raise WireError(f"{place}: expected a JSON Schema, got {tool.get('input_schema')!r}", param=place)
    function = {name: tool[name] for name in ("name", "description", "strict") if tool.get(name) is not None}
    return {"type": "function", "function": {**function, "parameters": tool["input_schema"]}}


def _turns(said: MessagesRequest) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns the messages of the chat, and the field of the request that each came from."""
    turns: list[dict[str, Any]] = []
    places: list[str] = []
    if said.system:
        turns.append({"role": "system", "content": _texts(said.system, "system")})
        places.append("system")
    for number, turn in enumerate(said.messages):
        place, role, content = f"messages[{number}]", turn.get("role"), turn.get("content")
        before = len(turns)
        if role not in ("user", "assistant", "system"):
            raise WireError(f"{place}.role: expected user or assistant, got {role!r}", param=f"{place}.role")
        if isinstance(content, str):
            turns.append({"role": role, "content": content})
        elif role == "assistant":
            turns.append(_assistant(content, f"{place}.content"))
        else:
            turns += _user(role, content, f"{place}.content")
        places += [place] * (len(turns) - before)
    return turns, places


def _assistant(content: Any, place: str) -> dict[str, Any]:
    """Returns a turn of the assistant: its thoughts, its text, its calls."""
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for where, block in _blocks(content, place):
        match block.get("type"):
            case "text":
                texts.append(_text(block, where))
            case "thinking":
                thoughts.append(str(block.get("thinking", "")))
            case "redacted_thinking":
                pass
            case "tool_use":
                arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
                function = {"name": block.get("name"), "arguments": arguments}
                calls.append({"id": block.get("id"), "type": "function", "function": function})
            case kind:
                raise _unknown_block(kind, where)
    turn: dict[str, Any] = {"role": "assistant", "content": "".join(texts)}
    if thoughts:
        turn["reasoning_content"] = "\n".join(thoughts)
    return turn | ({"tool_calls": calls} if calls else {})


def _user(role: str, content: Any, place: str) -> list[dict[str, Any]]:
    """Returns the turns that a turn of the user stands for: results of tools, and text."""
    turns: list[dict[str, Any]] = []
    for where, block in _blocks(content, place):
        kind = block.get("type")
        if kind == "tool_result":
            result = block.get("content")
            text = "" if result is None else _texts(result, f"{where}.content")
            turns.append({"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": text})
        elif kind != "text":
            raise _unknown_block(kind, where)
        elif turns and turns[-1]["role"] == role:
            turns[-1]["content"] += _text(block, where)
        else:
            turns.append({"role": role, "content": _text(block, where)})
    return turns


def _blocks(content: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the blocks of a content with their places."""
    if not isinstance(content, list) or not content:
        raise WireError(f"{place}: expected a text or a list of blocks, got {content!r}", param=place)
    for number, block in enumerate(content):
        where = f"{place}[{number}]"
        if not isinstance(block, dict):
            raise WireError(f"{where}: expected an object with a type, got {block!r}", param=where)
        yield where, block


def _texts(content: Any, place: str) -> str:
    """Returns the text of a content that has nothing else."""
    if isinstance(content, str):
        return content
    texts = []
    for where, block in _blocks(content, place):
        if block.get("type") != "text":
            raise _unknown_block(block.get("type"), where)
        texts.append(_text(block, where))
    return "".join(texts)


def _text(block: dict[str, Any], place: str) -> str:
    if not isinstance(text := block.get("text"), str):
        raise WireError(f"{place}.text: expected a text, got {text!r}", param=f"{place}.text")
    return text


def _unknown_block(kind: Any, place: str) -> WireError:
    message = f"{place}.type: {kind!r} is not supported: this server reads text, thinking, tool_use and tool_result"
    return WireError(message, param=f"{place}.type")


#: The block that an event of a chat belongs to.
KINDS = {"reasoning": "thinking", "content": "text", "arguments": "tool_use"}
#: The field of the text of a block, and the type and field of its deltas.
FIELDS = {
    "thinking": ("thinking", "thinking_delta", "thinking"),
    "text": ("text", "text_delta", "text"),
    "tool_use": ("json", "input_json_delta", "partial_json"),
}


class Blocks:
    """The blocks of a reply, and their events. One block is open at a time.

    `prefill` is the beginning of the reply that came with the request; it is left out.
    """

    def __init__(self, prefill: str) -> None:
        self._prefill = prefill
        self._all: list[dict[str, Any]] = []
        self._is_open = False

    def add_message(self, message: Message) -> None:
        """Adds all of a message at once."""
        if message.reasoning:
            [*self._add("thinking", message.reasoning)]
        if text := self._without_prefill(message.content):
            [*self._add("text", text)]
        for call in message.tool_calls:
            [*self._begin_call(call.id, call.name), *self._add("tool_use", call.arguments)]

    def add_event(self, part: ChatEvent) -> Iterator[dict[str, Any]]:
        """Adds an event of a chat, and yields the events that clients get for it."""
        if part.kind == "call_begins":
            yield from self._begin_call(part.id, part.name)
        elif part.kind in KINDS and (text := self._without_prefill(part.text) if part.kind == "content" else part.text):
            yield from self._add(KINDS[part.kind], text)

    def close(self) -> Iterator[dict[str, Any]]:
        """Ends the block that is open."""
        if self._is_open:
            self._is_open = False
            yield {"type": "content_block_stop", "index": len(self._all) - 1}

    def contents(self) -> list[dict[str, Any]]:
        """Returns the blocks. Arguments of a call that was cut off are read as far as they go."""
        return [_with_input(block) if block["type"] == "tool_use" else block for block in self._all]

    def _without_prefill(self, text: str) -> str:
        """Returns the text without the part of the prefill that it repeats."""
        pairs = zip(text, self._prefill, strict=False)
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        self._prefill = self._prefill[same:] if same == len(text) else ""
        return text[same:]

    def _begin_call(self, identity: str, name: str) -> Iterator[dict[str, Any]]:
        call = {"type": "tool_use", "id": identity, "name": name}
        yield from self._open({**call, "json": ""}, {**call, "input": {}})

    def _add(self, kind: str, text: str) -> Iterator[dict[str, Any]]:
        if not (self._is_open and self._all[-1]["type"] == kind):
            block = {"type": kind, FIELDS[kind][0]: ""}
            # Thoughts of Anthropic's models are signed; clients expect the field.
            block |= {"signature": ""} if kind == "thinking" else {}
            yield from self._open(block, dict(block))
        field, delta, name = FIELDS[kind]
        self._all[-1][field] += text
        yield {
            "type": "content_block_delta",
            "index": len(self._all) - 1,
            "delta": {"type": delta, name: text},
        }

    def _open(self, block: dict[str, Any], shown: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from self.close()
        self._is_open = True
        self._all.append(block)
        yield {"type": "content_block_start", "index": len(self._all) - 1, "content_block": shown}


def _with_input(call: dict[str, Any]) -> dict[str, Any]:
    """Returns the block of a call with its arguments as an object."""
    arguments = pydantic_core.from_json(call["json"] or "{}", allow_partial="trailing-strings")
    return {**{name: value for name, value in call.items() if name != "json"}, "input": arguments}


def _prefill_of(chat: PreparedChat) -> str:
    """Returns the beginning of the reply that came with the request."""
    return chat.messages[-1]["content"] if chat.said.continue_final_message else ""


def _usage(stats: ChatStats) -> dict[str, Any]:
    """Returns the usage; tokens of the prompt that were in the KV cache are counted apart."""
    return {
        "input_tokens": stats.prompt_tokens - stats.prompt_tokens_reused,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": stats.prompt_tokens_reused,
        "output_tokens": stats.tokens,
        "output_tokens_details": {"thinking_tokens": stats.reasoning_tokens},
    }


def _end(message: Message) -> dict[str, Any]:
    """Returns why the reply ended, and the stop sequence that ended it."""
    return {"stop_reason": REASONS.get(message.finish or "", "end_turn"), "stop_sequence": message.stop_text}


def _whole(chat: PreparedChat, head: dict[str, Any], message: Message) -> dict[str, Any]:
    """Returns the message."""
    blocks = Blocks(_prefill_of(chat))
    blocks.add_message(message)
    assert message.stats is not None
    return {**head, "content": blocks.contents(), **_end(message), "usage": _usage(message.stats)}


async def _events(chat: PreparedChat, head: dict[str, Any], parts: Parts[ChatEvent, Message]) -> AsyncIterator[bytes]:
    def encode(one: dict[str, Any]) -> bytes:
        return event(one, one["type"])

    blocks = Blocks(_prefill_of(chat))
    try:
        tokens = len(await asyncio.to_thread(chat.prompt))
        usage = {"input_tokens": tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        start = {**head, "content": [], "stop_reason": None, "stop_sequence": None}
        yield encode({"type": "message_start", "message": {**start, "usage": {**usage, "output_tokens": 0}}})
        async for _, part in parts:
            for one in blocks.add_event(part):
                yield encode(one)
    except REFUSALS as error:
        yield encode(of_library(error).anthropic_envelope())
        return
    (message,) = parts.results
    assert message.stats is not None
    for one in blocks.close():
        yield encode(one)
    yield encode({"type": "message_delta", "delta": _end(message), "usage": _usage(message.stats)})
    yield encode({"type": "message_stop"})
