"""`tokentrie bench`: the trie beside llama.cpp's grammars and the free model. Everything shown comes from the run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import tokentrie
from tokentrie.bench import allocator, figures, plot, prompts, report, sets
from tokentrie.bench.engines import ROWS, Prompt
from tokentrie.bench.measure import Measured, Plan, measure
from tokentrie.bench.sets import ValueSet
from tokentrie.bench.table import notes, table
from tokentrie.cli import console
from tokentrie.cli.loading import Opened, open_model


@dataclass(frozen=True)
class Work:
    """What to measure: files as they were given, and how much time it may take."""

    mode: str
    prompts: Path | None
    payload: Path | None
    sets: Sequence[str]
    repeats: int
    budget: float

    def __post_init__(self) -> None:
        if str(self.prompts) == "-" == str(self.payload):
            raise typer.BadParameter("standard input can be read only once", param_hint="--token-tree-descriptor")
        for name in self.sets:
            if name not in sets.NAMES:
                raise typer.BadParameter(f"{name!r} is none of {', '.join(sets.NAMES)}", param_hint="--set")

    def names(self) -> list[str]:
        """The sets that come along and are wanted: all of them where nothing was said."""
        return list(dict.fromkeys(self.sets)) or ([] if self.payload else list(sets.NAMES))


def run(
    path: Path | None, work: Work, output: Path | None, picture: Path | None, n_threads: int | None, as_json: bool
) -> None:
    """Measures, writes and prints; exit code 1 if a row ended with an error."""
    _check_targets(output, picture)
    payload = console.read(work.payload) if work.payload else None
    lines = console.read(work.prompts) if work.prompts else None
    opened = open_model(path, n_threads=n_threads)
    model = opened.model
    given = prompts.of_file(work.prompts, lines, model) if work.prompts and lines is not None else None
    with console.collected_warnings() as warnings, console.working("building the tries"):
        values = [*(sets.of_payload(payload, model.vocab) if payload is not None else [])]
        for name in work.names():
            if name in {one.name for one in values}:
                raise typer.BadParameter(f"the payload has a descriptor {name!r} as well", param_hint="--set")
            values.append(sets.built_in(name, model.vocab))
    if not as_json:
        console.say_warnings(warnings)
    asked = [(one, given or prompts.built_in(one.name, model)) for one in values]
    with allocator.kept() as kept:
        measured = _measure(model, asked, work)
    rows = [row for one in measured for row in figures.rows(one, model.path.name)]
    settings = {"mode": work.mode, "repeats": work.repeats, "budget_seconds": work.budget, "memory_kept": kept}
    document = report.document(measured, rows, opened.describe(), settings, warnings)
    if console.is_standard(output):
        console.standard_output().write((json.dumps(document) + "\n").encode())
    elif output:
        report.write(output, document)
    if picture:
        plot.save(picture, document)
    _show(opened, document, as_json)
    failed = sum(row["status"] == "error" for row in rows)
    if failed:
        console.say(f"{failed} of {len(rows)} rows failed; their status says why")
        raise typer.Exit(1)


def _check_targets(output: Path | None, picture: Path | None) -> None:
    """Before minutes of measuring: whether what comes out can be written."""
    for option, target in (("--output", output), ("--plot", picture)):
        if target and not target.parent.is_dir():
            raise typer.BadParameter(f"no such folder: {target.parent}", param_hint=option)
        if target and target.is_dir():
            raise typer.BadParameter(f"{target} is a folder", param_hint=option)
    if picture:
        if picture.suffix.lower() not in plot.FORMATS:
            raise typer.BadParameter(f"{picture} must end in {' or '.join(plot.FORMATS)}", param_hint="--plot")
        plot.check(picture)


def _measure(model: tokentrie.Model, asked: list[tuple[ValueSet, list[Prompt]]], work: Work) -> list[Measured]:
    """All sets, with a bar on standard error if that is a terminal."""
    modes = ROWS[work.mode]
    screen = Console(stderr=True, highlight=False, markup=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        total = sum(len(prompts) for _, prompts in asked) * len(modes) * work.repeats
        task = bar.add_task("measuring", total=total)

        def step(name: str, mode: str) -> None:
            bar.update(task, advance=1, description=f"{console.printable(name)}: {mode}")

        plan = Plan(work.repeats, work.budget, step)
        return [measure(model, values, prompts, modes, plan) for values, prompts in asked]


def _show(opened: Opened, document: dict[str, Any], as_json: bool) -> None:
    if as_json:
        console.print_json(document)
        return
    screen = console.screen()
    machine = document["machine"]
    load = f", load {machine['load'][0]:.1f}" if machine["load"] else ""
    screen.print(opened.line())
    screen.print(f"{machine['cpu']}, {machine['cores_usable'] or machine['cores']} cores{load}")
    for one in document["sets"]:
        screen.print()
        screen.print(table(document, one["name"], screen.width), *notes(document, one["name"]), sep="\n")
