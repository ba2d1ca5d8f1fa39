"""Rules over bytes in every face: regular expressions, grammars and rules of the user's own."""

from __future__ import annotations

import datetime
import decimal
import gc
import pickle
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tokentrie
from budget import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from support import vocabulary_files
from tokentrie import Batch, Form, Model, Regex, RuleError, Sampler, Slot, Text, TokenNotAllowedError, Vocab
from tokentrie.errors import OptionError, VocabularyError
from tokentrie.rules import Grammar, Rule, ThinkGate

UTC = datetime.timezone.utc
DATE = r"(19|20)\d{2}-(0[1-9]|1[0-2])-[0-3]\d"
PIECES = [bytes([byte]) for byte in range(256)] + [
    b"20",
    b"19",
    b"2024",
    b"-0",
    b"-1",
    b"01",
    b"-01-0",
    b"20",
    b"<end>",
]
END = len(PIECES) - 1


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    """All bytes, some longer tokens, one of them twice, and an end token."""
    return Vocab.from_tokens(PIECES, eog=[END], control=[END])


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model() as model:
        yield model


class Digits(Rule):
    """From one to so many digits."""

    def __init__(self, most: int = 3) -> None:
        self.most = most
        self.asked: list[tuple[str, Any]] = []

    def start(self) -> Any:
        return 0

    def step(self, state: Any, byte: int) -> Any:
        self.asked.append(("step", (state, byte)))
        return state + 1 if chr(byte) in "0123456789" and state < self.most else None

    def is_end(self, state: Any) -> bool:
        self.asked.append(("is_end", state))
        return bool(state > 0)

    def parse(self, text: str) -> Any:
        return int(text)


def legal(matches: Callable[[bytes], bool], written: bytes, pieces: list[bytes], control: set[int]) -> list[int]:
    """By brute force: all tokens that keep a text the beginning of a legal one."""
    return [id for id, piece in enumerate(pieces) if piece and id not in control and matches(written + piece)]


def begins_date(text: bytes) -> bool:
    """Whether this begins what DATE matches, told by filling it up."""
    whole = ["2000-01-01", "2000-10-01", "1900-01-01"]
    filled = [text.decode("latin-1") + rest[len(text) :] for rest in whole]
    return len(text) <= 10 and any(re.fullmatch(DATE.replace(r"\d", "[0-9]"), date) for date in filled)


def test_masks_are_those_of_brute_force(vocab: Vocab) -> None:
    sampler = Sampler(vocab, Regex(DATE.replace(r"\d", "[0-9]")))
    control = {END}
    states, seen = [()], set()
    while states:
        walk = states.pop()
        written = b"".join(PIECES[token] for token in walk)
        if (written) in seen or len(seen) > 300:
            continue
        seen.add(written)
        sampler.reset()
        sampler.accept(list(walk))
        if sampler.state == "complete":
            assert re.fullmatch(DATE, written.decode())
            continue
        want = legal(begins_date, written, PIECES, control)
        assert sampler.allowed().tolist() == want
        states += [(*walk, token) for token in want[::2]]
    assert len(seen) > 100


def test_all_ways_to_match_count() -> None:
    assert all(Regex("foo|foobar").matches(text) for text in ("foo", "foobar"))
    assert all(Regex("a|b$").matches(text) for text in "ab")
    assert Regex("é{2}").matches("éé".encode())
    assert not Regex("é").matches(b"\xc3")
    with pytest.raises(TypeError, match="text must be str or bytes, not int"):
        Regex("a").matches(1)  # type: ignore[arg-type]


def test_end_tokens_come_where_a_text_ends(vocab: Vocab) -> None:
    sampler = Sampler(vocab, Regex("ab*"), end_tokens=[END, 0])
    assert sampler.allowed().tolist() == [ord("a")]
    sampler.accept(ord("a"))
    assert sampler.allowed().tolist() == [0, ord("b"), END]
    sampler.accept(0)
    assert sampler.state == "complete"
    open_ended = Sampler(vocab, Regex("ab*"))
    open_ended.accept(ord("a"))
    assert open_ended.open
    assert open_ended.allowed().tolist() == [ord("b")]


