"""Response templates drawn at random, of random fields, borders and content parsers, and replies for any of them."""

from __future__ import annotations

import json
import re
from random import Random
from re import _parser as regex_syntax  # type: ignore[attr-defined]
from typing import Any

Field = dict[str, Any]

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "ring",
            "parameters": {
                "type": "object",
                "properties": {
                    "tone": {"type": "string"},
                    "times": {"type": "integer"},
                    "loud": {"type": "boolean"},
                    "speed": {"type": "number"},
                    "days": {"type": "array"},
                    "more": {"type": ["object", "null"]},
                    "any": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                },
            },
        },
    },
    {"type": "function", "function": {"name": "stop", "parameters": {"type": "object", "properties": {}}}},
]
SCALARS: list[Any] = ["low", 'a "b" \\ it\'s\né', "", " 42 ", "true", "None", "3.0", "1e5", "[1, 2]", '{"a": 1}', 0, 7]
SCALARS += [-12, 3.5, -1e-3, True, False, None, "</parameter>", "<tag>", "x,y=(z)", "1_000", "\U0001f600 z"]
PIECES = [
    "Ding.",
    " ",
    "\n",
    "\n\n",
    "the bell",
    "<",
    "<b>",
    "</",
    "{",
    "}",
    "é",
    "日本",
    "\U0001f514",
    "  ",
    "a < b",
    "\t",
]
PIECES += ['"x"', "[1]", "0", "12", "true", "key: value\n", "k : v:w\n", ",", "|", "\\", "$"]
NUMBERS = [
    " 12 ",
    "-3",
    "+4",
    "1_000",
    "1__0",
    "2.5",
    "1e3",
    "true",
    " TRUE",
    "1",
    "no",
    "",
    ".5",
    "5.",
    "0x1",
    "--1",
    "007",
]
MARKS = [
    "<a>",
    "</a>",
    "<ab>",
    "[X]",
    "[/X]",
    "<|t|>",
    "<|/t|>",
    "##",
    "\n",
    ">>>",
    "<think>",
    "</think>",
    "CALL",
    "}",
    "::",
]
PATTERNS = [
    r"\s*<a>",
    r"<a>\s*",
    r"(?:<a>|<ab>)",
    r"<a+>",
    r"\s*(?:<\|t\|>|$)",
    r"<f=(?P<name>\w+)>",
    r"<f=(?P<name>[^>]+?)>\s*",
    r"<i (?P<id>\d+) (?P<name>\S+)>",
    r"(?=[\s\S]*?</think>)",
    r"^\s*<a>",
    r"</?x\d{1,3}>",
    r"\b[A-Z]{2,}\b",
    r"<(?!/)\w+>",
    r"[\]\)>]+\s*",
    r"(?:ab|a)(?:c|bcd)?",
    r"<x>|</x>\s*$",
    r"\[(?P<name>\w+)\](?P<id>\w*)",
    r"$",
    r"x??y",
    r"(?:\n|</a>)?>>",
]
TAGS = [
    r"<p=(?P<key>\w+)>(?P<value>.*?)</p>",
    r"<k>(?P<key>[^<]+)</k>\s*<v>(?P<value>.*?)</v>",
    r"(?P<key>\w+)=(?P<value>[^,)]*)",
    r"<(?P<key>\w+)/>",
]
CLASSES = {"CATEGORY_SPACE": " ", "CATEGORY_WORD": "w", "CATEGORY_DIGIT": "7"}
OR_TEXT = {"name": "json", "args": {"allow_non_json": True}}
NAMES = {"name": "{name}", "arguments": "{arguments}"}


def text(random: Random) -> str:
    """Returns a text with signs of many formats."""
    return "".join(random.choice(PIECES) for _ in range(random.randint(0, 6)))


def value(random: Random, depth: int = 2) -> Any:
    """Returns a value of JSON."""
    kind = random.random()
    if depth and kind < 0.12:
        return [value(random, depth - 1) for _ in range(random.randint(0, 3))]
    if depth and kind < 0.24:
        return {random.choice(["a", "b c", "k"]): value(random, depth - 1) for _ in range(random.randint(0, 2))}
    return random.choice(SCALARS)


def arguments(random: Random) -> dict[str, Any]:
    """Returns arguments of a call, for a tool of TOOLS and others."""
    keys = [*TOOLS[0]["function"]["parameters"]["properties"], "other"]  # type: ignore[index]
    return {random.choice(keys): value(random) for _ in range(random.randint(0, 4))}


