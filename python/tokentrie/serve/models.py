"""The models that answer, and calls of them that end with their client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import Request

from tokentrie import CancelledError, Model
from tokentrie.streaming import in_background

T = TypeVar("T")


@dataclass(frozen=True)
class Served:
    """A model under its name."""

    name: str
    model: Model
    timeout: float | None
    """The seconds that a call may take, if it says nothing else."""

    async def call(self, request: Request, work: Callable[..., T]) -> T:
        """Runs work, which takes `cancel`, on a thread; a client that goes, or a task that is cancelled, ends it."""
        running = asyncio.ensure_future(in_background(work))
        leaving = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait({running, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                raise CancelledError("stopped: the client went away")
            return running.result()
        finally:
            leaving.cancel()
            running.cancel()
            await asyncio.wait({running})


class Models:
    """All of them by name; the first answers where a request names none of them."""

    def __init__(self, served: list[Served]) -> None:
        self._served = {one.name: one for one in served}
        self.first = served[0]

    def named(self, name: str | None) -> Served:
        """Clients send names of models elsewhere, so that every name is taken."""
        return self.get(name or "") or self.first

    def get(self, name: str) -> Served | None:
        """The one of this name."""
        return self._served.get(name)

    def all(self) -> list[Served]:
        """In their order."""
        return [*self._served.values()]

    def close(self) -> None:
        """Ends what runs."""
        for one in self._served.values():
            one.model.close()


async def _gone(request: Request) -> Any:
    while (await request.receive())["type"] != "http.disconnect":
        pass
