"""Results of calls, as plain values: frozen, compared by content, picklable, and as dicts for JSON."""

from __future__ import annotations

import dataclasses
import json
import operator
from collections.abc import Callable
from dataclasses import dataclass
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from tokentrie._native import Leaf, Vocab, VocabularyError

__all__ = [
    "CacheInfo",
    "ChatEvent",
    "ChatPrompt",
    "ChatStats",
    "Choice",
    "ChoiceStats",
    "Correction",
    "EngineStats",
    "Generated",
    "Hypothesis",
    "Message",
    "Probability",
    "Stats",
    "Step",
    "TextProbability",
    "TokenLogprob",
    "ToolCall",
]

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    V = DefaultTypeVar("V", covariant=True, default=Any)
    N = DefaultTypeVar("N", covariant=True, default=str | None)
    W = DefaultTypeVar("W", covariant=True, default=N)
else:
    V, N, W = TypeVar("V"), TypeVar("N"), TypeVar("W")
R = TypeVar("R", bound="_Result")

#: Why an output ended, of calls of every kind and in every host.
Finish = Literal[
    "span", "end_of_generation", "stop_text", "tool_calls", "max_tokens", "context_full", "cancelled", "timed_out"
]
#: Of these, those of an output that a limit cut off.
CUT: tuple[Finish, ...] = ("max_tokens", "context_full")
ToolKind = Literal["function", "custom"]
EventKind = Literal[
    "reasoning", "content", "call_begins", "arguments", "call_ends", "warning", "message_ends", "tool_result"
]


