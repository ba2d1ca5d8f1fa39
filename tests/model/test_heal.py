"""Sets that begin inside the prompt, against the definition: whole texts as the tokenizer writes them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from budget import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from models import PRECISE, copy_tiny, precise_model
from tokentrie import Form, Model, Slot, Trie
from tokentrie.errors import OptionError, TrieError

pytestmark = pytest.mark.model

PROMPTS = [
    "The next action is ",
    "Is it?",
    "x",
    "see http:",
    "a  ",
    "The city\n",
    "The cit",
    '{"name": "',
    "naïve e",
    "日",
]
VALUES = ["REPLY", "REPLY_THREAD", "//example.org", "yes", " no", "'s", "y of Zürich", "the", "12", "本"]
LABELS = ["positive", "negative", "neutral"]
ROUNDING = 1e-4


def log_softmax(row: np.ndarray) -> np.ndarray:
    row = row.astype(np.float64) - row.max()
    return row - np.log(np.exp(row).sum())


def split(model: Model, prompt: str, values: Sequence[str], suffix: str = "") -> tuple[list[int], list[list[int]]]:
    """The tokens that the prompt shares with all whole texts, and what comes after them in each."""
    vocab = model.vocab
    before = vocab.tokenize(prompt, add_special=True, parse_special=True)
    whole = [vocab.tokenize(prompt + value + suffix, add_special=True, parse_special=True) for value in values]
    shared = next((n for n, column in enumerate(zip(before, *whole, strict=False)) if len(set(column)) > 1), None)
    kept = min(len(before), *map(len, whole)) if shared is None else shared
    return before[:kept], [tokens[kept:] for tokens in whole]


def twin(model: Model, prompt: str, values: Sequence[str], suffix: str = "", ends: Sequence[int] = ()) -> np.ndarray:
    """Log-probabilities, one forward pass a token."""
    start, leaves = split(model, prompt, values, suffix)

    def score(leaf: list[int]) -> float:
        score = sum(log_softmax(model.logits(start + leaf[:n]))[token] for n, token in enumerate(leaf))
        children = {other[len(leaf)] for other in leaves if len(other) > len(leaf) and other[: len(leaf)] == leaf}
        after = log_softmax(model.logits(start + leaf))
        if ends:
            return score + np.logaddexp.reduce(after[sorted(set(ends) - children)], initial=-np.inf)
        return score + (np.logaddexp.reduce(np.delete(after, sorted(children))) if children else 0)

    return np.array([score(leaf) for leaf in leaves])


def taken_back(model: Model, prompt: str, values: Sequence[str], suffix: str = "") -> int:
    """Bytes of the prompt's tokens that are spelled again; 0 where that would be all of them."""
    before = model.vocab.tokenize(prompt, add_special=True, parse_special=True)
    kept = len(split(model, prompt, values, suffix)[0])
    return sum(len(model.vocab[token]) for token in before[kept:]) if kept else 0


@pytest.fixture
def model() -> Model:
    return precise_model("trained")


@pytest.mark.parametrize("name", PRECISE)
def test_whole_texts_token_by_token(name: str) -> None:
    model = precise_model(name)
    healed = 0
    for prompt in PROMPTS[:4] if name == "qwen2" else PROMPTS:
        if not split(model, prompt, VALUES)[0]:
            continue  # nothing would be left of the prompt: see below
        choice = model.choose(prompt, VALUES)
        np.testing.assert_allclose(choice.logprobs, twin(model, prompt, VALUES), rtol=0, atol=ROUNDING)
        assert choice.name == VALUES[choice.index]
        assert choice.stats.healed_bytes == taken_back(model, prompt, VALUES)
        healed += choice.stats.healed_bytes > 0
    assert healed > 2


@pytest.mark.parametrize("name", PRECISE)
def test_prompt_and_text_are_the_whole_text(name: str) -> None:
    model = precise_model(name)
    for prompt in PROMPTS:
        if not split(model, prompt, VALUES)[0]:
            with pytest.raises(OptionError, match="that is all of the prompt"):
                model.generate(prompt, VALUES)
            continue
        for skip_ahead in (True, False):
            out = model.generate(prompt, VALUES, skip_ahead=skip_ahead, max_tokens=200)
            assert out.leaf is not None
            if start := split(model, prompt, VALUES)[0]:
                assert out.text == out.leaf.name in VALUES
                assert out.stats.healed_bytes == taken_back(model, prompt, VALUES)
                text = f"{prompt}{out.leaf.name}"
                assert start + out.tokens == model.vocab.tokenize(text, add_special=True, parse_special=True)
        drawn = [model.generate(prompt, VALUES, mode="sampled", skip_ahead=skip, seed=3) for skip in (True, False)]
        assert drawn[0].tokens == drawn[1].tokens
        assert drawn[0].text == drawn[1].text


LETTERS = st.sampled_from([*"abe thingsr.:'", "  ", "\n", "é", "12", "//", "<|im_end|>"])


