"""Receipts on the command line: `generate --receipt` writes one, `inspect` checks it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
import tokentrie
from test_cli import Terminal, run

__all__ = ["run"]

pytestmark = pytest.mark.model

SOURCES = {
    "choices": ["--choices", "open,closed"],
    "regex": ["--regex", "[0-9]{3}"],
    "grammar": ["--grammar", "arithmetic"],
    "schema": ["--json-schema", '{"enum": ["a", "b"]}'],
    "spec": ["--constraint", '{"then": [{"integer": {"min": 1, "max": 9}}, " kg"]}'],
}


@pytest.fixture(scope="module")
def tiny() -> Iterator[tokentrie.Model]:
    with tokentrie.Model() as model:
        yield model


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("keyed", [False, True])
def test_what_was_written_holds(run: Terminal, tmp_path: Path, name: str, keyed: bool) -> None:
    receipt, key, source = tmp_path / "r.json", tmp_path / "key", SOURCES[name]
    key.write_bytes(b"\x00key\n")
    sealed = ["--receipt-key", str(key)] if keyed else []
    run("generate", "--prompt", "The door is", *source, "--max-tokens", "6", "--receipt", str(receipt), *sealed)
    told = json.loads(receipt.read_text())
    given = ["--key", str(key)] if keyed else []
    code, out, _ = astuple(run("inspect", str(receipt), *source, *given))
    assert code == 0
    assert out.startswith(f"the receipt holds: {len(told['steps'])} tokens")
    code, out, _ = astuple(run("inspect", str(receipt), *source, *given, "--json"))
    assert json.loads(out)["keyed"] is keyed
    told["steps"][0]["token"] += 1
    receipt.write_text(json.dumps(told))
    code, _, err = astuple(run("inspect", str(receipt), *source, *given))
    assert (code, err.count("\n")) == (1, 1)
    assert f"{receipt}: the seal does not fit" in err


MESSAGES = [{"role": "user", "content": "Ring twice, please."}]
RING = {"type": "function", "function": {"name": "ring", "parameters": {"type": "object", "properties": {}}}}
CHATS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "free": ({}, []),
    "tools": ({"tools": [RING], "tool_choice": "required"}, ["--tools", "request.json", "--tool-choice", "required"]),
    "told": ({"tools": [RING], "tools_in": "system"}, ["--tools", "request.json", "--tools-in", "system"]),
    "budget": ({"thinking_budget": 3}, ["--thinking-budget", "3"]),
    "schema": (
        {"constraint": {"json_schema": {"enum": [1, 22]}}, "enable_thinking": False},
        ["--json-schema", '{"enum": [1, 22]}', "--no-thinking"],
    ),
    "choice": ({"constraint": ["yes", "no"], "enable_thinking": False}, ["--choices", "yes,no", "--no-thinking"]),
}


@pytest.mark.parametrize("name", CHATS)
def test_the_receipt_of_a_chat(
    run: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, tiny: tokentrie.Model
) -> None:
    monkeypatch.chdir(tmp_path)
    options, given = CHATS[name]
    reply = tiny.chat(MESSAGES, max_tokens=20, receipt=b"key", **options)
    Path("reply.json").write_text(json.dumps(reply.receipt))
    Path("key").write_bytes(b"key")
    Path("request.json").write_text(json.dumps({"model": "any", "messages": MESSAGES, "tools": options.get("tools")}))
    Path("messages.json").write_text(json.dumps(MESSAGES))
    for messages in ("request.json", "messages.json"):
        done = run("inspect", "reply.json", "--messages", messages, *given, "--key", "key")
        assert (done.code, done.out.startswith("the receipt holds: ")) == (0, True), done.err
    if "--thinking-budget" not in given:
        done = run(
            "inspect", "reply.json", "--messages", "request.json", *given, "--thinking-budget", "9", "--key", "key"
        )
        assert (done.code, "reply.json: the receipt is of another constraint" in done.err) == (1, True), done.err
    Path("messages.json").write_text(json.dumps([{"role": "user", "content": "Ring once."}]))
    done = run("inspect", "reply.json", "--messages", "messages.json", *given, "--key", "key")
    assert (done.code, "reply.json: the receipt is of another conversation" in done.err) == (1, True), done.err
    # Without what it was a chat of, it is one of free text.
    done = run("inspect", "reply.json", "--key", "key")
    assert (done.code, "of another constraint" in done.err) == (1, True), done.err


def test_texts_that_were_given_as_data(run: Terminal, tmp_path: Path, tiny: tokentrie.Model) -> None:
    made = tiny.generate("The door is", {"choice": ["open", "closed"]}, receipt=True)
    receipt = tmp_path / "r.json"
    receipt.write_text(json.dumps(made.receipt))
    assert run("inspect", str(receipt), "--choices", "open,closed").code == 0
    done = run("inspect", str(receipt), "--choices", "open,shut")
    assert (done.code, "of another constraint" in done.err) == (1, True)


def test_wrong_usage_of_chats(run: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.json").write_text('{"receipt": 1}')
    for told in (["--tools", "r.json"], ["--tool-choice", "none"], ["--no-thinking"], ["--tools-in", "system"]):
        done = run("inspect", "r.json", *told)
        assert (done.code, "goes with --messages" in done.err) == (2, True), done.err
    for content, problem in (
        ("[", "invalid JSON"),
        ("{}", "no list of messages"),
        ('{"messages": 3}', "no list of messages"),
    ):
        Path("m.json").write_text(content)
        done = run("inspect", "r.json", "--messages", "m.json")
        assert (done.code, f"m.json: {problem}" in done.err) == (1, True), done.err
    Path("m.json").write_text(json.dumps(MESSAGES))
    for receipt in ('{"receipt": NaN}', '{"receipt": 1, "steps": 3}', '{"receipt": {}}', '{"receipt": []}'):
        Path("r.json").write_text(receipt)
        for messages in ([], ["--messages", "m.json"]):
            done = run("inspect", "r.json", *messages)
            assert (done.code, done.err.count("\n"), "no receipt" in done.err) == (1, 1, True), done.err
    done = run("inspect", "-", "--messages", "-")
    assert (done.code, "standard input can be read only once" in done.err) == (2, True), done.err


def test_wrong_usage(run: Terminal, tmp_path: Path) -> None:
    code, _, err = astuple(run("generate", "--prompt", "a", "--choices", "a,b", "--receipt-key", "k"))
    assert (code, "give --receipt" in err) == (2, True)
    code, _, err = astuple(run("inspect", str(tmp_path / "none.json")))
    assert (code, "none.json" in err) == (1, True)
    (tmp_path / "r.json").write_text('{"receipt": 1}')
    code, _, err = astuple(run("inspect", str(tmp_path / "r.json")))
    assert (code, "no receipt: missing field" in err) == (1, True)
    code, _, err = astuple(run("inspect", str(tmp_path / "r.json"), "--regex", "a", "--choices", "a,b"))
    assert code == 2
