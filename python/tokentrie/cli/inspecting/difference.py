"""`tokentrie inspect` of two .ttrie files: the leaves that only one of them has."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import tokentrie
from tokentrie.cli import console


def run(first: Path, second: Path, most: int, as_json: bool) -> bool:
    """Compares leaves by their tokens and prints the differences. Returns True if there are none."""
    with console.working("comparing"):
        one, other = (tokentrie.Trie.open(path, verify=True) for path in (first, second))
        if one.fingerprint and other.fingerprint and one.fingerprint != other.fingerprint:
            raise tokentrie.errors.VocabularyError(
                f"{first} and {second} were saved for two vocabularies: ids mean other tokens"
            )
        gone, new = _subtract(one, other), _subtract(other, one)
    in_both = len(one) - (len(gone) if gone else 0)
    same = gone is None and new is None
    if as_json:
        console.print_json(
            {"same": same, "both": in_both, "only_first": _document(gone, most), "only_second": _document(new, most)}
        )
        return same
    screen = console.screen()
    for sign, path, trie in (("-", first, gone), ("+", second, new)):
        for leaf in islice(trie or (), most):
            screen.print(f"{sign} {console.printable(_text(leaf))}")
        if trie is not None and len(trie) > most:
            screen.print(f"{sign} … {len(trie) - most:,} more only in {console.printable(str(path))}")
    only = [
        f"{len(trie) if trie else 0:,} only in {console.printable(str(path))}"
        for path, trie in ((first, gone), (second, new))
    ]
    screen.print(f"{console.count(in_both, 'leaf', 'leaves')} in both, {only[0]}, {only[1]}")
    return same


def _subtract(one: tokentrie.Trie, other: tokentrie.Trie) -> tokentrie.Trie | None:
    """The leaves of one that the other has not; None where there are none, for a trie has at least one leaf."""
    return None if one.issubset(other) else one - other


def _text(leaf: tokentrie.sets.Leaf) -> str:
    tokens = " ".join(map(str, leaf.tokens))
    return tokens if leaf.name is None else f"{leaf.name}  [{tokens}]"


def _document(trie: tokentrie.Trie | None, most: int) -> dict[str, Any]:
    leaves = [{"name": leaf.name, "tokens": leaf.tokens} for leaf in islice(trie or (), most)]
    return {"count": len(trie) if trie else 0, "leaves": leaves}
