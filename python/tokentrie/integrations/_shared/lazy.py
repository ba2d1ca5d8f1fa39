"""A host's module that is imported when something of it is first asked for."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from tokentrie.integrations._shared.require import require


class Lazy(ModuleType):
    """Stands for a module until its first attribute is asked for; asked once more, an attribute costs nothing."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(module)
        self._extra = extra

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what introspection asks for imports nothing
            raise AttributeError(name)
        found = getattr(require(self.__name__, self._extra), name)
        setattr(self, name, found)
        return found
