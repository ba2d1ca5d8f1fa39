"""The crates as crates.io would get them, and the source distribution."""

from __future__ import annotations

import json
import os
import re
import shutil
import tarfile
import tempfile
from pathlib import Path

from shared import OUT, ROOT, TARGET, Differs, FaultError, fresh_venv, run, size

WITHOUT_LLAMA = ["--no-default-features", "--features=tokentrie/schema,tokentrie/chat,tokentrie/wasm"]
"""With llama.cpp the crates are compiled for the wheels, from the same files."""


def check_crates() -> str:
    """`cargo publish --dry-run`: packed, and compiled one after the other from what was packed."""
    folder = OUT / "crates"
    quick = {"CARGO_PROFILE_DEV_DEBUG": "false", "CARGO_TARGET_DIR": str(folder), "RUSTFLAGS": ""}
    shutil.rmtree(folder / "package", ignore_errors=True)
    run("cargo", "publish", "--dry-run", "--workspace", "--allow-dirty", "--quiet", *WITHOUT_LLAMA, **quick)
    packed = {path.name: path for path in (folder / "package").rglob("*.crate")}  # where is cargo's own business
    listed = json.loads(run("cargo", "metadata", "--format-version=1", "--no-deps"))["packages"]
    public = {package["name"] for package in listed if package["publish"] is None}
    names = {re.sub(r"-[\d.]+\.crate$", "", name) for name in packed}
    if names != public:
        raise FaultError(f"packed are {sorted(names)}, public are {sorted(public)}")
    for package in listed:
        lacks = [field for field in ("description", "license", "readme", "keywords") if not package[field]]
        if package["name"] in public and lacks:
            raise FaultError(f"{package['name']} lacks {lacks}")
    length = sum(path.stat().st_size for path in packed.values()) // 1000
    said = f"{len(packed)} crates, {length} kB, compiled without llama.cpp"
    if not any(package["repository"] for package in listed):
        return Differs(f"{said}; none names a repository: there is no public address yet")
    return said


def check_sdist() -> str:
    """The source distribution is packed, and gives a working package where the repository is not."""
    run(ROOT / ".venv/bin/maturin", "sdist", "--out", OUT / "sdist")
    packed = max((OUT / "sdist").glob("*.tar.gz"), key=os.path.getmtime)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(packed) as archive:
            archive.extractall(folder, filter="data")
        (tree,) = Path(folder).iterdir()
        # With the profile of the tests, for which the libraries are compiled already.
        light = {"CARGO_TARGET_DIR": str(TARGET), "MATURIN_PEP517_ARGS": "--profile checked --no-default-features"}
        wheels = Path(folder) / "wheels"
        pip = [ROOT / ".venv/bin/python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
        run(*pip, "wheel", tree, "--no-deps", "--wheel-dir", wheels, cwd=Path(folder), **light)
        (wheel,) = wheels.iterdir()
        python = fresh_venv(Path(folder) / "venv", wheel)
        run(python, "-c", SMOKE, cwd=Path(folder))
        files = sum(path.is_file() for path in tree.rglob("*"))
    return f"{size(packed)}, {files} files; built without the repository and without llama.cpp, and runs"


SMOKE = """
import numpy as np
import tokentrie
sampler = tokentrie.Sampler(10, '{"descriptors": [{"path": "a", "leaves": [{"name": "GO", "tokens": [5, 6]}]}]}')
assert sampler.advance(np.zeros(10, np.float32)) == [5, 6] and sampler.leaf.name == "GO"
"""
"""Program that a package without llama.cpp must run."""
