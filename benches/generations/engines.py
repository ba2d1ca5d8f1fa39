"""The ways to hold a model to a set. All of them take the best token, from the same prompt on the same model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import tokentrie

from benches.generations.sets import Parts, Prompt, ValueSet

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
"""Description of each row for the report."""


@dataclass(frozen=True)
class Engine:
    """One mode on one set: `run` generates after the prompt of this number."""

    mode: str
    run: Callable[[int], tokentrie.Generated]


class CannotRunError(Exception):
    """Why a mode cannot be run on a set, which is not a fault."""


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
        except tokentrie.errors.OptionError as error:
            if mode == LLGUIDANCE:
                raise CannotRunError(str(error)) from error
            raise

    return Engine(mode, run)


class GrammarError(ValueError):
    """A text that the grammar cannot spell."""


def gbnf(parts: Parts) -> str:
    """A grammar whose root rule is `root`.

    Raises:
        GrammarError: a text holds the character NUL, which ends a text in llama.cpp.
    """
    return _rule("root ::=", parts, gbnf_literal)


def lark(parts: Parts) -> str:
    """A grammar whose root rule is `start`."""
    return _rule("start:", parts, lark_literal)


def gbnf_literal(text: str) -> str:
    """A text in GBNF: printable ASCII stands for itself, all else is escaped by its code point."""
    if "\0" in text:
        raise GrammarError(f"GBNF cannot spell the character NUL in {text!r}")
    return f'"{"".join(map(_gbnf_character, text))}"'


def _gbnf_character(character: str) -> str:
    code = ord(character)
    if character in '"\\':
        return f"\\{character}"
    if 0x20 <= code < 0x7F:
        return character
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def lark_literal(text: str) -> str:
    """A text in llguidance's Lark, whose strings are those of JSON."""
    return json.dumps(text, ensure_ascii=False)


def _rule(head: str, parts: Parts, literal: Callable[[str], str]) -> str:
    """One rule that puts the parts in a row."""
    row = [literal(part) if isinstance(part, str) else " | ".join(map(literal, part)) for part in parts]
    if len(parts) > 1:
        row = [text if isinstance(part, str) else f"({text})" for text, part in zip(row, parts, strict=True)]
    return f"{head} {' '.join(row)}\n"
