"""Decisions: typed questions about a state, as Python says them, and their answers with exact probabilities."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, Literal, TypeVar

from tokentrie import html, schemas, tables
from tokentrie._native import (
    CancelToken,
    ContextError,
    InvalidValueError,
    OpenCall,
    OptionError,
    TemplateError,
    TimedOutError,
    TokenTrieWarning,
    VocabularyError,
)
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
    "Thought",
]

T_co = TypeVar("T_co", covariant=True)

#: States that are asked about in common forward passes.
GROUP = 32


@dataclass(frozen=True)
class AskedPrompt:
    """One prompt of an answer, and the texts that were scored after it.

    `Model.choose(prompt.tokens, prompt.values, end_tokens=prompt.end_tokens)` repeats a prompt whose end is required;
    with an optional end, `end_tokens` are those and `Vocab.boundary_tokens`.

    Attributes:
        tokens: the token ids of the prompt.
        values: the texts that are scored: first that of each option, in their order, then other spellings of them.
        options: the index of each text's option.
        probabilities: the probability that the reply begins with each text; NaN where it was not scored.
        end_tokens: the token ids that end the turn.
        branches: with `order="independent"` the ranges of the tokens, as pairs of begin and end, that hold one option
            each: all begin at the position of the first and do not see each other, and the tokens after them see all.

    Example:
        >>> prompt = tokentrie.Model().decide("The lamp is on.", {"on": bool})["on"].prompts[0]
        >>> prompt.values[:4], prompt.options[:4]
        (['yes', 'no', ' yes', ' Yes'], [0, 1, 0, 0])
    """

    tokens: list[int]
    values: list[str]
    options: list[int]
    probabilities: list[float]
    end_tokens: list[int]
    branches: list[tuple[int, int]]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<tokentrie.decisions.AskedPrompt: {len(self.tokens)} tokens, then one of {len(self.values)} texts>"


@dataclass(frozen=True)
class Thought:
    """The thought of a close call, after which it was decided.

    Attributes:
        text: that of the thought.
        probabilities: those of the options before it, in their order.

    Example:
        >>> thought = tokentrie.Model().decide("It is on.", {"on": bool}, escalate=1.0, think_tokens=8)["on"].thought
        >>> len(thought.probabilities)
        2
    """

    text: str
    probabilities: dict[Any, float]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<tokentrie.decisions.Thought: {self.text!r}>"


@dataclass(frozen=True)
class Answer:
    """The answer to one question.

    Attributes:
        name: that of the question.
        kind: "predicate", "choice" or "score".
        value: a bool; the option, as it was given; the expected level, from 0. None below the threshold, and where none
            of the options is meant (`none_of_these=True`).
        index: the number of the most probable option; 0 is the yes of a predicate.
        probability: the probability of yes for a predicate, else that of the most probable option.
        probabilities: the probability of each option, by the option as it was given; they add up to 1. The options of a
            predicate are True and False, those of a score its levels; with `none_of_these=True` a choice has None as
            well. NaN for an option that was not scored, in a question with thousands of options.
        confidence: 0 to 1, as the wire formats of decisions define it: see `docs/decisions.md`.
        mass: the probability of all options together, 0 to 1: where it is tiny, the prompt does not suit them.
        entropy: of the probabilities, in nats.
        flips: the share of the orders that were asked in which another option wins.
        order: "given", "independent" or "balanced": how the options were listed. That of levels is given.
        order_reason: why that is not the order that was asked for; None where it is.
        certain: with thousands of options, how many of the best ones no unscored option can surpass; else None.
        unscored: with thousands of options, the most that an option can have which was not scored; else None.
        reason: why there is no value; None where there is one.
        prediction_set: with `coverage=`, the options one of which is right with that probability, most probable first;
            else None.
        warning: advice where the options together have less than 1 % of the probability; else None.
        out_of_scope: with `out_of_scope=True`, how likely it is that the state has nothing to do with the question,
            0 to 1: see `docs/acting.md`; else None.
        thought: with `escalate=`, the Thought that came before the answer, if it was a close call; else None.
        prompts: an AskedPrompt for each order; after a thought, that of the first order.

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
    order: Literal["given", "independent", "balanced"]
    order_reason: str | None
    certain: int | None
    unscored: float | None
    reason: str | None
    prediction_set: list[Any] | None
    warning: str | None
    out_of_scope: float | None
    thought: Thought | None
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
        if self.thought is not None:
            said["thought"] = {"text": self.thought.text, "probabilities": _listed(self.thought.probabilities)}
        said["value"] = schemas.to_json_value(self.value)
        if self.prediction_set is not None:
            said["prediction_set"] = [schemas.to_json_value(option) for option in self.prediction_set]
        return {**said, "probabilities": _listed(self.probabilities)}


