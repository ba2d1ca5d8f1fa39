"""The schema of a reply is shown to the model, unless a request or the server says no."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from serve.server import Server, serving

pytestmark = pytest.mark.model

SCHEMA = {"type": "object", "properties": {"beds": {"type": "integer", "description": "how many sleep there"}}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "room", "schema": SCHEMA}}
ASKS: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1, "return_prompt": True}
HELD: dict[str, dict[str, Any]] = {
    "response_format": {"response_format": FORMAT},
    "json_schema": {"json_schema": SCHEMA},
    "structured_outputs": {"structured_outputs": {"json": SCHEMA}},
    "constraint": {"constraint": {"json_schema": SCHEMA}},
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(key=None) as server:
        yield server


def tokens(server: Server, **more: Any) -> int:
    """How many the prompt has, as it is told and as it is counted."""
    done = server.ask("POST", "/v1/chat/completions", {**ASKS, **more}).json()
    assert len(done["prompt_token_ids"]) == done["usage"]["prompt_tokens"]
    return int(done["usage"]["prompt_tokens"])


@pytest.mark.parametrize("name", HELD)
def test_chats_show_it_under_every_name(server: Server, name: str) -> None:
    plain = tokens(server, constraint={"choice": ["a", "b"]})
    assert tokens(server, **HELD[name]) > plain + 10
    assert tokens(server, **HELD[name], show_schema=False) == plain


def test_an_object_of_any_kind_shows_nothing(server: Server) -> None:
    assert tokens(server, response_format={"type": "json_object"}) == tokens(server, constraint={"choice": ["a", "b"]})


def test_responses_show_it_too(server: Server) -> None:
    asks = {"input": "hi", "max_output_tokens": 16, "text": {"format": {"type": "json_schema", "schema": SCHEMA}}}
    used = [
        server.ask("POST", "/v1/responses", {**asks, "show_schema": flag}).json()["usage"]["input_tokens"]
        for flag in (True, False)
    ]
    assert used[0] > used[1] + 10
