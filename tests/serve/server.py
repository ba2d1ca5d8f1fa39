"""A server of its own process, with the tiny model."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

KEY = "secret-key"


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def content(self) -> Any:
        """JSON, or the text of what is none."""
        is_json = self.headers.get("content-type", "").startswith("application/json")
        return self.json() if is_json else {"text": self.body.decode()}


@dataclass
class Server:
    """One that listens."""

    process: subprocess.Popen[str]
    port: int

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str | None] | None = None,
        *,
        key: str | None = KEY,
        timeout: float = 60,
    ) -> Reply:
        """A request; a body that is no bytes is sent as JSON."""
        sent: dict[str, str | None] = {"authorization": f"Bearer {key}"} if key is not None else {}
        if body is not None and not isinstance(body, bytes):
            body, sent["content-type"] = json.dumps(body).encode(), "application/json"
        sent |= headers or {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with contextlib.closing(connection):
            connection.request(method, path, body, {name: one for name, one in sent.items() if one is not None})
            reply = connection.getresponse()
            return Reply(reply.status, {name.lower(): one for name, one in reply.getheaders()}, reply.read())

    def stop(self) -> int:
        """Tells it to end, and waits."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextlib.contextmanager
def serving(*options: str, key: str | None = KEY, interpreter: str | None = None) -> Iterator[Server]:
    """A server while it is used; of another environment, if its interpreter is given."""
    command = [interpreter or sys.executable, "-m", "tokentrie", "serve", "--port", "0", *options]
    command += ["--api-key", key] if key is not None else []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        assert select.select([process.stdout], [], [], 120)[0], "it never listened"
        line = process.stdout.readline()
        listens = re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", line)
        assert listens is not None, line + (process.stderr.read() if not line else "")
        yield Server(process, int(listens[1]))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
