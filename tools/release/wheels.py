"""Wheels: for levels of processors and another architecture, for an old Linux, and the same bytes when built again."""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import papers
from shared import OUT, ROOT, VENV, Differs, FaultError, NotHere, copied_tree, fresh_venv, run, size
from tokentrie_build import rewrite_wheel

from crates import SMOKE

OLDEST = "manylinux2014"
"""The oldest Linux that zig links for: glibc 2.17."""
TRIPLE = "{}-unknown-linux-gnu"
CHOOSES = """
import tokentrie
out = tokentrie.Model().generate("The sky is ", ["blue", "red and white", "red and black"])
assert out.leaf.name in ("blue", "red and white", "red and black")
"""


def built(out: Path, cpu: str, light: bool = False, tree: Path = ROOT, target: Path = OUT / "wheels-target") -> Path:
    """A wheel for a level of x86-64 or for `aarch64`. No path of this machine is in it."""
    machine = "aarch64" if cpu == "aarch64" else "x86_64"
    home = Path.home() / ".cargo"
    flags = [f"--remap-path-prefix={tree}=tokentrie", f"--remap-path-prefix={home}=cargo"]
    for_c = f"-ffile-prefix-map={home}=cargo -ffile-prefix-map={target}=target"
    env = {
        "PATH": f"{VENV / 'bin'}:{run('printenv', 'PATH').strip()}",  # where zig is
        "CARGO_TARGET_DIR": str(target),
        "RUSTFLAGS": " ".join([*flags, *([] if machine == "aarch64" else [f"-Ctarget-cpu={cpu}"])]),
        "CFLAGS": for_c,
        "CXXFLAGS": for_c,
        "SOURCE_DATE_EPOCH": "315532800",  # 1980: what an archive can say
    }
    shutil.rmtree(out, ignore_errors=True)
    # zig names its headers from the folder it runs in where they lie below it, and bindings are made in another one.
    run(
        ROOT / ".venv/bin/maturin", "build", "--release", "--zig", f"--compatibility={OLDEST}", f"--out={out}",
        "--manifest-path=tokentrie-py/Cargo.toml", f"--target={TRIPLE.format(machine)}",
        *(["--no-default-features"] if light else []), cwd=tree / "crates", **env,
    )  # fmt: skip
    (wheel,) = out.glob("*.whl")
    return wheel


def complete(wheel: Path, tree: Path = ROOT) -> None:
    """Adds docstrings, the licences of what is linked, and llama.cpp in the bill of materials."""
    run(ROOT / ".venv/bin/python", ROOT / "build_backend" / "tokentrie_build.py", "--document", wheel)
    with zipfile.ZipFile(wheel) as packed:
        bill = next(name for name in packed.namelist() if name.endswith(".cyclonedx.json"))
        added = {bill: papers.with_llama(packed.read(bill), tree)}
    info = bill.split("/", 1)[0]
    added[f"{info}/licenses/THIRD-PARTY.txt"] = papers.notices("tokentrie-py").encode()
    rewrite_wheel(wheel, added)


def policy(wheel: Path) -> str:
    """The oldest Linux on which a wheel runs, by its symbols."""
    said = " ".join(run(VENV / "bin/auditwheel", "show", wheel).split())
    found = re.search(r'consistent with the following platform tag: "([\w.]+)"', said)
    return found[1] if found else said


@cache
def wheel(cpu: str) -> Path:
    """The wheel of a level of x86-64, as it would be published."""
    made = built(OUT / "wheels" / cpu, cpu)
    complete(made)
    return made


def check_wheel(cpu: str) -> str:
    """Built, completed, its metadata checked, installed into an empty environment, and it chooses."""
    made = wheel(cpu)
    run(VENV / "bin/twine", "check", "--strict", made)
    with tempfile.TemporaryDirectory() as folder:
        python = fresh_venv(Path(folder) / "venv", made)
        run(python, "-c", SMOKE + CHOOSES, cwd=Path(folder))
        run(Path(folder) / "venv/bin/tokentrie", "--version", cwd=Path(folder))
    return f"{size(made)}, {policy(made)}; installed, it chooses"


def check_aarch64() -> str:
    """Cross-builds a wheel with llama.cpp."""
    if TRIPLE.format("aarch64") not in run("rustup", "target", "list", "--installed"):
        return NotHere(f"rustup target add {TRIPLE.format('aarch64')}")
    made = built(OUT / "wheels" / "aarch64", "aarch64")
    return Differs(f"{size(made)}, {policy(made)}; links, not run: there is no such processor here")


def check_same_bytes() -> str:
    """The wheel without llama.cpp, built twice in two folders: which of its files differ."""
    first = built(OUT / "same" / "first", "x86-64-v3", light=True)
    complete(first)
    with copied_tree() as tree:
        # Where the stub stands in the archive; the docstrings of the module come into it later.
        shutil.copyfile(ROOT / "crates/tokentrie-py/_native.pyi", tree / "python/tokentrie/_native.pyi")
        second = built(OUT / "same" / "second", "x86-64-v3", True, tree, tree / "target")
        complete(second, tree)
    if first.read_bytes() == second.read_bytes():
        return f"two builds in two folders: the same {first.stat().st_size:,} bytes"
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as other:
        if set(one.namelist()) != set(other.namelist()):
            raise FaultError(f"two builds have other files: {set(one.namelist()) ^ set(other.namelist())}")
        different = [name for name in one.namelist() if one.read(name) != other.read(name)]
    return Differs(f"two builds in two folders differ in {', '.join(different) or 'the archive alone'}")
