"""Every public class, method, property and function says what it does, and its examples run as they stand."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tokentrie
from support import public_names

# The texts are those of the whole module.
pytestmark = pytest.mark.model

LIBRARIES = ["tokenizers", "tiktoken", "pandas", "pyarrow"]
"""Python packages that examples may import, and that a user need not have."""


def public() -> Iterator[tuple[str, object]]:
    """Dotted name and object of all that is public: of a class also what it defines itself."""
    for name, found in public_names().items():
        if not inspect.isclass(found):
            if callable(found):
                yield name, found
            continue
        yield name, found
        fields = getattr(found, "__dataclass_fields__", {})
        # Of a native base, too.
        defined = {name: value for base in reversed(ours(found)) for name, value in vars(base).items()}
        for member, value in sorted(defined.items()):  # pyo3 has no order
            # The class explains its fields, and what is None until it is set.
            if not member.startswith("_") and value is not None and member not in fields:
                yield f"{name}.{member}", inspect.getattr_static(found, member)


def ours(found: type) -> list[type]:
    """The class and those of its bases that are tokentrie's."""
    return [base for base in found.__mro__ if base.__module__.startswith("tokentrie")]


PUBLIC = dict(public())
CALLED = {name: found for name, found in PUBLIC.items() if not inspect.isdatadescriptor(found)}
"""All but properties, whose class has the example."""


def documentation(found: object) -> str:
    """The docstring, without what is inherited."""
    found = getattr(found, "__func__", found)
    return inspect.cleandoc(getattr(found, "__doc__", None) or "")


def test_all_are_found() -> None:
    assert {"Sampler", "Sampler.apply", "Sampler.state", "Trie.from_numpy", "Trie.open", "errors.OptionError"} <= set(
        PUBLIC
    )
    assert len(PUBLIC) > 150
    assert "Sampler.state" not in CALLED
    assert {"Trie.open", "Trie.from_numpy", "Model.choose", "results.Stats", "errors.TrieError"} <= set(CALLED)


@pytest.mark.parametrize("name", PUBLIC)
def test_says_what_it_is(name: str) -> None:
    summary, _, rest = documentation(PUBLIC[name]).partition("\n")
    assert len(summary) > 10
    if name in CALLED:
        assert summary.endswith((".", "?")), "the first line is a sentence"
        assert not rest or rest.startswith("\n"), "an empty line follows the summary"
    else:
        kind, colon, meaning = summary.partition(": ")
        assert colon, "a property says its type first"
        assert kind.replace(" ", "").replace("|", "").replace("[", "").replace("]", "").replace(",", "")
        assert meaning


@pytest.mark.parametrize("name", [name for name, found in CALLED.items() if not inspect.isclass(found)])
def test_arguments_are_explained(name: str) -> None:
    """By their names, in a section that leaves none out and makes none up."""
    text, found = documentation(CALLED[name]), getattr(CALLED[name], "__func__", CALLED[name])
    wanted = [parameter for parameter in inspect.signature(found).parameters if parameter not in ("self", "cls")]
    assert explained(text) == wanted


@pytest.mark.parametrize("name", [name for name, found in CALLED.items() if inspect.isclass(found)])
def test_arguments_of_classes_are_explained(name: str) -> None:
    found = CALLED[name]
    assert inspect.isclass(found)
    if issubclass(found, Exception):
        return
    text = documentation(found)
    # A dataclass says what it takes, or, if calls make it, what it has: its attributes.
    made = "__new__" in vars(found) or "\nArgs:\n" in text
    wanted = list(inspect.signature(found).parameters) if made else []
    assert explained(text) == wanted


def explained(text: str) -> list[str]:
    """Names in the section of arguments, in their order."""
    names: list[str] = []
    inside = False
    for line in text.splitlines():
        if line == "Args:":
            inside = True
        elif inside and not line.startswith("    "):
            break
        elif inside and not line.startswith("     "):
            names += line.strip().partition(":")[0].split(", ")
    return names


@pytest.mark.parametrize("name", CALLED)
def test_example(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_path: Path) -> None:
    text = documentation(CALLED[name])
    assert "\nExample:\n    >>> " in text, "there is no example"
    for library in LIBRARIES:
        if f"import {library}" in text or f"from {library}" in text:
            pytest.importorskip(library, reason=f"the package {library} is not installed")
    monkeypatch.chdir(tmp_path)
    names = {"np": np, "tokentrie": tokentrie}
    example = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    assert 1 <= len(example.examples) <= 8, "short examples are read"
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    with np.printoptions(precision=8, suppress=False, threshold=1000, linewidth=75, legacy=False):
        failed, _ = runner.run(example, out=said.append)
    assert not failed, "".join(said)