def test_every_call_of_a_sampler(vocab: Vocab) -> None:
    rule = Regex("2024-01-0[0-9]")
    sampler, row = Sampler(vocab, rule), np.random.default_rng(0).normal(size=len(vocab)).astype(np.float32)
    allowed = sampler.allowed()
    masked = row.copy()
    sampler.apply(masked)
    assert np.flatnonzero(np.isfinite(masked)).tolist() == allowed.tolist()
    words = np.zeros(-(-len(vocab) // 32), dtype=np.int32)
    sampler.fill_bitmask(words)
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    assert np.flatnonzero(bits).tolist() == allowed.tolist()
    assert sampler.sample(row) == allowed[np.argmax(row[allowed])]
    sampler.accept(PIECES.index(b"2024"))
    again = sampler.clone()
    sampler.accept(PIECES.index(b"-01-0"))
    sampler.rollback(1)
    assert sampler.allowed().tolist() == again.allowed().tolist()
    with pytest.raises(TokenNotAllowedError, match="token 65"):
        sampler.accept(65)
    assert sampler.allowed().tolist() == again.allowed().tolist()


def test_a_batch_equals_its_rows(vocab: Vocab) -> None:
    rules = [Regex("[ab]{3}"), Grammar.example("json"), Digits(), Regex(DATE)]
    batch = Batch([rules[row % 4] for row in range(16)], vocab=vocab, after="free")
    rows = [Sampler(vocab, rules[row % 4]) for row in range(16)]
    logits = np.random.default_rng(1).normal(size=(16, len(vocab))).astype(np.float32)
    for _ in range(3):
        want = np.stack(logits)
        for row, sampler in enumerate(rows):
            sampler.apply(want[row])
        got = logits.copy()
        batch.apply(got)
        assert np.array_equal(got, want)
        tokens = batch.select(logits)
        assert tokens.tolist() == [sampler.sample(row) for sampler, row in zip(rows, logits, strict=True)]
        batch.accept(tokens)
        for sampler, token in zip(rows, tokens, strict=True):
            sampler.accept(int(token))


def test_what_is_kept_can_be_read(vocab: Vocab) -> None:
    rule = Regex("[a-c]{4}")
    assert rule.stats(vocab).masks == 0
    for _ in range(3):
        sampler = Sampler(vocab, rule)
        for _ in range(4):
            sampler.allowed()
            sampler.accept(ord("b"))
    stats = rule.stats(vocab)
    assert stats.misses <= 5
    assert stats.hits >= 8
    assert stats.masks <= 5
    assert stats.bytes > 0
    assert pickle.loads(pickle.dumps(stats)) == stats


@pytest.mark.filterwarnings("ignore:grammar")
def test_rules_can_be_pickled_and_compared() -> None:
    for rule in (Regex("a+", max_bytes=1 << 20), Grammar.example("sql"), Grammar('a : "x" | "x" ;', lenient=True)):
        again = pickle.loads(pickle.dumps(rule))
        assert again == rule
        assert hash(again) == hash(rule)
        assert again is not rule
    assert Regex("a") != Regex("b")
    assert Regex("a") != "a"
    digits = pickle.loads(pickle.dumps(Digits(7)))
    assert digits.most == 7
    assert digits.matches("1234567")
    slot, text = Slot("when", Regex(DATE)), Text("note", stop='"', pattern="[a-z]+")
    for part in (slot, text, Form(slot, " ", text)):
        assert pickle.loads(pickle.dumps(part)) == part


@pytest.mark.filterwarnings("ignore:grammar")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Regex("a(b"), "position 1: unclosed group"),
        (lambda: Regex("(?=a)"), "look-around"),
        (lambda: Regex(r"(a)\1"), "backreference"),
        (lambda: Regex("a[^\x00-\U0010ffff]"), "no text matches"),
        (lambda: Regex(r"(?:\w{1,300}){1,300}"), "more than 33554432 bytes: raise"),
        (lambda: Regex("[a-z]{1,200}", max_bytes=1000), "more than 1000 bytes"),
        (lambda: Grammar("a : b ;"), "grammar, line 1, column 5: no rule or terminal is named b"),
        (lambda: Grammar('a : "x" a ;'), "never ends"),
        (lambda: Grammar('a : b | c ;\nb : "x" ;\nc : "x" ;'), "conflict before the end"),
        (lambda: Grammar('a : "/[/" ;'), "unclosed character class"),
        (lambda: Grammar(""), "the grammar has no rules"),
    ],
)
def test_what_makes_no_rule_is_said(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(RuleError, match=re.escape(message)):
        make()
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def test_lenient_grammars_warn() -> None:
    with pytest.warns(tokentrie.errors.TokenTrieWarning, match="grammar, line"):
        Grammar('a : b | c ;\nb : "x" ;\nc : "x" ;', lenient=True)
    with pytest.raises(OptionError, match='must be one of "json"'):
        Grammar.example("xml")  # type: ignore[arg-type]


def test_a_vocabulary_must_be_able_to_begin(vocab: Vocab) -> None:
    with pytest.raises(VocabularyError, match="'x' or 'y'"):
        Sampler(Vocab.from_tokens([b"a", b"b"]), Regex("[xy]"))
    with pytest.raises(RuleError, match="only the empty text"):
        Sampler(vocab, Regex("(?:)"))
    with pytest.raises(TypeError, match="a regex needs a Vocab"):
        Sampler(10, Regex("a"))
    letters = Vocab.from_tokens([b"a", b"b"])
    with pytest.raises(VocabularyError, match="sooner or later each needs 'x'"):
        Sampler(letters, Regex("ax"))
    # A token is legal by its bytes: where no other goes on then, that is said there.
    stuck = Sampler(letters, Regex("ax|b"))
    stuck.accept(0)
    with pytest.raises(RuleError, match="no token goes on here: the rule wants 'x'"):
        stuck.sample(np.zeros(2, np.float32))


def test_a_dead_end_of_a_users_rule_is_said(vocab: Vocab) -> None:
    class Stuck(Digits):
        def step(self, state: Any, byte: int) -> Any:
            return 1 if state == 0 and byte == ord("a") else None

        def is_end(self, state: Any) -> bool:
            return False

    stuck = Sampler(vocab, Stuck())
    stuck.accept(ord("a"))
    with pytest.raises(RuleError, match="no token goes on here: the rule wants nothing, though its text is not over"):
        stuck.sample(np.zeros(len(vocab), np.float32))
    batch = Batch(Stuck(), rows=2, vocab=vocab)
    batch.accept([ord("a"), ord("a")])
    with pytest.raises(RuleError, match=r"row 0.*the rule wants nothing"):
        batch.select(np.zeros((2, len(vocab)), np.float32))
    with pytest.raises(RuleError, match=r"is allowed, but no legal text begins so|no text is legal"):
        Stuck().check()
    assert Regex("ab").check() is True
    assert Grammar.example("json").check(states=50) is False


# Rules of the user's own


def test_python_is_asked_once_for_each_state(vocab: Vocab) -> None:
    digits = Digits()
    for _ in range(3):
        sampler = Sampler(vocab, digits)
        while sampler.state == "active" and not sampler.open:
            sampler.sample(np.arange(len(vocab), dtype=np.float32))
            sampler.accept(int(sampler.allowed()[0]))
    assert len(digits.asked) == len(set(digits.asked))
    assert len(digits.asked) < 4 * 256 + 8


def test_allowed_bytes_saves_calls(vocab: Vocab) -> None:
    class Few(Digits):
        def allowed_bytes(self, state: Any) -> Any:
            return b"0123456789" if state < self.most else []

    few, all_of_them = Few(), Digits()
    one, other = Sampler(vocab, few), Sampler(vocab, all_of_them)
    for _ in range(3):
        assert one.allowed().tolist() == other.allowed().tolist()
        one.accept(ord("7"))
        other.accept(ord("7"))
    assert len(few.asked) < len(all_of_them.asked) / 5


@given(st.from_regex(r"[ab]{1,3}(\|[ab]{1,3}){0,3}", fullmatch=True))
@settings(max_examples=cases(30), deadline=None)
def test_a_rule_in_python_equals_the_regex(pattern: str) -> None:
    texts = pattern.split("|")

    class Listed(Rule):
        def start(self) -> Any:
            return frozenset(texts)

        def step(self, state: Any, byte: int) -> Any:
            return frozenset(text[1:] for text in state if text[:1] == chr(byte)) or None

        def is_end(self, state: Any) -> bool:
            return "" in state

    small = Vocab.from_tokens([b"a", b"b", b"ab", b"ba", b"bb", b"aab", b"c", b""])
    pairs = [(Sampler(small, Regex(pattern)), Sampler(small, Listed()))]
    for _ in range(40):
        if not pairs:
            break
        one, other = pairs.pop()
        assert one.allowed().tolist() == other.allowed().tolist()
        assert one.open == other.open
        if one.state == "active":
            for token in one.allowed().tolist():
                pairs.append((one.clone(), other.clone()))
                for sampler in pairs[-1]:
                    sampler.accept(token)


class FaultError(Exception):
    pass


@pytest.mark.model
@pytest.mark.parametrize("method", ["start", "step", "is_end", "allowed_bytes", "parse"])
def test_what_a_rule_raises_ends_the_call(model: Model, method: str) -> None:
    class Faulty(Digits):
        faulty = True

        def allowed_bytes(self, state: Any) -> Any:
            return range(256)

    def fails(self: Faulty, *arguments: Any) -> Any:
        if self.faulty and (method in ("start", "parse", "allowed_bytes") or arguments[0] == 1):
            raise FaultError(method)
        return getattr(super(Faulty, self), method)(*arguments) if method != "allowed_bytes" else range(256)

    setattr(Faulty, method, fails)
    rule = Faulty()
    for _ in range(2):
        with pytest.raises(FaultError, match=method):
            model.generate("Two and two is ", rule)
    rule.faulty = False
    assert model.generate("Two and two is ", rule).value >= 0
    assert model.generate("The sky is ", ["blue", "red"]).finish == "span"


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("start", [], "a state must be hashable, not \\[\\] of type list"),
        ("step", {}, "a state must be hashable, not {} of type dict"),
        ("is_end", 1, "is_end gave 1 of type int: it must give a bool"),
        ("allowed_bytes", [300], "allowed_bytes gave 300: it must give ints from 0 to 255"),
        ("allowed_bytes", 5, "not iterable"),
    ],
)
def test_rubbish_is_refused(vocab: Vocab, method: str, answer: Any, message: str) -> None:
    rule = type("Rubbish", (Digits,), {method: lambda self, *arguments: answer})()
    with pytest.raises(TypeError, match=message):
        Sampler(vocab, rule).sample(np.zeros(len(vocab), np.float32))


