"""Arguments of tools: strings, integers, enumerations and booleans, and how a request gives their values.

A quarter of the keys are drawn anew for every list; for those the request says the key itself. The others also have
phrases of their own. A call writes the arguments in the order of the request.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from drawn.chat import Parameter
from drawn.lexicon import NEUTRAL, STATES, VALUE_PHRASES, words
from drawn.naming import is_held_out, syllables, value

# {} is the value; every word here has tokens of its own or few.
INTEGERS = {
    "count": ["{} times", "exactly {} times"],
    "number": ["number {}", "no. {}"],
    "price": ["for {} dollars", "at a price of {}"],
    "limit": ["at most {}", "up to {}"],
    "score": ["with {} points"],
    "room": ["in room {}"],
    "table": ["at table {}"],
    "level": ["on level {}"],
}
ENUMERATIONS = ["size", "color", "style", "format", "mode", "class", "group", "state", "team", "type"]
BOOLEANS = ["urgent", "free", "locked", "quick", "auto", "draft", "silent", "loud", "new", "open"]

STATED = ["with {k} {}", "with the {k} {}", "and {k} {}", "using {k} {}", "where {k} is {}", "and the {k} is {}"]
KIND_FIRST = ["with {} {k}", "in {} {k}"]
SWITCHED = {
    True: ["with {k} on", "and {k} on", "with {k} yes", "and make it {k}", "and {k} is true"],
    False: ["with {k} off", "and {k} off", "with {k} no", "but not {k}", "and {k} is false"],
}
POLARITY = {True: ("on", "yes", "make", "true"), False: ("off", "no", "not", "false")}

SETTINGS = words("""
low medium high pdf csv html json text plain bold round square metric public private basic full daily weekly monthly
north south east west left right start end first last mail phone web
""")
CHOICES = sorted({*NEUTRAL, *SETTINGS, *(s for row in STATES for s in row)})
SEEN_CHOICES = [c for c in CHOICES if not is_held_out("value", c)]
HELD_OUT_CHOICES = [c for c in CHOICES if is_held_out("value", c)]


@dataclass(frozen=True)
class DrawnArgument:
    """An argument with its value, the words that give it, and where in them the value (or on, off) begins."""

    parameter: Parameter
    value: str | int | bool
    phrase: str
    shown: str
    at: int


def _key(rng: Random, held_out: bool) -> str:
    """A key that stands for nothing."""
    while True:
        words = [rng.choice(NEUTRAL) if rng.random() < 0.6 else syllables(rng, 2) for _ in range(rng.choice((1, 1, 2)))]
        key = "_".join(words)
        if is_held_out("key", key) == held_out:
            return key


def parameters(rng: Random, count: int, held_out: bool) -> list[Parameter]:
    """`count` arguments with different keys."""
    drawn: list[Parameter] = []
    marked = rng.random() < 0.85  # otherwise every argument is required
    while len(drawn) < count:
        pick = rng.random()
        opaque = rng.random() < 0.25
        kind, choices = "string", ()
        if pick < 0.42:
            key = rng.choice(list(VALUE_PHRASES))
            if key == "number" and rng.random() < 0.7:
                continue
        elif pick < 0.64:
            kind, key = "integer", rng.choice(list(INTEGERS))
        elif pick < 0.84:
            key = rng.choice(ENUMERATIONS)
            choices = tuple(rng.sample(HELD_OUT_CHOICES if held_out else SEEN_CHOICES, rng.choice((2, 3, 3, 4))))
        else:
            kind, key = "boolean", rng.choice(BOOLEANS)
        key = _key(rng, held_out) if opaque else key
        if any(p.name == key or set(p.choices) & set(choices) for p in drawn):
            continue
        drawn.append(Parameter(key, kind, choices, marked and rng.random() < 0.45))
    return drawn


def _phrases(rng: Random, parameter: Parameter, held_out: bool) -> tuple[list[str], str]:
    """Phrases of an argument's own, and the type of its value where it is a string."""
    key = parameter.name
    if parameter.choices:
        return (KIND_FIRST if key in ENUMERATIONS else []), ""
    if parameter.kind == "integer":
        return INTEGERS.get(key, []), ""
    return VALUE_PHRASES.get(key, []), key if key in VALUE_PHRASES else rng.choice(("title", "name", "code", "file"))


def give(rng: Random, parameter: Parameter, held_out: bool) -> DrawnArgument:
    """A value for an argument and words that give it."""
    spoken = parameter.name.replace("_", " ") if rng.random() < 0.25 else parameter.name
    if parameter.kind == "boolean":
        truth = rng.random() < 0.5
        phrase = rng.choice(SWITCHED[truth]).replace("{k}", spoken)
        shown = next(w for w in POLARITY[truth] if f" {w} " in f" {phrase} ")
        return DrawnArgument(parameter, truth, phrase, shown, f" {phrase} ".index(f" {shown} "))
    own, kind = _phrases(rng, parameter, held_out)
    if parameter.choices:
        content: str | int = rng.choice(parameter.choices)
    elif parameter.kind == "integer":
        content = rng.randrange(10 ** rng.randint(1, 4))
        while is_held_out("value", str(content)) != held_out:
            content = rng.randrange(10 ** rng.randint(1, 4))
    else:
        content = value(rng, kind, held_out)
    pattern = rng.choice(own) if own and rng.random() < 0.65 else rng.choice(STATED)
    before, after = pattern.replace("{k}", spoken).split("{}")
    return DrawnArgument(parameter, content, f"{before}{content}{after}", str(content), len(before))


def given(rng: Random, offered: list[Parameter], held_out: bool) -> list[DrawnArgument]:
    """Values for what is required and for half of the rest, in any order."""
    values = [give(rng, p, held_out) for p in offered if not p.optional or rng.random() < 0.5]
    return rng.sample(values, len(values))


def spoken(rng: Random, values: list[DrawnArgument]) -> tuple[str, dict[str, int]]:
    """All phrases in one text that begins with a space, and where in it each key's value begins."""
    text, places = "", {}
    for one in values:
        text += rng.choice((" ", " ", ", ")) if text else " "
        places[one.parameter.name] = len(text) + one.at
        text += one.phrase
    return text, places