def _listed(probabilities: dict[Any, float]) -> list[dict[str, Any]]:
    """Probabilities as JSON has them, with their options."""
    return [
        {"value": schemas.to_json_value(option), "probability": None if share != share else share}
        for option, share in probabilities.items()
    ]


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
        answers = call.ask(model, [_state(state)])
    _warn(answers)
    return answers[0]


def deciding(model: Model, state: Any, questions: Any, **options: Any) -> Any:
    """Implements `Model.adecide`, whose documentation it has."""
    return in_background(decide_with_model, model, state, questions, **options)


def decided_many(
    model: Model,
    states: Any,
    questions: Any,
    *,
    column: str | Sequence[str] | None = None,
    on_error: Literal["raise", "return", "skip"] = "raise",
    progress: Callable[[int, int | None], object] | None = None,
    **options: Any,
) -> Any:
    """Implements `Model.decide_many`, whose documentation it has."""
    if on_error not in ("raise", "return", "skip"):
        raise OptionError(f'invalid on_error: expected "raise", "return" or "skip", got {on_error!r}')
    if on_error != "raise":
        for name, given in (("prior", options.get("prior") == "batch"), ("escalate", options.get("escalate"))):
            if given:
                said = f"{name}={options[name]!r}"
                raise OptionError(f"on_error is {on_error!r}: with {said} every state counts, so errors are raised")
    answers: list[Answers[Any] | Exception] = []
    scope = bool(options.get("out_of_scope"))
    table = tables.StateTable(states, column, scope) if hasattr(states, "columns") else None
    if column is not None and table is None:
        raise TypeError(f"column is {column!r}: it names a column of a table, and states is a {type(states).__name__}")
    states = states if table is None else table
    total = len(states) if hasattr(states, "__len__") else None
    with decide(questions, is_many=True, **options) as call:
        if table is not None:
            table.check_names(call.asked, errors=on_error == "return")
        done = 0
        for group in call.groups(_states(states)):
            answers += call.ask(model, group, done) if on_error == "raise" else call.try_each(model, group, done)
            done += len(group)
            if progress is not None:
                progress(done, total)
    given = [one for one in answers if isinstance(one, Answers)]
    _warn(given)
    if table is not None:
        return table.with_answers(call.asked, answers, on_error)
    return given if on_error == "skip" else answers


def deciding_many(model: Model, states: Any, questions: Any, **options: Any) -> Any:
    """Implements `Model.adecide_many`, whose documentation it has."""
    return in_background(decided_many, model, states, questions, **options)


def _warn(answers: list[Answers[Any]]) -> None:
    """Warns once about each question whose options are improbable."""
    found: dict[str, str] = {}
    for of_state in answers:
        for name, answer in of_state.items():
            if answer.warning is not None:
                found.setdefault(name, answer.warning)
            if answer.order_reason is not None:
                found.setdefault("", f"{answer.order_reason}; balanced orders are asked instead")
    for warning in found.values():
        warnings.warn(warning, TokenTrieWarning, stacklevel=4)


