"""Modules of WebAssembly for tests that have no compiler for it."""

from __future__ import annotations

import base64
import json
from pathlib import Path

VECTORS = json.loads((Path(__file__).parent / "vectors" / "specs.json").read_text("utf-8"))["valid"]
IMEI, LETTERS = (base64.b64decode(case["spec"]["wasm"]) for case in VECTORS if "wasm" in case["spec"])
"""The example as AssemblyScript builds it, and texts of the letter a."""

STEP = bytes.fromhex("4200427f200141e100461b0b")
"""What `step` of LETTERS does."""


def stepping(code: str) -> bytes:
    """LETTERS with other code in `step`, in hexadecimal."""
    was, now = (bytes([len(body) + 1, 0]) + body for body in (STEP, bytes.fromhex(code)))
    found = LETTERS.replace(was, now)
    assert found != LETTERS
    # The size of the section of code, which comes after the exports.
    at = found.index(b"is_end\x00\x02\x0a") + len("is_end") + 3
    return found[:at] + bytes([found[at] + len(now) - len(was)]) + found[at + 1 :]
