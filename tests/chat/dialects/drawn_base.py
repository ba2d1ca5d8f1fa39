"""What dialects are drawn from: words, markers, pieces of Jinja2 text."""

from __future__ import annotations

import json
import random
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
