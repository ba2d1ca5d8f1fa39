"""`tokentrie choose --input ROWS.parquet --ray ADDRESS`: the rows of Parquet files, chosen for by a cluster."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.choosing import picture as pictures
from tokentrie.cli.choosing.dataset import TOY, Job, few_labels
from tokentrie.cli.choosing.summary import CHOICE, Tally
from tokentrie.cli.loading import open_vocab, packaged_model
from tokentrie.cli.rows import formats
from tokentrie.cli.rows.input import Prompts
from tokentrie.cli.rows.loop import GROUP
from tokentrie.cli.rows.parquet import SUFFIX
from tokentrie.cli.source import Hardware, Source
from tokentrie.integrations._shared.require import require

# Rows that an actor gets at once; `GROUP` of them are decoded together.
BATCH = 8 * GROUP


def run(path: Path | None, source: Source, job: Job, hardware: Hardware, address: str, as_json: bool) -> None:
    """Chooses for every row, and prints a summary."""
    assert job.output is not None
    partial = _check(job, job.output)
    ray = _ray()
    content = source.read()
    with console.collected_warnings() as warnings:
        trie = source.trie(open_vocab(path), content, distinct_names=True)
    if path is None:
        warnings.append(TOY.format(packaged_model().name))
    if not as_json:
        console.say_warnings(warnings)
    tally = Tally(few_labels(trie, open_vocab(path)), job.gold)
    started = time.perf_counter()
    with _connect(ray, address, as_json):
        actors, threads = _pool(ray, hardware)
        rows = ray.data.read_parquet(str(job.input.resolve()))
        given = rows.count()
        needed = Prompts(job.field, job.template).needed | ({job.gold} if job.gold is not None else set())
        names = rows.schema().names
        if missing := needed - set(names):
            there = ", ".join(map(repr, names))
            raise tokentrie.TokenTrieError(f"{job.input}: unknown column {min(missing)!r}: the columns are {there}")
        # Blocks of files are large: a block would keep one actor busy, and be computed again if that actor dies.
        results = rows.repartition(target_num_rows_per_block=BATCH).map_batches(
            _chooser(),
            fn_constructor_kwargs={
                # The actors map a .ttrie file; any other set is sent to them.
                "values": str(source.set_file.resolve()) if source.set_file else trie,
                "model": None if path is None else str(path.resolve()),
                "field": job.field,
                "template": job.template,
                "chat": job.turn.is_chat,
                "system": job.turn.system,
                # The values of a set have the prefix already; in a chat the prefix begins the answer.
                "answer_prefix": job.turn.prefix if job.turn.is_chat else "",
                "top": job.top,
                "on_error": job.on_error,
                "group": GROUP,
                "n_ctx": hardware.n_ctx,
                "n_threads": threads,
                "n_gpu_layers": hardware.n_gpu_layers,
            },
            concurrency=(1, actors),
            num_cpus=threads,
            batch_size=BATCH,
            batch_format="pyarrow",
        )
        results.write_parquet(str(partial.resolve()))
        if job.output.is_dir():
            shutil.rmtree(job.output)
        os.replace(partial, job.output)
    seconds = time.perf_counter() - started
    for part in sorted(job.output.glob(f"*{SUFFIX}")):
        for row in formats.read(part, CHOICE):
            tally.add({name: value for name, value in row.items() if name != formats.ERROR or value is not None})
    if job.picture:
        pictures.of_rows(job.picture, tally, job.output.name)
    summary = {
        "output": str(job.output),
        "rows": given,
        "new": given,
        "errors": tally.errors + given - tally.rows,
        "seconds": seconds,
        "rows_per_second": given / seconds,
        "actors": actors,
    }
    if as_json:
        console.print_json(summary | tally.document() | {"warnings": warnings})
        return
    screen = console.screen()
    wrong = f", {summary['errors']:,} with an error" if summary["errors"] else ""
    screen.print(
        f"{console.printable(str(job.output))}: {console.count(given, 'row', 'rows')}{wrong}; "
        f"{console.milliseconds(seconds)}, {given / seconds:,.1f} rows/s, "
        f"at most {console.count(actors, 'actor', 'actors')} of {console.count(threads, 'thread', 'threads')}"
    )
    for renderable in tally.render(screen.width):
        screen.print(renderable)


def _check(job: Job, output: Path) -> Path:
    """Refuses other formats than Parquet. Returns the folder in which files are written until all are there."""
    for option, file in (("--input", job.input), ("--output", output)):
        if file.suffix.lower() != SUFFIX:
            raise typer.BadParameter(f"{file}: with --ray the name must end with {SUFFIX}", param_hint=option)
    if not job.input.exists():
        raise FileNotFoundError(2, os.strerror(2), str(job.input))
    partial = output.with_name(f"{output.name}.partial")
    left = [found for found in (output, partial) if found.exists()]
    if left and not job.restart:
        raise tokentrie.TokenTrieError(
            f"{left[0]} is there already: take another --output, or begin anew with --restart"
        )
    if partial.exists():
        shutil.rmtree(partial)
    return partial


def _ray() -> Any:
    try:
        ray = require("ray", "ray")
        require("ray.data", "ray")
    except ImportError as error:
        raise tokentrie.TokenTrieError(f"--ray: {error}") from error
    return ray


def _chooser() -> type:
    from tokentrie.integrations.ray import Chooser

    return Chooser


@contextmanager
def _connect(ray: Any, address: str, quiet: bool) -> Iterator[None]:
    """Inside a cluster: the one at this address, or one of this machine alone for `local`."""
    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, ValueError, RuntimeError) as error:
            problem = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise tokentrie.TokenTrieError(f"--ray {address}: {problem}") from error
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    # Ray's newer reader of Parquet mixes the rows of files that one task reads (2.60).
    context.use_datasource_v2 = False
    if quiet or not Console(stderr=True).is_terminal:
        context.enable_progress_bars = False
    try:
        yield
    except ray.exceptions.RayError as error:
        # Of the traces of all processes between, one line says what happened.
        lines = str(error).strip().splitlines()
        ours_first = [found[1] for line in lines if (found := re.match(r"tokentrie\.\w+: (.+)", line))]
        raise tokentrie.TokenTrieError(f"--ray: {[*ours_first, lines[-1]][0]}") from error
    finally:
        if ours:
            ray.shutdown()


def _pool(ray: Any, hardware: Hardware) -> tuple[int, int]:
    """Returns the most actors, and the CPUs of each: one a node unless threads say more; one is for reading."""
    nodes = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    free = [max(cpus - 1, 1) for cpus in nodes if cpus]
    if not free:
        raise tokentrie.TokenTrieError("--ray: no node of the cluster has a CPU")
    threads = hardware.n_threads or min(free)
    actors = sum(cpus // threads for cpus in free)
    if not actors:
        raise tokentrie.TokenTrieError(f"--threads {threads}: a node has {max(free)} CPUs beside the one for reading")
    return actors, threads
