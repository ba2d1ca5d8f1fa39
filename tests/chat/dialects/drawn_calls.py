"""Ways in which chat templates write calls of tools, drawn at random: pieces of Jinja2 text."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field

WORDS = [
    "tool_call",
    "call",
    "function",
    "invoke",
    "action",
    "use_tool",
    "fn",
    "tool",
    "act",
    "request",
    "zorp",
    "step",
]
STYLES = [
    "tag",
    "bar",
    "start_end",
    "begin_end",
    "upper",
    "bracket",
    "wide",
    "half",
    "triangle",
    "prefixed",
    "end bracket",
    "double",
    "flowers",
]


def lit(text: str) -> str:
    """A text in a template, as an expression."""
    return "{{ " + json.dumps(text, ensure_ascii=False) + " }}" if text else ""


class Draw(random.Random):
    """What a dialect is drawn from."""

    axes: dict[str, str]

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.axes = {}
        self.words = self.sample(WORDS, len(WORDS))

    def axis(self, name: str, *choices: str | tuple[str, float]) -> str:
        """One of several, of which those with a number beside are so much as likely."""
        pairs = [(choice, 1.0) if isinstance(choice, str) else choice for choice in choices]
        value = self.choices([value for value, _ in pairs], [weight for _, weight in pairs])[0]
        self.axes[name] = value
        return value

    def space(self, name: str, *more: str) -> str:
        return json.loads(f'"{self.axis(name, ("", 2), chr(92) + "n", *more)}"')

    def word(self) -> str:
        return self.words.pop()

    def pair(self, word: str, style: str) -> tuple[str, str]:
        """The markers around something."""
        upper = word.upper()
        return {
            "tag": (f"<{word}>", f"</{word}>"),
            "bar": (f"<|{word}|>", f"<|/{word}|>"),
            "start_end": (f"<|{word}_start|>", f"<|{word}_end|>"),
            "begin_end": (f"<|begin_of_{word}|>", f"<|end_of_{word}|>"),
            "upper": (f"<|START_{upper}|>", f"<|END_{upper}|>"),
            "bracket": (f"[{upper}]", f"[/{upper}]"),
            "wide": (f"<\uff5c{word}\u2581begin\uff5c>", f"<\uff5c{word}\u2581end\uff5c>"),
            "half": (f"<|{word}>", f"<{word}|>"),
            "triangle": (f"\u25c1{word}\u25b7", f"\u25c1/{word}\u25b7"),
            "prefixed": (f"<own:{word}>", f"</own:{word}>"),
            "end bracket": (f"[{upper}]", f"[END_{upper}]"),
            "double": (f"<<{word}>>", f"<</{word}>>"),
            "flowers": (f"\u273f{upper}\u273f", f"\u273fEND_{upper}\u273f"),
        }[style]


@dataclass
class Calls:
    """How calls are written. In `one`, `c` is the call and `f` its function."""

    one: str
    between: str = ""
    section: tuple[str, str] = ("", "")
    text: bool = False
    """Whether the template wants the arguments as JSON text."""
    ids: bool = False
    parallel: bool = True
    turns: bool = False
    """Whether each call is a turn of its own, with this as its header's end."""
    says_before: bool = True
    """Whether content may stand before calls."""
    marked: bool = True
    """Whether it is certain of a call that it is one."""
    flat: bool = False
    """Whether values are texts and numbers only."""
    starts: list[str] = field(default_factory=list)
    """Texts after which white space may be more or less, as models write it."""


def arguments(draw: Draw) -> tuple[str, bool]:
    """A JSON object, and whether the template wants it as text."""
    how = draw.axis("arguments", ("tojson", 3), "string or tojson", "printed", "spaced tojson", "joined")
    return {
        "tojson": ("{{ f.arguments | tojson }}", False),
        "string or tojson": (
            "{% if f.arguments is string %}{{ f.arguments }}{% else %}{{ f.arguments | tojson }}{% endif %}",
            False,
        ),
        "printed": ("{{ f.arguments }}", True),
        "joined": ("{{ '' + f.arguments }}", True),
        "spaced tojson": ("{{ f.arguments | tojson(indent=2) }}", False),
    }[how]


