"""Grammars in GBNF: what they allow, beside what llama.cpp writes under them, and every face of a rule."""

from __future__ import annotations

import contextlib
import os
from itertools import takewhile
from pathlib import Path

import pytest
from budget import cases
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokentrie import Form, Limits, Model, Regex, RuleError, Sampler, Slot
from tokentrie.rules import Gbnf, OneOf

BRACKETS = 'root ::= "(" root ")" | [a-z]+'

CRATES = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "registry" / "src"
EXAMPLES = sorted([*CRATES.glob("*/llama-cpp-2-*/**/*.gbnf"), *CRATES.glob("*/llama-cpp-sys-2-*/**/grammars/*.gbnf")])
"""llama.cpp's own examples, where cargo has its sources."""


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(n_ctx=512, n_threads=1)


JSON = r"""
root   ::= ws value
value  ::= (object | array | string | number | "true" | "false" | "null") ws
object ::= "{" ws (member ("," ws member)*)? "}"
member ::= string ws ":" ws value
array  ::= "[" ws (value ("," ws value)*)? "]"
string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
ws     ::= ([ \t\n\r] ws)?
"""

PROGRAM = r"""
root       ::= statement+
statement  ::= Name ws "=" ws expression ";" ws | "if" ws "(" expression ")" ws block | "//" [^\n]* "\n" ws
block      ::= "{" ws statement* "}" ws
expression ::= term (("+" | "-") ws term)*
term       ::= (Name | [0-9]+ | "(" expression ")") ws
Name       ::= [a-zA-Z_] [a-zA-Z_0-9]*
ws         ::= [ \t\n]*
"""

MOVES = r"""
root ::= (
    # the first has a number
    "1. " move " " move "\n"
    ([1-9] [0-9]? ". " move " " move "\n")+
)
move   ::= (piece | pawn | castle) [+#]?
piece  ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn   ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle ::= "O-O" "-O"?
"""

KANA = "root ::= char+ ([ \\t\\n] char+)*\nchar ::= [ぁ-ゟ] | [ァ-ヿ] | [、-〾] | [一-鿿]"


@pytest.mark.parametrize(
    ("grammar", "legal", "illegal"),
    [
        (JSON, ['{"a": [1, -2.5e3, "\\u00e9\\n", {}], "b":null}', " 0", '["é🦀"]'], ["{", "01", '"\n"', "[1,]"]),
        (PROGRAM, ["if (a) { a = (b + 1) - if2; }", "// note\na=1;"], ["if = 1", "a = ;", "if (a)"]),
        (MOVES, ["1. e4 e5\n2. Nf3 O-O-O+\n"], ["1. e4 e5\n", "1. e9 e5\n2. a1 a2\n"]),
        (KANA, ["ひらがな カタカナ", "漢字、"], ["kana", " ひ", "ひ "]),
        (BRACKETS, ["abc", "((a))"], ["(a", "()", ""]),
    ],
    ids=["json", "program", "moves", "kana", "brackets"],
)
def test_grammars_such_as_people_write(grammar: str, legal: list[str], illegal: list[str]) -> None:
    rule = Gbnf(grammar)
    assert all(rule.matches(text) for text in legal)
    assert not any(rule.matches(text) for text in illegal)


@pytest.mark.skipif(not EXAMPLES, reason="cargo has no sources of llama.cpp with example grammars")
def test_the_examples_of_llama_cpp_are_read() -> None:
    rules = {path.stem: Gbnf(path.read_text(encoding="utf-8")) for path in EXAMPLES}
    assert all(rule.check() in (True, False) for rule in rules.values())
    if "json" in rules:
        assert rules["json"].matches('{"a":[true]}')
        assert not rules["json"].matches('{"a":}')
    if "c" in rules:
        assert rules["c"].matches("int main(){return 1;}")


CHARACTERS = 'ab"\\] \né🦀'


def escaped(text: str) -> str:
    names = {'"': '\\"', "\\": "\\\\", "]": "\\]", "\n": "\\n", "é": "\\u00e9"}
    return "".join(names.get(character, character) for character in text)


