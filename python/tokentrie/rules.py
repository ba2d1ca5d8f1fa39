"""Constraints as frozen dataclasses: values that compare, pickle and have a JSON form (`to_json`).

What is made of one, such as the automaton of a `Regex`, is made once and kept beside its fields, in the native base
class `Constraint`. Errors are raised where a constraint is made.

Example:
    >>> from tokentrie import rules
    >>> rules.Date().matches("2024-02-29")
    True
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import json
import operator
import os
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, overload

from tokentrie import schemas
from tokentrie._native import (
    ChatConstraint,
    Constraint,
    FilteredTrie,
    InvalidValueError,
    LiveSet,
    OptionError,
    RuleError,
    Spec,
    ThinkGate,
    TokenTrieWarning,
    Trie,
    _grammar_example,
    _is_list,
    _listed_texts,
    _read_constraint,
    _slot_size,
    _Typed,
)

__all__ = [
    "Concatenation",
    "Constraint",
    "Date",
    "DateTime",
    "Form",
    "Gbnf",
    "Grammar",
    "Integer",
    "JsonSchema",
    "Lark",
    "Limits",
    "Number",
    "OneOf",
    "Regex",
    "Repeat",
    "Rule",
    "RuleStats",
    "Sequence",
    "Slot",
    "Spec",
    "String",
    "Text",
    "ThinkGate",
    "Time",
    "Unconstrained",
    "WasmRule",
]


if TYPE_CHECKING:
    from typing_extensions import Self, TypedDict, TypeForm, Unpack
    from typing_extensions import TypeVar as DefaultTypeVar

    from tokentrie._native import _Adapter, _Tokens

    ValueT = DefaultTypeVar("ValueT", covariant=True, default=Any)
    T = DefaultTypeVar("T", default=Any)

    class _SchemaOptions(TypedDict, total=False):
        whitespace: str
        unicode_escapes: bool
        lenient: bool
        formats: Formats
        order: Order
        any_numerals: bool
        names: Closing
        implied_types: bool
        limits: Limits | None
else:
    ValueT = TypeVar("ValueT", covariant=True)

#: Precisions of times.
Timespec: TypeAlias = Literal["minutes", "seconds", "milliseconds", "microseconds"]
TIMESPECS = ("minutes", "seconds", "milliseconds", "microseconds")
#: Whether `format` of a JSON Schema says something.
Formats: TypeAlias = Literal["assert", "annotate"]
FORMATS = ("assert", "annotate")
#: Orders of the properties of an object.
Order: TypeAlias = Literal["schema", "any"]
ORDERS = ("schema", "any")
#: Treatments of properties whose names a JSON Schema does not mention.
Closing: TypeAlias = Literal["open", "closed"]
CLOSINGS = ("open", "closed")

#: Integers that every reader of JSON holds exactly.
EXACT = 2**53 - 1
#: Parts that may follow each other: each more is joined to all before it.
MOST_PARTS = 1024
#: Characters of a value that are shown.
SHOWN = 80


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on the cost of making a rule. The defaults are meant for untrusted input to a server.

    All three hold together; a rule that exceeds one raises a RuleError that names it. The same rule takes the same
    steps everywhere, so a limit of steps does not depend on how busy a machine is. Ctrl-C ends the work at any time.

    Args:
        bytes: approximate bytes of the result and of the memory to make it; 0 to 2**62.
        steps: loop iterations, each of some ten to some hundred nanoseconds; 0 to 2**62.
        seconds: processor time, of all threads that work for it together; from 0 up.

    Raises:
        OptionError: a number is out of range.

    Example:
        >>> small = tokentrie.Limits(seconds=1.0, steps=1_000_000)
        >>> tokentrie.rules.Grammar('list : "a" | list "a" ;', limits=small).matches("aaa")
        True
    """

    __hash__ = None  # type: ignore[assignment]

    bytes: int = 268_435_456
    steps: int = 100_000_000
    seconds: float = 10.0

    def __post_init__(self) -> None:
        for name, number in (("bytes", operator.index(self.bytes)), ("steps", operator.index(self.steps))):
            if not 0 <= number <= 2**62:
                raise OptionError(f"{name} is {number}: it must be from 0 to 2**62")
            object.__setattr__(self, name, number)
        seconds = float(self.seconds)
        if not seconds >= 0:
            raise OptionError(f"seconds is {seconds}: it must be a number, from 0 up")
        object.__setattr__(self, "seconds", seconds)


#: Limits that need not be said.
USUAL_LIMITS = Limits()


@dataclass(frozen=True)
class RuleStats:
    """Statistics of the token masks that a rule keeps for a vocabulary.

    Attributes:
        masks: masks kept, one for each state that was visited.
        bytes: bytes of them.
        hits: how often a mask was there already.
        misses: how often one had to be worked out.

    Example:
        >>> vocab = tokentrie.Model().vocab
        >>> digits = tokentrie.Regex("[0-9]+")
        >>> sampler = tokentrie.Sampler(vocab, digits)
        >>> digits.stats(vocab).masks >= 1
        True
    """

    __hash__ = None  # type: ignore[assignment]

    masks: int
    bytes: int
    hits: int
    misses: int


class Rule(Constraint, Generic[ValueT]):
    """A rule says byte by byte what may be written; its texts are the ones that it allows as a whole.

    Regex, Grammar and the others are rules. Write one of your own by extending this class: `start`, `step` and
    `is_end` say what is legal, and everything that takes a constraint takes it. A state is any hashable object. Equal
    states must give equal answers, because each is asked only once. `step` returns None if no legal text begins with
    the bytes so far, and only then. An exception in these methods ends the call that uses the rule.
    A method `allowed_bytes(state)`, if there is one, gives the only bytes (ints) for which `step` need be asked.

    A rule is bound to no vocabulary. It keeps its token masks for each vocabulary, and all samplers share them.

    Example:
        >>> class Balanced(tokentrie.rules.Rule):  # as many ( as ), at least one, at most 5 open
        ...     def start(self):
        ...         return (0, False)
        ...     def step(self, state, byte):
        ...         depth, begun = state
        ...         if byte == ord("(") and depth < 5:
        ...             return (depth + 1, True)
        ...         return (depth - 1, True) if byte == ord(")") and depth else None
        ...     def is_end(self, state):
        ...         return state == (0, True)
        >>> vocab = tokentrie.Vocab.from_tokens([b"(", b")", b"))", b"x"])
        >>> sampler = tokentrie.Sampler(vocab, Balanced())
        >>> sampler.accept([0, 0])
        >>> sampler.allowed()
        array([0, 1, 2], dtype=int32)
    """

    def start(self) -> Any:
        """Returns the state before the first byte: any hashable object.

        Raises:
            NotImplementedError: a subclass of Rule must define it.

        Example:
            >>> class Yes(tokentrie.rules.Rule):
            ...     def start(self):
            ...         return b"yes"
            ...     def step(self, state, byte):
            ...         return state[1:] if state[:1] == bytes([byte]) else None
            ...     def is_end(self, state):
            ...         return state == b""
            >>> Yes().matches("yes")
            True
        """
        raise self._undefined_error("start")

    def step(self, state: Any, byte: int) -> Any:
        """Returns the state after one byte more, or None if no text begins so.

        Args:
            state: what `start` or `step` gave.
            byte: int, 0 to 255.

        Raises:
            NotImplementedError: a subclass of Rule must define it.

        Example:
            >>> class Dots(tokentrie.rules.Rule):  # one to three dots
            ...     start = lambda self: 0
            ...     step = lambda self, state, byte: state + 1 if byte == ord(".") and state < 3 else None
            ...     is_end = lambda self, state: state > 0
            >>> (Dots().matches("..."), Dots().matches("...."))
            (True, False)
        """
        raise self._undefined_error("step")

    def is_end(self, state: Any) -> bool:
        """Returns whether a text ends at a state; longer ones may go on.

        Args:
            state: what `start` or `step` gave.

        Raises:
            NotImplementedError: a subclass of Rule must define it.

        Example:
            >>> class Even(tokentrie.rules.Rule):  # an even number of letters a, not none
            ...     start = lambda self: 2
            ...     step = lambda self, state, byte: 1 - state % 2 if byte == ord("a") else None
            ...     is_end = lambda self, state: state == 0
            >>> (Even().matches("aa"), Even().matches("aaa"))
            (True, False)
        """
        raise self._undefined_error("is_end")

    def _undefined_error(self, method: str) -> NotImplementedError:
        name = type(self).__name__
        return NotImplementedError(f"{name} has no method {method}: what extends Rule defines it")

    if TYPE_CHECKING:

        def parse(self, text: str) -> ValueT: ...

    @overload
    def __add__(self, other: Rule[Any] | str) -> Concatenation: ...
    @overload
    def __add__(self, other: _Tokens | Form) -> Sequence: ...
    def __add__(self, other: Any) -> Any:
        return add_constraints(self, other)

    @overload
    def __radd__(self, other: str) -> Concatenation: ...
    @overload
    def __radd__(self, other: list[str] | tuple[str, ...]) -> Sequence: ...
    def __radd__(self, other: Any) -> Any:
        return add_constraints(other, self)

    def __or__(self, other: Rule[Any] | str) -> OneOf:
        return OneOf(self, other) if isinstance(other, (Rule, str)) else NotImplemented

    def __ror__(self, other: str) -> OneOf:
        return OneOf(other, self) if isinstance(other, (Rule, str)) else NotImplemented


