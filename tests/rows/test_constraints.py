"""`Unconstrained` and `Sequence` through every face, against a walk by their definition."""

from __future__ import annotations

import itertools
import math
import pickle
import re
from collections.abc import Sequence as Row
from functools import cache
from pathlib import Path
from typing import Any as Anything

import numpy as np
import pytest
import tokentrie
from budget import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from models import TINY
from tokentrie import Form, Model, Regex, Sampler, Slot, Text, TokenNotAllowedError, Trie, Vocab, constraint
from tokentrie.errors import OptionError, TrieError, VocabularyError
from tokentrie.rules import Sequence, Unconstrained
from tokentrie.sets import TrieCache

SIZE = 12
Values = list[tuple[int, ...]]


class Walk:
    """A walk through parts, each a list of values or None for anything. Everything is computed anew from `tokens`."""

    def __init__(self, parts: Row[Values | None], ends: Row[int] = ()) -> None:
        self.parts, self.ends, self.tokens = list(parts), set(ends), list[int]()

    def position(self) -> tuple[int, tuple[int, ...], str, list[tuple[int, ...]]]:
        """Part, tokens inside it, state, and the values that are known."""
        part, inside, values = 0, (), []
        part, inside, values = self.settled(part, inside, values)
        for number, token in enumerate(self.tokens):
            here = self.parts[part]
            if here is not None and self.goes_on(part, (*inside, token)):
                part, inside, values = self.settled(part, (*inside, token), values)
                if self.is_over(part, inside):
                    return part, inside, "complete", [*values, inside]
            elif self.is_free(part, inside):
                if token in self.ends:
                    return part, inside, "complete", [*values, *([inside] if here is not None else [])]
                if here is not None:
                    part, inside, values = part + 1, (), [*values, inside]
            elif here is not None and inside in here and part + 1 < len(self.parts):
                part, inside, values = self.settled(part + 1, (token,), [*values, inside])
                if self.is_over(part, inside):
                    return part, inside, "complete", [*values, inside]
            else:
                # An end token, or at an open value of the last part anything.
                assert here is not None
                assert inside in here, (number, token)
                return part, inside, "complete", [*values, inside]
        return part, inside, "active", values

    def goes_on(self, part: int, inside: tuple[int, ...]) -> bool:
        return any(value[: len(inside)] == inside for value in self.parts[part] or [])

    def children(self, part: int, inside: tuple[int, ...]) -> set[int]:
        n = len(inside)
        return {value[n] for value in self.parts[part] or [] if len(value) > n and value[:n] == inside}

    def settled(self, part: int, inside: tuple[int, ...], values: list[tuple[int, ...]]) -> Anything:
        here = self.parts[part]
        last = part + 1 == len(self.parts)
        if here is not None and not last and inside in here and not self.children(part, inside):
            return part + 1, (), [*values, inside]
        return part, inside, values

    def is_over(self, part: int, inside: tuple[int, ...]) -> bool:
        here = self.parts[part]
        last = here is not None and part + 1 == len(self.parts)
        return last and inside in here and not self.children(part, inside) and not self.ends

    def is_free(self, part: int, inside: tuple[int, ...]) -> bool:
        here = self.parts[part]
        return here is None or (part + 2 == len(self.parts) and self.parts[part + 1] is None and inside in here)

    @property
    def is_open(self) -> bool:
        part, inside, state, _ = self.position()
        here = self.parts[part]
        last = here is not None and part + 1 == len(self.parts)
        return state == "active" and last and inside in here and not self.ends

    @property
    def allowed(self) -> set[int]:
        part, inside, state, _ = self.position()
        here = self.parts[part]
        if state == "complete" or self.is_free(part, inside):
            return set(range(SIZE))
        allowed = self.children(part, inside)
        if here is not None and inside in here:
            allowed |= self.children(part + 1, ()) if part + 1 < len(self.parts) else self.ends
        return allowed

    @property
    def legal(self) -> set[int]:
        return set(range(SIZE)) if self.is_open else self.allowed

    def after(self, token: int) -> Walk:
        walk = Walk(self.parts, tuple(self.ends))
        walk.tokens = [*self.tokens, token]
        return walk

    @property
    def forced(self) -> list[int]:
        run, ahead = [], self
        while ahead.position()[2] == "active" and not ahead.is_open and len(ahead.allowed) == 1:
            run += ahead.allowed
            ahead = ahead.after(run[-1])
        return run


