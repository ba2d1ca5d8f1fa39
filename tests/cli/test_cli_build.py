"""`tokentrie build` makes .ttrie files of files of values, and `tokentrie inspect` compares two."""

from __future__ import annotations

import csv
import datetime
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pairs import write
from pyarrow import parquet
from test_cli import Terminal
from tokentrie import Model, Trie, Vocab

VALUES = ["open_file", "open_files", "list", "Grüße", "two words", "a,b"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tiny_path: Path) -> Terminal:
    return Terminal(capsys, monkeypatch)


@pytest.fixture(scope="module")
def vocab(tiny_path: Path) -> Vocab:
    return Vocab.from_gguf(tiny_path)


def lines(path: Path, values: list[str]) -> Path:
    path.write_text("".join(value + "\n" for value in values), encoding="utf-8")
    return path


class TestBuild:
    @pytest.mark.model
    @pytest.mark.parametrize("kind", ["txt", "csv", "jsonl", "parquet"])
    def test_every_kind_of_file_gives_the_same_set(
        self, run: Terminal, vocab: Vocab, tmp_path: Path, kind: str
    ) -> None:
        source, out, column = tmp_path / f"values.{kind}", tmp_path / "out.ttrie", ["--field", "name"]
        if kind == "txt":
            column = []
            lines(source, [*VALUES, ""])
        elif kind == "csv":
            with source.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([["id", "name"], *([i, value] for i, value in enumerate(VALUES))])
        elif kind == "jsonl":
            lines(source, [json.dumps({"name": value}) for value in VALUES])
        else:
            parquet.write_table(pyarrow.table({"name": VALUES}), source)
        result = run("build", source, "-o", out, *column, "--json")
        assert result.code == 0, result
        summary = json.loads(result.out)
        assert (summary["values"], summary["leaves"], summary["refused"]) == (6, 6, 0)
        assert summary["bytes"] == out.stat().st_size
        assert Trie.open(out, vocab=vocab, verify=True) == Trie.from_strings(vocab, VALUES)

    @pytest.mark.model
    def test_a_tokenizer_json_in_place_of_a_gguf(self, run: Terminal, vocab: Vocab, tmp_path: Path) -> None:
        pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
        source, out = lines(tmp_path / "values.txt", VALUES), tmp_path / "out.ttrie"
        tokenizer = write("tiny", tmp_path / "tokenizer.json")
        result = run("build", source, "-o", out, "--vocab", tokenizer)
        assert result.code == 0, result
        assert Trie.open(out, vocab=vocab, verify=True) == Trie.from_strings(vocab, VALUES)
        shown = run("inspect", out, "--vocab", tokenizer, "--json")
        assert json.loads(shown.out)["vocabulary"] == len(vocab)
        tokenizer.write_text("{}")
        failed = run("build", source, "-o", out, "--vocab", tokenizer)
        assert failed.code != 0
        assert "missing field `model`" in failed.err
        assert failed.err.count("\n") == 1

    @pytest.mark.model
    def test_token_ids(self, run: Terminal, tmp_path: Path) -> None:
        rows = np.array([[5, 6, 7], [5, 6, 8], [9, 1, 2]], dtype=np.int32)
        np.save(tmp_path / "ids.npy", rows)
        assert "3 leaves" in run("build", tmp_path / "ids.npy", "-o", tmp_path / "out.ttrie").out
        assert Trie.open(tmp_path / "out.ttrie") == Trie.from_sequences(rows)
        np.save(tmp_path / "flat.npy", rows.ravel())
        run("build", tmp_path / "flat.npy", "-o", tmp_path / "out.ttrie").fails(1, "[rows, length]", "(9,)")
        (tmp_path / "no.npy").write_bytes(b"nothing")
        run("build", tmp_path / "no.npy", "-o", tmp_path / "out.ttrie").fails(1, "no array that numpy saved")
        run("build", tmp_path / "ids.npy", "--heal", "-o", tmp_path / "out.ttrie").fails(2, "--heal", "token ids")

    @pytest.mark.model
    @pytest.mark.parametrize("memory", ["1", "64k", "1GiB"])
    def test_any_memory_gives_the_same_file(self, run: Terminal, vocab: Vocab, tmp_path: Path, memory: str) -> None:
        values = [f"open_{row * 7919 % 700}" for row in range(5000)] + [" "]
        out, bad = tmp_path / "out.ttrie", tmp_path / "bad.jsonl"
        source = lines(tmp_path / "v.txt", values)
        summary = json.loads(run("build", source, "-o", out, "--refused", bad, "--memory", memory, "--json").out)
        assert (summary["values"], summary["leaves"]) == (5001, 701)
        assert out.read_bytes() == Trie.from_strings(vocab, values).to_bytes(vocab)
        rows = np.arange(3000).reshape(-1, 3) * 7919 % 1000
        np.save(tmp_path / "ids.npy", rows)
        assert run("build", tmp_path / "ids.npy", "-o", out, "--memory", memory).code == 0
        assert out.read_bytes() == Trie.from_sequences(rows).to_bytes(vocab)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.jsonl", "ids.npy", "out.ttrie", "v.txt"]

    @pytest.mark.parametrize("memory", ["0", "-1", "much", "5T", "1.5G"])
    def test_no_memory(self, run: Terminal, tmp_path: Path, memory: str) -> None:
        source = lines(tmp_path / "v.txt", VALUES)
        run("build", source, "-o", tmp_path / "out.ttrie", f"--memory={memory}").fails(2, "--memory", memory)

    @pytest.mark.model
    def test_refused_values_are_listed(self, run: Terminal, vocab: Vocab, tmp_path: Path) -> None:
        # After "ye" the tokenizer joins what begins with "s".
        source = lines(tmp_path / "v.txt", ["no", "s", "maybe", *(f"x{i}" for i in range(9000)), "same"])
        out, bad = tmp_path / "out.ttrie", tmp_path / "bad.jsonl"
        run("build", source, "-o", out, "--prefix", "ye").fails(1, "crosses the boundary")
        assert not out.exists()
        result = run("build", source, "-o", out, "--prefix", "ye", "--refused", bad)
        assert result.code == 0, result
        refused = [json.loads(line) for line in bad.read_text(encoding="utf-8").splitlines()]
        assert refused[0]["line"] == 2
        assert refused[0]["value"] == "s"
        assert "boundary" in refused[0]["reason"]
        assert len(Trie.open(out, verify=True)) == 9004 - len(refused)

    @pytest.mark.model
    def test_a_column_is_read_by_row_groups(self, run: Terminal, vocab: Vocab, tmp_path: Path) -> None:
        source, out = tmp_path / "names.parquet", tmp_path / "out.ttrie"
        titles = [f"title {number}" for number in range(10_000)]
        schema = pyarrow.schema({"noise": pyarrow.string(), "title": pyarrow.large_string(), "number": pyarrow.int32()})
        with parquet.ParquetWriter(source, schema, compression="zstd") as writer:
            for start in range(0, len(titles), 700):
                part = titles[start : start + 700]
                columns = [["x" * 50] * len(part), part, range(start, start + len(part))]
                writer.write_table(pyarrow.table(columns, schema=schema))
        assert parquet.ParquetFile(source).num_row_groups == 15
        assert run("build", source, "--column", "title", "-o", out).code == 0
        assert Trie.open(out, vocab=vocab, verify=True) == Trie.from_strings(vocab, titles)
        assert run("build", source, "--field", "number", "-o", out).code == 0
        assert Trie.open(out, vocab=vocab) == Trie.from_strings(vocab, [str(number) for number in range(10_000)])

    def test_of_a_large_parquet_file_little_is_in_memory(self, tmp_path: Path) -> None:
        source, text = tmp_path / "names.parquet", "x" * 1000
        schema = pyarrow.schema({"title": pyarrow.string()})
        with parquet.ParquetWriter(source, schema, compression="none", use_dictionary=False) as writer:
            for group in range(30):
                column = [[f"{group:02}{number:04}{text}" for number in range(10_000)]]
                writer.write_table(pyarrow.table(column, schema=schema))
        assert source.stat().st_size > 300e6
        code = """
import resource, sys
from pathlib import Path
import pyarrow.parquet
from tokentrie.cli.values import texts
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert sum(1 for _ in texts(Path(sys.argv[1]), "title")) == 300_000
print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""
        done = subprocess.run([sys.executable, "-c", code, source], capture_output=True, text=True)
        assert done.stderr == ""
        assert int(done.stdout) < 150e6

    @pytest.mark.model
    def test_bad_parquet(self, run: Terminal, tmp_path: Path) -> None:
        source, out = tmp_path / "names.parquet", tmp_path / "out.ttrie"

        def refused(column: str, *parts: str) -> None:
            run("build", source, "--column", column, "-o", out).fails(1, str(source), *parts)
            assert not out.exists()

        columns = {
            "title": ["a", "b", None],
            "list": [["a"], ["b"], []],
            "map": [{"a": 1}, {"a": 2}, {"a": 3}],
            "bytes": [b"a", b"b", b"c"],
            "bool": [True, False, True],
            "day": [datetime.date(2026, 1, day) for day in (1, 2, 3)],
        }
        parquet.write_table(pyarrow.table(columns), source)
        refused("name", "unknown column 'name': the columns are 'title', 'list', 'map'")
        refused("map.a", "unknown column 'map.a'")
        refused("title", "row 3: the field 'title' is null, not text")
        refused("list", "row 1: the field 'list' is an array, not text")
        refused("map", "row 1: the field 'map' is an object, not text")
        refused("bytes", "row 1: the field 'bytes' is bytes, not text")
        refused("bool", "row 1: the field 'bool' is true or false, not text")
        refused("day", "row 1: the field 'day' is date, not text")
        parquet.write_table(pyarrow.table({"title": [f"name {number}" for number in range(5000)]}), source)
        whole = source.read_bytes()
        for cut in (0, 3, 8, len(whole) // 2, len(whole) - 1):
            source.write_bytes(whole[:cut])
            refused("title")
        source.write_bytes(whole[:2000] + bytes(3000) + whole[5000:])
        refused("title")
        source.unlink()
        refused("title", "No such file")

    @pytest.mark.model
    def test_bad_input(self, run: Terminal, tmp_path: Path) -> None:
        out = tmp_path / "out.ttrie"
        run("build", tmp_path / "no.txt", "-o", out).fails(1, "no.txt", "No such file")
        run("build", tmp_path, "-o", out).fails(1, str(tmp_path))
        (tmp_path / "bad.txt").write_bytes(b"good\n\xff\n")
        run("build", tmp_path / "bad.txt", "-o", out).fails(1, "bad.txt, line 2", "not UTF-8: byte 0 is 0xff")
        run("build", lines(tmp_path / "e.txt", []), "-o", out).fails(1, "e.txt: holds no value, so the set has no leaf")
        run("build", lines(tmp_path / "r.csv", ["id", "1"]), "-o", out).fails(2, "--field")
        run("build", lines(tmp_path / "r.csv", ["id", "1"]), "--field", "x", "-o", out).fails(1, "unknown column 'x'")
        run("build", lines(tmp_path / "j.jsonl", ['{"x": [1]}']), "--field", "x", "-o", out).fails(
            1, "line 1", "an array, not text"
        )
        run("build", lines(tmp_path / "g.txt", ["a"]), "-o", tmp_path / "none" / "out.ttrie").fails(1, "none")
        run("build", lines(tmp_path / "g.txt", ["a"]), "-m", tmp_path / "g.txt", "-o", out).fails(1, "GGUF")
        assert not out.exists()


class TestDiff:
    @pytest.mark.model
    def test_what_differs(self, run: Terminal, vocab: Vocab, tmp_path: Path) -> None:
        one, two = tmp_path / "one.ttrie", tmp_path / "two.ttrie"
        Trie.from_strings(vocab, VALUES).save(one, vocab)
        Trie.from_strings(vocab, [*VALUES[1:], "new", "newer"]).save(two, vocab)
        result = run("inspect", one, two)
        assert result.code == 1
        assert "- open_file  [" in result.out
        assert "+ new  [" in result.out
        assert "5 leaves in both, 1 only in" in result.out
        document = json.loads(run("inspect", one, two, "--json", "--most", "1").out)
        assert (document["same"], document["both"], document["only_second"]["count"]) == (False, 5, 2)
        assert len(document["only_second"]["leaves"]) == 1
        assert run("inspect", one, one).code == 0

    def test_bad_files(self, run: Terminal, tmp_path: Path) -> None:
        text = lines(tmp_path / "text.ttrie", ["x"])
        run("inspect", text, text).fails(1, "text.ttrie")
        run("inspect", tmp_path / "no.ttrie", text).fails(1, "no.ttrie")


@pytest.mark.model
def test_a_built_set_constrains_a_model(run: Terminal, tmp_path: Path, tiny_path: Path) -> None:
    out = tmp_path / "tools.ttrie"
    assert run("build", lines(tmp_path / "t.txt", VALUES), "-o", out).code == 0
    with Model(tiny_path, n_threads=1) as model:
        trie = Trie.open(out, vocab=model.vocab)
        assert model.generate("Next: ", trie).leaf is not None
        assert model.choose("Next: ", trie).name in VALUES


@pytest.mark.model
@pytest.mark.parametrize("kind", [{"tokenization": "all"}, {"open_end": True}])
def test_sets_of_many_sequences(run: Terminal, vocab: Vocab, tmp_path: Path, kind: dict[str, object]) -> None:
    source, out = lines(tmp_path / "v.txt", VALUES), tmp_path / "v.ttrie"
    options = ["--open-end"] if "open_end" in kind else ["--tokenization", "all"]
    assert run("build", source, "-o", out, *options).code == 0
    trie = Trie.open(out, vocab=vocab, verify=True)
    assert trie == Trie.from_strings(vocab, VALUES, **kind)  # type: ignore[arg-type]
    shown = run("inspect", out, "--depth", 3)
    assert shown.code == 0
    assert "several sequences stand for one value" in " ".join(shown.out.split())
    assert json.loads(run("inspect", out, "--json").out)["is_tree"] is False
    found = run("inspect", out, "--find", "open_files")
    assert "open_files" in found.out
    both = ["--tokenization", "all", "--open-end"]
    run("build", source, "-o", tmp_path / "no.ttrie", *both).fails(2, "open_end goes with")
    assert not (tmp_path / "no.ttrie").exists()


def test_nothing_takes_the_place_of_what_is_read(run: Terminal, tmp_path: Path, tiny_path: Path) -> None:
    source = lines(tmp_path / "v.txt", VALUES)
    (tmp_path / "link.txt").symlink_to(source)
    before = source.read_bytes()
    run("build", source, "-o", source).fails(2, "--output", "VALUES")
    run("build", source, "-o", tmp_path / "link.txt").fails(2, "--output")
    run("build", source, "-o", tmp_path / "a.ttrie", "--refused", source).fails(2, "--refused")
    run("build", source, "-o", tmp_path / "a.ttrie", "--refused", tmp_path / "a.ttrie").fails(2, "too")
    run("build", source, "--vocab", tiny_path, "-o", tiny_path).fails(2, "--vocab")
    assert source.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.txt", "v.txt"]


@pytest.mark.model
def test_files_for_two_vocabularies_are_not_compared(run: Terminal, tmp_path: Path, vocab: Vocab) -> None:
    one, other = tmp_path / "one.ttrie", tmp_path / "other.ttrie"
    trie = Trie.from_sequences([[1], [2]])
    trie.save(one, vocab)
    trie.save(other, Vocab.from_tokens([b"a", b"b", b"c"]))
    run("inspect", one, other).fails(1, "two vocabularies")
    assert run("inspect", one, one).code == 0
