"""Readouts of decisions: ends and spellings of options, solved examples, none of them, and prediction sets."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tokentrie import Model
from tokentrie.decisions import AskedPrompt
from tokentrie.errors import ContextError, OptionError, TokenTrieWarning

pytestmark = pytest.mark.model
STATE = "Customer: I was charged twice, refund one please."


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(n_threads=1, precise=True) as model:
        yield model


def continues_a_word(piece: bytes) -> bool:
    """Whether a token continues the word before it, or begins inside a character."""
    text = piece.decode("utf-8", errors="replace")
    return not text or text[0] == "\ufffd" or text[0] == "_" or text[0].isalnum()


def enumerated(model: Model, prompt: AskedPrompt, end: str) -> list[float]:
    """The probability of each option in float64, text by text: its tokens, then one that may follow it."""
    follow = set(prompt.end_tokens)
    if end == "optional":
        control = set(model.vocab.control)
        pieces = {id: model.vocab.detokenize_bytes([id]) for id in range(len(model.vocab)) if id not in control}
        follow |= {id for id, piece in pieces.items() if piece and not continues_a_word(piece)}
    texts = [tuple(model.vocab.tokenize(text)) for text in prompt.values]
    after: dict[tuple[int, ...], np.ndarray] = {}

    def shares(tokens: tuple[int, ...]) -> np.ndarray:
        if tokens not in after:
            logits = model.logits([*prompt.tokens, *tokens]).astype(np.float64)
            after[tokens] = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        return after[tokens]

    options = [0.0] * (max(prompt.options) + 1)
    for tokens, option in zip(texts, prompt.options, strict=True):
        share = 1.0
        for at, token in enumerate(tokens):
            share *= shares(tokens[:at])[token]
        # What goes on to a longer text belongs to that.
        longer = {other[len(tokens)] for other in texts if other[: len(tokens)] == tokens != other}
        options[option] += share * shares(tokens)[sorted(follow - longer)].sum()
    return options


@pytest.mark.parametrize("end", ["optional", "required"])
@pytest.mark.parametrize("spellings", [True, False])
@pytest.mark.parametrize("readout", ["text", "label"])
def test_probabilities_are_those_of_an_enumeration(model: Model, end: Any, spellings: bool, readout: Any) -> None:
    questions: dict[str, Any] = {"refund": bool, "team": ["billing", "billing desk", "access"]}
    answers = model.decide(STATE, questions, end=end, spellings=spellings, readout=readout)
    for answer in answers.values():
        expected = enumerated(model, answer.prompts[0], end)
        assert answer.mass == pytest.approx(sum(expected), abs=1e-3)
        assert list(answer.probabilities.values()) == pytest.approx([one / sum(expected) for one in expected], abs=1e-3)
        assert sum(answer.prompts[0].probabilities) == pytest.approx(answer.mass, abs=1e-6)
        assert (len(answer.prompts[0].values) > len(answer.probabilities)) is spellings


def test_tokens_that_end_a_word_are_those_that_do_not_continue_it(model: Model) -> None:
    found = set(model.vocab.boundary_tokens)
    for id in range(len(model.vocab)):
        is_text = id not in set(model.vocab.control) and id not in set(model.vocab.eog)
        piece = model.vocab.detokenize_bytes([id])
        assert (id in found) == bool(is_text and piece and not continues_a_word(piece)), piece


def test_none_of_the_options_is_an_option(model: Model) -> None:
    answers = model.decide(STATE, {"team": ["billing", "access"], "refund": bool}, none_of_these=True)
    assert list(answers["team"].probabilities) == ["billing", "access", None]
    assert list(answers["refund"].probabilities) == [True, False]
    said = answers["team"].to_dict()["probabilities"]
    assert [option["value"] for option in said] == ["billing", "access", None]
    with pytest.raises(OptionError, match="already"):
        model.decide(STATE, {"team": ["none of these", "access"]}, none_of_these=True)


def test_solved_examples_are_turns(model: Model) -> None:
    examples = [("I cannot log in.", {"team": "access"}), {"state": "Pay me.", "answers": {"team": "billing"}}]
    answer = model.decide(STATE, {"team": ["billing", "access"], "refund": bool}, examples=examples)
    shown = model.vocab.detokenize(answer["team"].prompts[0].tokens)
    assert 0 < shown.index("I cannot log in.") < shown.index("Pay me.") < shown.index("charged twice")
    assert "Pay me." not in model.vocab.detokenize(answer["refund"].prompts[0].tokens)


@pytest.mark.parametrize(
    ("examples", "error", "says"),
    [
        ([("s", {"team": "sales"})], OptionError, r'examples\[0\].answers.team: "sales" is not an answer'),
        ([("s", {"tema": "billing"})], OptionError, r"examples\[0\].answers.tema"),
        ([("s", "billing")], TypeError, r"examples\[0\] must be a dict by question, not str"),
        (["s"], TypeError, r"examples\[0\] must be a pair of a state and its answers, or a dict, not str"),
        ([{"state": "s"}], OptionError, r"examples\[0\]: expected the keys state and answers, got state"),
        ([(1, {"team": "billing"})], TypeError, r"examples\[0\] must be a str, a dict or a list, not int"),
    ],
)
def test_wrong_examples_are_named(model: Model, examples: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        model.decide(STATE, {"team": ["billing", "access"]}, examples=examples)


def test_a_small_mass_is_a_warning_with_remedies(model: Model) -> None:
    options: Any = {"end": "required", "spellings": False, "list_options": False, "prompt": "{state}"}
    with pytest.warns(TokenTrieWarning, match='end="optional".*solved examples') as caught:
        answers = model.decide_many(["It rains."] * 3, {"team": ["xylophone", "quartz"]}, **options)
    assert [str(one.message) for one in caught] == [answers[2]["team"].warning]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.decide("The lamp is on.", {"on": bool})["on"].warning is None


def reviews(count: int, seed: int) -> tuple[list[str], list[str]]:
    """Reviews of some words, and whether they are good: every fifth says it the other way round, for mistakes."""
    random_ = random.Random(seed)
    words = {"positive": ["great", "good", "excellent"], "negative": ["terrible", "awful", "bad"]}
    states, gold = [], []
    for _ in range(count):
        label = random_.choice(list(words))
        thing = random_.choice(["service", "food", "room", "film"])
        said = label if random_.random() < 0.8 else next(other for other in words if other != label)
        states.append(f"The {thing} was {random_.choice(words[said])}, {random_.randrange(10**6)}.")
        gold.append(label)
    return states, gold


def test_a_calibration_says_when_to_abstain_and_what_to_keep(model: Model) -> None:
    questions = {"label": ["positive", "negative", "neutral"]}
    states, gold = reviews(120, 1)
    calibration = model.calibrate(states, questions, {"label": gold})
    fitted = calibration.questions["label"]
    assert all(0 < cut.share <= 1 and cut.low <= cut.accuracy <= cut.high for cut in fitted.cuts)
    assert all(cut.accuracy >= cut.wished for cut in fitted.cuts)
    assert [cut.threshold for cut in fitted.cuts] == sorted(cut.threshold for cut in fitted.cuts)
    held_states, held_gold = reviews(150, 2)
    answers = model.decide_many(held_states, questions, calibration=calibration, coverage=0.9)
    kept = [answer["label"].prediction_set or [] for answer in answers]
    covered = np.mean([right in of for right, of in zip(held_gold, kept, strict=True)])
    # 0.9 is promised; 150 rows say that to 0.05, and 120 examples to 0.05 as well.
    assert covered >= 0.75
    assert all(kept)
    for answer, of in zip(answers, kept, strict=True):
        shares = answer["label"].probabilities
        assert of == sorted(of, key=lambda option: -shares[option])
    cut = fitted.cuts[0]
    decided = model.decide_many(held_states, questions, calibration=calibration, target_accuracy=cut.wished)
    for answer in decided:
        shown = answer["label"]
        assert (shown.value is None) is (shown.probability < cut.threshold) is (shown.reason is not None)
    for name in ("target_accuracy", "coverage"):
        with pytest.raises(OptionError, match=f"{name}: it needs a calibration"):
            model.decide(STATE, questions, **{name: 0.9})  # type: ignore[arg-type]


def test_faulty_states_are_raised_returned_or_left_out() -> None:
    with Model(n_threads=1, n_ctx=256) as small:
        states = ["It is on.", "word " * 400, *(f"It is off, {number}." for number in range(40))]
        seen: list[tuple[int, int | None]] = []
        found = small.decide_many(
            iter(states), {"on": bool}, on_error="return", progress=lambda *done: seen.append(done)
        )
        assert seen == [(32, None), (42, None)]
        assert len(found) == 42
        assert isinstance(found[1], ContextError)
        assert "state 1" in str(found[1])
        assert not any(isinstance(one, Exception) for one in [found[0], *found[2:]])
        kept = small.decide_many(states, {"on": bool}, on_error="skip", progress=lambda *done: seen.append(done))
        assert len(kept) == 41
        assert seen[2:] == [(32, 42), (42, 42)]
        with pytest.raises(ContextError, match="state 1"):
            small.decide_many(states, {"on": bool})
        with pytest.raises(OptionError, match="every state counts"):
            small.decide_many(states, {"on": bool}, on_error="skip", prior="batch")
        with pytest.raises(OptionError, match="invalid on_error"):
            small.decide_many(states, {"on": bool}, on_error="log")  # type: ignore[call-overload]


def test_states_are_read_when_their_turn_comes(model: Model) -> None:
    read = 0

    def states() -> Iterator[str]:
        nonlocal read
        for number in range(70):
            read += 1
            yield f"It is on, {number}."

    seen: list[tuple[int, int]] = []
    model.decide_many(states(), {"on": bool}, progress=lambda done, _: seen.append((done, read)))
    assert seen == [(32, 32), (64, 64), (70, 70)]
