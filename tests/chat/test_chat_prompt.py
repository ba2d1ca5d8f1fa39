"""`Model.chat_prompt`: the model's own format, in which nobody else's text poses as a control token."""

from __future__ import annotations

import copy
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import gguf
import pytest
from budget import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from models import VOCABULARIES, copy_tiny, precise_model
from random_model import write_random_model
from tokentrie import ChatFormat, Model, TemplateError, TokenTrieError, Trie
from tokentrie.errors import ModelError, OptionError

pytestmark = pytest.mark.model

TEMPLATE = "tokenizer.chat_template"
USER = [{"role": "user", "content": "please get rid of the document"}]
SYSTEM = {"role": "system", "content": "Answer with one name."}
TOOLS: list[dict[str, Any]] = [
    {"name": "add_meeting", "description": "Create an event."},
    {
        "type": "function",
        "function": {
            "name": "erase",
            "description": "Delete a file.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "when": {"type": "string"}}},
        },
    },
]
LIST = "Tools:\nCreate an event.<|tool|>add_meeting\nDelete a file.<|tool|>erase(path, when)\n"
ASKED = "<|im_start|>user\nplease get rid of the document<|im_end|>\n"
ANSWER = "<|im_start|>assistant\n"
TYPED = {
    "name": "book",
    "description": "Book it.",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "seats": {"type": "integer"},
            "class": {"type": "string", "enum": ["low", "high"]},
            "now": {"type": "boolean"},
            "at": {},
        },
        "required": ["city", "class", "at"],
    },
}
THOUGHT: dict[str, Any] = {
    "role": "assistant",
    "content": "",
    "reasoning_content": "So.",
    "tool_calls": [{"function": {"name": "a", "arguments": {}}}, {"function": {"name": "b", "arguments": '{"x": 1}'}}],
}
CALLS = (
    '<tool_call>\n{"name": "a", "arguments": {}}\n</tool_call>\n'
    '<tool_call>\n{"name": "b", "arguments": {"x": 1}}\n</tool_call>'
)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(n_ctx=64, n_threads=1)


@pytest.fixture
def with_template(tmp_path: Path) -> Any:
    """The tiny model with another template, or without one."""

    def make(template: str | None) -> Model:
        return Model(copy_tiny("template", changes={TEMPLATE: template}), n_ctx=64, n_threads=1)

    return make


def read(model: Model, text: str) -> list[int]:
    """A prompt written by hand."""
    return model.vocab.tokenize(text, add_special=True, parse_special=True)


def control(model: Model, tokens: list[int]) -> list[int]:
    return [token for token in tokens if token in model.vocab.control]


PROMPTS: dict[str, tuple[dict[str, Any], str]] = {
    "a user": ({"messages": USER}, ASKED + ANSWER),
    "no answer yet": ({"messages": USER, "add_generation_prompt": False}, ASKED),
    "a tuple": ({"messages": tuple(USER)}, ASKED + ANSWER),
    "a system": (
        {"messages": [SYSTEM, *USER]},
        f"<|im_start|>system\nAnswer with one name.<|im_end|>\n{ASKED}{ANSWER}",
    ),
    "tools": ({"messages": USER, "tools": TOOLS}, f"<|im_start|>system\n{LIST}<|im_end|>\n{ASKED}{ANSWER}"),
    "tools and a system": (
        {"messages": [SYSTEM, *USER], "tools": TOOLS, "add_generation_prompt": False},
        f"<|im_start|>system\nAnswer with one name.\n{LIST}<|im_end|>\n{ASKED}",
    ),
    "no tools": ({"messages": USER, "tools": []}, ASKED + ANSWER),
    "a call": (
        {
            "messages": [
                *USER,
                {
                    "role": "assistant",
                    "tool_calls": [{"function": {"name": "erase", "arguments": {"path": "ü\n", "a": [1, None, True]}}}],
                },
                {"role": "tool", "content": "done"},
            ]
        },
        f'{ASKED}<|im_start|>assistant\n<tool_call>\n{{"name": "erase", "arguments": '
        '{"path": "ü\\n", "a": [1, null, true]}}\n</tool_call><|im_end|>\n'
        f"<|im_start|>tool\ndone<|im_end|>\n{ANSWER}",
    ),
    "arguments with types": (
        {"messages": USER, "tools": [TYPED]},
        "<|im_start|>system\nTools:\nBook it.<|tool|>book(city, seats?:integer, class:low|high, now?:boolean, at)\n"
        f"<|im_end|>\n{ASKED}{ANSWER}",
    ),
    "no thinking": ({"messages": USER, "enable_thinking": False}, f"{ASKED}{ANSWER}<think>\n\n</think>\n\n"),
    "thinking": ({"messages": USER, "enable_thinking": True}, ASKED + ANSWER),
    "a thought about a result": (
        {"messages": [*USER, THOUGHT, {"role": "tool", "content": "done"}]},
        f"{ASKED}{ANSWER}<think>\nSo.\n</think>\n\n{CALLS}<|im_end|>\n<|im_start|>tool\ndone<|im_end|>\n{ANSWER}",
    ),
    "an old thought": (
        {"messages": [*USER, THOUGHT, *USER]},
        f"{ASKED}{ANSWER}{CALLS}<|im_end|>\n{ASKED}{ANSWER}",
    ),
    "content before calls": (
        {"messages": [*USER, THOUGHT | {"content": "Yes.", "reasoning_content": None}]},
        f"{ASKED}{ANSWER}Yes.\n{CALLS}<|im_end|>\n{ANSWER}",
    ),
    "nothing": ({"messages": []}, ANSWER),
    "white space": (
        {"messages": [{"role": "user", "content": "  a\r\n\tb  \n"}]},
        f"<|im_start|>user\n  a\r\n\tb  \n<|im_end|>\n{ANSWER}",
    ),
}


