"""`return_details` and `x_flips`: why tokens are there and how sure calls are, only for who asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import tokentrie

pytest.importorskip("uvicorn")

from serve.server import Server, serving
from serve.streams import events

pytestmark = pytest.mark.model

FORM = {
    "form": ['{"a": "', {"slot": "a", "value": {"choice": ["red", "blue"]}}, '", "b": "', {"text": "b", "stop": '"'}]
}
ASKS: dict[str, Any] = {"prompt": "The sky is blue.\n", "max_tokens": 40, "temperature": 0}
TOOL = {
    "type": "function",
    "function": {
        "name": "order_pizza",
        "description": "Buy a pizza.",
        "parameters": {
            "type": "object",
            "properties": {"size": {"type": "string", "enum": ["small", "large"]}, "count": {"type": "integer"}},
            "required": ["size"],
            "additionalProperties": False,
        },
    },
}
CHAT: dict[str, Any] = {
    "messages": [{"role": "user", "content": "I want to buy a pizza with size large and count 2"}],
    "tools": [TOOL],
    "temperature": 0,
    "max_tokens": 120,
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(key=None) as server:
        yield server


@pytest.fixture(scope="module")
def model() -> Iterator[tokentrie.Model]:
    with tokentrie.Model() as model:
        yield model


def chunks(server: Server, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The choices of a stream, in their order."""
    told = [data for _, data in events(server.ask("POST", path, {**body, "stream": True}).body)]
    assert told[-1] == "[DONE]"
    return [json.loads(data)["choices"][0] for data in told[:-1]]


@pytest.mark.parametrize("constraint", [None, FORM, {"choice": ["blue", "black"]}])
def test_a_completion_tells_why_each_token_is_there(
    server: Server, model: tokentrie.Model, constraint: dict[str, Any] | None
) -> None:
    body = ASKS if constraint is None else {**ASKS, "constraint": constraint}
    plain = server.ask("POST", "/v1/completions", body).json()["choices"][0]
    (choice,) = server.ask("POST", "/v1/completions", {**body, "return_details": True}).json()["choices"]
    assert set(choice) - set(plain) == {"x_steps", "x_stats"}
    assert choice["text"] == plain["text"]

    steps: list[tokentrie.results.Step] = []
    held = None if constraint is None else tokentrie.constraint(constraint)
    out = model.generate(ASKS["prompt"], held, max_tokens=40, on_step=steps.append, on_invalid="none")
    assert out.text == choice["text"]
    tokens = [one["token"] for one in choice["x_steps"]]
    assert tokens == [step.token for step in steps]
    assert tokens[: len(out.tokens)] == out.tokens
    assert {*tokens[len(out.tokens) :]} <= {*model.vocab.eog}, "what ended the text was drawn, too"
    for told, step in zip(choice["x_steps"], steps, strict=True):
        assert (told["role"] == "forced") == step.forced
        if told["role"] == "free":
            assert (told["legal"], len(step.allowed)) == (None, 0)
        elif told["role"] == "chosen":
            assert told["legal"] == len(step.allowed) > 0
        else:
            assert told["legal"] == 1
    stats = choice["x_stats"]
    assert stats["forced_tokens"] == sum(one["role"] == "forced" for one in choice["x_steps"])
    assert stats == {name: getattr(out.stats, name) for name in stats}
    assert (stats["forward_passes_saved"] > 0) == (constraint is not None)


def test_a_stream_tells_the_same_token_by_token(server: Server) -> None:
    body = {**ASKS, "constraint": FORM}
    (whole,) = server.ask("POST", "/v1/completions", {**body, "return_details": True}).json()["choices"]
    told = chunks(server, "/v1/completions", {**body, "return_details": True, "logprobs": 2})
    assert [step for one in told for step in one.get("x_steps", [])] == whole["x_steps"]
    assert "".join(one["text"] for one in told) == whole["text"]
    assert all(len(one["x_steps"]) == 1 == len(one["logprobs"]["tokens"]) for one in told if "x_steps" in one)
    assert told[-1]["x_stats"] == whole["x_stats"]
    assert not any(name.startswith("x_") for one in chunks(server, "/v1/completions", body) for name in one)


def test_a_chat_tells_how_sure_its_calls_are(server: Server, model: tokentrie.Model) -> None:
    (plain,) = server.ask("POST", "/v1/chat/completions", CHAT).json()["choices"]
    assert "x_stats" not in plain
    assert [{*call} for call in plain["message"]["tool_calls"]] == [{"id", "type", "function"}]
    (choice,) = server.ask("POST", "/v1/chat/completions", {**CHAT, "return_details": True}).json()["choices"]
    (call,) = choice["message"]["tool_calls"]
    message = model.chat(CHAT["messages"], CHAT["tools"], probabilities=True, max_tokens=120)
    (own,) = message.tool_calls
    assert call["function"] == {"name": own.name, "arguments": own.arguments}
    assert call["x_probability"] == pytest.approx(own.probability, abs=1e-3)
    assert call["x_probabilities"] == pytest.approx({"size": own.probabilities["size"]}, abs=1e-3)
    assert message.stats is not None
    assert choice["x_stats"]["forced_tokens"] == message.stats.forced_tokens > 0

    told = chunks(server, "/v1/chat/completions", {**CHAT, "return_details": True})
    shares = [part for one in told for part in one["delta"].get("tool_calls", []) if "x_probability" in part]
    assert shares == [{"index": 0, "x_probability": call["x_probability"], "x_probabilities": call["x_probabilities"]}]
    assert told[-1]["x_stats"] == choice["x_stats"]
    assert "x_" not in json.dumps(chunks(server, "/v1/chat/completions", CHAT))


def test_flips_are_told_where_orders_are_averaged(server: Server, model: tokentrie.Model) -> None:
    options = ["positive", "negative", "neutral"]
    question = {"type": "choice", "instructions": "Which?", "choices": [{"value": one} for one in options]}
    body = {"model": "tiny", "input": "It was okay.", "questions": [question]}
    assert "x_flips" not in server.ask("POST", "/v1/decisions", body).json()["answers"][0]
    (answer,) = server.ask("POST", "/v1/decisions", {**body, "permute": 6}).json()["answers"]
    own = model.decide("It was okay.", {"q": tokentrie.decisions.Question(options, instructions="Which?")}, permute=6)[
        "q"
    ]
    assert answer["x_flips"] == own.flips
    one = {
        "model": "tiny",
        "state": "It was okay.",
        "questions": {"q": {"type": "choice", "criteria": dict.fromkeys(options)}},
    }
    assert "x_flips" in server.ask("POST", "/v1/systemone", {**one, "permute": 2}).json()["answers"]["q"]
