"""`tokentrie decide`, also with --calibrate, run for real."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from test_cli import Result, Terminal
from tokentrie import Model
from tokentrie.decisions import Calibration, Question

pytestmark = pytest.mark.model

QUESTIONS: dict[str, Any] = {
    "questions": {
        "on": {"type": "predicate", "instructions": "Is the lamp on?"},
        "colour": {"type": "choice", "options": ["red", "blue", True]},
        "size": {"type": "score", "levels": ["small", "large"]},
    },
    "permute": 2,
}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(capsys, monkeypatch)


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.json"
    path.write_text(json.dumps(QUESTIONS), encoding="utf-8")
    return path


def values_of(answer: dict[str, Any]) -> list[Any]:
    return [one["value"] for one in answer["probabilities"]]


def shares_of(answer: dict[str, Any]) -> list[float]:
    return [one["probability"] for one in answer["probabilities"]]


def test_answers_are_those_of_the_model(run: Terminal, questions: Path, tmp_path: Path) -> None:
    done = run("decide", "-q", str(questions), "--state", "The lamp is on.", "--json", "--threads", "1")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    asked = {"on": ["yes", "no"], "colour": ["red", "blue", True], "size": ["small", "large"]}
    assert list(found["answers"]) == list(asked)
    with Model(n_threads=1) as model:
        (same,) = json.loads(model._decide(json.dumps({"state": "The lamp is on.", **QUESTIONS})))
    for name, answer in found["answers"].items():
        assert values_of(answer) == values_of(same["answers"][name])
        assert shares_of(answer) == pytest.approx(shares_of(same["answers"][name]), abs=0.02)
    (tmp_path / "letter.txt").write_text("The lamp is on.", encoding="utf-8")
    shown = run("decide", "-q", str(questions), "--state-file", str(tmp_path / "letter.txt"))
    assert shown.code == 0, shown.err
    for said in ("on: ", "yes", "colour: ", "blue", "true", "size: ", "from 0 to 1", "forward pass", "tiny.gguf"):
        assert said in shown.out
    inline = run("decide", "-q", json.dumps(QUESTIONS), "--state", "The lamp is on.")
    assert inline.out.splitlines()[:3] == shown.out.splitlines()[:3]
    talk = json.dumps([{"role": "user", "content": "The lamp is on."}])
    as_data = run("decide", "-q", "-", "--state", talk, "--json-state", "--json", stdin=json.dumps(QUESTIONS))
    same_said = json.loads(as_data.out)["answers"]["on"]["probability"]
    assert same_said == pytest.approx(found["answers"]["on"]["probability"], abs=0.02)


def test_below_a_threshold_it_says_why(run: Terminal, tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_text(json.dumps({**QUESTIONS, "threshold": 1}), encoding="utf-8")
    done = run("decide", "-q", str(path), "--state", "s")
    assert done.out.count("none: the probability") == 3


@pytest.mark.parametrize(
    ("content", "more", "says", "code"),
    [
        ("{", (), "invalid JSON", 2),
        ("[]", (), 'must be an object with "questions"', 2),
        ('{"questions": {}}', (), "questions: there is no question", 2),
        ('{"questions": {"q": {"type": "predicate"}}, "state": 1}', (), "it has a 'state'", 2),
        ('{"questions": {"q": {"type": "choice", "options": ["a", "a"]}}}', (), '"a" stands there twice', 2),
        ('{"questions": {"q": {"type": "predicate"}}}', ("--json-state",), "invalid JSON", 2),
        ('{"questions": {"q": {"type": "predicate"}}}', ("--state-file", "x"), "--state-file", 2),
        ('{"questions": {"q": {"type": "predicate"}}, "tempreature": 1}', (), "tempreature: unknown field", 2),
    ],
)
def test_what_is_wrong_is_one_line(
    run: Terminal, tmp_path: Path, content: str, more: tuple[str, ...], says: str, code: int
) -> None:
    path = tmp_path / "q.json"
    path.write_text(content, encoding="utf-8")
    done = run("decide", "-q", str(path), "--state", "s t", *more)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert "Traceback" not in done.err
    assert len(done.err.strip().splitlines()) == 1


NAMES = ("on", "colour", "size")
COLUMNS = [f"{name}_{what}" for name in NAMES for what in ("answer", "probability", "mass", "probabilities")]


def rows_of(count: int) -> list[dict[str, Any]]:
    words = (("on", "yes"), ("off", "no"))
    return [{"id": n, "text": f"Lamp {n} is {words[n % 2][0]}.", "lit": words[n % 2][1]} for n in range(count)]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return [*csv.DictReader(file)]
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def decide(run: Terminal, questions: Path, source: Path, out: Path, *more: str) -> Result:
    return run("decide", "-q", str(questions), "--input", str(source), "-o", str(out), "--threads", "1", *more)


def test_every_row_gets_the_answers_of_the_model(run: Terminal, questions: Path, tmp_path: Path) -> None:
    source = written(tmp_path / "rows.jsonl", rows_of(40))
    done = decide(run, questions, source, tmp_path / "out.jsonl", "--field", "text", "--json")
    assert done.code == 0, done.err
    summary = json.loads(done.out)
    assert (summary["rows"], summary["new"], summary["errors"]) == (40, 40, 0)
    assert sum(summary["answers"]["on"].values()) == 40
    found = read(tmp_path / "out.jsonl")
    assert [*found[0]] == ["id", "text", "lit", *COLUMNS]
    with Model(n_threads=1) as model:
        text = json.dumps({"states": [row["text"] for row in rows_of(40)], **QUESTIONS})
        expected = json.loads(model._decide(text))
    for row, answers in zip(found, expected, strict=True):
        for name in NAMES:
            answer = answers["answers"][name]
            assert [*row[f"{name}_probabilities"].values()] == pytest.approx(shares_of(answer), abs=0.02)
            assert row[f"{name}_probability"] == pytest.approx(answer["probability"], abs=0.02)
    # The same in a table, and as data: the whole row is the state.
    table = decide(
        run, questions, written(tmp_path / "rows.csv", rows_of(5)), tmp_path / "out.csv", "--template", "{text}"
    )
    assert table.code == 0, table.err
    of_table = read(tmp_path / "out.csv")
    assert [*of_table[0]] == ["id", "text", "lit", *COLUMNS]
    assert float(of_table[0]["on_probability"]) == pytest.approx(found[0]["on_probability"], abs=0.02)
    whole = decide(run, questions, written(tmp_path / "few.jsonl", rows_of(2)), tmp_path / "whole.jsonl")
    assert whole.code == 0, whole.err
    with Model(n_threads=1) as model:
        (of_row,) = json.loads(model._decide(json.dumps({"state": rows_of(1)[0], **QUESTIONS})))
    of_data = read(tmp_path / "whole.jsonl")[0]
    assert of_data["on_probability"] == pytest.approx(of_row["answers"]["on"]["probability"], abs=0.02)


def test_a_run_that_was_stopped_goes_on(run: Terminal, questions: Path, tmp_path: Path) -> None:
    source, out = written(tmp_path / "rows.jsonl", rows_of(3_000)), tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "tokentrie", "decide", "-q", str(questions), "--input", str(source)]
    command += ["--field", "text", "--threads", "1", "-o", str(out)]
    partial = tmp_path / "out.jsonl.partial"
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 100
    while not (partial.exists() and partial.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "the same command goes on from there" in said
    assert not out.exists()
    kept = len(partial.read_text().splitlines())
    assert 0 < kept < 3_000
    # Other questions are another run.
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**QUESTIONS, "permute": 1}), encoding="utf-8")
    refused = decide(run, other, source, out, "--field", "text")
    assert refused.code == 1
    assert "was made with another --questions" in refused.err
    # What is there is kept, to the byte, and the first group of it is what a run in one go gives.
    before = partial.read_text().splitlines()[:kept]
    written(source, rows_of(kept + 64))
    again = decide(run, questions, source, out, "--field", "text", "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)["new"] == 64
    assert out.read_text().splitlines()[:kept] == before
    whole = decide(run, questions, source, tmp_path / "whole.jsonl", "--field", "text")
    assert whole.code == 0, whole.err
    assert (tmp_path / "whole.jsonl").read_text() == out.read_text()


def test_faulty_rows(run: Terminal, questions: Path, tmp_path: Path) -> None:
    faulty = [{"id": 3, "text": "long " * 5_000, "lit": "no"}, {"id": 4, "text": None, "lit": ""}]
    rows = [*rows_of(3), *faulty, *rows_of(2)]
    source = written(tmp_path / "rows.jsonl", rows)
    stopped = decide(run, questions, source, tmp_path / "a.jsonl", "--field", "text")
    assert stopped.code == 1
    assert 'rows.jsonl, line 4: the question "on": 10026 tokens' in stopped.err
    assert not (tmp_path / "a.jsonl").exists()
    assert len(read(tmp_path / "a.jsonl.partial")) == 3, "what is done before it is kept"
    null = decide(
        run,
        questions,
        written(tmp_path / "null.jsonl", [*rows_of(2), faulty[1]]),
        tmp_path / "e.jsonl",
        "--field",
        "text",
    )
    assert null.code == 1
    assert "null.jsonl, line 3: the field 'text' is null, not text" in null.err
    kept = decide(run, questions, source, tmp_path / "b.jsonl", "--field", "text", "--on-error", "return", "--json")
    assert json.loads(kept.out)["errors"] == 2
    found = read(tmp_path / "b.jsonl")
    assert len(found) == 7
    assert "tokens" in found[3]["error"]
    assert "not text" in found[4]["error"]
    assert found[5]["on_answer"] in (True, False)
    left = decide(run, questions, source, tmp_path / "c.csv", "--field", "text", "--on-error", "skip")
    assert left.code == 0
    assert len(read(tmp_path / "c.csv")) == 5
    taken = written(tmp_path / "taken.jsonl", [{"text": "x", "on_answer": 1}])
    clash = decide(run, questions, taken, tmp_path / "d.jsonl", "--field", "text")
    assert "the field 'on_answer' has the name of a result" in clash.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--state", "s", "--field", "text"], "--field"),
        (["--input", "rows.jsonl", "--field", "text"], "--output"),
        (["--input", "rows.jsonl", "--state", "s", "-o", "o.csv"], "--state and --input"),
        (["--input", "rows.jsonl", "--json-state", "-o", "o.csv"], "--json-state"),
        (["--input", "rows.txt", "-o", "o.csv"], "the name must end with"),
        (["--input", "rows.jsonl", "-o", "o.txt"], "the name must end with"),
        (["--input", "rows.jsonl", "-o", "o.csv", "--calibration", "questions.json"], "invalid calibration"),
    ],
)
def test_options_that_do_not_fit(
    run: Terminal, questions: Path, tmp_path: Path, arguments: list[str], says: str
) -> None:
    written(tmp_path / "rows.jsonl", rows_of(2))
    (tmp_path / "rows.txt").write_text("x")
    files = {"rows.jsonl", "rows.txt", "o.csv", "o.txt", "questions.json"}
    done = run("decide", "-q", str(questions), *(str(tmp_path / one) if one in files else one for one in arguments))
    assert done.code == 2
    assert says in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_a_prior_over_all_rows_is_refused(run: Terminal, tmp_path: Path) -> None:
    rows = written(tmp_path / "rows.jsonl", rows_of(2))
    asks = tmp_path / "batch.json"
    asks.write_text(json.dumps({**QUESTIONS, "prior": "batch"}), encoding="utf-8")
    done = run("decide", "-q", str(asks), "--input", str(rows), "-o", str(tmp_path / "o.csv"))
    assert (done.code, (tmp_path / "o.csv").exists()) == (2, False)
    assert "needs the answers to all rows" in done.err


def test_calibrate_and_decide_with_it(run: Terminal, questions: Path, tmp_path: Path) -> None:
    rows = [*rows_of(40), {"id": 40, "text": "Lamp 40 is broken.", "lit": ""}]
    source, out = written(tmp_path / "known.csv", rows), tmp_path / "calibration.json"
    given = ["decide", "-q", str(questions), "--input", str(source), "--threads", "1", "--calibrate", str(out)]
    shown = run(*given, "--field", "text", "--gold", "on=lit")
    assert shown.code == 0, shown.err
    for said in ("on: 40 examples", "accuracy", "Brier", "log loss", "ECE", "before", "after", "temperature"):
        assert said in shown.out
    found = Calibration.load(out)
    assert [*found.questions] == ["on"]
    only_on = tmp_path / "on.json"
    only_on.write_text(json.dumps({"questions": {"on": QUESTIONS["questions"]["on"]}, "permute": 2}), encoding="utf-8")
    plain = json.loads(run("decide", "-q", str(only_on), "--state", "Lamp 1 is off.", "--json").out)
    done = run("decide", "-q", str(only_on), "--state", "Lamp 1 is off.", "--json", "--calibration", str(out))
    assert done.code == 0, done.err
    fitted, share = found.questions["on"], plain["answers"]["on"]["probability"]
    odds = (share / (1 - share)) ** (1 / fitted.temperature) * 2.718281828 ** (fitted.bias[0] - fitted.bias[1])
    assert json.loads(done.out)["answers"]["on"]["probability"] == pytest.approx(odds / (1 + odds), abs=0.02)
    # Of other questions it says so, in one line.
    other = run("decide", "-q", str(questions), "--state", "s", "--calibration", str(out))
    assert other.code == 2
    assert "the calibration does not have this question" in other.err
    # A whole row is asked about without the right answers.
    as_data = run(*given, "--gold", "on=lit", "--json")
    assert as_data.code == 0, as_data.err
    with Model(n_threads=1) as model:
        states = [{"id": str(row["id"]), "text": row["text"]} for row in rows[:40]]
        same = model.calibrate(
            states,
            {"on": Question(bool, instructions="Is the lamp on?")},
            {"on": [row["lit"] for row in rows[:40]]},
            permute=2,
        )
    measured = json.loads(as_data.out)["questions"]["on"]["before"]["log_loss"]
    assert measured == pytest.approx(same.questions["on"].before.log_loss, abs=0.02)


@pytest.mark.parametrize(
    ("more", "says", "code"),
    [
        (["--gold", "on"], "write QUESTION=FIELD", 2),
        (["--gold", "off=lit"], "unknown question 'off'", 2),
        (["--gold", "on=light"], "unknown field 'light'", 1),
        (["--gold", "on=text"], '"Lamp 0 is on." is not an answer to the question "on"', 2),
        ([], "unknown field 'on'", 1),
    ],
)
def test_calibrations_that_cannot_be(
    run: Terminal, questions: Path, tmp_path: Path, more: list[str], says: str, code: int
) -> None:
    source = written(tmp_path / "known.jsonl", rows_of(12))
    given = ["decide", "-q", str(questions), "--input", str(source), "--calibrate", str(tmp_path / "c.json")]
    done = run(*given, "--field", "text", *more)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not (tmp_path / "c.json").exists()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--state", "s", "--calibrate", "c.json"], "--state"),
        (["--input", "r.jsonl", "--calibrate", "c.json", "-o", "o.csv", "--restart"], "--output"),
        (["--input", "r.jsonl", "--calibrate", "c.json", "--calibration", "d.json"], "--calibration"),
        (["--calibrate", "c.json"], "--calibrate needs rows whose answers are known"),
        (["--state", "s", "--gold", "on=lit"], "it goes with --calibrate"),
    ],
)
def test_calibrate_goes_with_known_rows_alone(run: Terminal, questions: Path, args: list[str], says: str) -> None:
    done = run("decide", "-q", str(questions), *args)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "(see tokentrie decide --help)" in done.err


def test_diagnose_measures_each_way(run: Terminal, tmp_path: Path) -> None:
    source = written(tmp_path / "known.csv", rows_of(20))
    asked = json.dumps({"questions": {"on": {"type": "predicate", "instructions": "Is the lamp on?"}}})
    args = ["decide", "-q", asked, "--input", str(source), "--field", "text", "--gold", "on=lit", "--diagnose"]
    done = run(*args, "--json", "--threads", "1")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    ways = {(one["readout"], one["prefix"], one.get("prompt"), one["examples"]) for one in found["tried"]}
    assert (found["rows"], len(ways), len(found["tried"])) == (17, 16, 16)
    with Model(n_threads=1) as model:
        for one in found["tried"]:
            if one["examples"]:
                continue
            how = {name: one[name] for name in ("readout", "prefix", "prompt") if name in one}
            question = {"on": Question(bool, instructions="Is the lamp on?")}
            rows = rows_of(20)[3:]
            same = model.decide_many([row["text"] for row in rows], question, **how)
            hits = [answer["on"].value is (row["lit"] == "yes") for answer, row in zip(same, rows, strict=True)]
            assert one["questions"]["on"]["accuracy"] == pytest.approx(sum(hits) / 17)
    shown = run(*args, "--threads", "1")
    assert "question first" in shown.out
    rows = rows_of(20)
    rows[6]["lit"] = "perhaps"
    written(source, rows)
    wrong = run(*args)
    assert wrong.code == 1
    assert 'known.csv, line 8: "perhaps" is not an answer to the question "on"' in wrong.err


def test_options_of_the_command_line_are_those_of_the_model(run: Terminal, tmp_path: Path) -> None:
    asked = json.dumps({"questions": {"on": {"type": "choice", "options": ["on", "off"]}}, "threshold": 0.1})
    given = ["--threshold", "1", "--escalate", "1", "--think-tokens", "4", "--out-of-scope", "--max-rows", "64"]
    given += ["--order", "balanced", "--order-confidence", "1", "--threads", "1"]
    done = run("decide", "-q", asked, "--state", "It is on.", *given, "--json")
    assert done.code == 0, done.err
    answer = json.loads(done.out)["answers"]["on"]
    with Model(n_threads=1) as model:
        same = model.decide(
            "It is on.", {"on": ["on", "off"]}, threshold=1, escalate=1, think_tokens=4, out_of_scope=True,
            order="balanced", order_confidence=1,
        )["on"]  # fmt: skip
    assert same.thought is not None
    assert (answer["thought"]["text"], answer["value"], answer["order"]) == (same.thought.text, None, "balanced")
    assert answer["out_of_scope"] == pytest.approx(same.out_of_scope, abs=0.02)
    shown = run("decide", "-q", asked, "--state", "It is on.", *given)
    assert "thought first: " in shown.out
    assert "out of scope: " in shown.out
    source = written(tmp_path / "rows.jsonl", rows_of(9))
    job = ["decide", "-q", asked, "--input", str(source), "--field", "text", "--threads", "1"]
    rows = run(*job, "-o", str(tmp_path / "out.jsonl"), "--out-of-scope", "--escalate", "0.4", "--think-tokens", "4")
    assert rows.code == 0, rows.err
    assert all(0 <= row["on_out_of_scope"] <= 1 for row in read(tmp_path / "out.jsonl"))
    refused = run("decide", "-q", asked, "--state", "s", "--target-accuracy", "0.9")
    assert (refused.code, "target_accuracy" in refused.err) == (2, True)
    known = ["decide", "-q", asked, "--input", str(source), "--gold", "on=lit", "--diagnose", "--escalate", "0.1"]
    assert "writes no answers" in run(*known).err
