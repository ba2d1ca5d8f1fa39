"""`Model.choose` and `choose_many` against their definition: each value alone, token by token, in double precision."""

from __future__ import annotations

import itertools
import json
import random
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budget import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from models import PRECISE, precise_model, precise_path
from support import payload
from tokentrie import Choice, Model, TokenTrieError, Trie
from tokentrie.errors import ContextError, OptionError, PayloadError, TrieError, VocabularyError

pytestmark = pytest.mark.model

PROMPTS = ["The next action is ", "Is it?", "x", '<tool_call>\n{"name": "']
VALUES = [
    "REPLY",
    "REPLY_THREAD",
    "yes",
    "a value that shares everything but the end A",
    "no",
    "a value that shares everything but the end B",
    "cancel_meeting",
    "REPLY_THREAD_ALL",
]
QUESTIONS = Path(__file__).parents[2] / "tools" / "tiny_model" / "heldout.jsonl"

# Both ways sum in float32, in another order. After a long prompt the trained model makes 1.7e-4 of that, in improbable
# values; scoring in float64 from the same weights lies 2e-4 from either.
ROUNDING = {name: 1e-5 for name in PRECISE} | {"trained": 1e-4}  # noqa: C420
ROUNDING_LONG = 1e-3


def log_softmax(row: np.ndarray) -> np.ndarray:
    row = row.astype(np.float64) - row.max()
    return row - np.log(np.exp(row).sum())


def naive(model: Model, prompt: list[int], leaves: Sequence[Sequence[int]], ends: Iterable[int] = ()) -> np.ndarray:
    """The definition."""
    ending, rows = set(ends), dict[tuple[int, ...], np.ndarray]()

    def after(prefix: Sequence[int]) -> np.ndarray:
        if tuple(prefix) not in rows:
            rows[tuple(prefix)] = log_softmax(model.logits([*prompt, *prefix]))
        return rows[tuple(prefix)]

    def score(leaf: Sequence[int]) -> float:
        score = sum(after(leaf[:n])[token] for n, token in enumerate(leaf))
        children = {other[len(leaf)] for other in leaves if len(other) > len(leaf) and other[: len(leaf)] == leaf}
        if ending:
            score += np.logaddexp.reduce(after(leaf)[sorted(ending - children)], initial=-np.inf)
        elif children:
            score += np.logaddexp.reduce(np.delete(after(leaf), sorted(children)))
        return score

    return np.array([score(leaf) for leaf in leaves])


def tokens(model: Model, values: Iterable[str]) -> list[list[int]]:
    return [model.vocab.tokenize(value) for value in values]


def ids(model: Model, prompt: str) -> list[int]:
    return model.vocab.tokenize(prompt, add_special=True, parse_special=True)


def worst(choice: Choice, expected: np.ndarray) -> float:
    return float(np.abs(choice.logprobs - expected).max())


def shares(choice: Choice) -> np.ndarray:
    return np.array([choice[index] for index in range(len(choice))])


def check_whole(choice: Choice) -> None:
    """What holds where every value was scored."""
    logprobs = choice.logprobs
    assert logprobs.dtype == np.float64
    assert sum(choice.probabilities.values()) == pytest.approx(1, abs=1e-6)
    assert logprobs.max() <= 0
    assert choice.mass == pytest.approx(np.exp(logprobs).sum(), rel=1e-9)
    assert choice.mass_bounds == (choice.mass, choice.mass)
    assert choice.ranking.tolist() == sorted(range(len(logprobs)), key=lambda value: -logprobs[value])
    assert choice.index == choice.ranking[0]


def same(one: Choice, other: Choice, atol: float = 0) -> bool:
    return one.name == other.name and np.allclose(one.logprobs, other.logprobs, rtol=0, atol=atol)


@pytest.fixture
def model() -> Model:
    return precise_model("trained")


@pytest.mark.parametrize("name", PRECISE)
def test_equals_scoring_each_value_token_by_token(name: str) -> None:
    model = precise_model(name)
    for prompt in PROMPTS[:2] if name == "qwen2" else PROMPTS:
        for ends in ([], model.vocab.eog):
            choice = model.choose(ids(model, prompt), VALUES, end_tokens=ends)
            expected = naive(model, ids(model, prompt), tokens(model, VALUES), ends)
            assert worst(choice, expected) < ROUNDING[name]  # measured: 3.3e-6; 3.2e-5 for the trained model
            assert choice.name == VALUES[choice.index] == VALUES[expected.argmax()]
            check_whole(choice)