def built(parts: Row[Values | None]) -> Sequence:
    return Sequence(*(Unconstrained() if part is None else Trie.from_sequences(part) for part in parts))


def compare(sampler: Sampler, walk: Walk) -> None:
    *_, state, values = walk.position()
    assert (sampler.state, sampler.open) == (state, walk.is_open)
    assert sampler.allowed().tolist() == sorted(walk.allowed)
    assert [tuple(leaf.tokens) for leaf in sampler.leaves] == values
    if state == "complete":
        assert (sampler.leaf is None) == (not values)
        assert sampler.leaf is None or tuple(sampler.leaf.tokens) == values[-1]
        return
    assert sampler.leaf is None
    assert sampler.forced().tolist() == walk.forced
    legal = np.zeros(SIZE, bool)
    legal[sorted(walk.legal)] = True
    sampler.fill_bitmask(words := np.zeros(1, np.int32))
    assert [int(words[0]) >> token & 1 for token in range(SIZE)] == legal.tolist()
    sampler.apply(row := np.arange(SIZE, dtype=np.float32))
    assert (np.isfinite(row) == legal).all()
    assert sampler.sample(np.arange(SIZE, dtype=np.float32)) == max(walk.legal)


values = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple), min_size=1, max_size=4, unique=True)
parts = st.tuples(st.lists(values, max_size=3), st.booleans()).filter(any).map(lambda p: [*p[0], *([None] * p[1])])


@given(parts=parts, ends=st.sampled_from([(), (11,), (2, 11)]), data=st.data())
@settings(deadline=None, max_examples=cases(150))
def test_a_sampler_walks_by_the_definition(parts: list[Values | None], ends: tuple[int, ...], data: Anything) -> None:
    make = data.draw(st.sampled_from([Sampler, TrieCache().sampler]))
    constraint = Unconstrained() if parts == [None] and data.draw(st.booleans()) else built(parts)
    sampler, walk = make(SIZE, constraint, end_tokens=list(ends)), Walk(parts, ends)
    compare(sampler, walk)
    for _ in range(8):
        *_, state, _ = walk.position()
        if state == "complete":
            break
        refused = sorted(set(range(SIZE)) - walk.legal)
        if refused:
            with pytest.raises(TokenNotAllowedError):
                sampler.accept(data.draw(st.sampled_from(refused)))
        token = data.draw(st.sampled_from(sorted(walk.legal)))
        copy = sampler.clone()
        sampler.accept(token)
        compare(copy, walk)
        back = sampler.clone()
        back.rollback(1)
        compare(back, walk)
        walk = walk.after(token)
        compare(sampler, walk)
    sampler.rollback(len(walk.tokens))
    compare(sampler, Walk(parts, ends))


@given(parts=parts)
@settings(deadline=None, max_examples=cases(60))
def test_advance_takes_what_is_forced(parts: list[Values | None]) -> None:
    sampler, walk = Sampler(SIZE, built(parts)), Walk(parts)
    row = np.arange(SIZE, dtype=np.float32)[::-1].copy()
    for _ in range(6):
        if walk.position()[2] == "complete":
            break
        expected = [min(walk.legal), *walk.after(min(walk.legal)).forced]
        assert sampler.advance(row) == expected
        for token in expected:
            walk = walk.after(token)
        compare(sampler, walk)


VERBS, NOUNS = ["get", "get all", "set"], ["name", "colour"]


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(TINY, n_ctx=512, n_threads=1, precise=True)