@settings(max_examples=cases(80), deadline=None)
@given(
    st.lists(LETTERS, max_size=8).map("".join),
    st.lists(
        st.lists(LETTERS.filter(lambda part: len(part) < 3), min_size=1, max_size=4).map("".join),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from(["", "", ".", " is"]),
)
def test_any_text(prompt: str, values: list[str], suffix: str) -> None:
    model, values, prompt = precise_model("trained"), list(dict.fromkeys(values)), f"it {prompt}"
    for ends in ([], model.vocab.eog):
        choice = model.choose(prompt, values, suffix=suffix, end_tokens=ends)
        expected = twin(model, prompt, values, suffix, ends)
        np.testing.assert_allclose(choice.logprobs, expected, rtol=0, atol=1e-3)
    best = model.choose(prompt, values, suffix=suffix, end_tokens=ends, top=1)
    assert expected[best.index] > expected.max() - 1e-3
    assert best.stats.healed_bytes == choice.stats.healed_bytes == taken_back(model, prompt, values, suffix)


def test_nothing_left_of_the_prompt() -> None:
    """A forward pass needs a token: texts and sets are refused alike, and a prompt of ids stays as it is."""
    model = precise_model("trained")
    prompt, values = next(
        (prompt, [value])
        for prompt in "abcdefghij"
        for value in ("he", "nd", "in", "e")
        if not split(model, prompt, [value])[0]
    )
    trie = Trie.from_strings(model.vocab, values, prompt, heal=True)
    for constraint in (values, trie):
        for call in (model.choose, model.generate):
            with pytest.raises(OptionError, match=f'takes "{prompt}" off the end of the prompt'):
                call(prompt, constraint)
    assert model.choose(model.vocab.tokenize(prompt), values).stats.healed_bytes == 0


def test_some_prompts_healed_and_some_not(model: Model) -> None:
    prompts: list[str | list[int]] = [
        "It is ",
        "It is",
        "A",
        "It is: ",
        model.vocab.tokenize("It is "),
        "So it was\n",
        "",
    ]
    prompts = [*prompts[:-1], *prompts[:-1], "It is "] * 4
    choices = list(model.choose_many(prompts, LABELS))
    assert len(choices) == len(prompts)
    assert {choice.stats.healed_bytes for choice in choices} == {0, 1}
    for prompt, choice in zip(prompts, choices, strict=True):
        if isinstance(prompt, str):
            expected = twin(model, prompt, LABELS)
            assert choice.stats.healed_bytes == taken_back(model, prompt, LABELS)
        else:
            expected = model.choose(prompt, LABELS).logprobs
            assert choice.stats.healed_bytes == 0, "a prompt of ids stays as it is"
        np.testing.assert_allclose(choice.logprobs, expected, rtol=0, atol=1e-3)


def test_what_the_context_holds_is_used(model: Model) -> None:
    model.clear()
    first = model.choose("The label of this text is ", LABELS)
    again = model.choose("The label of this text is ", LABELS)
    assert again.stats.tokens_decoded < first.stats.tokens_decoded
    np.testing.assert_allclose(first.logprobs, again.logprobs, rtol=0, atol=ROUNDING)
    out = model.generate("The label of this text is ", LABELS)
    np.testing.assert_allclose(
        model.choose(f"The label of this text is {out.text} and ", LABELS).logprobs,
        twin(model, f"The label of this text is {out.text} and ", LABELS),
        rtol=0,
        atol=1e-3,
    )


def test_prefix_and_suffix(model: Model) -> None:
    choice = model.choose("say ye", ["s", "t"], prefix="ye", suffix=".")
    trie = Trie.from_strings(model.vocab, ["s", "t"], "ye", ".", heal=True)
    assert choice.stats.healed_bytes == trie.heal_bytes == 2
    by_name = {leaf.name: leaf.tokens for leaf in trie}
    start = model.vocab.tokenize("say ")
    for value, logprob in zip(["s", "t"], choice.logprobs, strict=True):
        tokens = by_name[value]
        rows = [log_softmax(model.logits(start + tokens[:n])) for n in range(len(tokens))]
        assert logprob == pytest.approx(sum(row[token] for row, token in zip(rows, tokens, strict=True)), abs=1e-4)
    ids = model.vocab.tokenize("say ") + model.vocab.tokenize("ye")
    np.testing.assert_allclose(
        model.choose(ids, ["s", "t"], prefix="ye", suffix=".").logprobs, choice.logprobs, atol=1e-4
    )
    for prompt in ("Is it?", model.vocab.tokenize("Is it?")):
        with pytest.raises(
            OptionError,
            match=r'spells "ye" again \(heal_bytes\), but this prompt ends with .*" it", "\?"\]|prefix is "ye", but',
        ):
            model.choose(prompt, ["s", "t"], prefix="ye")


def test_a_chat_prompt(model: Model) -> None:
    messages = [{"role": "user", "content": "Is it? "}]
    prompt = model.chat_prompt(messages)
    choice = model.choose(prompt, LABELS)
    assert choice.stats.healed_bytes == 0
    text = model.vocab.detokenize(prompt)
    assert model.vocab.tokenize(text, add_special=True, parse_special=True) == prompt
    assert model.choose(text, LABELS).stats.healed_bytes == taken_back(model, text, LABELS)
    np.testing.assert_allclose(model.choose(text, LABELS).logprobs, twin(model, text, LABELS), rtol=0, atol=1e-3)
    # Ids that end in text: the set says what is taken back.
    trie = Trie.from_strings(model.vocab, LABELS, prefix=" ", heal=True)
    answer = [*prompt, *model.vocab.tokenize("It is ")]
    healed = model.choose(answer, trie)
    assert healed.stats.healed_bytes == 1
    np.testing.assert_allclose(
        [healed.logprobs[leaf.index] for leaf in sorted(trie, key=lambda leaf: LABELS.index(leaf.name or ""))],
        twin(model, text + "It is ", LABELS),
        rtol=0,
        atol=1e-3,
    )
    with pytest.raises(OptionError, match='spells " " again'):
        model.choose(prompt, trie)


def test_names_of_control_tokens_stay_text(model: Model) -> None:
    for value in ("<|im_end|>", "<tool_call>"):
        for prompt in ("It is ", "It is <|im_", "<|im_start|>assistant\n"):
            out = model.generate(prompt, [value, "yes"], max_tokens=40)
            assert not set(out.tokens) & set(model.vocab.control)
            choice = model.choose(prompt, [value, "yes"])
            assert np.isfinite(choice.logprobs).all()


def test_a_healed_trie_everywhere(model: Model, tmp_path: Path) -> None:
    trie = Trie.from_strings(model.vocab, LABELS, "is ", heal=True)
    assert trie.heal_bytes == 1
    trie.save(tmp_path / "set.ttrie", model.vocab)
    opened = Trie.open(tmp_path / "set.ttrie", vocab=model.vocab, verify=True)
    expected = model.choose("It is ", trie)
    assert expected.stats.healed_bytes == 1
    for same in (
        opened,
        pickle.loads(pickle.dumps(trie)),
        pickle.loads(pickle.dumps(opened)),
        copy.deepcopy(trie),
        trie.filter(lambda _: True),
        trie.sample(3),
        trie | trie,
        trie & opened,
        Trie.from_numpy(*trie.to_numpy(), trie.names, heal_bytes=1),
    ):
        assert same == trie
        assert same.heal_bytes == 1
        assert (model.choose("It is ", same).logprobs == expected.logprobs).all()
    plain = Trie.from_sequences([leaf.tokens for leaf in trie], trie.names)
    assert plain != trie
    for combine in (trie.union, trie.intersection, trie.difference, trie.symmetric_difference):
        with pytest.raises(TrieError, match="spell 1 bytes of the prompt again and one whose leaves spell 0"):
            combine(plain)
    for wrong in (-1, 2**32):
        with pytest.raises(OptionError, match="heal_bytes is"):
            Trie.from_numpy(*trie.to_numpy(), heal_bytes=wrong)
    out = model.generate("It is ", trie)
    assert out.leaf is not None
    assert out.text == out.leaf.name
    assert [choice.name for choice in model.choose_many(["It is ", "It is "], trie)] == [expected.name] * 2
    with pytest.raises(OptionError, match='prompt 1: the set begins inside its prompt and spells " " again'):
        list(model.choose_many(["It is ", "It is"], trie))


def test_slots(model: Model) -> None:
    trie = Trie.from_strings(model.vocab, LABELS, "is ", heal=True)
    texts = Form("It is ", Slot("label", LABELS), ".")
    tokens = Form("It is ", Slot("label", trie), ".")
    first = Form(Slot("label", trie), ".")
    for mode in ("greedy", "exact"):
        expected = model.generate("So. ", texts, mode=mode)  # type: ignore[arg-type]
        out = model.generate("So. ", tokens, mode=mode, probabilities=True)  # type: ignore[arg-type]
        assert (out.text, out.tokens, out.values, out.canonical) == (
            expected.text,
            expected.tokens,
            expected.values,
            True,
        )
        begins = model.generate("So. It is ", first, mode=mode, probabilities=True)  # type: ignore[arg-type]
        assert begins.text == f"{begins.values['label']}."
        assert begins.values["label"] in LABELS
        assert begins.stats.healed_bytes == 1
    with pytest.raises(
        OptionError, match=r'slot "label" begins inside .* spells " " again .* but "It is" stands there'
    ):
        model.generate("So. ", Form("It is", Slot("label", trie)))
    with pytest.raises(OptionError, match='spells " " again'):
        model.generate("So.", first)


def test_a_tokenizer_that_nothing_is_known_of() -> None:
    path = copy_tiny("other-words", f32=True, changes={"tokenizer.ggml.pre": "bloom"})
    model = Model(path, n_ctx=1024, n_threads=1, precise=True)
    long = "It was said of the city that " * 20
    for prompt in [*PROMPTS, long, long + "x", long.strip()]:
        if split(model, prompt, VALUES)[0]:
            choice = model.choose(prompt, VALUES)
            assert choice.stats.healed_bytes == taken_back(model, prompt, VALUES)
            np.testing.assert_allclose(choice.logprobs, twin(model, prompt, VALUES), rtol=0, atol=1e-3)
