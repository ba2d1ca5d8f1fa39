"""Slowest steps of constrained chats: the longest token mask and the longest `accept`, for each chat template.

    python -m benches.chat_tails VOCAB.gguf TEMPLATE.jinja... [--steps 300]

Random legal tokens write replies with tools: characters that close something are more probable, so that replies go on.
Masks are compared with the list of allowed tokens, and what is drawn from one must be accepted. The tables of the
vocabulary are built before anything is timed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from tokentrie import ChatFormat, Regex, Sampler, TokenTrieError, Vocab

STRINGS = {"city": {"type": "string"}, "note": {"type": "string", "maxLength": 200}, "days": {"type": "integer"}}
WHERE = {"where": {"type": "object", "properties": {"street": {"type": "string", "minLength": 3, "maxLength": 40}}}}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "Does it.",
            "parameters": {"type": "object", "properties": STRINGS | WHERE, "required": ["city", "note"]},
        },
    }
    for name in ("get_weather", "get_news", "ring")
]
CLOSERS = tuple(b"\"}])>'<{[,:|/")


def weigh(vocab: Vocab) -> np.ndarray:
    """Logits with which replies go on to calls and come to an end."""
    row = np.zeros(len(vocab), np.float32)
    for token in range(len(vocab)):
        piece = vocab[token].strip()
        if piece[:1] and piece[0] in CLOSERS:
            row[token] = 7 if len(piece) == 1 else 3
    return row


def tails(form: ChatFormat, vocab: Vocab, row: np.ndarray, steps: int) -> tuple[list[float], list[float]]:
    """Milliseconds of the masks and of the accepts of two replies, one that must call a tool."""
    masks, accepts, random = [], [], np.random.default_rng(3)
    words = np.zeros(-(-len(vocab) // 32), np.int32)
    for choice in ("auto", "required"):
        constraint = form.constraint(TOOLS, vocab, tool_choice=choice)
        sampler = Sampler(vocab, constraint, end_tokens=vocab.eog if choice == "required" else None)
        for _ in range(steps):
            if sampler.state != "active":
                sampler.reset()
            began = time.perf_counter()
            sampler.fill_bitmask(words)
            masks.append((time.perf_counter() - began) * 1e3)
            legal = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
            assert np.array_equal(legal, sampler.allowed()), "two masks of one state"
            token = int(legal[np.argmax(row[legal] + random.gumbel(size=len(legal)))])
            began = time.perf_counter()
            sampler.accept(token)
            accepts.append((time.perf_counter() - began) * 1e3)
    return masks, accepts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vocab", type=Path, help="a GGUF")
    parser.add_argument("templates", type=Path, nargs="+", help="chat templates in Jinja")
    parser.add_argument("--steps", type=int, default=300, help="tokens of each of two replies")
    options = parser.parse_args()
    vocab = Vocab.from_gguf(options.vocab)
    row = weigh(vocab)
    Sampler(vocab, Regex("[a-z ]+")).allowed()
    warnings.simplefilter("ignore")
    print("| template | mask, mean ms | longest | accept, mean ms | longest |\n| --- | ---: | ---: | ---: | ---: |")
    for path in options.templates:
        try:
            form = ChatFormat(path.read_text("utf-8"), vocab)
            masks, accepts = tails(form, vocab, row, options.steps)
        except TokenTrieError as error:
            print(f"| {path.stem} | {error} | | | |")
            continue
        of_masks, of_accepts = (f"{np.mean(found):.3f} | {max(found):.1f}" for found in (masks, accepts))
        print(f"| {path.stem} | {of_masks} | {of_accepts} |", flush=True)


if __name__ == "__main__":
    main()
