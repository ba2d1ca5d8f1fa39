"""Drafts change what generation costs and nothing else: beside a model without them, in distribution, and refused."""

from __future__ import annotations

import dataclasses
import random
import threading
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokentrie
from budget import cases
from models import VOCABULARIES, precise_path, random_path, recurrent_path
from tokentrie import Form, Model, Slot, Text, Trie
from tokentrie.rules import JsonSchema, Regex

pytestmark = pytest.mark.model

TOOL = {
    "name": "open_room",
    "parameters": {
        "type": "object",
        "properties": {"room": {"type": "string", "maxLength": 8}, "floor": {"type": "integer"}},
        "required": ["room", "floor"],
    },
}
SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"name": {"enum": ["Ann", "Bo", "Anna"]}, "age": {"type": "integer", "maximum": 99}},
        "required": ["name", "age"],
        "additionalProperties": False,
    },
    "minItems": 2,
    "maxItems": 4,
}
LIST = "apples, pears, plums, apples, pears, plums, apples,"
PROMPTS = [LIST, "The next action is ", "Names and ages:\n", "a"]
#: Texts that the tiny model would end early.
LONG = Regex("[a-z, ]{200,220}\\.")
FRUIT = Regex("( apples,| pears,| plums,){24,30} end")
SOURCES = ["prompt", "ngram", "random", "itself"]


def source(name: str) -> str:
    """Returns what `draft` is for this source."""
    paths = {"random": random_path("tiny"), "itself": precise_path("trained")} if name in ("random", "itself") else {}
    return str(paths.get(name, name))


@cache
def opened(draft: str | None, slots: int = 1) -> Model:
    options: dict[str, Any] = {"n_ctx": 512, "n_threads": 1, "precise": True, "slots": slots}
    return Model(precise_path("trained"), draft=None if draft is None else source(draft), **options)


def request(seed: int) -> Callable[[Model], Any]:
    """Returns a random call."""
    pick = random.Random(seed)
    prompt = pick.choice(PROMPTS)
    draw: dict[str, Any] = {}
    if pick.random() < 0.6:
        draw = {"mode": "sampled", "seed": seed, "temperature": pick.choice([0.5, 1.0, 2.0])}
    if pick.random() < 0.3:
        draw |= {"repeat_penalty": 1.2, "penalty_last_n": 8}
    few: dict[str, Any] = {"max_tokens": pick.randrange(1, 40)}
    form = Form(
        '{"who": "', Slot("who", ["Ann", "Anna", "Bo"]), '", "why": "', Text("why", stop='"', max_tokens=12), "}"
    )
    messages = [{"role": "user", "content": "Open the room Alpha on floor 3."}]
    kinds: list[Callable[[Model], Any]] = [
        lambda model: model.generate(prompt, **few, **draw),
        lambda model: model.generate(prompt, stop=["e", "pl"], **few, **draw),
        lambda model: model.generate(prompt, Regex("(apples|pears|plums)(, (apples|pears|plums)){2,5}\\."), **draw),
        lambda model: model.generate(prompt, JsonSchema(SCHEMA), max_tokens=120, **draw),
        lambda model: model.generate(prompt, ["open_file", "open_files", "list_files", "stop"], after="free", **few),
        lambda model: model.generate(prompt, form, **draw),
        lambda model: model.generate(prompt, Regex("[a-z ]{8,60}\\."), logprobs=2, max_tokens=30, **draw),
        lambda model: "".join(model.stream(prompt, **few, **draw)),
        lambda model: model.chat(messages, max_tokens=40, **draw),
        lambda model: model.chat(messages, [TOOL], "required", max_tokens=80, **draw),
        lambda model: model.chat(
            messages,
            response_format={"type": "json_schema", "json_schema": {"name": "people", "schema": SCHEMA}},
            max_tokens=120,
            **draw,
        ),
    ]
    return pick.choice(kinds)


def outcome(call: Callable[[Model], Any], model: Model) -> tuple[Any, list[float]]:
    """Returns what a call gives, without what it cost, and its log-probabilities apart."""
    try:
        result = call(model)
    except tokentrie.TokenTrieError as error:
        return (type(error), str(error)), []
    if not dataclasses.is_dataclass(result):
        return result, []
    numbers = [one.logprob for one in getattr(result, "logprobs", None) or []]
    return dataclasses.replace(result, stats=None, logprobs=None), numbers  # type: ignore[type-var]


def check(found: tuple[Any, list[float]], expected: tuple[Any, list[float]], seed: int) -> None:
    """Compares outcomes. The last digits of logits depend on how tokens are batched."""
    assert found[0] == expected[0], f"seed {seed}"
    np.testing.assert_allclose(found[1], expected[1], atol=1e-3, err_msg=f"seed {seed}")


@pytest.mark.parametrize("draft", SOURCES)
def test_results_are_those_without_drafts(draft: str) -> None:
    for seed in range(cases(200)):
        call = request(seed)
        expected = outcome(call, opened(None))
        check(outcome(call, opened(draft)), expected, seed)


