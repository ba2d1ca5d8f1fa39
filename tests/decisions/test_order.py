"""Independent options are branches of the prompt, and no order of them changes a bit; balanced orders end in time."""

from __future__ import annotations

import json
import random
import statistics
import warnings
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import tokentrie
from budget import cases
from models import copy_tiny, precise_model, recurrent_path
from tokentrie.decisions import Answer, AskedPrompt, Question, Score

pytestmark = pytest.mark.model

WORDS = ["red", "blue", "window", "meeting", "please", "show", "the", "delete", "refund", "twice", "calm", "lamp"]
HELD_OUT = Path(__file__).parents[2] / "tools" / "tiny_model" / "heldout_decisions.jsonl"
STATE = "Customer wrote: I was charged twice, refund one please."
TEAMS = {"billing": "Payments and refunds", "access": "Logins", "sales": None, "parts": "Spare parts and tools"}


@cache
def untaught_path() -> Path:
    """The tiny model in float32, without the word that it was trained on lists: its options may be branches."""
    return copy_tiny("untaught", f32=True, changes={"tokentrie.decision.layout": None})


@cache
def untaught() -> tokentrie.Model:
    return tokentrie.Model(untaught_path(), n_ctx=1024, n_threads=1, precise=True)


def drawn(draw: random.Random) -> tuple[str, dict[str, str | None]]:
    """A state and options, some with a meaning. Most states say nothing about any of them: options are close."""

    def text(most: int) -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(1, most)))

    options = dict.fromkeys(["one more", *(text(3) for _ in range(draw.randint(1, 8)))])
    return text(draw.choice([1, 8, 60])), {one: text(5) if draw.random() < 0.5 else None for one in options}


def shuffled(draw: random.Random, options: dict[str, str | None]) -> dict[str, str | None]:
    return {name: options[name] for name in draw.sample([*options], len(options))}


def bits(answer: Answer) -> tuple[Any, ...]:
    shares = sorted((str(option), share.hex()) for option, share in answer.probabilities.items())
    return (*shares, answer.mass.hex(), answer.entropy.hex(), answer.value, answer.prompts[0].tokens)


@pytest.mark.parametrize(
    "options", [{}, {"batching": "fixed"}, {"precise": True}, {"batching": "fixed", "slots": 3}], ids=str
)
def test_no_order_of_the_options_changes_a_bit(options: dict[str, Any]) -> None:
    draw = random.Random(57)
    # Of these settings one has to show it at full size.
    count = 200 if not options else cases(40)
    with tokentrie.Model(untaught_path(), n_ctx=1024, n_threads=1, **options) as model:
        for _ in range(count):
            state, listed = drawn(draw)
            asked: dict[str, Any] = {"order": "independent", "none_of_these": draw.random() < 0.2}
            found = model.decide(state, {"q": listed}, **asked)["q"]
            again = model.decide(state, {"q": shuffled(draw, listed)}, **asked)["q"]
            assert bits(again) == bits(found), (state, listed)
            assert (again.order, again.order_reason, again.flips, len(again.prompts)) == ("independent", None, 0, 1)
            assert list(found.probabilities)[: len(listed)] == list(listed)
            assert sum(found.probabilities.values()) == pytest.approx(1)
            assert found.index == max(range(len(found.probabilities)), key=[*found.probabilities.values()].__getitem__)


def test_slots_that_share_passes_have_the_same_answers() -> None:
    draw = random.Random(58)
    with tokentrie.Model(untaught_path(), n_ctx=1024, n_threads=1, precise=True, slots=3) as model:
        for _ in range(cases(20)):
            state, listed = drawn(draw)
            found = model.decide(state, {"q": listed}, order="independent")["q"]
            alone = untaught().decide(state, {"q": listed}, order="independent")["q"]
            assert found.probabilities == pytest.approx(alone.probabilities, abs=1e-3)


