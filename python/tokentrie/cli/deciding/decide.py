"""`tokentrie decide`: typed questions about a state, and how probable every option is, as bars."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

import tokentrie
from tokentrie.cli import console, fitting
from tokentrie.cli.lines import as_text
from tokentrie.cli.loading import open_model
from tokentrie.cli.source import Hardware

# Options of a question that are shown.
SHOWN = 12


def run(
    path: Path | None,
    questions: str,
    state: str | None,
    state_file: Path | None,
    is_json_state: bool,
    calibration: Path | None,
    options: dict[str, Any],
    hardware: Hardware,
    as_json: bool,
) -> None:
    """Asks the questions and prints the answers."""
    if questions == "-" == str(state_file):
        raise typer.BadParameter("standard input can be read only once", param_hint="--state-file")
    request = read_request(questions, calibration, options)
    about: Any = as_text(console.read(state_file), state_file) if state_file is not None else state
    if is_json_state:
        about = _json(about, "--state")
    opened = open_model(path, hardware.n_ctx, hardware.n_threads, hardware.n_gpu_layers)
    with console.collected_warnings() as warnings, console.working("deciding"):
        text = json.dumps({"state": about, **request}, ensure_ascii=False)
        done = json.loads(opened.model._decide(text))[0]
    if as_json:
        for answer in done["answers"].values():
            del answer["prompts"]
        console.print_json(done | {"model": opened.describe(), "warnings": warnings})
        return
    console.say_warnings(warnings)
    for name, answer in done["answers"].items():
        _show(name, answer)
    stats = done["stats"]
    took = f"{console.milliseconds(stats['seconds'])}, {stats['tokens_decoded']:,} tokens"
    passes = console.count(stats["forward_passes"], "forward pass", "forward passes")
    console.screen().print(Text(f"{took} in {passes}, by {console.printable(opened.model.path.name)}", style="dim"))


def _json(text: str, hint: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"invalid JSON: {error}", param_hint=hint) from error


def read_request(
    questions: str, calibration: Path | None = None, options: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the request of `--questions`, JSON text or the name of its file, with a calibration if one is given, and
    with options of the command line instead of its own.
    """
    is_inline = questions.lstrip().startswith("{")
    path = "--questions" if is_inline else questions
    text = questions if is_inline else as_text(console.read(Path(questions)), Path(questions))
    request = _json(text, "--questions")
    if not isinstance(request, dict) or "questions" not in request:
        problem = (
            f'{path}: it must be an object with "questions", as {{"questions": {{"on": {{"type": "predicate"}}}}}}'
        )
        raise typer.BadParameter(problem, param_hint="--questions")
    if astray := [name for name in ("state", "states") if name in request]:
        problem = f"{path}: it has a {astray[0]!r}, which is given on the command line"
        raise typer.BadParameter(problem, param_hint="--questions")
    request |= options or {}
    if calibration is not None:
        if "calibration" in request:
            raise typer.BadParameter(f"{path}: it has a calibration already", param_hint="--calibration")
        request["calibration"] = tokentrie.decisions.Calibration.load(calibration).to_dict()
    return request


def _show(name: str, answer: dict[str, Any]) -> None:
    screen = console.screen()
    told = list_options(answer)
    shown = told[answer["index"]][0]
    if answer["value"] is None:
        shown = f"none: {answer['reason']}"
    elif answer["type"] == "score":
        shown = f"{answer['value']:.2f}, from 0 to {len(told) - 1}"
    screen.print(Text.assemble((console.printable(name), "bold"), ": ", (console.printable(shown), "green")))
    shares = [(share or 0.0, number) for number, (_, share) in enumerate(told)]
    if answer["type"] == "choice":
        shares.sort(key=lambda pair: -pair[0])
    best, most = answer["index"], shares[:SHOWN]
    names = [
        Text(f"  {console.printable(told[number][0])}", style="bold green" if number == best else "")
        for _, number in most
    ]
    probabilities = [share for share, _ in most]
    screen.print(fitting.table(screen.width, names, {"": [f"{share:.4f}" for share in probabilities]}, probabilities))
    if (more := len(shares) - SHOWN) > 0:
        screen.print(Text(f"  … {more:,} more", style="dim"))
    if answer["thought"] is not None:
        screen.print(Text(f"  thought first: {console.printable(answer['thought']['text'])}", style="dim"))
    if answer["out_of_scope"] is not None:
        screen.print(Text(f"  out of scope: {answer['out_of_scope']:.2f}, from 0 to 1", style="dim"))
    if answer["certain"] is not None:
        counted = console.count(answer["certain"], "option", "options")
        unscored = f"an option that was not scored has at most {answer['unscored']:.2g}"
        screen.print(Text(f"  the best {counted} certain; {unscored}", style="dim"))
    if answer["order_reason"] is not None:
        told_of = f"{answer['order_reason']}; {len(answer['prompts'])} balanced orders were asked instead"
        screen.print(Text(f"  {console.printable(told_of)}", style="yellow"))
    if answer["warning"] is not None:
        screen.print(Text(f"  {console.printable(answer['warning'])}", style="yellow"))


def list_options(answer: dict[str, Any]) -> list[tuple[str, float | None]]:
    """Returns the options of an answer as people read them, each with its probability."""
    told = answer["probabilities"]
    names = ["yes", "no"] if answer["type"] == "predicate" else [option_text(one["value"]) for one in told]
    return [(name, one["probability"]) for name, one in zip(names, told, strict=True)]


def option_text(option: Any) -> str:
    """An option as people read it."""
    return option if isinstance(option, str) else json.dumps(option, ensure_ascii=False)
