"""pydantic-ai."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

pydantic_ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed: ./dev clients")

from clients.questions import CITIES, MODEL, Person
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


@pytest.fixture(params=[OpenAIChatModel, OpenAIResponsesModel])
def model(base: str, key: str, request: pytest.FixtureRequest) -> Any:
    return request.param(MODEL, provider=OpenAIProvider(base_url=f"{base}/v1", api_key=key))


def test_chat(model: Any) -> None:
    settings: Any = {"max_tokens": 24, "temperature": 0}
    done = pydantic_ai.Agent(model, model_settings=settings).run_sync("Say hello.")
    assert isinstance(done.output, str)
    assert done.output


def test_tool_and_structured_output(model: Any) -> None:
    asked: list[str] = []

    def get_weather(city: Literal["Rome", "Oslo", "Lima"]) -> str:
        """The weather of a city."""
        asked.append(city)
        return "warm"

    agent: Any = pydantic_ai.Agent(model, tools=[get_weather], output_type=Person, retries=0)
    try:
        done = agent.run_sync("How warm is it in Rome?", usage_limits=pydantic_ai.UsageLimits(request_limit=8))
        assert isinstance(done.output, Person)
    except pydantic_ai.UsageLimitExceeded:
        # The tiny model may ask for the weather again and again.
        assert asked
    assert set(asked) <= {*CITIES}


def test_stream(model: Any) -> None:
    async def streamed() -> Any:
        async with pydantic_ai.Agent(model, output_type=Person, retries=0).run_stream("Who is it?") as result:
            return await result.get_output()

    assert isinstance(asyncio.run(streamed()), Person)
