"""`tokentrie choose`: the exact probability of every value after a prompt."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

from rich.text import Text

import tokentrie
from tokentrie.cli import console, fitting
from tokentrie.cli.choosing import picture as pictures
from tokentrie.cli.choosing.turn import Turn
from tokentrie.cli.loading import OpenedModel, open_model
from tokentrie.cli.source import Hardware, Names, Source

SHOWN = 20


class ScoringExtent(NamedTuple):
    """Extent to which a set is scored."""

    top: int | None
    beam: int | None
    threshold: float | None = None


def run(
    path: Path | None,
    prompt: str,
    source: Source,
    turn: Turn,
    scored: ScoringExtent,
    picture: Path | None,
    hardware: Hardware,
    as_json: bool,
) -> None:
    """Scores the values and prints the choice."""
    if picture:
        pictures.check(picture)
    content = source.read()
    opened = open_model(path, hardware.n_ctx, hardware.n_threads, hardware.n_gpu_layers)
    vocab = opened.model.vocab
    with console.collected_warnings() as warnings:
        trie = source.trie(vocab, content, distinct_names=True)
    with console.working("choosing"):
        asked = turn.tokens(opened.model, [(prompt, False)]) if turn.is_chat else prompt
        choice = opened.model.choose(asked, trie, top=scored.top, beam=scored.beam, threshold=scored.threshold)
    names = Names(trie, vocab)
    if picture:
        pictures.of_choice(picture, shares(choice, names), opened.model.path.name)
    if as_json:
        # Values given as texts are numbered in the order given; a payload or a .ttrie file has its own order.
        as_given = not (source.payload or source.set_file)
        index = int(trie.input_rows[choice.index]) if as_given else choice.index
        console.print_json(_document(choice, index, names, opened, warnings))
        return
    console.say_warnings(warnings)
    _show(choice, trie, names)


def shares(choice: tokentrie.Choice, names: Names) -> dict[str, float]:
    """The probabilities of the values that were scored, best first."""
    found = {names[leaf]: choice[leaf] for leaf in choice.ranking}
    if len(found) < len(choice.ranking):
        # The names in a .ttrie file cannot be compared beforehand: the file may be larger than the memory.
        raise tokentrie.errors.TrieError(
            "two values of the set have the same name: their probabilities cannot be told apart"
        )
    return found


def _show(choice: tokentrie.Choice, trie: tokentrie.Trie, names: Names) -> None:
    screen = console.screen()
    shown = [int(number) for number in choice.ranking[:SHOWN]]
    printed = [
        Text(console.printable(names[number] or '""'), style="" if place or choice.value is None else "bold green")
        for place, number in enumerate(shown)
    ]
    numbers = {
        "Probability": [f"{choice[number]:.4g}" for number in shown],
        "Log-probability": [f"{choice.logprobs[number]:.4f}" for number in shown],
    }
    screen.print(fitting.table(screen.width, printed, numbers, heading="Value"))
    scored = len(choice.ranking)
    if more := len(trie) - min(scored, SHOWN):
        unscored = f", {len(trie) - scored:,} of them not scored" if scored < len(trie) else ""
        screen.print(Text(f"… {more:,} more{unscored}", style="dim"))
    if choice.reason is not None:
        screen.print(Text(f"None is chosen: {choice.reason}.", style="yellow"))
    low, high = choice.mass_bounds
    mass = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    screen.print(Text(f"The probability that the model answers with any of them at all is {mass}.", style="dim"))


def _document(
    choice: tokentrie.Choice, index: int, names: Names, opened: OpenedModel, warnings: list[str]
) -> dict[str, Any]:
    logprobs = choice.logprobs
    return {
        "name": names[choice.index],
        "value": None if choice.value is None else names[choice.index],
        "reason": choice.reason,
        "index": index,
        "probabilities": shares(choice, names),
        # JSON has no number for the -inf of an impossible value.
        "logprobs": {names[i]: float(logprobs[i]) if math.isfinite(logprobs[i]) else None for i in choice.ranking},
        "mass": choice.mass,
        "mass_bounds": list(choice.mass_bounds),
        "certain": choice.certain,
        "stats": choice.stats.to_dict(),
        "model": opened.describe(),
        "warnings": warnings,
    }
