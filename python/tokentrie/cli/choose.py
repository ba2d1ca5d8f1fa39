"""`tokentrie choose`: the exact probability of every value after a prompt."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.generate import Hardware, Source, _exactly_one, prompt_text
from tokentrie.cli.loading import Opened, open_model

__all__ = ["Hardware", "Values", "check_usage", "prompt_text", "run", "shares"]

SHOWN = 20


@dataclass(frozen=True)
class Values(Source):
    """Where the values come from: as for `generate`, or one by one; and the text around them."""

    choice: list[str]
    prefix: str
    suffix: str

    def __post_init__(self) -> None:
        _exactly_one(
            {
                "--payload": self.payload,
                "--choices": self.choices,
                "--choice": self.choice or None,
                "--choices-file": self.choices_file,
            }
        )
        if self.path is not None and self.payload is None:
            raise typer.BadParameter("it needs --payload", param_hint="--path")
        if self.payload is not None and (self.prefix or self.suffix):
            raise typer.BadParameter("a payload says the tokens already", param_hint="--prefix, --suffix")

    def trie(self, vocab: tokentrie.Vocab, content: bytes) -> tokentrie.Trie:
        """As for `generate`; no two values have the same name."""
        if self.payload:
            trie = tokentrie.Trie.from_payload(content, self.path, vocab=vocab)
            self._check_distinct(leaf.name or "" for leaf in trie)
            return trie
        values = self._values(content)
        self._check_distinct(values)
        trie = tokentrie.Trie.from_strings(vocab, values, self.prefix, self.suffix)
        if len(trie) < len(values):
            raise tokentrie.VocabularyError("two values have the same tokens in this vocabulary")
        return trie

    def _values(self, content: bytes) -> list[str]:
        if not self.choice:
            return super()._values(content)
        if not all(self.choice):
            raise typer.BadParameter("an empty value", param_hint="--choice")
        return self.choice

    def _check_distinct(self, names: Iterable[str]) -> None:
        ((name, count),) = Counter(names).most_common(1)
        if count == 1:
            return
        problem = f"the value {name!r} is given {count} times"
        if self.file:
            raise tokentrie.TokenTrieError(f"{self.file}: {problem}")
        raise typer.BadParameter(problem, param_hint="--choice" if self.choice else "--choices")


def check_usage(where: dict[str, object], of_rows: dict[str, object]) -> None:
    """One of the options that say where prompts come from; those about rows only with `--input`."""
    _exactly_one(where)
    astray = [name for name, value in of_rows.items() if value is not None]
    if where["--input"] is None and astray:
        raise typer.BadParameter("it goes with --input", param_hint=astray)


def run(path: Path | None, prompt: str, source: Values, top: int | None, hardware: Hardware, as_json: bool) -> None:
    """Chooses and prints."""
    content = console.read(source.file) if source.file else b""
    opened = open_model(path, hardware.n_ctx, hardware.n_threads, hardware.n_gpu_layers)
    with console.collected_warnings() as warnings:
        trie = source.trie(opened.model.vocab, content)
    with console.working("choosing"):
        choice = opened.model.choose(prompt, trie, top=top)
    if as_json:
        # The number of a value is its place as it was given; a payload is a set, its leaves have an order of their own.
        index = choice.index if source.payload else int(trie.input_rows[choice.index])
        console.print_json(_document(choice, index, trie, opened, warnings))
        return
    for warning in warnings:
        console.say(f"warning: {warning}")
    _show(choice, trie)


def shares(choice: tokentrie.Choice, names: list[str]) -> dict[str, float]:
    """The probabilities of the values that were scored, best first. `names` are those of the leaves."""
    probabilities = choice.probabilities
    return {names[leaf]: float(probabilities[leaf]) for leaf in choice.ranking}


def _show(choice: tokentrie.Choice, trie: tokentrie.Trie) -> None:
    screen = console.screen()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("Value")
    table.add_column("Probability", justify="right")
    table.add_column("Log-probability", justify="right")
    probabilities, logprobs = choice.probabilities, choice.logprobs
    for place, number in enumerate(choice.ranking[:SHOWN]):
        leaf = trie.leaf(int(number))
        name = Text(console.printable(leaf.name or '""' if leaf else ""), style="" if place else "bold green")
        table.add_row(name, f"{probabilities[number]:.4g}", f"{logprobs[number]:.4f}")
    screen.print(table)
    scored = len(choice.ranking)
    if more := len(trie) - min(scored, SHOWN):
        unscored = f", {len(trie) - scored:,} of them not scored" if scored < len(trie) else ""
        screen.print(Text(f"… {more:,} more{unscored}", style="dim"))
    low, high = choice.mass_bounds
    mass = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    screen.print(Text(f"The probability that the model answers with any of them at all is {mass}.", style="dim"))


def _document(
    choice: tokentrie.Choice, index: int, trie: tokentrie.Trie, opened: Opened, warnings: list[str]
) -> dict[str, Any]:
    names = [leaf.name or "" for leaf in trie]
    logprobs = choice.logprobs
    return {
        "name": choice.name,
        "index": index,
        "probabilities": shares(choice, names),
        # Impossible is no number in JSON.
        "logprobs": {names[i]: float(logprobs[i]) if math.isfinite(logprobs[i]) else None for i in choice.ranking},
        "mass": choice.mass,
        "mass_bounds": list(choice.mass_bounds),
        "stats": choice.stats.as_dict(),
        "model": opened.describe(),
        "warnings": warnings,
    }
