"""Schemas of all keywords and documents that are near to them, drawn from seeds. Nothing here knows the engine."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

Draw = random.Random
Words = dict[str, Callable[[], Any]]

NAMES = ["a", "b", "ab", "é", 'q"', "x~/y", "", "b😀"]
TEXTS = [
    "",
    "a",
    "b",
    "ab",
    "abc",
    "é",
    "😀",
    'q"\\',
    "12",
    "a-b",
    "2024-02-29",
    "2023-02-29",
    "1.2.3.4",
    "::1",
    "a\tb",
]
NUMBERS = [-2, -1, 0, 1, 2, 3, 7, 10, 100, 2**53 + 1, -(2**63), 10**30]
NUMBERS += [Decimal(text) for text in ("0.5", "-0.5", "1.5", "0.1", "0.3", "2.25", "99.99", "-1.01", "1E-9")]
STEPS = [1, 2, 3, 7, 10, *map(Decimal, ("0.5", "0.1", "0.01", "0.3", "1.5", "0.25", "1E-9"))]
PATTERNS = [
    "^a",
    "b$",
    "^[ab]+$",
    "^.{2}$",
    "a.b",
    "^(?!a)",
    "^(?=.*b)a",
    "(?<=a)b",
    "(?<!a)b",
    r"^\d+$",
    "[^a-z]",
    "^(?:a|ab)?$",
    "^[+--]$",
    r"^\S*$",
    "",
    "é",
    "^[^[\\]]*$",
    "^a{2,3}$",
]
"""Read alike by Python and ECMA-262, of texts that end with no line."""
FORMATS = ["date", "ipv4", "ipv6", "uuid"]
"""Those that jsonschema reads as the standard does, without other packages."""
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]


def a_value(draw: Draw, depth: int = 2) -> Any:
    kind = draw.random()
    if depth == 0 or kind < 0.55:
        return draw.choice([None, True, False, draw.choice(TEXTS), draw.choice(TEXTS), draw.choice(NUMBERS)])
    if kind < 0.75:
        return [a_value(draw, depth - 1) for _ in range(draw.randrange(4))]
    return {name: a_value(draw, depth - 1) for name in draw.sample(NAMES, draw.randrange(4))}


class Schemas:
    """Schemas of one draft."""

    def __init__(self, draw: Draw, draft: str, *, formats: bool) -> None:
        self.draw, self.draft, self.formats = draw, draft, formats
        self.is_old = draft in ("draft4", "draft6", "draft7")
        self.defined = ["one", "two"] if draw.random() < 0.3 else []
        self.may_refer = True

    def whole(self) -> Any:
        """A schema with its definitions."""
        schema = self.one(3)
        if isinstance(schema, dict) and self.defined:
            where = "definitions" if self.is_old else "$defs"
            # A definition refers to others of parts of a value alone: it would refer to itself without end.
            self.may_refer = False
            schema[where] = {name: self.one(2) for name in self.defined}
        if isinstance(schema, dict) and self.draft != "draft2020-12":
            uris = {"draft4": "draft-04/schema#", "draft6": "draft-06/schema#", "draft7": "draft-07/schema#"}
            uri = uris.get(self.draft)
            known = f"http://json-schema.org/{uri}" if uri else "https://json-schema.org/draft/2019-09/schema"
            schema["$schema"] = known
        return schema

    def leaves(self) -> Words:
        """Keywords whose values are no schemas."""
        draw = self.draw
        words: Words = {
            "enum": lambda: [a_value(draw, 1) for _ in range(draw.randrange(1, 5))],
            "const": lambda: a_value(draw, 1),
            "minimum": lambda: draw.choice(NUMBERS),
            "maximum": lambda: draw.choice(NUMBERS),
            "exclusiveMinimum": lambda: draw.choice(NUMBERS),
            "exclusiveMaximum": lambda: draw.choice(NUMBERS),
            "multipleOf": lambda: draw.choice(STEPS),
            "minLength": lambda: draw.randrange(4),
            "maxLength": lambda: draw.randrange(5),
            "pattern": lambda: draw.choice(PATTERNS),
            "required": lambda: draw.sample(NAMES, draw.randrange(1, 3)),
            "minProperties": lambda: draw.randrange(4),
            "maxProperties": lambda: draw.randrange(5),
            "minItems": lambda: draw.randrange(4),
            "maxItems": lambda: draw.randrange(5),
            "uniqueItems": lambda: draw.random() < 0.8,
        }
        if self.formats:
            words["format"] = lambda: draw.choice(FORMATS)
        if self.draft == "draft4":
            for word in ("const", "exclusiveMinimum", "exclusiveMaximum"):
                del words[word]
        if not self.is_old:
            words["dependentRequired"] = lambda: {draw.choice(NAMES): draw.sample(NAMES, draw.randrange(3))}
            words["minContains"] = lambda: draw.randrange(3)
            words["maxContains"] = lambda: draw.randrange(1, 3)
        return words

    def holders(self, depth: int) -> Words:
        """Keywords whose values have schemas in them."""
        draw = self.draw

        def one() -> Any:
            return self.one(depth - 1)

        def some() -> list[Any]:
            return [one() for _ in range(draw.randrange(1, 4))]

        def bounded() -> Any:
            return draw.choice([False, one(), one()])

        names = [{"maxLength": 1}, {"pattern": "^a"}, {"enum": ["a", "b"]}, {"not": {"const": "a"}}]
        words: Words = {
            "properties": lambda: {name: one() for name in draw.sample(NAMES, draw.randrange(1, 4))},
            "additionalProperties": bounded,
            "patternProperties": lambda: {draw.choice(PATTERNS): one() for _ in range(draw.randrange(1, 3))},
            "propertyNames": lambda: draw.choice([*names, one()]),
            "items": one,
            "contains": one,
            "anyOf": some,
            "oneOf": some,
            "allOf": some,
            "not": one,
            "if": one,
            "then": one,
            "else": one,
        }
        if self.is_old:
            words["items"] = lambda: draw.choice([one, some])()
            words["additionalItems"] = bounded
            words["dependencies"] = lambda: {
                draw.choice(NAMES): draw.choice([one, lambda: draw.sample(NAMES, draw.randrange(1, 3))])()
            }
        else:
            words["unevaluatedProperties"] = bounded
            words["unevaluatedItems"] = bounded
            words["dependentSchemas"] = lambda: {draw.choice(NAMES): one()}
            words["prefixItems" if self.draft == "draft2020-12" else "items"] = some
            if self.draft == "draft2019-09":
                words["additionalItems"] = bounded
        if self.draft == "draft4":
            for word in ("propertyNames", "contains"):
                del words[word]
        if self.draft in ("draft4", "draft6"):
            for word in ("if", "then", "else"):
                del words[word]
        return words

    def one(self, depth: int) -> Any:
        draw = self.draw
        if self.draft != "draft4" and draw.random() < 0.04:
            return draw.choice([True, False])
        if self.defined and self.may_refer and draw.random() < 0.15:
            reference = f"#/{'definitions' if self.is_old else '$defs'}/{draw.choice(self.defined)}"
            return {"$ref": reference}
        schema: dict[str, Any] = {}
        if draw.random() < 0.75:
            schema["type"] = draw.choice(TYPES) if draw.random() < 0.85 else draw.sample(TYPES, 2)
        words = self.leaves() | (self.holders(depth) if depth else {})
        fit = [word for word in FIT.get(str(schema.get("type")), []) if word in words]
        for _ in range(draw.randrange(1, 5)):
            word = draw.choice(fit) if fit and draw.random() < 0.65 else draw.choice(list(words))
            outside = self.may_refer
            self.may_refer |= word in OF_PARTS
            schema[word] = words[word]()
            self.may_refer = outside
        if "if" in schema:
            schema["then"] = words["then"]()
        if self.draft == "draft4":
            schema = {
                word: one if word not in ("additionalProperties", "additionalItems") or one is not True else {}
                for word, one in schema.items()
            }
            for side in ("minimum", "maximum"):
                if side in schema and draw.random() < 0.3:
                    schema[f"exclusive{side.title()}"] = True
        return schema


OF_PARTS = ("properties", "additionalProperties", "patternProperties", "items", "prefixItems", "additionalItems")
FIT = {
    "integer": ["enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "not"],
    "number": ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "multipleOf", "not"],
    "string": ["enum", "minLength", "maxLength", "pattern", "pattern", "format", "not"],
    "array": [
        *("minItems", "maxItems", "uniqueItems", "items", "prefixItems", "contains", "minContains", "maxContains"),
        *("unevaluatedItems", "additionalItems"),
    ],
    "object": [
        *("required", "minProperties", "maxProperties", "dependentRequired", "properties", "properties"),
        *("additionalProperties", "patternProperties", "propertyNames", "dependentSchemas", "unevaluatedProperties"),
        "dependencies",
    ],
}


class Documents:
    """Documents that a schema may allow: made by what some of its keywords say, then changed a little."""

    def __init__(self, draw: Draw, schema: Any) -> None:
        self.draw, self.root = draw, schema

    def near(self) -> Any:
        value = self.of(self.root, 4)
        return self.changed(value) if self.draw.random() < 0.35 else value

    def of(self, schema: Any, depth: int) -> Any:
        draw = self.draw
        if not isinstance(schema, dict) or depth == 0 or draw.random() < 0.05:
            return a_value(draw, 1)
        if reference := schema.get("$ref"):
            where, name = reference.split("/")[1:]
            return self.of(self.root.get(where, {}).get(name), depth - 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return draw.choice(schema["enum"])
        branches = [branch for word in ("anyOf", "oneOf", "allOf") for branch in schema.get(word, [])]
        branches += [schema[word] for word in ("then", "else", "if") if word in schema]
        if branches and draw.random() < 0.5:
            return self.of({**self.plain(schema), **self.plain(draw.choice(branches))}, depth - 1)
        kind = schema.get("type", draw.choice(TYPES))
        kind = draw.choice(kind) if isinstance(kind, list) else kind
        return getattr(self, f"_{kind}")(schema, depth)

    def plain(self, schema: Any) -> dict[str, Any]:
        """What it says but for its branches."""
        branches = ("anyOf", "oneOf", "allOf", "if", "then", "else", "not")
        return {word: one for word, one in schema.items() if word not in branches} if isinstance(schema, dict) else {}

    def _null(self, _schema: Any, _depth: int) -> None:
        return None

    def _boolean(self, _schema: Any, _depth: int) -> bool:
        return self.draw.random() < 0.5

    def _number(self, schema: Any, _depth: int) -> Any:
        draw = self.draw
        words = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
        bounds = [schema[word] for word in words if not isinstance(schema.get(word, True), bool)]
        value = draw.choice(bounds or NUMBERS)
        if step := schema.get("multipleOf"):
            with localcontext() as context:
                context.prec = 200
                value = Decimal(value) // Decimal(step) * Decimal(step)
                return value + draw.randrange(-1, 3) * Decimal(step)
        return value + draw.choice([0, 0, 1, -1, Decimal("0.5"), Decimal("-1E-9")])

    def _integer(self, schema: Any, depth: int) -> Any:
        value = self._number(schema, depth)
        return int(value) if self.draw.random() < 0.9 else value

    def _string(self, schema: Any, _depth: int) -> str:
        draw = self.draw
        text = draw.choice(TEXTS) if draw.random() < 0.5 else "".join(draw.choices("ab1-é😀", k=draw.randrange(5)))
        bound = draw.choice([schema.get("minLength"), schema.get("maxLength"), None])
        return text if bound is None else (text + "abab")[:bound]

    def _array(self, schema: Any, depth: int) -> list[Any]:
        draw = self.draw
        size = draw.choice([schema.get("minItems"), schema.get("maxItems"), draw.randrange(4), draw.randrange(3)])
        items, prefix = schema.get("items", {}), schema.get("prefixItems", [])
        if isinstance(items, list):
            items, prefix = schema.get("additionalItems", {}), items
        places = [*prefix, *[items] * 6][: draw.randrange(4) if size is None else size]
        found = [self.of(one, depth - 1) for one in places]
        if "contains" in schema and draw.random() < 0.7:
            found.insert(draw.randrange(len(found) + 1), self.of(schema["contains"], depth - 1))
        return found

    def _object(self, schema: Any, depth: int) -> dict[str, Any]:
        draw = self.draw
        own = schema.get("properties", {})
        required = schema.get("required", [])
        names = [name for name in own if name in required or draw.random() < 0.6]
        names += [name for name in required if name not in names and draw.random() < 0.95]
        further = draw.choice([0, 0, 1, 2])
        names += [name for name in draw.sample(NAMES, further) if name not in names]
        more = schema.get("additionalProperties", True)
        pattern = next(iter(schema.get("patternProperties", {}).values()), None)
        found = {}
        for name in names:
            found[name] = self.of(own.get(name, pattern if pattern and draw.random() < 0.5 else more), depth - 1)
        return found

    def changed(self, value: Any) -> Any:
        """The same with one thing other."""
        draw = self.draw
        if isinstance(value, list) and value and draw.random() < 0.7:
            at = draw.randrange(len(value))
            how = draw.random()
            if how < 0.3:
                return value[:at] + value[at + 1 :]
            return [*value[:at], value[at] if how < 0.5 else self.changed(value[at]), *value[at:]]
        if isinstance(value, dict) and value and draw.random() < 0.7:
            name = draw.choice(list(value))
            if draw.random() < 0.4:
                return {other: one for other, one in value.items() if other != name}
            return {**value, name: self.changed(value[name])}
        return a_value(draw, 1)
