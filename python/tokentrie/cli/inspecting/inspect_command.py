"""The command `tokentrie inspect` with its options: what a file is, and who shows it."""

from __future__ import annotations

import enum
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tokentrie.cli import console
from tokentrie.cli.inspecting import inspect_file
from tokentrie.cli.options import (
    CHOICE,
    CHOICES,
    CHOICES_FILE,
    GRAMMAR,
    JSON,
    JSON_SCHEMA,
    MOST,
    NO_THINKING,
    PAYLOAD,
    REGEX,
    SET,
    SPEC,
    THINKING_BUDGET,
    TOOL_CHOICE,
    TOOLS_IN,
    examples,
)
from tokentrie.files import only_files

app = typer.Typer(rich_markup_mode=None)

GGUF = b"GGUF"
# Endings of file names that tell the kind of a text; for other names its beginning tells the kind.
TEMPLATES = {".jinja", ".jinja2", ".j2"}
# What a template may begin with that JSON does not.
JINJA = ("{{", "{%", "{#")


class Kind(enum.Enum):
    """Kind of an inspected file, by its name in messages."""

    PAYLOAD = "a payload"
    SET = "a .ttrie file"
    SETS = "two .ttrie files"
    RULE = "a rule"
    TEMPLATE = "a chat template"
    RECEIPT = "a receipt"


CONSTRAINT = "--payload --set --choices --choice --choices-file --regex --grammar --json-schema --constraint"
OF_CHATS = "--messages --tools --tool-choice --tools-in --no-thinking --thinking-budget"
OPTIONS = {
    Kind.PAYLOAD: "--vocab --path --depth --max-children --svg",
    Kind.SET: "--vocab --depth --max-children --find --svg",
    Kind.SETS: "--most",
    Kind.RULE: "--regex --grammar --vocab --samples --seed --svg",
    Kind.TEMPLATE: "--tools --parse --response-template",
    Kind.RECEIPT: f"{CONSTRAINT} --path {OF_CHATS} --vocab --key",
}
"""The options that each kind takes, beside --json."""


def kind_of(files: Sequence[Path]) -> tuple[Kind, bytes | None]:
    """Returns the kind of files, and the content of a text: by its beginning, by `.jinja` in its name, by its fields.

    Raises:
        BadParameter: more than two files.
    """
    if not files:
        return Kind.RULE, None
    if len(files) > 1:
        if len(files) > 2:
            raise typer.BadParameter("more than two files: two .ttrie files are compared", param_hint="FILE")
        return Kind.SETS, None
    (file,) = files
    if str(file) != "-":
        with only_files(file).open("rb") as stream:
            begins = stream.read(len(inspect_file.MAGIC))
        if begins == inspect_file.MAGIC:
            return Kind.SET, None
        if begins.startswith(GGUF):
            return Kind.TEMPLATE, None
    content = console.read(file)
    text = content.lstrip()
    is_json = text.startswith((b"{", b"[")) or not text
    if file.suffix.lower() in TEMPLATES or not is_json or text.startswith(tuple(map(str.encode, JINJA))):
        return Kind.TEMPLATE, content
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        # The reader of payloads says where.
        return Kind.PAYLOAD, content
    return Kind.RECEIPT if isinstance(document, dict) and "receipt" in document else Kind.PAYLOAD, content


def check_options(kind: Kind, given: dict[str, object]) -> None:
    """Refuses options that another kind takes.

    Raises:
        BadParameter: names them, and what they go with.
    """
    astray = [name for name, value in given.items() if value and name not in OPTIONS[kind].split()]
    if astray:
        takers = [other.value for other, options in OPTIONS.items() if astray[0] in options.split()]
        raise typer.BadParameter(f"it goes with {' or '.join(takers)}, not with {kind.value}", param_hint=astray)


