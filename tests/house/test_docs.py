"""Examples in the documentation run as they stand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import tokentrie
from support import public_names

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
HOSTS = ["jax", "llama_cpp", "onnxruntime", "ray", "torch", "transformers", "vllm"]
"""Hosts warn of their own affairs, which are none of ours."""
OPTIONAL = ["tokenizers", "tiktoken", "uvicorn", *HOSTS]
APART = {"coming-from.md", "own-loop.md"}
"""Pages on which every block stands alone."""
LONGEST = 250
LONG = {"internals.md", "rules.md"}
"""Pages that are read as a whole."""
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
BODY = re.compile(r"^(?:\$ )?curl [^`]*? -d '(\{.*?\})'$", re.MULTILINE | re.DOTALL)


def programs() -> list[tuple[Path, str]]:
    """File and code of every page with python blocks: one program, whose lines stand where they stand on the page."""
    found = []
    for page in filter(Path.is_file, PAGES):
        text, program = page.read_text(encoding="utf-8"), ""
        for block in BLOCK.finditer(text):
            if page.name in APART:
                found.append((page, "\n" * text.count("\n", 0, block.start(1)) + block[1]))
                continue
            program += "\n" * (text.count("\n", 0, block.start(1)) - program.count("\n")) + block[1]
        if program:
            found.append((page, program))
    return found


def imports(program: str, packages: list[str]) -> list[str]:
    """Those of the packages that a program imports."""
    return [package for package in packages if re.search(rf"^(import|from) {package}\b", program, re.MULTILINE)]


def cases() -> list[Any]:
    """A program each; those inside a host may warn."""

    def marks(program: str) -> list[pytest.MarkDecorator]:
        warns = bool(imports(program, HOSTS))
        runs = any(word in program for word in ("Model(", ".Chooser(", '"-m", "tokentrie"'))
        return [pytest.mark.filterwarnings("ignore")] * warns + [pytest.mark.model] * runs

    return [pytest.param(*each, id=each[0].name, marks=marks(each[1])) for each in programs()]


@pytest.mark.parametrize("page", [page for page in PAGES[1:] if page.is_file()], ids=lambda page: page.name)
def test_a_page_begins_with_its_use_and_is_short(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    # A sentence, before code and lists: the reader's use of the page.
    assert re.match(r"[A-Z][a-z]+[ :,]", lines[2])
    assert not re.match(r"(For|What|Whether|Who|Where)\b", lines[2])
    assert len(lines) <= LONGEST or page.name in LONG


def test_the_reference_has_every_name_of_the_package() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("python-*.md"))
    listed = re.findall(r"^::: tokentrie\.(?!integrations)([\w.]+)$", pages, re.MULTILINE)
    assert sorted(listed) == sorted(public_names())


def test_bodies_of_requests_are_json_with_constraints_that_there_are() -> None:
    bodies = [
        json.loads(body) for page in filter(Path.is_file, PAGES) for body in BODY.findall(page.read_text("utf-8"))
    ]
    constraints = [body["constraint"] for body in bodies if "constraint" in body]
    assert len(bodies) > 2
    assert constraints
    for constraint in constraints:
        tokentrie.constraint(constraint)


@pytest.mark.parametrize(("page", "program"), cases())
def test_example(page: Path, program: str, tiny_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for package in imports(program, OPTIONAL):
        pytest.importorskip(package, reason=f"the package {package} is not installed")
    exec(compile(program, str(page), "exec", dont_inherit=True), {"__name__": "__example__"})
