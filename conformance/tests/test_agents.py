"""The suite of agents' tools: its lists have what breaks engines, its calls are judged, its runner tells faults."""

from __future__ import annotations

import http.server
import importlib.util
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

AGENTS = Path(__file__).parents[1] / "agents"
sys.path.insert(0, str(AGENTS))

import calls
import lists
from jsonschema import Draft202012Validator

# The runner of the other suite has the same name.
of_runner = importlib.util.spec_from_file_location("agents_run", AGENTS / "run.py")
assert of_runner is not None
assert of_runner.loader is not None
run = importlib.util.module_from_spec(of_runner)
of_runner.loader.exec_module(run)


def schemas(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from schemas(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from schemas(inner)


def test_lists_are_what_agents_send() -> None:
    made = {name: make() for name, make in lists.LISTS.items()}
    sizes = {name: lists.size(tools) for name, tools in made.items()}
    assert (len(made), len(made["pocket"]), len(made["aggregate_58"]), len(made["aggregate_1000"])) == (10, 5, 58, 1000)
    assert sizes["pocket"] < 2_500
    assert sizes["aggregate_58"] > 100_026
    assert 1_500_000 < sizes["aggregate_1000"] < 2_500_000
    for name, tools in made.items():
        assert tools == lists.LISTS[name]()
        names = [tool["function"]["name"] for tool in tools]
        assert len(set(names)) == len(names)
        for tool in tools:
            Draft202012Validator.check_schema(calls.parameters(tool))
    every = [schema for tools in made.values() for schema in schemas(tools)]
    found = {
        (key, str(value)) for schema in every for key, value in schema.items() if not isinstance(value, (dict, list))
    }
    assert {("maxLength", "65536"), ("maxItems", "10000")} <= found
    assert {"$defs", "$ref", "anyOf", "oneOf", "format", "prefixItems", "uniqueItems", "multipleOf"} <= {
        key for schema in every for key in schema
    }
    patterns = {schema["pattern"] for schema in every if isinstance(schema.get("pattern"), str)}
    assert any(not pattern.startswith("^") for pattern in patterns)
    functions = [tool["function"] for tools in made.values() for tool in tools]
    assert any("parameters" not in function for function in functions)
    assert any(function.get("parameters") == {"type": "object", "properties": {}} for function in functions)
    assert any(not function["description"].isascii() for function in functions)


@pytest.mark.parametrize("name", ["pocket", "home", "office", "coding_agent"])
def test_calls_are_judged(name: str) -> None:
    tools = lists.LISTS[name]()
    drawn = calls.draw(tools, 1, 60)
    assert drawn == calls.draw(tools, 1, 60) != calls.draw(tools, 2, 60)
    judges = calls.judge_of(tools)
    for call in drawn:
        if call.is_valid:
            assert judges[call.tool].is_valid(json.loads(call.arguments)), call
    assert sum(call.is_valid for call in drawn) > 30
    assert sum(not call.is_valid for call in drawn) > 20


def test_an_engine_holds_the_small_lists() -> None:
    pytest.importorskip("tokentrie")
    for row in run.offline("tokentrie", ["pocket", "home", "workplace", "data_store"], None, 7, 60):
        assert row["accepted"], row
        assert (row["of them refused"], row["of them taken"], row["warnings"]) == (0, 0, 0), row


@pytest.mark.parametrize(
    ("calls_made", "finish", "said"),
    [
        ([["get_weather", '{"city": "Oslo"}']], "tool_calls", "valid"),
        ([["get_weather", '{"city": 7}']], "tool_calls", "invalid"),
        ([["get_wether", "{}"]], "tool_calls", "invalid"),
        ([["get_weather", '{"city": "Os']], "length", "cut off"),
        ([["get_weather", '{"city": "Os']], "tool_calls", "invalid"),
        ([], "stop", "no call"),
    ],
)
def test_replies_are_judged(calls_made: list[list[str]], finish: str, said: str) -> None:
    assert run.reply_of(calls.judge_of(lists.pocket()), calls_made, finish) == said


class Handler(http.server.BaseHTTPRequestHandler):
    """A server that takes one list, says of another that it is too long, and refuses the third."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        count = len(asked["tools"])
        if count != 5:
            status, why = (400, "the request exceeds the context") if count == 11 else (500, "failed to parse grammar")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps({"error": {"message": why}}).encode())
            return
        self.send_response(200)
        self.end_headers()
        for function in ({"name": "battery", "arguments": ""}, {"arguments": "{}"}):
            delta = {"tool_calls": [{"index": 0, "function": function}]}
            self.wfile.write(b"data: " + json.dumps({"choices": [{"delta": delta}]}).encode() + b"\n\n")
        self.wfile.write(b'data: {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}\n\ndata: [DONE]\n\n')

    def log_message(self, *_: Any) -> None:
        pass


def test_servers_are_asked() -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/v1"
        taken, long, refused = run.served(["pocket", "home", "browser"], url, "m", {}, 30)
    finally:
        server.shutdown()
        server.server_close()
    assert (taken["accepted"], taken["reply"], taken["status"]) == (True, "valid", 200)
    assert taken["first token s"] is not None
    assert (long["accepted"], long["reply"]) == (True, "prompt too long")
    assert (refused["accepted"], refused["status"], "grammar" in refused["why"]) == (False, 500, True)
    assert run.table([taken, long, refused]).count("\n") == 4
