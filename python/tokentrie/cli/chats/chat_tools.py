"""Tools from a file: definitions in JSON, or functions of a Python file, which is executed for them."""

from __future__ import annotations

import functools
import inspect
import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

import tokentrie
from tokentrie.cli import console
from tokentrie.files import only_files

Told = Callable[[str, str], object]


def definitions(path: Path) -> tokentrie.Tools:
    """Tools from JSON: a list of definitions, or an object with such a list as "tools".

    Raises:
        TokenTrieError: it is not JSON, or no list of tools; with the file.
    """
    return _make_tools(path, read_list(path, "tools", '{"name": ..., "parameters": ...}'))


def read_list(path: Path, name: str, one: str) -> list[Any]:
    """A list from JSON, or from an object that has it under this name; `one` shows what is in it.

    Raises:
        TokenTrieError: it is not JSON, or no such list; with the file.
    """
    content = console.read(path)
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise tokentrie.TokenTrieError(f"{path}: invalid JSON: {error}") from error
    if isinstance(found, dict):
        found = found.get(name)
    if not isinstance(found, list):
        raise tokentrie.TokenTrieError(f'{path}: no list of {name}: [{one}] or {{"{name}": [...]}}')
    return found


def functions(path: Path, told: Told) -> tokentrie.Tools:
    """The functions that a Python file defines, in order: those of `__all__`, or all without a leading underscore.

    Args:
        path: the file, which is executed.
        told: called with name and result of each call that the tools make.
    """
    only_files(path)
    try:
        # Not run as a script: code under `if __name__ == "__main__"` is skipped.
        defined = runpy.run_path(str(path), run_name=(module := "tools"))
    except OSError:
        raise
    except Exception as error:
        raise tokentrie.TokenTrieError(f"{path}: {type(error).__name__}: {error}") from error
    names = defined.get("__all__") or [name for name in defined if not name.startswith("_")]
    found = [defined.get(name) for name in names]
    # Functions that the file imports are not offered.
    own = [one for one in found if inspect.isfunction(one) and one.__module__ == module]
    if not own:
        raise tokentrie.TokenTrieError(f"{path}: it defines no function that could be a tool")
    return _make_tools(path, [_showing_result(function, told) for function in own])


def from_file(path: Path, run: bool, told: Told) -> tokentrie.Tools:
    """Tools of either kind; a Python file only if it may be run."""
    python = path.suffix.lower() == ".py"
    if python and not run:
        problem = f"{path} is Python: its code would be executed, which --run allows"
        raise typer.BadParameter(problem, param_hint="--tools")
    if run and not python:
        raise typer.BadParameter(f"{path} has definitions, no functions: there is nothing to run", param_hint="--run")
    return functions(path, told) if python else definitions(path)


def _make_tools(path: Path, tools: list[Any]) -> tokentrie.Tools:
    try:
        return tokentrie.Tools(tools)
    except (TypeError, tokentrie.TokenTrieError) as error:
        raise tokentrie.TokenTrieError(f"{path}: {error}") from error


def _showing_result(function: Callable[..., Any], told: Told) -> Callable[..., Any]:
    """Returns the function wrapped so that it prints its result."""

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            result = function(*args, **named)
        except Exception as error:
            told(function.__name__, f"error: {type(error).__name__}: {error}")
            raise
        told(function.__name__, result if isinstance(result, str) else repr(result))
        return result

    return call
