"""Cost of making a set of titles, beside other tokenizers: `./dev bench`; needs TOKENTRIE_VOCAB_DIR."""

from __future__ import annotations

import os
import random
from functools import cache
from itertools import accumulate
from pathlib import Path

import peers
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

FOLDER = os.environ.get("TOKENTRIE_VOCAB_DIR")
PATHS = sorted(Path(FOLDER).glob("*.gguf")) if FOLDER else []
COUNT, LEXICON = 100_000, 30_000


@cache
def titles() -> list[str]:
    """Different titles of two to six words. The nth word of 30,000 is as frequent as 1/n, as in real text."""
    chance, found = random.Random(7), dict[str, None]()
    syllables = [a + b + c for a in "bcdfghlmnprstv" for b in "aeiou" for c in ("", "n", "r", "st")]
    words = [
        "".join(chance.choices(syllables, k=chance.choices((1, 2, 3, 4), (2, 5, 4, 1))[0])) for _ in range(LEXICON)
    ]
    words[50::100] = [word.replace("a", "é") for word in words[50::100]]
    weights = list(accumulate(1 / rank for rank in range(1, LEXICON + 1)))
    while len(found) < COUNT:
        parts = chance.choices(words, cum_weights=weights, k=chance.randint(2, 6))
        title = " ".join(part if chance.random() < 0.3 else part.capitalize() for part in parts)
        found[title + (f" ({chance.randint(1900, 2026)})" if chance.random() < 0.2 else "")] = None
    return list(found)


@pytest.mark.skipif(not PATHS, reason="TOKENTRIE_VOCAB_DIR names no folder with GGUF files")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
@pytest.mark.parametrize("who", peers.TITLES)
def test_titles(benchmark: BenchmarkFixture, path: Path, who: str, quick: bool) -> None:
    """From a list of str to what constrains a model. All make the same tokens, or the same texts."""
    benchmark.group = f"titles, {path.stem}"
    values = titles()[: 1000 if quick else COUNT]
    try:
        make = peers.TITLES[who](path)
    except peers.MissingError as error:
        pytest.skip(f"{error}: its row is missing")
    peers.check_titles(who, make(values), path, values)
    benchmark.pedantic(make, (values,), rounds=1 if quick else 5)