@st.composite
def grammars(draw: st.DrawFn) -> str:
    """The next characters mostly tell the way: llama.cpp goes all ways for each token, and would never come back."""
    names = ["root", "a-B", "A-b"][: draw(st.integers(1, 3))]
    times = st.sampled_from(["", "*", "+", "?", "{2}", "{1,}", "{0,2}", "{1,3}"])
    few = st.sampled_from(["", "?", "{1,2}"])

    def repeated() -> str:
        """A class, and what ends it."""
        some = draw(st.lists(st.sampled_from(CHARACTERS), min_size=1, max_size=3, unique=True))
        if draw(st.booleans()):
            return f'[^{escaped("".join(some))}]{draw(times)} "{escaped(some[0])}"'
        other = draw(st.sampled_from([character for character in CHARACTERS if character not in some]))
        return f'[{escaped("".join(some))}]{draw(times)} "{escaped(other)}"'

    def sequence(first: str, deeper: int) -> str:
        items = [f'"{escaped(first)}{escaped(draw(st.text(st.sampled_from(CHARACTERS), max_size=2)))}"']
        for _ in range(draw(st.integers(0, 3))):
            kind = draw(st.integers(0, 3 + deeper))
            if kind == 0:
                items.append(draw(st.sampled_from(names)) + draw(few))
            elif kind == 1:
                items.append(draw(st.sampled_from([".", ".{2}", "[a-z]", "[^a-z]", "[é-🦀]"])))
            elif kind > 3:
                items.append(f"({alternatives(deeper - 1)}){draw(few)}")
            else:
                items.append(repeated())
        return " ".join(items)

    def alternatives(deeper: int) -> str:
        firsts = draw(st.lists(st.sampled_from(CHARACTERS), min_size=1, max_size=3, unique=True))
        return " | ".join(sequence(first, deeper) for first in firsts)

    return "".join(f'{name} ::= {alternatives(2)} | "{draw(st.sampled_from("xyz"))}"\n' for name in reversed(names))


def is_begun(text: bytes) -> bool:
    """Whether it is UTF-8, perhaps up to the middle of a character."""
    # Whatever a character may have begun with, one of these ends it.
    for rest in (b"", b"\x80", b"\xa0\x80", b"\x80\x80", b"\x90\x80\x80", b"\x80\x80\x80"):
        with contextlib.suppress(UnicodeDecodeError):
            return bool((text + rest).decode()) or not text
    return False


@pytest.mark.model
@settings(max_examples=cases(400), deadline=None)
@example(grammar='root ::= "\\nb" [é-🦀] | "z"', prompt="((")
@given(grammar=grammars(), prompt=st.sampled_from(["Answer: ", "((", "a b a b", '"\\"', "\n\n"]))
def test_llama_cpp_writes_the_same(model: Model, grammar: str, prompt: str) -> None:
    """Token by token, greedily: both take what the model likes most of what they allow."""
    rule, ids = Gbnf(grammar), list(model.vocab.tokenize(prompt))
    theirs = list(model._generate_with_grammar(ids, "gbnf", grammar, 12).tokens)
    # llama.cpp takes the names of control tokens for text, and bytes that are no UTF-8 for characters.
    written = list(takewhile(lambda token: token not in model.vocab.control, theirs))
    while written and not is_begun(model.vocab.detokenize_bytes(written)):
        written.pop()
    theirs = theirs[: len(written) + 1]
    sampler = Sampler(model.vocab, rule)
    for token in written:
        sampler.accept(token)
    if theirs[len(written) :][:1] and theirs[len(written)] in model.vocab.eog:
        assert rule.matches(model.vocab.detokenize_bytes(written).decode())
    # With room to end the value: near the limit the shortest way out would be taken.
    ends = {"end_tokens": model.vocab.eog, "on_invalid": "none"}
    ours = model.generate(ids, rule, max_tokens=200, skip_ahead=False, **ends)
    assert [token for token in ours.tokens if token not in model.vocab.eog][: len(written)] == written


def test_its_faces() -> None:
    rule = Gbnf(BRACKETS)
    assert rule.text == BRACKETS
    assert repr(rule) == f"tokentrie.rules.Gbnf({BRACKETS!r})"
    assert rule == Gbnf(BRACKETS)
    assert rule != Gbnf('root ::= "a"')
    assert hash(rule) == hash(Gbnf(BRACKETS))
    assert rule.limits == Limits()
    assert Gbnf('root ::= "a" | "b" "c"').texts() == ["a", "bc"]
    assert Gbnf("root ::= [a-c]{3}").check() is True
    assert rule.check(states=50) is False
    with pytest.raises(RuleError, match="grammar, line 1, column 10: "):
        Gbnf("root ::= <think>")
    with pytest.raises(RuleError, match="more than 10 bytes"):
        Gbnf('root ::= "a"', limits=Limits(bytes=10))
    with pytest.raises(TypeError, match="Gbnf, not a finite automaton"):
        OneOf(rule)


@pytest.mark.model
def test_it_generates(model: Model) -> None:
    brackets = Gbnf('root ::= "(" root ")" | [a-z]{1,3}')
    out = model.generate("Some brackets: ((a)) ", brackets, max_tokens=60)
    assert brackets.matches(out.value)
    form = Form('{"name": "', Slot("name", brackets), '"}')
    filled = model.generate("A name: ", form, max_tokens=60)
    assert brackets.matches(filled.values["name"])
    assert filled.text == f'{{"name": "{filled.values["name"]}"}}'
    assert Regex("[0-9]{2}").matches(model.generate("A number: ", Gbnf("root ::= [0-9]{2}")).value)
    assert model.choose("The sky is ", Gbnf('root ::= "blue" | "red"')).name in ("blue", "red")
