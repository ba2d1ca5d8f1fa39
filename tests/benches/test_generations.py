"""Whole generations side by side: small runs of the real thing, the report, and the parts that it rests on."""

from __future__ import annotations

import json
import platform
import re
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import tokentrie
from budget import cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import GRAMMAR_ALPHABETS, payload
from tokentrie import Model

pytest.importorskip("benches.generations", reason="only a checkout has the benchmarks")

from benches.generations import engines, measure, sets
from benches.generations.__main__ import main
from benches.generations.engines import FREE, GRAMMAR, LLGUIDANCE, NO_SKIP, TRIE
from benches.generations.figures import DEFINITIONS, Row
from benches.generations.report import COLUMNS, record

CONTRACT = {
    "mode": str,
    "model": str,
    "skip_ratio_mean": float,
    "skip_ratio_std": float,
    "tokens_per_second": float,
    "tokens_per_second_vs_grammar": float,
    "token_accuracy": float,
    "value_accuracy": float,
    "mask_ratio": float,
    "forced_ratio": float,
    "branch_points": int,
    "forward_passes_saved": int,
    "forward_passes_total": int,
    "latency_per_token_us_p50": float,
    "latency_per_token_us_p99": float,
    "own_us_per_token_p50": float,
}

CONTRACT_OF_ONE = [
    "mode",
    "model",
    "skip_ratio_mean",
    "skip_ratio_std",
    "tokens_per_second",
    "tokens_per_second_vs_grammar",
    "token_accuracy",
    "forward_passes_saved",
    "forward_passes_total",
]

Bench = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Measures in this process, with one thread: gives exit code and report."""

    def call(*args: str | Path) -> tuple[int, dict[str, Any]]:
        path = tmp_path / "report.json"
        code = main(["--threads", "1", "-o", str(path), *map(str, args)])
        return code, json.loads(path.read_text(encoding="utf-8"))

    return call


@pytest.fixture(scope="module")
def model(tiny_path: Path) -> Model:
    return Model(tiny_path, n_ctx=1024, n_threads=1)


@pytest.fixture(scope="module")
def report(tiny_path: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every mode on a plain set and a form."""
    path = tmp_path_factory.mktemp("bench") / "report.json"
    args = ["--threads", "1", "--repeats", "2", "--set", "30-tools", "--set", "form", "-o", str(path)]
    assert main(args) == 0
    assert [entry.name for entry in path.parent.iterdir()] == ["report.json"]
    document = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def row_of(report: dict[str, Any], mode: str, name: str = "30-tools") -> dict[str, Any]:
    (row,) = [row for row in report["rows"] if (row["mode"], row["set"]) == (mode, name)]
    assert isinstance(row, dict)
    return row