@app.command(
    epilog=examples(
        "inspect payload.json",
        "inspect names.ttrie --find ann",
        "inspect names.ttrie --svg names.svg",
        "inspect names.ttrie more.ttrie",
        'inspect --regex "[0-9]{4}-[0-9]{2}" --svg month.svg',
        "inspect --grammar json",
        "inspect chat.jinja --tools tools.json --parse reply.txt",
        "inspect chat.jinja --response-template",
        "inspect receipt.json --choices open,closed",
        "inspect reply.json --messages request.json --tools request.json --tool-choice required",
    )
)
def inspect(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Payload, one or two .ttrie files, chat template, GGUF model or receipt; - reads standard input.",
            show_default=False,
        ),
    ] = None,
    vocab: Annotated[
        Path | None,
        typer.Option(
            "--vocab",
            "-m",
            metavar="M",
            help="GGUF or tokenizer.json: shows the text of tokens, and drops leaves outside the vocabulary. Default "
            "for rules and receipts: the tiny model.",
        ),
    ] = None,
    path: Annotated[str | None, typer.Option("--path", metavar="PATH", help="Show only this descriptor.")] = None,
    depth: Annotated[
        int | None,
        typer.Option(min=1, max=200, help="Levels to draw. Default: all for up to 200 leaves, else 2."),
    ] = None,
    max_children: Annotated[
        int | None,
        typer.Option(min=1, max=MOST, help="Branches to draw at a node. Default: all for up to 200 leaves, else 12."),
    ] = None,
    find: Annotated[
        str | None,
        typer.Option(
            "--find", metavar="IDS|NAME", help="Find the leaf with these tokens or this name in a .ttrie file."
        ),
    ] = None,
    svg: Annotated[
        Path | None,
        typer.Option(
            "--svg", metavar="FILE.svg", help="Also write a drawing: sets as trees or summaries, small automata."
        ),
    ] = None,
    most: Annotated[
        int | None, typer.Option("--most", min=0, max=MOST, help="Leaves to show of each of two sets. Default: 20.")
    ] = None,
    regex: Annotated[str | None, REGEX] = None,
    grammar: Annotated[str | None, GRAMMAR] = None,
    samples: Annotated[
        int | None, typer.Option(min=0, max=1000, help="Number of random texts of a rule. Default: 5.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**32 - 1, help="Seed for the random texts. Default: 0.")
    ] = None,
    parse: Annotated[
        Path | None,
        typer.Option(
            "--parse", metavar="OUTPUT.txt", help="Reply to parse by the chat template; - reads standard input."
        ),
    ] = None,
    tools: Annotated[
        Path | None,
        typer.Option("--tools", metavar="FILE.json", help="Tool definitions, or a request that contains them."),
    ] = None,
    response_template: Annotated[
        bool,
        typer.Option(
            "--response-template",
            help="Print the response template of a chat template: JSON by which transformers parses replies.",
        ),
    ] = False,
    payload: Annotated[Path | None, PAYLOAD] = None,
    set_file: Annotated[Path | None, SET] = None,
    choices: Annotated[str | None, CHOICES] = None,
    choice: Annotated[list[str] | None, CHOICE] = None,
    choices_file: Annotated[Path | None, CHOICES_FILE] = None,
    json_schema: Annotated[str | None, JSON_SCHEMA] = None,
    spec: Annotated[str | None, SPEC] = None,
    messages: Annotated[
        Path | None,
        typer.Option("--messages", metavar="CHAT.json", help="Messages before the reply, for the receipt of a chat."),
    ] = None,
    tool_choice: Annotated[str, TOOL_CHOICE] = "auto",
    tools_in: Annotated[str, TOOLS_IN] = "auto",
    no_thinking: Annotated[bool, NO_THINKING] = False,
    thinking_budget: Annotated[int | None, THINKING_BUDGET] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="File with the key of a sealed receipt.")
    ] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Show the contents of a file, or the texts of a rule. The kind of a file is detected.

    A payload: its tries, drawn. A .ttrie file: counts and some leaves; two files: the difference, with exit code 1 if
    there is one. A rule (--regex, --grammar): its size, whether its language is finite, the allowed first tokens,
    random texts, and a small automaton as a table. A chat template or a model: the format of replies, reasoning and
    calls, with an example; --parse parses a reply, --response-template prints the JSON by which transformers does. A
    receipt: whether it is valid, with exit code 1 if not; give its constraint as to generate, or --messages and the
    options of the chat.
    """
    files = files or []
    if not files and regex is None and grammar is None:
        raise typer.BadParameter("give FILE, --regex or --grammar", param_hint=["FILE", "--regex", "--grammar"])
    read = [
        name
        for name, file in {
            "FILE": files[0] if files else None,
            "--parse": parse,
            "--tools": tools,
            "--messages": messages,
            "--payload": payload,
            "--choices-file": choices_file,
        }.items()
        if str(file) == "-"
    ]
    if len(read) > 1:
        raise typer.BadParameter("standard input can be read only once", param_hint=read[1:])
    kind, content = kind_of(files)
    numbers = {"--depth": depth, "--max-children": max_children, "--most": most, "--samples": samples, "--seed": seed}
    sources = {
        "--payload": payload,
        "--path": path,
        "--set": set_file,
        "--choices": choices,
        "--choice": choice,
        "--choices-file": choices_file,
        "--regex": regex,
        "--grammar": grammar,
        "--json-schema": json_schema,
        "--constraint": spec,
    }
    of_chats: dict[str, object] = {
        "--messages": messages,
        "--tool-choice": tool_choice != "auto",
        "--tools-in": tools_in != "auto",
        "--no-thinking": no_thinking,
        "--thinking-budget": thinking_budget is not None,
    }
    others = {"--vocab": vocab, "--find": find, "--svg": svg, "--parse": parse, "--tools": tools, "--key": key}
    given: dict[str, object] = {name: value is not None for name, value in (sources | numbers | others).items()}
    given["--response-template"] = response_template
    check_options(kind, given | of_chats)
    if svg and as_json:
        raise typer.BadParameter("--svg draws, --json does not: choose one")
    if svg and grammar is not None:
        raise typer.BadParameter("it draws sets and automata, and a grammar is neither", param_hint="--svg")
    if kind is Kind.RULE:
        from tokentrie.cli.inspecting import inspect_rule
        from tokentrie.cli.rules import RuleSource
        from tokentrie.cli.source import exactly_one

        exactly_one({"--regex": regex, "--grammar": grammar})
        rules = RuleSource(regex, grammar)
        inspect_rule.run(rules, vocab, 5 if samples is None else samples, seed or 0, svg, as_json)
    elif kind is Kind.SETS:
        from tokentrie.cli.inspecting import difference

        if not difference.run(files[0], files[1], 20 if most is None else most, as_json):
            raise typer.Exit(1)
    elif kind is Kind.TEMPLATE:
        from tokentrie.cli.inspecting import template

        if response_template:
            template.print_response_template(files[0], content)
        else:
            template.run(files[0], content, tools, parse, as_json)
    elif kind is Kind.RECEIPT:
        from tokentrie.cli.inspecting import receipt
        from tokentrie.cli.rules import RuleSource
        from tokentrie.cli.source import Source

        source = None
        if any(value is not None for value in sources.values()):
            rules = RuleSource(regex, grammar, json_schema, spec)
            source = Source(payload, path, set_file, choices, choice or [], choices_file, "", "", rules)
        assert content is not None
        chat = receipt.Chat.from_options(messages, tools, tool_choice, tools_in, no_thinking, thinking_budget)
        receipt.run(files[0], content, vocab, source, chat, key, as_json)
    elif kind is Kind.SET:
        from tokentrie.cli.inspecting import inspect_set

        inspect_set.run_set(files[0], vocab, find, (depth, max_children), svg, as_json)
    else:
        from tokentrie.cli.inspecting import inspect_set

        assert content is not None
        inspect_set.run_payload(files[0], content, vocab, path, (depth, max_children), svg, as_json)
