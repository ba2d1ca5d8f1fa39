"""`tokentrie bench`: small runs of the real thing, what the report says, and the parts that it rests on."""

from __future__ import annotations

import io
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
from rich.console import Console
from support import GRAMMAR_ALPHABETS, payload
from tokentrie import Model
from tokentrie.bench import allocator, checks, grammars, measure, prompts, sets, table, texts
from tokentrie.bench.engines import FREE, GRAMMAR, LLGUIDANCE, NO_SKIP, TRIE
from tokentrie.bench.rows import DEFINITIONS, Row
from tokentrie.cli import main

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

Bench = Callable[..., tuple[int, str, str]]


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tiny_path: Path) -> Bench:
    """Calls the command in this process, with one thread: gives exit code, output and errors."""

    def call(*args: str | Path, stdin: str = "") -> tuple[int, str, str]:
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = main(["bench", "--n-threads", "1", *map(str, args)])
        return code, *capsys.readouterr()

    return call


@pytest.fixture(scope="module")
def model(tiny_path: Path) -> Model:
    return Model(tiny_path, n_ctx=1024, n_threads=1)


@pytest.fixture(scope="module")
def report(tiny_path: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every mode on a plain set and a form."""
    path = tmp_path_factory.mktemp("bench") / "report.json"
    args = ["bench", "--n-threads", "1", "--repeats", "2", "--set", "30-tools", "--set", "form", "-o", str(path)]
    assert main(args) == 0
    assert [entry.name for entry in path.parent.iterdir()] == ["report.json"]
    document = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def row_of(report: dict[str, Any], mode: str, name: str = "30-tools") -> dict[str, Any]:
    (row,) = [row for row in report["rows"] if (row["mode"], row["set"]) == (mode, name)]
    assert isinstance(row, dict)
    return row


def fails(result: tuple[int, str, str], code: int, *parts: str) -> None:
    """One clear line and nothing else."""
    assert result[:2] == (code, "")
    assert result[2].startswith("tokentrie: ")
    assert result[2].count("\n") == 1
    assert all(part in result[2] for part in parts), result[2]


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
        assert {"cpu", "cores", "cores_usable", "system", "load"} <= report["machine"].keys()
        assert re.match(r"20\d\d-\d\d-\d\dT", report["date"])
        assert report["command"].split()[0] == "tokentrie"
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
    def test_for_people(self, bench: Bench) -> None:
        code, out, err = bench("--set", "8-actions", "--repeats", "1")
        assert (code, err) == (0, "")
        assert "tiny.gguf" in out.splitlines()[0]
        assert "8-actions (8 values)" in out
        assert all(
            any(line.startswith(f"{mode} ") for line in out.splitlines()) for mode in (TRIE, NO_SKIP, FREE, GRAMMAR)
        )
        assert any(line.startswith(f"{LLGUIDANCE}: skipped: ") for line in out.splitlines())

    def test_fits_on_a_terminal(self, report: dict[str, Any]) -> None:
        for width, branch_points in ((80, False), (160, True)):
            screen = Console(width=width, file=io.StringIO())
            screen.print(table.table(report, "30-tools", width))
            assert isinstance(screen.file, io.StringIO)
            shown = screen.file.getvalue()
            assert "…" not in shown
            assert f"{NO_SKIP} " in shown
            assert ("branch points" in shown) == branch_points

    def test_one_mode_on_a_payload(self, bench: Bench, tmp_path: Path) -> None:
        names, asked = tmp_path / "names.json", tmp_path / "prompts.jsonl"
        document = payload({"A": [40, 41, 42], "B": [40, 41, 43], "out": [10**6]})
        document["descriptors"] += payload({"bytes": [40, 41], "more": [40, 41, 44]}, path="x[]")["descriptors"]
        names.write_text(json.dumps(document))
        asked.write_text('"Hi there"\n\n{"prompt": "One more", "id": 7}\n')
        args = ["--mode", "strict-trie-ffi", "--token-tree-descriptor", names, "--prompt", asked, "--repeats", "1"]
        code, out, err = bench(*args, "--json")
        report = json.loads(out)
        assert (code, err) == (0, "")
        assert [one["name"] for one in report["sets"]] == ["action", "x[]"]
        assert [one["text"] for one in report["sets"][0]["prompts"]] == ["Hi there", "One more"]
        assert {row["mode"] for row in report["rows"]} == {TRIE, NO_SKIP, GRAMMAR}
        assert "dropped 1 leaf" in report["warnings"][0]
        row = row_of(report, TRIE, "action")
        assert (row["branch_points"], row["forward_passes_total"], row["tokens"]) == (2, 2, 6)
        assert row["reasons"]["tokens_per_second_vs_unconstrained"] == "unconstrained was not asked for"
        assert row_of(report, TRIE, "x[]")["branch_points"] == 2

    def test_one_mode_and_one_set_stand_at_the_top(self, bench: Bench, report: dict[str, Any]) -> None:
        args = ["--mode", "strict-trie-ffi", "--set", "8-actions", "--repeats", "1", "--json"]
        document = json.loads(bench(*args)[1])
        row = row_of(document, TRIE, "8-actions")
        types = [type(document[name]) for name in CONTRACT_OF_ONE]
        assert types == [str, str, float, float, float, float, float, int, int]
        assert {name: document[name] for name in CONTRACT_OF_ONE} == {name: row[name] for name in CONTRACT_OF_ONE}
        assert (document["model"], document["status"], document["reason"]) == ("tiny.gguf", "ok", None)
        assert list(document)[:9] == CONTRACT_OF_ONE
        skipped = json.loads(bench("--mode", "llguidance", "--set", "form", "--repeats", "1", "--json")[1])
        if skipped["status"] != "ok":
            assert skipped["tokens_per_second"] is None
            assert "without llguidance" in skipped["reason"]
        assert not set(CONTRACT_OF_ONE) & report.keys(), "of several modes and sets none is the one"

    def test_a_set_of_one_value_needs_no_model(self, bench: Bench) -> None:
        args = ["--token-tree-descriptor", "-", "--repeats", "1", "--json"]
        code, out, _ = bench(*args, stdin=json.dumps(payload({"only": [40, 41, 42]})))
        row = row_of(json.loads(out), TRIE, "action")
        assert (code, row["status"], row["tokens"]) == (0, "ok", 4 * 3)
        assert row["branch_points"] == row["forward_passes_total"] == row["generation_us_p50"] == 0
        assert row["tokens_per_second_whole"] > 0
        for name in ("tokens_per_second", "tokens_per_second_vs_grammar", "tokens_per_forward_pass"):
            assert row[name] is None
            assert row["reasons"][name]

    def test_text_that_no_grammar_can_spell(self, bench: Bench, model: Model) -> None:
        vocab = model.vocab
        half = next([token] for token in range(len(vocab)) if vocab[token] == b"\xc3")
        for tokens, reason in ((half, "no UTF-8"), (vocab.tokenize("\0"), "NUL")):
            text = json.dumps(payload({"odd": tokens, "plain": vocab.tokenize("plain")}))
            args = ["--token-tree-descriptor", "-", "--repeats", "1", "--mode", "strict-trie-ffi", "--json"]
            report = json.loads(bench(*args, stdin=text)[1])
            row = row_of(report, GRAMMAR, "action")
            assert row["status"] == "skipped"
            assert reason in row["reason"]
            assert row_of(report, TRIE, "action")["status"] == "ok"

    def test_a_budget(self, bench: Bench) -> None:
        args = ["--mode", "strict-guided", "--set", "8-actions", "--repeats", "10000", "--json"]
        row = json.loads(bench(*args, "--budget", "0.5")[1])["rows"][0]
        assert row["status"] == "partial"
        assert 0 < row["generations"] < row["generations_planned"] == 40_000
        assert f"{row['generations']} of 40000 generations" in row["reason"]
        assert row["tokens_per_second"] > 0
        code, out, _ = bench(*args, "--budget", "0")
        row = json.loads(out)["rows"][0]
        assert (code, row["status"], row["tokens_per_second"]) == (0, "skipped", None)
        assert "no generation finished" in row["reason"]

    def test_a_check_that_fails_is_an_error_row(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        real = checks.walk
        more = lambda *args: checks.Walk(real(*args).branch_points + 1, [])  # noqa: E731
        monkeypatch.setattr(checks, "walk", more)
        code, out, err = bench("--mode", "strict-trie-ffi", "--set", "8-actions", "--repeats", "1", "--json")
        assert code == 1
        assert err == "tokentrie: 3 of 3 rows failed; their status says why\n"
        for row in json.loads(out)["rows"]:
            assert row["status"] == "error"
            assert re.search(r"\d forward passes and not \d for \d branch points in '\w+'", row["reason"])

    def test_a_grammar_that_leaves_the_set_is_an_error_row(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tokentrie.bench.engines.gbnf", lambda _: 'root ::= "never"')
        code, out, _ = bench("--mode", "strict-guided", "--set", "8-actions", "--repeats", "1", "--json")
        (row,) = json.loads(out)["rows"]
        assert (code, row["status"]) == (1, "error")
        assert row["reason"] == "the output 'never' is not one of the values"

    def test_the_report_appears_whole_or_not_at_all(
        self, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "report.json"
        path.write_text("old")
        args = ["--mode", "unconstrained", "--set", "8-actions", "--repeats", "1", "-o", path]
        monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left", str(path))))
        fails(bench(*args), 1, "report.json: No space left")
        assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]
        assert path.read_text() == "old"
        monkeypatch.undo()
        assert bench(*args)[0] == 0
        assert json.loads(path.read_text())["settings"]["mode"] == "unconstrained"
        assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]

    @pytest.mark.parametrize(
        ("args", "parts"),
        [
            (["--set", "9-actions"], ["--set", "9-actions", "8-actions"]),
            (["--mode", "fast"], ["--mode", "fast"]),
            (["--repeats", "0"], ["--repeats"]),
            (["--budget", "-1"], ["--budget"]),
            (["--n-threads", "0"], ["--n-threads"]),
            (["--output", "no/such/folder.json"], ["--output", "no such folder", "no/such"]),
            (["--output", "."], ["--output", "folder"]),
            (["--plot", "picture.pdf"], ["--plot", "picture.pdf", ".svg", ".png"]),
            (["--prompt", "-", "--token-tree-descriptor", "-"], ["only once"]),
            (["more"], ["more"]),
        ],
    )
    def test_wrong_usage(self, bench: Bench, args: list[str], parts: list[str]) -> None:
        fails(bench(*args), 2, *parts)

    def test_bad_files(self, bench: Bench, tmp_path: Path) -> None:
        fails(bench("--model", tmp_path / "none.gguf"), 1, "none.gguf")
        fails(bench("--prompt", tmp_path / "none"), 1, "none: No such file")
        fails(bench("--prompt", "-"), 1, "-: no line with a prompt")
        fails(bench("--prompt", "-", stdin="x" * 50_000), 1, "-, line 1", "4096")
        fails(bench("--token-tree-descriptor", "-", stdin='{"descriptors": [}'), 1, "line 1, column 18")
        lines = tmp_path / "prompts.jsonl"
        for content, parts in (
            ('"fine"\n{"prompt": }', ["line 2, column 12"]),
            ('{"text": "a"}', ["line 1", '"prompt"']),
            ("[1]", ["line 1", '"prompt"']),
        ):
            lines.write_text(content)
            fails(bench("--prompt", lines), 1, "prompts.jsonl", *parts)
        lines.write_bytes(b"\xff")
        fails(bench("--prompt", lines), 1, "prompts.jsonl, line 1: not UTF-8")
        same = json.dumps(payload({"a": [40]}, path="form"))
        fails(bench("--token-tree-descriptor", "-", "--set", "form", stdin=same), 2, "--set", "form")


@pytest.mark.model
class TestPlot:
    def test_needs_matplotlib(self, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        fails(bench("--plot", tmp_path / "o.svg"), 1, "matplotlib", "pip install 'tokentrie[plot]'")

    @pytest.mark.parametrize(("suffix", "magic"), [("svg", b"<?xml"), ("PNG", b"\x89PNG")])
    def test_draws(self, report: dict[str, Any], tmp_path: Path, suffix: str, magic: bytes) -> None:
        pytest.importorskip("matplotlib")
        from tokentrie.bench import plot

        path = tmp_path / f"plot.{suffix}"
        plot.check(path)
        plot.save(path, report)
        assert path.read_bytes().startswith(magic)
        assert [entry.name for entry in tmp_path.iterdir()] == [path.name]

    def test_says_what_its_bars_are(self, report: dict[str, Any], tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        from tokentrie.bench import plot

        plot.save(tmp_path / "p.svg", report)
        # matplotlib draws letters as shapes, and says in comments which.
        texts = set(re.findall(r"<!-- (.*?) -->", (tmp_path / "p.svg").read_text(encoding="utf-8")))
        row = row_of(report, TRIE)
        assert {plot.NAMES[TRIE], plot.NAMES[GRAMMAR], plot.short(row["tokens_per_second"])} <= texts
        assert any("tiny.gguf" in text and "1 thread," in text for text in texts)
        lines = plot.notes(report)
        assert "tokentrie, token by token, form: no bar: a form always skips ahead" in lines
        assert all(line in texts for line in lines)
        assert [plot.short(value) for value in (0.1234, 9.87, 123.4, 1234, 45_678, 456_789, 1_234_567)] == [
            "0.123", "9.87", "123", "1.2k", "46k", "457k", "1.2M",
        ]  # fmt: skip
        assert set(plot.NAMES) == {TRIE, NO_SKIP, FREE, GRAMMAR, LLGUIDANCE}


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
        out = model._generate_with_grammar("Hi", "gbnf", grammars.gbnf([values]), longest + 1)
        assert out.finish == "end_of_generation"
        assert out.text in values

    @pytest.mark.model
    @settings(max_examples=cases(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(before=st.text(CHARACTERS, max_size=3), value=st.text(CHARACTERS, min_size=1, max_size=6))
    def test_what_must_stand_there_does(self, model: Model, before: str, value: str) -> None:
        grammar = grammars.gbnf([before, [value], '"}'])
        out = model._generate_with_grammar("Hi", "gbnf", grammar, 100)
        assert out.text == f'{before}{value}"}}'

    def test_texts(self) -> None:
        assert grammars.gbnf_literal('a"\\\n\x7fé€😀 [b]') == r'"a\"\\\x0A\x7F\xE9\u20AC\U0001F600 [b]"'
        assert grammars.lark_literal('a"\\\né') == r'"a\"\\\né"'
        assert grammars.gbnf(["x", ["a", "b"]]) == 'root ::= "x" ("a" | "b")\n'
        assert grammars.lark([["a", "b"]]) == 'start: "a" | "b"\n'
        with pytest.raises(grammars.GrammarError, match="NUL"):
            grammars.gbnf([["a\0"]])


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
            assert all(len(prompt.tokens) < 300 for prompt in prompts.built_in(name, model))
        form = sets.built_in("form", model.vocab)
        out = model.generate("Hi", form.constraint)
        assert form.allows(out.text)
        assert list(json.loads(out.text)) == ["action", "priority", "assignee"]
        assert not form.allows(out.text.replace("{", "[", 1))

    def test_titles_are_always_the_same(self) -> None:
        titles = texts.titles(5000)
        assert titles[:2] == texts.titles(2)
        assert len(set(titles)) == 5000
        assert all(re.search(r" \(19\d\d\)$| \(20[012]\d\)$", title) for title in titles)

    def test_branch_points(self) -> None:
        trie = tokentrie.Trie.from_sequences([[1, 2], [1, 2, 3], [1, 2, 3, 4, 5], [9, 9]])
        assert checks.walk(trie, [9, 9], 100) == checks.Walk(1, [98, 99])
        # After 1 2 and 1 2 3 the value may end or go on, and anything may come.
        assert checks.walk(trie, [1, 2], 100) == checks.Walk(2, [98, 99, 0])
        assert checks.walk(trie, [1, 2, 3, 4, 5], 100) == checks.Walk(3, [98, 99, 0, 0, 99])

    @pytest.mark.model
    def test_a_call_is_ended_when_its_time_is_over(self, model: Model) -> None:
        endless = 'root ::= "a" root'
        with pytest.raises(tokentrie.CancelledError), measure.stopped_after(model, 0.05):
            model._generate_with_grammar("Hi", "gbnf", endless, 900)
        with measure.stopped_after(model, 600):
            assert len(model._generate_with_grammar("Hi", "gbnf", endless, 5).tokens) == 5

    def test_memory_is_kept_for_a_while(self) -> None:
        with allocator.kept() as kept:
            assert kept in (True, False)
            assert kept or not sys.platform.startswith("linux") or platform.libc_ver()[0] != "glibc"

    @pytest.mark.model
    def test_prompts_of_other_models(self, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
        made = prompts.built_in("action", model)
        assert len(made) == 4
        assert model.vocab.detokenize(made[0].tokens).endswith("assistant\n")

        class Plain:
            vocab = model.vocab

            def chat_prompt(self, _: object) -> list[int]:
                raise tokentrie.ModelError("no template")

        (plain, *_) = prompts.built_in("action", Plain())  # type: ignore[arg-type]
        assert model.vocab.detokenize(plain.tokens) == plain.text
