"""Runs the examples of what an adapter offers, and those of a page."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import tokentrie

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
DOCS = Path(__file__).parents[2] / "docs"


def run_example(found: object) -> None:
    """The example in a docstring, as it stands."""
    text = found.__doc__ or ""
    assert ">>> " in text, f"{found} has no example"
    import torch

    names: dict[str, Any] = {"tokentrie": tokentrie, "torch": torch}
    example = doctest.DocTestParser().get_doctest(text, names, str(found), None, None)
    said: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=said.append)
    assert not failed, "".join(said)


def run_page(name: str) -> None:
    """The blocks of a page, one program."""
    page = DOCS / name
    program, text = "", page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        program += "\n" * (text.count("\n", 0, block.start(1)) - program.count("\n")) + block[1]
    assert program, f"{name} has no program"
    exec(compile(program, str(page), "exec"), {"__name__": "__example__"})
