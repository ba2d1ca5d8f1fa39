"""The ways to hold a model to a set. All of them take the best token, from the same prompt on the same model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import tokentrie
from tokentrie.bench.grammars import GrammarError, gbnf, lark
from tokentrie.bench.sets import ValueSet

GRAMMAR = "strict-guided"
TRIE = "strict-trie-ffi"
NO_SKIP = "strict-trie-ffi, no skip"
FREE = "unconstrained"
LLGUIDANCE = "llguidance"

ROWS = {
    "strict-guided": [GRAMMAR],
    "strict-trie-ffi": [TRIE, NO_SKIP, GRAMMAR],
    "unconstrained": [FREE],
    "llguidance": [LLGUIDANCE, GRAMMAR],
    "all": [TRIE, NO_SKIP, FREE, GRAMMAR, LLGUIDANCE],
}
"""The rows of a mode. What a grammar is the yardstick of brings it along."""

WHAT = {
    TRIE: "Model.generate with the set's trie; forced tokens are decoded together with what follows them",
    NO_SKIP: "the same with skip_ahead=False: the trie sits in llama.cpp's chain, one forward pass a token",
    FREE: "Model.generate without a set, for as many tokens as strict-trie-ffi gave for the prompt",
    GRAMMAR: "llama.cpp's own grammar sampler (GBNF) over the same values, any tokenisation of them in tokens",
    LLGUIDANCE: "the llguidance sampler over the same values as a Lark grammar, any tokenisation of them in tokens",
}
"""What each row ran, for the report."""


@dataclass(frozen=True)
class Prompt:
    """A prompt as it was written, or made from the model's chat template, and as the model reads it."""

    text: str
    tokens: list[int]


@dataclass(frozen=True)
class Engine:
    """One mode on one set: `run` generates after the prompt of this number."""

    mode: str
    run: Callable[[int], tokentrie.Generated]


class CannotRunError(Exception):
    """Why a mode cannot be run on a set, which is no fault."""


def engine(
    mode: str, model: tokentrie.Model, values: ValueSet, prompts: Sequence[Prompt], lengths: Sequence[int]
) -> Engine:
    """The engine of a mode.

    Args:
        lengths: for each prompt the tokens that the trie gave.

    Raises:
        CannotRunError: the mode and the set do not go together.
    """
    tokens = [prompt.tokens for prompt in prompts]
    if mode == FREE:
        return Engine(mode, lambda number: model.generate(tokens[number], None, max_tokens=lengths[number]))
    if mode in (TRIE, NO_SKIP):
        skip = mode == TRIE
        if not skip and values.trie is None:
            raise CannotRunError("a form always skips ahead")
        held, longest = values.constraint, values.max_tokens
        return Engine(mode, lambda number: model.generate(tokens[number], held, max_tokens=longest, skip_ahead=skip))
    if values.unspeakable:
        raise CannotRunError(values.unspeakable)
    dialect: Literal["gbnf", "llguidance"] = "gbnf" if mode == GRAMMAR else "llguidance"
    try:
        grammar = (gbnf if mode == GRAMMAR else lark)(values.parts)
    except GrammarError as error:
        raise CannotRunError(str(error)) from error

    def run(number: int) -> tokentrie.Generated:
        try:
            # One more, which ends the output.
            return model._generate_with_grammar(tokens[number], dialect, grammar, values.max_bytes + 1)
        except tokentrie.OptionError as error:
            if mode == LLGUIDANCE:
                raise CannotRunError(str(error)) from error
            raise

    return Engine(mode, run)
