"""`tokentrie build`: a file of values becomes a .ttrie file."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import typer

import tokentrie
from tokentrie.cli import console, values
from tokentrie.cli.lines import blank_ends
from tokentrie.cli.loading import open_vocab
from tokentrie.cli.source import warn_of_blanks
from tokentrie.files import replacing

# Number of values that are tokenized together in the search for bad ones.
CHUNK = 4096


@dataclass(frozen=True)
class Job:
    """Input of a build, and how its texts become tokens."""

    input: Path
    field: str | None
    prefix: str
    suffix: str
    tokenization: Literal["canonical", "all"]
    open_end: bool
    heal: bool
    refused: Path | None
    memory: int

    def __post_init__(self) -> None:
        texts = {
            "--prefix": self.prefix,
            "--suffix": self.suffix,
            "--open-end": self.open_end,
            "--heal": self.heal,
            "--refused": self.refused,
        }
        given = [name for name, value in texts.items() if value]
        if self.input.suffix.lower() == values.ARRAY and given:
            raise typer.BadParameter("goes with texts, and an array has token ids", param_hint=given[0])


@dataclass(frozen=True)
class RefusedValue:
    """A value that makes no leaf."""

    line: int
    value: str
    reason: str


def run(job: Job, vocab_path: Path | None, output: Path, as_json: bool) -> None:
    """Reads, builds, saves and prints a summary."""
    if console.is_standard(output):
        if sys.stdout.isatty():
            raise typer.BadParameter("a set is binary: give a file, or a pipe behind -", param_hint="--output")
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "set.ttrie"
            _run(job, vocab_path, made, as_json, "-")
            with made.open("rb") as file:
                shutil.copyfileobj(file, console.standard_output())
        return
    _run(job, vocab_path, output, as_json, str(output))


def _run(job: Job, vocab_path: Path | None, output: Path, as_json: bool, said: str) -> None:
    started = time.perf_counter()
    _distinct({"VALUES": job.input, "--vocab": vocab_path, "--output": output, "--refused": job.refused})
    vocab = open_vocab(vocab_path)
    read = _Values(job, vocab)
    if job.input.suffix.lower() == values.ARRAY:
        rows = values.ids(job.input)
        with console.working(f"building a trie of {len(rows):,} rows"):
            try:
                trie = tokentrie.Trie.from_sequences(rows, vocab=vocab, memory=job.memory, path=output)
            except (tokentrie.errors.TrieError, tokentrie.errors.VocabularyError) as error:
                raise type(error)(f"{job.input}: {error}") from None
        read.count = len(rows)
    else:
        with console.progress(f"building a trie of {console.printable(job.input.name)}") as read.seen:
            trie = _trie(job, vocab, read, output)
    refused = read.refused
    with console.collected_warnings() as warnings:
        for line, value in read.blanks:
            warn_of_blanks(value, read.blank_count, f"{job.input}, line {line}: ")
    summary: dict[str, Any] = {
        "output": said,
        "values": read.count,
        "refused": len(refused),
        "leaves": len(trie),
        "nodes": trie.nodes,
        "bytes": output.stat().st_size,
        "heal_bytes": trie.heal_bytes,
        "seconds": time.perf_counter() - started,
        "warnings": warnings,
    }
    if as_json:
        console.print_json(summary)
        return
    console.say_warnings(warnings)
    wrong = f", {len(refused):,} refused" if refused else ""
    healed = f"; take {console.count(trie.heal_bytes, 'byte', 'bytes')} off the prompt" if trie.heal_bytes else ""
    console.screen().print(
        f"{console.printable(said)}: {console.count(read.count, 'value', 'values')}{wrong}, "
        f"{console.count(len(trie), 'leaf', 'leaves')}, {console.count(trie.nodes, 'node', 'nodes')}, "
        f"{summary['bytes']:,} bytes, {console.milliseconds(summary['seconds'])}{healed}"
    )


def _distinct(files: dict[str, Path | None]) -> None:
    """Refuses a file that is named for two purposes."""
    if (output := files["--output"]) and output.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(output))
    given = {name: path.resolve() for name, path in files.items() if path is not None}
    for name in ("--output", "--refused"):
        for other, path in given.items():
            if other != name and given.get(name) == path:
                raise typer.BadParameter(f"{path} is {other} too", param_hint=name)


def size(text: str) -> int:
    """Bytes: a whole number, or one with K, M or G after it, of 1024."""
    found = re.fullmatch(r"(\d{1,18})([KMG]?)i?B?", text.strip(), re.IGNORECASE)
    if not found or not int(found[1]):
        raise typer.BadParameter(f"invalid number of bytes {text!r}: expected one such as 512M", param_hint="--memory")
    return int(found[1]) << 10 * " KMG".index(found[2].upper() or " ")


def _trie(job: Job, vocab: tokentrie.Vocab, read: _Values, output: Path) -> tokentrie.Trie:
    """The trie of the good values, in `output`."""
    try:
        return _build_trie(job, vocab, read.good(), output)
    except (tokentrie.errors.TrieError, tokentrie.errors.VocabularyError) as error:
        if not read.count:
            raise tokentrie.errors.TrieError(f"{job.input}: holds no value, so the set has no leaf") from None
        if job.refused is None:
            raise type(error)(f"{job.input}: {error}; --refused FILE lists such values by their lines") from None
        if len(read.refused) < read.count:
            raise
        raise tokentrie.errors.TrieError(f"{job.input}: all values are refused: see {job.refused}") from None


class _Values:
    """The values of a file, read as they are asked for."""

    def __init__(self, job: Job, vocab: tokentrie.Vocab) -> None:
        self.job = job
        self.vocab = vocab
        self.count = 0
        """Values read so far."""
        self.refused: list[RefusedValue] = []
        """Lines that make no leaf, if they were asked for."""
        self.blanks: list[tuple[int, str]] = []
        """Line and text of the first that begins or ends with blanks."""
        self.blank_count = 0
        """Number of lines that make a leaf."""
        self.seen: values.Seen = lambda done, total: None
        """Hears how much was read."""

    def good(self) -> Iterator[str]:
        """The values that make a leaf; all, where a bad one is an error.

        The errors of the other values are written after the last value is read, before the set.
        """
        rows = values.texts(self.job.input, self.job.field, self.seen)
        while part := list(islice(rows, CHUNK)):
            self.count += len(part)
            blanks = [row for row in part if blank_ends(row[1])]
            self.blank_count += len(blanks)
            self.blanks = self.blanks or blanks[:1]
            yield from [text for _, text in part] if self.job.refused is None else self._good(part)
        if self.job.refused is not None:
            _report(self.job.refused, self.refused)

    def _good(self, part: list[tuple[int, str]]) -> list[str]:
        """Yields the good values: a group with a bad value is halved until that value is alone."""
        texts = [text for _, text in part]
        try:
            _build_trie(self.job, self.vocab, texts)
        except (tokentrie.errors.VocabularyError, tokentrie.errors.TrieError, tokentrie.errors.OptionError) as error:
            if len(part) == 1:
                self.refused.append(RefusedValue(*part[0], str(error)))
                return []
            middle = len(part) // 2
            return self._good(part[:middle]) + self._good(part[middle:])
        return texts


def _build_trie(
    job: Job, vocab: tokentrie.Vocab, texts: list[str] | Iterator[str], output: Path | None = None
) -> tokentrie.Trie:
    """The trie of these values, in `output` or in memory."""
    if job.tokenization == "canonical" and not job.open_end and not job.heal:
        memory = None if output is None else job.memory
        return tokentrie.Trie.from_strings(vocab, texts, job.prefix, job.suffix, memory=memory, path=output)
    # All values are needed at once.
    trie = tokentrie.Trie.from_strings(
        vocab, texts, job.prefix, job.suffix, job.tokenization, open_end=job.open_end, heal=job.heal
    )
    if output is not None:
        trie.save(output, vocab)
    return trie


def _report(path: Path, refused: list[RefusedValue]) -> None:
    """The refused values as JSONL. The file appears whole or not at all."""
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        for one in refused:
            file.write(json.dumps({"line": one.line, "value": one.value, "reason": one.reason}) + "\n")
