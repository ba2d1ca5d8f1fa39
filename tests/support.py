"""What several test files need and is no fixture."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parent / "vectors"


def payload(leaves: dict[str, list[int]], path: str = "action", model: str = "m") -> dict[str, Any]:
    """A payload with one descriptor."""
    rows = [{"name": name, "tokens": tokens} for name, tokens in leaves.items()]
    return {"modelId": model, "descriptors": [{"path": path, "leaves": rows}]}


def vocabulary_files() -> list[Path]:
    """GGUF files of the folder that TOKENTRIE_VOCAB_DIR names."""
    folder = os.environ.get("TOKENTRIE_VOCAB_DIR")
    return sorted(Path(folder).glob("*.gguf")) if folder else []
