"""Prefix tables from text, mappings and files, weights, and the cases that Rust runs too."""

from __future__ import annotations

import copy
import json
import pickle
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokentrie
from support import VECTORS
from tokentrie import Batch, Sampler, TokenNotAllowedError, Trie
from tokentrie.errors import PayloadError, TokenTrieWarning, TrieError
from tokentrie.integrations.tree_decode import VARIABLE, load_tree_decode, tree_decode_config

CASES: list[dict[str, Any]] = json.loads((VECTORS / "tree_decode.json").read_text())["cases"]
N_VOCAB = 65_536
WEIGHTED = {"start_token_id": 1, "prefix_weight_dict": {"1": ["5:0.5", "6:-1"], "1_5": ["7:2", "2:0.25"]}}


def cases(kind: str) -> Any:
    return pytest.mark.parametrize("case", [pytest.param(c, id=c["id"]) for c in CASES if c["kind"] == kind])


def test_every_kind_of_case_is_run() -> None:
    assert {case["kind"] for case in CASES} == {"tree_trace", "config_load", "vocab_mask", "beam", "weighted_mask"}


@cases("tree_trace")
def test_trace(case: dict[str, Any]) -> None:
    if case["strict_error"] is None:
        assert Trie.from_prefix_table(case["config"]) == Trie.from_prefix_table(case["config"], strict=False)
    else:
        with pytest.raises(PayloadError, match=case["strict_error"]):
            Trie.from_prefix_table(case["config"])
    sampler = Sampler(N_VOCAB, Trie.from_prefix_table(json.dumps(case["config"]), strict=False), after="stop")
    for step in case["steps"]:
        if "feed" in step:
            before = sampler.depth
            try:
                sampler.accept(step["feed"])
            except TokenNotAllowedError:
                assert step["refused"]
                assert sampler.depth == before
            else:
                assert not step["refused"]
        assert sampler.allowed().tolist() == step["allowed"]
        assert (sampler.state == "complete") == step["finished"]


@cases("config_load")
@pytest.mark.parametrize("strict", [True, False])
def test_what_is_no_table(case: dict[str, Any], strict: bool, tmp_path: Path) -> None:
    text = case["json_text"]
    (tmp_path / "table.json").write_text(text)
    for table in (text, text.encode(), tmp_path / "table.json"):
        with pytest.raises(PayloadError) as error:
            Trie.from_prefix_table(table, strict=strict)
        assert ("line 1, column" in str(error.value)) == case["malformed"]
        assert "unreachable" not in case or f"{case['unreachable']} " in str(error.value)


