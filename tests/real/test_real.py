"""Every kind of call on a real model, judged by what shares no code with us: `re`, `jsonschema`, sums over logits."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import json
import random
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Literal

import jsonschema
import numpy as np
import pytest
from budget import cases
from tokentrie import Form, JsonSchema, Model, Regex, Slot, Text, run_tools
from tokentrie.receipts import verify_chat_receipt, verify_receipt
from tokentrie.rules import Date, Integer, OneOf

QUESTION = [{"role": "user", "content": "I was charged twice for order 4711 on 3 May 2026. Please refund 12.50 euros."}]


def random_schema(drawn: random.Random, depth: int = 2) -> dict[str, Any]:
    """A schema of the kind that programs have, with few bounds and every type."""
    kind = drawn.choice(["string", "integer", "number", "boolean", "enum", "array", "object"][: 7 if depth else 5])
    if kind == "enum":
        return {"enum": drawn.sample(["low", "high", 3, None, True, 2.5, "very high"], drawn.randint(1, 4))}
    if kind == "string":
        return {"type": "string", "maxLength": drawn.randint(1, 16)} | drawn.choice([{}, {"pattern": "^[a-z]+$"}])
    if kind == "integer":
        low = drawn.randint(-50, 50)
        return {"type": "integer", "minimum": low, "maximum": low + drawn.randint(0, 100)}
    if kind == "array":
        return {
            "type": "array",
            "items": random_schema(drawn, depth - 1),
            "minItems": drawn.randint(0, 1),
            "maxItems": 3,
        }
    if kind == "object":
        names = drawn.sample(["id", "name", "when", "who", "total", "ok"], drawn.randint(1, 4))
        properties = {name: random_schema(drawn, depth - 1) for name in names}
        required = drawn.sample(names, drawn.randint(0, len(names)))
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"type": kind} if kind == "boolean" else {"type": "number", "minimum": 0, "maximum": 9.5}


@pytest.mark.parametrize("seed", range(cases(60)))
def test_documents_are_valid(real: Model, seed: int) -> None:
    schema = random_schema(random.Random(seed))
    prompt = real.chat_prompt([{"role": "user", "content": f"Write a JSON document for {json.dumps(schema)}"}])
    out = real.generate(prompt, JsonSchema(schema), max_tokens=80, mode="sampled", seed=seed)
    jsonschema.validate(json.loads(out.text), schema)


def test_choices_are_sums_over_what_the_model_says(real: Model) -> None:
    prompt = real.chat_prompt([{"role": "user", "content": "Which animal barks? One word."}])
    names = ["a dog", "a cat", "the dog", "a doggy"]
    choice = real.choose(prompt, names)

    def logprob(name: str) -> float:
        """The chain of its tokens, each out of the logprobs of a generation that may only write this text."""
        out = real.generate(prompt, [name], logprobs=0, skip_ahead=False)
        given = list(prompt)
        total = 0.0
        for token in out.tokens:
            step = real.generate(given, logprobs=0, max_tokens=1, logit_bias={token: 200.0})
            free = real.generate(given, logprobs=40, max_tokens=1)
            (known,) = free.logprobs
            found = dict(known.top) | {known.token: known.logprob}
            if token not in found:
                pytest.skip("a token is not among the most probable 40")
            assert step.tokens == [token]
            total += found[token]
            given.append(token)
        return total

    for name, logprobability in zip(names[:2], choice.logprobs, strict=False):
        assert logprobability == pytest.approx(logprob(name), abs=0.05)
    assert sum(choice.probabilities.values()) == pytest.approx(1)
    assert choice.mass <= 1 + 1e-6


def test_forms_and_rules(real: Model) -> None:
    form = Form(
        "Order ",
        Slot("order", Integer(0, 9999)),
        " of ",
        Slot("day", Date()),
        ": ",
        Slot("kind", ["refund", "question"]),
        "\nReason: ",
        Text("reason", stop="\n", max_tokens=12),
        "Paid: ",
        Slot("paid", OneOf(["yes", "no"], Regex("[0-9]{1,3}"))),
    )
    out = real.generate(real.chat_prompt(QUESTION), form)
    written = re.fullmatch(
        r"Order (\d{1,4}) of (\d{4}-\d\d-\d\d): (refund|question)\nReason: (.*)\n?Paid: (yes|no|\d{1,3})",
        out.text,
        re.DOTALL,
    )
    assert written, out.text
    assert out.values["order"] == int(written[1])
    assert out.values["day"] == datetime.date.fromisoformat(written[2])
    assert out.values["kind"] == written[3]


def test_typed_values(real: Model) -> None:
    @dataclasses.dataclass
    class Ticket:
        order: int
        urgent: bool
        topic: Literal["refund", "delivery", "other"]

    ticket = real.generate(real.chat_prompt(QUESTION), Ticket).value
    assert isinstance(ticket, Ticket)
    assert ticket.topic in ("refund", "delivery", "other")


TOOLS = [
    {"type": "function", "function": {"name": "refund", "description": "Pay money back.", "parameters": {
        "type": "object", "properties": {"order": {"type": "integer"}, "euros": {"type": "number", "minimum": 0}},
        "required": ["order", "euros"], "additionalProperties": False}}},
    {"type": "function", "function": {"name": "answer", "description": "Answer a question.", "parameters": {
        "type": "object", "properties": {"text": {"type": "string", "maxLength": 60}}, "required": ["text"],
        "additionalProperties": False}}},
]  # fmt: skip


def assert_calls(calls: Any, tools: list[Any] = TOOLS) -> None:
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
    for call in calls:
        jsonschema.validate(json.loads(call.arguments), schemas[call.name])


def test_calls_of_tools(real: Model) -> None:
    message = real.chat(QUESTION, TOOLS, "required", tools_in="system", receipt=True)
    assert message.finish == "tool_calls"
    assert_calls(message.tool_calls)
    with real.chat(QUESTION, TOOLS, "required", tools_in="system", stream=True) as stream:
        streamed = "".join(event.text for event in stream if event.kind == "arguments")
        assert_calls(stream.result.tool_calls)
    assert streamed == "".join(call.arguments for call in stream.result.tool_calls)
    verify_chat_receipt(
        message.receipt, real.chat_format, QUESTION, TOOLS, "required", tools_in="system", vocab=real.vocab
    )

    def refund(order: int, euros: float) -> str:
        """Pay money back."""
        return f"paid {euros} for {order}"

    done = run_tools(real, QUESTION, [refund], tools_in="system", max_tokens=60, max_rounds=2)
    assert 1 <= done.rounds <= 2
    assert all(call.name == "refund" for message in done.messages for call in getattr(message, "tool_calls", []))


@pytest.mark.parametrize("settings", [{}, {"mode": "sampled", "seed": 3}])
def test_a_required_call_is_not_made_again(real: Model, settings: dict[str, Any]) -> None:
    """Behind the call this model would go on in prose, which the mask does not let it."""
    area = {
        "name": "calculate_triangle_area",
        "description": "Calculate the area of a triangle given its base and height.",
        "parameters": {
            "type": "object",
            "properties": {"base": {"type": "integer"}, "height": {"type": "integer"}},
            "required": ["base", "height"],
            "additionalProperties": False,
        },
    }
    asked = [{"role": "user", "content": "Find the area of a triangle with a base of 10 units and height of 5 units."}]
    message = real.chat(asked, [area], "required", tools_in="system", max_tokens=150, **settings)
    assert message.finish == "tool_calls"
    assert [call.name for call in message.tool_calls] == ["calculate_triangle_area"]
    if not settings:
        assert json.loads(message.tool_calls[0].arguments) == {"base": 10, "height": 5}


def test_streams_slots_and_receipts_say_the_same(real: Model, real_path: Path) -> None:
    prompt = real.chat_prompt(QUESTION)
    rule = Regex("[A-Z][a-z ]{5,40}\\.")
    whole = real.generate(prompt, rule, receipt=True)
    assert re.fullmatch("[A-Z][a-z ]{5,40}\\.", whole.text)
    verify_receipt(whole.receipt, rule, vocab=real.vocab)
    assert "".join(real.stream(prompt, rule)) == whole.text
    with Model(real_path, n_ctx=512, slots=4, batching="fixed") as engine:
        alone = engine.generate(prompt, rule)

        async def together() -> list[Any]:
            return await asyncio.gather(*(engine.agenerate(prompt, rule) for _ in range(4)))

        assert [out.tokens for out in asyncio.run(together())] == [alone.tokens] * 4


def test_decisions(real: Model) -> None:
    answers = real.decide("The film was wonderful, I cried twice.", {"good": bool, "kind": ["film", "book", "game"]})
    assert answers["kind"].value in ("film", "book", "game")
    assert sum(answers["kind"].probabilities.values()) == pytest.approx(1)


def test_the_server_answers(real_path: Path) -> None:
    pytest.importorskip("uvicorn")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "tokentrie", "serve", "-m", str(real_path), "--port", str(port), "--ctx", "1024"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            body = {"messages": QUESTION, "tools": TOOLS, "tool_choice": "required", "max_tokens": 60}
            for _ in range(100):
                try:
                    request = urllib.request.Request(
                        f"http://127.0.0.1:{port}/v1/chat/completions",
                        json.dumps(body).encode(),
                        {"Content-Type": "application/json"},
                    )
                    answer = json.load(urllib.request.urlopen(request, timeout=60))
                    break
                except OSError:
                    time.sleep(0.3)
            (choice,) = answer["choices"]
            assert choice["finish_reason"] == "tool_calls"
            for call in choice["message"]["tool_calls"]:
                schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
                jsonschema.validate(json.loads(call["function"]["arguments"]), schemas[call["function"]["name"]])
        finally:
            server.terminate()


def test_logits_of_generations_are_those_of_choices(real: Model) -> None:
    prompt = real.chat_prompt([{"role": "user", "content": "Is water wet? Yes or No."}])
    choice = real.choose(prompt, ["Yes", "No"])
    (known,) = real.generate(prompt, logprobs=100, max_tokens=1).logprobs
    found = {real.vocab[token]: logprob for token, logprob in known.top}
    for name, logprob in zip(("Yes", "No"), choice.logprobs, strict=True):
        if name.encode() in found:
            assert float(logprob) == pytest.approx(found[name.encode()], abs=0.02)
    assert np.isfinite(choice.logprobs).all()


@pytest.mark.parametrize("draft", ["prompt", "ngram"])
def test_drafts_obey_the_rule_in_fewer_passes(real: Model, real_path: Path, draft: str) -> None:
    """Texts may differ where two tokens are close: quantised weights round batches otherwise than single tokens."""
    names = ["Ann Smith", "Boris Novak", "Carla Diaz", "Deng Wei"]
    prompt = "People: " + "; ".join(names) + ".\nThe same people as JSON: "
    rule = JsonSchema({"type": "array", "items": {"type": "string", "maxLength": 20}, "minItems": 4, "maxItems": 4})
    plain = real.generate(prompt, rule, max_tokens=120)
    with Model(real_path, n_ctx=2048, draft=draft) as drafted:
        outs = [drafted.generate(prompt, rule, max_tokens=120) for _ in range(2)]
        for seed in range(cases(20)):
            other = drafted.generate(prompt, rule, max_tokens=160, mode="sampled", temperature=1.5, seed=seed)
            jsonschema.validate(json.loads(other.text), {"type": "array", "minItems": 4, "maxItems": 4})
    for out in outs:
        jsonschema.validate(json.loads(out.text), {"type": "array", "minItems": 4, "maxItems": 4})
    assert 0 < outs[1].stats.accepted_tokens <= outs[1].stats.drafted_tokens
    assert outs[1].stats.forward_passes < plain.stats.forward_passes
