"""`/v1/messages`: what is asked for is held, streams say what whole answers say, and what cannot be is 400 by name."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from budget import cases
from serve.server import KEY, Server, serving
from serve.streams import events

pytestmark = pytest.mark.model

PATH, COUNT = "/v1/messages", "/v1/messages/count_tokens"
HI = [{"role": "user", "content": "please open a room"}]
TOOL = {
    "name": "open_room",
    "input_schema": {
        "type": "object",
        "properties": {"room": {"enum": ["red", "blue"]}, "floor": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["room", "floor"],
        "additionalProperties": False,
    },
}
ASK: dict[str, Any] = {"messages": HI, "max_tokens": 60, "temperature": 0}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def message_events(body: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The type and the data of each event; both say the same type."""
    found = [(kind, json.loads(data)) for kind, data in events(body)]
    assert all(kind == data["type"] for kind, data in found)
    return [(data["type"], data) for _, data in found]


def put_together(told: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """What a client makes of a stream."""
    (first, start), *rest = told
    assert first == "message_start"
    assert rest[-1][0] == "message_stop"
    message = start["message"]
    texts: list[str] = []
    for kind, data in rest:
        if kind == "content_block_start":
            assert data["index"] == len(message["content"])
            message["content"].append(data["content_block"])
            texts.append("")
        elif kind == "content_block_delta":
            assert data["index"] == len(message["content"]) - 1
            texts[-1] += next(value for name, value in data["delta"].items() if name != "type")
        elif kind == "message_delta":
            message |= data["delta"]
            message["usage"] = data["usage"]
    for block, text in zip(message["content"], texts, strict=True):
        if block["type"] == "tool_use":
            block["input"] = json.loads(text)
        else:
            block[block["type"]] = text
    return message


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"tools": [TOOL], "tool_choice": {"type": "any"}},
        {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "open_room", "disable_parallel_tool_use": True}},
        {"tools": [TOOL], "tool_choice": {"type": "none"}},
        {"output_config": {"format": {"type": "json_schema", "schema": TOOL["input_schema"]}}},
        {"output_format": {"type": "json_schema", "schema": {"enum": ["a", "b"]}}},
        {"constraint": {"choice": ["yes", "no"]}},
        {"stop_sequences": ["e"]},
        {"stop_sequences": ["zzzz", "e", "o", "i", "n"]},
        {"max_tokens": 2},
        {"messages": [*HI, {"role": "assistant", "content": "The room is"}]},
        {"thinking": {"type": "enabled", "budget_tokens": 5}},
        {"system": [{"type": "text", "text": "Be short."}]},
    ],
    ids=lambda more: json.dumps(more)[:40],
)
def test_a_stream_is_the_whole_answer(server: Server, more: dict[str, Any]) -> None:
    reply = server.ask("POST", PATH, {**ASK, **more})
    assert reply.status == 200, reply.body
    whole = reply.json()
    streamed = put_together(message_events(server.ask("POST", PATH, {**ASK, **more, "stream": True}).body))
    # The ids of calls, too: those of the most probable reply are the same each time.
    ids = [block["id"] for block in whole["content"] if block["type"] == "tool_use"]
    assert len({*ids}) == len(ids)
    for one in (whole, streamed):
        one.pop("id")
        # The second finds the prompt of the first in the KV cache.
        usage = one.pop("usage")
        one["prompt"] = usage["input_tokens"] + usage["cache_read_input_tokens"]
        one["written"] = usage["output_tokens"]
    assert whole == streamed
    counted = server.ask("POST", COUNT, {**ASK, **more}).json()
    assert counted == {"input_tokens": whole["prompt"]}


def test_what_is_asked_for_is_held(server: Server) -> None:
    def content(**more: Any) -> list[dict[str, Any]]:
        reply = server.ask("POST", PATH, {**ASK, **more})
        assert reply.status == 200, reply.body
        return reply.json()["content"]  # type: ignore[no-any-return]

    (call,) = content(tools=[TOOL], tool_choice={"type": "any", "disable_parallel_tool_use": True})
    assert call["name"] == "open_room"
    assert call["input"]["room"] in ("red", "blue")
    assert 0 <= call["input"]["floor"] <= 9
    (text,) = content(output_config={"format": {"type": "json_schema", "schema": TOOL["input_schema"]}})
    assert json.loads(text["text"])["room"] in ("red", "blue")
    assert content(tools=[{**TOOL, "input_schema": {"type": "object"}}], tool_choice={"type": "none"})[0]["text"]
    begun = [*HI, {"role": "assistant", "content": "The room is"}]
    assert not content(messages=begun)[0]["text"].startswith("The room is"), "the reply goes on behind it"


