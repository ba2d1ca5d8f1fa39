"""The cases that every implementation must pass, read from the same file as the Rust tests."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from support import VECTORS, payload
from tokentrie import Sampler, TokenTrieError, Trie
from tokentrie.errors import TokenTrieWarning
from tokentrie.sets import TrieCache

CASES: list[dict[str, Any]] = json.loads((VECTORS / "payload_and_sampler.json").read_text())["cases"]
N_VOCAB = 1000


def cases(kind: str) -> Any:
    return pytest.mark.parametrize("case", [pytest.param(c, id=c["id"]) for c in CASES if c["kind"] == kind])


def test_every_kind_of_case_is_run() -> None:
    assert {case["kind"] for case in CASES} == {"build_trie", "build_descriptor", "sampler_script", "cache"}


@cases("build_trie")
def test_trie(case: dict[str, Any]) -> None:
    leaves, expect = case["input"]["leaves"], case["expect"]
    trie = Trie.from_sequences([leaf["tokens"] for leaf in leaves], [leaf["name"] for leaf in leaves])
    assert len(trie) == expect["terminals"]
    assert trie.nodes == expect["node_count_including_root"]
    # The estimate describes another implementation's structure: the package has no function for it, nbytes is exact.
    assert 80 * trie.nodes + 16 * (trie.nodes - 1) == expect["estimate_bytes"]
    for node in expect["nodes"]:
        check_node(trie, node)


def check_node(trie: Trie, node: dict[str, Any]) -> None:
    prefix = node["path"]
    if not node["exists"]:
        with pytest.raises(TokenTrieError, match=str(prefix[-1])):
            trie.allowed(prefix)
        return
    assert trie.allowed(prefix).tolist() == node["children"]
    index = trie.find(prefix)
    assert (index is not None) == node["is_terminal"] == (prefix in trie)
    if index is not None:
        leaf = trie.leaf(index)
        assert leaf is not None
        assert (leaf.name, leaf.tokens) == (node["leaf_name"], prefix)
    # "Unique continuation" is said of leaves: it holds where the leaf cannot go on.
    assert node["unique_continuation"] == (index is not None and not node["children"])


@cases("build_descriptor")
def test_descriptor(case: dict[str, Any]) -> None:
    asked, expect = case["input"], case["expect"]
    sampler = Sampler(N_VOCAB, payload({name: asked["token_map"][name] for name in asked["names"]}, asked["path"]))
    assert sampler.path == expect["path"]
    by_name = sorted((leaf.name, leaf.tokens) for leaf in sampler.trie)
    assert by_name == [(leaf["name"], leaf["tokens"]) for leaf in expect["leaves"]]


class Script:
    """Runs the steps of one case. A step that needs a fresh sampler replays what came before it."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.mode = script["mode"]
        self.payload = script.get("payload_text") or json.dumps(script["payload"])
        self.n_vocab = N_VOCAB
        self.replay: list[tuple[str, list[Any]]] = []
        self.sampler: Sampler | None = None

    def make(self, **settings: Any) -> Sampler:
        sampler = Sampler(self.n_vocab, self.payload, mode=self.mode, **settings)
        for method, arguments in self.replay:
            getattr(sampler, method)(*arguments)
        return sampler

    def row(self, candidates: list[list[Any]]) -> np.ndarray:
        row = np.full(self.n_vocab, -np.inf, np.float32)
        for token, logit in candidates:
            row[token] = logit
        return row

    def step(self, step: dict[str, Any]) -> None:
        getattr(self, step["op"])(step)

    def init(self, step: dict[str, Any]) -> None:
        self.n_vocab = step.get("options", {}).get("n_vocab", N_VOCAB)
        if step["expect"] == "null":
            with pytest.raises(TokenTrieError):
                self.make()
        elif step.get("expect_warning"):
            with pytest.warns(TokenTrieWarning, match="outside the vocabulary"):
                self.sampler = self.make()
        else:
            self.sampler = self.make()

    def change(self, method: str, *arguments: Any) -> None:
        assert self.sampler is not None
        getattr(self.sampler, method)(*arguments)
        self.replay.append((method, list(arguments)))

    def accept(self, step: dict[str, Any]) -> None:
        self.change("accept", step["token"])

    def reset(self, step: dict[str, Any]) -> None:
        self.change("reset")

    def activate(self, step: dict[str, Any]) -> None:
        self.change("activate", step["path"])

    def apply(self, step: dict[str, Any]) -> None:
        assert self.sampler is not None
        row = self.row(step["candidates"])
        self.sampler.apply(row)
        for token, logit in step["expect_logit_by_id"].items():
            assert row[int(token)] == float(logit)

    def chain_sample(self, step: dict[str, Any]) -> None:
        row = self.row(step["candidates"])
        temperatures = [float(link.removeprefix("temp:")) for link in step["chain"] if link.startswith("temp:")]
        settings = {"temperature": temperatures[0]} if temperatures else {}
        drawn: Counter[int] = Counter()
        for seed in range(step["seeds"]):
            with warnings.catch_warnings():
                # A greedy sampler has no use for the temperature of a chain, and says so.
                warnings.simplefilter("ignore", TokenTrieWarning)
                drawn[self.make(seed=seed, **settings).sample(row)] += 1
        assert set(drawn) == ({step["expect_all"]} if "expect_all" in step else set(step["expect_support"]))
        assert min(drawn.values()) >= step.get("expect_min_count_each", 1)

    def state(self, step: dict[str, Any]) -> None:
        assert self.sampler is not None
        expect = step["expect"]
        assert (self.sampler.state == "active") == expect["active"]
        assert self.sampler.leaf is not None
        assert self.sampler.leaf.name == expect["completed_leaf"]


@cases("sampler_script")
def test_script(case: dict[str, Any]) -> None:
    script = Script(case["input"])
    for step in case["input"]["steps"]:
        script.step(step)


@cases("cache")
def test_cache(case: dict[str, Any]) -> None:
    session = TrieCache()
    asked, expect = case["input"], case["expect"]
    if "payload_text" in asked:
        text = asked["payload_text"]
        assert hashlib.sha256(text.encode()).hexdigest() == expect["sha256_hex_of_bytes"]
        first, second = session.sampler(N_VOCAB, text), session.sampler(N_VOCAB, text)
        assert first.trie == second.trie
        assert (session.cache_info().hits, session.cache_info().misses) == (1, 1)
    elif "inits" in asked:
        tries = {session.sampler(N_VOCAB, text).trie for text in asked["inits"]}
        assert len(tries) == expect["distinct_tries"]
    else:
        original = session.sampler(N_VOCAB, payload({"A": [1, 2]}))
        clone = original.clone()
        del original, session
        clone.accept([1, 2])
        assert clone.leaf is not None
        del clone
