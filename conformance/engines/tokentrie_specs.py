"""Constraints of cases as tokentrie's specs, for each of its hosts."""

from __future__ import annotations

from typing import Any

from loop import RefusedError


def spec(kind: str, constraint: dict[str, Any]) -> dict[str, Any]:
    """A constraint of a case as a spec: see docs/specs.md."""
    if kind == "set":
        return {"one_of": constraint["values"]}
    if kind == "regex":
        return {"regex": constraint["pattern"]}
    if kind == "grammar":
        return {"gbnf": constraint["gbnf"]}
    if kind == "schema":
        return {"json_schema": constraint["schema"], "whitespace": "none"}
    if kind == "gate":
        before = {"text": "before", "stop": constraint["trigger"]}
        body = {"slot": "body", "value": {"one_of": [part["text"] for part in constraint["body"]["or"]]}}
        return {"form": [before, body, constraint["end"]]}
    raise RefusedError(f"no constraints of kind {kind}")
