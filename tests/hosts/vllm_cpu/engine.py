"""Starts vLLM's engine in one configuration, runs requests from a file, and writes what came of each as JSON.

python engine.py MODEL OPTIONS REQUESTS ANSWERS

A request is its prompt, as text or token ids, what stands in `extra_args`, and its other parameters; those of
`structured_outputs` are vLLM's own constraint. One with `abort_after` is aborted when it has so many tokens. Before one
with `replace`, two paths, the first file takes the place of the second.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def params_of(one: dict[str, Any]) -> Any:
    from vllm import SamplingParams  # type: ignore[import-not-found, unused-ignore]
    from vllm.sampling_params import StructuredOutputsParams  # type: ignore[import-not-found, unused-ignore]

    params = dict(one["params"])
    if "logit_bias" in params:
        # JSON has no other keys than texts.
        params["logit_bias"] = {int(token): bias for token, bias in params["logit_bias"].items()}
    if "structured_outputs" in params:
        params["structured_outputs"] = StructuredOutputsParams(**params["structured_outputs"])
    return SamplingParams(extra_args=one["extra"] or None, **params)


def answers(llm: Any, batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One batch: all together, or, where vLLM refuses it, the reason."""
    from vllm.exceptions import VLLMValidationError  # type: ignore[import-not-found, unused-ignore]

    prompts = [{"prompt_token_ids": one} if isinstance(one, list) else one for one in (ask["prompt"] for ask in batch)]
    for here, there in (one["replace"] for one in batch if "replace" in one):
        os.replace(here, there)
    began = time.perf_counter()
    try:
        params = [params_of(one) for one in batch]
        aborting = any("abort_after" in one for one in batch)
        run = stepped if aborting else llm.generate
        outputs = run(llm, prompts, params, batch) if aborting else run(prompts, params, use_tqdm=False)
    except VLLMValidationError as error:
        return [{"error": str(error)} for _ in batch]
    seconds = time.perf_counter() - began
    return [{**said(output), "seconds": seconds} for output in outputs]


def said(output: Any) -> dict[str, Any]:
    """Of the first sequence, and the texts of all."""
    one = output.outputs[0]
    logprobs = [{token: [given.logprob, given.rank] for token, given in step.items()} for step in one.logprobs or ()]
    return {
        "text": one.text, "ids": list(one.token_ids), "finish": one.finish_reason, "logprobs": logprobs,
        "texts": [each.text for each in output.outputs], "cached": output.num_cached_tokens,
    }  # fmt: skip


def stepped(llm: Any, prompts: list[Any], params: list[Any], batch: list[dict[str, Any]]) -> list[Any]:
    """Runs a batch step by step, and aborts what is to be aborted."""
    engine, last = llm.llm_engine, {}
    for number, (prompt, param) in enumerate(zip(prompts, params, strict=True)):
        engine.add_request(str(number), prompt if isinstance(prompt, dict) else {"prompt": prompt}, param)
    while engine.has_unfinished_requests():
        for output in engine.step():
            last[output.request_id] = output
            most = batch[int(output.request_id)].get("abort_after")
            if most is not None and len(output.outputs[0].token_ids) >= most and not output.finished:
                engine.abort_request([output.request_id])
    return [last[str(number)] for number in range(len(prompts))]


def preemptions(llm: Any) -> float:
    """How often a request was preempted so far; 0 where vLLM does not count."""
    try:
        found = [metric for metric in llm.get_metrics() if metric.name == "vllm:num_preemptions"]
    except AssertionError:
        return 0
    return float(sum(metric.value for metric in found))


def main(model: str, options: str, requests: str, written: str) -> None:
    from vllm import LLM

    llm = LLM(model, **json.loads(options))
    config = llm.llm_engine.vllm_config
    said: dict[str, Any] = {
        "v2": config.use_v2_model_runner,
        "asynchronous": bool(config.scheduler_config.async_scheduling),
        "named": config.model_config.logits_processors,
        "answers": [],
    }
    for batch in json.loads(Path(requests).read_text(encoding="utf-8")):
        said["answers"].append(answers(llm, batch))
        said["preemptions"] = preemptions(llm)
        # What was answered stays where a later batch ends the engine.
        half = Path(written).with_suffix(".part")
        half.write_text(json.dumps(said), encoding="utf-8")
        half.replace(written)


if __name__ == "__main__":
    main(*sys.argv[1:])