class _Result:
    """A result: fields that never change. It is not a key of a dict, since most hold lists."""

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as a dict that `json.dumps` takes.

        Results inside become dicts, arrays lists, NaN stays NaN. Objects that a rule or a class made of a text become
        what JSON has: a date its ISO text, a Decimal its digits, a model or a dataclass its fields.

        Example:
            >>> tokentrie.Model().generate("The sky is ", ["blue"]).to_dict()["text"]
            'blue'
        """
        names = (field.name for field in dataclasses.fields(self))  # type: ignore[arg-type]
        return {name: _plain(getattr(self, name)) for name in names}

    @classmethod
    def _made(cls: type[R], fields: dict[str, Any]) -> R:
        """An object of these fields: what the native module calls."""
        made = object.__new__(cls)
        made.__dict__.update(fields)
        return made


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, _Result):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Leaf):
        return {"index": value.index, "name": value.name, "tokens": value.tokens}
    from tokentrie.tools import result_text

    text = result_text(value)
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_equal(one: Any, other: Any) -> bool:
    """Returns True if two fields are equal. Arrays are by their bits, so that NaN is equal to itself."""
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_equal(value, other[key]) for key, value in one.items())
    return bool(one == other)


class _ArrayResult(_Result):
    """A result with arrays among its fields."""

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = (field.name for field in dataclasses.fields(self))  # type: ignore[arg-type]
        return all(_is_equal(getattr(self, name), getattr(other, name)) for name in names)


@dataclass(frozen=True)
class TokenLogprob(_Result):
    """Log-probability of a token among the allowed ones, before temperature and truncation; weights of a set count.

    Attributes:
        token: the token.
        logprob: the natural logarithm of its probability: 0.0 where no other text could come.
        top: the most probable tokens with their log-probabilities, best first; equal ones by ascending id.

    Example:
        >>> out = tokentrie.Model().generate("The sky is ", ["blue", "red"], logprobs=2)
        >>> [one.token for one in out.logprobs] == out.tokens
        True
    """

    __hash__ = None

    token: int
    logprob: float
    top: list[tuple[int, float]]

    def texts(self, vocab: Vocab) -> list[tuple[str, float]]:
        """Returns `top` with texts in place of ids.

        Args:
            vocab: the Vocab that the ids are of, such as `model.vocab`.

        Returns:
            list[tuple[str, float]], best first. Bytes of a token that are not whole characters are shown as U+FFFD, so
            two tokens may have one text.

        Raises:
            VocabularyError: the vocabulary does not have an id.

        Example:
            >>> model = tokentrie.Model()
            >>> known = model.generate("Is it on? ", ["yes", "no"], logprobs=2).logprobs[0]
            >>> [logprob for text, logprob in known.texts(model.vocab)] == [logprob for token, logprob in known.top]
            True
        """
        texts = []
        for token, logprob in self.top:
            if token >= len(vocab):
                raise VocabularyError(f"token id {token} is outside the vocabulary of {len(vocab)} tokens")
            texts.append((vocab[token].decode("utf-8", "replace"), logprob))
        return texts


@dataclass(frozen=True)
class Stats(_Result):
    """Cost of a generation.

    Attributes:
        forward_passes: calls of llama.cpp's decode.
        tokens_decoded: tokens in them, the prompt included.
        forced_tokens: tokens that came where exactly one was allowed.
        sampled_tokens: tokens with a choice.
        forward_passes_saved: tokens that needed no forward pass of their own, because they were forced.
        drafted_tokens: tokens that `Model(draft=...)` guessed ahead.
        accepted_tokens: those of them that were then chosen, too: they needed no forward pass of their own.
        gathered_rows: rows of which only the logits of allowed tokens left the device, with
            `Model(device_sampling=True)`.
        starved: how often no legal token had a usable logit.
        thinking_tokens: tokens thought before a ThinkGate closed, without its markers.
        prompt_tokens: tokens of the prompt, without those at its end that were taken back because the set begins with
            them.
        prompt_tokens_reused: tokens of the prompt that the model's KV cache held already.
        healed_bytes: bytes at the end of the prompt that were taken back, because the set begins with them.
        prompt_seconds: seconds for the prompt.
        decode_seconds: seconds in the forward passes after it.
        sample_seconds: seconds in choosing tokens.
        n_threads: threads of the last forward pass.
        seed: seed of the draw.
        seconds: seconds in all.

    Example:
        >>> stats = tokentrie.Model().generate("The sky is ", ["blue", "red"]).stats
        >>> stats.forced_tokens + stats.sampled_tokens >= 1
        True
    """

    __hash__ = None

    forward_passes: int
    tokens_decoded: int
    forced_tokens: int
    sampled_tokens: int
    forward_passes_saved: int
    drafted_tokens: int
    accepted_tokens: int
    gathered_rows: int
    starved: int
    thinking_tokens: int
    prompt_tokens: int
    prompt_tokens_reused: int
    healed_bytes: int
    prompt_seconds: float
    decode_seconds: float
    sample_seconds: float
    n_threads: int
    seed: int
    seconds: float


@dataclass(frozen=True)
class Correction(_Result):
    """Account of a draw as a whole: `Generated.correction` of a generation with `correct`.

    Attributes:
        particles: the most beginnings that were continued at once; 0 where every text was scored.
        resamplings: times that beginnings were drawn, because there were too many; 0 for an exact draw.
        effective_sample_size: texts of equal weight that would say as much as those among which the text was drawn.
        log_normalizer: an estimate of the logarithm of the probability that the model writes any text of the
            constraint; exact if the draw is. Its exponential is unbiased.
        rows: rows of logits that were read.

    Example:
        >>> out = tokentrie.Model().generate("The sky is ", ["blue", "red"], correct=8, seed=1)
        >>> (out.correction.particles, out.correction.log_normalizer < 0)
        (0, True)
    """

    __hash__ = None

    particles: int
    resamplings: int
    effective_sample_size: float
    log_normalizer: float
    rows: int


@dataclass(frozen=True, eq=False, repr=False)
class Generated(_ArrayResult, Generic[V]):
    """A generation: what `Model.generate` returns.

    Attributes:
        text: the generated text: the prompt followed by `text` is the whole text. It does not repeat the bytes that
            token healing took back from the prompt. Bytes that are not UTF-8 become U+FFFD.
        tokens: the generated tokens, end tokens of the span included, end of generation excluded. After token healing
            they replace the last tokens of the prompt, and begin with the `stats.healed_bytes` bytes of these.
        leaf: the value, if the span was completed; of a Sequence the last.
        leaves: all values in their order: of a Sequence one for each set that was completed.
        value: the value, if it was completed: the name of a leaf, or what a rule makes of its text (`Rule.parse`): an
            int, a date, a str. None where it was not, for a form (also after a ThinkGate), and where nothing was
            constrained.
        invalid: why there is no value: the error of the class that refused its text, or that it was cut off. Only with
            `on_invalid="none"`, and in the `partial` of an InvalidValueError or a TruncatedError.
        partial_token: the bytes of the value's last token that lie beyond the value, in a set with `open_end=True`.
            They begin the free text.
        values: what a form was filled with, by the names of its slots and texts: str, or what a rule makes of its text;
            empty for other constraints.
        probabilities: the probability of each value of a slot of a form, by the names of the slot and the value; those
            of a slot add up to 1. Empty unless asked for.
        canonical: whether these are the tokens that the tokenizer writes for the text of a form; True for other
            constraints.
        completed: whether a value was ended by few tokens that the model did not choose, because `max_tokens` or the
            room of the context ran out; of a form `completed_fields` says which.
        completed_fields: the names of the slots and texts of a form that were ended so.
        logprobs: how probable each of `tokens` was; empty unless `logprobs` was given.
        receipt: a chain of hashed steps for `verify_receipt`: the prompt, the tokens, and at each branch the mass of
            the allowed tokens, the share of the chosen token, that of the best other one, and the digest of the mask.
            None unless `receipt` was given.
        finish: why it ended: "span" where its value or form is complete, "end_of_generation" where the model said so,
            "stop_text", "max_tokens" or "context_full"; "cancelled" or "timed_out" in the `partial` of an error.
        stats: what it took.
        correction: the account of a draw as a whole; None unless `correct` was given.

    Example:
        >>> out = tokentrie.Model().generate("The sky is ", ["blue", "red"])
        >>> (out.leaf.name == out.text, out.finish)
        (True, 'span')
    """

    __hash__ = None

    text: str
    tokens: list[int]
    leaf: Leaf | None
    leaves: list[Leaf]
    value: V
    invalid: str | None
    partial_token: bytes
    values: dict[str, Any]
    probabilities: dict[str, dict[str, float]]
    canonical: bool
    completed: bool
    completed_fields: list[str]
    logprobs: list[TokenLogprob]
    receipt: dict[str, Any] | None
    finish: Finish
    stats: Stats
    correction: Correction | None = None

    @classmethod
    def _made(cls, fields: dict[str, Any]) -> Generated[V]:
        correction = fields.setdefault("correction", None)
        if correction is not None:
            fields["correction"] = Correction._made(correction)
        fields["stats"] = Stats._made(fields["stats"])
        fields["logprobs"] = [TokenLogprob._made(known) for known in fields["logprobs"]]
        return super()._made(fields)

    def __repr__(self) -> str:
        return f"<tokentrie.Generated: {_quote(self.text)}, {len(self.tokens)} tokens, {self.finish}>"

    def _repr_html_(self) -> str:
        from tokentrie import html

        return html.render_generated(self)


@dataclass(frozen=True, eq=False, repr=False)
class Step(_ArrayResult):
    """One step of a generation, as `on_step` of `Model.generate` sees it.

    Attributes:
        index: its number, from 0.
        depth: tokens walked in the trie before the step.
        token: the token that was taken.
        forced: whether no other could come.
        text: the text that it completes; "" where a character is only begun. The texts of all steps together are
            `Generated.text`, except for a last character that the output leaves incomplete.
        logprob: how probable it was, where `logprobs` was given.
        allowed: int32 [k], the allowed tokens, ascending; empty where all are. At an open leaf the tokens that continue
            the value.
        probabilities: float32 [k], their probabilities among each other, before temperature and truncation; at an open
            leaf among all tokens, so that 1 minus their sum is the probability of ending there.

    Example:
        >>> steps = []
        >>> out = tokentrie.Model().generate("The sky is ", ["blue", "red"], on_step=steps.append)
        >>> [step.token for step in steps] == out.tokens
        True
    """

    __hash__ = None

    index: int
    depth: int
    token: int
    forced: bool
    text: str
    logprob: TokenLogprob | None
    allowed: NDArray[np.int32]
    probabilities: NDArray[np.float32]

    @classmethod
    def _made(cls, fields: dict[str, Any]) -> Step:
        if (known := fields["logprob"]) is not None:
            fields["logprob"] = TokenLogprob._made(known)
        return super()._made(fields)

    def __repr__(self) -> str:
        return (
            f"<tokentrie.results.Step {self.index}: token {self.token}, text {_quote(self.text)}, forced "
            f"{str(self.forced).lower()}, {len(self.allowed)} allowed, depth {self.depth}>"
        )


@dataclass(frozen=True)
class ChoiceStats(_Result):
    """Cost of a choice. Prompts that were decoded together share one.

    Attributes:
        forward_passes: calls of llama.cpp's decode, the prompt included.
        tokens_decoded: tokens in them.
        rows: rows of logits that were read.
        healed_bytes: bytes at the end of the prompt that were taken back, because the values begin with them.
        seconds: seconds in all.
        n_threads: threads of the last forward pass.

    Example:
        >>> stats = tokentrie.Model().choose("The sky is ", ["blue", "red"]).stats
        >>> stats.forward_passes
        2
    """

    __hash__ = None

    forward_passes: int
    tokens_decoded: int
    rows: int
    healed_bytes: int
    seconds: float
    n_threads: int


@dataclass(frozen=True)
class TextProbability(_Result):
    """The probability of one text of a constraint: `Probability.text`.

    Attributes:
        logprob: the logarithm of the probability that the model writes the text, over the token sequences that were
            read.
        bounds: lower and upper bound of that probability.
        share: the text's share of the estimated probability of the constraint: its probability under the constraint.
        share_bounds: lower and upper bound of that share.

    Example:
        >>> found = tokentrie.Model().probability("The sky is ", tokentrie.Regex("[a-z]{1,2}"), text="a", seed=1)
        >>> 0 < found.text.share_bounds[0] <= found.text.share <= found.text.share_bounds[1]
        True
    """

    __hash__ = None

    logprob: float
    bounds: tuple[float, float]
    share: float
    share_bounds: tuple[float, float]

    @classmethod
    def _made(cls, fields: dict[str, Any]) -> TextProbability:
        fields.update(bounds=tuple(fields["bounds"]), share_bounds=tuple(fields["share_bounds"]))
        return super()._made(fields)


@dataclass(frozen=True)
class Probability(_Result):
    """The probability of a constraint: what `Model.probability` returns.

    Attributes:
        estimate: the estimate, inside the bounds: their common value, the mean of draws, or the middle.
        logprob: its natural logarithm.
        standard_error: the standard error of the draws; 0 where there were none, and the bounds say all.
        interval: an interval that holds the probability for 95 of 100 seeds, inside the bounds; the bounds themselves
            where there were no draws.
        lower: the probability is at least this.
        upper: the probability is at most this.
        cut: probability that was found of texts that are longer than `max_tokens` or the room of the context. It is
            part of `upper`; `lower` and `estimate` are of the texts up to that length.
        exact: whether the bounds are equal up to single precision.
        samples: number of draws.
        text: the probability of the given text; None unless one was given.
        timed_out: whether `timeout` ended the call: the bounds hold, and no draw counts.
        stats: what it took; `stats.rows` are the rows of logits that were read.

    Example:
        >>> found = tokentrie.Model().probability("The sky is ", ["blue", "red"])
        >>> (found.exact, found.lower <= found.estimate <= found.upper)
        (True, True)
    """

    __hash__ = None

    estimate: float
    logprob: float
    standard_error: float
    interval: tuple[float, float]
    lower: float
    upper: float
    cut: float
    exact: bool
    samples: int
    text: TextProbability | None
    timed_out: bool
    stats: ChoiceStats

    @classmethod
    def _made(cls, fields: dict[str, Any]) -> Probability:
        if (text := fields["text"]) is not None:
            fields["text"] = TextProbability._made(text)
        fields.update(interval=tuple(fields["interval"]), stats=ChoiceStats._made(fields["stats"]))
        return super()._made(fields)


class _TypedChoice(_ArrayResult, Generic[N, W]):
    """A choice by the types of its names and its values, which are the same unless a rule makes others of them."""

    __hash__: ClassVar[None] = None  # type: ignore[assignment]
    if not TYPE_CHECKING:
        # Choice[str] is Choice[str, str].
        __class_getitem__ = classmethod(GenericAlias)


@dataclass(frozen=True, eq=False, repr=False)
class Choice(_TypedChoice[N, W]):
    """A choice: what `Model.choose` returns.

    Values are numbered as they were given, those of a trie or payload by leaf.

    Attributes:
        name: the name of the most probable value; None where the set has no names.
        index: the number of the most probable value.
        mass: the probability that the output is any of the values; its lower bound where not all were scored.
        mass_bounds: lower and upper bound of `mass`; equal where all values were scored.
        certain: whether no value can be more probable than the first. Where a budget ended the search, it may be False.
        logprobs: float64 [values], the log of each value's probability under the whole vocabulary; NaN for a value that
            was not scored (see `top`). With `tokenization="all"` or `open_end=True` that of all its sequences together,
            and a lower bound unless all were scored.
        logprobs_high: float64 [values], upper bounds; the same as `logprobs` where all were scored. They hold as far as
            double precision adds up.
        ranking: int64 [k], numbers of the values, the most probable first: all of them, or `top`.
        threshold: the least probability of a value that was asked for; None where none was.
        stats: what it took.

    Example:
        >>> choice = tokentrie.Model().choose("The sky is ", ["blue", "red", "green"])
        >>> (choice.ranking.tolist()[0] == choice.index, round(sum(choice.probabilities.values()), 6))
        (True, 1.0)
    """

    __hash__ = None

    name: N
    index: int
    mass: float
    mass_bounds: tuple[float, float]
    certain: bool
    logprobs: NDArray[np.float64]
    logprobs_high: NDArray[np.float64]
    ranking: NDArray[np.int64]
    threshold: float | None
    stats: ChoiceStats
    _value: Any = dataclasses.field(repr=False)
    _invalid: str | None = dataclasses.field(repr=False)
    _names: Callable[[], list[str] | None] | list[str] | None = dataclasses.field(repr=False)
    _shares: NDArray[np.float64] = dataclasses.field(repr=False)

    @classmethod
    def _made(cls, fields: dict[str, Any]) -> Choice[N, W]:
        fields["stats"] = ChoiceStats._made(fields["stats"])
        return super()._made(fields)

    @property
    def names(self) -> list[str] | None:
        """list[str] | None: the names of the values, in their order; None where the set has no names."""
        if callable(self._names):
            # Of a large set they are made when they are asked for.
            self.__dict__["_names"] = self._names()
        return self._names  # type: ignore[return-value]

    @property
    def probabilities(self) -> dict[str | int, float]:
        """dict[str | int, float]: the probability of each value among the values, by its name, or its number where the
        set has no names, in their order: they add up to 1. Where not all were scored, lower bounds, and NaN for a value
        that was not. Values of one name count together."""
        names, found = self.names, dict[str | int, float]()
        for index, share in enumerate(self._shares.tolist()):
            name = index if names is None else names[index]
            found[name] = found.get(name, 0.0) + share
        return found

    @property
    def probability(self) -> float:
        """float: the probability of the most probable value among the values."""
        return float(self._shares[self.index]) if len(self) else float("nan")

    @property
    def _is_below(self) -> bool:
        """Returns True if the probability is below the threshold. NaN is below any."""
        return self.threshold is not None and not self.probability >= self.threshold

    @property
    def value(self) -> W | None:
        """The most probable value: what a rule or a type makes of its text, such as an int, a date or a member of an
        Enum; of other sets its name, or its number where it has none. None where its probability is below the
        `threshold`, and where the class of a type refuses it."""
        if self._is_below:
            return None
        return self.index if self.name is None else self._value  # type: ignore[return-value]

    @property
    def reason(self) -> str | None:
        """str | None: the reason for a missing value."""
        if not self._is_below:
            return self._invalid
        return f"the probability {self.probability:.4f} is below the threshold {self.threshold}"

    def items(self) -> list[tuple[str | int, float]]:
        """Returns values and their probabilities, the most probable first: those that were ranked.

        Returns:
            list[tuple[str | int, float]]: the name of a value, or its number where the set has no names.

        Example:
            >>> choice = tokentrie.Model().choose("The sky is ", ["blue", "red"])
            >>> [name for name, probability in choice.items() if probability == choice.probability] == [choice.name]
            True
        """
        names = self.names
        ranked = ((int(index), float(self._shares[index])) for index in self.ranking)
        return [(index if names is None else names[index], share) for index, share in ranked]

    def to_dict(self) -> dict[str, Any]:
        """Returns the choice as a dict, for JSON.

        Returns:
            dict: "name", "value", "reason", "index", "probability", "mass", "certain", "probabilities" (a dict by name,
                or by number where the set has no names, the most probable first) and "stats".

        Example:
            >>> sorted(tokentrie.Model().choose("The sky is ", ["blue", "red"]).to_dict()["probabilities"])
            ['blue', 'red']
        """
        return {
            "name": self.name,
            "value": _plain(self.value),
            "reason": self.reason,
            "index": self.index,
            "probability": self.probability,
            "mass": self.mass,
            "certain": self.certain,
            "probabilities": dict(self.items()),
            "stats": self.stats.to_dict(),
        }

    def __len__(self) -> int:
        return len(self._shares)

    def __getitem__(self, value: str | int) -> float:
        """The probability of a value, by its name or number."""
        if isinstance(value, str):
            names = self.names or []
            if value not in names:
                raise KeyError(f"no value has the name {value!r}")
            return float(self._shares[names.index(value)])
        number = operator.index(value)
        if not -len(self) <= number < len(self):
            raise IndexError(f"value {number} of {len(self)}")
        return float(self._shares[number])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Choice):
            # Names that were not asked for yet.
            _, _ = self.names, other.names
        return super().__eq__(other)

    def __reduce__(self) -> tuple[Any, ...]:
        _ = self.names
        return type(self)._made, ({**self.__dict__, "stats": self.stats.__dict__},)

    def _repr_html_(self) -> str:
        from tokentrie import html

        return html.choice(self)

    def __repr__(self) -> str:
        name = f"value {self.index}" if self.name is None else _quote(str(self.name))
        if self._is_below:
            name = f"none, {name} is below {self.threshold},"
        share, mass = f"{self.probability:.4f}", _exponent(self.mass)
        return f"<tokentrie.Choice: {name} of {len(self)}, probability {share}, mass {mass}>"


@dataclass(frozen=True, repr=False)
class Hypothesis(_Result):
    """A value that `beam_search` or `Model.beam` found. Compares by content; can be pickled.

    Attributes:
        leaf: the value; of a Sequence the last one.
        tokens: the tokens that were walked, without those that only end the value.
        logprob: its score, in the sense of `score`: the log of its probability, before any penalty for length.

    Example:
        >>> trie = tokentrie.Trie.from_sequences([[1], [2]], names=["a", "b"])
        >>> score = lambda prefixes: np.zeros((len(prefixes), 4), np.float32)
        >>> best, other = tokentrie.sets.beam_search(score, trie, 2)
        >>> best.leaf.name, best.tokens, round(best.logprob, 3)
        ('a', [1], -1.386)
    """

    __hash__ = None

    leaf: Leaf
    tokens: list[int]
    logprob: float

    def __repr__(self) -> str:
        return f"Hypothesis({self.leaf!r}, logprob={self.logprob:.4f})"


@dataclass(frozen=True)
class EngineStats(_Result):
    """State and totals of a model's engine: `Model(path, slots=8).engine`.

    Attributes:
        slots: calls that may run at once.
        running: calls that run.
        queued: calls that wait for a slot.
        calls: calls that were begun.
        passes: forward passes.
        tokens: tokens in them.
        tokens_reused: tokens that were not decoded, because another call begins with them.
        cells: tokens in the KV cache, counted once for each call or former call.
        failed_passes: forward passes that failed.
        decode_seconds: seconds that llama.cpp took for them.
        own_seconds: seconds of the passes outside llama.cpp: scheduling, constraints, choosing tokens.

    Example:
        >>> model = tokentrie.Model(slots=2)
        >>> out = model.generate("Once", max_tokens=1)
        >>> (model.engine.calls, model.engine.slots, model.engine.queued)
        (1, 2, 0)
    """

    __hash__ = None

    slots: int
    running: int
    queued: int
    calls: int
    passes: int
    tokens: int
    tokens_reused: int
    cells: int
    failed_passes: int
    decode_seconds: float
    own_seconds: float

    @property
    def tokens_per_pass(self) -> float:
        """float: tokens a forward pass; 0 before the first."""
        return self.tokens / self.passes if self.passes else 0.0


@dataclass(frozen=True)
class CacheInfo(_Result):
    """Counts of a `TrieCache` so far.

    Attributes:
        hits: payloads found by their text.
        content_hits: payloads with other text and the same content; the tries are shared.
        misses: payloads built anew.
        evictions: payloads that had to leave.
        size: payloads held.
        capacity: payloads that can be held.

    Example:
        >>> tokentrie.sets.TrieCache().cache_info()
        CacheInfo(hits=0, content_hits=0, misses=0, evictions=0, size=0, capacity=128)
    """

    __hash__ = None

    hits: int
    content_hits: int
    misses: int
    evictions: int
    size: int
    capacity: int


@dataclass(frozen=True, repr=False)
class ToolCall(_Result):
    """A call of a tool, as a model asked for it.

    Attributes:
        id: one of its own in the conversation; "" from a parser, where the format of the model has none.
        name: the tool.
        arguments: its arguments as JSON text, or the input of a custom tool as it is; cut off where the reply was cut
            off inside them.
        probability: the probability of the name's tokens among what was legal; None where it was not asked for, or
            where the name began inside a token of free text.
        probabilities: the same for arguments with an enum or a boolean, by their names, where they were asked for.
        kind: "function", or "custom" of a tool whose input is text.

    Example:
        >>> call = tokentrie.results.ToolCall("", "ring", '{"times": 2}')
        >>> (call.name, call.parsed["times"])
        ('ring', 2)
    """

    __hash__ = None
    __match_args__ = ("id", "name", "arguments")

    id: str
    name: str
    arguments: str
    probability: float | None = None
    probabilities: dict[str, float] = dataclasses.field(default_factory=dict)
    kind: ToolKind = "function"

    @property
    def parsed(self) -> Any:
        """Any: the arguments as `json.loads` reads them, mostly a dict; ValueError where they were cut off. Of a custom
        tool its input, a str."""
        return self.arguments if self.kind == "custom" else json.loads(self.arguments)

    def to_dict(self) -> dict[str, Any]:
        """Returns the call as chat APIs write it.

        Example:
            >>> tokentrie.results.ToolCall("c1", "ring", "{}").to_dict()
            {'id': 'c1', 'type': 'function', 'function': {'name': 'ring', 'arguments': '{}'}}
        """
        if self.kind == "custom":
            return {"id": self.id, "type": "custom", "custom": {"name": self.name, "input": self.arguments}}
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}

    def __repr__(self) -> str:
        return f"ToolCall({self.id!r}, {self.name!r}, {self.arguments!r})"


@dataclass(frozen=True)
class ChatStats(_Result):
    """Cost of a reply of `Model.chat`.

    Attributes:
        prompt_tokens: tokens of the prompt.
        prompt_tokens_reused: those of them that the model's KV cache held already, from earlier turns.
        tokens: tokens of the reply.
        reasoning_tokens: those of them in the reasoning.
        forced_tokens: those of them that the constraint left no choice about.
        forward_passes: calls of llama.cpp's decode.
        forward_passes_saved: tokens that needed no forward pass of their own, because they were forced.
        drafted_tokens: tokens that `Model(draft=...)` guessed ahead.
        accepted_tokens: those of them that were then chosen, too.
        gathered_rows: rows of which only the logits of allowed tokens left the device.
        seconds: seconds in all.
        prompt_seconds: seconds for the prompt.
        tokens_per_second: tokens of the reply a second, without the time for the prompt.

    Example:
        >>> stats = tokentrie.Model().chat([{"role": "user", "content": "Hello"}], max_tokens=4).stats
        >>> stats.tokens <= 4
        True
    """

    __hash__ = None

    prompt_tokens: int
    prompt_tokens_reused: int
    tokens: int
    reasoning_tokens: int
    forced_tokens: int
    forward_passes: int
    forward_passes_saved: int
    drafted_tokens: int
    accepted_tokens: int
    gathered_rows: int
    seconds: float
    prompt_seconds: float
    tokens_per_second: float


@dataclass(frozen=True, repr=False)
class Message(_Result, Generic[V]):
    """A reply of a model. Append it to the messages of the next request: `messages.append(message)`.

    Attributes:
        content: the text of the reply.
        reasoning: the text of its thought.
        tool_calls: its tool calls, in their order.
        warnings: places where the text does not follow the format.
        finish: why it ended: "end_of_generation" where the model said so, "tool_calls" where it calls something, "span"
            where its content is complete under a constraint, "stop_text", "max_tokens" or "context_full"; "cancelled"
            or "timed_out" in the `partial` of an error; None of a text that was parsed.
        stats: what it took; None of a text that was parsed.
        parsed: the value of the content, where it is constrained and complete: a dict, a number, an object of the class
            that was given.
        invalid: why complete content was not parsed: the error of the class that refused it.
        completed: whether a call, or constrained content, was ended by few tokens that the model did not choose,
            because no more tokens fitted: `max_tokens`, or the context.
        logprobs: how probable each token of the content was; empty unless `logprobs` was given.
        receipt: a chain of hashed steps for `verify_chat_receipt`; None unless `receipt` was given.
        stop_text: which of the texts of `stop` ended the content; None if none did.

    Example:
        >>> message = tokentrie.Message("It rings.", tool_calls=[tokentrie.results.ToolCall("", "ring", "{}")])
        >>> [call.name for call in message.tool_calls]
        ['ring']
        >>> message.to_dict()["role"]
        'assistant'
    """

    __hash__ = None

    content: str = ""
    reasoning: str = ""
    tool_calls: list[ToolCall] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    finish: Finish | None = None
    stats: ChatStats | None = None
    parsed: V = None  # type: ignore[assignment]
    invalid: str | None = None
    completed: bool = False
    logprobs: list[TokenLogprob] = dataclasses.field(default_factory=list)
    receipt: dict[str, Any] | None = None
    stop_text: str | None = None

    @classmethod
    def _made(cls, fields: dict[str, Any]) -> Message:
        fields["tool_calls"] = [ToolCall._made(call) for call in fields["tool_calls"]]
        fields["logprobs"] = [TokenLogprob._made(known) for known in fields["logprobs"]]
        if (stats := fields["stats"]) is not None:
            fields["stats"] = ChatStats._made(stats)
        return super()._made(fields)

    def to_dict(self) -> dict[str, Any]:
        """Returns the message as chat APIs write it, for a list of messages.

        Returns:
            dict[str, Any] with "role" and "content", and "reasoning_content" and "tool_calls" where there are any.

        Example:
            >>> tokentrie.Message("Ding.").to_dict()
            {'role': 'assistant', 'content': 'Ding.'}
        """
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.tool_calls:
            message["tool_calls"] = [call.to_dict() for call in self.tool_calls]
        return message

    def _repr_html_(self) -> str:
        from tokentrie import html

        return html.message(self)

    def __repr__(self) -> str:
        parts = [_shorten(self.content)]
        if self.reasoning:
            parts.append(f"reasoning={_shorten(self.reasoning)}")
        if self.tool_calls:
            parts.append(f"calls {', '.join(call.name for call in self.tool_calls)}")
        if self.finish:
            parts.append(self.finish)
        return f"<tokentrie.Message: {', '.join(parts)}>"


@dataclass(frozen=True, repr=False)
class ChatEvent(_Result):
    """A part of a reply, as soon as it is certain. All events together are the message; none is ever taken back.

    Attributes:
        kind: "reasoning", "content", "call_begins", "arguments", "call_ends", "warning" or "message_ends"; and
            "tool_result" of a ToolStream.
        text: more of the reasoning, of the content, or of a call's arguments as JSON text; of the input of a custom
            tool, as it is; the warning; the result.
        index: which call of the message it is about, from 0.
        id: the id of a call that begins or ends, where the format has one and it is known.
        name: the tool of a call that begins, or of a result.
        tool: the kind of this tool, "function" or "custom"; "" of other events.

    Example:
        >>> def told(event):
        ...     match event:
        ...         case tokentrie.results.ChatEvent("content", text):
        ...             return f"says {text}"
        ...         case tokentrie.results.ChatEvent("call_begins", name=name):
        ...             return f"calls {name}"
        >>> format = tokentrie.Model().chat_format
        >>> [told(event) for event in format.parser().push("Hi there ")]
        ['says Hi there']
    """

    __hash__ = None
    __match_args__ = ("kind", "text")

    kind: EventKind
    text: str
    index: int | None
    id: str
    name: str
    tool: ToolKind | Literal[""] = ""

    def __repr__(self) -> str:
        parts = [_quote(self.kind)]
        if self.text:
            parts.append(_quote(self.text))
        if self.index is not None:
            parts.append(f"index={self.index}")
        parts += [f"{name}={_quote(value)}" for name, value in (("id", self.id), ("name", self.name)) if value]
        return f"ChatEvent({', '.join(parts)})"


@dataclass(frozen=True, repr=False)
class ChatPrompt(_Result):
    """The prompt of a conversation.

    Attributes:
        text: all of it.
        generation_prompt: the end of it with which the reply's turn begins, for `ChatFormat.parse` and `constraint`.
        parts: the text as pairs of a part and whether the template wrote it. In the template's parts the name of a
            control token stands for the token; elsewhere it is text. `Vocab.tokenize_parts` takes these pairs.

    Example:
        >>> format = tokentrie.Model().chat_format
        >>> prompt = format.prompt([{"role": "user", "content": "Hello"}])
        >>> prompt.generation_prompt
        '<|im_start|>assistant\\n'
        >>> prompt.parts[1:3]
        [('Hello', False), ('<|im_end|>\\n<|im_start|>assistant\\n', True)]
    """

    __hash__ = None

    text: str
    generation_prompt: str
    parts: list[tuple[str, bool]]

    def __repr__(self) -> str:
        return f"<tokentrie.results.ChatPrompt: {len(self.text)} characters, then {_quote(self.generation_prompt)}>"


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _shorten(text: str, most: int = 60) -> str:
    return repr(text[:most] + "…" * (len(text) > most))


def _exponent(number: float) -> str:
    """A number as 1.234e-5: the exponent without leading zeros."""
    digits, _, exponent = f"{number:.3e}".partition("e")
    return f"{digits}e{int(exponent)}" if exponent else digits


#: The classes that the native module makes, by their names.
_MAKERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    made.__name__: made._made
    for made in (
        CacheInfo, ChatEvent, ChatPrompt, Choice, EngineStats, Generated, Hypothesis, Message, Probability, Step,
        TokenLogprob,
    )
}  # fmt: skip
