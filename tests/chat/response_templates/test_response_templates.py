"""Response templates: read as transformers reads them, written for formats, and followed by formats."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import drawn_response_templates as drawn
import pytest
import tokentrie
from budget import cases
from tokentrie.chat import ResponseTemplate
from tokentrie.errors import OptionError, TemplateError

ROOT = Path(__file__).resolve().parents[3]
VECTORS = json.loads((ROOT / "tests/vectors/response_templates.json").read_text(encoding="utf-8"))
SMALL = sorted((ROOT / "crates/chat-format/tests/templates").glob("*.jinja"))
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>"
    "{% endif %}{{ m.content }}{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}"
    "<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SAID = VECTORS["templates"]["doc-smollm"]
RING = {"name": "ring", "parameters": {"type": "object", "properties": {"times": {"type": "integer"}}}}


def test_replies_are_read_as_recorded_from_transformers() -> None:
    templates = {name: ResponseTemplate(source) for name, source in VECTORS["templates"].items()}
    for case in VECTORS["cases"]:
        said, tools = templates[case["template"]], VECTORS["tools"] if case["tools"] else None
        if "error" in case:
            with pytest.raises(OptionError, match="field"):
                said.parse(case["reply"], case["prompt"], tools)
            continue
        assert said.parse(case["reply"], case["prompt"], tools) == case["message"]
        if "events" in case:
            parser = said.parser(case["prompt"], tools)
            events = [parser.first_events, *map(parser.push, case["parts"])]
            assert parser.finish() == case["message"]
            assert [*events, parser.last_events] == case["events"]


def chat_parsing() -> Any:
    """Returns the module of transformers that reads replies; skips where it is too old or absent."""
    transformers = pytest.importorskip("transformers", reason="transformers is the judge, and is not installed")
    return pytest.importorskip(
        "transformers.utils.chat_parsing",
        reason=f"transformers {transformers.__version__} reads no response templates: 5.13 and later do",
    )


def judged(judge: Any, source: dict[str, Any], prompt: str, parts: list[str], tools: Any) -> Any:
    """Returns the message and the events of transformers' parser; None where it refuses the reply."""
    try:
        parser = judge.ResponseParser(source, prefix=prompt, tools=tools)
        events = [list(parser.initial_events), *(list(parser.feed(part)) for part in parts)]
        message, last = parser.finalize()
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return message, [*events, last]


def read(said: ResponseTemplate, prompt: str, parts: list[str], tools: Any) -> Any:
    """Returns the same of ours."""
    try:
        parser = said.parser(prompt, tools)
        events = [parser.first_events, *map(parser.push, parts)]
        return parser.finish(), [*events, parser.last_events]
    except OptionError:
        return None


def test_drawn_replies_are_read_as_transformers_reads_them() -> None:
    judge = chat_parsing()
    for seed in range(max(50, cases(1000))):
        random = Random(seed)
        known = random.random() < 0.6
        source = random.choice(list(VECTORS["templates"].values())) if known else drawn.response_template(random)
        said = ResponseTemplate(source)
        for _ in range(10):
            reply, prompt = drawn.reply(source, random), drawn.prompt(source, random)
            cut = random.choice([0, 0, 0, random.randint(0, len(reply))])
            parts = drawn.parts(reply[cut:], random)
            tools = drawn.TOOLS if random.random() < 0.5 else None
            got, want = (
                read(said, prompt + reply[:cut], parts, tools),
                judged(judge, source, prompt + reply[:cut], parts, tools),
            )
            assert got == want, (source, prompt + reply[:cut], parts)


def test_every_drawn_response_template_is_read() -> None:
    for seed in range(200):
        random = Random(seed)
        source = drawn.response_template(random)
        said = ResponseTemplate(source)
        assert said.source == source
        reply = drawn.reply(source, random)
        whole, cut = read(said, "", [reply], None), read(said, "", list(reply), None)
        # A pattern may match less of what came so far than of the whole, in transformers too.
        if "_pattern" not in json.dumps(source):
            assert (whole and whole[0]) == (cut and cut[0]), (source, reply)