@pytest.mark.parametrize("name", PRECISE[1:3])
def test_llama_cpps_defaults_on_float32_weights(name: str) -> None:
    model = Model(precise_path(name), n_ctx=512, n_threads=1)
    for prompt in PROMPTS:
        choice = model.choose(ids(model, prompt), VALUES)
        # Measured: 2.3e-4.
        assert worst(choice, naive(model, ids(model, prompt), tokens(model, VALUES))) < 1e-3


def test_llama_cpps_defaults_on_the_model_of_the_package() -> None:
    """Flash attention and float16 round more: in 400 held-out questions by 3e-4 (median), once by 0.1."""
    model = Model(n_ctx=2048, n_threads=1)
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    for row in map(json.loads, random.Random(0).sample(lines, 12)):
        expected = naive(model, ids(model, row["prompt"]), tokens(model, row["choices"]))
        choice = model.choose(row["prompt"], row["choices"])
        difference = np.abs(choice.logprobs - expected)
        assert np.median(difference) < 0.05
        # Measured over the 400: 0.013 at most.
        assert np.abs(np.exp(choice.logprobs) - np.exp(expected)).max() < 0.03
        check_whole(choice)


def test_long_prompts(model: Model) -> None:
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    for row in map(json.loads, random.Random(1).sample(lines, 12)):
        expected = naive(model, ids(model, row["prompt"]), tokens(model, row["choices"]))
        choice = model.choose(row["prompt"], row["choices"])
        assert worst(choice, expected) < ROUNDING_LONG
        assert choice.index == expected.argmax()
        check_whole(choice)


SEQUENCES = st.lists(st.lists(st.integers(300, 306), min_size=1, max_size=5), min_size=1, max_size=12)
ENDS = st.lists(st.integers(304, 309), max_size=3, unique=True)


@settings(max_examples=cases(60), deadline=None)
@given(SEQUENCES, ENDS, st.integers(1, 14), st.lists(st.integers(300, 309), min_size=1, max_size=4))
def test_any_set_of_sequences(leaves: list[list[int]], ends: list[int], top: int, prompt: list[int]) -> None:
    """Prefixes of each other, end tokens that are children, sets of one."""
    model, trie = precise_model("tiny"), Trie.from_sequences(leaves)
    expected = naive(model, prompt, [leaf.tokens for leaf in trie], ends)
    with np.errstate(under="ignore"):
        mass = np.exp(expected).sum()
    possible = expected > -np.inf  # where every end token goes on to another leaf, no value may end there
    choice = model.choose(prompt, trie, end_tokens=ends)
    assert ((choice.logprobs > -np.inf) == possible).all()
    np.testing.assert_allclose(choice.logprobs[possible], expected[possible], rtol=0, atol=1e-5)
    check_whole(choice)

    few = model.choose(prompt, trie, end_tokens=ends, top=top)
    assert len(few.ranking) == min(top, len(trie))
    best = np.sort(expected)[::-1][: len(few.ranking)]
    np.testing.assert_allclose(np.exp(few.logprobs[few.ranking]), np.exp(best), rtol=1e-4)
    assert few.index == few.ranking[0]
    low, high = few.mass_bounds
    assert few.mass == low <= mass * (1 + 1e-5)
    assert high >= mass * (1 - 1e-5)
    scored = ~np.isnan(few.logprobs)
    np.testing.assert_allclose(np.exp(few.logprobs[scored]), np.exp(expected[scored]), rtol=1e-4)
    assert (shares(few)[scored] <= shares(choice)[scored] + 1e-5).all()


def test_an_end_token_given_twice_counts_once(model: Model) -> None:
    assert same(model.choose("Is it?", VALUES, end_tokens=[2, 2]), model.choose("Is it?", VALUES, end_tokens=[2]))


