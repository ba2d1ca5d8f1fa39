"""`tokentrie decide --calibrate`: a calibration of probabilities, fitted on rows whose answers are known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

import tokentrie
from tokentrie.calibration import QuestionCalibration
from tokentrie.cli import console, fitting
from tokentrie.cli.deciding.dataset import Decider
from tokentrie.cli.deciding.decide import read_request
from tokentrie.cli.loading import open_model
from tokentrie.cli.rows.input import Input, Prompts, Row, RowError
from tokentrie.cli.rows.loop import groups, progress
from tokentrie.cli.source import Hardware


def run(
    path: Path | None,
    questions: str,
    rows: Path,
    prompts: Prompts | None,
    gold: dict[str, str],
    output: Path,
    options: dict[str, Any],
    hardware: Hardware,
    as_json: bool,
) -> None:
    """Asks about all rows, fits, writes and shows."""
    if questions == "-" == str(rows):
        raise typer.BadParameter("standard input can be read only once", param_hint="--input")
    if not console.is_standard(output) and (not output.parent.is_dir() or output.is_dir()):
        raise typer.BadParameter(f"{output}: not a file in a folder that is there", param_hint="--calibrate")
    request = read_request(questions, options=options)
    if "calibration" in request:
        raise typer.BadParameter(f"{questions}: it has a calibration already", param_hint="--questions")
    fields = gold or {name: name for name in request["questions"]}
    if astray := sorted(fields.keys() - request["questions"].keys()):
        raise typer.BadParameter(f"unknown question {astray[0]!r}", param_hint="--gold")
    examples: dict[str, list[dict[str, Any]]] = {name: [] for name in fields}
    with Input(rows, {*fields.values()} | (prompts.needed if prompts else set())) as lines:
        opened = open_model(path, hardware.n_ctx, hardware.n_threads, hardware.n_gpu_layers)
        decider = Decider(opened.model, request, prompts, fields.values())
        decider.check()
        with progress(lines) as show:
            done = 0
            for group in groups(lines, decider.group):
                for row, answers in _ask_group(decider, group, lines):
                    for name, field in fields.items():
                        if (right := right_answer(row, field, lines)) is not None:
                            shares = [one["probability"] for one in answers[name]["probabilities"]]
                            examples[name].append({"probabilities": shares, "gold": right})
                done += len(group)
                show(done)
    text = json.dumps({"state": "", **request}, ensure_ascii=False)
    found = tokentrie.decisions.Calibration(json.loads(opened.model._calibrated(text, json.dumps(examples))))
    if console.is_standard(output):
        console.standard_output().write((json.dumps(found.to_dict()) + "\n").encode())
    else:
        found.save(output)
    if as_json:
        console.print_json(found.to_dict() | {"output": str(output)})
        return
    for name, fitted in found.questions.items():
        _show(name, fitted)
    console.screen().print(Text(f"{console.printable(str(output))}: give it as --calibration", style="dim"))


def _ask_group(decider: Decider, group: list[Row], lines: Input) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Rows with their answers; a row that cannot be asked about ends the run."""
    states = [_state(decider, row, lines) for row in group]
    for row, one in zip(group, decider.ask(states), strict=True):
        yield row, one["answers"]


def _state(decider: Decider, row: Row, lines: Input) -> Any:
    try:
        return decider.prepare(row)
    except RowError as error:
        raise tokentrie.TokenTrieError(f"{lines.lines.place(row.line)}: {error}") from error


def right_answer(row: Row, field: str, lines: Input) -> Any:
    """The right answer; None if the row has none."""
    if field not in row.fields:
        problem = f"unknown field {field!r} with the right answer: --gold names it"
        raise tokentrie.TokenTrieError(f"{lines.lines.place(row.line)}: {problem}")
    right = row.fields[field]
    return None if right == "" else right


def _show(name: str, fitted: QuestionCalibration) -> None:
    screen = console.screen()
    screen.print(Text.assemble((console.printable(name), "bold"), f": {fitted.examples} examples"))
    both = (fitted.before, fitted.after)
    figures = {
        "accuracy": [f"{one.accuracy:.3f}" for one in both],
        "Brier": [f"{one.brier:.3f}" for one in both],
        "log loss": [f"{one.log_loss:.3f}" for one in both],
        "ECE": [f"{one.ece:.3f}" for one in both],
    }
    screen.print(fitting.table(screen.width, [Text("  before"), Text("  after")], figures, style="dim"))
    for cut in fitted.cuts:
        shown = f"  {cut.wished:.0%} right: answer from {cut.threshold:.3f} on, {cut.share:.0%} of the rows; "
        screen.print(Text(f"{shown}{cut.accuracy:.1%} were right ({cut.low:.1%} to {cut.high:.1%})", style="dim"))
    screen.print(Text(f"  temperature {fitted.temperature:.3g}; on rows that the fit has not seen:", style="dim"))
    bins = len(fitted.after.bins)
    filled = [(number, one) for number, one in enumerate(fitted.after.bins) if one.count]
    bands = [
        Text(f"  {number / bins:.1f} to {(number + 1) / bins:.1f}: {one.probability:.3f}") for number, one in filled
    ]
    counts = {"rows": [f"{one.count:,}" for _, one in filled], "right": [f"{one.accuracy:.3f}" for _, one in filled]}
    shares = [one.accuracy for _, one in filled]
    screen.print(fitting.table(screen.width, bands, counts, shares, heading="  probability", style="dim"))
