"""A generation, explained: what was legal at each token, how probable it was, and what was forced."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tokentrie import html
from tokentrie._native import OptionError, Vocab
from tokentrie.model import Model
from tokentrie.results import Generated, Step


@dataclass(frozen=True)
class ExplainedToken:
    """One token of an Explanation.

    Attributes:
        token: its id.
        text: its text; bytes that are no whole character as escapes. The first token of a set may begin inside the
            prompt.
        forced: whether no other could come.
        legal: how many tokens could come; None where all could.
        probability: how probable it was among those, before temperature and truncation; 1.0 where it was forced.
        others: the most probable tokens that could come in its place, as pairs of a text and a probability, best first.

    Example:
        >>> explanation = tokentrie.Model().explain("The sky is ", ["blue", "red"])
        >>> explanation.tokens[0].legal
        2
    """

    token: int
    text: str
    forced: bool
    legal: int | None
    probability: float
    others: list[tuple[str, float]]

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Explanation:
    """A generation as `Model.explain` returns it. `str` of it is a table for people; a notebook shows one of HTML.

    Attributes: `generated`, what `generate` returned; `tokens`, an ExplainedToken for each of its tokens,
    and for the one that ended free text.

    Example:
        >>> explanation = tokentrie.Model().explain("The sky is ", ["blue", "red"])
        >>> explanation.generated.text in ("blue", "red")
        True
        >>> str(explanation).splitlines()[0].endswith("finish span")
        True
    """

    generated: Generated[Any]
    tokens: list[ExplainedToken]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<tokentrie.Explanation: {self._summary()}>"

    def __str__(self) -> str:
        rows = [(what, repr(text), share, *rest) for what, text, share, *rest in self._rows()]
        texts = max((len(text) for _, text, *_ in rows), default=0)
        legals = max((len(legal) for *_, legal, _ in rows), default=0)
        lines = [self._summary()]
        for what, text, share, legal, others in rows:
            shown = "" if share is None else f"{share:8.2%} of {legal:<{legals}}  {_listed(others)}"
            lines.append(f"{what:<6}  {text:<{texts}}  {shown}".rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = (
            (what, text, "" if share is None else share, html.Bar(share or 0.0), legal, _listed(others))
            for what, text, share, legal, others in self._rows()
        )
        columns = ("", "text", "probability", "", "legal tokens", "others")
        return html.table(columns, rows, len(self.tokens))

    def to_dict(self) -> dict[str, Any]:
        """All of it as a dict that JSON has.

        Example:
            >>> explanation = tokentrie.Model().explain("The sky is ", ["blue", "red"])
            >>> explanation.to_dict()["tokens"][0]["forced"]
            False
        """
        tokens = [dataclasses.asdict(one) for one in self.tokens]
        return {"text": self.generated.text, "finish": self.generated.finish, "tokens": tokens}

    def _summary(self) -> str:
        forced = sum(one.forced for one in self.tokens)
        count = "1 token" if len(self.tokens) == 1 else f"{len(self.tokens)} tokens"
        return f"{self.generated.text!r}: {count}, {forced} forced, finish {self.generated.finish}"

    def _rows(self) -> Iterator[tuple[str, str, float | None, str, list[tuple[str, float]]]]:
        """A row for each token that was chosen, and one for all tokens in a row that were forced."""
        for forced, several in itertools.groupby(self.tokens, lambda one: one.forced):
            if forced:
                yield "forced", "".join(one.text for one in several), None, "", []
                continue
            for one in several:
                legal = "all" if one.legal is None else f"{one.legal:,}"
                what = "free" if one.legal is None else "chosen"
                yield what, one.text, one.probability, legal, one.others


def _listed(others: list[tuple[str, float]]) -> str:
    return ", ".join(f"{text!r} {share:.2%}" for text, share in others)


def explain(
    model: Model,
    prompt: Any,
    constraint: Any = None,
    *,
    top: int = 5,
    on_step: Callable[[Step], object] | None = None,
    **options: Any,
) -> Explanation:
    """`Model.explain`."""
    for name, instead in (("logprobs", "top says how many tokens are shown"), ("n", "one generation is explained")):
        if options.get(name) is not None:
            raise OptionError(f"{name} is not supported by explain: {instead}")
    if not isinstance(top, int) or isinstance(top, bool) or top < 0:
        raise OptionError(f"top is {top!r}: it must be an int, at least 0")
    steps: list[Step] = []

    def heard(step: Step) -> object:
        steps.append(step)
        return on_step(step) if on_step is not None else None

    # The token itself may be among the best.
    generated = model.generate(prompt, constraint, on_step=heard, logprobs=top + 1, **options)
    return Explanation(generated, [_explained(model.vocab, step, top) for step in steps])


def _explained(vocab: Vocab, step: Step, top: int) -> ExplainedToken:
    def text(token: int) -> str:
        return vocab[token].decode("utf-8", "backslashreplace")

    known, legal = step.logprob, len(step.allowed)
    best = [] if known is None or step.forced else [one for one in known.top if one[0] != step.token]
    return ExplainedToken(
        token=step.token,
        text=text(step.token),
        forced=step.forced,
        legal=1 if step.forced else legal or None,
        probability=1.0 if known is None else math.exp(known.logprob),
        others=[(text(token), math.exp(share)) for token, share in best[:top]],
    )
