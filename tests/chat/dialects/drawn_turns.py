"""What templates do around the replies of a model, drawn at random: how tools are told, whose turn is whose."""

from __future__ import annotations

import json
from dataclasses import dataclass

from drawn_base import Calls, Draw, lit

PARTS = (
    "{% macro text_of(c) %}{% if c is string %}{{ c }}{% elif c %}{% for p in c %}"
    "{% if p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}{% endif %}{% endmacro %}"
)


@dataclass
class Turn:
    """The turns of a conversation: what each begins and ends with."""

    draw: Draw
    system: str
    user: str
    model: str
    tool: str
    over: dict[str, str]

    def __post_init__(self) -> None:
        draw = self.draw
        self.by_macro = draw.axis("content is read", ("as a text", 2), "by a macro") == "by a macro"
        self.told = draw.axis(
            "tools are told", ("in the system's turn", 3), "as JSON before all", "as one list", "beside the last user"
        )
        self.shown = draw.axis("an example of a call", ("none", 2), "among the tools") == "among the tools"
        self.strict = draw.axis("turns", ("as they come", 3), "must alternate") == "must alternate"
        self.results = draw.axis("results of tools", ("a turn of their own", 2), "in the user's turn")
        self.instructions = draw.axis("the system's message", ("a turn of its own", 3), "in the user's turn")
        self.asked = draw.axis("thinking is", ("on", 3), "off unless asked", "another variable")
        self.function_of = draw.axis("a call holds", ("a function", 3), "a function or itself")

    only_told = False
    """Whether the template writes no calls, and only tells the model how to."""

    def tell(self, written: Calls | None) -> None:
        """How calls are told."""
        if not written or written.turns or not written.marked:
            return
        # An example with words for values does not say that texts stand in quotes, or dicts for JSON.
        if {"a dict", "JSON, texts too", " = "} & set(self.draw.axes.values()):
            return
        self.only_told = self.draw.axis("calls are", ("written", 12), "only told") == "only told"
        if self.only_told:
            self.shown = True
            # What stands between two calls is in no example of one.
            written.parallel &= "<" not in written.between
            if self.told == "beside the last user":
                self.told = "as one list"

    def content(self, message: str) -> str:
        return f"text_of({message}.content)" if self.by_macro else f"{message}.content"

    def macros(self) -> str:
        return PARTS if self.by_macro else ""

    def function(self) -> str:
        if self.function_of == "a function":
            return "{% set f = c.function %}"
        return "{% if c.function %}{% set f = c.function %}{% else %}{% set f = c %}{% endif %}"

    def prompt(self, how: object) -> str:
        """What the template adds after the header of the turn so that the model answers."""
        on, off = lit(getattr(how, "prompt", "")), lit(getattr(how, "prompt_off", ""))
        if self.asked == "off unless asked":
            return "{% if enable_thinking is defined and enable_thinking %}" + on + "{% else %}" + off + "{% endif %}"
        if self.asked == "another variable":
            return (
                "{% if not (thinking | default(enable_thinking | default(true))) %}"
                + off
                + "{% else %}"
                + on
                + ("{% endif %}")
            )
        return "{% if enable_thinking is defined and not enable_thinking %}" + off + "{% else %}" + on + "{% endif %}"

    def describe(self, written: Calls | None) -> str:
        if not written:
            return ""
        if self.told == "as one list":
            told = lit("# Tools\n<tools>") + "{{ tools | tojson(indent=2) }}" + lit("</tools>\n")
        else:
            told = "{% for t in tools %}{{ t | tojson }}" + lit("\n") + "{% endfor %}"
        if self.shown:
            given = {"THE_KEY": "THE VALUE"}
            named = {"name": "THE_NAME", "arguments": json.dumps(given) if written.text else given}
            one = f"{{% set c = {{'id': 'THE_ID', 'function': {named}}} %}}{{% set f = c.function %}}" + written.one
            one = one.replace("loop.index0", "0")
            told += lit("Call a tool so:\n" + written.section[0]) + one + lit(written.section[1] + "\n")
        return "{% if tools %}" + told + "{% endif %}"

    def head(self, written: Calls | None) -> str:
        """What stands before the first message."""
        describe = self.describe(written)
        if self.told == "beside the last user":
            return lit(self.system + "Answer." + self.over["system"]) if self.system else ""
        if self.told == "as JSON before all" and self.system:
            return "{% if tools %}" + lit(self.system) + describe + lit(self.over["system"]) + "{% endif %}"
        return lit(self.system) + describe + lit("Answer." + self.over["system"])

    def messages(self, piece: str, written: Calls | None) -> str:
        content = "{{ " + self.content("m") + " }}"
        user = lit(self.user)
        system = lit(self.system) + content + lit(self.over["system"])
        if self.told == "beside the last user":
            user = "{% if loop.index0 == ns.last %}" + self.describe(written) + "{% endif %}" + user
        if self.instructions == "in the user's turn":
            user += "{% if loop.index0 == 1 and messages[0].role == 'system' %}{{ messages[0].content }}" + lit("\n\n")
            user += "{% endif %}"
            system = ""
        result = lit(self.tool) + content + lit(self.over["tool"])
        if self.results == "in the user's turn":
            again = "loop.first or messages[loop.index0 - 1].role != 'tool'"
            last = "loop.last or messages[loop.index0 + 1].role != 'tool'"
            result = (
                "{% if "
                + again
                + " %}"
                + lit(self.user)
                + "{% endif %}"
                + lit("<result>")
                + content
                + lit("</result>")
                + "{% if "
                + last
                + " %}"
                + lit(self.over["user"])
                + "{% endif %}"
            )
        strict = ""
        if self.strict:
            # As strict ones have it: whoever calls a tool, and what it gives, does not count.
            strict = (
                "{% if m.role == 'user' or (m.role == 'assistant' and not m.tool_calls) %}"
                "{% if (m.role == 'user') != (ns.turns % 2 == 0) %}{{ raise_exception('Turns must alternate.') }}"
                "{% endif %}{% set ns.turns = ns.turns + 1 %}{% endif %}"
            )
        return (
            "{% for m in messages %}"
            + strict
            + "{% if m.role == 'user' %}"
            + user
            + content
            + lit(self.over["user"])
            + "{% elif m.role == 'system' %}"
            + system
            + "{% elif m.role == 'tool' %}"
            + result
            + "{% elif m.role == 'assistant' %}"
            + piece
            + "{% endif %}{% endfor %}"
        )
