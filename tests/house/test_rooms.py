"""Rooms that a reader finds the way in: files that need each other, files beside each other, long files, `unsafe`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import rust_files
from rust_files import Crate, circles, reachable

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "crates").is_dir(), reason="only a checkout has the crates")

STOREYS = ["work", "set", "machine", "rows", "scoring"]
"""The storeys of trie-core: a file needs files of its own storey and of those before it."""

CIRCLES: dict[str, dict[str, tuple[int, str]]] = {
    "trie-core": {
        "machine/constraint": (
            6,
            "a constraint of any kind holds each kind, and gates and filters hold one of any kind",
        ),
        "rows/batch": (3, "a batch is one type, and its methods stand in a file for each thing that is asked of it"),
        "set": (8, "a trie makes its builder, and what is built, weighed, read or verified is a trie"),
    },
    "trie-rules": {
        "number_set": (3, "a set of numbers and the machine over their text are one thing of several files' length"),
        "grammar": (5, "the tokens of a grammar are found on its own tables"),
        "regular": (8, "a value is made of values, and a format is read by what it writes"),
        "{rule,tokens}": (
            6,
            "a vocabulary keeps its slices and the masks of its rules, which are found by walking it",
        ),
    },
    "trie-text": {"forms": (4, "the cache of a form keeps its slots, which ask it and how a value goes on")},
    "chat-template": {
        "{builtins,eval,syntax,value}": (21, "values hold macros, which hold the tree of a template: an interpreter"),
        "syntax": (2, "numbers are tokens"),
    },
    "chat-format": {
        "analysis": (9, "an analysis is asked by what completes it"),
        "constraint": (2, "a constraint and the spelling that it filters by are one thing of two files' length"),
        "machine": (4, "the machine and its states are one thing of several files' length"),
        "values": (15, "a value holds values: each style reads those of the others, and a schema has schemas"),
        "{check,format}": (2, "a format is checked by reading with it"),
        "{custom,tools}": (2, "a custom tool is one of the tools, with their errors"),
    },
    "tokentrie": {
        "decide": (2, "close calls of a decision are asked again, in decisions of their own"),
        "{constraint,json}": (
            16,
            "a constraint holds constraints, which are read by the names of their kinds, with their errors",
        ),
    },
    "tokentrie-c": {
        "abi": (4, "handles are made of handles: a trie of a vocabulary, a constraint of a spec or a trie"),
        "session": (5, "a session runs turns, and a turn runs what the session was asked for"),
    },
    "tokentrie-py": {
        "chat": (4, "a format makes constraints, tools and response templates, which are read by that format"),
        "trie": (4, "a set is made from strings, files and tables, whose readers give sets"),
        "{rows,rule,spec}": (4, "a gate is a sampler and a constraint, and both are made of constraints of any kind"),
        "convert/buffer": (2, "a buffer, and the tables of what gives one"),
        "vocab": (2, "a vocabulary asks a tokenizer of Python's, which makes one"),
    },
    "llama-callbacks": {
        "{graph,status,table}": (3, "the tables of callbacks and what they point to name each other's types"),
    },
    "trie-schema": {
        "{compile,machine,schema}": (7, "a schema is compiled with its options, and in parts again for its errors"),
        "{machine,shape}": (10, "a shape has goals, whose values have shapes; few values are found by writing them"),
    },
    "llama-sampler": {
        "runtime": (3, "a context holds the source of its drafts, which may be a model with contexts of its own"),
        "runtime/context/gguf": (2, "a file of metadata and the reader of it share their errors"),
    },
}
"""Files in circles that are left: the folder, or the files at the root of a crate, that they lie in; how many
they are at most, and their reason."""

UNSAFE: dict[str, list[str]] = {
    "trie-core": ["set/storage/memory.rs"],
    "trie-formats": ["map.rs"],
    "llama-callbacks": ["abi.rs", "exit.rs", "graph.rs", "status.rs", "table.rs", "tests.rs"],
    "llama-sampler": [
        "linked.rs", "runtime/context/backend.rs", "runtime/context/prefix.rs", "runtime/context/set_threads.rs",
        "runtime/device/",
    ],
    "tokentrie-c": ["abi/", "chain.rs", "memory.rs", "process.rs"],
    "tokentrie-wasm": ["chat.rs", "choose.rs", "host.rs", "vocab.rs"],
    "tokentrie-py": ["convert/buffer/mod.rs", "convert/buffer/tables.rs", "exit.rs", "rows/in_chain.rs"],
}  # fmt: skip
"""Files and folders that may say `unsafe`; crates that are not here forbid it."""


def sources() -> list[Path]:
    return sorted(path for path in ROOT.glob("crates/*/src") if path.is_dir())


def room(files: list[str]) -> str:
    """The folder that a circle lies in; where that is the whole crate, its folders or, at the root, its files."""
    parents = [Path(file).parent.parts for file in files]
    shared = []
    for parts in zip(*parents, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    if shared:
        return "/".join(shared)
    names = {Path(file).with_suffix("").parts[0] for file in files}
    return "{" + ",".join(sorted(names)) + "}"


def test_arrows_are_read_from_the_sources(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\nmod c;\npub use a::A;",
        "a/mod.rs": "mod inner;\npub use inner::Inner;\npub struct A(crate::b::B);",
        "a/inner.rs": "/// [`crate::c::C`]\npub struct Inner;\n#[cfg(test)]\nmod tests { use crate::c::C; }",
        "b.rs": "use crate::{A, c::{self, C as D}};\npub struct B;\nfn f(_: A) { c::g(); }",
        "c.rs": 'use crate::a::Inner;\npub struct C(Inner);\npub(crate) fn g() {}\nconst S: &str = "crate::b::B";',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    arrows = Crate(tmp_path).arrows()
    assert arrows["a/mod.rs"] == {"b.rs"}, "what is only handed on is not needed"
    assert arrows["a/inner.rs"] == set(), "neither is what tests or comments name"
    assert arrows["b.rs"] == {"a/mod.rs", "c.rs"}
    assert arrows["c.rs"] == {"a/inner.rs"}
    assert circles(arrows) == [["a/mod.rs", "b.rs"]]
    assert reachable(arrows, "b.rs") == {"a/mod.rs", "b.rs", "c.rs", "a/inner.rs"}
    assert rust_files.branches("a::{self, b::{c, d as e}}") == [
        (("a",), "a"), (("a", "b", "c"), "c"), (("a", "b", "d"), "e")]  # fmt: skip


@pytest.mark.parametrize("src", sources(), ids=lambda src: src.parent.name)
def test_circles_of_files_are_those_of_the_table(src: Path) -> None:
    """A new one is broken by moving what both need to a file of its own, or has a reason that a reader accepts."""
    name = src.parent.name
    found: dict[str, list[str]] = {}
    for files in circles(Crate(src).arrows()):
        found.setdefault(room(files), []).extend(files)
    allowed = CIRCLES.get(name, {})
    assert {room: files for room, files in found.items() if len(files) > allowed.get(room, (0, ""))[0]} == {}
    assert set(allowed) <= set(found), "circles that are gone: take them out of the table"


def test_storeys_of_the_core_point_left() -> None:
    arrows = Crate(ROOT / "crates/trie-core/src").arrows()
    storey = {file: STOREYS.index(file.split("/")[0]) for file in arrows if "/" in file}
    assert set(STOREYS) == {file.split("/")[0] for file in storey}
    up = [f"{file} -> {other}" for file in storey for other in arrows[file] if storey.get(other, 0) > storey[file]]
    assert up == []
    assert [file for file in arrows if "/" not in file] == ["lib.rs"], "each file has its storey"


@pytest.mark.parametrize("src", sources(), ids=lambda src: src.parent.name)
def test_every_crate_forbids_unsafe_or_lists_its_files(src: Path) -> None:
    allowed = UNSAFE.get(src.parent.name)
    if allowed is None:
        head = (src / "lib.rs").read_text(encoding="utf-8")
        assert re.search(r"^#!\[forbid\(unsafe_code\)\]$", head, re.MULTILINE), f"{src}/lib.rs: forbid(unsafe_code)"
        return
    strangers, used = [], set()
    for path in sorted(src.rglob("*.rs")):
        name = path.relative_to(src).as_posix()
        if re.search(r"\bunsafe\b", rust_files.silent(path.read_text(encoding="utf-8"))):
            place = next(
                (place for place in allowed if name == place or (place[-1] == "/" and name.startswith(place))), ""
            )
            used.add(place)
            strangers += [] if place else [name]
    assert strangers == [], "files that may not say `unsafe`"
    assert used == set(allowed), "files without `unsafe`: take them out of the table"
