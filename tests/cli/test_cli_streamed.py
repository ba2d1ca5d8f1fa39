"""Results on standard output (`-o -`), and Ctrl-C on a real terminal: what is done is kept."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tokentrie
from test_cli import Terminal, process, run

__all__ = ["run"]

pytestmark = pytest.mark.model

QUESTIONS = json.dumps({"questions": {"on": {"type": "predicate"}}})


def rows_of(path: Path, count: int) -> Path:
    path.write_text(
        "".join(json.dumps({"text": f"The lamp {number} is on.", "id": number}) + "\n" for number in range(count))
    )
    return path


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    "command",
    [
        ["choose", "--choices", "yes,no", "--template", "{text} Is it? "],
        ["decide", "-q", QUESTIONS, "--field", "text"],
    ],
    ids=["choose", "decide"],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_rows_go_to_standard_output(run: Terminal, tmp_path: Path, command: list[str], as_json: bool) -> None:
    source = rows_of(tmp_path / "rows.jsonl", 40)
    more = ["--json"] if as_json else []
    streamed = run(*command, "--input", source, "-o", "-", *more)
    assert streamed.code == 0
    written = run(*command, "--input", source, "-o", tmp_path / "out.jsonl")
    assert written.code == 0
    assert streamed.out == (tmp_path / "out.jsonl").read_text()
    assert not (tmp_path / "-").exists()
    if as_json:
        summary = json.loads(streamed.err.splitlines()[-1])
        assert (summary["output"], summary["rows"], summary["new"]) == ("-", 40, 40)
    else:
        assert "40 rows" in streamed.err


def test_faulty_rows_of_a_stream(run: Terminal, tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text('{"text": "a"}\n{"text": ""}\n{"text": "b"}\n')
    command = ["choose", "--choices", "yes,no", "--field", "text", "--input", source, "-o", "-"]
    assert [row["text"] for row in lines(run(*command, "--on-error", "skip").out)] == ["a", "b"]
    assert [row.get("error") for row in lines(run(*command, "--on-error", "return").out)][1] == "the prompt is empty"
    failed = run(*command)
    assert failed.code == 1
    assert "line 2" in failed.err


def test_sets_go_to_standard_output(tmp_path: Path) -> None:
    values = tmp_path / "values.txt"
    values.write_text("red\nblue\n")
    done = subprocess.run(
        [sys.executable, "-m", "tokentrie.cli", "build", str(values), "-o", "-"], capture_output=True, check=False
    )
    assert done.returncode == 0
    assert b"2 values" in done.stderr
    built = tmp_path / "set.ttrie"
    built.write_bytes(done.stdout)
    assert sorted(tokentrie.Trie.open(built).names) == ["blue", "red"]
    assert process("build", values, "-o", tmp_path / "same.ttrie").returncode == 0
    assert built.read_bytes() == (tmp_path / "same.ttrie").read_bytes()
    assert list(tmp_path.glob("-*")) == []


def test_reports_and_calibrations_go_to_standard_output(run: Terminal, tmp_path: Path) -> None:
    rows = tmp_path / "known.jsonl"
    rows.write_text("".join(json.dumps({"text": f"lamp {n}", "on": n % 2 == 0}) + "\n" for n in range(12)))
    found = run("decide", "-q", QUESTIONS, "--input", rows, "--field", "text", "--calibrate", "-")
    assert found.code == 0, found.err
    (tmp_path / "c.json").write_text(found.out)
    assert tokentrie.decisions.Calibration.load(tmp_path / "c.json").questions["on"].examples == 12
    assert "12 examples" in found.err


def test_the_least_probability_of_a_value(run: Terminal, tmp_path: Path) -> None:
    command = ["choose", "--choices", "yes,no", "--threshold"]
    sure, unsure = run(*command, "0", "-p", "Is it? ", "--json"), run(*command, "1", "-p", "Is it? ", "--json")
    assert sure.json["value"] == sure.json["name"] == unsure.json["name"]
    assert (sure.json["reason"], unsure.json["value"]) == (None, None)
    assert "is below the threshold 1" in unsure.json["reason"]
    assert "None is chosen" in run(*command, "1", "-p", "Is it? ").out
    source = rows_of(tmp_path / "rows.jsonl", 5)
    for out in (tmp_path / "out.jsonl", tmp_path / "out.csv"):
        summary = run(*command, "1", "--input", source, "--field", "text", "-o", out, "--json").json
        assert (summary["rows"], summary["abstained"], summary["errors"]) == (5, 5, 0)
        # A finished run is read again.
        assert run(*command, "1", "--input", source, "--field", "text", "-o", out, "--json").json["abstained"] == 5
        other = run(*command, "0.5", "--input", source, "--field", "text", "-o", out)
        assert (other.code, "was made with another --threshold" in other.err) == (1, True)
    assert [row["choice"] for row in lines((tmp_path / "out.jsonl").read_text())] == [None] * 5
    assert "5 rows without a label" in run(*command, "1", "--input", source, "--field", "text", "-o", "-").err


class Screen:
    """A command on a terminal of its own, whose keys are pressed."""

    def __init__(self, *args: str | Path) -> None:
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.execv(sys.executable, [sys.executable, "-m", "tokentrie.cli", *map(str, args)])
        self.shown = b""

    def until(self, done: object, seconds: float = 120) -> None:
        """Reads what is shown until something is so."""
        assert callable(done)
        end = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < end, self.shown.decode(errors="replace")[-2000:]
            self._read(0.02)

    def _read(self, seconds: float) -> bool:
        """Whether there may be more."""
        if select.select([self.file], [], [], seconds)[0]:
            try:
                part = os.read(self.file, 1 << 16)
            except OSError:
                return False
            self.shown += part
            return bool(part)
        return True

    def interrupt(self) -> tuple[int, float]:
        """Presses Ctrl-C. Returns the exit code and the seconds until it was there."""
        began = time.monotonic()
        os.write(self.file, b"\x03")
        while True:
            self._read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while self._read(0):
                    if not select.select([self.file], [], [], 0)[0]:
                        break
                return os.waitstatus_to_exitcode(status), time.monotonic() - began
            if time.monotonic() > began + 60:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError("it goes on after Ctrl-C")


@pytest.mark.alone
@pytest.mark.parametrize(
    "command",
    [
        ["choose", "--choices", "yes,no,maybe", "--template", "{text} Is it? "],
        ["decide", "-q", QUESTIONS, "--field", "text"],
    ],
    ids=["choose", "decide"],
)
def test_ctrl_c_keeps_what_is_done(run: Terminal, tmp_path: Path, command: list[str]) -> None:
    source, out = rows_of(tmp_path / "rows.jsonl", 3000), tmp_path / "out.jsonl"
    partial = tmp_path / "out.jsonl.partial"
    screen = Screen(*command, "--input", source, "-o", out)
    screen.until(lambda: partial.exists() and partial.stat().st_size > 0)
    code, seconds = screen.interrupt()
    assert code == 130, screen.shown
    assert seconds < 2
    kept = partial.read_text()
    count = kept.count("\n")
    assert kept.endswith("\n")
    assert 0 < count < 3000
    # Whole groups of choices, and single decisions.
    assert command[0] == "decide" or count % 32 == 0
    assert [row["id"] for row in lines(kept)] == list(range(count))
    done = "1 row is" if count == 1 else f"{count:,} rows are"
    assert f"{done} done, the same command goes on from there".encode() in screen.shown
    assert b"Traceback" not in screen.shown
    # It goes on with what is there: of fewer rows, so that this ends soon.
    goes_on = Screen(*command, "--input", source, "-o", out)
    goes_on.until(lambda: partial.read_text().count("\n") > count)
    assert goes_on.interrupt()[0] == 130
    assert partial.read_text().startswith(kept)


@pytest.mark.alone
def test_ctrl_c_ends_a_stream_of_rows(tmp_path: Path) -> None:
    source = rows_of(tmp_path / "rows.jsonl", 3000)
    screen = Screen("choose", "--choices", "yes,no", "--field", "text", "--input", source, "-o", "-")
    screen.until(lambda: b'"id": 31' in screen.shown)
    code, seconds = screen.interrupt()
    assert code == 130
    assert seconds < 2
    assert b"rows are done" in screen.shown
    assert b"goes on" not in screen.shown


@pytest.mark.alone
def test_ctrl_c_ends_a_generation(tmp_path: Path) -> None:
    screen = Screen("generate", "--prompt", "Once", "--regex", "[a-z ]{4000}", "--max-tokens", "3900")
    screen.until(lambda: "generating" in screen.shown.decode(errors="replace"))
    time.sleep(0.3)
    code, seconds = screen.interrupt()
    assert code == 130, screen.shown
    assert seconds < 2
    assert b"tokentrie: interrupted" in screen.shown
