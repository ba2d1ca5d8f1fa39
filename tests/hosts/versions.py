"""Prints the date, and which hosts this environment has."""

from __future__ import annotations

import re
import sys
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LISTS = [Path(__file__).with_name(name) for name in ("requirements.txt", "requirements-alone.txt")]
PINNED = re.compile(r"^([\w.-]+)(?:\[[\w,]+\])?==(\S+)$", re.MULTILINE)


def pinned() -> dict[str, str]:
    """Packages and versions that the lists ask for."""
    return dict(found for path in LISTS for found in PINNED.findall(path.read_text(encoding="utf-8")))


def main() -> None:
    print(f"{datetime.now(timezone.utc):%Y-%m-%d}, Python {sys.version.split()[0]}")
    for package, wanted in pinned().items():
        print(package, installed(package, wanted))


def installed(package: str, wanted: str) -> str:
    """The version that is here."""
    try:
        found = version(package)
    except PackageNotFoundError:
        return "is not installed, so not tested"
    return found if found == wanted else f"{found}, where docs/hosts.md has {wanted}"


if __name__ == "__main__":
    main()
