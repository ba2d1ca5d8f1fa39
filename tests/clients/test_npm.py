"""The clients of npm, in bun."""

from __future__ import annotations

import os
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "npm"
BUN = os.environ.get("TOKENTRIE_BUN")

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(
        BUN is None or not (HERE / "node_modules").is_dir(),
        reason="the clients of npm are not installed: ./dev clients",
    ),
]


@pytest.mark.parametrize("name", [path.stem.removesuffix(".test") for path in sorted(HERE.glob("*.test.ts"))])
def test_client(base: str, key: str, name: str, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    assert BUN is not None
    told = {"TOKENTRIE_CLIENTS_URL": base, "TOKENTRIE_CLIENTS_KEY": key}
    report = tmp_path / "report.xml"
    command = [BUN, "test", f"./{name}.test.ts", "--timeout=60000", "--reporter=junit", f"--reporter-outfile={report}"]
    done = subprocess.run(command, cwd=HERE, env={**os.environ, **told}, timeout=300)
    # A file holds several programs.
    ends: dict[str, str | None] = {}
    for case in ET.parse(report).iter("testcase"):
        failure = case.find("failure")
        within = f"{group}: " if (group := case.get("classname")) else ""
        ends[within + case.attrib["name"]] = None if failure is None else failure.get("message", "failed")
    record_property("programs", ends)
    assert done.returncode == 0
