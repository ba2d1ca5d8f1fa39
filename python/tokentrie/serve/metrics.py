"""Counters for Prometheus: ours, and the same under the names that dashboards of other servers look for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest

from tokentrie import Generated, Message
from tokentrie.results import CUT, ChatStats, Stats
from tokentrie.serve.models import Models

#: Names of the same counts in vLLM and llama-server.
ALSO = {
    "tokentrie_engine_calls_running": ("vllm:num_requests_running", "llamacpp:requests_processing"),
    "tokentrie_engine_calls_queued": ("vllm:num_requests_waiting", "llamacpp:requests_deferred"),
    "tokentrie_engine_cells_share": ("vllm:kv_cache_usage_perc", "llamacpp:kv_cache_usage_ratio"),
    "tokentrie_engine_passes": ("llamacpp:n_decode",),
    "tokentrie_prompt_tokens": ("vllm:prompt_tokens", "vllm:prefix_cache_queries", "llamacpp:prompt_tokens"),
    "tokentrie_prompt_tokens_reused": ("vllm:prefix_cache_hits",),
    "tokentrie_written_tokens": ("vllm:generation_tokens", "llamacpp:tokens_predicted"),
    "tokentrie_finished": ("vllm:request_success",),
    "tokentrie_first_token_seconds": ("vllm:time_to_first_token_seconds",),
    "tokentrie_token_seconds": ("vllm:inter_token_latency_seconds",),
}
LABELS = {"vllm": {"model": "model_name", "reason": "finished_reason"}}
SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Totals of a server. Each server has a registry of its own."""

    def __init__(self) -> None:
        self._registry = of = CollectorRegistry()
        self.running = Gauge("tokentrie_requests_running", "Requests that are answered now", registry=of)
        self.requests = Counter("tokentrie_requests", "Requests that were answered", ["path", "status"], registry=of)
        self.seconds = Histogram(
            "tokentrie_request_seconds", "From the request to the end of its answer", ["path"], registry=of
        )
        by_model: dict[str, Any] = {"labelnames": ["model"], "registry": of}
        self._read = Counter("tokentrie_prompt_tokens", "Tokens of the prompts of generations and chats", **by_model)
        self._reused = Counter("tokentrie_prompt_tokens_reused", "Those of them that the cache held", **by_model)
        self._written = Counter("tokentrie_written_tokens", "Tokens of generations and chats", **by_model)
        self._finished = Counter(
            "tokentrie_finished", "Generations and chats by how they ended", ["model", "reason"], registry=of
        )
        self._first = Histogram("tokentrie_first_token_seconds", "To the first token, waiting included", **by_model)
        self._between = Histogram(
            "tokentrie_token_seconds", "From a token to the next, on average of a call", buckets=SHORT, **by_model
        )

    def watch(self, models: Models) -> None:
        """Reads the engines of models from now on."""
        self._registry.register(_Engines(models))

    def observe(self, model: str, done: Generated | Message) -> None:
        """Counts a call that ended well."""
        stats: Stats | ChatStats
        if isinstance(done, Generated):
            stats, tokens = done.stats, len(done.tokens)
        elif done.stats is not None:
            stats, tokens = done.stats, done.stats.tokens
        else:
            return
        self._read.labels(model).inc(stats.prompt_tokens)
        self._reused.labels(model).inc(stats.prompt_tokens_reused)
        self._written.labels(model).inc(tokens)
        self._finished.labels(model, finish_reason(done)).inc()
        if tokens:
            self._first.labels(model).observe(stats.prompt_seconds)
        if tokens > 1:
            self._between.labels(model).observe((stats.seconds - stats.prompt_seconds) / (tokens - 1))

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(_AliasedRegistry(self._registry))


def finish_reason(done: Generated | Message) -> str:
    """Returns how a call ended, in the words of answers and metrics: "stop", "length", "tool_calls"."""
    if done.finish in CUT:
        return "length"
    return "tool_calls" if done.finish == "tool_calls" else "stop"


class _Engines:
    """Counts of the engines, as of now."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def collect(self) -> Iterator[Metric]:
        gauges = {
            "calls_running": "Calls that run in the engine",
            "calls_queued": "Calls that wait for a slot",
            "tokens": "Tokens that were decoded",
            "tokens_reused": "Tokens of prompts that were not decoded again",
            "cells": "Cells of the cache that hold something",
            "cells_share": "Their share of all cells",
        }
        found = {name: Metric(f"tokentrie_engine_{name}", about, "gauge") for name, about in gauges.items()}
        found["passes"] = Metric("tokentrie_engine_passes", "Forward passes", "counter")
        for served in self._models.list_models():
            if (stats := served.model.engine) is None:
                continue
            values = {"calls_running": stats.running, "calls_queued": stats.queued, "tokens": stats.tokens}
            values |= {"tokens_reused": stats.tokens_reused, "cells": stats.cells}
            for name, value in (values | {"cells_share": stats.cells / (served.model.n_ctx * stats.slots)}).items():
                found[name].add_sample(f"tokentrie_engine_{name}", {"model": served.name}, value)
            found["passes"].add_sample("tokentrie_engine_passes_total", {"model": served.name}, stats.passes)
        yield from found.values()


class _AliasedRegistry:
    """A registry that also reports some metrics under other names."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            yield metric
            for name in ALSO.get(metric.name, ()):
                labels = LABELS.get(name.partition(":")[0], {})
                other = Metric(name, metric.documentation, metric.type)
                for sample in metric.samples:
                    told = {labels.get(label, label): value for label, value in sample.labels.items()}
                    other.add_sample(sample.name.replace(metric.name, name, 1), told, sample.value)
                yield other
