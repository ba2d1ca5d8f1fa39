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


def make_tools(count: int, seed: int) -> list[Tool]:
    """The demo's tools among others, `count` in all; the same seed gives the same list."""
    rng = Random(seed)
    taken = {tool.name for tool in TOOLS}
    pairs = [(verb, thing) for verb in VERBS for thing in OBJECTS if f"{verb}_{thing}" not in taken]
    more = [_tool(verb, thing) for verb, thing in rng.sample(pairs, count - len(TOOLS))]
    return rng.sample([*TOOLS, *more], count)


def _tool(verb: str, thing: str) -> Tool:
    article = "an" if thing[0] in "aeiou" else "a"
    return Tool(f"{verb}_{thing}", f"{verb.capitalize()} {article} {thing}.")


def names(count: int, seed: int) -> list[str]:
    """Different names of three words, the last a number; the same seed gives the same ones."""
    each = -(-count // (len(VERBS) * len(OBJECTS)))
    width = max(len(str(each - 1)), 2)
    made = [f"{verb}_{thing}_{number:0{width}}" for verb in VERBS for thing in OBJECTS for number in range(each)]
    return Random(seed).sample(made, count)


def times() -> list[str]:
    """The values of the only argument of a call: every fifth minute of a day."""
    return [f"{minute // 60:02}:{minute % 60:02}" for minute in range(0, 24 * 60, 5)]


def prompt(vocab: tokentrie.Vocab, tools: list[Tool], request: str) -> str:
    """Asks for the name of a tool."""
    lines = [(tool.description, tool.name) for tool in tools]
    return _prompt_text(vocab, "Answer with one name.", lines, request, "Name of the tool that does it:")


def call_prompt(vocab: tokentrie.Vocab, tools: list[Tool], request: str) -> str:
    """Asks for a call of a tool with a time."""
    lines = [(tool.description, f"{tool.name}(time)") for tool in tools]
    return _prompt_text(vocab, "Answer with a tool call.", lines, request, "Tool call:")


def repeat_prompt(vocab: tokentrie.Vocab, text: str) -> str:
    """Asks for the same text."""
    return _prompt_text(vocab, "Repeat the text.", [], text, "The same text:")


def _prompt_text(vocab: tokentrie.Vocab, task: str, tools: list[tuple[str, str]], request: str, answer: str) -> str:
    """The tiny model's own chat format where its markers are in the vocabulary, plain text for other models."""
    markers = ("<|im_start|>", "<|im_end|>", "<|tool|>")
    if all(len(vocab.tokenize(marker, parse_special=True)) == 1 for marker in markers):
        lines = "".join(f"{description}<|tool|>{name}\n" for description, name in tools)
        system = f"{task}\nTools:\n{lines}" if tools else task
        return f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{request}<|im_end|>\n<|im_start|>assistant\n"
    lines = "".join(f"- {name}: {description}\n" for description, name in tools)
    offered = f"Tools:\n{lines}\n" if tools else ""
    return f"{task}\n{offered}Request: {request}\n\n{answer}\n"
