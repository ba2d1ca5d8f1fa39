"""The stub says what the module says: editors show it, type checkers believe it."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jedi
import pytest
import tokentrie

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import stubs

# The texts are those of the whole module.
pytestmark = pytest.mark.model

ROOT = Path(__file__).parents[2]
PACKAGE = Path(tokentrie.__file__).parent
STUB = PACKAGE / "_native.pyi"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copy(STUB, tmp_path))


def test_docstrings_are_those_of_the_module() -> None:
    assert stubs.main(["--check"]) == 0


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ("Leaf | None: the value, once complete; of a Sequence the last.", "Leaf | None: the value.", ["Sampler.leaf"]),
        ("Stops constraining until", "Stops until", ["Sampler.deactivate"]),
        (">>> sampler.rollback(1)", ">>> sampler.rollback(2)", ["Sampler.rollback"]),
        ("sampler.deactivate()\n", "sampler.deactivate()\n\n", ["Sampler.deactivate"]),
        ("All token sequences in order as arrays,", "Arrays,", ["Trie.to_numpy"]),
        ("One legal value of a trie", "One value of a trie", ["Leaf"]),
    ],
)
def test_what_differs_is_named_and_written(
    copy: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, names: list[str]
) -> None:
    text = copy.read_text(encoding="utf-8")
    assert before in text
    copy.write_text(text.replace(before, after), encoding="utf-8")
    assert stubs.main(["--check", "--stub", str(copy)]) == 1
    said = capsys.readouterr().err
    assert f"the docstrings of {', '.join(names)} are not those of the built module" in said
    assert "python tools/stubs.py" in said
    assert stubs.main(["--stub", str(copy)]) == 0
    assert copy.read_text(encoding="utf-8") == text


def test_a_stub_without_docstrings_gets_all_of_them(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = ast.parse(before := copy.read_text(encoding="utf-8"))
    for _, node in stubs.documented(tree):
        assert ast.get_docstring(node)
        node.body = node.body[1:] or [ast.Expr(ast.Constant(...))]
    copy.write_text(ast.unparse(tree), encoding="utf-8")
    assert stubs.main(["--check", "--stub", str(copy)]) == 1
    assert re.search(r"of TokenTrieError, .* and \d+ more are not", capsys.readouterr().err)
    assert stubs.main(["--stub", str(copy)]) == 0
    assert ast.dump(ast.parse(copy.read_text(encoding="utf-8"))) == ast.dump(ast.parse(before))


def test_what_the_module_does_not_have_has_no_docstring(copy: Path) -> None:
    """`stubtest` says that it is missing; here it must not look documented."""
    text = copy.read_text(encoding="utf-8")
    copy.write_text(
        text + '\nclass Invented:\n    """An invention."""\n\n    def method(self) -> None: ...\n', encoding="utf-8"
    )
    assert stubs.main(["--check", "--stub", str(copy)]) == 1
    assert stubs.main(["--stub", str(copy)]) == 0
    assert "invention" not in copy.read_text(encoding="utf-8")


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
        ("tokentrie.Model().choose('x', ['y']).logprobs", "float64 [values]"),
        ("tokentrie.Trie.to_numpy", "All token sequences in order as arrays"),
        ("tokentrie.Sampling().replace", "The same value with some settings changed"),
        ("tokentrie.TokenNotAllowedError", "A token that may not come next"),
    ],
)
def test_an_editor_shows_them(expression: str, says: str, tmp_path: Path) -> None:
    """From the sources and the stub alone: editors do not import modules."""
    (tmp_path / "tokentrie").mkdir()
    for file in (PACKAGE / "__init__.py", STUB):
        shutil.copy(file, tmp_path / "tokentrie")
    project = jedi.Project(tmp_path, sys_path=[str(tmp_path)])
    script = jedi.Script(f"import tokentrie\n{expression}", project=project)
    found = script.help(2, len(expression))
    assert len(found) == 1
    assert found[0].module_path == tmp_path / "tokentrie" / "_native.pyi"
    assert says in found[0].docstring()


def test_a_strict_program_passes() -> None:
    """Also that what it ignores is wrong: `--strict` refuses ignores without a cause."""
    command = [sys.executable, "-m", "mypy", "--strict", "tests/typed_program.py"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
