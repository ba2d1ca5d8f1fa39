"""Requests drawn at random for the routes of agents, with one value exchanged: 400, or a reply that obeys all of it.

What a request asks for is read here anew, by the documents of the APIs. Replies are judged by `jsonschema` and `re`.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pytest

pytest.importorskip("fastapi")

import jsonschema
import tokentrie
from budget import BUDGET, cases
from serve.application.in_process import InProcess
from tokentrie.serve import Settings, create_app
from tokentrie.serve.models import ServedModel

pytestmark = pytest.mark.model

SEED = 0 if BUDGET < 1 else random.SystemRandom().randrange(10**9)
CHAT, RESPONSE, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
#: Grammars of custom tools: syntax, definition, and the same as a regular expression of Python.
GRAMMARS = [
    ("regex", "[a-c]{1,3}", "[a-c]{1,3}"),
    ("regex", "(on|off)", "on|off"),
    ("lark", "start: /[ab]{1,3}/", "[ab]{1,3}"),
    ("lark", 'start: ("+" | "-") NUMBER\nNUMBER: /[0-9]{1,2}/', r"[+-][0-9]{1,2}"),
]
SCHEMAS: list[Any] = [
    {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False},
    {"type": "object", "properties": {"b": {"type": "boolean"}}, "additionalProperties": False},
    {"type": "object", "properties": {}, "additionalProperties": False},
    {
        "type": "object",
        "properties": {"in": {"$ref": "#/$defs/n"}, "to": {"anyOf": [{"const": "x"}, {"type": "null"}]}},
        "required": ["in", "to"],
        "additionalProperties": False,
        "$defs": {"n": {"type": "integer", "minimum": 3, "maximum": 12}},
    },
]
TAG = {"type": "tag", "begin": "<f>", "content": {"type": "regex", "pattern": "[0-9]"}, "end": "</f>"}
TAGS = {"type": "structural_tag", "format": TAG}
#: Values that stand where others should.
ODD: list[Any] = [None, True, -1, 0.5, "x", "", [], {}, [None], {"x": None}, [[]], 10**30, {"type": "x"}, "\ud800"]


class RefusedError(Exception):
    """What a request asks for is nothing that the API has: it must be 400."""


@dataclass
class Asked:
    """What the reply to a request must be."""

    #: Tools that may be called, each with its JSON Schema or the pattern of its input; None where any is right.
    tools: dict[str, Any] = field(default_factory=dict)
    required: bool = False
    several: bool = True
    #: The JSON Schema of the text; None where it is free.
    schema: Any = None
    pattern: str | None = None


def drawn(draw: random.Random, path: str) -> dict[str, Any]:
    """A good request."""
    said = {"role": "user", "content": draw.choice(["please ring", [{"type": "text", "text": "please ring"}]])}
    body: dict[str, Any] = {"messages": [said], "temperature": draw.choice([0, 1, 2]), "seed": draw.randrange(99)}
    body["chat_template_kwargs"] = {"enable_thinking": False}
    tools: list[dict[str, Any]] = []
    for name in draw.sample("fghk", draw.randint(0, 3)):
        if draw.random() < 0.4 and path != MESSAGES:
            syntax, definition, _ = draw.choice(GRAMMARS)
            tools.append({"kind": "custom", "name": name, "syntax": syntax, "definition": definition})
        else:
            tools.append({"kind": "function", "name": name, "schema": draw.choice(SCHEMAS)})
    names = [(tool["kind"], tool["name"]) for tool in tools]
    choice = draw.choice(["auto", "none", "required", "one", "some", None]) if tools else None
    one, some = draw.choice(names or [("", "")]), draw.sample(names, draw.randint(1, len(names)) if names else 0)
    mode, alone, kind = (
        draw.choice(["auto", "required"]),
        draw.random() < 0.5,
        draw.choice(["json", "tags", None, None]),
    )
    schema, strict = draw.choice(SCHEMAS), draw.choice([True, False, None])
    limit = {CHAT: "max_tokens", RESPONSE: "max_output_tokens", MESSAGES: "max_tokens"}[path]
    body[limit] = 90
    if path == MESSAGES:
        body["tools"] = [{"name": tool["name"], "input_schema": tool["schema"]} for tool in tools]
        kinds = {"auto": "auto", "none": "none", "required": "any", "one": "tool", "some": "auto"}
        if choice is not None:
            body["tool_choice"] = {"type": kinds[choice], "disable_parallel_tool_use": alone}
            body["tool_choice"] |= {"name": one[1]} if choice == "one" else {}
        if kind == "json":
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return body
    body["parallel_tool_calls"] = not alone
    body["tools"] = [_openai_tool(tool, strict, path == CHAT) for tool in tools]
    if choice in ("one", "some"):
        named = [{"type": kind, **({kind: {"name": name}} if path == CHAT else {"name": name})} for kind, name in names]
        inner = {"mode": mode, "tools": [named[names.index(each)] for each in some]}
        allowed = {"allowed_tools": inner} if path == CHAT else inner
        body["tool_choice"] = named[names.index(one)] if choice == "one" else {"type": "allowed_tools", **allowed}
    elif choice is not None:
        body["tool_choice"] = choice
    if path == RESPONSE:
        body["input"] = body.pop("messages")
        if kind == "json":
            body["text"] = {"format": {"type": "json_schema", "name": "n", "schema": schema}}
    elif kind is not None:
        whole = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
        body["response_format"] = whole if kind == "json" else TAGS
    return body


def _openai_tool(tool: dict[str, Any], strict: bool | None, nested: bool) -> dict[str, Any]:
    if tool["kind"] == "function":
        inner = {"name": tool["name"], "parameters": tool["schema"], "strict": strict}
    else:
        grammar = {"syntax": tool["syntax"], "definition": tool["definition"]}
        written = {"type": "grammar", **({"grammar": grammar} if nested else grammar)}
        inner = {"name": tool["name"], "format": written}
    return {"type": tool["kind"], **({tool["kind"]: inner} if nested else inner)}


def read(path: str, body: dict[str, Any]) -> Asked:
    """What a request asks for.

    Raises:
        RefusedError: it asks for something that is nothing.
    """
    asked = Asked()
    tools = body.get("tools") or []
    for tool in tools if isinstance(tools, list) else _refuse():
        name, rule = _tool_of(path, tool if isinstance(tool, dict) else _refuse())
        if name in asked.tools:
            _refuse()
        asked.tools[name] = rule
    _read_choice(path, body, asked)
    _read_format(path, body, asked)
    return asked


def _refuse() -> NoReturn:
    raise RefusedError


def _tool_of(path: str, tool: dict[str, Any]) -> tuple[str, Any]:
    inner: Any
    if path == MESSAGES:
        if tool.get("type") not in (None, "custom"):
            _refuse()
        rule = tool.get("input_schema")
        inner = tool
        if not isinstance(rule, dict):
            _refuse()
    else:
        kind = tool.get("type")
        inner = tool.get(kind) if path == CHAT and kind in ("function", "custom") else tool
        if kind not in ("function", "custom") or not isinstance(inner, dict):
            _refuse()
        if kind == "function":
            rule = inner.get("parameters")
            # Without parameters there are no arguments.
            rule = {"type": "object", "additionalProperties": False} if rule is None else rule
            # A schema that is `true` allows any.
            rule = {} if rule is True else rule
            if not isinstance(rule, dict):
                _refuse()
        else:
            rule = _pattern_of(path, inner.get("format"))
    name = inner.get("name")
    if not isinstance(name, str) or not name:
        _refuse()
    return name, rule


def _pattern_of(path: str, given: Any) -> str | None:
    """The pattern of a custom tool's input; None where it may be any text."""
    if given is None or given == {"type": "text"}:
        return None
    if not isinstance(given, dict) or given.get("type") != "grammar":
        _refuse()
    grammar = given.get("grammar") if path == CHAT else given
    if not isinstance(grammar, dict) or grammar.get("syntax") not in ("lark", "regex"):
        _refuse()
    syntax, definition = grammar["syntax"], grammar.get("definition")
    if not isinstance(definition, str):
        _refuse()
    if syntax == "regex":
        return definition
    return next((same for kind, text, same in GRAMMARS if (kind, text) == (syntax, definition)), None)