def test_a_rule_that_lacks_a_method_says_which(vocab: Vocab) -> None:
    class Nothing(Rule):
        pass

    with pytest.raises(NotImplementedError, match="Nothing has no method start: what extends Rule defines it"):
        Sampler(vocab, Nothing())


def test_a_rule_that_changes_its_mind(vocab: Vocab) -> None:
    """What it said first counts, because each state is asked once."""

    class Fickle(Digits):
        def step(self, state: Any, byte: int) -> Any:
            known = ("step", (state, byte)) in self.asked
            return None if known else super().step(state, byte)

    sampler = Sampler(vocab, Fickle())
    for digit in b"123":
        assert digit in sampler.allowed()
        sampler.accept(digit)


@pytest.mark.model
def test_a_rule_without_end_is_bounded(vocab: Vocab) -> None:
    class Counts(Rule):
        def start(self) -> Any:
            return 0

        def step(self, state: Any, byte: int) -> Any:
            return state + 1 if byte == ord("a") else None

        def is_end(self, state: Any) -> bool:
            return False

    with Model() as model:
        out = model.generate("x", Counts(), max_tokens=20, on_invalid="none")
    assert (out.finish, out.value, len(out.tokens)) == ("max_tokens", None, 20)
    with pytest.raises(RuleError, match="more than 262144 states"):
        Counts().matches("a" * (1 << 20))


