"""A server as it is run: what it refuses, what it survives, how it stops."""

from __future__ import annotations

import gzip
import json
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tokentrie
from budget import cases

pytest.importorskip("uvicorn")

import zstandard
from serve.server import KEY, Server, serving
from tokentrie.cli.serving.serve import _listening

pytestmark = pytest.mark.model

ASKS: dict[str, Any] = {
    "model": "m",
    "input": "It is on.",
    "questions": [{"type": "predicate", "instructions": "Is it on?"}],
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("--max-body", "100000", "--slots", "4", "--max-queue", "8") as server:
        yield server


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tokentrie", "serve", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--host", "0.0.0.0"], "--insecure"),
        (["--model", "nowhere.gguf"], "nowhere.gguf"),
        (["--api-key", ""], "a key is empty"),
        (["--api-key-file", "nowhere"], "nowhere"),
        (["--model", "a=x.gguf", "--model", "a=y.gguf"], "two models are named 'a'"),
        (["--port", "70000"], "65535"),
        (["--slots", "0"], "equal to 1"),
    ],
)
def test_a_wrong_start_is_one_line(arguments: list[str], says: str) -> None:
    done = run("--port", "0", *arguments)
    assert done.returncode > 0
    assert (done.stdout, len(done.stderr.strip().splitlines())) == ("", 1)
    assert says in done.stderr


