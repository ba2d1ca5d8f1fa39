"""White space in calls: compact is what `json.dumps` writes with its usual separators, flexible has a small bound."""

from __future__ import annotations

import json
import os
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import tokentrie
from tokentrie import ChatFormat, JsonSchema, Model, Sampler, TokenTrieError, Vocab
from tokentrie.errors import OptionError

HERE = Path(__file__).parents[2]
SMALL = HERE / "crates" / "chat-format" / "tests" / "templates"
REAL = os.environ.get("TOKENTRIE_TEMPLATE_DIR")
TEMPLATES = {
    path.stem: path for folder in (SMALL, *([Path(REAL)] if REAL else [])) for path in sorted(folder.glob("*.jinja"))
}
BYTES = Vocab.from_tokens([*(bytes([byte]) for byte in range(256)), b"<eos>"], control=[256], eog=[256])
ARGUMENTS = {"place": "a, b: {c}", "deep": {"list": [1, 2.5, {"x": None}], "flag": True}, "empty": []}
TOOLS = [
    {
        "name": "ring",
        "description": "Rings.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}, "deep": {"type": "object"}, "empty": {"type": "array"}},
            "additionalProperties": False,
        },
    }
]
USER = {"role": "user", "content": "Go."}
CALL = {"id": "call00001", "type": "function", "function": {"name": "ring", "arguments": ARGUMENTS}}
#: Separators of `json.dumps`: Python's, JavaScript's, and those between.
DENSE = [(", ", ": "), (",", ":"), (", ", ":"), (",", ": ")]


def is_taken(form: ChatFormat, text: str, whitespace: Any, turn: str | None = None) -> bool:
    """Returns whether the beginning of a reply may be written."""
    constraint = form.constraint(TOOLS, BYTES, "required", generation_prompt=turn, whitespace=whitespace)
    sampler = Sampler(BYTES, constraint)
    try:
        sampler.accept([*text.encode()])
    except TokenTrieError:
        return False
    return True


def call_of(form: ChatFormat) -> tuple[str, str] | None:
    """Returns the end of a prompt and the text of a call up to its arguments, where these are JSON in one piece."""
    said = [USER, {"role": "assistant", "content": "", "tool_calls": [CALL]}]
    for thinks in (False, True):
        try:
            prompt = form.prompt([USER], TOOLS, enable_thinking=thinks)
            whole = form.render(said, TOOLS, add_generation_prompt=False)
        except TokenTrieError:
            return None
        pairs = enumerate(zip(prompt.text, whole, strict=False))
        begins = next((at for at, (one, other) in pairs if one != other), min(len(prompt.text), len(whole)))
        for separators in DENSE:
            arguments = json.dumps(ARGUMENTS, separators=separators)
            # A tag may begin like the marker of the prompt that differs.
            for start in (begins, whole.rfind("<", 0, begins + 1)):
                before, found, _ = whole[max(start, 0) :].partition(arguments)
                turn = prompt.generation_prompt
                is_call = found and is_taken(form, before + arguments, "compact", turn)
                if is_call and not is_taken(form, before + "x", "compact", turn):
                    return turn, before
    return None


@pytest.mark.parametrize("template", TEMPLATES)
def test_what_is_compact_in_each_format_and_what_is_flexible(template: str) -> None:
    form = ChatFormat(TEMPLATES[template].read_text("utf-8"), BYTES, tools_in="auto")
    if (found := call_of(form)) is None:
        pytest.skip("its arguments are no JSON in one piece")
    turn, before = found
    for separators in DENSE:
        text = before + json.dumps(ARGUMENTS, separators=separators)
        assert is_taken(form, text, "compact", turn), text
        assert is_taken(form, text, "flexible", turn), text
    plain = json.dumps(ARGUMENTS)
    for odd in (
        plain.replace("{", "{ ", 1),
        plain.replace("[1", "[ 1"),
        plain.replace("true}", "true }"),
        plain.replace('"flag":', '"flag" :'),
        plain.replace("1, 2.5", "1 , 2.5"),
        plain.replace("1, 2.5", "1,  2.5"),
        plain.replace("1, 2.5", "1,\t2.5"),
        plain.replace("1, 2.5", "1,\n2.5"),
        plain.replace('"flag": ', '"flag":        '),
        json.dumps(ARGUMENTS, indent=1),
    ):
        assert odd != plain
        # A template that writes its calls in lines gets the white space of lines.
        assert form.analysis.calls.lines or not is_taken(form, before + odd, "compact", turn), odd
        assert is_taken(form, before + odd, "flexible", turn), odd
    longer = before + plain.replace('"flag": ', '"flag":' + " " * 9)
    assert not is_taken(form, longer, "flexible", turn)


