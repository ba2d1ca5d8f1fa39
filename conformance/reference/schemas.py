"""JSON Schemas with documents that they allow and that they refuse, drawn together.

The judge of a document is the library `jsonschema`, which no engine of the suite is made of. Documents are written
without white space, with the properties in the order of the schema: every engine can write those.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema

from .draw import WORDS, Draw

NAMES = ["name", "city", "unit", "max_rows", "id", "tags", "to-do", "größe", "a", "b"]
Schema = dict[str, Any]


def schema(draw: Draw, depth: int = 3) -> Schema:
    """A schema of what tools and structured outputs use."""
    kinds = ["string", "integer", "number", "boolean", "null", "enum", "const", "union"]
    kind = draw.choice(kinds + (["object"] * 5 + ["array", "array"] if depth else []))
    if kind == "string":
        bounds = draw.choice(
            [{}, {"maxLength": draw.randint(1, 9)}, {"minLength": 2, "maxLength": 6}, {"pattern": "^[a-z]{2,4}$"}]
        )
        return {"type": "string", **bounds}
    if kind == "integer":
        low = draw.randint(-30, 30)
        return {
            "type": "integer",
            **draw.choice([{}, {"minimum": low, "maximum": low + draw.randint(0, 200)}, {"minimum": 0}]),
        }
    if kind == "number":
        return {"type": "number", **draw.choice([{}, {"minimum": 0, "maximum": 10}, {"exclusiveMinimum": 0}])}
    if kind in ("boolean", "null"):
        return {"type": kind}
    if kind == "enum":
        return {"enum": draw.sample([*WORDS[:20], 1, 2.5, True, None], draw.randint(2, 5))}
    if kind == "const":
        return {"const": draw.choice([*WORDS[:20], 7, False])}
    if kind == "union":
        two = [{"type": "integer"}, {"type": "string", "maxLength": 5}, {"type": "null"}]
        return {"anyOf": draw.sample(two, 2)}
    if kind == "array":
        least = draw.randint(0, 2)
        return {
            "type": "array",
            "items": schema(draw, depth - 1),
            "minItems": least,
            "maxItems": least + draw.randint(0, 3),
        }
    names = draw.sample(NAMES, draw.randint(1, 4))
    return {
        "type": "object",
        "properties": {name: schema(draw, depth - 1) for name in names},
        "required": [name for name in names if draw.random() < 0.7],
        "additionalProperties": False,
    }


def instance(draw: Draw, of: Schema) -> Any:
    """A document of the schema, by construction."""
    if "enum" in of:
        return draw.choice(of["enum"])
    if "const" in of:
        return of["const"]
    if "anyOf" in of:
        return instance(draw, draw.choice(of["anyOf"]))
    kind = of["type"]
    if kind == "string":
        if "pattern" in of:
            return "".join(draw.choices("abcxyz", k=draw.randint(2, 4)))
        return "".join(draw.choices('abc é"\\\n中', k=draw.randint(of.get("minLength", 0), of.get("maxLength", 12))))
    if kind == "integer":
        return draw.randint(of.get("minimum", -99), of.get("maximum", 999))
    if kind == "number":
        return draw.choice([1, 0.5, 9.75, 3])
    if kind == "boolean":
        return draw.random() < 0.5
    if kind == "null":
        return None
    if kind == "array":
        return [instance(draw, of["items"]) for _ in range(draw.randint(of["minItems"], of["maxItems"]))]
    named = [name for name in of["properties"] if name in of["required"] or draw.random() < 0.5]
    return {name: instance(draw, of["properties"][name]) for name in named}


def spoiled(draw: Draw, document: Any) -> Any:
    """A document with one thing changed, which most schemas then refuse."""
    if isinstance(document, dict) and document and draw.random() < 0.7:
        found = copy.deepcopy(document)
        name = draw.choice(list(found))
        kind = draw.random()
        if kind < 0.3:
            del found[name]
        elif kind < 0.45:
            found = {(f"{one}x" if one == name else one): value for one, value in found.items()}
        else:
            found[name] = spoiled(draw, found[name])
        return found
    if isinstance(document, list) and document and draw.random() < 0.5:
        return [*document[:-1], spoiled(draw, document[-1])]
    return draw.choice([None, True, -1000, 2.25, "zzzzzzzzzzzzzz", [], [1, "x"], {}, {"x": 1}])


def written(document: Any) -> str:
    """As the suite writes documents."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def texts(draw: Draw, of: Schema) -> tuple[list[str], list[str]]:
    """Documents that it allows, and that it refuses."""
    judge = jsonschema.Draft202012Validator(of)
    accepted: dict[str, None] = {}
    refused: dict[str, None] = {}
    for _ in range(4):
        document = instance(draw, of)
        if not judge.is_valid(document):
            raise ValueError(f"{document} was drawn from {of}, which refuses it")
        accepted[written(document)] = None
        for _ in range(2):
            wrong = spoiled(draw, document)
            if not judge.is_valid(wrong):
                refused[written(wrong)] = None
    # What is cut off is not a document.
    refused |= {text[:-1]: None for text in accepted if len(text) > 1 and not _is_document(text[:-1])}
    return list(accepted), list(refused)


def _is_document(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
