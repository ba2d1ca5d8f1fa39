"""The report for people."""

from __future__ import annotations

from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from tokentrie.cli import console

NARROW = 120
STYLES = {"ok": "", "partial": "yellow", "skipped": "dim", "error": "bold red"}


class Column(NamedTuple):
    """A figure and its heading. Those that are not `brief` are only for wide screens."""

    heading: str
    figure: str
    brief: bool = True


COLUMNS = (
    Column("tokens/s", "tokens_per_second"),
    Column("x GBNF", "tokens_per_second_vs_grammar"),
    Column("x free", "tokens_per_second_vs_unconstrained"),
    Column("µs/token", "latency_per_token_us_p50"),
    Column("p99", "latency_per_token_us_p99", brief=False),
    Column("own µs", "own_us_per_token_p50"),
    Column("whole call", "whole_us_p50", brief=False),
    Column("x GBNF", "tokens_per_second_whole_vs_grammar", brief=False),
    Column("x free", "tokens_per_second_whole_vs_unconstrained", brief=False),
    Column("tokens", "tokens", brief=False),
    Column("passes", "forward_passes_total"),
    Column("branch points", "branch_points", brief=False),
    Column("same", "value_accuracy"),
)


def table(report: dict[str, Any], name: str, width: int) -> Table:
    """The rows of one set that have figures."""
    (about,) = [one for one in report["sets"] if one["name"] == name]
    title = Text().append(console.printable(name) or '""', style="bold")
    title.append(f" ({console.count(about['values'], 'value', 'values')})")
    columns = [column for column in COLUMNS if column.brief or width >= NARROW]
    shown = Table(
        title=title,
        title_justify="left",
        box=None,
        pad_edge=False,
        header_style="bold",
        padding=(0, 1 if width < NARROW else 2, 0, 0),
    )
    shown.add_column("Mode", no_wrap=True)
    for column in columns:
        shown.add_column(column.heading, justify="right", no_wrap=True)
    for row in _rows(report, name):
        if row["generations"]:
            shown.add_row(row["mode"], *(_cell(column.figure, row[column.figure]) for column in columns))
    return shown


def notes(report: dict[str, Any], name: str) -> list[Text]:
    """A line for each row of a set that is not as it should be."""
    return [
        Text(f"{row['mode']}: {row['status']}: {console.printable(row['reason'])}", style=STYLES[row["status"]])
        for row in _rows(report, name)
        if row["reason"]
    ]


def _rows(report: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [row for row in report["rows"] if row["set"] == name]


def _cell(figure: str, value: float | None) -> str:
    if value is None:
        return ""
    if figure == "whole_us_p50":
        return console.milliseconds(value / 1e6)
    if figure == "value_accuracy":
        return f"{100 * value:.0f} %"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
