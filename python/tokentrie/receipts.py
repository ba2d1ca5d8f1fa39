"""Receipts of generations and replies, and their check without the model.

`Model.generate` and `Model.chat` give one where `receipt=True` asks for it: which tokens were allowed at each step.
"""

from __future__ import annotations

from typing import Any, Literal

from tokentrie._native import ChatFormat, Vocab, verify_receipt
from tokentrie.chat import content_constraint

__all__ = ["verify_chat_receipt", "verify_receipt"]


def verify_chat_receipt(
    receipt: dict[str, Any] | str | bytes,
    chat_format: ChatFormat,
    messages: Any,
    tools: Any = None,
    tool_choice: Any = "auto",
    *,
    vocab: Vocab | None = None,
    key: bytes | None = None,
    constraint: Any = None,
    response_format: Any = None,
    show_schema: bool = True,
    parallel_tool_calls: bool = True,
    tools_in: Literal["auto", "template", "system", "messages"] = "auto",
    whitespace: Literal["compact", "flexible"] = "compact",
    enable_thinking: bool = True,
    thinking_budget: int | None = None,
    continue_final_message: Literal["auto", "reasoning", "content"] | None = None,
    template_variables: dict[str, Any] | None = None,
) -> None:
    """Checks a receipt of `Model.chat(receipt=True)` without the model.

    The conversation is rendered again and must be the prompt of the receipt. The constraint of the reply is walked
    along the tokens: each must be allowed, and each token mask must be that of the receipt. Cost: O(tokens *
    vocabulary).

    Args:
        receipt: the dict, or its JSON as str or bytes.
        chat_format: that of the model: `Model.chat_format`, or `ChatFormat.from_gguf(path)`.
        messages, tools, tool_choice: as they were given to `chat`, the conversation up to the reply.
        vocab: the model's vocabulary; None takes that of the format.
        key: the key of the seal, where there was one.
        constraint, response_format, show_schema, parallel_tool_calls, tools_in, whitespace: as for `chat`.
        enable_thinking, thinking_budget: as for `chat`.
        continue_final_message, template_variables: as for `chat`.

    Raises:
        ReceiptError: the receipt is invalid; the message says what is wrong, and where. Also a ValueError.
        TypeError: it is not a dict, str or bytes, or no vocabulary is known.
        TokenTrieError: as for `chat`, for an argument that is invalid in itself.

    Example:
        >>> model = tokentrie.Model()
        >>> messages = [{"role": "user", "content": "Is the sky blue?"}]
        >>> reply = model.chat(messages, constraint=["yes", "no"], receipt=True)
        >>> tokentrie.receipts.verify_chat_receipt(reply.receipt, model.chat_format, messages, constraint=["yes", "no"])
    """
    if not hasattr(chat_format, "_verify_receipt"):
        # A package without llama.cpp says so.
        verify_receipt(receipt, vocab=vocab)  # type: ignore[arg-type]
    chat_format._verify_receipt(
        receipt,
        messages,
        tools,
        tool_choice,
        vocab=vocab,
        key=key,
        parallel_tool_calls=parallel_tool_calls,
        tools_in=tools_in,
        whitespace=whitespace,
        enable_thinking=enable_thinking,
        thinking_budget=thinking_budget,
        constraint=content_constraint(constraint, response_format, whitespace),
        show_schema=show_schema,
        continue_final_message=continue_final_message,
        template_variables=template_variables,
    )
