"""`tokentrie choose --input`: formats of results, faulty rows, the summary and the picture; values of a .ttrie file."""

from __future__ import annotations

import csv
import json
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from test_cli import Result, Terminal, process
from test_cli_choose import CHOICES, LABELS, ONCE, TEMPLATE, TINY, read, reviews, rows_of, run, write
from tokentrie import Model, Trie, Vocab
from tokentrie.cli.choosing import dataset, summary
from tokentrie.cli.choosing.summary import Tally
from tokentrie.cli.rows import loop

__all__ = ["reviews", "run"]

pytestmark = pytest.mark.model

ODD = [
    {"text": "a", "n": 1, "flag": True, "deep": {"x": [1]}, "name": 'say "hi", \u00e4\nyes'},
    {"text": "b", "n": 2.5, "flag": None, "deep": None, "name": "\ud83d", "late": 2**70},
    {"text": "c", "n": None, "flag": False, "deep": [1], "name": "", "late": 7},
]


def labelled(rows: Path, out: Path, *args: str) -> list[str | Path]:
    return rows_of(rows, out, "--template", TEMPLATE, *args, choices=CHOICES, field=False)


class TestFormats:
    @pytest.fixture
    def expected(self, run: Terminal, tmp_path: Path) -> list[dict[str, Any]]:
        rows = write(tmp_path / "rows.jsonl", ODD)
        assert run(*rows_of(rows, tmp_path / "as.jsonl")).code == 0
        return read(tmp_path / "as.jsonl")

    def test_csv(self, run: Terminal, tmp_path: Path, expected: list[dict[str, Any]]) -> None:
        for name, delimiter in (("out.csv", ","), ("out.TSV", "\t")):
            assert run(*rows_of(tmp_path / "rows.jsonl", tmp_path / name)).code == 0
            with (tmp_path / name).open(encoding="utf-8", newline="") as file:
                got = list(csv.DictReader(file, delimiter=delimiter))
            assert [*got[0]] == [
                "text", "n", "flag", "deep", "name", "late", "choice", "probability", "mass", "probabilities",
            ]  # fmt: skip
            for row, want in zip(got, expected, strict=True):
                assert json.loads(row["probabilities"]) == want["probabilities"]
                assert (row["choice"], float(row["probability"])) == (want["choice"], want["probability"])
                assert float(row["mass"]) == want["mass"]
            assert [row["n"] for row in got] == ["1", "2.5", ""]
            assert [row["name"] for row in got] == ['say "hi", \u00e4\nyes', "\\ud83d", ""]
            assert [row["deep"] for row in got] == ['{"x": [1]}', "", "[1]"]
            assert got[1]["late"] == str(2**70)

    def test_parquet(self, run: Terminal, tmp_path: Path, expected: list[dict[str, Any]]) -> None:
        parquet = pytest.importorskip("pyarrow.parquet")
        assert run(*rows_of(tmp_path / "rows.jsonl", tmp_path / "out.parquet")).code == 0
        table = parquet.read_table(tmp_path / "out.parquet")
        got = table.to_pylist()
        assert [row["n"] for row in got] == [1.0, 2.5, None]
        assert [row["flag"] for row in got] == [True, None, False]
        assert [row["late"] for row in got] == [None, str(2**70), "7"]
        assert [dict(row["probabilities"]) for row in got] == [row["probabilities"] for row in expected]
        assert [row["mass"] for row in got] == [row["mass"] for row in expected]

    def test_parquet_without_its_package(self, tmp_path: Path) -> None:
        rows = write(tmp_path / "rows.jsonl", ODD)
        (tmp_path / "pyarrow.py").write_text("raise ImportError")
        done = process(*rows_of(rows, tmp_path / "out.parquet"), env={"PYTHONPATH": f"{tmp_path}:{package_folder()}"})
        Result(done.returncode, done.stdout, done.stderr).fails(1, "out.parquet", "pip install")

    @pytest.mark.parametrize("name", ["out.txt", "out", "out.json", "out.csv.gz"])
    def test_others_are_refused_before_any_work(self, run: Terminal, tmp_path: Path, name: str) -> None:
        run(*rows_of(tmp_path / "none.jsonl", tmp_path / name)).fails(2, "--output", name, ".csv", ".parquet")
        assert [*tmp_path.iterdir()] == []

    @pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.jsonl"])
    def test_the_file_appears_whole_and_runs_go_on(
        self, run: Terminal, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = write(tmp_path / "rows.jsonl", [{"text": f"Is it {n}?", "n": n} for n in range(80)])
        out, partial = tmp_path / name, tmp_path / f"{name}.partial"
        args = rows_of(rows, out)
        assert run(*args).code == 0
        whole = out.read_bytes()
        assert not partial.exists()
        assert run(*args, "--json").json["new"] == 0
        assert out.read_bytes() == whole
        out.unlink()

        calls, real = [], loop._results

        def interrupted(*given: Any) -> Any:
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return real(*given)

        monkeypatch.setattr(loop, "_results", interrupted)
        run(*args).fails(130, "64 rows are done")
        assert not out.exists()
        assert len(read(partial)) == 64
        assert run(*args, "--json").json["new"] == 16
        assert out.read_bytes() == whole
        assert not partial.exists()

    def test_a_finished_csv_that_someone_changed(self, run: Terminal, tmp_path: Path) -> None:
        rows, out = write(tmp_path / "rows.jsonl", [{"text": "a"}]), tmp_path / "out.csv"
        args = rows_of(rows, out)
        assert run(*args).code == 0
        write(rows, [{"text": "a"}, {"text": "b"}])
        assert run(*args, "--json").json["new"] == 2, "the input has changed: all is made anew"
        out.write_text("mine\n")
        run(*args).fails(1, "out.csv", "--restart")
        assert out.read_text() == "mine\n"
        assert run(*args, "--restart").code == 0
        foreign = tmp_path / "foreign.csv"
        foreign.write_text("mine\n")
        run(*rows_of(rows, foreign)).fails(1, "foreign.csv", "--restart")


class TestFaultyRows:
    ROWS = (*({"text": f"Is it {n}?"} for n in range(35)), {"text": ""}, {"text": "word " * 9000}, {"text": "Is it?"})

    @pytest.mark.parametrize("name", ["out.csv", "out.jsonl"])
    def test_they_are_left_out(self, run: Terminal, tmp_path: Path, name: str) -> None:
        rows, out = write(tmp_path / "rows.jsonl", [*self.ROWS]), tmp_path / name
        args = rows_of(rows, out, "--on-error", "skip")
        for new in (38, 0):
            document = run(*args, "--json").json
            assert (document["rows"], document["errors"], document["new"]) == (38, 2, new)
            assert sum(document["labels"].values()) == 36
        assert out.read_text().count("\n") == 36 + (name == "out.csv")
        run(*rows_of(rows, out)).fails(1, "another --on-error")
        assert "2 left out for an error" in run(*args, "--restart").out

    def test_they_are_kept_with_the_reason(self, run: Terminal, tmp_path: Path) -> None:
        rows, out = write(tmp_path / "rows.jsonl", [*self.ROWS]), tmp_path / "out.csv"
        assert run(*rows_of(rows, out, "--on-error", "return", "--json")).json["errors"] == 2
        with out.open(encoding="utf-8", newline="") as file:
            got = list(csv.DictReader(file))
        assert [bool(row["error"]) for row in got] == [False] * 35 + [True, True, False]
        assert got[35]["error"] == "the prompt is empty"
        run(*rows_of(rows, tmp_path / "o.csv", "--skip-errors", "--on-error", "skip")).fails(2, "--on-error")

    def test_a_healed_set_names_the_row_that_does_not_end_so(self, run: Terminal, tmp_path: Path) -> None:
        names = tmp_path / "names.ttrie"
        vocab = Vocab.from_gguf(TINY)
        Trie.from_strings(vocab, ["blue", "red"], prefix="is ", heal=True).save(names, vocab)
        assert Trie.open(names).heal_bytes
        rows = write(tmp_path / "rows.jsonl", [{"text": "The sky is "}, {"text": "x"}])
        args = [*ONCE, "-m", TINY, "--input", rows, "--field", "text", "--set", names, "-o", tmp_path / "o.csv"]
        run(*args).fails(1, "line 2: ")


class TestToyModel:
    def test_it_is_named(self, run: Terminal, tmp_path: Path) -> None:
        rows = write(tmp_path / "rows.jsonl", [{"text": "abc"}])
        args = [part for part in rows_of(rows, tmp_path / "out.csv") if part not in ("-m", TINY)]
        result = run(*args)
        assert result.code == 0
        assert result.err.startswith("tokentrie: warning: ")
        assert all(part in result.err for part in ("tiny.gguf", "toy model", "--model"))
        assert "toy model" in run(*args, "--restart", "--json").json["warnings"][0]
        assert run(*rows_of(rows, tmp_path / "out2.csv")).err == ""


class TestSummary:
    def test_gold(self, run: Terminal, reviews: list[dict[str, Any]], tmp_path: Path) -> None:
        rows, out = write(tmp_path / "rows.jsonl", reviews), tmp_path / "out.csv"
        args = labelled(rows, out, "--gold", "answer")
        document = run(*args, "--json").json
        with out.open(encoding="utf-8", newline="") as file:
            got = list(csv.DictReader(file))
        right = sum(row["choice"] == row["answer"] for row in got)
        gold = document["gold"]
        assert (gold["field"], gold["rows"], gold["right"]) == ("answer", 100, right)
        assert gold["accuracy"] == right / 100 >= 0.9
        pairs = {(g, c): n for g, counts in gold["confusion"].items() for c, n in counts.items()}
        assert pairs == Counter((row["answer"], row["choice"]) for row in got)
        assert document["labels"] == Counter(row["choice"] for row in got)
        assert list(document["labels"].values()) == sorted(document["labels"].values(), reverse=True)
        # A second time nothing is computed, and the same is said, of another column too.
        assert run(*args, "--json").json["gold"] == gold
        assert run(*labelled(rows, out, "--gold", "choice"), "--json").json["gold"]["accuracy"] == 1
        shown = run(*args).out
        assert f"{right} of 100 labels are those in 'answer': accuracy {right:.1f} %" in shown
        assert any(line.split()[:3] == ["answer", "\\", "chosen"] for line in shown.splitlines())
        assert all(any(line.startswith(label) for line in shown.splitlines()) for label in LABELS)

    def test_a_gold_column_that_is_not_there(self, run: Terminal, tmp_path: Path) -> None:
        rows = tmp_path / "rows.csv"
        rows.write_text("text\nabc\n")
        run(*rows_of(rows, tmp_path / "o.csv", "--gold", "answer")).fails(1, "unknown column 'answer'")
        lines = write(tmp_path / "rows.jsonl", [{"text": "abc"}])
        assert "no row has a value in 'answer'" in run(*rows_of(lines, tmp_path / "o.csv", "--gold", "answer")).out
        run(*ONCE, "-p", "Hi", "-c", "a", "--gold", "x").fails(2, "--gold", "--input")

    def test_counts(self) -> None:
        tally = Tally(["a", "b", "c"], "gold")
        made = [(0.9, 0.1, 0.9), (0.6, 0.4, 0.9), (0.5, 0.499, 0.1), (0.66, 0.34, 0.2)]
        for best, other, mass in made:
            row = {"choice": "a", "probability": best, "mass": mass, "probabilities": {"a": best, "b": other}}
            tally.add({"gold": "a"} | row)
        tally.add({"gold": "z", "choice": "b", "probability": 1.0, "mass": 1, "probabilities": {"b": 1.0}})
        tally.add({"gold": "", "error": "no"})
        document = tally.document()
        assert document["labels"] == {"a": 4, "b": 1, "c": 0}
        assert (document["doubtful"], document["least_sure"], document["unlikely"]) == (3, [3, 2, 4], 2)
        assert document["gold"]["confusion"] == {"a": {"a": 4}, "z": {"b": 1}}
        assert (tally.rows, tally.errors, tally.right) == (6, 1, 4)
        for number in range(50):
            share = 0.5 + number / 1000
            shares = {"b": share, "a": 1 - share}
            tally.add({"choice": "b", "probability": share, "mass": 1, "probabilities": shares})
        assert len(tally.least_sure) == summary.LEAST_SURE
        assert tally.least_sure[:2] == [7, 3]


class TestPicture:
    def test_of_rows_and_of_one_prompt(self, run: Terminal, reviews: list[dict[str, Any]], tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        rows = write(tmp_path / "rows.jsonl", [*reviews[:12]])
        picture = tmp_path / "p.svg"
        assert run(*labelled(rows, tmp_path / "out.csv", "--plot", str(picture))).code == 0
        root = ElementTree.parse(picture).getroot()
        assert root.tag.endswith("svg")
        assert "positive" in picture.read_text()
        assert run(*ONCE, "-p", "Hi", "-c", "open,$closed$", "--plot", tmp_path / "p.png").code == 0
        assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
        for bad in ("p.pdf", "none/p.svg"):
            run(*ONCE, "-p", "Hi", "-c", "a", "--plot", tmp_path / bad).fails(2, "--plot")

    def test_without_its_package(self, tmp_path: Path) -> None:
        (tmp_path / "matplotlib.py").write_text("raise ImportError")
        args = [*ONCE, "-p", "Hi", "-c", "a", "--plot", tmp_path / "p.svg"]
        done = process(*args, env={"PYTHONPATH": f"{tmp_path}:{package_folder()}"})
        Result(done.returncode, done.stdout, done.stderr).fails(1, "p.svg", "pip install")


class TestSetFile:
    @pytest.fixture
    def names(self, run: Terminal, tmp_path: Path) -> Path:
        lines, names = tmp_path / "names.txt", tmp_path / "names.ttrie"
        lines.write_text("".join(f"name {number}\n" for number in range(3000)))
        assert run("build", lines, "-m", TINY, "-o", names).code == 0
        return names

    def test_choose_and_generate(self, run: Terminal, names: Path) -> None:
        one = run(*ONCE, "-p", "Hi ", "--set", names, "--json").json
        lines = run(*ONCE, "-p", "Hi ", "--choices-file", names.with_suffix(".txt"), "--json").json
        assert one["probabilities"] == pytest.approx(lines["probabilities"], rel=0.02, abs=1e-4)
        made = run("generate", "-p", "Hi ", "--set", names)
        assert (made.code, made.err) == (0, "")
        assert made.out.startswith("name ")

    def test_rows(self, run: Terminal, names: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = write(tmp_path / "rows.jsonl", [{"text": "Hi "}] * 3)
        args = [*ONCE, "-m", TINY, "--input", rows, "--field", "text", "--set", names, "--top", "2"]
        # No step reads all leaves: a set may be larger than the memory.
        monkeypatch.setattr(Trie, "__iter__", lambda _: pytest.fail("all leaves are read"), raising=False)
        document = run(*args, "-o", tmp_path / "out.csv", "--json").json
        assert document["rows"] == 3
        assert all(label.startswith("name ") for label in document["labels"])

    def test_of_a_large_set_few_rows_are_held(
        self, run: Terminal, names: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = write(tmp_path / "rows.jsonl", [{"text": f"Hi {n} "} for n in range(7)] + [{"text": ""}])
        args = [*ONCE, "-m", TINY, "--input", rows, "--field", "text", "--set", names, "--on-error", "return"]
        assert run(*args, "-o", tmp_path / "whole.jsonl").code == 0
        monkeypatch.setattr(dataset, "LEAVES_AT_ONCE", 2 * 3000)
        asked, real = [], Model.choose_many

        class Counted:
            def __init__(self, model: Model) -> None:
                self._model = model

            def __getattr__(self, name: str) -> Any:
                return getattr(self._model, name)

            def choose_many(self, prompts: list[list[int]], *given: Any, **options: Any) -> Any:
                asked.append(len(prompts))
                return real(self._model, prompts, *given, **options)

        before = dataset.Chooser.__init__
        counted = lambda self, model, *rest, **more: before(self, Counted(model), *rest, **more)  # noqa: E731
        monkeypatch.setattr(dataset.Chooser, "__init__", counted)
        assert run(*args, "-o", tmp_path / "parts.jsonl").code == 0
        assert asked == [2, 2, 2, 1]
        for one, other in zip(read(tmp_path / "whole.jsonl"), read(tmp_path / "parts.jsonl"), strict=True):
            assert one.get("error") == other.get("error")
            assert one.get("mass", 0) == pytest.approx(other.get("mass", 0), rel=0.1)

    def test_a_set_without_names(self, run: Terminal, tmp_path: Path) -> None:
        vocab, ids, names = Vocab.from_gguf(TINY), tmp_path / "ids.npy", tmp_path / "ids.ttrie"
        np.save(ids, np.array([[300, 301], [302, 303]], np.int32))
        assert run("build", ids, "-m", TINY, "-o", names).code == 0
        document = run(*ONCE, "-p", "Hi", "--set", names, "--json").json
        assert set(document["probabilities"]) == {vocab.detokenize([300, 301]), vocab.detokenize([302, 303])}

    def test_wrong_files(self, run: Terminal, names: Path, tmp_path: Path) -> None:
        lines = names.with_suffix(".txt")
        run(*ONCE, "-p", "Hi", "--set", lines).fails(1, "names.txt", "not a .ttrie file", "--choices-file")
        run(*ONCE, "-p", "Hi", "--set", tmp_path / "none.ttrie").fails(1, "none.ttrie: No such file")
        run(*ONCE, "-p", "Hi", "--choices-file", names).fails(1, "names.ttrie", "--set")
        run(*ONCE, "-p", "Hi", "--set", names, "--prefix", "x").fails(2, "--prefix", ".ttrie")
        run("generate", "-p", "Hi", "--set", names, "-c", "a").fails(2, "--set and --choices")
        Trie.from_sequences([[1, 2]]).save(tmp_path / "other.ttrie", Vocab.from_tokens([b"a", b"b", b"c"]))
        run("generate", "-p", "Hi", "--set", tmp_path / "other.ttrie").fails(1, "other.ttrie")

    def test_generate_takes_values_as_choose_does(self, run: Terminal) -> None:
        assert run("generate", "-p", "Hi", "--choice", "a, b").out == "a, b\n"
        assert run("generate", "-p", 'x: "', "--choice", "ab", "--prefix", '"', "--suffix", '"').out == 'ab"\n'
        run("generate", "-p", "Hi", "-c", "a,a").fails(2, "--choices", "'a'", "2 times")


def package_folder() -> Path:
    import tokentrie

    assert tokentrie.__file__
    return Path(tokentrie.__file__).parents[1]


class TestParquetInput:
    def test_gives_what_json_lines_give(self, run: Terminal, reviews: list[dict[str, Any]], tmp_path: Path) -> None:
        parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
        parquet.write_table(pyarrow.Table.from_pylist(reviews), tmp_path / "rows.parquet", row_group_size=7)
        write(tmp_path / "rows.jsonl", reviews)
        for kind in ("jsonl", "parquet"):
            assert run(*labelled(tmp_path / f"rows.{kind}", tmp_path / f"out-{kind}.jsonl")).code == 0
        assert read(tmp_path / "out-parquet.jsonl") == read(tmp_path / "out-jsonl.jsonl")
        # Finished: nothing is made again, and the same command goes on after an interruption.
        again = run(*labelled(tmp_path / "rows.parquet", tmp_path / "out-parquet.jsonl"), "--json")
        assert json.loads(again.out)["new"] == 0

    def test_all_kinds_of_columns(self, run: Terminal, tmp_path: Path) -> None:
        parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
        odd = {
            "text": ["a", "b"],
            "when": [datetime(2026, 1, 2, 3), None],
            "day": [date(2026, 1, 2), None],
            "price": [Decimal("1.50"), None],
            "raw": [b"\x00\xff", None],
            "half": [float("nan"), float("inf")],
            "deep": [{"x": [1, 2]}, None],
        }
        parquet.write_table(pyarrow.table(odd), tmp_path / "rows.parquet")
        assert run(*rows_of(tmp_path / "rows.parquet", tmp_path / "out.jsonl")).code == 0
        first, second = read(tmp_path / "out.jsonl")
        assert (first["when"], first["day"], first["price"]) == ("2026-01-02T03:00:00", "2026-01-02", "1.50")
        assert (first["raw"], first["half"], first["deep"]) == ("00ff", None, {"x": [1, 2]})
        assert [second[name] for name in odd if name != "text"] == [None] * 6

    def test_faults_name_the_row(self, run: Terminal, tmp_path: Path) -> None:
        parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
        rows, out = tmp_path / "rows.parquet", tmp_path / "out.jsonl"
        parquet.write_table(pyarrow.table({"text": ["a", None], "n": [1, 2]}), rows)
        run(*rows_of(rows, out)).fails(1, "rows.parquet, row 2", "null")
        run(*rows_of(rows, out, "--gold", "label")).fails(1, "rows.parquet", "'label'", "'text', 'n'")
        rows.write_bytes(rows.read_bytes()[:-9])
        run(*rows_of(rows, out)).fails(1, "rows.parquet")
