"""instructor."""

from __future__ import annotations

import pytest

instructor = pytest.importorskip("instructor", reason="instructor is not installed: ./dev clients")
import openai
from clients.questions import MESSAGES, MODEL, Person


@pytest.mark.parametrize("mode", ["TOOLS", "JSON_SCHEMA"])
def test_structured_output(base: str, key: str, mode: str) -> None:
    inner = openai.OpenAI(base_url=f"{base}/v1", api_key=key, max_retries=0)
    client = instructor.from_openai(inner, mode=getattr(instructor.Mode, mode))
    found = client.chat.completions.create(
        model=MODEL, messages=MESSAGES, response_model=Person, max_retries=0, max_tokens=200
    )
    assert isinstance(found, Person)


def test_stream(base: str, key: str) -> None:
    inner = openai.OpenAI(base_url=f"{base}/v1", api_key=key, max_retries=0)
    client = instructor.from_openai(inner, mode=instructor.Mode.TOOLS)
    *_, last = client.chat.completions.create_partial(model=MODEL, messages=MESSAGES, response_model=Person)
    assert last.role in ("cook", "pilot")
    assert last.is_here in (True, False)
