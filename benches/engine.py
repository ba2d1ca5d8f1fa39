"""The engine's own time, and the gaps between tokens of many streams: `python -m benches.engine`.

Three figures of one model with many callers, each over the tiny model or a GGUF file:

- the engine's own time of a pass: all that is not llama.cpp's decode, as `Model.engine` counts it;
- requests a second of 32 callers beside the same requests one after the other, with equal answers;
- the time between two tokens of a stream where many run at once: median and 99th percentile.
"""

from __future__ import annotations

import argparse
import random
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import tokentrie

from benches.bench_requests import NAMES, SYSTEM, VERBS


def requests(count: int) -> list[str]:
    """Returns prompts that begin alike."""
    verbs = random.Random(1).choices(VERBS, k=count)
    return [f"{SYSTEM}Request {number}: please {verb} it\n" for number, verb in enumerate(verbs)]


def one_of_many(path: str | None, callers: int, slots: int, count: int, threads: int) -> None:
    """Prints what many callers get who each pick one of 32 tools, beside one caller."""
    prompts = requests(count)

    def timed(model: tokentrie.Model, callers: int) -> tuple[list[str], float, float]:
        with ThreadPoolExecutor(callers) as pool:
            wall, cpu = time.perf_counter(), time.process_time()
            values = list(pool.map(lambda prompt: model.generate(prompt, NAMES).value, prompts))
            return values, time.perf_counter() - wall, time.process_time() - cpu

    with tokentrie.Model(path, n_ctx=2048, n_threads=threads) as model:
        timed(model, 1)
        expected, alone, _ = timed(model, 1)
    with tokentrie.Model(path, n_ctx=2048, n_threads=threads, slots=slots) as model:
        timed(model, callers)
        before = model.engine
        values, together, cpu = timed(model, callers)
        after = model.engine
        assert before is not None
        assert after is not None
    changed = sum(one != other for one, other in zip(expected, values, strict=True))
    passes = after.passes - before.passes
    own = 1e6 * (after.own_seconds - before.own_seconds) / passes
    decoding = 1e6 * (after.decode_seconds - before.decode_seconds) / passes
    print(
        f"{callers} callers, {slots} slots: {count / together:.0f} requests a second, {alone / together:.2f} times one"
        f" caller ({changed} of {count} answers differ); {passes} passes of {decoding:.0f} µs, own {own:.0f} µs,"
        f" processor time of all {1e6 * cpu / passes:.0f} µs"
    )


def streams(path: str | None, count: int, slots: int, tokens: int, threads: int) -> None:
    """Prints the gaps between the tokens of many streams that run at once."""
    gaps: list[float] = []
    lock = threading.Lock()

    def stream(number: int) -> None:
        own: list[float] = []
        last: float | None = None
        for _ in model.stream(f"Story {number}: ", max_tokens=tokens):
            now = time.perf_counter()
            if last is not None:
                own.append(now - last)
            last = now
        with lock:
            gaps.extend(own)

    with tokentrie.Model(path, n_ctx=8192, n_threads=threads, slots=slots) as model:
        callers = [threading.Thread(target=stream, args=(number,)) for number in range(count)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        done = model.engine
        assert done is not None
    p50, p99 = statistics.median(gaps), statistics.quantiles(gaps, n=100)[98]
    print(
        f"{count} streams, {slots} slots: {len(gaps)} gaps, median {1e3 * p50:.2f} ms, p99 {1e3 * p99:.2f} ms ="
        f" {p99 / p50:.1f} times, largest {1e3 * max(gaps):.1f} ms; own {1e6 * done.own_seconds / done.passes:.0f} µs a"
        " pass"
    )


def main() -> None:
    """Reads the command line and prints all figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", help="GGUF file; without it the tiny model")
    parser.add_argument("--requests", type=int, default=320)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    for callers, slots in ((32, 8), (32, 32)):
        one_of_many(args.model, callers, slots, args.requests, args.threads)
    for slots in (32, 128):
        streams(args.model, args.streams, slots, args.tokens, args.threads)


if __name__ == "__main__":
    main()
