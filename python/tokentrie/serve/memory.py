"""Caches for later requests, dropped when the process has grown by a limit."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tokentrie import Model
from tokentrie.errors import ModelError

#: The memory that a server may grow by before it forgets what it has worked out for requests.
MEMORY_GROWTH = 256 << 20
#: Seconds between two looks.
PAUSE = 1.0
_STATM = Path("/proc/self/statm")


def own_memory() -> int | None:
    """The bytes of the process that no file stands behind, such as that of a model; None where that is not told."""
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
    """Forgets what was worked out for requests where memory grew, and gives back what is free.

    Constraints, tools and sets of values are found again when a request sends the same once more. How large they are
    cannot be told from what was sent: so the process is measured, and not they.
    """

    def __init__(
        self,
        models: Iterable[Model],
        kept: Sequence[Callable[[], object]],
        growth: int = MEMORY_GROWTH,
        measure: Callable[[], int | None] = own_memory,
    ) -> None:
        self._models, self._kept, self._growth, self._measure = [*models], kept, growth, measure
        #: After it was last forgotten.
        self._floor = measure()
        #: When it was looked at last; a server at rest changes nothing.
        self._before: int | None = None
        self._is_trimmed = True

    def look(self) -> bool:
        """Forgets if the process has grown by too much, and says so; at rest it gives back what is free."""
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
            # What is back need not be had twice: the least that there was is what it grows from.
            self._before = after = self._measure()
            self._floor = min(self._floor, after if after is not None else self._floor)
        return False

    def _forget(self) -> None:
        for clear in self._kept:
            clear()
        # One that is closed: the server stops.
        with contextlib.suppress(ModelError):
            for model in self._models:
                model._forget()
        gc.collect()
        give_back()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Looks from time to time meanwhile, on a thread of its own: those of calls may all be busy."""
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
