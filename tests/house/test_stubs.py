"""The stub says what the module says: editors show it, type checkers believe it."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import jedi
import pytest
import tokentrie

sys.path.insert(0, str(Path(__file__).parents[2] / "build_backend"))

import stubs

# The texts are those of the whole module.
pytestmark = pytest.mark.model

ROOT = Path(__file__).parents[2]
PACKAGE = Path(tokentrie.__file__).parent
STUB = PACKAGE / "_native.pyi"


def test_docstrings_are_those_of_the_module() -> None:
    found = dict(stubs.documented(ast.parse(STUB.read_text(encoding="utf-8"))))
    assert len(found) > 250
    assert {name: ast.get_docstring(node) or "" for name, node in found.items()} == {
        name: stubs.wanted(tokentrie._native, name) for name in found
    }


def test_nothing_but_docstrings_is_put_in() -> None:
    if not stubs.SIGNATURES.is_file():
        pytest.skip("these tests stand alone, without the sources")
    signatures = ast.parse(stubs.SIGNATURES.read_text(encoding="utf-8"))
    assert [name for name, node in stubs.documented(signatures) if ast.get_docstring(node)] == []
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    for _, node in stubs.documented(tree):
        node.body = node.body[bool(ast.get_docstring(node)) :] or [ast.Expr(ast.Constant(...))]
    assert ast.dump(tree) == ast.dump(signatures)


def test_what_the_module_does_not_have_has_no_docstring() -> None:
    """`stubtest` says that it is missing; here it must not look documented."""
    source = "class Leaf:\n    @property\n    def index(self) -> int: ...\n    def invented(self) -> None: ...\n"
    made = stubs.documented_stub(source + "class Invented: ...\n", tokentrie._native)
    found = {name: ast.get_docstring(node) for name, node in stubs.documented(ast.parse(made))}
    assert [name for name, text in found.items() if text] == ["Leaf", "Leaf.index"]


def test_functions_that_return_something_say_what() -> None:
    said = {}
    for name, node in stubs.documented(ast.parse(STUB.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and not any("property" in ast.dump(d) for d in node.decorator_list):
            assert node.returns is not None
            nothing = isinstance(node.returns, ast.Constant) and node.returns.value is None
            said[name] = ("\nReturns:\n" in (ast.get_docstring(node) or "")) is not nothing
    assert len(said) > 60
    assert [name for name, right in said.items() if not right] == []


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("tokentrie.Sampler", "chooses the next token from a row of logits"),
        ("tokentrie.Model.choose", "The exact probability of every value after a prompt"),
        ("tokentrie.Model().choose('x', ['y']).names", "list[str] | None"),
        ("tokentrie.Trie.to_numpy", "All token sequences in order as arrays"),
        ("tokentrie.Sampling().replace", "The same value with some settings changed"),
        ("tokentrie.TokenNotAllowedError", "A token that may not come next"),
    ],
)
def test_an_editor_shows_them(expression: str, says: str, tmp_path: Path) -> None:
    """From the sources and the stub alone: editors do not import modules."""
    (tmp_path / "tokentrie").mkdir()
    for file in (*PACKAGE.glob("*.py"), STUB):
        shutil.copy(file, tmp_path / "tokentrie")
    project = jedi.Project(tmp_path, sys_path=[str(tmp_path)])
    script = jedi.Script(f"import tokentrie\n{expression}", project=project)
    found = script.help(2, len(expression))
    assert len(found) == 1
    assert found[0].module_path is not None
    assert found[0].module_path.parent == tmp_path / "tokentrie"
    assert says in found[0].docstring()


def test_a_strict_program_passes() -> None:
    """Also that what it ignores is wrong: `--strict` refuses ignores without a cause."""
    command = [sys.executable, "-m", "mypy", "--strict", "tests/typed_program.py"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
