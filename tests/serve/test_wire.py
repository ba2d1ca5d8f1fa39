"""The cases of `tests/vectors/serve.json`, asked of a real server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from serve.server import KEY, Reply, Server, serving
from serve.streams import put_together
from serve.wire_cases import CASES, body_of, found, steps, wrong

pytestmark = pytest.mark.model

SERVED = re.compile(
    r"/v1/(chat/completions|completions|responses|decisions|systemone|choose|models.*|constraints.*)|"
    r"/(tokenize|detokenize|health|metrics)|/nowhere.*"
)
"""What the server answers so far; the other cases of the file wait for the rest of it."""


def is_served(case: dict[str, Any]) -> bool:
    paths = [step["request"]["path"] for step in steps(case)]
    return case["area"] == "auth" or all(map(SERVED.fullmatch, paths))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("--cors", "https://app.example") as server:
        yield server


def ask(server: Server, request: dict[str, Any], known: dict[str, Any], within: float) -> Reply:
    body, headers = body_of(request, known)
    own: dict[str, str | None] = {**headers, **request.get("headers", {})}
    key = None if request.get("auth") == "none" else KEY
    return server.ask(request["method"], request["path"], body, own, key=key, timeout=within)


@pytest.mark.parametrize("case", [case for case in CASES if is_served(case)], ids=lambda case: case["id"])
def test_a_case_of_the_wire(server: Server, case: dict[str, Any]) -> None:
    known: dict[str, Any] = {}
    for step in steps(case):
        expect = step.get("expect", {})
        reply = ask(server, step["request"], known, expect.get("within", 20))
        statuses = expect.get("status", 200)
        assert reply.status in (statuses if isinstance(statuses, list) else [statuses]), reply.body
        for name, pattern in expect.get("headers", {}).items():
            given = reply.headers.get(name.lower())
            assert given is None if pattern is None else given is not None and re.fullmatch(pattern, given), name
        if reply.status >= 400:
            told = reply.json()
            assert "error" in told or "detail" in told
            assert "Traceback" not in reply.body.decode()
        for words in expect.get("mentions", []):
            several = words if isinstance(words, list) else [words]
            assert any(word.lower() in reply.body.decode().lower() for word in several), (words, reply.body)
        content = put_together(reply.body) if expect.get("stream") else None
        if content is not None:
            assert reply.headers["content-type"].startswith("text/event-stream")
        if "json" in expect and (reply.status < 400 or expect.get("json_on_error")):
            assert not [*wrong(content or reply.content(), expect["json"], known)]
        for name, path in expect.get("save", {}).items():
            known[name] = found(reply.content(), path)[0]
