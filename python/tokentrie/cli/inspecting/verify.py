"""`tokentrie verify`: whether a receipt of a generation holds, without the model."""

from __future__ import annotations

import json
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
    PATH,
    PAYLOAD,
    REGEX,
    SET,
    SPEC,
    examples,
)

app = typer.Typer(rich_markup_mode=None)

RECEIPT = typer.Argument(metavar="RECEIPT.json", help="A receipt; - is standard input.", show_default=False)
VOCAB = typer.Option("--model", "-m", metavar="M.gguf", help="The model whose vocabulary it is.")
KEY = typer.Option("--key", metavar="FILE", help="The key of the seal: what the file holds, to the last byte.")


@app.command(
    epilog=examples(
        "verify receipt.json --choices open,closed", "verify receipt.json --constraint spec.json --key key.bin"
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
    key: Annotated[Path | None, KEY] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Check a receipt: each token was allowed, among what the receipt says, and nothing was changed.

    The constraint is given as for generate, and walked again; without one the text was free. The model is not run.
    Exit code 1 says that the receipt does not hold.
    """
    from tokentrie.cli.loading import open_vocab
    from tokentrie.cli.rules import RuleSource
    from tokentrie.cli.source import Source

    given = [payload, path, set_file, choices, choice, choices_file, regex, grammar, json_schema, spec]
    source = None
    if any(one is not None for one in given):
        rules = RuleSource(regex, grammar, json_schema, spec)
        source = Source(payload, path, set_file, choices, choice or [], choices_file, "", "", rules)
    content = source.read() if source else None
    text = console.read(receipt)
    secret = console.read(key) if key is not None else None
    vocab = open_vocab(model)
    with console.collected_warnings() as warnings:
        constraint = source.constraint(vocab, content) if source and content is not None else None
        try:
            tokentrie.verify_receipt(text, constraint, vocab=vocab, key=secret)
        except tokentrie.ReceiptError as error:
            raise tokentrie.ReceiptError(f"{receipt}: {error}") from None
    told: dict[str, Any] = json.loads(text)
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
