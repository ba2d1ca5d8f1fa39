"""Calls of the tools of a list, drawn from their schemas: valid ones, and ones that differ from a valid one in a place.

The library `jsonschema` decides which are valid, with formats asserted; what it cannot decide is left out.
"""

from __future__ import annotations

import copy
import json
import random
import re
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

#: `time` is that of draft 3 there, which has no offset.
FORMATS = FormatChecker([name for name in FormatChecker.checkers if name != "time"])
#: Formats of the lists with texts that are of them.
OF_FORMATS = {
    "date": ("2026-02-28", "2024-02-29"),
    "date-time": ("2026-11-30T10:00:00Z", "2026-01-02T03:04:05.678+01:00"),
    "time": ("10:00:00Z", "23:59:59+02:00"),
    "email": ("ann@example.org", "a.b+c@mail.example.com"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000",),
    "uri": ("https://example.org/a?b=c#d", "mailto:ann@example.org"),
    "ipv4": ("192.168.0.1",),
    "hostname": ("www.example.org",),
}
#: Texts for the patterns of the lists: those that match are taken.
TEXTS = (
    "", "a", "1", "ls -la", "Grüße, 世界 👍", 'say "hi"\n\tand \\ go', "select 1", "WITH x AS (SELECT 1) TABLE x",
    "/tmp/a b.txt", "C:\\x", "1-5", "py", "Enter", "ArrowLeft", "F12", "shot.png", "C0123ABCD", "1700000000.123456",
    "thumbsup", "ABC-123", "2h 30m", "name_1", "light.kitchen", "-01:30", "1234", "aGk=", "text/plain",
    "RRULE:FREQ=DAILY",
    "A1:B2", "0123456789abcdef0123456789abcdef01234567", "abc", "AB-12", "a@b", "ü", "a-b", "x",
)  # fmt: skip
MOST_ITEMS = 3
KINDS = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}


@dataclass(frozen=True)
class Call:
    """A call, and whether its arguments are valid under the tool's schema."""

    tool: str
    arguments: str
    is_valid: bool
    #: True if characters are spelled as `\uXXXX` that need not be.
    is_escaped: bool = False


