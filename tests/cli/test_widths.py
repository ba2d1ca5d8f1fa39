"""On narrow terminals: no number is cut off, no name vanishes; and bars move while rows are long."""

from __future__ import annotations

import json
import random
import re
import shlex
from io import StringIO
from typing import Any

import pytest
import typer
from rich.console import Console
from rich.text import Text
from test_cli import Terminal, run
from tokentrie.cli import fitting
from tokentrie.cli.app import app
from tokentrie.cli.choosing.loop import GROUP, GROUP_TEXT, next_group
from tokentrie.cli.choosing.rows import Row

__all__ = ["run"]
LETTERS = "abcdefghijklmnopqrstuvwxyz_ 漢é"


def printed(width: int, table: Any) -> list[str]:
    out = StringIO()
    Console(file=out, width=width, force_terminal=True, color_system=None).print(table)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("seed", range(40))
def test_tables_fit_and_keep_what_they_say(seed: int) -> None:
    draw = random.Random(seed)
    width, count = draw.randint(20, 60), draw.randint(1, 6)
    names = ["".join(draw.choices(LETTERS, k=draw.randint(1, 50))).strip() or "x" for _ in range(count)]
    different = iter(draw.sample(range(10, 99999), 4 * count))
    headings = ("Rows", "Share", "Mean probability", "Log-probability")[: draw.randint(1, 4)]
    numbers = {heading: [f"0.{next(different)}" for _ in range(count)] for heading in headings}
    shares = [draw.random() for _ in range(count)] if draw.random() < 0.5 else None
    lines = printed(width, fitting.table(width, [Text(name) for name in names], numbers, shares, heading="Value"))
    assert all(Text(line).cell_len <= width for line in lines), lines
    shown = " ".join(lines).split()
    first, *others = numbers.values()
    for number in first:
        assert number in shown
    for column in others:
        # All of a column, or nothing.
        assert len({number in shown for number in column}) == 1
    letters = "".join(sorted(re.sub(r"\s", "", "".join(lines))))
    for name in names:
        assert all(letters.count(letter) >= name.count(letter) for letter in set(name) - {" "})


def test_bars_take_what_is_left() -> None:
    names, numbers = [Text("a")], {"": ["0.5000"]}
    for width, cells in ((80, 30), (20, 9), (12, 0)):
        lines = printed(width, fitting.table(width, names, numbers, [1.0]))
        assert lines[0].count("█") == cells, (width, lines)


COMMANDS = ["", *typer.main.get_command(app).commands]  # type: ignore[attr-defined]


@pytest.mark.parametrize("columns", [20, 21, 28, 40, 53, 60])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_and_says_all(run: Terminal, command: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(columns: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        result = run(*filter(None, [command]), "--help")
        assert (result.code, result.err) == (0, "")
        return result.out.splitlines()

    narrow = said(columns)
    assert all(len(line) <= columns for line in narrow), [line for line in narrow if len(line) > columns]
    # Lines of examples end with what lets a shell read on.
    assert re.sub(r"[\s\\]", "", "".join(narrow)) == re.sub(r"[\s\\]", "", "".join(said(100)))


def test_examples_on_narrow_terminals_can_be_copied(run: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def examples(columns: int) -> list[list[str]]:
        monkeypatch.setenv("COLUMNS", str(columns))
        text = run("choose", "--help").out.partition("Examples:\n")[2].replace("\\\n", "")
        return [shlex.split(line) for line in text.splitlines()]

    assert examples(60) == examples(100)


@pytest.mark.model
@pytest.mark.parametrize("columns", [20, 28, 40, 60])
def test_commands_on_narrow_terminals(run: Terminal, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    names = ["red", "blue", "a_value_of_many_letters_in_all"]
    asked = {"questions": {"colour": {"type": "choice", "options": names}, "on": {"type": "predicate"}}}
    chosen = run("choose", "--prompt", "The sky is ", "--choices", ",".join(names))
    decided = run("decide", "--state", "The lamp is on.", "-q", json.dumps(asked))
    for result in (chosen, decided):
        assert result.code == 0
        plain = re.sub(r"\x1b\[[0-9;]*[a-zA-Z]", "", result.out)
        assert max(map(len, plain.splitlines())) <= columns
        assert "…" not in plain
        for name in names[:2]:
            assert re.search(rf"^ *{name} +\d", plain, re.MULTILINE), plain
    assert len(re.findall(r"\b[01]\.\d{4}\b", decided.out)) == 5


def test_groups_are_small_where_rows_are_long() -> None:
    rows = iter([Row(number, {"text": "x" * (GROUP_TEXT // 2)}) for number in range(5)])
    assert [len(group) for group in iter(lambda: next_group(rows), [])] == [2, 2, 1]
    rows = iter([Row(number, {"text": "x"}) for number in range(2 * GROUP + 1)])
    assert [len(group) for group in iter(lambda: next_group(rows), [])] == [GROUP, GROUP, 1]


def test_no_row_is_read_ahead() -> None:
    """An error of a row must not hold up the group before it."""

    def rows() -> Any:
        yield Row(1, {"text": "x" * GROUP_TEXT})
        raise ValueError("row 2")

    several = rows()
    assert [row.line for row in next_group(several)] == [1]
    with pytest.raises(ValueError, match="row 2"):
        next_group(several)
