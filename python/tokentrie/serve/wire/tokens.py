"""`POST /tokenize` and `/detokenize`, with the fields of vLLM's and of llama.cpp's servers."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from tokentrie.serve.errors import WireError
from tokentrie.serve.models import Models


class TokenizeRequest(BaseModel):
    """A text, under either name."""

    model_config = ConfigDict(extra="ignore", strict=True)

    model: str | None = None
    prompt: str | None = None
    content: str | None = None
    messages: list[dict[str, Any]] | None = None
    add_special_tokens: bool | None = None
    add_special: bool | None = None
    parse_special: bool = False
    with_pieces: bool = False


class DetokenizeRequest(BaseModel):
    """Token ids whose text is wanted."""

    model_config = ConfigDict(extra="ignore", strict=True)

    model: str | None = None
    tokens: list[int]


def tokenize(models: Models, said: TokenizeRequest) -> dict[str, Any]:
    """The tokens of a text. Control text is text, unless it is said otherwise."""
    served = models.get_or_first(said.model)
    given = [one for one in (said.prompt, said.content, said.messages) if one is not None]
    if len(given) != 1:
        raise WireError("give one of prompt, content and messages", param="prompt")
    vocab = served.model.vocab
    if said.messages is not None:
        ids = [*map(int, served.model.chat_prompt(said.messages))]
    else:
        special = next((one for one in (said.add_special_tokens, said.add_special) if one is not None), False)
        text = str(given[0])
        ids = [*map(int, vocab.tokenize(text, add_special=special, parse_special=said.parse_special))]
    tokens: list[Any] = [*ids]
    if said.with_pieces:
        tokens = [{"id": one, "piece": _piece(vocab[one])} for one in ids]
    return {"tokens": tokens, "count": len(ids), "max_model_len": served.model.n_ctx}


def detokenize(models: Models, said: DetokenizeRequest) -> dict[str, Any]:
    """The text of some tokens, under either name."""
    vocab = models.get_or_first(said.model).model.vocab
    if wrong := [token for token in said.tokens if not 0 <= token < len(vocab)]:
        message = f"tokens: {wrong[0]} is outside the vocabulary of {len(vocab):,} tokens"
        raise WireError(message, param="tokens")
    text = b"".join(vocab[token] for token in said.tokens).decode("utf-8", "replace")
    return {"prompt": text, "content": text}


def _piece(piece: bytes) -> Any:
    """Text, or bytes where a token is a part of a character."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return [*piece]
