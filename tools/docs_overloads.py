"""An extension of griffe: functions of which a stub has only overloads are shown by the first of them."""

from __future__ import annotations

from typing import Any

import griffe


class Overloads(griffe.Extension):
    """griffe keeps overloads for a body to come, which stubs do not have."""

    def _show(self, *, obj: griffe.Module | griffe.Class, **_: Any) -> None:
        """Makes functions of overloads that have none."""
        for name, overloads in obj.overloads.items():
            if overloads and name not in obj.members:
                obj.set_member(name, overloads[0])

    def on_module_members(self, *, mod: griffe.Module, **_: Any) -> None:
        self._show(obj=mod)

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        self._show(obj=cls)
