#!/usr/bin/env python3
"""Figures of a server: `benches/serve/figures.py` starts `tokentrie serve` with the tiny model, or with
`--model PATH`. `--beside http://127.0.0.1:8080` asks a server with the same model the same in turns, such as

    llama-server -m python/tokentrie/models/tiny.gguf -c 8192 --parallel 8 --threads 2 --jinja

Every answer is checked, and picks of both are compared.

    picks        one of 30 tools by a grammar, after a beginning that all requests have: how many a second
    decisions    one client and many: how many a second, and what HTTP and JSON cost on top of the library
    streams      many at once: none lost, and the time between tokens
    idle         memory above that of the model in a process of its own, and processor time
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import itertools
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import tokentrie

STATE = "I was charged twice in May, and nobody answers my mails."
CHOICE = {"type": "choice", "name": "team", "instructions": "Which team?",
          "choices": [{"value": "billing"}, {"value": "shipping"}, {"value": "support"}]}  # fmt: skip
NAMES = ["billing", "shipping", "support"]
VERBS = [
    "open", "close", "show", "delete", "send", "read", "write", "move", "copy", "find", "sort", "list", "pay", "book",
    "call", "cancel", "start", "stop", "lock", "unlock", "share", "print", "scan", "play", "pause", "skip", "ring",
    "dim", "heat", "cool",
]  # fmt: skip
TOOLS = [f"tool_{verb}" for verb in VERBS]
BEGINNING = "You sort requests into tools: " + ", ".join(TOOLS) + ". "


class Client:
    """A connection that is kept."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=300)

    def post(self, path: str, body: Any) -> http.client.HTTPResponse:
        """The answer to a request; it must be good."""
        self._connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        reply = self._connection.getresponse()
        if reply.status != 200:
            raise SystemExit(f"{path}: {reply.status}: {reply.read()[:300]!r}")
        return reply


def grammar_of(names: list[str]) -> str:
    """One of some names, in llama.cpp's notation."""
    return "root ::= " + " | ".join(map(json.dumps, names))


def picked(client: Client, number: int) -> str:
    """The tool for a request, which both kinds of servers hold by the same grammar."""
    verb = VERBS[number * 7 % len(VERBS)]
    body = {
        "prompt": f"{BEGINNING}Request {number}: please {verb} it\n",
        "grammar": grammar_of(TOOLS),
        "temperature": 0,
        "max_tokens": 16,
    }
    text: str = json.loads(client.post("/v1/completions", body).read())["choices"][0]["text"]
    if text not in TOOLS:
        raise SystemExit(f"a wrong answer: {text!r}")
    return text


def pick(client: Client, numbers: Iterator[int] = itertools.count()) -> None:  # noqa: B008 - one count for all
    """The tool for the next request."""
    picked(client, next(numbers))


def decide(client: Client) -> None:
    """One decision among three."""
    said = json.loads(client.post("/v1/decisions", {"model": "any", "input": STATE, "questions": [CHOICE]}).read())
    (answer,) = said["answers"]
    if answer["choice"] not in NAMES or abs(sum(one["probability"] for one in answer["probabilities"]) - 1) > 1e-6:
        raise SystemExit(f"a wrong answer: {answer}")


def decide_by_grammar(client: Client) -> None:
    """Measures the alternative of other servers: the chosen word, without probabilities."""
    question = f"{STATE}\n\nWhich team?\n" + "\n".join(NAMES)
    said = json.loads(
        client.post(
            "/v1/chat/completions",
            {
                "messages": [{"role": "user", "content": question}],
                "grammar": grammar_of(NAMES),
                "temperature": 0,
                "max_tokens": 16,
            },
        ).read()
    )
    content = said["choices"][0]["message"]["content"]
    if content not in NAMES:
        raise SystemExit(f"a wrong answer: {content!r}")


def a_second(url: str, clients: int, work: Callable[[Client], None], seconds: float) -> float:
    """Returns the number of answers a second that many clients get."""

    def ask(_: int) -> int:
        client, done = Client(url), 0
        while time.perf_counter() < until:
            work(client)
            done += 1
        return done

    work(Client(url))
    until = time.perf_counter() + seconds
    with ThreadPoolExecutor(clients) as pool:
        return sum(pool.map(ask, range(clients))) / seconds


def streams(url: str, count: int, tokens: int) -> tuple[int, list[float]]:
    """Returns the number of complete streams, and the times between their tokens."""

    def read(number: int) -> list[float] | None:
        body = {"prompt": f"{number}: The sky is ", "max_tokens": tokens, "stream": True, "seed": number}
        at, last, finish = [], time.perf_counter(), None
        for line in Client(url).post("/v1/completions", body):
            if line.startswith(b"data: {"):
                now, (choice,) = time.perf_counter(), json.loads(line[6:])["choices"]
                finish = choice["finish_reason"] or finish
                at.append(now - last)
                last = now
        # The first is the prompt, and waiting for a slot.
        return at[1:] if finish else None

    with ThreadPoolExecutor(count) as pool:
        told = [*pool.map(read, range(count))]
    whole = [one for one in told if one is not None]
    return len(whole), sorted(time_ for one in whole for time_ in one)