@cache
def alone(vocab: Vocab, texts: tuple[str, ...]) -> Trie:
    return Trie.from_strings(vocab, texts)


class TestValue:
    """`Unconstrained` and `Sequence` as objects."""

    def test_any(self) -> None:
        assert Unconstrained() == Unconstrained()
        assert hash(Unconstrained()) == hash(Unconstrained())
        assert Unconstrained() != 3
        assert repr(Unconstrained()) == "tokentrie.rules.Unconstrained()"
        assert pickle.loads(pickle.dumps(Unconstrained())) == Unconstrained()

    def test_sequences_compare_by_content(self) -> None:
        def make(last: int) -> Sequence:
            return Sequence(Trie.from_sequences([[1], [2]]), ["a", "b"], Trie.from_sequences([[last]]))

        one = make(3)
        assert one == make(3)
        assert hash(one) == hash(make(3))
        assert one not in (make(4), Sequence(["a", "b"]), Unconstrained(), None)
        assert repr(Sequence(*one.parts, Unconstrained())) == (
            "<tokentrie.rules.Sequence: 2 values, then 2 values, then 1 value, then anything>"
        )
        again = pickle.loads(pickle.dumps(one))
        assert (again, again.parts[1]) == (one, ["a", "b"])

    def test_a_sequence_in_a_sequence_counts_as_its_parts(self) -> None:
        a, b, c = (Trie.from_sequences([[token]]) for token in (1, 2, 3))
        assert Sequence(a, Sequence(b, Sequence(c, Unconstrained()))) == Sequence(a, b, c, Unconstrained())
        with pytest.raises(OptionError, match=r"part 2 of 4 lets everything come.*must be the last"):
            Sequence(a, Sequence(b, Unconstrained()), c)

    def test_parts_that_cannot_be(self) -> None:
        trie = Trie.from_sequences([[1]])
        with pytest.raises(OptionError, match="at least one part"):
            Sequence()
        with pytest.raises(OptionError, match="part 0 of 2"):
            Sequence(Unconstrained(), trie)
        with pytest.raises(OptionError, match="part 1 begins inside the text before it"):
            Sequence(trie, Trie.from_numpy(*trie.to_numpy()[:2], heal_bytes=2))
        payload = {"descriptors": [{"path": "a", "leaves": [{"name": "A", "tokens": [1]}]}]}
        with pytest.raises(TypeError, match=r"part 1 of a sequence .* not .* of type dict; a payload's set is"):
            Sequence(trie, payload)
        with pytest.raises(TypeError, match="part 0 of a sequence must be a list of str, not one str"):
            Sequence("yes")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="value 1 must be a str"):
            Sequence(["a", 1])  # type: ignore[list-item]

    def test_texts_need_a_vocabulary(self) -> None:
        with pytest.raises(TypeError, match="needs a Vocab that can tokenize, not only the size 10"):
            Sampler(10, Sequence(["a"]))
        with pytest.raises(VocabularyError):
            Sampler(Vocab.from_tokens([b"a"]), Sequence(["a"]))
        with pytest.raises(VocabularyError, match="outside the vocabulary of 10"):
            Sampler(10, Sequence(Trie.from_sequences([[1]]), Trie.from_sequences([[10]])))

    def test_plus_puts_one_after_the_other(self) -> None:
        trie, slot, text = Trie.from_sequences([[1], [2]]), Slot("a", ["x", "y"]), Text("b", stop=".")
        rule, form, texts = Regex("[0-9]"), Form("<", slot, ">"), ["a", "b"]
        allowed = trie.filtered(deny=[0])
        made: list[tuple[object, object]] = [
            (trie + trie, Sequence(trie, trie)),
            (trie + texts, Sequence(trie, texts)),
            (texts + trie, Sequence(texts, trie)),
            (trie + "a", Sequence(trie, ["a"])),
            ("a" + trie, Sequence(["a"], trie)),
            (trie + rule, Sequence(trie, rule)),
            (rule + trie, Sequence(rule, trie)),
            (trie + form + Unconstrained(), Sequence(trie, form, Unconstrained())),
            (form + rule, Sequence(form, rule)),
            (trie + {"regex": "[0-9]"}, Sequence(trie, constraint({"regex": "[0-9]"}))),
            (allowed + trie, Sequence(allowed, trie)),
            (form + Text("b", stop=".") + ".", Form("<", slot, ">", text, ".")),
            ("<" + slot + ">", form),
            (slot + " " + text, Form(slot, " ", text)),
            (rule + "a", tokentrie.rules.Concatenation(rule, "a")),
        ]
        for one, other in made:
            assert (one, hash(one)) == (other, hash(other))
        with pytest.raises(OptionError, match="must be the last"):
            Unconstrained() + trie
        for other in (3, None):
            with pytest.raises(TypeError):
                trie + other  # type: ignore[operator]
        with pytest.raises(OptionError, match='got one with "no"'):
            trie + {"no": "spec"}

    @pytest.mark.model
    def test_a_sequence_of_every_kind_is_walked(self, model: Model) -> None:
        vocab, texts = model.vocab, ["a", "b"]
        form = Form("<", Slot("a", ["x", "yes"]), ">")
        sequence = texts + Regex("[0-9]{2}") + form + {"integer": {"min": 1, "max": 3}}
        assert isinstance(sequence, Sequence)
        seen = set()
        for seed in range(20):
            out = model.generate("Say: ", sequence, mode="sampled", seed=seed)
            assert re.fullmatch("[ab][0-9]{2}<(x|yes)>[1-3]", out.text), out.text
            seen.add(out.text)
        assert len(seen) > 5
        assert constraint(sequence).to_dict() == {
            "sequence": [
                {"choice": ["a", "b"]},
                {"regex": "[0-9]{2}"},
                {"form": ["<", {"slot": "a", "value": {"choice": ["x", "yes"]}}, ">"]},
                {"integer": {"max": 3, "min": 1}},
            ]
        }
        again = pickle.loads(pickle.dumps(sequence))
        assert again == sequence
        assert Sampler(vocab, again).allowed().tolist() == Sampler(vocab, constraint(sequence)).allowed().tolist()

    def test_names_are_in_the_docstrings(self) -> None:
        assert "frozen" not in (Unconstrained.__doc__ or "")
        with pytest.raises(AttributeError):
            Sequence(["a"]).parts = ()  # type: ignore[misc]


