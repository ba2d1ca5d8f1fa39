"""Summary of `choose --input`: counts per label, doubtful rows, and agreement with other labels."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tokentrie.cli import console, fitting
from tokentrie.cli.rows.formats import Columns

CHOICE = Columns(
    ("choice", "probability", "mass", "probabilities"), numbers=("probability", "mass"), shares=("probabilities",)
)
"""Columns that a finished row gets beside its fields."""

# A row is doubtful if its best value is less than this many times as probable as the next one.
CLEAR = 2.0
# Below this mass the model would rather write something else than any of the values.
LIKELY = 0.5
LEAST_SURE = 5
# Labels that are listed, and columns of a confusion table, for people.
LISTED, SQUARE = 20, 8
BANDS = (0.9, 0.7, 0.5, 0.0)
"""Least probabilities of the bands in which rows are counted for the picture."""


class Tally:
    """Counts rows with their results, one at a time."""

    def __init__(self, labels: Iterable[str], gold: str | None) -> None:
        """`labels` are those to list even where no row has them; `gold` is the field that says what is right."""
        self.gold = gold
        self.labels = [*labels]
        self.rows = self.errors = self.abstained = self.doubtful = self.unlikely = 0
        self.counts: Counter[str] = Counter()
        self.bands: Counter[tuple[str, int]] = Counter()
        self.sums: defaultdict[str, float] = defaultdict(float)
        self.pairs: Counter[tuple[str, str]] = Counter()
        """Rows by what is right and what was chosen."""
        self._least_sure: list[tuple[float, int]] = []

    def add(self, row: dict[str, Any]) -> None:
        """Counts a row: its fields with its result, or with an error."""
        self.rows += 1
        if CHOICE.is_error(row):
            self.errors += 1
            return
        if row["choice"] in (None, ""):
            # Below the threshold none was chosen.
            self.abstained += 1
            return
        label, probability = str(row["choice"]), float(row["probability"])
        self.counts[label] += 1
        self.sums[label] += probability
        self.bands[label, next(band for band, least in enumerate(BANDS) if probability >= least)] += 1
        best, *others = row["probabilities"].values()
        if others and best < CLEAR * others[0]:
            self.doubtful += 1
            # The surest of those that are kept goes first.
            entry = (others[0] / best, -self.rows)
            (heapq.heappush if len(self._least_sure) < LEAST_SURE else heapq.heappushpop)(self._least_sure, entry)
        self.unlikely += float(row["mass"]) < LIKELY
        if self.gold is not None and (gold := row.get(self.gold)) not in (None, ""):
            self.pairs[str(gold), label] += 1

    @property
    def right(self) -> int:
        """Rows whose label is what it should be."""
        return sum(count for (gold, chosen), count in self.pairs.items() if gold == chosen)

    @property
    def least_sure(self) -> list[int]:
        """The numbers of the most doubtful rows, from 1."""
        return [-number for _, number in sorted(self._least_sure, reverse=True)]

    def all_labels(self) -> list[str]:
        """Returns the labels to list, the most frequent first."""
        seen = dict.fromkeys(label for label, _ in self.counts.most_common())
        return [*seen, *(label for label in self.labels if label not in seen)]

    def document(self) -> dict[str, Any]:
        """Returns the summary as JSON values."""
        found: dict[str, Any] = {
            "labels": {label: self.counts[label] for label in self.all_labels()},
            "abstained": self.abstained,
            "doubtful": self.doubtful,
            "least_sure": self.least_sure,
            "unlikely": self.unlikely,
        }
        if self.gold is not None:
            compared = self.pairs.total()
            confusion: dict[str, dict[str, int]] = {}
            for (gold, chosen), count in sorted(self.pairs.items()):
                confusion.setdefault(gold, {})[chosen] = count
            found["gold"] = {
                "field": self.gold,
                "rows": compared,
                "right": self.right,
                "accuracy": self.right / compared if compared else None,
                "confusion": confusion,
            }
        return found

    def render(self, width: int) -> list[RenderableType]:
        """Parts for people, on a screen of a width."""
        parts: list[RenderableType] = []
        if self.abstained:
            rows = console.count(self.abstained, "row", "rows")
            parts.append(Text(f"{rows} without a label: no value is as probable as --threshold asks"))
        if not self.counts:
            return parts
        parts.insert(0, self._counts(width))
        if self.doubtful:
            rows = ", ".join(f"{number:,}" for number in self.least_sure)
            line = (
                f"{console.count(self.doubtful, 'doubtful row', 'doubtful rows')}, where the best label is less than "
            )
            parts.append(Text(f"{line}twice as probable as the next; the least sure: {rows}"))
        if self.unlikely:
            rows = console.count(self.unlikely, "row", "rows")
            parts.append(Text(f"{rows} after which the model would rather write something else: the mass is below 0.5"))
        if self.gold is not None:
            parts += self._render_comparison(self.gold)
        return parts

    def _counts(self, width: int) -> Table:
        labelled, labels = self.counts.total(), self.all_labels()
        counted = [(label, self.counts[label]) for label in labels[:LISTED]]
        names = [Text(console.printable(label) or '""') for label, _ in counted]
        numbers = {
            "Rows": [f"{count:,}" for _, count in counted],
            "Share": [f"{100 * count / labelled:.1f} %" for _, count in counted],
            "Mean probability": [f"{self.sums[label] / count:.3f}" if count else "" for label, count in counted],
        }
        if len(labels) > LISTED:
            names.append(Text(f"… {len(labels) - LISTED:,} more", style="dim"))
            numbers = {name: [*cells, ""] for name, cells in numbers.items()}
        return fitting.table(width, names, numbers, heading="Label")

    def _render_comparison(self, gold: str) -> list[RenderableType]:
        compared = self.pairs.total()
        if not compared:
            return [Text(f"no row has a value in {gold!r} to compare with")]
        share = 100 * self.right / compared
        parts: list[RenderableType] = [
            Text(f"{self.right:,} of {compared:,} labels are those in {gold!r}: accuracy {share:.1f} %")
        ]
        frequent: Counter[str] = Counter()
        of_chosen: Counter[str] = Counter()
        for (true, label), count in self.pairs.items():
            frequent[true] += count
            of_chosen[label] += count
        golds = [label for label, _ in frequent.most_common(SQUARE)]
        chosen = [label for label, _ in of_chosen.most_common(SQUARE)]
        columns = [*(label for label in golds if label in chosen), *(label for label in chosen if label not in golds)]
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        table.add_column(f"{console.printable(gold)} \\ chosen", overflow="fold")
        for label in columns:
            # Labels fold on a narrow terminal, numbers do not.
            widest = max(len(f"{self.pairs[gold, label]:,}") for gold in golds)
            table.add_column(console.printable(label), justify="right", overflow="fold", min_width=widest)
        table.add_column("right", justify="right", no_wrap=True)
        for label in golds:
            counts = [self.pairs[label, other] for other in columns]
            cells = [
                Text(f"{count:,}" if count else "·", style="bold green" if label == other and count else "")
                for other, count in zip(columns, counts, strict=True)
            ]
            table.add_row(
                Text(console.printable(label)), *cells, f"{100 * self.pairs[label, label] / frequent[label]:.0f} %"
            )
        parts.append(table)
        if len(frequent) > SQUARE:
            parts.append(Text(f"… the {SQUARE} most frequent of {len(frequent):,}; --json has all", style="dim"))
        return parts
