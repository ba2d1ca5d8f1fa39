"""What users report of other servers, each by its number there: it does not happen here."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from serve.server import Reply, Server, serving
from serve.streams import put_together

pytestmark = pytest.mark.model

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
MESSAGES = [{"role": "user", "content": "What is the weather in Rome?"}]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Rome", "Oslo"]}, "days": {"type": "integer", "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}


def tool(name: str = "weather", description: str = "The weather of a city.", schema: Any = SCHEMA) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("--timeout", "60") as one:
        yield one


def refused(reply: Reply, began: float) -> str:
    """What a refusal says, which comes soon and leaves the server whole."""
    assert reply.status == 400, reply.content()
    assert time.perf_counter() - began < 20
    return str(reply.json()["error"]["message"])


def works(server: Server) -> None:
    asked = {"prompt": "The answer is ", "constraint": {"choice": ["yes", "no"]}}
    assert server.ask("POST", COMPLETION, asked).json()["choices"][0]["text"] in ("yes", "no")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("pattern", ["(", "[z-a]", "a{2,1}", r"(a)\1", r"\p{Nope}", "(?P<a>b)(?P<a>c)"])
def test_llama_cpp_19051_a_bad_pattern_is_no_200_without_the_constraint(
    server: Server, pattern: str, stream: bool
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}, "required": ["a"]}
    for field in (
        {"constraint": {"regex": pattern}},
        {"structured_outputs": {"regex": pattern}},
        {"json_schema": schema},
    ):
        began = time.perf_counter()
        refused(server.ask("POST", COMPLETION, {"prompt": "a", "stream": stream, "max_tokens": 5, **field}), began)
    works(server)


@pytest.mark.parametrize("field", ["regex", "grammar", "json_schema"])
def test_llama_cpp_17352_large_counts_take_no_memory(server: Server, field: str) -> None:
    count = "{2000000000,2000000001}"
    said: dict[str, Any] = {
        "regex": {"constraint": {"regex": f"a{count}"}},
        "grammar": {"grammar": f'root ::= "a"{count}'},
        "json_schema": {"json_schema": {"type": "string", "pattern": f"^(a{count}){count}$"}},
    }[field]
    began = time.perf_counter()
    reply = server.ask("POST", COMPLETION, {"prompt": "a", "max_tokens": 5, **said})
    refused(reply, began)
    kept = Path(f"/proc/{server.process.pid}/status").read_text("ascii")
    assert int(kept.partition("VmHWM:")[2].split()[0]) < 1_500_000, "kB"
    works(server)


def test_llama_cpp_26600_nested_groups_do_not_end_the_process(server: Server) -> None:
    groups = "(" * 60_000 + "a" + ")" * 60_000
    for said in (
        {"grammar": f"root ::= {groups.replace('a', chr(34) + 'a' + chr(34))}"},
        {"constraint": {"regex": groups}},
        {"grammar": f"start: {groups.replace('a', chr(34) + 'a' + chr(34))}"},
    ):
        began = time.perf_counter()
        reply = server.ask("POST", COMPLETION, {"prompt": "Say ", "max_tokens": 5, **said})
        if reply.status == 200:
            assert reply.json()["choices"][0]["text"] == "a"
        else:
            refused(reply, began)
    works(server)


@pytest.mark.parametrize("grammar", ['root ::= <think> "a"', "root ::= <[7]>", 'root ::= "a" & "b"', "root ::= !a"])
def test_llama_cpp_25960_what_a_grammar_cannot_have_is_refused(server: Server, grammar: str) -> None:
    began = time.perf_counter()
    refused(server.ask("POST", COMPLETION, {"prompt": "a", "grammar": grammar}), began)
    works(server)


def test_llama_cpp_12597_and_27619_changed_descriptions_change_no_rule(server: Server) -> None:
    for number in range(3):
        tools = [tool(description=f'Version {number}: <|x|> "quoted" {{braces}} and\nlines. ' * (number + 1))]
        asked = {"messages": MESSAGES, "tools": tools, "tool_choice": "required", "seed": number, "max_tokens": 300}
        (choice,) = server.ask("POST", CHAT, asked).json()["choices"]
        assert choice["message"]["tool_calls"][0]["function"]["name"] == "weather"


@pytest.mark.parametrize(
    "schema",
    [{"type": "nothing"}, {"$ref": "#/nowhere"}, {"enum": []}, {"minimum": "a"}, {"pattern": "("}, {"type": 7}, False],
)
def test_vllm_17248_an_invalid_schema_leaves_the_engine_whole(server: Server, schema: Any) -> None:
    for said in (
        {"json_schema": schema},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}},
        {"structured_outputs": {"json": schema}},
    ):
        began = time.perf_counter()
        refused(server.ask("POST", CHAT, {"messages": MESSAGES, **said}), began)
    works(server)


@pytest.mark.parametrize("stream", [False, True])
def test_vllm_49981_required_calls_neither_hang_nor_crash(server: Server, stream: bool) -> None:
    tools = [tool(), tool("nothing", "Takes nothing.", {"type": "object", "properties": {}}), tool("any", "Any.", {})]
    for seed in range(3):
        asked = {"messages": MESSAGES, "tools": tools, "tool_choice": "required", "seed": seed, "max_tokens": 200}
        reply = server.ask("POST", CHAT, {**asked, "stream": stream})
        assert reply.status == 200
        whole = put_together(reply.body) if stream else None
        finish = whole["finish"] if whole is not None else reply.json()["choices"][0]["finish_reason"]
        assert finish in ("tool_calls", "length")


@pytest.mark.parametrize("thinks", [False, True])
def test_vllm_44012_and_50938_a_constraint_holds_after_a_thought_and_around_it(server: Server, thinks: bool) -> None:
    for seed in range(2):
        asked = {
            "messages": MESSAGES,
            "constraint": {"regex": "[0-9]{3}"},
            "chat_template_kwargs": {"enable_thinking": thinks},
            "thinking_budget": 8,
            "seed": seed,
        }
        message = server.ask("POST", CHAT, asked).json()["choices"][0]["message"]
        streamed = put_together(server.ask("POST", CHAT, {**asked, "stream": True}).body)
        for text in (message["content"], streamed["text"]):
            assert re.fullmatch("[0-9]{3}", text)


def test_vllm_47977_and_ollama_8294_streamed_calls_are_json_of_tools_that_there_are(server: Server) -> None:
    tools = [tool(), tool("weather_of_days"), tool("wind")]
    for seed in range(3):
        asked = {"messages": MESSAGES, "tools": tools, "tool_choice": "required", "seed": seed, "max_tokens": 400}
        whole = put_together(server.ask("POST", CHAT, {**asked, "stream": True}).body)
        assert whole["text"].strip() == ""
        for call in whole["tool_calls"]:
            assert call["name"] in ("weather", "weather_of_days", "wind")
            if whole["finish"] == "tool_calls":
                arguments = json.loads(call["arguments"])
                assert arguments["city"] in ("Rome", "Oslo")
                assert arguments["days"] <= 9


def test_ollama_8095_a_format_beside_tools_gives_no_empty_calls(server: Server) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
    asked = {"messages": MESSAGES, "tools": [tool()], "response_format": form}
    (choice,) = server.ask("POST", CHAT, asked).json()["choices"]
    if calls := choice["message"].get("tool_calls"):
        assert all(json.loads(call["function"]["arguments"])["city"] in ("Rome", "Oslo") for call in calls)
    else:
        assert json.loads(choice["message"]["content"])["city"] in ("Rome", "Oslo")
    (choice,) = server.ask("POST", CHAT, {**asked, "tool_choice": "none"}).json()["choices"]
    assert json.loads(choice["message"]["content"])["city"] in ("Rome", "Oslo")
    assert not choice["message"].get("tool_calls")
