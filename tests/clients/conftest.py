"""A server for the programs of real clients. `./dev clients` installs the clients and runs these tests; elsewhere each
file is skipped where its client is not installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# The environments of clients read no other file like this one.
sys.path.insert(0, str(Path(__file__).parents[1]))

from serve.server import KEY, serving

#: The server that is asked instead of ours, such as llama.cpp's own; it must take the key of these tests.
OTHER = os.environ.get("TOKENTRIE_CLIENTS_URL")


@pytest.fixture(scope="session")
def base() -> Iterator[str]:
    """Where the server is, without /v1."""
    if OTHER:
        yield OTHER
        return
    with serving(interpreter=os.environ.get("TOKENTRIE_PYTHON")) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture
def key() -> str:
    """What requests bring."""
    return KEY
