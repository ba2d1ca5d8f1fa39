"""Chats around `Model.chat`: replies as streams, typed content with retries, and `run_tools`, which runs the tools.

Example:
    >>> import tokentrie
    >>> tokentrie.chat.ChatFormat is tokentrie.ChatFormat
    True
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, overload

from tokentrie import html, schemas
from tokentrie import tools as functions_of
from tokentrie._native import (
    ChatConstraint,
    ChatFormat,
    ChatParser,
    ChatTemplate,
    OptionError,
    ResponseParser,
    ResponseTemplate,
    Spec,
    Tools,
)
from tokentrie.chat_analysis import ChatAnalysis
from tokentrie.errors import CancelledError, TimedOutError
from tokentrie.model import Model
from tokentrie.results import CUT, ChatEvent, Message, ToolCall, _Result
from tokentrie.rules import JsonSchema
from tokentrie.streaming import ChatStream, _Parts, _Work, finish_callback, in_background

__all__ = [
    "ChatAnalysis",
    "ChatConstraint",
    "ChatFormat",
    "ChatParser",
    "ChatTemplate",
    "ResponseParser",
    "ResponseTemplate",
    "ToolRun",
    "ToolStream",
    "Tools",
    "arun_tools",
    "run_tools",
]

#: Seconds after which a thread that waits for tools looks whether its run was ended.
WAIT = 0.05


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
        return Spec._of_response_format(response_format, whitespace)
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


@overload
def run_tools(
    model: Model,
    messages: Iterable[Any],
    functions: Any,
    *,
    stream: Literal[True],
    max_rounds: int = ...,
    on_error: Literal["tell", "raise"] = ...,
    **options: Any,
) -> ToolStream: ...
@overload
def run_tools(
    model: Model,
    messages: Iterable[Any],
    functions: Any,
    *,
    max_rounds: int = ...,
    on_error: Literal["tell", "raise"] = ...,
    **options: Any,
) -> ToolRun: ...
def run_tools(
    model: Model,
    messages: Iterable[Any],
    functions: Any,
    *,
    max_rounds: int = 8,
    on_error: Literal["tell", "raise"] = "tell",
    **options: Any,
) -> ToolRun | ToolStream:
    """Chats with a model and runs the functions that it calls, until it calls none.

    Arguments are validated and become objects of the types that the hints of a function name. What it returns goes back
    to the model: a str as it is, other values as JSON, models and dataclasses by their fields. `tool_choice` other than
    "auto" and "none" counts for the first reply alone. Functions that are `async def` are awaited, those of one reply
    together, where no event loop runs; inside one there is `arun_tools`.

    Args:
        model: a Model.
        messages: the conversation, as for `Model.chat`. The list is not changed.
        functions: a list of Python functions with type hints, or Tools of functions. A class among them, a pydantic
            model, a dataclass or a TypedDict, is made with the arguments.
        max_rounds: the most replies, at least 1. The calls of the last one are not run.
        on_error: "tell" gives the model the exception of a function as text; "raise" raises it.
        options: keywords of `Model.chat`; with `stream=True` the events of all replies and the results of the tools are
            iterated over.

    Returns:
        ToolRun; with `stream=True` a ToolStream.

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
    if options.get("stream") is True:
        return ToolStream(model, run, options, None)
    while run.goes_on:
        run.hear(model.chat(run.said, run.tools, run.choice, **options))
        run.answer_all(_waited_for)
    return run.finish()