def product(model: Model, *parts: Row[str]) -> Trie:
    """All values of a sequence of lists as one set, each part tokenised alone."""
    tries = [alone(model.vocab, tuple(part)) for part in parts]
    rows = list(itertools.product(*tries))
    names = ["".join(leaf.name or "" for leaf in row) for row in rows]
    return Trie.from_sequences([[token for leaf in row for token in leaf.tokens] for row in rows], names)


class TestGenerate:
    PROMPT = "The next action is "

    @pytest.mark.model
    @pytest.mark.parametrize("skip_ahead", [True, False])
    @pytest.mark.parametrize("seed", [None, *range(6)])
    def test_a_sequence_is_walked_part_by_part(self, model: Model, skip_ahead: bool, seed: int | None) -> None:
        draw = {} if seed is None else {"mode": "sampled", "seed": seed, "temperature": 4.0}
        tries = [alone(model.vocab, tuple(part)) for part in (VERBS, NOUNS)]
        out = model.generate(self.PROMPT, Sequence(*tries), skip_ahead=skip_ahead, **draw)
        assert model.generate(self.PROMPT, Sequence(VERBS, NOUNS), skip_ahead=skip_ahead, **draw).tokens == out.tokens
        verb, noun = out.leaves
        assert (verb.name in VERBS, noun.name in NOUNS, out.leaf) == (True, True, noun)
        assert (out.text, out.finish) == (f"{verb.name}{noun.name}", "span")
        assert out.tokens == [*verb.tokens, *noun.tokens]
        other = model.generate(self.PROMPT, Sequence(*tries), skip_ahead=not skip_ahead, **draw)
        assert (other.tokens, other.leaves) == (out.tokens, out.leaves)

    @pytest.mark.model
    @pytest.mark.parametrize("skip_ahead", [True, False])
    def test_greedy_is_the_argmax_at_every_step(self, model: Model, skip_ahead: bool) -> None:
        sampler = Sampler(model.vocab, constraint := Sequence(VERBS, NOUNS))
        out = model.generate(self.PROMPT, constraint, skip_ahead=skip_ahead)
        prompt = model.vocab.tokenize(self.PROMPT, add_special=True, parse_special=True)
        for number, token in enumerate(out.tokens):
            assert sampler.sample(model.logits([*prompt, *out.tokens[:number]])) == token
            sampler.accept(token)
        assert (sampler.state, sampler.leaves) == ("complete", out.leaves)

    @pytest.mark.model
    @pytest.mark.parametrize("skip_ahead", [True, False])
    def test_free_text_after_a_value(self, model: Model, skip_ahead: bool) -> None:
        for seed in range(4):
            draw: dict[str, Anything] = {"mode": "sampled", "seed": seed, "max_tokens": 12, "skip_ahead": skip_ahead}
            out = model.generate(self.PROMPT, Sequence(NOUNS, Unconstrained()), **draw)
            (noun,) = out.leaves
            assert noun.name in NOUNS
            assert out.text.startswith(noun.name)
            assert out.finish in ("max_tokens", "end_of_generation")
            assert out.leaf == (noun if out.leaf else None)

    @pytest.mark.model
    @pytest.mark.parametrize("skip_ahead", [True, False])
    def test_any_is_no_constraint(self, model: Model, skip_ahead: bool) -> None:
        for draw in ({}, {"mode": "sampled", "seed": 3}):
            free = model.generate(self.PROMPT, max_tokens=8, skip_ahead=False, **draw)
            out = model.generate(self.PROMPT, Unconstrained(), max_tokens=8, skip_ahead=skip_ahead, **draw)
            assert (out.leaf, out.leaves, out.finish) == (None, [], free.finish)
            if not draw:
                assert (out.tokens, out.text) == (free.tokens, free.text)

    @pytest.mark.model
    def test_steps_name_what_could_come(self, model: Model) -> None:
        steps: list[Anything] = []
        out = model.generate(self.PROMPT, constraint := Sequence(VERBS, NOUNS), on_step=steps.append)
        sampler = Sampler(model.vocab, constraint)
        for step in steps:
            assert step.allowed.tolist() == ([step.token] if step.forced else sampler.allowed().tolist())
            sampler.accept(step.token)
        assert [step.token for step in steps] == out.tokens


