"""Calls of a model in the background: streams of text and events, and calls for asyncio."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import queue
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from types import TracebackType
from typing import Any, Generic, TypeVar

from tokentrie._native import CancelToken, Detokenizer
from tokentrie.errors import CancelledError
from tokentrie.model import Model
from tokentrie.options import AnyOptions, check_names
from tokentrie.partial_json import BegunJson
from tokentrie.results import ChatEvent, Generated, Message, Step, V

__all__ = [
    "ChatStream",
    "Detokenizer",
    "Stream",
]

T = TypeVar("T")
Part = TypeVar("Part")
Result = TypeVar("Result")
Me = TypeVar("Me", bound="_Parts[Any, Any]")

#: The callbacks of calls: what they return is awaited where it can be.
CALLBACKS = ("stream", "on_step")


async def in_background(call: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Runs a method of a model, which takes `cancel`, on a thread; a task that is cancelled ends it."""
    token = options.setdefault("cancel", CancelToken())
    loop = asyncio.get_running_loop()
    waits = _Waits(loop)
    for name in CALLBACKS:
        if callable(options.get(name)):
            options[name] = functools.partial(waits.call, options[name])
    running = loop.run_in_executor(None, functools.partial(call, *arguments, **options))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        token.cancel()
        waits.cancel()
        # The model is free again, and nothing is raised into a task that nobody awaits.
        await asyncio.wait([running])
        running.exception()
        raise


async def choosing_many(model: Model, prompts: Any, choices: Any, **options: Any) -> list[Any]:
    """`Model.achoose_many`: all choices of `choose_many`, read on a thread."""

    def read(**options: Any) -> list[Any]:
        return list(model.choose_many(prompts, choices, **options))

    return await in_background(read, **options)