@pytest.mark.model
class TestReport:
    def test_has_what_the_contract_names(self, report: dict[str, Any]) -> None:
        row = row_of(report, TRIE)
        assert row["status"] == "ok"
        assert {name: type(row[name]) for name in CONTRACT} == CONTRACT
        assert row["model"] == "tiny.gguf"

    def test_a_figure_or_a_reason(self, report: dict[str, Any]) -> None:
        names = {entry.name for entry in fields(Row)}
        for row in report["rows"]:
            assert set(row) == names
            if row["status"] == "ok":
                missing = {name for name, value in row.items() if value is None} - {"reason"}
                assert missing == set(row["reasons"])
                assert all(row["reasons"].values())
            else:
                assert row["status"] == "skipped"
                assert row["reason"]
                assert row["tokens_per_second"] is row["latency_per_token_us_p50"] is None

    def test_defines_its_figures(self, report: dict[str, Any]) -> None:
        assert report["definitions"] == DEFINITIONS
        assert all(report["definitions"].values())
        assert {row["mode"] for row in report["rows"]} == set(report["modes"])

    def test_says_where_it_comes_from(self, report: dict[str, Any]) -> None:
        assert report["versions"]["tokentrie"] == tokentrie.__version__
        assert re.fullmatch(r"\d+\.\d+\.\d+", report["versions"]["llama-cpp-2"])
        assert report["machine"]["threads"] == report["loaded"]["n_threads"] == 1
        assert {"cpu", "cores", "system", "load"} <= report["machine"].keys()
        assert re.match(r"20\d\d-\d\d-\d\dT", report["date"])
        assert report["command"].startswith("python -m benches.generations")
        assert [one["name"] for one in report["sets"]] == ["30-tools", "form"]
        assert [one["values"] for one in report["sets"]] == [30, 8 * 4 * 12]
        assert all(len(one["prompts"]) == 4 for one in report["sets"])

    def test_skip_ahead_saves_what_is_forced(self, report: dict[str, Any]) -> None:
        skip, whole = row_of(report, TRIE), row_of(report, NO_SKIP)
        assert skip["forward_passes_total"] == skip["branch_points"] == whole["branch_points"]
        assert skip["forward_passes_saved"] == skip["tokens"] - skip["branch_points"]
        assert whole["forward_passes_total"] == whole["tokens"] == skip["tokens"]
        assert whole["forward_passes_saved"] == whole["skip_ratio_mean"] == 0
        assert [entry["text"] for entry in skip["outputs"]] == [entry["text"] for entry in whole["outputs"]]
        assert skip["forced_ratio"] == pytest.approx(skip["forward_passes_saved"] / skip["tokens"])
        assert 0.9 < skip["mask_ratio"] < 1
        form = row_of(report, TRIE, "form")
        assert form["forced_ratio"] > 0.8
        assert form["forward_passes_total"] <= form["branch_points"]
        assert row_of(report, NO_SKIP, "form")["reason"] == "a form always skips ahead"

    def test_modes_are_compared(self, report: dict[str, Any]) -> None:
        trie, grammar, free = (row_of(report, mode) for mode in (TRIE, GRAMMAR, FREE))
        ratio = trie["tokens_per_second"] / grammar["tokens_per_second"]
        assert trie["tokens_per_second_vs_grammar"] == pytest.approx(ratio)
        assert grammar["tokens_per_second_vs_grammar"] is None
        assert free["tokens"] <= trie["tokens"]
        assert free["mask_ratio"] == free["forced_ratio"] == 0
        texts = [{entry["prompt"]: entry["text"] for entry in row["outputs"]} for row in (trie, grammar)]
        assert trie["value_accuracy"] == sum(texts[0][n] == texts[1][n] for n in range(4)) / 4
        assert 0 < trie["token_accuracy"] <= 1

    def test_figures_agree_with_each_other(self, report: dict[str, Any]) -> None:
        for row in report["rows"]:
            if row["status"] == "ok":
                assert row["generations"] == row["generations_planned"] == 8
                assert row["prompts"] == 4
                assert row["latency_per_token_us_min"] <= row["latency_per_token_us_p50"]
                assert row["latency_per_token_us_p50"] <= row["latency_per_token_us_p99"]
                assert row["generation_us_p50"] < row["whole_us_p50"]
                assert 0 < row["tokens_per_second_whole"] < row["tokens_per_second"] <= row["tokens_per_second_best"]

    def test_llguidance_is_skipped_where_it_is_not_built_in(self, report: dict[str, Any]) -> None:
        row = row_of(report, LLGUIDANCE)
        if row["status"] == "ok":
            pytest.skip("this build has llguidance")
        assert (row["status"], row["generations"]) == ("skipped", 0)
        assert "without llguidance" in row["reason"]


