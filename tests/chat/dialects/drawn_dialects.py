"""Chat templates drawn at random from what templates in the wild do, with replies and what they mean.

A reply is what the template itself writes for a message, by Jinja2; what the template leaves out of a conversation that
goes on, such as reasoning, is added where the template has it. Nothing of this is shared with what reads templates.
"""

from __future__ import annotations

import json

from drawn_calls import Draw, calls, lit
from drawn_replies import Dialect, Maker, Thinks

FRAMES = {
    "im": ("<|im_start|>{}\n", "<|im_end|>\n", ("system", "user", "assistant", "tool")),
    "header": ("<|start_header_id|>{}<|end_header_id|>\n\n", "<|eot_id|>", ("system", "user", "assistant", "ipython")),
    "bars": ("<|{}|>\n", "<|end|>\n", ("system", "user", "assistant", "tool")),
    "bars, no end of the user": ("<|{}|>", "</s>", ("system", "user", "assistant", "observation")),
    "turns": ("<start_of_turn>{}\n", "<end_of_turn>\n", ("system", "user", "model", "tool")),
    "wide": ("<\uff5c{}\uff5c>", "<\uff5cend\u2581of\u2581turn\uff5c>", ("System", "User", "Assistant", "Tool")),
    "words": ("{}: ", "</s>\n", ("SYSTEM", "USER", "ASSISTANT", "TOOL")),
    "roles": ("<role>{}</role>", "<|role_end|>", ("SYSTEM", "HUMAN", "ASSISTANT", "OBSERVATION")),
    "half": ("<|turn>{}\n", "<turn|>\n", ("system", "user", "model", "tool")),
    "two tokens": ("<|START_TURN|><|{}_TOKEN|>", "<|END_TURN|>", ("SYSTEM", "USER", "BOT", "TOOL")),
    "bracketed": ("[|{}|]", "[|endofturn|]\n", ("system", "user", "assistant", "tool")),
    "elements": ("<{0}>\n", "\n</{0}>\n", ("system", "user", "assistant", "tool")),
    "INST": ("", "</s>", ()),
}


def thinks(draw: Draw) -> Thinks:
    how, end = thinks_somehow(draw)
    how.end = end
    return how


