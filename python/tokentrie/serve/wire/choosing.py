"""`POST /v1/choose`: the exact probability of every value, of a list or a set, after a prompt or a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Request
from pydantic import Field

from tokentrie import CancelToken, Choice, Trie
from tokentrie.rules import Spec
from tokentrie.serve.errors import WireError
from tokentrie.serve.models import Models, ServedModel
from tokentrie.serve.store import Store
from tokentrie.serve.wire.asking import first_repeated
from tokentrie.serve.wire.generating import Positive, new_id
from tokentrie.serve.wire.prompting import AfterPrompt, prompt_tokens

#: Size of a set above which only the best values are listed.
MOST_TOLD = 10_000
#: Values of fewer bytes are all scored at once, which is faster than to look for the best: each byte is a row at most,
#: and the library scores all where there are 4,096 rows.
FEW_BYTES = 4000


class ChooseRequest(AfterPrompt):
    """One of `values` and `set`, and what they come after."""

    values: Annotated[list[str], Field(min_length=1)] | None = None
    set: str | None = None
    top: Positive | None = None
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    return_prompt: bool = False


async def answer(request: Request, models: Models, store: Store, said: ChooseRequest) -> dict[str, Any]:
    """The answer to a request."""
    served = models.get_or_first(said.model)
    said.check_prompt()
    values, nbytes = _requested_values(store, said)
    top = None if nbytes <= FEW_BYTES else said.top
    ends = served.model.vocab.eog if said.messages is not None else None

    def work(*, cancel: CancelToken) -> tuple[Choice, list[int], list[dict[str, Any]]]:
        prompt = said.prompt_for(served)
        choice = served.model.choose(
            prompt,
            values,
            top=top,
            threshold=said.threshold,
            end_tokens=ends,
            cancel=cancel,
            timeout=served.timeout,
        )
        return choice, prompt_tokens(served, prompt), _values(choice, said.top, _texts(served, choice, values))

    choice, tokens, told = await served.call(request, work)
    found: dict[str, Any] = {
        "id": new_id("choose"),
        "object": "choose",
        "model": served.name,
        "choice": None if choice.value is None else next(one["value"] for one in told if one["index"] == choice.index),
        "reason": choice.reason,
        "index": choice.index,
        "values": told,
        "mass": choice.mass,
        "usage": {"prompt_tokens": len(tokens), "completion_tokens": 0, "total_tokens": len(tokens)},
    }
    if said.return_prompt:
        found |= {"prompt_token_ids": [*map(int, tokens)], "end_tokens": [*map(int, ends or [])]}
    return found


def _requested_values(store: Store, said: ChooseRequest) -> tuple[list[str] | Spec | Trie, int]:
    """The values of a request, and an upper bound of their bytes together."""
    if (said.values is None) == (said.set is None):
        raise WireError("give one of values and set", param="values")
    if said.values is not None:
        if (again := first_repeated(said.values)) is not None:
            raise WireError(f"values: {again!r} is given twice", param="values")
        return said.values, sum(len(one.encode("utf-8", "replace")) for one in said.values)
    if (entry := store.get(str(said.set))) is None:
        raise WireError(
            f"set: unknown constraint {said.set!r}: GET /v1/constraints lists them",
            param="set",
            code="constraint_not_found",
        )
    if said.top is None and (entry.content.size or 0) > MOST_TOLD:
        message = f"top: {said.set} has {entry.content.size:,} values: say how many of the best to tell"
        raise WireError(message, param="top")
    # The values of rules and files may have any size.
    return entry.content.to_values, FEW_BYTES + 1 if entry.content.values is None else entry.content.nbytes


def _texts(served: ServedModel, choice: Choice, values: list[str] | Spec | Trie) -> Callable[[int], str]:
    """The text of a value by its index; a leaf without a name has the text of its tokens."""
    if (names := choice.names) is not None:
        return names.__getitem__
    assert isinstance(values, Trie)

    def leaf_text(index: int) -> str:
        leaf = values.leaf(index)
        assert leaf is not None
        return served.model.vocab.detokenize(leaf.tokens)

    return leaf_text


def _values(choice: Choice, top: int | None, text: Callable[[int], str]) -> list[dict[str, Any]]:
    """In the order of the request or of the set; with `top` the best of them, best first."""
    logprobs = choice.logprobs
    order = range(len(choice)) if top is None else [*choice.ranking][:top]
    return [
        {
            "value": text(int(at)),
            "index": int(at),
            "probability": choice[at],
            "logprob": max(float(logprobs[at]), -1e30),
        }
        for at in order
    ]
