"""What whoever runs a server asks of it: a log without texts, https, and no harm from sockets and headers."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from serve.server import Server, serving

pytestmark = pytest.mark.model

SECRET = "the secret word"


def test_a_log_has_a_line_of_json_for_each_answer_and_no_text() -> None:
    with serving("--log") as server:
        asks = {"prompt": SECRET, "max_tokens": 2}
        ids = [
            server.ask("POST", "/v1/completions", asks).headers["x-request-id"],
            server.ask("POST", "/v1/completions", {**asks, "stream": True}).headers["x-request-id"],
            server.ask("POST", "/v1/completions", {**asks, "constraint": {SECRET: 1}}).headers["x-request-id"],
            server.ask("GET", f"/v1/models/{SECRET.replace(' ', '-')}").headers["x-request-id"],
            server.ask("GET", "/v1/models", key=SECRET).headers["x-request-id"],
            server.ask("GET", "/secret").headers["x-request-id"],
        ]
        assert server.stop() == 0
        assert server.process.stderr is not None
        text = server.process.stderr.read()
    assert "secret" not in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["request"] for line in lines] == ids
    assert [line["status"] for line in lines] == [200, 200, 400, 404, 401, 404]
    completion, model, other = "/v1/completions", "/v1/models/{name}", "other"
    assert [line["route"] for line in lines] == [*[completion] * 3, model, other, other]
    for line in lines:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line["time"])
        assert 0 < line["seconds"] < 60


def test_idle_and_slow_sockets_keep_nobody_waiting() -> None:
    head = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n{"
    with serving(key=None) as server, contextlib.ExitStack() as held:
        for number in range(1000):
            socket_of = held.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            if number % 5 == 0:
                socket_of.sendall(head)
        asks = {"prompt": "The sky is ", "constraint": {"choice": ["blue", "red"]}}
        assert server.ask("POST", "/v1/completions", asks, timeout=20).status == 200
        assert server.stop() == 0


J = b'{"prompt":"a","max_tokens":1}'
POST = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    "said",
    [
        b"NOPE\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost : a\r\n\r\n",
        POST + b"Content-Length: 5\r\nContent-Length: 29\r\n\r\n" + J,
        POST + b"Content-Length: -5\r\n\r\n" + J,
        POST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\n" + b"".join(b"X%d: a\r\n" % one for one in range(20_000)) + b"\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /page/../../../../etc/passwd HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        b"GET /page/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        b"GET http://elsewhere/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    ],
)
def test_tricks_with_headers_and_paths_are_4xx(plain: Server, said: bytes) -> None:
    with socket.create_connection(("127.0.0.1", plain.port), timeout=20) as own:
        # It may answer and close before all of it was read.
        with contextlib.suppress(ConnectionError):
            own.sendall(said)
        assert re.match(rb"HTTP/1\.1 4\d\d ", own.recv(1000))
    assert plain.ask("GET", "/health").status == 200


@pytest.fixture(scope="module")
def plain() -> Iterator[Server]:
    with serving(key=None) as server:
        yield server


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    try:
        subprocess.run(made, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no openssl")
    return certificate, key


def test_https(certificate: tuple[Path, Path]) -> None:
    own, key = map(str, certificate)
    command = [sys.executable, "-m", "tokentrie", "serve", "--port", "0", "--tls-cert", own, "--tls-key", key]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        listens = re.fullmatch(r"listening on (https://127\.0\.0\.1:\d+)\n", process.stdout.readline())
        assert listens is not None
        with urllib.request.urlopen(f"{listens[1]}/health", context=ssl.create_default_context(cafile=own)) as reply:
            assert json.load(reply) == {"status": "ok"}
        process.terminate()
        assert process.wait(60) == 0


def test_what_is_no_certificate_is_one_line(certificate: tuple[Path, Path], tmp_path: Path) -> None:
    own, key = map(str, certificate)
    (tmp_path / "no.pem").write_text("no")
    for options, says, code in (
        (["--tls-key", key], "it goes with --tls-cert", 2),
        (["--tls-cert", str(tmp_path / "nowhere")], "nowhere: No such file", 1),
        (["--tls-cert", str(tmp_path / "no.pem"), "--tls-key", key], "no.pem: no certificate in PEM", 1),
        (["--tls-cert", own], "cert.pem: no certificate in PEM with its key", 1),
        (["--tls-cert", own, "--tls-key", str(tmp_path / "no.pem")], "no certificate in PEM with its key", 1),
    ):
        command = [sys.executable, "-m", "tokentrie", "serve", "--port", "0", *options]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr.count("\n"), says in done.stderr) == (code, 1, True), done.stderr