class TestChoose:
    @pytest.mark.model
    def test_a_sequence_is_the_set_of_its_values(self, model: Model) -> None:
        listed = product(model, VERBS, NOUNS)
        one, other = (model.choose("It can ", choices) for choices in (Sequence(VERBS, NOUNS), listed))
        assert one.name == other.name
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-3)
        assert len(one.logprobs) == len(VERBS) * len(NOUNS)
        many = list(model.choose_many(["It can ", "It may "], Sequence(VERBS, NOUNS)))
        assert [len(choice.logprobs) for choice in many] == [6, 6]
        np.testing.assert_allclose(many[0].logprobs, one.logprobs, atol=1e-3)

    @pytest.mark.model
    def test_what_has_no_end_cannot_be_listed(self, model: Model) -> None:
        for choices in (Unconstrained(), Sequence(VERBS, Unconstrained())):
            with pytest.raises(TrieError, match="cannot be listed: any text may be one"):
                model.choose("It can ", choices)
            with pytest.raises(TrieError, match="cannot be listed"):
                model.choose_many(["It can "], choices)
        with pytest.raises(OptionError, match="made of tokens already"):
            model.choose("It can ", Sequence(VERBS), suffix="\n")

    @pytest.mark.model
    def test_too_many_to_list(self, model: Model) -> None:
        digits = Trie.from_sequences([[token] for token in range(1000)])
        with pytest.raises(TrieError, match="more than 1048576 values"):
            model.choose("a", Sequence(digits, digits, digits))


