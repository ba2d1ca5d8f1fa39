"""`tokentrie inspect`: the tries of a payload, drawn with counts, or what a .ttrie file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text
from rich.tree import Tree

import tokentrie
from tokentrie.cli import console, inspect_file
from tokentrie.cli.loading import open_vocab, token_text
from tokentrie.cli.outline import Limits, Node, Outline

ANY_VOCABULARY = 2**31


def run(
    payload: Path,
    vocab_path: Path | None,
    path: str | None,
    depth: int | None,
    max_children: int | None,
    find: str | None,
    svg: Path | None,
    as_json: bool,
) -> None:
    """Reads, counts and prints."""
    if inspect_file.is_file(payload):
        if path is not None or depth is not None or max_children is not None:
            problem = f"{payload}: --path, --depth and --max-children are for payloads; a .ttrie file has one set"
            raise tokentrie.TokenTrieError(problem)
        _run_file(payload, vocab_path, find, svg, as_json)
        return
    if find is not None:
        raise tokentrie.TokenTrieError(f"{payload}: --find needs a .ttrie file")
    content = console.read(payload)
    vocab = open_vocab(vocab_path) if vocab_path else None
    with console.working(f"building the tries of {payload}"), console.collected_warnings() as warnings:
        tries = _tries(content, vocab, path)
    if not as_json:
        for warning in warnings:
            console.say(f"warning: {warning}")
    descriptors: list[dict[str, Any]] = []
    drawn: list[Tree] = []
    screen = console.screen()
    for name, trie in tries.items():
        with console.working(f"counting the leaves of {name}"):
            outline = Outline(trie)
            node = outline.draw(Limits.choose(len(trie), depth, max_children))
        if as_json:
            descriptors.append(_document(name, trie, outline, node, vocab))
        else:
            drawn.append(_tree(name, trie, outline, node, vocab))
            screen.print(drawn[-1])
    if svg:
        console.save_svg(svg, f"tokentrie inspect {payload.name}", [*drawn])
    if as_json:
        size = len(vocab) if vocab else None
        console.print_json(
            {"payload": str(payload), "vocabulary": size, "descriptors": descriptors, "warnings": warnings}
        )


def _run_file(file: Path, vocab_path: Path | None, find: str | None, svg: Path | None, as_json: bool) -> None:
    vocab = open_vocab(vocab_path) if vocab_path else None
    summary = inspect_file.read(file, vocab, find)
    if as_json:
        console.print_json(inspect_file.document(summary, vocab))
        return
    shown = inspect_file.shown(summary, vocab)
    console.screen().print(*shown, sep="\n")
    if svg:
        console.save_svg(svg, f"tokentrie inspect {file.name}", [*shown])


def _tries(content: bytes, vocab: tokentrie.Vocab | None, path: str | None) -> dict[str, tokentrie.Trie]:
    """The trie of every path, or of one. The payload is read once."""
    sampler = tokentrie.Sampler(vocab or ANY_VOCABULARY, content)
    tries = {}
    for name in sampler.paths if path is None else [path]:
        sampler.activate(name)
        tries[name] = sampler.trie
    return tries


def _tree(name: str, trie: tokentrie.Trie, outline: Outline, root: Node, vocab: tokentrie.Vocab | None) -> Tree:
    share = round(100 * outline.forced_steps / outline.steps)
    heading = Text().append(console.printable(name) or '""', style="bold")
    heading.append(
        f": {console.count(len(trie), 'leaf', 'leaves')}, {trie.nodes:,} nodes, {trie.nbytes:,} bytes, "
        f"at most {console.count(outline.max_depth, 'token', 'tokens')}, "
        f"{outline.forced_steps:,} of {outline.steps:,} steps forced ({share} %)"
    )
    tree = Tree(heading, guide_style="dim")
    if root.run or root.name is not None:
        _grow(tree, root, vocab)
    else:
        _grow_children(tree, root, vocab)
    return tree


def _grow(parent: Tree, node: Node, vocab: tokentrie.Vocab | None) -> None:
    _grow_children(parent.add(_label(node, vocab)), node, vocab)


def _grow_children(tree: Tree, node: Node, vocab: tokentrie.Vocab | None) -> None:
    for child in node.children:
        _grow(tree, child, vocab)
    if node.hidden_branches:
        more = f"… {node.hidden_branches:,} more" if node.children else "…"
        tree.add(Text(f"{more} ({console.count(node.hidden_leaves, 'leaf', 'leaves')})", style="dim"))


def _label(node: Node, vocab: tokentrie.Vocab | None) -> Text:
    """One line: ids, their text, the value that ends here, and the leaves below where there is more than one."""
    label = Text().append(f"[{' '.join(map(str, node.run))}]", style="cyan")
    if vocab:
        label.append(" " + " ".join(console.quoted(vocab[token]) for token in node.run))
    if node.terminal:
        label.append(" → ", style="dim")
        label.append(console.printable(node.name or "(no name)"), style="bold green")
    if node.leaves > 1:
        label.append(f" ({console.count(node.leaves, 'leaf', 'leaves')})")
    return label


def _document(
    name: str, trie: tokentrie.Trie, outline: Outline, root: Node, vocab: tokentrie.Vocab | None
) -> dict[str, Any]:
    return {
        "path": name,
        "leaves": len(trie),
        "nodes": trie.nodes,
        "bytes": trie.nbytes,
        "max_depth": outline.max_depth,
        "steps": outline.steps,
        "forced_steps": outline.forced_steps,
        "tree": _node_document(root, vocab),
    }


def _node_document(node: Node, vocab: tokentrie.Vocab | None) -> dict[str, Any]:
    document: dict[str, Any] = {"tokens": node.run}
    if vocab:
        document["text"] = [token_text(vocab, token) for token in node.run]
    return document | {
        "terminal": node.terminal,
        "name": node.name,
        "leaves": node.leaves,
        "children": [_node_document(child, vocab) for child in node.children],
        "hidden": {"branches": node.hidden_branches, "leaves": node.hidden_leaves},
    }
