"""Calibrations: found on known answers, saved, used, and refused for other models and questions."""

from __future__ import annotations

import json
import math
import pickle
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import tokentrie
from tokentrie import Model
from tokentrie.decisions import Calibration, Score
from tokentrie.errors import OptionError

pytestmark = pytest.mark.model

QUESTIONS: dict[str, Any] = {"on": bool, "size": Score(["small", "large"]), "team": ["billing", "access", "sales"]}
WORDS = {True: "on", False: "off"}


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(n_ctx=2048, n_threads=1) as opened:
        yield opened


@pytest.fixture(scope="module")
def known() -> tuple[list[str], dict[str, list[Any]]]:
    draw = random.Random(5)
    rows = [(draw.random() < 0.7, draw.choice(["small", "large"]), draw.choice(QUESTIONS["team"])) for _ in range(40)]
    states = [f"The {size} lamp of {team} is {WORDS[on]}." for on, size, team in rows]
    gold = {"on": [on for on, _, _ in rows], "size": [size for _, size, _ in rows], "team": [t for _, _, t in rows]}
    return states, gold


@pytest.fixture(scope="module")
def calibration(model: Model, known: tuple[list[str], dict[str, list[Any]]]) -> Calibration:
    states, gold = known
    return model.calibrate(states, QUESTIONS, gold)


def measured(answers: list[dict[Any, float]], gold: list[Any]) -> tuple[float, float, float, float]:
    """Accuracy, Brier, log loss and ECE, as their definitions say."""
    n = len(gold)
    best = [max(shares, key=lambda option: shares[option]) for shares in answers]
    accuracy = sum(one == right for one, right in zip(best, gold, strict=True)) / n
    brier = sum(
        sum((share - (option == right)) ** 2 for option, share in shares.items())
        for shares, right in zip(answers, gold, strict=True)
    )
    loss = -sum(math.log(shares[right]) for shares, right in zip(answers, gold, strict=True))
    bins: dict[int, list[tuple[float, bool]]] = {}
    for shares, one, right in zip(answers, best, gold, strict=True):
        bins.setdefault(min(int(shares[one] * 10), 9), []).append((shares[one], one == right))
    ece = sum(abs(sum(p - right for p, right in members)) / n for members in bins.values())
    return accuracy, brier / n, loss / n, ece


def test_what_is_measured_is_what_was_answered(
    model: Model, known: tuple[list[str], dict[str, list[Any]]], calibration: Calibration
) -> None:
    states, gold = known
    plain = model.decide_many(states, QUESTIONS)
    for name, fitted in calibration.questions.items():
        before = measured([answers[name].probabilities for answers in plain], gold[name])
        said = fitted.before
        assert (said.accuracy, said.brier, said.log_loss, said.ece) == pytest.approx(before, abs=1e-3)
        assert fitted.after.log_loss <= said.log_loss
        assert sum(bin.count for bin in said.bins) == fitted.examples == 40


def test_it_makes_probabilities_honest(
    model: Model, known: tuple[list[str], dict[str, list[Any]]], calibration: Calibration
) -> None:
    states, gold = known
    answers = model.decide_many(states, QUESTIONS, calibration=calibration)
    for name in QUESTIONS:
        shares = [answer[name].probabilities for answer in answers]
        assert all(sum(of.values()) == pytest.approx(1) for of in shares)
        _, _, loss, _ = measured(shares, gold[name])
        assert loss <= calibration.questions[name].before.log_loss + 1e-6
    # By its own formula, beside the mean over the orders.
    plain, with_it = model.decide(states[0], QUESTIONS), model.decide(states[0], QUESTIONS, calibration=calibration)
    for name, fitted in calibration.questions.items():
        weights = [
            share ** (1 / fitted.temperature) * math.exp(bias)
            for share, bias in zip(plain[name].probabilities.values(), fitted.bias, strict=True)
        ]
        expected = [weight / sum(weights) for weight in weights]
        assert list(with_it[name].probabilities.values()) == pytest.approx(expected, abs=1e-3)


def test_a_prior_of_the_batch_is_part_of_what_is_calibrated(
    model: Model, known: tuple[list[str], dict[str, list[Any]]]
) -> None:
    states, gold = known
    found = model.calibrate(states, {"on": bool}, {"on": gold["on"]}, prior="batch")
    plain = model.decide_many(states, {"on": bool}, prior="batch")
    before = measured([answers["on"].probabilities for answers in plain], gold["on"])
    said = found.questions["on"].before
    assert (said.accuracy, said.brier, said.log_loss, said.ece) == pytest.approx(before, abs=1e-3)
    assert len(model.decide_many(states, {"on": bool}, prior="batch", calibration=found)) == len(states)
    with pytest.raises(OptionError, match="another question of this name"):
        model.decide_many(states, {"on": bool}, calibration=found)


