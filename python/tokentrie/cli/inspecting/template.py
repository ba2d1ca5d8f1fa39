"""`tokentrie inspect` of a chat template: what was found out about it, an example, and what a reply means in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.chats import chat_tools
from tokentrie.cli.inspecting import template_example
from tokentrie.cli.inspecting.template_example import Piece
from tokentrie.cli.lines import as_text
from tokentrie.files import only_files

# Ways to write a call that are shown.
MOST_WAYS = 6
STYLES = {"generation prompt": "black on green", "user's turn": "black on cyan", "assistant's turn": "black on green"}
OF_CALLS, OF_REASONING, OF_CONTENT, OTHER = "black on yellow", "black on magenta", "black on blue", "reverse"


@dataclass(frozen=True)
class TimedEvent:
    """An event, and how many bytes of the reply were read when it was certain: `first` to `last` of several."""

    first: int
    last: int
    kind: str
    text: str
    index: int | None
    name: str
    id: str


def run(file: Path, text: bytes | None, tools_file: Path | None, reply: Path | None, as_json: bool) -> None:
    """Analyses and prints; without the text of a template the file is a model."""
    tools = chat_tools.definitions(tools_file) if tools_file else None
    output = _content(reply) if reply else None
    form, name = _format(file, text)
    if output is not None:
        _print_events(form, output, tools, as_json)
        return
    analysis = form.analysis
    console.say_warnings(analysis.warnings)
    if analysis.degraded:
        console.say(f"warning: {analysis.degraded}")
    if as_json:
        console.print_json(analysis.to_dict())
        return
    screen = console.screen()
    screen.print(Text(console.printable(name), style="bold"))
    screen.print(_table(analysis))
    try:
        with console.collected_warnings() as warnings:
            example = template_example.render_example(form, tools)
    except tokentrie.TemplateError as error:
        console.say(f"warning: no example: the template refuses it: {error}")
        return
    console.say_warnings(warnings)
    left_out = f", without {' and '.join(example.left_out)}, which the template refuses" if example.left_out else ""
    screen.print(Text(f"\nexample{left_out}:", style="bold"))
    screen.print(
        _render_example(template_example.pieces(example, analysis), screen.color_system is not None), soft_wrap=True
    )


def print_response_template(file: Path, text: bytes | None) -> None:
    """Prints the response template of a chat template, or of a model's, as JSON."""
    form, _ = _format(file, text)
    console.print_json(form.response_template().source)


def _content(path: Path) -> bytes:
    """The bytes of a reply as they are: a byte order mark counts too."""
    return console.read(path) if str(path) == "-" else only_files(path).read_bytes()


def _format(file: Path, text: bytes | None) -> tuple[tokentrie.ChatFormat, str]:
    """The format of a template, or of a model, and what to call it."""
    if text is not None:
        template = as_text(text, file)
        try:
            return tokentrie.ChatFormat(template), "standard input" if str(file) == "-" else file.name
        except tokentrie.TemplateError as error:
            raise tokentrie.TemplateError(f"{file}: {error}") from error
    with console.working(f"reading {file.name}"), console.collected_warnings() as warnings:
        form = tokentrie.ChatFormat.from_gguf(file)
    for warning in warnings:
        console.say(f"warning: {file}: {warning}")
    return form, f"{file.name} (ChatML, the default: the file has no template)" if warnings else file.name


def _table(analysis: tokentrie.chat.ChatAnalysis) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in _rows(analysis):
        table.add_row(name, value)
    return table


def _rows(analysis: tokentrie.chat.ChatAnalysis) -> list[tuple[str, str]]:
    reasoning, content, calls = analysis.reasoning, analysis.content, analysis.calls
    prompts, turns = analysis.generation_prompts, analysis.turns
    rows = [("reasoning", _words(reasoning.mode, _between_text(reasoning.start, reasoning.end)))]
    notes = {"a call ends it": reasoning.calls_end_it, "only in turns with tools": reasoning.in_tool_turns_only}
    rows += [("", note) for note, holds in notes.items() if holds]
    rows.append(("content", _words(content.mode, _between_text(content.start, content.end))))
    rows += [("", "or after " + "  ".join(map(_quote, content.other_starts)))] if content.other_starts else []
    if calls is None:
        rows.append(("calls", "none: the template renders no calls"))
    else:
        rows.append(("calls", f"{calls.function}, arguments {calls.arguments}"))
        ways = list(dict.fromkeys(" ".join(map(_part, pattern["parts"])) for pattern in calls.patterns))
        rows += [("", way) for way in ways[:MOST_WAYS]]
        rows += [("", f"and {len(ways) - MOST_WAYS} more ways")] if len(ways) > MOST_WAYS else []
        several = "several in a reply" if calls.parallel else "one in a reply"
        rows.append(("", several + (", as a list" if calls.list else "")))
        rows += [("section", _between_text(*calls.section))] if any(calls.section) else []
        rows += [("between calls", _quote(str(calls.between)))] if calls.between else []
    rows.append(("generation prompt", _quote(prompts.thinking)))
    if prompts.not_thinking != prompts.thinking:
        rows.append(("without thinking", _quote(prompts.not_thinking)))
    rows.append(("turns", f"user {_quote(turns.user)}, assistant {_quote(turns.assistant)}"))
    lists = {
        "joints": analysis.joints,
        "stops": analysis.stops,
        "triggers": analysis.triggers,
        "tokens": analysis.preserved_tokens,
    }
    rows += [(name, "  ".join(map(_quote, dict.fromkeys(texts)))) for name, texts in lists.items() if texts]
    able = analysis.to_dict()["capabilities"]
    rows.append(("can", _words(*(_name(key) for key, value in able.items() if value)) or "nothing"))
    rows.append(("cannot", _words(*(_name(key) for key, value in able.items() if not value)) or "nothing is missing"))
    rows += [("from a table", console.printable(family)) for family in analysis.families]
    rows += [("warning", console.printable(warning)) for warning in analysis.warnings]
    rows += [("differs", console.printable(difference)) for difference in analysis.differences]
    return [*rows, ("degraded", console.printable(analysis.degraded or "no"))]