def _read_choice(path: str, body: dict[str, Any], asked: Asked) -> None:
    choice, known = body.get("tool_choice"), dict(asked.tools)
    if path == MESSAGES:
        if choice is None:
            return
        kind = choice.get("type") if isinstance(choice, dict) else _refuse()
        if kind not in ("auto", "any", "none", "tool"):
            _refuse()
        asked.several = choice.get("disable_parallel_tool_use") is not True
        names = [choice.get("name")] if kind == "tool" else [*known] if kind != "none" else []
        asked.required = kind in ("any", "tool")
    else:
        asked.several = body.get("parallel_tool_calls") is not False
        if choice in (None, "auto", "none", "required"):
            names, asked.required = ([] if choice == "none" else [*known]), choice == "required"
        elif not isinstance(choice, dict):
            _refuse()
        elif choice.get("type") == "allowed_tools":
            inner = choice.get("allowed_tools", choice) if path == CHAT else choice
            if not isinstance(inner, dict) or inner.get("mode") not in ("auto", "required"):
                _refuse()
            given = inner.get("tools")
            if not isinstance(given, list) or not given:
                _refuse()
            names, asked.required = [_name_of(one) for one in given], inner["mode"] == "required"
        else:
            names, asked.required = [_name_of(choice)], True
    if any(not isinstance(name, str) or name not in known for name in names) or (asked.required and not names):
        _refuse()
    asked.tools = {name: known[name] for name in names}


