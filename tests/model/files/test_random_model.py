"""The tool that writes models with random weights around a vocabulary."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from models import TINY, VOCABULARIES, precise_model
from random_model import RandomModelError, write_random_model
from tokentrie import Model, Vocab

TOOL = Path(__file__).parents[3] / "tools" / "random_model.py"
SMALL = {"width": 32, "layers": 1}


def written(path: Path, **options: Any) -> Path:
    write_random_model(TINY, path, **{**SMALL, **options})
    return path


def weights(path: Path) -> dict[str, np.ndarray]:
    return {tensor.name: tensor.data for tensor in gguf.GGUFReader(path).tensors}


@pytest.mark.model
@pytest.mark.parametrize("name", VOCABULARIES)
def test_it_loads_with_the_vocabulary_it_was_given(name: str) -> None:
    model = precise_model(name)
    assert model.vocab.fingerprint == Vocab.from_gguf(VOCABULARIES[name]).fingerprint
    row = model.logits("Hello, world!")
    assert row.shape == (len(model.vocab),)
    assert np.isfinite(row).all()
    assert row.std() > 0.1, "a model that prefers something"
    assert (row != model.logits("Hello, moon!")).any()


@pytest.mark.model
def test_half_precision_is_the_default(tmp_path: Path) -> None:
    half, single = weights(written(tmp_path / "half")), weights(written(tmp_path / "single", f32=True))
    assert list(half) == list(single)
    for name, values in single.items():
        assert values.dtype == np.float32
        assert half[name].dtype == (np.float32 if "norm" in name else np.float16)
        np.testing.assert_allclose(half[name], values, rtol=2**-10, atol=2**-24)
    one, other = (Model(tmp_path / name, n_threads=1).logits("Hello") for name in ("half", "single"))
    np.testing.assert_allclose(one, other, atol=0.1)


@pytest.mark.parametrize("f32", [False, True])
def test_the_same_arguments_give_the_same_file(tmp_path: Path, f32: bool) -> None:
    first = written(tmp_path / "first", f32=f32).read_bytes()
    assert written(tmp_path / "again", f32=f32).read_bytes() == first
    assert written(tmp_path / "other", f32=f32, seed=1).read_bytes() != first


BAD = {
    "width": ({"width": 0}, "width must be a positive multiple of 32, not 0"),
    "width between": ({"width": 33}, "not 33"),
    "width negative": ({"width": -32}, "not -32"),
    "layers": ({"layers": 0}, "layers and context must be 1 or more, seed 0 or more: 0, 4096, 0"),
    "context": ({"context": 0}, ": 1, 0, 0"),
    "seed": ({"seed": -1}, ": 1, 4096, -1"),
    "no such file": ({"vocabulary": "nowhere.gguf"}, "cannot read nowhere.gguf: No such file"),
    "no file": ({"vocabulary": TINY.parent}, "cannot read .*models: "),
    "no GGUF": ({"vocabulary": TOOL}, "random_model.py is not a readable GGUF file: it starts with"),
    "no folder": ({"output": "no/where/model.gguf"}, "no such folder: no/where"),
}


@pytest.mark.parametrize(("wrong", "says"), BAD.values(), ids=BAD)
def test_bad_arguments(wrong: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RandomModelError, match=says):
        write_random_model(**{"vocabulary": TINY, "output": "model.gguf", **SMALL, **wrong})
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize("length", [0, 10, 1000, 20_000])
def test_a_file_that_is_cut_off(length: int, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(TINY.read_bytes()[:length])
    with pytest.raises(RandomModelError, match=r"cut\.gguf"):
        write_random_model(cut, tmp_path / "model.gguf", **SMALL)
    assert list(tmp_path.iterdir()) == [cut]


def test_a_file_without_a_vocabulary(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "empty.gguf", "llama")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(RandomModelError, match=r"empty\.gguf has no vocabulary"):
        write_random_model(tmp_path / "empty.gguf", tmp_path / "model.gguf")


def test_on_the_command_line(tmp_path: Path) -> None:
    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, TOOL, TINY, tmp_path / "model.gguf", "--layers", "1", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = run("--width", "32", "--f32")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "model.gguf").read_bytes() == written(tmp_path / "same", f32=True).read_bytes()
    bad = run("--width", "31")
    assert (bad.returncode, bad.stderr) == (1, "random_model: width must be a positive multiple of 32, not 31\n")