def matching(pattern: str, random: Random) -> str:
    """Returns a text that a pattern matches, roughly."""
    parsed = regex_syntax.parse(pattern)
    names = {number: name for name, number in parsed.state.groupdict.items()}

    def written(parts: Any) -> str:
        out = ""
        for operator, given in parts:
            kind = str(operator)
            if kind == "LITERAL":
                out += chr(given)
            elif kind == "NOT_LITERAL":
                out += random.choice("ab ")
            elif kind == "ANY":
                out += random.choice("ab \n<")
            elif kind == "IN":
                member, of = random.choice(given)
                if str(given[0][0]) == "NEGATE":
                    out += random.choice("abc_")
                elif str(member) == "RANGE":
                    out += chr(random.randint(*of))
                else:
                    out += chr(of) if str(member) == "LITERAL" else CLASSES.get(str(of), "q")
            elif kind in ("MAX_REPEAT", "MIN_REPEAT"):
                least, most, repeated = given
                times = min(int(most), least + random.choice([0, 0, 1, 2]))
                out += "".join(written(repeated) for _ in range(times))
            elif kind == "SUBPATTERN":
                is_name = names.get(given[0]) == "name"
                out += random.choice(["ring", "stop", "ring", "get_x"]) if is_name else written(given[3])
            elif kind == "BRANCH":
                out += written(random.choice(given[1]))
        return out

    return written(parsed)


def anchor(field: Field, which: str, random: Random) -> str:
    """Returns a text that begins or ends a field."""
    if which in field:
        return random.choice(field[which]) if isinstance(field[which], list) else field[which]
    return matching(field[which + "_pattern"], random) if which + "_pattern" in field else ""


def tags(pattern: str, random: Random, given: dict[str, Any]) -> str:
    """Returns arguments between tags."""
    out = ""
    for key, item in given.items():
        if random.random() < 0.2:
            out += matching(pattern, random)
            continue
        shown = item if isinstance(item, str) else random.choice([json.dumps, json.dumps, repr])(item)
        tag = pattern.replace(r"\s*\n", "\n").replace(r"\s*", random.choice(["", "\n", " "]))
        tag = re.sub(r"\(\?P<key>[^)]*\)", lambda _, key=key: key, tag, count=1)
        begins = tag.find("(?P<value>")
        if begins >= 0:
            depth = 0
            for end in range(begins, len(tag)):
                depth += (tag[end] == "(") - (tag[end] == ")")
                if depth == 0:
                    tag = tag[:begins] + shown + tag[end + 1 :]
                    break
        out += tag.replace("\\", "")
    return out


def dialect(item: Any, mark: str, random: Random) -> str:
    """Returns a value in JSON with other quotes and bare keys."""
    if isinstance(item, str):
        return mark + item + mark if random.random() < 0.9 else json.dumps(item)
    if isinstance(item, dict):
        pairs = (
            f"{key if random.random() < 0.8 else json.dumps(key)}:{dialect(of, mark, random)}"
            for key, of in item.items()
        )
        return "{" + ",".join(pairs) + "}"
    if isinstance(item, list):
        return "[" + ",".join(dialect(of, mark, random) for of in item) + "]"
    return json.dumps(item)


def json_body(field: Field, random: Random) -> str:
    """Returns the text of a field of JSON."""
    given, options, shape = arguments(random), field.get("content_args", {}), json.dumps(field.get("transform", ""))
    if options.get("string_delims"):
        return dialect(given, options["string_delims"][0][0], random)

    def dump(item: Any) -> str:
        written = json.dumps(item, ensure_ascii=random.random() < 0.5, indent=random.choice([None, None, 1]))
        bare = options.get("unquoted_keys") and random.random() < 0.7
        return re.sub(r'"(\w+)"(\s*):', r"\1\2:", written) if bare else written

    if "{tool_name}" in shape:
        return dump([{"tool_name": "ring", "parameters": arguments(random)} for _ in range(random.randint(0, 2))])
    if field.get("transform_each"):
        return dump([{"name": "ring", "arguments": arguments(random)} for _ in range(random.randint(0, 2))])
    if "{content}" in shape and '"{name}"' not in shape:
        return dump({"name": random.choice(["ring", "stop", 5]), "arguments": given})
    if "{content." in shape:
        return dump({"name": "ring", "arguments": given})
    return dump(given if random.random() < 0.9 else value(random, 0))


def body(field: Field, random: Random) -> str:
    """Returns the text of a field."""
    kind, options = field.get("content", "text"), field.get("content_args", {})
    if random.random() < 0.06 or kind == "text":
        return text(random)
    if kind == "json":
        return json_body(field, random)
    if kind == "xml-inline":
        return tags(options["tag_pattern"], random, arguments(random)) + random.choice(["", "\n", "</function>"])
    if kind == "kv-lines":
        separator = options.get("kv_sep", ":")
        pairs = (f"{key}{separator}{random.choice(['', ' '])}{of}" for key, of in arguments(random).items())
        return str(options.get("line_sep", "\n")).join(pairs)
    if kind == "python-call-list":
        calls = []
        for _ in range(random.randint(0, 3)):
            keywords = (f"{key}={random.choice([repr, json.dumps])(of)}" for key, of in arguments(random).items())
            calls.append(f"{random.choice(['ring', 'a.b', 'stop'])}({', '.join(keywords)})")
        return f"{random.choice(['', ' '])}[{', '.join(calls)}]"
    return random.choice(NUMBERS)


