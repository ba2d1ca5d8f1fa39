"""Fixtures shared by all benches."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # bench files are imported by path and share modules


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="benches: small sets and one round, to see that all runs")


@pytest.fixture(scope="session")
def quick(request: pytest.FixtureRequest) -> bool:
    """Returns whether to measure small sets, once."""
    return bool(request.config.getoption("--quick"))