@pytest.mark.parametrize("ends", [False, True])
def test_what_a_rule_raises_is_raised_wherever_it_is_asked(ends: bool) -> None:
    """Never taken for a state where nothing, or anything, may come."""

    class Fails(Rule):
        def start(self) -> Any:
            return 0

        def step(self, state: Any, byte: int) -> Any:
            if state == 2:
                raise LookupError("the database is gone")
            return state + 1 if byte == ord("a") else None

        def is_end(self, state: Any) -> bool:
            return ends

    letters = Vocab.from_tokens([bytes([byte]) for byte in range(256)], eog=[])
    sampler, rows = Sampler(letters, Fails()), Batch(Fails(), 2, vocab=letters)
    sampler.accept([97, 97])
    rows.accept([97, 97])
    rows.accept([97, 97])
    row, words = np.zeros((2, 256), np.float32), np.zeros(8, np.int32)
    for ask in (
        sampler.allowed,
        lambda: sampler.accept(97),
        lambda: sampler.sample(row[0]),
        lambda: sampler.apply(row),
        lambda: sampler.fill_bitmask(words),
        rows.bitmask,
        lambda: rows.allowed(1),
        lambda: rows.accept([97, 97]),
        lambda: rows.select(row),
    ):
        with pytest.raises(LookupError, match="the database is gone"):
            ask()
    assert not row.any()
    assert sampler.depth == 2


def test_a_rule_must_not_use_who_asks_it(vocab: Vocab) -> None:
    class Nested(Digits):
        sampler: Sampler | None = None

        def step(self, state: Any, byte: int) -> Any:
            if self.sampler is not None:
                self.sampler.allowed()
            return super().step(state, byte)

    rule = Nested()
    sampler = Sampler(vocab, rule)
    rule.sampler = sampler
    sampler.accept(ord("1"))
    with pytest.raises(RuntimeError, match="must not use the sampler"):
        sampler.sample(np.zeros(len(vocab), np.float32))
    rule.sampler = None
    assert sampler.allowed().tolist()


def test_rules_in_several_threads(vocab: Vocab) -> None:
    rules, failed = [Digits(6), Regex("[a-f]{6}"), Grammar.example("json")], []

    def walk(seed: int) -> None:
        draws = np.random.default_rng(seed)
        try:
            for number in range(30):
                sampler = Sampler(vocab, rules[number % 3])
                for _ in range(6):
                    allowed = sampler.allowed()
                    if sampler.state != "active" or not len(allowed):
                        break
                    sampler.accept(int(draws.choice(allowed)))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=walk, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_rules_are_given_back(vocab: Vocab) -> None:
    rule = Digits()
    gone = weakref.ref(rule)
    sampler = Sampler(vocab, rule)
    del rule
    gc.collect()
    assert sampler.allowed().tolist()
    assert gone() is not None
    del sampler
    gc.collect()
    assert gone() is None


# With a model


@pytest.mark.model
@pytest.mark.parametrize("skip_ahead", [True, False])
@pytest.mark.parametrize("mode", ["greedy", "sampled"])
def test_generation_gives_whole_texts(model: Model, mode: Any, skip_ahead: bool) -> None:
    rules = [
        Regex(DATE),
        Regex('\\{"name": "[a-z]{2,8}", "ok": (true|false)\\}'),
        Digits(),
        Grammar.example("arithmetic"),
    ]
    for rule in rules:
        seed = 7 if mode == "sampled" else None
        out = model.generate("Please: ", rule, mode=mode, seed=seed, skip_ahead=skip_ahead, max_tokens=200)
        if out.finish == "span":
            assert rule.matches(out.text)
            assert out.value == rule.parse(out.text)
            assert out.leaf is None
        again = model.generate("Please: ", rule, mode=mode, seed=seed, skip_ahead=skip_ahead, max_tokens=200)
        assert again.tokens == out.tokens


