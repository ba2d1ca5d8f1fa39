"""Receipts on the command line: `generate --receipt` writes one, `verify` checks it."""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path

import pytest
from test_cli import Terminal, run

__all__ = ["run"]

pytestmark = pytest.mark.model

SOURCES = {
    "choices": ["--choices", "open,closed"],
    "regex": ["--regex", "[0-9]{3}"],
    "grammar": ["--grammar", "arithmetic"],
    "schema": ["--json-schema", '{"enum": ["a", "b"]}'],
    "spec": ["--constraint", '{"then": [{"integer": {"min": 1, "max": 9}}, " kg"]}'],
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("keyed", [False, True])
def test_what_was_written_holds(run: Terminal, tmp_path: Path, name: str, keyed: bool) -> None:
    receipt, key, source = tmp_path / "r.json", tmp_path / "key", SOURCES[name]
    key.write_bytes(b"\x00key\n")
    sealed = ["--receipt-key", str(key)] if keyed else []
    run("generate", "--prompt", "The door is", *source, "--max-tokens", "6", "--receipt", str(receipt), *sealed)
    told = json.loads(receipt.read_text())
    given = ["--key", str(key)] if keyed else []
    code, out, _ = astuple(run("verify", str(receipt), *source, *given))
    assert code == 0
    assert out.startswith(f"the receipt holds: {len(told['steps'])} tokens")
    code, out, _ = astuple(run("verify", str(receipt), *source, *given, "--json"))
    assert json.loads(out)["keyed"] is keyed
    told["steps"][0]["token"] += 1
    receipt.write_text(json.dumps(told))
    code, _, err = astuple(run("verify", str(receipt), *source, *given))
    assert (code, err.count("\n")) == (1, 1)
    assert f"{receipt}: the seal does not fit" in err


def test_wrong_usage(run: Terminal, tmp_path: Path) -> None:
    code, _, err = astuple(run("generate", "--prompt", "a", "--choices", "a,b", "--receipt-key", "k"))
    assert (code, "give --receipt" in err) == (2, True)
    code, _, err = astuple(run("verify", str(tmp_path / "none.json")))
    assert (code, "none.json" in err) == (1, True)
    (tmp_path / "r.json").write_text("{}")
    code, _, err = astuple(run("verify", str(tmp_path / "r.json")))
    assert (code, "no receipt: missing field" in err) == (1, True)
    code, _, err = astuple(run("verify", str(tmp_path / "r.json"), "--regex", "a", "--choices", "a,b"))
    assert code == 2
