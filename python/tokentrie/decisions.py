"""Decisions: typed questions about a state, as Python says them, and their answers with exact probabilities."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from tokentrie import html, schemas
from tokentrie._native import CancelToken, InvalidValueError, OpenCall, OptionError, TimedOutError, VocabularyError
from tokentrie.calibration import Calibration, to_request
from tokentrie.model import Model
from tokentrie.questions import CALL, AskedQuestion, Question, Score, alias, iterate, make_question, plain
from tokentrie.results import Message, _Result
from tokentrie.streaming import in_background

__all__ = [
    "Answer",
    "Answers",
    "AskedPrompt",
    "Calibration",
    "DecisionStats",
    "Question",
    "Score",
]

T_co = TypeVar("T_co", covariant=True)

#: States that are asked about in common forward passes.
GROUP = 32


@dataclass(frozen=True)
class AskedPrompt:
    """One prompt of an answer: `Model.choose(prompt.tokens, prompt.values, end_tokens=prompt.end_tokens)` repeats it.

    Attributes: `tokens`, the token ids of the prompt; `values`, the text that is scored for each option, in their
    order; `end_tokens`, one of which must follow.

    Example:
        >>> answer = tokentrie.Model().decide("The lamp is on.", {"on": bool})["on"]
        >>> answer.prompts[0].values
        ['yes', 'no']
    """

    tokens: list[int]
    values: list[str]
    end_tokens: list[int]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<tokentrie.decisions.AskedPrompt: {len(self.tokens)} tokens, then one of {len(self.values)} values>"


@dataclass(frozen=True)
class Answer:
    """The answer to one question.

    Attributes:
        name: that of the question.
        kind: "predicate", "choice" or "score".
        value: a bool; the option, as it was given; the expected level, from 0. None below the threshold.
        index: the number of the most probable option; 0 is the yes of a predicate.
        probability: the probability of yes for a predicate, else that of the most probable option.
        probabilities: the probability of each option, by the option as it was given; they add up to 1. The options of a
            predicate are True and False, those of a score its levels. NaN for an option that was not scored, in a
            question with thousands of options.
        confidence: 0 to 1, as the wire formats of decisions define it: see `docs/decisions.md`.
        mass: the probability of all options together, 0 to 1: where it is tiny, the prompt does not suit them.
        entropy: of the probabilities, in nats.
        flips: the share of the orders in which another option wins.
        reason: why there is no value; None where there is one.
        prompts: an AskedPrompt for each order.

    Example:
        >>> answer = tokentrie.Model().decide("The lamp is on.", {"on": bool})["on"]
        >>> list(answer.probabilities), answer.flips, answer.reason
        ([True, False], 0.0, None)
    """

    name: str
    kind: Literal["predicate", "choice", "score"]
    value: Any
    index: int
    probability: float
    probabilities: dict[Any, float]
    confidence: float
    mass: float
    entropy: float
    flips: float
    reason: str | None
    prompts: list[AskedPrompt]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self.reason is not None:
            return f"<tokentrie.decisions.Answer: {self.name}: none, {self.reason}>"
        shown = f"{self.value:.3f}" if self.kind == "score" else repr(self.value)
        return f"<tokentrie.decisions.Answer: {self.name}: {shown}, probability {self.probability:.3f}>"

    def _repr_html_(self) -> str:
        return html.answer(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it but the prompts, as a dict that JSON has.

        Example:
            >>> answer = tokentrie.Model().decide("The lamp is on.", {"on": bool})["on"]
            >>> [option["value"] for option in answer.to_dict()["probabilities"]]
            [True, False]
        """
        said = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del said["prompts"]
        said["value"] = schemas.to_json_value(self.value)
        listed = [
            {"value": schemas.to_json_value(option), "probability": None if share != share else share}
            for option, share in self.probabilities.items()
        ]
        return {**said, "probabilities": listed}


@dataclass(frozen=True)
class DecisionStats(_Result):
    """Cost of a decision; the states of `decide_many` that were decoded together share it.

    Attributes: `forward_passes`; `tokens_decoded`, in all of them; `seconds`.

    Example:
        >>> stats = tokentrie.Model().decide("The lamp is on.", {"on": bool, "off": bool}).stats
        >>> stats.forward_passes < 4
        True
    """

    forward_passes: int
    tokens_decoded: int
    seconds: float

    __hash__ = None

    def __repr__(self) -> str:
        return f"<tokentrie.decisions.DecisionStats: {self.tokens_decoded} tokens in {self.forward_passes} passes>"