@pytest.mark.parametrize(("arguments", "expected"), PROMPTS.values(), ids=PROMPTS)
def test_as_written_by_hand(model: Model, arguments: dict[str, Any], expected: str) -> None:
    before = copy.deepcopy(arguments)
    assert model.chat_prompt(**arguments) == read(model, expected)
    assert arguments == before


def test_a_prompt_can_be_used(model: Model) -> None:
    prompt = model.chat_prompt(USER)
    assert model.choose(prompt, ["yes", "no"]).name == model.choose(ASKED + ANSWER, ["yes", "no"]).name


FRAGMENTS = ["<|im_start|>", "<|im_end|>", "<tool_call>", "<|tool|>", "<|endoftext|>", "<", "|", "<|im_", "end|>"]
TEXTS = st.lists(st.sampled_from([*FRAGMENTS, "user\n", "ü", "\U000f0000", " "]), max_size=6).map("".join)


@settings(max_examples=cases(200), deadline=None)
@given(TEXTS, TEXTS, TEXTS)
def test_names_of_control_tokens_stay_text(system: str, name: str, user: str) -> None:
    model = precise_model("trained")
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    prompt = model.chat_prompt(messages, [{"name": name, "description": "Do it."}])
    text = (
        f"<|im_start|>system\n{system}\nTools:\nDo it.<|tool|>{name}\n<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n"
    )
    assert model.vocab.detokenize(prompt) == text + ANSWER, "nothing is lost or added"
    start, end, tool = (
        model.vocab.tokenize(one, parse_special=True)[0] for one in ("<|im_start|>", "<|im_end|>", "<|tool|>")
    )
    assert control(model, prompt) == [start, tool, end, start, end, start]


@pytest.mark.parametrize("place", ["role", "key", "value"])
def test_everywhere_in_what_is_given(with_template: Any, place: str) -> None:
    model = with_template("<|im_start|>{{ messages | tojson }}")
    name = "<|im_end|>"
    message = {"role": {"role": name}, "key": {"role": "user", name: [1]}, "value": {"x": [{"y": name}]}}[place]
    prompt = model.chat_prompt([message])
    assert name in model.vocab.detokenize(prompt)
    assert control(model, prompt) == read(model, "<|im_start|>")


@pytest.mark.parametrize("parts", [["<|im_", "end|>"], ["a <", "|im_end|> b"], ["<|im_end|", ">"]])
def test_texts_side_by_side_make_no_control_token(with_template: Any, parts: list[str]) -> None:
    """As the parts of a message with pictures."""
    model = with_template("{% for part in messages[0].content %}{{ part.text }}{% endfor %}<|im_end|>")
    prompt = model.chat_prompt([{"role": "user", "content": [{"type": "text", "text": text} for text in parts]}])
    assert model.vocab.detokenize(prompt) == "".join(parts) + "<|im_end|>"
    assert control(model, prompt) == read(model, "<|im_end|>")


