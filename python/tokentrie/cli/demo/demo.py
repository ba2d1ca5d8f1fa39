"""`tokentrie demo`: the library at work for a few seconds. Everything shown comes from the run."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.demo import catalogue
from tokentrie.cli.demo.catalogue import Tool
from tokentrie.cli.demo.demo_shown import Screen
from tokentrie.cli.loading import OpenedModel, open_model, open_vocab, token_text

DEFAULT_N_CTX = 4096
# The prompt ends with the tag. Many models have it as a control token, which the text of a form never becomes.
TAG, END_TAG = "<tool_call>", "</tool_call>"
OPENING, ARGUMENT, CLOSING = '\n{"name": "', '", "arguments": {"time": "', '"}}\n'
# Most tokens that the model may write without a constraint.
FREE_TOKENS = 64

Watch = Callable[[tokentrie.results.Step], None]


@dataclass(frozen=True)
class Walk:
    """A value that was chosen token by token."""

    trie: tokentrie.Trie
    prompt_tokens: int
    steps: list[tokentrie.results.Step]
    generated: tokentrie.Generated

    @property
    def value_name(self) -> str | None:
        """The name of the value."""
        leaf = self.generated.leaf
        return leaf.name if leaf else None


@dataclass(frozen=True)
class Call:
    """A JSON call, filled in and written freely after the same prompt."""

    filled: tokentrie.Generated
    free: tokentrie.Generated


@dataclass(frozen=True)
class Names:
    """A large set, and a value of it that the model was asked for."""

    wanted: str
    trie: tokentrie.Trie
    seconds: float
    walk: Walk


def run(
    path: Path | None,
    request: str | None,
    count: int,
    names: int,
    seed: int,
    n_threads: int | None,
    as_json: bool,
) -> None:
    """Runs the demo and prints what happens."""
    request = request or catalogue.REQUEST
    # Passes of the tiny model are so short that a second thread costs more than it does.
    opened = _open(path, request, count, seed, n_threads or (1 if path is None else None))
    model = opened.model
    fitting = _fitting(model, request, count, seed)
    tools = catalogue.make_tools(fitting, seed) if fitting > len(catalogue.TOOLS) else catalogue.TOOLS
    screen = Screen(as_json)
    screen.begin(opened)
    screen.offer(tools, request, count, model.n_ctx)
    walk = _choose(model, tools, request, screen.step(model.vocab))
    screen.show_choice(walk.generated, walk.value_name)
    choice = model.choose(_tokens(model.vocab, catalogue.prompt(model.vocab, tools, request)), walk.trie)
    screen.probabilities(choice, walk.trie)
    call = _call(model, tools, request)
    screen.call(call.filled, call.free, END_TAG)
    large = _names(model, names, seed, screen)
    screen.show_choice(large.walk.generated, large.walk.value_name)
    screen.end(is_tiny=path is None)
    if as_json:
        console.print_json(
            {
                "model": opened.describe(),
                "request": request,
                "tools_asked_for": count,
                "tools": [{"name": tool.name, "description": tool.description} for tool in tools],
                "choice": _walk_document(walk, model.vocab) | _probabilities(choice, walk.trie),
                "call": {"filled": _to_json(call.filled), "free": _to_json(call.free)},
                "names": {"wanted": large.wanted, "build_seconds": large.seconds}
                | _walk_document(large.walk, model.vocab),
            }
        )


def _tokens(vocab: tokentrie.Vocab, prompt: str) -> list[int]:
    return vocab.tokenize(prompt, add_special=True, parse_special=True)


def _tokens_needed(vocab: tokentrie.Vocab, tools: list[Tool], request: str) -> int:
    """Returns the context needed: the longer prompt, a call, and the free text."""
    prompts = (make(vocab, tools, request) for make in (catalogue.prompt, catalogue.call_prompt))
    longest = max(len(vocab.tokenize(tool.name)) for tool in tools)
    return max(len(_tokens(vocab, prompt)) for prompt in prompts) + longest + FREE_TOKENS


def _open(path: Path | None, request: str, count: int, seed: int, n_threads: int | None) -> OpenedModel:
    """The model with a context for the list, or the largest of the usual sizes that it allows."""
    needed = _tokens_needed(open_vocab(path), catalogue.make_tools(count, seed), request)
    for size in _sizes(needed):
        # An error says that it is more than the model was trained on.
        with suppress(tokentrie.errors.OptionError):
            return open_model(path, size, n_threads)
    return open_model(path, None, n_threads)


def _sizes(needed: int) -> Iterator[int]:
    """Yields the size needed, then the powers of two below it that are more than the default."""
    while needed > DEFAULT_N_CTX:
        yield needed
        needed = 1 << (needed - 1).bit_length() - 1


def _fitting(model: tokentrie.Model, request: str, count: int, seed: int) -> int:
    """Returns the number of tools that fit into the context; at least the small list, even if it is too long."""
    least = len(catalogue.TOOLS)

    def tokens_for(count: int) -> int:
        return _tokens_needed(model.vocab, catalogue.make_tools(count, seed), request)

    if tokens_for(count) <= model.n_ctx:
        return count
    return max(least, least - 1 + bisect_right(range(least, count), model.n_ctx, key=tokens_for))


def _walk(model: tokentrie.Model, prompt: str, trie: tokentrie.Trie, watch: Watch) -> Walk:
    """Lets the model choose by a greedy walk."""
    tokens = _tokens(model.vocab, prompt)
    steps: list[tokentrie.results.Step] = []

    def on_step(step: tokentrie.results.Step) -> None:
        steps.append(step)
        watch(step)

    longest = max(len(leaf.tokens) for leaf in trie)
    # Where a name begins another one, the model must say whether it ends there.
    prefixes = any(len(trie.allowed(leaf.tokens)) for leaf in trie)
    ends = model.vocab.eog if prefixes else None
    generated = model.generate(tokens, trie, max_tokens=longest + 1, end_tokens=ends, on_step=on_step)
    return Walk(trie, len(tokens), steps, generated)


def _choose(model: tokentrie.Model, tools: list[Tool], request: str, watch: Watch) -> Walk:
    trie = tokentrie.Trie.from_strings(model.vocab, [tool.name for tool in tools])
    return _walk(model, catalogue.prompt(model.vocab, tools, request), trie, watch)


def _call(model: tokentrie.Model, tools: list[Tool], request: str) -> Call:
    """Writes one call twice: filled into a form, and without a constraint."""
    slots = tokentrie.Slot("name", [tool.name for tool in tools]), tokentrie.Slot("time", catalogue.times())
    form = tokentrie.Form(OPENING, slots[0], ARGUMENT, slots[1], CLOSING)
    prompt = _tokens(model.vocab, catalogue.call_prompt(model.vocab, tools, request) + TAG)
    # Sets of the slots are made once and kept.
    model.generate(prompt, form)
    model.clear()
    filled = model.generate(prompt, form)
    model.clear()
    return Call(filled, model.generate(prompt, None, max_tokens=FREE_TOKENS))


def _names(model: tokentrie.Model, count: int, seed: int, screen: Screen) -> Names:
    names = catalogue.names(count, seed)
    wanted = names[0]
    screen.build(count)
    started = time.perf_counter()
    trie = tokentrie.Trie.from_strings(model.vocab, names)
    seconds = time.perf_counter() - started
    screen.show_build(trie, seconds, wanted)
    walk = _walk(model, catalogue.repeat_prompt(model.vocab, wanted), trie, screen.step(model.vocab, trie))
    return Names(wanted, trie, seconds, walk)


def _probabilities(choice: tokentrie.Choice, trie: tokentrie.Trie) -> dict[str, Any]:
    names = [leaf.name for leaf in trie]
    shares = {str(names[leaf]): choice[leaf] for leaf in choice.ranking}
    return {"most_probable": choice.name, "probabilities": shares, "mass": choice.mass}


def _to_json(out: tokentrie.Generated) -> dict[str, Any]:
    return {"text": out.text, "tokens": len(out.tokens), "finish": out.finish, "stats": out.stats.to_dict()}


def _walk_document(walk: Walk, vocab: tokentrie.Vocab) -> dict[str, Any]:
    return {
        "trie": {"leaves": len(walk.trie), "nodes": walk.trie.nodes, "bytes": walk.trie.nbytes},
        "prompt_tokens": walk.prompt_tokens,
        "steps": [_step_document(step, vocab) for step in walk.steps],
        "chosen": walk.value_name,
        "tokens": walk.generated.tokens,
        "finish": walk.generated.finish,
        "stats": walk.generated.stats.to_dict(),
    }


def _step_document(step: tokentrie.results.Step, vocab: tokentrie.Vocab) -> dict[str, Any]:
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
