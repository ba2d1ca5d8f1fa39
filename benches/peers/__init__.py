"""Makers of sets of rows or of titles, so that each is asked for the same answer, and where a peer may be missing.

Optional: `.venv/bin/pip install marisa-trie llguidance tokenizers`; TOKENTRIE_STATIC names a checkout of
github.com/youtube/static-constraint-decoding.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokentrie import Trie, Vocab

from peers import hf_tokenizer

Table = npt.NDArray[np.int32]
WIDTHS = (256, 256, 256, 256)
"""Ids of each place of a row, which come after those of the place before."""


class MissingError(Exception):
    """A peer that is not here, and what would bring it."""


def package(name: str) -> Any:
    """Imports an optional package."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingError(f"{name} is not installed") from error


def table(rows: int, widths: tuple[int, ...] = WIDTHS) -> Table:
    """Rows of ids as of a catalogue of items: each place has ids of its own."""
    firsts = np.cumsum([0, *widths[:-1]])
    return (np.random.default_rng(4).integers(0, widths, (rows, len(widths))) + firsts).astype(np.int32)


def packed(table: Table) -> npt.NDArray[np.uint64]:
    """Four ids below 65,536 as one number, in the same order."""
    wide = table.astype(np.uint64)
    return wide[:, 0] << 48 | wide[:, 1] << 32 | wide[:, 2] << 16 | wide[:, 3]


def keys(table: Table) -> list[bytes]:
    """Each row as sixteen bytes, in the same order."""
    return np.ascontiguousarray(table.astype(">u4")).view("V16").ravel().tolist()


def marisa(table: Table) -> Any:
    """A marisa-trie of the rows."""
    return package("marisa_trie").BinaryTrie(keys(table))


@cache
def static_builder() -> Callable[..., Any]:
    """STATIC's own builder, on the CPU."""
    if not (folder := os.environ.get("TOKENTRIE_STATIC")):
        raise MissingError("TOKENTRIE_STATIC names no checkout of youtube/static-constraint-decoding")
    sys.path.append(folder)
    return package("static_decoding.csr_utils").build_static_index


def static(table: Table) -> Any:
    """STATIC's arrays, two dense layers as it recommends. It takes sorted rows, so sorting them is part of it."""
    build = static_builder()
    return build(table[np.lexsort(table.T[::-1])], vocab_size=int(table.max()) + 1, d=2)


ROWS: dict[str, Callable[[Table], Any]] = {
    "tokentrie": Trie.from_sequences,
    "one sort of u64": lambda table: np.sort(packed(table)),
    "numpy lexsort": lambda table: np.lexsort(table.T[::-1]),
    "numpy unique rows": lambda table: np.unique(table.view([("", np.int32)] * 4)),
    "numpy unique packed": lambda table: np.unique(packed(table)),
    "marisa-trie": marisa,
    "STATIC": static,
}
"""Sets of rows of four, sorted at least. The fst crate is in the Rust benches."""


def _static_leaves(made: Any) -> npt.NDArray[np.uint64]:
    """Walks all of STATIC's arrays, one place of the rows after the other."""
    edges, begins, _, _, _, dense_states = made
    first, second = np.nonzero(dense_states)
    prefixes = first.astype(np.uint64) << np.uint64(16) | second.astype(np.uint64)
    states = dense_states[first, second]
    for _ in range(2):
        counts = begins[states + 1] - begins[states]
        nth = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        below = edges[np.repeat(begins[states], counts) + nth]
        prefixes = np.repeat(prefixes, counts) << np.uint64(16) | below[:, 0].astype(np.uint64)
        states = below[:, 1]
    return np.sort(prefixes)


