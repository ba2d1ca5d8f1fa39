"""Masks of patterns and of JSON over a vocabulary of 152k tokens, beside llguidance, XGrammar and outlines-core.

`./dev bench`; needs TOKENTRIE_VOCAB_DIR. Every case compares the masks with ours before it is timed; how many tokens
differ is in `extra_info`. A peer takes part where it is installed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokentrie
from peers import MissingError
from peers.rules import ENGINES
from pytest_benchmark.fixture import BenchmarkFixture

FOLDER = os.environ.get("TOKENTRIE_VOCAB_DIR")
PATH = Path(FOLDER or ".") / "ggml-vocab-qwen2.gguf"
pytestmark = pytest.mark.skipif(not FOLDER or not PATH.is_file(), reason=f"TOKENTRIE_VOCAB_DIR has no {PATH.name}")

PATTERNS = {
    "date": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "e-mail": r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+",
    "ISO time": r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})",
    "IP": r"((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])",
    "identifier": r"[A-Za-z_][A-Za-z0-9_]{0,62}",
    "JSON string": r'"([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u[0-9a-fA-F]{4}))*"',
}
BEGUN = {"date": "20", "e-mail": "jo", "ISO time": "2024", "IP": "19", "identifier": "na", "JSON string": '"a'}
MOST_DIFFERENT = 4
"""Tokens in which the mask of a peer may differ: XGrammar's strings take two that are no UTF-8."""


@pytest.fixture(scope="module")
def vocab() -> tokentrie.Vocab:
    return tokentrie.Vocab.from_gguf(PATH)


@pytest.fixture(scope="module")
def engine(vocab: tokentrie.Vocab) -> Any:
    made: dict[str, Any] = {}

    def engine(who: str) -> Any:
        if who not in made:
            made[who] = ENGINES[who](vocab)
        try:
            made[who].begin(made[who].regex("a"))
        except MissingError as error:
            pytest.skip(f"{error}: its row is missing")
        return made[who]

    return engine


def differs(engine: Any, state: Any, ours: Any, own: Any) -> int:
    """In how many tokens two masks differ."""
    engine.fill(state)
    ours.fill(own)
    return int((engine.bits() != ours.bits()).sum())


@pytest.mark.benchmark(group="a pattern and its first mask")
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("who", ENGINES)
def test_compile(benchmark: BenchmarkFixture, engine: Any, quick: bool, who: str, pattern: str) -> None:
    """The pattern is compiled anew in every round; the vocabulary is known to the engine."""
    theirs, ours, text = engine(who), engine("tokentrie"), PATTERNS[pattern]
    different = differs(theirs, theirs.begin(theirs.regex(text)), ours, ours.begin(ours.regex(text)))
    assert different <= MOST_DIFFERENT
    benchmark.extra_info["tokens that differ"] = different

    def first() -> None:
        theirs.fill(theirs.begin(theirs.regex(text)))

    benchmark.pedantic(first, rounds=1 if quick else (20 if who in ("tokentrie", "llguidance") else 3))


@pytest.mark.benchmark(group="a mask that was asked for before")
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("who", ENGINES)
def test_mask(benchmark: BenchmarkFixture, engine: Any, who: str, pattern: str, vocab: tokentrie.Vocab) -> None:
    """In the middle of a text: written into the caller's words."""
    theirs, ours, text = engine(who), engine("tokentrie"), PATTERNS[pattern]
    state, own = theirs.begin(theirs.regex(text)), ours.begin(ours.regex(text))
    for character in BEGUN[pattern]:
        token = vocab.tokenize(character)[0]
        theirs.accept(state, token)
        ours.accept(own, token)
    different = differs(theirs, state, ours, own)
    assert different <= MOST_DIFFERENT
    benchmark.extra_info["tokens that differ"] = different
    benchmark(theirs.fill, state)


def documents(count: int) -> list[str]:
    """JSON as programs write it, always the same."""
    draws = np.random.default_rng(3)

    def person(number: int) -> dict[str, Any]:
        tags = [f"tag {tag}" for tag in range(int(draws.integers(5)))]
        score = round(float(draws.normal()) * 50, 3)
        return {"id": number, "name": f'J\u00f6rg "{number}"', "score": score, "tags": tags, "ok": number % 2 == 0}

    return [
        # llguidance takes no escapes such as \u00f6.
        json.dumps([person(number) for number in range(row % 6)], ensure_ascii=False, indent=[None, 2][row % 2])
        for row in range(count)
    ]


@pytest.mark.benchmark(group="JSON documents, token by token: mask and step")
@pytest.mark.parametrize("who", ["tokentrie", "llguidance", "xgrammar"])
def test_json(benchmark: BenchmarkFixture, engine: Any, quick: bool, who: str, vocab: tokentrie.Vocab) -> None:
    """Each token is looked for in its mask first. Masks are not compared: the grammars differ in blanks."""
    theirs = engine(who)
    grammar, tokens = theirs.json(), [vocab.tokenize(text) for text in documents(20 if quick else 200)]
    for document in tokens[:20]:
        state = theirs.begin(grammar)
        for token in document:
            theirs.fill(state)
            assert theirs.words[token // 32] >> (token % 32) & 1, f"{who} refuses {vocab[token]!r}"
            theirs.accept(state, token)

    def replay() -> None:
        for document in tokens:
            state = theirs.begin(grammar)
            for token in document:
                theirs.fill(state)
                theirs.accept(state, token)

    benchmark.extra_info["tokens"] = sum(map(len, tokens))
    benchmark.pedantic(replay, rounds=1 if quick else 3)
