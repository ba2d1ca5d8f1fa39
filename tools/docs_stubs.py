"""An extension of griffe that reads our stubs as they are meant."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Stubs(griffe.Extension):
    """Functions of which there are only overloads, classes that `__new__` makes, and examples."""

    def _complete(self, found: griffe.Module | griffe.Class) -> None:
        # griffe keeps overloads for a body to come, which stubs do not have: the first one stands for all.
        for name, overloads in found.overloads.items():
            if overloads and name not in found.members:
                found.set_member(name, overloads[0])

    def on_module_members(self, *, mod: griffe.Module, **_: Any) -> None:
        self._complete(mod)

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        self._complete(cls)
        if "__new__" in cls.members and "__init__" not in cls.members:
            cls.set_member("__init__", cls.members["__new__"])

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        # By this name it is code.
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
