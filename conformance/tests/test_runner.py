"""The runner of the conformance suite: what it says of engines that are right, and of those that are wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
pytest.importorskip("jsonschema")
pytest.importorskip("gguf")
sys.path.insert(0, str(ROOT))

from generate import drawn, hostile, write
from report import matrix, page, worse
from runner import Process, run


def cases(everything: int) -> int:
    """How many of so many random cases to try: TOKENTRIE_TEST_BUDGET is the share, a tenth unless it is set."""
    return max(1, round(everything * float(os.environ.get("TOKENTRIE_TEST_BUDGET") or 0.1)))


WRONG = """
import base64, json, sys, time

size = 0
for line in sys.stdin:
    asked, said = json.loads(line), {}
    if asked["do"] == "hello":
        said = {"engine": "wrong", "version": "1", "settings": ""}
    elif asked["do"] == "vocabulary":
        size = len(asked["tokens"])
    elif asked["do"] in ("compile", "score"):
        said = {"us": 1}
        HERE
    elif asked["do"] == "mask":
        said = {"bits": base64.b64encode(bytes([FILL]) * (-(-size // 32) * 4)).decode(), "us": 1, "end": END}
    print(json.dumps(said), flush=True)
"""


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    for number in range(cases(60)):
        write(folder / f"{number}.jsonl", drawn(f"{number}"))
    write(folder / "hostile.jsonl", hostile("x"))
    return folder


def asked(command: list[str], files: list[Path], seconds: float = 20) -> dict[str, Any]:
    env = {"PYTHONPATH": f"{ROOT}:{ROOT / 'engines'}"}
    return run(Process(command, seconds, env), files, {})


def test_ours_is_right(some: Path) -> None:
    """All but vocabularies that lack bytes: conformance/README.md says why."""
    found = asked([sys.executable, str(ROOT / "engines" / "tokentrie_python.py")], sorted(some.glob("*.jsonl")))
    wrong = {case: told for case, told in found["cases"].items() if not case.startswith("gap")}
    assert wrong == {}
    assert {kind for kind, told in found["kinds"].items() if told["outcomes"]["right"]} >= {"set", "score", "gate"}


@pytest.mark.parametrize(
    ("here", "fill", "end", "outcome"),
    [
        ("", 255, True, "too loose"),
        ("", 0, False, "too strict"),
        ("sys.exit(3)", 0, False, "crashed"),
        ("said = {'error': 'no memory'}", 0, False, "crashed"),
        ("said = {'refused': 'too hard'}", 0, False, "refused"),
        ("time.sleep(9)", 0, False, "hung"),
    ],
)
def test_wrong_engines_are_told_apart(tmp_path: Path, here: str, fill: int, end: bool, outcome: str) -> None:
    program = tmp_path / "wrong.py"
    program.write_text(WRONG.replace("HERE", here).replace("FILL", str(fill)).replace("END", str(end)), "utf-8")
    lines = [
        line for line in drawn("wrong") if line.get("kind") != "score" and not line.get("case", "").startswith("gap")
    ]
    write(tmp_path / "cases.jsonl", iter(lines[:3] if outcome == "hung" else lines))
    found = asked([sys.executable, str(program)], [tmp_path / "cases.jsonl"], 1 if outcome == "hung" else 20)
    outcomes = {told.split(":")[0] for told in found["cases"].values()}
    # Who lets everything come also lets texts end that are not over, and accepts all that is right.
    assert outcomes == {outcome}
    assert found["engine"] in matrix({"wrong": found})


def test_results_are_kept_and_may_not_get_worse(tmp_path: Path) -> None:
    write(tmp_path / "cases.jsonl", drawn("kept"))
    command = [sys.executable, str(ROOT / "run.py"), str(tmp_path / "cases.jsonl"), "--engine", "tokentrie_python"]
    done = subprocess.run([*command, "--out", str(tmp_path / "out")], capture_output=True, text=True, check=True)
    assert "| tokentrie " in done.stdout
    known = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))
    ratchet = tmp_path / "before.json"
    ratchet.write_text(json.dumps(known), "utf-8")
    subprocess.run([*command, "--ratchet", str(ratchet)], check=True, capture_output=True)
    now = json.loads(json.dumps(known))
    now["tokentrie_python"]["cases"]["set kept-0"] = "too loose: token 1 may come"
    files = [tmp_path / "cases.jsonl"]
    assert worse(known, now, files) == ["tokentrie_python: set kept-0: too loose: token 1 may come"]
    known["tokentrie_python"]["files"] = "others"
    assert not worse(known, now, files)
    assert "<table>" in page(known)
    assert "&lt;x&gt;" in page({"x": {**known["tokentrie_python"], "engine": "<x>"}})


def test_what_cannot_be_run_is_said() -> None:
    for arguments, said in [
        (["nowhere"], "there are no cases"),
        ([str(ROOT / "README.md"), "--engine", "nothing"], "there is no engine 'nothing'"),
    ]:
        done = subprocess.run([sys.executable, str(ROOT / "run.py"), *arguments], capture_output=True, text=True)
        assert done.returncode == 1
        assert said in done.stderr


def test_schemas_of_other_suites(tmp_path: Path) -> None:
    """Lists of schemas with tests, as the official suite has them, and a schema a file, as MaskBench has them."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "null"}}, "required": ["a"]}
    schema["additionalProperties"] = False
    # Names that keywords have, and texts; an order that only the object itself has.
    twice = {"$defs": {"x": {"properties": {"type": True, "title": True}}}, "type": "object", "description": "b"}
    twice["properties"] = {"title": True, "type": {"properties": {"b": True, "a": True}}}
    twice["required"] = ["title", "type"]
    tests = [
        {"description": "right", "data": {"a": 1, "b": None}, "valid": True},
        {"description": "in another order", "data": {"b": None, "a": 1}, "valid": True},
        {"description": "wrong", "data": {"a": "x"}, "valid": False},
    ]
    (tmp_path / "suite" / "deep").mkdir(parents=True)
    (tmp_path / "suite" / "one.json").write_text(json.dumps([{"description": "x", "schema": schema, "tests": tests}]))
    (tmp_path / "suite" / "deep" / "two.json").write_text(json.dumps({"schema": schema, "tests": tests[2:]}))
    (tmp_path / "suite" / "no.json").write_text("[1, 2]")
    test = {"data": {"type": {"a": 1, "b": 2}, "title": 3}, "valid": True}
    (tmp_path / "suite" / "twice.json").write_text(json.dumps({"schema": twice, "tests": [test]}))
    command = [sys.executable, str(ROOT / "import_schemas.py"), str(tmp_path / "suite"), str(tmp_path / "out.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "'cases': 3" in done.stdout
    header, *lines = map(json.loads, (tmp_path / "out.jsonl").read_text("utf-8").splitlines())
    assert set(header) == {"vocabulary"}
    texts = {line["case"]: line["texts"] for line in lines}
    # What is in another order than its schema is written in that one.
    assert texts["schema one x"] == {"accept": ['{"a":1,"b":null}'] * 2, "refuse": ['{"a":"x"}']}
    assert texts["schema two 0"] == {"accept": [], "refuse": ['{"a":"x"}']}
    assert texts["schema twice 0"] == {"accept": ['{"title":3,"type":{"b":2,"a":1}}'], "refuse": []}
    found = asked([sys.executable, str(ROOT / "engines" / "tokentrie_python.py")], [tmp_path / "out.jsonl"])
    assert found["cases"] == {}
    wrong = subprocess.run([*command[:2], str(tmp_path / "nowhere"), "x"], capture_output=True, text=True)
    assert wrong.returncode == 1
    assert "there is no folder" in wrong.stderr
