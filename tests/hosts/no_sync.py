"""A guard that fails on what makes the host wait for a device."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class NoSync(TorchDispatchMode):
    """Fails on what makes the host wait for values of a device."""

    WAITS = ("_local_scalar_dense", "nonzero", "is_nonzero", "masked_select", "unique", "item", "equal")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        assert name not in self.WAITS, f"{name} waits for the device"
        assert "repeat_interleave.Tensor" not in str(func), "its size is a value"
        if name in ("index", "index_put_", "index_put"):
            assert all(i is None or i.dtype != torch.bool for i in args[1]), "a mask as an index is nonzero"
        return func(*args, **(kwargs or {}))
