"""`tokentrie inspect` of a receipt: whether it holds, checked with what options say, without the model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.chats import chat_tools
from tokentrie.cli.loading import open_vocab, packaged_model
from tokentrie.cli.source import Source
from tokentrie.receipts import verify_chat_receipt


@dataclass(frozen=True)
class Chat:
    """A conversation up to the reply, and what said what the reply may be."""

    messages: list[Any]
    tools: tokentrie.Tools | None
    options: dict[str, Any]

    @classmethod
    def from_options(
        cls,
        messages: Path | None,
        tools: Path | None,
        tool_choice: str,
        tools_in: str,
        no_thinking: bool,
        thinking_budget: int | None,
    ) -> Chat | None:
        """Returns the conversation that was given; None if the receipt is not of a chat.

        Raises:
            BadParameter: options of a chat without one.
            TokenTrieError: a file has no messages, or no tools.
        """
        if messages is None:
            chosen = tool_choice != "auto" or tools_in != "auto" or no_thinking or thinking_budget is not None
            if tools is not None or chosen:
                raise typer.BadParameter("what a chat was given goes with --messages", param_hint="--messages")
            return None
        told = {"enable_thinking": not no_thinking, "thinking_budget": thinking_budget, "tools_in": tools_in}
        made = chat_tools.definitions(tools) if tools else None
        said = chat_tools.read_list(messages, "messages", '{"role": ..., "content": ...}')
        return cls(said, made, {"tool_choice": tool_choice, **told})


def run(
    path: Path,
    content: bytes,
    model: Path | None,
    source: Source | None,
    chat: Chat | None,
    key: Path | None,
    as_json: bool,
) -> None:
    """Checks a receipt and says what it holds.

    Raises:
        ReceiptError: it does not hold.
    """
    told = read_receipt(path, content)
    secret = console.read(key) if key is not None else None
    with console.collected_warnings() as warnings:
        try:
            check(told, model, source, chat, secret)
        except tokentrie.errors.ReceiptError as error:
            raise tokentrie.errors.ReceiptError(f"{path}: {error}") from None
    _say(told, warnings, as_json)


def read_receipt(path: Path, content: bytes) -> dict[str, Any]:
    """A receipt as JSON has it; what else is in it is checked later."""
    try:
        told = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise tokentrie.errors.ReceiptError(f"{path}: invalid receipt: {error}") from error
    if not isinstance(told, dict):
        raise tokentrie.errors.ReceiptError(f"{path}: invalid receipt: expected a JSON object")
    return told


def check(
    told: dict[str, Any], model: Path | None, source: Source | None, chat: Chat | None, key: bytes | None
) -> None:
    """Checks it, without the model.

    Raises:
        ReceiptError: it does not hold.
    """
    content = source.read() if source else None
    if chat is None:
        vocab = open_vocab(model)
        tokentrie.receipts.verify_receipt(told, _constraint(told, vocab, source, content), vocab=vocab, key=key)
        return
    path = model or packaged_model()
    with console.working(f"reading the vocabulary of {path.name}"):
        form = tokentrie.ChatFormat.from_gguf(path)
    assert form.vocab is not None
    constraint = _constraint(told, form.vocab, source, content)
    verify_chat_receipt(told, form, chat.messages, chat.tools, key=key, constraint=constraint, **chat.options)


def _constraint(told: dict[str, Any], vocab: tokentrie.Vocab, source: Source | None, content: Any) -> Any:
    """A set of texts as data where the receipt has a fingerprint of it, as over HTTP; else as `generate` makes it."""
    if source is None:
        return None
    texts = source.texts(content)
    return source.constraint(vocab, content) if texts is None or told.get("constraint") is None else texts


def _say(told: dict[str, Any], warnings: list[str], as_json: bool) -> None:
    branches = [step["branch"] for step in told["steps"] if "branch" in step]
    found = {
        "tokens": len(told["steps"]),
        "branches": len(branches),
        "least_mass": min((branch["mass"] for branch in branches), default=None),
        "keyed": told["keyed"],
        "warnings": warnings,
    }
    if as_json:
        console.print_json(found)
        return
    console.say_warnings(warnings)
    mass = "" if not branches else f", the least mass {found['least_mass']:.3g}"
    sealed = "sealed with the key" if told["keyed"] else "sealed without a key"
    typer.echo(f"the receipt holds: {len(told['steps'])} tokens, {len(branches)} of them chosen{mass}; {sealed}")