class _Data:
    """Base of the dataclasses: made anew from their fields, and shown by those that are not the default."""

    def _spec(self, spec: dict[str, Any], objects: list[Any] | None = None, *, unlimited: bool = False) -> None:
        """Makes the constraint of a spec; `{"object": n}` in it is one of the objects."""
        text = json.dumps(spec, ensure_ascii=False)
        for warning in self._hold(text, objects or [], unlimited):  # type: ignore[attr-defined]
            warnings.warn(warning, TokenTrieWarning, stacklevel=4)

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that make it again, without those that are the usual ones."""
        given: tuple[Any, ...] = ()
        named = {}
        gap = False
        for one in dataclasses.fields(self):  # type: ignore[arg-type]
            if not one.init:
                continue
            value = getattr(self, one.name)
            usual = one.default if one.default_factory is dataclasses.MISSING else one.default_factory()
            is_usual = usual is not dataclasses.MISSING and type(usual) is type(value) and usual == value
            if not one.kw_only and not gap and not is_usual:
                given += (value,)
            elif not is_usual:
                named[one.name] = value
            gap |= is_usual
        return given, named

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), *self._arguments())

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __repr__(self) -> str:
        given, named = self._arguments()
        said = [_value_text(value) for value in given] + [
            f"{name}={_value_text(value)}" for name, value in named.items()
        ]
        module = "tokentrie" if type(self).__name__ in _TOP_LEVEL else "tokentrie.rules"
        return f"{module}.{type(self).__name__}({', '.join(said)})"


def _rebuild(kind: type, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Makes an object from the parts that `__reduce__` gave."""
    return kind(*given, **named)


def _value_text(value: object) -> str:
    if isinstance(value, list):
        return f"<{len(value)} texts>"
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return repr(value.isoformat().replace("+00:00", "Z"))
    # A float of numpy is shown as Python's own.
    text = repr(float(value)) if isinstance(value, float) else repr(value)
    return _shorten(text)


def _wrong(name: str, expected: str, value: object) -> TypeError:
    return TypeError(f"{name} must be {expected}, not {repr(value)[:60]} of type {type(value).__name__}")


