"""The server as a deployment of Ray Serve, on a real cluster of two nodes on this machine, with a replica killed."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tokentrie
from tokentrie.integrations.ray_serve import application

ray = pytest.importorskip("ray", reason="Ray is not installed")
serve = pytest.importorskip("ray.serve", reason="Ray Serve is not installed")
pytestmark = [
    pytest.mark.model,
    # What Ray itself does.
    pytest.mark.filterwarnings("ignore"),
]

PORT, KEY = 8137, "only for friends"
URL = f"http://127.0.0.1:{PORT}"
NAMES = ["red", "green", "blue", "dark blue"]
REQUESTS, CALLERS = 500, 16


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sets")
    with tokentrie.Model() as model:
        tokentrie.Trie.from_strings(model.vocab, NAMES).save(folder / "colours.ttrie", vocab=model.vocab)
    return folder


@pytest.fixture(scope="module")
def cluster(sets: Path) -> Iterator[None]:
    from ray.cluster_utils import Cluster

    small = {"num_cpus": 2, "object_store_memory": 100 << 20, "include_dashboard": False}
    with pytest.MonkeyPatch.context() as settings:
        settings.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # The replicas find the package where this test does.
        settings.setenv("PYTHONPATH", os.pathsep.join([str(Path(tokentrie.__file__).parents[1])]))
        cluster = Cluster(initialize_head=True, head_node_args=small)
        cluster.add_node(num_cpus=2, object_store_memory=100 << 20)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        try:
            serve.start(http_options={"host": "127.0.0.1", "port": PORT})
            serve.run(
                application(
                    keys=[KEY],
                    sets=sets,
                    slots=4,
                    n_ctx=512,
                    sticky=True,
                    num_replicas=2,
                    ray_actor_options={"num_cpus": 1},
                    max_replicas_per_node=1,
                )
            )
            yield
        finally:
            serve.shutdown()
            ray.shutdown()
            cluster.shutdown()


def ask(path: str, body: Any = None, method: str | None = None, key: str = KEY, session: str = "") -> tuple[int, bytes]:
    """The status and what was said; 0 where the connection broke."""
    request = urllib.request.Request(URL + path, None if body is None else json.dumps(body).encode(), method=method)
    request.add_header("authorization", f"Bearer {key}")
    request.add_header("content-type", "application/json")
    if session:
        request.add_header("x-session-id", session)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except (OSError, http.client.HTTPException):
        return 0, b""


def read(path: str, said: bytes) -> Any:
    """What of an answer is always the same."""
    if path == "stream":
        parts = [json.loads(line[6:]) for line in said.splitlines() if line.startswith(b"data: {")]
        # A stream that was cut has no reason to end.
        ended = [choice["finish_reason"] for part in parts for choice in part["choices"] if choice["finish_reason"]]
        text = "".join(choice["delta"].get("content") or "" for part in parts for choice in part["choices"])
        return (text, ended[-1]) if ended else None
    body = json.loads(said)
    if path == "/v1/decisions":
        return body["answers"][0]["choice"]
    if path == "/v1/choose":
        return body["choice"]
    choice = body["choices"][0]
    return choice["message"]["content"] if "message" in choice else choice["text"]


def requests() -> list[tuple[str, dict[str, Any]]]:
    """Of every kind; the same comes again and again, so that all its answers must agree."""
    kinds: list[tuple[str, dict[str, Any]]] = []
    for number in range(5):
        said = f"Number {number}: the door is "
        chat = {"messages": [{"role": "user", "content": said}], "max_tokens": 12, "temperature": 0}
        question = {
            "type": "choice",
            "name": "q",
            "instructions": "Which?",
            "choices": [{"value": "open"}, {"value": "shut"}],
        }
        kinds += [
            ("/v1/choose", {"prompt": said, "values": NAMES}),
            (
                "/v1/completions",
                {"prompt": said, "constraint": {"name": "colours"}, "temperature": 0, "max_tokens": 16},
            ),
            ("/v1/completions", {"prompt": said, "constraint": {"integer": {"min": 0, "max": 99}}, "temperature": 0}),
            ("/v1/decisions", {"model": "m", "input": said, "questions": [question]}),
            ("/v1/chat/completions", chat),
            ("stream", {**chat, "stream": True}),
        ]
    return [kinds[number % len(kinds)] for number in range(REQUESTS)]


def processes() -> list[int]:
    """Of the replicas, by the titles that Ray gives them."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and b"ServeReplica:default:tokentrie" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def test_a_replica_that_dies_loses_no_request(cluster: None) -> None:
    status = serve.status().applications["default"]
    assert status.status == "RUNNING", status
    done = Counter[str]()
    killed = threading.Event()

    def answer(number_and_asked: tuple[int, tuple[str, dict[str, Any]]]) -> tuple[str, Any]:
        number, (path, body) = number_and_asked
        if number == REQUESTS // 3:
            before = processes()
            assert len(before) == 2
            os.kill(before[0], signal.SIGKILL)
            killed.set()
        route = "/v1/chat/completions" if path == "stream" else path
        for trial in range(60):
            code, said = ask(route, body)
            if code == 200 and (found := read(path, said)) is not None:
                done[path] += 1
                return json.dumps([path, body], sort_keys=True), found
            assert code in (0, 200, 429, 500, 502, 503, 504), (code, said[:300])
            time.sleep(0.1 * (trial + 1))
        raise AssertionError(f"{path} was never answered")

    with ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(answer, enumerate(requests())))
    assert killed.is_set()
    assert len(answers) == REQUESTS, "none is lost"
    by_request: dict[str, set[Any]] = {}
    for asked, found in answers:
        by_request.setdefault(asked, set()).add(found)
    assert len(by_request) == 30
    # Rows that are rounded otherwise beside others may turn what is as probable as each other.
    assert sum(len(found) > 1 for found in by_request.values()) <= 2, by_request
    for asked, found in by_request.items():
        path, body = json.loads(asked)
        if "colours" in str(body) or path == "/v1/choose":
            assert found <= set(NAMES)
    assert sum(done.values()) == REQUESTS
    deadline = time.monotonic() + 120
    while len(processes()) < 2 and time.monotonic() < deadline:
        time.sleep(0.5)
    assert len(processes()) == 2, "another has taken its place"