def test_the_order_is_that_of_the_list(model: Model) -> None:
    expected = model.choose("Is it?", VALUES)
    for order in ([7, 3, 1, 5, 0, 2, 4, 6], range(7, -1, -1)):
        choice = model.choose("Is it?", tuple(VALUES[at] for at in order))
        assert choice.name == expected.name
        assert order[choice.index] == expected.index
        assert (choice.logprobs == expected.logprobs[order]).all()
    trie = Trie.from_strings(model.vocab, VALUES)
    data = payload({leaf.name or "": leaf.tokens for leaf in trie})
    for form in (trie, data, json.dumps(data), json.dumps(data).encode()):
        choice = model.choose("Is it?", form)
        assert choice.name == expected.name
        assert (choice.logprobs == [expected.logprobs[VALUES.index(leaf.name or "")] for leaf in trie]).all()
    unnamed = model.choose("Is it?", Trie.from_sequences([leaf.tokens for leaf in trie]))
    assert (unnamed.name, unnamed.index) == (None, choice.index)
    assert (unnamed.logprobs == choice.logprobs).all()


def test_text_around_the_values(model: Model) -> None:
    trie = Trie.from_strings(model.vocab, VALUES, prefix='"', suffix='"')
    around = model.choose("The name: ", VALUES, prefix='"', suffix='"')
    expected = naive(model, ids(model, "The name: "), [leaf.tokens for leaf in trie])
    np.testing.assert_allclose(around.logprobs, expected[[trie_row(trie, value) for value in VALUES]], atol=1e-4)
    assert (around.logprobs != model.choose("The name: ", VALUES).logprobs).all()


def trie_row(trie: Trie, name: str) -> int:
    return next(leaf.index for leaf in trie if leaf.name == name)


def test_names_of_special_tokens_are_plain_text(model: Model) -> None:
    values = ["<|im_end|>", "<|im_start|>", "<tool_call>", "yes"]
    choice = model.choose("Is it?", values)
    plain = tokens(model, values)
    assert not set(itertools.chain(*plain)) & set(model.vocab.control)
    assert worst(choice, naive(model, ids(model, "Is it?"), plain)) < ROUNDING["trained"]
    end = log_softmax(model.logits("Is it?"))[2]
    assert abs(choice.logprobs[0] - end) > 1, "the model's own end of turn is something else"


BIG = Trie.from_sequences([[7] * 1100, [8]])
REJECTED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "repeated": ({"choices": ["yes", "no", "yes"]}, TrieError, 'value 2, "yes", repeats value 0'),
    "empty": ({"choices": ["yes", ""]}, TrieError, "value 1 is empty"),
    "none": ({"choices": []}, TrieError, "no leaf"),
    "no text": ({"choices": ["yes", 5]}, TypeError, "5.* of type int|'int'"),
    "bytes": ({"choices": [b"yes"]}, TypeError, "bytes"),
    "a list in it": ({"choices": ["yes", ["no"]]}, TypeError, "list"),
    "a number": ({"choices": 5}, TypeError, "int"),
    "nothing": ({"choices": None}, TypeError, "NoneType"),
    "no payload": ({"choices": "yes"}, PayloadError, "line 1, column 1"),
    "half a character": ({"choices": ["\ud800"]}, VocabularyError, "value 0: half a surrogate pair"),
    "value too long": ({"choices": ["x " * 2000]}, ContextError, "context of 1024"),
    "leaf too long": ({"choices": BIG}, ContextError, "context of 1024"),
    "leaf too long for the best": ({"choices": BIG, "top": 1}, ContextError, "context of 1024"),
    "trie outside": ({"choices": Trie.from_sequences([[10**9]])}, VocabularyError, "the model has 2554"),
    "prefix of a trie": ({"choices": BIG, "prefix": "x"}, OptionError, "prefix, suffix"),
    "prefix runs on": ({"choices": ["s"], "prefix": "ye"}, OptionError, r'spells "ye" again .* ends with .*"\?"'),
    "prefix of another type": ({"prefix": 5}, TypeError, "int"),
    "no prompt": ({"prompt": []}, OptionError, "the prompt has no tokens"),
    "empty prompt": ({"prompt": ""}, OptionError, "the prompt has no tokens"),
    "prompt too long": ({"prompt": [5] * 1025}, ContextError, "room for 1024"),
    "prompt too long for the best": ({"prompt": [5] * 1025, "top": 1}, ContextError, "room for 1024"),
    "prompt outside": ({"prompt": [5, 10**9]}, VocabularyError, "token id 1000000000 at position"),
    "prompt of another type": ({"prompt": 5}, TypeError, "prompt, .*5 of type int"),
    "best none": ({"top": 0}, OptionError, "top is 0: it must be from 1"),
    "best fewer": ({"top": -1}, OptionError, "top is -1"),
    "best more": ({"top": 2**40}, OptionError, "top is 1099511627776"),
    "best half": ({"top": 1.5}, TypeError, "float"),
    "end tokens outside": ({"end_tokens": [2, 10**9]}, VocabularyError, "token id 1000000000 at position 1"),
    "end tokens negative": ({"end_tokens": [-1]}, VocabularyError, "end_tokens, position 0: token id -1"),
    "end tokens of another type": ({"end_tokens": 5}, TypeError, "end_tokens, .*5 of type int"),
}


