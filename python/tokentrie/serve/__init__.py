"""A server that speaks the wire formats of decisions: `tokentrie serve`. Needs `pip install tokentrie[serve]`.

| file | what it holds |
| --- | --- |
| `app.py` | the routes, and what becomes of errors |
| `guards.py` | what is looked at before a route: keys, sizes, encodings, request ids |
| `front.py`, `page/` | the page at `/`: its headers, and its files |
| `models.py` | the models that answer, and calls of them that end with their client |
| `wire/` | a file for each format: what a request may say, and the form of its answer |
| `store/` | constraints that are put under a name |
| `errors.py` | errors in the envelope of the format that was called |
| `metrics.py` | counters for Prometheus |
"""

from __future__ import annotations

from tokentrie.serve.app import Settings, create_app

__all__ = ["Settings", "create_app"]
