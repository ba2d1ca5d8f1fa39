"""A plugin of vLLM that leaves asynchronous scheduling on: vLLM turns it off on CPUs, as not needed there."""

from __future__ import annotations

import os
from typing import Any


def keep() -> None:
    if "TOKENTRIE_KEEP_ASYNC" not in os.environ:
        return
    from vllm.platforms.cpu import CpuPlatform  # type: ignore[import-not-found, unused-ignore]

    check = CpuPlatform.check_and_update_config

    def checked(config: Any) -> None:
        wanted = config.scheduler_config.async_scheduling
        check(config)
        config.scheduler_config.async_scheduling = wanted

    CpuPlatform.check_and_update_config = staticmethod(checked)
