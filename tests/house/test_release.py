"""What can be said of a release without building it: one version everywhere, and licences that two tools agree on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "release"
pytestmark = pytest.mark.skipif(not TOOL.is_dir(), reason="only a checkout has the tool")
tomllib = pytest.importorskip("tomllib", reason="the tool needs Python 3.11")


def release(*steps: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, TOOL, *steps], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_there_is_one_version_and_the_changelog_has_it() -> None:
    code, said = release("version", "changelog")
    assert code == 0, said
    assert "FAULT" not in said


def test_an_unknown_step_is_named_with_those_that_there_are() -> None:
    code, said = release("upload")
    assert code == 1
    assert "no such step: upload; there are version, " in said


def test_licences_that_are_allowed_are_those_whose_texts_are_packed() -> None:
    allowed = tomllib.loads((ROOT / "deny.toml").read_text("utf-8"))["licenses"]["allow"]
    accepted = tomllib.loads((TOOL / "about" / "about.toml").read_text("utf-8"))["accepted"]
    assert sorted(allowed) == sorted(accepted)


def test_each_public_crate_has_what_a_package_needs() -> None:
    for manifest in ROOT.glob("crates/*/Cargo.toml"):
        if "publish" not in tomllib.loads(manifest.read_text("utf-8"))["package"]:
            assert (manifest.parent / "README.md").read_text("utf-8").startswith(f"# {manifest.parent.name}\n")
            for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
                assert (manifest.parent / licence).read_bytes() == (ROOT / licence).read_bytes()


def test_the_npm_package_takes_what_is_made_for_it() -> None:
    assert "papers" in json.loads((ROOT / "hosts" / "typescript" / "package.json").read_text("utf-8"))["files"]
