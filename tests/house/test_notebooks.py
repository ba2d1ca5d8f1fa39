"""Notebooks run from top to bottom, are short, and are kept without what they print."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
MOST_CELLS = 15


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_short_and_kept_without_output(path: Path) -> None:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    assert len(cells) <= MOST_CELLS
    assert not "".join(cells[0]["source"]).splitlines()[2].startswith(("For ", "What ", "Whether "))
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


@pytest.mark.model
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    for package in ("nbconvert", "ipykernel"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the package {package} is not installed")
    command = [sys.executable, "-m", "nbconvert", "--to", "markdown", "--execute", "--output-dir", str(tmp_path)]
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # What a notebook shows is read once more where the site is made of it: a warning would stand there too.
    assert "Warning" not in (tmp_path / f"{path.stem}.md").read_text("utf-8")
