"""Checks whether this tree could be published today: `./dev release --check [STEP …]`. Nothing is uploaded.

Each step ends in a line: ok; differs, which is good to know but not a fault; or not here, with the reason. A fault ends
it with 1.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import npm
import papers
import wheels
from shared import OUT, Differs, FaultError, NotHere

import crates

STEPS: dict[str, Callable[[], str]] = {
    "version": papers.check_versions,
    "changelog": papers.check_changelog,
    "licences": papers.check_licences,
    "notices": papers.check_notices,
    "crates": crates.check_crates,
    "sdist": crates.check_sdist,
    "x86-64-v2": partial(wheels.check_wheel, "x86-64-v2"),
    "x86-64-v3": partial(wheels.check_wheel, "x86-64-v3"),
    "aarch64": wheels.check_aarch64,
    "npm": npm.check_npm,
    "same-bytes": wheels.check_same_bytes,
}
ENDS = {Differs: "differs", NotHere: "not here"}


def main() -> None:
    """Runs the steps that are named, all unless one is, and shows the table."""
    unknown = set(sys.argv[1:]) - set(STEPS)
    if unknown:
        raise SystemExit(f"no such step: {', '.join(sorted(unknown))}; there are {', '.join(STEPS)}")
    OUT.mkdir(parents=True, exist_ok=True)
    table = []
    for name in sys.argv[1:] or STEPS:
        print(f"==> {name}", flush=True)
        began = time.monotonic()
        try:
            line = STEPS[name]()
            end = ENDS.get(type(line), "ok")
        except FaultError as error:
            end, line = "FAULT", str(error)
        table.append((name, end, f"{time.monotonic() - began:.0f} s", line))
        print(f"    {end}: {line}", flush=True)
    print()
    for name, end, took, line in table:
        print(f"{name:<10}  {end:<8}  {took:>6}  {line.splitlines()[0]}")
    sys.exit(any(end == "FAULT" for _, end, *_ in table))


if __name__ == "__main__":
    main()
