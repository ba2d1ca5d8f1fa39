"""Times the same calls in two installed versions of the package, in turns, and prints their ratios.

    python benches/old_and_new.py OLD_VENV/bin/python NEW_VENV/bin/python --rounds 6

Each round is a process of its own for each version, the least time counts: that of a quiet moment. Only calls that both
versions have take part.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import timeit
from collections.abc import Callable, Iterator

Case = Callable[[], object]
N_VOCAB = 151_936


def steps() -> Iterator[tuple[str, Case]]:
    """Calls of a loop of one's own."""
    import numpy as np
    import tokentrie

    row = np.random.default_rng(7).normal(size=N_VOCAB).astype(np.float32)
    ids = np.sort(np.random.default_rng(8).choice(N_VOCAB, 8, replace=False)).astype(np.int32)
    trie = tokentrie.Trie.from_sequences([[int(i), 0] for i in ids])
    sampler = tokentrie.Sampler(N_VOCAB, trie)
    assert sampler.sample(row) == int(ids[row[ids].argmax()])
    yield "sample, 8 of 152k legal", lambda: sampler.sample(row)
    first = int(ids[0])

    def there_and_back() -> None:
        sampler.accept(first)
        sampler.rollback(1)

    yield "accept and rollback", there_and_back
    yield "apply, 8 of 152k legal", lambda: sampler.apply(row)
    yield "Sampler(n, trie)", lambda: tokentrie.Sampler(N_VOCAB, trie)
    yield (
        "Sampler(n, trie, mode=, temperature=, seed=)",
        lambda: tokentrie.Sampler(N_VOCAB, trie, mode="sampled", temperature=0.7, seed=1),
    )
    names = [{"name": f"tool_{i}", "tokens": [i, i + 1, 2]} for i in range(30)]
    payload = json.dumps({"descriptors": [{"path": "action", "leaves": names}]})
    cache = tokentrie.sets.TrieCache()
    assert cache.sampler(N_VOCAB, payload).allowed().tolist() == list(range(30))
    yield "30 names from a TrieCache", lambda: cache.sampler(N_VOCAB, payload)
    yield "30 names from the thread's cache", lambda: tokentrie.Sampler(N_VOCAB, payload)
    yield "30 names, parsed", lambda: tokentrie.sets.TrieCache(1).sampler(N_VOCAB, payload)

    rows = np.random.default_rng(9).normal(size=(64, N_VOCAB)).astype(np.float32)
    batch = tokentrie.Batch(trie, 64, vocab=N_VOCAB)
    yield "Batch.select, 64 rows", lambda: batch.select(rows)
    for kind in (np.int32, np.uint32):
        values = np.random.default_rng(3).integers(0, N_VOCAB, size=(1_000_000, 4)).astype(kind)
        yield (
            f"from_sequences, a million of 4, {kind.__name__}",
            lambda values=values: tokentrie.Trie.from_sequences(values),
        )


def words() -> Iterator[tuple[str, Case]]:
    """Yields the cases that write text: rules over the bytes of tokens, and whole generations of the tiny model."""
    import tokentrie

    vocab = tokentrie.Vocab.from_tokens([bytes([byte]) for byte in range(256)] + [b"ab", b"123", b"<end>"], eog=[258])
    rule = tokentrie.Sampler(vocab, tokentrie.Regex("[a-z]{3,8}-[0-9]{2,5}"))
    for byte in b"abc":
        rule.accept(byte)
    yield "allowed, a regex", rule.allowed
    model = tokentrie.Model()
    tools = ["get_weather", "get_time", "search", "send_mail", "stop"]
    many = [f"label {i}" for i in range(30)]
    form = tokentrie.Form(
        '{"tool": "', tokentrie.Slot("tool", tools), '", "sure": ', tokentrie.Slot("sure", ["yes", "no"]), "}"
    )
    chat = [{"role": "user", "content": "What is the weather in Paris?"}]
    weather = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": weather}}
    yield "tiny model: a tool", lambda: model.generate("The tool is ", tools)
    yield "tiny model: choose of 30", lambda: model.choose("The label is ", many)
    yield "tiny model: a form", lambda: model.generate("Say: ", form)
    yield "tiny model: a regex", lambda: model.generate("On ", tokentrie.Regex("20[0-9]{2}-[01][0-9]"))
    yield "tiny model: a chat with a tool", lambda: model.chat(chat, [tool], tool_choice="required")


def measured() -> dict[str, float]:
    """Seconds of each case, the least of several repeats."""
    seconds = {}
    for cases in (steps, words):
        for name, case in cases():
            case()
            timer = timeit.Timer(case)
            count, took = timer.autorange()
            count = max(1, int(count * 0.05 / took))
            seconds[name] = min(timer.repeat(7, count)) / count
    return seconds


def main() -> None:
    """One process measures; the other asks two of them in turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help="the older version's interpreter, and the newer's")
    parser.add_argument("--rounds", type=int, default=6)
    args = parser.parse_args()
    if not args.pythons:
        json.dump(measured(), sys.stdout)
        return
    if len(args.pythons) != 2:
        parser.error("give two interpreters, or none to measure this one")
    least: list[dict[str, float]] = [{}, {}]
    for _ in range(args.rounds):
        for times, python in zip(least, args.pythons, strict=True):
            said = subprocess.run([python, "-P", __file__], check=True, stdout=subprocess.PIPE, text=True)
            for name, seconds in json.loads(said.stdout).items():
                times[name] = min(times.get(name, seconds), seconds)
    print("| | old | new | ratio |\n| --- | ---: | ---: | ---: |")
    for name, old in least[0].items():
        new = least[1][name]
        print(f"| {name} | {old * 1e6:.3g} us | {new * 1e6:.3g} us | {new / old:.2f} |")


if __name__ == "__main__":
    main()
