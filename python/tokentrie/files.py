"""Files that are written whole or not at all, and a check that refuses pipes and devices."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def only_files(path: Path) -> Path:
    """The path, unless it names a pipe or a device: opening a pipe waits for a writer, and a device may never end.

    Raises OSError. A path that is missing, or is a folder, is left to `open`, which raises its own error.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "a pipe or a device is not supported (- reads standard input)", str(path))
    return path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to in the block; at its end the file takes the place of `path`, or is gone after an error.

    Raises OSError where something is in its place that is not a file, such as a device.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
