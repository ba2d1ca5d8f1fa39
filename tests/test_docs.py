"""Examples in the documentation run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[Path, int, str]]:
    """File, line and text of every ```python block."""
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES if page.is_file()}
    return [
        (page, text.count("\n", 0, block.start(1)) + 1, block[1])
        for page, text in texts.items()
        for block in BLOCK.finditer(text)
    ]


@pytest.mark.parametrize(("page", "line", "code"), [pytest.param(*e, id=f"{e[0].name}:{e[1]}") for e in examples()])
def test_example(
    page: Path, line: int, code: str, tiny_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Blank lines before the code make a traceback name the line of the page.
    exec(compile("\n" * (line - 1) + code, str(page), "exec"), {"__name__": "__example__"})
