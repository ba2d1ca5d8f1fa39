"""The clients of npm, in bun."""

from __future__ import annotations

import os
import subprocess
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
def test_client(base: str, key: str, name: str) -> None:
    assert BUN is not None
    told = {"TOKENTRIE_CLIENTS_URL": base, "TOKENTRIE_CLIENTS_KEY": key}
    done = subprocess.run([BUN, "test", f"./{name}.test.ts"], cwd=HERE, env={**os.environ, **told}, timeout=300)
    assert done.returncode == 0
