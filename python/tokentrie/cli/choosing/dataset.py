"""`tokentrie choose --input`: a choice for every row of a file, in groups, continued where an earlier run stopped."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

import tokentrie
from tokentrie._native import _levels
from tokentrie.cli import console
from tokentrie.cli.choosing import picture as pictures
from tokentrie.cli.choosing.choose import shares
from tokentrie.cli.choosing.summary import CHOICE, LISTED, Tally
from tokentrie.cli.choosing.turn import Turn
from tokentrie.cli.loading import open_model
from tokentrie.cli.rows import loop
from tokentrie.cli.rows.input import Input, Prompts, Row, RowError
from tokentrie.cli.rows.output import digest, round_share
from tokentrie.cli.source import Hardware, Names, Source

# A choice holds figures for every leaf: of large sets fewer are made at a time.
LEAVES_AT_ONCE = 4_000_000
# What a continued run must have in common beside its options.
LAYOUT = 4
TOY = "the labels come from {}, the toy model inside the package, which knows next to nothing: name yours with --model"


@dataclass(frozen=True)
class Job(loop.Job):
    """Job of `choose`: also how a row is asked about and what is made of its results."""

    turn: Turn
    top: int | None
    gold: str | None
    picture: Path | None
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.field is None and self.template is None:
            raise typer.BadParameter("give --field or --template: what the prompt is", param_hint="--input")
        super().__post_init__()
        if self.picture:
            pictures.check(self.picture)


class Chooser:
    """Chooses for groups of prompts, so that the result depends on the group and the first group alone.

    Numbers depend in their last digits on what was decoded together. A run that goes on must give what a run in one go
    gives, so before each group the context is brought into the same state: it holds what all prompts of the first group
    begin with, decoded in the same two steps, or nothing where other prompts begin in another way.
    """

    def __init__(
        self,
        model: tokentrie.Model,
        trie: tokentrie.Trie,
        top: int | None,
        turn: Turn,
        prompts: Prompts,
        anchor: list[int] | None = None,
        threshold: float | None = None,
    ) -> None:
        """`anchor`: what prompts begin with, if that is known before the first group."""
        self._model, self._trie, self._top, self._turn, self._prompts = model, trie, top, turn, prompts
        self._threshold = threshold
        self._names = Names(trie, model.vocab)
        self._longest = len(_levels(trie)) - 1
        self._anchor = anchor
        self._holds_anchor = False
        self.group = loop.GROUP, loop.GROUP_TEXT
        self.passes = 0
        """Forward passes so far."""

    def prepare(self, row: Row) -> list[int]:
        """The tokens of the prompt of a row."""
        prompt = self._prompts.prompt_parts(row)
        try:
            tokens = self._turn.tokens(self._model, prompt)
        except tokentrie.TemplateError as error:
            raise RowError(str(error)) from error
        room = self._model.n_ctx - self._longest
        if len(tokens) > room:
            raise RowError(f"the prompt has {len(tokens):,} tokens, before the longest value is room for {room:,}")
        return tokens

    def learn(self, prompts: Sequence[list[int]]) -> None:
        """Shows the first group; later ones are ignored."""
        if self._anchor is None and prompts:
            self._anchor = loop.common_beginning(prompts)

    def results(self, prompts: Sequence[list[int]]) -> Iterator[dict[str, Any] | RowError]:
        """Returns the choice for each prompt of a group, or the error of the prompt."""
        self.learn(prompts)
        self._settle(prompts)
        at_once = max(1, min(loop.GROUP, LEAVES_AT_ONCE // len(self._trie)))
        for start in range(0, len(prompts), at_once):
            yield from self._choose(prompts[start : start + at_once])

    def _choose(self, prompts: Sequence[list[int]]) -> Iterator[dict[str, Any] | RowError]:
        counted = None
        choices = self._model.choose_many(
            prompts, self._trie, top=self._top, threshold=self._threshold, on_error="return"
        )
        # In this order: asking for one choice more would begin another group.
        for _, choice in zip(prompts, choices, strict=False):
            if not isinstance(choice, tokentrie.Choice):
                # Its number is that in the group; rows are named by their lines.
                yield RowError(re.sub(r"^prompt \d+: ", "", str(choice)))
                continue
            stats = choice.stats
            if counted != (counted := (stats.seconds, stats.forward_passes, stats.tokens_decoded)):
                # Prompts that were decoded together share their stats.
                self.passes += stats.forward_passes
            best_first = {name: round_share(p) for name, p in shares(choice, self._names).items()}
            name, probability = next(iter(best_first.items()))
            mass = round_share(choice.mass)
            # Below the threshold none is chosen.
            chosen = None if choice.value is None else name
            yield {"choice": chosen, "probability": probability, "mass": mass, "probabilities": best_first}

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


def run(path: Path | None, source: Source, job: Job, hardware: Hardware, as_json: bool) -> None:
    """Chooses for every row that has no result yet, and prints a summary."""
    prompts = Prompts(job.field, job.template)
    if str(job.input) == "-" == str(source.file):
        raise typer.BadParameter("standard input can be read only once", param_hint="--input")
    needed = prompts.needed | ({job.gold} if job.gold is not None else set())
    with Input(job.input, needed) as rows:
        content = source.read()
        opened = open_model(path, hardware.n_ctx, hardware.n_threads, hardware.n_gpu_layers)
        with console.collected_warnings() as warnings:
            trie = source.trie(opened.model.vocab, content, distinct_names=True)
        if path is None:
            warnings.append(TOY.format(opened.model.path.name))
            console.say(f"warning: {warnings[-1]}")
        if not as_json:
            for warning in warnings[: -1 if path is None else None]:
                console.say(f"warning: {warning}")
        chooser = Chooser(opened.model, trie, job.top, job.turn, prompts, threshold=job.threshold)
        tally = Tally(few_labels(trie, opened.model.vocab), job.gold)
        settings = _settings(job, opened.model.path, trie, source)
        summary = loop.work(job, rows, chooser, tally, CHOICE, settings)
    if job.picture:
        assert job.output is not None
        pictures.of_rows(job.picture, tally, f"{job.output.name}, labelled by {opened.model.path.name}")
    if as_json:
        console.print_json(summary | tally.document() | {"model": opened.describe(), "warnings": warnings})
        return
    screen = console.screen()
    screen.print(loop.summary_line(job, summary, opened.model.path))
    for part in tally.render(screen.width):
        screen.print(part)


def few_labels(trie: tokentrie.Trie, vocab: tokentrie.Vocab) -> list[str]:
    """All values of a small set: those that no row has are shown too."""
    names = Names(trie, vocab)
    return [names[leaf] for leaf in range(len(trie))] if len(trie) <= LISTED else []


def _settings(job: Job, model: Path, trie: tokentrie.Trie, source: Source) -> dict[str, object]:
    """Returns the settings that results depend on."""
    if source.set_file:
        values = digest(source.set_file)
    else:
        leaves = json.dumps([[leaf.name, leaf.tokens] for leaf in trie])
        values = hashlib.sha256(leaves.encode()).hexdigest()
    return {
        "layout of results": LAYOUT,
        "set of choices": values,
        "--chat": job.turn.is_chat or None,
        "--system": job.turn.system,
        "--prefix": job.turn.prefix if job.turn.is_chat else None,
        "--top": job.top,
        "--threshold": job.threshold,
    } | job.settings(model)
