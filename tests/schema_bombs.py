"""Schemas that multiply: families that grow with a number, and mixtures of them. Run as a program it tries what stands
on its input, one JSON object a line, and says what became of each."""

from __future__ import annotations

import functools
import json
import random
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import tokentrie

Schema = dict[str, Any]


def cases(count: int) -> Schema:
    names = [f"p{nth}" for nth in range(count)]
    kinds = [f"x{nth}" for nth in range(count)]
    rules = [
        {"if": {"properties": {"type": {"const": kind}}}, "then": {"required": [name]}}
        for kind, name in zip(kinds, names, strict=True)
    ]
    properties = {"type": {"enum": kinds}} | {name: {"type": "string"} for name in names}
    return {"type": "object", "properties": properties, "allOf": rules}


def conditions(count: int) -> Schema:
    rules = [{"if": {"required": [f"a{nth}"]}, "then": {"required": [f"b{nth}"]}} for nth in range(count)]
    return {"type": "object", "allOf": rules}


def nested_conditions(count: int) -> Schema:
    schema: Schema = {"required": ["z"]}
    for nth in range(min(count, 60)):
        schema = {"if": {"properties": {f"a{nth}": {"minimum": nth}}}, "then": schema, "else": {"not": schema}}
        if len(json.dumps(schema)) > 200_000:
            break
    return {"type": "object", **schema}


def unions(count: int, ways: int = 6) -> Schema:
    def union(nth: int) -> Schema:
        return {"anyOf": [{"properties": {f"a{nth}": {"const": way}}, "required": [f"b{way}"]} for way in range(ways)]}

    return {"type": "object", "allOf": [union(nth) for nth in range(count)]}


def unions_of_texts(count: int) -> Schema:
    every = [{"anyOf": [{"type": "string", "pattern": f"^{nth}.*{way}"} for way in "abcdef"]} for nth in range(count)]
    return {"type": "object", "properties": {"text": {"allOf": every}}}


def a_ring(count: int) -> Schema:
    return {"type": "object", "dependentRequired": {f"a{nth}": [f"a{(nth + 1) % count}"] for nth in range(count)}}


def a_net(count: int) -> Schema:
    then = {f"a{nth}": [f"a{(nth + 3) % count}", f"b{(nth * 7) % count}"] for nth in range(count)}
    return {"type": "object", "properties": {"a0": {"type": "string"}}, "dependentRequired": then}


def dependents(count: int) -> Schema:
    return {"type": "object", "dependentSchemas": {f"a{nth}": {"required": [f"b{nth}"]} for nth in range(count)}}


def ranges(count: int) -> Schema:
    every = [{"type": "number", "minimum": nth, "maximum": nth + 30} for nth in range(count)]
    return {"type": "object", "properties": {"number": {"oneOf": every}}}


def one_of_keys(count: int) -> Schema:
    return {"type": "object", "oneOf": [{"required": [f"a{nth}"]} for nth in range(count)]}


def contained(count: int) -> Schema:
    every = [{"contains": {"const": nth}} for nth in range(count)]
    return {"type": "object", "properties": {"list": {"type": "array", "allOf": every}}}


def refusals(count: int) -> Schema:
    return {"type": "object", "allOf": [{"not": {"required": [f"a{nth}", f"b{nth}"]}} for nth in range(count)]}


def counts(count: int) -> Schema:
    def group(nth: int) -> Schema:
        return {"properties": {f"a{nth}{key}": {} for key in "abcdefgh"}, "minProperties": 2, "maxProperties": 4}

    return {"type": "object", "allOf": [group(nth) for nth in range(count)]}


def doubled(count: int, leaf: Any, beside: Schema) -> Schema:
    defs = {
        f"a{nth}": {"allOf": [{"$ref": f"#/$defs/a{nth + 1}"}, {"$ref": f"#/$defs/a{nth + 1}", **beside}]}
        for nth in range(count)
    }
    return {"type": "object", "$defs": defs | {f"a{count}": leaf}, "properties": {"x": {"$ref": "#/$defs/a0"}}}


def doubled_texts(count: int) -> Schema:
    return doubled(count, {"type": "string", "pattern": "^a+b"}, {})


def doubled_beside(count: int) -> Schema:
    return doubled(count, {"type": "string", "pattern": "^a+b"}, {"minLength": 1})


def doubled_unions(count: int) -> Schema:
    return doubled(count, {"anyOf": [{"required": ["a"]}, {"required": ["b"]}, {"minLength": 2}]}, {"type": "object"})


def doubled_by_one_of(count: int) -> Schema:
    defs = {
        f"a{nth}": {"oneOf": [{"$ref": f"#/$defs/a{nth + 1}"}, {"not": {"$ref": f"#/$defs/a{nth + 1}"}}]}
        for nth in range(count)
    }
    leaf = {"type": "object", "required": ["z"]}
    return {"type": "object", "$defs": defs | {f"a{count}": leaf}, "$ref": "#/$defs/a0"}


def tree(count: int) -> Schema:
    """Each has two of the next, so that what is merged into the first reaches all."""
    defs: Schema = {}
    for nth in range(count):
        to = {"$ref": f"#/$defs/a{nth + 1}"}
        defs[f"a{nth}"] = {"type": "object", "properties": {"l": to, "r": to}, "required": ["l"]}
    deep: Any = {"type": "object"}
    for _ in range(min(count, 40)):
        deep = {"type": "object", "properties": {"l": deep, "r": {"type": "object"}}}
    both = {"allOf": [{"$ref": "#/$defs/a0"}, deep]}
    return {"type": "object", "$defs": defs | {f"a{count}": True}, "properties": {"x": both}}


