"""Importing a host that may be missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(module: str, extra: str) -> Any:
    """The module of a host.

    Raises:
        ImportError: it is not installed; says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        problem = f"this needs the package {package}: pip install 'tokentrie[{extra}]' ({error})"
        raise ImportError(problem, name=error.name, path=error.path) from error