def test_calls_at_once_draft_each_for_itself() -> None:
    seeds = range(cases(100))
    expected = [outcome(request(seed), opened(None)) for seed in seeds]
    for draft in ("ngram", "itself"):
        with Model(
            precise_path("trained"), n_ctx=512, n_threads=1, precise=True, slots=3, draft=source(draft)
        ) as model:
            found: dict[int, Any] = {}

            def work(first: int, model: Model = model, found: dict[int, Any] = found) -> None:
                for seed in seeds[first::3]:
                    found[seed] = outcome(request(seed), model)

            threads = [threading.Thread(target=work, args=(first,)) for first in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for seed in seeds:
                check(found[seed], expected[seed], seed)


def test_a_model_that_drafts_for_itself_is_always_right() -> None:
    call: Callable[[Model], Any] = lambda model: model.generate(LIST, LONG)  # noqa: E731
    plain, drafted = call(opened(None)).stats, call(opened("itself")).stats
    assert drafted.accepted_tokens == drafted.drafted_tokens > 20
    assert drafted.forward_passes < plain.forward_passes / 3
    assert plain.drafted_tokens == plain.accepted_tokens == 0
    reply = opened("itself").chat([{"role": "user", "content": "Hello"}], max_tokens=30)
    assert reply.stats is not None
    assert reply.stats.drafted_tokens >= reply.stats.accepted_tokens > 0


def test_the_second_time_the_table_knows() -> None:
    with Model(precise_path("trained"), n_ctx=512, n_threads=1, precise=True, draft="ngram") as model:
        first, second = (model.generate("Once upon a time", LONG) for _ in range(2))
    assert first.tokens == second.tokens
    assert second.stats.accepted_tokens > 20
    assert second.stats.forward_passes < first.stats.forward_passes / 2


def test_hopeless_drafts_are_given_up() -> None:
    stats = opened("random").generate("Once upon a time", max_tokens=200, mode="sampled", seed=1, temperature=3.0).stats
    assert stats.drafted_tokens < 40


@pytest.mark.parametrize("draft", ["itself", "ngram"])
def test_draws_have_the_distribution_of_the_model(draft: str) -> None:
    model = opened(draft)
    letters = [opened(None).vocab.tokenize(letter)[0] for letter in "abcd"]
    prompt = [*opened(None).vocab.tokenize("The letters: ")]
    trie = Trie.from_sequences([[a, b, c] for a in letters for b in letters for c in letters])

    def shares(tokens: list[int]) -> np.ndarray[Any, Any]:
        row = np.asarray(opened(None).logits(tokens))[letters].astype(float)
        weights = np.exp(row - row.max())
        return weights / weights.sum()

    expected = {
        (a, b, c): of_a * of_b * of_c
        for a, of_a in zip(letters, shares(prompt), strict=True)
        for b, of_b in zip(letters, shares([*prompt, a]), strict=True)
        for c, of_c in zip(letters, shares([*prompt, a, b]), strict=True)
    }
    draws, accepted, seen = 600, 0, Counter[tuple[int, ...]]()
    for seed in range(draws):
        generated = model.generate(prompt, trie, mode="sampled", seed=seed, temperature=1.0)
        seen[tuple(generated.tokens)] += 1
        accepted += generated.stats.accepted_tokens
    assert accepted > draws / 10
    # Outcomes that are rare are counted together: the test is for counts of five or more.
    common = [tokens for tokens, share in expected.items() if share * draws >= 5]
    rest = draws - sum(seen[tokens] for tokens in common), draws - sum(expected[tokens] for tokens in common) * draws
    cells = [(seen[tokens], expected[tokens] * draws) for tokens in common] + ([rest] if rest[1] > 1 else [])
    statistic = sum((found - wanted) ** 2 / wanted for found, wanted in cells)
    freedom = len(cells) - 1
    # Wilson and Hilferty: the 99.9 % point.
    assert statistic < freedom * (1 - 2 / (9 * freedom) + 3.09 * (2 / (9 * freedom)) ** 0.5) ** 3


def test_refused(tmp_path: Path) -> None:
    text = tmp_path / "no.gguf"
    text.write_text("no model")
    option, model = tokentrie.errors.OptionError, tokentrie.errors.ModelError
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        (
            {"draft": "ngrams"},
            option,
            'unknown draft "ngrams": it must be "ngram", "prompt" or the path of a GGUF file',
        ),
        ({"draft": tmp_path / "missing.gguf"}, model, "missing.gguf"),
        ({"draft": text}, model, "is not a GGUF file"),
        ({"draft": "ngram", "batching": "fixed"}, option, "is not supported with fixed batching: its drafts depend"),
        ({"draft": precise_path("trained"), "batching": "fixed"}, option, "is not supported with fixed batching"),
    ]
    if others := [name for name in VOCABULARIES if name != "tiny"]:
        wrong.append(({"draft": random_path(others[0])}, option, "expected the vocabulary of .*, got token"))
    for options, error, says in wrong:
        with pytest.raises(error, match=says):
            Model(precise_path("trained"), n_ctx=256, n_threads=1, **options)
    with pytest.raises(option, match="draft is not supported: the model has a recurrent state"):
        Model(recurrent_path(), n_ctx=256, n_threads=1, draft="prompt")
    with pytest.raises(option, match="is not supported: it has a recurrent state"):
        Model(precise_path("trained"), n_ctx=256, n_threads=1, draft=recurrent_path())


def test_a_fixed_model_drafts_from_the_prompt() -> None:
    with Model(precise_path("trained"), n_ctx=512, n_threads=1, batching="fixed", slots=2, draft="prompt") as model:
        first = model.generate(LIST, FRUIT, logprobs=1)
        model.generate("Something else, something else,", max_tokens=30)
        again = model.generate(LIST, FRUIT, logprobs=1)
    assert (first.tokens, first.logprobs) == (again.tokens, again.logprobs)
    assert first.stats.accepted_tokens > 0
