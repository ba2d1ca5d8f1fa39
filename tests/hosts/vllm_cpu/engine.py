"""Starts vLLM's engine in one configuration, runs requests from a file, and writes what came of each as JSON.

python engine.py MODEL OPTIONS REQUESTS ANSWERS
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def answers(llm: Any, batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One batch: all together, or, where vLLM refuses it, the reason."""
    from vllm import SamplingParams  # type: ignore[import-not-found, unused-ignore]
    from vllm.exceptions import VLLMValidationError  # type: ignore[import-not-found, unused-ignore]

    params = [SamplingParams(extra_args=one["extra"] or None, **one["params"]) for one in batch]
    try:
        outputs = llm.generate([one["prompt"] for one in batch], params, use_tqdm=False)
    except VLLMValidationError as error:
        return [{"error": str(error)} for _ in batch]
    found = [output.outputs[0] for output in outputs]
    return [{"text": one.text, "ids": list(one.token_ids), "finish": one.finish_reason} for one in found]


def main(model: str, options: str, requests: str, written: str) -> None:
    from vllm import LLM

    llm = LLM(model, **json.loads(options))
    config = llm.llm_engine.vllm_config
    said = {
        "v2": config.use_v2_model_runner,
        "asynchronous": bool(config.scheduler_config.async_scheduling),
        "named": config.model_config.logits_processors,
        "answers": [answers(llm, batch) for batch in json.loads(Path(requests).read_text(encoding="utf-8"))],
    }
    Path(written).write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
