"""`tokentrie build`: a file of values becomes a .ttrie file."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import typer

import tokentrie
from tokentrie.cli import console, values
from tokentrie.cli.loading import open_vocab
from tokentrie.files import replacing

# Values that are tokenized together while the bad ones are looked for.
CHUNK = 4096


@dataclass(frozen=True)
class Job:
    """What to read, and how texts become tokens."""

    input: Path
    field: str | None
    prefix: str
    suffix: str
    tokenization: str
    heal: bool
    refused: Path | None

    def __post_init__(self) -> None:
        texts = {"--prefix": self.prefix, "--suffix": self.suffix, "--heal": self.heal, "--refused": self.refused}
        given = [name for name, value in texts.items() if value]
        if self.input.suffix.lower() == values.ARRAY and given:
            raise typer.BadParameter("goes with texts, and an array has token ids", param_hint=given[0])


@dataclass(frozen=True)
class Refused:
    """A value that makes no leaf."""

    line: int
    value: str
    reason: str


def run(job: Job, vocab_path: Path | None, output: Path, as_json: bool) -> None:
    """Reads, builds, saves and prints a summary."""
    started = time.perf_counter()
    vocab = open_vocab(vocab_path)
    refused: list[Refused] = []
    if job.input.suffix.lower() == values.ARRAY:
        rows = values.ids(job.input)
        with console.working(f"building a trie of {len(rows):,} rows"):
            trie, count = tokentrie.Trie.from_sequences(rows, vocab=vocab), len(rows)
    else:
        with console.working(f"reading {job.input}"):
            read = list(values.texts(job.input, job.field))
        if not read:
            raise tokentrie.TrieError(f"{job.input}: holds no value, so the set has no leaf")
        count = len(read)
        with console.working(f"building a trie of {count:,} values"):
            kept = _kept(job, vocab, read, refused)
            if job.refused is not None:
                _report(job.refused, refused)
            if not kept:
                raise tokentrie.TrieError(f"{job.input}: all values are refused: see {job.refused}")
            trie = _made(job, vocab, kept)
    with console.working(f"saving {output}"):
        trie.save(output, vocab)
    summary: dict[str, Any] = {
        "output": str(output),
        "values": count,
        "refused": len(refused),
        "leaves": len(trie),
        "nodes": trie.nodes,
        "bytes": output.stat().st_size,
        "heal_bytes": trie.heal_bytes,
        "seconds": time.perf_counter() - started,
    }
    if as_json:
        console.print_json(summary)
        return
    wrong = f", {len(refused):,} refused" if refused else ""
    healed = f"; take {console.count(trie.heal_bytes, 'byte', 'bytes')} off the prompt" if trie.heal_bytes else ""
    console.screen().print(
        f"{console.printable(str(output))}: {console.count(count, 'value', 'values')}{wrong}, "
        f"{console.count(len(trie), 'leaf', 'leaves')}, {console.count(trie.nodes, 'node', 'nodes')}, "
        f"{summary['bytes']:,} bytes, {console.milliseconds(summary['seconds'])}{healed}"
    )


def _made(job: Job, vocab: tokentrie.Vocab, texts: list[str]) -> tokentrie.Trie:
    settings = {"prefix": job.prefix, "suffix": job.suffix, "tokenization": job.tokenization, "heal": job.heal}
    return tokentrie.Trie.from_strings(vocab, texts, **settings)  # type: ignore[arg-type]


def _kept(job: Job, vocab: tokentrie.Vocab, read: list[tuple[int, str]], refused: list[Refused]) -> list[str]:
    """The good values; the bad ones go to `refused`, unless nobody asked for them: then all are kept."""
    if job.refused is None:
        return [text for _, text in read]

    def good(part: list[tuple[int, str]]) -> list[str]:
        """Halves of halves, until each bad value is alone."""
        texts = [text for _, text in part]
        try:
            _made(job, vocab, texts)
        except (tokentrie.VocabularyError, tokentrie.TrieError, tokentrie.OptionError) as error:
            if len(part) == 1:
                refused.append(Refused(*part[0], str(error)))
                return []
            middle = len(part) // 2
            return good(part[:middle]) + good(part[middle:])
        return texts

    rows = iter(read)
    kept: list[str] = []
    while part := list(islice(rows, CHUNK)):
        kept += good(part)
    return kept


def _report(path: Path, refused: list[Refused]) -> None:
    """The refused values as JSONL. The file appears whole or not at all."""
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        for one in refused:
            file.write(json.dumps({"line": one.line, "value": one.value, "reason": one.reason}) + "\n")