def test_examples_of_the_help_listen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, examples = run("--help").stdout.partition("  Examples:\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "keys.txt").write_text(f"{KEY}\n")
    (tmp_path / "model.gguf").symlink_to(Path(tokentrie.__file__).parent / "models" / "tiny.gguf")
    found = [line.split()[2:] for line in examples.splitlines() if line.strip()]
    assert len(found) == 3
    for arguments in found:
        with serving(*arguments, "--port", "0", key=None) as server:
            assert server.ask("POST", "/v1/decisions", ASKS).status == 200


def test_a_port_in_use_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("--port", str(taken.getsockname()[1]))
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (1, 1)
    assert "cannot listen on 127.0.0.1" in done.stderr


def test_answers_do_not_wait_for_confirmations() -> None:
    with _listening("127.0.0.1", 0) as listening:
        client = socket.create_connection(listening.getsockname())
        accepted, _ = listening.accept()
        with client, accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_what_it_answers_is_what_the_model_says(server: Server) -> None:
    asks = {
        **ASKS,
        "questions": [{"type": "choice", "instructions": "?", "choices": [{"value": "a b"}, {"value": "c"}]}],
    }
    answer = server.ask("POST", "/v1/decisions", {**asks, "return_prompt": True}).json()["answers"][0]
    (prompt,) = answer["x_prompts"]
    with tokentrie.Model() as model:
        ends = [*prompt["end_tokens"], *model.vocab.boundary_tokens]
        choice = model.choose(prompt["token_ids"], prompt["spellings"], end_tokens=ends)
    expected = [0.0, 0.0]
    for option, share in zip(prompt["options"], choice.probabilities.values(), strict=True):
        expected[option] += share
    assert (prompt["values"], prompt["end"]) == (["a b", "c"], "optional")
    assert [one["probability"] for one in answer["probabilities"]] == pytest.approx(expected, abs=0.01)


def test_a_key_file_and_a_named_model(tmp_path: Path) -> None:
    keys, tiny = tmp_path / "keys", Path(tokentrie.__file__).parent / "models" / "tiny.gguf"
    keys.write_text("# those of team A\none\n\n two \n")
    with serving(
        "--api-key-file", str(keys), "--model", f"small={tiny}", "--model", f"other={tiny}", key=None
    ) as server:
        for key, status in (
            ("one", 200),
            ("two", 200),
            ("three", 401),
            ("", 401),
            ("one two", 401),
            ("# those of team A", 401),
        ):
            assert server.ask("POST", "/v1/decisions", ASKS, key=key).status == status
        assert server.ask("POST", "/v1/decisions", ASKS, {"authorization": "two"}, key=None).status == 401
        names = {
            name: server.ask("POST", "/v1/decisions", {**ASKS, "model": name}, key="one") for name in ("other", "x")
        }
        assert {name: reply.json()["model"] for name, reply in names.items()} == {"other": "other", "x": "small"}
        assert server.ask("GET", "/v1/models/other", key="one").json()["id"] == "other"
        assert server.ask("GET", "/v1/models/x", key="one").status == 404


def test_an_origin_may_ask() -> None:
    with serving("--cors", "https://app.example") as server:
        asks = {"origin": "https://app.example", "access-control-request-method": "POST"}
        asks["access-control-request-headers"] = "authorization,content-type,if-match,x-stainless-os"
        reply = server.ask("OPTIONS", "/v1/decisions", None, {**asks}, key=None)
        assert (reply.status, reply.headers["access-control-allow-origin"]) == (200, "https://app.example")
        other = server.ask("OPTIONS", "/v1/decisions", None, {**asks, "origin": "https://evil.example"}, key=None)
        assert other.status == 400
        told = server.ask("POST", "/v1/decisions", ASKS, {"origin": "https://app.example"})
        assert told.headers["access-control-allow-origin"] == "https://app.example"
        assert "etag" in told.headers["access-control-expose-headers"]


@pytest.mark.parametrize("path", ["/v1/decisions", "/v1/systemone", "/v1/choose", "/tokenize", "/detokenize"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"7",
        b'"text"',
        b'{"a": NaN}',
        b"[" * 90_000,
        b'{"a":' * 19_000,
        b'{"model": "m", "input": "x", "questions": 7}',
        b'{"model": 7, "state": "x", "questions": {"q": {"type": "noul", "instructions": "?"}}}',
        b'{"prompt": 7, "values": ["a", "b"]}',
        b'{"prompt": [-1, 99999999999999999999], "values": ["a", "b"]}',
        b'{"prompt": "x", "values": ["a", ""]}',
        b'{"tokens": [99999999]}',
        b'{"prompt": "\\ud800", "values": ["a", "\\udfff"]}',
    ],
)
def test_bad_bodies_are_4xx(server: Server, path: str, body: bytes) -> None:
    if path == "/tokenize" and b'"prompt": "x"' in body:
        return  # There it is a text, beside a field that is nothing.
    reply = server.ask("POST", path, body, {"content-type": "application/json"}, timeout=30)
    assert 400 <= reply.status < 500, (reply.status, reply.body[:300])
    told = reply.json()
    assert ("detail" in told) == (path == "/v1/systemone")
    assert told["error"]["message"]
    assert set(told["error"]) == {"message", "type", "param", "code"}


def test_large_bodies_are_refused_packed_or_not(server: Server) -> None:
    plain = json.dumps({**ASKS, "input": "x" * 200_000}).encode()
    packed = {"gzip": gzip.compress(b"0" * (1 << 26)), "zstd": zstandard.compress(b"0" * (1 << 26))}
    for encoding, body in {"identity": plain, **packed}.items():
        headers = {"content-type": "application/json", "content-encoding": encoding}
        assert server.ask("POST", "/v1/decisions", body, {**headers}).status == 413, encoding
    for encoding, body in {"gzip": gzip.compress(b"{}" * 99)[:-5], "zstd": b"no zstd", "br": b"x"}.items():
        headers = {"content-type": "application/json", "content-encoding": encoding}
        status = server.ask("POST", "/v1/decisions", body, {**headers}).status
        assert status == (415 if encoding == "br" else 400), encoding


def test_long_states_say_that_they_do_not_fit(server: Server) -> None:
    told = server.ask("POST", "/v1/decisions", {**ASKS, "input": "word " * 9000})
    assert (told.status, told.json()["error"]["code"]) == (400, "context_length_exceeded")


def test_control_tokens_of_users_are_text(server: Server) -> None:
    mark = "<|im_end|>"
    asks = {"type": "choice", "instructions": mark, "choices": [{"value": mark}, {"value": "b", "description": mark}]}
    answer = server.ask(
        "POST", "/v1/decisions", {"model": "m", "input": mark, "questions": [asks], "return_prompt": True}
    )
    tokens = answer.json()["answers"][0]["x_prompts"][0]["token_ids"]
    with tokentrie.Model() as model:
        (end,) = model.vocab.tokenize(mark, parse_special=True)
    assert tokens.count(end) == 1, "the end of the user's turn alone"


def test_control_tokens_are_text_wherever_a_chat_has_text(server: Server) -> None:
    def asked(mark: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {mark: {"enum": [mark]}}}
        function = {"name": "a", "description": mark, "parameters": schema}
        call = {"id": mark, "type": "function", "function": {"name": "a", "arguments": json.dumps({mark: mark})}}
        said = [
            {"role": "system", "content": mark},
            {"role": "user", "content": [{"type": "text", "text": mark}], "name": mark},
            {"role": "assistant", "content": mark, "reasoning_content": mark, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": mark, "content": mark},
            {"role": "user", "content": mark},
        ]
        tools = [{"type": "function", "function": function}]
        return {"messages": said, "tools": tools, "max_tokens": 2, "return_prompt": True}

    with tokentrie.Model() as model:
        control = {*model.vocab.control}
        marks = [model.vocab[token].decode() for token in control if model.vocab[token]]
    kinds = []
    for mark in ("plain", *marks):
        reply = server.ask("POST", "/v1/chat/completions", asked(mark))
        assert reply.status == 200, reply.body
        kinds.append([token for token in reply.json()["prompt_token_ids"] if token in control])
    assert kinds[0]
    assert all(kind == kinds[0] for kind in kinds)


def test_a_full_queue_is_429_and_a_client_that_goes_ends_its_call() -> None:
    with serving("--slots", "1", "--max-queue", "1", "--ctx", "4096") as server:
        values = [f"value number {number} of many" for number in range(3000)]
        asks = json.dumps({"prompt": "Which? ", "values": values, "top": 2500}).encode()

        def sent() -> socket.socket:
            client = socket.create_connection(("127.0.0.1", server.port))
            head = f"POST /v1/choose HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(asks)}\r\n\r\n"
            client.sendall(head.encode() + asks)
            return client

        def gauge(name: str) -> float:
            text = server.ask("GET", "/metrics").body.decode()
            return float(re.search(rf"^{name}{{.*}} (\S+)$", text, re.MULTILINE)[1])  # type: ignore[index]

        clients = [sent(), sent(), sent(), sent()]
        end = time.monotonic() + 60
        while gauge("tokentrie_engine_calls_running") + gauge("tokentrie_engine_calls_queued") < 2:
            assert time.monotonic() < end
        refused = [client for client in clients if _first_line(client, 5).startswith(b"HTTP/1.1 429")]
        assert len(refused) >= 1
        for client in clients:
            client.close()
        while gauge("tokentrie_engine_calls_running") > 0:
            assert time.monotonic() < end, "nobody waits for it any more"
        assert server.ask("POST", "/v1/decisions", ASKS).status == 200


def _first_line(client: socket.socket, seconds: float) -> bytes:
    client.settimeout(seconds)
    try:
        return client.recv(4096)
    except TimeoutError:
        return b""


def test_many_clients_get_what_each_would_get_alone(server: Server) -> None:
    def asked(number: int) -> float:
        reply = server.ask("POST", "/v1/decisions", {**ASKS, "input": f"The lamp {number % 7} is on."})
        # More than may wait are told to come again.
        while reply.status == 429:
            assert reply.headers["retry-after"]
            time.sleep(0.05)
            reply = server.ask("POST", "/v1/decisions", {**ASKS, "input": f"The lamp {number % 7} is on."})
        return float(reply.json()["answers"][0]["probability"])

    with ThreadPoolExecutor(16) as pool:
        found = [*pool.map(asked, range(70))]
    alone = [asked(number) for number in range(7)]
    assert found == pytest.approx([alone[number % 7] for number in range(70)], abs=0.02)


def test_precise_answers_have_the_same_bits_whatever_runs_beside_them() -> None:
    with serving("--precise", "--slots", "3") as server, ThreadPoolExecutor(6) as pool:
        alone = server.ask("POST", "/v1/decisions", ASKS).json()["answers"]
        others = [pool.submit(server.ask, "POST", "/v1/decisions", {**ASKS, "input": "x y " * n}) for n in range(1, 20)]
        same = [pool.submit(server.ask, "POST", "/v1/decisions", ASKS) for _ in range(10)]
        assert all(one.result().json()["answers"] == alone for one in same)
        assert all(one.result().status == 200 for one in others)


def test_term_lets_running_calls_end_and_takes_no_new_ones() -> None:
    with serving("--slots", "2", "--drain", "30") as server:
        values = [f"value number {number} of many" for number in range(500)]
        replies: list[int] = []
        asks = {"prompt": "Which? ", "values": values, "top": 500}
        running = threading.Thread(target=lambda: replies.append(server.ask("POST", "/v1/choose", asks).status))
        running.start()
        while b"tokentrie_requests_running 2" not in server.ask("GET", "/metrics").body:
            assert running.is_alive()
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        if running.is_alive():
            with pytest.raises((ConnectionError, TimeoutError)):
                server.ask("POST", "/v1/decisions", ASKS, timeout=5)
        running.join()
        assert replies == [200]
        assert server.process.wait(30) == 0


@pytest.mark.parametrize("path", ["/v1/choose", "/v1/completions", "/v1/chat/completions", "/v1/responses"])
def test_a_call_that_runs_longer_than_the_time_to_drain_may_be_asked_again(path: str) -> None:
    endless = {"constraint": {"regex": "([a-z]{1,8} )*[A-Z]{9}"}}
    asks: dict[str, Any] = {
        "/v1/choose": {"prompt": "Which? ", "values": [f"value number {one}" for one in range(2000)], "top": 2000},
        "/v1/completions": {"prompt": "Once", **endless},
        "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi"}], **endless},
        "/v1/responses": {"input": "Hi", **endless},
    }[path]
    with serving("--drain", "0", "--ctx", "8192") as server, ThreadPoolExecutor(1) as pool:
        running = pool.submit(server.ask, "POST", path, asks)
        while b"tokentrie_requests_running 2" not in server.ask("GET", "/metrics").body:
            assert not running.done()
        time.sleep(0.2)
        server.process.send_signal(signal.SIGTERM)
        reply = running.result(30)
        if reply.status != 200:
            assert (reply.status, reply.headers["retry-after"], reply.json()["error"]["code"]) == (503, "1", "stopping")
        assert server.process.wait(30) == 0


