"""Vectors of texts over HTTP: those of `Model.embed`, in OpenAI's format."""

from __future__ import annotations

import base64
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")

import tokentrie
from budget import cases
from models import TINY
from serve.application.in_process import InProcess
from tokentrie.serve import Settings, create_app
from tokentrie.serve.models import ServedModel

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

from mutate_gguf import U32, Gguf, Value

pytestmark = pytest.mark.model

WORDS = ["the lamp", "is on", "in the kitchen", "Ann", "lives in Rome", "<|im_end|>", "größer", "猫"]


@pytest.fixture(scope="module")
def model() -> Iterator[tokentrie.Model]:
    with tokentrie.Model(n_ctx=512, n_threads=1, slots=2) as model:
        yield model


def asked(app: InProcess, given: Any, **more: Any) -> tuple[int, Any]:
    return app.ask("POST", "/v1/embeddings", {"model": "any", "input": given, **more})


def test_vectors_are_those_of_the_library(app: InProcess, model: tokentrie.Model) -> None:
    draw = random.Random(5)
    for _ in range(cases(40)):
        texts = [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(draw.randint(1, 5))]
        ids = [[*map(int, model.vocab.tokenize(one, add_special=True, parse_special=False))] for one in texts]
        expected = model.embed(texts)
        for given, rows in ((texts, expected), (ids, expected), (texts[0], expected[:1]), (ids[0], expected[:1])):
            status, told = asked(app, given)
            assert (status, told["object"], told["model"]) == (200, "list", "m"), told
            assert [(one["index"], one["object"]) for one in told["data"]] == [
                (number, "embedding") for number in range(len(rows))
            ]
            got = np.array([one["embedding"] for one in told["data"]], np.float32)
            np.testing.assert_array_equal(got, rows)
            count = sum(map(len, ids[: len(rows)]))
            assert told["usage"] == {"prompt_tokens": count, "total_tokens": count}
            status, told = asked(app, given, encoding_format="base64", dimensions=expected.shape[1])
            raw = [base64.b64decode(one["embedding"], validate=True) for one in told["data"]]
            np.testing.assert_array_equal(np.array([np.frombuffer(one, "<f4") for one in raw]), rows)


@pytest.mark.parametrize(
    ("body", "param", "says"),
    [
        ({"input": ""}, "input", "input: it is empty"),
        ({"input": []}, "input", "input: it is empty"),
        ({"input": ["a", ""]}, "input[1]", "input[1]: it is empty"),
        ({"input": [[5], []]}, "input[1]", "input[1]: it is empty"),
        ({"input": ["a", [10**6]]}, "input.1", ""),
        ({"input": [[10**6]]}, "input[0]", "input[0]: token id 1000000 at position 0 is outside"),
        ({"input": [10**6]}, "input[0]", "is outside the vocabulary"),
        ({"input": ["a"] * 2049}, "input", "2,049 texts: send 2,048 at most"),
        ({"input": "a", "dimensions": 64}, "dimensions", "64 are not supported: this model gives 160"),
        ({"input": "a", "dimensions": 0}, "dimensions", ""),
        ({"input": "a", "encoding_format": "int8"}, "encoding_format", "'float' or 'base64'"),
        ({}, "input", ""),
    ],
    ids=lambda one: str(one)[:60],
)
def test_what_is_wrong_is_named(app: InProcess, body: dict[str, Any], param: str, says: str) -> None:
    status, told = app.ask("POST", "/v1/embeddings", body)
    assert (status, told["error"]["param"]) == (400, param), told
    assert says in told["error"]["message"]


def test_what_does_not_fit_is_refused_before_anything_is_decoded(app: InProcess) -> None:
    for given in (["a", " x" * 600], [[5], [7] * 600], " x" * 600, "x" * 100_000):
        status, told = asked(app, given)
        assert (status, told["error"]["code"]) == (400, "context_length_exceeded"), told
        assert "texts[" not in told["error"]["message"]


def test_a_model_that_only_compares_is_told(tmp_path: Path) -> None:
    (path := tmp_path / "rank.gguf").write_bytes(Gguf.read(TINY).put(b"llama.pooling_type", Value(U32, 4)).written())
    with tokentrie.Model(path, n_ctx=64, n_threads=1) as model:
        app = InProcess(create_app([ServedModel("m", model, 60.0)], Settings()))
        status, told = asked(app, "a")
        assert (status, told["error"]["code"]) == (501, "not_supported")
        assert "pooling_type is 4, rank" in told["error"]["message"]
        app.close()
