"""How many random cases the tests try: `TOKENTRIE_TEST_BUDGET` scales them all, as it does in Rust.

0.1 unless it is set, 1 in `./dev nightly`.
"""

from __future__ import annotations

import os

BUDGET = float(os.environ.get("TOKENTRIE_TEST_BUDGET") or 0.1)


def cases(everything: int) -> int:
    """How many of so many cases to try, at least one."""
    return max(1, round(everything * BUDGET))


def every(largest: int = 9) -> int:
    """Which one of a list to try: each at full size, each ninth at a tenth, or more where that were too few."""
    return max(1, min(largest, int(1 / BUDGET)))
