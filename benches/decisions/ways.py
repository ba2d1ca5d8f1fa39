"""Ways to ask a question: the library's, one token of each label, and a server."""

from __future__ import annotations

import json
import math
import time
import urllib.request
from dataclasses import dataclass
from typing import Any, Protocol

from measures import best
from question_sets import Item, as_text
from tokentrie import Model
from tokentrie.decisions import Answer, AskedPrompt, Question

#: A layout in which the model knows what is asked when it reads the state.
QUESTION_FIRST = "{instructions}\n{options}\n{answer}\n\n{state}"
#: Options of `Model.decide` by the name of a way.
OF_LIBRARY: dict[str, dict[str, Any]] = {
    "text": {},
    "label": {"readout": "label"},
    "both orders": {"permute": 2},
    "content-free prior": {"prior": "content-free"},
    "thought": {"escalate": 1.0},
    "independent": {"order": "independent"},
    "all orders": {"permute": 64},
    "question first: independent": {"order": "independent", "prompt": QUESTION_FIRST},
    "question first: all orders": {"permute": 64, "prompt": QUESTION_FIRST},
}
#: Asked once: backwards they have the same orders.
ALL_ORDERS = [name for name in OF_LIBRARY if name.endswith("all orders")]
SINGLE = "single token"


@dataclass(frozen=True)
class Reply:
    """Reply to a question: the probability of each option, of all together, and the seconds that it took."""

    probabilities: list[float]
    mass: float | None
    seconds: float
    #: The option that wins in each order that was asked, if there are several.
    winners: list[int] | None = None


class Way(Protocol):
    """A way to ask."""

    def ask(self, item: Item) -> Reply: ...


def question(item: Item) -> Question:
    """Returns the question as `Model.decide` takes it."""
    if item.kind == "predicate":
        meanings = {key: meaning for key, (_, meaning) in zip((True, False), item.options, strict=True) if meaning}
        return Question("predicate", instructions=item.instructions, options=meanings)
    return Question(item.kind, instructions=item.instructions, options=dict(item.options))


def forget(model: Model) -> None:
    """Leaves nothing in the KV cache that a prompt begins with, so that each way decodes all of its prompt."""
    model.logits(model.vocab.tokenize("0"))


class OfLibrary:
    """A way of the library: `Model.decide` with some options."""

    def __init__(self, model: Model, options: dict[str, Any]) -> None:
        self.model, self.options = model, options
        #: The last question, and its answer.
        self.last: tuple[Item, Answer] | None = None

    def ask(self, item: Item) -> Reply:
        forget(self.model)
        began = time.process_time()
        answer = self.model.decide(item.state, {"q": question(item)}, **self.options)["q"]
        seconds = time.process_time() - began
        self.last = item, answer
        winners = [winner(asked, len(item.options)) for asked in answer.prompts]
        return Reply(list(answer.probabilities.values()), answer.mass, seconds, winners if len(winners) > 1 else None)


def winner(asked: AskedPrompt, count: int) -> int:
    """Returns the option whose texts have most of the probability after a prompt."""
    shares = [0.0] * count
    for option, share in zip(asked.options, asked.probabilities, strict=True):
        shares[option] += share
    return best(shares)


class OfSingleToken:
    """The logits of the first token of each label after the same prompt, and a softmax over these alone.

    Servers that answer decisions with chat models read them so. The prompt is that of `label`, which has asked before
    or is asked for it.
    """

    def __init__(self, model: Model, label: OfLibrary) -> None:
        self.model, self.label = model, label

    def ask(self, item: Item) -> Reply:
        if self.label.last is None or self.label.last[0] != item:
            self.label.ask(item)
        assert self.label.last is not None
        asked = self.label.last[1].prompts[0]
        labels = [asked.values[option] for option in range(len(item.options))]
        # Behind the beginning of a reply a label has a space.
        space = " " if self.model.vocab.detokenize(asked.tokens).endswith(":") else ""
        firsts = [self.model.vocab.tokenize(space + label)[0] for label in labels]
        forget(self.model)
        began = time.process_time()
        logits = self.model.logits(asked.tokens)
        chosen = [float(logits[token]) for token in firsts]
        most = max(chosen)
        shares = [math.exp(logit - most) for logit in chosen]
        seconds = time.process_time() - began
        highest = float(max(logits))
        everything = sum(math.exp(float(logit) - highest) for logit in logits)
        mass = sum(math.exp(float(logits[token]) - highest) for token in set(firsts)) / everything
        return Reply([share / sum(shares) for share in shares], mass, seconds)


class OfServer:
    """A server with `/v1/systemone` or `/v1/decisions`."""

    def __init__(self, url: str, model: str) -> None:
        self.url, self.model = url, model

    def ask(self, item: Item) -> Reply:
        is_systemone = self.url.rstrip("/").endswith("systemone")
        body = systemone(item) if is_systemone else decision(item)
        headers = {"Content-Type": "application/json"}
        data = json.dumps({"model": self.model, **body}).encode()
        began = time.perf_counter()
        with urllib.request.urlopen(urllib.request.Request(self.url, data, headers), timeout=600) as reply:
            said = json.load(reply)["answers"]
        seconds = time.perf_counter() - began
        answer = said["q"] if is_systemone else said[0]
        return Reply(shares(item, answer), answer.get("mass"), seconds)


def systemone(item: Item) -> dict[str, Any]:
    """Returns the body of a request."""
    asked: dict[str, Any] = {"instructions": item.instructions}
    if item.kind == "predicate":
        meanings = [meaning for _, meaning in item.options]
        asked |= {"type": "noul"}
        if any(meanings):
            asked["criteria"] = dict(zip(("true", "false"), meanings, strict=True))
    elif item.kind == "choice":
        asked |= {"type": "choice", "criteria": dict(item.options)}
    else:
        asked |= {"type": "score", "criteria": [level for level, _ in item.options]}
    return {"state": item.state, "questions": {"q": asked}}


def decision(item: Item) -> dict[str, Any]:
    """Returns the body of a request."""
    asked: dict[str, Any] = {"type": item.kind, "name": "q", "instructions": item.instructions}
    described = [(text, None if meaning is None else as_text(meaning)) for text, meaning in item.options]
    if item.kind == "choice":
        asked["choices"] = [{"value": text, "description": meaning} for text, meaning in described]
    elif item.kind == "score":
        asked["levels"] = [{"label": text, "description": meaning} for text, meaning in described]
    elif any(meaning for _, meaning in described):
        told = "; ".join(f"{text}: {meaning}" for text, meaning in described if meaning)
        asked["instructions"] = f"{item.instructions}\n{told}"
    return {"input": as_text(item.state), "questions": [asked]}


def shares(item: Item, answer: dict[str, Any]) -> list[float]:
    """Returns the probability of each option in an answer."""
    if item.kind == "predicate":
        yes = float(answer["noul"] if "noul" in answer else answer["probability"])
        return [yes, 1 - yes]
    found = answer["probabilities"]
    if isinstance(found, list):
        return [float(one["probability"]) for one in found]
    keys = [text if item.kind == "choice" else str(place) for place, (text, _) in enumerate(item.options)]
    return [float(found[key]) for key in keys]