@pytest.mark.parametrize(("wrong", "error", "says"), REJECTED.values(), ids=REJECTED)
def test_rejected(model: Model, wrong: dict[str, Any], error: type[Exception], says: str) -> None:
    before = model.choose("Is it?", VALUES)
    with pytest.raises(error, match=says) as caught:
        model.choose(**{"prompt": "Is it?", "choices": VALUES, **wrong})
    assert isinstance(caught.value, TokenTrieError | TypeError | UnicodeError)
    arguments = {"prompts": ["Is it?", wrong.get("prompt", "Is it?")], "choices": VALUES, **wrong}
    arguments.pop("prompt", None)
    with pytest.raises(error, match=says):
        list(model.choose_many(**arguments))
    assert same(model.choose("Is it?", VALUES), before, ROUNDING["trained"])


def test_a_prompt_token_outside_is_placed(model: Model) -> None:
    with pytest.raises(VocabularyError, match="token id 1000000000 at position 2"):
        model.choose([5, 6, 10**9], VALUES)
    choices = model.choose_many([[5, 6, 7, 8]] * 40 + [[5, 6, 10**9]], VALUES)
    assert len([next(choices) for _ in range(40)]) == 40, "what comes before a bad prompt is good"
    with pytest.raises(VocabularyError, match="prompt 40: token id 1000000000 at position 2"):
        next(choices)


def test_a_full_context() -> None:
    """The last token of a value needs no room: its row is never read."""
    small = Model(n_ctx=32, n_threads=1)
    single, double = Trie.from_sequences([[7], [8]]), Trie.from_sequences([[7, 9], [8, 9]])
    check_whole(small.choose([5] * 32, single))
    check_whole(small.choose([5] * 31, double))
    for prompt, trie in (([5] * 33, single), ([5] * 32, double)):
        with pytest.raises(ContextError, match=r"room for 32|context of 32"):
            small.choose(prompt, trie)
    with pytest.raises(ContextError, match="context of 32"):
        small.choose([5] * 32, single, end_tokens=[2])


def test_a_full_context_with_top() -> None:
    small, single = Model(n_ctx=32, n_threads=1), Trie.from_sequences([[7], [8]])
    assert small.choose([5] * 32, single, top=1).index == small.choose([5] * 32, single).index


def inner(leaves: Iterable[Sequence[int]]) -> set[tuple[int, ...]]:
    """The positions below the root after which a token has to be scored."""
    return {tuple(leaf[:n]) for leaf in leaves for n in range(1, len(leaf))}


def test_a_hundred_labels_take_one_pass_after_the_prompt(model: Model) -> None:
    labels = [f"label{number}" for number in range(100)]
    prompt = ids(model, "The label of this text is ")
    nodes = len(inner(tokens(model, labels)))
    model.clear()
    fresh = model.choose(prompt, labels)
    stats = fresh.stats
    assert stats.forward_passes == 2, "the prompt and the set"
    assert (stats.tokens_decoded, stats.rows) == (len(prompt) + nodes, 1 + nodes)
    assert stats.n_threads == 1
    assert stats.seconds > 0
    as_dict = stats.to_dict()
    assert json.loads(json.dumps(as_dict)) == as_dict == {name: getattr(stats, name) for name in as_dict}
    again = model.choose(prompt, labels)
    assert (again.stats.forward_passes, again.stats.tokens_decoded) == (1, 1 + nodes)
    assert (again.logprobs == fresh.logprobs).all()
    assert repr(stats).startswith("ChoiceStats(forward_passes=2")
    assert repr(fresh).startswith(f'<tokentrie.Choice: "{fresh.name}" of 100, probability 0.')


