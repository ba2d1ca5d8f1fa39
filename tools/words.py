"""Measures the language of the sources: python tools/words.py [--check] [--list MEASURE [FOLDER …]]

Six numbers show how far names and comments are from the field's own English: documentation that begins with a relative
clause, types and functions whose name is a bare participle or preposition, negated nouns ("is no tool"), documentation
of three words or fewer, and words of the field that no page contains. words.json holds the lists of words and, for each
measure, its limit and its goal. `--check` fails where a number exceeds its limit, and asks to lower a limit that a
number has left: the numbers may only fall. `--list relative crates/trie-core` prints the places.

Sources are measured, tests are not: they quote what users write.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_suffix(".json")
KINDS = (".rs", ".py", ".pyi", ".ts", ".js", ".h", ".c")
FOLDERS = ("crates", "python", "hosts", "include", "benches", "fuzz", "tools", "conformance", "examples")
PAGES = ("README.md", "docs/*.md", "docs/**/*.md")

RELATIVE = re.compile(r"(?:What|Whatever|Whether|Where|Who|Whoever|Whose|Of|How|Which|That|Those)\b")
NEGATED = re.compile(r"(?<!there )\bis no\b(?! longer\b| more\b)", re.IGNORECASE)
WORD = re.compile(r"\w[\w'’:.-]*")

RUST_PUB = r"(?:pub(?:\([\w:]+\))? )?"
METHOD = r"^ +(?:(?:async|static|private|public|protected|override|get|set) )*(\w+)(?:<[^>]*>)?\([^;=]*\{$"
TYPES = {
    "rust": rf"^ *{RUST_PUB}(?:unsafe )?(?:struct|enum|trait|union) (\w+)|^{RUST_PUB}type (\w+)",
    "python": r"^ *class (\w+)",
    "typescript": r"^ *(?:export )?(?:default )?(?:abstract )?(?:class|interface|enum) (\w+)|^(?:export )?type (\w+)",
    "c": r"^(?:typedef )?(?:struct|enum|union) (\w+)",
}
FUNCTIONS = {
    "rust": r"\bfn (\w+)",
    "python": r"^ *(?:async )?def (\w+)",
    "typescript": rf"\bfunction\*? (\w+)|{METHOD}",
    "c": r"^(?!return|else)[a-z][\w *]*\b(\w+)\(",
}
NOT_FUNCTIONS = {"if", "for", "while", "switch", "catch", "with", "function", "constructor", "from"}
"""Keywords that a pattern takes for a function, and Rust's `From::from`."""
LANGUAGES = {".rs": "rust", ".py": "python", ".pyi": "python", ".ts": "typescript", ".js": "typescript"}


@dataclass(frozen=True)
class Place:
    """A line of a file, and the text that a measure found there."""

    path: str
    line: int
    text: str


@dataclass
class Source:
    """Documentation and names of one file."""

    docs: list[tuple[int, str]] = field(default_factory=list)
    types: list[tuple[int, str]] = field(default_factory=list)
    functions: list[tuple[int, str]] = field(default_factory=list)
    negated: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class Count:
    """The places that a measure found, out of `total` that it looked at."""

    places: list[Place] = field(default_factory=list)
    total: int = 0

    def number(self, unit: str) -> float:
        """Returns the count, or the share in per cent, to a tenth."""
        if unit == "count":
            return len(self.places)
        return round(100 * len(self.places) / max(self.total, 1), 1)