def json_object(draw: Draw) -> Calls:
    """`{"name": …, "arguments": …}`, alone or in a list."""
    style = draw.axis("marks of calls", *STYLES)
    name = draw.axis("key of the name", ("name", 3), "tool_name", "function", "tool")
    key = draw.axis("key of the arguments", ("arguments", 3), "parameters", "input", "args")
    how = draw.axis("JSON of a call", ("pieces", 3), "arguments as text", "whole")
    order = draw.axis("order in a call", ("name first", 6), "arguments first")
    with_id = draw.axis("id in a call", ("none", 3), "last", "first") if how != "whole" else "none"
    inside = draw.axis("call in a function", ("no", 4), "yes") == "yes" and how != "whole"
    typed = draw.axis("type in a call", ("no", 4), "yes") == "yes" and not inside
    value, text = arguments(draw)
    if how == "arguments as text":
        value = "{{ (f.arguments if f.arguments is string else f.arguments | tojson) | tojson }}"
        text = False
    colon = draw.axis("colons", ": ", ":")
    comma = ", " if colon == ": " else ","

    def pair(key: str, value: str) -> str:
        return lit(f'"{key}"{colon}') + value

    named = pair(name, lit('"') + "{{ f.name }}" + lit('"'))
    fields = [named, pair(key, value)]
    if order == "arguments first":
        fields.reverse()
    identified = pair("id", lit('"') + "{{ c.id }}" + lit('"'))
    if inside:
        body = lit("{") + lit(comma).join(fields) + lit("}")
        fields = [pair("type", lit('"function"')), pair("function", body)]
    if typed:
        fields.insert(0, pair("type", lit('"function"')))
    if with_id != "none":
        fields.insert(0 if with_id == "first" else len(fields), identified)
    one = lit("{") + lit(comma).join(fields) + lit("}")
    if how == "whole":
        one, text = "{{ f | tojson }}", False
    placed = draw.axis("place of calls", ("tags", 4), "list in a section", "section of tags", "code block", "bare")
    start, end = draw.pair(draw.word(), style)
    inner = draw.space("space in calls", " ")
    if placed == "tags":
        between = draw.space("space between calls")
        between += draw.axis("mark between calls", ("none", 4), "<|next|>", "<sep/>").replace("none", "")
        return Calls(
            lit(start + inner) + one + lit(inner + end), between, text=text, ids=with_id != "none", starts=[start]
        )
    if placed == "list in a section":
        end = (draw.axis("end of a list", ("marked", 2), "bare") == "marked" and end) or ""
        comma = json.loads(f'"{draw.axis("space between calls", ", ", ",", f",{chr(92)}n")}"')
        section = (start + inner + "[", "]" + (inner + end if end else ""))
        return Calls(one, comma, section, text=text, ids=with_id != "none", starts=[start])
    if placed == "section of tags":
        outer = draw.pair(draw.word() + "s", style)
        between = draw.space("space between calls")
        around = draw.space("space in sections")
        section = (outer[0] + around, around + outer[1])
        return Calls(
            lit(start + inner) + one + lit(inner + end), between, section, text, with_id != "none", starts=[start]
        )
    if placed == "code block":
        return Calls(lit("```json\n") + one + lit("\n```"), "\n", text=text, ids=with_id != "none")
    return Calls(one, text=text, ids=with_id != "none", parallel=False, says_before=False, marked=False)