def _word(name: str, value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        names = ", ".join(f'"{word}"' for word in known)
        raise OptionError(f"{name} is {json.dumps(value, default=repr)}: it must be one of {names}")
    return str(value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(name, "a str", value)
    return value


def _count(name: str, value: Any, least: int = 0) -> int:
    """A count, at most the largest that a spec has."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise _wrong(name, "an int", value)
    count = operator.index(value)
    if count < least:
        raise OptionError(f"{name} is {count}: it must be at least {least}")
    return min(count, 2**32 - 1)


def _limits(given: Limits | None) -> tuple[Limits, dict[str, Any]]:
    """Limits, and the field of a spec that they are."""
    limits = Limits() if given is None else given
    if not isinstance(limits, Limits):
        raise _wrong("limits", "Limits or None", limits)
    if limits == USUAL_LIMITS:
        return limits, {}
    seconds = min(limits.seconds, 1e300)
    return limits, {"limits": {"bytes": limits.bytes, "steps": limits.steps, "seconds": seconds}}


@dataclass(frozen=True, repr=False)
class Regex(_Data, Rule[str]):
    """A regular expression as a rule: the whole text matches, and every way to match counts.

    Syntax of the Rust crate `regex` (docs.rs/regex): Unicode classes, flags such as (?i), no look-around and no
    back-references. Text is UTF-8. A finite automaton decides, so that nothing that is allowed leads into a dead end;
    one object serves any number of samplers and threads.

    Args:
        pattern: str.
        max_bytes: the most memory that its automaton may take, and the most memory to make it; 1 GiB at most.
        limits: Limits of what making it may cost.

    Raises:
        RuleError: it is not a regular expression (with position), looks around or back, matches nothing, or makes an
            automaton that is too large or takes too long. Also a ValueError.

    Example:
        >>> model = tokentrie.Model()
        >>> year = tokentrie.Regex("(19|20)[0-9]{2}")
        >>> year.matches(model.generate("The year was ", year).value)
        True
    """

    pattern: str
    max_bytes: int = field(default=33_554_432, kw_only=True, compare=False)
    limits: Limits = field(default_factory=Limits, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        limits, said = _limits(self.limits)
        self._set(limits=limits)
        spec = {"regex": _text("pattern", self.pattern), "max_bytes": _count("max_bytes", self.max_bytes), **said}
        self._spec(spec, unlimited=True)

    @property
    def states(self) -> int:
        """int: states of its automaton."""
        states: int = self._facts["states"]
        return states

    def table(self) -> list[tuple[bool, list[tuple[list[tuple[int, int]], int]]]]:
        """Returns the table of its automaton, shortest beginnings first: state 0 is the start. O(256 · states).

        For each state it says whether a text may end there, and where bytes lead: ranges of bytes, first and last
        included, with the state after them. Other bytes are not legal. The automaton is minimal, and every state leads
        to an end.

        Example:
            >>> tokentrie.Regex("a[0-9]*").table()
            [(False, [([(97, 97)], 1)]), (True, [([(48, 57)], 1)])]
        """
        return self._table() or []


def _integer(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an int or None, not {type(value).__name__}")
    number = int(operator.index(value))
    if not -(2**127) <= number < 2**127:
        raise OptionError(f"{name} is {repr(value)[:60]}: it must fit 128 bits, or be None")
    return number


@dataclass(frozen=True, repr=False)
class Integer(_Data, Rule[int]):
    """The integers of a range in decimal, without leading zeros: "0", "-12", and not "007", "-0" or "+1".

    Its values are int.

    Args:
        lo, hi: the smallest and the largest, both included. None: no bound, so that digits may come for ever.

    Raises:
        RuleError: no integer is in the range.
        OptionError: a bound does not fit 128 bits.

    Example:
        >>> model = tokentrie.Model()
        >>> model.generate("A number from one to ten: ", tokentrie.rules.Integer(1, 10)).value in range(1, 11)
        True
    """

    lo: int | None = None
    hi: int | None = None

    def __post_init__(self) -> None:
        lo, hi = _integer("lo", self.lo), _integer("hi", self.hi)
        self._set(lo=lo, hi=hi)
        said = {"min": lo, "max": hi}
        exact = {key: number if number is None or abs(number) <= EXACT else str(number) for key, number in said.items()}
        self._spec({"integer": exact})


def _digits(name: str, value: Any) -> str | None:
    """A bound as its digits, to the last one that is shown of it."""
    if value is None:
        return None
    if isinstance(value, int):
        text = format(value, "d")
    elif isinstance(value, decimal.Decimal):
        text = str(value)
    else:
        try:
            if isinstance(value, (str, bytes)):
                raise TypeError
            # A float of numpy says which number it is by repr as Python's own does; other numbers are floats first.
            text = repr(float(value))
        except (TypeError, ValueError):
            raise _wrong(name, "an int, a float, a decimal.Decimal or None", value) from None
    exponent = re.fullmatch(r"-?\d+(?:\.\d+)?(?:[eE]([-+]?\d+))?", text)
    if exponent is None or abs(int(exponent[1] or 0)) > 400:
        raise OptionError(f"{name} is {text}: it must be finite, and at most 1e400")
    return text


@dataclass(frozen=True, repr=False)
class Number(_Data, Rule[float]):
    """Numbers as JSON writes them: "-1.5", "2e10", "0". Its values are float.

    With bounds they are written without exponents and without "-0".

    Args:
        lo, hi: the smallest and the largest, both included: int, float or decimal.Decimal, to the last digit that is
            shown of it. None: no bound.
        integer_digits: the most digits before the point, at least 1. None: 20, or as many as a bound has.
        fraction_digits: the most after it; 0 for numbers without a point. None: 17, or as many as a bound has.
        exponent_digits: the most of the exponent; 0 for numbers without one. None: 2, or 0 with bounds.

    Raises:
        RuleError: no number is in the range, or none with so few digits; no digit may come before the point; an
            exponent with bounds.
        OptionError: a bound is not finite, or beyond 1e400.

    Example:
        >>> price = tokentrie.rules.Number(0, 99.5, fraction_digits=2)
        >>> (price.matches("12.50"), price.matches("12.505"), price.matches("99.51"), price.parse("12.50"))
        (True, False, False, 12.5)
        >>> tokentrie.rules.Number(integer_digits=4, fraction_digits=2, exponent_digits=0).matches("-12.5")
        True
    """

    lo: float | decimal.Decimal | None = field(default=None, compare=False)
    hi: float | decimal.Decimal | None = field(default=None, compare=False)
    integer_digits: int | None = field(default=None, kw_only=True)
    fraction_digits: int | None = field(default=None, kw_only=True)
    exponent_digits: int | None = field(default=None, kw_only=True)
    #: Bounds by what is shown of them: -0.1 is the same as Decimal("-0.10").
    _bounds: tuple[decimal.Decimal | None, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        names = ("integer_digits", "fraction_digits", "exponent_digits")
        said: dict[str, Any] = {"min": _digits("lo", self.lo), "max": _digits("hi", self.hi)}
        for name in names:
            value = getattr(self, name)
            said[name] = None if value is None else _count(name, value)
        self._spec({"number": said})
        self._set(**dict(zip(names, self._facts["digits"], strict=True)))
        bounds = (None if said[key] is None else decimal.Decimal(said[key]) for key in ("min", "max"))
        self._set(_bounds=tuple(bounds))


def _time_text(name: str, given: Any, utc: bool) -> str:
    """A time as it is written, in UTC with a `Z`."""
    offset = given.utcoffset()
    if (offset is None) == utc:
        if utc:
            reason = "without a time zone: utc=True needs one, such as datetime.timezone.utc"
        else:
            reason = "with a time zone: give utc=True, or a value without one"
        raise TypeError(f"{name} is {given!r}, {reason}")
    if utc and isinstance(given, datetime.datetime):
        given = given.astimezone(datetime.timezone.utc)
    elif utc and offset:
        raise TypeError(f"{name} is {given!r}: a time of day in another zone than UTC is not supported: give it in UTC")
    text: str = given.replace(tzinfo=None).isoformat(timespec="microseconds")
    return f"{text}Z" if utc else text


class _Moment(_Data):
    """Base of days and times: bounds are str or values, and are kept as values."""

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given, named = super()._arguments()
        return given, {name: value for name, value in named.items() if (name, value) != ("timespec", "seconds")}

    def _init_range(self, kind: str, value: Any, **written: Any) -> None:
        form: str | None = self.format  # type: ignore[attr-defined]
        if form is not None:
            written["format"] = _text("format", form)
        said: dict[str, Any] = dict(written)
        utc = bool(written.get("utc"))
        for name, key in (("lo", "min"), ("hi", "max")):
            bound = getattr(self, name)
            # A datetime is a date to Python, and no day.
            if isinstance(bound, value) and (value is not datetime.date or type(bound) is datetime.date):
                bound = bound.isoformat() if value is datetime.date else _time_text(name, bound, utc)
            elif bound is not None and not isinstance(bound, str):
                raise _wrong(name, f"a datetime.{value.__name__}, a str or None", bound)
            said[key] = bound
        self._spec({kind: said})
        known = self.to_dict()[kind]  # type: ignore[attr-defined]
        for name, key in (("lo", "min"), ("hi", "max")):
            if key in known:
                # Not every Python reads a Z.
                bound = value.fromisoformat(known[key].removesuffix("Z"))
                self._set(**{name: bound.replace(tzinfo=datetime.timezone.utc) if utc else bound})


def _timespec(name: str | None, form: str | None) -> str | None:
    """Precision of a written time without a format."""
    if form is not None and name is not None:
        raise OptionError(
            f"timespec is {json.dumps(name)} beside a format, which says how exactly a time is written: leave timespec "
            "out"
        )
    return None if name is None else _word("timespec", name, TIMESPECS)


@dataclass(frozen=True, repr=False)
class Date(_Moment, Rule[datetime.date]):
    """Days of the calendar as "YYYY-MM-DD", from 0001-01-01 to 9999-12-31. Its values are datetime.date.

    Args:
        lo, hi: the first and the last day, both included: datetime.date, or str as "YYYY-MM-DD". None: no bound. Kept
            as datetime.date.
        format: how a day is written instead, in the directives of `datetime.date.strftime` with English names: %Y or %y
            (from 1969 to 2068); %m, %B or %b with %d, or %j; %A and %a. "%-d" has no zeros in front. All parts of a
            text must agree: in "Friday, 1 March 2024" the weekday with the date.

    Raises:
        RuleError: a bound is not a day, no day is in the range, or the format leaves open which day is meant.

    Example:
        >>> (tokentrie.rules.Date().matches("2024-02-29"), tokentrie.rules.Date().matches("2023-02-29"))
        (True, False)
        >>> tokentrie.rules.Date("2024-01-01", "2024-12-31").matches("2025-01-01")
        False
        >>> tokentrie.rules.Date().parse("2024-02-29")
        datetime.date(2024, 2, 29)
        >>> tokentrie.rules.Date(format="%A, %-d %B %Y").parse("Thursday, 29 February 2024")
        datetime.date(2024, 2, 29)
    """

    lo: datetime.date | str | None = None
    hi: datetime.date | str | None = None
    format: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._init_range("date", datetime.date)


@dataclass(frozen=True, repr=False)
class Time(_Moment, Rule[datetime.time]):
    """Times of a day as "HH:MM:SS", from 00:00:00 to 23:59:59. Its values are datetime.time.

    Its texts are those of `datetime.time.isoformat(timespec)`.

    Args:
        lo, hi: the first and the last time, both included: datetime.time, or a str such as "09:30". None: no bound.
            Kept as datetime.time.
        timespec: how exactly it is written: "minutes" is HH:MM, "seconds" (the default) HH:MM:SS, "milliseconds" and
            "microseconds" have 3 and 6 digits more. A bound may be more or less exact.
        format: how it is written instead, in the directives of `datetime.time.strftime`: %H, or %I with %p (AM, PM);
            %M, %S and %f. "%-I" has no zeros in front. What is left out is 0.
        utc: whether times are in UTC: then a "Z" follows, if no format says otherwise, values have the time zone UTC,
            and bounds need a time zone.

    Raises:
        RuleError: a bound is not a time, no time is in the range, or the format leaves open which time is meant.
        OptionError: `timespec` is none of these words, or stands beside a format.
        TypeError: a bound has a time zone where none is written, or none where one is.

    Example:
        >>> office = tokentrie.rules.Time("09:00", "17:30", timespec="minutes")
        >>> (office.matches("17:30"), office.matches("17:31"), office.parse("09:15"))
        (True, False, datetime.time(9, 15))
        >>> tokentrie.rules.Time(format="%-I:%M %p").parse("9:15 PM")
        datetime.time(21, 15)
    """

    lo: datetime.time | str | None = None
    hi: datetime.time | str | None = None
    timespec: Timespec | None = field(default=None, kw_only=True)
    format: str | None = field(default=None, kw_only=True)
    utc: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        timespec = _timespec(self.timespec, self.format)
        self._init_range("time", datetime.time, timespec=timespec, utc=bool(self.utc))
        self._set(timespec=None if self.format is not None else timespec or "seconds")


@dataclass(frozen=True, repr=False)
class DateTime(_Moment, Rule[datetime.datetime]):
    """A day and a time as "YYYY-MM-DDTHH:MM:SS". Its values are datetime.datetime.

    Its texts are those of `datetime.datetime.isoformat(timespec=timespec)`.

    Args:
        lo, hi: the first and the last moment, both included: datetime.datetime, or a str such as "2024-02-29T09:30".
            None: no bound. Kept as datetime.datetime.
        timespec: how exactly the time is written: "minutes" is HH:MM, "seconds" (the default) HH:MM:SS, "milliseconds"
            and "microseconds" have 3 and 6 digits more. A bound may be more or less exact.
        format: how it is written instead, in the directives of `datetime.datetime.strftime` that `Date` and `Time`
            have.
        utc: whether it is a moment of UTC: then a "Z" follows, if no format says otherwise, values have the zone, and
            bounds need one.

    Raises:
        RuleError: a bound is not such a moment, none is in the range, or the format leaves open which one is meant.
        OptionError: `timespec` is none of these words, or stands beside a format.
        TypeError: a bound has a time zone where none is written, or none where one is.

    Example:
        >>> soon = tokentrie.rules.DateTime("2024-02-28T12:00", "2024-03-01T00:00")
        >>> (soon.matches("2024-02-29T07:30:00"), soon.matches("2024-02-30T07:30:00"))
        (True, False)
        >>> tokentrie.rules.DateTime(timespec="minutes", utc=True).parse("2024-02-29T07:30Z")
        datetime.datetime(2024, 2, 29, 7, 30, tzinfo=datetime.timezone.utc)
        >>> tokentrie.rules.DateTime(format="%d.%m.%Y %H:%M").parse("29.02.2024 07:30")
        datetime.datetime(2024, 2, 29, 7, 30)
    """

    lo: datetime.datetime | str | None = None
    hi: datetime.datetime | str | None = None
    timespec: Timespec | None = field(default=None, kw_only=True)
    format: str | None = field(default=None, kw_only=True)
    utc: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        timespec = _timespec(self.timespec, self.format)
        self._init_range("date_time", datetime.datetime, timespec=timespec, utc=bool(self.utc))
        self._set(timespec=None if self.format is not None else timespec or "seconds")


@dataclass(frozen=True, repr=False)
class String(_Data, Rule[str]):
    r"""JSON strings with their escapes: valid UTF-8, no half of a surrogate pair. Its values are str without escapes.

    Args:
        min_chars, max_chars: fewest and most characters: an escape counts as one. None: no limit.
        quotes: whether the text includes the quotes around the string; else your text around the rule has them.

    Raises:
        RuleError: no string is that long and that short, or `max_chars` is beyond some 15,000.

    Example:
        >>> tokentrie.rules.String(max_chars=3).matches("four")
        False
        >>> tokentrie.rules.String(max_chars=3, quotes=True).parse(r'"a\u0041b"')
        'aAb'
    """

    min_chars: int = field(default=0, kw_only=True)
    max_chars: int | None = field(default=None, kw_only=True)
    quotes: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        most = None if self.max_chars is None else _count("max_chars", self.max_chars)
        spec = {"min_chars": _count("min_chars", self.min_chars), "max_chars": most, "quotes": bool(self.quotes)}
        self._spec({"string": spec})


@dataclass(frozen=True, repr=False)
class Grammar(_Data, Rule[str]):
    """An LR(1) grammar as a rule, written as for yacc.

    `%start` names the rule to begin with, else the first one is. A rule is `name : first | "(" second ")" | ;`, with
    comments as in C. "text" is a keyword, "/pattern/" a regular expression (syntax of the Rust crate `regex`), and a
    name in capitals whose alternatives are such texts is a terminal. SKIP is the terminal that may stand between all
    others: blanks, comments. Terminals are read byte by byte: the longest match counts, then keywords before patterns.

    What is allowed is exact: every allowed text can be completed.

    Args:
        text: the grammar.
        lenient: decide conflicts as yacc does (shift first, then the rule that comes first) and pass over what is never
            used, with a warning each. What is allowed may then lead into a dead end.
        limits: Limits of what making it may cost.

    Raises:
        RuleError: the text is not an LR(1) grammar; it says line, column and what is wrong. Or it takes more than
            its limits. Also a ValueError.

    Example:
        >>> text = 'NUMBER : "/[0-9]+/" ; sum : NUMBER | sum "+" NUMBER ;'
        >>> sums = tokentrie.rules.Grammar(text)
        >>> (sums.matches("1+20+3"), sums.matches("1+"))
        (True, False)
        >>> tokentrie.rules.Grammar.example("json").matches('{"a": [1, 2]}')
        True
    """

    text: str
    lenient: bool = field(default=False, kw_only=True)
    limits: Limits = field(default_factory=Limits, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        limits, said = _limits(self.limits)
        self._set(limits=limits)
        self._spec({"grammar": _text("text", self.text), "lenient": bool(self.lenient), **said}, unlimited=True)

    @staticmethod
    def example(name: Literal["json", "arithmetic", "c", "sql"]) -> Grammar:
        """Returns a grammar that comes with the package.

        Args:
            name: "json" (RFC 8259), "arithmetic", "c" (declarations, statements and expressions of C) or "sql"
                (SELECT).

        Raises:
            OptionError: there is none of that name.

        Example:
            >>> tokentrie.rules.Grammar.example("sql").matches("SELECT name FROM users WHERE id = 1")
            True
        """
        return Grammar(_grammar_example(name))

    @property
    def terminals(self) -> list[str]:
        """list[str]: its terminals as they were written."""
        terminals: list[str] = self._facts["terminals"]
        return terminals

    @property
    def parser_states(self) -> int:
        """int: states of its parser."""
        states: int = self._facts["states"]
        return states

    @property
    def lexer_states(self) -> int:
        """int: states of the automaton that reads its terminals."""
        states: int = self._facts["lexer_states"]
        return states


@dataclass(frozen=True, repr=False)
class Gbnf(_Data, Rule[str]):
    """A grammar in GBNF as a rule: the language of llama.cpp's `--grammar` and of llama-server's `grammar`.

    All texts follow the rule `root`. Syntax: grammars/README.md of github.com/ggml-org/llama.cpp. What is allowed is
    what llama.cpp allows: texts are read by characters, without terminals, and a grammar may be ambiguous. Rules that
    nothing uses are passed over. Rules may begin with themselves, which llama.cpp refuses. These are refused: tokens,
    such as `<think>` or `<[7]>`; rules that never end; two rules of one name; an empty class, `[]`; a part that is
    repeated more than 100,000 times by one number. Names of control tokens are no text, though llama.cpp takes them for
    some.

    What is allowed is exact: every allowed text can be completed.

    Args:
        text: the grammar.
        limits: Limits of what making it may cost.

    Raises:
        RuleError: the text is not a grammar, or has what is refused, with line, column and reason. Or it takes
            more than its limits. Also a ValueError.

    Example:
        >>> lists = tokentrie.rules.Gbnf('''
        ... root ::= "[" (item ("," item)*)? "]"
        ... item ::= [0-9]+ | root
        ... ''')
        >>> (lists.matches("[1,[],[23]]"), lists.matches("[1,"))
        (True, False)
    """

    text: str
    limits: Limits = field(default_factory=Limits, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        limits, said = _limits(self.limits)
        self._set(limits=limits)
        self._spec({"gbnf": _text("text", self.text), **said}, unlimited=True)


@dataclass(frozen=True, repr=False)
class Lark(_Data, Rule[str]):
    r"""A grammar in Lark as a rule: the notation of the Python library of that name, of llguidance and of custom tools.

    It begins with the rule `start`. Rules are in small letters, terminals in capitals: strings (`"a"`, `"a"i`), regular
    expressions (`/a+/i`), ranges (`"a".."z"`), groups, `[optional]`, `?`, `*`, `+`, `~2..5`. `%ignore` names what may
    stand between terminals, `%import common.INT` brings the terminals that come with Lark, `%json {...}` a JSON Schema,
    `%regex {"substring_words": "..."}` all that can be copied from a text, word by word. Aliases and priorities are
    passed over.

    A grammar may be ambiguous, and its rules may begin with themselves. A text is legal if it can be split into
    terminals in some way, as with Lark's `lexer="dynamic_complete"`, so what is begun can be completed. Refused by
    name: tokens (`<|name|>`, `max_tokens=`), `stop=`, `lazy`, templates, imports of files, `^`, `$` and `\b`.

    Args:
        text: the grammar.
        limits: Limits of what making it may cost.

    Raises:
        RuleError: the text is not a grammar, or has what is refused; it says line, column and what is wrong. Or it
            takes more than its limits. Also a ValueError.

    Example:
        >>> call = tokentrie.rules.Lark('start: NAME "(" [NUMBER ("," NUMBER)*] ")"\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/')
        >>> (call.matches("max(1,20)"), call.matches("max(1"))
        (True, False)
    """

    text: str
    limits: Limits = field(default_factory=Limits, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        limits, said = _limits(self.limits)
        self._set(limits=limits)
        self._spec({"lark": _text("text", self.text), **said}, unlimited=True)


@dataclass(frozen=True, repr=False)
class WasmRule(_Data, Rule[str]):
    """A rule of your own as a module of WebAssembly, written in Rust, C, AssemblyScript or whatever compiles to it.

    The module imports nothing and exports `start() -> i64`, `step(state: i64, byte: i32) -> i64`, which is negative
    where no text begins so, and `is_end(state: i64) -> i32`; perhaps `allowed(state: i64, word: i32) -> i64`, 64 bits
    of the bytes for which `step` need be asked. Everything it knows of a text is in the state. docs/own-rules.md has
    all of it and an example.

    It runs inside limits, so an untrusted module may be used: one that loops, traps or exceeds its memory ends the call
    with a RuleError, and `check()` finds one that remembers more than its state. A pickle contains the module itself,
    not the path of its file.

    Args:
        module: bytes of a module, or the path of its file. Kept as bytes.
        limits: Limits of what making and asking it may cost. The module has at most a 256th of `bytes` (1 MiB), its
            memory a 64th (4 MiB). A call takes at most a 400th of `steps` in fuel, about one for each instruction
            (250,000), all calls for one mask a quarter (25 million).

    Raises:
        RuleError: it is not a module, or not one of a rule, or takes more than its limits. Also a ValueError.
        OSError: what the operating system says of a file.

    Example:
        >>> letters = bytes.fromhex(  # texts of the letter a
        ...     "0061736d010000000110036000017e60027e7f017e60017e017f030403000102071903057374617274000004"
        ...     "7374657000010669735f656e6400020a1903040042000b0d004200427f200141e100461b0b040041010b"
        ... )
        >>> tokentrie.rules.WasmRule(letters).matches("aaa")
        True
    """

    module: bytes | str | os.PathLike[str]
    limits: Limits = field(default_factory=Limits, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        limits, said = _limits(self.limits)
        module = self.module if isinstance(self.module, bytes) else Path(self.module).read_bytes()
        self._set(limits=limits, module=module)
        self._spec({"wasm": base64.b64encode(module).decode(), **said}, unlimited=True)


@dataclass(frozen=True, init=False, repr=False)
class JsonSchema(_Data, Rule[ValueT]):
    r"""A JSON Schema as a rule: the text is a JSON document that is valid under it.

    `Generated.value` and the values of a form are the document itself, as `json.loads` gives it; of a type they are
    objects of that type. Every text is valid, but not every valid document can be written:
    properties come in the order in which the schema names them, unless `order` says else. Any tokenisation is legal.

    As JSON Schema says, an object may have properties that it does not name, unless "additionalProperties" is false.
    A class that ignores what it does not know gets its own fields and no others. Can be pickled where its class can.

    Args:
        schema: dict, bool, or JSON as str or bytes; or a type, such as `list[int]`, an Enum, a pydantic model or
            TypeAdapter, a dataclass, a TypedDict or a compiled pattern. pydantic converts types if it is installed.
            Without it there are str, int, float, bool, None, Any, list, tuple, dict with keys of str, Literal, Enum,
            datetime.date, dataclasses, TypedDicts, and unions of these.
        whitespace: between the parts of a document. "compact": one space after a comma or a colon, or none, so
            `{"a": 1, "b": 2}` and `{"a":1,"b":2}`; "flexible": up to eight characters of white space in a row, in each
            gap, or a line break and two spaces a level; "none"; or a regular expression of blanks.
        unicode_escapes: whether any character in a string may be written as \uXXXX, not only those that must be.
        lenient: leave out keywords that are not supported, with a warning, instead of refusing them. Then documents may
            come that the schema does not allow; `unheld` says what was left out.
        formats: "assert", or "annotate" where `format` says nothing.
        order: "schema", where properties come as the schema names them, or "any".
        any_numerals: whether numbers may be written in any way: a whole one as 1.0 or 1e2.
        names: "open" allows properties that the schema does not mention unless "additionalProperties" is false;
            "closed" allows them only where "additionalProperties" does, as in the arguments of tools.
        implied_types: whether a keyword for one type implies this type where no "type" stands beside it, as in the
            arguments of tools.
        limits: Limits of what making it may cost.

    Raises:
        OptionError: unknown `formats`, `order` or `names`.
        RuleError: the schema is not JSON (with line and column) or no schema, has keywords that are not supported, is
            too large or allows nothing; it names the place as a JSON pointer. Also a ValueError.
        TypeError: it is something else, or a type that cannot be converted.

    Example:
        >>> person = tokentrie.JsonSchema({
        ...     "type": "object",
        ...     "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"enum": [1, 2, 3]}},
        ...     "required": ["name", "age"],
        ...     "additionalProperties": False,
        ... })
        >>> (person.matches('{"name": "Ann", "age": 3}'), person.matches('{"name": "Ann"}'))
        (True, False)
        >>> out = tokentrie.Model().generate("A person: ", person)
        >>> out.value["age"] in (1, 2, 3)
        True
    """

    #: The schema in JSON, as Python writes it.
    text: str
    #: The type or adapter that reads its documents.
    type: Any = field(hash=False)
    whitespace: str
    unicode_escapes: bool
    lenient: bool
    formats: Formats
    order: Order
    any_numerals: bool
    names: Closing
    implied_types: bool
    limits: Limits = field(compare=False)
    #: JSON pointers of schemas ("" is the whole) and what of them is not held: the keyword, with `lenient`, or the hint
    #: of a type that JSON Schema has no word for. Empty where documents are valid under all of it.
    unheld: list[tuple[str, str]] = field(compare=False)

    if TYPE_CHECKING:

        @overload
        def __new__(
            cls, schema: dict[str, Any] | bool | str | bytes, **options: Unpack[_SchemaOptions]
        ) -> JsonSchema: ...
        @overload
        def __new__(cls, schema: re.Pattern[str], **options: Unpack[_SchemaOptions]) -> JsonSchema[str]: ...
        @overload
        def __new__(cls, schema: _Adapter[T], **options: Unpack[_SchemaOptions]) -> JsonSchema[T]: ...
        @overload
        def __new__(cls, schema: TypeForm[T], **options: Unpack[_SchemaOptions]) -> JsonSchema[T]: ...
        def __new__(cls, schema: Any, **options: Any) -> Any: ...

    else:

        def __init__(
            self,
            schema: Any,
            *,
            whitespace: str = "compact",
            unicode_escapes: bool = True,
            lenient: bool = False,
            formats: Formats = "assert",
            order: Order = "schema",
            any_numerals: bool = False,
            names: Closing = "open",
            implied_types: bool = False,
            limits: Limits | None = None,
        ) -> None:
            if not isinstance(whitespace, str):
                raise _wrong(
                    "whitespace", '"compact", "flexible", "none" or the str of a regular expression', whitespace
                )
            text, given, hints = schemas.read(schema)
            limits, said = _limits(limits)
            options = {
                "unicode_escapes": bool(unicode_escapes),
                "lenient": bool(lenient),
                "formats": _word("formats", formats, FORMATS),
                "order": _word("order", order, ORDERS),
                "any_numerals": bool(any_numerals),
                "names": _word("names", names, CLOSINGS),
                "implied_types": bool(implied_types),
            }
            self._spec({"json_schema": text, "whitespace": whitespace, **options, **said}, unlimited=True)
            for at, hint in hints:
                place = f"at {at}: " if at else ""
                warnings.warn(f"schema: {place}{hint} is not held", TokenTrieWarning, stacklevel=2)
            # Schemas compare by what they say.
            self._set(text=schemas.normal(text), type=given, whitespace=whitespace, limits=limits, **options)
            self._set(unheld=[*self._facts["unheld"], *hints])

    @property
    def schema(self) -> Any:
        """dict | bool: the schema, as it was read: of a class the one that was made for it."""
        return json.loads(self.text)

    def parse(self, text: str) -> ValueT:
        """Returns the document that a text is; of a type an object of that type.

        Args:
            text: str, legal as a whole.

        Raises:
            InvalidValueError: the type refuses it, as pydantic's own validators may.
            ValueError: it is not JSON.

        Example:
            >>> tokentrie.JsonSchema({"type": "array"}).parse("[1, null]")
            [1, None]
            >>> tokentrie.JsonSchema(tuple[int, bool]).parse("[1, true]")
            (1, True)
        """
        try:
            value: ValueT = schemas.parse(self.type, text)
        except ValueError as error:
            if self.type is None:
                raise
            refused = InvalidValueError(f"the text as {schemas.name(self.type)} is refused: {error}")
            refused.text = text
            raise refused from error
        return value

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        usual = {
            "whitespace": "compact",
            "unicode_escapes": True,
            "lenient": False,
            "formats": "assert",
            "order": "schema",
            "any_numerals": False,
            "names": "open",
            "implied_types": False,
            "limits": Limits(),
        }
        named = {name: getattr(self, name) for name in usual}
        named = {name: value for name, value in named.items() if value != usual[name]}
        return (self.text if self.type is None else self.type,), named

    def __repr__(self) -> str:
        of = _shorten(self.text) if self.type is None else schemas.name(self.type)
        return f"<tokentrie.JsonSchema: {of}>"


def _shorten(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _regular(place: str, rule: Rule[Any]) -> Rule[Any]:
    if not rule._facts.get("is_regular"):
        raise TypeError(
            f"{place} is of type {type(rule).__name__}, not a finite automaton: only Regex, Integer, Number, "
            "Date, Time, DateTime, String, OneOf, Repeat and what + makes of them can be put together"
        )
    return rule


@dataclass(frozen=True, init=False, repr=False)
class OneOf(_Data, Rule[Any]):
    """A text of any of several rules, or one of a list.

    Its values are what the rule that takes the text gives; those of a list are str.
    Lists of any length stay tries: a million texts are sorted once.

    Args:
        choices: a Rule that is not a Grammar and none of your own, a str, or a list or other iterable of str.

    Raises:
        RuleError: there is nothing to choose from, or the rules make an automaton that is too large.
        TypeError: a part is something else.

    Example:
        >>> when = tokentrie.rules.OneOf(tokentrie.rules.Date(), ["today", "tomorrow"], "never")
        >>> (when.parse("2024-05-01"), when.parse("today"))
        (datetime.date(2024, 5, 1), 'today')
    """

    choices: tuple[Rule[Any] | str | list[str], ...]

    def __init__(self, *choices: Rule[Any] | str | Iterable[str]) -> None:
        kept: list[Rule[Any] | str | list[str]] = []
        said: list[Any] = []
        objects: list[Any] = []
        for number, choice in enumerate(choices):
            if isinstance(choice, Rule):
                kept.append(_regular(f"choice {number}", choice))
            elif isinstance(choice, str):
                kept.append(choice)
                said.append(choice)
                continue
            elif (texts := _listed_texts(choice)) is not None:
                kept.append(texts)
            else:
                raise _wrong(f"choice {number}", "a Rule, a str or a list of str", choice)
            said.append({"object": len(objects)})
            objects.append(kept[-1])
        if not any(choice != [] for choice in kept):
            raise RuleError("one of no rules and no texts: nothing could be written")
        self._set(choices=tuple(kept))
        self._spec({"one_of": said}, objects)

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.choices, {}

    def __hash__(self) -> int:
        return hash((OneOf, len(self.choices)))


@dataclass(frozen=True, init=False, repr=False)
class Concatenation(_Data, Rule[str]):
    """One rule after the other: the sum of rules and str with `+`.

    Every way to split a text between the parts counts. Its values are str.

    Args:
        parts: a Rule that is not a Grammar and none of your own, or a str, which stands there as it is.

    Raises:
        RuleError: there is no part, or they make an automaton that is too large.
        TypeError: a part is something else.

    Example:
        >>> weight = tokentrie.rules.Integer(1, 999) + " " + tokentrie.rules.OneOf("kg", "lb")
        >>> (weight.matches("70 kg"), weight.matches("70kg"))
        (True, False)
    """

    parts: tuple[Rule[Any] | str, ...]

    def __init__(self, *parts: Rule[Any] | str) -> None:
        flat: list[Rule[Any] | str] = []
        said: list[Any] = []
        objects: list[Any] = []
        for number, part in enumerate(parts):
            flat.extend(part.parts if isinstance(part, Concatenation) else (part,))
            if isinstance(part, str):
                said.append(part)
                continue
            if not isinstance(part, Rule):
                raise _wrong(f"part {number}", "a Rule or a str", part)
            said.append({"object": len(objects)})
            objects.append(_regular(f"part {number}", part))
        if len(flat) > MOST_PARTS:
            raise RuleError(f"{len(flat)} parts: at most {MOST_PARTS} can follow each other; join texts first")
        if not flat:
            raise RuleError("a concatenation of no parts: nothing could be written")
        self._set(parts=tuple(flat))
        self._spec({"then": said}, objects)

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.parts, {}

    def __repr__(self) -> str:
        return " + ".join(map(_value_text, self.parts))


@dataclass(frozen=True, repr=False)
class Repeat(_Data, Rule[list[Any]]):
    """A text of a rule, several times, with a separator between: "1, 2, 3".

    Every way to split a text counts. Its values are lists; if a text can be split in several ways, the split with the
    longest first items gives the value.

    Args:
        rule: a Rule that is not a Grammar and none of your own, a str, or a list or other iterable of str.
        min, max: fewest and most times. None: no limit, so that items may come for ever.
        separator: stands between two of them.

    Raises:
        RuleError: `min` is above `max`, or the automaton is too large.
        TypeError: the rule is something else.

    Example:
        >>> codes = tokentrie.rules.Repeat(tokentrie.rules.Integer(0, 99), min=1, max=3, separator=", ")
        >>> (codes.parse("7, 42"), codes.matches("7, 42, 1, 2"), codes.matches(""))
        ([7, 42], False, False)
        >>> tokentrie.rules.Repeat(["red", "blue"], separator="|").parse("blue|red|red")
        ['blue', 'red', 'red']
    """

    rule: Rule[Any] | str | Iterable[str] = field(hash=False)
    min: int = 0
    max: int | None = None
    separator: str = ""

    def __post_init__(self) -> None:
        item: Any = self.rule
        if isinstance(item, Rule):
            _regular("rule", item)
        elif not isinstance(item, str):
            texts = _listed_texts(item)
            if texts is None:
                raise _wrong("rule", "a Rule, a str or a list of str", item)
            item = texts
        most = None if self.max is None else _count("max", self.max)
        said = {"min": _count("min", self.min), "max": most, "separator": _text("separator", self.separator)}
        objects = [] if isinstance(item, str) else [item]
        self._set(rule=item)
        self._spec({"repeat": {"rule": {"object": 0} if objects else item, **said}}, objects)

    def parse(self, text: str) -> list[Any]:
        """Returns the value of each item of a text: the value that the rule gives; a str for a str or a list.

        Args:
            text: str, one of the rule's texts.

        Raises:
            RuleError: the rule does not allow the text.

        Example:
            >>> tokentrie.rules.Repeat(tokentrie.rules.Date(), separator="/").parse("2024-02-28/2024-02-29")[1]
            datetime.date(2024, 2, 29)
        """
        items = self._items(text)
        if items is None:
            # Says what is wrong.
            return super().parse(text)
        return [self.rule.parse(item) for item in items] if isinstance(self.rule, Rule) else items


@dataclass(frozen=True, repr=False)
class Unconstrained(_Data, Constraint):
    """No constraint: every token may come.

    Given where a constraint is wanted, it leaves the output free; as the last part of a Sequence it is the free text
    after a value. It never completes: `Sampler.state` stays "active" until an end token comes, if there are any.

    Example:
        >>> sampler = tokentrie.Sampler(4, tokentrie.rules.Unconstrained())
        >>> sampler.sample(np.array([0.5, 1.5, 2.5, 3.5], dtype=np.float32))
        3
        >>> tokentrie.rules.Unconstrained() == tokentrie.rules.Unconstrained()
        True
    """

    def __post_init__(self) -> None:
        self._spec({"any": {}})


def _hashable(part: Any) -> Any:
    return tuple(part) if isinstance(part, list) else part


@dataclass(frozen=True, init=False, repr=False)
class Sequence(_Data, Constraint):
    """One constraint after the other: each part begins where a value of the part before ends.

    `a + b` of two constraints is one too. If a value is complete but a longer one may follow, a token that continues
    the longer one is read as part of it. Each part has tokens of its own; in rules put together with `+`, and in a
    Form, tokens may cross from one into the next. `leaf` is the value of the last set, `leaves` those of all sets in
    their order.

    Args:
        parts: constraints of any kind but payloads: a Trie, a Rule, a Form, a ThinkGate, a ChatConstraint, a spec; a
            list of str, which is tokenised alone and needs a Vocab where the sequence is used; Unconstrained, as the
            last part; or another Sequence, which counts as its parts.

    Raises:
        OptionError: there is no part, something follows Unconstrained, or a healed Trie is not the first.
        TypeError: a part is something else, such as a payload: give `Trie.from_payload` of it.

    Example:
        >>> verbs = tokentrie.Trie.from_sequences([[1], [2]], names=["get", "set"])
        >>> nouns = tokentrie.Trie.from_sequences([[7], [8, 9]], names=["name", "colour"])
        >>> sampler = tokentrie.Sampler(10, verbs + nouns)
        >>> sampler.accept([2, 8, 9])
        >>> [leaf.name for leaf in sampler.leaves]
        ['set', 'colour']
        >>> door = tokentrie.rules.Sequence(["open", "shut"], tokentrie.Regex(" (now|at [0-9]{2}:00)"))
        >>> tokentrie.Model().generate("The door is ", door).text[:4] in ("open", "shut")
        True
    """

    parts: tuple[Any, ...]

    def __init__(self, *parts: Any) -> None:
        flat: list[Any] = []
        for number, given in enumerate(parts):
            part = _read_constraint(given)
            if isinstance(part, Sequence):
                flat.extend(part.parts)
            elif isinstance(part, _OBJECTS):
                flat.append(part)
            elif not isinstance(part, str) and (texts := _listed_texts(part)) is not None:
                flat.append(texts)
            else:
                raise _no_part(number, part)
        self._set(parts=tuple(flat))
        self._spec({"sequence": [{"object": number} for number in range(len(flat))]}, flat)

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.parts, {}

    def __hash__(self) -> int:
        return hash(tuple(map(_hashable, self.parts)))

    def __repr__(self) -> str:
        return f"<tokentrie.rules.Sequence: {', then '.join(map(_part_text, self.parts))}>"


def _no_part(number: int, part: Any) -> TypeError:
    what = f"part {number} of a sequence"
    if isinstance(part, str):
        more = "…" if len(part) > 60 else ""
        return TypeError(f"{what} must be a list of str, not one str: give [{json.dumps(part[:60])}{more}]")
    expected = "a constraint or a list of str"
    return TypeError(f"{_wrong(what, expected, part)}; a payload's set is Trie.from_payload(payload)")


def _part_text(part: Any) -> str:
    """A part as a sequence shows it."""
    if isinstance(part, Unconstrained):
        return "anything"
    if isinstance(part, (Trie, list)):
        return f"{len(part)} value{'' if len(part) == 1 else 's'}"
    return repr(part)


class _Part:
    """Base of the parts of a form: `+` makes a form of them."""

    def __add__(self, other: Form | Slot | Text | str) -> Form:
        made: Form = add_constraints(self, other)
        return made

    def __radd__(self, other: str) -> Form:
        made: Form = add_constraints(other, self)
        return made


@dataclass(frozen=True, repr=False)
class Slot(_Part):
    """The part of a form that takes one value of a set.

    Texts are tokenised together with what stands around them, so that the whole text of the form has the tokens
    that the tokenizer gives it; token sequences are taken as they are. An empty str makes a slot optional.

    Args:
        name: what the value is called in `Generated.values`.
        values: a list or other iterable of distinct str; or a Trie; or a Sequence of tries, whose value is their
            names together; or a Rule, such as a Regex; or a type, such as `int` or an Enum; or a payload, whose
            descriptor with the path `name` is taken.

    Raises:
        PayloadError: the payload cannot be used; for one str it says that a list is wanted.
        OptionError: no descriptor has the path `name`, or a Sequence has a list of str in it.
        TypeError: a value is not a str, or `values` is something else.

    Example:
        >>> tokentrie.Slot("colour", ["red", "green", "blue"])
        <tokentrie.Slot "colour": 3 values>
    """

    name: str
    values: Any = field(hash=False)

    def __post_init__(self) -> None:
        values = _read_constraint(self.values)
        if not isinstance(values, (str, *_OBJECTS)) and (texts := _listed_texts(values)) is not None:
            values = texts
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "_size", _slot_size(_text("name", self.name), values))

    def __repr__(self) -> str:
        size: int | None = self._size  # type: ignore[attr-defined]
        if size is not None:
            said = f"{size} values"
        else:
            said = "a sequence" if isinstance(self.values, Sequence) else repr(self.values)
        return f"<tokentrie.Slot {json.dumps(self.name)}: {said}>"


def _stops(given: Any) -> tuple[str, ...]:
    """Returns the texts that end a text."""
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"stop must be a str or a list of str, not {type(given).__name__}")
    for number, stop in enumerate(given):
        if not isinstance(stop, str):
            raise _wrong(f"stop[{number}]", "a str", stop)
    return tuple(given)


@dataclass(frozen=True, repr=False)
class Text(_Part):
    """The part of a form that the model writes freely. The end of the model's output ends it as well.

    Args:
        name: what the text is called in `Generated.values`.
        stop: text that ends it and is not part of it, or a list of such texts, of which the first that is written
            counts; it stands in the output only where the literal after it begins with it. Several have some 120 bytes
            together at the most. None only with a ChatConstraint.
        max_tokens: the most tokens of it, at least 1.
        exclude: characters that may not occur in it. None excludes, where a stop begins with a double quote,
            backslash and control characters, so that JSON stays JSON; else nothing.
        pattern: the constraint of the whole text: a Regex or another Rule, or the str of a Regex, or a type that is a
            rule, such as `int` or `re.compile(...)`. The text ends at the first stop after a match. Where `max_tokens`
            cuts it off, its longest prefix that matches stays. Or a ChatConstraint of the model's vocabulary: then the
            text is a reply, which ends when the model ends it, and its value is a Message.

    Raises:
        OptionError: `max_tokens` is out of range, `exclude` stands beside `pattern`, there is no `stop`, or there is
            one for a reply. When a form is made of it: a stop is empty or comes twice, or several are too long.
        RuleError: the pattern is not a regular expression.
        TypeError: the pattern is none of these, or a ChatConstraint without a vocabulary.

    Example:
        >>> form = tokentrie.Form('"', tokentrie.Text("note", stop='"', max_tokens=8), '"')
        >>> out = tokentrie.Model().generate("A note: ", form)
        >>> out.text == '"' + out.values["note"] + '"'
        True
    """

    name: str
    stop: str | list[str] | tuple[str, ...] | None = field(default=None, kw_only=True, hash=False)
    max_tokens: int = field(default=64, kw_only=True)
    exclude: str | None = field(default=None, kw_only=True)
    pattern: Any = field(default=None, kw_only=True, hash=False)

    def __post_init__(self) -> None:
        _text("name", self.name)
        tokens = operator.index(self.max_tokens)
        if not 0 <= tokens < 2**32:
            raise OptionError(f"max_tokens is {tokens}: it must be from 0 to 4294967295")
        pattern, stops = self.pattern, _stops(self.stop)
        if pattern is not None and self.exclude is not None:
            raise OptionError("exclude has no effect beside pattern: leave those characters out of the pattern")
        is_reply = isinstance(pattern, ChatConstraint)
        if is_reply and pattern.vocab is None:
            raise TypeError("a ChatConstraint in a form needs a Vocab: give ChatFormat.constraint that of the model")
        if is_reply and stops:
            raise OptionError("a reply ends when the model ends it: leave stop out beside a ChatConstraint")
        if not is_reply and not stops:
            raise OptionError("stop is missing: it is the text that ends this one")
        if isinstance(pattern, str):
            pattern = Regex(pattern)
        elif pattern is not None and not is_reply:
            pattern = _read_constraint(pattern)
            if not isinstance(pattern, Constraint) or not pattern._is_rule:
                raise _wrong("pattern", "a Rule, such as a Regex, a ChatConstraint or a str", pattern)
        stop = stops[0] if len(stops) == 1 else list(stops) or None
        for name, value in (("max_tokens", tokens), ("stop", stop), ("pattern", pattern)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<tokentrie.Text {json.dumps(self.name)}>"


@dataclass(frozen=True, init=False, repr=False)
class Form(_Data, Constraint):
    """Text with parts to fill in: literals (str), Slot and Text, in their order.

    Give it to `Model.generate` as the constraint. Literals are never sampled, each slot gets one of its values, and
    the result has the values by name. A form is bound to no model, and caches its work for each vocabulary. A
    Sampler, a Batch or a gate with a Vocab walks it like any constraint: `leaves` are its values in order. A free text
    then ends exactly with its stop, which stays in the output unless the literal behind it begins with the stop.

    Args:
        parts: str, Slot, Text or another Form, whose parts stand in its place; at least one slot or text.

    Raises:
        OptionError: the parts make no form: no slot, a name that comes twice, text right after text, Any in a slot.
        TrieError: a slot has no values, or repeats one.
        TypeError: a part is something else.

    Example:
        >>> colours, sizes = tokentrie.Slot("colour", ["red", "blue"]), tokentrie.Slot("size", ["big", "small"])
        >>> form = tokentrie.Form('{"colour": "', colours, '", "size": "', sizes, '"}')
        >>> out = tokentrie.Model().generate("A big red balloon: ", form)
        >>> sorted(out.values)
        ['colour', 'size']
    """

    parts: tuple[str | Slot | Text, ...]

    def __init__(self, *parts: str | Slot | Text | Form) -> None:
        flat: list[str | Slot | Text] = []
        for part in parts:
            flat.extend(part.parts if isinstance(part, Form) else (part,))
        said: list[Any] = []
        objects: list[Any] = []
        for number, one in enumerate(flat):
            if isinstance(one, str):
                said.append(one)
            elif isinstance(one, Slot):
                said.append({"slot": one.name, "value": {"object": len(objects)}})
                # A form is bound to what a set is now.
                objects.append(one.values.to_trie() if isinstance(one.values, LiveSet) else one.values)
            elif isinstance(one, Text):
                text: dict[str, Any] = {"text": one.name, "stop": one.stop, "max_tokens": one.max_tokens}
                text["exclude"] = one.exclude
                if one.pattern is not None:
                    text["pattern"] = {"object": len(objects)}
                    objects.append(one.pattern)
                said.append(text)
            else:
                raise _wrong(f"part {number} of a form", "str, Slot, Text or Form", one)
        self._set(parts=tuple(flat))
        self._spec({"form": said}, objects, unlimited=True)

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.parts, {}

    def _part_value(self, name: str, text: str) -> Any:
        for part in self.parts:
            if isinstance(part, str) or part.name != name:
                continue
            reader = part.values if isinstance(part, Slot) else part.pattern
            return reader.parse(text) if isinstance(reader, (Constraint, ChatConstraint, _Typed)) else text
        return text

    def __repr__(self) -> str:
        shown = (
            json.dumps(part, ensure_ascii=False)
            if isinstance(part, str)
            else f"{type(part).__name__}({json.dumps(part.name, ensure_ascii=False)})"
            for part in self.parts
        )
        return f"<tokentrie.Form: {', '.join(shown)}>"


#: Classes that stand in the package itself.
_TOP_LEVEL = {"Form", "JsonSchema", "Regex", "Slot", "Text"}

#: Types that are constraints as they are.
_OBJECTS = (Trie, FilteredTrie, LiveSet, Constraint, ThinkGate, ChatConstraint, _Typed)


def add_constraints(one: Any, other: Any) -> Any:
    """Returns `one + other`.

    Rules and texts are a rule, what has parts to fill in and texts a Form, all other constraints a Sequence.
    Everything else is left to Python.
    """
    both = (one, other)
    if all(isinstance(part, (Rule, str)) for part in both):
        return Concatenation(one, other)
    if all(isinstance(part, (Form, Slot, Text, str)) for part in both):
        return Form(one, other)
    if all(isinstance(part, (*_OBJECTS, str, dict)) or _is_list(part) for part in both):
        return Sequence(*([part] if isinstance(part, str) else part for part in both))
    return NotImplemented
