"""The arithmetic of the leaderboard's harness, by definitions, and runs that go on where the last one ended."""

from __future__ import annotations

import itertools
import json
import math
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benches"))

# A source distribution has no benchmarks.
bfcl = pytest.importorskip("bfcl")


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 5), (3, 3), (2, 7), (9, 1)])
def test_mcnemar_is_the_share_of_all_outcomes_that_are_as_far_apart(first: int, second: int) -> None:
    count = first + second
    outcomes = [sum(sides) for sides in itertools.product((0, 1), repeat=count)]
    apart = [abs(2 * heads - count) >= abs(first - second) for heads in outcomes]
    assert bfcl.mcnemar(first, second) == pytest.approx(sum(apart) / len(apart))


@pytest.mark.parametrize(("right", "count"), [(0, 10), (3, 10), (10, 10), (41, 100)])
def test_intervals_end_where_the_score_test_says_no(right: int, count: int) -> None:
    for bound in bfcl.wilson(right, count):
        if 1e-9 < bound < 1 - 1e-9:
            z = (right / count - bound) / math.sqrt(bound * (1 - bound) / count)
            assert abs(z) == pytest.approx(1.96, abs=1e-6)
    low, high = bfcl.wilson(right, count)
    assert low <= right / count <= high


def answer(number: int, mode: str, right: bool, arguments: str = "{}") -> bfcl.Answer:  # type: ignore[name-defined]
    calls = [("f", arguments)]
    is_object = arguments == "{}"
    return bfcl.Answer(f"multiple_{number}", "multiple", mode, right, calls, is_object, is_object, "", 10, 0.5)


def test_tables_count_what_was_answered() -> None:
    answers = [answer(n, "free", n < 2, "{" if n == 3 else "{}") for n in range(4)]
    answers += [answer(n, "required", n > 0) for n in range(4)]
    text = bfcl.tables(answers)
    assert "| multiple | free | 2 of 4 = 50 %" in text
    assert "| 75 % | 3 of 4 | 10.0 | 500 |" in text
    assert "| free, required | 4 | 1 | 2 | 1 |" in text


def test_a_run_goes_on_after_the_last_whole_line(tmp_path: Path) -> None:
    answers, file = [answer(n, "free", True) for n in range(3)], tmp_path / "answers.jsonl"
    lines = [json.dumps(asdict(one)) for one in answers]
    file.write_text("\n".join(lines), encoding="utf-8")
    assert bfcl.read_answers(file) == answers[:2]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert bfcl.read_answers(file) == answers
    assert bfcl.read_answers(tmp_path / "none") == []