@pytest.mark.model
def test_text_that_must_come_is_skipped_in_the_tokenizers_tokens(model: Model) -> None:
    rule = Regex('\\{"location": "Berlin", "unit": "[a-z]+"\\}')
    ahead = model.generate("JSON:\n", rule, max_tokens=60, on_invalid="none")
    literal = '{"location": "Berlin", "unit":'
    # The tokens of the text with the prompt, from where the prompt was healed on.
    canonical = model.vocab.tokenize("JSON:\n" + literal)[-len(model.vocab.tokenize(literal)) :]
    assert canonical == [token for token in ahead.tokens if token in canonical][: len(canonical)]
    assert model.vocab.detokenize(ahead.tokens).lstrip(":\n").startswith(literal)
    assert ahead.stats.forced_tokens >= len(canonical) - 1
    assert ahead.stats.forward_passes <= len(ahead.tokens) - len(canonical) + 1


@pytest.mark.model
def test_a_prompt_is_healed_for_a_rule(model: Model) -> None:
    text = model.generate("The sky is ", Regex("blue|red|green"))
    listed = model.generate("The sky is ", ["blue", "red", "green"])
    assert text.text == listed.text
    assert text.stats.healed_bytes == listed.stats.healed_bytes == 1
    ids = model.vocab.tokenize("The sky is ", add_special=True)
    assert model.generate(ids, Regex("blue|red|green")).stats.healed_bytes == 0


@pytest.mark.model
def test_thinking_before_a_rule(model: Model) -> None:
    gate = ThinkGate("<think>", "</think>", budget=5, then=Digits())
    out = model.generate("How many? ", gate, max_tokens=40)
    assert isinstance(out.value, int)
    assert out.text.endswith(str(out.value))


@pytest.mark.model
def test_choosing_among_the_texts_of_a_rule(model: Model) -> None:
    days = tokentrie.rules.Integer(1, 7)
    choice = model.choose("Day ", days)
    listed = model.choose("Day ", days.texts())
    assert choice.name == listed.name
    assert choice.probabilities == pytest.approx(listed.probabilities)
    assert [found.name for found in model.choose_many(["One: ", "Two: "], tokentrie.rules.OneOf("x", "y"))]
    with pytest.raises(RuleError, match="the language is infinite"):
        model.choose("Day ", Regex("a*"))
    with pytest.raises(RuleError, match="more than 65536 texts"):
        model.choose("Day ", Regex("[a-z]{5}"))

    def scorer(prefixes: list[list[int]]) -> np.ndarray:
        return np.random.default_rng(0).normal(size=(len(prefixes), len(model.vocab))).astype(np.float32)

    assert tokentrie.sets.choose(scorer, days, vocab=model.vocab).name in days.texts()
    assert tokentrie.sets.beam_search(scorer, days, width=3, vocab=model.vocab)[0].leaf.name in days.texts()
    with pytest.raises(RuleError, match="the language is infinite"):
        tokentrie.sets.beam_search(scorer, Regex("a*"), width=3, vocab=model.vocab)
    with pytest.raises(TypeError, match="needs a Vocab"):
        tokentrie.sets.beam_search(scorer, days, width=3, vocab=len(model.vocab))
    assert model.generate("x", tokentrie.rules.Sequence(days, ["a"])).text[:-1] in days.texts()
    form = Form("on ", Slot("d", days), ", ", Slot("m", tokentrie.rules.OneOf("Jan", "Feb")))
    out = model.generate("x", form, mode="exact", probabilities=True)
    assert isinstance(out.values["d"], int)
    assert len(out.probabilities["d"]) == 7
    with pytest.raises(OptionError, match='slot "d": the values of this constraint cannot be listed'):
        model.generate("x", Form(Slot("d", Regex("a+")), "."), mode="exact")


def bounded(rule: Rule) -> bool:
    """Whether its texts have an end: the tiny model may find none."""
    return not isinstance(rule, tokentrie.rules.String) and rule != tokentrie.rules.Integer()


@pytest.mark.model
@pytest.mark.parametrize(
    ("rule", "text", "value"),
    [
        (tokentrie.rules.Integer(-10, 10), "-7", -7),
        (tokentrie.rules.Integer(), "9" * 60, int("9" * 60)),
        (tokentrie.rules.Number(), "-1.5e2", -150.0),
        (tokentrie.rules.Number(-1.5, 20, fraction_digits=2), "-0.25", -0.25),
        (tokentrie.rules.Number(decimal.Decimal("0.1"), None, integer_digits=3), "0.10000000000000001", 0.1),
        (tokentrie.rules.Date(), "2024-02-29", datetime.date(2024, 2, 29)),
        (tokentrie.rules.Time(), "23:59:59", datetime.time(23, 59, 59)),
        (tokentrie.rules.Time(utc=True, timespec="minutes"), "23:59Z", datetime.time(23, 59, tzinfo=UTC)),
        (tokentrie.rules.Time("09:30", datetime.time(10)), "09:30:01", datetime.time(9, 30, 1)),
        (tokentrie.rules.DateTime(), "2024-02-29T00:00:01", datetime.datetime(2024, 2, 29, 0, 0, 1)),
        (
            tokentrie.rules.DateTime(timespec="microseconds", utc=True),
            "2024-02-29T00:00:01.000002Z",
            datetime.datetime(2024, 2, 29, 0, 0, 1, 2, UTC),
        ),
        (tokentrie.rules.String(), r"caf\u00e9 \ud83d\ude00", "caf\u00e9 \U0001f600"),
        (tokentrie.rules.String(quotes=True), '"a"', "a"),
        (tokentrie.rules.OneOf(tokentrie.rules.Integer(0, 9), ["many"]), "7", 7),
        (tokentrie.rules.OneOf(tokentrie.rules.Integer(0, 9), ["many"]), "many", "many"),
        (tokentrie.rules.Integer(1, 9) + " kg", "5 kg", "5 kg"),
        ("about " + tokentrie.rules.Integer(1, 9), "about 5", "about 5"),
    ],
    ids=repr,
)
def test_values_have_the_type_of_their_rule(model: Model, rule: Any, text: str, value: Any) -> None:
    assert rule.matches(text)
    assert rule.parse(text) == value
    assert type(rule.parse(text)) is type(value)
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert hash(pickle.loads(pickle.dumps(rule))) == hash(rule)
    assert "object at" not in repr(rule)
    out = model.generate("It is ", Form(Slot("value", rule), "."), mode="sampled", seed=1) if bounded(rule) else None
    if out is not None:
        assert out.values["value"] == rule.parse(out.text[:-1])
    if not isinstance(rule, tokentrie.rules.Concatenation):
        with pytest.raises(RuleError, match="does not match"):
            rule.parse("?\n")


