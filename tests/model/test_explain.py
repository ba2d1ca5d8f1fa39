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
from tokentrie import Form, Message, Model, OptionError, Slot, ToolCall, ToolRun

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
        steps: list[tokentrie.Step] = []
        plain = model.generate("The sky is ", constraint, max_tokens=12, logprobs=3, on_step=steps.append)
        model.clear()
        heard: list[tokentrie.Step] = []
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