def test_the_best_three_of_five_thousand(model: Model) -> None:
    numbers = np.random.default_rng(0)
    columns = numbers.choice(20, 5000) + 300, numbers.choice(40, 5000) + 400, numbers.integers(6, 2500, 5000)
    trie = Trie.from_sequences(np.stack(columns, 1))
    leaves = np.array([leaf.tokens for leaf in trie])
    first = log_softmax(model.logits([9]))
    second = {one: log_softmax(model.logits([9, one])) for one in np.unique(leaves[:, 0]).tolist()}
    third = {pair: log_softmax(model.logits([9, *pair])) for pair in set(map(tuple, leaves[:, :2].tolist()))}
    expected = np.array([first[a] + second[a][b] + third[a, b][c] for a, b, c in leaves.tolist()])

    whole = model.choose([9], trie)
    assert worst(whole, expected) < ROUNDING["trained"]
    check_whole(whole)
    few = model.choose([9], trie, top=3)
    assert few.ranking.tolist() == np.argsort(-expected)[:3].tolist() == whole.ranking[:3].tolist()
    np.testing.assert_allclose(few.logprobs[few.ranking], expected[few.ranking], atol=ROUNDING["trained"])
    low, high = few.mass_bounds
    assert few.mass == low < np.exp(expected).sum() < high
    assert few.stats.rows < whole.stats.rows / 2
    scored = ~np.isnan(few.logprobs)
    assert 3 <= scored.sum() < len(trie)
    assert (shares(few)[scored] <= shares(whole)[scored]).all()


def test_the_best_of_a_hundred_thousand(model: Model) -> None:
    numbers = np.random.default_rng(1)
    columns = numbers.choice(1000, 100_000) + 6, numbers.integers(6, len(model.vocab), 100_000)
    trie, prompt = Trie.from_sequences(np.stack(columns, 1)), ids(model, PROMPTS[0])
    leaves = np.array([leaf.tokens for leaf in trie])
    first, begins = np.unique(leaves[:, 0], return_index=True)
    below = np.split(leaves[:, 1], begins[1:])
    row = log_softmax(model.logits(prompt))
    rows = {token: log_softmax(model.logits([*prompt, token])) for token in first.tolist()}
    expected = np.concatenate([row[a] + rows[a][b] for a, b in zip(first.tolist(), below, strict=True)])

    best = model.choose(prompt, trie, top=3)
    assert best.ranking.tolist() == np.argsort(-expected)[:3].tolist()
    low, high = best.mass_bounds
    assert low < np.exp(expected).sum() < high
    assert best.stats.rows < len(rows) / 5  # measured: 6 %


def test_a_large_set_is_searched_best_first(model: Model) -> None:
    """Where scoring all would take too many rows, the best value is found and little else is read."""
    sequences = np.random.default_rng(2).integers(6, len(model.vocab), (100_000, 3))
    trie = Trie.from_sequences(sequences)
    choice = model.choose([9], trie)
    assert len(choice.ranking) == 1
    assert choice.stats.rows < 100_000 / 10  # measured: 4 %
    leaf = trie.leaf(choice.index)
    assert leaf is not None
    (score,) = naive(model, [9], [leaf.tokens])
    assert choice.logprobs[choice.index] == pytest.approx(score, abs=ROUNDING["trained"])
    assert np.nanmax(choice.logprobs) == choice.logprobs[choice.index]
    # What was not scored lies below a prefix that is no more probable than the best value.
    row, rows = log_softmax(model.logits([9])), dict[int, np.ndarray]()
    for index in np.random.default_rng(3).choice(np.flatnonzero(np.isnan(choice.logprobs)), 300, replace=False):
        a, b, _ = trie.leaf(int(index)).tokens  # type: ignore[union-attr]
        if a not in rows:
            rows[a] = log_softmax(model.logits([9, a]))
        assert row[a] + rows[a][b] <= score + ROUNDING["trained"]


# choose_many


SHARED = "Label the review: positive, negative or neutral. "
REVIEWS = ["I loved it", "It was a terrible movie", "ok", "I loved it", "", "The show is so brilliant"]
LABELS = ["positive", "negative", "neutral"]


