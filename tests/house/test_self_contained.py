"""Parts that could be published alone: they have a README and a licence of their own and take nothing from the rest."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ["conformance", "crates/chat-template", "tools/tiny_model"]
pytestmark = pytest.mark.skipif(not (ROOT / "conformance").is_dir(), reason="only a checkout has these parts")

OTHERS: dict[str, set[str]] = {
    "conformance": {
        "gguf", "hypothesis", "jsonschema", "llama_cpp", "llguidance", "lmformatenforcer", "numpy", "outlines_core",
        "pytest", "tokentrie", "torch", "transformers", "xgrammar",
    },
    "tools/tiny_model": {"gguf", "jinja2", "numpy", "tokenizers", "tokentrie", "torch"},
}  # fmt: skip
"""Packages of Python that a part takes, as anyone installs them: tokentrie is one of them."""

NAMED = [
    re.compile(r"include_(?:str|bytes)!\(\s*\"([^\"]+)\""),
    re.compile(r"#\[path = \"([^\"]+)\"\]"),
    re.compile(r"\bfrom \"(\.[^\"]*)\"|\bimport\(\"(\.[^\"]*)\"\)"),
    re.compile(r"\]\((?!https?:|#|mailto:)([^)\s#]+)[^)]*\)"),
    re.compile(r"^extend = \"([^\"]+)\"", re.MULTILINE),
    re.compile(r"\bpath = \"([^\"]+)\""),
]
"""What names a file beside the one that says it, in Rust, TypeScript, Markdown and TOML."""

ABOVE = re.compile(r"\.parents\[(\d+)\]")


def files(part: Path) -> list[Path]:
    kinds = {".md", ".py", ".rs", ".toml", ".ts", ".txt", ".json", ".jinja"}
    return sorted(path for path in part.rglob("*") if path.suffix in kinds and "results" not in path.parts)


def strangers(part: Path, others: set[str]) -> list[str]:
    """Everything in a part that names what is outside it, with its file."""
    found = []
    own = {path.stem for path in part.rglob("*.py")} | {path.name for path in part.rglob("*") if path.is_dir()}
    for path in files(part):
        name, text = path.relative_to(part).as_posix(), path.read_text("utf-8")
        if path.suffix == ".py":
            modules = set()
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Import):
                    modules |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    modules.add((node.module or "").split(".")[0])
            found += [f"{name}: import {module}" for module in sorted(modules - own - others - sys.stdlib_module_names)]
            depth = len(path.relative_to(part).parts)
            found += [f"{name}: {step.group()}" for step in ABOVE.finditer(text) if int(step.group(1)) >= depth]
        if path.suffix == ".toml" and "workspace" in text:
            found.append(f"{name}: a workspace")
        if path.suffix in (".md", ".rs", ".toml", ".ts"):
            targets = [next(filter(None, match.groups())) for kind in NAMED for match in kind.finditer(text)]
            outside = [target for target in targets if not (path.parent / target).resolve().is_relative_to(part)]
            found += [f"{name}: {target}" for target in outside]
    return found


@pytest.mark.parametrize("part", PARTS)
def test_it_takes_nothing_from_the_rest(part: str) -> None:
    assert strangers((ROOT / part).resolve(), OTHERS.get(part, set())) == []


def test_what_comes_from_the_rest_is_noticed(tmp_path: Path) -> None:
    part = tmp_path / "part"
    (part / "src").mkdir(parents=True)
    texts = {
        "one.py": "import json, numpy, other\nimport two\nROOT = Path(__file__).parents[1]\n",
        "two.py": "ROOT = Path(__file__).parents[0]\nfrom .one import x\nfrom elsewhere.inside import y\n",
        "README.md": "[here](one.py), [there](../docs/there.md#part), [far](https://example.org/a)\n",
        "Cargo.toml": '[dependencies]\nother = { path = "../other" }\nthiserror.workspace = true\n',
        "src/lib.rs": 'const A: &str = include_str!("../one.py");\nconst B: &str = include_str!("../../v.json");\n',
        "src/a.ts": 'import { a } from "./b.js";\nimport { c } from "../../c.js";\n',
    }
    for name, text in texts.items():
        (part / name).write_text(text)
    assert strangers(part.resolve(), {"numpy"}) == [
        "Cargo.toml: a workspace",
        "Cargo.toml: ../other",
        "README.md: ../docs/there.md",
        "one.py: import other",
        "one.py: .parents[1]",
        "src/a.ts: ../../c.js",
        "src/lib.rs: ../../v.json",
        "two.py: import elsewhere",
    ]


@pytest.mark.parametrize("part", PARTS)
def test_it_says_what_it_is_and_who_may_use_it(part: str) -> None:
    text = (ROOT / part / "README.md").read_text("utf-8")
    assert "./dev" not in text, "a command of this repository"
    assert "MIT or Apache-2.0" in text
    assert {path.name for path in (ROOT / part).glob("LICENSE-*")} == {"LICENSE-APACHE", "LICENSE-MIT"}


def test_the_cases_of_the_suite_are_written_elsewhere(tmp_path: Path) -> None:
    """As it is done after it was copied: nothing on the path is of this repository."""
    pytest.importorskip("jsonschema")
    pytest.importorskip("gguf")
    shutil.copytree(ROOT / "conformance", tmp_path / "suite", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "generate.py", str(tmp_path / "cases"), "--vocabularies", "1"]
    done = subprocess.run(command, cwd=tmp_path / "suite", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert any((tmp_path / "cases").glob("*.jsonl"))


def test_the_crate_of_templates_is_a_package_elsewhere(tmp_path: Path) -> None:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not on PATH")
    shutil.copytree(ROOT / "crates" / "chat-template", tmp_path / "crate")
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    done = subprocess.run(command, cwd=tmp_path / "crate", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (package,) = json.loads(done.stdout)["packages"]
    assert all(package[field] for field in ("version", "license", "readme", "description", "keywords"))
    assert all(need["source"] and need["req"] != "*" for need in package["dependencies"]), "by version, from a registry"
