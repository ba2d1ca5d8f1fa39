"""A server for the programs of real clients. `./dev clients` installs the clients and runs these tests; elsewhere each
file is skipped where its client is not installed.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

# The environments of clients read no other file like this one.
sys.path.insert(0, str(Path(__file__).parents[1]))

from serve.server import KEY, serving

#: The server that is asked instead of ours, such as llama.cpp's own; it must take the key of these tests.
OTHER = os.environ.get("TOKENTRIE_CLIENTS_URL")
#: Where to write how each program ended, beside what is there: no environment has all clients.
OUTCOMES = os.environ.get("TOKENTRIE_CLIENTS_OUTCOMES")


@pytest.fixture(scope="session")
def base() -> Iterator[str]:
    """Where the server is, without /v1."""
    if OTHER:
        asked = urllib.request.Request(f"{OTHER}/v1/models", headers={"authorization": f"Bearer {KEY}"})
        try:
            urllib.request.urlopen(asked, timeout=60).close()
        except OSError as error:
            pytest.exit(f"{asked.full_url}: {error}", returncode=4)
        yield OTHER
        return
    with serving(interpreter=os.environ.get("TOKENTRIE_PYTHON")) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture
def key() -> str:
    """What requests bring."""
    return KEY


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if OUTCOMES and report.when == "call" and not report.skipped and "base" in getattr(item, "fixturenames", ()):
        crash = getattr(report.longrepr, "reprcrash", None)
        why = None if report.passed else crash.message if crash else str(report.longrepr)
        told: dict[str, Any] = dict(report.user_properties)
        within: dict[str, str | None] = told.get("programs", {})
        note({f"{item.nodeid}::{name}": one for name, one in within.items()} or {item.nodeid: why})
    return report


def note(outcomes: dict[str, str | None]) -> None:
    """Writes why each program failed, or that it passed."""
    path = Path(OUTCOMES or "")
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    known |= {name: "passed" if why is None else f"failed: {why[:600]}" for name, why in outcomes.items()}
    path.write_text(json.dumps(known, ensure_ascii=False, indent=1, sort_keys=True) + "\n", "utf-8")
