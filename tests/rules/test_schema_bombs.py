"""Schemas that multiply, as tools and as documents: each is held or refused soon, in little memory, with its place."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import schema_bombs
import tokentrie
from budget import BUDGET, cases
from schema_bombs import FAMILIES, NAMED, VALUES, WORDS, Schema, mixed

pytestmark = pytest.mark.model

SECONDS = 20
"""Of the processor, in the slow build of the tests on a busy machine; it takes one at most."""

MEMORY = 1 << 30
"""Of addresses: the process of the test has the model and the stacks of threads in it, too."""

KINDS = ("tool", "document")
SEED = 0 if BUDGET < 1 else random.SystemRandom().randrange(10**9)


class Child:
    """A process that may take so much memory, and tries one schema after the other."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        program = [sys.executable, str(Path(schema_bombs.__file__)), str(MEMORY)]
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True
        )

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.errors.close()

    def tries(self, kind: str, schema: Schema) -> Schema:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"kind": kind, "schema": schema}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            status = self.process.wait(60)
            self.errors.seek(0)
            said = self.errors.read()[-1000:]
            self.stop()
            self.start()  # The next test has a process again.
            pytest.fail(f"the process ended: {status}; {kind}: {json.dumps(schema)[:300]}\n{said}")
        found: Schema = json.loads(answer)
        assert found["seconds"] < SECONDS, (kind, found, json.dumps(schema)[:300])
        if found["said"] == "refused":
            assert len(found["error"]) < 1000 + len(place_is_in(found["error"], schema))
        return found


@pytest.fixture
def child() -> Iterator[Child]:
    """A process for each test: what one leaves in pieces of memory is not the fault of the next."""
    child = Child()
    yield child
    child.stop()


def pointed(schema: Any, pointer: str) -> Any:
    """What a JSON pointer leads to; KeyError where it leads nowhere."""
    for part in pointer.split("/")[1:]:
        name: Any = part.replace("~1", "/").replace("~0", "~")
        if isinstance(schema, list):
            schema = dict(enumerate(schema))
            name = int(name) if name.isdecimal() else name
        if not isinstance(schema, dict) or name not in schema:
            raise KeyError(pointer)
        schema = schema[name]
    return schema


def place_is_in(error: str, schema: Any) -> str:
    """The place that an error names; it is in the schema, and where a keyword is named it stands there."""
    tool = re.search(r'schema at "((?:[^"\\]|\\.)*)": (\S*)', error)
    document = re.search(r"(?:^|: )at (/\S*): (\S*)", error)
    found = tool or document
    place, word = found.groups() if found else ("", "")
    part = pointed(schema, json.loads(f'"{place}"') if tool else place)
    if "is not supported" in error and re.fullmatch(r"[$a-zA-Z]+", word) and word != "the":
        assert word in part, (error, json.dumps(part)[:300])
    return place


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_that_ended_the_process_are_held_or_refused(child: Child, kind: str) -> None:
    found = {name: child.tries(kind, schema) for name, schema in NAMED.items()}
    # One enum that decides is no product.
    held = [name for name, one in found.items() if one["said"] == "held"]
    assert {f"{count} if and then" for count in (9, 11, 12, 16, 40)} <= set(held), found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_what_doubles_is_refused_in_the_end(child: Child, kind: str, family: str) -> None:
    count = 2
    while True:
        schema = FAMILIES[family](count)
        if child.tries(kind, schema)["said"] == "refused" or count >= 256 or len(json.dumps(schema)) > 200_000:
            return
        count *= 2


@pytest.mark.parametrize("kind", KINDS)
def test_mixtures_are_held_or_refused(child: Child, kind: str) -> None:
    draw = random.Random(SEED)
    for _ in range(cases(200)):
        child.tries(kind, mixed(draw))


def placed(part: Schema) -> Iterator[Schema]:
    """A schema in every place."""
    yield {"type": "object", **part}
    yield {"type": "object", "properties": {"a": part}}
    yield {"type": "object", "properties": {"a": {"type": "object", **part}}, "required": ["a"]}
    yield {"type": "object", "properties": {"a": {"type": "array", "items": part}}}
    yield {"type": "object", "allOf": [part, {"properties": {"b": {}}}]}
    yield {"type": "object", "properties": {"a": {"anyOf": [part, {"type": "null"}]}}}
    yield {"type": "object", "properties": {"a": {"not": part}}}
    yield {"type": "object", "if": part, "then": {"required": ["a"]}}
    yield {"type": "object", "$defs": {"a": part}, "properties": {"a": {"$ref": "#/$defs/a"}}}
    yield {"type": "object", "properties": {"a": {"allOf": [part, part, {"type": "string"}]}}}
    yield {"type": "object", "additionalProperties": {"oneOf": [part, {"type": "string"}, {"type": "integer"}]}}


def test_a_value_of_a_wrong_type_is_a_typed_error_or_a_warning() -> None:
    """Every keyword, every type of JSON, every place; where an error names a place it is one of the schema."""
    model = tokentrie.Model()
    constraint, JsonSchema = model.chat_format.constraint, tokentrie.JsonSchema  # noqa: N806
    draw, taken = random.Random(SEED), min(1.0, BUDGET)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for word in WORDS:
            for value in VALUES:
                for schema in placed({word: value}):
                    if draw.random() > taken:
                        continue
                    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
                    error = refused(lambda tools=tools: constraint(tools, model.vocab, tool_choice="required"))
                    place_is_in(error, schema)
                    for lenient in (False, True):
                        error = refused(lambda schema=schema, lenient=lenient: JsonSchema(schema, lenient=lenient))
                        place_is_in(error, schema)


def refused(make: Callable[[], object]) -> str:
    """What a typed error says; nothing where there is none."""
    try:
        make()
    except tokentrie.TokenTrieError as error:
        said = str(error)
        assert "panic" not in said
        return said
    return ""


def test_options_of_the_engine_are_no_keyword() -> None:
    """They say nothing, as all keywords that nobody knows."""
    schema = {"x-guidance": {"whitespace_flexible": False}, "type": "array", "items": {"type": "integer"}}
    assert tokentrie.JsonSchema(schema, whitespace="flexible").matches("[ 1 , 2 ]")


def test_ordinary_lists_of_tools_pass() -> None:
    """A thousand tools of which each has conditions, references and unions, some 2 MB."""
    model = tokentrie.Model()

    def tool(nth: int) -> Schema:
        text = {"type": "string", "description": "What it is about, in some words that explain it to the model."}
        properties: Schema = {f"field{key}": text for key in range(12)}
        properties["mode"] = {"enum": ["fast", "safe", "dry"]}
        properties["place"] = {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "null"}]}
        place = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x"]}
        rule = {"if": {"properties": {"mode": {"const": "safe"}}}, "then": {"required": ["field1"]}}
        schema = {"type": "object", "properties": properties, "$defs": {"place": place}, "allOf": [rule]}
        return {"type": "function", "function": {"name": f"tool{nth}", "parameters": schema}}

    tools = [tool(nth) for nth in range(1000)]
    assert len(json.dumps(tools)) > 1_500_000
    model.chat_format.constraint(tools, model.vocab, tool_choice="required")