@settings(max_examples=cases(100), deadline=None)
@given(
    st.lists(st.decimals(-13, 13, places=3), min_size=2, max_size=2),
    st.integers(1, 2),
    st.integers(0, 2),
    st.sampled_from([decimal.Decimal, float]),
)
def test_ranges_of_numbers_are_those_that_are_counted(
    bounds: list[decimal.Decimal], whole: int, fraction: int, kind: type
) -> None:
    low, high = sorted(bounds)
    most = 10**whole * 10**fraction
    wanted = set()
    for places in range(fraction + 1):
        step = 10 ** (fraction - places)
        for number in range(1 - most, most):
            value = decimal.Decimal(number).scaleb(-fraction)
            if number % step == 0 and low <= value <= high:
                wanted.add(f"{number // step * decimal.Decimal(1).scaleb(-places):.{places}f}")
    if not wanted:
        with pytest.raises(RuleError, match="no number"):
            tokentrie.rules.Number(kind(low), kind(high), integer_digits=whole, fraction_digits=fraction)
        return
    rule = tokentrie.rules.Number(kind(low), kind(high), integer_digits=whole, fraction_digits=fraction)
    found = rule.texts(100_000)
    assert set(found) == wanted
    assert all(rule.parse(text) == float(text) for text in found)
    above = tokentrie.rules.Number(kind(low), integer_digits=whole, fraction_digits=fraction).texts(100_000)
    assert set(found) == {text for text in above if decimal.Decimal(text) <= high}


def test_bounds_of_numbers_are_kept_as_given() -> None:
    rule = tokentrie.rules.Number(decimal.Decimal("-0.10"), np.float64(2.5))
    assert (rule.lo, rule.hi) == (decimal.Decimal("-0.1"), 2.5)
    assert rule == tokentrie.rules.Number(-0.1, 2.5, integer_digits=20, fraction_digits=17, exponent_digits=0)
    assert repr(rule) == "tokentrie.rules.Number(-0.10, 2.5, integer_digits=20, fraction_digits=17, exponent_digits=0)"
    assert eval(repr(rule)) == rule
    assert (rule.exponent_digits, tokentrie.rules.Number().exponent_digits) == (0, 2)
    assert tokentrie.rules.Number(0, 10**30).matches("1" + "0" * 30), "as many digits as a bound has"
    assert rule != tokentrie.rules.Number(-0.1, 2.6)
    assert rule != tokentrie.rules.Number(-0.1)


def iso(moment: Any, timespec: str) -> str:
    """As Python writes it, with a Z for the offset of UTC."""
    text: str = moment.isoformat(timespec=timespec)
    return text.replace("+00:00", "Z")


def from_iso(kind: Any, text: str) -> Any:
    """As Python reads it; None where it does not."""
    try:
        return kind.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    except ValueError:
        return None


