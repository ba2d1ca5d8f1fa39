"""Tables of names, numbers and bars that fit into any terminal: no number is cut off, and no name vanishes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

#: Between two columns; cells of a name before it is folded; the shortest and the longest bar.
GAP, LEAST_NAME, LEAST_BAR, MOST_BAR = 2, 8, 4, 30
EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(share: float, cells: int = MOST_BAR) -> Text:
    """A share of 1 as a bar of at most so many cells."""
    eighths = round(share * cells * 8)
    return Text("█" * (eighths // 8) + EIGHTHS[eighths % 8].strip())


def table(
    width: int,
    names: Sequence[Text],
    numbers: Mapping[str, Sequence[str]],
    shares: Sequence[float] | None = None,
    *,
    heading: str = "",
    style: str = "bold",
) -> Table:
    """A table of a width: a name in each row, numbers under their headings, and a bar for each share.

    In a narrow table the bars are left out first, then columns of numbers from the right, but never the first. Headings
    and names are folded.
    """
    longest = max([Text(heading).cell_len, *(name.cell_len for name in names)])
    least = min(longest, LEAST_NAME)
    cells = {column: max([1, *map(len, of)]) for column, of in numbers.items()}
    # Headings are whole where they can be, else folded between words, and within them only where nothing else is left.
    folded = {column: column.replace("-", "-\n") for column in numbers}
    words = {column: max([cells[column], *map(len, folded[column].split())]) for column in numbers}
    whole = {column: max(cells[column], len(column)) for column in numbers}

    def room(widths: Mapping[str, int], kept: Sequence[str]) -> int:
        return width - sum(widths[column] + GAP for column in kept)

    kept = list(numbers)
    widths = whole if room(whole, kept) >= longest else words
    while len(kept) > 1 and room(widths, kept) < least:
        kept.pop()
    widths = cells if room(widths, kept) < least else widths
    named = min(longest, max(room(widths, kept), 1))
    # Names get their room before bars do.
    left = room(widths, kept) - named - GAP
    longest_bar = min(left, MOST_BAR) if shares is not None and left >= LEAST_BAR else 0
    made = Table(
        box=None, pad_edge=False, show_header=any([heading, *kept]), header_style=style, padding=(0, GAP, 0, 0)
    )
    made.add_column(heading, overflow="fold", width=named)
    for column in kept:
        shown = column if widths is whole else folded[column]
        made.add_column(shown, justify="right", overflow="fold", width=widths[column])
    if longest_bar:
        made.add_column(no_wrap=True, width=longest_bar)
    for number, name in enumerate(names):
        row: list[Any] = [name, *(numbers[column][number] for column in kept)]
        made.add_row(*row, *([bar(shares[number], longest_bar)] if longest_bar and shares is not None else []))
    return made