def rust_docs(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yields each run of `///` or `//!` lines as its first line number and its text."""
    start, kept, kind = 0, [], ""
    for number, line in enumerate([*lines, ""], 1):
        found = re.match(r"\s*(///(?!/)|//!) ?(.*)", line)
        if kept and (not found or found[1] != kind):
            yield start, "\n".join(kept)
            kept = []
        if found:
            start, kind = (start if kept else number), found[1]
            kept.append(found[2])


def block_docs(text: str) -> Iterator[tuple[int, str]]:
    """Yields each `/** … */` as its first line number and its text."""
    for found in re.finditer(r"/\*\*(?!/)(.*?)\*/", text, re.DOTALL):
        body = "\n".join(re.sub(r"^\s*\* ?", "", line) for line in found[1].splitlines())
        yield text.count("\n", 0, found.start()) + 1, body


def python_docs(text: str) -> Iterator[tuple[int, str]]:
    """Yields each string that is a statement of its own: docstrings, also of assignments."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def defined(pattern: str, lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yields the names that `pattern` finds in lines that are no comments."""
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith(("//", "*", "/*", "#")):
            continue
        for found in re.finditer(pattern, line):
            name = next(filter(None, found.groups()), "")
            if name and name not in NOT_FUNCTIONS:
                yield number, name


def read(path: str, text: str) -> Source:
    """Returns the documentation and the names in the text of a file."""
    language = LANGUAGES.get(Path(path).suffix, "c")
    lines = text.splitlines()
    docs = {"rust": lambda: rust_docs(lines), "python": lambda: python_docs(text)}.get(
        language, lambda: block_docs(text)
    )
    return Source(
        docs=[(line, " ".join(doc.split())) for line, doc in docs() if doc.strip()],
        types=list(defined(TYPES[language], lines)),
        functions=list(defined(FUNCTIONS[language], lines)),
        negated=[(number, line.strip()) for number, line in enumerate(lines, 1) for _ in NEGATED.finditer(line)],
    )


def is_bare(name: str, words: set[str], nouns: set[str]) -> bool:
    """Returns whether a name is one word that has no role: of the list, or a participle in -ed."""
    word = name.strip("_").lower()
    single = "_" not in name.strip("_") and not re.search(r"[a-z0-9][A-Z]", name)
    return single and word not in nouns and (word in words or re.fullmatch(r"\w{2,}[^e]ed", word) is not None)


def measure(files: dict[str, str], pages: str, table: dict) -> dict[str, Count]:
    """Returns the count of each measure over files by their paths, and over the text of the pages."""
    general, nouns = {*table["bare"]}, {*table["nouns"]}
    counts = {name: Count() for name in table["measures"]}

    def look(name: str, path: str, found: list[tuple[int, str]], is_wrong) -> None:
        counts[name].total += len(found)
        counts[name].places += [Place(path, line, text) for line, text in found if is_wrong(text)]

    for path, text in sorted(files.items()):
        source = read(path, text)
        look("relative", path, source.docs, lambda doc: RELATIVE.match(doc) is not None)
        look("short", path, source.docs, lambda doc: doc[0] not in "@#" and len(WORD.findall(doc)) <= 3)
        look("types", path, source.types, lambda name: is_bare(name, general | {*table["verbs"]}, nouns))
        look("functions", path, source.functions, lambda name: is_bare(name, general, nouns))
        look("negated", path, source.negated, lambda _: True)
    plain = " ".join(pages.lower().split())
    missing = [(0, word) for word in table["field"] if word not in plain]
    look("field", "docs", missing, lambda _: True)
    return counts


def tracked() -> dict[str, str]:
    """Returns the texts of the tracked sources by their paths."""
    listed = subprocess.run(["git", "ls-files", "--", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [path for path in listed.stdout.splitlines() if path.endswith(KINDS) and "tests" not in path.split("/")]
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in paths if (ROOT / path).is_file()}


def complaints(numbers: dict[str, float], table: dict) -> tuple[list[str], list[str]]:
    """Returns what fails, and the limits to lower."""
    risen, fallen = [], []
    for name, row in table["measures"].items():
        number, limit = numbers[name], row["limit"]
        if number > limit:
            risen.append(f"{name}: {number:g} exceeds the limit of {limit:g}: python tools/words.py --list {name}")
        elif number < limit:
            fallen.append(f"{name}: {number:g} is below its limit of {limit:g}: lower it in tools/words.json")
    return risen, fallen


def main() -> int:
    """Prints the measures, or the places of one."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail where a number is above its limit")
    parser.add_argument("--list", choices=table["measures"], metavar="MEASURE", help="print the places of a measure")
    parser.add_argument("folders", nargs="*", help="beginnings of paths to measure (all)")
    asked = parser.parse_args()
    files = {
        path: text for path, text in tracked().items() if not asked.folders or path.startswith(tuple(asked.folders))
    }
    pages = "\n".join(page.read_text(encoding="utf-8") for pattern in PAGES for page in sorted(ROOT.glob(pattern)))
    counts = measure(files, pages, table)
    if asked.list:
        for place in counts[asked.list].places:
            print(f"{place.path}:{place.line}: {place.text}")
        return 0
    numbers = {name: count.number(table["measures"][name]["unit"]) for name, count in counts.items()}
    for name, row in table["measures"].items():
        count, unit = counts[name], " %" if row["unit"] == "share" else ""
        of = f" ({len(count.places)} of {count.total})" if unit else ""
        print(f"{name:10} {numbers[name]:7g}{unit:2}  limit {row['limit']:g}, goal {row['goal']:g}: {row['of']}{of}")
    risen, fallen = complaints(numbers, table)
    if asked.check:
        print("\n".join([*risen, *fallen]))
    return 1 if asked.check and risen else 0


if __name__ == "__main__":
    sys.exit(main())