def calibrate_model(model: Model, states: Any, questions: Any, *, gold: Any, **options: Any) -> Calibration:
    """Implements `Model.calibrate`, whose documentation it has."""
    if options.get("calibration") is not None:
        raise OptionError("calibration is given: a calibration is found on answers without one")
    if not isinstance(gold, Mapping):
        raise TypeError(f"gold must be a dict of the right answers by question, not {type(gold).__name__}")
    with decide(questions, **options) as call:
        said = [*_states(states)]
        known = {
            name: [schemas.to_json_value(plain(f"gold[{name!r}]", one)) for one in right]
            for name, right in gold.items()
        }
        for name, right in known.items():
            if len(right) != len(said):
                raise OptionError(f"gold[{name!r}] has {len(right)} answers to {len(said)} states")
            if name not in call.names:
                raise OptionError(f"gold: unknown question {name!r}: the questions are {', '.join(call.names)}")
        answers: list[Answers[Any]] = []
        for group in call.groups(iter(said)):
            answers += call.ask(model, group, len(answers))
        examples = {
            name: [
                {"probabilities": _shares(answer[name]), "gold": one}
                for answer, one in zip(answers, right, strict=True)
            ]
            for name, right in known.items()
        }
        return Calibration(json.loads(model._calibrated(call.request(said), json.dumps(examples))))


def _states(states: Any) -> Iterator[Any]:
    """Reads states as JSON has them, one by one."""
    if isinstance(states, (str, bytes, Mapping)) or not isinstance(states, Iterable):
        raise TypeError(f"states must be a list of states, not {type(states).__name__}: `decide` takes one")
    if hasattr(states, "columns"):
        raise TypeError("states is a whole table: give one of its columns")
    return (_state(state, f"states[{number}]") for number, state in enumerate(iterate(states)))


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
    prefix: str | None = None,
    examples: Iterable[Any] = (),
    readout: Literal["text", "label"] = "text",
    end: Literal["optional", "required"] = "optional",
    spellings: bool = True,
    none_of_these: bool = False,
    list_options: bool = True,
    permute: int = 1,
    order: Literal["given", "independent", "balanced"] = "given",
    order_confidence: float = 0.95,
    prior: Literal["none", "content-free", "batch"] = "none",
    threshold: float | None = None,
    target_accuracy: float | None = None,
    coverage: float | None = None,
    out_of_scope: bool = False,
    escalate: float | None = None,
    think_tokens: int = 64,
    top: int = 10,
    max_rows: int = 2048,
    system: str | None = None,
    prompt: str | None = None,
    calibration: Any = None,
    is_many: bool = False,
) -> Iterator[_Decision]:
    """Questions and options, read once; what is read meanwhile is part of the call, and ends with its time."""
    call = OpenCall(cancel, timeout, priority)
    before = CALL.set(call)
    options = {
        "instructions": instructions, "prefix": prefix, "readout": readout, "end": end, "spellings": spellings,
        "none_of_these": none_of_these, "list_options": list_options, "permute": permute, "order": order,
        "order_confidence": order_confidence, "prior": prior, "threshold": threshold,
        "target_accuracy": target_accuracy, "coverage": coverage, "out_of_scope": out_of_scope, "escalate": escalate,
        "think_tokens": think_tokens, "top": top, "max_rows": max_rows, "system": system, "prompt": prompt,
    }  # fmt: skip
    try:
        options["examples"] = [_example(number, one) for number, one in enumerate(examples)]
        said = {name: plain(name, value) for name, value in options.items()} | {"calibration": to_request(calibration)}
        yield _Decision(_Questions(questions), said, call, timeout, is_many)
    finally:
        CALL.reset(before)


def _example(number: int, given: Any) -> dict[str, Any]:
    """A solved example as a request has it."""
    name = f"examples[{number}]"
    if isinstance(given, Mapping):
        if given.keys() != {"state", "answers"}:
            raise OptionError(f"{name}: expected the keys state and answers, got {', '.join(map(str, given))}")
        state, answers = given["state"], given["answers"]
    elif isinstance(given, tuple) and len(given) == 2:
        state, answers = given
    else:
        raise TypeError(f"{name} must be a pair of a state and its answers, or a dict, not {type(given).__name__}")
    if not isinstance(answers, Mapping):
        raise TypeError(f"the answers of {name} must be a dict by question, not {type(answers).__name__}")
    known = {key: schemas.to_json_value(plain(f"{name}: {key}", answer)) for key, answer in answers.items()}
    return {"state": _state(state, name), "answers": known}


