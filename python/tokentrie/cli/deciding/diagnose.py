"""`tokentrie decide --diagnose`: which readout and which prompt suit a model, tried on some rows."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

import tokentrie
from tokentrie.cli import console, fitting
from tokentrie.cli.deciding.calibrate import right_answer
from tokentrie.cli.deciding.dataset import Decider
from tokentrie.cli.deciding.decide import read_request
from tokentrie.cli.loading import open_model
from tokentrie.cli.rows.input import Input, Prompts, Row
from tokentrie.cli.source import Hardware

# Rows that are tried.
ROWS = 20
# A layout in which the model knows what is asked when it reads the state.
QUESTION_FIRST = "{instructions}\n{options}\n{answer}\n\n{state}"
# Solved examples, where right answers are known: these rows are shown and not asked about.
EXAMPLES = 3


def run(
    path: Path | None,
    questions: str,
    rows: Path,
    prompts: Prompts | None,
    gold: dict[str, str],
    hardware: Hardware,
    as_json: bool,
) -> None:
    """Asks about some rows in every way, and prints a table for each question."""
    if questions == "-" == str(rows):
        raise typer.BadParameter("standard input can be read only once", param_hint="--input")
    request = read_request(questions)
    if astray := sorted(gold.keys() - request["questions"].keys()):
        raise typer.BadParameter(f"unknown question {astray[0]!r}", param_hint="--gold")
    with Input(rows, {*gold.values()} | (prompts.needed if prompts else set())) as lines:
        taken = [*islice(lines, ROWS)]
        known = [{name: right_answer(row, field, lines) for name, field in gold.items()} for row in taken]
        right = [_right_options(request, row, of, lines) for row, of in zip(taken, known, strict=True)]
    if not taken:
        raise typer.BadParameter("it has no rows", param_hint="--input")
    opened = open_model(path, hardware.n_ctx, hardware.n_threads, hardware.n_gpu_layers)
    ways = _ways(request, can_show=bool(gold) and len(taken) > EXAMPLES)
    # The rows that are shown as examples are asked about in no way, so that all are measured on the same ones.
    shown = EXAMPLES if any(way.examples for way in ways) else 0
    decider = Decider(opened.model, request, prompts, gold.values())
    states = [decider.prepare(row) for row in taken]
    examples = [
        {"state": state, "answers": {name: right for name, right in of.items() if right is not None}}
        for state, of in zip(states[:shown], known, strict=False)
    ]
    tried = []
    for way in ways:
        options = request | way.options() | ({"examples": examples} if way.examples else {})
        done = Decider(opened.model, options, prompts, gold.values()).ask(states[shown:])
        tried.append((way, {name: _measure(name, done, right[shown:]) for name in request["questions"]}))
    if as_json:
        listed = [{**way.options(), "examples": len(examples) * way.examples, "questions": of} for way, of in tried]
        console.print_json({"model": opened.describe(), "rows": len(states) - shown, "tried": listed})
        return
    for name in request["questions"]:
        _show(name, [(way.words(), of[name]) for way, of in tried], is_judged=name in gold)


@dataclass(frozen=True)
class Way:
    """A way to ask; None is what the request says."""

    readout: str | None
    prefix: str | None
    prompt: str | None
    examples: bool

    def options(self) -> dict[str, Any]:
        """The way as options of a request."""
        said = {"readout": self.readout, "prefix": self.prefix, "prompt": self.prompt}
        return {name: value for name, value in said.items() if value is not None}

    def words(self) -> str:
        """The way as people read it."""
        words = [] if self.readout is None else [self.readout]
        if self.prefix is not None:
            words.append(f'prefix "{self.prefix}"' if self.prefix else "no prefix")
        if self.prompt is not None:
            words.append("question first")
        if self.examples:
            words.append(f"{EXAMPLES} examples")
        return ", ".join(words) or "as asked"


def _ways(request: dict[str, Any], can_show: bool) -> list[Way]:
    """The ways that are tried: what the request says itself stays as it is."""
    readouts = ["text"] if request.get("list_options") is False else ["text", "label"]
    prefixes: list[str | None] = [None] if "prefix" in request else ["", "Answer:"]
    prompts = [None] if "prompt" in request else [None, QUESTION_FIRST]
    shown = [False, True] if can_show and "examples" not in request else [False]
    return [
        Way(readout, prefix, prompt, examples)
        for readout in ([None] if "readout" in request else readouts)
        for prefix in prefixes
        for prompt in prompts
        for examples in shown
    ]


def _right_options(request: dict[str, Any], row: Row, known: dict[str, Any], lines: Input) -> dict[str, int]:
    """Returns the number of the right option of each question that a row answers."""
    text = json.dumps({"state": "", **request}, ensure_ascii=False)
    told = {name: json.dumps(right) for name, right in known.items() if right is not None}
    try:
        return {name: tokentrie.Model._right_option(text, name, right) for name, right in told.items()}
    except tokentrie.TokenTrieError as error:
        raise tokentrie.TokenTrieError(f"{lines.lines.place(row.line)}: {error}") from error


def _measure(name: str, done: list[dict[str, Any]], known: list[dict[str, int]]) -> dict[str, float | None]:
    """The median mass and the accuracy of the answers to a question."""
    answers = [one["answers"][name] for one in done]
    judged = [answer["index"] == of[name] for answer, of in zip(answers, known, strict=True) if name in of]
    return {
        "mass": statistics.median(answer["mass"] for answer in answers),
        "accuracy": sum(judged) / len(judged) if judged else None,
    }


def _show(name: str, measured: list[tuple[str, dict[str, float | None]]], is_judged: bool) -> None:
    screen = console.screen()
    screen.print(Text(console.printable(name), style="bold"))
    best, _ = max(measured, key=lambda one: (one[1]["accuracy"] or 0.0, one[1]["mass"] or 0.0))
    rows = [Text(f"  {words}", style="bold green" if words == best else "") for words, _ in measured]
    figures = {"mass": [f"{of['mass']:.3g}" for _, of in measured]}
    if is_judged:
        figures["right"] = ["–" if of["accuracy"] is None else f"{of['accuracy']:.2f}" for _, of in measured]
    screen.print(fitting.table(screen.width, rows, figures))
