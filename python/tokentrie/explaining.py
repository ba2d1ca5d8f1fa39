"""A generation or a reply, explained: what was legal at each token, how probable it was, and what was forced."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tokentrie import html
from tokentrie._native import OptionError, Vocab
from tokentrie.chat import chat_with_model
from tokentrie.model import Model
from tokentrie.results import Generated, Message, Step, TokenLogprob

__all__ = [
    "ChatExplanation",
    "ExplainedToken",
    "Explanation",
]


@dataclass(frozen=True)
class ExplainedToken:
    """One token of an Explanation or a ChatExplanation.

    Attributes:
        token: its id.
        text: its text; bytes that are no whole character as escapes. The first token of a set may begin inside the
            prompt.
        forced: whether no other token was allowed.
        legal: the number of allowed tokens; None where all were allowed, or all but a few.
        probability: its probability among those, before temperature and truncation; 1.0 where it was forced.
        others: the most probable other allowed tokens, as pairs of a text and a probability, best first.
        part: what it is part of: "reasoning"; "marker", which begins or ends a thought, or stands between parts;
            "content"; "call"; "end", which ends the reply. None outside of chats.

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
    part: str | None = None

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
        return f"<tokentrie.explaining.Explanation: {self._summary()}>"

    def __str__(self) -> str:
        return _as_text(self._summary(), self.tokens)

    def _repr_html_(self) -> str:
        return _as_html(self.tokens)

    def to_dict(self) -> dict[str, Any]:
        """Returns the explanation as a dict that `json.dumps` takes.

        Example:
            >>> explanation = tokentrie.Model().explain("The sky is ", ["blue", "red"])
            >>> explanation.to_dict()["tokens"][0]["forced"]
            False
        """
        tokens = [dataclasses.asdict(one) for one in self.tokens]
        return {"text": self.generated.text, "finish": self.generated.finish, "tokens": tokens}

    def _summary(self) -> str:
        return f"{self.generated.text!r}: {_token_counts(self.tokens)}, finish {self.generated.finish}"


@dataclass(frozen=True)
class ChatExplanation:
    """A reply as `Model.explain` returns it of messages. `str` of it is a table; a notebook shows one of HTML.

    Attributes: `message`, what `chat` returned; `tokens`, an ExplainedToken for each token that the model wrote:
    thoughts, markers, calls, content and the token that ended the reply.

    Example:
        >>> asked = [{"role": "user", "content": "Is the sky blue?"}]
        >>> explanation = tokentrie.Model().explain(asked, ["yes", "no"])
        >>> explanation.message.parsed in ("yes", "no")
        True
        >>> {one.part for one in explanation.tokens} <= {"reasoning", "marker", "content", "call", "end"}
        True
    """

    message: Message
    tokens: list[ExplainedToken]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<tokentrie.explaining.ChatExplanation: {self._summary()}>"

    def __str__(self) -> str:
        return _as_text(self._summary(), self.tokens)

    def _repr_html_(self) -> str:
        return _as_html(self.tokens)

    def to_dict(self) -> dict[str, Any]:
        """Returns the explanation as a dict that `json.dumps` takes.

        Example:
            >>> explanation = tokentrie.Model().explain([{"role": "user", "content": "Hello"}], max_tokens=2)
            >>> explanation.to_dict()["message"]["role"]
            'assistant'
        """
        return {"message": self.message.to_dict(), "tokens": [dataclasses.asdict(one) for one in self.tokens]}

    def _summary(self) -> str:
        calls = "".join(f", calls {call.name}" for call in self.message.tool_calls)
        return f"{self.message.content!r}{calls}: {_token_counts(self.tokens)}, finish {self.message.finish}"


def _token_counts(tokens: list[ExplainedToken]) -> str:
    count = "1 token" if len(tokens) == 1 else f"{len(tokens)} tokens"
    return f"{count}, {sum(one.forced for one in tokens)} forced"


@dataclass(frozen=True)
class _Row:
    """A row of a table: a token that was chosen, or all tokens of one part in a row that were forced."""

    part: str
    what: str
    text: str
    share: float | None
    legal: str
    others: str


def _rows(tokens: list[ExplainedToken]) -> Iterator[_Row]:
    for (forced, part), several in itertools.groupby(tokens, lambda one: (one.forced, one.part or "")):
        if forced:
            yield _Row(part, "forced", "".join(one.text for one in several), None, "", "")
            continue
        for one in several:
            legal = "all" if one.legal is None else f"{one.legal:,}"
            what = "free" if one.legal is None else "chosen"
            yield _Row(part, what, one.text, one.probability, legal, _list_shares(one.others))