def reply(template: Field, random: Random) -> str:
    """Returns a reply that a response template reads, or nearly."""
    out = ""
    for _ in range(random.randint(0, 5)):
        field = random.choice(list(template["fields"].values()))
        begins, inside, ends = anchor(field, "open", random), body(field, random), anchor(field, "close", random)
        kind = random.random()
        if kind < 0.05:
            begins = ""
        elif kind < 0.1:
            ends = ""
        elif kind < 0.13:
            begins = begins[: random.randint(0, len(begins))]
        elif kind < 0.16:
            ends = ends[: random.randint(0, len(ends))]
        out += begins + inside + ends + random.choice(["", "", "", "\n", " "])
        out += text(random) if random.random() < 0.2 else ""
    return out


def prompt(template: Field, random: Random) -> str:
    """Returns a prompt with as many beginnings of replies as prompts may have."""
    starts = [anchor(template, "start_anchor", random) for _ in range(2)]
    return random.choice(["", "user: hi\n", "<|bot|>", starts[0], f"x{starts[0]}old{starts[1]}"])


def content(random: Random) -> Field:
    """Returns a content parser with arguments."""
    kind = random.choice(
        ["text", "text", "text", "json", "json", "xml-inline", "kv-lines", "python-call-list", "int", "bool"]
    )
    options: Field = {}
    if kind == "json":
        quotes = random.choice([[["'", "'"]], [['<|"|>', '<|"|>']], [["`", "`"], ["«", "»"]]])
        options = {"unquoted_keys": True, "allow_non_json": True, "string_delims": quotes}
    elif kind == "kv-lines":
        options = {"kv_sep": "=", "line_sep": ";", "strip": False, "value_parser": OR_TEXT}
    elif kind == "text":
        options = {"strip": False}
    options = {key: option for key, option in options.items() if random.random() < 0.4}
    if kind == "xml-inline":
        options = {"tag_pattern": random.choice(TAGS), "merge_duplicates": random.random() < 0.4}
        options |= {"value_parser": random.choice([OR_TEXT, {"name": "text"}, {}])} if random.random() < 0.5 else {}
    return {"content": kind, "content_args": options}


def transform(kind: str, groups: set[str], random: Random) -> Field:
    """Returns the shape of a field whose borders capture these groups."""
    if kind == "python-call-list" and random.random() < 0.7:
        return {"transform_each": True, "transform": {"type": "function", "function": NAMES}}
    if kind == "json" and random.random() < 0.3:
        return {"transform_each": True, "transform": {"function": NAMES, "list": ["{arguments}", 1]}}
    if kind == "json" and random.random() < 0.3:
        return {"transform": {"function": {"name": "{content.name}", "arguments": "{content.arguments}"}}}
    if "name" in groups:
        return {"transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}}
    return {"transform": random.choice([{"v": "{content}"}, ["{content}", "plain", 3], "{content}"])}


def response_template(random: Random) -> Field:
    """Returns a response template of random fields."""
    fields: Field = {}
    has_rest = random.random() < 0.75
    for number, name in enumerate(random.sample(["content", "thinking", "tool_calls", "x"], random.randint(1, 4))):
        field = content(random)
        for which in ("open", "close"):
            if (which == "open" and has_rest and number == 0) or (which == "close" and random.random() < 0.15):
                continue
            kind = random.random()
            if kind < 0.4:
                field[which] = random.choice(MARKS)
            elif kind < 0.7:
                field[which] = random.sample(MARKS, random.randint(1, 3))
            else:
                field[which + "_pattern"] = random.choice(PATTERNS)
        if random.random() < 0.4:
            field["repeats"] = True
            field |= {"join": random.choice(["", "\n"])} if field["content"] == "text" and random.random() < 0.5 else {}
        field |= {"optional": False} if random.random() < 0.15 else {}
        groups = {name for which in ("open", "close") for name in _groups(field.get(which + "_pattern", ""))}
        if groups or random.random() < 0.3:
            field |= transform(field["content"], groups, random)
        fields[name] = field
    template: Field = {"fields": fields}
    if random.random() < 0.7:
        template["defaults"] = random.choice([{"role": "assistant"}, {"role": "assistant", "content": ""}, {}])
    if random.random() < 0.8:
        return {**template, "start_anchor": random.choice(["<|bot|>", ["<|bot|>", "<|t|>"], "<a>"])}
    return {**template, "start_anchor_pattern": random.choice([r"<\|bot\|>\n?", r"<bot>\s*", r"(?:<a>)+"])}


def _groups(pattern: str) -> list[str]:
    return list(re.compile(pattern).groupindex)


def parts(whole: str, random: Random) -> list[str]:
    """Returns a text cut at random: not at all, into characters, or into pieces."""
    kind = random.random()
    if kind < 0.25:
        return [whole]
    if kind < 0.4:
        return list(whole)
    cut, at = [], 0
    while at < len(whole):
        length = random.randint(0, 8)
        cut.append(whole[at : at + length])
        at += length
    return cut
