"""Custom tools, whose input is text: what may be said of one, how templates see them, and what comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tokentrie
from test_chat_law import TEMPLATES
from tokentrie import Model, Tools
from tokentrie.errors import OptionError

ASK = [{"role": "user", "content": "please patch it"}]
LARK = 'start: "x" NUMBER\nNUMBER: /[0-9]{2}/'


def custom(**fields: Any) -> dict[str, Any]:
    return {"type": "custom", "custom": {"name": "patch", **fields}}


def grammar(syntax: str, definition: str) -> dict[str, Any]:
    return {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(n_ctx=2048, n_threads=1)


@pytest.mark.model
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize(
    ("form", "pattern"),
    [
        (grammar("lark", LARK), r"x[0-9]{2}"),
        (grammar("regex", r'say "[a-z]\\\n"'), r'say "[a-z]\\\n"'),
        ({"type": "text"}, None),
        (None, None),
    ],
)
def test_an_input_obeys_its_format(model: Model, form: Any, pattern: str | None, flat: bool) -> None:
    tool: dict[str, Any] = custom(**({} if form is None else {"format": form}))
    if flat:
        inner = tool["custom"] | ({"format": {"type": "grammar"} | form["grammar"]} if pattern else {})
        tool = {"type": "custom", **inner}
    for seed in range(4):
        drawn: dict[str, Any] = {"mode": "sampled", "temperature": 3.0, "seed": seed, "thinking_budget": 3}
        events: list[tokentrie.results.ChatEvent] = []
        message = model.chat(ASK, [tool], "patch", stream=events.append, max_tokens=80, **drawn)
        for index, call in enumerate(message.tool_calls):
            assert (call.kind, call.name, call.parsed) == ("custom", "patch", call.arguments)
            assert pattern is None or tokentrie.rules.Regex(pattern).matches(call.arguments)
            told = "".join(event.text for event in events if event.kind == "arguments" and event.index == index)
            assert told == call.arguments
        begun = [event.tool for event in events if event.kind == "call_begins"]
        assert begun == ["custom"] * len(message.tool_calls)
        messages = [*ASK, message, {"role": "tool", "content": "done"}]
        assert json.dumps(message.tool_calls[0].arguments, ensure_ascii=False)[1:-1] in model.chat_format.render(
            messages, [tool]
        )


@pytest.mark.parametrize(
    ("tool", "says"),
    [
        (custom(format={"type": "json"}), 'expected "text" or "grammar" as "type", got "json"'),
        (custom(format="text"), 'expected an object with a "type", got "text"'),
        (custom(format={"type": "text", "max": 4}), 'unknown field "max"'),
        (custom(format=grammar("ebnf", "a")), 'expected "lark" or "regex" as "syntax", got "ebnf"'),
        (custom(format=grammar("lark", 'start: "a" start | "b"')), "a rule that contains itself is not supported"),
        (custom(format=grammar("lark", "start: other")), "lark: line 1, column 8: no rule or terminal is named other"),
        (custom(format=grammar("regex", "(a")), "unclosed group"),
        (custom(format={"type": "grammar", "grammar": {"syntax": "lark"}}), 'expected a text as "definition"'),
        ({"type": "web_search", "name": "w"}, 'unknown type: expected "function" or "custom", got "web_search"'),
        ({"name": "f", "strict": 1}, 'invalid strict of tool "f": expected true or false, got 1'),
        ({"name": "f", "description": ["a"]}, 'invalid description of tool "f": expected a text'),
    ],
)
def test_what_cannot_be_held_is_refused(tool: dict[str, Any], says: str) -> None:
    with pytest.raises(OptionError) as error:
        Tools([tool])
    assert says in str(error.value)


def call_of(tool: dict[str, Any]) -> dict[str, Any]:
    if tool["type"] == "custom":
        return {"id": "a12345678", "type": "custom", "custom": {"name": "now", "input": "x"}}
    return {"id": "a12345678", "type": "function", "function": {"name": "now", "arguments": "{}"}}


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_takes_tools_that_say_little(template: str) -> None:
    form = tokentrie.ChatFormat(TEMPLATES[template].read_text("utf-8"))
    form = form if form.analysis.calls else form.with_tools_in("system")
    empty = {"type": "object", "properties": {}}
    functions = [{}, {"description": None, "parameters": None}, {"parameters": empty}, {"description": "Tell it."}]
    tools = [{"type": "function", "function": {"name": "now", **more}} for more in functions]
    for tool in [*tools, {"type": "custom", "custom": {"name": "now"}}]:
        turns = [*ASK, {"role": "assistant", "content": "", "tool_calls": [call_of(tool)]}]
        answered = [*turns, {"role": "tool", "tool_call_id": "a12345678", "content": "1"}]
        assert form.prompt(ASK, [tool]).text
        assert "now" in form.prompt(answered, [tool]).text


STRICT = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.mark.model
@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (
            STRICT | {"additionalProperties": True},
            "invalid additionalProperties: expected false, since the tool is strict",
        ),
        (STRICT | {"patternProperties": {"^x": {}}}, "invalid patternProperties: expected false"),
        ({"type": "object", "properties": {"a": STRICT | {"additionalProperties": {}}}}, '"/properties/a"'),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": r"(a)\1"}}}, "pattern"),
    ],
)
def test_a_strict_tool_is_held_as_a_whole(model: Model, schema: dict[str, Any], says: str) -> None:
    tool = {"type": "function", "function": {"name": "f", "strict": True, "parameters": schema}}
    with pytest.raises(tokentrie.RuleError) as error:
        model.chat(ASK, [tool], max_tokens=1)
    assert says in str(error.value)
    tool["function"]["strict"] = False  # type: ignore[index]
    with pytest.warns(tokentrie.errors.TokenTrieWarning) if "(a)" in str(schema) else pytest.MonkeyPatch.context():
        model.chat(ASK, [tool], max_tokens=1)


@pytest.mark.model
def test_a_strict_tool_takes_declared_arguments_alone(model: Model) -> None:
    tool = {"name": "f", "strict": True, "parameters": {"type": "object"}}
    assert model.chat(ASK, [tool], "required", thinking_budget=2, max_tokens=60).tool_calls[0].parsed == {}
    tool = {"name": "f", "strict": True, "parameters": STRICT}
    assert [*model.chat(ASK, [tool], "required", thinking_budget=2, max_tokens=60).tool_calls[0].parsed] == ["a"]


NAMES = ["a1", "b2", "c3"]


@pytest.mark.model
@pytest.mark.parametrize("mode", ["auto", "required"])
def test_only_allowed_tools_are_called_and_the_prompt_stays(model: Model, mode: str) -> None:
    tools = [{"name": name, "parameters": {"type": "object", "properties": {}}} for name in NAMES]
    allowed = [{"type": "function", "function": {"name": name}} for name in NAMES[1:]]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": allowed}}
    flat = {"type": "allowed_tools", "mode": mode, "tools": [{"type": "function", "name": name} for name in NAMES[1:]]}
    called: set[str] = set()
    for seed in range(10):
        drawn: dict[str, Any] = {"mode": "sampled", "temperature": 4.0, "seed": seed, "thinking_budget": 1}
        message = model.chat(ASK, tools, choice if seed % 2 else flat, max_tokens=60, **drawn)
        called |= {call.name for call in message.tool_calls}
        assert message.tool_calls or mode == "auto"
        assert message.stats is not None
        assert seed == 0 or message.stats.prompt_tokens_reused >= message.stats.prompt_tokens - 1
    assert called <= {"b2", "c3"}
    assert mode == "auto" or called


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"type": "allowed_tools", "allowed_tools": {"mode": "none", "tools": []}}, '"auto" or "required" as "mode"'),
        ({"type": "allowed_tools", "mode": "auto", "tools": []}, 'at least one tool in "tools"'),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp", "server_label": "x"}]}, "as a tool"),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "zz"}]}, 'unknown tool "zz"'),
        ({"type": "custom", "custom": {"name": "zz"}}, 'unknown tool "zz"'),
        ({"type": "file_search"}, '"custom" or "allowed_tools" as its type'),
    ],
)
def test_choices_that_are_none_are_refused(choice: dict[str, Any], says: str) -> None:
    with pytest.raises(OptionError) as error:
        Tools([{"name": "a1"}])._choice(choice)
    assert says in str(error.value)
