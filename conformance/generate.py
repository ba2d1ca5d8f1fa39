#!/usr/bin/env python3
"""Writes the cases: `python generate.py OUT [--vocabularies N] [--seed S] [--gguf FILE ...]`.

One JSON-lines file for each vocabulary. The same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from reference import cases
from reference.draw import Draw
from reference.masks import Tokens
from reference.vocabulary import name_of, read_gguf, sha256


def drawn(seed: str) -> Iterator[dict[str, Any]]:
    """A vocabulary of some hundred tokens, and cases over it."""
    draw = Draw(seed)
    pieces = [*draw.vocabulary(draw.values()), b""]
    tokens = Tokens(pieces, others=[len(pieces) - 1])
    inline = {"tokens": [piece.hex() for piece in pieces], "eog": sorted(tokens.others)}
    yield {"vocabulary": {"name": f"drawn {seed}", **inline}}
    for kind, (make, count) in cases.KINDS.items():
        for number in range(count):
            yield {"case": f"{kind} {seed}-{number}"} | make(Draw(f"{seed} {kind} {number}"), tokens)


def real(path: Path, seed: str, count: int) -> Iterator[dict[str, Any]]:
    """Cases over the vocabulary of a GGUF file, which a reader must have: it is named by its hash."""
    found = read_gguf(path)
    tokens = Tokens(found.pieces, others=found.others)
    name = name_of(path)
    about = {"name": name, "size": len(found.pieces), "eog": found.eog, "sha256": sha256(found.pieces)}
    yield {"vocabulary": about}
    for kind in ("set", "regex", "grammar"):
        make, _ = cases.KINDS[kind]
        for number in range(count):
            yield {"case": f"{kind} {name}-{number}"} | make(Draw(f"{seed} {name} {kind} {number}"), tokens)


def hostile(seed: str) -> Iterator[dict[str, Any]]:
    """Bombs, and constraints that nothing fits."""
    pieces = [*Draw(seed).vocabulary([]), b""]
    yield {"vocabulary": {"name": "hostile", "tokens": [piece.hex() for piece in pieces], "eog": [len(pieces) - 1]}}
    yield from ({**case, "expect": "an answer"} for case in cases.bombs())
    yield from ({**case, "expect": "nothing"} for case in cases.impossible())


def write(path: Path, lines: Iterator[dict[str, Any]]) -> Counter[str]:
    """Writes a file, and counts what is in it."""
    counts: Counter[str] = Counter()
    with path.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
            if "case" in line:
                counts["cases"] += 1
                counts["states"] += len(line.get("walk", ()))
                counts["texts"] += sum(map(len, line.get("texts", {}).values()))
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the folder, which is made")
    parser.add_argument("--vocabularies", type=int, default=400, help="drawn ones (default 400: 100,000 states)")
    parser.add_argument("--seed", default="2026", help="any text")
    parser.add_argument("--gguf", type=Path, nargs="*", default=[], help="real vocabularies to write cases for")
    parser.add_argument("--real-cases", type=int, default=20, help="of each kind for each of these (default 20)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    total = write(options.out / "hostile.jsonl", hostile(options.seed))
    for number in range(options.vocabularies):
        total += write(options.out / f"drawn-{number:03}.jsonl", drawn(f"{options.seed}-{number}"))
    for path in options.gguf:
        total += write(options.out / f"{path.stem}.jsonl", real(path, options.seed, options.real_cases))
    print(f"{options.out}: {total['cases']} cases, {total['states']} states, {total['texts']} texts")


if __name__ == "__main__":
    main()
