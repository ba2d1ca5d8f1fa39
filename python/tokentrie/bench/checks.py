"""Whether an output is what it must be: a legal value, made in as many forward passes as it has branch points."""

from __future__ import annotations

from dataclasses import dataclass

import tokentrie
from tokentrie.bench.engines import FREE, GRAMMAR, LLGUIDANCE, NO_SKIP, TRIE
from tokentrie.bench.sets import ValueSet


class CheckError(Exception):
    """What is wrong with an output."""


@dataclass(frozen=True)
class Walk:
    """What a trie says about the way to one of its leaves."""

    branch_points: int
    """Positions at which more than one thing could come: several tokens, or a token and the end of the value."""
    masked: list[int]
    """At each step, the tokens of the vocabulary that could not come."""


def walk(trie: tokentrie.Trie, tokens: list[int], vocabulary: int) -> Walk:
    """Counted with the trie at every prefix. A value that others go on from can end there: then nothing is masked."""
    branch_points = 0
    masked = []
    for depth in range(len(tokens) + 1):
        prefix = tokens[:depth]
        children = len(trie.allowed(prefix))
        ends = depth > 0 and prefix in trie
        if children == 0:
            break
        branch_points += children > 1 or ends
        masked.append(0 if ends else vocabulary - children)
    return Walk(branch_points, masked)


class Checker:
    """Checks outputs of one set."""

    def __init__(self, model: tokentrie.Model, values: ValueSet) -> None:
        self._model = model
        self._values = values
        self._passes: dict[tuple[int, ...], int] = {}

    def check(self, mode: str, prompt: list[int], out: tokentrie.Generated) -> None:
        """Raises CheckError if the output is not what it must be."""
        if mode == FREE:
            return
        if mode in (GRAMMAR, LLGUIDANCE):
            self._check_text(out, "end_of_generation")
        elif self._values.trie is None:
            self._check_text(out, "form")
        else:
            self._check_leaf(self._values.trie, out)
            self._check_passes(self._values.trie, mode, prompt, out)

    def prompt_passes(self, tokens: list[int]) -> int:
        """The forward passes that these tokens take as a prompt: more than one if they are more than a batch."""
        key = tuple(tokens)
        if key not in self._passes:
            self._model.clear()
            self._passes[key] = self._model.generate(tokens, None, max_tokens=1).stats.forward_passes
        return self._passes[key]

    def _check_text(self, out: tokentrie.Generated, finish: str) -> None:
        if out.finish != finish:
            raise CheckError(f"the output {out.text!r} ended with {out.finish} and not with {finish}")
        if not self._values.allows(out.text):
            raise CheckError(f"the output {out.text!r} is not one of the values")

    def _check_leaf(self, trie: tokentrie.Trie, out: tokentrie.Generated) -> None:
        leaf = out.leaf
        if out.finish != "span" or leaf is None:
            raise CheckError(f"the output {out.text!r} ended with {out.finish} and no value")
        if leaf.tokens != out.tokens or trie.find(out.tokens) != leaf.index:
            raise CheckError(f"the output {out.tokens} is not the value {leaf.tokens} that it should be")

    def _check_passes(self, trie: tokentrie.Trie, mode: str, prompt: list[int], out: tokentrie.Generated) -> None:
        """With skip-ahead one pass a branch point, and the first shares the prompt's; without, one a token."""
        if mode == TRIE:
            needed = walk(trie, out.tokens, len(self._model.vocab)).branch_points
            first = self.prompt_passes([*prompt, *trie.forced().tolist()]) if needed else 0
            what = f"{needed} branch points"
        else:
            assert mode == NO_SKIP
            needed = out.stats.sampled_tokens + out.stats.forced_tokens
            first = self.prompt_passes(prompt)
            what = f"{needed} tokens"
        expected = first + max(needed - 1, 0)
        if out.stats.forward_passes != expected:
            made = out.stats.forward_passes
            raise CheckError(f"{made} forward passes and not {expected} for {what} in {out.text!r}")
