"""A decision has the same bits whatever is asked beside it, in which order, under load, and whatever ran before."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import tokentrie
from budget import cases

pytestmark = pytest.mark.model

WORDS = ["red", "blue", "window", "meeting", "please", "show", "the", "delete", "refund", "twice", "calm", "lamp"]
EXACT: list[dict[str, Any]] = [
    {"precise": True},
    {"batching": "fixed"},
    {"batching": "fixed", "precise": True, "slots": 3},
    {"batching": "fixed", "slots": 3, "prefill_chunk": 5},
]


def drawn(draw: random.Random) -> tuple[str, dict[str, Any]]:
    """A state of some length and questions of every kind."""

    def text(most: int) -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(1, most)))

    def question() -> Any:
        options = draw.sample(WORDS, draw.randint(2, 6))
        return draw.choice([bool, options, dict.fromkeys(options, text(4)), tokentrie.decisions.Score(options[:3])])

    return text(draw.choice([5, 60, 200])), {f"q{number}": question() for number in range(draw.randint(2, 5))}


def bits(answer: Any) -> tuple[Any, ...]:
    return (*answer.probabilities.values(), answer.mass, answer.value)


@pytest.mark.parametrize("options", EXACT, ids=str)
def test_no_company_changes_a_bit(options: dict[str, Any]) -> None:
    draw = random.Random(51)
    asked = [drawn(draw) for _ in range(cases(30))]
    decide: list[dict[str, Any]] = [{}, {"permute": 2}, {"prior": "content-free"}, {"readout": "label"}]
    hows = [draw.choice(decide) for _ in asked]
    with tokentrie.Model(n_ctx=1024, n_threads=1, **options) as model:
        alone = {}
        for number, ((state, questions), how) in enumerate(zip(asked, hows, strict=True)):
            for name, question in questions.items():
                alone[number, name] = bits(model.decide(state, {name: question}, **how)[name])

        def together(number: int) -> None:
            (state, questions), how = asked[number], hows[number]
            # What is kept of it is a beginning that no question had.
            model.generate(model.decide(state, questions, **how)["q0"].prompts[0].tokens[:40], max_tokens=2)
            names = random.Random(number).sample([*questions], len(questions))
            answers = model.decide(state, {name: questions[name] for name in names}, **how)
            for name in names:
                assert bits(answers[name]) == alone[number, name], (number, name, how)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(together, [*range(len(asked))] * 2))


def test_many_states_and_choices_of_fixed_slots_are_alone_too() -> None:
    states = [f"The lamp is {'on' if number % 2 else 'off'}. " * (number + 1) for number in range(8)]
    with tokentrie.Model(n_ctx=512, n_threads=1, batching="fixed", slots=2) as model:
        many = model.decide_many(states, {"on": bool})
        assert [bits(one["on"]) for one in many] == [bits(model.decide(one, {"on": bool})["on"]) for one in states]
        choices = model.choose_many(states, ["on", "off"])
        assert [one.probabilities for one in choices] == [
            model.choose(one, ["on", "off"]).probabilities for one in states
        ]


def test_questions_of_a_fixed_slot_take_one_place_in_the_queue() -> None:
    options = {f"q{number}": ["on", "off"] for number in range(12)}
    with tokentrie.Model(n_ctx=512, n_threads=1, batching="fixed", max_queue=0) as model:
        assert len(model.decide("The lamp is on.", options)) == 12
        assert model.engine is not None
        assert model.engine.calls == 1
    with tokentrie.Model(n_ctx=64, n_threads=1, batching="fixed") as model:
        with pytest.raises(tokentrie.errors.ContextError, match="q1"):
            model.decide("The lamp is on.", {"q0": bool, "q1": ["on " * 80, "off"]})
        assert model.engine is not None
        assert model.engine.passes == 0, "what does not fit is refused before anything is decoded"


def test_the_chunk_of_prompts_changes_no_bit_of_fixed_slots() -> None:
    found = []
    for chunk in (1, 64, 10_000):
        with tokentrie.Model(n_ctx=512, n_threads=1, batching="fixed", slots=2, prefill_chunk=chunk) as model:
            text = "The lamp is on. " * 30
            with ThreadPoolExecutor(2) as pool:
                short = pool.submit(model.choose, "The lamp is ", ["on", "off"])
                found.append((bits(model.decide(text, {"on": bool})["on"]), short.result().probabilities))
    assert found[0] == found[1] == found[2]