@pytest.mark.parametrize(
    ("shown", "arguments"),
    [
        ("{{ value }}", '{"key": "\\u003c|im_end|\\u003e"}'),
        ("{{ value }}", '{"key": "\\u003C\\u007cim_end|>"}'),
        ("<{{ key }}>{{ value }}", '{"|im_end|": "value"}'),
        ("{{ key }}>{{ value }}", {"<|im_end|": "value"}),
        ("<|im_{{ value }}|>", {"key": "end"}),
        ("<|im_{{ value[4:] }}|>", {"key": "the end"}),
        ("{{ '<|im_%s|>' % value }}{{ '<|im_{}|>'.format(value) }}", {"key": "end"}),
        ("{{ ['<|im', value] | join('_') }}|>", {"key": "end"}),
        ("{{ '<|im_end|>' | replace('im', value) }}", {"key": "im"}),
        ("{{ value | striptags }}", {"key": "&lt;|im_end|&gt;"}),
        ("{{ value.split('-') | join }}", {"key": "<|im-_end|>"}),
        ("{{ value | lower }}", {"key": "<|IM_END|>"}),
        ("{% for one in value %}{{ one }}{% endfor %}", {"key": "<|im_end|>"}),
        ("{% set all %}<|{{ value }}|>{% endset %}{{ all | trim }}", {"key": "im_end"}),
    ],
)
def test_what_is_made_of_text_is_text(with_template: Any, shown: str, arguments: Any) -> None:
    """Decoded, joined with the template's own text, cut, put into a format: no control token comes of it."""
    model = with_template(
        "{% for key, value in messages[0].tool_calls[0].function.arguments.items() %}" + shown + "{% endfor %}<|tool|>"
    )
    call = {"function": {"name": "a", "arguments": arguments}}
    prompt = model.chat_prompt([{"role": "assistant", "tool_calls": [call]}])
    assert "<|im_end|>" in model.vocab.detokenize(prompt)
    assert control(model, prompt) == read(model, "<|tool|>")


@pytest.mark.parametrize(
    "template",
    [
        "{{ '<|im_start|>%s' % message.content }}{{ '{}<|tool|>'.format('') }}",
        "{{ ('<|im_start|>' ~ message.content ~ '<|tool|>  ') | trim }}",
        "{{ ['<|im_start|>', message.content, '<|tool|>'] | join }}",
        "{{ ('  <|im_start|>' + message.content + '<|tool|>').strip() }}",
        "{{ '<|im_start|>X<|tool|>'.replace('X', message.content) }}",
        "{{ '<|IM_START|>' | lower }}{{ message.content }}{{ '-<|tool|>'.split('-')[1] }}",
        "{% macro a(b) %}<|{{ b }}|>{% endmacro %}{{ a('im_start') }}{{ message.content }}{{ a('tool') }}",
        "{% set a %}<|im_start|>{{ message.content }}{% endset %}{{ a[:12] }}{{ a[12:] }}<|tool|>",
        "{% filter indent(2) %}<|im_start|>{{ message.content }}<|tool|>{% endfilter %}",
        "<|im_start|>{{ message.content }}{{ '<|%s|>' % ('tool' if true) }}",
        "<|im_start|>{{ message.content }}<|{{ message.role }}|>",
    ],
)
def test_what_a_template_makes_of_its_own_text_is_a_control_token(with_template: Any, template: str) -> None:
    model = with_template("{% set message = messages[0] %}" + template)
    prompt = model.chat_prompt([{"role": "tool", "content": "a<|im_end|>"}])
    assert model.vocab.detokenize(prompt) == "<|im_start|>a<|im_end|><|tool|>"
    assert control(model, prompt) == read(model, "<|im_start|><|tool|>")


@pytest.mark.parametrize("role", ["im_end", "|im_end|", "<|im_end|>"])
def test_roles_of_strangers_name_no_control_token(with_template: Any, role: str) -> None:
    """A role that is known does, since templates write `<|user|>` with it."""
    shown = "{{ message.role if '>' in message.role else '<' ~ message.role ~ '>' if '|' in message.role else"
    model = with_template("{% set message = messages[0] %}" + shown + " '<|' ~ message.role ~ '|>' }}<|tool|>")
    prompt = model.chat_prompt([{"role": role, "content": "a"}])
    assert model.vocab.detokenize(prompt) == "<|im_end|><|tool|>"
    assert control(model, prompt) == read(model, "<|tool|>")


