"""Objects shared between threads: turns are taken, nothing crashes or hangs, answers stay right."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from budget import cases
from models import TINY
from support import payload
from tokentrie import Model, Sampler, TokenTrieError, Trie, Vocab
from tokentrie.sets import TrieCache

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
    session = TrieCache(4)
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


@pytest.mark.model
def test_one_model(tiny_path: Path) -> None:
    model = Model(n_ctx=256, n_threads=1)
    names = ["REPLY", "STOP"]
    expected = model.generate("Next: ", names).text

    def work(number: int) -> None:
        for _ in range(3):
            assert model.generate("Next: ", names, on_step=lambda step: None).text == expected
            assert model.logits([number + 5]).shape == (len(model.vocab),)

    hammer(work)


@pytest.mark.model
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


BUSY = """
import os, signal, sys, threading, time
from tokentrie import Model, Trie
from tokentrie.errors import ModelError

model, other = Model(sys.argv[1], n_ctx=1600), Model(sys.argv[1], n_ctx=256)
expected = other.generate("Next: ", ["REPLY", "STOP"]).text
begun = threading.Event()
long = Trie.from_sequences([[7] * 1500])
work = lambda: model.generate("x", long, max_tokens=1500, skip_ahead=False, on_step=lambda step: begun.set())
threading.Thread(target=work, daemon=True).start()
begun.wait()
child = os.fork()
signal.alarm(60)
if child == 0:
    try:
        model.generate("x", ["a"])
    except ModelError as error:
        print(error)
    # Models that nobody was using, and new ones, work.
    for model in (other, Model(sys.argv[1], n_ctx=256)):
        assert model.generate("Next: ", ["REPLY", "STOP"]).text == expected
    sys.stdout.flush()
    os._exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
model.cancel()
os._exit(code)
"""


@pytest.mark.model
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_forked_while_a_model_is_used_says_so() -> None:
    """The thread that would end the call is not in the child."""
    command = [sys.executable, "-W", "ignore", "-c", BUSY, str(TINY)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("this process was forked while another thread was using the model")


SESSION = """
import json, os, signal, sys, threading, time
from tokentrie import TokenTrieError
from tokentrie.sets import TrieCache

leaves = [{"name": f"a leaf with the number {n}", "tokens": [n >> 10, n & 1023, 7]} for n in range(400_000)]
text = json.dumps({"descriptors": [{"path": "a", "leaves": leaves}]})
session, small = TrieCache(), '{"descriptors": [{"path": "a", "leaves": [{"name": "x", "tokens": [1]}]}]}'
reading = threading.Thread(target=session.sampler, args=(1024, text), daemon=True)
reading.start()
time.sleep(0.05)
child = os.fork()
signal.alarm(60)
if child == 0:
    try:
        session.sampler(1024, small)
    except TokenTrieError as error:
        print(error)
    sys.stdout.flush()
    os._exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
reading.join()
assert session.sampler(1024, small).allowed().tolist() == [1]
sys.exit(code)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_forked_while_a_session_reads_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SESSION], capture_output=True, text=True, check=False, timeout=90
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("this process was forked while another thread was using the cache")


DAEMONS = """
import sys, threading, time
from tokentrie import Model, Trie, Vocab

kind = sys.argv[2]
vocab = Vocab.from_gguf(sys.argv[1])
model = Model(sys.argv[1], n_ctx=256) if kind == "step" else None
texts = [f"Item {number} of the list" for number in range(3000)]


def forever(item):
    number = 0
    while True:
        number += 1
        yield item(number)


calls = {
    "sequences": lambda: Trie.from_sequences([[number % 100, number] for number in range(20_000)]),
    "stream": lambda: Trie.from_sequences(forever(lambda number: [number % 1000, number % 13]), memory=1 << 24),
    "strings": lambda: Trie.from_strings(vocab, texts),
    "every": lambda: Trie.from_strings(vocab, texts[:300], tokenization="all"),
    "texts": lambda: Trie.from_strings(vocab, forever(lambda number: f"Item {number}"), memory=1 << 24),
    "step": lambda: model.generate("x", max_tokens=100, on_step=lambda step: sum(range(1000))),
}


def work():
    while True:
        calls[kind]()


for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(float(sys.argv[3]))
sys.exit(7)
"""