@pytest.mark.parametrize("name", ["trained", "tiny", "llama-spm"])
def test_many_prompts_as_one_by_one(name: str) -> None:
    if name not in PRECISE:
        pytest.skip(f"no vocabulary {name}")
    model = precise_model(name)
    prompts: list[Any] = [f"{SHARED}{review} {number}" for number, review in enumerate(REVIEWS * 12)]
    prompts[5] = ids(model, prompts[5])
    prompts[40] = np.array(ids(model, prompts[40]))
    for options in ({}, {"end_tokens": [2]}, {"top": 2}):
        together = list(model.choose_many(prompts, LABELS, **options))
        assert len(together) == len(prompts)
        for prompt, choice in zip(prompts, together, strict=True):
            alone = model.choose(prompt, LABELS, **options)
            assert same(choice, alone, ROUNDING[name])
            if "top" not in options:
                check_whole(choice)
    assert list(model.choose_many([], LABELS)) == []


def test_prompts_are_read_a_group_at_a_time(model: Model) -> None:
    read = 0

    def endless() -> Iterator[list[int]]:
        nonlocal read
        for number in itertools.count(10):
            read += 1
            yield [9, number % 200]

    choices = model.choose_many(endless(), LABELS)
    assert iter(choices) is choices
    assert read == 0, "nothing is read before it is asked for"
    for taken in range(70):
        assert same(next(choices), model.choose([9, (taken + 10) % 200], LABELS), ROUNDING["trained"])
        assert taken < read <= (taken // 32 + 1) * 32


def test_what_prompts_share_is_decoded_once(model: Model) -> None:
    prompts = [ids(model, SHARED + review) for review in REVIEWS]
    shared = next(n for n, column in enumerate(zip(*prompts, strict=False)) if len(set(column)) > 1)
    set_of_each = len(inner(tokens(model, LABELS)))
    model.clear()
    stats = next(model.choose_many(prompts, LABELS)).stats
    assert stats.tokens_decoded == shared + sum(len(prompt) - shared + set_of_each for prompt in prompts)
    assert stats.forward_passes == 2
    alone = 0
    for prompt in prompts:
        model.clear()
        alone += model.choose(prompt, LABELS).stats.tokens_decoded
    assert alone - stats.tokens_decoded == shared * (len(prompts) - 1)


@pytest.mark.parametrize("prompts", ["Is it?", b"Is it?", [1, 2], 5, None])
def test_what_is_no_iterable_of_prompts(model: Model, prompts: Any) -> None:
    says = "not one str: give it to `choose`" if isinstance(prompts, str) else type(prompts).__name__ + "|int"
    with pytest.raises(TypeError, match=says):
        list(model.choose_many(prompts, LABELS))
    assert same(next(model.choose_many(["Is it?"], VALUES)), model.choose("Is it?", VALUES), ROUNDING["trained"])


def test_an_exception_of_the_prompts_comes_through(model: Model) -> None:
    before = model.choose("Is it?", VALUES)

    def prompts() -> Iterator[str]:
        yield from ["Is it?"] * 35
        raise KeyError("the end")

    choices = model.choose_many(prompts(), VALUES)
    first = [next(choices) for _ in range(35)]
    assert all(same(choice, before, ROUNDING["trained"]) for choice in first)
    with pytest.raises(KeyError, match="the end"):
        next(choices)
    assert same(model.choose("Is it?", VALUES), before, ROUNDING["trained"])
    assert list(choices) == [], "the prompts are over"


BAD = ["Is it?", "word " * 9000, 5, "Is it?", [10**6]]


def test_a_bad_prompt_is_named(model: Model) -> None:
    for at, kind in ((1, ContextError), (2, TypeError), (4, VocabularyError)):
        choices = model.choose_many([*["Is it?"] * 40, BAD[at]], VALUES)
        with pytest.raises(kind, match=r"^prompt 40: "):
            list(choices)


def test_bad_prompts_are_passed_over(model: Model) -> None:
    alone = model.choose("Is it?", VALUES)
    given = list(model.choose_many(BAD * 20, VALUES, on_error="return"))
    assert [type(one) for one in given] == [Choice, ContextError, TypeError, Choice, VocabularyError] * 20
    for number, one in enumerate(given):
        if isinstance(one, Choice):
            assert same(one, alone, ROUNDING["trained"])
        else:
            assert str(one).startswith(f"prompt {number}: ")
    choices = model.choose_many(BAD * 20, VALUES, on_error="skip")
    assert len(list(choices)) == 40
    assert choices.skipped == [number for number in range(100) if number % 5 not in (0, 3)]
    none = model.choose_many([5] * 40, VALUES, on_error="skip")  # type: ignore[list-item]
    assert (list(none), none.skipped) == ([], [*range(40)])


def test_what_is_no_prompts_fault_is_raised(model: Model) -> None:
    def broken() -> Iterator[str]:
        yield "Is it?"
        raise KeyError("the end")

    for on_error in ("skip", "return"):
        choices = model.choose_many(broken(), VALUES, on_error=on_error)  # type: ignore[call-overload]
        assert same(next(choices), model.choose("Is it?", VALUES), ROUNDING["trained"])
        with pytest.raises(KeyError, match="the end"):
            next(choices)
        with pytest.raises(TrieError):
            list(model.choose_many(["Is it?"], ["a", "a"], on_error=on_error))  # type: ignore[call-overload]
    with pytest.raises(OptionError, match='on_error is "ignore"'):
        model.choose_many([], VALUES, on_error="ignore")  # type: ignore[call-overload]


def test_progress(model: Model) -> None:
    calls: list[tuple[int, int | None]] = []
    note = lambda done, total: calls.append((done, total))  # noqa: E731
    list(model.choose_many(["Is it?"] * 70, VALUES, progress=note))
    list(model.choose_many(iter(["Is it?"] * 3), VALUES, progress=note))
    assert calls == [(32, 70), (64, 70), (70, 70), (3, None)]

    def stop(done: int, total: int | None) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        list(model.choose_many(["Is it?"], VALUES, progress=stop))


def test_prompts_may_use_the_model(model: Model) -> None:
    prompts = (model.generate(prompt, VALUES).tokens for prompt in PROMPTS)
    choices = list(model.choose_many(prompts, LABELS))
    for prompt, choice in zip(PROMPTS, choices, strict=True):
        assert same(choice, model.choose(model.generate(prompt, VALUES).tokens, LABELS), ROUNDING["trained"])


def test_several_threads(model: Model) -> None:
    prompts = [SHARED + review for review in REVIEWS]
    expected = [model.choose(prompt, LABELS) for prompt in prompts]

    def work(number: int) -> None:
        order = [(number + step) % len(prompts) for step in range(12)]
        for at, choice in zip(order, model.choose_many((prompts[at] for at in order), LABELS), strict=True):
            assert same(choice, expected[at], ROUNDING["trained"])
            assert same(model.choose(prompts[at], LABELS), expected[at], ROUNDING["trained"])

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, number) for number in range(4)]:
            done.result(timeout=60)