def arun_tools(
    model: Model,
    messages: Iterable[Any],
    functions: Any,
    *,
    max_rounds: int = 8,
    on_error: Literal["tell", "raise"] = "tell",
    **options: Any,
) -> Any:
    """`run_tools` for asyncio: functions that are `async def` are awaited, those of one reply together.

    Other functions run on a thread, one after the other in the order of their calls.

    Args:
        model, messages, functions, max_rounds, on_error: as for `run_tools`.
        options: keywords of `Model.achat`; with `stream=True` what comes back is iterated over with `async for`, and
            nothing is awaited.

    Returns:
        Awaitable of ToolRun; with `stream=True` a ToolStream.

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
    if options.get("stream") is True:
        return ToolStream(model, run, options, asyncio.get_running_loop())
    return _running(model, run, options)


async def _running(model: Model, run: _Run, options: dict[str, Any]) -> ToolRun:
    while run.goes_on:
        run.hear(await model.achat(run.said, run.tools, run.choice, **options))
        await run.aanswer_all()
    return run.finish()


async def _gather(results: Iterable[Any]) -> list[Any]:
    """Awaits results together; of those that fail, their exceptions."""
    return await asyncio.gather(*results, return_exceptions=True)


def _waited_for(results: list[Any]) -> list[Any]:
    """Returns the results of `async def` functions, where no event loop runs."""
    made: list[Any] = []

    async def keep_results() -> None:
        made.extend(await _gather(results))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        finish_callback(keep_results())
        return made
    _drop(results)
    raise OptionError("a tool that is async def cannot be awaited inside a running event loop: use arun_tools")


def _drop(results: Iterable[Any]) -> None:
    """Closes what is never awaited."""
    for result in results:
        if inspect.iscoroutine(result):
            result.close()


class ToolStream(_Parts[ChatEvent, ToolRun], Iterator[ChatEvent], AsyncIterator[ChatEvent]):
    """The events of a run of tools, from `run_tools(..., stream=True)`.

    An iterator of ChatEvent, also for `async for`: those of each reply, which "message_ends" ends, and after a reply
    with calls a "tool_result" for each, with its `text`, and the `index`, `id` and `name` of the call. The run is on a
    thread of its own, and functions that are not `async def` run there; `close`, the end of a `with` block and losing
    the last reference end it.

    Example:
        >>> def erase(path: str) -> str:
        ...     '''Delete a file.'''
        ...     return f"{path} is gone"
        >>> ask = [{"role": "user", "content": "please delete the file a.txt"}]
        >>> options = {"tool_choice": "erase", "max_rounds": 2, "max_tokens": 60, "parallel_tool_calls": False}
        >>> with tokentrie.run_tools(tokentrie.Model(), ask, [erase], stream=True, **options) as stream:
        ...     results = [event.text for event in stream if event.kind == "tool_result"]
        >>> results == [stream.result.messages[2]["content"]]
        True
    """

    def __init__(
        self, model: Model, run: _Run, options: dict[str, Any], loop: asyncio.AbstractEventLoop | None
    ) -> None:
        self._begin(_RunWork(model, run, options, loop), "run_tools")

    @property
    def result(self) -> ToolRun:
        """ToolRun: what `run_tools` would have returned.

        Waits for the end, and raises what ended it; after `close`, or the end of a `with` block, what there was then.
        """
        return self._result()


class _RunWork(_Work[ChatEvent, ToolRun]):
    """The work of a ToolStream. Functions that are `async def` are awaited in the loop, if there is one."""

    def __init__(
        self, model: Model, run: _Run, options: dict[str, Any], loop: asyncio.AbstractEventLoop | None
    ) -> None:
        super().__init__(self._run_all, options)
        self._options["stream"] = self._enqueue
        self._model, self._run, self._loop = model, run, loop

    def _run_all(self, **options: Any) -> ToolRun:
        run = self._run
        try:
            while run.goes_on:
                run.hear(self._model.chat(run.said, run.tools, run.choice, **options))
                run.answer_all(self._waited_for, self._enqueue)
        except (CancelledError, TimedOutError) as error:
            if isinstance(error.partial, Message):
                run.hear(error.partial)
            error.partial = run.finish()  # type: ignore[assignment]
            raise
        return run.finish()

    def _waited_for(self, results: list[Any]) -> list[Any]:
        if self._loop is None:
            return _waited_for(results)
        waits = asyncio.run_coroutine_threadsafe(_gather(results), self._loop)
        while not waits.done() and not self.token.cancelled and not self._loop.is_closed():
            concurrent.futures.wait([waits], WAIT)
        if not waits.done():
            waits.cancel()
            raise CancelledError("stopped on request while tools ran")
        return waits.result()


class _Run:
    """A conversation in which tools are run."""

    def __init__(
        self, messages: Iterable[Any], functions: Any, max_rounds: int, on_error: str, options: dict[str, Any]
    ) -> None:
        if not isinstance(max_rounds, int) or max_rounds < 1:
            raise OptionError(f"max_rounds is {max_rounds}: it must be at least 1")
        if on_error not in ("tell", "raise"):
            raise OptionError(f'on_error is {on_error!r}: it must be "tell" or "raise"')
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

    def answer_all(
        self, wait: Callable[[list[Any]], list[Any]], tell: Callable[[ChatEvent], object] | None = None
    ) -> None:
        """Runs the functions that the reply calls: first those that are not `async def`, then the others together."""
        outcomes = [self._outcome(call) for call in self.calls]
        begun = [at for at, result in enumerate(outcomes) if inspect.isawaitable(result)]
        if self._on_error == "raise":
            failed = next((result for result in outcomes if isinstance(result, _Failure)), None)
            if failed is not None:
                _drop(outcomes)
                raise failed.error
        if begun:
            for at, result in zip(begun, wait([outcomes[at] for at in begun]), strict=True):
                outcomes[at] = _Failure(result) if isinstance(result, BaseException) else result
        self._tell(outcomes, tell)

    def _outcome(self, call: ToolCall) -> Any:
        try:
            return functions_of.run(self.known[call.name], call)
        except Exception as error:
            return _Failure(error)

    async def aanswer_all(self) -> None:
        """`answer_all` for an event loop: functions that are not `async def` run on a thread, one after the other."""
        one_by_one = asyncio.Lock()

        async def answer(call: ToolCall) -> Any:
            function = self.known[call.name]
            if inspect.iscoroutinefunction(function):
                return await functions_of.run(function, call)
            async with one_by_one:
                result = await asyncio.to_thread(functions_of.run, function, call)
            return await result if inspect.isawaitable(result) else result

        outcomes = await _gather(answer(call) for call in self.calls)
        self._tell([_Failure(result) if isinstance(result, BaseException) else result for result in outcomes], None)

    def _tell(self, outcomes: list[Any], tell: Callable[[ChatEvent], object] | None) -> None:
        """Appends the messages with the results, in the order of the calls."""
        for index, (call, outcome) in enumerate(zip(self.calls, outcomes, strict=True)):
            try:
                text = self._failure(outcome) if isinstance(outcome, _Failure) else functions_of.result_text(outcome)
            except TypeError as error:
                text = self._failure(_Failure(error))
            self.said.append({"role": "tool", "tool_call_id": call.id, "name": call.name, "content": text})
            if tell is not None:
                tell(ChatEvent("tool_result", text, index, call.id, call.name))

    def _failure(self, failed: _Failure) -> str:
        """The text for what a call raised."""
        error = failed.error
        # What an event loop refuses is not an answer of a tool, nor is the end of the run.
        if self._on_error == "raise" or isinstance(error, OptionError) or not isinstance(error, Exception):
            raise error
        return f"error: {type(error).__name__}: {error}"

    def finish(self) -> ToolRun:
        return ToolRun(self._message, self.said, self._rounds)


@dataclass(frozen=True)
class _Failure:
    """Exception of a call."""

    error: BaseException