def thinks_somehow(draw: Draw) -> tuple[Thinks, str]:
    style = draw.axis(
        "marks of reasoning",
        ("tag", 4),
        "bar",
        "start_end",
        "upper",
        "bracket",
        "wide",
        "half",
        "triangle",
        "prefixed",
        "begin_end",
    )
    word = draw.axis("word of reasoning", ("think", 4), "thinking", "reason", "thought", "analysis", "inner")
    how = draw.axis(
        "reasoning",
        "none",
        ("optional", 2),
        ("opened", 2),
        "opened, empty in history",
        "only ended",
        "dropped by split",
        "dropped by split, opened",
        "parsed from content",
        "after the last user",
        "in the last turn",
        "opened, dropped",
        "always a block",
    )
    if how == "none":
        return Thinks(), ""
    start, end = draw.pair(word, style)
    inner, after = draw.space("space in reasoning"), draw.space("space after reasoning", "\\n\\n")
    name = draw.axis("field of reasoning", ("reasoning_content", 3), "reasoning", "thinking")
    field = f"m.{name}"
    block = lit(start + inner) + "{{ " + field + " }}" + lit(inner + end + after)
    given = "{% if " + field + " %}" + block + "{% endif %}"
    off = draw.axis("without thinking", "as with", "a closed block") == "a closed block"
    closed = start + inner + inner + end + after if off else ""
    opened_off = closed or start + inner
    split = (
        "{% set said = m.content or '' %}{% if "
        + json.dumps(end, ensure_ascii=False)
        + " in said %}"
        + ("{% set said = said.split(" + json.dumps(end, ensure_ascii=False) + ")[-1].lstrip() %}{% endif %}")
    )
    if how == "optional":
        return Thinks(given, prompt_off=closed), end
    if how == "always a block":
        return Thinks(
            lit(start + inner) + "{{ " + field + " or '' }}" + lit(inner + end + after), prompt_off=closed
        ), end
    if how == "opened":
        return Thinks(given, prompt=start + inner, prompt_off=opened_off, closed=inner + end + after), end
    if how == "opened, empty in history":
        return Thinks(
            "{% if " + field + " %}" + block + "{% else %}" + lit(start + end + after) + "{% endif %}",
            prompt=start + inner,
            prompt_off=start + end + after if off else start + inner,
            closed=end + after,
        ), end
    if how == "only ended":
        return Thinks("{% if " + field + " %}{{ " + field + " }}" + lit(inner + end + after) + "{% endif %}"), end
    if how == "dropped by split":
        return Thinks("", split, prompt_off=closed, added=(start + inner, inner + end + after)), end
    if how == "dropped by split, opened":
        return Thinks("", split, start + inner, opened_off, ("", inner + end + after), inner + end + after), end
    if how == "opened, dropped":
        return Thinks("", "", start + inner, opened_off, ("", inner + end + after), inner + end + after), end
    last = "{% if loop.index0 > ns.last and " + field + " %}" + block + "{% endif %}"
    if how == "after the last user":
        return Thinks(last, prompt_off=closed), end
    if how == "in the last turn":
        return Thinks("{% if loop.last and " + field + " %}" + block + "{% endif %}", prompt_off=closed), end
    parsed = (
        "{% set thought = "
        + field
        + " or '' %}{% set said = m.content or '' %}{% if not thought and "
        + json.dumps(end, ensure_ascii=False)
        + " in said %}{% set thought = said.split("
        + json.dumps(end, ensure_ascii=False)
        + ")[0].split("
        + json.dumps(start, ensure_ascii=False)
        + ")[-1].strip() %}{% set said = said.split("
        + json.dumps(end, ensure_ascii=False)
        + ")[-1].lstrip() %}{% endif %}"
    )
    return Thinks(
        "{% if thought and loop.index0 > ns.last %}" + block.replace(field, "thought") + "{% endif %}",
        parsed,
        prompt_off=closed,
    ), end


