"""`ChatFormat`: rendering, reading and constraining replies in the format of a template."""

from __future__ import annotations

import copy
import json
import os
import pickle
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
import tokentrie
from models import copy_tiny
from support import vocabulary_files
from tokentrie import (
    Batch,
    ChatFormat,
    ChatTemplate,
    Form,
    Message,
    Model,
    RuleError,
    Sampler,
    Slot,
    TemplateError,
    Text,
    Tools,
    Vocab,
)
from tokentrie.chat import ChatConstraint
from tokentrie.errors import OptionError, TokenTrieWarning, VocabularyError
from tokentrie.integrations.logits import LogitsConstraint
from tokentrie.results import ToolCall
from tokentrie.rules import ThinkGate

pytestmark = pytest.mark.model

HERE = Path(__file__).parents[2]
TEMPLATES = Path(os.environ.get("TOKENTRIE_TEMPLATE_DIR") or HERE.parent / "shared" / "templates")
CASES = Path(os.environ.get("TOKENTRIE_CASES_DIR") or HERE.parent / "shared" / "cases") / "chat_format.json"
SMALL = HERE / "crates" / "chat-format" / "tests" / "templates"

TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls %}<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
RING = {
    "name": "ring",
    "description": "Rings the bell.",
    "parameters": {
        "type": "object",
        "properties": {"tone": {"enum": ["low", "high"]}, "times": {"type": "integer"}, "loud": {"type": "boolean"}},
        "required": ["tone"],
        "additionalProperties": False,
    },
}
STOP = {"type": "function", "function": {"name": "stop", "parameters": {"type": "object", "properties": {}}}}
TOOLS = [RING, STOP]
CALL = '<call>{"name": "ring", "arguments": {"tone": "low", "times": 2}}</call>'
USER = {"role": "user", "content": "Ring the bell."}


def all_bytes(*control: str) -> Vocab:
    """Each byte is a token, and so are some markers."""
    pieces = [bytes([byte]) for byte in range(256)] + [b"<|end|>"] + [text.encode() for text in control]
    return Vocab.from_tokens(pieces, eog=[256], control=list(range(256, len(pieces))))


BYTES = all_bytes()


@pytest.fixture(scope="module")
def form() -> ChatFormat:
    return ChatFormat(TEMPLATE, BYTES)


