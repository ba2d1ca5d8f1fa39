"""Tokens a second with drafts: free and constrained text, with each source, beside a model without drafts.

    python -m benches.drafts [--model M.gguf] [--draft SMALL.gguf] [--beside URL] [--output REPORT.json]

Every output is compared with that of the model without drafts. It is equal with float32 weights; with quantised ones
llama.cpp rounds batches differently, and two tokens that are almost equally probable may change places. `--beside`
names a llama-server that runs the same file, with or without a draft of its own: it gets the same prompts and, where it
reads the constraint as a grammar, the same constraint.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokentrie
from tokentrie.rules import JsonSchema

TEXT = (
    "The northern ferry leaves at 08:15 from pier four and arrives at 09:40. The southern ferry leaves at 08:45 from "
    "pier two and arrives at 10:05. The night ferry leaves at 23:30 from pier four and arrives at 00:55."
)
SCHEMA: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "ferry": {"type": "string", "maxLength": 40},
            "leaves": {"type": "string", "maxLength": 8},
            "pier": {"type": "string", "maxLength": 12},
            "arrives": {"type": "string", "maxLength": 8},
        },
        "required": ["ferry", "leaves", "pier", "arrives"],
        "additionalProperties": False,
    },
    "minItems": 3,
    "maxItems": 6,
}
#: Name, prompt, and the JSON Schema of the output, if it has one.
CASES: list[tuple[str, str, dict[str, Any] | None]] = [
    ("free", "Once upon a time there was", None),
    ("free, copying", f"{TEXT}\n\nThe same text once more:\n{TEXT[:40]}", None),
    ("JSON", f"{TEXT}\n\nThe ferries as JSON:\n", SCHEMA),
]


@dataclass(frozen=True)
class Figure:
    """One row of the table."""

    case: str
    draft: str
    tokens: int
    tokens_per_second: float
    forward_passes: int
    drafted: int
    accepted: int
    is_equal: bool


def arguments(args: Sequence[str] | None) -> argparse.Namespace:
    """Parses and checks the options."""
    parser = argparse.ArgumentParser(prog="python -m benches.drafts", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", type=Path, help="a GGUF file; without it the tiny model")
    parser.add_argument("--draft", type=Path, help="a small GGUF file with the same vocabulary")
    parser.add_argument("--tokens", type=int, default=200, help="the most tokens of an output")
    parser.add_argument("--repeats", type=int, default=3, help="timed calls for each row; the fastest counts")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--beside", metavar="URL", help="a llama-server with the same model")
    parser.add_argument("--output", "-o", type=Path, metavar="REPORT.json")
    given = parser.parse_args(args)
    if given.repeats < 1 or given.tokens < 1:
        parser.error("--repeats and --tokens are at least 1")
    return given


def measure(given: argparse.Namespace, draft: str | None, expected: dict[str, list[int]]) -> list[Figure]:
    """Measures the cases with a source of drafts. Without one, the outputs are noted as those that are expected."""
    figures = []
    # Precise, so that the outputs can be compared: elsewhere the last digits depend on how tokens are batched.
    with tokentrie.Model(given.model, n_ctx=2048, n_threads=given.threads, precise=True, draft=draft) as model:
        for name, prompt, schema in CASES:
            constraint = JsonSchema(schema) if schema else None
            best, written = float("inf"), None
            for _ in range(given.repeats):
                model.clear()
                started = time.perf_counter()
                written = model.generate(prompt, constraint, max_tokens=given.tokens, on_invalid="none")
                seconds = time.perf_counter() - started - written.stats.prompt_seconds
                best = min(best, seconds)
            assert written is not None
            tokens, stats = list(written.tokens), written.stats
            is_equal = expected.setdefault(name, tokens) == tokens
            drafted, accepted = stats.drafted_tokens, stats.accepted_tokens
            speed = len(tokens) / best
            source = Path(draft).name if draft else "none"
            figures.append(Figure(name, source, len(tokens), speed, stats.forward_passes, drafted, accepted, is_equal))
    return figures


def measure_beside(given: argparse.Namespace) -> list[Figure]:
    """Measures the cases in a llama-server; its own statistics count."""
    figures = []
    for name, prompt, schema in CASES:
        body = {"prompt": prompt, "n_predict": given.tokens, "temperature": 0, "cache_prompt": False}
        data = json.dumps(body | ({"json_schema": schema} if schema else {})).encode()
        best: dict[str, Any] = {}
        for _ in range(given.repeats):
            asked = urllib.request.Request(f"{given.beside}/completion", data, {"Content-Type": "application/json"})
            with urllib.request.urlopen(asked) as answer:
                timings = json.load(answer)["timings"]
            if timings["predicted_per_second"] > best.get("predicted_per_second", 0):
                best = timings
        drafted, accepted = best.get("draft_n", 0), best.get("draft_n_accepted", 0)
        speed, tokens = best["predicted_per_second"], best["predicted_n"]
        figures.append(Figure(name, "llama-server", tokens, speed, 0, drafted, accepted, True))
    return figures


def main(args: Sequence[str] | None = None) -> int:
    """Measures and prints; 1 if drafts changed an output."""
    given = arguments(args)
    expected: dict[str, list[int]] = {}
    figures = []
    for draft in (None, "prompt", "ngram", *([str(given.draft)] if given.draft else [])):
        figures += measure(given, draft, expected)
    if given.beside:
        figures += measure_beside(given)
    plain = {figure.case: figure.tokens_per_second for figure in figures if figure.draft == "none"}
    print("| case | draft | tokens/s | times | passes | drafted | accepted | output |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for one in sorted(figures, key=lambda figure: figure.case):
        times = one.tokens_per_second / plain[one.case]
        equal = "other text" if one.draft == "llama-server" else "equal" if one.is_equal else "DIFFERS"
        print(
            f"| {one.case} | {one.draft} | {one.tokens_per_second:.1f} | {times:.2f} | {one.forward_passes} "
            f"| {one.drafted} | {one.accepted} | {equal} |"
        )
    if given.output:
        given.output.write_text(json.dumps([vars(figure) for figure in figures], indent=1))
    return 0 if all(figure.is_equal for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
