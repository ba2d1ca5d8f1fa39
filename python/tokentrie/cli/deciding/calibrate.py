"""`tokentrie calibrate`: what makes probabilities honest, found on rows whose answers are known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

import tokentrie
from tokentrie.calibration import Bin, Fitted
from tokentrie.cli import console
from tokentrie.cli.choosing.loop import GROUP
from tokentrie.cli.choosing.rows import Input, Prompts, Row, RowError
from tokentrie.cli.deciding.dataset import Decider
from tokentrie.cli.deciding.decide import bar, read_request
from tokentrie.cli.loading import open_model
from tokentrie.cli.source import Hardware


def run(
    path: Path | None,
    questions: str,
    rows: Path,
    prompts: Prompts | None,
    gold: dict[str, str],
    output: Path,
    hardware: Hardware,
    as_json: bool,
) -> None:
    """Asks about all rows, fits, writes and shows."""
    if questions == "-" == str(rows):
        raise typer.BadParameter("standard input can be read only once", param_hint="--input")
    if not output.parent.is_dir() or output.is_dir():
        raise typer.BadParameter(f"{output}: not a file in a folder that is there", param_hint="--output")
    request = read_request(questions)
    if "calibration" in request:
        raise typer.BadParameter(f"{questions}: it has a calibration already", param_hint="--questions")
    fields = gold or {name: name for name in request["questions"]}
    if astray := sorted(fields.keys() - request["questions"].keys()):
        raise typer.BadParameter(f"there is no question {astray[0]!r}", param_hint="--gold")
    examples: dict[str, list[dict[str, Any]]] = {name: [] for name in fields}
    with Input(rows, {*fields.values()} | (prompts.needed if prompts else set())) as lines:
        opened = open_model(path, hardware.n_ctx, hardware.n_threads, hardware.n_gpu_layers)
        decider = Decider(opened.model, request, prompts, fields.values())
        decider.check()
        with console.progress("asking") as show:
            remaining, done = iter(lines), 0
            while group := list(islice(remaining, GROUP)):
                for row, answers in _asked(decider, group, lines):
                    for name, field in fields.items():
                        if (right := _right(row, field, lines)) is not None:
                            shares = answers[name]["probabilities"]
                            examples[name].append({"probabilities": shares, "gold": right})
                done += len(group)
                show(done, None)
    text = json.dumps({"state": "", **request}, ensure_ascii=False)
    found = tokentrie.Calibration(json.loads(opened.model._calibrated(text, json.dumps(examples))))
    found.save(output)
    if as_json:
        console.print_json(found.to_dict() | {"output": str(output)})
        return
    for name, fitted in found.questions.items():
        _show(name, fitted)
    console.screen().print(Text(f"{console.printable(str(output))}: give it as --calibration", style="dim"))


def _asked(decider: Decider, group: list[Row], lines: Input) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Rows with their answers; one that cannot be asked about ends all."""
    states = [_state(decider, row, lines) for row in group]
    for row, one in zip(group, decider.asked(states), strict=True):
        yield row, one["answers"]


def _state(decider: Decider, row: Row, lines: Input) -> Any:
    try:
        return decider.prepared(row)
    except RowError as error:
        raise tokentrie.TokenTrieError(f"{lines.lines.place(row.line)}: {error}") from error


def _right(row: Row, field: str, lines: Input) -> Any:
    """The right answer; None where the row does not say it."""
    if field not in row.fields:
        problem = f"there is no field {field!r} with the right answer: --gold names it"
        raise tokentrie.TokenTrieError(f"{lines.lines.place(row.line)}: {problem}")
    right = row.fields[field]
    return None if right == "" else right


def _show(name: str, fitted: Fitted) -> None:
    screen = console.screen()
    screen.print(Text.assemble((console.printable(name), "bold"), f": {fitted.examples} examples"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("", "accuracy", "Brier", "log loss", "ECE"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for what, measures in (("before", fitted.before), ("after", fitted.after)):
        figures = (measures.accuracy, measures.brier, measures.log_loss, measures.ece)
        table.add_row(f"  {what}", *(f"{figure:.3f}" for figure in figures))
    screen.print(table)
    screen.print(Text(f"  temperature {fitted.temperature:.3g}; on rows that the fit has not seen:", style="dim"))
    diagram = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("  probability", "rows", "right"):
        diagram.add_column(heading, justify="right", no_wrap=True)
    diagram.add_column("", no_wrap=True)
    for number, one in enumerate(fitted.after.bins):
        if one.count:
            diagram.add_row(*_line(number, one, len(fitted.after.bins)), bar(one.accuracy))
    screen.print(diagram)


def _line(number: int, one: Bin, bins: int) -> tuple[str, str, str]:
    band = f"{number / bins:.1f} to {(number + 1) / bins:.1f}: {one.probability:.3f}"
    return band, f"{one.count:,}", f"{one.accuracy:.3f}"
