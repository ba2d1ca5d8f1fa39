"""The client of OpenAI, for Python."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

openai = pytest.importorskip("openai", reason="openai is not installed: ./dev clients")

from clients.questions import CITIES, MESSAGES, MODEL, QUESTIONS, STATE, TEAMS, TOOL, Person

WRONG: Any = {"type": "retrieval"}


@pytest.fixture
def client(base: str, key: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{base}/v1", api_key=key, max_retries=0)


def test_chat(client: openai.OpenAI) -> None:
    done = client.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=12, logprobs=True, top_logprobs=2)
    (choice,) = done.choices
    assert choice.finish_reason in ("stop", "length")
    assert choice.message.content is not None
    assert done.usage is not None
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens
    assert choice.logprobs is not None
    assert all(len(one.top_logprobs) <= 2 and one.logprob <= 0 for one in choice.logprobs.content or [])


def test_stream_with_a_tool_call(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model=MODEL, messages=MESSAGES, tools=[TOOL], tool_choice="required", max_tokens=200, stream=True
    )
    name, arguments, finish = "", "", None
    for chunk in stream:
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or []:
                assert call.index == 0 or call.function is not None
                if call.index == 0 and call.function is not None:
                    name += call.function.name or ""
                    arguments += call.function.arguments or ""
    assert (name, finish) == ("get_weather", "tool_calls")
    assert json.loads(arguments)["city"] in CITIES


def test_structured_output(client: openai.OpenAI) -> None:
    done = client.chat.completions.parse(model=MODEL, messages=MESSAGES, response_format=Person, max_tokens=200)
    assert isinstance(done.choices[0].message.parsed, Person)


def test_responses(client: openai.OpenAI) -> None:
    flat = {"type": "function", "strict": True, **TOOL["function"]}
    done = client.responses.create(model=MODEL, input="Rome?", tools=[flat], tool_choice="required")
    calls = [item for item in done.output if item.type == "function_call"]
    assert calls
    assert json.loads(calls[0].arguments)["city"] in CITIES
    parsed = client.responses.parse(model=MODEL, input="Who?", text_format=Person, max_output_tokens=200)
    assert isinstance(parsed.output_parsed, Person)
    with client.responses.stream(model=MODEL, input="Who?", text_format=Person) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert final.output_text == text
    assert isinstance(final.output_parsed, Person)


PATTERN = r"(\+|-)[a-z]{1,4}\n"
LARK = 'start: ("+" | "-") /[a-z]{1,4}/ LF\n%import common.LF'
PATCH: Any = {"name": "patch", "description": "Patch it."}


def test_custom_tools(client: openai.OpenAI) -> None:
    grammar = {"syntax": "lark", "definition": LARK}
    tool: Any = {"type": "custom", "custom": {**PATCH, "format": {"type": "grammar", "grammar": grammar}}}
    choice: Any = {"type": "custom", "custom": {"name": "patch"}}
    asked = {"model": MODEL, "messages": MESSAGES, "tools": [tool], "tool_choice": choice, "max_tokens": 200}
    done = client.chat.completions.create(**asked)
    call = done.choices[0].message.tool_calls[0]
    assert (call.type, call.custom.name) == ("custom", "patch")
    assert re.fullmatch(PATTERN, call.custom.input)
    turns = [*MESSAGES, done.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "done"}]
    assert client.chat.completions.create(**{**asked, "messages": turns, "tool_choice": "none", "max_tokens": 4}).id
    flat: Any = {"type": "custom", **PATCH, "format": {"type": "grammar", **grammar}}
    named: Any = {"type": "custom", "name": "patch"}
    answered = client.responses.create(model=MODEL, input="Patch it.", tools=[flat], tool_choice=named)
    (item, *_) = [item for item in answered.output if item.type == "custom_tool_call"]
    assert re.fullmatch(PATTERN, item.input)
    with client.responses.stream(model=MODEL, input="Patch it.", tools=[flat], tool_choice=named) as stream:
        events = [event for event in stream if "custom_tool_call_input" in event.type]
    told = "".join(event.delta for event in events if event.type.endswith(".delta"))
    assert re.match(PATTERN, told)
    output: Any = {"type": "custom_tool_call_output", "call_id": item.call_id, "output": "done"}
    user: Any = {"role": "user", "content": "Patch it."}
    again = client.responses.create(model=MODEL, input=[user, item, output], tools=[flat], max_output_tokens=4)
    assert again.id


def test_allowed_tools(client: openai.OpenAI) -> None:
    other: Any = {"type": "function", "function": {**TOOL["function"], "name": "other"}}
    named: Any = {"type": "function", "function": {"name": "other"}}
    choice: Any = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}}
    done = client.chat.completions.create(
        model=MODEL, messages=MESSAGES, tools=[TOOL, other], tool_choice=choice, max_tokens=200
    )
    assert {call.function.name for call in done.choices[0].message.tool_calls} == {"other"}


def test_completions(client: openai.OpenAI) -> None:
    done = client.completions.create(model=MODEL, prompt=["The sky is", "One, two,"], max_tokens=4, echo=True)
    assert [choice.text[:9] for choice in done.choices] == ["The sky i", "One, two,"]


def test_decision(client: openai.OpenAI) -> None:
    if not hasattr(client, "decisions"):
        pytest.skip(f"openai {openai.__version__} has no decisions")
    done = client.decisions.create(model=MODEL, input=STATE, questions=QUESTIONS)
    team, urgent, mood = done.answers
    assert (team.name, urgent.name, mood.name) == ("team", "urgent", "mood")
    assert [one.value for one in team.probabilities] == [*TEAMS]
    assert sum(one.probability for one in team.probabilities) == pytest.approx(1)
    assert team.choice == max(team.probabilities, key=lambda one: one.probability).value
    assert 0 <= urgent.probability <= 1
    assert mood.score == pytest.approx(sum(one.value * one.probability for one in mood.probabilities))


def test_wrong_requests_are_refused_by_their_class(client: openai.OpenAI, base: str) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(model=MODEL, messages=MESSAGES, tools=[WRONG])
    assert raised.value.param == "tools[0].type"
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=f"{base}/v1", api_key="another", max_retries=0).models.list()
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("none-of-this-name")
    assert MODEL in [one.id for one in client.models.list()]
