"""Models that are not as others: recurrent ones, whose state cannot be shared by branches or cut, and damaged ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tokentrie
from models import recurrent_path
from tokentrie import Form, Model, Slot, Trie

pytestmark = pytest.mark.model

PROMPT = "The next action is "
VALUES = ["send_mail", "send_mail_now", "send", "cancel", "x", "translate document"]


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(recurrent_path(), n_ctx=256, n_threads=1)


def row(model: Model, tokens: list[int]) -> np.ndarray:
    model.clear()
    logits = model.logits(tokens).astype(np.float64)
    return logits - np.logaddexp.reduce(logits)


def test_a_choice_is_that_of_scoring_token_by_token(model: Model) -> None:
    prompt = model.vocab.tokenize(PROMPT)
    rows = [model.vocab.tokenize(value) for value in VALUES]
    expected = []
    for tokens in rows:
        logprob = sum(row(model, prompt + tokens[:at])[token] for at, token in enumerate(tokens))
        after = {other[len(tokens)] for other in rows if other[: len(tokens)] == tokens and len(other) > len(tokens)}
        if after:
            logprob += np.log1p(-np.exp(row(model, prompt + tokens)[sorted(after)]).sum())
        expected.append(logprob)
    choice = model.choose(prompt, VALUES)
    np.testing.assert_allclose(choice.logprobs, expected, atol=1e-4)
    many = list(model.choose_many([prompt, "Now ", prompt], VALUES))
    np.testing.assert_allclose(many[2].logprobs, expected, atol=1e-4)
    assert abs(sum(choice.probabilities.values()) - 1) < 1e-6
    best = model.choose(prompt, VALUES, top=2)
    assert list(best.ranking) == list(choice.ranking[:2])


@pytest.mark.parametrize("seed", range(5))
def test_skipping_ahead_changes_nothing(model: Model, seed: int) -> None:
    settings = {"mode": "sampled", "seed": seed, "temperature": 3.0}
    model.clear()
    ahead = model.generate(PROMPT, VALUES, **settings)
    model.clear()
    each = model.generate(PROMPT, VALUES, skip_ahead=False, **settings)
    assert ahead.tokens == each.tokens
    assert ahead.stats.forward_passes <= each.stats.forward_passes


def test_forms_and_repeated_prompts(model: Model) -> None:
    form = Form('{"a": "', Slot("a", VALUES), '", "b": "', Slot("b", ["1", "2", ""]), '"}')
    out = model.generate(PROMPT, form, probabilities=True)
    assert json.loads(out.text) == out.values
    again = model.generate(PROMPT, form)
    assert again.text == out.text
    assert model.generate(PROMPT + "once more ", Trie.from_sequences([[5, 6], [5, 7]])).leaf is not None


def test_a_state_goes_into_a_file(model: Model, tmp_path: Path) -> None:
    beginning, path = "The next action is send_mail. ", tmp_path / "state.prefix"
    model.save_prefix(path, beginning)
    expected = row(model, model.vocab.tokenize(beginning + "Then "))
    other = Model(recurrent_path(), n_ctx=256, n_threads=1)
    held = other.load_prefix(path)
    out = other.generate(beginning + "Then ", VALUES)
    assert out.stats.prompt_tokens_reused == held
    assert out.value == model.generate(beginning + "Then ", VALUES).value
    other.load_prefix(path)
    logits = other.logits(beginning + "Then ").astype(np.float64)
    assert np.allclose(logits - np.logaddexp.reduce(logits), expected, atol=1e-3)


@pytest.fixture(scope="module")
def damaged(tiny_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    gguf = pytest.importorskip("gguf")
    path = tmp_path_factory.mktemp("nan") / "nan.gguf"
    shutil.copy(tiny_path, path)
    reader = gguf.GGUFReader(path, "r+")
    norm = next(tensor for tensor in reader.tensors if tensor.name == "output_norm.weight")
    norm.data[:] = np.nan
    norm.data.flush()
    return path


@pytest.mark.parametrize("slots", [1, 2])
def test_a_model_that_computes_no_numbers(damaged: Path, slots: int) -> None:
    model = tokentrie.Model(damaged, n_threads=1, slots=slots)
    said = r"the model fails: the row of logits after .* says nothing: all of its \d+ entries are NaN"
    for call in (
        lambda: model.choose("Is it?", ["yes", "no"]),
        lambda: model.choose("Is it?", ["yes", "no"], top=1),
        lambda: next(iter(model.choose_many(["Is it?", "Is it not?"], ["yes", "no"]))),
        lambda: model.generate("Is it?", max_tokens=3),
        lambda: model.generate("Is it?", ["yes", "no"]),
        lambda: model.generate("Is it?", ["yes", "no"], sampling=tokentrie.Sampling(mode="sampled", seed=1)),
        lambda: model.generate("Is it?", tokentrie.Regex("[a-z]+"), max_tokens=3),
    ):
        with pytest.raises(tokentrie.errors.ModelError, match=said):
            call()
    # What needs no row is still said.
    assert model.generate("Is it?", ["yes"]).text.strip() == "yes"
