"""`POST /v1/probability`: how probable it is that the model writes any text of a constraint."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from tokentrie import CancelToken
from tokentrie.options import ProbabilityOptions
from tokentrie.results import Probability
from tokentrie.serve.errors import WireError
from tokentrie.serve.models import Models
from tokentrie.serve.store import Store
from tokentrie.serve.wire.generating import Positive, finite, new_id, passing
from tokentrie.serve.wire.holding import ConstraintFields
from tokentrie.serve.wire.prompting import AfterPrompt, prompt_tokens


class ProbabilityRequest(AfterPrompt, ConstraintFields, passing(ProbabilityOptions)):  # type: ignore[misc]
    """A constraint, and what it comes after."""

    max_tokens: Positive | None = None
    seed: int | None = None
    end_tokens: list[int] | None = None


async def answer(request: Request, models: Models, store: Store, said: ProbabilityRequest) -> dict[str, Any]:
    """The answer to a request."""
    served = models.get_or_first(said.model)
    said.check_prompt()
    if (constraint := said.build_constraint(store)) is None:
        raise WireError("constraint: it is missing: free text has the probability 1", param="constraint")

    def work(*, cancel: CancelToken) -> tuple[Probability, int]:
        prompt = said.prompt_for(served)
        with said.name_field():
            found = served.model.probability(
                prompt,
                constraint,
                max_tokens=said.max_tokens,
                seed=said.seed,
                end_tokens=said.end_tokens,
                timeout=served.timeout,
                cancel=cancel,
                **said.model_options(),
            )
        return found, len(prompt_tokens(served, prompt))

    found, tokens = await served.call(request, work)
    told = found.to_dict()
    told["logprob"] = finite(found.logprob)
    if found.text is not None:
        told["text"]["logprob"] = finite(found.text.logprob)
    return {
        "id": new_id("probability"),
        "object": "probability",
        "model": served.name,
        **told,
        "usage": {"prompt_tokens": tokens, "completion_tokens": 0, "total_tokens": tokens},
    }
