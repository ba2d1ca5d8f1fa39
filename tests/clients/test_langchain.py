"""LangChain."""

from __future__ import annotations

from typing import Any

import pytest

langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed: ./dev clients")

from clients.questions import CITIES, LEVELS, MODEL, STATE, TEAMS, TOOL, Person


@pytest.fixture
def chat(base: str, key: str) -> Any:
    return langchain.ChatOpenAI(model=MODEL, base_url=f"{base}/v1", api_key=key, max_retries=0)


def test_chat(chat: Any) -> None:
    done = chat.invoke("How warm is it in Rome?", max_tokens=8)
    assert isinstance(done.content, str)
    assert done.usage_metadata["output_tokens"] > 0


def test_stream_with_a_tool_call(chat: Any) -> None:
    whole: Any = None
    for chunk in chat.bind_tools([TOOL], tool_choice="get_weather").stream("How warm is it in Rome?"):
        whole = chunk if whole is None else whole + chunk
    assert whole.tool_calls[0]["name"] == "get_weather"
    assert whole.tool_calls[0]["args"]["city"] in CITIES


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output(chat: Any, method: str) -> None:
    assert isinstance(chat.with_structured_output(Person, method=method).invoke("Who is it?"), Person)


def test_responses(base: str, key: str) -> None:
    chat = langchain.ChatOpenAI(model=MODEL, base_url=f"{base}/v1", api_key=key, use_responses_api=True)
    done = chat.bind_tools([TOOL], tool_choice="get_weather").invoke("How warm is it in Rome?")
    assert done.tool_calls[0]["args"]["city"] in CITIES


def test_decision(base: str, key: str) -> None:
    kinds = pytest.importorskip("langchain_openai.decisions")
    ask = langchain.OpenAIDecisions(model=MODEL, base_url=f"{base}/v1", api_key=key, max_retries=0)
    questions = {
        "team": kinds.Choice(instructions="Who must answer?", choices=dict.fromkeys(TEAMS, "A team.")),
        "urgent": kinds.Predicate(instructions="Is it urgent?"),
        "mood": kinds.Score(instructions="The mood?", levels=[*LEVELS]),
    }
    for state in (STATE, {"text": STATE, "since": [3, None]}):
        done = ask.invoke({"input": state, "questions": questions})
        assert done.choices["team"].choice in TEAMS
        assert 0 <= done.predicates["urgent"].probability <= 1
        assert 0 <= done.scores["mood"].score <= 2