class Reference:
    """The tiny model in float64, by the formulas of its architecture: any positions, and any tokens hidden from any."""

    def __init__(self, path: Path) -> None:
        reader = gguf.GGUFReader(path)
        self.weights = {one.name: np.asarray(one.data, np.float64) for one in reader.tensors}
        said = {name: field.contents() for name, field in reader.fields.items() if name.startswith("llama.")}
        self.layers, self.heads = said["llama.block_count"], said["llama.attention.head_count"]
        self.base, self.epsilon = said["llama.rope.freq_base"], said["llama.attention.layer_norm_rms_epsilon"]

    def norm(self, rows: np.ndarray, weight: str) -> np.ndarray:
        return rows / np.sqrt((rows**2).mean(-1, keepdims=True) + self.epsilon) * self.weights[weight]

    def split(self, rows: np.ndarray, positions: np.ndarray | None = None) -> np.ndarray:
        """Rows by head, turned by their positions."""
        heads = rows.reshape(len(rows), self.heads, -1).transpose(1, 0, 2)
        if positions is None:
            return heads
        size = heads.shape[-1]
        angles = positions[:, None] * self.base ** (-np.arange(0, size, 2) / size)
        even, odd, cosine, sine = heads[..., 0::2], heads[..., 1::2], np.cos(angles), np.sin(angles)
        return np.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1).reshape(heads.shape)

    def logits(self, tokens: list[int], positions: np.ndarray, sees: np.ndarray) -> np.ndarray:
        """The logits after the last token."""
        rows = self.weights["token_embd.weight"][tokens]
        for layer in range(self.layers):
            of = {
                name.removeprefix(f"blk.{layer}."): one for name, one in self.weights.items() if f"blk.{layer}." in name
            }
            x = self.norm(rows, f"blk.{layer}.attn_norm.weight")
            q, k = (self.split(x @ of[f"attn_{one}.weight"].T, positions) for one in "qk")
            scores = np.where(sees, q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]), -np.inf)
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            shares /= shares.sum(-1, keepdims=True)
            mixed = (shares @ self.split(x @ of["attn_v.weight"].T)).transpose(1, 0, 2).reshape(len(rows), -1)
            rows = rows + mixed @ of["attn_output.weight"].T
            x = self.norm(rows, f"blk.{layer}.ffn_norm.weight")
            gate = x @ of["ffn_gate.weight"].T
            rows = rows + (gate / (1 + np.exp(-gate)) * (x @ of["ffn_up.weight"].T)) @ of["ffn_down.weight"].T
        head = self.weights.get("output.weight", self.weights["token_embd.weight"])
        return self.norm(rows[-1], "output_norm.weight") @ head.T  # type: ignore[no-any-return]


