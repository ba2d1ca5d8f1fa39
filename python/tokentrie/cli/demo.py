"""`tokentrie demo`: a model chooses a tool, seen step by step. Everything shown comes from the run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

import tokentrie
from tokentrie.cli import catalogue, console
from tokentrie.cli.catalogue import Tool
from tokentrie.cli.loading import Opened, open_model, open_vocab, token_text

DEFAULT_N_CTX = 4096
SHOWN = 3


@dataclass(frozen=True)
class Run:
    """One choice: what was offered, what was seen at each step, what came out."""

    tools: list[Tool]
    trie: tokentrie.Trie
    prompt_tokens: int
    steps: list[tokentrie.Step]
    generated: tokentrie.Generated


def run(path: Path | None, request: str | None, count: int, seed: int, n_threads: int | None, as_json: bool) -> None:
    """Runs both lists and prints."""
    request = request or catalogue.REQUEST
    opened = _open(path, request, count, seed, n_threads)
    fitting = _fitting(opened.model, request, count, seed)
    screen = console.screen()
    if not as_json:
        _show_offer(screen, opened, request)
    small = _choose(opened.model, catalogue.TOOLS, request)
    if not as_json:
        _show_steps(screen, small, opened.model.vocab)
    large = _choose(opened.model, catalogue.many(fitting, seed), request)
    if not as_json:
        _show_large(screen, large, small, count, opened.model)
        return
    console.print_json(
        {
            "model": opened.describe(),
            "request": request,
            "tools_asked_for": count,
            "runs": [_document(run, opened.model.vocab) for run in (small, large)],
        }
    )


def _tokens_needed(vocab: tokentrie.Vocab, tools: list[Tool], request: str) -> int:
    """Of context: the prompt, the longest name and an end token."""
    prompt = vocab.tokenize(catalogue.prompt(vocab, tools, request), add_special=True, parse_special=True)
    return len(prompt) + max(len(vocab.tokenize(tool.name)) for tool in tools) + 1


def _open(path: Path | None, request: str, count: int, seed: int, n_threads: int | None) -> Opened:
    """The model with a context for the large list, or the largest of the usual sizes that it allows."""
    needed = _tokens_needed(open_vocab(path), catalogue.many(count, seed), request)
    for size in _sizes(needed):
        # An error says that it is more than the model was trained on.
        with suppress(tokentrie.OptionError):
            return open_model(path, size, n_threads)
    return open_model(path, None, n_threads)


def _sizes(needed: int) -> Iterator[int]:
    """What is needed, then the powers of two below it, as long as they are more than the default."""
    while needed > DEFAULT_N_CTX:
        yield needed
        needed = 1 << (needed - 1).bit_length() - 1


def _fitting(model: tokentrie.Model, request: str, count: int, seed: int) -> int:
    """How many of the tools fit into the context; never fewer than the small list, which then fails by itself."""
    least = len(catalogue.TOOLS)

    def needed(count: int) -> int:
        return _tokens_needed(model.vocab, catalogue.many(count, seed), request)

    if needed(count) <= model.n_ctx:
        return count
    return max(least, least - 1 + bisect_right(range(least, count), model.n_ctx, key=needed))


def _choose(model: tokentrie.Model, tools: list[Tool], request: str) -> Run:
    """Lets the model choose by a greedy walk."""
    vocab = model.vocab
    prompt = vocab.tokenize(catalogue.prompt(vocab, tools, request), add_special=True, parse_special=True)
    trie = tokentrie.Trie.from_strings(vocab, [tool.name for tool in tools])
    # Where a name begins another one, the model must say whether it ends there.
    prefixes = any(len(trie.allowed(leaf.tokens)) for leaf in trie)
    steps: list[tokentrie.Step] = []
    with console.working(f"choosing one of {len(tools)} tools"):
        generated = model.generate(
            prompt,
            trie,
            max_tokens=max(len(leaf.tokens) for leaf in trie) + 1,
            end_tokens=vocab.eog if prefixes else None,
            on_step=steps.append,
        )
    return Run(tools, trie, len(prompt), steps, generated)


def _show_offer(screen: Console, opened: Opened, request: str) -> None:
    screen.print(Text().append("Model    ", style="bold").append(opened.line()))
    screen.print(Text().append("Request  ", style="bold").append(console.printable(request)))
    table = Table.grid(padding=(0, 2, 0, 0))
    for index, tool in enumerate(catalogue.TOOLS):
        table.add_row("" if index else Text("Tools  ", style="bold"), Text(tool.name, style="green"), tool.description)
    screen.print(table)
    screen.print()


def _show_steps(screen: Console, run: Run, vocab: tokentrie.Vocab) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("Step", justify="right")
    table.add_column("Allowed", justify="right")
    table.add_column("Chosen")
    table.add_column("")
    table.add_column("Most probable of the allowed")
    for step in run.steps:
        forced = step.forced
        table.add_row(
            str(step.index + 1),
            str(len(step.allowed)),
            Text(console.quoted(vocab[step.token]), style="dim" if forced else "bold green"),
            Text("forced" if forced else "", style="yellow"),
            "" if forced else _best(step, vocab),
        )
    screen.print(table)
    screen.print(_outcome(run))


def _best(step: tokentrie.Step, vocab: tokentrie.Vocab) -> str:
    """The few most probable tokens of those allowed."""
    order = np.argsort(-step.probabilities, kind="stable")[:SHOWN]
    return "  ".join(f"{console.quoted(vocab[int(step.allowed[i])])} {step.probabilities[i]:.3f}" for i in order)


def _outcome(run: Run) -> Text:
    """The chosen tool and its figures."""
    stats, leaf = run.generated.stats, run.generated.leaf
    chosen = leaf.name if leaf and leaf.name else f"none, ended with {run.generated.finish}"
    line = Text().append("→ ").append(chosen, style="bold green")
    return line.append(
        f"  {console.count(stats.forward_passes, 'forward pass', 'forward passes')}, "
        f"{stats.forced_tokens} of {console.count(len(run.steps), 'token', 'tokens')} forced; "
        f"{run.prompt_tokens:,} prompt tokens {console.milliseconds(stats.prompt_seconds)}, "
        f"the choice {console.milliseconds(stats.seconds - stats.prompt_seconds)}"
    )


def _show_large(screen: Console, large: Run, small: Run, asked: int, model: tokentrie.Model) -> None:
    screen.print()
    title = Text().append(f"The same request with {len(large.tools)} tools", style="bold")
    title.append(f" ({large.trie.nodes:,} nodes, {large.trie.nbytes:,} bytes of trie)")
    screen.print(title)
    if len(large.tools) < asked:
        screen.print(f"(not {asked}: the context has room for {model.n_ctx:,} tokens)")
    _show_steps(screen, large, model.vocab)
    if large.generated.leaf and small.generated.leaf and large.generated.leaf.name != small.generated.leaf.name:
        screen.print(f"(not what it chose among {len(small.tools)} tools)")


def _document(run: Run, vocab: tokentrie.Vocab) -> dict[str, Any]:
    leaf = run.generated.leaf
    return {
        "tools": [{"name": tool.name, "description": tool.description} for tool in run.tools],
        "trie": {"leaves": len(run.trie), "nodes": run.trie.nodes, "bytes": run.trie.nbytes},
        "prompt_tokens": run.prompt_tokens,
        "steps": [_step_document(step, vocab) for step in run.steps],
        "chosen": leaf.name if leaf else None,
        "tokens": run.generated.tokens,
        "finish": run.generated.finish,
        "stats": run.generated.stats.as_dict(),
    }


def _step_document(step: tokentrie.Step, vocab: tokentrie.Vocab) -> dict[str, Any]:
    return {
        "index": step.index,
        "depth": step.depth,
        "allowed": [
            {"token": token, "text": token_text(vocab, token), "probability": probability}
            for token, probability in zip(step.allowed.tolist(), step.probabilities.tolist(), strict=True)
        ],
        "token": step.token,
        "text": token_text(vocab, step.token),
        "forced": step.forced,
    }
