"""The compiler, which Triton finds by its place. The interpreter asks it nothing."""

from __future__ import annotations

from typing import Any

from triton.backends.compiler import BaseBackend  # type: ignore[import-not-found, unused-ignore]


class Compiler(BaseBackend):  # type: ignore[misc, unused-ignore]
    """It compiles nothing."""

    @staticmethod
    def supports_target(target: Any) -> bool:
        return bool(target.backend == "cpu")

    def hash(self) -> str:
        return "interpreted"

    def parse_options(self, options: Any) -> Any:
        raise NotImplementedError

    def add_stages(self, stages: Any, options: Any) -> None:
        raise NotImplementedError

    def load_dialects(self, context: Any) -> None:
        raise NotImplementedError

    def get_module_map(self) -> dict[str, Any]:
        return {}
