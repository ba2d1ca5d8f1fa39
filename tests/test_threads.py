"""Objects shared between threads: turns are taken, nothing crashes or hangs, answers stay right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from models import TINY
from support import payload
from tokentrie import Model, Sampler, Session, TokenTrieError, Trie, Vocab

THREADS = 8


@pytest.fixture(autouse=True)
def fast_switching() -> Iterator[None]:
    """Python changes threads a thousand times as often as usual."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def hammer(work: Callable[[int], None]) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, number) for number in range(THREADS)]:
            done.result(timeout=120)


def test_one_sampler(actions: str, row: np.ndarray) -> None:
    sampler = Sampler(10, actions, mode="sampled", seed=1)
    legal = {2, 5, 6, 7, 8}

    def work(number: int) -> None:
        mine = row.copy()
        for turn in range(500):
            try:
                sampler.advance(mine)
                sampler.rollback(turn % 3)
                sampler.accept([5, 6])
            except TokenTrieError:
                sampler.reset()
            clone = sampler.clone()
            mine[:] = row
            clone.apply(mine)
            alive = set(np.flatnonzero(mine > -np.inf).tolist())
            assert alive <= legal or clone.state == "complete"
            assert clone.state in {"active", "complete"}
            _ = sampler.leaf, sampler.allowed(), repr(sampler)

    hammer(work)


def test_one_row(actions: str) -> None:
    """All threads write one row: each whole, one after the other."""
    rows = np.zeros((4, 10), np.float32)
    sampler = Sampler(10, actions)

    def work(number: int) -> None:
        for _ in range(500):
            sampler.apply(rows)
            sampler.apply(rows[number % 4])

    hammer(work)
    assert (np.flatnonzero(rows[0] > -np.inf) == [2, 5]).all()


def test_one_session() -> None:
    session = Session(4)
    texts = [json.dumps(payload({f"N{index}": [index, 1]})) for index in range(10)]

    def work(number: int) -> None:
        for turn in range(300):
            index = (number + turn) % 10
            assert session.sampler(10, texts[index]).allowed().tolist() == [index]

    hammer(work)
    info = session.cache_info()
    assert info.hits + info.content_hits + info.misses == THREADS * 300
    assert info.size == 4


def test_one_trie_and_one_vocabulary() -> None:
    trie = Trie.from_sequences([[token, 1] for token in range(10)])
    leaves = iter(trie)
    vocab = Vocab.from_tokens([bytes([token]) for token in range(10)])
    seen: list[int] = []

    def work(number: int) -> None:
        seen.extend(leaf.index for leaf in leaves)
        for _ in range(200):
            assert trie.find([number, 1]) == number
            assert vocab.detokenize_bytes([number]) == bytes([number])
            assert len(vocab.fingerprint) == 64

    hammer(work)
    assert sorted(seen) == list(range(10)), "an iterator shared by threads gives each leaf once"


def test_one_model(tiny_path: Path) -> None:
    model = Model(n_ctx=256, n_threads=1)
    names = ["REPLY", "STOP"]
    expected = model.generate("Next: ", names).text

    def work(number: int) -> None:
        for _ in range(3):
            assert model.generate("Next: ", names, on_step=lambda step: None).text == expected
            assert model.logits([number + 5]).shape == (len(model.vocab),)

    hammer(work)


def test_several_models(tiny_path: Path) -> None:
    expected = Model(n_ctx=256, n_threads=1).generate("Next: ", ["REPLY", "STOP"]).text

    def work(number: int) -> None:
        model = Model(n_ctx=256, n_threads=1)
        for _ in range(3):
            assert model.generate("Next: ", ["REPLY", "STOP"]).text == expected

    hammer(work)


FORKED = """
import os, signal, sys
from tokentrie import Trie, Vocab

vocab = Vocab.from_gguf(sys.argv[1])
values = [f"Item {number} of {number * 7919 % 900}" for number in range(2000)]
expected = Trie.from_strings(vocab, values)
child = os.fork()
signal.alarm(30)
if child == 0:
    os._exit(0 if Trie.from_strings(vocab, values) == expected else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.model
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_tokenizes() -> None:
    """It has none of the threads with which its parent tokenized."""
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(TINY)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
