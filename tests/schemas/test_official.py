"""The official suite of JSON Schema, draft by draft: never fewer schemas right than before, and none too loose.

It is not part of this repository: `python tests/schemas/official.py --fetch` downloads it, or TOKENTRIE_SCHEMA_SUITE
names its folder.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("jsonschema")

from exact import DRAFTS
from official import count, found

HELD = json.loads(Path(__file__).with_name("held.json").read_text("utf-8"))
"""How many schemas of each draft are right, and how many are refused: `official.py --ratchet` writes them."""


@pytest.mark.parametrize("draft", DRAFTS)
def test_no_schema_is_held_worse_than_before(draft: str) -> None:
    folder = found()
    if folder is None:
        pytest.skip("the official suite is not here: python tests/schemas/official.py --fetch")
    counts, others = count(folder, draft)
    assert not [other for other in others if "loose" in other[0]]
    worse = [other for other in others if other[0] != "refused"]
    assert counts["right"] >= HELD[draft]["right"], worse
    assert counts["refused"] <= HELD[draft]["refused"], [other for other in others if other[0] == "refused"]
