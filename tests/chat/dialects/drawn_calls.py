"""Ways in which chat templates write calls of tools, drawn at random: pieces of Jinja2 text."""

from __future__ import annotations

import json
from collections.abc import Callable

from drawn_base import STYLES, Calls, Draw, lit


def arguments(draw: Draw) -> tuple[str, bool]:
    """A JSON object, and whether the template wants it as text."""
    how = draw.axis("arguments", ("tojson", 3), "string or tojson", "printed", "spaced tojson", "joined", "a dict")
    return {
        "tojson": ("{{ f.arguments | tojson }}", False),
        "string or tojson": (
            "{% if f.arguments is string %}{{ f.arguments }}{% else %}{{ f.arguments | tojson }}{% endif %}",
            False,
        ),
        "printed": ("{{ f.arguments }}", True),
        "joined": ("{{ '' + f.arguments }}", True),
        # As Python prints it; JSON text is not taken.
        "a dict": ("{% if f.arguments is mapping %}{{ f.arguments }}{% endif %}", False),
        "spaced tojson": ("{{ f.arguments | tojson(indent=2) }}", False),
    }[how]


def json_arguments(draw: Draw) -> tuple[str, bool]:
    """The same, to stand inside of JSON."""
    value, text = arguments(draw)
    if draw.axes["arguments"] == "a dict":
        draw.axes["arguments"], value = "tojson", "{{ f.arguments | tojson }}"
    return value, text


WRITTEN = ("pieces", "arguments as text")
"""The ways to write JSON piece by piece."""


def json_object(draw: Draw) -> Calls:
    """`{"name": …, "arguments": …}`, alone or in a list."""
    style = draw.axis("marks of calls", *STYLES)
    name = draw.axis("key of the name", ("name", 3), "tool_name", "function", "tool")
    key = draw.axis("key of the arguments", ("arguments", 3), "parameters", "input", "args")
    how = draw.axis("JSON of a call", ("pieces", 3), "arguments as text", "whole", "a dict")
    order = draw.axis("order in a call", ("name first", 6), "arguments first")
    with_id = draw.axis("id in a call", ("none", 3), "last", "first", "inside") if how in WRITTEN else "none"
    inside = draw.axis("call in a function", ("no", 4), "yes") == "yes" and how in WRITTEN
    typed = draw.axis("type in a call", ("no", 4), "yes") == "yes" and not inside
    value, text = json_arguments(draw)
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
        if with_id == "inside":
            fields.insert(1, identified)
        body = lit("{") + lit(comma).join(fields) + lit("}")
        fields = [pair("type", lit('"function"')), pair("function", body)]
    if typed:
        fields.insert(0, pair("type", lit('"function"')))
    if with_id in ("first", "last") or (with_id == "inside" and not inside):
        fields.insert(0 if with_id == "first" else len(fields), identified)
    one = lit("{") + lit(comma).join(fields) + lit("}")
    if how == "whole":
        one, text = "{{ f | tojson }}", False
    if how == "a dict":
        one, text = "{{ {" + f"'{name}': f.name, '{key}': f.arguments" + "} }}", False
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
    values = draw.axis("values between tags", ("JSON", 3), "as Python prints them", "JSON, texts too")
    value = {"as Python prints them": "{{ v }}", "JSON, texts too": "{{ v | tojson }}"}.get(
        values, "{{ v if v is string else v | tojson }}"
    )
    how = draw.axis("keys and values", "key and value tags", "parameter=", 'parameter name=""', "typed", "elements")
    if how in ("typed", "elements") and values == "JSON, texts too":
        draw.axes["values between tags"], value = "JSON", "{{ v if v is string else v | tojson }}"
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
    joint = draw.axis("sign after a key", ("=", 3), " = ", ": ")
    loop = (
        "{% for k, v in f.arguments.items() %}{{ k }}"
        + lit(joint)
        + value
        + "{% if not loop.last %}, {% endif %}{% endfor %}"
    )
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
    value, text = json_arguments(draw)
    one = lit('{"') + "{{ f.name }}" + lit('": ') + value + lit("}")
    return Calls(one, ", ", (start + "[", "]" + end), text, starts=[start])


def recipient(draw: Draw) -> Calls:
    """A turn for each call, whose header says whom it is for."""
    value, text = arguments(draw)
    how = draw.axis("recipient", ">>>", "to=", "to=functions.", "@")
    if how == ">>>":
        return Calls(
            lit(">>>") + "{{ f.name }}" + lit("\n") + value, text=text, says_before=False, turns=False, marked=False
        )
    said = draw.axis("after the recipient", "<|message|>", "<|channel|>commentary<|message|>", "\n")
    # Content that no mark begins may begin with a sign, too.
    one = lit(how if how == "@" else f" {how}") + "{{ f.name }}" + lit(said) + value
    return Calls(one, text=text, turns=True, says_before=False, marked=how != "@")


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
