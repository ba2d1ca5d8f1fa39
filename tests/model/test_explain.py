"""Generations explained, and results as HTML: right, and never anything but text."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import tokentrie
from tokentrie import Form, Message, Model, Slot
from tokentrie.chat import ToolRun
from tokentrie.errors import OptionError
from tokentrie.results import ToolCall

pytestmark = pytest.mark.model

COLOURS = ["blue", "red", "black"]
EVIL = (
    "<script>alert(1)</script>",
    "</td></table>",
    '" onmouseover="x',
    "'",
    "&lt;",
    "<!--",
    "]]>",
    "\u0000\u001b[31m",
    "é🙂",
)


@pytest.fixture(scope="module")
def model(tiny_path: Path) -> Model:
    return Model(tiny_path, n_ctx=2048, n_threads=1)


class TestExplain:
    @pytest.mark.parametrize(
        "constraint",
        [COLOURS, None, tokentrie.rules.Date(), Form("It is ", Slot("colour", COLOURS), ".\n", Slot("n", ["1", "22"]))],
        ids=["list", "free", "rule", "form"],
    )
    def test_it_tells_what_on_step_and_logprobs_tell(self, model: Model, constraint: Any) -> None:
        steps: list[tokentrie.results.Step] = []
        plain = model.generate("The sky is ", constraint, max_tokens=12, logprobs=3, on_step=steps.append)
        model.clear()
        heard: list[tokentrie.results.Step] = []
        told = model.explain("The sky is ", constraint, max_tokens=12, top=3, on_step=heard.append)
        assert told.generated.text == plain.text
        assert [one.token for one in told.tokens] == [step.token for step in heard]
        # The token that ends free text is none of it.
        assert told.tokens[len(plain.tokens) :] == [] or constraint is None
        assert [one.token for one in told.tokens][: len(plain.tokens)] == told.generated.tokens
        for one, step in zip(told.tokens, heard, strict=True):
            assert one.forced == step.forced
            if one.forced:
                assert (one.legal, one.probability, one.others) == (1, 1.0, [])
                continue
            assert one.legal == (len(step.allowed) or None)
            assert len(one.others) == min(3, (one.legal or 4) - 1)
            assert one.probability + sum(share for _, share in one.others) <= 1 + 1e-6
            if one.legal is not None:
                shares = dict(zip(step.allowed.tolist(), step.probabilities.tolist(), strict=True))
                assert math.isclose(one.probability, shares[one.token], rel_tol=1e-3)
        assert sum(one.forced for one in told.tokens) == told.generated.stats.forced_tokens

    def test_as_text(self, model: Model) -> None:
        first, *lines = str(model.explain("The sky is", [" blue", " red"])).splitlines()
        assert first == "' blue': 3 tokens, 2 forced, finish span"
        assert [line.split()[0] for line in lines] == ["chosen", "forced"]
        assert " of 2 " in lines[0]
        assert "' re'" in lines[0]

    def test_tokens_in_a_row_that_were_forced_are_one_line(self, model: Model) -> None:
        form = Form('{"colour": "', Slot("colour", COLOURS), '"}')
        told = model.explain("A balloon: ", form)
        assert str(told).splitlines()[1] == 'forced  \'{"colour": "\''

    def test_as_json(self, model: Model) -> None:
        told = model.explain("The sky is ", COLOURS)
        read = json.loads(json.dumps(told.to_dict()))
        assert [one["token"] for one in read["tokens"]] == told.generated.tokens

    @pytest.mark.parametrize(
        ("options", "said"),
        [({"logprobs": 1}, "logprobs"), ({"n": 2}, "n is not supported"), ({"top": -1}, "top is -1")],
    )
    def test_what_it_does_not_take(self, model: Model, options: dict[str, Any], said: str) -> None:
        with pytest.raises(OptionError, match=said):
            model.explain("The sky is ", COLOURS, **options)
        with pytest.raises(TypeError):
            model.explain("The sky is ", COLOURS, unknown=1)


TOOLS = [
    {
        "name": "ring",
        "parameters": {
            "type": "object",
            "properties": {"loud": {"type": "boolean"}, "times": {"enum": [1, 2, 3]}},
            "required": ["loud", "times"],
        },
    }
]
ASKED: list[Any] = [{"role": "user", "content": "Ring the bell, please."}]


class TestExplainedChats:
    @pytest.mark.parametrize(
        ("constraint", "options"),
        [
            (None, {"max_tokens": 12}),
            (COLOURS, {"thinking_budget": 4}),
            (COLOURS, {"enable_thinking": False}),
            (tokentrie.JsonSchema({"type": "object", "properties": {"n": {"type": "integer"}}}), {"max_tokens": 40}),
            (None, {"tools": TOOLS, "tool_choice": "required", "max_tokens": 90}),
            (None, {"tools": TOOLS, "tool_choice": "required", "max_tokens": 90, "thinking_budget": 5}),
        ],
        ids=["free", "list", "quiet", "schema", "call", "thought and call"],
    )
    def test_it_explains_the_reply_that_chat_gives(
        self, model: Model, constraint: Any, options: dict[str, Any]
    ) -> None:
        plain = model.chat(ASKED, constraint=constraint, on_invalid="none", **options)
        model.clear()
        told = model.explain(ASKED, constraint, top=3, **options)
        assert (told.message.content, told.message.reasoning) == (plain.content, plain.reasoning)
        assert told.message.tool_calls == plain.tool_calls
        assert told.message.logprobs == []
        parts = [one.part for one in told.tokens]
        assert set(parts) <= {"reasoning", "marker", "content", "call", "end"}
        ended = [one for one in told.tokens if one.part != "end"]
        assert len(ended) == plain.stats.tokens
        assert parts.count("end") == len(parts) - len(ended) <= 1
        assert parts.count("reasoning") == plain.stats.reasoning_tokens
        assert sum(one.forced for one in ended) <= plain.stats.forced_tokens
        said = "".join(one.text for one in told.tokens if one.part == "content")
        assert said.strip() == plain.content.strip()
        assert ("call" in parts) == bool(plain.tool_calls)
        for one in told.tokens:
            assert 0 < one.probability <= 1 + 1e-6
            assert (one.legal == 1) == one.forced or one.legal == 1
            assert len(one.others) <= 3
            assert one.text not in [text for text, _ in one.others] or one.text == "\ufffd"
        calls = "".join(one.text for one in told.tokens if one.part == "call")
        for call in plain.tool_calls:
            assert call.name in calls
            assert call.arguments in calls

    def test_a_reply_that_is_cut_off_is_explained(self, model: Model) -> None:
        told = model.explain(ASKED, ["a" * 50, "b" * 50], max_tokens=2, complete=False)
        assert told.message.finish == "max_tokens"
        assert told.message.parsed is None
        assert len(told.tokens) == 2

    def test_as_text_html_and_json(self, model: Model) -> None:
        told = model.explain(ASKED, tools=TOOLS, tool_choice="ring", thinking_budget=0, max_tokens=90)
        first, *lines = str(told).splitlines()
        assert "calls ring: " in first
        assert first.endswith(f"finish {told.message.finish}")
        assert all(line.split()[0] in ("reasoning", "marker", "content", "call", "end") for line in lines)
        tree = ElementTree.fromstring(told._repr_html_())
        assert next(cell.text for cell in tree.iter("th")) == "part"
        read = json.loads(json.dumps(told.to_dict()))
        assert [one["part"] for one in read["tokens"]] == [one.part for one in told.tokens]
        assert read["message"]["tool_calls"][0]["function"]["name"] == "ring"

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"logprobs": 1}, "logprobs"),
            ({"n": 2}, "n is not supported"),
            ({"retries": 1}, "retries is not supported"),
            ({"stream": True}, "stream=True is not supported"),
            ({"on_step": print}, "on_step is not supported"),
        ],
    )
    def test_what_it_does_not_take(self, model: Model, options: dict[str, Any], said: str) -> None:
        with pytest.raises(OptionError, match=said):
            model.explain(ASKED, COLOURS, **options)
        with pytest.raises(TypeError):
            model.explain(ASKED, COLOURS, unknown=1)


def evil(draw: random.Random) -> str:
    return "".join(draw.choices(EVIL, k=draw.randint(1, 4))) + str(draw.random())


def results(model: Model, draw: random.Random) -> dict[str, Callable[[], Any]]:
    """A result of each kind, all of whose texts are evil."""
    texts = [evil(draw) for _ in range(4)]
    call = ToolCall(texts[0], texts[1], json.dumps({texts[2]: texts[3]}))
    message = Message(texts[0], texts[1], [call], [texts[2]], parsed={texts[3]: 1}, invalid=texts[2])
    form = Form(f"It: {texts[0]}", Slot("a", texts), texts[2] + ".")
    asked: dict[str, Any] = {texts[0]: texts, "sure": bool}
    return {
        "choice": lambda: model.choose("The sky is: ", texts),
        "generated": lambda: model.generate("The sky is: ", texts),
        "form": lambda: model.generate("The sky is: ", form),
        "explanation": lambda: model.explain("The sky is: ", form),
        "message": lambda: message,
        "chat": lambda: model.chat([{"role": "user", "content": texts[0]}], constraint=texts[1:], thinking_budget=0),
        "answers": lambda: model.decide(texts[3], asked),
        "answer": lambda: model.decide(texts[3], asked)[texts[0]],
        "tool run": lambda: ToolRun(message, [{"role": texts[0], "content": texts[1]}, message], 1),
    }


@pytest.mark.parametrize("seed", range(8))
def test_no_text_becomes_markup(model: Model, seed: int) -> None:
    """Every table is well-formed, has the tags of tables alone, and says what the result says."""
    for kind, made in results(model, random.Random(seed)).items():
        page = made()._repr_html_()
        tree = ElementTree.fromstring(page)
        assert {part.tag for part in tree.iter()} <= {"table", "tr", "th", "td", "div"}, kind
        assert {key for part in tree.iter() for key in part.attrib} <= {"style", "colspan"}, kind
        assert "<script" not in page, kind
        assert "<tr" in page, kind


def test_texts_are_shown_as_they_are(model: Model) -> None:
    text = "<script>&\"'\n</script>"
    tree = ElementTree.fromstring(Message(text)._repr_html_())
    assert [cell.text for cell in tree.iter("td")][:2] == ["content", text]
    calls = Message(tool_calls=[ToolCall("", "ring", '{"a": "<b>"}')])._repr_html_()
    assert "ring {&quot;a&quot;: &quot;&lt;b&gt;&quot;}" in calls


def test_what_was_not_scored_has_no_bar() -> None:
    from tokentrie import html

    page = html.table(("a",), [[html.Bar("nan")], [html.Bar(-1.0)], [html.Bar(7.0)]])
    assert [part.attrib["style"].rsplit(":", 1)[1] for part in ElementTree.fromstring(page).iter("div")] == [
        "0.0%",
        "0.0%",
        "100.0%",
    ]