class Answers(Mapping[str, Answer], Generic[T_co]):
    """The answers to the questions about a state, by name.

    Attributes: `stats`, a DecisionStats.

    Example:
        >>> model = tokentrie.Model()
        >>> answers = model.decide("The lamp is on.", {"on": bool, "colour": ["red", "blue"]})
        >>> list(answers), answers.parsed["on"] in (True, False)
        (['on', 'colour'], True)
    """

    def __init__(self, answers: dict[str, Answer], stats: DecisionStats, questions: _Questions) -> None:
        self._answers, self.stats, self._questions = answers, stats, questions

    def __getitem__(self, name: str) -> Answer:
        return self._answers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)

    def __repr__(self) -> str:
        shown = ", ".join(repr(answer).split(": ", 1)[1].rstrip(">") for answer in self._answers.values())
        return f"<tokentrie.Answers: {shown}>"

    def _repr_html_(self) -> str:
        return html.answers(self)

    @property
    def parsed(self) -> T_co:
        """The values: an object of the class that was asked for, else a dict by name.

        Raises:
            InvalidValueError: a field that may not be None has no value, or the class refuses them.
        """
        return self._questions.make_object(self._answers)  # type: ignore[no-any-return]

    @property
    def probabilities(self) -> dict[str, dict[Any, float]]:
        """dict[str, dict]: the probabilities of each answer's options, by name."""
        return {name: answer.probabilities for name, answer in self._answers.items()}

    @property
    def prompt_tokens(self) -> dict[str, list[int]]:
        """dict[str, list[int]]: the tokens of each question's first prompt, by name."""
        return {name: answer.prompts[0].tokens for name, answer in self._answers.items()}

    def to_dict(self) -> dict[str, Any]:
        """Each answer as a dict that JSON has, by name.

        Example:
            >>> tokentrie.Model().decide("The lamp is on.", {"on": bool}).to_dict()["on"]["kind"]
            'predicate'
        """
        return {name: answer.to_dict() for name, answer in self._answers.items()}


def decide_with_model(model: Model, state: Any, questions: Any, **options: Any) -> Answers[Any]:
    """Implements `Model.decide`, whose documentation it has."""
    with decide(questions, **options) as call:
        return call.ask(model, [_state(state)])[0]


def deciding(model: Model, state: Any, questions: Any, **options: Any) -> Any:
    """Implements `Model.adecide`, whose documentation it has."""
    return in_background(decide_with_model, model, state, questions, **options)


def decided_many(model: Model, states: Any, questions: Any, **options: Any) -> list[Answers[Any]]:
    """Implements `Model.decide_many`, whose documentation it has."""
    with decide(questions, **options) as call:
        return call.ask_all(model, _states(states))


def calibrate_model(model: Model, states: Any, questions: Any, *, gold: Any, **options: Any) -> Calibration:
    """Implements `Model.calibrate`, whose documentation it has."""
    if options.get("calibration") is not None:
        raise OptionError("calibration is given: a calibration is found on answers without one")
    if not isinstance(gold, Mapping):
        raise TypeError(f"gold must be a dict of the right answers by question, not {type(gold).__name__}")
    with decide(questions, **options) as call:
        said = _states(states)
        known = {
            name: [schemas.to_json_value(plain(f"gold[{name!r}]", one)) for one in right]
            for name, right in gold.items()
        }
        for name, right in known.items():
            if len(right) != len(said):
                raise OptionError(f"gold[{name!r}] has {len(right)} answers to {len(said)} states")
            if name not in call.names:
                raise OptionError(f"gold: unknown question {name!r}: the questions are {', '.join(call.names)}")
        answers = call.ask_all(model, said)
        examples = {
            name: [
                {"probabilities": _shares(answer[name]), "gold": one}
                for answer, one in zip(answers, right, strict=True)
            ]
            for name, right in known.items()
        }
        return Calibration(json.loads(model._calibrated(call.request(said), json.dumps(examples))))


def _states(states: Any) -> list[Any]:
    """States as JSON has them."""
    if isinstance(states, (str, bytes, Mapping)) or not isinstance(states, Iterable):
        raise TypeError(f"states must be a list of states, not {type(states).__name__}: `decide` takes one")
    if hasattr(states, "columns"):
        raise TypeError("states is a whole table: give one of its columns")
    return [_state(state, f"states[{number}]") for number, state in enumerate(iterate(states))]


def _shares(answer: Answer) -> list[float | None]:
    """Probabilities as JSON has them: what was not scored has none."""
    return [None if share != share else share for share in answer.probabilities.values()]


@contextlib.contextmanager
def decide(
    questions: Any,
    *,
    cancel: CancelToken | None = None,
    timeout: float | None = None,
    priority: int = 0,
    instructions: Any = None,
    readout: Literal["text", "label"] = "text",
    list_options: bool = True,
    permute: int = 1,
    prior: Literal["none", "content-free", "batch"] = "none",
    threshold: float | None = None,
    top: int = 10,
    system: str | None = None,
    prompt: str | None = None,
    calibration: Any = None,
) -> Iterator[_Decision]:
    """Questions and options, read once; what is read meanwhile is part of the call, and ends with its time."""
    call = OpenCall(cancel, timeout, priority)
    before = CALL.set(call)
    options = {
        "instructions": instructions, "readout": readout, "list_options": list_options, "permute": permute,
        "prior": prior, "threshold": threshold, "top": top, "system": system, "prompt": prompt,
    }  # fmt: skip
    try:
        said = {name: plain(name, value) for name, value in options.items()} | {"calibration": to_request(calibration)}
        yield _Decision(_Questions(questions), said, call, timeout)
    finally:
        CALL.reset(before)