def _as_text(summary: str, tokens: list[ExplainedToken]) -> str:
    rows = list(_rows(tokens))
    parts = max((len(row.part) for row in rows), default=0)
    texts = max((len(repr(row.text)) for row in rows), default=0)
    legals = max((len(row.legal) for row in rows), default=0)
    lines = [summary]
    for row in rows:
        part = f"{row.part:<{parts}}  " if parts else ""
        shown = "" if row.share is None else f"{row.share:8.2%} of {row.legal:<{legals}}  {row.others}"
        lines.append(f"{part}{row.what:<6}  {row.text!r:<{texts}}  {shown}".rstrip())
    return "\n".join(lines)


def _as_html(tokens: list[ExplainedToken]) -> str:
    has_parts = any(one.part for one in tokens)
    rows = (
        (
            *([row.part] if has_parts else []),
            row.what,
            row.text,
            "" if row.share is None else row.share,
            html.Bar(row.share or 0.0),
            row.legal,
            row.others,
        )
        for row in _rows(tokens)
    )
    columns = (*(["part"] if has_parts else []), "", "text", "probability", "", "legal tokens", "others")
    return html.table(columns, rows, len(tokens))


def _list_shares(others: list[tuple[str, float]]) -> str:
    return ", ".join(f"{text!r} {share:.2%}" for text, share in others)


def explain(
    model: Model,
    prompt: Any,
    constraint: Any = None,
    *,
    top: int = 5,
    **options: Any,
) -> Explanation | ChatExplanation:
    """Implements `Model.explain`, whose documentation it has."""
    for name, instead in (("logprobs", "top says how many tokens are shown"), ("n", "one generation is explained")):
        if options.get(name) is not None:
            raise OptionError(f"{name} is not supported by explain: {instead}")
    if not isinstance(top, int) or isinstance(top, bool) or top < 0:
        raise OptionError(f"top is {top!r}: it must be an int, at least 0")
    if isinstance(prompt, list | tuple) and prompt and isinstance(prompt[0], dict | Message):
        return _of_chat(model, prompt, constraint, top, options)
    return _of_generation(model, prompt, constraint, top, **options)


def _of_generation(
    model: Model,
    prompt: Any,
    constraint: Any,
    top: int,
    *,
    on_step: Callable[[Step], object] | None = None,
    **options: Any,
) -> Explanation:
    steps: list[Step] = []

    def collect_step(step: Step) -> object:
        steps.append(step)
        return on_step(step) if on_step is not None else None

    # The token itself may be among the best.
    generated = model.generate(prompt, constraint, on_step=collect_step, logprobs=top + 1, **options)
    vocab = model.vocab
    tokens = [
        _explain_token(vocab, top, step.token, None, step.forced, len(step.allowed) or None, step.logprob)
        for step in steps
    ]
    return Explanation(generated, tokens)


def _of_chat(model: Model, messages: Any, constraint: Any, top: int, options: dict[str, Any]) -> ChatExplanation:
    for name, instead in (
        ("on_step", "each token of the reply stands in the explanation"),
        ("retries", "one reply is explained"),
    ):
        if options.get(name):
            raise OptionError(f"{name} is not supported by explain of a chat: {instead}")
    if options.get("stream") is True:
        raise OptionError(
            "stream=True is not supported by explain of a chat: give a function, which is called meanwhile"
        )
    steps: list[tuple[int, str, bool, int | None, TokenLogprob | None]] = []
    # An explanation is useful most of all for content that is refused or cut off.
    options = {"on_invalid": "none", **options, "explain": top + 1, "explained": steps.extend}
    message = chat_with_model(
        model, messages, options.pop("tools", None), options.pop("tool_choice", None), constraint=constraint, **options
    )
    vocab = model.vocab
    tokens = [
        _explain_token(vocab, top, token, part, forced, legal, known) for token, part, forced, legal, known in steps
    ]
    return ChatExplanation(message, tokens)


def _explain_token(
    vocab: Vocab,
    top: int,
    token: int,
    part: str | None,
    forced: bool,
    legal: int | None,
    known: TokenLogprob | None,
) -> ExplainedToken:
    def text(token: int) -> str:
        return vocab[token].decode("utf-8", "backslashreplace")

    best = [] if known is None or forced else [one for one in known.top if one[0] != token]
    return ExplainedToken(
        token=token,
        text=text(token),
        forced=forced,
        legal=1 if forced else legal,
        probability=1.0 if known is None else math.exp(known.logprob),
        others=[(text(token), math.exp(share)) for token, share in best[:top]],
        part=part,
    )
