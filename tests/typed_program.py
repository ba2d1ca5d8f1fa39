"""A program for `mypy --strict`: what is right must pass, and each ignored line must be wrong. It is not run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tokentrie
from numpy.typing import NDArray
from tokentrie import (
    ChatStream,
    Choice,
    Form,
    Generated,
    Leaf,
    Message,
    Model,
    Sampler,
    Sampling,
    Slot,
    Text,
    Trie,
    TrieCache,
    Vocab,
)
from typing_extensions import assert_type

PAYLOAD: dict[str, Any] = {"descriptors": [{"path": "action", "leaves": [{"name": "STOP", "tokens": [2]}]}]}


def sets(path: Path, vocab: Vocab) -> Iterator[Trie]:
    yield Trie.from_payload(PAYLOAD, path="action", vocab=vocab)
    yield Trie.from_sequences([[1, 2], (3,)], names=["a", "b"])
    yield Trie.from_sequences(np.array([[1, 2], [3, 4]]))
    trie = Trie.from_strings(vocab, ["yes", "no"], suffix="\n", tokenization="all")
    yield trie | trie & trie - trie
    yield trie.filter(lambda leaf: leaf.index > 0)
    trie.save(path, vocab)
    yield Trie.open(str(path))
    assert_type(trie.find([1]), int | None)
    assert_type(trie.leaf(0), Leaf | None)
    assert_type(trie.to_numpy(table=True), NDArray[np.int32])
    assert_type(trie.to_numpy(), tuple[NDArray[np.int32], NDArray[np.int64]])
    assert_type([leaf.name for leaf in trie], list[str | None])
    Trie.from_strings(vocab, ["yes"], tokenization="best")  # type: ignore[arg-type]
    trie.nodes = 5  # type: ignore[misc]


def loop(vocab: Vocab, trie: Trie, logits: NDArray[np.float32]) -> list[int]:
    sampling = Sampling("sampled", temperature=0.7).replace(seed=1)
    samplers = [
        Sampler(vocab, trie, sampling=sampling),
        Sampler(10, PAYLOAD, mode="sampled", top_k=5),
        Sampler(vocab, ["yes", "no"], end_tokens=[1], after="stop"),
        TrieCache(capacity=8).sampler(vocab, '{"descriptors": []}', sampling=sampling),
    ]
    assert_type(samplers[0].allowed(), NDArray[np.int32])
    assert_type(sampling.seed, int | None)
    samplers[0].apply(logits)
    samplers[0].accept(samplers[0].sample(logits))
    Sampler(10, trie, mode="best")  # type: ignore[arg-type]
    Sampler(10, trie, sampling={"temperature": 1.0})  # type: ignore[arg-type]
    sampling.temperature = 1.0  # type: ignore[misc]
    return samplers[0].advance(logits)


def generate(model: Model) -> Generated:
    form = Form('{"a": "', Slot("a", ["x", "y"]), '", "b": "', Text("b", stop='"'), '"}')
    with model:
        choice = model.choose("Is it? ", ["yes", "no"], top=1)
        assert_type(choice, Choice)
        assert_type(choice.probabilities, NDArray[np.float64])
        assert_type([one.name for one in model.choose_many(["a", "b"], ["yes", "no"])], list[str | None])
        assert_type([*model.choose_many(["a"], ["yes"], on_error="return")], list[Choice | Exception])
        model.choose("Is it? ", 5)  # type: ignore[arg-type]
        model.generate("Is it? ", form, mode="exact", on_step=lambda step: print(step.token))
        return model.generate([1, 2], ["yes", "no"], sampling=Sampling())


async def chats(model: Model) -> None:
    asked = [{"role": "user", "content": "Hello"}]
    assert_type(model.chat(asked, stop=["a"], response_format={"type": "json_object"}, retries=1), Message)
    assert_type(model.chat(asked, stream=lambda event: print(event.text)), Message)
    assert_type(model.chat(asked, stream=True), ChatStream)
    print([event.kind async for event in model.achat(asked, stream=True)])
    assert_type(await model.achat(asked, constraint=["yes"], on_invalid="none"), Message)
    model.chat(asked, max_token=3)  # type: ignore[call-overload]
    model.chat(asked, stream="yes")  # type: ignore[call-overload]
    model.achat(asked, temprature=1.0)  # type: ignore[call-overload]
    model.generate("x", stops=["a"])  # type: ignore[call-arg]


def careful(payload: str) -> Trie | str:
    try:
        return Trie.from_payload(payload)
    except tokentrie.PayloadError as error:
        return str(error)
