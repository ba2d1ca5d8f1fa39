"""Calls of a model beside other work: text as it grows, and asyncio."""

from __future__ import annotations

import asyncio
import functools
import inspect
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from tokentrie._native import CancelToken, Generated, Model, Sampling, Step

T = TypeVar("T")


async def in_background(call: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Runs a method of a model, which takes `cancel`, on a thread; a task that is cancelled ends it."""
    token = options.setdefault("cancel", CancelToken())
    running = asyncio.get_running_loop().run_in_executor(None, functools.partial(call, *arguments, **options))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        token.cancel()
        # The model is free again, and nothing is raised into a task that nobody awaits.
        await asyncio.wait([running])
        running.exception()
        raise


class Stream(Iterator[str], AsyncIterator[str]):
    """The text of a generation as it grows, from `Model.stream`.

    An iterator of str, also for `async for`: parts that are never empty and never taken back. All of them together are
    `result.text`. The generation runs on a thread of its own; `close`, the end of a `with` block and losing the last
    reference end it.

    Example:
        >>> with tokentrie.Model().stream("Once upon a time", max_tokens=1000) as stream:
        ...     for text in stream:
        ...         break  # enough: leaving the block ends the generation
        >>> stream.result
        Traceback (most recent call last):
            ...
        tokentrie.CancelledError: stopped on request ...
    """

    def __init__(self, model: Model, prompt: Any, constraint: Any = None, **options: Any) -> None:
        signature = inspect.signature(model.generate)
        signature.bind(prompt, constraint, **options)
        Sampling().replace(**{name: value for name, value in options.items() if name not in signature.parameters})
        self._work = _Work(options)
        # Not a method of this object: what only the thread still knew would never be closed.
        target = functools.partial(self._work.run, model, prompt, constraint)
        self._thread = threading.Thread(target=target, name="tokentrie stream")
        self._thread.start()

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> str:
        part = self._work.take()
        if part is None:
            self._work.reraise()
            raise StopIteration
        return part

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> str:
        try:
            part = await asyncio.get_running_loop().run_in_executor(None, self._work.take)
        except asyncio.CancelledError:
            self._work.token.cancel()
            raise
        if part is None:
            self._work.reraise()
            raise StopAsyncIteration
        return part

    @property
    def result(self) -> Generated:
        """Generated: what `generate` would have returned. Waits for the end, and raises what ended it.

        Example:
            >>> tokentrie.Model().stream("The sky is ", ["blue", "red"]).result.finish
            'span'
        """
        self._thread.join()
        self._work.reraise()
        assert self._work.result is not None
        return self._work.result

    def close(self) -> None:
        """Ends the generation, if it still runs, and waits for that. May be repeated.

        Example:
            >>> stream = tokentrie.Model().stream("Once upon a time")
            >>> stream.close()
        """
        self._work.token.cancel()
        self._thread.join()

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if work := getattr(self, "_work", None):
            work.token.cancel()

    def __repr__(self) -> str:
        return f"<tokentrie.Stream: {'running' if self._thread.is_alive() else 'ended'}>"


class _Work:
    """What the thread of a stream and its reader share."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.token: CancelToken = options.get("cancel") or CancelToken()
        self.result: Generated | None = None
        self._options = {**options, "cancel": self.token, "on_step": self._see}
        self._on_step: Callable[[Step], object] | None = options.get("on_step")
        self._parts: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._length = 0
        self._error: BaseException | None = None

    def run(self, model: Model, prompt: Any, constraint: Any) -> None:
        try:
            self.result = model.generate(prompt, constraint, **self._options)
            self._put(self.result.text[self._length :])
        except BaseException as error:  # It belongs to the reader.
            self._error = error
        self._parts.put(None)

    def _see(self, step: Step) -> None:
        # At the end of the program nobody reads any more, and it must not wait for the generation.
        if not threading.main_thread().is_alive():
            self.token.cancel()
        self._put(step.text)
        if self._on_step:
            self._on_step(step)

    def _put(self, text: str) -> None:
        if text:
            self._length += len(text)
            self._parts.put(text)

    def take(self) -> str | None:
        """The next part; None at the end, and ever after."""
        part = self._parts.get()
        if part is None:
            self._parts.put(None)
        return part

    def reraise(self) -> None:
        if self._error:
            raise self._error
