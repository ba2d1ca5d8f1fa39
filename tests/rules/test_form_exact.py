"""`mode="exact"` of forms against a sum over how each text really goes on, with tokens of the tokenizer's own."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from budget import cases
from tokentrie import Form, Model, Slot, Text

pytestmark = pytest.mark.model

PROMPT = "<|im_start|>user\nTell Anna.<|im_end|>\n<|im_start|>assistant\n"
WORDS = ["red", "redder", "re", "yes", "no", "REPLY", "REPLY_ALL", "ann", "Zoë", "a b", "x1", "the sky", "12", "123"]
#: What stands behind a value: one token with what follows, several, one that a value may swallow, none.
LITERALS = ['"', '",', '", "to": "', " ", ".\n", ", and so on: ", '"}', ")", "s"]


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(n_ctx=512, n_threads=1, precise=True)


def log_softmax(row: np.ndarray) -> np.ndarray:
    row = row.astype(np.float64) - row.max()
    return np.asarray(row - np.log(np.exp(row).sum()))


class Brute:
    """Probabilities of texts after a prompt, sequence by sequence."""

    def __init__(self, model: Model) -> None:
        self.model, self.rows = model, {}
        self.prompt = model.vocab.tokenize(PROMPT, add_special=True, parse_special=True)

    def row(self, tokens: tuple[int, ...]) -> np.ndarray:
        if tokens not in self.rows:
            self.rows[tokens] = log_softmax(self.model.logits([*self.prompt, *tokens]))
        return self.rows[tokens]

    def sequence(self, tokens: tuple[int, ...]) -> float:
        return float(sum(self.row(tokens[:at])[token] for at, token in enumerate(tokens)))

    def up_to(self, text: str, more: str) -> tuple[int, ...]:
        """The tokens of `text + more` that have a byte of `text`, and at least what tokens of `text` there are."""
        whole, length, taken = self.model.vocab.tokenize(text + more), 0, []
        for token in whole:
            if length >= len(text.encode()):
                break
            taken.append(token)
            length += len(self.model.vocab[token])
        return tuple(taken)

    def before(self, text: str, follows: list[str]) -> float:
        """The log-probability of a text where one of some texts follows."""
        sequences = {self.up_to(text, more) for more in follows}
        return float(np.logaddexp.reduce([self.sequence(one) for one in sequences]))

    def open(self, text: str) -> float:
        """The log-probability of a text whatever follows: its last token may go beyond."""
        *tokens, last = self.up_to(text, "")
        piece = self.model.vocab[last]
        longer = self.model.vocab.tokens_with_prefix(piece)
        row = self.row(tuple(tokens))
        return self.sequence(tuple(tokens)) + float(np.logaddexp.reduce(row[longer]))


def shares(scores: list[float]) -> np.ndarray:
    return np.exp(np.asarray(scores) - np.logaddexp.reduce(scores))


@pytest.mark.parametrize("seed", range(cases(40)))
def test_a_value_counts_with_the_literal_that_follows_it(model: Model, seed: int) -> None:
    rng, brute = random.Random(seed), Brute(model)
    values, then = rng.sample(WORDS, rng.randint(2, 6)), rng.sample(WORDS, 3)
    begin, literal = rng.choice(['{"a": "', "It is ", "("]), rng.choice(LITERALS)
    end = rng.choice(["slot", "text", "end"])
    behind = {"slot": [Slot("b", then), "."], "text": [Text("b", stop="."), "."], "end": []}[end]
    out = model.generate(PROMPT, Form(begin, Slot("a", values), literal, *behind), mode="exact", probabilities=True)
    texts = [begin + value + literal for value in values]
    expected = shares([brute.before(text, then) if end == "slot" else brute.open(text) for text in texts])
    np.testing.assert_allclose([*out.probabilities["a"].values()], expected, atol=2e-3)
    found = values.index(out.values["a"])
    assert expected[found] >= expected.max() - 2e-3
    # Without probabilities only what the best needs is read; it is the same.
    assert model.generate(PROMPT, Form(begin, Slot("a", values), literal, *behind), mode="exact").text == out.text


def test_a_lone_quote_does_not_decide(model: Model) -> None:
    """Behind a value of a form stands `", "`, in one token with what follows; the score of a lone quote says little."""
    brute, values = Brute(model), ["REPLY", "REPLY_ALL", "STOP"]
    form = Form('{"action": "', Slot("action", values), '", "to": "', Slot("to", ["ann", "bob"]), '"}')
    out = model.generate(PROMPT, form, mode="exact", probabilities=True)
    begun = '{"action": "'
    expected = shares([brute.before(f'{begun}{value}", "to": "', ["ann", "bob"]) for value in values])
    np.testing.assert_allclose([*out.probabilities["action"].values()], expected, atol=2e-3)
    choice = model.choose([*brute.prompt, *model.vocab.tokenize(begun)], values, suffix='", "to": "')
    assert out.probabilities["action"] == pytest.approx(choice.probabilities, abs=0.02)
    text = f'{begun}{out.values["action"]}", "to": "'
    expected = shares(
        [brute.open(f'{text}{value}"}}') - brute.before(text, ["ann", "bob"]) for value in ("ann", "bob")]
    )
    np.testing.assert_allclose([*out.probabilities["to"].values()], expected, atol=2e-3)


def test_more_pairs_than_are_tokenised(model: Model) -> None:
    """The literal behind a value is found once, not for each pair of values."""
    values = [f"{left}{right}" for left, right in itertools.product("abcdefghij", "0123456789")]
    form = Form("(", Slot("x", values), " ", Slot("y", values), ")")
    out = model.generate(PROMPT, form, mode="exact", probabilities=True)
    assert sum(out.probabilities["x"].values()) == pytest.approx(1)
    brute, few = Brute(model), random.Random(3).sample(range(100), 6)
    scores = [brute.before(f"({values[at]} ", values) for at in few]
    found = np.array([*out.probabilities["x"].values()])[few]
    np.testing.assert_allclose(found / found.sum(), shares(scores), atol=2e-3)
