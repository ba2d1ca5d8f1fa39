"""The same payload gives the same trie as in TypeScript and Rust: they read the same file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import VECTORS
from tokentrie import Trie
from tokentrie.errors import PayloadError

CASES: list[dict[str, Any]] = json.loads((VECTORS / "host_tries.json").read_text())["cases"]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_the_same_payload_gives_the_same_trie(case: dict[str, Any]) -> None:
    payload = case["payload_text"] if "payload_text" in case else case["payload"]
    if case.get("error"):
        with pytest.raises(PayloadError):
            Trie.from_payload(payload)
        return
    for expect in case["tries"]:
        trie = Trie.from_payload(payload, expect["path"])
        assert trie.nodes == expect["nodes"]
        assert [{"name": leaf.name, "tokens": list(leaf.tokens)} for leaf in trie] == expect["leaves"]
        for at in expect["at"]:
            assert trie.allowed(at["prefix"]).tolist() == at["children"]
            assert trie.forced(at["prefix"]).tolist() == at["forced"]


def test_the_first_usable_descriptor_is_taken() -> None:
    for case in CASES:
        if not case.get("error"):
            payload = case["payload_text"] if "payload_text" in case else case["payload"]
            assert len(Trie.from_payload(payload)) == len(case["tries"][0]["leaves"])
