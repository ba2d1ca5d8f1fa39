"""Close calls that think before they are decided, and a score of states that have nothing to do with a question."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from models import copy_tiny
from tokentrie import Model
from tokentrie.decisions import Answer, Question
from tokentrie.errors import OptionError

pytestmark = pytest.mark.model

QUESTIONS: dict[str, Any] = {
    "on": Question(bool, instructions="Is the lamp on?"),
    "label": Question(["positive", "negative", "neutral"], instructions="What is the sentiment of the review?"),
}
OBJECTS, JUDGED = ["camera", "bread", "lamp", "concert"], ["lovely", "poor", "plain", "outstanding", "boring"]
REVIEWS = [f"It was a {judged} {thing}, said {who}." for thing, judged, who in product(OBJECTS, JUDGED, ["Ann", "Bo"])]


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(n_threads=1, precise=True) as opened:
        yield opened


PLAIN = """{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def margin(probabilities: dict[Any, float]) -> float:
    first, second, *_ = sorted(probabilities.values(), reverse=True)
    return first - second


@pytest.mark.parametrize(
    ("count", "share", "thinking"), [(20, 0.1, 2), (20, 0.04, 0), (7, 0.3, 2), (1, 0.9, 0), (2, 1, 2)]
)
def test_at_most_a_share_of_the_states_thinks_the_closest_ones(
    model: Model, count: int, share: float, thinking: int
) -> None:
    states = random.Random(count).sample(REVIEWS, count)
    plain = model.decide_many(states, QUESTIONS)
    found = model.decide_many(states, QUESTIONS, escalate=share, think_tokens=6)
    for name in QUESTIONS:
        margins = [margin(answers[name].probabilities) for answers in plain]
        thought = [number for number, answers in enumerate(found) if answers[name].thought is not None]
        assert len(thought) == thinking
        widest = max((margins[number] for number in thought), default=0.0)
        others = [one for number, one in enumerate(margins) if number not in thought]
        # Common passes round otherwise than single ones.
        assert widest <= min(others, default=1.0) + 0.02
        for number, answers in enumerate(found):
            answer, before = answers[name], plain[number][name].probabilities
            first = answer.probabilities if answer.thought is None else answer.thought.probabilities
            assert first == pytest.approx(before, abs=0.02)


@pytest.mark.parametrize("is_plain", [True, False])
def test_a_thought_stands_in_the_prompt_and_the_answer_is_the_choice_after_it(model: Model, is_plain: bool) -> None:
    """The tiny model has a format for reasoning; with another template it has none, and thinks in its reply."""
    if is_plain:
        path = copy_tiny("plain-decisions", f32=True, changes={"tokenizer.chat_template": PLAIN})
        model = Model(path, n_threads=1, precise=True)
    answers = model.decide(REVIEWS[3], QUESTIONS, escalate=1.0, think_tokens=5)
    for answer in answers.values():
        assert answer.thought is not None
        (prompt,) = answer.prompts
        _, _, reply = model.vocab.detokenize(prompt.tokens).rpartition("<|im_start|>assistant\n")
        if is_plain:
            between = " " if answer.thought.text else ""
            assert reply == f"Reasoning:{between}{answer.thought.text}\nAnswer:"
        else:
            opened, _, rest = reply.partition("<think>")
            thought, closed, after = rest.partition("</think>")
            assert (opened, thought.strip(), closed, after.strip()) == ("", answer.thought.text, "</think>", "")
        assert len(model.vocab.tokenize(answer.thought.text)) <= 6
        ends = [*prompt.end_tokens, *model.vocab.boundary_tokens]
        choice = model.choose(prompt.tokens, prompt.values, end_tokens=ends)
        sums = [0.0] * len(answer.probabilities)
        for share, option in zip(choice.probabilities.values(), prompt.options, strict=True):
            sums[option] += share
        assert list(answer.probabilities.values()) == pytest.approx(sums, abs=1e-3)
        told = json.loads(json.dumps(answer.to_dict()))["thought"]
        assert told["text"] == answer.thought.text
        assert len(told["probabilities"]) == len(sums)


def test_one_state_thinks_where_its_margin_is_below_the_limit(model: Model) -> None:
    for state in REVIEWS[:6]:
        plain = model.decide(state, QUESTIONS)
        widths = sorted(margin(answer.probabilities) for answer in plain.values())
        between = sum(widths) / 2
        found = model.decide(state, QUESTIONS, escalate=min(between, 1.0), think_tokens=3)
        assert [found[name].thought is not None for name in QUESTIONS] == [
            margin(plain[name].probabilities) < between for name in QUESTIONS
        ]
    never = model.decide(REVIEWS[0], QUESTIONS, escalate=0.0)
    assert all(answer.thought is None for answer in never.values())


def test_the_same_question_has_the_same_thought() -> None:
    with Model(n_threads=1, n_ctx=512, batching="fixed") as same:
        runs: list[list[Answer]] = []
        for _ in range(2):
            found = same.decide_many(REVIEWS[:5], QUESTIONS, escalate=0.4, think_tokens=6)
            runs.append([answer for answers in found for answer in answers.values()])
            same.decide("Another state in between.", {"x": bool})
        assert [one.thought for one in runs[0]] == [one.thought for one in runs[1]]
        assert [one.probabilities for one in runs[0]] == [one.probabilities for one in runs[1]]
        assert sum(one.thought is not None for one in runs[0]) == 4


def test_faulty_options_are_named(model: Model) -> None:
    faults: list[tuple[dict[str, Any], str]] = [
        ({"escalate": 2}, "escalate: invalid value: expected a number from 0 to 1"),
        ({"escalate": 0.1, "think_tokens": 0}, "think_tokens: it is 0: it must be from 1"),
        ({"escalate": 0.1, "prior": "content-free"}, "escalate: there is a prior"),
    ]
    for options, said in faults:
        with pytest.raises(OptionError, match=said):
            model.decide("s", {"on": bool}, **options)
    states = ["It is on.", "It is off."] * 5
    calibration = model.calibrate(states, {"on": bool}, {"on": [True, False] * 5})
    with pytest.raises(OptionError, match="escalate: there is a calibration"):
        model.decide("s", {"on": bool}, escalate=0.1, calibration=calibration)
    with pytest.raises(OptionError, match=r"with escalate=0.1 every state counts"):
        model.decide_many(["s"], {"on": bool}, escalate=0.1, on_error="skip")


def test_a_score_of_scope_is_its_formula(model: Model) -> None:
    """`docs/acting.md` has it: how much the state moves the log-odds of the answer, times the mass."""
    empty = model.decide("N/A", QUESTIONS)

    def log_odds(share: float) -> float:
        return math.log(share / (1 - share))

    for state in REVIEWS[:3]:
        for name, answer in model.decide(state, QUESTIONS, out_of_scope=True).items():
            shares, without = answer.probabilities, empty[name].probabilities
            best = max(shares, key=shares.__getitem__)
            moved = math.tanh(abs(log_odds(shares[best]) - log_odds(without[best])) / 4)
            assert answer.out_of_scope == pytest.approx(1 - answer.mass * moved, abs=0.02)
    assert model.decide("N/A", QUESTIONS, out_of_scope=True)["label"].out_of_scope == pytest.approx(1, abs=0.02)
    assert model.decide("s", QUESTIONS)["label"].out_of_scope is None


def test_states_about_nothing_score_higher(model: Model) -> None:
    question = {"label": QUESTIONS["label"]}
    draw = random.Random(11)
    letters = "abcdefghijklmnopqrstuvwxyz "
    noise = ["".join(draw.choices(letters, k=30)) for _ in range(15)]
    scores = [
        [answers["label"].out_of_scope or 0.0 for answers in model.decide_many(states, question, out_of_scope=True)]
        for states in (REVIEWS[:20], noise)
    ]
    above = sum(other > own for own in scores[0] for other in scores[1])
    assert above / len(scores[0]) / len(scores[1]) > 0.7, scores
