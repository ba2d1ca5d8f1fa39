"""Every field of every route, with every type of JSON: what is wrong is refused, and nothing ends as a fault of ours.

The requests are made of the OpenAPI document, which says the types of fields, and of one good request for each route,
whose inner values are exchanged as well.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi")

import tokentrie
from serve.application.in_process import InProcess
from tokentrie.serve import Settings, create_app
from tokentrie.serve.models import ServedModel

pytestmark = pytest.mark.model

USER = {"role": "user", "content": "Hi"}
MESSAGES: dict[str, Any] = {
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [
        USER,
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "F.", "signature": ""},
                {"type": "tool_use", "id": "a12345678", "name": "f", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a12345678", "content": [{"type": "text", "text": "1"}]},
                {"type": "text", "text": "Hi"},
            ],
        },
    ],
    "tools": [{"name": "f", "description": "F.", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "none"},
    "max_tokens": 1,
    "stop_sequences": ["x"],
    "thinking": {"type": "disabled"},
    "output_config": {"format": {"type": "json_schema", "schema": {"type": "boolean"}}},
    "metadata": {"user_id": "a"},
    "thread": {"type": "create"},
    "chat_template_kwargs": {"enable_thinking": False},
}
GRAMMAR: dict[str, Any] = {"type": "grammar"}
LARK: dict[str, Any] = {"syntax": "lark", "definition": "start: /[ab]{1,3}/"}
NAMED = {"type": "function", "function": {"name": "f"}}
TAG = {"type": "tag", "begin": "<f>", "content": {"type": "regex", "pattern": "[0-9]"}, "end": "</f>"}
TAGS = {"type": "triggered_tags", "triggers": ["<f"], "tags": [TAG], "at_least_one": True, "excludes": ["x"]}
#: Options of both formats of decisions.
DECIDED = {
    "readout": "text", "list_options": True, "permute": 2, "order": "balanced", "order_confidence": 0.9,
    "prior": "none", "threshold": 0.1, "out_of_scope": True, "escalate": 0.0,
    "think_tokens": 4, "top": 3, "max_rows": 64, "return_prompt": True,
}  # fmt: skip
#: A good request for each route, with inner values of every kind of it.
GOOD: dict[tuple[str, str], dict[str, Any]] = {
    ("post", "/v1/chat/completions"): {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
            USER,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "a12345678", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "a12345678", "content": "1"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "f", "description": "F.", "strict": False, "parameters": {}}},
            {"type": "custom", "custom": {"name": "g", "description": "G.", "format": GRAMMAR | {"grammar": LARK}}},
        ],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED]}},
        "parallel_tool_calls": False,
        "response_format": {"type": "structural_tag", "format": TAGS},
        "max_tokens": 1,
        "stop": ["x"],
        "logit_bias": {"5": 1.0},
        "stream_options": {"include_usage": True},
        "chat_template_kwargs": {"enable_thinking": False},
    },
    ("post", "/v1/completions"): {
        "prompt": ["The sky is "],
        "max_tokens": 1,
        "stop": ["x"],
        "structured_outputs": {"choice": ["a", "b"]},
    },
    ("post", "/v1/responses"): {
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"type": "function_call", "call_id": "a12345678", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a12345678", "output": "1"},
            {"type": "custom_tool_call", "call_id": "b12345678", "name": "g", "input": "ab"},
            {"type": "custom_tool_call_output", "call_id": "b12345678", "output": "1"},
        ],
        "tools": [
            {"type": "function", "name": "f", "description": "F.", "strict": True, "parameters": {"type": "object"}},
            {"type": "custom", "name": "g", "description": "G.", "format": GRAMMAR | LARK},
        ],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "g"}]},
        "instructions": "Be brief.",
        "max_output_tokens": 1,
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "boolean"}}},
        "reasoning": {"effort": "low"},
        "include": ["message.output_text.logprobs"],
        "metadata": {"a": "b"},
    },
    ("post", "/v1/messages"): MESSAGES,
    ("post", "/v1/messages/count_tokens"): MESSAGES,
    ("post", "/v1/decisions"): {
        "model": "any",
        **DECIDED,
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
        "questions": [
            {"type": "predicate", "name": "a", "instructions": "On?"},
            {"type": "choice", "name": "b", "instructions": "?", "choices": [{"value": "x"}, {"value": True}]},
            {"type": "score", "name": "c", "instructions": "?", "levels": [{"label": "x"}, {"label": "y"}]},
        ],
    },
    ("post", "/v1/systemone"): {
        "model": "any",
        **DECIDED,
        "state": {"a": 1},
        "questions": {
            "a": {"type": "noul", "instructions": "On?", "criteria": {"true": "x"}},
            "b": {"type": "choice", "criteria": {"x": None, "y": "z"}},
            "c": {"type": "score", "criteria": ["x", "y"]},
        },
    },
    ("post", "/v1/choose"): {"messages": [USER], "values": ["red", "blue"], "top": 1},
    ("post", "/v1/probability"): {
        "messages": [USER],
        "constraint": {"regex": "[0-9]{1,2}"},
        "text": "7",
        "max_rows": 40,
        "max_tokens": 4,
        "samples": 2,
    },
    ("post", "/v1/rerank"): {"query": "a", "documents": ["b", {"text": "c"}], "top_n": 1, "return_documents": True},
    ("post", "/v1/embeddings"): {"input": ["a", "b"], "encoding_format": "float", "dimensions": 160},
    ("post", "/tokenize"): {"content": "Hi"},
    ("post", "/apply-template"): {"messages": [USER], "chat_template_kwargs": {"enable_thinking": False}},
    ("post", "/detokenize"): {"tokens": [5, 6]},
    ("post", "/slots/{slot}"): {"filename": "a.prefix", "prompt": "The"},
    ("put", "/v1/constraints/{name}"): {"kind": "set", "values": ["red", "blue"]},
    ("patch", "/v1/constraints/{name}"): {"add": ["green"], "remove": ["red"]},
}
#: Names that only programs in Python have.
PYTHON = re.compile(r"\bn_ctx\b|\bModel\(|\ba Model\b|\bmax_queue\b|penalty_last_n|\b(str|dict|tuple)\b")
#: Values of every type of JSON, and those of their edges.
VALUES: dict[str, list[Any]] = {
    "null": [None],
    "boolean": [True],
    "integer": [-1, 10**30],
    "number": [0.5, 1e308, float("nan"), float("inf")],
    "string": ["x", "", "\ud800", "x" * 5000],
    "array": [[], [None], [[[]]]],
    "object": [{}, {"x": None}],
}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with tokentrie.Model(n_ctx=512, n_threads=1, slots=2) as model:
        settings = Settings(slot_files=tmp_path_factory.mktemp("slots"))
        app = InProcess(create_app([ServedModel("m", model, 60.0)], settings))
        yield app
        app.close()


def schema_of(spec: dict[str, Any], method: str, path: str) -> dict[str, Any] | None:
    body = spec["paths"][path][method].get("requestBody", {}).get("content", {})
    return body.get("application/json", {}).get("schema")


def types_of(spec: dict[str, Any], schema: dict[str, Any]) -> set[str]:
    """The types of JSON that a schema takes: all where it says nothing."""
    if "$ref" in schema:
        found = spec["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return types_of(spec, found)
    if ways := schema.get("anyOf") or schema.get("oneOf"):
        return set().union(*(types_of(spec, way) for way in ways))
    if "const" in schema or "enum" in schema:
        return (
            {"string"} if all(isinstance(one, str) for one in schema.get("enum", [schema.get("const")])) else {*VALUES}
        )
    if (kind := schema.get("type")) is None:
        return {*VALUES}
    return {kind, "integer"} if kind == "number" else {kind}


def asked(app: InProcess, method: str, path: str, body: Any) -> tuple[int, Any]:
    status, told = app.ask(method.upper(), path.replace("{name}", "n").replace("{slot}", "0?action=save"), body)
    assert status < 500, (path, body, told)
    if status >= 400:
        assert told["error"]["message"], (path, body)
        # A template says it in words of its own.
        assert told["error"]["code"] == "template_error" or not PYTHON.search(told["error"]["message"]), told
    return status, told


def test_every_route_that_takes_a_body_is_tried(app: InProcess) -> None:
    _, spec = app.ask("GET", "/openapi.json")
    bodies = {
        (method, path) for path, ways in spec["paths"].items() for method in ways if "requestBody" in ways[method]
    }
    assert bodies <= {*GOOD}
    for (method, path), good in GOOD.items():
        assert asked(app, method, path, good)[0] < 300, path


@pytest.mark.parametrize(("method", "path"), [one for one in GOOD if one[0] == "post"])
def test_a_field_of_a_wrong_type_is_refused(app: InProcess, method: str, path: str) -> None:
    _, spec = app.ask("GET", "/openapi.json")
    good, schema = GOOD[method, path], schema_of(spec, method, path)
    assert schema is not None
    described = spec["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    assert {*good} <= {*described["properties"]}
    for name, field in described["properties"].items():
        may = types_of(spec, field)
        for kind, values in VALUES.items():
            for value in values:
                status, told = asked(app, method, path, {**good, name: value})
                assert kind in may or status >= 400, (name, value, told)
    for name in described.get("required", []):
        assert asked(app, method, path, {key: one for key, one in good.items() if key != name})[0] >= 400, name


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*before, key)
        yield from places(one, (*before, key))


@pytest.mark.parametrize(("method", "path"), GOOD)
def test_no_inner_value_is_a_fault_of_the_server(app: InProcess, method: str, path: str) -> None:
    good = GOOD[method, path]
    for place in places(good):
        for value in [*(one for values in VALUES.values() for one in values), ...]:
            body = copy.deepcopy(good)
            inner: Any = body
            for key in place[:-1]:
                inner = inner[key]
            if value is ...:
                del inner[place[-1]]
            else:
                inner[place[-1]] = value
            asked(app, method, path, body)


#: Requests that hold the text, or the call, to something: with another value in any place of these.
HELD = {
    "tools": {
        "messages": [USER],
        "tools": [{"type": "custom", "custom": {"name": "g", "format": GRAMMAR | {"grammar": LARK}}}],
        "tool_choice": {"type": "custom", "custom": {"name": "g"}},
    },
    "allowed": {
        "messages": [USER],
        "tools": [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in "fg"],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}},
    },
    "tags": {"messages": [USER], "response_format": {"type": "structural_tag", "format": TAGS}},
}


@pytest.mark.parametrize("name", HELD)
def test_nothing_is_unconstrained_with_status_200(app: InProcess, name: str) -> None:
    good = {**HELD[name], "max_tokens": 40, "temperature": 2, "chat_template_kwargs": {"enable_thinking": False}}
    field = {"tools": "tools", "allowed": "tool_choice", "tags": "response_format"}[name]
    for place in [(field, *one) for one in places(good[field])]:
        for value in [-1, True, "x", [], {}, [None], {"x": None}, ...]:
            body = copy.deepcopy(good)
            inner: Any = body
            for key in place[:-1]:
                inner = inner[key]
            if value is ...:
                del inner[place[-1]]
            else:
                inner[place[-1]] = value
            status, told = asked(app, "post", "/v1/chat/completions", body)
            if status == 200:
                message = told["choices"][0]["message"]
                calls = [call[call["type"]] for call in message.get("tool_calls", [])]
                names = {call["name"] for call in calls}
                # A name of another shape was refused, and what is left out is what the API says without it.
                if name == "allowed":
                    assert names == {"f"}, (place, value, told)
                elif name == "tools" and (grammar := custom_format(body)) is not None:
                    assert names == {"g"}, (place, value, told)
                    pattern = "[ab]{1,3}" if grammar["definition"] != "x" else "x"
                    assert all(re.fullmatch(pattern, call["input"]) for call in calls), (place, value, told)
                elif name == "tags":
                    is_free = "at_least_one" in place
                    assert is_free or message["content"].startswith("<f>"), (place, value, told)


def custom_format(body: dict[str, Any]) -> Any:
    """The grammar that a custom tool asks for, if it does."""
    return body["tools"][0]["custom"].get("format", {}).get("grammar")


def test_what_does_not_fit_says_what_to_do(app: InProcess) -> None:
    long = "a b " * 900
    bodies = {"/v1/completions": {"prompt": long}, "/v1/chat/completions": {"messages": [{**USER, "content": long}]}}
    for path, body in bodies.items():
        status, told = asked(app, "post", path, body)
        assert (status, told["error"]["code"]) == (400, "context_length_exceeded")
        assert told["error"]["message"].endswith("shorten it, or start the server with a larger --ctx")


SAID = {"model": "any", "state": "Hi", "questions": {"a": {"type": "noul", "instructions": "On?"}}}
DATA = "data:image/png;base64,AAAA"


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "ant", "content": "Hi"}]}, "messages[0]"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": None}]}, "messages[0]"),
        ("/v1/chat/completions", {"messages": [USER, {"role": "system"}]}, "messages[1]"),
        ("/v1/chat/completions", {"messages": [{**USER, "images": [DATA]}]}, "messages[0].images"),
        ("/v1/chat/completions", {"messages": [USER], "audio": {"voice": "a"}}, "audio"),
        ("/v1/chat/completions", {"messages": [USER], "temperature": 9}, "temperature"),
        ("/v1/completions", {"prompt": "Hi", "temperature": 2.5}, "temperature"),
        ("/v1/responses", {"input": "Hi", "temperature": 9}, "temperature"),
        ("/v1/responses", {"input": [{"role": "ant", "content": "Hi"}], "instructions": "Be brief."}, "input[0]"),
        ("/v1/responses", {"input": [USER, {"role": "user"}]}, "input[1]"),
        ("/v1/systemone", {**SAID, "images": [DATA]}, "images"),
        ("/v1/systemone", {**SAID, "assets": [DATA]}, "assets"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_field(app: InProcess, path: str, body: Any, param: str) -> None:
    status, told = asked(app, "post", path, body)
    assert (status, told["error"]["param"]) == (422 if "systemone" in path else 400, param)
    assert param in told["error"]["message"]


@pytest.mark.parametrize("body", [None, True, 1, 0.5, "x", [], [[]], float("nan")], ids=json.dumps)
def test_a_body_that_is_no_object_is_refused(app: InProcess, body: Any) -> None:
    for method, path in GOOD:
        assert asked(app, method, path, json.dumps(body).encode())[0] >= 400, path
