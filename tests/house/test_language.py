"""The measures of names and comments find what they should, and nothing else."""

from __future__ import annotations

import copy
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "words.py"
pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="only a checkout has the tools")


@pytest.fixture(scope="module")
def words() -> ModuleType:
    spec = importlib.util.spec_from_file_location("words", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["words"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def table() -> dict[str, Any]:
    return json.loads(SCRIPT.with_suffix(".json").read_text(encoding="utf-8"))


RUST = """\
//! What a module is.

/// Whether it holds:
/// on two lines.
pub(crate) struct Told<'a>;

/// Returns the tokens that are allowed here.
// A `struct Taken` in a comment is none. There is no other.
struct PromptTools;
enum Does { Shift }
type Held = u8;

impl Iterator for PromptTools {
    type Over = u8;
    /// Two words.
    fn begun(&self) {}
    fn allowed_tokens(&self) -> Option<u8> { fail("\\"x\\" is no tool, it is no longer one") }
    fn needed() {}
    fn seed() {}
}
"""

PYTHON = '''\
"""Of a module."""

LIMIT = 1
"""Whatever a limit is about."""


class Asked:
    """Arguments of a call of the chat."""

    async def made(self) -> str:
        """Returns what it makes."""
        return "What no docstring says"
'''

TYPESCRIPT = """\
/**
 * Where a session
 * stands.
 */
export class Kept<T> {
  /** Frees the memory of the session. */
  async taken(count: number) {
    it("is a call", () => {});
  }
}
export function over() {}
"""

HEADER = """\
/**
 * How many there are.
 */
typedef struct tokentrie_row {
  uint32_t size;
} tokentrie_row;
int32_t after(void);
"""

FOUND = [
    ("relative", {"a.rs:1", "a.rs:3", "b.py:1", "b.py:4", "c.ts:1", "d.h:1"}, 11),
    ("short", {"a.rs:15", "b.py:1"}, 11),
    ("types", {"a.rs:5", "a.rs:10", "a.rs:11", "b.py:7", "c.ts:5"}, 7),
    ("functions", {"a.rs:16", "a.rs:18", "b.py:10", "c.ts:7", "c.ts:11", "d.h:7"}, 8),
    ("negated", {"a.rs:17"}, 1),
]


@pytest.mark.parametrize(("measure", "places", "total"), FOUND)
def test_each_measure_finds_its_places(
    words: ModuleType, table: dict[str, Any], measure: str, places: set[str], total: int
) -> None:
    files = {"a.rs": RUST, "b.py": PYTHON, "c.ts": TYPESCRIPT, "d.h": HEADER}
    count = words.measure(files, "", table)[measure]
    assert {f"{place.path}:{place.line}" for place in count.places} == places
    assert count.total == total


def test_words_of_the_field_are_looked_for_over_line_ends(words: ModuleType, table: dict[str, Any]) -> None:
    table["field"] = ["token mask", "dead end"]
    count = words.measure({}, "A Token\n  mask is a bitset.", table)["field"]
    assert [place.text for place in count.places] == ["dead end"]


def test_a_rise_fails_and_a_fall_asks_to_lower_the_limit(words: ModuleType, table: dict[str, Any]) -> None:
    numbers = {name: row["limit"] for name, row in table["measures"].items()}
    assert words.complaints(numbers, table) == ([], [])
    for name in numbers:
        risen, fallen = words.complaints({**numbers, name: numbers[name] + 0.1}, table)
        assert [name in line and "exceeds the limit" in line for line in risen] == [True]
        assert fallen == []
        risen, fallen = words.complaints({**numbers, name: numbers[name] - 0.1}, table)
        assert [name in line and "lower it" in line for line in fallen] == [True]
        assert risen == []


def test_shares_are_in_per_cent_and_counts_are_whole(words: ModuleType, table: dict[str, Any]) -> None:
    lines = [f"/// Returns the number {number} of a row.\nfn number() {{}}\n" for number in range(399)]
    counts = words.measure({"a.rs": "".join([*lines, "/// What a row of it is.\n"])}, "", copy.deepcopy(table))
    assert counts["relative"].number("share") == 0.2
    assert counts["relative"].number("count") == 1


def test_the_sources_keep_to_the_limits() -> None:
    run = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_places_are_listed_by_folder() -> None:
    command = [sys.executable, SCRIPT, "--list", "types", "crates/trie-core/"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert all(line.startswith("crates/trie-core/") for line in run.stdout.splitlines())
