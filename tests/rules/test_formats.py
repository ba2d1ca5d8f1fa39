"""Days and times in formats against `strftime`, and repetitions against all that can be written."""

from __future__ import annotations

import datetime
import itertools
import pickle
import random
from typing import Any

import pytest
import tokentrie
from budget import cases
from tokentrie import Form, Model, Regex, RuleError, Sampler, Slot, Vocab
from tokentrie.errors import OptionError
from tokentrie.rules import Date, DateTime, Integer, OneOf, Repeat, Time

YEARS = ["%Y", "%y"]
MONTHS = ["%m", "%B", "%b", "%-m"]
DAYS = ["%d", "%-d"]
MORE = ["%A", "%a", "%j", "%-j", "%b", "%%"]
CLOCKS = [["%H"], ["%-H"], ["%I", "%p"], ["%-I", "%p"]]
SEPARATORS = ["-", " ", ", ", "/", "", "T", " of "]


def day_format(draw: random.Random) -> str:
    by_month = [draw.choice(MONTHS), draw.choice(DAYS)]
    by_number = [draw.choice(["%j", "%-j"])]
    parts = [draw.choice(YEARS), *draw.choice([by_month, by_number])]
    parts += [more for more in draw.sample(MORE, draw.randrange(3)) if more.strip("%-") not in map(bare, parts)]
    draw.shuffle(parts)
    return joined(draw, parts)


def clock_format(draw: random.Random) -> str:
    parts = draw.choice(CLOCKS)[:]
    parts += [["%M"], ["%M", "%S"], ["%-M", "%-S"], [], ["%M", "%S", "%f"]][draw.randrange(5)]
    draw.shuffle(parts)
    return joined(draw, parts)


def bare(part: str) -> str:
    return part.strip("%-")


def joined(draw: random.Random, parts: list[str]) -> str:
    text = parts[0]
    for part in parts[1:]:
        between = draw.choice(SEPARATORS)
        text += (between or "|" if "-" in text[-2:] or text[-2:-1] == "-" else between) + part
    return text


def texts_of(rule: tokentrie.rules.Rule, limit: int) -> set[str]:
    return set(rule.texts(limit))


@pytest.mark.parametrize("seed", range(cases(120)))
def test_days_are_those_that_strftime_writes(seed: int) -> None:
    draw = random.Random(seed)
    form = day_format(draw)
    first = datetime.date(draw.randrange(1970, 2060), draw.randrange(1, 13), draw.randrange(1, 29))
    span = draw.choice([0, 1, 40, 366, 1500])
    days = [first + datetime.timedelta(days=more) for more in range(span + 1)]
    try:
        rule = Date(days[0], days[-1].isoformat(), format=form)
    except RuleError as error:
        if "a digit may follow" not in str(error):
            raise
        return
    assert texts_of(rule, 5000) == {day.strftime(form) for day in days}, form
    for day in draw.sample(days, min(20, len(days))):
        assert rule.parse(day.strftime(form)) == day, form
    before, after = days[0] - datetime.timedelta(days=1), days[-1] + datetime.timedelta(days=1)
    assert not rule.matches(before.strftime(form)), form
    assert not rule.matches(after.strftime(form)), form
    try:
        whole = Date(format=form)
    except RuleError as error:
        # What is said of a day twice, with other parts between, has to be remembered all the way.
        if "more than 33554432 bytes" not in str(error):
            raise
        return
    for _ in range(50):
        day = datetime.date.fromordinal(draw.randrange(datetime.date(1970, 1, 1).toordinal(), 754_000))
        if "%y" not in form or day.year < 2069:
            assert whole.parse(day.strftime(form)) == day, form


