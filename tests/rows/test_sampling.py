"""`Sampling`: the settings of a draw as one value, in place of the single keywords."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from budget import cases
from models import precise_model
from tokentrie import Batch, Form, Model, Regex, Sampler, Sampling, Slot, Text, TokenTrieError, Trie, rules
from tokentrie.errors import OptionError
from tokentrie.sets import TrieCache

DEFAULTS: dict[str, Any] = {
    "mode": "greedy",
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "seed": None,
    "typical_p": 1.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "penalty_last_n": 64,
}
CHANGED: dict[str, Any] = {
    "mode": "sampled",
    "temperature": 0.7,
    "top_k": 40,
    "top_p": 0.9,
    "min_p": 0.05,
    "seed": 2**32 - 1,
    "typical_p": 0.95,
    "repeat_penalty": 1.1,
    "presence_penalty": -0.5,
    "frequency_penalty": 0.25,
    "penalty_last_n": -1,
}


def fields(sampling: Sampling) -> dict[str, Any]:
    return {name: getattr(sampling, name) for name in DEFAULTS}


def test_settings_are_as_they_were_given() -> None:
    assert fields(Sampling()) == DEFAULTS
    assert fields(Sampling(**CHANGED)) == CHANGED
    assert fields(Sampling("sampled", 0.7, 40, 0.9, 0.05, 2**32 - 1, 0.95, 1.1, -0.5, 0.25, -1)) == CHANGED
    assert Sampling.__match_args__ == tuple(CHANGED)
    assert (Sampling(0).mode, Sampling(1).mode) == ("greedy", "sampled")


DRAWS = {"temperature", "top_k", "top_p", "min_p", "typical_p"}


@pytest.mark.parametrize("name", [name for name in DEFAULTS if name != "mode"])
def test_a_setting_of_the_draw_means_a_draw(name: str) -> None:
    """As in JSON: penalties are for both modes, and a seed alone draws nothing. A mode that is given counts."""
    setting = {name: CHANGED[name]}
    assert Sampling(**setting).mode == ("sampled" if name in DRAWS else "greedy")
    assert Sampling("greedy", **setting).mode == Sampling().replace(**setting).mode == "greedy"
    assert Sampling(None, **setting) == Sampling(**setting)


@pytest.mark.model
def test_keywords_of_the_draw_mean_a_draw() -> None:
    model = precise_model("trained")
    drawn = {model.generate("Once", temperature=5.0, seed=seed, max_tokens=8).text for seed in range(8)}
    assert len(drawn) > 1
    assert model.generate("Once", temperature=5.0, seed=1, max_tokens=8).stats.seed == 1


@pytest.mark.parametrize("name", DEFAULTS)
def test_compares_by_content(name: str) -> None:
    one, same = Sampling(**{name: CHANGED[name]}), Sampling(**{name: CHANGED[name]})
    assert one == same
    assert hash(one) == hash(same)
    assert one != Sampling()
    assert hash(one) != hash(Sampling())
    assert one != CHANGED


def test_equal_values_in_other_words_are_equal() -> None:
    assert Sampling(mode=1) == Sampling(mode="sampled")
    assert Sampling(temperature=0) == Sampling(temperature=-0.0)
    assert hash(Sampling(temperature=0)) == hash(Sampling(temperature=-0.0))
    assert str(Sampling(temperature=-0.0).temperature) == "0.0"


@pytest.mark.parametrize("settings", [DEFAULTS, CHANGED, {"temperature": 1e-7, "min_p": 1 / 3}])
def test_what_is_shown_makes_the_same_value(settings: dict[str, Any]) -> None:
    sampling = Sampling(**settings)
    assert eval(repr(sampling), {"Sampling": Sampling}) == sampling
    assert pickle.loads(pickle.dumps(sampling)) == sampling
    assert copy.copy(sampling) == copy.deepcopy(sampling) == sampling


def test_it_does_not_change() -> None:
    sampling = Sampling()
    for name, value in CHANGED.items():
        with pytest.raises(AttributeError):
            setattr(sampling, name, value)
    with pytest.raises(AttributeError):
        sampling.other = 1  # type: ignore[attr-defined]
    assert fields(sampling) == DEFAULTS


@pytest.mark.parametrize("name", DEFAULTS)
def test_replace_changes_only_what_is_named(name: str) -> None:
    before, after = Sampling(**CHANGED), Sampling(**CHANGED).replace(**{name: DEFAULTS[name]})
    assert fields(before) == CHANGED
    assert fields(after) == CHANGED | {name: DEFAULTS[name]}
    assert before.replace() == before
    assert after.replace(**{name: CHANGED[name]}) == before


def test_replace_knows_the_names() -> None:
    with pytest.raises(TypeError, match="temprature"):
        Sampling().replace(temprature=1.0)  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="top_p is 2"):
        Sampling().replace(top_p=2.0)
    match Sampling(seed=7):
        case Sampling(mode="greedy", seed=seed):
            assert seed == 7
        case _:
            pytest.fail("the fields are attributes")


OUT_OF_RANGE = [
    ({"mode": "fast"}, 'mode is \'fast\': it must be "greedy" or 0, or "sampled" or 1'),
    ({"mode": "exact"}, "mode is 'exact'"),
    ({"mode": 2}, "mode is 2"),
    ({"temperature": -1.0}, "temperature is -1: it must be finite and at least 0"),
    ({"temperature": float("nan")}, "temperature is NaN"),
    ({"temperature": 1e39}, "temperature is inf"),
    ({"top_k": -1}, "top_k is -1"),
    ({"top_k": 2**32}, "top_k is 4294967296"),
    ({"top_p": 1.5}, "top_p is 1.5"),
    ({"min_p": -0.1}, "min_p is -0.1"),
    ({"typical_p": 1.01}, "typical_p is 1.01: it must be from 0 to 1"),
    ({"repeat_penalty": 0.0}, "repeat_penalty is 0: it must be finite and more than 0"),
    ({"repeat_penalty": -1.0}, "repeat_penalty is -1"),
    ({"presence_penalty": float("inf")}, "presence_penalty is inf: it must be finite"),
    ({"frequency_penalty": float("nan")}, "frequency_penalty is NaN: it must be finite"),
    ({"penalty_last_n": -2}, r"penalty_last_n is -2: it must be an integer from -1 to 2\*\*31 - 1"),
    ({"penalty_last_n": 2**31}, "penalty_last_n is 2147483648"),
    ({"seed": -1}, "seed is -1"),
    ({"seed": 2**32}, "seed is 4294967296"),
]


@pytest.mark.parametrize(("settings", "says"), OUT_OF_RANGE)
def test_checked_when_it_is_made(actions: str, settings: dict[str, Any], says: str) -> None:
    for make in (lambda: Sampling(**settings), lambda: Sampling().replace(**settings)):
        with pytest.raises(OptionError, match=says) as caught:
            make()
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, TokenTrieError)
    with pytest.raises(OptionError) as keywords:
        Sampler(10, actions, **settings)
    assert str(keywords.value) == str(caught.value), "the words are those of the keywords"


@pytest.mark.parametrize("settings", [{"temperature": "hot"}, {"temperature": None}, {"top_k": 1.5}, {"seed": "x"}])
def test_other_types_are_refused(settings: dict[str, Any]) -> None:
    for make in (Sampling, Sampling().replace):
        with pytest.raises(TypeError, match=r"must be real number|as an integer"):
            make(**settings)


def test_settings_are_listed_with_what_they_do() -> None:
    listed = {name: default for name, default, _, _ in Sampling.settings()}
    assert listed == {name: value for name, value in DEFAULTS.items() if name not in ("mode", "seed")}
    assert [name for name, default in listed.items() if isinstance(default, int)] == ["top_k", "penalty_last_n"]
    assert all(values and about for _, _, values, about in Sampling.settings())


@pytest.mark.model
def test_names_that_there_are_not_and_values_given_twice(actions: str) -> None:
    model = precise_model("trained")
    for call in (
        lambda **settings: Sampler(10, actions, **settings),
        lambda **settings: TrieCache().sampler(10, actions, **settings),
        lambda **settings: Batch(actions, 2, vocab=10, **settings),
        lambda **settings: model.generate("Is it?", ["yes", "no"], **settings),
        lambda **settings: model.stream("Is it?", ["yes", "no"], **settings),
        Sampling,
    ):
        with pytest.raises(TypeError, match="unexpected keyword argument 'tempreature'"):
            call(tempreature=0.5)  # type: ignore[no-untyped-call]
    with pytest.raises(TypeError, match="multiple values for argument 'temperature'"):
        Sampler(10, actions, 1, None, "free", 0.5, temperature=0.5)  # type: ignore[misc]
    with pytest.raises(TypeError, match="too many values"):
        Sampling("sampled", 1, 0, 1, 0, None, 1, 1, 0, 0, 64, 2)  # type: ignore[call-arg]
    rows = [np.arange(10, dtype=np.float32)] * 20
    by_name = Sampler(10, actions, 1, temperature=0.5, top_k=3, seed=4)
    by_place = Sampler(10, actions, 1, None, "free", 0.5, 3, 1.0, 0.0, 4)
    assert [by_place.sample(row) for row in rows] == [by_name.sample(row) for row in rows]


def test_typical_p_keeps_what_surprises_as_much_as_the_mean() -> None:
    """Against the definition, over many rows; a temperature of 0 would hide what is kept."""
    random = np.random.default_rng(5)
    trie = Trie.from_sequences([[token, 0] for token in range(1, 9)])
    for seed in range(cases(60)):
        row = random.normal(scale=2, size=10).astype(np.float32)
        logits = row[1:9].astype(np.float64)
        p = np.exp(logits - logits.max())
        p /= p.sum()
        distance = np.abs(-np.log(p) - -(p * np.log(p)).sum())
        order = np.argsort(distance)
        share = float(random.uniform(0.1, 0.9))
        kept = order[: np.searchsorted(np.cumsum(p[order]), share, side="right") + 1] + 1
        sampler = Sampler(10, trie, "sampled", temperature=50.0, seed=seed, typical_p=share)
        drawn = {sampler.sample(row) for _ in range(400)}
        assert drawn == {int(token) for token in kept}, (share, p)


PENALTIES: list[dict[str, Any]] = [
    {"repeat_penalty": 1.8},
    {"presence_penalty": 3.0},
    {"frequency_penalty": 1.5, "penalty_last_n": -1},
    {"repeat_penalty": 1.3, "presence_penalty": 1.0, "frequency_penalty": 0.5, "penalty_last_n": 3},
    {"repeat_penalty": 0.7, "presence_penalty": -1.0},
    {"repeat_penalty": 3.0, "presence_penalty": 5.0, "penalty_last_n": 0},
]


def penalised(row: np.ndarray, written: list[int], sampling: Sampling) -> np.ndarray:
    """A row after the penalties of what was written, as llama.cpp defines them."""
    last, row = sampling.penalty_last_n, row.copy()
    counted = written if last < 0 else written[max(len(written) - last, 0) :]
    for token in set(counted):
        repeat = np.float32(sampling.repeat_penalty)
        row[token] = row[token] * repeat if row[token] <= 0 else row[token] / repeat
        row[token] -= np.float32(counted.count(token) * sampling.frequency_penalty + sampling.presence_penalty)
    return row


@pytest.mark.model
@pytest.mark.parametrize("pattern", [None, "[a-z ]{10,30}", "(ab|ba|a){8}"])
def test_greedy_text_is_the_best_of_what_is_legal_after_penalties(pattern: str | None) -> None:
    model: Model = precise_model("trained")
    vocab, prompt = model.vocab, model.vocab.tokenize("One and one and one and")
    constraint = rules.Unconstrained() if pattern is None else Regex(pattern)
    plain = model.generate(prompt, constraint, max_tokens=16, on_invalid="none").tokens
    texts = []
    for settings in PENALTIES:
        sampling = Sampling(**settings)
        written = model.generate(prompt, constraint, max_tokens=16, sampling=sampling, on_invalid="none").tokens
        walk, own = Sampler(vocab, constraint), Sampler(vocab, constraint, sampling=sampling)
        for at, token in enumerate(written):
            row = model.logits([*prompt, *written[:at]])
            legal = walk.allowed()
            best = int(legal[np.argmax(penalised(row, written[:at], sampling)[legal])])
            assert token == best, (settings, at)
            assert own.sample(row) == best, (settings, at)
            walk.accept(token)
            own.accept(token)
        texts.append(written)
    assert texts[-1] == plain, "none of the last tokens counts"
    assert any(text != plain for text in texts[:-1])


@pytest.mark.model
def test_penalties_of_a_form_count_its_literals() -> None:
    """Each slot chooses anew, and all of them count what stands before."""
    model: Model = precise_model("trained")
    letters = ["x", "y", "z"]
    form = Form(*(part for name in "abc" for part in ("-", Slot(name, letters))))
    plain = model.generate("Letters: ", form)
    assert len(set(plain.values.values())) < 3, "the model repeats itself"
    varied = model.generate("Letters: ", form, presence_penalty=40.0)
    assert sorted(varied.values.values()) == letters
    for last in letters:
        written = "-".join(letter for letter in letters if letter != last)
        counted = Form(f"-{written}-", Slot("a", letters))
        assert model.generate("Letters: ", counted, presence_penalty=40.0).values["a"] == last


FACES: dict[str, Callable[..., Sampler]] = {"sampler": Sampler, "session": TrieCache().sampler}


@pytest.mark.parametrize("make", FACES.values(), ids=FACES)
def test_stands_for_the_keywords(actions: str, row: np.ndarray, make: Callable[..., Sampler]) -> None:
    def drawn(**options: Any) -> list[int]:
        sampler = make(10, actions, **options)
        return [sampler.sample(row) for _ in range(64)]

    settings = {"mode": "sampled", "temperature": 3.0, "seed": 7}
    assert drawn(sampling=Sampling(**settings)) == drawn(**settings)
    assert len(set(drawn(sampling=Sampling(**settings)))) == 2
    assert set(drawn(sampling=Sampling())) == set(drawn()) == {5}
    assert set(drawn(sampling=Sampling("sampled", top_k=1))) == {5}
    assert make(10, actions, sampling=Sampling(seed=7)).seed == 7
    assert drawn(sampling=None, **settings) == drawn(**settings)
    assert drawn(sampling=Sampling(**settings), seed=None) == drawn(**settings), "a seed of None says nothing"
    assert make(10, actions, sampling=Sampling(), end_tokens=[9]).trie == make(10, actions).trie


@pytest.mark.parametrize("make", FACES.values(), ids=FACES)
def test_an_open_seed_is_taken_anew_by_each_sampler(actions: str, make: Callable[..., Sampler]) -> None:
    sampling = Sampling("sampled")
    assert len({make(10, actions, sampling=sampling).seed for _ in range(8)}) > 1
    assert sampling.seed is None


@pytest.mark.model
@pytest.mark.parametrize("name", DEFAULTS)
def test_not_both(actions: str, name: str) -> None:
    """Not even with what is the default: who says it means it."""
    value = 0 if name == "seed" else DEFAULTS[name]
    model = precise_model("trained")
    for call in (
        lambda: Sampler(10, actions, **{name: value}, sampling=Sampling()),
        lambda: TrieCache().sampler(10, actions, **{name: value}, sampling=Sampling()),
        lambda: model.generate("Is it?", ["yes", "no"], **{name: value}, sampling=Sampling()),
    ):
        with pytest.raises(OptionError, match=rf"^{name} and sampling are both given"):
            call()


@pytest.mark.model
def test_all_that_is_given_twice_is_named(actions: str) -> None:
    with pytest.raises(OptionError, match=r"^temperature, seed and sampling are both given"):
        Sampler(10, actions, temperature=1.0, seed=1, sampling=Sampling())
    with pytest.raises(OptionError, match=r"^mode and sampling are both given"):
        precise_model("trained").generate("x", Form("x", Slot("y", ["z"])), mode="exact", sampling=Sampling())


@pytest.mark.model
@pytest.mark.parametrize("wrong", [{}, {"temperature": 1.0}, "greedy", 0, ("greedy", 1.0)])
def test_no_sampling(actions: str, wrong: Any) -> None:
    for make in FACES.values():
        with pytest.raises(TypeError, match="not an instance of 'Sampling'"):
            make(10, actions, sampling=wrong)
    with pytest.raises(TypeError, match="not an instance of 'Sampling'"):
        precise_model("trained").generate("Is it?", ["yes"], sampling=wrong)


FORM = Form("a ", Slot("what", ["cat", "dog", "bird"]), " ", Text("more", stop="!", max_tokens=4), "!")


@pytest.mark.model
@pytest.mark.parametrize("constraint", [None, ["blue", "red", "green"], FORM], ids=["free", "texts", "form"])
def test_generation_takes_it(constraint: Any) -> None:
    model: Model = precise_model("trained")
    settings: dict[str, Any] = {"mode": "sampled", "temperature": 2.0, "top_k": 30, "seed": 3}

    def tokens(**options: Any) -> list[int]:
        return model.generate("The sky is ", constraint, max_tokens=6, **options).tokens

    assert tokens(sampling=Sampling(**settings)) == tokens(**settings)
    assert tokens(sampling=Sampling()) == tokens()
    seeds = range(8)
    drawn = [tokens(sampling=Sampling(**settings).replace(seed=seed)) for seed in seeds]
    assert drawn == [tokens(**settings | {"seed": seed}) for seed in seeds]
    assert len(set(map(tuple, drawn))) > 1
