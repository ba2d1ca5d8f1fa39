"""The arithmetic of the leaderboard's harness, by definitions, and runs that go on where the last one ended."""

from __future__ import annotations

import http.server
import itertools
import json
import math
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
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
    assert 0 <= low <= right / count <= high <= 1


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


class OtherServer(http.server.BaseHTTPRequestHandler):
    """Answers with a call where one is required or begun, and with what a schema asks for; it refuses two tools."""

    asked: list[dict[str, Any]] = []  # noqa: RUF012  # of this server alone

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        message: dict[str, Any] = {"content": json.dumps({"name": "f", "arguments": {"x": 1}})}
        if "tool_choice" in body:
            message = {"content": None, "tool_calls": [{"function": {"name": "f", "arguments": '{"x": "1"}'}}]}
        status = 500 if len(body["tools"]) == 2 else 200
        reply = {"choices": [{"message": message}], "usage": {"completion_tokens": 7}}
        said = json.dumps(reply if status == 200 else {"error": "failed to parse grammar"}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: Any) -> None:
        pass


def test_another_server_is_asked_in_each_mode() -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), OtherServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    analysis = SimpleNamespace(capabilities=SimpleNamespace(tools=False))
    model: Any = SimpleNamespace(chat_format=SimpleNamespace(analysis=analysis))
    caller = bfcl.Caller(model, f"http://127.0.0.1:{server.server_port}")
    parameters = {"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": False}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    asked = [{"role": "user", "content": "f of 1"}]
    case = bfcl.Case("multiple_0", "multiple", [], [tool], asked, None)
    try:
        answers = {mode: caller.answer(case, mode, lambda _, calls: bool(calls)) for mode in bfcl.BESIDE}
        refused = caller.answer(
            bfcl.Case("multiple_1", "multiple", [], [tool] * 2, asked, None), "beside", lambda *_: True
        )
    finally:
        server.shutdown()
        server.server_close()
    assert {mode: (one.calls, one.objects, one.fitting, one.passes) for mode, one in answers.items()} == {
        "beside": ([("f", '{"x": "1"}')], 1, 0, 7),
        "begun": ([("f", '{"x": "1"}')], 1, 0, 7),
        "schema": ([("f", '{"x": 1}')], 1, 1, 7),
    }
    assert not refused.right
    assert "failed to parse grammar" in (refused.error or "")
    # Each prompt is decoded before the reply whose time counts.
    bodies = OtherServer.asked[:6]
    assert [body["max_tokens"] for body in bodies] == [1, bfcl.CALL_TOKENS] * 3
    beside, begun, schema = bodies[1::2]
    assert (beside["tool_choice"], beside["messages"]) == ("required", asked)
    assert begun["messages"] == [*asked, {"role": "assistant", "content": bfcl.CALL_OPENING}]
    assert begun["parallel_tool_calls"] is False
    of_call = jsonschema.Draft202012Validator(schema["response_format"]["json_schema"]["schema"])
    assert of_call.is_valid({"name": "f", "arguments": {"x": 1}})
    for other in ({"name": "g", "arguments": {}}, {"name": "f", "arguments": {"x": "1"}}, {"name": "f"}):
        assert not of_call.is_valid(other)