def places(prompt: AskedPrompt, more: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of a prompt's tokens and of some more, and which tokens each of them sees."""
    count = len(prompt.tokens) + more
    first, end = prompt.branches[0][0], prompt.branches[-1][1]
    positions, sees = np.arange(count), np.tril(np.ones((count, count), bool))
    for begin, until in prompt.branches:
        positions[begin:until] = first + np.arange(until - begin)
        sees[begin:until, first:begin] = False
    positions[end:] = first + max(until - begin for begin, until in prompt.branches) + np.arange(count - end)
    return positions, sees


@cache
def reference() -> Reference:
    return Reference(untaught_path())


def enumerated(model: tokentrie.Model, prompt: AskedPrompt) -> list[float]:
    """The probability of each text and the end of the turn, in float64."""
    known: dict[tuple[int, ...], np.ndarray] = {}

    def shares(tokens: tuple[int, ...]) -> np.ndarray:
        if tokens not in known:
            positions, sees = places(prompt, len(tokens))
            logits = reference().logits([*prompt.tokens, *tokens], positions, sees)
            known[tokens] = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        return known[tokens]

    found = []
    for text in prompt.values:
        tokens = tuple(model.vocab.tokenize(text))
        share = float(np.prod([shares(tokens[:at])[token] for at, token in enumerate(tokens)]))
        found.append(share * shares(tokens)[prompt.end_tokens].sum())
    return found


def test_probabilities_are_those_of_branches_in_float64() -> None:
    model = untaught()
    for number in range(cases(20)):
        state, listed = (STATE, TEAMS) if number == 0 else drawn(random.Random(number))
        answer = model.decide(state, {"q": listed}, order="independent", spellings=False, end="required")["q"]
        expected = enumerated(model, answer.prompts[0])
        mass = sum(expected)
        assert answer.mass == pytest.approx(mass, abs=1e-3, rel=1e-2)
        assert list(answer.probabilities.values()) == pytest.approx([one / mass for one in expected], abs=1e-3)


def test_each_branch_is_the_line_of_an_option_alone() -> None:
    model = untaught()
    answer = model.decide(STATE, {"team": dict(reversed(TEAMS.items()))}, order="independent")["team"]
    (prompt,) = answer.prompts
    lines = [model.vocab.detokenize_bytes(prompt.tokens[begin:end]) for begin, end in prompt.branches]
    told = {name: f"- {name}\n" if meaning is None else f"- {name}: {meaning}\n" for name, meaning in TEAMS.items()}
    assert lines == [told[name].encode() for name in sorted(TEAMS)]
    assert [prompt.tokens[begin:end] for begin, end in prompt.branches] == [
        model.vocab.tokenize(line.decode()) for line in lines
    ]
    plain = model.decide(STATE, {"team": {name: TEAMS[name] for name in sorted(TEAMS)}})["team"].prompts[0]
    assert model.vocab.detokenize_bytes(prompt.tokens) == model.vocab.detokenize_bytes(plain.tokens)
    assert plain.branches == []


def test_what_has_no_order_of_the_caller_stays() -> None:
    model = untaught()
    questions = {"on": bool, "size": Score(["small", "large"]), "hidden": ["a", "b"]}
    usual, asked = (model.decide(STATE, questions, order=order) for order in ("given", "independent"))
    for name in ("on", "size"):
        assert asked[name].order == "given"
        assert usual[name].probabilities == pytest.approx(asked[name].probabilities, abs=1e-4)
    assert asked["hidden"].order == "independent"
    hidden = model.decide(STATE, {"hidden": ["a", "b"]}, order="independent", list_options=False)["hidden"]
    assert (hidden.order, hidden.order_reason) == ("given", None)


def test_beside_other_questions_and_states() -> None:
    model = untaught()
    questions: dict[str, Any] = {"team": TEAMS, "refund": bool, "colour": ["red", "blue"]}
    states = [STATE, "The lamp is red.", "N/A"]
    for state, answers in zip(states, model.decide_many(states, questions, order="independent"), strict=True):
        for name, question in questions.items():
            alone = model.decide(state, {name: question}, order="independent")[name]
            assert answers[name].probabilities == pytest.approx(alone.probabilities, abs=1e-4)
            assert answers[name].order == alone.order == ("given" if name == "refund" else "independent")
    with_prior = model.decide(STATE, {"team": TEAMS}, order="independent", prior="content-free")["team"]
    assert sum(with_prior.probabilities.values()) == pytest.approx(1)


def test_examples_list_no_options() -> None:
    model = untaught()
    examples = [("I cannot log in.", {"team": "access"})]
    prompt = model.decide(STATE, {"team": TEAMS}, order="independent", examples=examples)["team"].prompts[0]
    assert model.vocab.detokenize(prompt.tokens).count("- billing: Payments") == 1


def test_a_calibration_knows_the_options_as_they_were_given() -> None:
    model = untaught()
    states = [f"{kind} {number}." for number in range(10) for kind in ("Refund please", "The lamp is on")]
    gold = {"team": ["billing", "other"] * 10}
    made = model.calibrate(states, {"team": ["billing", "other"]}, gold, order="independent")
    ask = {"order": "independent", "calibration": made}
    found = model.decide(states[0], {"team": ["billing", "other"]}, **ask)["team"]
    assert list(found.probabilities) == ["billing", "other"]
    with pytest.raises(tokentrie.errors.OptionError, match="another question of this name"):
        model.decide(states[0], {"team": ["other", "billing"]}, **ask)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"readout": "label"}, "labels say the place of an option"),
        ({"prompt": "{state}\nOne of: {options}"}, "alone in a line"),
        ({"order": "random"}, '"given", "independent" or "balanced"'),
        ({"order_confidence": 2}, "order_confidence"),
    ],
)
def test_what_cannot_be_independent_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(tokentrie.errors.OptionError, match=says):
        untaught().decide(STATE, {"q": ["a", "b"]}, **{"order": "independent", **options})


def test_a_state_that_says_the_mark_gets_balanced_orders() -> None:
    model = untaught()
    state = "options-of-tokentrie-2f61c0e19b7d4a58"
    with pytest.warns(tokentrie.errors.TokenTrieWarning, match="balanced orders are asked instead"):
        answer = model.decide(state, {"q": ["a", "b"]}, order="independent")["q"]
    assert answer.order == "balanced"
    assert "does not show them once" in str(answer.order_reason)
    assert f"{state}\n" in model.vocab.detokenize(answer.prompts[0].tokens)


