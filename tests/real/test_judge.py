"""transformers as a judge: the same float32 weights, computed by torch, token by token.

`Model` runs them as a GGUF in float32, transformers as PyTorch: see `weights`. It runs where torch and transformers are
installed beside a real model.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budget import cases
from tokentrie import JsonSchema, Model, Regex, Trie

torch = pytest.importorskip("torch", reason="torch is not installed beside tokentrie: no judge of logits")
pytest.importorskip("transformers", reason="transformers is not installed beside tokentrie: no judge of logits")
pytest.importorskip("gguf", reason="gguf is not installed: it writes float32 weights")

# transformers warns of its own plans.
pytestmark = pytest.mark.filterwarnings("ignore")

#: Sums in another order, over 30 layers.
CLOSE = 1e-3
SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Paris", "Oslo"]}, "sunny": {"type": "boolean"}},
    "required": ["city", "sunny"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def weights(real_path: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    from weights import float32_weights

    kept = os.environ.get("TOKENTRIE_FLOAT32")
    return float32_weights(real_path, Path(kept) if kept else tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="module")
def model(weights: tuple[Path, Path]) -> Iterator[Model]:
    with Model(weights[0], n_ctx=1024, precise=True) as model:
        yield model


class Judge:
    """transformers, asked for the log-probabilities of what comes next."""

    def __init__(self, folder: Path) -> None:
        import transformers

        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def logprobs(self, tokens: list[int], behind: int) -> np.ndarray[Any, Any]:
        """Log-probabilities after each of the tokens from `behind` on, a row each; of the last `len - behind` places
        and of the one before them."""
        with torch.inference_mode():
            logits = self.model(torch.tensor([tokens])).logits[0, behind - 1 :]
        found: np.ndarray[Any, Any] = torch.log_softmax(logits.double(), dim=-1).numpy()
        return found


@pytest.fixture(scope="module")
def judge(weights: tuple[Path, Path]) -> Judge:
    return Judge(weights[1])


WORDS = [
    "order",
    "ship",
    "late",
    "green",
    "river",
    "seven",
    "why",
    "refund",
    "hello",
    "Ärger",
    "数",
    "🎉",
    "don't",
    '"quoted"',
    "{x}",
    "<|im_end|>",
    "</s>",
    "3.14",
    "\t",
]


def drawn_messages(seed: int) -> list[dict[str, str]]:
    """A conversation of texts that are hard to render and to tokenise."""
    draw = random.Random(seed)
    text = lambda: draw.choice(["", " ", "\n"]) + " ".join(draw.choices(WORDS, k=draw.randint(1, 9)))  # noqa: E731
    system = [{"role": "system", "content": text()}] if draw.random() < 0.5 else []
    turns = draw.randint(0, 2)
    talk = [{"role": role, "content": text()} for _ in range(turns) for role in ("user", "assistant")]
    return [*system, *talk, {"role": "user", "content": text()}]


@pytest.mark.parametrize("seed", range(cases(100)))
def test_prompts_are_those_of_transformers(seed: int, model: Model, judge: Judge) -> None:
    messages = drawn_messages(seed)
    rendered = judge.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert model.chat_format.prompt(messages).text == rendered
    if any("<|" in message["content"] for message in messages):
        return  # what a user writes stays text here, and is a control token there
    expected = judge.tokenizer(rendered, add_special_tokens=False)["input_ids"]
    assert list(model.chat_prompt(messages)) == expected


QUESTIONS = ["Which animal barks?", "Say a number.", "Is water wet?", "Write a line about rain in Oslo.", "2+2="]


def asked(model: Model, text: str) -> list[int]:
    return list(model.chat_prompt([{"role": "user", "content": text}]))


@pytest.mark.parametrize("question", QUESTIONS)
def test_logprobs_are_those_of_transformers(question: str, model: Model, judge: Judge) -> None:
    prompt = asked(model, question)
    out = model.generate(prompt, logprobs=20, max_tokens=8)
    expected = judge.logprobs([*prompt, *out.tokens], len(prompt))
    for known, row in zip(out.logprobs, expected, strict=False):
        for token, logprob in [*known.top, (known.token, known.logprob)]:
            assert logprob == pytest.approx(float(row[token]), abs=CLOSE)


def greedy(row: np.ndarray[Any, Any], token: int, allowed: list[int] | None = None) -> bool:
    """Whether a token is the most probable of those that may come; near ties may fall otherwise."""
    best = row.max() if allowed is None else row[allowed].max()
    return bool(row[token] >= best - 2 * CLOSE)


@pytest.mark.parametrize("question", QUESTIONS)
def test_greedy_text_is_that_of_transformers(question: str, model: Model, judge: Judge) -> None:
    prompt = asked(model, question)
    out = model.generate(prompt, max_tokens=32)
    expected = judge.logprobs([*prompt, *out.tokens], len(prompt))
    assert len(out.tokens) >= 1
    for place, (token, row) in enumerate(zip(out.tokens, expected, strict=False)):
        assert greedy(row, token), (place, token, int(row.argmax()))


def pieces_of(judge: Judge) -> list[bytes]:
    """The bytes of each token, by the byte alphabet of GPT-2, as `tokenizers` documents it; of control tokens none."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}
    special = set(judge.tokenizer.all_special_tokens) | set(judge.tokenizer.get_added_vocab())
    names = judge.tokenizer.convert_ids_to_tokens(list(range(len(judge.tokenizer))))
    return [b"" if name in special else bytes(letters[letter] for letter in name) for name in names]


