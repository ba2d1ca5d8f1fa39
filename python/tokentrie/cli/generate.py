"""`tokentrie generate`: one legal value after a prompt, of a set, a rule or a spec."""

from __future__ import annotations

import datetime
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import typer

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.choosing.turn import Turn
from tokentrie.cli.loading import OpenedModel, open_model
from tokentrie.cli.source import Hardware, Source
from tokentrie.files import replacing
from tokentrie.results import Probability


@dataclass(frozen=True)
class Draw:
    """Settings of a generation, as `Model.generate` takes them; end tokens as they were written."""

    mode: Literal["greedy", "sampled"]
    settings: dict[str, Any]
    seed: int | None
    max_tokens: int | None
    end_tokens: list[str]
    after: Literal["stop", "free"]
    correct: int | None
    tells_probability: bool
    """True to find how probable the constraint and the text are, too."""

    def effective(self, warnings: list[str]) -> tokentrie.Sampling:
        """The settings of a draw; adds a warning of those that have no effect, by the names of their options."""
        sampling = tokentrie.Sampling(self.mode, **self.settings, seed=self.seed)
        lost = sampling.without_effect
        if lost:
            names = " and ".join("--" + name.replace("_", "-") for name in lost)
            verb = "has" if len(lost) == 1 else "have"
            warnings.append(f"{names} {verb} no effect with --mode greedy: give --mode sampled")
        plain: dict[str, Any] = {name: default for name, default, *_ in tokentrie.Sampling.settings()}
        return sampling.replace(**{name: plain[name] for name in lost})


@dataclass(frozen=True)
class ReceiptTarget:
    """Destination of the receipt, if one is kept, and the key of its seal."""

    file: Path | None
    key: Path | None

    def receipt_option(self) -> bool | bytes:
        """As `Model.generate` takes it."""
        return self.file is not None if self.key is None else console.read(self.key)


def run(
    path: Path | None,
    prompt: str,
    turn: Turn,
    source: Source,
    draw: Draw,
    hardware: Hardware,
    kept: ReceiptTarget,
    as_json: bool,
) -> None:
    """Generates and prints; exit code 1 if the output ended before a value was complete."""
    content, receipt = source.read(), kept.receipt_option()
    opened = open_model(path, hardware.n_ctx, hardware.n_threads, hardware.n_gpu_layers, hardware.draft)
    vocab = opened.model.vocab
    with console.collected_warnings() as warnings:
        sampling = draw.effective(warnings)
        constraint = source.constraint(vocab, content)
        ends = [_token(vocab, text) for text in draw.end_tokens] or None
        with console.working("generating"):
            asked = turn.tokens(opened.model, [(prompt, True)]) if turn.is_chat else prompt
            generated = opened.model.generate(
                asked,
                constraint,
                max_tokens=draw.max_tokens,
                sampling=sampling,
                end_tokens=ends,
                after=draw.after,
                on_invalid="none",
                receipt=receipt,
                correct=draw.correct,
            )
            found = None
            if draw.tells_probability:
                limits: dict[str, Any] = {"max_tokens": draw.max_tokens, "seed": draw.seed, "end_tokens": ends}
                found = opened.model.probability(asked, constraint, text=generated.text, **limits)
    if kept.file is not None:
        with replacing(kept.file) as partial:
            partial.write_text(json.dumps(generated.receipt) + "\n", encoding="utf-8")
    _show(opened, generated, found, warnings, as_json)
    # The value of a rule may be null: then only the end of the generation tells that it is complete.
    whole = source.is_rule and generated.finish == "span"
    if generated.leaf is None and generated.value is None and not generated.values and not whole:
        count = len(generated.tokens)
        console.say(f"no value was completed: the output ended with {generated.finish} after {count} tokens")
        raise typer.Exit(1)


def _show(
    opened: OpenedModel,
    generated: tokentrie.Generated,
    found: Probability | None,
    warnings: list[str],
    as_json: bool,
) -> None:
    if not as_json:
        console.say_warnings(warnings)
        sys.stdout.write(generated.text + "\n")
        if found is not None and found.text is not None:
            between = "" if found.exact else f", between {found.lower:.4g} and {found.upper:.4g}"
            console.say(f"the constraint has the probability {found.estimate:.4g}{between}; this text {_share(found)}")
        return
    leaf = generated.leaf
    document = {
        "text": generated.text,
        "tokens": generated.tokens,
        "leaf": leaf and {"index": leaf.index, "name": leaf.name, "tokens": leaf.tokens},
        "value": _plain(generated.value),
        **({"values": {name: _plain(value) for name, value in generated.values.items()}} if generated.values else {}),
        "finish": generated.finish,
        **({} if generated.correction is None else {"correction": generated.correction.to_dict()}),
        **({} if found is None else {"probability": _finite(found.to_dict())}),
        "stats": generated.stats.to_dict(),
        "model": opened.describe(),
        "warnings": warnings,
    }
    console.print_json(document)


def _share(found: Probability) -> str:
    """The probability of the text, and its share of that of the constraint."""
    assert found.text is not None
    return f"{math.exp(found.text.logprob):.4g}, {found.text.share:.2%} of it"


def _finite(told: dict[str, Any]) -> dict[str, Any]:
    """The fields of a result with null for the logarithm of 0, which JSON cannot write."""
    return {
        name: _finite(value) if isinstance(value, dict) else None if value == -math.inf else value
        for name, value in told.items()
    }


def _plain(value: object) -> object:
    """A value as JSON has it: a day and a time as their text."""
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else value


def _token(vocab: tokentrie.Vocab, text: str) -> int:
    """An end token from an id or from text that is one token."""
    if text.isdecimal() and len(text) <= 10:
        token = int(text)
        if token < len(vocab):
            return token
        raise typer.BadParameter(f"{token} is outside the vocabulary of {len(vocab)} tokens", param_hint="--end-token")
    tokens = vocab.tokenize(text, parse_special=True)
    if len(tokens) != 1:
        raise typer.BadParameter(f"{text!r} is {len(tokens)} tokens, not one", param_hint="--end-token")
    return tokens[0]