def test_a_conversation_with_calls_goes_on(server: Server) -> None:
    called = {"type": "tool_use", "id": "abcdefghi", "name": "open_room", "input": {"room": "red", "floor": 1}}
    result = {"type": "tool_result", "tool_use_id": "abcdefghi", "content": [{"type": "text", "text": "It is open."}]}
    thought = {"type": "thinking", "thinking": "A room.", "signature": ""}
    turns = [
        *HI,
        {"role": "assistant", "content": [thought, {"type": "text", "text": "At once."}, called]},
        {"role": "user", "content": [result, {"type": "text", "text": "Thanks. "}, {"type": "text", "text": "Bye."}]},
    ]
    reply = server.ask("POST", PATH, {**ASK, "messages": turns, "tools": [TOOL]})
    assert reply.status == 200, reply.body
    shown = server.ask("POST", COUNT, {"messages": turns, "tools": [TOOL]}).json()["input_tokens"]
    shorter = server.ask("POST", COUNT, {"messages": turns[:1], "tools": [TOOL]}).json()["input_tokens"]
    assert shown > shorter + 10


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "a"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": []}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"system": [{"type": "image"}]}, "system[0].type"),
        ({"tools": [{"name": "a"}]}, "tools[0].input_schema"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type"),
        ({"tools": [TOOL], "tool_choice": {"type": "required"}}, "tool_choice.type"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "b"}}, "tool_choice"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"thinking": {"type": "enabled", "budget_tokens": "5"}}, "thinking.budget_tokens"),
        ({"output_config": {"format": {"type": "regex"}}}, "output_config.format"),
        ({"output_format": {"type": "json_schema", "schema": {"type": "x"}}}, "output_format.schema"),
        ({"output_format": {}, "constraint": {"choice": ["a"]}}, "output_format"),
        ({"stop": "a", "stop_sequences": ["b"]}, "stop"),
        ({"thread": {"type": "fork"}}, "thread.type"),
        ({"thread": {}}, "thread.type"),
        ({"mcp_servers": [{"type": "url", "url": "https://localhost", "name": "a"}]}, "mcp_servers"),
        ({"container": "c"}, "container"),
    ],
    ids=lambda one: one if isinstance(one, str) else None,
)
def test_what_cannot_be_is_named(server: Server, more: dict[str, Any], says: str) -> None:
    reply = server.ask("POST", PATH, {**ASK, **more})
    told = reply.json()
    assert (reply.status, told["type"], told["error"]["type"]) == (400, "error", "invalid_request_error"), told
    assert says in told["error"]["message"]


def test_threads_are_sent_again_as_a_whole(server: Server) -> None:
    """The first turn of a thread is the whole conversation; a later one is told that nothing was stored."""
    assert server.ask("POST", PATH, {**ASK, "thread": {"type": "create"}}).status == 200
    for path in (PATH, COUNT):
        on = server.ask("POST", path, {**ASK, "thread": {"type": "continue", "previous_message_id": "msg-1"}})
        error = on.json()["error"]
        assert (on.status, error["type"]) == (404, "not_found_error")
        assert error["details"] == {"error_code": "thread_not_found"}
        assert error["param"] == "thread.previous_message_id"


def test_models_as_clients_of_anthropic_read_them(server: Server) -> None:
    listed = server.ask("GET", "/v1/models").json()
    (model,) = listed["data"]
    assert (listed["has_more"], listed["first_id"], listed["last_id"]) == (False, model["id"], model["id"])
    assert (model["type"], model["display_name"]) == ("model", model["id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", model["created_at"])
    assert server.ask("GET", f"/v1/models/{model['id']}").json() == model


def test_keys(server: Server) -> None:
    assert server.ask("POST", PATH, ASK, {"x-api-key": KEY}, key=None).status == 200
    refused = server.ask("POST", PATH, ASK, {"x-api-key": "wrong"}, key=None)
    assert (refused.status, refused.json()["error"]["type"]) == (401, "authentication_error")
    assert (
        server.ask("POST", "/v1/choose", {"prompt": "a", "values": ["b"]}, {"x-api-key": "no"}, key=None).status == 401
    )


ODD: list[Any] = [10**30, -1, 0, True, "x", "", [], {}, [[]], [None], 0.5, {"type": None}, {"type": "x"}, [{"type": 5}]]


def test_no_field_of_any_shape_fails_the_server(server: Server) -> None:
    """Each answer is 400 in the envelope, or 200; and what asks for a constraint is never 200 without it."""
    draw = random.Random(5)
    fields = [*ASK, "system", "tools", "tool_choice", "thinking", "stop_sequences", "output_config", "output_format"]
    blocks = ["text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document", None, 5]
    names = ["text", "thinking", "id", "name", "input", "tool_use_id", "content", "is_error", "cache_control"]
    for _ in range(cases(2000)):
        body: dict[str, Any] = {**ASK, "max_tokens": 3}
        if draw.random() < 0.6:
            block = {name: draw.choice([*ODD, "a", "b"]) for name in draw.sample(names, draw.randint(0, 4))}
            block["type"] = draw.choice(blocks)
            content = draw.choice([[block], [block, {"type": "text", "text": "a"}], block])
            body["messages"] = [*HI, {"role": draw.choice(["user", "assistant", "system", 5]), "content": content}]
        for name in draw.sample(fields, draw.randint(0, 2)):
            body[name] = draw.choice(ODD)
        body["stream"] = draw.random() < 0.3
        reply = server.ask("POST", draw.choice([PATH, PATH, COUNT]), body)
        assert reply.status in (200, 400), (body, reply.status, reply.body)
        if reply.status == 400:
            assert reply.json()["type"] == "error", (body, reply.body)
        asks = body.get("output_format") or (body.get("output_config") or {}) if reply.status == 200 else None
        assert not (isinstance(asks, dict) and "format" in asks), body
    assert server.ask("GET", "/health").status == 200