def parameters(tool: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a tool's arguments; a tool that has none takes none."""
    given: dict[str, Any] = tool["function"].get("parameters", {"type": "object", "properties": {}})
    # Beside no names at all every name is too many: that is how agents mean it.
    return given if given.get("properties") != {} or "additionalProperties" in given else given | NO_NAMES


NO_NAMES = {"additionalProperties": False}


class Drawer:
    """Draws values of one schema."""

    def __init__(self, rng: random.Random, root: dict[str, Any]) -> None:
        self._rng, self._root = rng, root

    def value(self, schema: Any, depth: int = 0) -> Any:
        """Returns a value that is meant to be valid."""
        rng = self._rng
        if not isinstance(schema, dict) or not schema:
            return rng.choice(["x", 7, None, True])
        if "$ref" in schema:
            return self.value(self._root["$defs"][schema["$ref"].rpartition("/")[2]], depth + 1)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                branches = schema[keyword]
                return self.value(branches[0] if depth > 4 else rng.choice(branches), depth + 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return rng.choice(schema["enum"])
        return getattr(self, f"_{schema.get('type', 'object')}")(schema, depth)

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        rng, made = self._rng, {}
        required = schema.get("required", [])
        for name, inner in schema.get("properties", {}).items():
            if name in required or (depth <= 4 and rng.random() < 0.6):
                made[name] = self.value(inner, depth + 1)
        other = schema.get("additionalProperties")
        if isinstance(other, dict) and other and depth <= 4:
            made |= {
                name: self.value(other, depth + 1) for name in rng.sample(["k1", "k 2", "größe"], rng.randint(0, 2))
            }
        return made

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        if "prefixItems" in schema:
            return [self.value(inner, depth + 1) for inner in schema["prefixItems"]]
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", MOST_ITEMS), least + (MOST_ITEMS if depth <= 3 else 0))
        items = [self.value(schema["items"], depth + 1) for _ in range(self._rng.randint(least, most))]
        if schema.get("uniqueItems"):
            items = [item for at, item in enumerate(items) if item not in items[:at]]
        return items

    def _string(self, schema: dict[str, Any], _: int) -> str:
        if "format" in schema:
            return self._rng.choice(OF_FORMATS[schema["format"]])
        fits = [
            text
            for text in TEXTS
            if schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 1 << 30)
            # As ECMA-262 reads `\\w`; the judge reads more into it.
            and re.search(schema.get("pattern", ""), text, re.ASCII)
        ]
        return self._rng.choice(fits)

    def _integer(self, schema: dict[str, Any], _: int) -> int:
        step = schema.get("multipleOf", 1)
        low, high = schema.get("minimum", -5), schema.get("maximum", 10_000)
        return step * self._rng.randint(-(-low // step), high // step)

    def _number(self, schema: dict[str, Any], _: int) -> float:
        low, high = schema.get("minimum", schema.get("exclusiveMinimum", -5)), schema.get("maximum", 1000)
        step = schema.get("multipleOf", 0.25)
        return max(low, min(high, step * self._rng.randint(int(low / step) + 1, int(high / step))))

    def _boolean(self, _: dict[str, Any], __: int) -> bool:
        return bool(self._rng.getrandbits(1))

    def _null(self, _: dict[str, Any], __: int) -> None:
        return None


def spoil(rng: random.Random, arguments: Any) -> Any:
    """Returns the same with one thing changed somewhere: left out, of another type, too many, another text."""
    made = copy.deepcopy(arguments)
    places: list[tuple[Any, Any]] = []
    open_values = [made]
    while open_values:
        value = open_values.pop()
        keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        places += [(value, key) for key in keys]
        open_values += [value[key] for key in keys]
    if not places or rng.random() < 0.15:
        made["no_such_name"] = 1
        return made
    holder, key = rng.choice(places)
    value, kind = holder[key], rng.randrange(4)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        holder[key] = rng.choice(
            [other for other in ("x", 7, -0.5, True, None, [], {}) if type(other) is not type(value)]
        )
    elif kind == 2:
        holder[key] = [value] * 3 if not isinstance(value, list) else {"items": value}
    else:
        holder[key] = (
            value + "\u0000~" if isinstance(value, str) else value + 10**9 if type(value) in (int, float) else "x"
        )
    return made


def draw(tools: list[dict[str, Any]], seed: int, most: int) -> list[Call]:
    """Returns up to `most` valid calls and as many that are not, of as many tools as there are."""
    rng = random.Random(f"calls {seed} {len(tools)}")
    calls = []
    chosen = tools if len(tools) * 2 <= most else rng.sample(tools, most // 2)
    for tool in chosen:
        schema, name = parameters(tool), tool["function"]["name"]
        judge = Draft202012Validator(schema, format_checker=FORMATS)
        drawer = Drawer(rng, schema)
        for _ in range(max(2, most // len(chosen))):
            arguments = drawer.value(schema)
            if not judge.is_valid(arguments):
                why = next(judge.iter_errors(arguments)).message
                raise AssertionError(f"{name}: {arguments} is not valid: {why}")
            # As Python and JavaScript write it.
            spaces = rng.choice([None, (",", ":")])
            plain = json.dumps(arguments, ensure_ascii=False, separators=spaces)
            calls.append(Call(name, plain, True))
            if (escaped := json.dumps(arguments, separators=spaces)) != plain:
                calls.append(Call(name, escaped, True, True))
            other = spoil(rng, arguments)
            if not judge.is_valid(other):
                calls.append(Call(name, json.dumps(other, ensure_ascii=False), False))
    return calls


def judge_of(tools: list[dict[str, Any]]) -> dict[str, Draft202012Validator]:
    """Returns the validators of the arguments by the names of the tools."""
    return {tool["function"]["name"]: Draft202012Validator(parameters(tool)) for tool in tools}
