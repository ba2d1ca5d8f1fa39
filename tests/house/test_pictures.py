"""The pictures of the documentation are what their script draws of the records."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools" / "docs_pictures.py"
PICTURES = ROOT / "docs" / "pictures"


@pytest.mark.model
@pytest.mark.skipif(not SCRIPT.is_file(), reason="only a checkout has the script")
def test_pictures_are_what_the_script_draws(tmp_path: Path) -> None:
    drawn_with = re.search(r"Matplotlib v([\d.]+)", (PICTURES / "tools-light.svg").read_text("utf-8"))
    assert drawn_with
    if metadata.version("matplotlib") != drawn_with[1]:
        pytest.skip(f"they were drawn with matplotlib {drawn_with[1]}, which may place things otherwise")
    subprocess.run([sys.executable, str(SCRIPT), str(tmp_path)], check=True, capture_output=True)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in PICTURES.iterdir()}
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (PICTURES / path.name).read_bytes(), f"{path.name}: run tools/docs_pictures.py"


def test_each_picture_is_on_a_page_light_and_dark() -> None:
    pages = "\n".join(page.read_text("utf-8") for page in (ROOT / "docs").glob("*.md"))
    for path in PICTURES.glob("*.svg"):
        assert f'"pictures/{path.name}"' in pages, path.name
