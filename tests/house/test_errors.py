"""Every error type says of which kind it is, and hosts map kinds, not types."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CRATES = ROOT / "crates"
# It is published alone and knows no other crate; whoever renders says `Template`.
ALONE = "chat-template"
DERIVED = re.compile(r"thiserror::Error\)\]\n(?:.*\n)*?pub(?:\(\w+\))? (?:enum|struct) (\w+)")


def without_kind(source: str) -> list[str]:
    """Error types of a file that have no `fn kind`."""
    lacks = []
    for name in DERIVED.findall(source):
        block = rf"^impl(?:<\w+>)? {name}(?:<\w+>)? \{{\n(?:(?!\}}).*\n)*? *pub (?:const )?fn kind\("
        if f"error_kind!({name}, " not in source and not re.search(block, source, re.MULTILINE):
            lacks.append(name)
    return lacks


def test_every_error_has_a_kind() -> None:
    if not CRATES.is_dir():
        pytest.skip("these tests stand alone, without the sources")
    files = [path for path in CRATES.glob("*/src/**/*.rs") if path.relative_to(CRATES).parts[0] != ALONE]
    sources = {path.relative_to(CRATES): path.read_text(encoding="utf-8") for path in files}
    assert sum(len(DERIVED.findall(source)) for source in sources.values()) > 60
    lacks = {str(path): names for path, source in sources.items() if (names := without_kind(source))}
    assert not lacks, f"without fn kind(&self) -> ErrorKind: {lacks}"


def test_an_error_without_a_kind_is_found() -> None:
    error = "#[derive(Debug, thiserror::Error)]\n/// Why.\npub enum OneError {\n    No,\n}\n"
    assert without_kind(error) == ["OneError"]
    other = "\nimpl OtherError {\n    pub fn kind(&self) -> ErrorKind {\n"
    assert without_kind(error + other) == ["OneError"]
    kind = "\nimpl OneError {\n    pub fn at(&self) {\n    }\n\n    pub const fn kind(&self) -> ErrorKind {\n"
    assert without_kind(error + kind) == []
    assert without_kind(error + "crate::error_kind!(OneError, Rule);\n") == []


@pytest.mark.parametrize("file", ["tokentrie-c/src/error.rs", "tokentrie-py/src/errors/maps.rs"])
def test_a_host_matches_kinds_once(file: str) -> None:
    if not CRATES.is_dir():
        pytest.skip("these tests stand alone, without the sources")
    source = (CRATES / file).read_text(encoding="utf-8")
    kinds = re.findall(r"^    (\w+),$", (CRATES / "trie-core/src/work/error_kind.rs").read_text("utf-8"), re.MULTILINE)
    assert len(kinds) == 20
    # C has no receipts, and its last arm is that of models.
    missing = {kind for kind in kinds if f"ErrorKind::{kind}" not in source}
    assert missing <= {"Receipt", "Model", "Context", "Prompt"}, missing
