"""Chat templates drawn at random from what templates in the wild do, with replies and what they mean.

A reply is what the template itself writes for a message, by Jinja2; what the template leaves out of a conversation that
goes on, such as reasoning, is added where the template has it. Nothing of this is shared with what reads templates.
"""

from __future__ import annotations

import json

from drawn_base import Calls, Draw, lit
from drawn_calls import calls
from drawn_replies import EOS, Dialect, Maker, Thinks
from drawn_turns import Turn

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
        "beside calls only",
        "a part of the content",
        "never shown",
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
    if how == "dropped by split" and draw.axis("dropped", ("up to its end", 2), "by both marks") == "by both marks":
        first, last = (json.dumps(mark, ensure_ascii=False) for mark in (start, end))
        split = "{% set said = m.content or '' %}{% if " + last + " in said %}{% set said = said.split(" + first
        split += ")[0] + said.split(" + last + ")[-1].lstrip() %}{% endif %}"
    if how in ("optional", "beside calls only"):
        calls_only = how == "beside calls only"
        given = "{% if m.tool_calls %}" + given + "{% endif %}" if calls_only else given
        added = (start + inner, inner + end + after) if calls_only else None
        return Thinks(given, prompt_off=closed, added=added, calls_only=calls_only), end
    if how == "a part of the content":
        part = "{% for p in m.content if p.type == 'thinking' %}" + block.replace(field, "p.thinking") + "{% endfor %}"
        return Thinks("{% if m.content is not string %}" + part + "{% endif %}", prompt_off=closed, as_part=True), end
    if how == "never shown":
        # That a prompt without thinking holds a closed block is all that tells of it.
        closed = start + inner + inner + end + after
        return Thinks("", "", prompt_off=closed, added=(start + inner, inner + end + after)), end
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
    written = calls(draw) if draw.axis("calls", ("some", 9), "none") == "some" else None
    how = thinks(draw)
    if how.calls_only and not written:
        how, draw.axes["reasoning"] = Thinks(), "none"
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
    if draw.axis("end of a turn", ("marked", 4), "eos_token") == "eos_token" and frame != "elements":
        over["model"] = EOS
    if written and written.turns and frame in ("INST", "elements", "words"):
        written.turns = False
        written.one = lit("<|to|>") + written.one.replace('{{ " to=', '{{ "to=')
    turn = Turn(draw, system, user, model, tool, over)
    turn.by_macro |= how.as_part
    turn.tell(written)
    piece, silent, call_end = reply(draw, written, how, turn)
    header = "" if frame == "INST" and not how.prompt else model
    prompt = lit(header) + turn.prompt(how)
    bos = draw.axis("beginning", "nothing", "bos")
    before = (
        ("{{ bos_token }}" if bos == "bos" else "")
        + turn.macros()
        + "{% set ns = namespace(last=-1, any=false, turns=0) %}"
        + "{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
        + turn.head(written)
    )
    after = "{% if add_generation_prompt %}" + prompt + "{% endif %}"
    template, shown = (
        (before + turn.messages(of, written) + after).replace(lit(EOS), "{{ eos_token }}") for of in (piece, silent)
    )
    ends = (over["model"], call_end)
    made = Maker(seed, draw, template, how, written, header, ends, model).dialect()
    if turn.only_told:
        made.template = shown
    return made


def reply(draw: Draw, written: Calls | None, how: Thinks, turn: Turn) -> tuple[str, str, str]:
    """What a template writes for a message of the model, what one that writes no calls does, and what ends calls."""
    model, over = turn.model, turn.over
    content = draw.axis("content", ("plain", 5), "marked", "marked after reasoning")
    said_by = "said" if "set said" in how.before else turn.content("m")
    trim = draw.axis("content is", ("as it is", 3), "trimmed")
    said = "{{ " + said_by + (" | trim" if trim == "trimmed" else "") + " }}"
    if content != "plain" and (not written or not written.turns):
        first, last = draw.pair(
            draw.choice(["answer", "response", "out", "final"]), draw.choice(["tag", "bar", "upper"])
        )
        pad = draw.space("space in content")
        marked = lit(first + pad) + said + lit(pad + last)
        shown = "m.reasoning_content or m.reasoning or m.thinking"
        if content == "marked after reasoning" and how.piece and not how.as_part:
            said = "{% if " + shown + " %}" + marked + "{% else %}" + said + "{% endif %}"
        elif content == "marked":
            said = marked
    said = "{% if " + turn.content("m") + " %}" + said + "{% endif %}"
    ends_calls = draw.axis("end of a turn with calls", ("as others", 3), "another marker", "another marker and a line")
    call_end = {"as others": over["model"], "another marker": "<|eom|>", "another marker and a line": "<|call_end|>\n"}[
        ends_calls
    ]
    piece = how.before + "{% set ns.any = false %}" + lit(model) + how.piece
    if not written:
        return piece + said + lit(over["model"]), "", call_end
    function = turn.function()
    if written.turns:
        one = lit(model.rstrip()) + written.one + lit(call_end)
        piece = (
            "{% if m.tool_calls %}{% for c in m.tool_calls %}"
            + function
            + one
            + "{% endfor %}{% else %}"
            + piece
            + said
            + lit(over["model"])
            + "{% endif %}"
        )
        if how.piece:
            shown = "m.content is not string" if how.as_part else "m.reasoning_content or m.reasoning or m.thinking"
            piece = (
                how.before
                + "{% if ("
                + shown
                + ") and m.tool_calls %}"
                + (lit(model) + how.piece + lit(over["model"]) + "{% endif %}")
                + piece
            )
        return piece, "", call_end
    apart = draw.space("space before calls", "\\n\\n")
    spaced = "{% if " + turn.content("m") + " %}" + lit(apart) + "{% endif %}" if apart else ""
    each = (
        "{% for c in m.tool_calls %}"
        + function
        + written.one
        + "{% if not loop.last %}"
        + lit(written.between)
        + "{% endif %}{% endfor %}"
    )
    alone = draw.axis("calls and content", ("both", 4), "calls alone", "one call at most")
    if alone == "calls alone":
        written.says_before = False
        said = "{% if not m.tool_calls %}" + said + "{% endif %}"
    if alone == "one call at most":
        written.parallel = False
        each = "{% if m.tool_calls | length > 1 %}{{ raise_exception('One call.') }}{% endif %}" + each
    silent = piece + said + lit(over["model"])
    piece += (
        said
        + "{% if m.tool_calls %}"
        + spaced
        + lit(written.section[0])
        + each
        + lit(written.section[1])
        + lit(call_end)
        + "{% else %}"
        + lit(over["model"])
        + "{% endif %}"
    )
    return piece, silent, call_end