def drawn(seed: str) -> Dialect:
    """A dialect: the same for the same seed."""
    draw = Draw(seed)
    frame = draw.axis("frame", *FRAMES)
    begin, end, roles = FRAMES[frame]
    told = draw.axis("tools are told", ("in the system's turn", 3), "as JSON before all")
    written = calls(draw) if draw.axis("calls", ("some", 9), "none") == "some" else None
    how = thinks(draw)
    # Frames in which nothing but the turn itself says that the model speaks.
    if frame == "INST":
        system, user, model, tool = "", "[INST] ", draw.choice(["", " "]), "[RESULTS] "
        over = {"user": " [/INST]", "model": end, "tool": " [/RESULTS]", "system": "\n"}
    else:
        system, user, model, tool = (begin.format(role) for role in roles)
        names = dict(zip(("system", "user", "model", "tool"), roles, strict=True))
        over = {who: end.format(role) for who, role in names.items()}
        if frame == "bars, no end of the user":
            over["user"] = over["tool"] = ""
        if frame == "words":
            over["user"] = over["tool"] = "\n"
    if written and written.turns and frame in ("INST", "elements", "words"):
        written.turns = False
        written.one = lit("<|to|>") + written.one.replace('{{ " to=', '{{ "to=')
    content = draw.axis("content", ("plain", 5), "marked", "marked after reasoning")
    said_by = "said" if "set said" in how.before else "m.content"
    trim = draw.axis("content is", ("as it is", 3), "trimmed")
    said = "{{ " + said_by + (" | trim" if trim == "trimmed" else "") + " }}"
    if content != "plain" and (not written or not written.turns):
        first, last = draw.pair(
            draw.choice(["answer", "response", "out", "final"]), draw.choice(["tag", "bar", "upper"])
        )
        pad = draw.space("space in content")
        marked = lit(first + pad) + said + lit(pad + last)
        shown = "m.reasoning_content or m.reasoning or m.thinking"
        if content == "marked after reasoning" and how.piece:
            said = "{% if " + shown + " %}" + marked + "{% else %}" + said + "{% endif %}"
        elif content == "marked":
            said = marked
    ends_calls = draw.axis("end of a turn with calls", ("as others", 3), "another marker", "another marker and a line")
    call_end = {"as others": over["model"], "another marker": "<|eom|>", "another marker and a line": "<|call_end|>\n"}[
        ends_calls
    ]
    piece = how.before + "{% set ns.any = false %}" + lit(model) + how.piece
    if written and written.turns:
        one = lit(model.rstrip()) + written.one + lit(call_end)
        piece = (
            "{% if m.tool_calls %}{% for c in m.tool_calls %}{% set f = c.function %}"
            + one
            + "{% endfor %}{% else %}"
            + piece
            + "{% if m.content %}"
            + said
            + "{% endif %}"
            + lit(over["model"])
            + "{% endif %}"
        )
        if how.piece:
            piece = (
                how.before
                + "{% if (m.reasoning_content or m.reasoning or m.thinking) and m.tool_calls %}"
                + (lit(model) + how.piece + lit(over["model"]) + "{% endif %}")
                + piece
            )
    else:
        piece += "{% if m.content %}" + said + "{% endif %}"
        apart = draw.space("space before calls", "\\n\\n")
        if written:
            spaced = "{% if m.content %}" + lit(apart) + "{% endif %}" if apart else ""
            each = (
                "{% for c in m.tool_calls %}{% set f = c.function %}"
                + written.one
                + "{% if not loop.last %}"
                + lit(written.between)
                + "{% endif %}{% endfor %}"
            )
            piece += (
                "{% if m.tool_calls %}"
                + spaced
                + lit(written.section[0])
                + each
                + lit(written.section[1])
                + lit(call_end)
                + "{% else %}"
                + lit(over["model"])
                + "{% endif %}"
            )
        else:
            piece += lit(over["model"])
    describe = "{% if tools %}{% for t in tools %}{{ t | tojson }}" + lit("\n") + "{% endfor %}{% endif %}"
    if not written:
        describe = ""
    head = lit(system) + describe + lit("Answer.") + lit(over["system"])
    if told == "as JSON before all" and frame != "INST":
        head = "{% if tools %}" + lit(system) + describe + lit(over["system"]) + "{% endif %}"
    header = "" if frame == "INST" and not how.prompt else model
    prompt = (
        lit(header)
        + "{% if enable_thinking is defined and not enable_thinking %}"
        + lit(how.prompt_off)
        + ("{% else %}" + lit(how.prompt) + "{% endif %}")
    )
    bos = draw.axis("beginning", "nothing", "bos")
    template = (
        ("{{ bos_token }}" if bos == "bos" else "")
        + "{% set ns = namespace(last=-1, any=false) %}"
        + "{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
        + head
        + "{% for m in messages %}{% if m.role == 'user' %}"
        + lit(user)
        + "{{ m.content }}"
        + lit(over["user"])
        + "{% elif m.role == 'system' %}"
        + lit(system)
        + "{{ m.content }}"
        + lit(over["system"])
        + "{% elif m.role == 'tool' %}"
        + lit(tool)
        + "{{ m.content }}"
        + lit(over["tool"])
        + "{% elif m.role == 'assistant' %}"
        + piece
        + "{% endif %}{% endfor %}{% if add_generation_prompt %}"
        + prompt
        + "{% endif %}"
    )
    ends = (over["model"], call_end)
    return Maker(seed, draw, template, how, written, header, ends, model).dialect()