@pytest.mark.parametrize("depth", [1, 3, 6, 12])
def test_flexible_takes_indented_arguments_of_any_depth(depth: int) -> None:
    form = ChatFormat((SMALL / "json-object-in-tags.jinja").read_text("utf-8"), BYTES)
    inner: Any = [1, "a"]
    for _ in range(depth):
        inner = {"in": inner}
    call = {"name": "ring", "arguments": {"place": "x", "deep": inner}}
    text = f"<tool_call>\n{json.dumps(call, indent=2)}\n</tool_call>"
    assert is_taken(form, text, "flexible")
    assert not is_taken(form, text, "compact")
    row = next(line for line in reversed(text.splitlines()) if line.endswith('"a"'))
    assert not is_taken(form, text.replace(row, " " * 8 + row), "flexible"), "two spaces a level, and not many more"


def test_enough_formats_write_json() -> None:
    if not REAL:
        pytest.skip("only with the templates of models")
    forms = (ChatFormat(path.read_text("utf-8"), BYTES, tools_in="auto") for path in TEMPLATES.values())
    assert sum(call_of(form) is not None for form in forms) > 30


LINES = """{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls %}<call>
{
    "name": "{{ c.function.name }}",
    "arguments": {{ c.function.arguments | tojson(indent=4) }}
}
</call>{% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"""


def test_a_template_that_writes_lines_gets_lines() -> None:
    form = ChatFormat(LINES, BYTES)
    shown = form.render([USER, {"role": "assistant", "content": "", "tool_calls": [CALL]}], TOOLS)
    reply = re.search(r"<call>.*\}\n</call>", shown, re.DOTALL)
    assert reply is not None
    assert "\n" in reply[0]
    dense = ChatFormat(LINES.replace("tojson(indent=4)", "tojson").replace("\n    ", " ").replace("\n}", "}"), BYTES)
    assert is_taken(form.with_tools_in("messages"), reply[0], "compact")
    assert not is_taken(dense.with_tools_in("messages"), reply[0], "compact")
    short = '<call>\n{"name": "ring", "arguments": ' + json.dumps(ARGUMENTS)
    assert is_taken(form.with_tools_in("messages"), short, "compact")


def test_white_space_before_arguments_is_bounded() -> None:
    form = ChatFormat(LINES.replace("tojson(indent=4)", "tojson").replace("\n    ", " ").replace("\n}", "}"), BYTES)
    form = form.with_tools_in("messages")
    for whitespace, most in (("compact", 2), ("flexible", 8)):
        begun = '<call>\n{"name": "ring", "arguments":'
        assert is_taken(form, begun + " " * most + "{", whitespace)
        assert not is_taken(form, begun + " " * (most + 1), whitespace)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(n_ctx=2048, n_threads=1)


@pytest.mark.model
class TestHosts:
    def test_words(self, model: Model) -> None:
        with pytest.raises(OptionError, match='invalid whitespace: expected "compact" or "flexible", got "none"'):
            model.chat_format.constraint(TOOLS, whitespace="none")  # type: ignore[arg-type]
        with pytest.raises(OptionError, match="whitespace"):
            model.chat([USER], TOOLS, whitespace="loose")  # type: ignore[arg-type]
        constraint = model.chat_format.constraint(TOOLS, tool_choice="required", whitespace="flexible")
        assert constraint.whitespace == "flexible"
        assert constraint != model.chat_format.constraint(TOOLS, tool_choice="required")
        again = pickle.loads(pickle.dumps(constraint))
        assert (again, again.whitespace) == (constraint, "flexible")

    def test_specs(self, model: Model) -> None:
        spec = {"reply": {"tools": TOOLS, "tool_choice": "required", "whitespace": "flexible"}}
        made = tokentrie.constraint(spec, template=model.chat_format.template)
        assert made.to_dict()["reply"]["whitespace"] == "flexible"
        assert (
            "whitespace"
            not in tokentrie.constraint(
                {"reply": {"tools": TOOLS, "whitespace": "compact"}}, template=model.chat_format.template
            ).to_dict()["reply"]
        )

    @pytest.mark.model
    def test_content_of_chats(self, model: Model) -> None:
        schema = {"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 2}
        form = {"type": "json_schema", "json_schema": {"schema": schema}}
        for whitespace in ("compact", "flexible"):
            held = JsonSchema(schema, whitespace=whitespace)
            message = model.chat([USER], response_format=form, whitespace=whitespace, receipt=True, max_tokens=60)
            assert held.matches(message.content)
            assert json.loads(message.content) == [1, 1]
            checked = {"response_format": form, "whitespace": whitespace}
            tokentrie.receipts.verify_chat_receipt(message.receipt, model.chat_format, [USER], **checked)
        with pytest.raises(tokentrie.errors.ReceiptError):
            tokentrie.receipts.verify_chat_receipt(message.receipt, model.chat_format, [USER], response_format=form)