class TestReading:
    def test_a_whole_reply(self, form: ChatFormat) -> None:
        message = form.parse("<think>A bell.</think>Ding." + CALL, TOOLS)
        assert (message.reasoning, message.content) == ("A bell.", "Ding.")
        assert message.tool_calls == [ToolCall("", "ring", '{"tone": "low", "times": 2}')]
        assert message.tool_calls[0].parsed == {"tone": "low", "times": 2}
        assert (message.finish, message.stats) == (None, None)
        assert form.parse(b"<think>A bell.</think>Ding." + CALL.encode(), TOOLS) == message

    def test_no_tools_are_not_any_tools(self, form: ChatFormat) -> None:
        assert [call.name for call in form.parse(CALL).tool_calls] == ["ring"]
        none = form.parse(CALL, [])
        assert (none.tool_calls, none.content) == ([], CALL)
        assert form.parse(CALL, TOOLS, tool_choice="none").tool_calls == []

    def test_reasoning_formats(self, form: ChatFormat) -> None:
        text = "<think>A bell.</think>Ding."
        assert form.parse(text, reasoning_format="deepseek") == form.parse(text)
        assert form.parse(text, reasoning_format="none").content == text
        with pytest.raises(OptionError, match=r"reasoning_format is 'x'|reasoning_format is \"x\""):
            form.parse(text, reasoning_format="x")  # type: ignore[arg-type]

    @pytest.mark.parametrize("size", [1, 2, 7, 1000])
    def test_events_are_the_message(self, form: ChatFormat, size: int) -> None:
        text = "<think>Ä bell.</think>Ding." + CALL + CALL
        parser, data = form.parser(TOOLS), text.encode()
        events = [event for at in range(0, len(data), size) for event in parser.push(data[at : at + size])]
        message = parser.finish()
        events += parser.last_events
        assert added(events) == message == form.parse(text, TOOLS)
        assert parser.message == message == parser.finish()
        assert events[-1].kind == "message_ends"
        with pytest.raises(OptionError, match="finished"):
            parser.push("x")

    def test_events_match(self, form: ChatFormat) -> None:
        told = []
        for event in form.parser(TOOLS).push("Ding." + CALL):
            match event:
                case tokentrie.results.ChatEvent("content", text):
                    told.append(text)
                case tokentrie.results.ChatEvent("call_begins", name=name, index=index):
                    told.append(f"{index}: {name}")
        assert told == ["Ding.", "0: ring"]

    def test_a_cut_reply(self, form: ChatFormat) -> None:
        message = form.parse('Ding.<call>{"name": "ring", "argum', TOOLS, partial=True)
        assert message.content == "Ding."
        assert form.parse("Ding.<ca", TOOLS, partial=True).content == "Ding."
        assert form.parse("Ding.<ca", TOOLS).content == "Ding.<ca"

    @pytest.mark.parametrize("partial", [False, True])
    def test_an_unfinished_call_leaves_nothing_behind(self, form: ChatFormat, partial: bool) -> None:
        for end in range(CALL.index(', "times"'), len(CALL)):
            message = form.parse("Ding." + CALL[:end], TOOLS, partial=partial)
            assert (message.content, [call.name for call in message.tool_calls]) == ("Ding.", ["ring"])

    @pytest.mark.parametrize("wrong", [5, None])
    def test_what_is_no_text(self, form: ChatFormat, wrong: Any) -> None:
        with pytest.raises(TypeError, match="must be str or bytes"):
            form.parse(wrong)

    def test_tokens_are_read_as_the_constraint_reads_them(self, form: ChatFormat) -> None:
        text = b"<think>a</think>b"
        pieces = [bytes([byte]) for byte in range(256)] + [b"<think>", b"</think>", b"<end>"]
        vocab = Vocab.from_tokens(pieces, eog=[258], control=[256, 257, 258])
        template = (
            "{% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}"
            "</think>{% endif %}{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
        )
        over = ChatFormat(template, vocab)
        assert (over.parse(text).reasoning, over.parse(text).content) == ("a", "b")
        tokens = [256, *b"a</think>c", 257, *b"b", 258, *b"behind the end"]
        message = over.parse(tokens)
        assert (message.reasoning, message.content) == ("a</think>c", "b")
        assert over.parse(list(text)).content == text.decode(), "no marker is a control token there"
        for size in (1, 2, 7, 100):
            parser = over.parser()
            events = [one for at in range(0, len(tokens), size) for one in parser.push(tokens[at : at + size])]
            assert parser.finish() == message
            assert added([*events, *parser.last_events]) == message
        assert parser.message == message
        parser = over.parser()
        for wrong, error in ([65, 300], VocabularyError), (["x"], TypeError), (5, TypeError):
            with pytest.raises(error):
                parser.push(wrong)  # type: ignore[arg-type]
        assert parser.push([]) == []
        assert parser.push(list(b"ab")) == parser.push(np.frombuffer(b"ab", np.uint8).astype(np.int32)), "it goes on"
        with pytest.raises(OptionError, match="a reply in tokens is not continued in text: give all of its parts as"):
            parser.push("text")
        assert parser.finish().content == "abab"
        parser = over.parser()
        parser.push("<think>a")
        with pytest.raises(OptionError, match="a reply in text is not continued in tokens"):
            parser.push([257])
        parser.push("</think>b")
        assert (parser.finish().reasoning, parser.message.content) == ("a", "b")
        with pytest.raises(OptionError, match="a reply in tokens is not supported: this format has no vocabulary"):
            ChatFormat(template).parser().push([65])
        with pytest.raises(TypeError, match="position 0: a token id must be an integer, not 'x'"):
            over.parse(["x"])
        with pytest.raises(VocabularyError, match="position 1: token id 300 is outside the vocabulary of 259 tokens"):
            over.parse([65, 300])
        with pytest.raises(OptionError, match="a reply in tokens is not supported: this format has no vocabulary"):
            ChatFormat(template).parse([65])

    def test_invalid_bytes_are_no_error(self, form: ChatFormat) -> None:
        assert form.parse(b"Ding \xff\xfe dong").content == "Ding \ufffd\ufffd dong"


def added(events: list[tokentrie.results.ChatEvent]) -> Message:
    """The message that events make."""
    content, reasoning, said = "", "", []
    calls: list[list[str]] = []
    for event in events:
        match event.kind:
            case "content":
                content += event.text
            case "reasoning":
                reasoning += event.text
            case "call_begins":
                assert event.index == len(calls)
                calls.append([event.id, event.name, ""])
            case "arguments":
                calls[event.index or 0][2] += event.text
            case "call_ends":
                calls[event.index or 0][0] = event.id
            case "warning":
                said.append(event.text)
    return Message(content, reasoning, [ToolCall(id, name, text) for id, name, text in calls], said)


