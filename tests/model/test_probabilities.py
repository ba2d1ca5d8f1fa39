"""Probabilities of rules and corrected draws, against sums over all texts, token by token, in double precision."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
import tokentrie
from budget import cases
from models import precise_model
from tokentrie import CancelToken, JsonSchema, Model, Regex
from tokentrie.errors import CancelledError, OptionError, TokenTrieError
from tokentrie.rules import Integer

pytestmark = pytest.mark.model
PROMPT = "The next action is "


@pytest.fixture(scope="module")
def model() -> Model:
    return precise_model("trained")


class Judge:
    """Rows of a model, and what follows from them by definition."""

    def __init__(self, model: Model, prompt: str = PROMPT) -> None:
        self.model, self.prompt = model, model.vocab.tokenize(prompt, add_special=True)
        self.rows: dict[tuple[int, ...], np.ndarray] = {}
        self.pieces = {token: model.vocab[token] for token in range(len(model.vocab))}
        self.eog = model.vocab.eog

    def after(self, prefix: Sequence[int]) -> np.ndarray:
        if (key := tuple(prefix)) not in self.rows:
            row = self.model.logits([*self.prompt, *prefix]).astype(np.float64)
            self.rows[key] = row - row.max() - np.log(np.exp(row - row.max()).sum())
        return self.rows[key]

    def sequences(self, text: bytes) -> Iterable[list[int]]:
        """Every sequence of text tokens that spells a text."""
        if not text:
            yield []
        for token, piece in self.pieces.items():
            if piece and text.startswith(piece) and self.model.vocab.kind(token) in ("text", "byte"):
                for rest in self.sequences(text[len(piece) :]):
                    yield [token, *rest]

    def logprob(self, tokens: Sequence[int], ends: Sequence[int] | None = None) -> float:
        path = sum(self.after(tokens[:n])[token] for n, token in enumerate(tokens))
        return path + np.logaddexp.reduce(self.after(tokens)[list(self.eog if ends is None else ends)])

    def probability(self, texts: Iterable[str]) -> float:
        return sum(self.of_text(text) for text in texts)

    def of_text(self, text: str) -> float:
        return float(sum(np.exp(self.logprob(tokens)) for tokens in self.sequences(text.encode())))


LANGUAGES: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "letters": (
        lambda: Regex("[ab]{1,3}"),
        ["".join(text) for n in (1, 2, 3) for text in itertools.product("ab", repeat=n)],
    ),
    "words": (lambda: Regex("(re|un)?(do|ply)"), ["do", "ply", "redo", "reply", "undo", "unply"]),
    "range": (lambda: Integer(7, 24), [str(number) for number in range(7, 25)]),
    "enum": (lambda: JsonSchema({"enum": ["on", "off", 7]}), ['"on"', '"off"', "7"]),
}  # fmt: skip


@pytest.mark.parametrize("name", LANGUAGES)
def test_few_texts_are_exact(model: Model, name: str) -> None:
    make, texts = LANGUAGES[name]
    judge = Judge(model)
    found = model.probability(judge.prompt, make(), text=texts[-1])
    assert found.exact
    assert found.standard_error == 0 == found.samples
    assert not found.timed_out
    assert found.estimate == pytest.approx(judge.probability(texts), rel=1e-3)
    assert found.upper == pytest.approx(found.lower, rel=1e-6)
    assert found.text is not None
    assert math.exp(found.text.logprob) == pytest.approx(judge.of_text(texts[-1]), rel=1e-3)
    assert found.text.share == pytest.approx(judge.of_text(texts[-1]) / judge.probability(texts), rel=1e-3)
    again = model.probability(judge.prompt, make(), tolerance=0, max_rows=5, samples=50, seed=3)
    assert again.lower - 1e-9 <= found.estimate <= again.upper + 1e-9
    assert abs(again.estimate - found.estimate) <= 6 * again.standard_error + 1e-9


def test_a_text_that_only_begins_the_output(model: Model) -> None:
    """Without end tokens it is the mass of `choose`."""
    values = ["REPLY", "REPLY_THREAD", "cancel", "no"]
    found, choice = model.probability(PROMPT, values, end_tokens=[]), model.choose(PROMPT, values)
    assert found.exact
    assert found.estimate == pytest.approx(choice.mass, rel=1e-5)
    assert found.stats.healed_bytes == choice.stats.healed_bytes
    ended, ends = model.probability(PROMPT, values, text="no"), model.vocab.eog
    choice = model.choose(PROMPT, values, end_tokens=ends)
    assert ended.estimate == pytest.approx(choice.mass, rel=1e-5)
    assert ended.text is not None
    assert ended.text.share == pytest.approx(choice.probabilities["no"], rel=1e-4)
    assert ended.estimate <= found.estimate


def test_endless_texts(model: Model) -> None:
    """Of at most two tokens; the rest of the probability is `cut`."""
    judge = Judge(model, "The year is ")
    digits = [token for token, piece in judge.pieces.items() if re.fullmatch(rb"[0-9]+", piece)]
    sequences = [[one] for one in digits] + [[one, other] for one in digits for other in digits]
    expected = float(sum(np.exp(judge.logprob(tokens)) for tokens in sequences))
    longer = sum(
        np.exp(
            judge.after([])[one] + judge.after([one])[other] + np.logaddexp.reduce(judge.after([one, other])[digits])
        )
        for one in digits
        for other in digits
    )
    whole = model.probability(judge.prompt, Regex("[0-9]+"), max_tokens=2, tolerance=0)
    assert whole.estimate == pytest.approx(expected, rel=1e-3)
    assert whole.cut == pytest.approx(longer, rel=1e-3)
    assert whole.upper == pytest.approx(expected + longer, rel=1e-3)
    runs = [
        model.probability(judge.prompt, Regex("[0-9]+"), max_tokens=2, tolerance=0, max_rows=2, samples=24, seed=seed)
        for seed in range(max(cases(200), 40))
    ]
    assert all(run.lower <= expected * 1.001 and expected <= run.upper * 1.001 for run in runs)
    estimates = np.array([run.estimate for run in runs])
    error = estimates.std(ddof=1) / math.sqrt(len(runs))
    assert abs(estimates.mean() - expected) < 5 * error + 1e-3 * expected
    inside = [run.interval[0] <= expected * 1.001 and expected <= run.interval[1] * 1.001 for run in runs]
    assert sum(inside) > 0.85 * len(runs)
    assert runs[3] == model_again(model, judge, runs[3], seed=3)


def model_again(model: Model, judge: Judge, run: Any, seed: int) -> Any:
    """The same request; time and cost differ, since the prompt is known."""
    again = model.probability(
        judge.prompt, Regex("[0-9]+"), max_tokens=2, tolerance=0, max_rows=2, samples=24, seed=seed
    )
    return type(run)._made({**run.to_dict(), **again.to_dict(), "stats": run.stats.to_dict()})


def random_language(draw: random.Random) -> tuple[str, list[str]]:
    """A small regular expression, with all of its texts."""
    parts = []
    for _ in range(draw.randint(1, 3)):
        words = sorted({"".join(draw.choices("abe t", k=draw.randint(1, 2))) for _ in range(draw.randint(1, 3))})
        parts.append([*words, ""] if draw.random() < 0.3 else words)
    texts = sorted({"".join(text) for text in itertools.product(*parts)})
    pattern = "".join(f"({'|'.join(part)})" for part in parts)
    return pattern, texts


@pytest.mark.parametrize("seed", range(max(cases(40), 6)))
def test_random_rules(model: Model, seed: int) -> None:
    draw = random.Random(seed)
    pattern, texts = random_language(draw)
    judge, rule = Judge(model), Regex(pattern)
    expected = judge.probability(texts)
    found = model.probability(judge.prompt, rule, max_rows=draw.randint(1, 60), samples=32, seed=seed)
    assert found.lower <= expected * 1.001, (pattern, found)
    assert expected <= found.upper * 1.001, (pattern, found)
    assert (
        abs(found.estimate - expected) <= 7 * found.standard_error + (found.upper - found.lower) / 2 + 1e-3 * expected
    )
    out = model.generate(judge.prompt, rule, correct=16, end_tokens=model.vocab.eog, seed=seed)
    assert out.text in texts
    assert out.value == out.text
    if out.correction.resamplings == 0:
        assert math.exp(out.correction.log_normalizer) == pytest.approx(expected, rel=1e-3)


def total_variation(drawn: Counter[str], expected: dict[str, float]) -> float:
    count = sum(drawn.values())
    return sum(abs(drawn[text] / count - expected.get(text, 0.0)) for text in {*drawn, *expected}) / 2


def test_corrected_draws_of_few_texts(model: Model) -> None:
    judge, count = Judge(model), max(cases(2000), 300)
    texts = LANGUAGES["words"][1]
    shares = {text: judge.of_text(text) / judge.probability(texts) for text in texts}
    outs = model.generate(judge.prompt, LANGUAGES["words"][0](), correct=8, n=count if count <= 1024 else 1024, seed=5,
                          end_tokens=model.vocab.eog)  # fmt: skip
    drawn = Counter(out.text for out in outs)
    chi = sum((drawn[text] - len(outs) * share) ** 2 / (len(outs) * share) for text, share in shares.items())
    # The quantile of 1 - 1e-6 with five degrees of freedom.
    assert chi < 35.9, (drawn, shares)
    assert all(out.correction.particles == 0 and out.finish == "span" for out in outs)
    assert math.exp(outs[0].correction.log_normalizer) == pytest.approx(judge.probability(texts), rel=1e-3)
    masked = model.generate(judge.prompt, LANGUAGES["words"][0](), mode="sampled", n=len(outs), seed=5,
                            end_tokens=model.vocab.eog)  # fmt: skip
    assert total_variation(drawn, shares) < total_variation(Counter(out.text for out in masked), shares)


def test_corrected_draws_of_endless_texts(model: Model) -> None:
    judge, rule = Judge(model, "The year is "), Regex("[0-9]+")
    digits = [token for token, piece in judge.pieces.items() if re.fullmatch(rb"[0-9]+", piece)]
    sequences = [[one] for one in digits] + [[one, other] for one in digits for other in digits]
    masses: Counter[str] = Counter()
    for tokens in sequences:
        masses[model.vocab.detokenize(tokens)] += np.exp(judge.logprob(tokens))  # type: ignore[assignment]
    shares = {text: mass / sum(masses.values()) for text, mass in masses.items()}
    options: dict[str, Any] = {"n": max(cases(1024), 200), "seed": 11, "end_tokens": model.vocab.eog}
    corrected = model.generate(judge.prompt, rule, correct=8, max_tokens=2, **options)
    assert all(out.finish == "span" and out.value == out.text for out in corrected)
    estimates = np.exp([out.correction.log_normalizer for out in corrected])
    error = estimates.std(ddof=1) / math.sqrt(len(estimates))
    assert abs(estimates.mean() - sum(masses.values())) < 5 * error + 1e-3 * sum(masses.values())
    noise = sum(math.sqrt(share / len(corrected) / 1.57) for share in shares.values()) / 2
    assert total_variation(Counter(out.text for out in corrected), shares) < 2 * noise + 0.02
    again = model.generate(judge.prompt, rule, correct=8, max_tokens=2, **{**options, "n": 3})
    assert [out.text for out in again] == [out.text for out in corrected[:3]]


def test_results_are_those_of_a_generation(model: Model) -> None:
    seen: list[Any] = []
    rule = JsonSchema({"type": "object", "properties": {"n": {"type": "integer"}}})
    options: dict[str, Any] = {"logprobs": 2, "receipt": True, "on_step": seen.append}
    out = model.generate(PROMPT, rule, correct=4, seed=2, max_tokens=40, **options)
    assert isinstance(out.value, dict)
    assert out.correction is not None
    assert out.correction.rows > 0
    assert [step.token for step in seen if step.token in out.tokens]
    assert len(out.logprobs) == len(out.tokens)
    tokentrie.receipts.verify_receipt(out.receipt, rule, vocab=model.vocab)
    assert model.generate(PROMPT, ["a", "b"]).correction is None
    assert model.generate(PROMPT, ["a", "b"], correct=2, seed=1, temperature=0.5).finish == "span"


def test_in_slots() -> None:
    shared = tokentrie.Model(slots=2, n_ctx=256, n_threads=1, batching="fixed")
    found = shared.probability(PROMPT, Regex("[a-z]{1,8}"), max_rows=40, samples=8, seed=1)
    assert found.lower <= found.estimate <= found.upper
    outs = shared.generate(PROMPT, Regex("[a-z]{1,8}"), correct=4, n=3, seed=1)
    assert [out.text for out in outs] == [
        out.text for out in shared.generate(PROMPT, Regex("[a-z]{1,8}"), correct=4, n=3, seed=1)
    ]


@pytest.mark.parametrize("n_ctx", [64, 128, 1024])
def test_a_path_is_decoded_once(n_ctx: int) -> None:
    """Branches stay in the cache, as far as it has room; slots decode them anew, and find the same."""
    rule = Regex("[a-z ]{12,30}\\.")
    options: dict[str, Any] = {"max_rows": 200, "samples": 16, "seed": 3, "max_tokens": 24}
    alone, slots = {"precise": True, "n_threads": 1}, {"slots": 2, "n_threads": 1}
    with Model(n_ctx=n_ctx, **alone) as model, Model(n_ctx=n_ctx, **slots) as anew:  # type: ignore[arg-type]
        kept, found = model.probability(PROMPT, rule, **options), anew.probability(PROMPT, rule, **options)
        if n_ctx == 1024:
            before = len(model.vocab.tokenize(PROMPT, add_special=True))
            # The row after what all draws begin with is computed with its last token, which is there.
            assert kept.stats.tokens_decoded <= kept.stats.rows + before + 8
        assert kept.stats.tokens_decoded < found.stats.tokens_decoded
        assert kept.upper == pytest.approx(found.upper, rel=0.02)
        for seed in range(cases(40)):
            out = model.generate(PROMPT, rule, correct=8, seed=seed, max_tokens=24)
            assert re.fullmatch("[a-z ]{12,30}\\.", out.text)
        assert model.generate("1 + 1 = ", Integer(0, 9)).text == anew.generate("1 + 1 = ", Integer(0, 9)).text


def test_a_call_that_ends_early(model: Model) -> None:
    late = model.probability(PROMPT, Regex("[a-z ]+"), tolerance=0, max_rows=1_000_000, timeout=0.3)
    assert late.timed_out
    assert late.samples == 0
    assert 0 <= late.lower <= late.upper <= 1
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(CancelledError):
        model.probability(PROMPT, Regex("[a-z]+"), cancel=cancel)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 2}, "tolerance"), ({"max_rows": 0}, "max_rows"), ({"samples": -1}, "samples"),
        ({"max_tokens": 0}, "max_tokens"), ({"samples": 10**9}, "samples"),
    ],
)  # fmt: skip
def test_options_out_of_range(model: Model, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        model.probability(PROMPT, ["a", "b"], **options)


@pytest.mark.parametrize(
    ("constraint", "options", "message"),
    [
        (None, {}, "without a constraint"),
        (tokentrie.Form(tokentrie.Slot("a", ["b", "c"])), {}, "in forms"),
        (["a", "b"], {"top_p": 0.5}, "cuts and penalties"),
        (["a", "b"], {"temperature": 0}, "temperature 0"),
        (["a", "b"], {"after": "free"}, "free text follows"),
        (["a", "b"], {"skip_ahead": False}, "skip_ahead"),
    ],
)
def test_draws_that_cannot_be_corrected(model: Model, constraint: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=f"correct is not supported.*{message}"):
        model.generate(PROMPT, constraint, correct=4, **options)
    for wrong in (0, 5000):
        with pytest.raises(OptionError, match="correct"):
            model.generate(PROMPT, ["a"], correct=wrong)


def test_a_text_outside_of_the_rule(model: Model) -> None:
    found = model.probability(PROMPT, Regex("[ab]{1,2}"), text="c")
    assert found.text is not None
    assert found.text.bounds == found.text.share_bounds == (0, 0)
    with pytest.raises(TokenTrieError):
        model.probability([], Regex("a"))
