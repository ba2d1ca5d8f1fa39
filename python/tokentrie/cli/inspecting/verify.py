"""`tokentrie verify`: whether a receipt of a generation holds, without the model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.options import (
    CHOICE,
    CHOICES,
    CHOICES_FILE,
    GRAMMAR,
    JSON,
    JSON_SCHEMA,
    NO_THINKING,
    PATH,
    PAYLOAD,
    REGEX,
    SET,
    SPEC,
    THINKING_BUDGET,
    TOOL_CHOICE,
    TOOLS_IN,
    examples,
)

app = typer.Typer(rich_markup_mode=None)

RECEIPT = typer.Argument(metavar="RECEIPT.json", help="A receipt; - is standard input.", show_default=False)
VOCAB = typer.Option("--model", "-m", metavar="M.gguf", help="The model whose vocabulary it is.")
KEY = typer.Option("--key", metavar="FILE", help="The key of the seal: what the file holds, to the last byte.")
MESSAGES = typer.Option(
    "--messages", metavar="CHAT.json", help="Of a chat: the messages up to the reply, or a request that has them."
)
TOOLS = typer.Option("--tools", metavar="FILE.json", help="Of a chat: what could be called, or a request that has it.")


@app.command(
    epilog=examples(
        "verify receipt.json --choices open,closed",
        'verify receipt.json --constraint \'{"choice": ["open", "closed"]}\' --json',
        "verify reply.json --messages request.json --tools request.json --tool-choice required",
    )
)
def verify(
    receipt: Annotated[Path, RECEIPT],
    model: Annotated[Path | None, VOCAB] = None,
    payload: Annotated[Path | None, PAYLOAD] = None,
    path: Annotated[str | None, PATH] = None,
    set_file: Annotated[Path | None, SET] = None,
    choices: Annotated[str | None, CHOICES] = None,
    choice: Annotated[list[str] | None, CHOICE] = None,
    choices_file: Annotated[Path | None, CHOICES_FILE] = None,
    regex: Annotated[str | None, REGEX] = None,
    grammar: Annotated[str | None, GRAMMAR] = None,
    json_schema: Annotated[str | None, JSON_SCHEMA] = None,
    spec: Annotated[str | None, SPEC] = None,
    messages: Annotated[Path | None, MESSAGES] = None,
    tools: Annotated[Path | None, TOOLS] = None,
    tool_choice: Annotated[str, TOOL_CHOICE] = "auto",
    tools_in: Annotated[str, TOOLS_IN] = "template",
    no_thinking: Annotated[bool, NO_THINKING] = False,
    thinking_budget: Annotated[int | None, THINKING_BUDGET] = None,
    key: Annotated[Path | None, KEY] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Check a receipt: each token was allowed, among what the receipt says, and nothing was changed.

    The constraint is given as for generate, and walked again; without one the text was free. That of a chat is told
    by --messages, and by what else the chat was given. The model is not run. Exit code 1 says that the receipt does
    not hold.
    """
    from tokentrie.cli.inspecting.held import Chat, check, read_receipt
    from tokentrie.cli.rules import RuleSource
    from tokentrie.cli.source import Source

    given = [payload, path, set_file, choices, choice, choices_file, regex, grammar, json_schema, spec]
    source = None
    if any(one is not None for one in given):
        rules = RuleSource(regex, grammar, json_schema, spec)
        source = Source(payload, path, set_file, choices, choice or [], choices_file, "", "", rules)
    if str(receipt) == "-" in {str(messages), str(tools)}:
        raise typer.BadParameter("standard input can be read only once", param_hint="RECEIPT.json")
    chat = Chat.of(messages, tools, tool_choice, tools_in, no_thinking, thinking_budget)
    told = read_receipt(receipt)
    secret = console.read(key) if key is not None else None
    with console.collected_warnings() as warnings:
        try:
            check(told, model, source, chat, secret)
        except tokentrie.ReceiptError as error:
            raise tokentrie.ReceiptError(f"{receipt}: {error}") from None
    _say(told, warnings, as_json)


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