class TestRendering:
    def test_messages_of_a_model_go_on(self, form: ChatFormat) -> None:
        message = form.parse("<think>A bell.</think>Ding." + CALL, TOOLS)
        result = {"role": "tool", "content": "rung"}
        one = form.render([USER, message, result])
        assert one == form.render([USER, message.to_dict(), result])
        assert "<think>A bell.</think>Ding." + CALL in one
        assert one.endswith("<|tool|>rung<|end|>\n<|assistant|>")

    def test_prompts(self, form: ChatFormat) -> None:
        prompt = form.prompt([USER])
        assert prompt.text == form.render([USER])
        assert prompt.generation_prompt == "<|assistant|>"
        begun = form.prompt([USER, {"role": "assistant", "content": "Ding"}], continue_final_message="content")
        assert begun.generation_prompt == "<|assistant|>Ding"
        assert form.parse(" dong", generation_prompt=begun.generation_prompt).content == "Ding dong"
        with pytest.raises(OptionError, match="continue_final_message"):
            form.prompt([USER], continue_final_message="x")  # type: ignore[arg-type]

    def test_variables(self) -> None:
        form = ChatFormat("{% for m in messages %}{{ m.content }}{% endfor %}{{ mood }}{{ enable_thinking }}")
        assert form.render([USER], mood="!", enable_thinking=False) == "Ring the bell.!False"

    @pytest.mark.parametrize(
        ("messages", "said"),
        [
            ([{"role": "usr", "content": "x"}], 'messages.0.: the role "usr" is unknown .* did you mean "user"'),
            ([USER, {"content": "x"}], 'messages.1.: it has no "role"'),
            ([{"role": 5, "content": "x"}], "the role is 5"),
            ([{"role": "user", "content": {"text": "x"}}], "the content is .* must be a str or a list of parts"),
            ([{"role": "user", "content": [{"text": "x"}]}], 'a part of the content has no "type"'),
            ([{"role": "user", "content": ["x"]}], 'a part of the content has no "type"'),
            ([{"role": "user", "content": [{"type": "text"}]}], 'a part of the content has no "text"'),
            (
                [{"role": "user", "content": [{"type": "text", "text": 3}]}],
                "the text of a part .* is 3: it must be a str",
            ),
            ([{"role": "tool", "content": {"a": 1}}], "json.dumps"),
            ([{"role": "assistant", "content": "", "tool_calls": [{"id": "x"}]}], "tool_calls.0. has no name"),
            ([{"role": "assistant", "content": "", "tool_calls": "x"}], "must be a list"),
        ],
    )
    def test_messages_of_other_shapes(self, form: ChatFormat, messages: Any, said: str) -> None:
        with pytest.raises(OptionError, match=said):
            form.render(messages)
        with pytest.raises(OptionError, match=said):
            form.prompt(messages)

    @pytest.mark.parametrize("messages", ["x", {"role": "user"}, [5], ["x"], [{"role": "user", "content": {1}}]])
    def test_what_is_no_list_of_messages(self, form: ChatFormat, messages: Any) -> None:
        with pytest.raises(TypeError):
            form.render(messages)

    def test_a_role_that_the_template_knows(self) -> None:
        form = ChatFormat("{% for m in messages %}{% if m.role == 'critic' %}!{% endif %}{{ m.content }}{% endfor %}")
        assert form.render([{"role": "critic", "content": "x"}]) == "!x"

    def test_arguments_as_the_template_takes_them(self, form: ChatFormat) -> None:
        """Text that is given to `tojson` would be quoted."""
        text = form.render([USER, form.parse(CALL)])
        assert CALL in text


class TestFormat:
    def test_templates_in_both_kinds(self) -> None:
        template = ChatTemplate(TEMPLATE, "<s>", "</s>")
        assert ChatFormat(template) == ChatFormat(TEMPLATE, bos="<s>", eos="</s>") != ChatFormat(TEMPLATE)
        assert ChatFormat(template).template == template
        with pytest.raises(OptionError, match="bos and eos"):
            ChatFormat(template, bos="<s>")
        with pytest.raises(TypeError, match="template must be a str or a ChatTemplate"):
            ChatFormat(5)  # type: ignore[arg-type]
        with pytest.raises(TemplateError, match="line 1"):
            ChatFormat("{% if %}")
        with pytest.raises(TemplateError, match="no chats"):
            ChatFormat("{{ raise_exception('no chats') }}")

    def test_analysis(self, form: ChatFormat) -> None:
        found = form.analysis
        assert (found.reasoning.mode, found.reasoning.start, found.reasoning.end) == ("optional", "<think>", "</think>")
        assert found.content.mode == "plain"
        assert found.calls is not None
        assert (found.calls.function, found.calls.arguments) == ("json-object", "json")
        assert found.generation_prompts.thinking == "<|assistant|>"
        assert found.turns.user.strip() == "<|user|>"
        assert found.capabilities.tool_calls
        assert "<call>" in "".join(found.triggers)
        assert found.degraded is None
        assert found.warnings == found.families == []
        assert form.analysis is found
        assert pickle.loads(pickle.dumps(found)) == found == copy.deepcopy(found)
        assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
        assert ChatFormat("{% for m in messages %}{{ m.content }}{% endfor %}").analysis.calls is None
        assert len(repr(found)) < 120

    @pytest.mark.skipif(not SMALL.is_dir(), reason="only a checkout has the small templates")
    def test_small_templates_are_read_back(self) -> None:
        for path in sorted(SMALL.glob("*.jinja")):
            form = ChatFormat(path.read_text(encoding="utf-8"))
            assert form.analysis.to_dict(), path.name
            message = form.parse("Ding.")
            assert "Ding." in message.content + message.reasoning, path.name


