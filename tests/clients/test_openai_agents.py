"""openai-agents."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

agents = pytest.importorskip("agents", reason="openai-agents is not installed: ./dev clients")
import openai
from clients.questions import CITIES, MODEL, Person


@pytest.fixture(params=["OpenAIChatCompletionsModel", "OpenAIResponsesModel"])
def model(base: str, key: str, request: pytest.FixtureRequest) -> Any:
    agents.set_tracing_disabled(True)
    client = openai.AsyncOpenAI(base_url=f"{base}/v1", api_key=key, max_retries=0)
    return getattr(agents, request.param)(MODEL, client)


def test_chat(model: Any) -> None:
    agent = agents.Agent(name="a", model=model, model_settings=agents.ModelSettings(max_tokens=8))
    assert isinstance(agents.Runner.run_sync(agent, "How warm is it in Rome?").final_output, str)


def test_stream_with_a_tool_call(model: Any) -> None:
    asked: list[str] = []

    @agents.function_tool
    def get_weather(city: Literal["Rome", "Oslo", "Lima"]) -> str:
        """The weather of a city."""
        asked.append(city)
        return "warm"

    async def run() -> None:
        agent = agents.Agent(
            name="a",
            model=model,
            tools=[get_weather],
            tool_use_behavior="stop_on_first_tool",
            model_settings=agents.ModelSettings(tool_choice="required"),
        )
        result = agents.Runner.run_streamed(agent, "How warm is it in Rome?")
        async for _ in result.stream_events():
            pass
        assert result.final_output == "warm"

    asyncio.run(run())
    assert asked
    assert set(asked) <= {*CITIES}


def test_structured_output(model: Any) -> None:
    agent = agents.Agent(name="a", model=model, output_type=Person)
    assert isinstance(agents.Runner.run_sync(agent, "Who is it?").final_output, Person)
