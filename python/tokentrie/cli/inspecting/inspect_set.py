"""`tokentrie inspect`: the tries of a payload, drawn with counts, or what a .ttrie file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text
from rich.tree import Tree

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.inspecting import inspect_file, inspect_svg, outline
from tokentrie.cli.inspecting.inspect_svg import Part
from tokentrie.cli.inspecting.outline import Counts, Node
from tokentrie.cli.loading import open_vocab

ANY_VOCABULARY = 2**31


def run_payload(
    payload: Path,
    content: bytes,
    vocab_path: Path | None,
    path: str | None,
    limits: inspect_file.Limits,
    svg: Path | None,
    as_json: bool,
) -> None:
    """Counts the tries of a payload and prints them."""
    vocab = open_vocab(vocab_path) if vocab_path else None
    with console.working(f"building the tries of {payload}"), console.collected_warnings() as warnings:
        tries = _tries(content, vocab, path)
    if not as_json:
        console.say_warnings(warnings)
    descriptors: list[dict[str, Any]] = []
    drawn: list[Part] = []
    screen = console.screen()
    for name, trie in tries.items():
        with console.working(f"counting the leaves of {name}"):
            counts, root = Counts(trie), Node.root(trie, *limits)
        if as_json:
            descriptors.append(_document(name, trie, counts, root, vocab))
        else:
            drawn.append(Part(name, trie, counts, *limits))
            screen.print(_tree(name, trie, counts, root, vocab))
    if svg:
        inspect_svg.save(svg, drawn, vocab)
    if as_json:
        size = len(vocab) if vocab else None
        console.print_json(
            {"payload": str(payload), "vocabulary": size, "descriptors": descriptors, "warnings": warnings}
        )


def run_set(
    file: Path,
    vocab_path: Path | None,
    find: str | None,
    limits: inspect_file.Limits,
    svg: Path | None,
    as_json: bool,
) -> None:
    """Counts and samples a .ttrie file, and prints what was found; its tree where a limit is given."""
    vocab = open_vocab(vocab_path) if vocab_path else None
    summary = inspect_file.read(file, vocab, find, None if limits == (None, None) else limits)
    if as_json:
        console.print_json(inspect_file.document(summary, vocab))
        return
    console.screen().print(*inspect_file.render(summary, vocab), sep="\n")
    if svg:
        inspect_svg.save(svg, [Part(file.name, summary.trie, summary.counts, *limits)], vocab)


def _tries(content: bytes, vocab: tokentrie.Vocab | None, path: str | None) -> dict[str, tokentrie.Trie]:
    """The trie of every path, or of one. The payload is read once."""
    sampler = tokentrie.Sampler(vocab or ANY_VOCABULARY, content)
    tries = {}
    for name in sampler.paths if path is None else [path]:
        sampler.activate(name)
        tries[name] = sampler.trie
    return tries


def _tree(name: str, trie: tokentrie.Trie, counts: Counts, root: Node, vocab: tokentrie.Vocab | None) -> Tree:
    heading = Text().append(console.printable(name) or '""', style="bold")
    heading.append(
        f": {console.count(len(trie), 'leaf', 'leaves')}, {trie.nodes:,} nodes, {trie.nbytes:,} bytes, "
        f"at most {console.count(counts.max_depth, 'token', 'tokens')}, {counts.forced_share()}"
    )
    tree = Tree(heading, guide_style="dim")
    outline.grow(tree, root, vocab)
    return tree


def _document(
    name: str, trie: tokentrie.Trie, counts: Counts, root: Node, vocab: tokentrie.Vocab | None
) -> dict[str, Any]:
    return {
        "path": name,
        "leaves": len(trie),
        "nodes": trie.nodes,
        "bytes": trie.nbytes,
        "max_depth": counts.max_depth,
        "steps": counts.steps,
        "forced_steps": counts.forced_steps,
        "tree": outline.document(root, vocab),
    }
