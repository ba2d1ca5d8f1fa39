"""Shared parts of the steps: where things are, how a step ends, how others' tools are run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
OUT = TARGET / "release-check"
"""All that is made; nothing is uploaded."""
VENV = Path(os.environ.get("TOKENTRIE_RELEASE_VENV", OUT / "venv"))
CARGO_TOOLS = {"cargo-deny": ["0.20.2"], "cargo-about": ["0.9.3", "--features=cli"], "cargo-cyclonedx": ["0.5.9"]}
"""The version of each, and how it is built."""

sys.path.insert(0, str(ROOT / "build_backend"))


class Differs(str):
    """The line of a step that found what a reader should know, and that is not a fault."""


class NotHere(str):
    """The line of a step that this machine cannot do, and why."""


class FaultError(Exception):
    """A step that found what must not be published."""


def run(*command: str | Path, cwd: Path = ROOT, **env: str) -> str:
    """Runs a command and returns its output. Raises `FaultError` with the end of what it said where it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr + done.stdout).strip().splitlines()
        raise FaultError("\n".join([f"{' '.join(words[:4])} … ended with {done.returncode}:", *said[-25:]]))
    return done.stdout


def cargo_tool(name: str) -> Path:
    """A program that is installed as a crate: compiled into `target/build-tools` the first time, in minutes."""
    folder, (version, *flags) = TARGET / "build-tools" / "cargo", CARGO_TOOLS[name]
    program = folder / "bin" / name
    if not program.exists():
        print(f"    installing {name} {version}", flush=True)
        # Not by the flags of this folder, which are for the processor at hand.
        run("cargo", "install", "--locked", f"--root={folder}", f"--version={version}", *flags, name, cwd=Path("/"))
    return program


@contextmanager
def copied_tree(folder: Path | None = None) -> Iterator[Path]:
    """The files that git knows or would take, in a folder of their own: files made beside them are not ours."""
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    with tempfile.TemporaryDirectory(dir=folder) as made:
        for name in filter(None, listed):
            if (ROOT / name).is_file():
                (Path(made) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, Path(made) / name, follow_symlinks=False)
        yield Path(made)


def fresh_venv(folder: Path, *packages: str | Path) -> Path:
    """The Python of a new environment with these packages."""
    run(sys.executable, "-m", "venv", "--clear", folder)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", *packages)
    return python


def size(path: Path) -> str:
    """Returns the length of a file, in MB or kB."""
    count = path.stat().st_size
    return f"{count / 1e6:.1f} MB" if count > 1e6 else f"{count / 1e3:.0f} kB"
