"""The driver, which Triton finds by its place."""

from __future__ import annotations

from typing import Any

import torch
from triton.backends.compiler import GPUTarget  # type: ignore[import-not-found, unused-ignore]
from triton.backends.driver import DriverBase  # type: ignore[import-not-found, unused-ignore]


class Driver(DriverBase):  # type: ignore[misc, unused-ignore]
    """A CPU."""

    @classmethod
    def is_active(cls) -> bool:
        return False

    def map_python_to_cpp_type(self, ty: str) -> str:
        raise NotImplementedError

    def get_current_target(self) -> Any:
        return GPUTarget("cpu", 0, 1)

    def get_current_device(self) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        return torch.device("cpu")

    def get_benchmarker(self) -> Any:
        raise NotImplementedError
