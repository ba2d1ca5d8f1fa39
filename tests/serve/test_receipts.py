"""`receipt`: what a completion was allowed, sealed with the key of the server, and checked without it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tokentrie

pytest.importorskip("uvicorn")

from serve.server import Server, serving
from serve.streams import events

pytestmark = pytest.mark.model

SECRET = b"what only the server knows"
COLOURS = {"choice": ["red", "blue"]}
FORM = {"form": ["a ", {"slot": "b", "value": COLOURS}, {"text": "c", "stop": ["e"], "max_tokens": 5}, "."]}
ASKS: dict[str, Any] = {"prompt": "The sky is ", "max_tokens": 20, "receipt": True}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    key = tmp_path_factory.mktemp("key") / "key"
    key.write_bytes(SECRET)
    with serving("--receipt-key", str(key), key=None) as server:
        yield server


@pytest.fixture(scope="module")
def vocab() -> tokentrie.Vocab:
    with tokentrie.Model() as model:
        return model.vocab


@pytest.fixture(scope="module")
def chat_format() -> tokentrie.ChatFormat:
    with tokentrie.Model() as model:
        return model.chat_format


@pytest.mark.parametrize("constraint", [COLOURS, {"integer": {"min": 0, "max": 99}}, {"regex": "[a-c]{3}"}, FORM, None])
def test_completions_have_receipts(server: Server, vocab: tokentrie.Vocab, constraint: Any) -> None:
    body = {**ASKS, "n": 2, "seed": 1} | ({"constraint": constraint} if constraint else {})
    whole = server.ask("POST", "/v1/completions", body).json()["choices"]
    stream = server.ask("POST", "/v1/completions", {**body, "stream": True}).body
    streamed = [json.loads(data) for _, data in list(events(stream))[:-1]]
    told = [choice["receipt"] for data in streamed for choice in data["choices"] if "receipt" in choice]
    assert len(whole) == len(told) == 2
    for receipt in [choice["receipt"] for choice in whole] + told:
        tokentrie.receipts.verify_receipt(receipt, constraint, vocab=vocab, key=SECRET)
        with pytest.raises(tokentrie.errors.ReceiptError, match="sealed with a key"):
            tokentrie.receipts.verify_receipt(receipt, constraint, vocab=vocab)
        with pytest.raises(tokentrie.errors.ReceiptError, match="another constraint"):
            tokentrie.receipts.verify_receipt(receipt, {"choice": ["no"]}, vocab=vocab, key=SECRET)
    assert "receipt" not in server.ask("POST", "/v1/completions", {**body, "receipt": False}).json()["choices"][0]


MESSAGES = [{"role": "user", "content": "Ring twice, please."}]
RING = {"type": "function", "function": {"name": "ring", "parameters": {"type": "object", "properties": {}}}}
HELD = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"enum": [1, 22]}}}


@pytest.mark.parametrize("own", [{}, {"tools": [RING], "tool_choice": "required"}, {"response_format": HELD}])
def test_chats_have_receipts(server: Server, chat_format: tokentrie.ChatFormat, own: dict[str, Any]) -> None:
    body = {"messages": MESSAGES, "max_tokens": 20, "receipt": True, "n": 2, **own}
    whole = server.ask("POST", "/v1/chat/completions", body).json()["choices"]
    stream = server.ask("POST", "/v1/chat/completions", {**body, "stream": True}).body
    streamed = [json.loads(data) for _, data in list(events(stream))[:-1]]
    told = [choice["receipt"] for data in streamed for choice in data["choices"] if "receipt" in choice]
    assert len(whole) == len(told) == 2
    how = {"enable_thinking": "response_format" not in own, **own}
    for receipt in [choice["receipt"] for choice in whole] + told:
        tokentrie.receipts.verify_chat_receipt(receipt, chat_format, MESSAGES, key=SECRET, **how)
        with pytest.raises(tokentrie.errors.ReceiptError, match="sealed with a key"):
            tokentrie.receipts.verify_chat_receipt(receipt, chat_format, MESSAGES, **how)
    assert "receipt" not in server.ask("POST", "/v1/chat/completions", {**body, "receipt": False}).json()["choices"][0]


def test_responses_have_receipts(server: Server, chat_format: tokentrie.ChatFormat) -> None:
    body = {"input": MESSAGES[0]["content"], "max_output_tokens": 8, "receipt": True}
    whole = server.ask("POST", "/v1/responses", body).json()
    *_, (_, last) = events(server.ask("POST", "/v1/responses", {**body, "stream": True}).body)
    for response in (whole, json.loads(last)["response"]):
        tokentrie.receipts.verify_chat_receipt(response["receipt"], chat_format, MESSAGES, key=SECRET)
    assert "receipt" not in server.ask("POST", "/v1/responses", {**body, "receipt": False}).json()


def test_what_has_none_says_so(server: Server) -> None:
    for path, body, part in (
        ("/v1/chat/completions", {"messages": MESSAGES, "receipt": "no"}, "receipt"),
        ("/v1/responses", {"input": "Hi", "receipt": []}, "receipt"),
        ("/v1/completions", {**ASKS, "receipt": 3}, "receipt"),
    ):
        reply = server.ask("POST", path, body)
        assert (reply.status, part in reply.json()["error"]["message"]) == (400, True), reply.body


def test_an_empty_key_is_none(tmp_path: Path) -> None:
    from tokentrie.cli.app import main

    (tmp_path / "key").touch()
    assert main(["serve", "--port", "0", "--receipt-key", str(tmp_path / "key")]) == 2
