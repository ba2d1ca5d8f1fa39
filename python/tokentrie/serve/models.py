"""The models that answer, and calls of them that end with their client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import Request

from tokentrie import CancelToken, Model

T = TypeVar("T")


@dataclass(frozen=True)
class Served:
    """A model under its name."""

    name: str
    model: Model
    timeout: float | None
    """The seconds that a call may take, if it says nothing else."""

    async def call(self, request: Request, work: Callable[[CancelToken], T]) -> T:
        """Does the work of a request on a thread; a client that goes, or a task that is cancelled, ends it."""
        token = CancelToken()
        running = asyncio.get_running_loop().run_in_executor(None, work, token)
        leaving = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait({running, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                token.cancel()
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            token.cancel()
            await asyncio.wait([running])
            running.exception()
            raise
        finally:
            leaving.cancel()


class Models:
    """All of them by name; the first answers where a request names none of them."""

    def __init__(self, served: list[Served]) -> None:
        self._served = {one.name: one for one in served}
        self.first = served[0]

    def named(self, name: str | None) -> Served:
        """Clients send names of models elsewhere, so that every name is taken."""
        return self._served.get(name or "", self.first)

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
