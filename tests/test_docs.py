"""Examples in the documentation run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
OPTIONAL = ["tokenizers", "tiktoken", "jax", "llama_cpp", "onnxruntime", "ray", "torch", "transformers"]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def programs() -> list[tuple[Path, str]]:
    """File and code of every page with python blocks: one program, whose lines stand where they stand on the page."""
    found = []
    for page in filter(Path.is_file, PAGES):
        text, program = page.read_text(encoding="utf-8"), ""
        for block in BLOCK.finditer(text):
            program += "\n" * (text.count("\n", 0, block.start(1)) - program.count("\n")) + block[1]
        if program:
            found.append((page, program))
    return found


@pytest.mark.parametrize(("page", "program"), [pytest.param(*e, id=e[0].name) for e in programs()])
def test_example(page: Path, program: str, tiny_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for package in OPTIONAL:
        if f"import {package}\n" in program:
            pytest.importorskip(package, reason=f"the package {package} is not installed")
    exec(compile(program, str(page), "exec"), {"__name__": "__example__"})
