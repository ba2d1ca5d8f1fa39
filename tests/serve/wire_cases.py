"""Cases of the wire as data: requests, and what must hold of the answers: `tests/vectors/serve.json`."""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import zstandard

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "serve.json").read_text("utf-8"))["cases"]
TYPES = {
    "string": str, "integer": int, "boolean": bool, "array": list, "object": dict, "null": type(None),
    "number": (int, float),
}  # fmt: skip


def steps(case: dict[str, Any]) -> list[dict[str, Any]]:
    """The requests of a case, each with what is expected."""
    return case.get("steps") or [case]


def filled(value: Any, known: dict[str, Any]) -> Any:
    """A body with its abbreviations written out."""
    if isinstance(value, str):
        if value == "$model":
            return "tiny"
        return known[value[7:]] if value.startswith("$saved.") else value
    if isinstance(value, list):
        return [filled(one, known) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, argument),) = value.items()
        if name == "$repeat":
            return argument[0] * argument[1]
        if name == "$names":
            return [f"{argument[0]}{number}" for number in range(argument[1])]
        if name == "$options":
            return [{"value": f"{argument[0]}{number}"} for number in range(argument[1])]
        if name == "$map":
            return {f"{argument[0]}{number}": None for number in range(argument[1])}
    return {name: filled(one, known) for name, one in value.items()}


def body_of(request: dict[str, Any], known: dict[str, Any]) -> tuple[bytes | None, dict[str, str]]:
    """The bytes that are sent, and their headers."""
    if "base64" in request:
        body: bytes | None = base64.b64decode(request["base64"])
    elif "raw" in request:
        body = filled(request["raw"], known).encode()
    elif "body" in request:
        body = json.dumps(filled(request["body"], known)).encode()
    else:
        return None, {}
    headers = {"content-type": "application/json"}
    packers = {"gzip": gzip.compress, "zstd": zstandard.compress}
    if (encoding := request.get("encoding")) is not None:
        body, headers["content-encoding"] = packers[encoding](body), encoding
    return body, headers


def found(value: Any, path: str) -> list[Any]:
    """The values at a path: names, indices and stars after `$`."""
    parts = re.findall(r"\.\*|\[\*\]|\.([A-Za-z_][\w-]*)|\[(-?\d+)\]|\['([^']*)'\]", path)
    raw = re.findall(r"\.\*|\[\*\]|\.[A-Za-z_][\w-]*|\[-?\d+\]|\['[^']*'\]", path)
    assert path == "$" + "".join(raw), path
    here = [value]
    for text, (name, index, quoted) in zip(raw, parts, strict=True):
        following: list[Any] = []
        for one in here:
            if text in (".*", "[*]"):
                following += one.values() if isinstance(one, dict) else one if isinstance(one, list) else []
            elif index:
                if isinstance(one, list) and -len(one) <= int(index) < len(one):
                    following.append(one[int(index)])
            elif isinstance(one, dict) and (name or quoted) in one:
                following.append(one[name or quoted])
        here = following
    return here


def distribution(value: Any) -> list[tuple[Any, float]]:
    """Options with their shares."""
    if isinstance(value, dict):
        return [*value.items()]
    return [(one["value"], one["probability"]) for one in value]


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same type: true is not 1."""
    return type(one) is type(other) and bool(one == other)


def confidence(answer: dict[str, Any]) -> float:
    """The formula of the wire formats."""
    shares = [share for _, share in distribution(answer["probabilities"])]
    n, best = len(shares), max(shares)
    if n == 1:
        return 1.0
    if answer["type"] == "choice":
        return (n * best - 1) / (n - 1)
    likely = shares.index(best)
    spread = sum(abs(level - (n - 1) / 2) for level in range(n)) / n
    return max(0.0, 1 - sum(share * abs(level - likely) for level, share in enumerate(shares)) / spread)


def holds(value: Any, operation: str, arguments: list[Any], known: dict[str, Any]) -> bool:
    """Whether an assertion holds of one value."""
    first = filled(arguments[0], known) if arguments else None
    match operation:
        case "eq":
            return value == first and isinstance(value, bool) == isinstance(first, bool)
        case "ne":
            return bool(value != first)
        case "in":
            return value in first
        case "type":
            return any(
                isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
                for kind in first.split("|")
            )
        case "range":
            return arguments[0] <= value <= arguments[1]
        case "close":
            return abs(value - first) <= arguments[1]
        case "len":
            return len(value) == first
        case "minlen":
            return len(value) >= first
        case "maxlen":
            return len(value) <= first
        case "keys":
            return [*value] == first
        case "keyset":
            return {*value} == {*first}
        case "match":
            return re.fullmatch(first, value, re.DOTALL) is not None
        case "search":
            return re.search(first, value) is not None
        case "nosearch":
            return re.search(first, value) is None
        case "descending":
            return value == sorted(value, reverse=True)
        case "sum":
            return abs(math.fsum(share for _, share in distribution(value)) - first) <= arguments[1]
        case "values":
            given = [option for option, _ in distribution(value)]
            return len(given) == len(first) and all(map(same, given, first))
        case "argmax":
            shares = distribution(value[arguments[1]])
            return same(value[first], max(shares, key=lambda pair: pair[1])[0])
        case "confidence":
            return abs(value["confidence"] - confidence(value)) < 1e-6
        case "expectation":
            levels = [share for _, share in distribution(value["probabilities"])]
            return abs(value["score"] - sum(level * share for level, share in enumerate(levels))) < 1e-6
        case "json":
            inside = json.loads(value)
            return not [*wrong(inside, first, known)]
        case "schema":
            inside = json.loads(value) if isinstance(value, str) else value
            jsonschema.validate(inside, first)
            return True
    raise AssertionError(f"there is no operation {operation}")


def wrong(answer: Any, assertions: list[list[Any]], known: dict[str, Any]) -> Iterator[str]:
    """What does not hold."""
    for operation, path, *arguments in assertions:
        values = found(answer, path)
        if operation == "absent":
            good = not values
        elif operation == "exists":
            good = bool(values)
        elif operation == "count":
            good = len(values) == arguments[0]
        elif operation == "distinct":
            good = len({json.dumps(one) for one in values}) == len(values)
        elif operation == "some":
            good = any(holds(value, arguments[0], arguments[1:], known) for value in values)
        else:
            good = bool(values) and all(holds(value, operation, arguments, known) for value in values)
        if not good:
            yield f"{[operation, path, *arguments]}: {values!r:.500}"
