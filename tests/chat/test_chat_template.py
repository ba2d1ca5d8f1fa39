"""`ChatTemplate`: what Jinja2 renders, byte for byte, and nothing where Jinja2 raises."""

from __future__ import annotations

import copy
import json
import os
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from budget import every
from conversations import CONVERSATIONS
from tokentrie import ChatTemplate, TemplateError, TokenTrieError
from tokentrie.errors import ModelError, OptionError

reference = pytest.importorskip("jinja2_reference", reason="the package jinja2 is not installed")

ROOT = Path(__file__).parents[2]
VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "chat_templates.json").read_text())
FOLDER = Path(os.environ.get("TOKENTRIE_TEMPLATE_DIR") or ROOT.parent / "shared" / "templates")
TEMPLATES = sorted(FOLDER.glob("*.jinja"))
HELLO = [{"role": "user", "content": "Hello"}]


def ours(template: str, **arguments: Any) -> str | None:
    """What we render; nothing where we refuse."""
    variables = arguments.pop("variables", {})
    try:
        made = ChatTemplate(template, bos="<s>", eos="</s>")
        return made.render(**arguments, **variables, now=reference.NOW, adapt=False)
    except TemplateError:
        return None


def theirs(template: str, **arguments: Any) -> str | None:
    variables = arguments.pop("variables", {})
    try:
        return reference.render(template, **copy.deepcopy(arguments), **copy.deepcopy(variables))
    except Exception:
        return None


def compare(template: str, counted: Counter[str], **arguments: Any) -> str | None:
    """Counts how a rendering compares, and says what is wrong with it."""
    expected, found = theirs(template, **arguments), ours(template, **arguments)
    if expected == found:
        counted["equal" if expected is not None else "both refuse"] += 1
        return None
    if expected is None:
        counted["only Jinja2 refuses"] += 1
        return f"expected a refusal, found {found!r:.200}"
    counted["differ"] += 1
    return f"expected {expected!r:.200}, found {found!r:.200}"


def test_there_are_conversations_of_every_kind() -> None:
    assert len(CONVERSATIONS) >= 18


@pytest.mark.skipif(not TEMPLATES, reason="TOKENTRIE_TEMPLATE_DIR names no folder with *.jinja files")
def test_real_templates(record_property: Any) -> None:
    counted: Counter[str] = Counter()
    wrong = []
    for number, path in enumerate(TEMPLATES):
        template = path.read_bytes().decode()
        for name, arguments in list(CONVERSATIONS.items())[number % every() :: every()]:
            said = compare(template, counted, **arguments)
            wrong += [f"{path.name}, {name}: {said}"] if said else []
    record_property("comparison", dict(counted))
    print(dict(counted))
    assert counted["equal"] > 10 * len(TEMPLATES) // every()
    assert counted["equal"] >= 0.99 * (counted["equal"] + counted["differ"]), "\n".join(wrong)
    assert counted["only Jinja2 refuses"] == 0, "\n".join(wrong)


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["template"][:60])
def test_small_templates(case: dict[str, str]) -> None:
    """The recorded texts are those of the Jinja2 that is installed, and ours."""
    arguments = {name: VECTORS[name] for name in ("messages", "tools", "variables")}
    assert theirs(case["template"], **arguments) == case.get("text")
    assert ours(case["template"], **arguments) == case.get("text")


def test_a_second_shape_is_tried_where_a_template_refuses() -> None:
    template = ChatTemplate("{{ messages[0].content + '' }}")
    messages = [{"role": "assistant", "content": None}]
    assert template.render(messages) == ""
    with pytest.raises(TemplateError, match="line 1: unsupported operand"):
        template.render(messages, adapt=False)
    assert messages == [{"role": "assistant", "content": None}]