@pytest.mark.model
class TestCommand:
    def test_a_table_for_records(self, report: dict[str, Any]) -> None:
        lines = record(report).splitlines()
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
        assert cells[0] == ["set", "mode", *COLUMNS]
        assert {len(row) for row in cells} == {2 + len(COLUMNS)}
        by_mode = {(row[0], row[1]): row[2:] for row in cells[2:]}
        for row in report["rows"]:
            if row["generations"]:
                shown = dict(zip(COLUMNS, by_mode[row["set"], row["mode"]], strict=True))
                assert float(shown["tokens/s"].replace(",", "")) == pytest.approx(row["tokens_per_second"], rel=0.01)
                assert shown["passes"] == str(row["forward_passes_total"])
        assert "- form, strict-trie-ffi, no skip: skipped: a form always skips ahead" in lines

    def test_one_mode_on_a_payload(self, bench: Bench, tmp_path: Path) -> None:
        names, asked = tmp_path / "names.json", tmp_path / "prompts.jsonl"
        document = payload({"A": [40, 41, 42], "B": [40, 41, 43], "out": [10**6]})
        document["descriptors"] += payload({"bytes": [40, 41], "more": [40, 41, 44]}, path="x[]")["descriptors"]
        names.write_text(json.dumps(document))
        asked.write_text('"Hi there"\n\n{"prompt": "One more", "id": 7}\n')
        args = ["--mode", "strict-trie-ffi", "--token-tree-descriptor", names, "--prompt", asked, "--repeats", "1"]
        code, report = bench(*args)
        assert code == 0
        assert [one["name"] for one in report["sets"]] == ["action", "x[]"]
        assert [one["text"] for one in report["sets"][0]["prompts"]] == ["Hi there", "One more"]
        assert {row["mode"] for row in report["rows"]} == {TRIE, NO_SKIP, GRAMMAR}
        assert "dropped 1 leaf" in report["warnings"][0]
        row = row_of(report, TRIE, "action")
        assert (row["branch_points"], row["forward_passes_total"], row["tokens"]) == (2, 2, 6)
        assert row["reasons"]["tokens_per_second_vs_unconstrained"] == "unconstrained was not asked for"
        assert row_of(report, TRIE, "x[]")["branch_points"] == 2

    def test_one_mode_and_one_set_stand_at_the_top(self, bench: Bench, report: dict[str, Any]) -> None:
        args = ["--mode", "strict-trie-ffi", "--set", "8-actions", "--repeats", "1"]
        document = bench(*args)[1]
        row = row_of(document, TRIE, "8-actions")
        types = [type(document[name]) for name in CONTRACT_OF_ONE]
        assert types == [str, str, float, float, float, float, float, int, int]
        assert {name: document[name] for name in CONTRACT_OF_ONE} == {name: row[name] for name in CONTRACT_OF_ONE}
        assert (document["model"], document["status"], document["reason"]) == ("tiny.gguf", "ok", None)
        assert list(document)[:9] == CONTRACT_OF_ONE
        skipped = bench("--mode", "llguidance", "--set", "form", "--repeats", "1")[1]
        if skipped["status"] != "ok":
            assert skipped["tokens_per_second"] is None
            assert "without llguidance" in skipped["reason"]
        assert not set(CONTRACT_OF_ONE) & report.keys(), "of several modes and sets none is the one"

    def test_a_set_of_one_value_needs_no_model(self, bench: Bench, tmp_path: Path) -> None:
        only = tmp_path / "only.json"
        only.write_text(json.dumps(payload({"only": [40, 41, 42]})))
        code, report = bench("--token-tree-descriptor", only, "--repeats", "1")
        row = row_of(report, TRIE, "action")
        assert (code, row["status"], row["tokens"]) == (0, "ok", 4 * 3)
        assert row["branch_points"] == row["forward_passes_total"] == row["generation_us_p50"] == 0
        assert row["tokens_per_second_whole"] > 0
        for name in ("tokens_per_second", "tokens_per_second_vs_grammar", "tokens_per_forward_pass"):
            assert row[name] is None
            assert row["reasons"][name]

    def test_text_that_no_grammar_can_spell(self, bench: Bench, model: Model, tmp_path: Path) -> None:
        vocab = model.vocab
        half = next([token] for token in range(len(vocab)) if vocab[token] == b"\xc3")
        for tokens, reason in ((half, "not UTF-8"), (vocab.tokenize("\0"), "NUL")):
            odd = tmp_path / "odd.json"
            odd.write_text(json.dumps(payload({"odd": tokens, "plain": vocab.tokenize("plain")})))
            report = bench("--token-tree-descriptor", odd, "--repeats", "1", "--mode", "strict-trie-ffi")[1]
            row = row_of(report, GRAMMAR, "action")
            assert row["status"] == "skipped"
            assert reason in row["reason"]
            assert row_of(report, TRIE, "action")["status"] == "ok"

    def test_a_budget(self, bench: Bench) -> None:
        args = ["--mode", "strict-guided", "--set", "8-actions", "--repeats", "10000"]
        row = bench(*args, "--budget", "0.5")[1]["rows"][0]
        assert row["status"] == "partial"
        assert 0 < row["generations"] < row["generations_planned"] == 40_000
        assert f"{row['generations']} of 40000 generations" in row["reason"]
        assert row["tokens_per_second"] > 0
        code, report = bench(*args, "--budget", "0")
        row = report["rows"][0]
        assert (code, row["status"], row["tokens_per_second"]) == (0, "skipped", None)
        assert "no generation finished" in row["reason"]

    def test_a_check_that_fails_is_an_error_row(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        real = measure.walk
        more = lambda *args: measure.Walk(real(*args).branch_points + 1, [])  # noqa: E731
        monkeypatch.setattr(measure, "walk", more)
        code, report = bench("--mode", "strict-trie-ffi", "--set", "8-actions", "--repeats", "1")
        assert code == 1
        for row in report["rows"]:
            assert row["status"] == "error"
            assert re.search(r"\d forward passes and not \d for \d branch points in '\w+'", row["reason"])

    def test_a_grammar_that_leaves_the_set_is_an_error_row(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engines, "gbnf", lambda _: 'root ::= "never"')
        code, report = bench("--mode", "strict-guided", "--set", "8-actions", "--repeats", "1")
        (row,) = report["rows"]
        assert (code, row["status"]) == (1, "error")
        assert row["reason"] == "the output 'never' is not one of the values"

    @pytest.mark.parametrize(
        ("args", "named"),
        [
            (["--set", "9-actions"], "8-actions"),
            (["--mode", "fast"], "strict-guided"),
            (["--repeats", "0"], "--repeats"),
            (["--budget", "-1"], "--budget"),
            (["--output", "no/such/folder.json"], "no such folder"),
        ],
    )
    def test_wrong_usage(self, args: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit, match="2"):
            main(args)
        assert named in capsys.readouterr().err

    def test_prompts_of_a_file(self, model: Model) -> None:
        def of(content: bytes) -> list[str]:
            return [prompt.text for prompt in sets.prompts_of_file(Path("p.jsonl"), content, model)]

        assert of(b'"one"\n\n{"prompt": "two"}') == ["one", "two"]
        for content, said in (
            (b"", "no line with a prompt"),
            (b'"fine"\n{"prompt": }', "line 2, column 12"),
            (b'{"text": "a"}', 'line 1.*"prompt"'),
            (b'"' + b"x" * 50_000 + b'"', "line 1.*1024"),
            (b"\xff", "line 1: not UTF-8"),
        ):
            with pytest.raises(tokentrie.TokenTrieError, match=said):
                of(content)


# Without NUL, which GBNF cannot spell, and without halves of characters, which are no text.
CHARACTERS = st.characters(min_codepoint=1, exclude_categories=["Cs"])
VALUES = st.sampled_from(GRAMMAR_ALPHABETS).flatmap(
    lambda alphabet: st.lists(
        st.text(alphabet | st.sampled_from('"\\\n\r\t[]|(){}*+?-#'), min_size=1, max_size=6), min_size=1, max_size=5
    )
)


class TestGrammars:
    @pytest.mark.model
    @settings(max_examples=cases(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(values=VALUES)
    def test_llama_cpp_writes_one_of_the_values(self, model: Model, values: list[str]) -> None:
        longest = max(len(value.encode()) for value in values)
        out = model._generate_with_grammar("Hi", "gbnf", engines.gbnf([values]), longest + 1)
        assert out.finish == "end_of_generation"
        assert out.text in values

    @pytest.mark.model
    @settings(max_examples=cases(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(before=st.text(CHARACTERS, max_size=3), value=st.text(CHARACTERS, min_size=1, max_size=6))
    def test_what_must_stand_there_does(self, model: Model, before: str, value: str) -> None:
        grammar = engines.gbnf([before, [value], '"}'])
        out = model._generate_with_grammar("Hi", "gbnf", grammar, 100)
        assert out.text == f'{before}{value}"}}'

    def test_texts(self) -> None:
        assert engines.gbnf_literal('a"\\\n\x7fé€😀 [b]') == r'"a\"\\\x0A\x7F\xE9\u20AC\U0001F600 [b]"'
        assert engines.lark_literal('a"\\\né') == r'"a\"\\\né"'
        assert engines.gbnf(["x", ["a", "b"]]) == 'root ::= "x" ("a" | "b")\n'
        assert engines.lark([["a", "b"]]) == 'start: "a" | "b"\n'
        with pytest.raises(engines.GrammarError, match="NUL"):
            engines.gbnf([["a\0"]])


class TestParts:
    @pytest.mark.model
    def test_sets(self, model: Model) -> None:
        for name, size in (("8-actions", 8), ("30-tools", 30), ("300-tools", 300), ("5000-titles", 5000)):
            values = sets.built_in(name, model.vocab)
            assert values.trie is not None
            assert len(values.trie) == values.size == size
            # No value goes on from another one, so that every mode has to end it in the same place.
            assert not any(len(values.trie.allowed(leaf.tokens)) for leaf in values.trie)
            assert all(values.allows(leaf.name or "") for leaf in list(values.trie)[::50])
            assert not values.allows("create")
            assert all(len(prompt.tokens) < 300 for prompt in sets.prompts_of_set(name, model))
        form = sets.built_in("form", model.vocab)
        out = model.generate("Hi", form.constraint)
        assert form.allows(out.text)
        assert list(json.loads(out.text)) == ["action", "priority", "assignee"]
        assert not form.allows(out.text.replace("{", "[", 1))

    def test_titles_are_always_the_same(self) -> None:
        titles = sets.titles(5000)
        assert titles[:2] == sets.titles(2)
        assert len(set(titles)) == 5000
        assert all(re.search(r" \(19\d\d\)$| \(20[012]\d\)$", title) for title in titles)

    def test_branch_points(self) -> None:
        trie = tokentrie.Trie.from_sequences([[1, 2], [1, 2, 3], [1, 2, 3, 4, 5], [9, 9]])
        assert measure.walk(trie, [9, 9], 100) == measure.Walk(1, [98, 99])
        # After 1 2 and 1 2 3 the value may end or go on, and anything may come.
        assert measure.walk(trie, [1, 2], 100) == measure.Walk(2, [98, 99, 0])
        assert measure.walk(trie, [1, 2, 3, 4, 5], 100) == measure.Walk(3, [98, 99, 0, 0, 99])

    @pytest.mark.model
    def test_a_call_is_ended_when_its_time_is_over(self, model: Model) -> None:
        endless = 'root ::= "a" root'
        with pytest.raises(tokentrie.errors.CancelledError), measure.stopped_after(model, 0.05):
            model._generate_with_grammar("Hi", "gbnf", endless, 900)
        with measure.stopped_after(model, 600):
            assert len(model._generate_with_grammar("Hi", "gbnf", endless, 5).tokens) == 5

    def test_memory_is_kept_for_a_while(self) -> None:
        with measure.kept_memory() as kept:
            assert kept in (True, False)
            assert kept or not sys.platform.startswith("linux") or platform.libc_ver()[0] != "glibc"

    @pytest.mark.model
    def test_prompts_of_other_models(self, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
        made = sets.prompts_of_set("action", model)
        assert len(made) == 4
        assert model.vocab.detokenize(made[0].tokens).endswith("assistant\n")

        class Plain:
            vocab = model.vocab

            def chat_prompt(self, _: object) -> list[int]:
                raise tokentrie.errors.ModelError("no template")

        (plain, *_) = sets.prompts_of_set("action", Plain())  # type: ignore[arg-type]
        assert model.vocab.detokenize(plain.tokens) == plain.text