@pytest.fixture(scope="module")
def spaced(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A model whose tokenizer puts a space before a text, as that of Llama 2."""
    folder = tmp_path_factory.mktemp("spaced")
    special, letters = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"], [chr(code) for code in range(33, 127)]
    pieces = [*special, *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *letters]
    kinds = gguf.TokenType
    writer = gguf.GGUFWriter(folder / "vocabulary.gguf", "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores([-float(rank) for rank in range(len(pieces))])
    writer.add_token_types([kinds.UNKNOWN, *[kinds.CONTROL] * 4, *[kinds.BYTE] * 256, *[kinds.NORMAL] * 95])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template("{{ bos_token }}[INST] {{ messages[0].content }} [/INST]")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    write_random_model(folder / "vocabulary.gguf", folder / "model.gguf", width=32, layers=1)
    return Model(folder / "model.gguf", n_ctx=64, n_threads=1)


def test_one_beginning_of_text(spaced: Model) -> None:
    """The template writes it, so the tokenizer does not."""
    prompt = spaced.chat_prompt([{"role": "user", "content": "hi"}])
    assert prompt == spaced.vocab.tokenize("<s>[INST] hi [/INST]", parse_special=True)
    assert control(spaced, prompt) == [1, 3, 4]


def check_inside(model: Model, text: str) -> None:
    """That a message of this text differs from one of another text in the text alone."""
    plain, prompt = (model.chat_prompt([{"role": "user", "content": content}]) for content in ("hi", text))
    assert control(model, prompt) == [1, 3, 4]
    assert 0 not in prompt
    assert model.vocab.detokenize(prompt) == model.vocab.detokenize(plain).replace("hi", text)


@pytest.mark.parametrize("text", ["  a b ", "[INST", "<s", "ü"])
def test_a_text_stays_as_it_is(spaced: Model, text: str) -> None:
    check_inside(spaced, text)


@pytest.mark.parametrize("text", ["a[INST]b", "a</s>b", "[/INST]"])
def test_no_space_is_added_to_a_text(spaced: Model, text: str) -> None:
    check_inside(spaced, text)


@pytest.mark.parametrize("text", ["a<unk>b", "<unk>"])
def test_the_unknown_token_is_no_text(spaced: Model, text: str) -> None:
    check_inside(spaced, text)


REJECTED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "text": ({"messages": "hi"}, TypeError, "messages must be a list of dict, not str"),
    "one message": ({"messages": USER[0]}, TypeError, "messages must be a list of dict, not dict"),
    "nothing": ({"messages": None}, TypeError, "messages must be a list of dict, not NoneType"),
    "a set": ({"messages": [{"role": "user", "content": {1}}]}, TypeError, "set is not JSON"),
    "bytes": ({"messages": [{"role": "user", "content": b"hi"}]}, TypeError, "bytes is not JSON"),
    "an object": ({"messages": [object()]}, TypeError, "object is not JSON"),
    "no number": ({"messages": [{"role": "user", "content": float("nan")}]}, ValueError, "messages: "),
    "too large": ({"messages": [{"role": "user", "content": float("inf")}]}, ValueError, "messages: "),
    "half a character": ({"messages": [{"role": "user", "content": "\ud800"}]}, ValueError, "messages: "),
    "tools of another type": ({"tools": "erase"}, TypeError, "tools must be a list of dict, not str"),
    "a tool that is no JSON": ({"tools": [{"name": {1}}]}, TypeError, "set is not JSON"),
    "a number as message": ({"messages": [5]}, ModelError, "the model's chat template"),
    "no role": ({"messages": [{}]}, ModelError, "the model's chat template"),
    "a tool without a name": ({"tools": [{"description": "x"}]}, ModelError, "the model's chat template"),
}


@pytest.mark.parametrize(("wrong", "error", "says"), REJECTED.values(), ids=REJECTED)
def test_rejected(model: Model, wrong: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        model.chat_prompt(**{"messages": USER, **wrong})
    assert isinstance(caught.value, TypeError | TokenTrieError)
    assert model.chat_prompt(USER) == read(model, ASKED + ANSWER)


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else []


@pytest.mark.parametrize("depth", [200, 900])
def test_deep_nesting(model: Model, depth: int) -> None:
    """Whatever becomes of it, the process lives."""
    with suppress(TokenTrieError, RecursionError):
        model.chat_prompt([{"role": "user", "content": "x", "more": nested(depth)}])
    assert model.chat_prompt(USER) == read(model, ASKED + ANSWER)


def test_an_answer_that_is_opened(model: Model) -> None:
    """What follows is chosen as after the same text: tokens may cross the boundary."""
    prefix, values = '{"name": "', ["erase", "add_meeting", "reply"]
    prompt = model.chat_prompt(USER, answer_prefix=prefix)
    text = ASKED + ANSWER + prefix
    assert prompt == read(model, text)
    opened = model.choose(prompt, values, prefix=prefix, suffix='"')
    expected = model.choose(text, values, suffix='"')
    assert list(opened.logprobs) == pytest.approx(list(expected.logprobs), abs=1e-3)
    crossing = model.choose(model.chat_prompt(USER, answer_prefix="It is "), ["blue", "red"], prefix="It is ")
    expected = model.choose(ASKED + ANSWER + "It is ", ["blue", "red"])
    assert crossing.stats.healed_bytes == expected.stats.healed_bytes == 1
    assert list(crossing.logprobs) == pytest.approx(list(expected.logprobs), abs=1e-3)
    healed = Trie.from_strings(model.vocab, values, prefix=prefix, suffix='"', heal=True)
    assert model.generate(prompt, healed).text in [value + '"' for value in values]


def test_an_opened_answer_is_plain_text(model: Model, with_template: Any) -> None:
    prompt = model.chat_prompt(USER, answer_prefix="a<|im_end|>b")
    assert control(model, prompt) == control(model, read(model, ASKED + ANSWER))
    assert model.vocab.detokenize(prompt).endswith("assistant\na<|im_end|>b")
    across = with_template("<|im_")
    prompt = across.chat_prompt(USER, answer_prefix="end|>")
    assert control(across, prompt) == []
    assert across.vocab.detokenize(prompt) == "<|im_end|>"
    with pytest.raises(OptionError, match="add_generation_prompt must be True"):
        model.chat_prompt(USER, add_generation_prompt=False, answer_prefix="x")
    with pytest.raises(OptionError, match="tools_in is not supported by chat_prompt"):
        model.chat_prompt(USER, tools_in="system")


def test_variables(with_template: Any) -> None:
    model = with_template("<|im_start|>{{ name }}{{ strftime_now('%Y') }}{{ 'deep' if enable_thinking }}")
    prompt = model.chat_prompt(USER, name="<|im_end|>", enable_thinking=True, now=datetime(2021, 1, 1))
    assert model.vocab.detokenize(prompt) == "<|im_start|><|im_end|>2021deep"
    assert control(model, prompt) == read(model, "<|im_start|>")


def test_the_template_of_a_model(model: Model, with_template: Any) -> None:
    assert model.chat_template.render(USER) == ASKED + ANSWER
    assert model.chat_template.eos == "<|im_end|>"
    with pytest.raises(ModelError, match="has no chat template"):
        _ = with_template(None).chat_template
    with pytest.raises(TemplateError, match="the model's chat template: syntax error in line 1"):
        _ = with_template("{% if %}").chat_template


def test_a_second_shape(with_template: Any) -> None:
    model = with_template("{{ messages[0].content + '' }}")
    prompt = model.chat_prompt([{"role": "user", "content": [{"type": "text", "text": "a <|im_end|>"}]}])
    assert model.vocab.detokenize(prompt) == "a <|im_end|>"
    assert control(model, prompt) == []


FAULTS = {
    "refusal": ("{{ raise_exception('no system message, please') }}", "no system message, please"),
    "syntax": ("{% if %}", "syntax error"),
    "unknown": ("{{ no_such_function() }}", "no_such_function"),
    "endless": (
        "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
        "too much in line 1",
    ),
}


@pytest.mark.parametrize(("template", "says"), FAULTS.values(), ids=FAULTS)
def test_faults_of_a_template(with_template: Any, template: str, says: str) -> None:
    model = with_template(template)
    with pytest.raises(ModelError, match=f"the model's chat template: .*{says}"):
        model.chat_prompt(USER)
    assert model.choose("Is it?", ["yes", "no"]).name in {"yes", "no"}


def test_no_template(with_template: Any) -> None:
    with pytest.raises(ModelError, match=r'template\.gguf" has no chat template'):
        with_template(None).chat_prompt(USER)


@pytest.mark.parametrize("name", [name for name in ("gpt-2", "qwen2") if name in VOCABULARIES])
def test_other_models(name: str) -> None:
    model = precise_model(name)
    if name == "gpt-2":
        with pytest.raises(ModelError, match="has no chat template"):
            model.chat_prompt(USER)
        return
    text = "<|im_start|>system\nYou are a helpful assistant<|im_end|>\n" + ASKED + ANSWER
    assert model.chat_prompt(USER) == read(model, text)
    inside = model.chat_prompt([{"role": "user", "content": "<|im_end|>"}])
    assert model.vocab.detokenize(inside) == text.replace(USER[0]["content"], "<|im_end|>")
    assert control(model, inside) == control(model, read(model, text))


def test_a_marker_beside_safe_text_stays_a_control_token() -> None:
    marked = "{% for m in messages %}{{ m.content + '[A]' + (m.content | tojson | safe) }}{% endfor %}"
    parts = ChatFormat(marked).prompt([{"role": "user", "content": "hi"}]).parts
    assert [*parts] == [("hi", False), ("[A]", True), ('"hi"', False)]
