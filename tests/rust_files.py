"""Which file of a crate needs which other: read from the paths in the sources, as far as rooms are concerned."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

Path_ = tuple[str, ...]
"""A path in a crate, such as ("set", "ids", "TokenId"); the crate itself is the empty one."""

SILENT = re.compile(r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|\'(?:\\.[^\']*|[^\\\'])\'', re.DOTALL)
FOR_TESTS = re.compile(r"#\[cfg\((?:test|doc|all\(test[^)]*\))\)\]\s*(?:#\[[^\]]*\]\s*)*")
USE = re.compile(r"^[ \t]*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.MULTILINE)
ITEM = re.compile(
    r"^(?:pub(?:\([^)]*\))?\s+)?(?:const\s+|unsafe\s+|async\s+)*"
    r"(?:struct|enum|trait|fn|type|static|union|const|macro_rules!)\s+(\w+)",
    re.MULTILINE,
)
INLINE = re.compile(r"(?<![\w:$])((?:crate|self|super|[a-z_]\w*)(?:::\w+)+)")


def silent(text: str) -> str:
    """The text without comments and strings."""
    return SILENT.sub(" ", text)


def spoken(text: str) -> str:
    """The text without comments, strings and what is compiled for tests and documentation alone."""
    text = silent(text)
    while found := FOR_TESTS.search(text):
        opened, ended = text.find("{", found.end()), text.find(";", found.end())
        end = ended + 1 if ended >= 0 and (opened < 0 or ended < opened) else closing(text, opened)
        used = re.match(r"(?:pub(?:\([^)]*\))?\s+)?use\s", text[found.end() :])
        text = text[: found.start()] + text[ended + 1 if used else end :]
    return text


def closing(text: str, opened: int) -> int:
    depth = 0
    for at in range(opened, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return len(text)


def branches(tree: str) -> list[tuple[Path_, str]]:
    """`a::{b, c as d}` as its paths, each with the name that it has here."""
    tree = tree.strip()
    if "{" in tree:
        head, inside = tree.split("{", 1)
        inside = inside[: inside.rindex("}")]
        start = tuple(part for part in head.split("::") if part.strip())
        parts, depth, last = [], 0, 0
        for at, letter in enumerate(inside):
            depth += {"{": 1, "}": -1}.get(letter, 0)
            if letter == "," and depth == 0:
                parts.append(inside[last:at])
                last = at + 1
        parts.append(inside[last:])
        below = [branch for part in parts if part.strip() for branch in branches(part)]
        return [(start if path == ("self",) else (*start, *path), start[-1] if path == ("self",) else name)
                for path, name in below]  # fmt: skip
    path, _, name = tree.partition(" as ")
    parts_of = tuple(part.strip() for part in path.split("::") if part.strip())
    return [(parts_of, name.strip() or parts_of[-1])]


@dataclass
class Module:
    """One file: what it defines, what it brings in under which name, and its text without that."""

    file: Path
    path: Path_
    items: set[str] = field(default_factory=set)
    brought: dict[str, Path_] = field(default_factory=dict)
    all_of: list[Path_] = field(default_factory=list)
    body: str = ""


class Crate:
    """The files below a folder `src`, and the arrows between them."""

    def __init__(self, src: Path) -> None:
        self.src = src
        self.modules: dict[Path_, Module] = {}
        for file in sorted(src.rglob("*.rs")):
            parts = file.relative_to(src).with_suffix("").parts
            path = () if parts == ("lib",) else parts[:-1] if parts[-1] == "mod" else parts
            if path[-1:] != ("tests",) and "tests" not in path[:-1]:
                self.modules[path] = Module(file, path)
        for module in self.modules.values():
            self._read(module)

    def _read(self, module: Module) -> None:
        text = spoken(module.file.read_text(encoding="utf-8"))
        module.items = set(ITEM.findall(text))
        for _, tree in USE.findall(text):
            for path, name in branches(tree):
                whole = self._absolute(module, path)
                if whole is None:
                    continue
                if name == "*":
                    module.all_of.append(whole[:-1])
                elif name != "_":
                    module.brought[name] = whole
                else:
                    module.brought[f"_{whole[-1]}"] = whole
        module.body = USE.sub(" ", text)

    def _absolute(self, module: Module, path: Path_) -> Path_ | None:
        """The path from the crate on; `None` for what lies outside of it."""
        at = module.path
        if path[0] == "crate":
            return path[1:]
        if path[0] in ("self", "super"):
            while path and path[0] in ("self", "super"):
                at = at[:-1] if path[0] == "super" else at
                path = path[1:]
            return (*at, *path)
        if (*at, path[0]) in self.modules or (path[0] in module.brought and len(path) > 1):
            return (*module.brought.get(path[0], (*at, path[0])), *path[1:])
        return None

    def origin(self, path: Path_, depth: int = 0) -> Path_ | None:
        """The file that defines what a path names, however often it is handed on."""
        if path in self.modules:
            return path
        for length in range(len(path) - 1, -1, -1):
            module = self.modules.get(path[:length])
            if module is None:
                continue
            name, rest = path[length], path[length + 1 :]
            if name in module.items or depth > 9:
                return module.path
            if name in module.brought:
                return self.origin((*module.brought[name], *rest), depth + 1)
            for whole in module.all_of:
                other = self.modules.get(whole)
                if other and (name in other.items or name in other.brought):
                    return self.origin((*whole, name), depth + 1)
            return module.path
        return None

    def _needs(self, module: Module) -> set[Path_]:
        words = set(re.findall(r"\w+", module.body))
        found: set[Path_ | None] = set()
        for name, whole in module.brought.items():
            # What is only handed on is not needed here.
            if name.startswith("_") or name in words:
                found.add(self.origin(whole))
        for whole in module.all_of:
            other = self.modules.get(whole)
            if other:
                names = (other.items | set(other.brought)) & words
                found |= {self.origin((*whole, name)) for name in names - module.items - set(module.brought)}
        for inline in INLINE.findall(module.body):
            path = tuple(inline.split("::"))
            absolute = self._absolute(module, path)
            if absolute is not None:
                found.add(self.origin(absolute))
        return {path for path in found if path is not None and path != module.path}

    def name(self, path: Path_) -> str:
        return self.modules[path].file.relative_to(self.src).as_posix()

    def arrows(self) -> dict[str, set[str]]:
        """Each file, by its name below `src`, and those that it takes items of."""
        graph = {}
        for module in self.modules.values():
            modules_named = {self.name(path) for path in self._needs(module) if self.modules[path].items}
            graph[self.name(module.path)] = modules_named
        return graph


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Files that need each other, directly or by way of others: groups of two and more, sorted."""
    reach = {start: reachable(graph, start) for start in graph}
    groups = {tuple(sorted({start} | {end for end in reach[start] if start in reach[end]})) for start in graph}
    return [list(group) for group in sorted(groups) if len(group) > 1]


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    todo = [start]
    while todo:
        new = graph.get(todo.pop(), set()) - seen
        seen |= new
        todo += new
    return seen