@cases("vocab_mask")
def test_masks(case: dict[str, Any]) -> None:
    for tokens, allowed in zip(case["candidates"], case["allowed_per_row"], strict=True):
        if not tokens:
            with pytest.raises(TrieError):
                Trie.from_sequences([])
            continue
        words = np.full(case["vocab_size"] // 32, -1, np.int32)
        Sampler(case["vocab_size"], Trie.from_sequences([[token] for token in tokens])).fill_bitmask(words)
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        assert np.flatnonzero(bits).tolist() == allowed


@cases("beam")
def test_beams(case: dict[str, Any]) -> None:
    trie = Trie.from_prefix_table(case["config"])
    rows = Batch(trie, len(case["beam_feed"]), vocab=N_VOCAB)
    for tokens in zip(*case["beam_feed"], strict=True):
        rows.accept(list(tokens))
    rows.reorder(case["src_indices"])
    assert [rows.allowed(row).tolist() for row in range(len(rows))] == case["expect_allowed"]
    rows.accept(case["then_feed"])
    assert [rows.allowed(row).tolist() for row in range(len(rows))] == case["expect_after_allowed"]


@cases("weighted_mask")
def test_weighted_mask(case: dict[str, Any]) -> None:
    trie = Trie.from_prefix_table(case["config"])
    expected = np.array([float(value) for value in case["expect"]], np.float32)
    for one in (Sampler(case["vocab_size"], trie), Batch(trie, 1, vocab=case["vocab_size"])):
        row = np.array([case["logits"]], np.float32)
        one.apply(row)
        assert (row[0] == expected).all()


class Mine(Mapping[str, Any]):
    def __init__(self, inside: dict[str, Any]) -> None:
        self.inside = inside

    def __getitem__(self, key: str) -> Any:
        return self.inside[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.inside)

    def __len__(self) -> int:
        return len(self.inside)


def test_every_kind_of_input(tmp_path: Path) -> None:
    table = {"start_token_id": 1, "end_token_id": 0, "prefix_dict": {"1": [5, 6], "1_5": [0, 7]}}
    text = json.dumps(table)
    (tmp_path / "table.json").write_text(text)
    expected = Trie.from_sequences([[5], [5, 7], [6]]).with_end_tokens([0])
    for given in (table, Mine(table), text, text.encode(), tmp_path / "table.json"):
        assert Trie.from_prefix_table(given) == expected  # type: ignore[arg-type]
    for wrong in (None, 5, [1], object()):
        with pytest.raises(TypeError, match="mapping or a path"):
            Trie.from_prefix_table(wrong)  # type: ignore[arg-type]
    with pytest.raises(PayloadError, match="not JSON"):
        Trie.from_prefix_table({"prefix_dict": {"225": {1, 2}}})
    with pytest.raises(PayloadError, match=r"pathlib\.Path"):
        Trie.from_prefix_table(str(tmp_path / "table.json"))
    with pytest.raises(FileNotFoundError) as error:
        Trie.from_prefix_table(tmp_path / "none.json")
    assert error.value.filename == str(tmp_path / "none.json")
    with pytest.raises(IsADirectoryError):
        Trie.from_prefix_table(tmp_path)
    (tmp_path / "bad.json").write_text('{"prefix_dict": {"225": [1,\n oops]}}')
    with pytest.raises(PayloadError, match=r"bad\.json: prefix table, line 2, column 2"):
        Trie.from_prefix_table(tmp_path / "bad.json")


def test_the_report_counts() -> None:
    assert Trie.from_sequences([[1]]).report is None
    table = {"prefix_dict": {"225_7": [8, -1], "225_9_9": [3], "x": [1], "225_8": [-1], "225_7_8_2": [2]}}
    report = Trie.from_prefix_table(table, strict=False).report
    assert report is not None
    skipped = report.pop("skipped")
    assert report == {
        "weighted": False, "derived_root": True, "keys": 5, "ignored_keys": 0, "bad_keys": 1, "bad_ids": 2,
        "duplicate_keys": 0, "two_weights": 0, "unreachable": 1, "empty_values": 0, "dead_ends": 1, "after_end": 1,
    }  # fmt: skip
    assert any('"225_9_9"' in entry for entry in skipped)
    strict = Trie.from_prefix_table({"prefix_dict": {"225": [1]}}).report
    assert strict is not None
    assert strict["keys"] == 1
    assert strict["skipped"] == []


def test_weights_are_added_wherever_logits_are_read() -> None:
    trie = Trie.from_prefix_table(WEIGHTED)
    assert trie.is_weighted
    assert trie.weights().tolist() == [0.5, -1.0]
    assert (trie.weights([5]).tolist(), trie.end_weight([5]), trie.end_weight([6])) == ([2.0], 0.25, 0.0)
    row = np.array([0, 0, 0, 0, 0, 1.0, 2.0, 9.0], np.float32)
    assert Sampler(8, trie).sample(row) == 5  # 1.5 against 1.0
    assert Sampler(8, trie.without_weights()).sample(row) == 6
    rows = Batch(trie, 2, vocab=8)
    assert rows.select(np.stack([row, row])).tolist() == [5, 5]
    rows.accept([5, 6])
    masked = np.stack([row, row])
    rows.apply(masked)
    assert masked[0, [2, 7]].tolist() == [0.25, 11.0]
    assert np.isneginf(np.delete(masked[0], [2, 7])).all()
    half = np.stack([row, row]).astype(np.float16)
    rows.apply(half)
    assert (half.astype(np.float32) == masked).all()


def test_scores_with_weights() -> None:
    trie = Trie.from_prefix_table(WEIGHTED)
    row = np.array([[0, 0, 0, 0, 0, 1.0, 2.0, 9.0]], np.float32)
    log_sum = float(np.log(np.exp(row.astype(np.float64)).sum()))
    parents, tokens, scores = Batch(trie, 1, vocab=8).top_children(row, 5)
    assert (parents.tolist(), tokens.tolist()) == ([0, 0], [5, 6])
    np.testing.assert_allclose(scores, [1 - log_sum + 0.5, 2 - log_sum - 1], atol=1e-6)
    _, _, scores = Batch(trie, 1, vocab=8).top_children(row, 5, score="renormalised")
    shared = np.log(np.exp(1.5) + np.exp(1.0))
    np.testing.assert_allclose(scores, [1.5 - shared, 1.0 - shared], atol=1e-6)


def test_files_pickles_and_sets_keep_weights(tmp_path: Path) -> None:
    trie = Trie.from_prefix_table(WEIGHTED)
    trie.save(tmp_path / "set.ttrie")
    opened = Trie.open(tmp_path / "set.ttrie", verify=True)
    for same in (opened, pickle.loads(pickle.dumps(trie)), pickle.loads(pickle.dumps(opened)), copy.deepcopy(trie)):
        assert same == trie
        assert same.weights([5]).tolist() == [2.0]
    assert trie != trie.without_weights()
    one = trie.filter(lambda leaf: leaf.tokens == [5, 7])
    assert (one.weights().tolist(), one.weights([5]).tolist()) == ([0.5], [2.0])
    other = Trie.from_sequences([[6], [9]]).with_end_tokens([2])
    assert (other | trie).weights().tolist() == [0.5, 0.0, 0.0]
    assert (trie | other).weights().tolist() == [0.5, -1.0, 0.0]
    assert trie.with_end_tokens([9]).is_weighted


def test_where_weights_cannot_act_is_warned() -> None:
    trie = Trie.from_prefix_table(WEIGHTED)
    words = np.zeros((1, 1), np.int32)
    with pytest.warns(TokenTrieWarning, match="weights"):
        Sampler(8, trie).fill_bitmask(words)
    assert words[0, 0] == 1 << 5 | 1 << 6
    with pytest.warns(TokenTrieWarning, match="weights"):
        Batch(trie, 1, vocab=8).fill_bitmask(words)
    with pytest.warns(TokenTrieWarning, match="weights"):
        Batch(trie, 1, vocab=8).bitmask()


@pytest.mark.model
def test_models_generate_with_weights_and_choose_without(tiny_path: Path) -> None:
    model = tokentrie.Model(tiny_path)
    yes, no = (model.vocab.tokenize(text)[0] for text in ("yes", "no"))
    end = next(iter(model.vocab.eog))
    for heavy in (yes, no):
        table = {"end_token_id": end, "prefix_weight_dict": {"225": [f"{t}:{100 * (t == heavy)}" for t in (yes, no)]}}
        trie = Trie.from_prefix_table(table)
        assert model.generate("Answer yes or no: ", trie).tokens[0] == heavy
    with pytest.warns(TokenTrieWarning, match="weights"):
        choice = model.choose([yes], trie)
    plain = model.choose([yes], trie.without_weights())
    np.testing.assert_allclose(choice.logprobs, plain.logprobs)


def test_a_large_file_is_read_as_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("w") as out:
        out.write('{"prefix_dict": {"225": [' + ", ".join(map(str, range(1000, 1300))) + "]")
        for first in range(1000, 1300):
            out.write(f', "225_{first}": {list(range(3, 103))}')
            for second in range(3, 103):
                out.write(f', "225_{first}_{second}": [2]')
        out.write("}}")
    ticks, done = [], threading.Event()

    def count() -> None:
        while not done.wait(0.001):
            ticks.append(1)

    thread = threading.Thread(target=count)
    thread.start()
    trie = Trie.from_prefix_table(path)
    done.set()
    thread.join()
    assert (len(trie), trie.nodes) == (30_000, 30_301)
    assert len(ticks) > 0, "other threads ran meanwhile"


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_reading_can_be_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("w") as out:
        out.write('{"skipped": [')
        for _ in range(400):
            out.write("1, " * 100_000)
        out.write("1]}")

    class StopError(Exception):
        pass

    def stop(*_: object) -> None:
        raise StopError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(StopError):
            Trie.from_prefix_table(path)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_the_table_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    monkeypatch.delenv(VARIABLE, raising=False)
    assert tree_decode_config(folder) is None
    assert load_tree_decode(folder) is None
    monkeypatch.setenv(VARIABLE, "")
    assert tree_decode_config(folder) is None
    monkeypatch.setenv(VARIABLE, "tables/tree.json")
    with pytest.raises(FileNotFoundError, match=r"TREE_DECODE_CONFIG is 'tables/tree\.json'"):
        tree_decode_config(folder)
    (folder / "tables").mkdir()
    (folder / "tables" / "tree.json").write_text('{"prefix_dict": {"225": [7], "225_8": [9]}}')
    assert tree_decode_config(str(folder)) == folder / "tables" / "tree.json"
    (folder / "model.gguf").write_bytes(b"")
    assert tree_decode_config(folder / "model.gguf") == folder / "tables" / "tree.json"
    with pytest.raises(PayloadError, match=r"tree\.json.*225_8"):
        load_tree_decode(folder)
    trie = load_tree_decode(folder, strict=False)
    assert trie is not None
    assert [leaf.tokens for leaf in trie] == [[7]]
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text('{"prefix_dict": {"225": [7, 8]}}')
    assert tree_decode_config(folder, environ={VARIABLE: str(elsewhere)}) == elsewhere
    with pytest.raises(FileNotFoundError, match="a folder"):
        tree_decode_config(folder, environ={VARIABLE: "tables"})
