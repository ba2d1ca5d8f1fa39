"""The page says which versions were run: those of the lists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "serve.md"


@pytest.mark.skipif(not (HERE / "npm").is_dir(), reason="only a checkout has the lists")
def test_the_page_names_what_is_installed() -> None:
    lines = [line for path in HERE.glob("requirements*.txt") for line in path.read_text("utf-8").splitlines()]
    pinned = dict(re.findall(r"^([\w-]+)(?:\[\w+\])?==([\d.]+)$", "\n".join(lines), re.MULTILINE))
    npm = json.loads((HERE / "npm" / "package.json").read_text("utf-8"))["dependencies"]
    table = PAGE.read_text("utf-8").partition("## Clients")[2].partition("\n## ")[0]
    named = re.findall(r"^\| (npm: )?([@\w/-]+) \| ([\d.]+) \|", table, re.MULTILINE)
    assert {name for is_npm, name, _ in named if not is_npm} == {*pinned}
    assert {name for is_npm, name, _ in named if is_npm} <= {*npm}
    for is_npm, name, version in named:
        assert (npm if is_npm else pinned)[name] == version, name