def name_before(draw: Draw) -> Calls:
    """A name, then a JSON object."""
    style = draw.axis("marks of calls", *STYLES)
    value, text = arguments(draw)
    how = draw.axis(
        "between name and arguments",
        "nothing",
        "line",
        "marker",
        "attribute",
        "equals",
        "block",
        "indexed",
        "elements",
        "labels",
    )
    word = draw.word()
    start, end = draw.pair(word, style)
    inner = draw.space("space in calls", " ")
    ids = False
    if how == "nothing":
        one = lit(start + inner) + "{{ f.name }}" + value + lit(inner + end)
    elif how == "line":
        one = lit(start) + "{{ f.name }}" + lit("\n") + value + lit(inner + end)
    elif how == "marker":
        other, _ = draw.pair(draw.word(), style)
        ids = draw.axis("id before arguments", ("no", 2), "yes") == "yes"
        own, _ = draw.pair("call_id", style)
        number = lit(own) + "{{ c.id }}" if ids else ""
        end = (draw.axis("end of a call", ("marked", 2), "none") == "marked" and inner + end) or ""
        one = lit(start) + "{{ f.name }}" + number + lit(other) + value + lit(end)
    elif how == "attribute":
        quote = '"'
        one = lit(f"<{word} name={quote}") + "{{ f.name }}" + lit(f"{quote}>{inner}") + value + lit(f"{inner}</{word}>")
        start, end = f"<{word} name={quote}", f"</{word}>"
    elif how == "equals":
        one = lit(f"<{word}=") + "{{ f.name }}" + lit(f">{inner}") + value + lit(f"{inner}</{word}>")
    elif how == "block":
        one = lit(start + "function" + "<|sep|>") + "{{ f.name }}" + lit("\n```json\n") + value + lit("\n```" + end)
    elif how == "elements":
        one = lit(f"{start}{inner}<name>") + "{{ f.name }}" + lit(f"</name>{inner}<arguments>") + value
        one += lit(f"</arguments>{inner}{end}")
    elif how == "labels":
        first, last = draw.choice([("Action: ", "\nAction Input: "), ("Tool: ", "\nArguments: ")])
        return Calls(lit(first) + "{{ f.name }}" + lit(last) + value, text=text, parallel=False, marked=False)
    else:
        sep, _ = draw.pair(draw.word(), style)
        one = lit(start + "functions.") + "{{ f.name }}:{{ loop.index0 }}" + lit(sep) + value + lit(end)
    between = draw.space("space between calls")
    section = ("", "")
    if draw.axis("section", ("none", 2), "marked") == "marked":
        around = draw.space("space in sections")
        outer = draw.pair(draw.word() + "s", style)
        section = (outer[0] + around, around + outer[1])
    return Calls(one, between, section, text, ids, starts=[start] if how in ("nothing", "line", "marker") else [])


def keyed(draw: Draw) -> Calls:
    """Keys and values between tags."""
    printed = draw.axis("values between tags", ("JSON", 3), "as Python prints them") == "as Python prints them"
    value = "{{ v }}" if printed else "{{ v if v is string else v | tojson }}"
    how = draw.axis("keys and values", "key and value tags", "parameter=", 'parameter name=""', "typed", "elements")
    line = draw.space("space between values")
    pad = draw.space("space in values") if how in ("parameter=", 'parameter name=""') else ""
    key_tag, value_tag = draw.choice([("arg_key", "arg_value"), ("k", "v"), ("key", "value")])
    word = draw.choice(["parameter", "param", "arg"])
    each = {
        "key and value tags": lit(f"<{key_tag}>")
        + "{{ k }}"
        + lit(f"</{key_tag}>{line}<{value_tag}>")
        + value
        + lit(f"</{value_tag}>{line}"),
        "parameter=": lit(f"<{word}=") + "{{ k }}" + lit(f">{pad}") + value + lit(f"{pad}</{word}>{line}"),
        'parameter name=""': lit(f'<{word} name="')
        + "{{ k }}"
        + lit(f'">{pad}')
        + value
        + lit(f"{pad}</{word}>{line}"),
        "typed": lit(f'<{word} name="')
        + "{{ k }}"
        + lit('" string="')
        + "{{ 'true' if v is string else 'false' }}"
        + lit('">')
        + value
        + lit(f"</{word}>{line}"),
        "elements": lit("<") + "{{ k }}" + lit(">") + value + lit("</") + "{{ k }}" + lit(f">{line}"),
    }[how]
    loop = "{% for k, v in f.arguments.items() %}" + each + "{% endfor %}"
    named = draw.axis("name of a tagged call", "equals", "attribute", "line", "nothing", "own tag")
    outer = draw.word()
    style = draw.axis("marks of calls", *STYLES)
    start, end = draw.pair(draw.word(), style)
    after = draw.space("space in calls")
    if named == "equals":
        one = lit(f"<{outer}=") + "{{ f.name }}" + lit(f">{line}") + loop + lit(f"</{outer}>")
    elif named == "attribute":
        one = lit(f'<{outer} name="') + "{{ f.name }}" + lit(f'">{line}') + loop + lit(f"</{outer}>")
    elif named == "line":
        one = lit(start) + "{{ f.name }}" + lit("\n") + loop + lit(end)
    elif named == "nothing":
        one = lit(start) + "{{ f.name }}" + loop + lit(end)
    else:
        one = lit(start + after) + lit("<name>") + "{{ f.name }}" + lit(f"</name>{line}") + loop + lit(end)
    section = ("", "")
    wrapped = draw.axis("section", "none", "around each", "around all")
    if wrapped != "none":
        word = draw.word() + "s"
        begin, over = draw.pair(word, style)
        around = draw.space("space in sections")
        if wrapped == "around all":
            section = (begin + around, around + over)
        elif named in ("equals", "attribute"):
            one = lit(begin + around) + one + lit(around + over)
    between = draw.space("space between calls")
    nested = how in ("key and value tags", "parameter=", 'parameter name=""', "typed")
    return Calls(one, between, section, flat=not nested, starts=[start] if named == "line" else [])


