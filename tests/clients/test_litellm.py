"""LiteLLM."""

from __future__ import annotations

import json
from typing import Any

import pytest

litellm = pytest.importorskip("litellm", reason="litellm is not installed: ./dev clients")

from clients.questions import CITIES, MESSAGES, MODEL, QUESTIONS, STATE, TEAMS, TOOL, Person


@pytest.fixture
def server(base: str, key: str) -> dict[str, Any]:
    return {"model": f"openai/{MODEL}", "api_base": f"{base}/v1", "api_key": key, "num_retries": 0}


def test_chat(server: dict[str, Any]) -> None:
    done = litellm.completion(**server, messages=MESSAGES, max_tokens=8)
    assert done.choices[0].finish_reason in ("stop", "length")
    assert isinstance(done.choices[0].message.content, str)


def test_stream_with_a_tool_call(server: dict[str, Any]) -> None:
    chunks = [*litellm.completion(**server, messages=MESSAGES, tools=[TOOL], tool_choice="required", stream=True)]
    whole = litellm.stream_chunk_builder(chunks, messages=MESSAGES)
    call = whole.choices[0].message.tool_calls[0].function
    assert call.name == "get_weather"
    assert json.loads(call.arguments)["city"] in CITIES


def test_structured_output(server: dict[str, Any]) -> None:
    done = litellm.completion(**server, messages=MESSAGES, response_format=Person)
    Person.model_validate_json(done.choices[0].message.content)


def test_decision(server: dict[str, Any]) -> None:
    done = litellm.decisions(**server, input=STATE, questions=QUESTIONS)
    assert [one.name for one in done.answers] == ["team", "urgent", "mood"]
    assert done.answers[0].choice in TEAMS


def test_decision_of_system_one(base: str, key: str) -> None:
    questions = {"team": {"type": "choice", "criteria": dict.fromkeys(TEAMS)}}
    server = {"model": f"typesafe/{MODEL}", "api_base": base, "api_key": key}
    done = litellm.systemone(**server, state=STATE, questions=questions)
    assert done.answers["team"].choice in TEAMS


def test_wrong_requests_are_refused_by_their_class(server: dict[str, Any]) -> None:
    with pytest.raises(litellm.BadRequestError):
        litellm.completion(**server, messages=MESSAGES, tools=[TOOL], extra_body={"tools": [{"type": "retrieval"}]})
