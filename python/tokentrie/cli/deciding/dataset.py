"""`tokentrie decide --input`: typed questions about every row of a file."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

import tokentrie
from tokentrie.cli import console, fitting
from tokentrie.cli.deciding.decide import list_options, read_request
from tokentrie.cli.loading import open_model
from tokentrie.cli.rows import formats, loop
from tokentrie.cli.rows.input import Input, Prompts, Row, RowError
from tokentrie.cli.rows.output import round_share
from tokentrie.cli.source import Hardware

# Settings beside the options that must be the same when a run continues.
LAYOUT = 3
# Parts of an answer, each with a column, and one that only some runs have.
PARTS, SCOPE = ("answer", "probability", "mass", "probabilities"), "out_of_scope"
# Groups: a row each, which is kept at once when it is done. More rows where a share of each group may think.
GROUP, GROUP_OF_THINKERS = (1, 0), (loop.GROUP, sys.maxsize)
# Answers of a question that are listed for people.
LISTED = 8


class Decider:
    """Asks about groups of rows. Earlier groups do not change the numbers of a group: the context holds what all
    prompts begin with, decoded alike each time, or nothing.
    """

    def __init__(
        self,
        model: tokentrie.Model,
        request: dict[str, Any],
        prompts: Prompts | None,
        without: Iterable[str] = (),
    ) -> None:
        """`without` names fields, such as right answers, that are left out where the state is a whole row."""
        self._model, self._request, self._prompts, self._without = model, request, prompts, {*without}
        self._beginning: list[int] = []
        self._holds_beginning = False
        self.group = GROUP if request.get("escalate") is None else GROUP_OF_THINKERS
        self.passes = 0
        """Forward passes so far."""

    def prepare(self, row: Row) -> Any:
        """The state of a row: the text of its field or template, else all of it as JSON."""
        if self._prompts is not None:
            return "".join(part for part, _ in self._prompts.prompt_parts(row))
        if row.problem is not None:
            raise RowError(row.problem)
        return {name: value for name, value in row.fields.items() if name not in self._without}

    def check(self) -> None:
        """Asks about an empty state and another: an error in the questions is an error for all rows. What their prompts
        begin with, all others do.
        """
        asked = [tokens for one in self.ask([""]) + self.ask(["0"]) for tokens in _prompts_of(one)]
        self._beginning = loop.common_beginning(asked)
        self.passes = 0

    def learn(self, states: Sequence[Any]) -> None:
        """Does nothing: earlier groups have no effect."""

    def ask(self, states: Sequence[Any]) -> list[dict[str, Any]]:
        """The answers to a group, as JSON has them."""
        self._settle()
        # One state, too, is a list, of which `escalate` is a share.
        text = json.dumps({"states": [*states], **self._request}, ensure_ascii=False)
        done: list[dict[str, Any]] = json.loads(self._model._decide(text))
        self.passes += done[0]["stats"]["forward_passes"]
        length = len(self._beginning)
        begun = all(tokens[:length] == self._beginning for one in done for tokens in _prompts_of(one))
        self._holds_beginning = self._holds_beginning and begun
        return done

    def _settle(self) -> None:
        is_long = len(self._beginning) > 1
        if not self._holds_beginning:
            self._model.clear()
            if is_long:
                self._hold(self._beginning[:-1])
        if is_long:
            # Whatever followed it is forgotten, and its last token is decoded again, alone.
            self._hold(self._beginning)
        self._holds_beginning = is_long

    def _hold(self, tokens: list[int]) -> None:
        self._model.logits(tokens)
        self.passes += 1

    def results(self, states: Sequence[Any]) -> Iterator[dict[str, Any] | RowError]:
        """Returns the results of rows. A group with a state that cannot be asked about is asked row by row."""
        try:
            done = self.ask(states)
        except (tokentrie.errors.ContextError, tokentrie.TemplateError, tokentrie.errors.VocabularyError) as error:
            if len(states) == 1:
                # The error has the number in the group; messages name rows by their lines.
                yield RowError(str(error).replace(" about state 0", ""))
            else:
                for state in states:
                    yield from self.results([state])
            return
        for one in done:
            yield _columns_of(one["answers"])


def _prompts_of(done: dict[str, Any]) -> list[list[int]]:
    """The tokens of all prompts about a state."""
    return [prompt["tokens"] for answer in done["answers"].values() for prompt in answer["prompts"]]


class Tally:
    """Counts the answers to each question."""

    def __init__(self, questions: Iterable[str], results: formats.Columns) -> None:
        self._results = results
        self.rows = self.errors = 0
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in questions}

    def add(self, row: dict[str, Any]) -> None:
        """Counts a row: its fields with its result, or with an error."""
        self.rows += 1
        if self._results.is_error(row):
            self.errors += 1
            return
        for name, counts in self.counts.items():
            shares = row[f"{name}_probabilities"]
            counts[str(max(shares, key=lambda option: shares[option] or 0.0))] += 1

    def render(self, width: int) -> Iterator[Table]:
        """Tables for people, on a screen of a width."""
        for name, counts in self.counts.items():
            most = counts.most_common(LISTED)
            names = [Text(f"  {console.printable(answer)}") for answer, _ in most]
            numbers = {"": ["", *(f"{count:,}" for _, count in most)]}
            yield fitting.table(width, [Text(console.printable(name), style="bold"), *names], numbers)


def columns(questions: Iterable[str], parts: tuple[str, ...]) -> formats.Columns:
    """Returns the columns that a row gets: of each question the parts of its answer."""
    named = [(name, part) for name in questions for part in parts]
    texts = ("answer", "probabilities")
    return formats.Columns(
        names=tuple(f"{name}_{part}" for name, part in named),
        numbers=tuple(f"{name}_{part}" for name, part in named if part not in texts),
        shares=tuple(f"{name}_{part}" for name, part in named if part == "probabilities"),
    )


def _columns_of(answers: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, answer in answers.items():
        shares = {option: round_share(share) for option, share in list_options(answer) if share is not None}
        found |= {
            f"{name}_answer": answer["value"],
            f"{name}_probability": round_share(answer["probability"]),
            f"{name}_mass": round_share(answer["mass"]),
            f"{name}_probabilities": shares,
        }
        if answer[SCOPE] is not None:
            found[f"{name}_{SCOPE}"] = round_share(answer[SCOPE])
    return found


def run(
    path: Path | None,
    questions: str,
    calibration: Path | None,
    options: dict[str, Any],
    job: loop.Job,
    hardware: Hardware,
    as_json: bool,
) -> None:
    """Asks about every row that has no result yet, and prints a summary."""
    if questions == "-" == str(job.input):
        raise typer.BadParameter("standard input can be read only once", param_hint="--input")
    request = read_request(questions, calibration, options)
    if request.get("prior") == "batch":
        problem = (
            f'{questions}: "prior": "batch" needs the answers to all rows before the first is written: use '
            '"content-free", or --calibration with a file that --calibrate wrote'
        )
        raise typer.BadParameter(problem, param_hint="--questions")
    prompts = None if job.field is None and job.template is None else Prompts(job.field, job.template)
    with Input(job.input, prompts.needed if prompts else set()) as rows:
        opened = open_model(path, hardware.n_ctx, hardware.n_threads, hardware.n_gpu_layers)
        decider = Decider(opened.model, request, prompts)
        decider.check()
        results = columns(request["questions"], PARTS + (SCOPE,) * bool(request.get(SCOPE)))
        tally = Tally(request["questions"], results)
        asked = hashlib.sha256(json.dumps(request).encode()).hexdigest()
        settings = {"layout of decisions": LAYOUT, "--questions": asked} | job.settings(opened.model.path)
        summary = loop.work(job, rows, decider, tally, results, settings)
    if as_json:
        counts = {name: dict(of) for name, of in tally.counts.items()}
        console.print_json(summary | {"answers": counts, "model": opened.describe()})
        return
    screen = console.screen()
    screen.print(loop.summary_line(job, summary, opened.model.path))
    for table in tally.render(screen.width):
        screen.print(table)
