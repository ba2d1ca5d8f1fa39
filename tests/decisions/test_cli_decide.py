"""`tokentrie decide`, run for real."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tokentrie import Model

pytestmark = pytest.mark.model

QUESTIONS: dict[str, Any] = {
    "questions": {
        "on": {"type": "predicate", "instructions": "Is the lamp on?"},
        "colour": {"type": "choice", "options": ["red", "blue", True]},
        "size": {"type": "score", "levels": ["small", "large"]},
    },
    "permute": 2,
}


def tokentrie(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tokentrie", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, input=stdin, timeout=120)


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.json"
    path.write_text(json.dumps(QUESTIONS), encoding="utf-8")
    return path


def test_answers_are_those_of_the_model(questions: Path, tmp_path: Path) -> None:
    done = tokentrie("decide", "-q", str(questions), "--state", "The lamp is on.", "--json", "--threads", "1")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    asked = {"on": ["yes", "no"], "colour": ["red", "blue", True], "size": ["small", "large"]}
    assert list(found["answers"]) == list(asked)
    with Model(n_threads=1) as model:
        (same,) = json.loads(model._decide(json.dumps({"state": "The lamp is on.", **QUESTIONS})))
    for name, answer in found["answers"].items():
        assert answer["probabilities"] == pytest.approx(same["answers"][name]["probabilities"], abs=0.02)
    (tmp_path / "letter.txt").write_text("The lamp is on.", encoding="utf-8")
    shown = tokentrie("decide", "-q", str(questions), "--state-file", str(tmp_path / "letter.txt"))
    assert shown.returncode == 0, shown.stderr
    for said in ("on: ", "yes", "colour: ", "blue", "true", "size: ", "from 0 to 1", "forward pass", "tiny.gguf"):
        assert said in shown.stdout
    talk = json.dumps([{"role": "user", "content": "The lamp is on."}])
    as_data = tokentrie("decide", "-q", "-", "--state", talk, "--json-state", "--json", stdin=json.dumps(QUESTIONS))
    same_said = json.loads(as_data.stdout)["answers"]["on"]["probability"]
    assert same_said == pytest.approx(found["answers"]["on"]["probability"], abs=0.02)


def test_below_a_threshold_it_says_why(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_text(json.dumps({**QUESTIONS, "threshold": 1}), encoding="utf-8")
    done = tokentrie("decide", "-q", str(path), "--state", "s")
    assert done.stdout.count("none: the probability") == 3


@pytest.mark.parametrize(
    ("content", "more", "says", "code"),
    [
        ("{", (), "no JSON", 2),
        ("[]", (), 'must be an object with "questions"', 2),
        ('{"questions": {}}', (), "questions: there is no question", 2),
        ('{"questions": {"q": {"type": "predicate"}}, "state": 1}', (), "it has a 'state'", 2),
        ('{"questions": {"q": {"type": "choice", "options": ["a", "a"]}}}', (), '"a" stands there twice', 2),
        ('{"questions": {"q": {"type": "predicate"}}}', ("--json-state",), "no JSON", 2),
        ('{"questions": {"q": {"type": "predicate"}}}', ("--state-file", "x"), "--state-file", 2),
        ('{"questions": {"q": {"type": "predicate"}}, "tempreature": 1}', (), "tempreature: there is no such", 2),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, content: str, more: tuple[str, ...], says: str, code: int) -> None:
    path = tmp_path / "q.json"
    path.write_text(content, encoding="utf-8")
    done = tokentrie("decide", "-q", str(path), "--state", "s t", *more)
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
