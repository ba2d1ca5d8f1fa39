"""Chats, completions and responses: streams say what whole answers say, and what is asked for is held, or refused."""

from __future__ import annotations

import json
import random
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema
import pytest
import tokentrie
from budget import cases

pytest.importorskip("uvicorn")

from serve.server import KEY, Server, serving
from serve.streams import events, put_together

pytestmark = pytest.mark.model

CHAT, COMPLETION, RESPONSE = "/v1/chat/completions", "/v1/completions", "/v1/responses"
SCHEMA = {
    "type": "object",
    "properties": {"room": {"type": "integer", "minimum": 0, "maximum": 99}, "size": {"enum": ["small", "large"]}},
    "required": ["room", "size"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "open_room", "description": "Open it.", "parameters": SCHEMA}}]
WORDS = ["hello", "open a room", "what is red?", "12", "grün", "please", "a date"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("--slots", "4", "--max-queue", "64", "--precise") as server:
        yield server


class Draw(random.Random):
    """Requests, and what must hold of the text."""

    def messages(self) -> list[dict[str, Any]]:
        text = " ".join(self.choices(WORDS, k=self.randint(1, 4)))
        content: Any = [{"type": "text", "text": text}] if self.random() < 0.3 else text
        before = [{"role": self.choice(["system", "developer"]), "content": "Be short."}] if self.random() < 0.3 else []
        return [*before, {"role": "user", "content": content}]

    def settings(self) -> dict[str, Any]:
        drawn: dict[str, Any] = {"temperature": self.choice([0, 0.7, 1.5]), "seed": self.randrange(2**40)}
        for name, values in {"top_p": [0.5, 1], "top_k": [-1, 5], "min_p": [0.1], "presence_penalty": [0.5]}.items():
            if self.random() < 0.2:
                drawn[name] = self.choice(values)
        return drawn

    def held(self) -> tuple[dict[str, Any], Any]:
        """A constraint under one of its names, and what says whether a text obeys it."""

        def pattern(known: str) -> Any:
            return lambda text: re.fullmatch(known, text) is not None

        def valid(text: str) -> bool:
            jsonschema.validate(json.loads(text), SCHEMA)
            return True

        values = self.sample(["red", "dark red", "blue", "no colour", "grün"], 3)
        return self.choice(
            [
                ({"constraint": {"choice": values}}, lambda text: text in values),
                ({"constraint": {"regex": "[a-f]{2,4}"}}, pattern("[a-f]{2,4}")),
                ({"constraint": {"integer": {"min": 3, "max": 12}}}, pattern("[3-9]|1[0-2]")),
                ({"constraint": {"json_schema": SCHEMA}}, valid),
                ({"structured_outputs": {"choice": values}}, lambda text: text in values),
                ({"structured_outputs": {"regex": "x[0-9]y"}}, pattern("x[0-9]y")),
                ({"structured_outputs": {"json": json.dumps(SCHEMA), "disable_any_whitespace": True}}, valid),
                ({"response_format": {"type": "json_schema", "json_schema": {"name": "r", "schema": SCHEMA}}}, valid),
                ({"response_format": {"type": "text"}, "json_schema": SCHEMA}, valid),
                ({"grammar": 'start: "yes" | "no"'}, pattern("yes|no")),
            ]
        )


def text_of(answer: dict[str, Any]) -> str:
    (choice,) = answer["choices"]
    return str(choice["message"]["content"] if "message" in choice else choice["text"])


@pytest.mark.parametrize("seed", range(cases(120)))
def test_what_is_asked_for_is_held_and_a_stream_says_the_same(server: Server, seed: int) -> None:
    draw = Draw(seed)
    is_chat = draw.random() < 0.6
    held, obeys = draw.held()
    body = {**draw.settings(), **held}
    body |= {"messages": draw.messages()} if is_chat else {"prompt": draw.choice([*WORDS, [5, 6, 7]]), "max_tokens": 90}
    path = CHAT if is_chat else COMPLETION
    reply = server.ask("POST", path, body)
    assert reply.status == 200, (body, reply.body)
    answer = reply.json()
    assert answer["choices"][0]["finish_reason"] == "stop", (body, answer)
    assert obeys(text_of(answer)), (body, answer)
    if body["temperature"] == 0 or "seed" in body:
        more = {"stream": True, "stream_options": {"include_usage": True}}
        told = put_together(server.ask("POST", path, body | more).body)
        assert (told["text"], told["finish"], told["done"]) == (text_of(answer), "stop", True)
        assert {**told["usage"], "prompt_tokens_details": 0} == {**answer["usage"], "prompt_tokens_details": 0}
        assert (told["bad"], told["after_finish"], len(told["ids"])) == (0, 0, 1)


@pytest.mark.parametrize("seed", range(cases(60)))
def test_streams_of_free_chats_and_of_calls(server: Server, seed: int) -> None:
    draw = Draw(seed)
    body = {**draw.settings(), "messages": draw.messages(), "max_tokens": draw.choice([1, 30, 300])}
    if draw.random() < 0.6:
        body |= {"tools": TOOLS, "parallel_tool_calls": draw.random() < 0.5}
        named = {"type": "function", "function": {"name": "open_room"}}
        body["tool_choice"] = draw.choice(["auto", "required", "none", named])
    answer = server.ask("POST", CHAT, body).json()
    message, finish = answer["choices"][0]["message"], answer["choices"][0]["finish_reason"]
    told = put_together(server.ask("POST", CHAT, {**body, "stream": True}).body)
    assert (told["text"] or None) == (message["content"] or None)
    assert (told["reasoning"], told["finish"]) == (message.get("reasoning_content", ""), finish)
    calls = [one["function"] for one in message.get("tool_calls", [])]
    assert [{"name": one["name"], "arguments": one["arguments"]} for one in told["tool_calls"]] == calls
    assert all(one["id"] and one["type"] == "function" for one in told["tool_calls"])
    if body.get("tool_choice") not in (None, "auto", "none") and finish != "length":
        assert finish == "tool_calls"
    for call in calls if finish == "tool_calls" else []:
        jsonschema.validate(json.loads(call["arguments"]), SCHEMA)
    # The same as items.
    flat = [{"type": "function", **TOOLS[0]["function"]}] if "tools" in body else None  # type: ignore[dict-item]
    asked = {name: value for name, value in body.items() if name not in ("messages", "max_tokens", "tools")}
    asked |= {"input": [_item(one) for one in body["messages"]], "max_output_tokens": body["max_tokens"]}
    asked |= {"tools": flat} if flat else {}
    if isinstance(asked.get("tool_choice"), dict):
        asked["tool_choice"] = {"type": "function", "name": "open_room"}
    items = server.ask("POST", RESPONSE, asked).json()
    assert items["status"] == ("incomplete" if finish == "length" else "completed"), (asked, items)
    texts = [item["content"][0]["text"] for item in items["output"] if item["type"] == "message"]
    assert "".join(texts) == (message["content"] or "")
    assert [one["arguments"] for one in items["output"] if one["type"] == "function_call"] == [
        call["arguments"] for call in calls
    ]
    streamed = put_together(server.ask("POST", RESPONSE, {**asked, "stream": True}).body)
    assert _shape(streamed["completed"]["output"]) == _shape(items["output"])
    numbers = [one["sequence_number"] for one in streamed["events"]]
    assert numbers == [*range(len(numbers))]
    assert streamed["types"] == [one["type"] for one in streamed["events"]]


def _item(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    parts = content if isinstance(content, str) else [{**part, "type": "input_text"} for part in content]
    return {"role": message["role"], "content": parts}


def _shape(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in item.items() if name not in ("id", "call_id")} for item in items]


FAULTY: list[tuple[str, dict[str, Any], str]] = [
    (CHAT, {"guided_regex": "a"}, "guided_regex"),
    (CHAT, {"guided_json": {}}, "guided_json"),
    (CHAT, {"functions": [{"name": "f"}]}, "functions"),
    (CHAT, {"logit_bias": {"five": 100}}, "logit_bias"),
    (CHAT, {"logit_bias": {"05": 100}}, "logit_bias"),
    (CHAT, {"logit_bias": {"9" * 5000: 100}}, "logit_bias"),
    (CHAT, {"logit_bias": {"5": "100"}}, "logit_bias"),
    (CHAT, {"logit_bias": {"5": 1e39}}, "logit_bias"),
    (CHAT, {"logit_bias": [5]}, "logit_bias"),
    (CHAT, {"logit_bias": {"1000000": 1}}, "logit_bias"),
    (COMPLETION, {"logit_bias": {"1000000": 1}}, "logit_bias"),
    (RESPONSE, {"logit_bias": {"1000000": 1}}, "logit_bias"),
    (CHAT, {"constraint": {"regex": "a", "choice": ["b"]}}, "constraint"),
    (CHAT, {"constraint": {"regexp": "a"}}, "constraint"),
    (CHAT, {"constraint": {}}, "constraint"),
    (CHAT, {"constraint": {"regex": "a("}}, "constraint.regex"),
    (CHAT, {"constraint": {"name": "nobody"}}, "nobody"),
    (CHAT, {"constraint": {"set": "nobody"}}, "set"),
    (CHAT, {"constraint": {"choice": []}}, "choice"),
    (CHAT, {"constraint": {"regex": "a"}, "response_format": {"type": "json_object"}}, "response_format"),
    (CHAT, {"structured_outputs": {}}, "structured_outputs"),
    (CHAT, {"structured_outputs": {"regex": "a", "choice": ["b"]}}, "structured_outputs"),
    (CHAT, {"structured_outputs": {"rgx": "a"}}, "structured_outputs.rgx"),
    (CHAT, {"structured_outputs": {"structural_tag": "{}"}}, "structural_tag"),
    (CHAT, {"structured_outputs": {"json": "{"}}, "structured_outputs.json"),
    (CHAT, {"structured_outputs": {"json": {}, "disable_additional_properties": True}}, "additional"),
    (CHAT, {"response_format": {"type": "xml"}}, "response_format"),
    (CHAT, {"response_format": {"type": "json_schema"}}, "response_format"),
    (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": 7}}}}, "response_format"),
    (CHAT, {"json_schema": {"$ref": "http://example.com/s.json"}}, "json_schema"),
    (CHAT, {"grammar": "start: ("}, "grammar"),
    (CHAT, {"messages": []}, "messages"),
    (
        CHAT,
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        "image_url",
    ),
    (CHAT, {"messages": [{"content": "x"}]}, "role"),
    (CHAT, {"tools": [{"type": "web_search"}]}, "tools[0].type"),
    (CHAT, {"tools": [*TOOLS, *TOOLS]}, "open_room"),
    (CHAT, {"tools": [{"type": "function", "function": {"name": "a b"}}]}, "name"),
    (CHAT, {"tool_choice": "required"}, "tool_choice"),
    (CHAT, {"tools": TOOLS, "tool_choice": "maybe"}, "tool_choice"),
    (CHAT, {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "b"}}}, "tool_choice"),
    (CHAT, {"temperature": -1}, "temperature"),
    (CHAT, {"top_p": 2}, "top_p"),
    (CHAT, {"n": 0}, "n:"),
    (CHAT, {"max_tokens": 0}, "max_tokens"),
    (CHAT, {"max_tokens": "5"}, "max_tokens"),
    (CHAT, {"stop": ""}, "stop"),
    (CHAT, {"stop": 5}, "stop"),
    (CHAT, {"top_logprobs": 2}, "top_logprobs"),
    (CHAT, {"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    (CHAT, {"chat_template_kwargs": {"enable_thinking": "no"}}, "enable_thinking"),
    (CHAT, {"messages": [{"role": "user", "content": "many words " * 20_000}]}, "context"),
    (COMPLETION, {"prompt": []}, "prompt"),
    (COMPLETION, {"prompt": [[]]}, "prompt"),
    (COMPLETION, {"prompt": [10**9]}, "vocabulary"),
    (COMPLETION, {"suffix": "x"}, "suffix"),
    (COMPLETION, {"best_of": 3}, "best_of"),
    (RESPONSE, {"previous_response_id": "resp_1"}, "previous_response_id"),
    (RESPONSE, {"input": []}, "input"),
    (RESPONSE, {"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
    (RESPONSE, {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input_image"),
    (RESPONSE, {"tools": [{"type": "file_search"}]}, "tools[0].type"),
    (RESPONSE, {"text": {"format": {"type": "xml"}}}, "xml"),
    (RESPONSE, {"guided_choice": ["a"]}, "guided_choice"),
]


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("path", "more", "says"), FAULTY)
def test_what_cannot_be_held_is_refused_by_name(
    server: Server, path: str, more: dict[str, Any], says: str, is_streamed: bool
) -> None:
    usual: dict[str, Any] = {
        CHAT: {"messages": [{"role": "user", "content": "x"}]}, COMPLETION: {"prompt": "x"}, RESPONSE: {"input": "x"},
    }[path]  # fmt: skip
    most = {"max_output_tokens" if path == RESPONSE else "max_tokens": 4}
    reply = server.ask("POST", path, {**usual, **most, **more, "stream": is_streamed})
    assert reply.status == 400, reply.body
    assert says in reply.body.decode()
    assert isinstance(reply.json()["error"]["message"], str)


def test_what_is_added_to_logits_acts_in_every_generation(server: Server) -> None:
    star = str(server.ask("POST", "/tokenize", {"content": "*"}).json()["tokens"][0])
    more: dict[str, Any] = {"logit_bias": {star: 1000}, "temperature": 0}
    messages = [{"role": "user", "content": "hello"}]
    quiet = {"chat_template_kwargs": {"enable_thinking": False}}
    chat = server.ask("POST", CHAT, {"messages": messages, "max_tokens": 4, **quiet, **more}).json()
    assert chat["choices"][0]["message"]["content"] == "****"
    text = server.ask("POST", COMPLETION, {"prompt": "hello", "max_tokens": 4, **more}).json()
    assert text["choices"][0]["text"] == "****"
    response = server.ask("POST", RESPONSE, {"input": "hello", "max_output_tokens": 4, **quiet, **more}).json()
    assert response["output"][-1]["content"][0]["text"] == "****"
    held = {"prompt": "hello", "constraint": {"choice": ["blue", "red"]}, **more}
    assert server.ask("POST", COMPLETION, held).json()["choices"][0]["text"] in ("blue", "red")
    none = server.ask("POST", COMPLETION, {"prompt": "hello", "max_tokens": 4, "logit_bias": None, "temperature": 0})
    assert none.json()["choices"][0]["text"] != "****"


def test_several_choices_and_several_prompts(server: Server) -> None:
    asked = {"messages": [{"role": "user", "content": "hello"}], "n": 3, "seed": 5, "max_tokens": 12}
    answer = server.ask("POST", CHAT, asked).json()
    texts = [_said(choice["message"]) for choice in answer["choices"]]
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
    alone = [
        _said(server.ask("POST", CHAT, {**asked, "n": 1, "seed": seed}).json()["choices"][0]["message"])
        for seed in (5, 6, 7)
    ]
    assert texts == alone
    streamed = [json.loads(data) for _, data in events(server.ask("POST", CHAT, {**asked, "stream": True}).body)[:-1]]
    for number, text in enumerate(texts):
        deltas = [one["choices"][0]["delta"] for one in streamed if one["choices"][0]["index"] == number]
        said = "".join((delta.get("content") or "") + (delta.get("reasoning_content") or "") for delta in deltas)
        assert said == text
    prompts = {"prompt": ["The sky is", "One, two,"], "n": 2, "seed": 1, "max_tokens": 4, "echo": True}
    several = server.ask("POST", COMPLETION, prompts).json()["choices"]
    assert [choice["text"].startswith("The sky is") for choice in several] == [True, True, False, False]
    one = server.ask("POST", COMPLETION, {**prompts, "prompt": "One, two,", "n": 1, "seed": 2}).json()["choices"][0]
    assert one["text"] == several[3]["text"]


def _said(message: dict[str, Any]) -> str:
    return str(message.get("reasoning_content", "") + (message["content"] or ""))


def test_logprobs_in_every_form(server: Server) -> None:
    held = {"constraint": {"regex": "[a-z]{3}"}, "temperature": 0}
    chat = {"messages": [{"role": "user", "content": "hi"}], "logprobs": True, "top_logprobs": 2, **held}
    answer = server.ask("POST", CHAT, chat).json()["choices"][0]
    known = answer["logprobs"]["content"]
    assert "".join(one["token"] for one in known) == answer["message"]["content"]
    assert all(one["top_logprobs"][0]["logprob"] >= one["logprob"] for one in known)
    assert put_together(server.ask("POST", CHAT, {**chat, "stream": True}).body)["logprobs"] == known
    completion = {"prompt": "Say ", "logprobs": 2, "return_prompt": True, **held}
    body = server.ask("POST", COMPLETION, completion).json()
    told = body["choices"][0]["logprobs"]
    # A token may begin in the prompt.
    assert "".join(told["tokens"]).strip() == body["choices"][0]["text"]
    assert told["text_offset"] == sorted(told["text_offset"])
    assert len(body["prompt_token_ids"]) == body["usage"]["prompt_tokens"]
    included = {"input": "hi", "include": ["message.output_text.logprobs"], "top_logprobs": 2, **held}
    items = server.ask("POST", RESPONSE, included).json()["output"]
    assert [one["token"] for one in items[-1]["content"][0]["logprobs"]] == [one["token"] for one in known]


def test_variables_of_a_template_reach_it(server: Server) -> None:
    asked = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1, "return_prompt": True}
    tokens = {}
    for thinks in (True, False):
        kwargs = {"chat_template_kwargs": {"enable_thinking": thinks, "more": 1}}
        chat = server.ask("POST", CHAT, asked | kwargs).json()
        tokens[thinks] = chat["prompt_token_ids"]
        assert len(tokens[thinks]) == chat["usage"]["prompt_tokens"]
        choose = {name: asked[name] for name in ("messages", "return_prompt")} | kwargs | {"values": ["a", "b"]}
        assert server.ask("POST", "/v1/choose", choose).json()["prompt_token_ids"] == tokens[thinks]
    assert tokens[True] != tokens[False]
    refused = server.ask("POST", "/v1/choose", {**choose, "chat_template_kwargs": {"now": 1}})
    assert (refused.status, "chat_template_kwargs.now" in refused.body.decode()) == (400, True)


@pytest.mark.parametrize("place", ["template", "system", "messages", "auto"])
@pytest.mark.parametrize("begun", [False, True])
def test_the_prompt_that_is_returned_is_the_one_that_the_model_sees(server: Server, place: str, begun: bool) -> None:
    tool = {"type": "function", "function": {"name": "ring", "description": "Rings.", "parameters": {}}}
    asked = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1, "return_prompt": True, "tools": [tool]}
    if begun:
        asked["messages"] += [{"role": "assistant", "content": "Well"}]
        asked["continue_final_message"] = True
    body = server.ask("POST", CHAT, asked | {"tools_in": place}).json()
    assert len(body["prompt_token_ids"]) == body["usage"]["prompt_tokens"]
    with tokentrie.Model() as model:
        text = model.vocab.detokenize(body["prompt_token_ids"])
    assert ("Their signatures are within <tools></tools>" in text) == (place == "system")
    assert text.endswith("Well") == begun


def test_a_client_that_goes_ends_its_stream(server: Server) -> None:
    def running() -> str:
        found = re.search(
            r"^tokentrie_engine_calls_running\S* (\S+)$", server.ask("GET", "/metrics").body.decode(), re.M
        )
        return found[1] if found else "?"

    body = json.dumps({"prompt": "Once", "max_tokens": 100_000, "ignore_eos": True, "stream": True,
                       "constraint": {"regex": "([a-z]{1,8} )*[A-Z]{9}"}}).encode()  # fmt: skip
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        head = f"POST {COMPLETION} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n"
        client.sendall(f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        assert client.recv(20).startswith(b"HTTP/1.1 200")
    deadline = time.monotonic() + 20
    while running() != "0.0":
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_many_streams_at_once(server: Server) -> None:
    asked = {"prompt": "The sky is ", "constraint": {"regex": "[a-z]{12}"}, "temperature": 0, "stream": True}
    usual = put_together(server.ask("POST", COMPLETION, asked).body)["text"]

    def ask(_: int) -> str:
        reply = server.ask("POST", COMPLETION, asked)
        return "full" if reply.status == 429 else str(put_together(reply.body)["text"])

    with ThreadPoolExecutor(40) as pool:
        texts = [*pool.map(ask, range(cases(200)))]
    assert {*texts} <= {usual, "full"}
    assert texts.count(usual) >= 20


def test_a_stream_that_runs_ends_after_the_time_to_drain() -> None:
    asked = {"prompt": "Once", "stream": True, "temperature": 0,
             "constraint": {"regex": "([a-z]{1,8} )*[A-Z]{9}"}}  # fmt: skip
    with serving("--drain", "1", "--ctx", "8192") as server:
        found: list[dict[str, Any]] = []
        asking = threading.Thread(target=lambda: found.append(put_together(server.ask("POST", COMPLETION, asked).body)))
        asking.start()
        time.sleep(1)
        server.process.send_signal(signal.SIGTERM)
        asking.join(20)
        assert server.process.wait(20) == 0
    assert found[0]["text"]
    assert found[0]["error"]["message"]
