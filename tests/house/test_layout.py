"""Data flows one way: which crate may know which, and what is free of llama.cpp and Python. And: how wide lines are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(not (ROOT / "crates").is_dir(), reason="only a checkout has the crates"),
    pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not on PATH"),
]

LEFT: dict[str, list[str]] = {"trie-core": []}
"""Each crate, in the order of the arrows, and those that it may depend on, in builds and in tests alike."""
LEFT["trie-rules"] = ["trie-core"]
LEFT["trie-schema"] = ["trie-core", "trie-rules"]
LEFT["trie-formats"] = ["trie-core"]
LEFT["trie-text"] = ["trie-core", "trie-rules", "trie-schema", "trie-formats"]
LEFT["chat-template"] = []
LEFT["chat-format"] = ["trie-core", "trie-rules", "trie-schema", "chat-template"]
LEFT["llama-callbacks"] = ["trie-core"]
# Running a model knows nothing of the replies of chats.
LEFT["llama-sampler"] = [*LEFT["trie-text"], "trie-text", "chat-template", "llama-callbacks"]
LEFT["tokentrie"] = [*LEFT["llama-sampler"], "chat-format", "llama-sampler"]
LEFT["tokentrie-c"] = [*LEFT["tokentrie"], "tokentrie"]
# Rules are said as specs, and chats as requests: what makes them is tokentrie's business.
LEFT["tokentrie-py"] = ["trie-core", "trie-formats", "trie-text", "llama-callbacks", "llama-sampler", "tokentrie"]
LEFT["tokentrie-wasm"] = [*LEFT["tokentrie-c"], "tokentrie-c"]
LEFT["tokentrie-benches"] = [*LEFT["tokentrie-c"], "tokentrie-c"]
LEFT["tokentrie-c-header"] = LEFT["test-budget"] = []

FOR_TESTS = {"test-budget"}
"""What every crate may take for its tests."""

LINKED = {"llama-sampler"}
"""The runtime: it always links llama.cpp, and whoever can do without leaves it out."""

HEAVY = {"llama-cpp-2", "llama-cpp-sys-2", "pyo3"}
"""What only the llama.cpp runtime, the bindings and the benches may pull in."""

WIDEST = 120
CODE = ["crates/**/*.rs", "benches/**/*.rs", "fuzz/fuzz_targets/*.rs", "**/*.sh", "build_backend/*", ".ci/run", "dev"]
CODE += ["include/*.h", "examples/**/*.c*", "crates/**/*.[ch]"]
CODE += [
    f"hosts/typescript/{folder}/**/*.{kind}" for folder in ("src", "tests", "bench", "examples") for kind in ("ts", "c")
]
CODE += [f"hosts/typescript/{files}" for files in ("tools/*", "*.js")]
CODE += [f"hosts/web/{files}" for files in ("src/*.ts", "tests/*.ts", "tools/*", "*.js")]
CODE += [f"python/tokentrie/serve/page/**/*.{kind}" for kind in ("html", "css", "js", "svg")]
CODE += [f"{folder}/**/*.{kind}" for folder in ("python", "tests", "benches", "tools") for kind in ("py", "pyi")]


def cargo(*arguments: str) -> str:
    done = subprocess.run(["cargo", *arguments, "--offline"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def metadata() -> dict[str, Any]:
    return json.loads(cargo("metadata", "--format-version", "1", "--no-deps"))


def wrong_arrows(packages: list[dict[str, Any]]) -> list[str]:
    """Dependencies between crates of the workspace that the table does not allow, and crates that it lacks."""
    names = {package["name"] for package in packages}
    wrong = [f"{name}: not in the table" for name in sorted(names - set(LEFT))]
    for package in packages:
        inside = {dependency["name"] for dependency in package["dependencies"]} & names
        allowed = {package["name"], *LEFT.get(package["name"], []), *FOR_TESTS}
        wrong += [f"{package['name']} -> {name}" for name in sorted(inside - allowed)]
    return wrong


def tree(crate: str) -> set[str]:
    """Names of every package in a build of the crate without its default features."""
    listed = cargo("tree", "-p", crate, "--no-default-features", "-e", "normal,build", "--prefix", "none")
    return {line.split()[0] for line in listed.splitlines() if line.strip()}


def features(*which: str) -> set[str]:
    """Each crate that such a build compiles, with its features."""
    shown = cargo("tree", "--prefix", "none", "--format", "{p} [{f}]", "--edges", "normal", *which)
    return {line.removesuffix(" (*)").removesuffix(" (proc-macro)") for line in shown.splitlines() if line}


def test_tests_of_rust_take_what_was_compiled_for_the_module() -> None:
    # One feature that only a test asks for has all that stands on its crate compiled a second time.
    flags = ["--workspace", "--exclude", "tokentrie-benches", "--exclude", "tokentrie-c-header"]
    both = features(*flags, "--features", "tokentrie-c/llama", "--edges", "normal,dev")
    assert features("--package", "tokentrie-py") <= both


def test_the_table_itself_has_one_direction() -> None:
    names = list(LEFT)
    for index, name in enumerate(names):
        assert set(LEFT[name]) <= set(names[:index]), f"{name} may depend on crates to its right"


def test_arrows_point_left() -> None:
    assert not wrong_arrows(metadata()["packages"])


def test_a_wrong_arrow_and_an_unknown_crate_are_noticed() -> None:
    def package(name: str, *needs: str) -> dict[str, Any]:
        return {"name": name, "dependencies": [{"name": need} for need in needs]}

    good = [package("trie-core", "serde"), package("llama-sampler", "trie-core", "llama-cpp-2")]
    assert not wrong_arrows(good)
    bad = [package("trie-core", "llama-sampler"), good[1], package("stray", "trie-core")]
    assert wrong_arrows(bad) == ["stray: not in the table", "trie-core -> llama-sampler", "stray -> trie-core"]


def test_every_crate_is_a_member_of_the_workspace() -> None:
    folders = {path.parent.resolve() for path in ROOT.glob("crates/*/Cargo.toml")}
    members = {Path(package["manifest_path"]).parent.resolve() for package in metadata()["packages"]}
    assert folders
    assert folders <= members


def test_every_third_party_crate_of_the_module_says_what_it_gives() -> None:
    packages = {package["name"]: package for package in metadata()["packages"]}
    ours = {"tokentrie-py", *LEFT["tokentrie"], "tokentrie"}
    needed = (
        {need["name"] for name in ours for need in packages[name]["dependencies"] if need["kind"] is None}
        - packages.keys()
        - {"llguidance"}
    )  # only the benches ask for it
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    told = {
        name
        for row in page.splitlines()
        if row.startswith("| `")
        for name in re.findall("`([^`]+)`", row.split("|")[1])
    }
    assert told == needed


def test_default_members_are_what_can_do_without_llama_cpp() -> None:
    """`./dev test` tests them a second time without default features; a crate left out would go untested."""
    members = metadata()["workspace_default_members"]
    listed = {package["name"] for package in metadata()["packages"] if package["id"] in members}
    assert listed == {package["name"] for package in metadata()["packages"]} & set(LEFT["tokentrie-c"]) - LINKED


@pytest.mark.parametrize("crate", [name for name in [*LEFT["tokentrie-c"], "tokentrie-c"] if name not in LINKED])
def test_no_llama_cpp_and_no_python_in_what_must_do_without(crate: str) -> None:
    packages = {package["name"]: package for package in metadata()["packages"]}
    if crate not in packages:
        pytest.skip(f"there is no crate {crate} yet")
    pulled = tree(crate)
    assert crate in pulled
    assert not pulled & HEAVY


def test_the_core_has_no_files_and_no_json() -> None:
    assert "memmap2" in tree("trie-formats"), "names are those of packages"
    assert not tree("trie-core") & {"crc32fast", "lru", "memmap2", "serde_json", "sha2", "tempfile"}


def test_the_tree_shows_what_is_heavy() -> None:
    assert "pyo3" in tree("tokentrie-py")


def test_no_line_is_too_wide() -> None:
    files = {path for pattern in CODE for path in ROOT.glob(pattern) if path.is_file() and path.suffix != ".pyc"}
    files = {path for path in files if not {"target", ".venv", "node_modules"} & set(path.relative_to(ROOT).parts)}
    assert len(files) > 100, "the patterns find the code"
    wide = []
    for path in sorted(files):
        name, lines = path.relative_to(ROOT), path.read_text(encoding="utf-8").splitlines()
        wide += [f"{name}:{number}" for number, line in enumerate(lines, 1) if len(line) > WIDEST]
    assert not wide, "\n".join(["lines over 120 columns:", *wide])


def test_files_of_tests_that_open_a_model_mark_what_needs_one() -> None:
    """`./dev light` runs what is not marked on a package without llama.cpp."""
    apart = {ROOT / "tests" / name for name in ("real", "hosts", "clients")}
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if not apart & set(path.parents)]
    opens = [path for path in files if re.search(r"\bModel\(", path.read_text())]
    assert len(opens) > 20
    assert [str(path.relative_to(ROOT)) for path in opens if "mark.model" not in path.read_text()] == []
