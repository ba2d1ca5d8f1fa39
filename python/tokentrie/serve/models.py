"""The models that answer, and calls of them that end with their client."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from starlette.requests import Request

from tokentrie import Generated, Message, Model, ResponseTemplate
from tokentrie.errors import CancelledError
from tokentrie.serve.errors import WireError
from tokentrie.streaming import in_background

CacheType = Literal["f32", "f16", "bf16", "q8_0", "q5_0", "q4_0"]
T = TypeVar("T")
Part = TypeVar("Part")


@dataclass(frozen=True)
class Cache:
    """KV cache of a model, and the tokens of a forward pass; as for `Model`."""

    numbers: CacheType | None = None
    flash_attention: bool | None = None
    n_batch: int = 512


@dataclass(frozen=True)
class Calls:
    """Numbers of running and waiting calls of a model, and whether their bits are reproducible."""

    slots: int
    max_queue: int
    precise: bool
    prefill_chunk: int = 64
    cache: Cache = field(default_factory=Cache)
    draft: str | None = None

    def open(
        self,
        path: Path | None,
        n_ctx: int | None,
        n_gpu_layers: int,
        n_threads: int | None,
        response_template: ResponseTemplate | None = None,
    ) -> Model:
        """The model of a file, or the tiny one. Raises as `Model`."""
        return Model(
            path,
            n_ctx,
            n_gpu_layers,
            n_threads,
            precise=self.precise,
            slots=self.slots,
            max_queue=self.max_queue,
            # One slot that is fixed has a queue; a model without an engine lets everybody wait.
            prefill_chunk=self.prefill_chunk,
            n_batch=self.cache.n_batch,
            cache_type=self.cache.numbers,
            flash_attention=self.cache.flash_attention,
            response_template=response_template,
            draft=self.draft,
            batching="fixed" if self.precise or self.slots == 1 else "free",
        )

    def threads(self, models: int) -> int:
        """Returns the threads that a server of these models needs: one a call, and some for short work."""
        return models * (self.slots + self.max_queue) + 8


@dataclass(frozen=True)
class ServedModel:
    """A model under its name."""

    name: str
    model: Model
    timeout: float | None
    """The seconds that a call may take, if it says nothing else."""
    observe: Callable[[str, Generated | Message], None] = lambda _model, _done: None
    """To be told of each generation and chat that ended well, with the name."""
    receipt_key: bytes | None = None
    tools_in: str = "auto"
    """Place that describes the tools, if a request names none: as for `chat`."""
    show_schema: bool = True
    """True where chats show the model the schema of their content, if a request says nothing else."""

    def note_end(self, done: Generated | Message) -> None:
        """Tells of a generation or a chat that ended well."""
        self.observe(self.name, done)

    @functools.cached_property
    def most_text(self) -> int:
        """Characters beyond which a text without white space does not fit into the context, whatever it says."""
        vocab = self.model.vocab
        return self.model.n_ctx * max(len(vocab[token]) for token in range(len(vocab)))

    def check_room(self, texts: Iterable[str], param: str, messages: int = 0) -> None:
        """Refuses a request that cannot fit into the context, before any work is done for it.

        `messages` is how many there are: each has a token at least.

        Raises:
            WireError: there is more of it.
        """
        n_ctx, code = self.model.n_ctx, "context_length_exceeded"
        if messages > n_ctx:
            message = f"{param}: {messages:,} messages do not fit into the context of {n_ctx:,} tokens: send fewer"
            raise WireError(message, param=param, code=code)
        # Tokenizers may leave white space out.
        length = sum(len(part) for text in texts for part in text.split())
        if length > self.most_text:
            message = f"{param}: {length:,} characters do not fit into the context of {n_ctx:,} tokens: send less text"
            raise WireError(message, param=param, code=code)

    async def call(self, request: Request, work: Callable[..., T]) -> T:
        """Runs work, which takes `cancel`, on a thread; a client that goes, or a task that is cancelled, ends it."""
        (done,) = await self.run_all(request, [work])
        return done

    async def run_all(self, request: Request, works: Sequence[Callable[..., T]]) -> list[T]:
        """Runs several at once, each on a thread; the first that fails ends all of them."""
        running = [asyncio.ensure_future(in_background(work)) for work in works]
        try:
            return await _unless_gone(request, _gather(running))
        finally:
            for one in running:
                one.cancel()
            await asyncio.wait(running)

    async def stream(self, request: Request, works: Sequence[Callable[..., T]]) -> Parts[Any, T]:
        """Runs works, which take `cancel` and `put`, on threads, and waits for the first part: what fails before it
        is raised here, while the status of the answer can still say so.
        """
        parts: Parts[Any, T] = Parts(works)
        try:
            await _unless_gone(request, parts.begin())
        except BaseException:
            await parts.close()
            raise
        return parts


class Parts(Generic[Part, T]):
    """Parts of several running calls, each with the number of its call. Dropping it ends the calls."""

    def __init__(self, works: Sequence[Callable[..., T]]) -> None:
        self._queue: asyncio.Queue[tuple[int, Part] | None] = asyncio.Queue()
        self._running = [asyncio.ensure_future(self._run(number, work)) for number, work in enumerate(works)]
        self._left = len(self._running)
        self._first: tuple[int, Part] | None = None

    async def _run(self, number: int, work: Callable[..., T]) -> T:
        loop = asyncio.get_running_loop()

        def enqueue(part: Part) -> None:
            loop.call_soon_threadsafe(self._queue.put_nowait, (number, part))

        try:
            return await in_background(work, put=enqueue)
        finally:
            self._queue.put_nowait(None)

    async def begin(self) -> None:
        """Waits for the first part.

        Raises:
            Exception: what a call raised before it.
        """
        self._first = await self._next()

    async def _next(self) -> tuple[int, Part] | None:
        while self._left and (part := await self._queue.get()) is None:
            self._left -= 1
            for one in self._running:
                if one.done():
                    one.result()
        return part if self._left else None

    def __aiter__(self) -> Parts[Part, T]:
        return self

    async def __anext__(self) -> tuple[int, Part]:
        first, self._first = self._first, None
        if (part := first or await self._next()) is None:
            raise StopAsyncIteration
        return part

    @property
    def results(self) -> list[T]:
        """Returns the results of the calls, once no part is left."""
        return [one.result() for one in self._running]

    async def close(self) -> None:
        """Ends the calls, and waits for that."""
        for one in self._running:
            one.cancel()
        await asyncio.wait(self._running)

    def __del__(self) -> None:
        # In a closed event loop no task runs any more.
        with contextlib.suppress(RuntimeError):
            for one in self._running:
                one.get_loop().call_soon_threadsafe(one.cancel)


class Models:
    """All of them by name; the first answers where a request names none of them."""

    def __init__(self, served: list[ServedModel]) -> None:
        self._served = {one.name: one for one in served}
        self.first = served[0]

    def get_or_first(self, name: str | None) -> ServedModel:
        """Clients send names of models elsewhere, so that every name is taken."""
        return self.get(name or "") or self.first

    def get(self, name: str) -> ServedModel | None:
        """The one of this name."""
        return self._served.get(name)

    def list_models(self) -> list[ServedModel]:
        """Returns the models in the order in which they were given."""
        return [*self._served.values()]

    def stop(self) -> None:
        """Ends what runs, without waiting for it."""
        threading.Thread(target=self.close, name="tokentrie-stop", daemon=True).start()

    def close(self) -> None:
        """Cancels all calls that run."""
        for one in self._served.values():
            one.model.close()


async def _gather(running: Sequence[asyncio.Future[T]]) -> list[T]:
    return [*await asyncio.gather(*running)]


async def _unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of the work.

    Raises:
        CancelledError: the client went away before.
    """
    leaving, working = asyncio.ensure_future(_wait_for_disconnect(request)), asyncio.ensure_future(work)
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise CancelledError("stopped: the client went away")
        return working.result()
    finally:
        for one in (leaving, working):
            one.cancel()
        await asyncio.wait({working})


async def _wait_for_disconnect(request: Request) -> Any:
    while (await request.receive())["type"] != "http.disconnect":
        pass
