"""What a new user does wrong: the answer names the field, and nothing comes that was to be held and is not."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from budget import BUDGET, cases
from schema_bombs import FAMILIES, NAMED, VALUES, WORDS
from serve.server import Server, serving

pytestmark = pytest.mark.model

COMPLETION, CHAT, RESPONSE, CHOOSE = "/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/choose"
ASKS: dict[str, dict[str, Any]] = {
    COMPLETION: {"prompt": "The sky is ", "max_tokens": 2},
    CHAT: {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2},
    RESPONSE: {"input": "Hi", "max_output_tokens": 2},
    CHOOSE: {"prompt": "The sky is ", "values": ["red", "blue"]},
}
ODD: list[Any] = [10**30, -(10**30), 2**63, 2**31, float("inf"), "x", "", [], {}, [[]], [None], True, 0, -1, 0.5]
#: What has other fields inside.
NESTED = ("messages", "structured_outputs", "text", "input", "constraint", "response_format", "tools")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(key=None) as server:
        yield server


def wrong(server: Server, path: str, body: Any) -> tuple[str | None, str]:
    """Which field a refusal names, and what it says."""
    reply = server.ask("POST", path, body, {"content-type": "application/json"} if isinstance(body, bytes) else None)
    assert reply.status == 400, (body, reply.status, reply.body[:200])
    error = reply.json()["error"]
    return error["param"], error["message"]


@pytest.mark.parametrize("path", ASKS)
def test_a_value_of_a_wrong_type_or_size_is_named_by_its_field(server: Server, path: str) -> None:
    spec = server.ask("GET", "/openapi.json").json()
    said = spec["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    fields = list(spec["components"]["schemas"][said.rpartition("/")[2]]["properties"])
    assert {*ASKS[path]} <= {*fields}
    for field in fields:
        for value in ODD:
            reply = server.ask("POST", path, {**ASKS[path], field: value})
            assert reply.status in (200, 400), (field, value, reply.body)
            error = reply.json()["error"] if reply.status == 400 else None
            if error is None or value == "" or field in NESTED:
                continue
            same = {"repetition_penalty": "repeat_penalty", "repeat_last_n": "penalty_last_n"}.get(field, field)
            assert field in error["message"] or same in error["message"], (field, value, error)
            if error["param"] is not None:
                assert error["param"].partition(".")[0].partition("[")[0] in fields, (field, value, error)


def test_types_that_may_be_several_are_told_together(server: Server) -> None:
    param, message = wrong(server, COMPLETION, {"prompt": 3})
    assert (param, message) == ("prompt", "prompt: Input should be a valid string or a valid list")
    assert wrong(server, COMPLETION, {"prompt": ["a", 3]})[0] == "prompt.1"
    assert wrong(server, COMPLETION, {"prompt": "a", "stop": 3})[0] == "stop"
    assert wrong(server, COMPLETION, {"prompt": "a", "stop": [""]})[0] == "stop[0]"
    assert wrong(server, COMPLETION, {"prompt": "a", "json_schema": "x"})[0] == "json_schema"
    assert wrong(server, CHAT, {"messages": [{"role": "user", "content": 3}]})[0] == "messages[0]"


def test_bodies_that_are_none(server: Server) -> None:
    assert wrong(server, COMPLETION, b'{"prompt": }') == (
        None,
        "invalid JSON in the body: Expecting value, at character 11",
    )
    for body in (b"\xff\xfe\xfa", b'{"prompt": "\xe9"}', b'{"prompt":' + b"[" * 90_000):
        assert wrong(server, COMPLETION, body)[0] is None
    assert wrong(server, COMPLETION, b'{"prompt": "\\ud800"}') == (None, "invalid text: half a surrogate pair")


@pytest.mark.parametrize("path", [COMPLETION, CHAT, RESPONSE])
@pytest.mark.parametrize(
    ("field", "meant"),
    [
        ("contraint", "constraint"),
        ("constraints", "constraint"),
        ("responseFormat", "response_format"),
        ("structured_output", "structured_outputs"),
        ("grammer", "grammar"),
        ("jsonSchema", "json_schema"),
        ("format", None),
        ("schema", None),
        ("response_schema", None),
    ],
)
def test_a_constraint_under_a_name_that_is_none_is_no_200_without_it(
    server: Server, path: str, field: str, meant: str | None
) -> None:
    param, message = wrong(server, path, {**ASKS[path], field: {"type": "object"}})
    assert param == field
    assert message.endswith(f"did you mean {meant}?" if meant else "use `constraint`")


def test_other_fields_of_clients_change_nothing(server: Server) -> None:
    others = {"user": "a", "store": False, "metadata": {"a": "b"}, "service_tier": "auto", "reasoning_effort": "low"}
    others |= {"reasoning_format": "auto", "cache_prompt": True, "id_slot": 1, "samplers": [], "verbosity": "low"}
    for path in (COMPLETION, CHAT):
        told = [server.ask("POST", path, {**ASKS[path], "temperature": 0, **own}).json() for own in ({}, others)]
        assert json.dumps(told[0]["choices"]) == json.dumps(told[1]["choices"])


def test_schemas_of_strangers_are_held_or_refused_by_their_field(server: Server) -> None:
    """Malformed ones, and ones that multiply: nothing is the server's own fault, and it lives on."""
    draw = random.Random(0 if BUDGET < 1 else None)
    malformed = [{word: value} for word in WORDS for value in VALUES]
    schemas: list[Any] = [
        {"type": "object", "properties": {"a": part}} if draw.random() < 0.5 else {"type": "object", **part}
        for part in draw.sample(malformed, cases(len(malformed)))
    ]
    # Those that multiply are asked for in one way each: tests/rules/test_schema_bombs.py has them in all.
    bombs = [*NAMED.values(), *(family(24) for family in FAMILIES.values())]
    for number, schema in enumerate([*schemas, *bombs]):
        tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
        held = {"type": "json_schema", "json_schema": {"name": "f", "schema": schema}}
        asks = [{"tools": [tool], "tool_choice": "required"}, {"tools": [tool]}, {"response_format": held}]
        for ask in asks if number < len(schemas) else draw.sample(asks, 1):
            reply = server.ask("POST", CHAT, {**ASKS[CHAT], **ask})
            assert reply.status in (200, 400), (schema, reply.status, reply.body[:300])
            if reply.status == 400:
                assert reply.json()["error"]["type"] == "invalid_request_error", reply.body[:300]
    assert server.ask("GET", "/health").status == 200


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (CHAT, {"messages": [{"role": "user", "content": ""}] * 150_000}, "messages"),
        (CHAT, {"messages": [{"role": "user", "content": "a" * (12 << 20)}]}, "messages"),
        (RESPONSE, {"input": "a" * (12 << 20)}, "messages"),
        (COMPLETION, {"prompt": "a" * (12 << 20)}, "prompt"),
    ],
    ids=["messages", "a message", "an input", "a prompt"],
)
def test_what_cannot_fit_is_refused_before_it_is_read(server: Server, path: str, body: Any, param: str) -> None:
    reply = server.ask("POST", path, {**body, "max_tokens": 1} if path != RESPONSE else body, timeout=30)
    error = reply.json()["error"]
    assert (reply.status, error["code"], error["param"]) == (400, "context_length_exceeded", param)
    assert "do not fit into the context of" in error["message"]


def test_prompts_of_control_tokens_are_read_in_linear_time(server: Server) -> None:
    """llama.cpp took minutes for these, and nothing ended it."""
    with ThreadPoolExecutor(1) as pool:
        body = {"prompt": "<|im_start|>" * 100_000, "max_tokens": 1}
        asked = pool.submit(server.ask, "POST", COMPLETION, body, timeout=60)
        while not asked.done():
            assert server.ask("GET", "/health", timeout=20).status == 200
            time.sleep(0.05)
        error = asked.result().json()["error"]
        assert (asked.result().status, error["code"]) == (400, "context_length_exceeded")
