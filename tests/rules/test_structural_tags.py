"""Structural tags: what is translated means what XGrammar says it means, and all else is refused by name.

The judge reads a format by itself: it follows a text backwards from nothing, and shares no code with the grammar.
"""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from budget import cases
from tokentrie._native import Spec
from tokentrie.errors import OptionError, TokenTrieError
from tokentrie.rules import Lark

Format = dict[str, Any]
OPEN = ("any_text", "triggered_tags", "dispatch")


def is_open(form: Format) -> bool:
    if form["type"] == "sequence":
        return is_open(form["elements"][-1])
    return form["type"] in OPEN or (form["type"] == "or" and any(map(is_open, form["elements"])))


def ends_of(form: Format, text: str, at: int, stops: list[str] | None) -> set[int]:
    """Where a format that begins at a place ends, with one of the stops behind it where there are any."""
    found = own_ends_of(form, text, at, stops)
    if stops is None or is_open(form):
        return found
    return {end + len(stop) for end in found for stop in stops if text.startswith(stop, end)}


def own_ends_of(form: Format, text: str, at: int, stops: list[str] | None) -> set[int]:
    kind = form["type"]
    if kind == "const_string":
        return {at + len(form["value"])} if text.startswith(form["value"], at) else set()
    if kind == "regex":
        return {end for end in range(at, len(text) + 1) if re.fullmatch(form["pattern"], text[at:end])}
    if kind == "json_schema":
        return {end for end in range(at, len(text) + 1) if re.fullmatch(r"[12]", text[at:end])}
    if kind == "sequence":
        places = {at}
        for number, one in enumerate(form["elements"]):
            last = number == len(form["elements"]) - 1
            ends = stops if last and is_open(one) else None
            places = {end for place in places for end in ends_of(one, text, place, ends)}
        return places
    if kind == "or":
        ends = [ends_of(one, text, at, stops if is_open(form) else None) for one in form["elements"]]
        return set().union(*ends)
    if kind == "tag":
        if not text.startswith(form["begin"], at):
            return set()
        end = form["end"] if isinstance(form["end"], list) else [form["end"]]
        return ends_of(form["content"], text, at + len(form["begin"]), end)
    if kind in ("optional", "plus", "star", "repeat"):
        low, high = {"optional": (0, 1), "plus": (1, 99), "star": (0, 99)}.get(kind) or (form["min"], form["max"])
        return repetition(form["content"], text, at, low, 99 if high == -1 else high)
    if kind == "tags_with_separator":
        tag: Format = {"type": "or", "elements": form["tags"]}
        more: Format = {"type": "sequence", "elements": [{"type": "const_string", "value": form["separator"]}, tag]}
        one = ends_of(tag, text, at, None)
        some = one if form.get("stop_after_first") else {e for p in one for e in repetition(more, text, p, 0, 99)}
        return some | (set() if form.get("at_least_one") else {at})
    ways = [(trigger, trigger, form["tags"]) for trigger in form.get("triggers", [])]
    if kind == "triggered_tags" and form.get("at_least_one"):
        firsts = {end for tag in form["tags"] for end in ends_of(tag, text, at, None)}
        if form.get("stop_after_first"):
            return firsts if stops is None else {e + len(s) for e in firsts for s in stops if text.startswith(s, e)}
        later = {**form, "at_least_one": False}
        return {end for first in firsts for end in ends_of(later, text, first, stops)}
    once = bool(form.get("stop_after_first")) or not form.get("loop", True)
    return free(form, [way[0] for way in ways], text, at, stops, once)


def repetition(form: Format, text: str, at: int, low: int, high: int) -> set[int]:
    reached, places = ({at} if low == 0 else set()), {at}
    for count in range(1, high + 1):
        places = {end for place in places for end in ends_of(form, text, place, None)} - (
            reached if count > low else set()
        )
        if not places:
            break
        reached |= places if count >= low else set()
    return reached


def free(form: Format, triggers: list[str], text: str, at: int, stops: list[str] | None, once: bool) -> set[int]:
    """Free text from a place on: the first text that is found in it decides how it goes on."""
    rules = form.get("rules", [])
    found: set[int] = set()
    for end in range(at, len(text) + 1):
        said = text[at:end]
        closed = [stop for stop in stops or [] if said.endswith(stop)]
        if closed:
            return found | {end}
        if any(said.endswith(one) for one in form.get("excludes", [])):
            return found
        begun = next((one for one in triggers if said.endswith(one)), None)
        rule = next((rule for rule in rules if said.endswith(rule[0])), None)
        if begun is not None or rule is not None:
            if rule is not None:
                inner = ends_of(rule[1], text, end, None)
            else:
                assert begun is not None
                place = end - len(begun)
                tags = [tag for tag in form["tags"] if tag["begin"].startswith(begun)]
                inner = {after for tag in tags for after in ends_of(tag, text, place, None)}
            if once:
                ended = {e + len(s) for e in inner for s in stops if text.startswith(s, e)} if stops else inner
                return found | ended
            return found.union(*(free(form, triggers, text, after, stops, once) for after in inner))
        if stops is None:
            found.add(end)
    return found