@pytest.mark.skipif(not TEMPLATES, reason="TOKENTRIE_TEMPLATE_DIR names no folder with *.jinja files")
def test_other_shapes_of_real_conversations() -> None:
    """A shape never changes what a template takes, and some templates are won by it."""
    won = 0
    for path in TEMPLATES:
        template = ChatTemplate(path.read_bytes().decode(), "<s>", "</s>")
        for arguments in CONVERSATIONS.values():
            given = {name: value for name, value in arguments.items() if name != "variables"}
            given |= {**arguments.get("variables", {}), "now": reference.NOW}
            try:
                plain = template.render(**given, adapt=False)
            except TemplateError:
                try:
                    template.render(**given)
                    won += 1
                except TemplateError:
                    pass
            else:
                assert template.render(**given) == plain
    assert won > 0


def test_variables_and_time() -> None:
    template = ChatTemplate("{{ strftime_now('%H:%M') }} {{ a }} {{ b }}{{ bos_token }}", bos="<s>")
    assert template.render([], now=datetime(2024, 1, 2, 3, 4), a=[1, "x", None], b={"k": 1.5}) == (
        "03:04 [1, 'x', None] {'k': 1.5}<s>"
    )
    assert len(ChatTemplate("{{ strftime_now('%Y') }}").render([])) == 4


def test_as_a_value() -> None:
    template = ChatTemplate("{{ messages[0].content }}" + "x" * 99, bos="<s>", eos="</s>")
    assert repr(template) == f"ChatTemplate('{{{{ messages[0].content }}}}{'x' * 15}'..., bos='<s>', eos='</s>')"
    assert (template.text[-3:], template.bos, template.eos) == ("xxx", "<s>", "</s>")
    for same in (pickle.loads(pickle.dumps(template)), copy.copy(template), copy.deepcopy(template)):
        assert same == template
        assert hash(same) == hash(template)
        assert same.render(HELLO) == template.render(HELLO)
    assert template != ChatTemplate(template.text, bos="<s>")


def test_many_threads() -> None:
    template = ChatTemplate("{% for i in range(n) %}{{ i }}{% endfor %}")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: template.render([], n=n), range(200)))
    assert found == ["".join(map(str, range(n))) for n in range(200)]


REJECTED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "text": ({"messages": "hi"}, TypeError, "messages must be a list of dict, not str"),
    "a set": ({"messages": [{"content": {1}}]}, TypeError, "messages: set is not JSON"),
    "a key": ({"messages": [{1: "x"}]}, TypeError, "messages: keys must be str, not int"),
    "no number": ({"messages": [{"x": float("nan")}]}, OptionError, "messages: NaN is not JSON"),
    "half a character": ({"messages": ["\ud800"]}, OptionError, "messages: a text with half a surrogate"),
    "a long integer": ({"messages": [2**127]}, OptionError, "messages: an integer of more than 127 bits"),
    "tools": ({"messages": [], "tools": {}}, TypeError, "tools must be a list of dict, not dict"),
    "now": ({"messages": [], "now": "today"}, TypeError, "now must be a datetime, not str"),
    "a variable": ({"messages": [], "deep": object()}, TypeError, "deep: object is not JSON"),
}


@pytest.mark.parametrize(("arguments", "error", "says"), REJECTED.values(), ids=REJECTED)
def test_rejected(arguments: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        ChatTemplate("{{ messages }}").render(**arguments)


def test_too_deep_data_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    with pytest.raises(OptionError, match="messages: lists and dicts inside each other, more than 200 deep"):
        ChatTemplate("{{ messages }}").render(deep)
    deep.append(deep)
    with pytest.raises(OptionError, match="more than 200 deep"):
        ChatTemplate("{{ messages }}").render([deep])


def test_faults_are_typed_and_have_a_line() -> None:
    for template, says in {
        "\n{% if %}": "syntax error in line 2",
        "\n\n{{ raise_exception('no tools, please') }}": "refused in line 3: no tools, please",
        "{{ a.b }}": "undefined in line 1: 'a' is undefined",
        "{{ [].append(1) }}": "not allowed in a template, line 1",
        "{{ 1|urlize }}": "not supported, line 1",
        "{{ 'x' * 10**10 }}": "too much in line 1",
    }.items():
        with pytest.raises(TemplateError, match=says) as caught:
            ChatTemplate(template).render([])
        assert isinstance(caught.value, ModelError)
        assert isinstance(caught.value, TokenTrieError)
