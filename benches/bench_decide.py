"""Cost of a decision of eight questions beside its state alone: `pytest benches/bench_decide.py --benchmark-only`.

The state is decoded once; each question brings its own text, its options, and the end of the prompt. `tokens` is what
that makes, in tokens: less than this share no way of asking could take.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokentrie
from pytest_benchmark.fixture import BenchmarkFixture

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from random_model import write_random_model

HUNDRED_THOUSAND = 100_000
SYLLABLES = [first + second for first in "bcdfgklmnprst" for second in "aeiou"]
OPTIONS = ["billing", "access", "sales", "returns", "other"]
SENTENCE = "The customer wrote that the parcel came late and the box was wet. "


@pytest.fixture(scope="module", params=["tiny", "qwen2"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tokentrie.Model:
    """The model of the package, and random weights under a vocabulary of 152k tokens, where one is there."""
    if request.param == "tiny":
        return tokentrie.Model(n_ctx=4096)
    vocabulary = Path(os.environ.get("TOKENTRIE_VOCAB_DIR", ""), f"ggml-vocab-{request.param}.gguf")
    if not vocabulary.is_file():
        pytest.skip(f"TOKENTRIE_VOCAB_DIR has no {vocabulary.name}")
    write_random_model(vocabulary, path := tmp_path_factory.mktemp("decide") / "wide.gguf", width=512, layers=6)
    return tokentrie.Model(path, n_ctx=4096)


@pytest.mark.parametrize("what", ["state alone", "text", "text, not listed", "label", "label, one by one"])
def test_eight_questions(benchmark: BenchmarkFixture, model: tokentrie.Model, what: str, quick: bool) -> None:
    state, size = "", 0
    while size < (100 if quick else 1000):
        state += SENTENCE
        size = len(model.vocab.tokenize(state))
    questions = {f"team {number}": OPTIONS for number in range(8)}
    how: dict[str, Any] = {"readout": what.split(",")[0], "list_options": "not listed" not in what}

    def asked() -> tuple[list[tokentrie.decisions.Answer], int]:
        model.clear()
        each = [{name: options} for name, options in questions.items()] if what.endswith("one by one") else [questions]
        done = [model.decide(state, some, **how) for some in each]
        return [one for some in done for one in some.values()], sum(some.stats.tokens_decoded for some in done)

    def alone() -> None:
        model.clear()
        model.logits(model.vocab.tokenize(state))

    work: Callable[[], object] = alone if what == "state alone" else asked
    if what != "state alone":
        answers, tokens = asked()
        assert [answer.probabilities.keys() for answer in answers] == [dict.fromkeys(OPTIONS).keys()] * 8
        # Each answer is what the exact choice says after its prompt.
        for answer in answers[:2]:
            (prompt,) = answer.prompts
            same = model.choose(prompt.tokens, prompt.values, end_tokens=prompt.end_tokens)
            assert list(answer.probabilities.values()) == pytest.approx(list(same.probabilities.values()), abs=0.02)
        benchmark.extra_info["tokens"] = round(tokens / size, 2)
    benchmark.group = f"eight questions of five options, {Path(model.path).stem}, a state of {size} tokens"
    benchmark.pedantic(work, rounds=1 if quick else 5)


@pytest.mark.parametrize("what", ["order of the list", "independent", "balanced", "permute=8"])
def test_one_question_of_eight_options(
    benchmark: BenchmarkFixture, model: tokentrie.Model, what: str, quick: bool
) -> None:
    options = {f"{name} {number}": SENTENCE for number in range(2) for name in OPTIONS[:4]}
    order = what if what in ("independent", "balanced") else "given"
    how: dict[str, Any] = {"order": order, "permute": 8 if what == "permute=8" else 1}

    def asked() -> None:
        model.clear()
        model.decide(SENTENCE * 4, {"team": options}, **how)

    benchmark.group = f"one question of eight options with a meaning, {Path(model.path).stem}"
    benchmark.pedantic(asked, rounds=1 if quick else 5)


def test_a_hundred_thousand_options(benchmark: BenchmarkFixture, quick: bool) -> None:
    """Invented names, of which the model prefers none: the rows of `max_rows` are all read."""
    draw, options = random.Random(1), dict[str, None]()
    while len(options) < HUNDRED_THOUSAND // (10 if quick else 1):
        options[" ".join("".join(draw.choices(SYLLABLES, k=draw.randint(2, 4))) for _ in range(2))] = None
    model = tokentrie.Model()
    question, states = {"q": list(options)}, iter(range(1000))

    def asked() -> tokentrie.decisions.Answer:
        return model.decide(f"Lamp {next(states)} is on.", question, list_options=False)["q"]

    benchmark.group = "options that are not listed"
    answer = benchmark.pedantic(asked, rounds=1 if quick else 5)
    benchmark.extra_info |= {"certain": answer.certain, "unscored": answer.unscored}