def unevaluated(count: int) -> Schema:
    def union(nth: int) -> Schema:
        return {"anyOf": [{"properties": {f"a{nth}{key}": {}}, "required": [f"a{nth}{key}"]} for key in "abc"]}

    return {"type": "object", "allOf": [union(nth) for nth in range(count)], "unevaluatedProperties": False}


def long_name(count: int) -> Schema:
    inner = {f"a{nth}": {"not": {"const": nth}} for nth in range(count)}
    return {"type": "object", "properties": {"n" * 1000 * count: {"type": "object", "properties": inner}}}


def nulls_beside_an_object(count: int) -> Schema:
    many = [{"type": "null", "title": str(nth)} for nth in range(20 * count)]
    large = {"type": "object", "properties": {f"a{nth}": {} for nth in range(20 * count)}}
    return {"type": "object", "properties": {"x": {"allOf": [{"anyOf": many}, large]}}}


def lists_that_differ(count: int) -> Schema:
    values = ["v" * 1000 * count + str(nth) for nth in range(20)]
    lists = {"type": "array", "uniqueItems": True, "maxItems": 2, "items": {"enum": values}}
    return {"type": "object", "properties": {f"a{nth}": lists for nth in range(count)}}


def patterns(count: int) -> Schema:
    every = [{"pattern": f"a.{{{nth}}}b"} for nth in range(count)]
    return {"type": "object", "properties": {"text": {"type": "string", "allOf": every}}}


def many_keys(count: int) -> Schema:
    names = [f"a{nth}" for nth in range(30 * count)]
    every = [{"additionalProperties": {"type": ["string", "null"]}, "properties": {name: {}}} for name in names]
    return {"type": "object", "allOf": every}


FAMILIES: dict[str, Callable[[int], Schema]] = {
    family.__name__: family
    for family in (
        cases, conditions, nested_conditions, unions, unions_of_texts, a_ring, a_net, dependents, ranges, one_of_keys,
        contained, refusals, counts, doubled_texts, doubled_beside, doubled_unions, doubled_by_one_of, tree,
        unevaluated, long_name, nulls_beside_an_object, lists_that_differ, patterns, many_keys,
    )
}  # fmt: skip

NAMED: dict[str, Schema] = {
    **{f"{count} if and then": cases(count) for count in (9, 11, 12, 16, 40)},
    "allOf of 8 anyOfs of 6": unions(8),
    "20 cyclic dependentRequired": a_ring(20),
    "30 dependentSchemas": dependents(30),
    "oneOf of 25 overlapping ranges": ranges(25),
    "6 contains": contained(6),
}


WORDS = [
    "type", "enum", "const", "properties", "required", "additionalProperties", "patternProperties",
    "propertyNames", "minProperties", "maxProperties", "items", "prefixItems", "additionalItems", "contains",
    "minContains", "maxContains", "uniqueItems", "minItems", "maxItems", "minLength", "maxLength", "pattern",
    "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "allOf", "anyOf",
    "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies",
    "unevaluatedProperties", "unevaluatedItems", "$ref", "$dynamicRef", "$recursiveRef", "$defs", "definitions",
    "$id", "id", "$anchor", "$dynamicAnchor", "$schema", "nullable", "default", "title", "description",
    "examples", "discriminator", "x-guidance",
]  # fmt: skip
VALUES: list[Any] = [None, True, False, 0, 1, -1, 1.5, 1e300, "", "a", [], {}, [None], [1], ["a"], [[]], [{}],
                     {"a": None}, {"a": 1}, {"a": "b"}, {"a": []}, {"a": {}}, {"": True}]  # fmt: skip


def mixed(draw: random.Random) -> Schema:
    """Several families at once, beside and inside of each other."""
    parts = [FAMILIES[draw.choice([*FAMILIES])](draw.choice([2, 3, 5, 8, 13])) for _ in range(draw.randrange(2, 4))]
    defs = {key: value for part in parts for key, value in part.pop("$defs", {}).items()}
    keyword = draw.choice(["allOf", "anyOf", "oneOf", "properties", "not", "if", "items"])
    inside: Any = parts
    if keyword == "properties":
        inside = {f"m{nth}": part for nth, part in enumerate(parts)}
    elif keyword in ("not", "if", "items"):
        inside = parts[0]
    whole: Schema = {"type": "object", "$defs": defs, keyword: inside}
    if keyword == "if":
        whole["then"] = parts[1]
    if keyword == "items":
        whole = {"type": "object", "$defs": defs, "properties": {"m": {"type": "array", "items": {"allOf": parts}}}}
    return whole


@functools.cache
def model() -> tokentrie.Model:
    """One model for all tries: the threads of one that is dropped keep their addresses for a while."""
    return tokentrie.Model()


def tried(kind: str, schema: Any) -> Schema:
    """The outcome of reading a schema in this process."""
    chat_format, vocab = model().chat_format, model().vocab
    began = time.process_time()
    said, error = "held", ""
    try:
        if kind == "tool":
            tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
            chat_format.constraint(tools, vocab, tool_choice="required")
        else:
            tokentrie.JsonSchema(schema)
    except tokentrie.TokenTrieError as refused:
        said, error = "refused", str(refused)
    seconds = time.process_time() - began
    return {"said": said, "error": error, "seconds": seconds}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(tried(asked["kind"], asked["schema"])), flush=True)
