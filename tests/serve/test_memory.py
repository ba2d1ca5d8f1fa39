"""A server does not stay large: what was worked out for requests is forgotten, and the memory goes back."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")

import tokentrie
from schema_bombs import FAMILIES
from serve.server import Server, serving
from tokentrie.serve.memory import Keeper, give_back, own_memory
from tokentrie.serve.store.named import _read_rule

pytestmark = [pytest.mark.model, pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells /proc")]

MIB = 1 << 20
GROWTH = 48 * MIB
#: What cannot be given back: holes between what is in use, in each arena of the allocator.
HOLES = 144 * MIB


def memory_of(server: Server) -> int:
    """Bytes that no file stands behind."""
    status = Path(f"/proc/{server.process.pid}/status").read_text("ascii")
    return int(status.split("RssAnon:")[1].split()[0]) << 10


def enum(draw: random.Random, count: int) -> dict[str, Any]:
    values = [f"{number}-{draw.random()}" for number in range(count)]
    return {"type": "object", "properties": {"a": {"enum": values}}, "required": ["a"]}


def hostile(draw: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """Requests that are all different, and large when they are made."""
    said = [{"role": "user", "content": "Hi"}]
    for number in range(24):
        schema = enum(draw, 20_000)
        held = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
        yield "/v1/chat/completions", {"messages": said, "response_format": held, "max_tokens": 4}
        if number % 4 == 0:
            bomb = FAMILIES[draw.choice([*FAMILIES])](8) if number % 8 == 0 else enum(draw, 5_000)
            tools = [{"type": "function", "function": {"name": "f", "parameters": bomb}}]
            yield "/v1/chat/completions", {"messages": said, "tools": tools, "tool_choice": "required", "max_tokens": 2}
            broken = {"type": "object", "properties": {"x": {"enum": "v" * MIB}}, "required": None}
            tools = [{"type": "function", "function": {"name": "f", "parameters": broken}}]
            yield "/v1/chat/completions", {"messages": said, "tools": tools}
            yield "/v1/completions", {"prompt": "word " * MIB, "max_tokens": 1}


def grown(*options: str) -> int:
    """How much larger a server is after hostile requests and a rest."""
    with serving("--slots", "2", "--ctx", "1024", "--threads", "1", "--timeout", "10", *options, key=None) as server:

        def ask(path: str, body: dict[str, Any]) -> int:
            return server.ask("POST", path, body, key=None, timeout=120).status

        held = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "boolean"}}}
        for slot in range(4):
            text = {"role": "user", "content": f"word {slot} " * 200}
            assert ask("/v1/chat/completions", {"messages": [text], "response_format": held}) == 200
        before = memory_of(server)
        with ThreadPoolExecutor(4) as threads:
            statuses = [*threads.map(lambda one: ask(*one), hostile(random.Random(7)))]
        assert {*statuses} <= {200, 400, 503}
        assert statuses.count(200) > 12
        end = time.monotonic() + 30
        while (now := memory_of(server) - before) > GROWTH + HOLES and time.monotonic() < end:
            time.sleep(0.5)
        assert server.ask("GET", "/health", key=None).status == 200
        return now


def test_a_server_gives_back_what_hostile_requests_took() -> None:
    assert grown("--memory-growth", str(GROWTH)) <= GROWTH + HOLES


@pytest.fixture
def looked() -> Iterator[Callable[[int], bool]]:
    """A keeper whose process has as many bytes as it is told, and what it forgets."""
    told = [1000]
    with tokentrie.Model(n_ctx=64, n_threads=1) as model:
        keeper = Keeper([model], [_read_rule.cache_clear], 100, lambda: told[0])

        def look(used: int) -> bool:
            told[0] = used
            return keeper.look()

        yield look


def test_what_was_worked_out_is_forgotten_beyond_the_growth(looked: Callable[[int], bool]) -> None:
    spec = json.dumps({"regex": "a+"})
    kept = _read_rule(spec)
    assert not looked(1100)
    assert _read_rule(spec) is kept
    assert looked(1101)
    assert _read_rule(spec) is not kept
    # From there on it counts anew; at rest it counts from the least.
    assert not looked(1201)
    assert looked(1202)
    for _ in range(3):
        assert not looked(900)
    assert not looked(1000)
    assert looked(1001)


def test_calls_go_on_with_what_is_forgotten() -> None:
    with tokentrie.Model(n_ctx=256, n_threads=1, slots=2) as model:
        tools = [{"name": "ring", "parameters": {"type": "object", "properties": {"times": {"enum": [1, 2, 3]}}}}]
        said = [{"role": "user", "content": "Ring the bell."}]
        expected = model.chat(said, tools, tool_choice="required", mode="greedy")
        chosen = model.generate("The sky is ", ["blue", "red"])
        leaves = [{"name": name, "tokens": [*map(int, model.vocab.tokenize(name))]} for name in ("blue", "red")]
        payload = {"descriptors": [{"path": "colour", "leaves": leaves}]}
        walked = model.generate("The sky is ", payload).tokens
        keeper = Keeper([model], [], -1)
        with ThreadPoolExecutor(1) as threads:
            forgetting = threads.submit(lambda: [keeper.look() for _ in range(20)])
            while not forgetting.done():
                again = model.chat(said, tools, tool_choice="required", mode="greedy")
                assert [one.arguments for one in again.tool_calls] == [one.arguments for one in expected.tool_calls]
                assert model.generate("The sky is ", ["blue", "red"]).text == chosen.text
                assert model.generate("The sky is ", payload).tokens == walked
            assert any(forgetting.result())


def test_free_memory_is_given_back() -> None:
    parts = [bytearray(2000) for _ in range(100_000)]
    filled = own_memory()
    del parts
    give_back()
    after = own_memory()
    assert filled is not None
    assert after is not None
    assert after < filled - 100 * MIB
