"""`tokentrie choose --input`: a choice for every row of a file, in groups, continued where an earlier run stopped."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.choose import Values, shares
from tokentrie.cli.generate import Hardware
from tokentrie.cli.loading import open_model
from tokentrie.cli.results import ERROR, RESULT, Output
from tokentrie.cli.rows import Input, Prompts, Row, RowError

# What `choose_many` decodes together.
GROUP = 32
# The weights are float32 at best: more digits would be noise.
DIGITS = 6


class InterruptedRun(tokentrie.TokenTrieError):
    """Ctrl-C, with what is done so far."""

    exit_code = 130


@dataclass(frozen=True)
class Job:
    """What to read, what to make of it and where to write it."""

    input: Path
    output: Path | None
    field: str | None
    template: str | None
    top: int | None
    skip_errors: bool
    restart: bool

    def __post_init__(self) -> None:
        if self.field is None and self.template is None:
            raise typer.BadParameter("give --field or --template: what the prompt is", param_hint="--input")
        if self.output is None or str(self.output) == "-":
            raise typer.BadParameter("give a file: an interrupted run goes on there", param_hint="--output")
        if self.output.exists() and self.input.exists() and self.output.samefile(self.input):
            raise typer.BadParameter(f"{self.output} is the input", param_hint="--output")


class Chooser:
    """Chooses for groups of prompts, so that the result depends on the group and the first group alone.

    Numbers depend in their last digits on what was decoded together. A run that goes on must give what a run in one go
    gives, so before each group the context is brought into the same state: it holds what all prompts of the first group
    begin with, decoded in the same two steps, or nothing where other prompts begin in another way.
    """

    def __init__(self, model: tokentrie.Model, trie: tokentrie.Trie, top: int | None) -> None:
        self._model, self._trie, self._top = model, trie, top
        self._names = [leaf.name or "" for leaf in trie]
        self._longest = max(len(leaf.tokens) for leaf in trie)
        self._anchor: list[int] | None = None
        self._holds_anchor = False
        self.passes = 0
        """Forward passes so far."""

    def tokens(self, prompt: list[tuple[str, bool]]) -> list[int]:
        """The tokens of a prompt in parts."""
        tokens = self._model.vocab.tokenize_parts(prompt, add_special=True)
        room = self._model.n_ctx - self._longest
        if len(tokens) > room:
            raise RowError(f"the prompt has {len(tokens):,} tokens, before the longest value is room for {room:,}")
        return tokens

    def learn(self, group: Iterable[list[int] | str]) -> None:
        """Shows the first group; later ones are ignored."""
        if self._anchor is None and (prompts := [prompt for prompt in group if isinstance(prompt, list)]):
            first, last = min(prompts), max(prompts)
            shared = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
            self._anchor = [token for token, _ in shared]

    def results(self, prompts: Sequence[list[int]]) -> Iterator[dict[str, Any]]:
        """What was chosen for each prompt of a group."""
        self.learn(prompts)
        self._settle(prompts)
        counted = None
        choices = self._model.choose_many(prompts, self._trie, top=self._top)
        # In this order: asking for one choice more would begin another group.
        for _, choice in zip(prompts, choices, strict=False):
            stats = choice.stats
            if counted != (counted := (stats.seconds, stats.forward_passes, stats.tokens_decoded)):
                # Prompts that were decoded together share their stats.
                self.passes += stats.forward_passes
            best_first = {name: float(f"{p:.{DIGITS}g}") for name, p in shares(choice, self._names).items()}
            name, probability = next(iter(best_first.items()))
            yield {"choice": name, "probability": probability, "probabilities": best_first}

    def _settle(self, prompts: Sequence[list[int]]) -> None:
        anchor = self._anchor or []
        shared = len(anchor) > 1 and all(prompt[: len(anchor)] == anchor for prompt in prompts)
        if not (shared and self._holds_anchor):
            self._model.clear()
            if shared:
                self._hold(anchor[:-1])
        if shared:
            # Whatever followed it is forgotten, and its last token is decoded again, alone.
            self._hold(anchor)
        self._holds_anchor = shared

    def _hold(self, tokens: list[int]) -> None:
        self._model.logits(tokens)
        self.passes += 1


def run(path: Path | None, source: Values, job: Job, hardware: Hardware, as_json: bool) -> None:
    """Chooses for every row that has no result yet, and prints a summary."""
    prompts = Prompts(job.field, job.template)
    if str(job.input) == "-" == str(source.file):
        raise typer.BadParameter("standard input can be read only once", param_hint="--input")
    with Input(job.input, prompts.needed) as rows:
        content = console.read(source.file) if source.file else b""
        opened = open_model(path, hardware.n_ctx, hardware.n_threads, hardware.n_gpu_layers)
        with console.collected_warnings() as warnings:
            trie = source.trie(opened.model.vocab, content)
        if not as_json:
            for warning in warnings:
                console.say(f"warning: {warning}")
        chooser = Chooser(opened.model, trie, job.top)
        assert job.output is not None
        with Output(job.output, _settings(job, opened.model.path, trie), job.restart) as output:
            summary = _choose(rows, prompts, chooser, output, job)
    if as_json:
        console.print_json(summary | {"model": opened.describe(), "warnings": warnings})
        return
    fresh = f", {summary['new']:,} of them new" if summary["new"] < summary["rows"] else ""
    wrong = f", {summary['errors']:,} with an error" if summary["errors"] else ""
    console.screen().print(
        f"{console.printable(str(job.output))}: {console.count(summary['rows'], 'row', 'rows')}{fresh}{wrong}; "
        f"{console.milliseconds(summary['seconds'])}, {summary['rows_per_second']:,.1f} rows/s, "
        f"{console.count(summary['forward_passes'], 'forward pass', 'forward passes')}"
    )


def _choose(rows: Input, prompts: Prompts, chooser: Chooser, output: Output, job: Job) -> dict[str, Any]:
    """The loop over groups. Returns the summary."""
    done = new = 0
    seconds = 0.0
    iterator = iter(rows)
    try:
        with _progress(rows) as show:
            while group := list(islice(iterator, GROUP)):
                started = time.perf_counter()
                if output.holds(group):
                    chooser.learn(_prepare(row, prompts, chooser) for row in group)
                else:
                    output.append(_results(group, rows, prompts, chooser, job.skip_errors))
                    new += len(group)
                    seconds += time.perf_counter() - started
                done += len(group)
                show(done)
            output.finish()
    except KeyboardInterrupt:
        kept = console.count(done, "row is", "rows are")
        raise InterruptedRun(f"interrupted: {kept} done, the same command goes on from there") from None
    return {
        "output": str(job.output),
        "rows": done,
        "new": new,
        "errors": output.errors,
        "seconds": seconds,
        "rows_per_second": new / seconds if new else 0.0,
        "forward_passes": chooser.passes,
    }


def _prepare(row: Row, prompts: Prompts, chooser: Chooser) -> list[int] | str:
    """The tokens of a row's prompt, or what is wrong with it."""
    try:
        return chooser.tokens(prompts.of(row))
    except RowError as error:
        return str(error)