def accepts(form: Format, text: str) -> bool:
    return len(text) in ends_of(form, text, 0, None)


class Draw(random.Random):
    def text(self) -> str:
        return self.choice(["<a>", "<ab>", "</a>", "x", "é\n", "/", "ab", '"', "\\", "<"])

    def closed(self, depth: int) -> Format:
        kinds = ["const_string", "regex", "json_schema"]
        kinds += ["sequence", "or", "tag", "optional", "plus", "star", "repeat", "tags_with_separator"] * (depth > 0)
        kind = self.choice(kinds)
        if kind == "const_string":
            return {"type": kind, "value": self.text()}
        if kind == "regex":
            return {"type": kind, "pattern": self.choice(["[0-9]{1,2}", "a|b/", "x*", r"[^<]"])}
        if kind == "json_schema":
            return {"type": kind, "json_schema": {"enum": [1, 2]}}
        if kind in ("sequence", "or"):
            return {"type": kind, "elements": [self.closed(depth - 1) for _ in range(self.randint(1, 3))]}
        if kind == "tag":
            return self.tag(depth)
        if kind == "tags_with_separator":
            tags = [self.tag(depth) for _ in range(self.randint(1, 2))]
            return {"type": kind, "tags": tags, "separator": self.choice([",", "; "])} | self.flags()
        more = {"min": self.randint(0, 1), "max": self.choice([-1, 2])} if kind == "repeat" else {}
        content: Format = {"type": "const_string", "value": self.text()}
        return {"type": kind, "content": content if self.random() < 0.5 else self.tag(depth), **more}

    def flags(self) -> Format:
        return {name: True for name in ("at_least_one", "stop_after_first") if self.random() < 0.3}

    def tag(self, depth: int, begin: str | None = None) -> Format:
        end = self.choice(["</a>", "</a>", ["</a>", "|"], "ab"])
        content = self.open(depth - 1) if depth > 0 and self.random() < 0.4 else self.closed(depth - 1)
        return {"type": "tag", "begin": begin or self.choice(["<a>", "<ab>"]), "content": content, "end": end}

    def open(self, depth: int) -> Format:
        kind = self.choice(["any_text", "triggered_tags", "dispatch", "sequence", "or"] if depth > 0 else ["any_text"])
        excludes = {"excludes": [self.choice(["x", "ab", "<b"])]} if self.random() < 0.3 else {}
        if kind == "any_text":
            return {"type": kind, **excludes}
        if kind == "triggered_tags":
            tags = [self.tag(depth - 1, begin) for begin in self.sample(["<a>", "<ab>"], self.randint(1, 2))]
            return {"type": kind, "triggers": ["<a"], "tags": tags, **self.flags(), **excludes}
        if kind == "dispatch":
            rules = [[trigger, self.closed(depth - 1)] for trigger in self.sample(["<a>", "<ab>"], self.randint(1, 2))]
            return {"type": kind, "rules": rules, **({"loop": False} if self.random() < 0.3 else {}), **excludes}
        before = [self.closed(depth - 1)] if kind == "sequence" else [self.open(depth - 1)]
        return {"type": kind, "elements": [*before, self.open(depth - 1)]}

    def some_text(self) -> str:
        parts = ["<a>", "<ab>", "</a>", "x", "é\n", "/", "ab", '"', "\\", "<", "1", "2", "23", ",", "; ", "|", "b/"]
        return "".join(self.choices(parts, k=self.randint(0, 7)))


def rule_of(form: Format) -> Lark:
    spec = Spec._of_response_format({"type": "structural_tag", "format": form}, "compact")
    assert spec is not None
    return Lark(spec.to_dict()["lark"])


@pytest.mark.parametrize("seed", range(cases(60)))
def test_a_format_means_what_it_says(seed: int) -> None:
    draw = Draw(seed)
    form = draw.open(3) if seed % 2 else draw.closed(3)
    try:
        rule = rule_of(form)
    except TokenTrieError as error:
        if "excludes" in str(form) and "no finite text" in str(error):
            return  # What excludes all of its ends has no texts.
        raise
    texts = [draw.some_text() for _ in range(80)]
    agreed = [rule.matches(text) == accepts(form, text) for text in texts]
    assert all(agreed), (form, texts[agreed.index(False)], accepts(form, texts[agreed.index(False)]))