def test_a_recurrent_model_gets_balanced_orders() -> None:
    with tokentrie.Model(recurrent_path(), n_threads=1) as model:
        with pytest.warns(
            tokentrie.errors.TokenTrieWarning, match="recurrent state.*balanced orders are asked instead"
        ):
            answer = model.decide("The lamp is red.", {"colour": ["red", "blue", "green"]}, order="independent")[
                "colour"
            ]
        assert answer.order == "balanced"
        assert 2 <= len(answer.prompts) <= 6
        assert sum(answer.probabilities.values()) == pytest.approx(1)


def requests(task: str, count: int) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in HELD_OUT.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row["task"] == task][:count]


def question(row: dict[str, Any]) -> Question:
    return Question({text: meaning or None for text, meaning in row["options"]}, instructions=row["instructions"])


def test_balanced_orders_have_the_winner_of_the_whole_design() -> None:
    model = precise_model("trained")
    asked, wrong, rows = [], 0, requests("request_of_5", cases(20))
    for row in rows:
        whole = model.decide(row["state"], {"q": question(row)}, order="balanced", order_confidence=1)["q"]
        every = model.decide(row["state"], {"q": question(row)}, permute=10)["q"]
        early = model.decide(row["state"], {"q": question(row)}, order="balanced", order_confidence=0.9)["q"]
        assert whole.value == every.value, "asked until no other option can win"
        assert len(early.prompts) <= len(whole.prompts) <= len(every.prompts) == 10
        assert 0 <= early.flips < 1
        assert early.order == "balanced"
        wrong += early.value != every.value
        asked.append(len(early.prompts))
    assert statistics.mean(asked) < 9
    assert wrong <= max(1, len(rows) // 10)
    few = model.decide(STATE, {"q": TEAMS}, order="balanced", permute=3, order_confidence=1)["q"]
    assert len(few.prompts) <= 3


def test_a_model_that_was_trained_on_lists_gets_balanced_orders() -> None:
    """With its options as branches the tiny model is right in half of these; in one order it is in nearly all."""
    model, right, rows = precise_model("trained"), 0, requests("request_of_3", cases(40))
    draw, mean = random.Random(3), 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in rows:
            truth = row["options"][row["right"]][0]
            asked = [{**row, "options": draw.sample(row["options"], 3)} for _ in range(2)]
            one, other = (model.decide(row["state"], {"q": question(each)}, order="independent")["q"] for each in asked)
            assert bits(one) == bits(other)
            assert one.order == "balanced"
            right += one.value == truth
            orders = [{**row, "options": order} for order in permutations(row["options"])]
            hits = [model.decide(row["state"], {"q": question(each)})["q"].value == truth for each in orders]
            mean += statistics.mean(hits)
    assert right >= mean - 0.5, "at least as often as in one order"


def test_many_options_without_a_preference_end_with_a_bound() -> None:
    draw, options = random.Random(5), set[str]()
    while len(options) < 20_000:
        options.add(" ".join("".join(draw.choices("abdegiklmnoprstu", k=draw.randint(3, 7))) for _ in range(2)))
    model = precise_model("trained")
    ask: dict[str, Any] = {"list_options": False, "top": 10}
    with pytest.warns(tokentrie.errors.TokenTrieWarning, match="the 300 rows of max_rows were too few for the 10 best"):
        few = model.decide("The lamp is on.", {"q": sorted(options)}, max_rows=300, **ask)["q"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        many = model.decide("The lamp is on.", {"q": sorted(options)}, max_rows=1_000_000, **ask)["q"]
    assert many.certain is not None
    assert many.certain >= 10
    assert few.certain is not None
    assert few.certain < 10
    assert few.unscored is not None
    assert 0 < few.unscored < 1
    # The exact answer has no option above what the other one said is the most.
    best = sorted((share for share in many.probabilities.values() if share == share), reverse=True)
    known = {option: share for option, share in few.probabilities.items() if share == share}
    assert all(
        option in known or share <= few.unscored for option, share in many.probabilities.items() if share == share
    )
    assert best[0] <= max(few.unscored, *(share for share in many.probabilities.values() if share == share))
    small = model.decide("The lamp is on.", {"q": ["a", "b"]})["q"]
    assert (small.certain, small.unscored) == (None, None)