def test_what_the_server_refuses_is_refused_here(cluster: None) -> None:
    assert ask("/v1/models", key="another")[0] == 401
    assert ask("/health")[0] == 200
    code, said = ask("/v1/completions", {"prompt": "x", "grammar": "no grammar", "max_tokens": 4})
    assert (code, b"error" in said) == (400, True)
    assert [one["name"] for one in json.loads(ask("/v1/constraints")[1])["data"]] == ["colours"]
    for method, body in (("PUT", ["a"]), ("PATCH", {"add": ["b"]}), ("DELETE", None)):
        code, said = ask("/v1/constraints/colours", body, method)
        assert (code, json.loads(said)["error"]["code"]) == (403, "fixed"), method


def test_requests_of_a_session_come_to_what_was_decoded_for_it(cluster: None) -> None:
    # Which replica a session has is settled once the one that took a dead one's place is known to all.
    deadline = time.monotonic() + 120
    while serve.status().applications["default"].deployments["tokentrie"].replica_states.get("RUNNING", 0) < 2:
        assert time.monotonic() < deadline, serve.status()
        time.sleep(0.5)
    time.sleep(2)
    for session in ("a", "b", "c", "d"):
        beginning = f"Session {session}: " + "colours of doors, " * 10
        reused = []
        for number in range(6):
            body = {"messages": [{"role": "user", "content": f"{beginning}{number}"}], "max_tokens": 1}
            code, said = ask("/v1/chat/completions", body, session=session)
            assert code == 200, said
            reused.append(json.loads(said)["usage"]["prompt_tokens_details"]["cached_tokens"])
        assert min(reused[1:]) > 30, reused


def test_what_cannot_be_is_said_before_anything_is_deployed() -> None:
    with pytest.raises(tokentrie.errors.OptionError, match="slots is 0"):
        application(slots=0)
    with pytest.raises(tokentrie.errors.OptionError, match="models is empty"):
        application({})