def _words(*words: str) -> str:
    return ", ".join(filter(None, words))


def _name(key: str) -> str:
    return key.replace("_", " ")


def _between_text(start: str, end: str) -> str:
    return f"{_quote(start)} … {_quote(end)}" if start or end else ""


def _quote(text: str) -> str:
    return console.quote_bytes(text.encode("utf-8", "replace"))


def _part(part: Any) -> str:
    """A part of a pattern: texts in quotes, others by their names."""
    if isinstance(part, str):
        return console.printable(part)
    ((kind, value),) = part.items() if len(part) == 1 else [("", part)]
    if kind == "text":
        return _quote(value)
    if kind == "arguments":
        return f"arguments({value if isinstance(value, str) else next(iter(value))})"
    if kind == "object":
        fields = (f"{_quote(text)}: {name}" for one in value["fields"] for name, text in one.items())
        return console.printable("{" + ", ".join(fields) + "}")
    return console.printable(json.dumps(part, ensure_ascii=False))


def _render_example(found: list[Piece], colour: bool) -> Text:
    """The example with its markers: coloured, their names beside them; without colour the names in brackets."""
    text = Text()
    for piece in found:
        lines = "\n".join(map(console.printable, piece.text.split("\n")))
        if piece.name is None:
            text.append(lines)
            continue
        # The name stands before line breaks that belong to the marker.
        mark = lines.rstrip("\n")
        text.append(mark, style=_style(piece.name) if colour else "")
        text.append(f" {piece.name} " if colour else f"[{piece.name}]", style="dim italic" if colour else "")
        text.append(lines[len(mark) :])
    return text


def _style(name: str) -> str:
    if name in STYLES:
        return STYLES[name]
    if name.startswith("reasoning"):
        return OF_REASONING
    if name.startswith("content"):
        return OF_CONTENT
    return OTHER if name in ("token", "joint", "ends the turn") else OF_CALLS


def _print_events(form: tokentrie.ChatFormat, output: bytes, tools: tokentrie.Tools | None, as_json: bool) -> None:
    """Feeds a reply byte by byte."""
    parser = form.parser(tools)
    events: list[TimedEvent] = []
    with console.working("reading the reply"):
        for place in range(len(output)):
            events += [_timed_event(event, place + 1) for event in parser.push(output[place : place + 1])]
        message = parser.finish()
        events += [_timed_event(event, len(output)) for event in parser.last_events]
    console.say_warnings(message.warnings)
    if as_json:
        console.print_json(
            {
                "bytes": len(output),
                "events": [_event(event) for event in events],
                "message": message.to_dict(),
                "warnings": message.warnings,
            }
        )
        return
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("byte", justify="right", no_wrap=True)
    table.add_column("event")
    table.add_column("", overflow="fold")
    for event in _together(events):
        at = str(event.last) if event.first == event.last else f"{event.first}–{event.last}"
        kind = event.kind if event.index is None else f"{event.kind} {event.index}"
        name = " ".join(map(console.printable, filter(None, [event.name, event.id])))
        table.add_row(at, kind, name or (_quote(event.text) if event.text else ""))
    screen = console.screen()
    screen.print(table)
    screen.print(Text(f"\nmessage, of {console.count(len(output), 'byte', 'bytes')}:", style="bold"))
    screen.print(_message(message))


def _timed_event(event: tokentrie.results.ChatEvent, at: int) -> TimedEvent:
    return TimedEvent(at, at, event.kind, event.text, event.index, event.name, event.id)


def _event(event: TimedEvent) -> dict[str, Any]:
    document: dict[str, Any] = {"byte": event.last, "kind": event.kind}
    others = {"text": event.text, "index": event.index, "name": event.name, "id": event.id}
    return document | {key: value for key, value in others.items() if value not in ("", None)}


def _together(events: list[TimedEvent]) -> list[TimedEvent]:
    """Events that go on with the same text as one."""
    done: list[TimedEvent] = []
    for event in events:
        before = done[-1] if done else None
        goes_on = event.kind in ("content", "reasoning", "arguments")
        if before and goes_on and (before.kind, before.index) == (event.kind, event.index):
            text = before.text + event.text
            done[-1] = TimedEvent(before.first, event.last, event.kind, text, event.index, "", "")
        else:
            done.append(event)
    return done


def _message(message: tokentrie.Message) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    if message.reasoning:
        table.add_row("reasoning", _quote(message.reasoning))
    table.add_row("content", _quote(message.content))
    for call in message.tool_calls:
        name = console.printable(call.name) + (f" ({console.printable(call.id)})" if call.id else "")
        table.add_row("call", f"{name} {console.printable(call.arguments)}")
    return table
