"""Fixtures that several test files share."""

from __future__ import annotations

import json
import os
import signal
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

# Test files are imported by path and share modules.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent / "cli"))
sys.path.append(str(Path(__file__).parent / "chat"))
sys.path.append(str(Path(__file__).parent / "chat" / "dialects"))
sys.path.append(str(Path(__file__).parent / "chat" / "response_templates"))
sys.path.append(str(Path(__file__).parent / "schemas"))
sys.path.append(str(Path(__file__).parent / "sets"))

from budget import BUDGET, cases
from support import WITHOUT_LLAMA, has_llama, payload, vocabulary_files

settings.register_profile("budget", max_examples=cases(100))
settings.load_profile("budget")

# A shell that runs the tests in the background makes them deaf to Ctrl-C, which some of them press.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def actions() -> str:
    """A payload in which two leaves share their first token and one is short."""
    return json.dumps(payload({"THINK": [5, 6, 7], "STOP": [2], "REPLY": [5, 8]}))


@pytest.fixture
def row() -> np.ndarray:
    """Ascending logits over ten tokens: the highest id is liked best."""
    return np.arange(10, dtype=np.float32)


@pytest.fixture(scope="session")
def tiny_path() -> Path:
    """The model that the package carries."""
    path = Path(str(files("tokentrie") / "models" / "tiny.gguf"))
    if not path.is_file():
        pytest.skip("the package has no models/tiny.gguf")
    return path


@pytest.fixture(scope="session")
def shared_cases() -> list[dict[str, Any]]:
    """Cases of tree decoding in a folder beside this one, which the repository has no copy of."""
    folder = Path(os.environ.get("TOKENTRIE_CASES_DIR") or Path(__file__).parents[2] / "shared" / "cases")
    path = folder / "tree_decode.json"
    if not path.is_file():
        pytest.skip(f"TOKENTRIE_CASES_DIR names no folder with {path.name}")
    cases: list[dict[str, Any]] = json.loads(path.read_text())["cases"]
    return cases


def pytest_report_header() -> str:
    folder = os.environ.get("TOKENTRIE_VOCAB_DIR")
    if not folder:
        return "TOKENTRIE_VOCAB_DIR is not set: tests over the big vocabularies are skipped"
    return f"vocabularies in {folder}: {', '.join(path.name for path in vocabulary_files()) or 'none'}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if BUDGET >= 1 or "nightly" in config.option.markexpr:
        return
    tonight = [item for item in items if item.get_closest_marker("nightly")]
    if tonight:
        config.hook.pytest_deselected(items=tonight)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("model") and not has_llama():
        pytest.skip(f"needs a model: this package was built {WITHOUT_LLAMA}")