def memory(pid: int) -> tuple[float, float]:
    """MB that only this process has, and seconds of the processor it took."""
    kept = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{pid}/status").read_text("ascii"))
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return int(kept[1]) / 1024 if kept else 0.0, (int(fields[11]) + int(fields[12])) / 100


@contextlib.contextmanager
def ours(model: Path | None, slots: int) -> Iterator[tuple[str, int]]:
    """`tokentrie serve` with a model, or the tiny one."""
    command = [sys.executable, "-m", "tokentrie", "serve", "--port", "0", "--slots", str(slots), "--max-queue", "4096"]
    command += ["--model", str(model)] if model else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1], process.pid
        process.terminate()


def of_the_model(model: Path | None, slots: int) -> float:
    """MB that a process has which holds the model, and serves nobody."""
    path = repr(str(model)) if model else "None"
    program = f"import tokentrie; m = tokentrie.Model({path}, slots={slots}); print(m.n_ctx, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        held, _ = memory(process.pid)
        process.kill()
    return held


def of_the_library(model: Path | None, slots: int, seconds: float) -> float:
    """Milliseconds of the same decision without a server."""
    question = tokentrie.decisions.Question(NAMES, instructions="Which team?")
    with tokentrie.Model(model, slots=slots) as held:
        return median(lambda: held.decide(STATE, {"team": question}), seconds)


def median(work: Callable[[], Any], seconds: float) -> float:
    """Milliseconds of a call, after some that are not counted."""
    times, begun = [], time.perf_counter()
    while (now := time.perf_counter()) < begun + seconds:
        work()
        times.append(time.perf_counter() - now)
    return statistics.median(times[len(times) // 10 :]) * 1e3


def beside(url: str, other: str, clients: int, seconds: float) -> None:
    """Compares the answers of both servers, and their rates, in turns."""
    one, two = Client(url), Client(other)
    same = sum(picked(one, number) == picked(two, number) for number in range(100))
    print(f"picks: {same} of 100 are the same on both (where rounding ties, they may differ)")
    for what, of_ours, of_theirs in (("picks", pick, pick), ("decisions", decide, decide_by_grammar)):
        for count in (1, clients):
            rates = [
                (a_second(url, count, of_ours, seconds), a_second(other, count, of_theirs, seconds)) for _ in range(3)
            ]
            mine, theirs = (statistics.median(some) for some in zip(*rates, strict=True))
            print(
                f"{what}, {count} clients: {mine:.1f} and {theirs:.1f} a second, {mine / theirs:.2f} times", flush=True
            )


def alone(url: str, pid: int, given: argparse.Namespace) -> None:
    """Measures idling, decisions and streams."""
    time.sleep(2)
    before, spent = memory(pid)
    time.sleep(5)
    more, share = before - of_the_model(given.model, given.slots), (memory(pid)[1] - spent) / 5
    print(f"idle: {more:.0f} MB above a process with the model, {share:.1%} of a processor")
    client = Client(url)
    print(f"one decision: {median(lambda: decide(client), given.seconds):.2f} ms", flush=True)
    rate = a_second(url, given.clients, decide, given.seconds)
    print(f"decisions of {given.clients} clients: {rate:.1f} a second", flush=True)
    whole, gaps = streams(url, given.streams, given.tokens)
    middle, most = gaps[len(gaps) // 2] * 1e3, gaps[len(gaps) * 99 // 100] * 1e3
    print(
        f"{given.streams} streams: {whole} whole; between tokens p50 {middle:.1f} ms, p99 {most:.1f} ms, "
        f"{most / middle:.1f} times"
    )
    print(f"one decision without a server: {of_the_library(given.model, given.slots, given.seconds):.2f} ms")


def main() -> None:
    """Prints a line for each figure."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", type=Path, help="of our server, the tiny one unless given")
    options.add_argument("--beside", help="a server with the same model; it takes requests without a key")
    options.add_argument("--clients", type=int, default=32)
    options.add_argument("--streams", type=int, default=200)
    options.add_argument("--tokens", type=int, default=32)
    options.add_argument("--slots", type=int, default=8, help="of our server")
    options.add_argument("--seconds", type=float, default=10)
    given = options.parse_args()
    with ours(given.model, given.slots) as (url, pid):
        if given.beside:
            beside(url, given.beside, given.clients, given.seconds)
        else:
            alone(url, pid, given)


if __name__ == "__main__":
    main()