def _name_of(one: Any) -> Any:
    # A type that is no text counts as none: the tool that is named is held all the same.
    kind = one.get("type") if isinstance(one, dict) else _refuse()
    if isinstance(kind, str) and kind not in ("function", "custom"):
        _refuse()
    nested = [kind] if isinstance(kind, str) else ["function", "custom"]
    inner = next((one[key] for key in nested if key in one), one)
    return inner.get("name") if isinstance(inner, dict) else _refuse()


def _read_format(path: str, body: dict[str, Any], asked: Asked) -> None:
    holder = body if path == CHAT else body.get("text" if path == RESPONSE else "output_config")
    if holder is None:
        return
    given = holder.get("response_format" if path == CHAT else "format") if isinstance(holder, dict) else _refuse()
    if given is None or (given == {"type": "text"} and path != MESSAGES):
        return
    kind = given.get("type") if isinstance(given, dict) else _refuse()
    if kind == "json_schema":
        inner = given.get("json_schema") if path == CHAT else given
        # llama-server's clients write the schema beside the type.
        inner = given if inner is None else inner
        asked.schema = inner.get("schema") if isinstance(inner, dict) else _refuse()
        if not isinstance(asked.schema, dict | bool):
            _refuse()
    elif kind == "json_object" and path != MESSAGES:
        asked.schema = given.get("schema", {"type": "object"})
    elif kind == "structural_tag" and path == CHAT:
        asked.pattern = "<f>[0-9]</f>" if given == TAGS else None
        if asked.pattern is None and not isinstance(given.get("format"), dict) and "structures" not in given:
            _refuse()
    else:
        _refuse()


def reply_of(path: str, told: dict[str, Any]) -> tuple[list[tuple[str, Any]], str, bool]:
    """The calls with their arguments or inputs, the text, and whether the limit cut it off."""
    if path == CHAT:
        (choice,) = told["choices"]
        message = choice["message"]
        inner = [call[call["type"]] for call in message.get("tool_calls", [])]
        calls = [(one["name"], one["input"] if "input" in one else arguments(one["arguments"])) for one in inner]
        return calls, message["content"] or "", choice["finish_reason"] == "length"
    if path == RESPONSE:
        items = told["output"]
        texts = [part["text"] for item in items if item["type"] == "message" for part in item["content"]]
        calls = [(item["name"], arguments(item["arguments"])) for item in items if item["type"] == "function_call"]
        calls += [(item["name"], item["input"]) for item in items if item["type"] == "custom_tool_call"]
        return calls, "".join(texts), told["status"] == "incomplete"
    calls = [(block["name"], block["input"]) for block in told["content"] if block["type"] == "tool_use"]
    text = "".join(block["text"] for block in told["content"] if block["type"] == "text")
    return calls, text, told["stop_reason"] == "max_tokens"