@settings(max_examples=cases(400), deadline=None)
@given(st.data())
def test_times_are_those_of_python(data: st.DataObject) -> None:
    """A text is legal where Python reads it, writes it the same way, and it is in the range."""
    utc, with_day = data.draw(st.booleans()), data.draw(st.booleans())
    timespec = data.draw(st.sampled_from(["minutes", "seconds", "milliseconds", "microseconds"]))
    zone = UTC if utc else None
    near = data.draw(st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)))
    spans = st.one_of(*(st.integers(-span, span) for span in (3, 2_000_000, 200_000_000, 86_400_000_000)))
    drawn = [near + datetime.timedelta(microseconds=data.draw(spans)) for _ in range(8)]
    cut = st.sampled_from([1, 1_000, 1_000_000, 60_000_000])
    drawn += [one - (one - datetime.datetime.min) % datetime.timedelta(microseconds=data.draw(cut)) for one in drawn]
    kind: Any = datetime.datetime if with_day else datetime.time
    moments = [one.replace(tzinfo=zone) if with_day else one.time().replace(tzinfo=zone) for one in drawn]
    low, high = sorted(moments[:2]) if data.draw(st.booleans()) else sorted(moments[-2:])
    rule_of: Any = tokentrie.rules.DateTime if with_day else tokentrie.rules.Time
    fine = iso(low, "microseconds"), iso(high, "microseconds")
    bounds = data.draw(st.sampled_from([(low, high), (low, None), (None, high), (None, None), fine]))
    texts = [iso(one, timespec) for one in moments]
    for text in list(texts):
        at, char = data.draw(st.integers(0, len(text) - 1)), data.draw(st.sampled_from("0123456789:.-TZ "))
        texts += [text[:at] + char + text[at + 1 :], text[:at] + text[at + 1 :], text[:at] + char + text[at:]]

    def wanted(text: str) -> Any:
        moment = from_iso(kind, text)
        if moment is None or (moment.tzinfo is None) == utc or iso(moment, timespec) != text:
            return None
        above = bounds[0] is None or low <= moment
        return moment if above and (bounds[1] is None or moment <= high) else None

    try:
        rule = rule_of(*bounds, timespec=timespec, utc=utc)
    except RuleError:
        with pytest.raises(RuleError, match=r"no (time|moment) is at least"):
            rule_of(*bounds, timespec=timespec, utc=utc)
        assert all(wanted(text) is None for text in texts)
        return
    for text in texts:
        moment = wanted(text)
        assert rule.matches(text) == (moment is not None), (text, rule)
        if moment is not None:
            assert rule.parse(text) == moment
            assert rule.parse(text).tzinfo is zone
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert eval(repr(rule)) == rule
    assert (rule.lo, rule.hi) == (None if bounds[0] is None else low, None if bounds[1] is None else high)
    assert rule_of(rule.lo, rule.hi, timespec=timespec, utc=utc) == rule


def test_bounds_of_times_are_of_their_kind() -> None:
    rules = tokentrie.rules
    plus_two = datetime.timezone(datetime.timedelta(hours=2))
    moment = datetime.datetime(2024, 5, 1, 1, tzinfo=plus_two)
    assert rules.DateTime(moment, utc=True).lo == moment
    assert rules.DateTime(moment, utc=True) == rules.DateTime("2024-04-30T23:00Z", utc=True)
    for made, said in [
        (lambda: rules.DateTime(moment), "lo is .*, with a time zone: give utc=True"),
        (lambda: rules.DateTime(None, datetime.datetime(2024, 5, 1), utc=True), "hi is .*, without a time zone"),
        (
            lambda: rules.Time(datetime.time(9, tzinfo=plus_two), utc=True),
            "lo is .*: a time of day in another zone than UTC is not supported",
        ),
        (lambda: rules.DateTime(datetime.date(2024, 5, 1)), "lo must be a datetime.datetime, a str or None, not"),
        (lambda: rules.Time(9), "lo must be a datetime.time, a str or None, not 9 of type int"),
        (lambda: rules.Date(datetime.datetime(2024, 5, 1)), "lo must be a datetime.date, a str or None, not"),
    ]:
        with pytest.raises(TypeError, match=said):
            made()
    with pytest.raises(RuleError, match='invalid time "9:00": expected one as in 23:59:59'):
        rules.Time("9:00")
    with pytest.raises(OptionError, match='timespec is "hours": it must be one of "minutes", "seconds"'):
        rules.Time(timespec="hours")  # type: ignore[arg-type]


