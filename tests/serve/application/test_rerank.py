"""Documents by how probable it is that they answer a query: the numbers of decisions, in their order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi")

import tokentrie
from budget import cases
from serve.application.in_process import InProcess

pytestmark = pytest.mark.model

WORDS = [
    "the lamp",
    "is on",
    "in the kitchen",
    "Ann",
    "lives in Rome",
    "<|im_end|>",
    "a letter",
    "of the bank",
    "größer",
]


@pytest.fixture(scope="module")
def model() -> Iterator[tokentrie.Model]:
    # Decisions have the same bits then, whatever stands beside them.
    with tokentrie.Model(n_ctx=512, n_threads=1, batching="fixed") as model:
        yield model


def text(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, k=draw.randint(1, 12)))


def test_scores_are_those_of_decisions_and_the_best_come_first(app: InProcess, model: tokentrie.Model) -> None:
    draw = random.Random(8)
    for _ in range(cases(30)):
        query, documents = text(draw), [text(draw) for _ in range(draw.randint(1, 6))]
        body: dict[str, Any] = {"query": query, "documents": [draw.choice([one, {"text": one}]) for one in documents]}
        top = draw.choice([None, 1, 3])
        status, told = app.ask("POST", "/v1/rerank", {**body, "top_n": top, "return_documents": True})
        assert status == 200, told
        question = tokentrie.decisions.Question(bool, instructions="Does the document answer the query?")
        alone = [
            model.decide({"query": query, "document": one}, {"relevant": question})["relevant"].probability
            for one in documents
        ]
        results = told["results"]
        assert len(results) == min(top or len(documents), len(documents))
        assert len({one["index"] for one in results}) == len(results)
        for one in results:
            assert one["relevance_score"] == alone[one["index"]]
            assert one["document"] == {"text": documents[one["index"]]}
        scores = [one["relevance_score"] for one in results]
        assert scores == sorted(alone, reverse=True)[: len(scores)]
        assert told["usage"]["total_tokens"] > 0


def test_what_is_asked_may_be_said(app: InProcess) -> None:
    body = {"query": "lamp", "documents": ["The lamp is on.", "The lamp is off."], "instructions": "Is the lamp on?"}
    _, told = app.ask("POST", "/v1/rerank", body)
    assert {"index", "relevance_score"} == {*told["results"][0]}


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"documents": []}, "documents"),
        ({"documents": ["a"] * 1001}, "documents"),
        ({"documents": ["a", {"title": "b"}]}, "documents.1.text"),
        ({"query": ""}, "query"),
        ({"top_n": 0}, "top_n"),
        ({"instructions": ""}, "instructions"),
    ],
)
def test_what_is_wrong_is_named(app: InProcess, wrong: dict[str, Any], param: str) -> None:
    status, told = app.ask("POST", "/v1/rerank", {"query": "a", "documents": ["b"], **wrong})
    assert status == 400
    assert told["error"]["param"].startswith(param.partition(".")[0])


def test_a_document_that_does_not_fit_is_named(app: InProcess) -> None:
    status, told = app.ask("POST", "/v1/rerank", {"query": "a", "documents": ["b", "c d " * 900]})
    assert (status, told["error"]["code"]) == (400, "context_length_exceeded")
    assert "state 1" in told["error"]["message"]