def test_nothing_is_said_of_prompts(server: Server) -> None:
    with serving() as own:
        own.ask("POST", "/v1/decisions", {**ASKS, "input": "the secret word"})
        own.ask("POST", "/v1/decisions", b"{the secret word", {"content-type": "application/json"})
        assert own.stop() == 0
        assert own.process.stderr is not None
        assert "secret" not in own.process.stderr.read()


def mutated(draw: random.Random, value: Any) -> Any:
    """A request with something of it changed."""
    if draw.random() < 0.15:
        others: list[Any] = [
            None,
            True,
            7,
            -1,
            1e308,
            "",
            "x" * 1000,
            [],
            {},
            [[[]]],
            {"type": "choice"},
            "\ud800",
            2**70,
        ]
        return draw.choice(others)
    if isinstance(value, dict):
        found = {name: mutated(draw, one) for name, one in value.items() if draw.random() > 0.05}
        return found | (
            {draw.choice(["stream", "grammar", "type", ""]): draw.choice([1, None])} if draw.random() < 0.1 else {}
        )
    return [mutated(draw, one) for one in value] * draw.choice([1, 1, 2]) if isinstance(value, list) else value


def test_no_mutated_request_is_the_fault_of_the_server(server: Server) -> None:
    draw = random.Random(3)
    two = [*ASKS["questions"], {"type": "choice", "instructions": "?", "choices": [{"value": "a"}, {"value": True}]}]
    asks = {
        "/v1/decisions": {**ASKS, "questions": two},
        "/v1/systemone": {"model": "m", "state": ["x"], "questions": {"q": {"type": "score", "criteria": ["a", "b"]}}},
        "/v1/choose": {"prompt": "x ", "values": ["a", "b"], "top": 1},
        "/tokenize": {"content": "x", "with_pieces": True},
        "/detokenize": {"tokens": [1, 2]},
    }
    statuses = set()
    for _ in range(cases(3000)):
        path = draw.choice([*asks])
        body = json.dumps(mutated(draw, asks[path])).encode()
        body = body[: draw.randrange(len(body))] if draw.random() < 0.1 else body
        reply = server.ask("POST", path, body, {"content-type": "application/json"})
        assert reply.status < 500, (path, body, reply.body)
        statuses.add(reply.status)
    assert {200, 400, 422} <= statuses
