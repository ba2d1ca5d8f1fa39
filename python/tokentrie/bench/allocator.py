"""The C library's memory, kept while it is measured.

llama.cpp's grammar sampler takes and frees much memory at each step, and glibc gives freed memory back to the system by
sizes that depend on what the process did before: the same step then takes twice the time in one process and not in the
next, most of it page faults. That would flatter the trie. So the memory is kept, for all modes alike.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Numbers of `mallopt`, from malloc.h."""
DEFAULT = 128 * 1024
KEPT = {TRIM_THRESHOLD: 1 << 30, MMAP_THRESHOLD: 1 << 25}


@contextmanager
def kept() -> Iterator[bool]:
    """Whether freed memory stays with the process in the block; elsewhere than under glibc nothing is changed."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if not (hasattr(library, "mallopt") and hasattr(library, "gnu_get_libc_version")):
        yield False
        return
    assert library is not None
    try:
        yield all(library.mallopt(number, size) == 1 for number, size in KEPT.items())
    finally:
        for number in KEPT:
            library.mallopt(number, DEFAULT)
        library.malloc_trim(0)