def test_what_is_written_is_read_by_transformers_as_by_the_format() -> None:
    judge = chat_parsing()
    replies = 0
    for path in SMALL:
        form = tokentrie.ChatFormat(path.read_text(encoding="utf-8"), eos="</s>")
        try:
            source = form.response_template().source
        except TemplateError:
            continue
        call = {"id": "k7Jd93Lq0", "type": "function", "function": {"name": "ring", "arguments": {"times": 2}}}
        asked = [{"role": "user", "content": "Ring!"}]
        for message in ({"content": "Ding."}, {"content": "", "tool_calls": [call]}):
            try:
                whole = form.render([*asked, {"role": "assistant", **message}], [RING], add_generation_prompt=False)
                prompt = form.prompt(asked, [RING])
            except TemplateError:
                continue
            wanted = "ring" if "tool_calls" in message else "Ding."
            if not whole.startswith(prompt.text) or wanted not in whole[len(prompt.text) :]:
                continue
            reply = whole[len(prompt.text) :].rstrip()
            got = judge.parse_response(
                reply, source, prefix=prompt.text, tools=[{"type": "function", "function": RING}]
            )
            calls = [call["function"] for call in got.get("tool_calls", [])]
            if "tool_calls" in message:
                arguments = calls[0]["arguments"]
                arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
                assert (calls[0]["name"], arguments) == ("ring", {"times": 2}), path.name
            else:
                assert (got["content"], calls) == ("Ding.", []), path.name
            replies += 1
    assert replies >= 30


def test_a_format_follows_a_response_template() -> None:
    bare = TEMPLATE.replace("{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}", "")
    assert tokentrie.ChatFormat(bare).analysis.calls is None
    form = tokentrie.ChatFormat(bare, response_template=SAID)
    assert form.analysis.calls is not None
    reply = '<think>A bell.</think>Ding.<tool_call>{"name": "ring", "arguments": {"times": 2}}</tool_call>'
    message = form.parse(reply, [RING])
    assert (message.reasoning, message.content, message.tool_calls[0].name) == ("A bell.", "Ding.", "ring")
    assert form.response_template() == ResponseTemplate(SAID)
    assert pickle.loads(pickle.dumps(form)) == form != tokentrie.ChatFormat(bare)
    alone = tokentrie.ChatFormat(None, response_template=json.dumps(SAID))
    assert alone.parse(reply, [RING]) == message
    assert pickle.loads(pickle.dumps(alone)) == alone
    with pytest.raises(TemplateError, match="there is no chat template"):
        alone.render([{"role": "user", "content": "Ring!"}])
    with pytest.raises(TypeError, match="or None beside a response_template"):
        tokentrie.ChatFormat(None)  # type: ignore[arg-type]


def test_a_constraint_of_a_response_template_allows_only_calls_that_it_reads() -> None:
    vocab = tokentrie.Vocab.from_tokens([bytes([byte]) for byte in range(256)] + [b"<|end|>"], eog=[256], control=[256])
    loud = {"type": "object", "properties": {"loud": {"type": "boolean"}, "times": {"enum": [1, 22]}}}
    tool = {"name": "ring", "parameters": loud | {"required": ["loud"], "additionalProperties": False}}
    names = [
        "doc-smollm",
        "transformers-qwen2",
        "transformers-gemma4",
        "doc-cohere",
        "doc-python-calls",
        "doc-qwen3-xml",
    ]
    for name in names:
        source = VECTORS["templates"][name]
        # Free text and reasoning may go on for ever.
        fields = {name: field for name, field in source["fields"].items() if name == "tool_calls"}
        said = ResponseTemplate({**source, "fields": fields})
        form = tokentrie.ChatFormat(None, vocab, response_template=said)
        required = form.constraint([tool], tool_choice="required")
        for seed in range(10):
            random, sampler, text = Random(seed), tokentrie.Sampler(vocab, required), b""
            while 256 not in (allowed := set(map(int, sampler.allowed()))):
                # White space and reasoning may go on for long.
                shorter = [byte for byte in allowed if byte not in b" \t\r\n"] or sorted(allowed)
                closing = [byte for byte in shorter if byte in b"<>/"] if random.random() < 0.7 else []
                byte = random.choice(sorted(closing or shorter))
                sampler.accept([byte])
                text += bytes([byte])
                assert len(text) < 5000, (name, text)
            message = said.parse(text.decode(errors="replace"), tools=[tool])
            function = message["tool_calls"][0]["function"]
            arguments = function["arguments"]
            assert (function["name"], type(arguments["loud"])) == ("ring", bool), (name, text)
            assert set(arguments) <= {"loud", "times"}, (name, text)
            assert arguments.get("times", 1) in (1, 22), (name, text)


