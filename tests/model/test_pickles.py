"""What is sent to another process: vocabularies of files, formats of chats, gates."""

from __future__ import annotations

import copy
import multiprocessing
import operator
import os
import pickle
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tokentrie
from models import random_path
from tokentrie import ChatFormat, Form, Model, Sampler, Sampling, Slot, Vocab
from tokentrie.errors import VocabularyError
from tokentrie.rules import ThinkGate

pytestmark = pytest.mark.model

TOOL = {"name": "ring", "description": "", "parameters": {"type": "object", "properties": {}, "required": []}}


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(n_threads=1) as model:
        yield model


@pytest.fixture(scope="module")
def spawned() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


def walked(gate: ThinkGate, tokens: list[int]) -> list[Any]:
    """What may come, as the gate is walked."""
    seen: list[Any] = []
    for token in tokens:
        seen.append([gate.allowed().tolist(), gate.forced().tolist(), gate.state])
        gate.accept(token)
    return [*seen, gate.state, gate.leaf and gate.leaf.name]


def test_vocabularies_of_files(model: Model, spawned: ProcessPoolExecutor, tiny_path: Path) -> None:
    for vocab in (model.vocab, Vocab.from_gguf(tiny_path), Vocab.from_gguf(os.path.relpath(tiny_path))):
        assert len(pickle.dumps(vocab)) < 1000, "the path alone"
        tokens = spawned.submit(operator.methodcaller("tokenize", "Hello <|im_end|>"), vocab).result(60)
        assert tokens == vocab.tokenize("Hello <|im_end|>")
        assert spawned.submit(operator.attrgetter("fingerprint"), vocab).result(60) == vocab.fingerprint
        assert copy.copy(vocab) is copy.deepcopy(vocab) is vocab


def test_a_file_that_changed_is_not_taken(tiny_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    shutil.copy(tiny_path, path)
    pickled = pickle.dumps(Vocab.from_gguf(path))
    shutil.copy(random_path("tiny"), path)
    if Vocab.from_gguf(path).fingerprint != Vocab.from_gguf(tiny_path).fingerprint:
        with pytest.raises(VocabularyError, match=r"model\.gguf: its vocabulary is another one"):
            pickle.loads(pickled)
    path.unlink()
    with pytest.raises(tokentrie.errors.ModelError, match=r"model\.gguf"):
        pickle.loads(pickled)


def test_formats_of_chats(model: Model, spawned: ProcessPoolExecutor, tiny_path: Path) -> None:
    text = '<tool_call>\n{"name": "ring", "arguments": {}}\n</tool_call>'
    for found in (model.chat_format, ChatFormat.from_gguf(tiny_path)):
        assert pickle.loads(pickle.dumps(found)) == found
        message = spawned.submit(operator.methodcaller("parse", text, [TOOL]), found).result(60)
        assert message == found.parse(text, [TOOL])
    reply = model.chat_format.constraint([TOOL])
    allowed = spawned.submit(Sampler, model.vocab, reply)
    with pytest.raises(TypeError, match="cannot pickle"):
        allowed.result(60)  # it was made there, and a Sampler does not come back
    assert pickle.loads(pickle.dumps(reply)) == reply


def test_gates(model: Model, spawned: ProcessPoolExecutor) -> None:
    answers = tokentrie.Trie.from_sequences([[1], [2, 3]], names=["yes", "no"])
    form = Form("<", Slot("it", ["a", "b"]), ">")
    ids: list[dict[str, Any]] = [
        {"budget": 3, "then": answers, "vocab": 16},
        {"then": answers, "vocab": 16, "started": False, "optional": True, "message": [5], "budget": 2},
        {"then": answers, "vocab": 16, "budget": 1, "budget_from": "begin", "started": False, "masked": [6]},
        {"then": answers, "vocab": 16, "mode": "sampled", "sampling": None, "end_tokens": [9], "after": "stop"},
        {"then": answers, "vocab": 16, "sampling": Sampling("sampled", seed=3), "at_once": False},
    ]
    for arguments in ids:
        gate = ThinkGate([7], [8, 9], **arguments)
        tokens = [7] if not arguments.get("started", True) else []
        tokens += [4, 8, 9, 2, 3]
        again = pickle.loads(pickle.dumps(gate))
        assert walked(again, tokens[:2]) == walked(gate.clone(), tokens[:2])
        assert spawned.submit(walked, gate, tokens[:2]).result(60) == walked(gate.clone(), tokens[:2])
        assert again.seed == gate.seed or "seed=3" not in repr(arguments)
    for then in (["yes", "no"], form, tokentrie.rules.Integer(1, 9), None):
        gate = ThinkGate("<think>", "</think>", budget=3, then=then)
        again = pickle.loads(pickle.dumps(gate))
        options: dict[str, Any] = {"max_tokens": 40}
        assert (
            model.generate("x <think>", again, **options).tokens == model.generate("x <think>", gate, **options).tokens
        )
    gate = ThinkGate([7], [8, 9], then=answers, vocab=16)
    gate.accept([4])
    with pytest.raises(TypeError, match=r"has taken tokens .* reset\(\)"):
        pickle.dumps(gate)
    gate.reset()
    assert pickle.loads(pickle.dumps(gate)).state == "active"
