"""Names inside a spec, and limits that a stranger may not raise."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import tokentrie
from tokentrie.serve.errors import WireError

#: Fields whose items are specs or have some in them, and fields that are a spec themselves.
PARTS = {"one_of", "then", "sequence", "form"}
INSIDE = {"value", "pattern", "then", "think"}
#: What making one rule may cost here: the defaults of the library.
_USUAL = tokentrie.Limits()
MOST = {"bytes": _USUAL.bytes, "steps": _USUAL.steps, "seconds": _USUAL.seconds}
MOST_BYTES = 33_554_432


def prepared(spec: Any, known: Container[str], place: str = "$") -> Any:
    """The same spec with `{"set": NAME}` as `{"name": NAME}` where the name is known.

    Raises WireError where `limits` or `max_bytes` are above what the library allows by itself: nobody may
    take more of a server than that. Whatever else is wrong is for the library to say.
    """
    if not isinstance(spec, dict):
        return spec
    found: dict[str, Any] = {}
    for field, value in spec.items():
        at = f"{place}.{field}"
        if field == "set" and isinstance(value, str) and value in known:
            found["name"] = value
        elif field in PARTS and isinstance(value, list):
            found[field] = [prepared(part, known, f"{at}[{index}]") for index, part in enumerate(value)]
        elif field in INSIDE:
            found[field] = prepared(value, known, at)
        else:
            if field == "limits" and isinstance(value, dict):
                for name, most in MOST.items():
                    _at_most(value.get(name), most, f"{at}.{name}")
            elif field == "max_bytes":
                _at_most(value, MOST_BYTES, at)
            found[field] = value
    return found


def _at_most(value: Any, most: float, place: str) -> None:
    if isinstance(value, (int, float)) and not value <= most:
        raise WireError(f"{place}: {value} is more than this server gives: at most {most}", param=place)
