"""The loop over the rows of a data set: groups of them, their results, where an earlier run stopped, how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.choosing.results import ERROR, UNREAD, Output, Streamed
from tokentrie.cli.choosing.rows import Input, Row, RowError, count

# What is decoded together at most: rows, and characters of their fields, some forward passes. A group is what is kept
# at an interruption, and how often the bar moves.
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

    def prepared(self, row: Row) -> Any:
        """What `results` needs of a row; a RowError says what is wrong with it."""

    def learn(self, prepared: Sequence[Any]) -> None:
        """Shows a group whose results are there already."""

    def results(self, prepared: Sequence[Any]) -> Iterable[dict[str, Any] | RowError]:
        """What is made of each row of a group, or what is wrong with it."""


class Counter(Protocol):
    """Counts rows with their results."""

    rows: int
    errors: int

    def add(self, row: dict[str, Any]) -> None:
        """Counts one."""


def work(
    rows: Input, maker: Maker, output: Output | Streamed, tally: Counter, on_error: Literal["raise", "skip", "return"]
) -> dict[str, Any]:
    """Makes a result for every row that has none yet, a group at a time. Returns the summary."""
    new = errors = 0
    seconds = 0.0
    iterator = iter(rows)
    if output.finished:
        for row in output.rows():
            tally.add(row)
        errors, iterator = output.left_out, iter(())
    try:
        with _progress(rows) as show:
            while group := next_group(iterator):
                started = time.perf_counter()
                results = output.holds(group)
                if results is not None:
                    ready = (_prepared(row, maker) for row in group)
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
        # Not what was tallied: rows are written before.
        kept = console.count(output.kept(), "row is", "rows are")
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


def next_group(rows: Iterator[Row]) -> list[Row]:
    """The next rows that are decoded together; none at the end. They depend on the rows alone."""
    group: list[Row] = []
    length = 0
    for row in rows:
        group.append(row)
        length += sum(len(str(value)) for value in row.fields.values())
        # No row is read ahead: what is wrong with the next one must not hold this group up.
        if len(group) == GROUP or length >= GROUP_TEXT:
            break
    return group


def _prepared(row: Row, maker: Maker) -> Any | RowError:
    """What a maker makes a result of, or what is wrong with the row."""
    try:
        return maker.prepared(row)
    except RowError as error:
        return error


def _results(
    group: Sequence[Row],
    rows: Input,
    maker: Maker,
    output: Output | Streamed,
    on_error: Literal["raise", "skip", "return"],
) -> list[dict[str, Any]]:
    """The rows of a group with their results."""
    made = [_prepared(row, maker) for row in group]
    _check(group, made, rows, output, on_error)
    ready = [one for one in made if not isinstance(one, RowError)]
    results = iter(maker.results(ready) if ready else ())
    made = [one if isinstance(one, RowError) else next(results) for one in made]
    _check(group, made, rows, output, on_error)
    return [row.fields | _added(row, one) for row, one in zip(group, made, strict=True)]


def _added(row: Row, made: dict[str, Any] | RowError) -> dict[str, Any]:
    """What a row gets: its result, or what is wrong with it."""
    if isinstance(made, RowError):
        return {"error": str(made)} | ({} if row.raw is None else {"raw": row.raw})
    return made


def _check(
    group: Sequence[Row],
    made: Sequence[object],
    rows: Input,
    output: Output | Streamed,
    on_error: Literal["raise", "skip", "return"],
) -> None:
    """That what is wrong with a row may be, and that what it gets has a place in it."""
    for row, one in zip(group, made, strict=True):
        if isinstance(one, RowError) and on_error == "raise":
            hint = "--on-error skip leaves such rows out, --on-error return keeps them with the reason"
            raise tokentrie.TokenTrieError(f"{rows.lines.place(row.line)}: {one}; {hint}")
        added = {*output.results.names} if not isinstance(one, RowError) else ERROR if row.raw is None else UNREAD
        if taken := row.fields.keys() & added:
            problem = f"the field {min(taken)!r} has the name of a result: rename it"
            raise tokentrie.TokenTrieError(f"{rows.lines.place(row.line)}: {problem}")


@contextmanager
def _progress(rows: Input) -> Iterator[Callable[[int], None]]:
    """Shows how far it is, on standard error and only on a terminal. The share is that of the bytes read."""
    screen = Console(stderr=True, highlight=False, markup=False)
    if not screen.is_terminal:
        yield lambda done: None
        return
    total, started = count(rows.path), time.perf_counter()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as progress:
        task = progress.add_task("0 rows", total=rows.lines.size)

        def show(done: int) -> None:
            position, size = rows.lines.position, rows.lines.size
            about = f" of {total:,}" if total is not None else f" of about {done * size // position:,}" if size else ""
            rate = done / (time.perf_counter() - started)
            progress.update(task, completed=position, description=f"{done:,}{about} rows, {rate:,.0f} rows/s")

        yield show
