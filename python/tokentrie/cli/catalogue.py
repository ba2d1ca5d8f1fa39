"""The tools of the demo, and the prompt that offers them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import tokentrie

REQUEST = "Please call off the conference at 10:30."


@dataclass(frozen=True)
class Tool:
    """One line of a list of tools."""

    name: str
    description: str


TOOLS = [
    Tool("create_event", "Create an event."),
    Tool("create_reminder", "Create a reminder."),
    Tool("cancel_meeting", "Cancel a meeting."),
    Tool("cancel_flight", "Cancel a flight."),
    Tool("book_hotel", "Book a hotel."),
    Tool("send_message", "Send a message."),
    Tool("pay_invoice", "Pay an invoice."),
    Tool("translate_document", "Translate a document."),
]


def _words(text: str) -> list[str]:
    return text.split()


VERBS = _words(
    "create delete show send open close update find book cancel play pause buy sell translate summarize share copy "
    "rename move print download upload save sort count check lock unlock pay rate clean repair rent compare record "
    "approve reject assign archive restore explain measure draw write read"
)
OBJECTS = _words(
    "event meeting message letter photo song movie document folder checklist task reminder timer contact customer "
    "invoice payment account password ticket flight hotel table car bike train taxi route map recipe meal product "
    "package price discount review game team player door window lamp heater fan camera printer server database "
    "backup program branch report survey course exam lesson garden plant pet medicine workout budget loan"
)


def many(count: int, seed: int) -> list[Tool]:
    """The demo's tools among others, `count` in all; the same seed gives the same list."""
    rng = Random(seed)
    taken = {tool.name for tool in TOOLS}
    pairs = [(verb, thing) for verb in VERBS for thing in OBJECTS if f"{verb}_{thing}" not in taken]
    more = [_tool(verb, thing) for verb, thing in rng.sample(pairs, count - len(TOOLS))]
    return rng.sample([*TOOLS, *more], count)


def _tool(verb: str, thing: str) -> Tool:
    article = "an" if thing[0] in "aeiou" else "a"
    return Tool(f"{verb}_{thing}", f"{verb.capitalize()} {article} {thing}.")


def prompt(vocab: tokentrie.Vocab, tools: list[Tool], request: str) -> str:
    """The tiny model's own chat format where its markers are in the vocabulary, plain text for other models."""
    markers = ("<|im_start|>", "<|im_end|>", "<|tool|>")
    if all(len(vocab.tokenize(marker, parse_special=True)) == 1 for marker in markers):
        lines = "".join(f"{tool.description}<|tool|>{tool.name}\n" for tool in tools)
        return (
            f"<|im_start|>system\nAnswer with one name.\nTools:\n{lines}<|im_end|>\n"
            f"<|im_start|>user\n{request}<|im_end|>\n<|im_start|>assistant\n"
        )
    lines = "".join(f"- {tool.name}: {tool.description}\n" for tool in tools)
    return f"Tools:\n{lines}\nRequest: {request}\n\nName of the tool that does it:\n"
