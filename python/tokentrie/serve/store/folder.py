"""Files that appear whole or not at all.

What a server writes is `NAME@VERSION.json`, a spec, or `NAME@VERSION.ttrie`; of several versions the last one counts,
so that a name changes its content, and the kind of its file, with one rename. What a user puts there is `NAME.json`,
`NAME.ttrie` or `NAME.wasm`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from dataclasses import dataclass
from pathlib import Path

from tokentrie.files import replacing
from tokentrie.serve.store.contents import JSON, TRIE, WASM

#: Names of constraints. Two dots beside each other lead out of folders.
NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
SUFFIX = "|".join(map(re.escape, (JSON, TRIE, WASM)))
FILE = re.compile(rf"({NAME.pattern})(?:@([1-9][0-9]{{0,17}}))?({SUFFIX})")
PARTIAL = re.compile(rf"{FILE.pattern}\.[0-9]+\.partial")


@dataclass(frozen=True)
class StoredFile:
    """A file of a name."""

    name: str
    version: int
    """0 where a user put it there."""
    path: Path


class Folder:
    """A folder that one server has for itself while it runs, or that several read.

    Raises OSError where it is not a folder, cannot be written, or another server has it.
    """

    def __init__(self, path: Path, *, is_shared: bool = False) -> None:
        if not is_shared:
            path.mkdir(exist_ok=True)
        self.path = path
        self._held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._held, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._held)
            raise OSError(errno.EBUSY, "another server has this folder", str(path)) from None
        if is_shared:
            return
        for left in path.iterdir():
            if PARTIAL.fullmatch(left.name):
                left.unlink(missing_ok=True)

    def close(self) -> None:
        """Lets go of it."""
        os.close(self._held)

    def files(self, name: str | None = None) -> list[StoredFile]:
        """All of them, or those of a name; the older versions first."""
        matches = ((FILE.fullmatch(path.name), path) for path in self.path.iterdir())
        found = (StoredFile(match[1], int(match[2] or 0), path) for match, path in matches if match is not None)
        own = (kept for kept in found if name is None or kept.name == name)
        return sorted(own, key=lambda kept: (kept.version, kept.path.name))

    def write(self, name: str, version: int, suffix: str, data: bytes, same: Path | None) -> Path:
        """A new file, on the disk when this returns; `same` is one that has these bytes already.

        Raises OSError, and has written nothing then.
        """
        target = self.path / f"{name}@{version}{suffix}"
        with replacing(target) as partial:
            linked = False
            if same is not None:
                with contextlib.suppress(OSError):
                    os.link(same, partial)
                    linked = True
            if not linked:
                with partial.open("wb") as stream:
                    stream.write(data)
                    stream.flush()
                    os.fsync(stream.fileno())
        try:
            os.fsync(self._held)
        except OSError:
            target.unlink(missing_ok=True)
            raise
        return target

    def remove(self, name: str, before: int | None = None) -> None:
        """The files of a name, or those of versions before one; older ones first, so that none comes back."""
        for kept in self.files(name):
            if before is None or kept.version < before:
                kept.path.unlink(missing_ok=True)
        os.fsync(self._held)
