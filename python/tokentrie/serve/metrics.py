"""Counters for Prometheus, under the names that dashboards of other servers look for."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tokentrie.serve.models import Models


class Metrics:
    """What the server has done. Each server has a registry of its own."""

    def __init__(self) -> None:
        self._registry = of = CollectorRegistry()
        self.running = Gauge("tokentrie_requests_running", "Requests that are answered now", registry=of)
        self.requests = Counter("tokentrie_requests", "Requests that were answered", ["path", "status"], registry=of)
        self.seconds = Histogram(
            "tokentrie_request_seconds", "From the request to the end of its answer", ["path"], registry=of
        )
        self._engine = {
            name: Gauge(f"tokentrie_engine_{name}", about, ["model"], registry=of)
            for name, about in {
                "calls_running": "Calls that run in the engine",
                "calls_queued": "Calls that wait for a slot",
                "passes": "Forward passes",
                "tokens": "Tokens that were decoded",
                "tokens_reused": "Tokens of prompts that were not decoded again",
                "cells": "Cells of the cache that hold something",
            }.items()
        }

    def text(self, models: Models) -> bytes:
        """All of it, as Prometheus reads it."""
        for served in models.all():
            if (stats := served.model.engine) is None:
                continue
            values = {"calls_running": stats.running, "calls_queued": stats.queued, "passes": stats.passes}
            values |= {"tokens": stats.tokens, "tokens_reused": stats.tokens_reused, "cells": stats.cells}
            for name, value in values.items():
                self._engine[name].labels(served.name).set(value)
        return generate_latest(self._registry)
