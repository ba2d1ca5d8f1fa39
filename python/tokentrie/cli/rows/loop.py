"""The loop over the rows of a data set: groups of them, their results, where an earlier run stopped, how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.rows.formats import Columns
from tokentrie.cli.rows.input import Input, Row, RowError, count
from tokentrie.cli.rows.output import ERROR, UNREAD, Output, StreamOutput, check_output, digest

# Most rows of a group, and most characters of their fields, unless the maker says otherwise. A group is decoded
# together, in some forward passes. Whole groups are kept at an interruption, and the progress bar moves once a group.
GROUP, GROUP_TEXT = 32, 8192


class InterruptedRun(tokentrie.TokenTrieError):
    """Ctrl-C, with what is done so far."""

    exit_code = 130


class Maker(Protocol):
    """Makes the results of groups of rows. They depend on the group and the first group alone, so that a run that goes
    on gives what a run in one go gives.
    """

    passes: int
    """Forward passes so far."""
    group: tuple[int, int]
    """Most rows of a group, and most characters of their fields."""

    def prepare(self, row: Row) -> Any:
        """Returns the input of `results` for a row. Raises RowError if the row is faulty."""

    def learn(self, prepared: Sequence[Any]) -> None:
        """Shows a group whose results are there already."""

    def results(self, prepared: Sequence[Any]) -> Iterable[dict[str, Any] | RowError]:
        """Returns the result of each row of a group, or its error."""


class Counter(Protocol):
    """Counts rows with their results."""

    rows: int
    errors: int

    def add(self, row: dict[str, Any]) -> None:
        """Counts the result of one row."""


@dataclass(frozen=True)
class Job:
    """Input of a run, the part of a row that is asked about, and the output."""

    input: Path
    output: Path | None
    field: str | None
    template: str | None
    on_error: Literal["raise", "skip", "return"]
    restart: bool

    def __post_init__(self) -> None:
        check_output(self.output, self.input, self.restart)

    def settings(self, model: Path) -> dict[str, object]:
        """Returns the settings that results of any command depend on; a continued run must have the same."""
        return {
            "model": digest(model),
            "--template": self.template,
            "--field": self.field if self.template is None else None,
            "--on-error": "skip" if self.on_error == "skip" else "return",
        }


def work(
    job: Job, rows: Input, maker: Maker, tally: Counter, results: Columns, settings: dict[str, object]
) -> dict[str, Any]:
    """Makes a result for every row of a job that has none yet, and writes it. Returns the summary.

    Args:
        results: what a row has when it is done.
        settings: what results depend on, by the words that name them in messages.
    """
    with _output(job, results, settings) as output:
        return _work(rows, maker, output, tally, job.on_error)


def _output(job: Job, results: Columns, settings: dict[str, object]) -> Output | StreamOutput:
    """Returns the output of a job."""
    assert job.output is not None
    leave_out = job.on_error == "skip"
    if console.is_standard(job.output):
        return StreamOutput(leave_out, results)
    identity = digest(job.input) if job.input.is_file() else None
    return Output(job.output, settings, job.restart, leave_out, identity, results)


def summary_line(job: Job, summary: dict[str, Any], model: Path) -> str:
    """The summary in a line for people."""
    fresh = f", {summary['new']:,} of them new" if summary["new"] < summary["rows"] else ""
    what = "left out for an error" if job.on_error == "skip" else "with an error"
    wrong = f", {summary['errors']:,} {what}" if summary["errors"] else ""
    return (
        f"{console.printable(str(job.output))}: {console.count(summary['rows'], 'row', 'rows')}{fresh}{wrong}; "
        f"{console.milliseconds(summary['seconds'])}, {summary['rows_per_second']:,.1f} rows/s, "
        f"{console.count(summary['forward_passes'], 'forward pass', 'forward passes')}, "
        f"by {console.printable(model.name)}"
    )


def _work(
    rows: Input,
    maker: Maker,
    output: Output | StreamOutput,
    tally: Counter,
    on_error: Literal["raise", "skip", "return"],
) -> dict[str, Any]:
    """Works off the rows, a group at a time."""
    new = errors = 0
    seconds = 0.0
    iterator = iter(rows)
    if output.finished:
        for row in output.rows():
            tally.add(row)
        errors, iterator = output.left_out, iter(())
    try:
        with progress(rows) as show:
            for group in groups(iterator, maker.group):
                started = time.perf_counter()
                results = output.holds(group)
                if results is not None:
                    ready = (_prepare(row, maker) for row in group)
                    maker.learn([one for one in ready if not isinstance(one, RowError)])
                else:
                    results = _results(group, rows, maker, output, on_error)
                    output.append(results)
                    new += len(group)
                    seconds += time.perf_counter() - started
                for row in results:
                    tally.add(row)
                show(tally.rows)
            if not output.finished:
                output.finish(tally.errors if on_error == "skip" else 0, rows.columns)
    except KeyboardInterrupt:
        # The count is that of the written rows: a row is written before it is tallied.
        kept = console.count(output.count_kept(), "row is", "rows are")
        how = ", the same command goes on from there" if output.goes_on else ""
        raise InterruptedRun(f"interrupted: {kept} done{how}") from None
    return {
        "output": str(output.path),
        "rows": tally.rows + errors,
        "new": new,
        "errors": tally.errors + errors,
        "seconds": seconds,
        "rows_per_second": new / seconds if new else 0.0,
        "forward_passes": maker.passes,
    }


def groups(rows: Iterable[Row], most: tuple[int, int] = (GROUP, GROUP_TEXT)) -> Iterator[list[Row]]:
    """Groups of rows that are decoded together. The grouping depends on the rows alone."""
    group: list[Row] = []
    length = 0
    for row in rows:
        group.append(row)
        length += sum(len(str(value)) for value in row.fields.values())
        # No row is read ahead: an error in the next row must not delay this group.
        if len(group) == most[0] or length >= most[1]:
            yield group
            group, length = [], 0
    if group:
        yield group


def common_beginning(prompts: Sequence[list[int]]) -> list[int]:
    """Returns the tokens that all of some prompts begin with."""
    pairs = zip(min(prompts), max(prompts), strict=False)
    return [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]


def _prepare(row: Row, maker: Maker) -> Any | RowError:
    """Returns the input of a result, or the error of the row."""
    try:
        return maker.prepare(row)
    except RowError as error:
        return error


def _results(
    group: Sequence[Row],
    rows: Input,
    maker: Maker,
    output: Output | StreamOutput,
    on_error: Literal["raise", "skip", "return"],
) -> list[dict[str, Any]]:
    """The rows of a group with their results."""
    made = [_prepare(row, maker) for row in group]
    _check(group, made, rows, output, on_error)
    ready = [one for one in made if not isinstance(one, RowError)]
    results = iter(maker.results(ready) if ready else ())
    made = [one if isinstance(one, RowError) else next(results) for one in made]
    _check(group, made, rows, output, on_error)
    return [row.fields | _new_fields(row, one) for row, one in zip(group, made, strict=True)]


def _new_fields(row: Row, made: dict[str, Any] | RowError) -> dict[str, Any]:
    """Returns the new fields of a row: its result, or its error."""
    if isinstance(made, RowError):
        return {"error": str(made)} | ({} if row.raw is None else {"raw": row.raw})
    return made


def _check(
    group: Sequence[Row],
    made: Sequence[object],
    rows: Input,
    output: Output | StreamOutput,
    on_error: Literal["raise", "skip", "return"],
) -> None:
    """Raises the error of a row if errors end the run; refuses new fields whose names are taken."""
    for row, one in zip(group, made, strict=True):
        if isinstance(one, RowError) and on_error == "raise":
            hint = "--on-error skip leaves such rows out, --on-error return keeps them with the reason"
            raise tokentrie.TokenTrieError(f"{rows.lines.place(row.line)}: {one}; {hint}")
        added = {*output.results.names} if not isinstance(one, RowError) else ERROR if row.raw is None else UNREAD
        if taken := row.fields.keys() & added:
            problem = f"the field {min(taken)!r} has the name of a result: rename it"
            raise tokentrie.TokenTrieError(f"{rows.lines.place(row.line)}: {problem}")


@contextmanager
def progress(rows: Input) -> Iterator[Callable[[int], None]]:
    """Shows how far it is, on standard error and only on a terminal. The share is that of the bytes read."""
    screen = Console(stderr=True, highlight=False, markup=False)
    if not screen.is_terminal:
        yield lambda done: None
        return
    total, started = count(rows.path), time.perf_counter()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("0 rows", total=rows.lines.size)

        def show(done: int) -> None:
            position, size = rows.lines.position, rows.lines.size
            about = f" of {total:,}" if total is not None else f" of about {done * size // position:,}" if size else ""
            rate = done / (time.perf_counter() - started)
            bar.update(task, completed=position, description=f"{done:,}{about} rows, {rate:,.0f} rows/s")

        yield show
