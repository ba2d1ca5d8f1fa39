"""Caches for later requests, dropped when the memory of the process has grown by a limit."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tokentrie import Model
from tokentrie.errors import ModelError

#: The bytes that a server may grow by before it drops the caches of requests.
MEMORY_GROWTH = 256 << 20
#: Seconds between two looks.
PAUSE = 1.0
_STATM = Path("/proc/self/statm")


def own_memory() -> int | None:
    """The bytes of the process that are not mapped from a file, such as a model; None if the system does not tell."""
    try:
        _, resident, shared = map(int, _STATM.read_text("ascii").split()[:3])
    except (OSError, ValueError):
        return None
    return (resident - shared) * _page()


def _page() -> int:
    import resource

    return resource.getpagesize()


def give_back() -> None:
    """Gives memory that is free inside the process back to the system, where its allocator is glibc's."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))


class Keeper:
    """Drops the caches of requests when memory has grown, and gives free memory back.

    Constraints, tools and sets of values are cached for requests that send the same again. The size of a cached object
    cannot be told from its request, so the memory of the process is measured instead.
    """

    def __init__(
        self,
        models: Iterable[Model],
        kept: Sequence[Callable[[], object]],
        growth: int = MEMORY_GROWTH,
        measure: Callable[[], int | None] = own_memory,
    ) -> None:
        self._models, self._kept, self._growth, self._measure = [*models], kept, growth, measure
        #: Memory after the caches were last dropped.
        self._floor = measure()
        #: Memory at the last look; that of a server at rest does not change.
        self._before: int | None = None
        self._is_trimmed = True

    def look(self) -> bool:
        """Drops the caches and returns True if the process has grown by too much; at rest it gives free memory back."""
        used = self._measure()
        if used is None or self._floor is None:
            return False
        if used > self._floor + self._growth:
            self._forget()
            self._floor = self._before = self._measure()
            self._is_trimmed = False
            return True
        if used != self._before:
            self._before, self._is_trimmed = used, False
        elif not self._is_trimmed:
            give_back()
            self._is_trimmed = True
            # Growth is measured from the least memory seen, so that memory given back counts when it is taken again.
            self._before = after = self._measure()
            self._floor = min(self._floor, after if after is not None else self._floor)
        return False

    def _forget(self) -> None:
        for clear in self._kept:
            clear()
        # A model may be closed already because the server stops.
        with contextlib.suppress(ModelError):
            for model in self._models:
                model._forget()
        gc.collect()
        give_back()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Looks from time to time while it is open, on a thread of its own: the threads of calls may all be busy."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(PAUSE):
                self.look()

        thread = threading.Thread(target=look, name="tokentrie-memory", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