@pytest.mark.parametrize("seed", range(cases(120)))
def test_times_are_those_that_strftime_writes(seed: int) -> None:
    draw = random.Random(seed)
    form = clock_format(draw)
    micro = "%f" in form
    step = datetime.timedelta(microseconds=1) if micro else datetime.timedelta(seconds=1)
    start = datetime.datetime(2024, 2, 28, 23, 50) if seed % 2 else datetime.datetime(2024, 2, 29, draw.randrange(23))
    start += datetime.timedelta(seconds=draw.randrange(900))
    with_day = seed % 2 == 1
    moments = [start + step * more for more in range(draw.choice([1, 60, 1500]))]
    low, high = moments[0], moments[-1]
    # What a format does not write is 0: only moments that it writes whole have a text.
    kept: dict[str, Any] = {"microsecond": 0} if not micro else {}
    if "S" not in form:
        kept["second"] = 0
    if "M" not in form:
        kept["minute"] = 0
    moments = [one for one in moments if one == one.replace(**kept)]
    day = day_format(draw)
    form = f"{day} {form}" if with_day else form
    try:
        rule: Any = DateTime(low, high, format=form) if with_day else Time(low.time(), high.time(), format=form)
    except RuleError as error:
        said = str(error)
        none = not moments and ("no moment is" in said or "no time is" in said)
        if not ("a digit may follow" in said or none):
            raise
        return
    assert texts_of(rule, 5000) == {one.strftime(form) for one in moments}, form
    for one in draw.sample(moments, min(20, len(moments))):
        assert rule.parse(one.strftime(form)) == (one if with_day else one.time()), form


def test_formats_with_a_zone_are_of_utc() -> None:
    rule = DateTime(format="%Y-%m-%d %H:%M UTC", utc=True)
    assert rule.parse("2024-02-29 09:30 UTC") == datetime.datetime(2024, 2, 29, 9, 30, tzinfo=datetime.timezone.utc)
    bounded = DateTime(datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc), format="%Y%m%d %H", utc=True)
    assert bounded.matches("20240101 00")
    assert not bounded.matches("20231231 23")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Date(format="%Y-%m-%Q"), 'unknown directive "%Q": expected one of %Y'),
        (lambda: Date(format="%c"), 'unknown directive "%c"'),
        (lambda: Date(format="%d %B"), "leaves open the year"),
        (lambda: Date(format="%Y-%m"), "leaves open the day"),
        (lambda: Time(format="%I:%M"), "leaves open the hour: write %H, or %I with %p"),
        (lambda: DateTime(format="%Y-%m-%d"), "leaves open the hour"),
        (lambda: Date(format="%-d%m%Y"), "a digit may follow %-d"),
        (lambda: Date("2100-01-01", format="%d.%m.%y"), "no day is at least 2100-01-01"),
        (lambda: Date("01.02.2024", format="%d.%m.%Y"), 'invalid day "01.02.2024": expected one as in 2024-02-29'),
    ],
)
def test_formats_that_leave_something_open_are_refused(make: Any, says: str) -> None:
    with pytest.raises(RuleError) as caught:
        make()
    assert says in str(caught.value)


def test_a_format_says_how_exactly() -> None:
    with pytest.raises(OptionError, match="leave timespec out"):
        Time(timespec="minutes", format="%H:%M")
    assert Time(timespec=None).timespec == "seconds"


@pytest.mark.parametrize(
    "rule",
    [
        Date(format="%d.%m.%Y"),
        Date("2024-01-01", None, format='"%j" %Y'),
        Time("09:00", "10:00", format="%-I %p"),
        DateTime(None, "2024-01-01T00:00:00Z", format="%Y%m%d %H", utc=True),
        Repeat(Integer(0, 9), 1, 3, ", "),
        Repeat(["a", "b"], separator="\n"),
        Repeat("ab"),
    ],
    ids=repr,
)
def test_rules_survive_pickling_and_say_what_they_are(rule: Any) -> None:
    again = pickle.loads(pickle.dumps(rule))
    assert again == rule
    assert hash(again) == hash(rule)
    assert repr(again) == repr(rule)
    assert tokentrie.constraint(rule) == tokentrie.constraint(again)
    if "<" not in repr(rule):
        assert eval(repr(rule), {"tokentrie": tokentrie}) == rule


