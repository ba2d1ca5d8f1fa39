"""Cases: a constraint, and what every engine that holds it must say of it. See README.md for the format."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from . import schemas
from .draw import Draw
from .language import Language, Rules, either, seq, text
from .machine import Machine
from .masks import Bytewise, Tokens, digest
from .notation import gbnf, pattern

Case = dict[str, Any]
FEW = 12
"""So many ids are written out; more are a digest."""
LONGEST = 28
"""Tokens of a walk."""
WORTH_FORCING = 2


def listed(legal: list[int]) -> list[int] | dict[str, Any]:
    """Legal ids as a case has them."""
    return legal if len(legal) <= FEW else {"count": len(legal), "sha256": digest(legal)}


def walk(draw: Draw, tokens: Tokens, machine: Bytewise) -> list[dict[str, Any]]:
    """Tokens drawn one after the other, what is legal before and after each, and sometimes steps back."""
    trail: list[tuple[int, list[int]]] = []
    state, legal = machine.start, tokens.legal(machine, machine.start)
    steps = [_seen(machine, state, legal)]
    while legal and len(steps) < LONGEST:
        if len(trail) > 2 and draw.random() < 0.06:
            back = draw.randint(1, 2)
            state, legal = trail[-back]
            del trail[-back:]
            steps.append({"back": back} | _seen(machine, state, legal))
            continue
        if machine.may_end(state) and draw.random() < 0.15:
            break
        # Long tokens, and now and then what only a few bytes lead to.
        some = draw.sample(legal, min(3, len(legal)))
        token = max(some, key=lambda one: len(tokens.pieces[one])) if draw.random() < 0.6 else some[0]
        trail.append((state, legal))
        state = _after(machine, tokens.pieces[token], state)
        legal = tokens.legal(machine, state)
        steps.append({"take": token} | _seen(machine, state, legal))
    return steps


def _seen(machine: Bytewise, state: int, legal: list[int]) -> dict[str, Any]:
    found = {"legal": listed(legal), "end": machine.may_end(state)}
    if isinstance(machine, Machine) and len(forced := machine.forced(state)) >= WORTH_FORCING:
        found["forced"] = forced.hex()
    return found


def of_set(draw: Draw, tokens: Tokens) -> Case:
    values = draw.values()
    machine = Machine(either(*map(text, values)))
    return {"kind": "set", "constraint": {"values": values}, "walk": walk(draw, tokens, machine)}


def of_regex(draw: Draw, tokens: Tokens) -> Case:
    language = draw.regular()
    constraint = {"pattern": pattern(language), "language": language}
    return {"kind": "regex", "constraint": constraint, "walk": walk(draw, tokens, Machine(language))}


def of_grammar(draw: Draw, tokens: Tokens) -> Case:
    start, rules = draw.grammar()
    return {"kind": "grammar", "constraint": grammar(start, rules), "walk": walk(draw, tokens, Machine(start, rules))}


def grammar(start: Language, rules: Rules) -> dict[str, Any]:
    """The constraint of a grammar: in the neutral notation, and in GBNF, which most engines read."""
    return {"start": start, "rules": rules, "gbnf": gbnf(start, rules)}


def of_schema(draw: Draw, _: Tokens) -> Case:
    schema = schemas.schema(draw)
    accepted, refused = schemas.texts(draw, schema)
    return {"kind": "schema", "constraint": {"schema": schema}, "texts": {"accept": accepted, "refuse": refused}}


def of_gate(draw: Draw, _: Tokens) -> Case:
    """Any text up to a trigger, and then a body and an end: a call somewhere in a reply."""
    trigger, end = draw.choice([("<call>", "</call>"), ("[TOOL] ", "\n"), ("```json\n", "\n```"), ("Answer: ", ".")])
    names = [one for one in draw.values(12) if "\n" not in one and "." not in one]
    body: Language = either(*map(text, names))
    before = draw.choice(["", "I look. ", "a < b; ", "日本 ", trigger[:-1] + "x "])
    name = draw.choice(names)
    right = f"{before}{trigger}{name}{end}"
    wrong = [f"{before}{trigger}?{name}{end}", f"{before}{trigger}{end}", f"{before}{trigger}{name}", before or "x"]
    constraint = {"trigger": trigger, "body": body, "end": end}
    return {"kind": "gate", "constraint": constraint, "texts": {"accept": [right], "refuse": wrong}}


def of_score(draw: Draw, tokens: Tokens) -> Case:
    """The probability of each sequence under a model that is a formula, its end token after it."""
    spelled = {tuple(tokens.spelled(value.encode()) or ()) for value in draw.values(20)}
    sequences = sorted(list(one) for one in spelled if one)
    seed, size, end = draw.randrange(1000), len(tokens.pieces), min(tokens.others)

    def logprob(before: int, token: int) -> float:
        row = [model_logit(seed, before, one) for one in range(size)]
        return row[token] - math.log(sum(map(math.exp, row)))

    logprobs = [
        sum(logprob(before, token) for before, token in zip([-1, *one], [*one, end], strict=True)) for one in sequences
    ]
    constraint = {"sequences": sequences, "end": end}
    return {"kind": "score", "constraint": constraint, "model": {"seed": seed}, "logprobs": logprobs}


def model_logit(seed: int, before: int, token: int) -> float:
    """The logit of a token after another one (−1: at the beginning), in the model of the cases of kind `score`."""
    return ((before + 1) * 7919 + token * 104_729 + seed * 15_485_863) % 1009 / 100


class Gaps:
    """Of a set of texts over a vocabulary that has not every byte: what can still be finished in its tokens."""

    def __init__(self, values: list[str], tokens: Tokens) -> None:
        self._texts = [value.encode() for value in values]
        pieces = {piece for token, piece in enumerate(tokens.pieces) if token not in tokens.others and piece}
        self._reaches = [self._ends(data, pieces) for data in self._texts]
        self._prefixes: list[bytes] = [b""]
        self._numbers: dict[bytes, int] = {}
        self.start = self._state(b"")

    @staticmethod
    def _ends(data: bytes, pieces: set[bytes]) -> list[bool]:
        """From which places of a text its end can be reached in whole tokens."""
        reaches = [False] * len(data) + [True]
        for at in reversed(range(len(data))):
            reaches[at] = any(
                data[at : at + len(piece)] == piece and reaches[at + len(piece)]
                for piece in pieces
                if at + len(piece) <= len(data)
            )
        return reaches

    def _state(self, prefix: bytes) -> int:
        state = self._numbers.setdefault(prefix, len(self._prefixes))
        if state == len(self._prefixes):
            self._prefixes.append(prefix)
        return state

    def step(self, state: int, byte: int) -> int:
        prefix = self._prefixes[state] + bytes([byte])
        return self._state(prefix) if any(one.startswith(prefix) for one in self._texts) else 0

    def may_end(self, state: int) -> bool:
        return self._prefixes[state] in self._texts

    def is_open(self, state: int) -> bool:
        """Whether a whole number of tokens leads from here to an end."""
        prefix = self._prefixes[state]
        pairs = zip(self._texts, self._reaches, strict=True)
        return any(data.startswith(prefix) and reaches[len(prefix)] for data, reaches in pairs)


def of_gap(draw: Draw, tokens: Tokens) -> Case:
    """A vocabulary with holes: some bytes have no token of their own, so some prefixes lead nowhere."""
    values = [value for value in draw.values(30) if value.isascii()]
    if len(set("".join(values))) < 2:
        values = ["ab", "a7"]
    missing = set(draw.sample(sorted({byte for value in values for byte in value.encode()}), 2))
    keep = [piece for piece in tokens.pieces if len(piece) > 1 or (piece and piece[0] not in missing)]
    own = Tokens([*keep, b""], others=[len(keep)])
    gaps = Gaps(values, own)

    def seen(state: int) -> tuple[list[int], dict[str, Any]]:
        found = own.legal(gaps, state)
        legal = [token for token in found if gaps.is_open(_after(gaps, own.pieces[token], state))]
        return legal, {"legal": listed(legal), "end": gaps.may_end(state)}

    state = gaps.start
    legal, told = seen(state)
    steps = [told]
    while legal and len(steps) < LONGEST:
        token = draw.choice(legal)
        state = _after(gaps, own.pieces[token], state)
        legal, told = seen(state)
        steps.append({"take": token} | told)
    vocabulary = {"tokens": [piece.hex() for piece in own.pieces], "eog": sorted(own.others)}
    return {"kind": "set", "constraint": {"values": values}, "vocabulary": vocabulary, "walk": steps}


def _after(machine: Bytewise, data: bytes, state: int) -> int:
    for byte in data:
        state = machine.step(state, byte)
    return state


def bombs() -> Iterator[Case]:
    """What strangers send. Held or refused, but soon, and by an engine that is still there."""
    letters = {"chars": [[97, 122]]}
    deep: Language = letters
    for _ in range(4):
        deep = {"repeat": deep, "min": 1, "max": 200}
    yield {
        "case": "bomb: counts in counts",
        "kind": "regex",
        "constraint": {"pattern": pattern(deep), "language": deep},
    }
    many = seq(*({"repeat": either(text("a"), letters), "min": 0, "max": 1} for _ in range(2000)))
    yield {"case": "bomb: 2,000 options", "kind": "regex", "constraint": {"pattern": pattern(many), "language": many}}
    nested = "(" * 20_000 + "a" + ")" * 20_000
    yield {"case": "bomb: 20,000 brackets", "kind": "regex", "constraint": {"pattern": nested}}
    values = [f"value {number:06} of many" for number in range(50_000)]
    yield {"case": "bomb: 50,000 values", "kind": "set", "constraint": {"values": values}}
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(200):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
    yield {"case": "bomb: a schema 200 deep", "kind": "schema", "constraint": {"schema": schema}}
    cycle = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    yield {"case": "bomb: references in a ring", "kind": "schema", "constraint": {"schema": cycle}}
    rules: Rules = {f"r{number}": seq(*[{"rule": f"r{number + 1}"}] * 2) for number in range(60)} | {"r60": text("a")}
    yield {"case": "bomb: 2^60 letters", "kind": "grammar", "constraint": grammar({"rule": "r0"}, rules)}


def impossible() -> Iterator[Case]:
    """What no text fits: to be refused, or nothing is legal."""
    yield {"case": "impossible: no value", "kind": "set", "constraint": {"values": []}}
    endless = grammar({"rule": "a"}, {"a": seq(text("x"), {"rule": "a"})})
    yield {"case": "impossible: a rule without an end", "kind": "grammar", "constraint": endless}
    yield {"case": "impossible: false", "kind": "schema", "constraint": {"schema": {"not": {}}}}
    crossed = {"type": "integer", "minimum": 5, "maximum": 4}
    yield {"case": "impossible: crossed bounds", "kind": "schema", "constraint": {"schema": crossed}}
    longer = {"type": "string", "minLength": 5, "maxLength": 4}
    yield {"case": "impossible: crossed lengths", "kind": "schema", "constraint": {"schema": longer}}
    void = {"type": "string", "enum": [1, 2]}
    yield {"case": "impossible: an enum of another type", "kind": "schema", "constraint": {"schema": void}}


KINDS: dict[str, tuple[Callable[[Draw, Tokens], Case], int]] = {
    "set": (of_set, 6),
    "regex": (of_regex, 9),
    "grammar": (of_grammar, 6),
    "schema": (of_schema, 4),
    "gate": (of_gate, 1),
    "score": (of_score, 1),
    "gap": (of_gap, 1),
}
"""What makes a case of each kind, and how many of each a vocabulary gets."""