def lines(draw: Draw) -> Calls:
    """A name, and a line for each argument."""
    joint = draw.axis("joint of a line", ": ", "=", " = ")
    before = draw.axis("before a line", ("", 3), "- ")
    value = "{{ v if v is string else v | tojson }}"
    loop = (
        "{% for k, v in f.arguments.items() %}"
        + lit(before)
        + "{{ k }}"
        + lit(joint)
        + value
        + lit("\n")
        + "{% endfor %}"
    )
    start, end = draw.pair(draw.word(), draw.axis("marks of calls", *STYLES))
    one = lit(start) + "{{ f.name }}" + lit("\n") + loop + lit(end)
    return Calls(one, draw.space("space between calls"))


def python(draw: Draw) -> Calls:
    """Calls as Python writes them."""
    how = draw.axis("texts in Python", "tojson", "quotes")
    text = "{{ v | tojson }}" if how == "tojson" else "'{{ v }}'"
    value = "{% if v is string %}" + text + "{% else %}{{ v }}{% endif %}"
    loop = "{% for k, v in f.arguments.items() %}{{ k }}=" + value + "{% if not loop.last %}, {% endif %}{% endfor %}"
    one = "{{ f.name }}(" + loop + ")"
    style = draw.axis("marks of calls", *STYLES)
    placed = draw.axis("place of calls", ("list in a section", 2), "tags", "list", "code block")
    start, end = draw.pair(draw.word(), style)
    if placed == "code block":
        return Calls(lit("```tool_code\n") + one + lit("\n```"), draw.space("space between calls"))
    if placed == "tags":
        inner = draw.space("space in calls")
        return Calls(lit(start + inner) + one + lit(inner + end), draw.space("space between calls"))
    if placed == "list":
        return Calls(one, ", ", ("[", "]"), says_before=False, marked=False)
    return Calls(one, ", ", (start + "[", "]" + end), starts=[start])


def pairs(draw: Draw) -> Calls:
    """`call:NAME{key:<|"|>text<|"|>}`."""
    mark = draw.axis("quotes of pairs", '<|"|>', "<quote>", "<|s|>")
    value = "{% if v is string %}" + lit(mark) + "{{ v }}" + lit(mark) + "{% else %}{{ v | tojson }}{% endif %}"
    loop = "{% for k, v in f.arguments.items() %}{{ k }}:" + value + "{% if not loop.last %},{% endif %}{% endfor %}"
    style = draw.axis("marks of calls", *STYLES)
    start, end = draw.pair(draw.word(), style)
    one = lit(start + "call:") + "{{ f.name }}" + lit("{") + loop + lit("}" + end)
    return Calls(one)


def name_as_key(draw: Draw) -> Calls:
    style = draw.axis("marks of calls", *STYLES)
    start, end = draw.pair(draw.word() + "s", style)
    value, text = arguments(draw)
    one = lit('{"') + "{{ f.name }}" + lit('": ') + value + lit("}")
    return Calls(one, ", ", (start + "[", "]" + end), text, starts=[start])


def recipient(draw: Draw) -> Calls:
    """A turn for each call, whose header says whom it is for."""
    value, text = arguments(draw)
    how = draw.axis("recipient", ">>>", "to=", "to=functions.")
    if how == ">>>":
        return Calls(
            lit(">>>") + "{{ f.name }}" + lit("\n") + value, text=text, says_before=False, turns=False, marked=False
        )
    said = draw.axis("after the recipient", "<|message|>", "<|channel|>commentary<|message|>", "\n")
    return Calls(lit(f" {how}") + "{{ f.name }}" + lit(said) + value, text=text, turns=True, says_before=False)


LAYOUTS: dict[str, tuple[Callable[[Draw], Calls], float]] = {
    "JSON object": (json_object, 4),
    "name before JSON": (name_before, 3),
    "keys and values": (keyed, 3),
    "lines": (lines, 0.6),
    "Python": (python, 1.2),
    "pairs": (pairs, 0.7),
    "name as key": (name_as_key, 0.6),
    "recipient": (recipient, 0.8),
}


def calls(draw: Draw) -> Calls:
    layout = draw.axis("layout", *((name, weight) for name, (_, weight) in LAYOUTS.items()))
    return LAYOUTS[layout][0](draw)
