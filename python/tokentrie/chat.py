"""The loop around a chat: calls of tools are run, and their results given back to the model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from tokentrie import tools as functions_of
from tokentrie._native import Message, Model, OptionError, ToolCall, Tools


@dataclass(frozen=True)
class ToolRun:
    """What `run_tools` returns: the last reply, and the whole conversation.

    Attributes: `message`, the last reply, whose `tool_calls` were not run if it has any; `messages`, a new list with
    the messages given, the replies and the results of tools; `rounds`, how often the model was asked.

    Example:
        >>> run = tokentrie.run_tools(tokentrie.Model(), [{"role": "user", "content": "Hello"}], [], max_tokens=4)
        >>> (run.rounds, len(run.messages))
        (1, 2)
    """

    message: Message
    messages: list[Any]
    rounds: int

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<tokentrie.ToolRun: {self.message!r} after {self.rounds} rounds>"


def run_tools(
    model: Model,
    messages: Iterable[Any],
    functions: Any,
    *,
    max_rounds: int = 8,
    on_error: Literal["tell", "raise"] = "tell",
    **options: Any,
) -> ToolRun:
    """Chats with a model and runs the functions that it calls, until it calls none.

    Arguments become objects of the types that the hints of a function name. What it returns goes back to the model: a
    str as it is, other values as JSON. `tool_choice` other than "auto" and "none" counts for the first reply alone.

    Args:
        model: a Model.
        messages: the conversation, as for `Model.chat`. The list is not changed.
        functions: a list of Python functions with type hints, or Tools of functions.
        max_rounds: the most replies, at least 1. The calls of the last one are not run.
        on_error: "tell" gives the model the exception of a function as text; "raise" raises it.
        options: keywords of `Model.chat`.

    Returns:
        ToolRun.

    Raises:
        OptionError: a tool is no function, or a setting is out of range.
        TokenTrieError: as for `Model.chat`.

    Example:
        >>> def erase(path: str) -> str:
        ...     '''Delete a file.'''
        ...     return f"{path} is gone"
        >>> ask = [{"role": "user", "content": "please delete the file a.txt"}]
        >>> run = tokentrie.run_tools(tokentrie.Model(), ask, [erase], tool_choice="erase", max_rounds=2, max_tokens=60)
        >>> run.messages[2]["role"]
        'tool'
    """
    if not isinstance(max_rounds, int) or max_rounds < 1:
        raise OptionError(f"max_rounds is {max_rounds}: it must be at least 1")
    if on_error not in ("tell", "raise"):
        raise OptionError(f'on_error is {on_error!r}: it must be "tell" or "raise"')
    tools = functions if isinstance(functions, Tools) else Tools(list(functions))
    known = tools.functions
    if missing := [name for name in tools.names if name not in known]:
        raise OptionError(f"the tool {missing[0]!r} is a definition without a function: give functions, or use chat")
    choice = options.pop("tool_choice", "auto")
    said = list(messages)
    for number in range(1, max_rounds + 1):
        message = model.chat(said, tools, choice, **options)
        said.append(message)
        if not message.tool_calls or message.finish != "tool_calls" or number == max_rounds:
            break
        said.extend(_answered(known[call.name], call, on_error) for call in message.tool_calls)
        if choice != "none":
            choice = "auto"
    return ToolRun(message, said, number)


def _answered(function: Any, call: ToolCall, on_error: str) -> dict[str, Any]:
    """The message with the result of a call."""
    try:
        result = functions_of.run(function, call)
    except Exception as error:
        if on_error == "raise":
            raise
        result = f"error: {type(error).__name__}: {error}"
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": text}