class TestSlot:
    PROMPT = "An order: "

    def form(self, model: Model, *parts: Row[str]) -> Form:
        sequence = Sequence(*(alone(model.vocab, tuple(part)) for part in parts))
        return Form("<", Slot("what", sequence), "> ", Slot("sure", ["yes", "no"]))

    @pytest.mark.model
    @pytest.mark.parametrize("seed", [None, *range(8)])
    def test_a_sequence_fills_a_slot(self, model: Model, seed: int | None) -> None:
        draw = {} if seed is None else {"mode": "sampled", "seed": seed, "temperature": 4.0}
        out = model.generate(self.PROMPT, self.form(model, VERBS, NOUNS), **draw)
        assert out.values["what"] in {verb + noun for verb in VERBS for noun in NOUNS}
        assert out.text == f"<{out.values['what']}> {out.values['sure']}"
        assert b"".join(model.vocab[token] for token in out.tokens).decode() == out.text

    @pytest.mark.model
    def test_a_value_that_others_go_on_from_may_end(self, model: Model) -> None:
        form = self.form(model, NOUNS, ["", *VERBS][1:])
        seen = {
            model.generate(self.PROMPT, form, mode="sampled", seed=seed, temperature=9.0).values["what"]
            for seed in range(60)
        }
        assert {noun + "get" for noun in NOUNS} & seen
        assert {noun + "get all" for noun in NOUNS} & seen

    @pytest.mark.model
    def test_the_exact_value_and_its_probability(self, model: Model) -> None:
        sequence = self.form(model, VERBS, NOUNS)
        listed = Form("<", Slot("what", product(model, VERBS, NOUNS)), "> ", Slot("sure", ["yes", "no"]))
        forms = (sequence, listed)
        one, other = (model.generate(self.PROMPT, form, mode="exact", probabilities=True) for form in forms)
        assert one.values == other.values
        shares = one.probabilities["what"]
        assert math.isclose(sum(shares.values()), 1.0, abs_tol=1e-6)
        assert shares == pytest.approx(other.probabilities["what"], abs=1e-3)

    @pytest.mark.model
    def test_values_without_names_are_text(self, model: Model) -> None:
        rows = [[leaf.tokens for leaf in alone(model.vocab, tuple(part))] for part in (VERBS, NOUNS)]
        sequence = Sequence(*(Trie.from_sequences(row) for row in rows))
        out = model.generate(self.PROMPT, Form("<", Slot("what", sequence), ">"))
        assert out.values["what"] in {verb + noun for verb in VERBS for noun in NOUNS}

    @pytest.mark.model
    def test_what_cannot_be_in_a_slot(self, model: Model) -> None:
        for values in (Unconstrained(), Sequence(Trie.from_sequences([[1]]), Unconstrained())):
            with pytest.raises(OptionError, match=r'slot "note": its values never end.*Text'):
                Form(Slot("note", values))
        with pytest.raises(OptionError, match=r"made of tries: Trie.from_strings"):
            Slot("note", Sequence(["a"]))
        graph = Trie.from_strings(model.vocab, ["yes"], tokenization="all")
        with pytest.raises(TrieError, match="several sequences stand for one value"):
            Form(Slot("note", Sequence(graph)))
        assert repr(Slot("note", Sequence(Trie.from_sequences([[1]])))) == '<tokentrie.Slot "note": a sequence>'

    @pytest.mark.model
    def test_a_healed_beginning(self, model: Model) -> None:
        """The first part spells the end of the literal again; it is taken off there."""
        healed = Trie.from_strings(model.vocab, ["blue", "red"], "is ", heal=True)
        sequence = Sequence(healed, alone(model.vocab, (" now", " here")))
        form = Form("The sky is ", Slot("what", sequence))
        for seed in range(6):
            out = model.generate(self.PROMPT, form, mode="sampled", seed=seed, temperature=4.0)
            assert out.values["what"] in {colour + when for colour in ("blue", "red") for when in (" now", " here")}
            assert out.text == f"The sky is {out.values['what']}"


