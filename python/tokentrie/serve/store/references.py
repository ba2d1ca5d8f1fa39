"""Names inside a spec, and limits that a stranger may not raise."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

import tokentrie
from tokentrie.serve.errors import WireError

#: Fields whose items are specs or have some in them, and fields that are a spec themselves.
PARTS = {"one_of", "then", "sequence", "form"}
INSIDE = {"value", "pattern", "then", "think"}
#: Kinds that stand for what is kept.
NAMES = {"name", "set"}
#: Kinds that are compiled.
COMPILED = {"regex", "grammar", "lark", "gbnf", "wasm", "json_schema"}
#: Limits on making one rule: the defaults of the library.
_USUAL = tokentrie.Limits()
MOST = {"bytes": _USUAL.bytes, "steps": _USUAL.steps, "seconds": _USUAL.seconds}
MOST_BYTES = 33_554_432


def resolve_names(spec: Any, known: Container[str], most_seconds: float | None = None) -> tuple[Any, bool]:
    """Returns the spec with `{"set": NAME}` as `{"name": NAME}` where the name is known, and whether it has any name.

    Args:
        spec: as data.
        known: the names.
        most_seconds: most seconds that making each grammar in it may take.

    Raises WireError where `limits` or `max_bytes` are above what the library allows by itself: nobody may
    take more of a server than that. Whatever else is wrong is for the library to say.
    """
    reader = _Reader(known, most_seconds)
    return reader.read(spec, "$"), reader.has_names


@dataclass
class _Reader:
    known: Container[str]
    most_seconds: float | None
    has_names: bool = False

    def read(self, spec: Any, place: str) -> Any:
        if not isinstance(spec, dict):
            return spec
        found: dict[str, Any] = {}
        for field, value in spec.items():
            at = f"{place}.{field}"
            self.has_names |= field in NAMES
            if field == "set" and isinstance(value, str) and value in self.known:
                found["name"] = value
            elif field in PARTS and isinstance(value, list):
                found[field] = [self.read(part, f"{at}[{index}]") for index, part in enumerate(value)]
            elif field in INSIDE:
                found[field] = self.read(value, at)
            else:
                if field == "limits" and isinstance(value, dict):
                    for name, most in MOST.items():
                        _at_most(value.get(name), most, f"{at}.{name}")
                elif field == "max_bytes":
                    _at_most(value, MOST_BYTES, at)
                found[field] = value
        if self.most_seconds is not None and COMPILED & set(found) and isinstance(found.get("limits") or {}, dict):
            found["limits"] = _sooner(found.get("limits") or {}, self.most_seconds)
        return found


def _sooner(limits: dict[str, Any], most: float) -> dict[str, Any]:
    seconds = limits.get("seconds")
    is_less = isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds < most
    return limits if is_less else {**limits, "seconds": most}


def _at_most(value: Any, most: float, place: str) -> None:
    if isinstance(value, (int, float)) and not value <= most:
        raise WireError(f"{place}: {value} is more than this server gives: at most {most}", param=place)