TAG = {"type": "tag", "begin": "<f>", "content": {"type": "regex", "pattern": "[0-9]+"}, "end": "</f>"}


@pytest.mark.parametrize(
    ("flags", "legal", "illegal"),
    [
        ({}, ["", "x", "<f>1</f>", "x<f>1</f>y", "<f>1</f><f>2</f>", "a<"], ["<f>1</f><f", "<f>", "x<f>a</f>"]),
        ({"at_least_one": True}, ["<f>1</f>", "<f>1</f>y", "<f>1</f><f>2</f>"], ["", "x", "x<f>1</f>", "a<"]),
        ({"stop_after_first": True}, ["", "x", "<f>1</f>", "x<f>1</f>", "a<"], ["x<f>1</f>y", "<f>1</f><f>2</f>"]),
        ({"at_least_one": True, "stop_after_first": True}, ["<f>1</f>"], ["", "x", "x<f>1</f>", "<f>1</f>y", "a<"]),
    ],
)
def test_triggered_tags_are_those_of_xgrammar(flags: Format, legal: list[str], illegal: list[str]) -> None:
    form = {"type": "triggered_tags", "triggers": ["<f"], "tags": [TAG], **flags}
    rule = rule_of(form)
    assert [text for text in legal + illegal if rule.matches(text)] == legal
    assert [text for text in legal + illegal if accepts(form, text)] == legal


def test_the_older_shape_is_read() -> None:
    structures = [{"begin": "<f=a>", "schema": {"type": "boolean"}, "end": "</f>"}]
    given = {"type": "structural_tag", "structures": structures, "triggers": ["<f="]}
    spec = Spec._of_response_format(given, "compact")
    assert spec is not None
    rule = Lark(spec.to_dict()["lark"])
    assert rule.matches("so <f=a>true</f> and <f=a>false</f>")
    assert not rule.matches("so <f=b>true</f>")
    assert not rule.matches("<f=a>1</f>")


def test_a_whole_grammar_stays_one() -> None:
    for syntax, kind in (("ebnf", "gbnf"), ("lark", "lark")):
        form = {"type": "grammar", "grammar": 'root ::= "a"', "syntax": syntax}
        spec = Spec._of_response_format({"type": "structural_tag", "format": form}, "compact")
        assert spec is not None
        assert spec.to_dict() == {kind: 'root ::= "a"'}


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"type": "token", "token": 5}, "format.type: the type is not supported: a constraint is a set of texts"),
        ({"type": "qwen_xml_parameter", "json_schema": {}}, "give tools, whose calls the template writes"),
        ({"type": "json_schema", "json_schema": {}, "style": "glm_xml"}, "format.style: the style"),
        ({"type": "json_schema", "json_schema": {}, "any_order": True}, "any_order: the option is not supported"),
        ({"type": "any_text", "max_tokens": 3}, "format.max_tokens: the option is not supported"),
        ({"type": "any_text", "exclude": ["a"]}, 'format.exclude: unknown field: did you mean "excludes"?'),
        ({"type": "const_string"}, 'the field "value" is missing'),
        ({"type": "sequence", "elements": []}, "format.elements: invalid value: expected an array with at least one"),
        ({"type": "sequence", "elements": [{"type": "any_text"}, TAG]}, "format.elements[0]: free text"),
        ({"type": "plus", "content": {"type": "any_text"}}, "format.content: free text is not supported"),
        ({"type": "or", "elements": [{"type": "grammar", "grammar": "a"}]}, "a grammar inside another format"),
        ({**TAG, "begin": {"type": "token", "token": 1}}, "format.begin: invalid value: expected a string"),
        ({**TAG, "end": 1}, "format.end: invalid value: expected a text, or an array of texts"),
        ({"type": "triggered_tags", "triggers": ["<g"], "tags": [TAG]}, "0 triggers begin"),
        ({"type": "triggered_tags", "triggers": ["<", "<f"], "tags": [TAG]}, "2 triggers begin"),
        ({"type": "repeat", "content": TAG, "min": 2, "max": 1}, "expected min from 0"),
        ({"type": "nonsense"}, 'format.type: invalid value: expected "const_string", "json_schema"'),
    ],
)
def test_what_cannot_be_held_is_refused_by_name(form: Format, says: str) -> None:
    with pytest.raises(OptionError) as error:
        Spec._of_response_format({"type": "structural_tag", "format": form}, "compact")
    assert says in str(error.value)
