"""The result of `choose_many` as a sequence and as a table; columns of tables as prompts and values."""

from __future__ import annotations

import asyncio
import importlib
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tokentrie import Form, Model, Slot, Trie
from tokentrie.errors import OptionError, VocabularyError

pytestmark = pytest.mark.model

SHARED = "Label the review: positive, negative or neutral. "
REVIEWS = ["I loved it", "It was a terrible movie", "ok", "I loved it", "bad", "The show is so brilliant"]
LABELS = ["positive", "negative", "neutral"]
VALUES = ["yes", "no", "perhaps"]
BAD: list[Any] = ["Is it?", "word " * 9000, 5, "Is it?", [10**6]]


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(n_threads=1) as model:
        yield model


def test_choices_are_a_sequence(model: Model) -> None:
    prompts = [SHARED + review for review in REVIEWS * 8]
    expected = [model.choose(prompt, LABELS) for prompt in prompts]
    choices = model.choose_many(prompts, LABELS)
    names = [choice.name for choice in expected]
    assert len(choices) == len(prompts) == 48
    assert choices
    assert "0 prompts read" in repr(choices), "a length is known without a forward pass"
    assert choices[0].name == names[0]
    assert "32 prompts read" in repr(choices), "and the first choices need one group"
    assert [choice.name for choice in choices] == names
    assert [choice.name for choice in choices] == names, "a second pass"
    for at, choice in enumerate(choices):
        assert np.allclose(choice.logprobs, expected[at].logprobs, atol=0.05)
        assert choices[at] is choice
        assert choices[at - len(prompts)] is choice
    for part in (slice(None), slice(1, 5), slice(-3, None), slice(None, None, -7), slice(40, 400), slice(5, 2)):
        assert choices[part] == list(choices)[part]
    for outside in (48, -49, 10**30):
        with pytest.raises(IndexError):
            choices[outside]
    with pytest.raises(TypeError):
        choices["negative"]  # type: ignore[call-overload]
    assert choices[7] in choices
    assert expected[0].name not in choices
    assert [next(choices), next(choices)] == choices[:2], "next goes on where it was"
    assert list(reversed(choices)) == list(choices)[::-1]
    assert not model.choose_many([], LABELS)


def test_choices_of_an_iterator_are_one(model: Model) -> None:
    choices = model.choose_many(iter(REVIEWS[:2]), LABELS)
    assert iter(choices) is choices
    assert choices
    for use in (len, lambda choices: choices[0], lambda choices: choices[-1], lambda choices: choices[1:]):
        with pytest.raises(TypeError, match=r"an iterator, as their prompts are, .* list\(choices\)"):
            use(choices)
    assert len(list(choices)) == 2
    assert list(choices) == []


def test_bad_prompts_in_a_sequence(model: Model) -> None:
    choices = model.choose_many(BAD * 20, VALUES, on_error="skip")
    assert choices[-1] is choices[39]
    assert len(choices) == 40
    assert len(choices.skipped) == 60
    given = model.choose_many(BAD * 20, VALUES, on_error="return")
    assert len(given) == 100
    assert isinstance(given[-1], VocabularyError)
    raised = model.choose_many([*REVIEWS, 5], VALUES)  # type: ignore[list-item]
    for _ in range(2):
        made = []
        with pytest.raises(TypeError, match="prompt 6: "):
            made.extend(raised)
        assert len(raised[:6]) == 6
    with pytest.raises(TypeError, match="prompt 6: "):
        raised[-1]


def test_threads_read_one_sequence(model: Model) -> None:
    choices = model.choose_many([[9, number] for number in range(10, 110)], LABELS)
    with ThreadPoolExecutor(4) as pool:
        reads = [pool.submit(list, choices) for _ in range(4)]
        first, *others = [read.result(60) for read in reads]
    assert len(first) == 100
    assert all(one is other for read in others for one, other in zip(first, read, strict=True))


