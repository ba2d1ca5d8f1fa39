"""Calibrations: corrections of the probabilities of decisions, fitted on examples whose answers are known."""

from __future__ import annotations

import copy
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokentrie._native import OptionError
from tokentrie.files import replacing


@dataclass(frozen=True)
class Bin:
    """A column of a reliability diagram: the answers whose highest probability lies in one range.

    Attributes: `count`, the number of answers; `probability`, their mean probability; `accuracy`, the share that is
    right.

    Example:
        >>> tokentrie.calibration.Bin(count=8, probability=0.95, accuracy=0.75).accuracy
        0.75
    """

    count: int
    probability: float
    accuracy: float


@dataclass(frozen=True)
class Measures:
    """Quality of probabilities on states whose answers are known.

    Attributes:
        accuracy: the share of the answers that are right.
        brier: the mean squared distance of the probabilities to the truth, 0 to 2.
        log_loss: the mean of -ln of the probability of the right option.
        ece: the expected calibration error: how far probability and accuracy lie apart, over ten bins.
        bins: a Bin for 0 to 0.1, 0.1 to 0.2, ..., 0.9 to 1.

    Example:
        >>> tokentrie.calibration.Measures(accuracy=0.5, brier=0.5, log_loss=0.69, ece=0.0, bins=[]).ece
        0.0
    """

    accuracy: float
    brier: float
    log_loss: float
    ece: float
    bins: list[Bin]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"<tokentrie.calibration.Measures: accuracy {self.accuracy:.3f}, Brier {self.brier:.3f}, "
            f"log loss {self.log_loss:.3f}, ECE {self.ece:.3f}>"
        )


@dataclass(frozen=True)
class CutPoint:
    """The threshold for a wished accuracy, and its effect on examples that the fit has not seen.

    Attributes:
        wished: the wished accuracy, 0 to 1.
        threshold: the least probability of an answer that is given: `threshold=` of `Model.decide`, or
            `target_accuracy=` with the wished accuracy.
        share: the share of the examples that are answered.
        accuracy: the share of the answered ones that are right; `low` and `high`, its interval (Wilson, 95 %).

    Example:
        >>> cut = tokentrie.calibration.CutPoint(0.9, threshold=0.7, share=0.5, accuracy=0.92, low=0.8, high=0.97)
        >>> cut.share
        0.5
    """

    wished: float
    threshold: float
    share: float
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class QuestionCalibration:
    """The calibration of one question.

    Attributes:
        temperature: the divisor of the logarithms of probabilities: above 1 where the model is too sure.
        bias: the term added to each quotient, a float for each option in the order of the question.
        examples: the number of examples it was fitted on.
        before: the Measures of the probabilities as they were answered.
        after: those of the calibrated ones, each by a fit that has not seen the example (five folds).
        cuts: a CutPoint for each of the accuracies 0.8, 0.9, 0.95 and 0.99 that is reached on those examples.

    Example:
        >>> model = tokentrie.Model()
        >>> states = [f"The lamp is {word}." for word in ["on", "off"] * 10]
        >>> fitted = model.calibrate(states, {"on": bool}, {"on": [True, False] * 10}).questions["on"]
        >>> fitted.examples, len(fitted.bias), fitted.after.log_loss <= fitted.before.log_loss
        (20, 2, True)
    """

    temperature: float
    bias: list[float]
    examples: int
    before: Measures
    after: Measures
    cuts: list[CutPoint]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"<tokentrie.calibration.QuestionCalibration: temperature {self.temperature:.3g}, "
            f"ECE {self.before.ece:.3f} to {self.after.ece:.3f} on {self.examples} examples>"
        )


class Calibration:
    """The calibrations of some questions, for one model: `Model.calibrate` makes them, `decide` uses them.

    It has fingerprints of the model's file and of the questions, and is refused for other models and questions.

    Attributes: `questions`, a dict of calibration.QuestionCalibration by name.

    Example:
        >>> model = tokentrie.Model()
        >>> states = [f"The lamp is {word}." for word in ["on", "off"] * 10]
        >>> calibration = model.calibrate(states, {"on": bool}, {"on": [True, False] * 10})
        >>> list(calibration.questions)
        ['on']
        >>> answer = model.decide("The lamp is on.", {"on": bool}, calibration=calibration)["on"]
        >>> 0 <= answer.probability <= 1
        True
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        try:
            self.questions = {name: _read_question(of) for name, of in document["questions"].items()}
        except (AttributeError, KeyError, TypeError) as error:
            raise OptionError(f"invalid calibration: {type(error).__name__} {error}") from error

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}: {repr(of).split(': ', 1)[1].rstrip('>')}" for name, of in self.questions.items())
        return f"<tokentrie.decisions.Calibration: {shown}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Calibration) and self._document == other._document

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return Calibration, (self._document,)

    def to_dict(self) -> dict[str, Any]:
        """Returns the calibration as JSON values: its file, and `calibration` in requests of other hosts.

        Example:
            >>> model = tokentrie.Model()
            >>> gold = {"on": [True, False] * 5}
            >>> sorted(model.calibrate(["The lamp is on.", "It is off."] * 5, {"on": bool}, gold).to_dict())
            ['model', 'questions', 'version']
        """
        return copy.deepcopy(self._document)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a small JSON file; an existing file is replaced in one step.

        Args:
            path: the file.

        Raises:
            OSError: it cannot be written.

        Example:
            >>> model = tokentrie.Model()
            >>> gold = {"on": [True, False] * 5}
            >>> calibration = model.calibrate(["The lamp is on.", "It is off."] * 5, {"on": bool}, gold)
            >>> calibration.save("on.json")
            >>> tokentrie.decisions.Calibration.load("on.json") == calibration
            True
        """
        with replacing(Path(path)) as partial:
            partial.write_text(json.dumps(self._document, indent=1), encoding="utf-8")

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Calibration:
        """Reads what `save` wrote.

        Args:
            path: the file.

        Returns:
            Calibration.

        Raises:
            OptionError: it is not a calibration.
            OSError: it cannot be read.

        Example:
            >>> import pathlib
            >>> _ = pathlib.Path("other.json").write_text("[]")
            >>> tokentrie.decisions.Calibration.load("other.json")
            Traceback (most recent call last):
            ...
            tokentrie.errors.OptionError: other.json: invalid calibration: ...
        """
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise OptionError(f"{os.fspath(path)}: invalid calibration: expected JSON: {error}") from error
        try:
            return Calibration(document)
        except (OptionError, TypeError) as error:
            raise OptionError(f"{os.fspath(path)}: {error}") from error


def to_request(calibration: Calibration | str | os.PathLike[str] | None) -> dict[str, Any] | None:
    """A calibration as a request has it."""
    if calibration is None:
        return None
    if isinstance(calibration, (str, os.PathLike)):
        calibration = Calibration.load(calibration)
    if not isinstance(calibration, Calibration):
        raise TypeError(f"calibration must be a Calibration or the path of one, not {type(calibration).__name__}")
    return calibration._document


def _read_question(document: dict[str, Any]) -> QuestionCalibration:
    before, after = (_measures(document[name]) for name in ("before", "after"))
    cuts = [CutPoint(**one) for one in document["cuts"]]
    return QuestionCalibration(document["temperature"], document["bias"], document["examples"], before, after, cuts)


def _measures(document: dict[str, Any]) -> Measures:
    return Measures(**{**document, "bins": [Bin(**one) for one in document["bins"]]})
