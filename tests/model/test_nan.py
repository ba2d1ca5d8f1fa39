"""A model whose weights are damaged: it computes NaN, and every call says so."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import tokentrie

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def damaged(tiny_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    gguf = pytest.importorskip("gguf")
    path = tmp_path_factory.mktemp("nan") / "nan.gguf"
    shutil.copy(tiny_path, path)
    reader = gguf.GGUFReader(path, "r+")
    norm = next(tensor for tensor in reader.tensors if tensor.name == "output_norm.weight")
    norm.data[:] = np.nan
    norm.data.flush()
    return path


@pytest.mark.parametrize("slots", [1, 2])
def test_a_model_that_computes_no_numbers(damaged: Path, slots: int) -> None:
    model = tokentrie.Model(damaged, n_threads=1, slots=slots)
    said = r"the model fails: the row of logits after .* says nothing: all of its \d+ entries are NaN"
    for call in (
        lambda: model.choose("Is it?", ["yes", "no"]),
        lambda: model.choose("Is it?", ["yes", "no"], top=1),
        lambda: next(iter(model.choose_many(["Is it?", "Is it not?"], ["yes", "no"]))),
        lambda: model.generate("Is it?", max_tokens=3),
        lambda: model.generate("Is it?", ["yes", "no"]),
        lambda: model.generate("Is it?", ["yes", "no"], sampling=tokentrie.Sampling(mode="sampled", seed=1)),
        lambda: model.generate("Is it?", tokentrie.Regex("[a-z]+"), max_tokens=3),
    ):
        with pytest.raises(tokentrie.ModelError, match=said):
            call()
    # What needs no row is still said.
    assert model.generate("Is it?", ["yes"]).text.strip() == "yes"
