"""The oracle of the conformance suite, against ways to know the same that share nothing with it."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).parents[1]
jsonschema = pytest.importorskip("jsonschema")
pytest.importorskip("gguf")
sys.path.insert(0, str(ROOT))

from generate import drawn, hostile
from reference.cases import Gaps, of_gap
from reference.draw import Draw
from reference.language import chars, either, repeat, rule, seq, text, utf8_ranges
from reference.machine import DEAD, LeftRecursionError, Machine
from reference.masks import Tokens
from reference.notation import NotationError, gbnf, lark, pattern


def cases(everything: int) -> int:
    """How many of so many random cases to try: TOKENTRIE_TEST_BUDGET is the share, a tenth unless it is set."""
    return max(1, round(everything * float(os.environ.get("TOKENTRIE_TEST_BUDGET") or 0.1)))


@given(st.integers(0, 0x10FFFF), st.integers(0, 0x10FFFF))
@settings(max_examples=cases(1000), deadline=None)
def test_ranges_of_bytes_spell_ranges_of_characters(one: int, other: int) -> None:
    first, last = sorted((one, other))
    ranges = list(utf8_ranges(first, last))
    inside = [point for point in (first, last, (first + last) // 2) if not 0xD800 <= point <= 0xDFFF]
    outside = [point for point in (first - 1, last + 1) if 0 <= point <= 0x10FFFF and not 0xD800 <= point <= 0xDFFF]

    def spelled(point: int) -> int:
        data = chr(point).encode()
        fits = [
            all(low <= byte <= high for byte, (low, high) in zip(data, one, strict=True))
            for one in ranges
            if len(one) == len(data)
        ]
        return sum(fits)

    assert all(spelled(point) == 1 for point in inside)
    assert not any(map(spelled, outside))


@pytest.mark.parametrize("seed", range(cases(400)))
def test_regular_languages_are_those_of_re(seed: int) -> None:
    draw = Draw(f"re {seed}")
    language = draw.regular()
    machine, compiled = Machine(language), re.compile(pattern(language))
    for _ in range(8):
        # A random text that may come, and the same with one character changed; short, because `re` tries all ways.
        state, data = machine.start, bytearray()
        while len(data) < 14 and (following := machine.next_bytes(state)):
            if machine.may_end(state) and draw.random() < 0.3:
                break
            data.append(draw.choice(following))
            state = machine.step(state, data[-1])
        written = data.decode(errors="ignore")
        at = draw.randrange(len(written) + 1)
        for text_ in (written, written[:at] + draw.choice("ab 0é🙂,") + written[at + 1 :], written[:at]):
            assert machine.may_end(machine.after(text_.encode())) == bool(compiled.fullmatch(text_)), (
                pattern(language),
                text_,
            )


@pytest.mark.parametrize("seed", range(cases(60)))
def test_masks_are_those_of_every_token(seed: int) -> None:
    draw = Draw(f"masks {seed}")
    machine, pieces = Machine(*draw.grammar()), draw.vocabulary([])
    tokens, state = Tokens(pieces, others=[3]), machine.start
    for _ in range(10):
        legal = [token for token, piece in enumerate(pieces) if token != 3 and machine.after(piece, state) != DEAD]
        assert tokens.legal(machine, state) == legal
        if not legal:
            assert machine.may_end(state)
            break
        state = machine.after(pieces[draw.choice(legal)], state)


def test_holes_of_a_vocabulary() -> None:
    """By every sequence of tokens."""
    values = ["ab", "abc", "ad", "bcd"]
    pieces = [b"a", b"ab", b"bc", b"c", b"d"]
    gaps = Gaps(values, Tokens(pieces))

    def written(prefix: bytes) -> bool:
        return prefix.decode() in values or any(
            written(prefix + piece)
            for piece in pieces
            if any(value.encode().startswith(prefix + piece) for value in values)
        )

    for prefix in (b"", b"a", b"ab", b"b", b"bc"):
        state = gaps.start
        for byte in prefix:
            state = gaps.step(state, byte)
        assert gaps.is_open(state) == written(prefix), prefix


@pytest.mark.parametrize("drawn", [["aa"], [""], ["é"], ["ab"]])
def test_there_are_holes_whatever_values_are_drawn(monkeypatch: pytest.MonkeyPatch, drawn: list[str]) -> None:
    monkeypatch.setattr(Draw, "values", lambda *_: drawn)
    draw = Draw("few")
    case = of_gap(draw, Tokens([*draw.vocabulary([]), b""], others=[0]))
    assert case["constraint"]["values"] == (["ab"] if drawn == ["ab"] else ["ab", "a7"])
    assert case["walk"]


def test_a_rule_that_begins_with_itself_is_refused() -> None:
    with pytest.raises(LeftRecursionError):
        Machine(rule("a"), {"a": either(seq(rule("a"), text("x")), text("y"))})


def test_notations() -> None:
    language = seq(repeat(either(text("a-b"), chars("az", "]")), 1, 3), text('"\n'))
    assert pattern(language) == '(?:a\\-b|[\\]a-z]){1,3}\\"\\n'
    assert gbnf(rule("x"), {"x": language}) == 'root ::= x\nx ::= ("a-b" | [\\x5Da-z]){1,3} "\\"\\n"\n'
    assert lark(rule("x"), {"x": seq(text("a"), rule("x"))}) == 'start: x\nx: "a" x\n'
    with pytest.raises(NotationError):
        pattern(rule("x"))


def test_cases_have_their_schema_and_are_the_same_again() -> None:
    judge = jsonschema.Draft202012Validator(json.loads((ROOT / "case.schema.json").read_text("utf-8")))
    lines = [*drawn("schema"), *hostile("schema")]
    for line in lines:
        judge.validate(line)
    assert lines == [*drawn("schema"), *hostile("schema")]
    kinds = {line["case"].split(" ")[0] for line in lines[1:] if "case" in line}
    assert {"set", "regex", "grammar", "schema", "gate", "score", "gap"} <= kinds