def test_what_makes_no_typed_rule_is_said() -> None:
    with pytest.raises(RuleError, match="no integer is at least 5 and at most 3"):
        tokentrie.rules.Integer(5, 3)
    with pytest.raises(OptionError, match="must fit 128 bits"):
        tokentrie.rules.Integer(0, 1 << 200)
    with pytest.raises(TypeError, match="lo must be an int or None, not str"):
        tokentrie.rules.Integer("1")  # type: ignore[arg-type]
    with pytest.raises(RuleError, match="integer_digits is 0"):
        tokentrie.rules.Number(integer_digits=0)
    with pytest.raises(RuleError, match=r"at most 17 digits after the point is at least 2 and at most 1\.5"):
        tokentrie.rules.Number(2, 1.5)
    with pytest.raises(RuleError, match=r"digits after the point is at least 0\.001 and at most 0\.002"):
        tokentrie.rules.Number(0.001, 0.002, fraction_digits=2)
    with pytest.raises(RuleError, match="a range are written without exponents"):
        tokentrie.rules.Number(0, exponent_digits=2)
    for endless in (float("inf"), float("nan"), decimal.Decimal("-Infinity"), decimal.Decimal("1e401")):
        with pytest.raises(OptionError, match=r"hi is .*: it must be finite, and at most 1e400"):
            tokentrie.rules.Number(0, endless)
    with pytest.raises(TypeError, match=r"lo must be an int, a float, a decimal\.Decimal or None, not '1' of type str"):
        tokentrie.rules.Number("1")  # type: ignore[arg-type]
    with pytest.raises(RuleError, match="no string has at least 5 characters and at most 3"):
        tokentrie.rules.String(min_chars=5, max_chars=3)
    with pytest.raises(RuleError, match="nothing could be written"):
        tokentrie.rules.OneOf()
    with pytest.raises(RuleError, match="no parts: nothing could be written"):
        tokentrie.rules.Concatenation()
    with pytest.raises(TypeError, match="choice 0 is of type Grammar, not a finite automaton"):
        tokentrie.rules.OneOf(Grammar.example("json"))
    with pytest.raises(TypeError, match="choice 1 must be a Rule, a str or a list of str, not 5 of type int"):
        tokentrie.rules.OneOf("a", 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unsupported operand"):
        tokentrie.rules.Date() + 5  # type: ignore[operator]


def test_a_list_of_any_length_stays_a_trie(vocab: Vocab) -> None:
    names = [f"item-{number:06}" for number in range(200_000)]
    rule = tokentrie.rules.OneOf(names, tokentrie.rules.Integer(0, 9))
    sampler = Sampler(vocab, rule)
    assert sampler.allowed().tolist() == sorted([*range(ord("0"), ord("9") + 1), ord("i")])
    assert rule.matches("item-199999")
    assert not rule.matches("item-200000")


@pytest.mark.model
def test_values_are_named_for_sets_too(model: Model) -> None:
    assert model.generate("The sky is ", ["blue", "red"]).value in ("blue", "red")
    assert model.generate("The sky is ", max_tokens=2).value is None


@pytest.mark.model
@pytest.mark.parametrize("mode", ["greedy", "sampled"])
def test_forms_with_rules(model: Model, mode: Any) -> None:
    form = Form(
        '{"when": "',
        Slot("when", Regex(DATE)),
        '", "n": ',
        Slot("n", Digits(4)),
        ', "note": "',
        Text("note", stop='"', pattern="[a-z ]{1,20}", max_tokens=16),
        '", "colour": "',
        Slot("colour", ["red", "blue"]),
        '"}',
    )
    for seed in range(8 if mode == "sampled" else 1):
        out = model.generate("Call: ", form, mode=mode, seed=seed if mode == "sampled" else None)
        when, n, note, colour = out.values.values()
        assert re.fullmatch(DATE, when)
        assert isinstance(n, int)
        assert re.fullmatch("[a-z ]{1,20}", note)
        assert (
            out.text == f'{{"when": "{when}", "n": {out.text.split()[3][:-1]}, "note": "{note}", "colour": "{colour}"}}'
        )
        assert int(out.text.split()[3][:-1]) == n
        assert model.vocab.detokenize(out.tokens).removeprefix(" ") == out.text
        assert pickle.loads(pickle.dumps(out)) == out


@pytest.mark.model
def test_rules_next_to_other_slots(model: Model) -> None:
    units = Slot("unit", ["kg", "lb"])
    for form in (
        Form(Slot("n", Regex("[0-9]{1,3}"))),
        Form(Slot("n", Regex("[0-9]{1,3}")), units),
        Form(Slot("n", Regex("[0-9]{1,3}")), Slot("letters", Regex("[a-c]{2}"))),
        Form(units, Slot("n", Regex("[0-9]{1,3}")), "."),
        Form("a", Slot("n", Regex("b{0,4}")), "bbbc"),
    ):
        out = model.generate("It is ", form)
        assert "".join(part if isinstance(part, str) else out.values[part.name] for part in form.parts) == out.text


@pytest.mark.model
def test_patterns_that_are_cut_off(model: Model) -> None:
    form = Form("<", Text("a", stop=">", pattern="[a-z]{2,400}", max_tokens=3), ">")
    out = model.generate("x", form)
    assert re.fullmatch("[a-z]{2,400}", out.values["a"])
    assert len(out.tokens) <= 6
    endless = Form("<", Text("a", stop=">", pattern="[a-z]{300}", max_tokens=3), ">")
    with pytest.raises(RuleError, match=r'text "a": .* after 3 tokens: raise max_tokens'):
        model.generate("x", endless)
    with pytest.raises(OptionError, match="exclude has no effect beside pattern"):
        Text("a", stop=">", pattern="a", exclude="b")
    with pytest.raises(TypeError, match="a ChatConstraint or a str, not 5 of type int"):
        Text("a", stop=">", pattern=5)  # type: ignore[arg-type]


@pytest.mark.model
@pytest.mark.parametrize("path", vocabulary_files()[:2], ids=lambda path: path.stem)
def test_masks_over_real_vocabularies(path: Any) -> None:
    vocab = Vocab.from_gguf(path)
    whole = [vocab[id] if id not in set(vocab.control) | set(vocab.eog) else b"" for id in range(len(vocab))]
    sampler = Sampler(vocab, Regex(DATE.replace(r"\d", "[0-9]")))
    draws, written = np.random.default_rng(2), b""
    while sampler.state == "active" and not sampler.open and len(written) < 10:
        allowed = sampler.allowed().tolist()
        kinds = [id for id in legal(begins_date, written, whole, set()) if id in set(allowed) or vocab[id]]
        assert set(allowed) <= set(kinds)
        assert not {k for k in set(kinds) - set(allowed) if vocab.is_text(k)}
        token = int(draws.choice(allowed))
        sampler.accept(token)
        written += vocab[token]
    assert re.fullmatch(DATE, written.decode())