def test_settings_are_told() -> None:
    rule = Repeat(OneOf("a", Integer(0, 9)), 1, 3, ", ")
    assert (rule.rule, rule.min, rule.max, rule.separator) == (OneOf("a", Integer(0, 9)), 1, 3, ", ")
    assert Date(format="%d.%m.%Y").format == "%d.%m.%Y"
    assert Date().format is None
    assert Date(format="%Y-%m-%d") != Date()
    assert rule != Repeat(OneOf("a", Integer(0, 9)), 1, 4, ", ")


@pytest.mark.parametrize("seed", range(cases(60)))
def test_repetitions_are_all_that_can_be_joined(seed: int) -> None:
    draw = random.Random(seed)
    items = sorted({"".join(draw.choices("ab,", k=draw.randrange(4))) for _ in range(draw.randrange(1, 4))})
    separator = draw.choice(["", ",", "a", ", "])
    low = draw.randrange(3)
    high = low + draw.randrange(1 if low else 0, 3)
    rule: Any = draw.choice([items, OneOf(*items), OneOf(items, Regex("c"))])
    if isinstance(rule, OneOf) and len(rule.choices) == 2 and isinstance(rule.choices[1], Regex):
        items = [*items, "c"]
    made = Repeat(rule, low, high, separator)
    every = {separator.join(all_) for count in range(low, high + 1) for all_ in itertools.product(items, repeat=count)}
    assert texts_of(made, 100_000) == every
    for text in draw.sample(sorted(every), min(30, len(every))):
        parsed = made.parse(text)
        assert low <= len(parsed) <= high
        assert separator.join(parsed) == text
        assert set(parsed) <= set(items)


def test_repetitions_of_what_cannot_be_repeated_are_refused() -> None:
    with pytest.raises(TypeError, match="rule must be a Rule, a str or a list of str, not 3"):
        Repeat(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="rule is of type Grammar"):
        Repeat(tokentrie.rules.Grammar('a : "x" ;'))
    with pytest.raises(RuleError, match="at least 3 and at most 2 times"):
        Repeat("a", 3, 2)
    with pytest.raises(RuleError, match="more than 33554432 bytes"):
        Repeat("a", 1 << 40)
    with pytest.raises(RuleError, match=r"'1, 2, 3' does not match tokentrie\.rules\.Repeat"):
        Repeat(Integer(0, 9), 0, 2, ", ").parse("1, 2, 3")


@pytest.mark.model
def test_repetitions_stand_in_forms_and_beside_other_rules() -> None:
    model = Model()
    form = Form(
        "Codes: ", Slot("codes", Repeat(Integer(0, 9), 2, 4, ", ")), "; when: ", Slot("day", Date(format="%d %b %y"))
    )
    out = model.generate("It says: ", form, max_tokens=64)
    assert 2 <= len(out.values["codes"]) <= 4
    assert all(number in range(10) for number in out.values["codes"])
    assert isinstance(out.values["day"], datetime.date)
    assert out.values["day"].strftime("%d %b %y") in out.text
    rule = "[" + Repeat(Regex("[a-z]"), 1, 3, ",") + "]"
    assert rule.matches("[a,b]")
    assert not rule.matches("[a,b,c,d]")
    either = Repeat(Integer(0, 9), 1, 2, " ") | "none"
    assert (either.parse("1 2"), either.parse("none")) == ([1, 2], "none")
    value = model.generate("Two: ", Repeat(["red", "blue"], 2, 2, " and ")).value
    assert value in [[one, other] for one in ("red", "blue") for other in ("red", "blue")]


def test_tokens_cross_from_item_to_separator() -> None:
    vocab = Vocab.from_tokens([b"1", b"2", b",", b", ", b"1, ", b", 2", b"</s>"], eog=[6], control=[6])
    sampler = Sampler(vocab, Repeat(Integer(1, 2), 2, 3, ", "))
    assert sampler.allowed().tolist() == [0, 1, 4]
    sampler.accept(4)
    assert sampler.allowed().tolist() == [0, 1, 4]
    sampler.accept(1)
    assert 5 in sampler.allowed().tolist()
    sampler.accept(5)
    assert sampler.state == "complete"
