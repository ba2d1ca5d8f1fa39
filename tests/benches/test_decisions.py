"""The harness of decisions: measures by their definitions, sets of each format, ways to ask, and runs that go on."""

from __future__ import annotations

import http.server
import io
import itertools
import json
import math
import random
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tokentrie import Model

sys.path.append(str(Path(__file__).parents[2] / "benches" / "decisions"))

# A source distribution has no benchmarks.
measures = pytest.importorskip("measures")
question_sets = pytest.importorskip("question_sets")
run = pytest.importorskip("run")
ways = pytest.importorskip("ways")


def drawn_answers(seed: int) -> list[tuple[float, bool]]:
    """Largest probabilities, some of them equal, and whether they were right."""
    draw = random.Random(seed)
    return [(draw.choice([0.5, 0.75, draw.random()]), draw.random() < 0.9) for _ in range(draw.randrange(1, 40))]


@pytest.mark.parametrize("seed", range(20))
def test_the_decided_share_is_that_of_the_best_threshold(seed: int) -> None:
    sure = drawn_answers(seed)
    shares = [0.0]
    for threshold, _ in sure:
        kept = [hit for share, hit in sure if share >= threshold]
        if kept.count(False) <= 0.05 * len(kept):
            shares.append(len(kept) / len(sure))
    assert measures.decided_share(sure) == max(shares)


@pytest.mark.parametrize("seed", range(5))
def test_the_calibration_error_is_that_of_its_bins(seed: int) -> None:
    sure, expected = drawn_answers(seed), 0.0
    for low in range(10):
        inside = [one for one in sure if math.floor(one[0] * 10) == low]
        if inside:
            mean, right = (sum(column) / len(inside) for column in zip(*inside, strict=True))
            expected += len(inside) / len(sure) * abs(mean - right)
    assert measures.calibration_error(sure) == pytest.approx(expected)
    assert measures.brier([0.5, 0.5, 0], [0, 1, 0]) == 0.5


@pytest.mark.parametrize(("right", "count"), [(0, 10), (3, 10), (41, 100)])
def test_intervals_end_where_the_score_test_says_no(right: int, count: int) -> None:
    for bound in measures.wilson(right, count):
        if 1e-9 < bound < 1 - 1e-9:
            z = (right / count - bound) / math.sqrt(bound * (1 - bound) / count)
            assert abs(z) == pytest.approx(1.96, abs=1e-6)