def test_it_is_saved_and_pickled(model: Model, calibration: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    calibration.save(path)
    assert Calibration.load(path) == calibration == pickle.loads(pickle.dumps(calibration))
    assert [one.name for one in tmp_path.iterdir()] == ["calibration.json"]
    by_path = model.decide("The lamp is on.", QUESTIONS, calibration=path)
    by_text = model.decide("The lamp is on.", QUESTIONS, calibration=str(path))
    assert by_path["on"].probabilities == pytest.approx(by_text["on"].probabilities, abs=1e-3)
    assert "temperature" in repr(calibration)
    assert json.loads(path.read_text()) == calibration.to_dict()


def test_it_is_refused_for_others(model: Model, calibration: Calibration, tmp_path: Path) -> None:
    def decide(questions: Any = QUESTIONS, **options: Any) -> Any:
        return model.decide("The lamp is on.", questions, calibration=calibration, **options)

    for questions, options, says in (
        ({"of": bool}, {}, "the calibration does not have this question"),
        ({"team": ["billing", "access"]}, {}, "another question of this name"),
        (QUESTIONS, {"permute": 2}, "another question of this name"),
        (QUESTIONS, {"system": "Be brief."}, "another question of this name"),
        (QUESTIONS, {"prompt": "{state} {answer}"}, "another question of this name"),
    ):
        with pytest.raises(OptionError, match=says):
            decide(questions, **options)
    # Some of its questions may be asked, in another order, and said in another way.
    assert decide({"team": dict.fromkeys(QUESTIONS["team"]), "on": bool}, threshold=0.2)["team"].name == "team"
    assert decide({"team": Literal["billing", "access", "sales"]})["team"].probability > 0
    assert model.path is not None
    other = tmp_path / "other.gguf"
    shutil.copy(model.path, other)
    with Model(other, n_ctx=512, n_threads=1) as same:
        assert same.decide("The lamp is on.", {"on": bool}, calibration=calibration)["on"].kind == "predicate"
    with other.open("r+b") as file:
        file.seek(-100, 2)
        file.write(bytes(100))
    with Model(other, n_ctx=512, n_threads=1) as changed, pytest.raises(OptionError, match="another model"):
        changed.decide("The lamp is on.", {"on": bool}, calibration=calibration)


def test_what_is_no_example(model: Model, tmp_path: Path) -> None:
    states = ["The lamp is on.", "The lamp is off."] * 5
    yes_no = [True, False] * 5
    for gold, says in (
        ({"on": yes_no[:4]}, r"gold\['on'\] has 4 answers to 10 states"),
        ({"off": yes_no}, "gold: unknown question 'off': the questions are on"),
        ({"on": ["perhaps"] * 10}, 'examples: .*"perhaps" is not an answer to the question "on"'),
    ):
        with pytest.raises(OptionError, match=says):
            model.calibrate(states, {"on": bool}, gold)
    with pytest.raises(OptionError, match="9 examples are known: a calibration needs at least 10"):
        model.calibrate(states[:9], {"on": bool}, {"on": yes_no[:9]})
    with pytest.raises(TypeError, match="gold must be a dict"):
        model.calibrate(states, {"on": bool}, yes_no)  # type: ignore[arg-type]
    many = [f"option {number}" for number in range(6_000)]
    with pytest.raises(OptionError, match="only the best of"):
        model.calibrate(states, {"which": many}, {"which": many[:10]}, list_options=False)
    for text in ("", "[]", "{}", '{"questions": {"a": {}}}', '{"questions": []}'):
        (tmp_path / "wrong.json").write_text(text)
        with pytest.raises(OptionError, match="invalid calibration"):
            model.decide("x", {"on": bool}, calibration=tmp_path / "wrong.json")
    with pytest.raises(FileNotFoundError):
        model.decide("x", {"on": bool}, calibration="nowhere.json")
    with pytest.raises(TypeError, match="calibration must be a Calibration"):
        model.decide("x", {"on": bool}, calibration=3)  # type: ignore[call-overload]


def test_altered_files_are_refused(model: Model, calibration: Calibration) -> None:
    for change, says in (
        ({"version": 3}, "version"),
        ({"more": 1}, "unknown field"),
    ):
        altered = tokentrie.decisions.Calibration(calibration.to_dict() | change)
        with pytest.raises(OptionError, match=says):
            model.decide("x", {"on": bool}, calibration=altered)
    for name, value in (("temperature", 0), ("temperature", "hot"), ("bias", [0.0]), ("bias", [1e999, 0.0])):
        document = calibration.to_dict()
        document["questions"]["on"][name] = value
        with pytest.raises((OptionError, TypeError, ValueError)):
            model.decide("x", {"on": bool}, calibration=tokentrie.decisions.Calibration(document))
