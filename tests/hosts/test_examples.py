"""Examples in the docstrings of integrations run as they stand, where their host is installed."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import shutil
import warnings
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import tokentrie
import tokentrie.integrations

MODULES = [module.name for module in pkgutil.iter_modules(tokentrie.integrations.__path__) if module.name[0] != "_"]
IMPORT = re.compile(r"^ *>>> (?:import|from) (\w+)", re.MULTILINE)


def examples() -> list[tuple[str, str]]:
    """Dotted name and docstring of all classes and functions that the modules define."""
    found = []
    for name in MODULES:
        module = importlib.import_module(f"tokentrie.integrations.{name}")
        for member, value in vars(module).items():
            own = getattr(value, "__module__", None) == module.__name__
            if own and not member.startswith("_") and (inspect.isclass(value) or inspect.isfunction(value)):
                found.append((f"{name}.{member}", inspect.cleandoc(value.__doc__ or "")))
    return found


CASES = [
    pytest.param(*one, id=one[0], marks=[pytest.mark.model] * any(name in one[1] for name in ("Model(", "Chooser(")))
    for one in examples()
]


@pytest.mark.parametrize(("name", "text"), CASES)
def test_example(name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if ">>> " not in text:
        pytest.skip("no example")
    for package in dict.fromkeys(IMPORT.findall(text)):
        pytest.importorskip(package, reason=f"the package {package} is not installed")
    monkeypatch.chdir(tmp_path)
    shutil.copy(str(files("tokentrie") / "models" / "tiny.gguf"), "tiny.gguf")
    test = doctest.DocTestParser().get_doctest(text, {"np": np, "tokentrie": tokentrie}, name, None, None)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    with warnings.catch_warnings(), np.printoptions(precision=8, threshold=1000, linewidth=75):
        # Hosts warn of their own affairs.
        warnings.simplefilter("ignore")
        failed, _ = runner.run(test, out=said.append)
    assert not failed, "".join(said)
