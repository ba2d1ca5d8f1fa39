"""What a build from source asks for: with llama.cpp, and without."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import zipfile
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BACKEND = Path(__file__).parents[2] / "build_backend" / "tokentrie_build.py"
LIGHT = {"build-args": "--no-default-features"}


def add_tool(folder: Path, name: str) -> None:
    tool = folder / "bin" / name
    tool.write_text("#!/bin/sh\necho include\n")
    tool.chmod(0o755)


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The build backend on a machine with a C compiler and cargo and nothing else: no tool as an installed wheel."""
    (tmp_path / "bin").mkdir()
    for name in ("cc", "cargo"):
        add_tool(tmp_path, name)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path / "target"))
    for name in ("CC", "CXX", "CMAKE", "CMAKE_GENERATOR", "MATURIN_PEP517_ARGS"):
        monkeypatch.delenv(name, raising=False)
    spec = importlib.util.spec_from_file_location("tokentrie_build", BACKEND)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def nothing_installed(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", nothing_installed)
    return module


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (None, True),
        ({}, True),
        ({"build-args": "--strip"}, True),
        (LIGHT, False),
        ({"maturin.build-args": ["--no-default-features", "--strip"]}, False),
        ({"build-args": "--no-default-features --features cuda"}, True),
        ({"build-args": "--no-default-features -Fllama"}, True),
    ],
)
def test_settings_tell_whether_llama_cpp_is_compiled(
    backend: ModuleType, settings: dict[str, Any] | None, expected: bool
) -> None:
    assert backend.has_llama(settings) is expected


def test_settings_of_the_environment_count(backend: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATURIN_PEP517_ARGS", "--no-default-features")
    assert not backend.has_llama()
    assert backend.has_llama({"build-args": ""})


def test_without_llama_cpp_a_c_compiler_and_cargo_are_enough(backend: ModuleType) -> None:
    assert backend.get_requires_for_build_wheel(LIGHT) == []
    assert list(backend.environment(llama=False)) == ["PATH"]


def test_with_llama_cpp_the_missing_tools_are_named(backend: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no working `c\+\+`"):
        backend.get_requires_for_build_wheel({})
    add_tool(tmp_path, "c++")
    assert {"cmake", "ninja"} <= set(backend.get_requires_for_build_wheel({}))


def test_a_wheel_is_rewritten_with_its_record(backend: ModuleType, tmp_path: Path) -> None:
    wheel, record = tmp_path / "some.whl", "some-1.dist-info/RECORD"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("some/one.py", "1")
        packed.writestr(record, f"some/one.py,sha256=stale,9\n{record},,\n")
    backend.rewrite_wheel(wheel, {"some/one.py": b"22", "some-1.dist-info/licenses/TEXT": b"text"})
    with zipfile.ZipFile(wheel) as packed:
        assert packed.namelist() == ["some/one.py", "some-1.dist-info/licenses/TEXT", record]
        assert packed.read("some/one.py") == b"22"
        lines = [line.split(",") for line in packed.read(record).decode().splitlines()]
    assert [(name, size) for name, _, size in lines] == [
        ("some/one.py", "2"),
        ("some-1.dist-info/licenses/TEXT", "4"),
        (record, ""),
    ]
    digest = base64.urlsafe_b64decode(lines[0][1].removeprefix("sha256=") + "=")
    assert digest == hashlib.sha256(b"22").digest()
