"""`POST /v1/rerank`, as clients of Jina, Cohere, vLLM and llama-server send it: a decision about each document."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from tokentrie import CancelToken
from tokentrie._native import OpenCall
from tokentrie.serve.errors import WireError
from tokentrie.serve.models import Models
from tokentrie.serve.wire.generating import Positive, new_id

#: The most documents of a request.
MOST_DOCUMENTS = 1000
ASKED = "Does the document answer the query?"


class Document(BaseModel):
    """A document as an object. Further fields are not read."""

    model_config = ConfigDict(extra="ignore", strict=True)

    text: str


class RerankRequest(BaseModel):
    """A query and documents. Further fields change nothing."""

    model_config = ConfigDict(extra="ignore", strict=True)

    model: str | None = None
    query: Annotated[str, Field(min_length=1)]
    documents: Annotated[list[str | Document], Field(min_length=1, max_length=MOST_DOCUMENTS)]
    top_n: Positive | None = None
    return_documents: bool = False
    instructions: str | None = None


async def answer(request: Request, models: Models, said: RerankRequest) -> dict[str, Any]:
    """The answer to a request: the most probable yes first, of equal ones the earlier."""
    served = models.get_or_first(said.model)
    texts = [one if isinstance(one, str) else one.text for one in said.documents]
    if said.instructions == "":
        raise WireError("instructions: it is empty: leave it out, or ask something", param="instructions")
    question = {"type": "predicate", "instructions": said.instructions or ASKED}
    # The query stands first, so that it is decoded once.
    states = [{"query": said.query, "document": text} for text in texts]
    asked = json.dumps({"states": states, "questions": {"relevant": question}})

    def work(*, cancel: CancelToken) -> str:
        return served.model._decide(asked, 0, OpenCall(cancel, served.timeout, 0))

    done = [one["answers"]["relevant"] for one in json.loads(await served.call(request, work))]
    scores = [one["probability"] for one in done]
    order = sorted(range(len(texts)), key=lambda number: (-scores[number], number))[: said.top_n]
    results: list[dict[str, Any]] = [{"index": number, "relevance_score": scores[number]} for number in order]
    if said.return_documents:
        results = [one | {"document": {"text": texts[one["index"]]}} for one in results]
    tokens = sum(len(prompt["tokens"]) for one in done for prompt in one["prompts"])
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"id": new_id("rerank"), "object": "list", "model": served.name, "results": results, "usage": usage}
