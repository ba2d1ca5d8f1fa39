"""The client of Anthropic, for Python."""

from __future__ import annotations

from typing import Any

import pytest

anthropic = pytest.importorskip("anthropic", reason="anthropic is not installed: ./dev clients")

from clients.questions import CITIES, MESSAGES, MODEL, TOOL, Person

FUNCTION = TOOL["function"]
TOOLS: Any = [{"name": FUNCTION["name"], "description": "…", "input_schema": FUNCTION["parameters"]}]


@pytest.fixture
def client(base: str, key: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=base, api_key=key, max_retries=0)


def test_message(client: anthropic.Anthropic) -> None:
    done = client.messages.create(model=MODEL, messages=MESSAGES, max_tokens=12, system="You are a cook.")
    assert (done.type, done.role, done.model) == ("message", "assistant", MODEL)
    assert done.stop_reason in ("end_turn", "max_tokens")
    assert all(block.type == "text" for block in done.content)
    prompt = done.usage.input_tokens + (done.usage.cache_read_input_tokens or 0)
    count = client.messages.count_tokens(model=MODEL, messages=MESSAGES, system="You are a cook.")
    assert (prompt, done.usage.output_tokens > 0) == (count.input_tokens, True)


def test_stream(client: anthropic.Anthropic) -> None:
    asks: Any = {"model": MODEL, "messages": MESSAGES, "max_tokens": 12, "extra_body": {"temperature": 0}}
    with client.messages.stream(**asks) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    whole = client.messages.create(**asks)
    assert text == "".join(block.text for block in final.content) == "".join(block.text for block in whole.content)
    assert (final.stop_reason, final.usage.output_tokens) == (whole.stop_reason, whole.usage.output_tokens)


def test_a_call_and_its_result(client: anthropic.Anthropic) -> None:
    asks: Any = {"model": MODEL, "max_tokens": 200, "tools": TOOLS, "extra_body": {"temperature": 0}}
    with client.messages.stream(messages=MESSAGES, tool_choice={"type": "any"}, **asks) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_message()
    assert {"message_start", "content_block_start", "input_json", "content_block_stop", "message_stop"} <= {*kinds}
    assert final.stop_reason == "tool_use"
    calls = [block for block in final.content if block.type == "tool_use"]
    assert calls
    assert all(call.name == "get_weather" and call.input["city"] in CITIES for call in calls)
    named = client.messages.create(messages=MESSAGES, tool_choice={"type": "tool", "name": "get_weather"}, **asks)
    assert [block.type for block in named.content][-1] == "tool_use"
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "21 degrees"} for call in calls]
    turns: Any = [*MESSAGES, {"role": "assistant", "content": final.content}, {"role": "user", "content": results}]
    done = client.messages.create(messages=turns, tool_choice={"type": "none"}, **asks)
    assert done.stop_reason in ("end_turn", "max_tokens")


def test_structured_output(client: anthropic.Anthropic) -> None:
    done = client.messages.parse(model=MODEL, messages=MESSAGES, max_tokens=200, output_format=Person)
    assert isinstance(done.parsed_output, Person)


def test_refusals_have_their_classes(client: anthropic.Anthropic, base: str) -> None:
    with pytest.raises(anthropic.BadRequestError) as refused:
        client.messages.create(model=MODEL, messages=MESSAGES, max_tokens=5, extra_body={"thinking": {"type": "often"}})
    assert "thinking.type" in str(refused.value)
    stranger = anthropic.Anthropic(base_url=base, api_key="wrong", max_retries=0)
    with pytest.raises(anthropic.AuthenticationError):
        stranger.messages.create(model=MODEL, messages=MESSAGES, max_tokens=5)
