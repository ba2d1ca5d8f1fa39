"""Papers of a package: its version, what changed, whose work is in it, and under which licences."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import tomllib
from shared import OUT, ROOT, Differs, FaultError, cargo_tool, copied_tree, run

ABOUT = ROOT / "tools" / "release" / "about"
PRODUCTS = {"tokentrie-py": [], "tokentrie-c": ["--features=llama"]}
"""The crates of which packages with compiled code are made, and the features that these have."""
CHANGES = re.compile(r"^## (\S+?),? (.+)$", re.MULTILINE)
DATE = re.compile(r"\d{4}-\d\d-\d\d")


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def version() -> str:
    """The version of the workspace, of which all others are copies."""
    return tomllib.loads(read("Cargo.toml"))["workspace"]["package"]["version"]


def versions() -> dict[str, str]:
    """Each place that names the version, and what stands there."""
    workspace, npm = (
        tomllib.loads(read("Cargo.toml"))["workspace"],
        json.loads(read("hosts/typescript/package-lock.json")),
    )
    found = {"Cargo.toml": workspace["package"]["version"]}
    for name, needed in workspace["dependencies"].items():
        if isinstance(needed, dict) and "path" in needed and "version" in needed:
            found[f"Cargo.toml, {name}"] = needed["version"].removeprefix("=")
    found["web/package.json"] = json.loads(read("hosts/web/package.json"))["version"]
    found["package.json"] = json.loads(read("hosts/typescript/package.json"))["version"]
    found["package-lock.json"], found["package-lock.json, packages"] = npm["version"], npm["packages"][""]["version"]
    cmake = re.search(r"project\(tokentrie VERSION (\S+)", read("crates/tokentrie-c/CMakeLists.txt"))
    changes = CHANGES.search(read("CHANGELOG.md"))
    found["CMakeLists.txt"] = cmake[1] if cmake else "none"
    found["CHANGELOG.md"] = changes[1] if changes else "none"
    for package in tomllib.loads(read("Cargo.lock"))["package"]:
        if "source" not in package:
            found[f"Cargo.lock, {package['name']}"] = package["version"]
    return found


def check_versions() -> str:
    """One version everywhere; the Python package takes that of its crate."""
    found = versions()
    others = {place: said for place, said in found.items() if said != version()}
    if others:
        raise FaultError(f"{version()} in Cargo.toml, but {others}")
    return f"{version()} in {len(found)} places"


def check_changelog() -> str:
    """The newest heading is of this version and dated, and has text."""
    text = read("CHANGELOG.md")
    newest, *older = CHANGES.finditer(text)
    body = text[newest.end() : older[0].start() if older else None].strip()
    if len(body.splitlines()) < 3:
        raise FaultError(f"CHANGELOG.md says nothing of {newest[1]}")
    if not DATE.fullmatch(newest[2]):
        return Differs(f"{newest[1]} has no date yet: {newest[2]!r}")
    return f"{newest[1]} of {newest[2]}"


def check_licences() -> str:
    """Licences of all that is linked, by deny.toml; from crates.io alone."""
    run(cargo_tool("cargo-deny"), "--offline", "--locked", "check", "licenses", "bans", "sources")
    packages = run(
        "cargo", "tree", "--offline", "--workspace", "--prefix=none", "--edges=normal,build", "--format={p}",
        "--exclude=tokentrie-benches", "--exclude=tokentrie-c-header", "--exclude=test-budget",
    )  # fmt: skip
    return f"{len({line.removesuffix(' (*)') for line in packages.splitlines()})} packages, all allowed by deny.toml"


@cache
def notices(crate: str) -> str:
    """The licence texts of all that is linked into a package, llama.cpp's too."""
    command = [
        cargo_tool("cargo-about"),
        "generate",
        "--offline",
        "--locked",
        "--fail",
        f"--config={ABOUT / 'about.toml'}",
    ]
    manifest = f"--manifest-path={ROOT / 'crates' / crate / 'Cargo.toml'}"
    return run(*command, manifest, *PRODUCTS[crate], ABOUT / "texts.hbs")


def check_notices() -> str:
    """Texts of licences for the packages that have others' code in them."""
    lengths = []
    for crate in PRODUCTS:
        text = notices(crate)
        for name in ("ggml authors", "serde"):
            if name not in text:
                raise FaultError(f"the licences of {crate} do not name {name}")
        path = OUT / f"THIRD-PARTY-{crate}.txt"
        path.write_text(text, "utf-8")
        lengths.append(f"{crate} {text.count('=' * 80)} texts, {len(text) // 1000} kB")
    return "; ".join(lengths)


def llama_component() -> dict[str, Any]:
    """llama.cpp, whose source is inside a crate, as a part of a bill of materials."""
    listed = json.loads(run("cargo", "metadata", "--offline", "--format-version=1"))["packages"]
    crate = next(package for package in listed if package["name"] == "llama-cpp-sys-2")
    cmake = (Path(crate["manifest_path"]).parent / "llama.cpp" / "ggml" / "CMakeLists.txt").read_text("utf-8")
    ggml = ".".join(re.findall(r"set\(GGML_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)\)", cmake))
    return {
        "type": "library",
        "bom-ref": "llama.cpp",
        "name": "llama.cpp",
        "version": f"ggml {ggml}, as inside llama-cpp-sys-2 {crate['version']}",
        "licenses": [{"license": {"id": "MIT"}}],
        "purl": "pkg:github/ggml-org/llama.cpp",
    }


def settled(bill: bytes | str, tree: Path = ROOT) -> dict[str, Any]:
    """A bill of materials in CycloneDX's JSON without what differs by the day, a number and the folder."""
    text = bill if isinstance(bill, str) else bill.decode()
    read = json.loads(text.replace(str(tree), "/tokentrie"))
    read.pop("serialNumber", None)
    read["metadata"].pop("timestamp", None)
    return read


def with_llama(bill: bytes | str, tree: Path = ROOT) -> bytes:
    """A bill of materials with llama.cpp in it, where the crate that holds its source is."""
    read = settled(bill, tree)
    of_crate = [part["bom-ref"] for part in read["components"] if part["name"] == "llama-cpp-sys-2"]
    if of_crate:
        read["components"].append(llama_component())
    for needs in read["dependencies"]:
        if needs["ref"] in of_crate:
            needs.setdefault("dependsOn", []).append("llama.cpp")
    return json.dumps(read, indent=1).encode()


@cache
def bill_of_c() -> bytes:
    """The bill of materials of the C library; that of the Python module is written by maturin."""
    with copied_tree() as tree:
        run(
            cargo_tool("cargo-cyclonedx"), "cyclonedx", "--format=json", "--features=llama", "--spec-version=1.5",
            "--manifest-path=crates/tokentrie-c/Cargo.toml", "--target=x86_64-unknown-linux-gnu",
            "--override-filename=bill", cwd=tree, SOURCE_DATE_EPOCH="315532800",
        )  # fmt: skip
        return with_llama((tree / "crates" / "tokentrie-c" / "bill.json").read_bytes(), tree)
