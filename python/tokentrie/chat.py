"""Chats around `Model.chat`: replies as streams, typed content with retries, and `run_tools`, which runs the tools.

Example:
    >>> import tokentrie
    >>> tokentrie.chat.ChatFormat is tokentrie.ChatFormat
    True
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from tokentrie import html, schemas
from tokentrie import tools as functions_of
from tokentrie._native import ChatConstraint, ChatFormat, ChatParser, ChatTemplate, OptionError, Tools
from tokentrie.chat_analysis import ChatAnalysis
from tokentrie.model import Model
from tokentrie.results import CUT, Message, ToolCall, _Result
from tokentrie.rules import JsonSchema
from tokentrie.streaming import ChatStream, finish_callback, in_background

__all__ = [
    "ChatAnalysis",
    "ChatConstraint",
    "ChatFormat",
    "ChatParser",
    "ChatTemplate",
    "ToolRun",
    "Tools",
    "arun_tools",
    "run_tools",
]


def chat_with_model(
    model: Model,
    messages: Any,
    tools: Any = None,
    tool_choice: Any = None,
    *,
    stream: Any = None,
    n: int | None = None,
    constraint: Any = None,
    response_format: Any = None,
    on_invalid: Literal["raise", "none"] = "raise",
    retries: int = 0,
    **options: Any,
) -> Any:
    """Implements `Model.chat`, whose documentation it has."""
    held = content_constraint(constraint, response_format, options.get("whitespace", "compact"))
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        raise OptionError(f"retries is {retries!r}: it must be an int, at least 0")
    if n is not None and retries > 0:
        raise OptionError("n asks for several replies, and retries asks again for one: give one of them")
    options.update(n=n)
    if stream is True:
        options.update(constraint=held, on_invalid=on_invalid, retries=retries)
        return ChatStream(functools.partial(chat_with_model, model, messages, tools, tool_choice), **options)
    options.update(stream=None if stream is False else stream, constraint=held)
    if retries == 0 or held is None:
        return model._chat(messages, tools, tool_choice, on_invalid=on_invalid, **options)
    said = list(messages)
    for _ in range(retries):
        message = model._chat(said, tools, tool_choice, on_invalid="none", **options)
        if message.invalid is None:
            return message
        # A conversation cannot continue from a reply that never came to its content.
        said += [message] if message.content else []
        said.append({"role": "user", "content": _retry_text(message)})
    return model._chat(said, tools, tool_choice, on_invalid=on_invalid, **options)


def answering(model: Model, messages: Any, tools: Any = None, tool_choice: Any = None, **options: Any) -> Any:
    """Implements `Model.achat`, whose documentation it has."""
    if options.get("stream") is True:
        return chat_with_model(model, messages, tools, tool_choice, **options)
    return in_background(chat_with_model, model, messages, tools, tool_choice, **options)


def content_constraint(constraint: Any, response_format: Any, whitespace: str) -> Any:
    """Returns the constraint of the content; a class becomes its JsonSchema with this white space."""
    if constraint is not None and response_format is not None:
        raise OptionError("constraint and response_format are both given: give one of them")
    if isinstance(response_format, dict):
        return Model._response_format(response_format, whitespace)
    given = constraint if constraint is not None else response_format
    if response_format is not None and not schemas.is_type(given):
        raise TypeError(
            'response_format must be a dict with "type", such as {"type": "json_object"}, or a class, not '
            f"{type(given).__name__}"
        )
    is_document = response_format is not None or schemas.is_class(given)
    return JsonSchema(given, whitespace=whitespace) if is_document else given


def _retry_text(message: Message) -> str:
    """The text by which a model is asked again: its content was refused, or cut off."""
    if message.finish in CUT:
        return "Your answer was cut off before it was complete. Answer again, and shorter."
    return f"That cannot be used: {message.invalid}\nWrite it again, and correct this."


@dataclass(frozen=True)
class ToolRun(_Result):
    """Result of `run_tools`: the last reply, and the whole conversation.

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

    __hash__ = None

    def __repr__(self) -> str:
        return f"<tokentrie.chat.ToolRun: {self.message!r} after {self.rounds} rounds>"

    def _repr_html_(self) -> str:
        return html.tool_run(self)


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

    Arguments are validated and become objects of the types that the hints of a function name. What it returns goes back
    to the model: a str as it is, other values as JSON, models and dataclasses by their fields. `tool_choice` other than
    "auto" and "none" counts for the first reply alone. Functions that are `async def` are awaited, where no event loop
    runs; inside one there is `arun_tools`.

    Args:
        model: a Model.
        messages: the conversation, as for `Model.chat`. The list is not changed.
        functions: a list of Python functions with type hints, or Tools of functions. A class among them, a pydantic
            model, a dataclass or a TypedDict, is made with the arguments.
        max_rounds: the most replies, at least 1. The calls of the last one are not run.
        on_error: "tell" gives the model the exception of a function as text; "raise" raises it.
        options: keywords of `Model.chat`, but for `stream=True`.

    Returns:
        ToolRun.

    Raises:
        OptionError: a tool is not a function, or a setting is out of range.
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
    run = _Run(messages, functions, max_rounds, on_error, options)
    while run.goes_on:
        run.hear(model.chat(run.said, run.tools, run.choice, **options))
        for call in run.calls:
            run.answer(call)
    return run.finish()