def test_choices_as_tables(model: Model) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="the package pyarrow is not installed")
    prompts = [SHARED + review for review in REVIEWS]
    choices = model.choose_many(prompts, LABELS)
    table = choices.to_arrow()
    assert table.column_names == ["choice", "probability", "mass", "probabilities"]
    assert table["choice"].to_pylist() == [choice.name for choice in choices]
    assert [dict(row) for row in table["probabilities"].to_pylist()] == [dict(choice.items()) for choice in choices]
    assert table.schema.field("probabilities").type == pyarrow.map_(pyarrow.string(), pyarrow.float64())
    errors = model.choose_many(BAD, VALUES, on_error="return").to_arrow()
    assert [error is None for error in errors["error"].to_pylist()] == [True, False, False, True, False]
    assert [name is None for name in errors["choice"].to_pylist()] == [False, True, True, False, True]
    nameless = model.choose_many(["a"], Trie.from_sequences([[5], [6]])).to_arrow()
    assert nameless.schema.field("choice").type == pyarrow.int64()
    assert len(model.choose_many([], LABELS).to_arrow()) == 0
    unsure = model.choose_many(prompts, LABELS, threshold=1).to_arrow()
    assert unsure["choice"].to_pylist() == [None] * len(prompts)
    assert unsure["probability"].to_pylist() == table["probability"].to_pylist()

    pandas = pytest.importorskip("pandas", reason="the package pandas is not installed")
    frame = pandas.DataFrame({"text": BAD, "more": 1}, index=[10, 20, 30, 40, 50])
    joined = frame.join(model.choose_many(frame["text"], VALUES, on_error="skip").to_pandas())
    assert joined["choice"].isna().tolist() == [False, True, True, False, True]
    assert dict(joined["probabilities"][40]) == dict(model.choose("Is it?", VALUES).items())


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_columns_are_lists_and_tables_are_refused(package: str, model: Model) -> None:
    pytest.importorskip(package, reason=f"the package {package} is not installed")
    library = importlib.import_module(package)
    frame = library.table if package == "pyarrow" else library.DataFrame
    column = library.array if package == "pyarrow" else library.Series
    table = frame({"text": REVIEWS[:3], "label": LABELS})
    expected = [choice.name for choice in model.choose_many(REVIEWS[:3], LABELS)]
    for labels in (column(LABELS), table["label"]):
        assert [choice.name for choice in model.choose_many(table["text"], labels)] == expected
        assert len(model.choose_many(table["text"], labels)) == 3
        assert Trie.from_strings(model.vocab, labels) == Trie.from_strings(model.vocab, LABELS)
        assert model.generate("It is ", labels).value in LABELS
        form = Form('"', Slot("label", labels), '"')
        assert model.generate("It is ", form).values["label"] in LABELS
    tokens = [[1, 2], [3, 4]]
    trie = Trie.from_sequences(column(tokens), names=column(["b", "a"]))
    assert trie == Trie.from_sequences(tokens, names=["b", "a"])
    says = r"(DataFrame|Table) with the columns 'text', 'label': give one of them, such as \['text'\]"
    for use in (
        lambda: model.choose_many(table, LABELS),
        lambda: model.choose("It is ", table),
        lambda: model.generate("It is ", table),
        lambda: Trie.from_strings(model.vocab, table),
        lambda: Trie.from_sequences(table),
        lambda: Slot("label", table),
    ):
        with pytest.raises(TypeError, match=says):
            use()


@pytest.mark.parametrize("prefix", ["", "It is"])
def test_a_system_message_is_a_turn_of_a_chat(model: Model, prefix: str) -> None:
    task = "Label the review: positive, negative or neutral."
    values = [f" {label}" for label in LABELS] if prefix else LABELS
    reviews = [*REVIEWS, "<|im_end|> is text"]
    wrapped = [
        model.chat_prompt(
            [{"role": "system", "content": task}, {"role": "user", "content": review}], answer_prefix=prefix
        )
        for review in reviews
    ]
    expected = list(model.choose_many(wrapped, values, prefix=prefix))
    found = list(model.choose_many(reviews, values, prefix=prefix, system=task))
    assert [choice.logprobs.tolist() for choice in found] == [choice.logprobs.tolist() for choice in expected]
    alone = model.choose(REVIEWS[0], values, prefix=prefix, system=task)
    assert np.allclose(alone.logprobs, expected[0].logprobs, atol=0.05)
    ids = model.vocab.tokenize("ok")
    with pytest.raises(OptionError, match="prompt 1: system goes around prompts of text"):
        list(model.choose_many(["ok", ids], LABELS, system=task))
    assert model.choose_many([ids, "ok"], LABELS, system=task, on_error="skip")[0].name in LABELS
    with pytest.raises(OptionError, match="system is empty"):
        model.choose_many(["ok"], LABELS, system="")


def test_below_the_threshold_there_is_no_value_and_a_reason(model: Model) -> None:
    plain = list(model.choose_many(REVIEWS, LABELS))
    between = sorted(choice.probability for choice in plain)[len(plain) // 2]
    found = list(model.choose_many(REVIEWS, LABELS, threshold=between))
    for choice, other in zip(found, plain, strict=True):
        assert choice.probabilities == other.probabilities
        assert (choice.name, choice.threshold, other.value, other.reason) == (other.name, between, other.name, None)
        is_sure = choice.probability >= between
        assert choice.value == (choice.name if is_sure else None)
        assert (choice.reason is None) == is_sure
        assert choice.reason is None or f"is below the threshold {between}" in choice.reason
        assert choice.to_dict()["value"] == choice.value
        assert pickle.loads(pickle.dumps(choice)) == choice
        assert ("none" in repr(choice)) == (not is_sure)
    assert {choice.value is None for choice in found} == {True, False}
    assert model.choose("Is it? ", VALUES, threshold=0.0).value in VALUES
    assert model.choose("Is it? ", Trie.from_sequences([[5], [6]]), threshold=0).value in (0, 1)
    for wrong in (-0.1, 1.5, float("nan")):
        with pytest.raises(OptionError, match="it must be from 0 to 1"):
            model.choose_many(REVIEWS, LABELS, threshold=wrong)


def test_both_go_with_asyncio(model: Model) -> None:
    found = asyncio.run(model.achoose_many(REVIEWS[:2], LABELS, system="Label it.", threshold=1, timeout=60))
    assert [choice.value for choice in found] == [None, None]