@pytest.mark.model
@pytest.mark.parametrize("kind", ["sequences", "stream", "strings", "every", "texts", "step"])
def test_daemon_threads_at_the_end(kind: str) -> None:
    """The process ends with its exit code, wherever its threads are."""
    for turn in range(cases(30 if kind in ("stream", "strings") else 8)):
        command = [sys.executable, "-c", DAEMONS, str(TINY), kind, str(0.05 + turn * 0.011)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (7, "", ""), turn


LIMITED = """
import importlib.resources, json, os, resource, sys, warnings
import numpy, numpy.random
import tokentrie.results  # Whoever the process becomes may not read Python's own files.
from tokentrie import Model, Trie, Vocab

vocab, values = Vocab.from_gguf(sys.argv[1]), [f"Item {number}" for number in range(300)]
file = os.open(sys.argv[1], os.O_RDONLY)
if os.getuid() == 0:
    # The limit does not hold for root.
    os.setgid(65534)
    os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
import threading
try:
    threading.Thread(target=print).start()
    sys.exit(77)
except RuntimeError:
    pass
assert len(Trie.from_sequences([[number % 100, number] for number in range(100_000)])) == 100_000
assert len(Trie.from_strings(vocab, values)) == 300
assert len(Trie.from_strings(vocab, values, tokenization="all")) == 300
model = Model(f"/proc/self/fd/{file}", n_ctx=256, n_threads=2)
assert model.n_threads == 1
assert model.generate("Next: ", ["REPLY", "STOP"]).text in ("REPLY", "STOP")
assert model.choose("Next: ", ["REPLY", "STOP"]).name in ("REPLY", "STOP")
"""


@pytest.mark.model
@pytest.mark.skipif(sys.platform != "linux", reason="the limit of threads is set as on Linux")
def test_a_system_that_gives_no_threads() -> None:
    """Work is done on the thread there is."""
    command = [sys.executable, "-c", LIMITED, str(TINY)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode == 77:
        pytest.skip("this system gives threads beyond its limit")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_large_payload_lets_other_threads_run() -> None:
    leaves = [{"name": f"a leaf with the number {n}", "tokens": [n >> 10, n & 1023, 7]} for n in range(300_000)]
    text = json.dumps({"descriptors": [{"path": "a", "leaves": leaves}]})
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    try:
        for make in (lambda: Sampler(1024, text), lambda: TrieCache().sampler(1024, text)):
            ticks, over = [0], threading.Event()

            def tick(ticks: list[int] = ticks, over: threading.Event = over) -> None:
                while not over.wait(0.001):
                    ticks[0] += 1

            thread = threading.Thread(target=tick)
            thread.start()
            before = ticks[0]
            make()
            during = ticks[0] - before
            over.set()
            thread.join()
            # A thread that waits for the GIL gets one tick in, whatever the call takes.
            assert during > 5
    finally:
        sys.setswitchinterval(interval)


INTERRUPTED = """
import json, os, signal, threading, time
from tokentrie import Sampler

leaf = [{"name": "x", "tokens": [1]}]
text = json.dumps({"descriptors": [{"path": f"path/{number}", "leaves": leaf} for number in range(40_000)]})
after = []
threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        begun = time.monotonic()
        Sampler(10, text + " " * len(after))
        after.append(time.monotonic() - begun)
except KeyboardInterrupt:
    print(len(after))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or sys.platform == "win32", reason="signals as on Unix")
def test_ctrl_c_comes_through_after_a_large_payload() -> None:
    """The call that runs ends, which takes no longer than reading; no other one begins."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) <= 1
