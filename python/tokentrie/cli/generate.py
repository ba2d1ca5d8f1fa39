"""`tokentrie generate`: one legal value after a prompt."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import typer

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.loading import Opened, open_model


@dataclass(frozen=True)
class Source:
    """Where the legal values come from: exactly one of payload, choices and file."""

    payload: Path | None
    path: str | None
    choices: str | None
    choices_file: Path | None

    def __post_init__(self) -> None:
        _exactly_one({"--payload": self.payload, "--choices": self.choices, "--choices-file": self.choices_file})
        if self.path is not None and self.payload is None:
            raise typer.BadParameter("it needs --payload", param_hint="--path")

    @property
    def file(self) -> Path | None:
        """The file to read, if any."""
        return self.payload or self.choices_file

    def trie(self, vocab: tokentrie.Vocab, content: bytes) -> tokentrie.Trie:
        """The legal values in a vocabulary; `content` is that of the file."""
        if self.payload:
            return tokentrie.Trie.from_payload(content, self.path, vocab=vocab)
        return tokentrie.Trie.from_strings(vocab, self._values(content))

    def _values(self, content: bytes) -> list[str]:
        if self.choices is not None:
            values = [value.strip() for value in self.choices.split(",")]
            if not all(values):
                raise typer.BadParameter(f"an empty value in {self.choices!r}", param_hint="--choices")
            return values
        assert self.choices_file is not None
        values = [
            line for line in console.as_text(content, self.choices_file).replace("\r\n", "\n").split("\n") if line
        ]
        if not values:
            raise tokentrie.TokenTrieError(f"{self.choices_file}: no line with a value")
        return values


@dataclass(frozen=True)
class Draw:
    """How to generate, as `Model.generate` takes it; end tokens as they were written."""

    mode: Literal["greedy", "sampled"]
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    seed: int | None
    max_tokens: int
    end_tokens: list[str]
    after: Literal["stop", "free"]


@dataclass(frozen=True)
class Hardware:
    """What the model runs on."""

    n_ctx: int | None
    n_threads: int | None
    n_gpu_layers: int


def prompt_text(prompt: str | None, file: Path | None, source: Source) -> str:
    """The prompt from one of its two options."""
    _exactly_one({"--prompt": prompt, "--prompt-file": file})
    if file is None:
        return prompt or ""
    if str(file) == "-" == str(source.file):
        raise typer.BadParameter("standard input can be read only once", param_hint="--prompt-file")
    return console.as_text(console.read(file), file)


def run(path: Path | None, prompt: str, source: Source, draw: Draw, hardware: Hardware, as_json: bool) -> None:
    """Generates and prints; exit code 1 if the output ended before a value was complete."""
    content = console.read(source.file) if source.file else b""
    opened = open_model(path, hardware.n_ctx, hardware.n_threads, hardware.n_gpu_layers)
    vocab = opened.model.vocab
    with console.collected_warnings() as warnings:
        trie = source.trie(vocab, content)
    with console.working("generating"):
        generated = opened.model.generate(
            prompt,
            trie,
            draw.mode,
            draw.max_tokens,
            seed=draw.seed,
            temperature=draw.temperature,
            top_k=draw.top_k,
            top_p=draw.top_p,
            min_p=draw.min_p,
            end_tokens=[_token(vocab, text) for text in draw.end_tokens] or None,
            after=draw.after,
        )
    _show(opened, generated, warnings, as_json)
    if generated.leaf is None:
        count = len(generated.tokens)
        console.say(f"no value was completed: the output ended with {generated.finish} after {count} tokens")
        raise typer.Exit(1)


def _show(opened: Opened, generated: tokentrie.Generated, warnings: list[str], as_json: bool) -> None:
    if not as_json:
        for warning in warnings:
            console.say(f"warning: {warning}")
        sys.stdout.write(generated.text + "\n")
        return
    leaf = generated.leaf
    document = {
        "text": generated.text,
        "tokens": generated.tokens,
        "leaf": leaf and {"index": leaf.index, "name": leaf.name, "tokens": leaf.tokens},
        "finish": generated.finish,
        "stats": generated.stats.as_dict(),
        "model": opened.describe(),
        "warnings": warnings,
    }
    console.print_json(document)


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


def _exactly_one(options: dict[str, object]) -> None:
    given = [name for name, value in options.items() if value is not None]
    if len(given) != 1:
        *names, last = options
        problem = f"give only one of {' and '.join(given)}" if given else f"give {', '.join(names)} or {last}"
        raise typer.BadParameter(problem, param_hint=given or list(options))