def arguments(text: str) -> Any:
    """Arguments as an object; as text, where the limit cut them off."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def judge(path: str, asked: Asked, told: dict[str, Any]) -> str:
    """Returns what a reply is; fails unless it is what was asked for."""
    calls, text, is_cut = reply_of(path, told)
    for number, (name, given) in enumerate(calls):
        assert name in asked.tools
        rule = asked.tools[name]
        if is_cut and number + 1 == len(calls):
            continue
        if isinstance(rule, str):
            assert re.fullmatch(rule, given)
        elif rule is None:
            assert isinstance(given, str)
        else:
            assert isinstance(given, dict)
            assert not is_known(rule) or jsonschema.Draft202012Validator(rule).is_valid(given)
    assert asked.several or len(calls) <= 1
    if asked.required:
        assert calls or is_cut
        assert not text.strip()
    elif not calls and not is_cut and asked.schema is not None and is_known(asked.schema):
        jsonschema.Draft202012Validator(asked.schema).validate(json.loads(text))
    elif not calls and not is_cut and asked.pattern is not None:
        assert re.fullmatch(asked.pattern, text)
    if asked.schema is not None or asked.pattern is not None:
        assert not (calls and text.strip())
    return "calls" if calls else "text"


def is_known(schema: Any) -> bool:
    """Returns whether a schema is one that `jsonschema` can judge by."""
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError:
        return False
    return True


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*before, key)
        yield from places(one, (*before, key))


def with_another_value(draw: random.Random, good: dict[str, Any]) -> dict[str, Any]:
    """The request with a value exchanged, left out, or put in the place of another one of it."""
    body = copy.deepcopy(good)
    fields = ("tools", "tool_choice", "response_format", "text", "output_config", "parallel_tool_calls")
    all_places = [place for place in places(body) if place[0] in fields]
    if not all_places:
        return body
    *way, last = draw.choice(all_places)
    inner: Any = body
    for key in way:
        inner = inner[key]
    kind = draw.random()
    if kind < 0.15:
        del inner[last]
    elif kind < 0.35:
        other: Any = good
        for key in draw.choice(all_places):
            other = other[key]
        inner[last] = copy.deepcopy(other)
    elif kind < 0.45 and isinstance(inner, dict):
        inner[draw.choice(["type", "name", "strict", "format", "schema", "x"])] = draw.choice(ODD)
    else:
        inner[last] = draw.choice(ODD)
    return body


@pytest.fixture(scope="module")
def app() -> Iterator[InProcess]:
    with tokentrie.Model(n_ctx=1024, n_threads=1, slots=2) as model:
        app = InProcess(create_app([ServedModel("m", model, 600.0)], Settings()))
        yield app
        app.close()


@pytest.mark.filterwarnings("ignore::tokentrie.errors.TokenTrieWarning")
@pytest.mark.parametrize("path", [CHAT, RESPONSE, MESSAGES])
def test_a_reply_is_what_was_asked_for_or_400(app: InProcess, path: str) -> None:
    ends: Counter[Any] = Counter()
    for number in range(cases(900)):
        draw = random.Random(f"{SEED} {path} {number}")
        good = drawn(draw, path)
        body = good if draw.random() < 0.3 else with_another_value(draw, good)
        status, told = app.ask("POST", path, body)
        assert status in (200, 400), (number, body, told)
        try:
            asked = read(path, body)
        except RefusedError:
            assert status == 400, (number, body, told)
            ends["refused"] += 1
            continue
        if status == 400:
            assert body != good, (number, body, told)
            ends["refused for another reason"] += 1
            continue
        try:
            ends[judge(path, asked, told)] += 1
        except (AssertionError, ValueError, jsonschema.ValidationError) as error:
            raise AssertionError(f"{number}: {json.dumps(body)}\n{json.dumps(told)}\n{error!r}") from error
    print(path, dict(ends))
    assert BUDGET < 0.1 or all(ends[kind] for kind in ("refused", "calls", "text")), ends