def begins(pattern: str, text: str) -> bool:
    """Whether a text begins one of a pattern `[class]{low,high}` or of a few words, by trying."""
    if match := re.fullmatch(r"\[0-9\]\{(\d)\}", pattern):
        return re.fullmatch(f"[0-9]{{0,{match[1]}}}", text) is not None
    return any(word.startswith(text) for word in pattern.strip("()").split("|"))


@pytest.mark.parametrize("pattern", ["[0-9]{4}", "(the dog|a dog|the cat|a tree)", "(yes|no|yesterday)"])
@pytest.mark.parametrize("question", QUESTIONS[:3])
def test_constrained_greedy_text_is_the_best_that_may_come(
    pattern: str, question: str, model: Model, judge: Judge
) -> None:
    prompt, pieces = asked(model, question), pieces_of(judge)
    out = model.generate(prompt, Regex(pattern), skip_ahead=False)
    assert re.fullmatch(pattern, out.text)
    expected = judge.logprobs([*prompt, *out.tokens], len(prompt))
    written = b""
    for token, row in zip(out.tokens, expected, strict=False):
        allowed = [n for n, piece in enumerate(pieces) if piece and begins(pattern, (written + piece).decode("latin1"))]
        if re.fullmatch(pattern, written.decode()):
            allowed += model.vocab.eog
        if token not in model.vocab.eog:
            assert greedy(row, token, allowed), (written, token)
            written += pieces[token]
    assert written.decode() == out.text


def test_documents_are_the_best_that_may_come(model: Model, judge: Judge) -> None:
    """All documents of a small schema, each text in all tokens that the greedy walk may choose."""
    prompt, pieces = asked(model, "Is it sunny in Oslo? JSON."), pieces_of(judge)
    out = model.generate(prompt, JsonSchema(SCHEMA, whitespace="none"), skip_ahead=False)
    cities = ["Rome", "Paris", "Oslo"]
    # Keys come in the order of the schema.
    documents = [{"city": city, "sunny": sunny} for city in cities for sunny in (True, False)]
    texts = [json.dumps(document, separators=(",", ":")) for document in documents]
    assert out.text in texts
    expected = judge.logprobs([*prompt, *out.tokens], len(prompt))
    written = ""
    for token, row in zip(out.tokens, expected, strict=False):
        if token in model.vocab.eog:
            break
        able = [n for n, piece in enumerate(pieces) if piece and piece.isascii()]
        allowed = [n for n in able if any(text.startswith(written + pieces[n].decode()) for text in texts)]
        assert greedy(row, token, allowed), (written, pieces[token])
        written += pieces[token].decode()


def tokenizations(text: bytes, pieces: list[bytes]) -> list[list[int]]:
    """Every way to write a text in tokens."""
    by_bytes = {piece: number for number, piece in enumerate(pieces) if piece}
    if not text:
        return [[]]
    ends = range(1, len(text) + 1)
    heads = [(by_bytes[text[:end]], text[end:]) for end in ends if text[:end] in by_bytes]
    return [[head, *rest] for head, tail in heads for rest in tokenizations(tail, pieces)]


LISTS = [["cat", "dog", "a dog"], ["yes", "no", "yes!"], ["4", "5", "45"]]


@pytest.mark.parametrize("names", LISTS)
@pytest.mark.parametrize("tokenization", ["canonical", "all"])
def test_choices_are_sums_of_transformers_probabilities(
    tokenization: str, names: list[str], model: Model, judge: Judge
) -> None:
    prompt, pieces = asked(model, QUESTIONS[len(names[0]) % 3]), pieces_of(judge)
    end = model.vocab.eog[0]

    def logprob(tokens: list[int]) -> float:
        rows = judge.logprobs([*prompt, *tokens], len(prompt))
        return float(sum(row[token] for row, token in zip(rows, [*tokens, end], strict=True)))

    def ways(name: str) -> list[list[int]]:
        canonical = judge.tokenizer(name, add_special_tokens=False)["input_ids"]
        return [canonical] if tokenization == "canonical" else tokenizations(name.encode(), pieces)

    expected = np.array([np.logaddexp.reduce([logprob(way) for way in ways(name)]) for name in names])
    choice = model.choose(prompt, names, tokenization=tokenization, end_tokens=[end])
    assert choice.logprobs == pytest.approx(expected, abs=CLOSE)
    assert choice.index == int(expected.argmax())
    assert choice.mass == pytest.approx(np.exp(expected).sum(), abs=CLOSE)
    assert [*choice.probabilities.values()] == pytest.approx(
        np.exp(expected - np.logaddexp.reduce(expected)), abs=CLOSE
    )


@pytest.mark.parametrize("seed", range(cases(20)))
def test_choices_among_drawn_sequences(seed: int, model: Model, judge: Judge) -> None:
    draw = random.Random(seed)
    prompt = asked(model, draw.choice(QUESTIONS))
    drawn = {tuple(draw.choices(range(100, 140), k=draw.randint(1, 4))) for _ in range(6)}
    rows = sorted(drawn)
    # A sequence that others begin with is a value of its own only with an end behind it.
    rows = [row for row in rows if not any(other != row and other[: len(row)] == row for other in rows)]
    choice = model.choose(prompt, Trie.from_sequences(rows, names=[str(row) for row in rows]))
    expected = []
    for row in rows:
        logprobs = judge.logprobs([*prompt, *row], len(prompt))
        expected.append(float(sum(line[token] for line, token in zip(logprobs, row, strict=False))))
    by_name = dict(zip(choice.names, choice.logprobs, strict=True))
    assert [by_name[str(row)] for row in rows] == pytest.approx(expected, abs=CLOSE)
