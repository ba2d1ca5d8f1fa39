"""Corrected draws beside AWRS: their distance from the model's own distribution over the texts of a rule, row for row.

    python -m benches.probabilities [--model M.gguf] [--runs 1000] [--output REPORT.json]
    python -m benches.probabilities --cost [--model M.gguf]

Needs `pip install genlm-control` in the environment; without it only our own draws are measured. The judge adds up
every token sequence of every text, but for sequences that together have less than a millionth of the probability. AWRS
gets the same rows from the same model, its condition is a list of the texts, and it runs in sequential Monte Carlo as
its documentation does: `ess_threshold=0.5`. It gets as many particles as it takes to read at least as many different
rows for a draw as ours; with `--equal particles` as many particles as ours, which both continue in one pass a token.
We draw one text a run; of the others the normalised weights of all particles are averaged,
which is the distribution of their draws with less noise. `SMC, exact weights` is a twin of AWRS here whose weights have
no noise. `--cost` shows the tokens that are decoded for the rows instead, and the processor's time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import tokentrie
from tokentrie import Model, Regex

try:
    from genlm.control.potential import Potential
    from genlm.control.sampler.token import AWRS
except ImportError:
    Potential = AWRS = None

Texts = dict[str, float]
#: Name, prompt, and the parts of a rule: each text takes one word of each.
CASES: list[tuple[str, str, list[list[str]]]] = [
    ("letters", "The next action is ", [["", "a", "b", "e"], ["a", "s", "t"], ["", "e", "n"], ["", "d", "r", "s"],
                                        ["a", "o", "i"], ["n", "t", "s", ""]]),
    ("calls", "The next action is ", [["RE", "UN", ""], ["PLY", "DO", "SET"], ["_THREAD", "_ALL", "_NOW", ""],
                                      ["", "!", ".", ","], ["", " now", " then"]]),
    ("times", "See you at ", [[f"{hour:02}" for hour in range(24)], [":"], ["00", "15", "30", "45"],
                              ["", " am", " pm"]]),
    ("verbs", "They wanted to ", [["", "un", "re", "dis", "over", "out"], ["do", "ply", "take", "run", "come", "set"],
                                  ["", "ing", "ed", "s", "er"]]),
]  # fmt: skip


class Rows:
    """The rows of a model after a prompt; counts those that were asked for since `clear`."""

    def __init__(self, model: Model, prompt: str) -> None:
        self.model, self.prompt = model, model.vocab.tokenize(prompt, add_special=True)
        self.known: dict[tuple[int, ...], np.ndarray] = {}
        self.asked: set[tuple[int, ...]] = set()
        self.pieces = [model.vocab[token] for token in range(len(model.vocab))]
        self.kinds = [model.vocab.kind(token) in ("text", "byte") and len(self.pieces[token]) > 0
                      for token in range(len(model.vocab))]  # fmt: skip

    def row_after(self, tokens: Sequence[int]) -> np.ndarray:
        """The log-probabilities of the tokens, and last that of the end."""
        key = tuple(tokens)
        self.asked.add(key)
        if key not in self.known:
            row = self.model.logits([*self.prompt, *key]).astype(np.float64)
            row -= row.max() + np.log(np.exp(row - row.max()).sum())
            end = np.logaddexp.reduce(row[list(self.model.vocab.eog)])
            row[list(self.model.vocab.eog)] = -np.inf
            self.known[key] = np.append(row, end)
        return self.known[key]


def prefixes(texts: list[str]) -> set[bytes]:
    return {text.encode()[:end] for text in texts for end in range(len(text.encode()) + 1)}


def judge(rows: Rows, texts: list[str]) -> tuple[Texts, Texts, float]:
    """The share of each text, the share when tokens are drawn among the allowed ones, and the sum of all."""
    begins, wholes = prefixes(texts), {text.encode() for text in texts}
    of_piece: dict[bytes, list[tuple[int, bytes]]] = {}
    real: Counter[str] = Counter()
    masked: Counter[str] = Counter()
    stack: list[tuple[list[int], bytes, float, float]] = [([], b"", 0.0, 0.0)]
    while stack:
        tokens, text, path, walk = stack.pop()
        if text not in of_piece:
            of_piece[text] = [(token, text + piece) for token, piece in enumerate(rows.pieces)
                              if rows.kinds[token] and text + piece in begins]  # fmt: skip
        row, nexts = rows.row_after(tokens), of_piece[text]
        allowed = [row[token] for token, _ in nexts] + ([row[-1]] if text in wholes else [])
        every = np.logaddexp.reduce(allowed)
        if text in wholes:
            real[text.decode()] += math.exp(path + row[-1])
            masked[text.decode()] += math.exp(walk + row[-1] - every)
        for token, longer in nexts:
            stack_path, stack_walk = path + row[token], walk + row[token] - every
            if stack_path > math.log(max(sum(real.values()), 1e-300)) - 20 or stack_walk > -14:
                stack.append(([*tokens, token], longer, stack_path, stack_walk))
    mass = sum(real.values())
    return {text: share / mass for text, share in real.items()}, dict(masked), mass


def total_variation(one: Texts, other: Texts) -> float:
    return sum(abs(one.get(text, 0.0) - other.get(text, 0.0)) for text in {*one, *other}) / 2


def noise(shares: Texts, runs: int) -> float:
    """The expected distance of so many draws from what they are drawn from."""
    return sum(math.sqrt(share * (1 - share) / runs * 2 / math.pi) for share in shares.values()) / 2


def ours(rows: Rows, rule: Regex, particles: int, runs: int) -> tuple[Texts, float, float]:
    drawn: Counter[str] = Counter()
    read, estimates = 0, []
    for seed in range(runs):
        out = rows.model.generate(rows.prompt, rule, correct=particles, seed=seed, end_tokens=rows.model.vocab.eog,
                                  max_tokens=40)  # fmt: skip
        drawn[out.text] += 1
        read += out.correction.rows
        estimates.append(math.exp(out.correction.log_normalizer))
    shares = {text: count / runs for text, count in drawn.items()}
    return shares, read / runs, float(np.std(estimates) / np.mean(estimates))


def smc(rows: Rows, texts: list[str], particles: int, runs: int) -> tuple[Texts, float, float]:
    """Sequential Monte Carlo with exact weights: AWRS without the noise of its weights, over the same proposals."""
    begins, wholes = prefixes(texts), {text.encode() for text in texts}
    of_piece: dict[bytes, list[tuple[int, bytes]]] = {}
    random, shares, read, estimates = np.random.default_rng(1), Counter[str](), 0, []
    for _ in range(runs):
        rows.asked.clear()
        walks: list[tuple[list[int], bytes, bool]] = [([], b"", False)] * particles
        weights = np.zeros(particles)
        while not all(over for *_, over in walks):
            for number, (tokens, text, over) in enumerate(walks):
                if over:
                    continue
                if text not in of_piece:
                    of_piece[text] = [(token, text + piece) for token, piece in enumerate(rows.pieces)
                                      if rows.kinds[token] and text + piece in begins]  # fmt: skip
                row, nexts = rows.row_after(tokens), of_piece[text]
                allowed = np.array([row[token] for token, _ in nexts] + ([row[-1]] if text in wholes else []))
                every = np.logaddexp.reduce(allowed)
                weights[number] += every
                drawn = random.choice(len(allowed), p=np.exp(allowed - every) / np.exp(allowed - every).sum())
                if drawn == len(nexts):
                    walks[number] = (tokens, text, True)
                else:
                    walks[number] = ([*tokens, nexts[drawn][0]], nexts[drawn][1], False)
            normal = np.exp(weights - np.logaddexp.reduce(weights))
            if 1 / (normal**2).sum() < particles / 2:
                weights[:] = np.logaddexp.reduce(weights) - math.log(particles)
                walks = [walks[of] for of in random.choice(particles, particles, p=normal / normal.sum())]
        read += len(rows.asked)
        estimates.append(math.exp(np.logaddexp.reduce(weights) - math.log(particles)))
        for (_, text, _), weight in zip(walks, np.exp(weights - np.logaddexp.reduce(weights)), strict=True):
            shares[text.decode()] += weight / runs
    return dict(shares), read / runs, float(np.std(estimates) / np.mean(estimates))


if Potential is not None:

    class OfModel(Potential):
        """The model as a potential over its token ids."""

        def __init__(self, rows: Rows) -> None:
            super().__init__([token for token, is_text in enumerate(rows.kinds) if is_text])
            self.rows, self.ids = rows, np.array(self.vocab)

        async def prefix(self, context: list[int]) -> float:
            return float(sum(self.rows.row_after(context[:n])[token] for n, token in enumerate(context)))

        async def complete(self, context: list[int]) -> float:
            return await self.prefix(context) + float(self.rows.row_after(context)[-1])

        async def logw_next(self, context: list[int]) -> Any:
            row = self.rows.row_after(context)
            return self.make_lazy_weights(np.append(row[self.ids], row[-1]))

    class OfTexts(Potential):
        """The texts as a condition on tokens, which begin one of them or are one."""

        def __init__(self, rows: Rows, texts: list[str], vocab: list[int]) -> None:
            super().__init__(vocab)
            self.pieces, self.begins, self.wholes = rows.pieces, prefixes(texts), {text.encode() for text in texts}

        def text(self, context: list[int]) -> bytes:
            return b"".join(self.pieces[token] for token in context)

        async def prefix(self, context: list[int]) -> float:
            return 0.0 if self.text(context) in self.begins else -math.inf

        async def complete(self, context: list[int]) -> float:
            return 0.0 if self.text(context) in self.wholes else -math.inf

    def awrs(rows: Rows, texts: list[str], particles: int, runs: int) -> tuple[Texts, float, float]:
        of_model = OfModel(rows)
        condition = OfTexts(rows, texts, of_model.vocab)
        shares: Counter[str] = Counter()
        read, whole, estimates = 0, 0, []

        async def run() -> None:
            nonlocal read, whole
            sampler = AWRS(of_model, condition, autobatch=False)
            for _ in range(runs):
                rows.asked.clear()
                found = await sampler.smc(n_particles=particles, ess_threshold=0.5, max_tokens=40)
                read += len(rows.asked)
                weights = np.exp(np.array(found.log_normalized_weights, dtype=np.float64))
                estimates.append(math.exp(found.log_ml) if np.isfinite(found.log_ml) else 0.0)
                if np.isfinite(weights).all() and weights.sum() > 0:
                    whole += 1
                    for context, weight in zip(found.contexts, weights / weights.sum(), strict=True):
                        text = condition.text([token for token in context if isinstance(token, int)])
                        shares[text.decode()] += weight  # type: ignore[assignment]

        asyncio.run(run())
        of_all = {text: share / max(whole, 1) for text, share in shares.items()}
        return of_all, read / runs, float(np.std(estimates) / max(np.mean(estimates), 1e-300))


def particles_for(sampler: Callable[..., tuple[Texts, float, float]], least: float) -> int:
    """The particles with which a sampler reads at least so many different rows for a draw."""
    count = 4
    while (read := sampler(count, 3)[1]) < least:
        count = max(count + 1, math.ceil(count * min(least / read, 2.0)))
    return count


def show_cost(path: str | None) -> None:
    """Rows and decoded tokens of bounds, of draws for an estimate, and of corrected draws."""
    person = {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 120}}
    required = {"required": ["name", "age"], "additionalProperties": False}
    cases: list[tuple[str, str, Any]] = [
        (name, prompt, Regex("".join(f"({'|'.join(map(re.escape, part))})" for part in parts)))
        for name, prompt, parts in CASES
    ]
    cases += [
        ("words", "The sky is ", Regex("[a-z ]+\\.")),
        ("sentence", "Once upon a time ", Regex("[A-Za-z ,']{40,200}[.!?]")),
        ("document", "A user: ", tokentrie.JsonSchema({"type": "object", "properties": person, **required})),
    ]
    print("| rule | call | rows | tokens decoded | ms a row |\n| --- | --- | ---: | ---: | ---: |")
    for name, prompt, rule in cases:
        model = Model(path, n_ctx=4096, n_threads=1, precise=True)
        for call in (bounds, estimate, correct):
            call(model, prompt, rule)
            model.clear()
            began = time.process_time()
            rows, tokens = call(model, prompt, rule)
            took = (time.process_time() - began) * 1e3 / rows
            print(f"| {name} | {call.__name__} | {rows:,} | {tokens:,} | {took:.2f} |", flush=True)


def bounds(model: Model, prompt: str, rule: Any) -> tuple[int, int]:
    stats = model.probability(prompt, rule, samples=0, max_rows=1500, tolerance=1e-9).stats
    return stats.rows, stats.tokens_decoded


def estimate(model: Model, prompt: str, rule: Any) -> tuple[int, int]:
    stats = model.probability(prompt, rule, samples=64, max_rows=64, max_tokens=100, seed=1).stats
    return stats.rows, stats.tokens_decoded


def correct(model: Model, prompt: str, rule: Any) -> tuple[int, int]:
    out = model.generate(prompt, rule, correct=16, seed=1, max_tokens=60)
    assert out.correction is not None
    return out.correction.rows, out.stats.tokens_decoded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a GGUF; the tiny model without it")
    parser.add_argument("--runs", type=int, default=1000, help="draws of ours")
    parser.add_argument("--awrs-runs", type=int, default=80)
    parser.add_argument("--particles", type=int, nargs="*", default=[4, 16])
    parser.add_argument("--equal", choices=["rows", "particles"], default="rows", help="cost at which all are compared")
    parser.add_argument("--rules", nargs="*", choices=[name for name, *_ in CASES], help="default: all")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--cost", action="store_true", help="rows and decoded tokens only")
    options = parser.parse_args()
    if options.cost:
        show_cost(options.model)
        return
    model = tokentrie.Model(options.model, n_ctx=256, n_threads=1, precise=True)
    print("| rule | draws | particles | rows | total variation | spread of the normaliser |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    report = []
    for name, prompt, parts in CASES:
        if options.rules and name not in options.rules:
            continue
        texts = sorted({"".join(words) for words in product(*parts)})
        rows = Rows(model, prompt)
        shares, masked, mass = judge(rows, texts)
        rule = Regex("".join(f"({'|'.join(map(re.escape, part))})" for part in parts))
        floor = noise(shares, options.runs)

        def show(kind: str, particles: int, read: float, found: float, spread: float, of: str = name) -> None:
            row = {
                "rule": of,
                "draws": kind,
                "particles": particles,
                "rows": read,
                "total_variation": found,
                "spread": spread,
            }
            report.append(row)
            print(f"| {of} | {kind} | {particles} | {read:.1f} | {found:.3f} | {spread:.2f} |", flush=True)

        of_judge = f"{options.runs} draws of the judge; P = {mass:.1e}, {len(texts)} texts"
        print(f"| {name} | {of_judge} | | | {floor:.3f} | |")
        show("masked, computed", 0, 0, total_variation(masked, shares), 0.0)
        for particles in options.particles:
            drawn, read, spread = ours(rows, rule, particles, options.runs)
            assert set(drawn) <= set(texts), "an illegal text"
            show("correct", particles, read, total_variation(drawn, shares), spread)
            least, others = read, [("SMC, exact weights", partial(smc, rows, texts), options.runs)]
            if AWRS is not None and options.awrs_runs:
                others.append(("AWRS", partial(awrs, rows, texts), options.awrs_runs))
            for kind, sampler, runs in others:
                count = particles if options.equal == "particles" else particles_for(sampler, least)
                drawn, read, spread = sampler(count, runs)
                show(kind, count, read, total_variation(drawn, shares), spread)
    if options.output:
        options.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