class _Decision:
    """A decision that is asked about one state or some after the other."""

    def __init__(
        self, questions: _Questions, options: dict[str, Any], call: OpenCall, timeout: float | None, is_many: bool
    ) -> None:
        self._questions, self._call, self._timeout = questions, call, timeout
        self._is_share = is_many and options["escalate"] is not None
        self._is_batch = options["prior"] == "batch" or self._is_share
        self._request = json.dumps({"questions": questions.said, **options}, ensure_ascii=False)[:-1]

    @property
    def names(self) -> list[str]:
        return list(self._questions.said)

    @property
    def asked(self) -> dict[str, AskedQuestion]:
        """dict[str, AskedQuestion]: the questions by name."""
        return self._questions.asked

    def request(self, states: list[Any]) -> str:
        """As JSON. One state is not a batch, and says so; a share of one is none."""
        key, value = ("state", states[0]) if len(states) == 1 and not self._is_share else ("states", states)
        return f'{self._request}, "{key}": {json.dumps(value, ensure_ascii=False)}}}'

    def groups(self, states: Iterator[Any]) -> Iterator[list[Any]]:
        """Groups of states that are asked about together."""
        size = None if self._is_batch else GROUP
        while group := list(islice(states, size)):
            yield group

    def try_each(self, model: Model, states: list[Any], first: int) -> list[Answers[Any] | Exception]:
        """The answers to a group, with errors in place of the states that have one."""
        try:
            return [*self.ask(model, states, first)]
        except (ContextError, TemplateError, VocabularyError) as error:
            if len(states) == 1:
                return [error]
        return [one for number, state in enumerate(states) for one in self.try_each(model, [state], first + number)]

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
        self.asked = {name: make_question(name, kind) for name, kind in fields.items()}
        self.said = {name: one.said for name, one in self.asked.items()}

    def read_answers(self, done: dict[str, Any]) -> Answers[Any]:
        stats = DecisionStats(**done["stats"])
        ends = done["end_tokens"]
        of = {name: self._answer(name, one, done["answers"][name], ends) for name, one in self.asked.items()}
        return Answers(of, stats, self)

    def _answer(self, name: str, one: AskedQuestion, done: dict[str, Any], ends: list[int]) -> Answer:
        value = done["value"]
        if one.said["type"] == "choice" and value is not None:
            value = one.options[done["index"]]
        shares = _shares_of([option["probability"] for option in done["probabilities"]])
        # With `none_of_these` there is one more.
        options = [*one.options, None] if len(shares) > len(one.options) else one.options
        kept, thought = done["prediction_set"], done["thought"]
        prompts = [
            AskedPrompt(
                prompt["tokens"],
                prompt["values"],
                prompt["options"],
                _shares_of(prompt["probabilities"]),
                ends,
                [(begin, end) for begin, end in prompt["branches"]],
            )
            for prompt in done["prompts"]
        ]
        return Answer(
            name=name,
            kind=one.said["type"],
            value=value,
            index=done["index"],
            probability=done["probability"],
            probabilities=dict(zip(options, shares, strict=True)),
            confidence=done["confidence"],
            mass=done["mass"],
            entropy=done["entropy"],
            flips=done["flips"],
            order=done["order"],
            order_reason=done["order_reason"],
            certain=done["certain"],
            unscored=done["unscored"],
            reason=done["reason"],
            prediction_set=None if kept is None else [options[index] for index in kept],
            warning=done["warning"],
            out_of_scope=done["out_of_scope"],
            thought=None
            if thought is None
            else Thought(thought["text"], dict(zip(options, _shares_of(thought["probabilities"]), strict=True))),
            prompts=prompts,
        )

    def make_object(self, answers: dict[str, Answer]) -> Any:
        values = {name: self.asked[name].parse_value(answer.value, answer.index) for name, answer in answers.items()}
        if self._class is None:
            return values
        for name, one in self.asked.items():
            if values[name] is None and not one.is_optional:
                raise InvalidValueError(f"{name} has no value: {answers[name].reason}")
        try:
            return self._class(**{alias(self._class, name): value for name, value in values.items()})
        except (TypeError, ValueError) as error:
            raise InvalidValueError(f"{schemas.name(self._class)}: {error}") from error


def _shares_of(listed: list[float | None]) -> list[float]:
    """Probabilities as Python has them: NaN for what was not scored."""
    return [float("nan") if share is None else share for share in listed]
