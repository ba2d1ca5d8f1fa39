"""What it costs to make a set of titles: `./dev bench`; needs TOKENTRIE_VOCAB_DIR.

Run by itself it prints one line a vocabulary: `python benches/bench_strings.py [times]`.
"""

from __future__ import annotations

import os
import random
import sys
import time
from functools import cache
from itertools import accumulate
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from tokentrie import Trie, Vocab

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


@cache
def vocabulary(path: Path) -> Vocab:
    """Loaded once, and what its first call makes is made."""
    vocab = Vocab.from_gguf(path)
    Trie.from_strings(vocab, ["warm"])
    return vocab


def check(vocab: Vocab, trie: Trie) -> None:
    """Every hundredth leaf is what the tokenizer writes."""
    assert len(trie) == COUNT
    for leaf in (trie.leaf(index) for index in range(0, COUNT, 100)):
        assert leaf is not None
        assert leaf.tokens == vocab.tokenize(f"{leaf.name}\n")


@pytest.mark.skipif(not PATHS, reason="TOKENTRIE_VOCAB_DIR names no folder with GGUF files")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_titles(benchmark: BenchmarkFixture, path: Path) -> None:
    vocab, values = vocabulary(path), titles()
    check(vocab, benchmark.pedantic(Trie.from_strings, (vocab, values, "", "\n"), rounds=5))


def main() -> None:
    """Prints the least and the middle of some runs."""
    for path in PATHS:
        vocab, values, seconds = vocabulary(path), titles(), []
        for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
            begin = time.perf_counter()
            trie = Trie.from_strings(vocab, values, "", "\n")
            seconds.append(time.perf_counter() - begin)
        check(vocab, trie)
        print(f"{path.stem}: {min(seconds):.3f} s, {sorted(seconds)[len(seconds) // 2]:.3f} s", flush=True)


if __name__ == "__main__":
    main()