def test_one_iterator_shared_by_threads(model: Model) -> None:
    """As an iterator over the leaves of a trie: each choice goes to one of them."""
    asked = threading.Event()

    def prompts() -> Iterator[list[int]]:
        asked.set()
        threading.Event().wait(0.1)
        yield from ([9, number] for number in range(10, 50))

    choices = model.choose_many(prompts(), LABELS)
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(list, choices)
        assert asked.wait(60)
        other = pool.submit(list, choices)
        assert len(one.result(60)) + len(other.result(60)) == 40


# Why not simply walk


def test_a_greedy_walk_misses_the_most_probable_value() -> None:
    """What begins with `send` is more probable than `open`, but no single value of it is."""
    names = ["open_door", "send_flight", "send_car", "send_event"]
    messages = [{"role": "system", "content": "Answer with one name."}, {"role": "user", "content": "do it"}]
    for model in (Model(n_ctx=512, n_threads=1), precise_model("trained")):
        prompt = model.chat_prompt(messages)
        choice = model.choose(prompt, names)
        assert choice.name == "open_door"
        # 0.42 against 0.58: the walk goes the other way, and ends in the flight.
        assert model.generate(prompt, names).text == "send_flight"
        assert shares(choice) == pytest.approx([0.42, 0.29, 0.17, 0.12], abs=0.03)