class TestTools:
    def test_definitions_of_all_kinds(self) -> None:
        def chime(tone: Literal["low", "high"], times: int = 1, *, names: list[str] | None = None) -> str:
            """Chimes.

            And nothing else.

            Args:
                tone: how high.
                times (int): how often,
                    at most ten.

            Returns:
                What one hears.
            """
            return tone * times

        tools = Tools([RING, STOP, chime])
        assert tools.names == ["ring", "stop", "chime"]
        assert len(tools) == 3
        assert "ring" in tools
        assert tools.functions == {"chime": chime}
        ring, stop, chimes = (definition["function"] for definition in tools.definitions)
        assert (ring, stop) == (RING, STOP["function"])
        assert chimes["description"].startswith("Chimes.\n\nAnd nothing else.")
        schema = chimes["parameters"]
        assert schema["required"] == ["tone"]
        assert schema["properties"]["tone"]["enum"] == ["low", "high"]
        assert schema["properties"]["tone"]["description"] == "how high."
        assert schema["properties"]["times"]["description"] == "how often, at most ten."
        assert schema["additionalProperties"] is False
        assert Tools(tools) == tools
        assert repr(tools) == "<tokentrie.Tools of 3 tools: ring, stop, chime>"

    def test_a_function_without_anything(self) -> None:
        def now():  # type: ignore[no-untyped-def]
            return "now"

        definition = Tools([now]).definitions[0]["function"]
        assert definition["name"] == "now"
        assert definition["parameters"]["properties"] == {}

    def test_annotated_and_param_lists(self) -> None:
        def one(a: Annotated[int, "a number"], b: str = "x") -> None:
            """Takes them.

            :param str b: a text
            """

        properties = Tools([one]).definitions[0]["function"]["parameters"]["properties"]
        assert properties["a"]["description"] == "a number"
        assert properties["b"]["description"] == "a text"

    @pytest.mark.parametrize("without", [False, True])
    def test_without_pydantic(self, without: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        if without:
            monkeypatch.setattr(tokentrie.schemas, "_adapter", lambda cls: None)
        else:
            pytest.importorskip("pydantic")

        def chime(tone: Literal["low", "high"], times: int = 1, loud: bool | None = None) -> str:
            return f"{tone} {times} {loud}"

        schema = Tools([chime]).definitions[0]["function"]["parameters"]
        assert schema["properties"]["tone"]["enum"] == ["low", "high"]
        assert schema["required"] == ["tone"]
        assert "$ref" not in schema
        call = ToolCall("", "chime", '{"tone": "low", "loud": true}')
        assert tokentrie.tools.run(chime, call) == "low 1 True"

    @pytest.mark.parametrize(
        ("tools", "said"),
        [
            ([RING, RING], 'tools 0 and 1 are both named "ring"'),
            ([{}], "tool 0 has no name"),
            ([{"type": "function", "function": {"description": "x"}}], "has no name"),
            ([{"name": "ring", "parameters": []}], "must be a JSON Schema"),
        ],
    )
    def test_tools_that_cannot_be(self, tools: Any, said: str) -> None:
        with pytest.raises(OptionError, match=said):
            Tools(tools)

    @pytest.mark.parametrize("tools", [5, "ring", {"name": "ring"}, [5], [int], [lambda x: x]])
    def test_what_is_no_tool(self, tools: Any) -> None:
        with pytest.raises(TypeError):
            Tools(tools)

    def test_functions_that_take_what_has_no_name(self) -> None:
        def many(*values: int) -> None: ...

        def first(value: int, /) -> None: ...

        for function in (many, first):
            with pytest.raises(TypeError, match="cannot be given by name"):
                Tools([function])


class TestConstraint:
    def test_calls_become_right(self, form: ChatFormat) -> None:
        sampler = Sampler(BYTES, form.constraint(TOOLS))
        sampler.accept(list(b'Ding.<call>{"name": "'))
        assert bytes(sampler.allowed().tolist()) == b"rs"
        sampler.accept(list(b"r"))
        assert bytes(sampler.forced().tolist()).startswith(b'ing"')
        with pytest.raises(tokentrie.TokenNotAllowedError):
            sampler.accept(list(b"x"))

    def test_required_and_named(self, form: ChatFormat) -> None:
        for choice, name in (("stop", b"stop"), ({"type": "function", "function": {"name": "ring"}}, b"ring")):
            sampler = Sampler(BYTES, form.constraint(TOOLS, tool_choice=choice))
            assert ord("D") not in sampler.allowed()
            assert 256 not in sampler.allowed()
            sampler.accept(list(b'<call>{"name": "'))
            assert bytes(sampler.forced().tolist()).startswith(name)

    def test_required_does_not_end_in_reasoning(self, form: ChatFormat) -> None:
        sampler = Sampler(BYTES, form.constraint(TOOLS, tool_choice="required"))
        sampler.accept(list(b"<think>Well"))
        assert ord("x") in sampler.allowed()
        assert 256 not in sampler.allowed()
        with pytest.raises(tokentrie.TokenNotAllowedError):
            sampler.accept(256)

    def test_none_never_calls(self, form: ChatFormat) -> None:
        sampler = Sampler(BYTES, form.constraint(TOOLS, tool_choice="none"))
        sampler.accept(list(b"Ding.<call"))
        allowed = set(sampler.allowed().tolist())
        assert ord(">") not in allowed or form.parse(CALL, TOOLS, tool_choice="none").tool_calls == []

    def test_parallel(self, form: ChatFormat) -> None:
        several = Sampler(BYTES, form.constraint(TOOLS, parallel_tool_calls=True))
        several.accept(list(CALL.encode() + b'<call>{"name": "st'))
        one = Sampler(BYTES, form.constraint(TOOLS))
        one.accept(list(CALL.encode()))
        with pytest.raises(tokentrie.TokenNotAllowedError):
            one.accept(list(b'<call>{"name": "st'))

    def test_a_budget_closes_reasoning(self, form: ChatFormat) -> None:
        sampler = Sampler(BYTES, form.constraint(TOOLS, thinking_budget=3))
        sampler.accept(list(b"<think>abc"))
        assert bytes(sampler.forced().tolist()) == b"</think>"
        sampler.accept(sampler.forced())
        sampler.accept(list(b"Ding." + CALL.encode()))
        unlimited = Sampler(BYTES, form.constraint(TOOLS))
        unlimited.accept(list(b"<think>abcdef"))

    def test_every_face_takes_it(self, form: ChatFormat) -> None:
        constraint, vocab = form.constraint(TOOLS), BYTES
        text = list(b'<call>{"name": "s')
        batch = Batch(constraint, rows=2, vocab=vocab)
        for token in text:
            batch.accept([token, token])
        assert batch.allowed(1).tolist() == [ord("t")]
        gate = ThinkGate([1], [2], then=constraint, vocab=vocab)
        gate.accept([5, 2, *text])
        assert gate.allowed().tolist() == [ord("t")]
        logits = np.zeros(len(vocab), dtype=np.float32)
        sampler = Sampler(vocab, constraint)
        sampler.accept(text)
        sampler.apply(logits)
        assert np.isfinite(logits).sum() == 1
        assert Sampler(len(vocab), constraint).allowed().size > 200
        processor = LogitsConstraint(vocab, constraint, prompt=0)
        assert np.isfinite(processor(np.array(text), np.zeros(len(vocab), dtype=np.float32))).sum() == 1
        with pytest.raises(TypeError, match="cannot stand in a slot"):
            Form("x", Slot("call", constraint))  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="in a form needs a Vocab"):
            Text("reply", pattern=ChatFormat(TEMPLATE).constraint(TOOLS))
        with pytest.raises(OptionError, match="leave stop out"):
            Text("reply", stop="x", pattern=constraint)
        with pytest.raises(OptionError, match="stop is missing"):
            Text("reply")
        alone = Sampler(vocab, constraint).allowed()
        assert Sampler(vocab, tokentrie.rules.Sequence(constraint)).allowed().tolist() == alone.tolist()

    def test_without_a_vocabulary(self) -> None:
        form = ChatFormat(TEMPLATE)
        constraint = form.constraint(TOOLS)
        assert constraint.vocab is None
        with pytest.raises(TypeError, match="needs a Vocab"):
            Sampler(300, constraint)
        assert Sampler(all_bytes(), constraint).allowed().size > 200
        other = all_bytes("<call>")
        sampler = Sampler(other, constraint)
        sampler.accept(257)
        assert set(sampler.allowed().tolist()) - set(b"\t\n\x0b\x0c\r ") == {ord("{")}

    @pytest.mark.parametrize(
        ("tools", "choice", "error", "said"),
        [
            (TOOLS, "rin", OptionError, 'unknown tool "rin" in tool_choice: did you mean "ring"'),
            (TOOLS, "requird", OptionError, 'did you mean "required"'),
            ([], "required", OptionError, "a call is required, and there are no tools"),
            ([{"name": 'a"b'}], "auto", OptionError, "cannot be called in this format"),
            ([{"name": "x", "parameters": {"enum": []}}], "auto", RuleError, 'the parameters of tool "x"'),
        ],
    )
    def test_what_cannot_be_constrained(
        self, form: ChatFormat, tools: Any, choice: str, error: type[Exception], said: str
    ) -> None:
        with pytest.raises(error, match=said):
            form.constraint(tools, tool_choice=choice)

    def test_a_template_without_calls(self) -> None:
        form = ChatFormat("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
        form.constraint(TOOLS)
        with pytest.raises(OptionError, match=r'renders no calls.*tools_in="system"'):
            form.constraint(TOOLS, tool_choice="required")
        with pytest.raises(TypeError, match="tool_choice must be"):
            form.constraint(TOOLS, tool_choice=5)  # type: ignore[arg-type]

    @pytest.mark.parametrize("first", ["system", "user"])
    def test_tools_that_no_template_shows_are_told_of(self, first: str) -> None:
        text = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
        no_system = "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}" + text
        asked = [{"role": "system", "content": "Be brief."}] * (first == "system") + [
            {"role": "user", "content": "Go."}
        ]
        call = {"id": "1", "type": "function", "function": {"name": "ring", "arguments": '{"times": 2}'}}
        said = [
            *asked,
            {"role": "assistant", "content": "Ding.", "tool_calls": [call]},
            {"role": "tool", "content": "rang"},
            {"role": "tool", "content": "again"},
        ]
        for template in (text, no_system):
            form = ChatFormat(template, all_bytes(), tools_in="system")
            assert form.tools_in == "system"
            prompt = form.render(said, TOOLS)
            for name in ("ring", "stop"):
                assert f'"name": "{name}"' in prompt
            assert "within <tool_call></tool_call> XML tags:\n<tool_call>\n" in prompt
            assert '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>' in prompt
            assert 'Ding.<tool_call>\n{"name": "ring", "arguments": {"times": 2}}\n</tool_call>' in prompt
            results = "<tool_response>\nrang\n</tool_response>\n<tool_response>\nagain\n</tool_response>"
            assert f"user: {results}\n" in prompt
            assert ("Be brief.\n\n# Tools" in prompt) == (first == "system")
            assert prompt.count("# Tools") == 1
            assert "# Tools" not in form.render(said)
            assert "# Tools" not in form.with_tools_in("messages").render(said, TOOLS)
            other = pickle.loads(pickle.dumps(form))
            assert other == form != form.with_tools_in("template")
            assert other.render(said, TOOLS) == prompt

    def test_a_template_that_writes_calls_is_told_of_tools_in_its_own_format(self) -> None:
        form = ChatFormat(TEMPLATE, all_bytes(), tools_in="system")
        prompt = form.render([{"role": "user", "content": "Go."}], TOOLS)
        assert '<call>{"name": <function-name>, "arguments": <args-json-object>}</call>' in prompt
        assert prompt.count('"name": "stop"') == 1

    def test_keywords_that_are_not_held_are_warned_of_once(self) -> None:
        form = ChatFormat(TEMPLATE, all_bytes())
        repeated = {"type": "string", "pattern": r"(a)\1"}
        odd = [{"name": "x", "parameters": {"type": "object", "properties": {"a": repeated}}}]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            constraint = form.constraint(odd)
            form.constraint(list(odd))
        assert [warning.category for warning in caught] == [TokenTrieWarning] * len(constraint.warnings)
        assert constraint.warnings
        assert 'tool "x"' in str(caught[0].message)

    @pytest.mark.alone
    def test_tools_are_found_again(self, form: ChatFormat) -> None:
        """Three hundred tools: the second time costs microseconds, the first milliseconds."""
        tools = Tools([{**RING, "name": f"tool_{number}"} for number in range(300)])
        first = timed(lambda: form.constraint(tools))
        best = min(timed(lambda: form.constraint(tools)) for _ in range(200))
        assert best < first / 50

    def test_what_it_is(self, form: ChatFormat) -> None:
        constraint = form.constraint(TOOLS, None, "ring", True, "<|assistant|>", thinking_budget=9)
        assert (constraint.tool_choice, constraint.parallel_tool_calls) == ("ring", True)
        assert (constraint.generation_prompt, constraint.thinking_budget) == ("<|assistant|>", 9)
        assert constraint.tools.names == ["ring", "stop"]
        assert constraint == form.constraint(Tools(TOOLS), None, "ring", True, "<|assistant|>", thinking_budget=9)
        assert constraint != form.constraint(TOOLS)

    def test_names_in_the_tokenizers_own_tokens(self) -> None:
        """By default; whoever reads takes any spelling."""
        model = tokentrie.Model()
        form, begun = model.chat_format, '<tool_call>\n{"name": "'
        tools = [{"name": name} for name in ("get_weather", "weather_forecast")]
        of = {spelling: form.constraint(tools, spelling=spelling) for spelling in ("canonical", "any")}
        assert [one.spelling for one in of.values()] == list(of)
        assert of["canonical"] == form.constraint(tools) != of["any"]
        assert pickle.loads(pickle.dumps(of["any"])) == of["any"]
        specs = {spelling: json.loads(tokentrie.constraint(one).to_json()) for spelling, one in of.items()}
        assert [spec["reply"].get("spelling") for spec in specs.values()] == [None, "any"]
        assert tokentrie.constraint(specs["any"]) == tokentrie.constraint(of["any"])
        before = model.vocab.tokenize(begun, parse_special=True)

        def first(constraint: ChatConstraint) -> set[int]:
            sampler = Sampler(model.vocab, constraint)
            sampler.accept(before)
            return {int(token) for token in sampler.allowed()}

        whole = [model.vocab.tokenize(begun + tool["name"], parse_special=True) for tool in tools]
        assert first(of["canonical"]) == {tokens[len(before)] for tokens in whole} < first(of["any"])
        letters = [*b'<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>']
        spelled = [token for letter in letters for token in model.vocab.prefix_tokens(bytes([letter]))[:1]]
        assert form.parse(spelled, tools).tool_calls[0].name == "get_weather"
        with pytest.raises(OptionError, match='invalid spelling: expected "canonical" or "any", got "all"'):
            form.constraint(tools, spelling="all")


def timed(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def cases() -> Iterator[dict[str, Any]]:
    yield from json.loads(CASES.read_text(encoding="utf-8"))["cases"]


@pytest.fixture(scope="module")
def formats() -> Any:
    """Formats by the name of their template, and the tools of a case."""
    if not CASES.is_file() or not TEMPLATES.is_dir():
        pytest.skip("TOKENTRIE_CASES_DIR and TOKENTRIE_TEMPLATE_DIR name no folders with chat_format.json, templates")
    known: dict[str, ChatFormat] = {}
    offered = json.loads(CASES.read_text(encoding="utf-8"))["tools"]

    def made(case: dict[str, Any]) -> tuple[ChatFormat, Tools]:
        name = case["template"]
        if name not in known:
            known[name] = ChatFormat((TEMPLATES / name).read_text(encoding="utf-8"))
        return known[name], Tools([offered[tool] for tool in case["options"].get("tools") or []])

    return made


def keywords(case: dict[str, Any]) -> dict[str, Any]:
    options = case["options"]
    return {
        "generation_prompt": case["generation_prompt"],
        "tool_choice": options.get("tool_choice") or "auto",
        "reasoning_format": options.get("reasoning_format") or "auto",
        "json_content": bool(options.get("json_schema")),
    }


class TestCases:
    """Outputs of real models, where their folder is there. Whether all are read rightly, the crate's tests say."""

    def test_messages(self, formats: Any) -> None:
        wrong, count = [], 0
        for case in cases():
            form, tools = formats(case)
            partial, wanted = bool(case.get("is_partial")), case["expected"]
            message = form.parse(case["model_output"], tools, partial=partial, **keywords(case))
            count += 1
            same = message.content.strip() == (wanted.get("content") or "").strip()
            same &= message.reasoning.strip() == (wanted.get("reasoning_content") or "").strip()
            same &= [call.name for call in message.tool_calls] == [call["name"] for call in wanted["tool_calls"]]
            for call, other in zip(message.tool_calls, wanted["tool_calls"], strict=False):
                with_json = partial or call.parsed == json.loads(other["arguments"])
                same &= with_json and call.id == (other.get("id") or "")
            if not same:
                wrong.append(case["id"])
        assert count > 400
        assert len(wrong) <= count // 50, wrong

    def test_streams(self, formats: Any) -> None:
        for case in list(cases())[::25]:
            form, tools = formats(case)
            parser = form.parser(tools, **keywords(case))
            output = case["model_output"].encode()
            events = [event for byte in output for event in parser.push(bytes([byte]))]
            message = parser.finish(partial=bool(case.get("is_partial")))
            assert added(events + parser.last_events) == message, case["id"]


@pytest.fixture(scope="module", params=[path.name for path in vocabulary_files()])
def vocab(request: pytest.FixtureRequest) -> Vocab:
    return Vocab.from_gguf(next(path for path in vocabulary_files() if path.name == request.param))


@pytest.mark.skipif(not vocabulary_files(), reason="TOKENTRIE_VOCAB_DIR names no folder with GGUF files")
class TestTokens:
    """The constraint over the tokens of real vocabularies."""

    def test_names_are_exact(self, vocab: Vocab) -> None:
        """Where a name begins exactly the tokens may come that are a beginning of a name and what follows it."""
        names = ["get_weather", "get_time", "search", "send"]
        form = ChatFormat(TEMPLATE, vocab)
        tools = [{"name": name, "parameters": {"type": "object", "properties": {}}} for name in names]
        sampler = Sampler(vocab, form.constraint(tools, tool_choice="required", spelling="any"))
        sampler.accept(spelled(vocab, '<call>{"name": "'))
        allowed = set(sampler.allowed().tolist())
        texts = [vocab[token] for token in allowed]
        assert all(any((name + '"').encode().startswith(text[: len(name) + 1]) for name in names) for text in texts)
        whole = {name.encode()[:end] for name in names for end in range(1, len(name) + 1)}
        plain = {
            token for token in range(len(vocab)) if vocab[token] in whole and vocab.kind(token) in ("text", "byte")
        }
        assert plain <= allowed

    def test_right_outputs_are_accepted(self, vocab: Vocab, formats: Any) -> None:
        """Token by token, as the tokenizer writes them with control tokens."""
        refused, count = [], 0
        for case in list(cases())[::6]:
            if not case["expected"]["tool_calls"] or case.get("is_partial"):
                continue
            form, tools = formats(case)
            options = keywords(case)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TokenTrieWarning)
                constraint = form.constraint(tools, vocab, options["tool_choice"], True, options["generation_prompt"])
            try:
                Sampler(vocab, constraint).accept(vocab.tokenize(case["model_output"], parse_special=True))
            except tokentrie.TokenNotAllowedError as error:
                refused.append(f"{case['id']}: {error}")
            count += 1
        assert count > 20
        assert len(refused) <= count // 20, refused


def spelled(vocab: Vocab, text: str) -> list[int]:
    """Its bytes one by one: no tokenizer puts a space before them."""
    by_bytes = {vocab[token]: token for token in range(len(vocab)) if vocab.kind(token) in ("text", "byte")}
    return [by_bytes[bytes([byte])] for byte in text.encode()]


def test_a_model_without_a_template() -> None:
    model = Model(copy_tiny("chat-format", changes={"tokenizer.chat_template": None}), n_ctx=64, n_threads=1)
    with pytest.warns(TokenTrieWarning, match="no chat template: ChatML is used"):
        form = model.chat_format
    assert form.prompt([USER]).text == "<|im_start|>user\nRing the bell.<|im_end|>\n<|im_start|>assistant\n"
    assert form.analysis.calls is not None
    assert form.analysis.calls.function == "json-object"
    assert model.chat_format is form
    text = form.render([USER, form.parse('<tool_call>\n{"name": "ring", "arguments": {}}\n</tool_call>')], TOOLS)
    assert '{"name": "ring", "arguments": {}}\n</tool_call><|im_end|>' in text


def test_each_schema_is_warned_of() -> None:
    """Two tools whose warnings read alike, and the same one twice."""
    form = ChatFormat(TEMPLATE, BYTES)

    def warned(schema: dict[str, Any]) -> list[str]:
        parameters = {"type": "object", "properties": {"p": schema}, "required": ["p"]}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            form.constraint([{"name": "x", "parameters": parameters}], BYTES, "required")
        return [str(warning.message) for warning in caught]

    one = {"type": "string", "pattern": r"(a)\1"}
    other = {"type": "string", "pattern": r"(a)\1", "maxLength": 9}
    assert warned(one) == warned(other) != []
    assert warned(one) == []