def test_a_constraint_keeps_its_response_template_as_a_spec() -> None:
    vocab = tokentrie.Vocab.from_tokens([bytes([byte]) for byte in range(256)] + [b"<|end|>"], eog=[256], control=[256])
    bare = TEMPLATE.replace("{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}", "")
    call = b'<tool_call>{"name": "ring", "arguments": {"times": 2}}</tool_call>'
    for template in (bare, None):
        form = tokentrie.ChatFormat(template, vocab, response_template=SAID)
        made = form.constraint([RING], tool_choice="required")
        spec = tokentrie.constraint(made).to_dict()["reply"]
        assert (spec["response_template"], spec.get("template")) == (SAID, template)
        tokentrie.Sampler(vocab, tokentrie.constraint({"reply": spec})).accept(list(call))


def test_differences_are_reported() -> None:
    other = json.loads(json.dumps(SAID).replace("tool_call>", "TOOL>"))
    form = tokentrie.ChatFormat(TEMPLATE, response_template=other)
    assert any(text.startswith("a call: ") for text in form.analysis.differences)
    written = tokentrie.ChatFormat(TEMPLATE).response_template()
    assert tokentrie.ChatFormat(TEMPLATE, response_template=written).analysis.differences == []


def test_a_folder_of_a_model_is_read(tmp_path: Path) -> None:
    config = {"eos_token": {"content": "</s>"}, "bos_token": None, "chat_template": TEMPLATE, "response_template": SAID}
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    form = tokentrie.ChatFormat.from_tokenizer_config(tmp_path)
    assert form.template == tokentrie.ChatTemplate(TEMPLATE, eos="</s>")
    assert form.response_template().source == SAID == ResponseTemplate.from_file(path).source
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE + " ", encoding="utf-8")
    assert tokentrie.ChatFormat.from_tokenizer_config(path).template.text == TEMPLATE + " "
    (tmp_path / "chat_template.jinja").unlink()
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(TemplateError, match="neither chat_template nor response_template"):
        tokentrie.ChatFormat.from_tokenizer_config(path)
    with pytest.raises(OSError, match="No such file"):
        tokentrie.ChatFormat.from_tokenizer_config(tmp_path / "none")


def test_faults_name_their_place() -> None:
    with pytest.raises(TemplateError, match='field "content": unknown content parser "yaml"'):
        ResponseTemplate({"start_anchor": "x", "fields": {"content": {"content": "yaml"}}})
    with pytest.raises(TypeError, match="must be a dict, a str or a ResponseTemplate"):
        ResponseTemplate(5)  # type: ignore[arg-type]
    with pytest.raises(TemplateError, match="it is not JSON"):
        ResponseTemplate("{")
    parser = ResponseTemplate(SAID).parser()
    with pytest.raises(OptionError, match='field "tool_calls" of the reply: not JSON'):
        parser.push("<tool_call>{</tool_call>")


def test_the_command_line_prints_it(tmp_path: Path) -> None:
    path = tmp_path / "chat.jinja"
    path.write_text(TEMPLATE, encoding="utf-8")
    command = [sys.executable, "-m", "tokentrie", "inspect", str(path), "--response-template"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(printed.stdout) == tokentrie.ChatFormat(TEMPLATE).response_template().source