LEAVES: dict[str, Callable[[Any, Table], npt.NDArray[np.uint64]]] = {
    "tokentrie": lambda made, _: packed(made.to_numpy(table=True)),
    "one sort of u64": lambda made, _: np.unique(made),
    "numpy lexsort": lambda made, table: np.unique(packed(table)[made]),
    "numpy unique rows": lambda made, _: packed(made.view(np.int32).reshape(-1, 4)),
    "numpy unique packed": lambda made, _: made,
    "marisa-trie": lambda made, _: np.sort(packed(np.frombuffer(b"".join(made.keys()), ">u4").reshape(-1, 4))),
    "STATIC": lambda made, _: _static_leaves(made),
}
"""Rows that each of them holds, as sorted packed rows."""


@cache
def vocabulary(path: Path) -> Vocab:
    """Loaded once, and what its first call makes is made."""
    vocab = Vocab.from_gguf(path)
    Trie.from_strings(vocab, ["warm"])
    return vocab


def _tokentrie(path: Path) -> Callable[[list[str]], Trie]:
    vocab = vocabulary(path)
    return lambda values: Trie.from_strings(vocab, values, "", "\n")


def _one_by_one(path: Path) -> Callable[[list[str]], Trie]:
    vocab = vocabulary(path)
    return lambda values: Trie.from_sequences([vocab.tokenize(f"{value}\n") for value in values], values)


def _hugging_face(path: Path) -> Callable[[list[str]], Trie]:
    package("tokenizers")
    try:
        encode = hf_tokenizer.load(path).encode_batch_fast
    except NotImplementedError as error:
        raise MissingError(str(error)) from error

    def make(values: list[str]) -> Trie:
        encoded = encode([f"{value}\n" for value in values], add_special_tokens=False)
        return Trie.from_sequences([one.ids for one in encoded], values)

    return make


def _llguidance(path: Path) -> Callable[[list[str]], Any]:
    llguidance, vocab = package("llguidance"), vocabulary(path)

    class Tokenizer:
        def __init__(self) -> None:
            self.eos_token_id, self.bos_token_id = vocab.eog[0], None
            self.tokens = [vocab[token] for token in range(len(vocab))]
            self.special_token_ids = sorted({*vocab.eog, *vocab.control})

        def __call__(self, text: bytes) -> list[int]:
            return vocab.tokenize(text.decode("utf-8", "replace"))

    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()))
    # Its own limits refuse such a set.
    names = ("initial_lexer_fuel", "step_lexer_fuel", "max_lexer_states", "max_items_in_row", "step_max_items")
    limits = llguidance.LLParserLimits(**dict.fromkeys((*names, "max_grammar_size"), 2**31 - 1))

    # Some tokenizers put a space before a text.
    own = b"".join(vocab[token] for token in vocab.tokenize("a")).decode().removesuffix("a")

    def make(values: list[str]) -> Any:
        # One terminal of all values: the fastest of the ways to say it.
        escaped = (value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
        literals = " | ".join(f'"{own}{value}\\n"' for value in escaped)
        grammar = llguidance.LLMatcher.grammar_from_lark(f"start: T\nT: {literals}")
        matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0, limits=limits)
        if matcher.is_error():
            raise RuntimeError(matcher.get_error())
        return matcher

    return make


TITLES: dict[str, Callable[[Path], Callable[[list[str]], Any]]] = {
    "tokentrie": _tokentrie,
    "llama.cpp one by one": _one_by_one,
    "HF tokenizers batch": _hugging_face,
    "llguidance": _llguidance,
}
"""Sets of lines of text for the vocabulary of a GGUF. All but llguidance make a trie of the tokens."""


def check_titles(who: str, made: Any, path: Path, values: list[str]) -> None:
    """All make the same trie. llguidance has none, so it is walked, along a title and off it."""
    vocab = vocabulary(path)
    if who != "llguidance":
        assert made == _tokentrie(path)(values)
        for leaf in (made.leaf(index) for index in range(0, len(made), 100)):
            assert leaf.tokens == vocab.tokenize(f"{leaf.name}\n")
        return
    for value in values[:: len(values) // 20]:
        made.reset()
        title, other = vocab.tokenize(f"{value}\n"), vocab.tokenize(f"{value}?\n")
        assert made.validate_tokens(title) == len(title)
        assert made.validate_tokens(other) < len(other)
    made.reset()
