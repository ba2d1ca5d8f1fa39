"""Vectors of texts, beside a forward pass in float64 that shares no code with ours."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from budget import cases
from models import TINY, recurrent_path
from numpy.typing import NDArray
from tokentrie import CancelToken, Model
from tokentrie.errors import CancelledError, ContextError, ModelError, OptionError, TimedOutError, VocabularyError

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from mutate_gguf import BOOL, U32, Gguf, Value

pytestmark = pytest.mark.model

N_CTX = 512
POOLINGS: dict[int | None, Callable[[NDArray[Any]], NDArray[Any]]] = {
    None: lambda rows: rows.mean(0),
    0: lambda rows: rows.mean(0),
    1: lambda rows: rows.mean(0),
    2: lambda rows: rows[0],
    3: lambda rows: rows[-1],
}
WORDS = [
    "the lamp",
    " is",
    " on",
    " in the kitchen",
    "Ann",
    " lives in Rome",
    "<|im_end|>",
    " größer",
    "\n",
    "猫",
    " 42",
]


class Twin:
    """The tiny model in float64, after its architecture in `tools/tiny_model`: rotations are of neighbours."""

    def __init__(self) -> None:
        reader = gguf.GGUFReader(TINY)
        self.weights = {one.name: one.data.astype(np.float64) for one in reader.tensors}
        field = {name: entry.contents() for name, entry in reader.fields.items()}
        self.layers, self.heads = field["llama.block_count"], field["llama.attention.head_count"]
        self.epsilon, self.base = field["llama.attention.layer_norm_rms_epsilon"], field["llama.rope.freq_base"]

    def norm(self, x: NDArray[Any], name: str) -> NDArray[Any]:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon) * self.weights[f"{name}.weight"]

    def linear(self, x: NDArray[Any], name: str) -> NDArray[Any]:
        return x @ self.weights[f"{name}.weight"].T

    def rows(self, tokens: list[int]) -> NDArray[Any]:
        """float64 [tokens, width]: what the head would read."""
        x = self.weights["token_embd.weight"][tokens]
        count, width = x.shape
        size = width // self.heads
        angles = np.arange(count)[:, None] * self.base ** (-np.arange(0, size, 2) / size)
        turns = np.exp(1j * angles)[:, None, :]
        unseen = np.triu(np.full((count, count), -np.inf), 1)

        def turned(y: NDArray[Any]) -> NDArray[Any]:
            pairs = y.reshape(count, self.heads, size // 2, 2)
            z = (pairs[..., 0] + 1j * pairs[..., 1]) * turns
            return np.stack([z.real, z.imag], -1).reshape(count, self.heads, size)

        for layer in range(self.layers):
            block = f"blk.{layer}"
            h = self.norm(x, f"{block}.attn_norm")
            q, k, v = (self.linear(h, f"{block}.attn_{one}").reshape(count, self.heads, size) for one in "qkv")
            scores = np.einsum("ihd,jhd->hij", turned(q), turned(k)) / np.sqrt(size) + unseen
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            shares /= shares.sum(-1, keepdims=True)
            x = x + self.linear(np.einsum("hij,jhd->ihd", shares, v).reshape(count, width), f"{block}.attn_output")
            h = self.norm(x, f"{block}.ffn_norm")
            gate = self.linear(h, f"{block}.ffn_gate")
            inner = gate / (1 + np.exp(-gate)) * self.linear(h, f"{block}.ffn_up")
            x = x + self.linear(inner, f"{block}.ffn_down")
        return self.norm(x, "output_norm")


@pytest.fixture(scope="module")
def twin() -> Twin:
    return Twin()


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(n_ctx=N_CTX, n_threads=1)


def text(draw: random.Random, most: int = 12) -> str:
    return "".join(draw.choices(WORDS, k=draw.randint(1, most)))


def unit(vector: NDArray[Any]) -> NDArray[Any]:
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("pooling", POOLINGS, ids=str)
def test_vectors_are_those_of_a_naive_forward_pass(twin: Twin, tmp_path: Path, pooling: int | None) -> None:
    draw = random.Random(f"pooling {pooling}")
    file = Gguf.read(TINY)
    if pooling is not None:
        file.put(b"llama.pooling_type", Value(U32, pooling))
    (path := tmp_path / "model.gguf").write_bytes(file.written())
    # Passes are shorter than texts: a vector is put together from several of them.
    for n_batch, precise in ((512, True), (7, True), (512, False)):
        with Model(path, n_ctx=N_CTX, n_threads=1, n_batch=n_batch, precise=precise) as model:
            texts = [text(draw, 50) for _ in range(cases(20))]
            tokens = [[*map(int, model.vocab.tokenize(one, add_special=True, parse_special=False))] for one in texts]
            got = model.embed(texts)
            assert (got.shape, got.dtype) == ((len(texts), 160), np.float32)
            expected = np.array([unit(POOLINGS[pooling](twin.rows(one))) for one in tokens])
            np.testing.assert_allclose((got * expected).sum(1), 1, atol=1e-4)
            np.testing.assert_allclose(got, expected, atol=2e-3 if precise else 1e-2)
            np.testing.assert_allclose(np.linalg.norm(got, axis=1), 1, atol=1e-6)


def test_a_text_has_the_same_bits_whatever_is_beside_it(model: Model) -> None:
    draw = random.Random(2)
    texts = [text(draw, 90) for _ in range(cases(60))]
    together = model.embed(texts)
    order = draw.sample(range(len(texts)), len(texts))
    np.testing.assert_array_equal(model.embed([texts[number] for number in order]), together[order])
    for number in order[:3]:
        np.testing.assert_array_equal(model.embed([texts[number]])[0], together[number])
    for row, tokens in zip(together, map(model.vocab.tokenize, texts), strict=True):
        np.testing.assert_array_equal(model.embed([np.array(tokens)])[0], row)


def test_generations_go_on_beside_it(model: Model) -> None:
    prompt = "The sky is "
    alone, vector = model.generate(prompt, max_tokens=20), model.embed([prompt])
    done: list[Any] = []
    threads = [
        threading.Thread(target=lambda: done.append(model.embed([prompt] * 20))),
        threading.Thread(target=lambda: done.append(model.embed([prompt] * 5))),
    ]
    for one in threads:
        one.start()
    for _ in range(5):
        assert model.generate(prompt, max_tokens=20).text == alone.text
    for one in threads:
        one.join()
    assert {len(one) for one in done} == {20, 5}
    for one in done:
        assert (one == vector).all()


@pytest.mark.parametrize("options", [{"slots": 2}, {"batching": "fixed"}, {"cache_type": "q8_0"}], ids=str)
def test_models_with_other_options_have_them_too(model: Model, options: dict[str, Any]) -> None:
    with Model(n_ctx=N_CTX, n_threads=1, **options) as other:
        texts = ["The lamp is on.", "Ann lives in Rome."]
        assert ((other.embed(texts) * model.embed(texts)).sum(1) > 0.999).all()


def test_recurrent_models_forget_between_texts() -> None:
    with Model(recurrent_path(), n_ctx=256, n_threads=1, n_batch=5) as model:
        texts = ["The next action is send_mail.", "Ann", "lives in Rome" * 9]
        together = model.embed(texts)
        for one, row in zip(texts, together, strict=True):
            np.testing.assert_array_equal(model.embed([one])[0], row)
        assert together[0] @ together[1] < 0.9999


def test_no_texts_have_no_vectors(model: Model) -> None:
    assert model.embed([]).shape == (0, 160)
    assert model.embed(iter(["a"])).shape == (1, 160)


@pytest.mark.parametrize(
    ("texts", "error", "says"),
    [
        ("one str", TypeError, "texts must be a list of texts, not one str"),
        (["a", 3], TypeError, r"texts\[1\]"),
        (["a", None], TypeError, r"texts\[1\]"),
        (["a", ""], OptionError, r"texts\[1\]: it has no tokens"),
        ([[]], OptionError, r"texts\[0\]: it has no tokens"),
        (["a", [10**6]], VocabularyError, r"texts\[1\]: token id 1000000 .* outside"),
        (["a", " x" * 600], ContextError, r"texts\[1\]: 600 tokens .* room for 512"),
        (["\ud800"], VocabularyError, r"texts\[0\]"),
    ],
    ids=repr,
)
def test_what_is_wrong_is_named(model: Model, texts: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        model.embed(texts)
    assert model.embed(["a"]).shape == (1, 160)


@pytest.mark.parametrize(("pooling", "says"), [(4, "rank"), (9, "is 9, which is not known")])
def test_files_without_vectors_say_why(tmp_path: Path, pooling: int, says: str) -> None:
    file = Gguf.read(TINY).put(b"llama.pooling_type", Value(U32, pooling))
    (path := tmp_path / "model.gguf").write_bytes(file.written())
    with Model(path, n_ctx=64, n_threads=1) as model:
        with pytest.raises(ModelError, match=f"embeddings are not supported by this model: .*{says}"):
            model.embed(["a"])
        assert model.generate("a", max_tokens=1).tokens


def test_models_that_look_ahead_are_refused(tmp_path: Path) -> None:
    file = Gguf.read(TINY).put(b"llama.attention.causal", Value(BOOL, False))
    (path := tmp_path / "model.gguf").write_bytes(file.written())
    with pytest.raises(ModelError, match=r"llama\.attention\.causal is false: .* does not predict the next one"):
        Model(path)


def test_a_call_is_ended_and_the_next_one_is_right(model: Model) -> None:
    expected, many = model.embed(["a"]), ["lamp " * 200] * 500
    with pytest.raises(TimedOutError, match=r"timeout of 0\.05 s"):
        model.embed(many, timeout=0.05)
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(CancelledError):
        model.embed(many, cancel=cancel)
    for end in (model.cancel, (later := CancelToken()).cancel):
        threading.Timer(0.2, end).start()
        began = time.monotonic()
        with pytest.raises(CancelledError):
            model.embed(many, cancel=later)
        assert time.monotonic() - began < 30
    np.testing.assert_array_equal(model.embed(["a"]), expected)


def test_closing_ends_it() -> None:
    model = Model(n_ctx=N_CTX, n_threads=1)
    (closing := threading.Timer(0.3, model.close)).start()
    with pytest.raises(ModelError):
        model.embed(["lamp " * 200] * 1000)
    closing.join()
    with pytest.raises(ModelError, match="the model is closed"):
        model.embed(["a"])
