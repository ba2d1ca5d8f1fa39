"""`POST /v1/embeddings`, as OpenAI's clients send it: vectors of texts."""

from __future__ import annotations

import base64
from typing import Any, Literal

import numpy as np
from fastapi import Request
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from tokentrie import CancelToken
from tokentrie._native import OpenCall
from tokentrie.errors import ModelError
from tokentrie.serve.errors import NO_RETRY, WireError
from tokentrie.serve.models import Models
from tokentrie.serve.wire.generating import Positive

#: The most texts of a request: OpenAI's.
MOST_TEXTS = 2048
#: Beginning of the message that a model gives no vectors.
UNSUPPORTED = "embeddings are not supported by this model"


class EmbeddingRequest(BaseModel):
    """A text, several, or their token ids. Further fields change nothing."""

    model_config = ConfigDict(extra="ignore", strict=True)

    model: str | None = None
    input: str | list[int] | list[str] | list[list[int]]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Positive | None = None


async def answer(request: Request, models: Models, said: EmbeddingRequest) -> dict[str, Any]:
    """The answer to a request: a vector of length 1 for each text, in their order."""
    served = models.get_or_first(said.model)
    texts = _texts(said.input)
    for one in texts:
        if isinstance(one, str):
            served.check_room([one], "input")

    def work(*, cancel: CancelToken) -> Any:
        call = OpenCall(cancel, served.timeout, 0)
        width = served.model._embed([], call)[0].shape[1]
        if said.dimensions not in (None, width):
            message = (
                f"dimensions: {said.dimensions:,} are not supported: this model gives {width:,}, and its file does not "
                "say that a part of them is a vector: leave it out"
            )
            raise WireError(message, param="dimensions")
        return served.model._embed(texts, call)

    try:
        vectors, lengths = await served.call(request, work)
    except ModelError as error:
        if UNSUPPORTED not in str(error):
            raise
        raise WireError(str(error), status=501, code="not_supported", headers=NO_RETRY) from None
    data = [
        {"object": "embedding", "index": number, "embedding": _encode_vector(vector, said.encoding_format)}
        for number, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": sum(lengths), "total_tokens": sum(lengths)}
    return {"object": "list", "data": data, "model": served.name, "usage": usage}


def _texts(given: str | list[int] | list[str] | list[list[int]]) -> list[str | list[int]]:
    """One or several texts, each as a text or as ids.

    Raises:
        WireError: there are none, or too many.
    """
    # A list of integers is one text.
    texts: list[Any] = given if isinstance(given, list) and given and not isinstance(given[0], int) else [given]
    if len(texts) > MOST_TEXTS:
        message = f"input: it has {len(texts):,} texts: send {MOST_TEXTS:,} at most"
        raise WireError(message, param="input")
    for number, one in enumerate(texts):
        if not one:
            place = "input" if one is given else f"input[{number}]"
            raise WireError(f"{place}: it is empty: leave it out", param=place)
    return texts


def _encode_vector(vector: NDArray[np.float32], encoding: str) -> list[float] | str:
    """A vector as numbers, or as their bytes, lowest first."""
    if encoding == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
    numbers: list[float] = vector.tolist()
    return numbers