def lines(file: Path, rows: list[Any]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def test_reviews_are_read_from_the_archive_inside_the_archive(tmp_path: Path) -> None:
    rated = "".join(f"{n}\t{rating}\tfilm {n}\n" for n, rating in enumerate([2.5, -0.5, -3, 0.9, -1, 1]))
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:gz") as archive:
        add(archive, question_sets.REVIEWS, rated.encode())
    outer = tmp_path / "vaderSentiment-1.tar.gz"
    with tarfile.open(outer, "w:gz") as archive:
        add(archive, f"vaderSentiment-1/{question_sets.ARCHIVE}", inner.getvalue())
    items = question_sets.read("reviews", outer, 3)
    assert len(items) == 3
    assert [item.options[item.right][0] for item in items] == ["positive", "negative", "positive"]
    assert {item.state for item in items} <= {"film 0", "film 2", "film 4", "film 5"}


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def test_calls_are_read_as_the_leaderboard_has_them(tmp_path: Path) -> None:
    data = tmp_path / "bfcl_eval" / "data"
    (data / "possible_answer").mkdir(parents=True)
    tools: list[Any] = [{"name": name, "description": f"It {name}s.", "parameters": {}} for name in ("add", "send")]
    for kind in ("multiple", "live_multiple", "simple_python", "live_simple", "irrelevance", "live_irrelevance"):
        case = {"id": kind, "question": [[{"role": "user", "content": "Add 1 and 2."}]], "function": tools}
        lines(data / f"BFCL_v4_{kind}.json", [case])
        lines(data / "possible_answer" / f"BFCL_v4_{kind}.json", [{"id": kind, "ground_truth": [{"send": {}}]}])
    which = question_sets.read("tools", tmp_path / "bfcl_eval", 9)
    assert [(item.id, item.right) for item in which] == [("multiple", 1), ("live_multiple", 1)]
    assert which[0].options == [("add", "It adds."), ("send", "It sends.")]
    warranted = question_sets.read("calls", tmp_path / "bfcl_eval", 9)
    assert [item.right for item in warranted] == [0, 1, 0, 1]


def test_boards_are_read_with_hard_and_with_soft_answers(tmp_path: Path) -> None:
    noul = {"type": "noul", "instructions": "On?", "criteria": {"true": "it shines", "false": None}}
    choice = {"type": "choice", "instructions": "Which?", "criteria": {"a": "first", "yes": None}}
    score = {"type": "score", "instructions": "How much?", "criteria": ["none", "some", "all"]}
    tasks = [
        {"id": n, "state": "s", "question": question, "expected": expected}
        for n, (question, expected) in enumerate([(noul, "no"), (choice, "yes"), (score, 2), (score, None)])
    ]
    items = question_sets.read("jevbench", lines(tmp_path / "public.jsonl", tasks), 9)
    assert [(item.kind, item.gold) for item in items] == [
        ("predicate", [0, 1]),
        ("choice", [0, 1]),
        ("score", [0, 0, 1]),
    ]
    gold = {
        "on": {"true": 0.7, "false": 0.3},
        "which": {"probabilities": {"a": 0.6, "yes": 0.4}},
        "much": {"label": "1", "probs": {"0": 0, "1": 0.9, "2": 0.1}},
    }
    row = {"id": "c1", "state": {"a": 1}, "questions": {"on": noul, "which": choice, "much": score}, "gold": gold}
    coded = row | {name: json.dumps(row[name]) for name in ("state", "questions", "gold")}
    for rows in ([row], [coded]):
        soft = question_sets.read("typed", lines(tmp_path / "typed.jsonl", rows), 9)
        assert [item.gold for item in soft] == [[0.7, 0.3], [0.6, 0.4], [0, 0.9, 0.1]]
        assert (soft[0].state, soft[0].options[0]) == ({"a": 1}, ("yes", "it shines"))


@pytest.fixture(scope="module")
def items() -> list[Any]:
    return list(question_sets.read("tiny", question_sets.HELD_OUT, 22))


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(n_threads=1) as opened:
        yield opened


@pytest.mark.model
def test_a_single_token_is_read_as_its_definition_says(items: list[Any], model: Model) -> None:
    item = next(item for item in items if item.kind == "choice")
    reply = ways.OfSingleToken(model, ways.OfLibrary(model, {"readout": "label"})).ask(item)
    asked = model.decide(item.state, {"q": ways.question(item)}, readout="label")["q"].prompts[0]
    logits = [float(logit) for logit in model.logits(asked.tokens)]
    tokens = [model.vocab.tokenize(chr(65 + place))[0] for place in range(len(item.options))]
    weights = [math.exp(logits[token]) for token in tokens]
    assert reply.probabilities == pytest.approx([weight / sum(weights) for weight in weights], abs=1e-4)
    assert reply.mass == pytest.approx(sum(weights) / sum(map(math.exp, logits)), abs=1e-4)


@contextmanager
def served(answer: Any) -> Iterator[tuple[str, list[Any]]]:
    """A server that answers anything with `answer`, and the bodies that it was sent."""
    bodies: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            said = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", bodies
        finally:
            server.shutdown()
            thread.join()


def test_servers_are_asked_in_both_wire_formats() -> None:
    item = question_sets.Item("i", "choice", "s", "Which?", [("a", None), ("b", "second")], [0.0, 1.0])
    with served({"answers": {"q": {"type": "choice", "probabilities": {"b": 0.9, "a": 0.1}}}}) as (url, bodies):
        assert ways.OfServer(f"{url}/v1/systemone", "m").ask(item).probabilities == [0.1, 0.9]
    assert bodies[0]["questions"]["q"]["criteria"] == {"a": None, "b": "second"}
    listed = [{"value": "a", "probability": 0.2}, {"value": "b", "probability": 0.8}]
    with served({"answers": [{"type": "choice", "probabilities": listed}]}) as (url, bodies):
        assert ways.OfServer(f"{url}/v1/decisions", "m").ask(item).probabilities == [0.2, 0.8]
    assert bodies[0]["questions"][0]["choices"][1] == {"value": "b", "description": "second"}
    noul = question_sets.yes_or_no("n", {"a": 1}, "On?", True, ("it shines", None))
    with served({"answers": {"q": {"type": "noul", "noul": 0.75}}}) as (url, bodies):
        assert ways.OfServer(f"{url}/v1/systemone", "m").ask(noul).probabilities == [0.75, 0.25]
    assert bodies[0]["questions"]["q"]["criteria"] == {"true": "it shines", "false": None}


@pytest.mark.model
def test_a_run_goes_on_and_its_table_counts_flips(tmp_path: Path, items: list[Any], model: Model) -> None:
    file, asked = tmp_path / "lines.jsonl", {"text": ways.OfLibrary(model, {})}
    done: list[Any] = []
    run.run({"tiny": items[:6]}, asked, done, file)
    choices = sum(item.kind == "choice" for item in items[:6])
    assert [line.error for line in done] == [None] * (6 + choices)
    file.write_text(file.read_text(encoding="utf-8") + '{"set": "ti', encoding="utf-8")
    again = run.read_lines(file)
    assert again == done
    run.run({"tiny": items[:7]}, asked, again, file)
    assert again[: len(done)] == done
    assert len(again) > len(done)
    assert run.read_lines(file) == again
    first = model.decide(items[0].state, {"q": ways.question(items[0])})["q"]
    assert done[0].probabilities == pytest.approx(list(first.probabilities.values()), abs=0.02)
    assert "| tiny | text | 6 |" in run.table(done)


def test_flips_are_the_share_of_questions_with_another_answer() -> None:
    def line(number: int, is_reversed: bool, first: float) -> Any:
        return run.Line("s", str(number), "w", is_reversed, [1.0, 0.0], [first, 1 - first], 0.5, 0.25)

    firsts = [(0.9, 0.8), (0.9, 0.2), (0.4, 0.3), (0.6, 0.7)]
    pairs = [[line(n, False, plain), line(n, True, turned)] for n, (plain, turned) in enumerate(firsts)]
    done = [*itertools.chain(*pairs), run.Line("s", "9", "w", False, [1.0, 0.0], None, None, None, "refused")]
    *_, last = run.table(done).splitlines()
    assert last.startswith("| s | w | 4 | 0.750 ")
    assert last.endswith("| 0.25 | 0.50 | 0.5 | 250 |")