class _Waits:
    """Wait of a thread for an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._now: concurrent.futures.Future[Any] | None = None
        self._is_cancelled = False

    def call(self, function: Callable[[Any], object], argument: Any) -> None:
        if inspect.isawaitable(result := function(argument)):

            async def await_result() -> None:
                await result

            self._now = asyncio.run_coroutine_threadsafe(await_result(), self._loop)
            if self._is_cancelled:
                self._now.cancel()
            self._now.result()

    def cancel(self) -> None:
        self._is_cancelled = True
        if self._now is not None:
            self._now.cancel()


def finish_callback(result: object) -> None:
    """Awaits what a callback returned, if that can be awaited, where no event loop runs."""
    if not inspect.isawaitable(result):
        return
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        if inspect.iscoroutine(result):
            result.close()
        raise TypeError("a callback that is async def cannot be awaited inside a running event loop: use achat")

    async def await_result() -> None:
        await result

    asyncio.run(await_result())


class _Parts(Generic[Part, Result]):
    """Parts of a call, from a thread of its own. Subclasses start it by `_begin`."""

    _work: _Work[Part, Result]
    _thread: threading.Thread

    def _begin(self, work: _Work[Part, Result], name: str) -> None:
        self._work = work
        # Not a method of this object: what only the thread still knew would never be closed.
        self._thread = threading.Thread(target=work.run, name=f"tokentrie {name}")
        self._thread.start()

    def __iter__(self: Me) -> Me:
        return self

    def __next__(self) -> Part:
        if (part := self._work.take()) is None:
            self._work.reraise()
            raise StopIteration
        return part

    def __aiter__(self: Me) -> Me:
        return self

    async def __anext__(self) -> Part:
        try:
            part = await asyncio.get_running_loop().run_in_executor(None, self._work.take)
        except asyncio.CancelledError:
            self._work.token.cancel()
            raise
        if part is None:
            self._work.reraise()
            raise StopAsyncIteration
        return part

    def _result(self) -> Result:
        self._thread.join()
        if (partial := self._work.left_at) is not None:
            return partial
        self._work.reraise()
        assert self._work.result is not None
        return self._work.result

    def close(self) -> None:
        """Ends the call, if it still runs, and waits for that. May be repeated. `result` is what there is by then.

        Example:
            >>> stream = tokentrie.Model().stream("Once upon a time")
            >>> stream.close()
        """
        self._work.leave()
        self._thread.join()

    def __enter__(self: Me) -> Me:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self: Me) -> Me:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._work.leave()
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def __del__(self) -> None:
        if work := getattr(self, "_work", None):
            work.token.cancel()

    def __repr__(self) -> str:
        return f"<tokentrie.{type(self).__name__}: {'running' if self._thread.is_alive() else 'ended'}>"


class Stream(_Parts[str, Generated], Iterator[str], AsyncIterator[str]):
    """The text of a generation as it grows, from `Model.stream`.

    An iterator of str, also for `async for`: parts that are never empty and never taken back. All of them together are
    `result.text`. The generation runs on a thread of its own; `close`, the end of a `with` block and losing the last
    reference end it.

    Example:
        >>> letters = tokentrie.Regex("[a-z ]{900}")  # long enough to be stopped
        >>> with tokentrie.Model().stream("Once upon a time", letters, max_tokens=1000) as stream:
        ...     for text in stream:
        ...         break  # enough: leaving the block ends the generation
        >>> (stream.result.finish, stream.result.text.startswith(text))
        ('cancelled', True)
    """

    def __init__(self, model: Model, prompt: Any, constraint: Any = None, **options: Any) -> None:
        check_names("stream", options, AnyOptions)
        self._begin(_TextWork(functools.partial(model.generate, prompt, constraint), options), "stream")

    @property
    def result(self) -> Generated:
        """Generated: what `generate` would have returned.

        Waits for the end, and raises what ended it; after `close`, or the end of a `with` block, what there was then.

        Example:
            >>> tokentrie.Model().stream("The sky is ", ["blue", "red"]).result.finish
            'span'
        """
        return self._result()


class ChatStream(_Parts[ChatEvent, Message[V]], Iterator[ChatEvent], AsyncIterator[ChatEvent]):
    """The events of a reply as they come, from `Model.chat(..., stream=True)` and `Model.achat(..., stream=True)`.

    An iterator of ChatEvent, also for `async for`; nothing is ever taken back, and all events together are `result`.
    The chat runs on a thread of its own; `close`, the end of a `with` block and losing the last reference end it.

    Example:
        >>> messages = [{"role": "user", "content": "Hello"}]
        >>> with tokentrie.Model().chat(messages, stream=True, max_tokens=8) as stream:
        ...     text = "".join(event.text for event in stream if event.kind == "content")
        >>> text == stream.result.content
        True
    """

    def __init__(self, chat: Callable[..., Message[V]], **options: Any) -> None:
        self._begin(_EventWork(chat, options), "chat")

    def __await__(self) -> Generator[Any, None, ChatStream[V]]:
        """Itself: `async for event in await model.achat(..., stream=True)` is as good as without `await`."""
        yield from asyncio.sleep(0).__await__()
        return self

    def partials(self) -> Iterator[Any]:
        """Iterates over the value of the content so far, of content that is a JSON document.

        Each value is a dict, a list or a text in which everything that came is final but for the last text, which may
        grow; a number comes once it is over. None is yielded twice. Classes are not made of them: `result.parsed` is
        the object. Reads the events of this stream.

        Example:
            >>> pair = tokentrie.JsonSchema({"type": "array", "prefixItems": [{"const": "ab"}, {"const": 1}],
            ...                              "items": False, "minItems": 2})
            >>> asked = [{"role": "user", "content": "A pair?"}]
            >>> stream = tokentrie.Model().chat(asked, constraint=pair, thinking_budget=0, stream=True)
            >>> [*stream.partials()][-1]
            ['ab', 1]
        """
        begun = BegunJson()
        for event in self:
            if event.kind == "content" and begun.push(event.text):
                yield begun.value()

    async def apartials(self) -> AsyncIterator[Any]:
        """`partials` for `async for`.

        Example:
            >>> import asyncio
            >>> async def last():
            ...     pair = tokentrie.JsonSchema({"const": ["ab"]})
            ...     asked = [{"role": "user", "content": "?"}]
            ...     chat = tokentrie.Model().achat(asked, constraint=pair, thinking_budget=0, stream=True)
            ...     return [value async for value in chat.apartials()][-1]
            >>> asyncio.run(last())
            ['ab']
        """
        begun = BegunJson()
        async for event in self:
            if event.kind == "content" and begun.push(event.text):
                yield begun.value()

    @property
    def result(self) -> Message[V]:
        """Message: what `chat` would have returned.

        Waits for the end, and raises what ended it; after `close`, or the end of a `with` block, what there was then.

        Example:
            >>> stream = tokentrie.Model().chat([{"role": "user", "content": "Hello"}], stream=True, max_tokens=8)
            >>> stream.result.finish in ("end_of_generation", "max_tokens")
            True
        """
        return self._result()


class _Work(Generic[Part, Result]):
    """State that the thread of a stream and its reader share."""

    def __init__(self, call: Callable[..., Result], options: dict[str, Any]) -> None:
        self.token: CancelToken = options.get("cancel") or CancelToken()
        self.result: Result | None = None
        self._call = call
        self._options = {**options, "cancel": self.token}
        self._parts: queue.SimpleQueue[Part | None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._is_left = False

    def leave(self) -> None:
        """Ends the call because its reader has enough."""
        self._is_left = True
        self.token.cancel()

    @property
    def left_at(self) -> Result | None:
        """Returns what had come when the reader left; None if the call ended otherwise, or nothing had."""
        is_left = self._is_left and isinstance(self._error, CancelledError)
        return self._error.partial if is_left else None  # type: ignore[union-attr]

    def run(self) -> None:
        try:
            self.result = self._call(**self._options)
            self._last(self.result)
        except BaseException as error:  # It belongs to the reader.
            self._error = error
        self._parts.put(None)

    def _last(self, result: Result) -> None:
        """Returns the text of the result beyond all parts."""

    def _enqueue(self, part: Part) -> None:
        # At the end of the program nobody reads any more, and it must not wait for the generation.
        if not threading.main_thread().is_alive():
            self.token.cancel()
        self._parts.put(part)

    def take(self) -> Part | None:
        """The next part; None at the end, and ever after."""
        part = self._parts.get()
        if part is None:
            self._parts.put(None)
        return part

    def reraise(self) -> None:
        if self._error:
            raise self._error


class _TextWork(_Work[str, Generated]):
    def __init__(self, call: Callable[..., Generated], options: dict[str, Any]) -> None:
        super().__init__(call, options)
        self._on_step: Callable[[Step], object] | None = options.get("on_step")
        self._options["on_step"] = self._see
        self._length = 0

    def _see(self, step: Step) -> object:
        self._say(step.text)
        return self._on_step(step) if self._on_step else None

    def _last(self, result: Generated) -> None:
        self._say(result.text[self._length :])

    def _say(self, text: str) -> None:
        if text:
            self._length += len(text)
            self._enqueue(text)
        elif not threading.main_thread().is_alive():
            self.token.cancel()


class _EventWork(_Work[ChatEvent, Message[V]]):
    def __init__(self, call: Callable[..., Message[V]], options: dict[str, Any]) -> None:
        super().__init__(call, options)
        self._options["stream"] = self._enqueue