async def arun_tools(
    model: Model,
    messages: Iterable[Any],
    functions: Any,
    *,
    max_rounds: int = 8,
    on_error: Literal["tell", "raise"] = "tell",
    **options: Any,
) -> ToolRun:
    """`run_tools` for asyncio: functions that are `async def` are awaited, others run on a thread.

    Args:
        model, messages, functions, max_rounds, on_error: as for `run_tools`.
        options: keywords of `Model.achat`, but for `stream=True`.

    Returns:
        ToolRun.

    Raises:
        OptionError: a tool is not a function, or a setting is out of range.
        TokenTrieError: as for `Model.chat`.

    Example:
        >>> import asyncio
        >>> async def erase(path: str) -> str:
        ...     '''Delete a file.'''
        ...     return f"{path} is gone"
        >>> ask = [{"role": "user", "content": "please delete the file a.txt"}]
        >>> options = {"tool_choice": "erase", "max_rounds": 2, "max_tokens": 60}
        >>> asyncio.run(tokentrie.chat.arun_tools(tokentrie.Model(), ask, [erase], **options)).messages[2]["role"]
        'tool'
    """
    run = _Run(messages, functions, max_rounds, on_error, options)
    while run.goes_on:
        run.hear(await model.achat(run.said, run.tools, run.choice, **options))
        for call in run.calls:
            await run.aanswer(call)
    return run.finish()


def _waited_for(result: Any) -> Any:
    """The result of an `async def` function, where no event loop runs."""
    made: list[Any] = []

    async def keep_result() -> None:
        made.append(await result)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        finish_callback(keep_result())
        return made[0]
    if inspect.iscoroutine(result):
        result.close()
    raise OptionError("a tool that is async def cannot be awaited inside a running event loop: use arun_tools")


class _Run:
    """A conversation in which tools are run."""

    def __init__(
        self, messages: Iterable[Any], functions: Any, max_rounds: int, on_error: str, options: dict[str, Any]
    ) -> None:
        if not isinstance(max_rounds, int) or max_rounds < 1:
            raise OptionError(f"max_rounds is {max_rounds}: it must be at least 1")
        if on_error not in ("tell", "raise"):
            raise OptionError(f'on_error is {on_error!r}: it must be "tell" or "raise"')
        if options.get("stream") is True:
            raise OptionError("stream=True gives the events of one reply, and there are several: give a function")
        self.tools = functions if isinstance(functions, Tools) else Tools(list(functions))
        self.known = self.tools.functions
        if missing := [name for name in self.tools.names if name not in self.known]:
            raise OptionError(
                f"the tool {missing[0]!r} is a definition without a function: give functions, or use chat"
            )
        self.choice = options.pop("tool_choice", "auto")
        self.said = list(messages)
        self.calls: list[ToolCall] = []
        self.goes_on = True
        self._left, self._rounds, self._on_error = max_rounds, 0, on_error
        self._message = Message()

    def hear(self, message: Message) -> None:
        """A reply: its calls are run, unless it was cut off or is the last."""
        self.said.append(message)
        self._message, self._rounds, self._left = message, self._rounds + 1, self._left - 1
        self.goes_on = message.finish == "tool_calls" and bool(message.tool_calls) and self._left > 0
        self.calls = message.tool_calls if self.goes_on else []
        if self.choice != "none":
            self.choice = "auto"

    def answer(self, call: ToolCall) -> None:
        """Runs the function that a call names."""
        try:
            result = functions_of.run(self.known[call.name], call)
            self.tell(call, _waited_for(result) if inspect.isawaitable(result) else result)
        except Exception as error:
            self.fail(call, error)

    async def aanswer(self, call: ToolCall) -> None:
        """`answer` for an event loop."""
        function = self.known[call.name]
        try:
            if inspect.iscoroutinefunction(function):
                result = functions_of.run(function, call)
            else:
                result = await asyncio.to_thread(functions_of.run, function, call)
            self.tell(call, await result if inspect.isawaitable(result) else result)
        except Exception as error:
            self.fail(call, error)

    def tell(self, call: ToolCall, result: Any) -> None:
        """The message with the result of a call."""
        text = functions_of.result_text(result)
        self.said.append({"role": "tool", "tool_call_id": call.id, "name": call.name, "content": text})

    def fail(self, call: ToolCall, error: Exception) -> None:
        """The message with what a call raised."""
        # What an event loop refuses is not an answer of a tool.
        if self._on_error == "raise" or isinstance(error, OptionError):
            raise error
        self.tell(call, f"error: {type(error).__name__}: {error}")

    def finish(self) -> ToolRun:
        return ToolRun(self._message, self.said, self._rounds)