def _results(
    group: Sequence[Row], rows: Input, prompts: Prompts, chooser: Chooser, skip_errors: bool
) -> list[dict[str, Any]]:
    """The rows of a group with their results."""
    prepared = [_prepare(row, prompts, chooser) for row in group]
    for row, made in zip(group, prepared, strict=True):
        if isinstance(made, str) and not skip_errors:
            raise tokentrie.TokenTrieError(f"{rows.lines.place(row.line)}: {made}; --skip-errors passes over such rows")
        if taken := row.fields.keys() & (ERROR if isinstance(made, str) else RESULT):
            problem = f"the field {min(taken)!r} has the name of a result: rename it"
            raise tokentrie.TokenTrieError(f"{rows.lines.place(row.line)}: {problem}")
    tokens = [made for made in prepared if isinstance(made, list)]
    results = chooser.results(tokens) if tokens else iter(())
    return [
        row.fields | ({"error": made} if isinstance(made, str) else next(results))
        for row, made in zip(group, prepared, strict=True)
    ]


def _settings(job: Job, model: Path, trie: tokentrie.Trie) -> dict[str, object]:
    """What results depend on; a continued run must have the same. Threads and context may change."""
    leaves = json.dumps([[leaf.name, leaf.tokens] for leaf in trie])
    return {
        "model": _digest(model),
        "set of choices": hashlib.sha256(leaves.encode()).hexdigest(),
        "--template": job.template,
        "--field": job.field if job.template is None else None,
        "--top": job.top,
    }


def _digest(path: Path, pieces: int = 16, length: int = 1 << 16) -> str:
    """Tells models apart without reading all of them: the size, and pieces from all over the file."""
    digest = hashlib.sha256()
    size = path.stat().st_size
    with path.open("rb") as file:
        for piece in range(pieces):
            file.seek(max(size - length, 0) * piece // (pieces - 1))
            digest.update(file.read(length))
    return f"{size} bytes, {digest.hexdigest()}"


@contextmanager
def _progress(rows: Input) -> Iterator[Callable[[int], None]]:
    """Shows how far it is, on standard error and only on a terminal. The share is that of the bytes read."""
    screen = Console(stderr=True, highlight=False, markup=False)
    if not screen.is_terminal:
        yield lambda done: None
        return
    columns = (TextColumn("{task.fields[done]:,} rows"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as progress:
        task = progress.add_task("", total=rows.lines.size, done=0)
        yield lambda done: progress.update(task, completed=rows.lines.position, done=done)