class _Decision:
    """A decision that is asked about one state or some after the other."""

    def __init__(self, questions: _Questions, options: dict[str, Any], call: OpenCall, timeout: float | None) -> None:
        self._questions, self._call, self._timeout = questions, call, timeout
        self._is_batch = options["prior"] == "batch"
        self._request = json.dumps({"questions": questions.said, **options}, ensure_ascii=False)[:-1]

    @property
    def names(self) -> list[str]:
        return list(self._questions.said)

    def request(self, states: list[Any]) -> str:
        """As JSON. One state is not a batch, and says so."""
        key, value = ("state", states[0]) if len(states) == 1 else ("states", states)
        return f'{self._request}, "{key}": {json.dumps(value, ensure_ascii=False)}}}'

    def ask_all(self, model: Model, states: list[Any]) -> list[Answers[Any]]:
        size = len(states) if self._is_batch else GROUP
        answers: list[Answers[Any]] = []
        for first in range(0, len(states), max(1, size)):
            answers += self.ask(model, states[first : first + size], first)
        return answers

    def ask(self, model: Model, states: list[Any], first: int = 0) -> list[Answers[Any]]:
        text = self.request(states)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            near = text[max(0, error.start - 20) : error.start + 1]
            raise VocabularyError(f"invalid text: half a surrogate pair at the end of {near!r}") from error
        try:
            done = json.loads(model._decide(text, first, self._call))
        except TimedOutError:
            if first == 0:
                raise
            raise TimedOutError(f"the timeout of {self._timeout} s was over after {first} states") from None
        return [self._questions.read_answers(one) for one in done]


def _state(state: Any, name: str = "state") -> Any:
    """A state as JSON has it."""
    if isinstance(state, Message):
        state = [state]
    if not isinstance(state, (str, Mapping, list, tuple)):
        model_dump = getattr(state, "model_dump", None)
        if callable(model_dump) and not isinstance(state, type):
            return model_dump(mode="json")
        if dataclasses.is_dataclass(state) and not isinstance(state, type):
            return plain(name, dataclasses.asdict(state))
        raise TypeError(f"{name} must be a str, a dict or a list, not {type(state).__name__}")
    return plain(name, state)


class _Questions:
    """Questions as a request says them, and what their answers become."""

    def __init__(self, given: Any) -> None:
        self._class: Any = given if schemas.is_class(given) else None
        fields = schemas.fields(given) if self._class is not None else given
        if not isinstance(fields, Mapping):
            raise TypeError(
                f"questions must be a dict of questions by name, or a pydantic model, a dataclass or a TypedDict, not "
                f"{type(given).__name__}"
            )
        wrong = next((name for name in fields if not isinstance(name, str)), None)
        if wrong is not None:
            raise TypeError(f"questions has the name {wrong!r}: names must be str")
        self._asked = {name: make_question(name, kind) for name, kind in fields.items()}
        self.said = {name: one.said for name, one in self._asked.items()}

    def read_answers(self, done: dict[str, Any]) -> Answers[Any]:
        stats = DecisionStats(**done["stats"])
        ends = done["end_tokens"]
        of = {name: _answer(name, one, done["answers"][name], ends) for name, one in self._asked.items()}
        return Answers(of, stats, self)

    def make_object(self, answers: dict[str, Answer]) -> Any:
        values = {name: self._asked[name].parse_value(answer.value, answer.index) for name, answer in answers.items()}
        if self._class is None:
            return values
        for name, one in self._asked.items():
            if values[name] is None and not one.is_optional:
                raise InvalidValueError(f"{name} has no value: {answers[name].reason}")
        try:
            return self._class(**{alias(self._class, name): value for name, value in values.items()})
        except (TypeError, ValueError) as error:
            raise InvalidValueError(f"{schemas.name(self._class)}: {error}") from error


def _answer(name: str, one: AskedQuestion, done: dict[str, Any], ends: list[int]) -> Answer:
    value = done["value"]
    if one.said["type"] == "choice" and value is not None:
        value = one.options[done["index"]]
    shares = [one["probability"] for one in done["probabilities"]]
    return Answer(
        name=name,
        kind=one.said["type"],
        value=value,
        index=done["index"],
        probability=done["probability"],
        probabilities={
            option: float("nan") if share is None else share for option, share in zip(one.options, shares, strict=True)
        },
        confidence=done["confidence"],
        mass=done["mass"],
        entropy=done["entropy"],
        flips=done["flips"],
        reason=done["reason"],
        prompts=[AskedPrompt(prompt["tokens"], prompt["values"], ends) for prompt in done["prompts"]],
    )
