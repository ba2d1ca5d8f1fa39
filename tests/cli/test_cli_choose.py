"""`tokentrie choose`, run for real: in this process, and as a process of its own where it is killed."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support import payload
from test_cli import Result, Terminal, process
from tokentrie import Model, Trie
from tokentrie.cli.loading import packaged_model
from tokentrie.cli.rows import loop
from tokentrie.cli.rows.input import Prompts, Row

pytestmark = pytest.mark.model

QUESTIONS = Path(__file__).parents[2] / "tools" / "tiny_model" / "heldout.jsonl"
LABELS = ["positive", "negative", "neutral"]
CHOICES = ",".join(LABELS)
# One thread: others, which wait for each other, are slow on a busy machine.
ONCE = ["choose", "--threads", "1"]
TINY = packaged_model()
HEAD = "<|im_start|>system\nLabel the review: positive, negative or neutral.<|im_end|>\n<|im_start|>user\n"
TAIL = "<|im_end|>\n<|im_start|>assistant\n"
TEMPLATE = (HEAD + "{text}" + TAIL).replace("\n", r"\n")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tiny_path: Path) -> Terminal:
    return Terminal(capsys, monkeypatch)


@pytest.fixture(scope="module")
def model(tiny_path: Path) -> Model:
    return Model(n_threads=1)


@pytest.fixture(scope="module")
def reviews() -> list[dict[str, Any]]:
    """A hundred of them with the right label."""
    questions = map(json.loads, QUESTIONS.read_text(encoding="utf-8").split("\n")[:-1])
    chosen = [question for question in questions if question["task"] == "sentiment"]
    return [
        {"id": i, "text": question["prompt"][len(HEAD) : -len(TAIL)], "answer": question["answer"]}
        for i, question in enumerate(chosen)
    ]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def rows_of(rows: Path | str, out: Path, *args: str, choices: str = "yes,no", field: bool = True) -> list[str | Path]:
    """The arguments for a file of rows."""
    what = ["--field", "text"] if field else []
    return [*ONCE, "-m", TINY, "--input", rows, *what, "-c", choices, "-o", out, *args]


def read(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    return [json.loads(line) for line in lines]


class TestOnePrompt:
    def test_the_probabilities_of_the_model(self, run: Terminal, model: Model) -> None:
        prompt = HEAD + "The soup was terrible." + TAIL
        values = [*LABELS, "a, b"]
        chosen = model.choose(prompt, values)
        given = [part for value in values for part in ("--choice", value)]
        result = run(*ONCE, "-p", prompt, *given, "--json")
        assert (result.code, result.err) == (0, "")
        document = result.json
        assert (document["name"], document["index"]) == ("negative", 1) == (chosen.name, chosen.index)
        assert list(document["probabilities"]) == [values[i] for i in chosen.ranking]
        for name, logprob, probability in zip(values, chosen.logprobs, chosen.probabilities.values(), strict=True):
            assert document["logprobs"][name] == pytest.approx(logprob, abs=0.01)
            assert document["probabilities"][name] == pytest.approx(probability, rel=0.02)
        assert document["mass"] == pytest.approx(sum(map(math.exp, document["logprobs"].values())))
        assert document["mass_bounds"] == [document["mass"]] * 2
        assert document["stats"]["forward_passes"] >= 1
        assert document["model"]["path"].endswith("tiny.gguf")
        assert document["warnings"] == []

    def test_a_table_for_people(self, run: Terminal) -> None:
        prompt = HEAD + "The soup was terrible." + TAIL
        result = run(*ONCE, "-p", prompt, "-c", CHOICES)
        assert (result.code, result.err) == (0, "")
        title, *rows, mass = result.out.splitlines()
        assert title.split() == ["Value", "Probability", "Log-probability"]
        assert rows[0].split()[0] == "negative"
        probabilities = [float(row.split()[1]) for row in rows]
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) == pytest.approx(1, abs=1e-3)
        assert mass.startswith("The probability that the model answers with any of them at all is ")
        assert 0.9 < float(mass.split()[-1].rstrip(".")) <= 1

    def test_a_long_table_is_cut(self, run: Terminal, tmp_path: Path) -> None:
        names = tmp_path / "names.txt"
        names.write_text("".join(f"name {i}\n" for i in range(33)))
        lines = run(*ONCE, "-p", "Hi", "--choices-file", names).out.splitlines()
        assert len(lines) == 1 + 20 + 2
        assert lines[21] == "… 13 more"
        lines = run(*ONCE, "-p", "Hi", "--choices-file", names, "--top", "2").out.splitlines()
        assert len(lines) == 1 + 2 + 2
        assert lines[3].startswith("… 31 more, ")
        assert lines[3].endswith(" of them not scored")
        document = run(*ONCE, "-p", "Hi", "--choices-file", names, "--top", "2", "--json").json
        assert len(document["probabilities"]) == len(document["logprobs"]) == 2
        assert document["mass_bounds"][0] <= document["mass_bounds"][1]
        wide = run(*ONCE, "-p", "Hi", "--choices-file", names, "--beam", "40", "--top", "2", "--json").json
        assert wide["certain"]
        assert wide["name"] == document["name"]
        assert wide["probabilities"].keys() == document["probabilities"].keys()
        assert len(run(*ONCE, "-p", "Hi", "--choices-file", names, "--beam", "1", "--json").json["logprobs"]) == 1

    def test_a_beam_is_for_one_prompt(self, run: Terminal, tmp_path: Path) -> None:
        result = run(*ONCE, "--input", tmp_path / "rows.jsonl", "-c", "a,b", "--beam", "2")
        assert result.code != 0
        assert "--beam" in result.err
        assert "it goes with --prompt" in result.err

    def test_payload(self, run: Terminal) -> None:
        text = json.dumps(payload({"near": [300], "also": [301, 7], "far": [1_000_000]}))
        result = run(*ONCE, "-p", "Hi", "--payload", "-", stdin=text)
        assert result.err.startswith("tokentrie: warning: payload: dropped 1 leaf")
        document = run(*ONCE, "-p", "Hi", "--payload", "-", "--json", stdin=text).json
        assert sorted(document["probabilities"]) == ["also", "near"]
        assert len(document["warnings"]) == 1
        assert document["index"] == ["near", "also"].index(document["name"])

    def test_text_around_the_values(self, run: Terminal, model: Model) -> None:
        prompt = 'name: "'
        trie = Trie.from_strings(model.vocab, ["open", "closed"], prefix='"', suffix='"')
        chosen = model.choose(prompt, trie)
        document = run(*ONCE, "-p", prompt, "-c", "open,closed", "--prefix", '"', "--suffix", '"', "--json").json
        assert document["name"] == chosen.name
        assert document["mass"] == pytest.approx(chosen.mass, rel=0.05)

    @pytest.mark.parametrize(
        ("args", "parts"),
        [
            ([], ["--prompt, --prompt-file or --input"]),
            (["-p", "Hi"], ["--payload, --set, --choices, --choice or --choices-file"]),
            (["-p", "Hi", "--input", "a.jsonl", "-c", "a"], ["--prompt and --input"]),
            (["-p", "Hi", "-c", "a", "--choice", "b"], ["--choices and --choice"]),
            (["-p", "Hi", "-c", "a", "--field", "text"], ["--field", "--input"]),
            (["-p", "Hi", "-c", "a", "--restart"], ["--restart", "--input"]),
            (["-p", "Hi", "-c", "a", "--path", "x"], ["--path", "--payload"]),
            (["-p", "Hi", "--payload", "p.json", "--prefix", "x"], ["--prefix", "payload"]),
            (["-p", "Hi", "-c", "a,,b"], ["--choices", "empty value"]),
            (["-p", "Hi", "--choice", ""], ["--choice", "empty value"]),
            (["-p", "Hi", "-c", "a,b,a"], ["--choices", "'a'", "2 times"]),
            (["-p", "Hi", "--choice", "a", "--choice", "a"], ["--choice", "'a'", "2 times"]),
            (["-p", "", "-c", "a"], ["prompt"]),
            (["-p", "Hi", "-c", "a", "--top", "0"], ["--top"]),
            (["--input", "a.jsonl", "-c", "a", "-o", "b.jsonl"], ["--field or --template"]),
            (["--input", "a.jsonl", "-c", "a", "--field", "x"], ["--output"]),
            (["--input", "a.jsonl", "-c", "a", "--field", "x", "-o", "-", "--restart"], ["--restart", "keeps nothing"]),
            (["-p", "Hi", "-c", "a", "--threshold", "1.5"], ["--threshold"]),
            (["--input", "a.txt", "-c", "a", "--field", "x", "-o", "b.jsonl"], ["--input", "a.txt", ".jsonl", ".csv"]),
            (["--input", "a.jsonl", "-c", "a", "--template", "no field", "-o", "b.jsonl"], ["--template", "{text}"]),
            (["--input", "a.jsonl", "-c", "a", "--template", "{0}", "-o", "b.jsonl"], ["--template", "{text}"]),
            (["--input", "a.jsonl", "-c", "a", "--template", "{x", "-o", "b.jsonl"], ["--template", "{{"]),
            (
                ["--input", "a.jsonl", "-c", "a", "--field", "y", "--template", "{x}", "-o", "b.jsonl"],
                ["--template", "'y'"],
            ),
            (["--input", "-", "--choices-file", "-", "--field", "x", "-o", "b.jsonl"], ["only once"]),
        ],
    )
    def test_wrong_usage(self, run: Terminal, args: list[str], parts: list[str]) -> None:
        run("choose", *args).fails(2, *parts)

    def test_bad_values(self, run: Terminal, tmp_path: Path) -> None:
        names = tmp_path / "names.txt"
        names.write_text("a\nb\na\n")
        run(*ONCE, "-p", "Hi", "--choices-file", names).fails(1, "names.txt", "'a'", "2 times")
        names.write_text("")
        run(*ONCE, "-p", "Hi", "--choices-file", names).fails(1, "no line with a value")
        rows = [{"name": "A", "tokens": [5]}, {"name": "A", "tokens": [6]}]
        twice = json.dumps({"descriptors": [{"path": "a", "leaves": rows}]})
        run(*ONCE, "-p", "Hi", "--payload", "-", stdin=twice).fails(1, "'A'", "2 times")
        run(*ONCE, "-p", "Hi", "-c", "open", "--prefix", " ").fails(1, "open", "prefix")
        run(*ONCE, "-p", "Hi " * 5000, "-c", "a").fails(1, "4096")

    def test_help(self, run: Terminal) -> None:
        result = run("choose", "--help")
        assert (result.code, result.err) == (0, "")
        assert all(part in result.out for part in ("Usage: tokentrie choose", "--skip-errors", r"\n is a line break"))


class TestRows:
    def test_labels_reviews(self, run: Terminal, reviews: list[dict[str, Any]], model: Model, tmp_path: Path) -> None:
        rows, out = write(tmp_path / "rows.jsonl", reviews), tmp_path / "out.jsonl"
        args = rows_of(rows, out, "--template", TEMPLATE, choices=CHOICES, field=False)
        result = run(*args)
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith(f"{out}: 100 rows; ")
        assert "rows/s" in result.out
        assert "forward passes" in result.out
        results = read(out)
        assert [{name: row[name] for name in reviews[0]} for row in results] == reviews
        assert sum(row["choice"] == row["answer"] for row in results) >= 90
        for row in results:
            assert list(row) == ["id", "text", "answer", "choice", "probability", "mass", "probabilities"]
            assert sorted(row["probabilities"]) == sorted(LABELS)
            assert next(iter(row["probabilities"].items())) == (row["choice"], row["probability"])
            assert sum(row["probabilities"].values()) == pytest.approx(1, abs=1e-5)
        for row in results[:3]:
            alone = model.choose(HEAD + row["text"] + TAIL, LABELS)
            assert row["probability"] == pytest.approx(alone.probability, rel=0.01)

        again = run(*args, "--json").json
        assert (again["rows"], again["new"], again["errors"], again["forward_passes"]) == (100, 0, 0, 0)
        summary = run(*args, "--json", "--restart").json
        assert (summary["rows"], summary["new"], summary["output"]) == (100, 100, str(out))
        assert summary["forward_passes"] >= 4
        assert summary["rows_per_second"] == pytest.approx(100 / summary["seconds"])
        assert read(out) == results

    def test_csv(self, run: Terminal, tmp_path: Path) -> None:
        rows, out = tmp_path / "rows.csv", tmp_path / "out.jsonl"
        # As a spreadsheet writes it: a byte order mark, \r\n, line breaks and quotes within fields.
        rows.write_bytes('\ufeffid,text\r\n1,"good, ""really""\nvery good"\r\n\r\n2,schön\r\n'.encode())
        assert run(*rows_of(rows, out)).code == 0
        assert [(row["id"], row["text"]) for row in read(out)] == [("1", 'good, "really"\nvery good'), ("2", "schön")]
        tabs = tmp_path / "rows.TSV"
        tabs.write_text('id\ttext\n1\t"good, ""really""\nvery good"\n2\tschön\n', encoding="utf-8")
        assert run(*rows_of(tabs, tmp_path / "tabs.jsonl")).code == 0
        assert read(tmp_path / "tabs.jsonl") == read(out)

    def test_standard_input_and_one_best_value(self, run: Terminal, tmp_path: Path) -> None:
        out = tmp_path / "out.jsonl"
        args = rows_of("-", out, "--field", "n", "--top", "1", choices="yes,no,maybe", field=False)
        text = '\ufeff{"n": 7, "u": "\\u2028\\ud83d"}\n\n{"n": "käse", "error": null}'
        assert run(*args, stdin=text).code == 0
        first, second = read(out)
        assert (first["n"], first["u"], second["n"], second["error"]) == (7, "\u2028\ud83d", "käse", None)
        assert [len(row["probabilities"]) for row in (first, second)] == [1, 1]
        assert run(*args, stdin=text).code == 0

    def test_templates(self, run: Terminal, model: Model, tmp_path: Path) -> None:
        rows = write(tmp_path / "rows.jsonl", [{"a": "x", "n": 0.5, "deep": {"b": ["y"]}}])
        out = tmp_path / "out.jsonl"
        template = r"{a!r}{n:.2f}\\n{{\t}}{deep[b][0]}\n"
        assert run(*rows_of(rows, out, "--template", template, field=False)).code == 0
        chosen = model.choose("'x'0.50\\n{\t}y\n", ["yes", "no"])
        (row,) = read(out)
        assert row["probability"] == pytest.approx(chosen.probability, rel=0.02)

    @pytest.mark.parametrize("content", ["", "\n \n", "text\n"])
    def test_no_rows(self, run: Terminal, tmp_path: Path, content: str) -> None:
        rows, out = (
            tmp_path / ("rows.csv" if "text" in content or not content else "rows.jsonl"),
            tmp_path / "out.jsonl",
        )
        rows.write_text(content)
        result = run(*rows_of(rows, out))
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith(f"{out}: 0 rows; ")
        assert out.read_bytes() == b""

    def test_progress_on_a_terminal(
        self, run: Terminal, reviews: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        rows = write(tmp_path / "rows.jsonl", reviews[:40])
        monkeypatch.setenv("FORCE_COLOR", "1")
        result = run(*rows_of(rows, tmp_path / "out.jsonl"))
        assert result.code == 0
        assert "40 of 40 rows, " in result.err
        assert " rows/s" in result.err


def test_text_of_rows_never_becomes_control_tokens(model: Model) -> None:
    vocab, prompts = model.vocab, Prompts(None, "<|im_start|>{text}<|im_end|>")
    for text in ["<|im_end|>", "a<|im_<|im_end|>end|>", "<|im_start|><|im_start|>", "<|im_end", "<", "plain", "\n\n"]:
        tokens = vocab.tokenize_parts(prompts.prompt_parts(Row(1, {"text": text})), add_special=True)
        control = [token for token in tokens if token in vocab.control]
        assert control == vocab.tokenize("<|im_start|><|im_end|>", parse_special=True)
        assert b"".join(vocab[token] for token in tokens).decode() == f"<|im_start|>{text}<|im_end|>"
    parts = [(f"{HEAD}fine", True), ("", False), (TAIL, True)]
    assert vocab.tokenize_parts(parts) == vocab.tokenize(f"{HEAD}fine{TAIL}", parse_special=True)


class TestGoingOn:
    """What was interrupted goes on, and nothing else is touched."""

    @pytest.fixture
    def job(self, tmp_path: Path) -> list[str | Path]:
        """Prompts whose groups begin alike, more alike, otherwise, and alike again."""
        lists = [
            ["an open door", "a day", "the end"],
            ["a day", "a night", "a week"],
            ["Yes or no?", "a no"],
            ["a", "an"],
        ]
        texts = [
            f"{HEAD}Is it {texts[i % len(texts)]}, {'or not, ' * (i % 7)}number {i}?"
            for texts in lists
            for i in range(32)
        ]
        texts[70] = "Something else?"
        rows = write(tmp_path / "rows.jsonl", [{"text": text} for text in texts[:-9]])
        return rows_of(rows, tmp_path / "out.jsonl", choices="yes,no,maybe")

    def test_from_any_byte(self, run: Terminal, job: list[str | Path], tmp_path: Path) -> None:
        out = tmp_path / "out.jsonl"
        assert run(*job).code == 0
        whole = out.read_bytes()
        ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
        for kept, size in [(0, 1), (0, ends[30]), (32, ends[31]), (32, ends[31] + 9), (64, ends[63]), (96, ends[-2])]:
            out.write_bytes(whole[:size])
            assert run(*job, "--json").json["new"] == len(ends) - kept
            assert out.read_bytes() == whole
        out.write_bytes(whole[: ends[-2]] + b"x" * len(whole))
        assert run(*job).code == 0
        assert out.read_bytes() == whole

    def test_when_the_input_has_grown(self, run: Terminal, job: list[str | Path], tmp_path: Path) -> None:
        rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
        lines = rows.read_bytes().splitlines(keepends=True)
        rows.write_bytes(b"".join(lines[:40]))
        assert run(*job).code == 0
        rows.write_bytes(b"".join(lines))
        assert run(*job, "--json").json["new"] == len(lines) - 32
        grown = out.read_bytes()
        assert run(*job, "--restart").code == 0
        assert out.read_bytes() == grown
        rows.write_bytes(b"".join(lines[:40]))
        run(*job).fails(1, "out.jsonl", "more than the results of the 40 rows", "--restart")

    def test_after_ctrl_c_and_kill(self, job: list[str | Path], tmp_path: Path) -> None:
        out, reference, partial = (tmp_path / name for name in ("out.jsonl", "reference.jsonl", "out.jsonl.partial"))
        rows = write(tmp_path / "rows.jsonl", [{"text": f"Is {i} a good number, or {i * i % 97}?"} for i in range(800)])
        assert process(*job, "-o", reference).returncode == 0

        def stop(with_signal: signal.Signals, lines: int) -> Result:
            command = [sys.executable, "-m", "tokentrie.cli", *map(str, job)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
                while running.poll() is None and (not partial.exists() or partial.read_bytes().count(b"\n") < lines):
                    time.sleep(0.002)
                running.send_signal(with_signal)
                return Result(running.wait(), *running.communicate())

        stopped = stop(signal.SIGINT, 32)
        assert not out.exists()
        done = partial.read_bytes().count(b"\n")
        stopped.fails(130, f"{done:,} rows are done", "the same command goes on")
        assert 32 <= done < 800
        assert stop(signal.SIGKILL, done + 32).code == -signal.SIGKILL
        assert done < partial.read_bytes().count(b"\n") < 800
        with partial.open("ab") as file:
            file.write(rows.read_bytes()[:11])
        assert process(*job).returncode == 0
        assert out.read_bytes() == reference.read_bytes()
        assert not partial.exists()

    def test_refuses_what_is_not_its_own(
        self, run: Terminal, job: list[str | Path], tiny_path: Path, tmp_path: Path
    ) -> None:
        out, rows = tmp_path / "out.jsonl", tmp_path / "rows.jsonl"
        assert run(*job).code == 0
        whole = out.read_bytes()
        other = tmp_path / "other.gguf"
        other.write_bytes(tiny_path.read_bytes() + b"\0")
        run(*job, "-m", other).fails(1, "out.jsonl", "another model", "--restart")
        run(*job, "-c", "yes,no").fails(1, "another set of choices", "--restart")
        run(*job, "--top", "1").fails(1, "another --top")
        run(*job, "--template", "Q: {text}").fails(1, "another --template and another --field")
        lines = rows.read_text().splitlines()
        lines[40] = lines[40].replace("number 8?", "number 9?")
        rows.write_text("\n".join(lines))
        run(*job).fails(1, "out.jsonl has in line 41 no result of line 41 of the input", "--restart")
        assert out.read_bytes() == whole
        (tmp_path / "out.jsonl.run.json").unlink()
        run(*job).fails(1, "out.jsonl.run.json", "--restart")
        (tmp_path / "out.jsonl.run.json").write_text("[]")
        run(*job).fails(1, "out.jsonl.run.json", "damaged", "--restart")
        assert out.read_bytes() == whole
        # The order of the values is no other set.
        assert run(*job, "-c", "no,maybe,yes", "--restart").code == 0
        assert run(*job).code == 0
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "other.gguf",
            "out.jsonl",
            "out.jsonl.run.json",
            "rows.jsonl",
        ]

    def test_refuses_a_damaged_output(self, run: Terminal, job: list[str | Path], tmp_path: Path) -> None:
        out = tmp_path / "out.jsonl"
        assert run(*job).code == 0
        whole = out.read_bytes()
        for damage in (
            b"\0" * 40 + b"\n",
            b"[" * 100_000 + b"\n",
            b"7\n",
            b'{"text": "Is it an open door, number 0?"}\n',
        ):
            out.write_bytes(damage + whole)
            run(*job).fails(1, "line 1", "--restart")
            assert out.read_bytes() == damage + whole

    def test_one_run_at_a_time(self, run: Terminal, job: list[str | Path], tmp_path: Path) -> None:
        fcntl = pytest.importorskip("fcntl")
        with (tmp_path / "out.jsonl.partial").open("wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            run(*job).fails(1, "out.jsonl", "another run")
        assert run(*job).code == 0


class TestBadRows:
    FAULTS = (
        ('{"id": 1', "malformed JSON"),
        ('{"id": 1} x', "malformed JSON at column 11"),
        ('{"text": NaN}', "invalid number NaN"),
        ('{"text": 1e999}', "too large"),
        ("[" * 100_000, "malformed JSON"),
        ("[1]", "not a JSON object"),
        ('{"id": 1}', "unknown field 'text': the row has 'id'"),
        ("{}", "unknown field 'text'"),
        ('{"text": null}', "the field 'text' is null"),
        ('{"text": ["a"]}', "the field 'text' is an array"),
        ('{"text": ""}', "the prompt is empty"),
        ('{"text": "\\ud800"}', "surrogate"),
        ('{"text": "%s"}' % ("a b " * 3000), "tokens"),
        (b'{"text": "\xff"}', "not UTF-8: byte 10 is 0xff"),
    )

    @pytest.mark.parametrize("fault", range(len(FAULTS)))
    def test_a_faulty_row(self, run: Terminal, tmp_path: Path, fault: int) -> None:
        line, part = self.FAULTS[fault]
        rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
        faulty = line if isinstance(line, bytes) else line.encode()
        rows.write_bytes(b'{"text": "first"}\n\n' + faulty + b'\n{"text": "last"}\n')
        args = rows_of(rows, out)
        run(*args).fails(1, "rows.jsonl, line 3: ", part, "--on-error skip", "--on-error return")
        assert not out.exists()
        result = run(*args, "--skip-errors")
        assert result.out.startswith(f"{out}: 3 rows, 1 with an error; ")
        first, wrong, last = read(out)
        assert part in wrong.pop("error")
        assert "choice" not in wrong
        assert (first["text"], last["text"]) == ("first", "last")
        # What was passed over stays so.
        assert run(*args, "--json").json["errors"] == 1

    def test_a_faulty_row_further_on(self, run: Terminal, reviews: list[dict[str, Any]], tmp_path: Path) -> None:
        rows = write(tmp_path / "rows.jsonl", [*reviews[:40], {"id": 40}, *reviews[41:]])
        args = rows_of(rows, tmp_path / "out.jsonl")
        run(*args).fails(1, "line 41: unknown field 'text'")
        assert not (tmp_path / "out.jsonl").exists()
        assert len(read(tmp_path / "out.jsonl.partial")) == 32
        write(rows, reviews)
        assert run(*args, "--json").json["new"] == 68

    def test_every_row_faulty(self, run: Terminal, tmp_path: Path) -> None:
        rows, out = write(tmp_path / "rows.jsonl", [{"text": ""}] * 40), tmp_path / "out.jsonl"
        args = rows_of(rows, out, "--skip-errors")
        assert run(*args, "--json").json["errors"] == 40
        assert read(out) == [{"text": "", "error": "the prompt is empty"}] * 40

    @pytest.mark.parametrize(
        ("template", "part"),
        [
            ("{text} {other}", "unknown field 'other'"),
            ("{text[3]}", "unknown field 'text[3]'"),
            ("{text.x}", "unknown field 'text.x'"),
            ("{text.upper}", "not text"),
            ("{text:d}", "template"),
        ],
    )
    def test_templates(self, run: Terminal, tmp_path: Path, template: str, part: str) -> None:
        rows = write(tmp_path / "rows.jsonl", [{"text": "abc"}])
        args = rows_of(rows, tmp_path / "out.jsonl", field=False)
        run(*args, "--template", template).fails(1, "line 1: ", part)

    def test_names_of_results_are_taken(self, run: Terminal, tmp_path: Path) -> None:
        rows = write(tmp_path / "rows.jsonl", [{"text": "abc", "choice": 1}])
        args = rows_of(rows, tmp_path / "out.jsonl")
        run(*args).fails(1, "line 1: ", "'choice'", "rename")
        write(rows, [{"text": "", "error": 1}])
        run(*args, "--skip-errors").fails(1, "line 1: ", "'error'", "rename")

    @pytest.mark.parametrize(
        ("content", "parts"),
        [
            (b"id,txt\n1,a\n", ["line 1", "unknown column 'text': the columns are 'id', 'txt'"]),
            (b"text,text\na,b\n", ["line 1", "two columns", "'text'"]),
            (b'text,id\na,1\n"b,2\nc,3\n', ["line 3", "malformed CSV", "end of data"]),
            (b'text\n"a"b\n', ["line 2", "malformed CSV"]),
            (b"text\na\rb\n", ["line 2", "malformed CSV"]),
            (b"text\n\xe4\n", ["line 2", "not UTF-8: byte 0 is 0xe4"]),
            (b"text,id\na,1\nb\n", ["line 3", "fields is 1, that of the columns 2"]),
            (b"text,id\n,1\n", ["line 2", "the prompt is empty"]),
        ],
    )
    def test_faulty_csv(self, run: Terminal, tmp_path: Path, content: bytes, parts: list[str]) -> None:
        rows = tmp_path / "rows.csv"
        rows.write_bytes(content)
        run(*rows_of(rows, tmp_path / "out.jsonl")).fails(1, *parts)

    def test_files(self, run: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = write(tmp_path / "rows.jsonl", [{"text": "abc"}])
        folder = tmp_path / "folder.csv"
        folder.mkdir()

        run(*rows_of(tmp_path / "none.csv", tmp_path / "out.jsonl")).fails(1, "none.csv: No such file")
        run(*rows_of(folder, tmp_path / "out.jsonl")).fails(1, "folder.csv: Is a directory")
        run(*rows_of(rows, folder)).fails(1, "folder.csv: Is a directory")
        run(*rows_of(rows, tmp_path / "none" / "out.csv")).fails(1, "out.csv: No such file")
        run(*rows_of(rows, rows)).fails(2, "--output", "is the input")
        run(*rows_of(rows, Path(os.devnull))).fails(2, "--output", os.devnull, ".parquet")
        os.mkfifo(tmp_path / "pipe.csv")
        run(*rows_of(rows, tmp_path / "pipe.csv")).fails(1, "pipe.csv", "not a file")
        monkeypatch.setattr("tokentrie.cli.lines.LONGEST_LINE", 1 << 10)
        rows.write_text('{"text": "%s"}' % ("a" * 2000))
        run(*rows_of(rows, tmp_path / "out.jsonl")).fails(1, "rows.jsonl, line 1: longer than")

    def test_a_full_disk(self, tmp_path: Path) -> None:
        resource = pytest.importorskip("resource")
        rows = write(tmp_path / "rows.jsonl", [{"text": "abc " * 100, "i": i} for i in range(64)])
        out = tmp_path / "out.jsonl"
        args = rows_of(rows, out)
        full = process(*args, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)))
        Result(full.returncode, full.stdout, full.stderr).fails(1, "out.jsonl: File too large")
        assert process(*args).returncode == 0
        assert [row["i"] for row in read(out)] == list(range(64))


def test_a_group_is_what_the_model_decodes_together(model: Model) -> None:
    """Otherwise the last digits would depend on where a run was interrupted."""
    trie = Trie.from_strings(model.vocab, ["yes", "no"])
    prompts = iter(["Hi"] * 100)
    next(model.choose_many(prompts, trie))
    assert len(list(prompts)) == 100 - loop.GROUP