class TestEndTokens:
    TRIE = Trie.from_sequences([[1], [1, 2], [3]], ["a", "ab", "c"])

    def test_a_set_brings_them(self) -> None:
        trie = self.TRIE.with_end_tokens([9, 7, 9])
        assert (trie.end_tokens.tolist(), trie.end_tokens.dtype) == ([7, 9], np.int32)
        assert (self.TRIE.end_tokens.tolist(), self.TRIE.end_tokens.dtype) == ([], np.int32)
        assert (trie == self.TRIE, trie.with_end_tokens([]) == self.TRIE) == (False, True)
        with pytest.raises(VocabularyError):
            self.TRIE.with_end_tokens([-1])
        with pytest.raises(TypeError):
            self.TRIE.with_end_tokens(["a"])  # type: ignore[list-item]
        with pytest.raises(VocabularyError, match="end tokens: token id 9"):
            Sampler(9, trie)

    def test_samplers_use_them_unless_told_otherwise(self) -> None:
        trie = self.TRIE.with_end_tokens([9])
        for sampler in (Sampler(10, trie), Sampler(10, Sequence(self.TRIE, trie))):
            if len(sampler.allowed()) == 2 and sampler.depth == 0 and sampler.path == "":
                sampler.accept(3)
            if sampler.state == "active" and sampler.allowed().tolist() == [1, 3]:
                sampler.accept(3)
            assert (sampler.state, sampler.allowed().tolist()) == ("active", [9])
            sampler.accept(9)
            assert (sampler.state, sampler.leaf and sampler.leaf.name) == ("complete", "c")
        told = Sampler(10, trie, end_tokens=[8])
        told.accept(1)
        assert told.allowed().tolist() == [2, 8]
        none = Sampler(10, trie, end_tokens=[])
        none.accept(3)
        assert none.state == "complete"

    def test_they_are_pickled(self, tmp_path: Path) -> None:
        self.TRIE.save(path := tmp_path / "set.ttrie")
        graph = Trie.from_strings(Vocab.from_tokens([b"a", b"b", b"ab"]), ["ab"], tokenization="all")
        for trie in (self.TRIE, Trie.open(path), graph):
            made = trie.with_end_tokens([5, 6])
            again = pickle.loads(pickle.dumps(made))
            assert (again, again.end_tokens.tolist()) == (made, [5, 6])

    @pytest.mark.model
    @pytest.mark.parametrize("skip_ahead", [True, False])
    def test_models_use_them(self, model: Model, skip_ahead: bool) -> None:
        end = model.vocab.tokenize("\n")[0]
        plain = alone(model.vocab, tuple(VERBS))
        trie = plain.with_end_tokens([end])
        out = model.generate("It can ", trie, skip_ahead=skip_ahead)
        told = model.generate("It can ", plain, end_tokens=[end], skip_ahead=skip_ahead)
        assert (out.tokens, out.tokens[-1], out.leaf) == (told.tokens, end, told.leaf)
        own, given = model.choose("It can ", trie), model.choose("It can ", plain, end_tokens=[end])
        np.testing.assert_allclose(own.logprobs, given.logprobs, atol=1e-3)
        free = model.choose("It can ", trie, end_tokens=[])
        np.testing.assert_allclose(free.logprobs, model.choose("It can ", plain).logprobs, atol=1e-3)
