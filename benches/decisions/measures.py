"""Measures of answers whose right ones are known."""

from __future__ import annotations

import math
from collections.abc import Sequence

BINS = 10
#: Errors among the answers that are decided.
MOST_WRONG = 0.05


def best(shares: Sequence[float]) -> int:
    """Returns the place of the largest; of equal ones the first."""
    return max(range(len(shares)), key=shares.__getitem__)


def wilson(right: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """Returns the interval of a share, 95 %."""
    if count == 0:
        return 0.0, 1.0
    share, spread = right / count, z * z / count
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + spread)
    return middle - half, middle + half


def brier(shares: Sequence[float], gold: Sequence[float]) -> float:
    """Returns the sum of squared differences over the options: 0 is best, 2 worst."""
    return sum((share - right) ** 2 for share, right in zip(shares, gold, strict=True))


def calibration_error(sure: Sequence[tuple[float, bool]]) -> float:
    """Returns the expected calibration error, in ten bins, of largest probabilities and whether they were right."""
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for share, hit in sure:
        bins[min(int(share * BINS), BINS - 1)].append((share, hit))
    return sum(abs(sum(share - hit for share, hit in one)) for one in bins) / max(len(sure), 1)


def decided_share(sure: Sequence[tuple[float, bool]]) -> float:
    """Returns the largest share of answers, the surest first, of which at most 5 % are wrong.

    Answers of the same probability are decided together.
    """
    ordered = sorted(sure, key=lambda one: -one[0])
    wrong = most = 0
    for count, (share, hit) in enumerate(ordered, 1):
        wrong += not hit
        is_cut = count == len(ordered) or ordered[count][0] < share
        if is_cut and wrong <= MOST_WRONG * count:
            most = count
    return most / max(len(ordered), 1)
