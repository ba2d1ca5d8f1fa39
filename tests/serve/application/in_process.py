"""Requests to the application itself, without a socket."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.types import ASGIApp, Message


async def _asked(app: ASGIApp, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    said: list[Message] = []
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if parts:
            return parts.pop()
        # The client stays until it has its answer.
        await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        said.append(message)

    path, _, query = path.partition("?")
    head = {"method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(), "root_path": ""}
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "headers": headers}
    await app({**scope, **head, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}, receive, send)
    status = next(one["status"] for one in said if one["type"] == "http.response.start")
    return status, b"".join(one.get("body", b"") for one in said)


class InProcess:
    """An application with a loop for its requests, each of which is over when it has its answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._loop = asyncio.new_event_loop()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status, and what came as JSON or else as text; a body that is no bytes is sent as JSON."""
        sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        status, got = self._loop.run_until_complete(_asked(self._app, method, path, sent))
        try:
            return status, json.loads(got)
        except ValueError:
            return status, got.decode("utf-8", "replace")

    def close(self) -> None:
        """Ends the loop."""
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
