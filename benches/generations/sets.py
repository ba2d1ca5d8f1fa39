"""The values that the engines are held to, and the prompts before them: the same on every machine, none downloaded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random

import tokentrie
from tokentrie.cli.demo import catalogue
from tokentrie.cli.demo.catalogue import Tool
from tokentrie.cli.lines import as_text

Parts = Sequence[str | Sequence[str]]
"""Text that stands there, and lists with one value that stands there."""

ACTIONS = [
    Tool("reply_to_sender", "Reply to the sender."),
    Tool("reply_to_all", "Reply to everyone."),
    Tool("forward_message", "Forward the message."),
    Tool("archive_message", "Archive the message."),
    Tool("delete_message", "Delete the message."),
    Tool("mark_as_read", "Mark as read."),
    Tool("mark_as_unread", "Mark as unread."),
    Tool("mark_as_spam", "Mark as spam."),
]
PRIORITIES = ["low", "normal", "high", "urgent"]
PEOPLE = ["Anna", "Ben", "Chiara", "David", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Katja", "Liam"]

ABOUT_TOOLS = [
    "Please call off the conference at 10:30.",
    "Please book the hotel in Riga.",
    "Send Anna a message.",
    "I want to pay the invoice.",
]
ABOUT_ACTIONS = [
    "Please delete the message.",
    "Forward the message to Anna.",
    "Reply to everyone, please.",
    "Mark it as spam.",
]
ABOUT_ANYTHING = [*ABOUT_TOOLS[:2], *ABOUT_ACTIONS[:2]]

NAMES = ("8-actions", "30-tools", "300-tools", "5000-titles", "form")


@dataclass(frozen=True)
class ValueSet:
    """One set: what the trie holds, and the same as text for the grammars."""

    name: str
    constraint: tokentrie.Trie | tokentrie.Form
    parts: Parts
    size: int
    unspeakable: str | None = None
    """Reason why a set has no grammar; empty if it has one."""

    @property
    def trie(self) -> tokentrie.Trie | None:
        """The trie of a plain set; a form has several, which depend on what stands before them."""
        return self.constraint if isinstance(self.constraint, tokentrie.Trie) else None

    @cached_property
    def max_tokens(self) -> int:
        """The most tokens of a leaf, and one that tells that it ends where others go on. Forms have no limit."""
        return max(len(leaf.tokens) for leaf in self.trie) + 1 if self.trie else 1

    @cached_property
    def max_bytes(self) -> int:
        """The most bytes of a value: what a grammar writes has no more tokens."""
        return sum(max(len(text.encode()) for text in _alternatives(part)) for part in self.parts)

    @cached_property
    def _legal(self) -> re.Pattern[str]:
        return re.compile("".join(f"(?:{'|'.join(map(re.escape, _alternatives(part)))})" for part in self.parts))

    def allows(self, text: str) -> bool:
        """Returns whether a text is one of the values."""
        return self._legal.fullmatch(text) is not None


def built_in(name: str, vocab: tokentrie.Vocab) -> ValueSet:
    """One of the sets that come along, by its name."""
    if name == "form":
        return _form()
    values = {
        "8-actions": lambda: _names(ACTIONS),
        "30-tools": lambda: _names(catalogue.make_tools(30, seed=0)),
        "300-tools": lambda: _names(catalogue.make_tools(300, seed=0)),
        "5000-titles": lambda: titles(5000),
    }[name]()
    return ValueSet(name, tokentrie.Trie.from_strings(vocab, values), [values], len(values))


def of_payload(content: bytes, vocab: tokentrie.Vocab) -> Iterator[ValueSet]:
    """A set for each descriptor of a payload, named by its path. Grammars get the text that the tokens spell."""
    sampler = tokentrie.Sampler(vocab, content)
    for path in sampler.paths:
        sampler.activate(path)
        trie = sampler.trie
        spelled = [vocab.detokenize_bytes(leaf.tokens) for leaf in trie]
        try:
            parts, problem = [[*dict.fromkeys(value.decode() for value in spelled)]], None
        except UnicodeDecodeError as error:
            parts, problem = [], f"grammars need text, and a value of the payload is not UTF-8: {error.object!r}"
        yield ValueSet(path, trie, parts, len(trie), problem)


def _names(tools: list[catalogue.Tool]) -> list[str]:
    return [tool.name for tool in tools]


def _form() -> ValueSet:
    slots = {"action": _names(ACTIONS), "priority": PRIORITIES, "assignee": PEOPLE}
    literals = ['{"action": "', '", "priority": "', '", "assignee": "']
    made: list[str | tokentrie.Slot] = []
    parts: list[str | list[str]] = []
    size = 1
    for literal, (name, values) in zip(literals, slots.items(), strict=True):
        made += [literal, tokentrie.Slot(name, values)]
        parts += [literal, values]
        size *= len(values)
    return ValueSet("form", tokentrie.Form(*made, '"}'), [*parts, '"}'], size)


def _alternatives(part: str | Sequence[str]) -> Sequence[str]:
    return [part] if isinstance(part, str) else part


@dataclass(frozen=True)
class Prompt:
    """A prompt as it was written, or made from the model's chat template, and as the model reads it."""

    text: str
    tokens: list[int]


def prompts_of_set(name: str, model: tokentrie.Model) -> list[Prompt]:
    """Returns the prompts of a set: requests with the tools that they may mean, titles to repeat, or requests alone."""
    vocab = model.vocab
    offers = {"8-actions": (ACTIONS, ABOUT_ACTIONS), "form": (ACTIONS, ABOUT_ACTIONS)}
    offers |= dict.fromkeys(("30-tools", "300-tools"), (catalogue.TOOLS, ABOUT_TOOLS))
    if name in offers:
        tools, requests = offers[name]
        asked = [catalogue.prompt(vocab, tools, request) for request in requests]
        return [Prompt(text, _tokens(vocab, text)) for text in asked]
    if name == "5000-titles":
        return [_chat(model, "Repeat the text.", title) for title in titles(len(ABOUT_TOOLS))]
    return [_chat(model, "Answer with one name.", request) for request in ABOUT_ANYTHING]


def _chat(model: tokentrie.Model, system: str, user: str) -> Prompt:
    """In the model's own chat format where it has one that takes this."""
    text = f"{system}\n{user}\n"
    try:
        tokens = model.chat_prompt([{"role": "system", "content": system}, {"role": "user", "content": user}])
    except tokentrie.errors.ModelError:
        tokens = _tokens(model.vocab, text)
    return Prompt(text, tokens)


def prompts_of_file(path: Path, content: bytes, model: tokentrie.Model) -> list[Prompt]:
    """One a line, as it is; empty lines do not count. In a `.jsonl` file a line is a string or has one as "prompt".

    Raises:
        TokenTrieError: no prompt, an invalid line, or a prompt that leaves no room for an answer.
    """
    prompts = []
    jsonl = path.suffix.lower() in (".jsonl", ".ndjson")
    for number, line in enumerate(as_text(content, path).split("\n"), 1):
        if not line.strip():
            continue
        text = _json_prompt(f"{path}, line {number}", line) if jsonl else line
        tokens = _tokens(model.vocab, text)
        if not 0 < len(tokens) < model.n_ctx:
            room = f"the context has room for {model.n_ctx}"
            raise tokentrie.TokenTrieError(f"{path}, line {number}: a prompt of {len(tokens)} tokens: {room}")
        prompts.append(Prompt(text, tokens))
    if not prompts:
        raise tokentrie.TokenTrieError(f"{path}: no line with a prompt")
    return prompts


def _json_prompt(where: str, line: str) -> str:
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        raise tokentrie.TokenTrieError(f"{where}, column {error.colno}: {error.msg}") from error
    text = entry.get("prompt") if isinstance(entry, dict) else entry
    if not isinstance(text, str) or not text:
        raise tokentrie.TokenTrieError(f'{where}: neither a text nor an object with a text as "prompt"')
    return text


def _tokens(vocab: tokentrie.Vocab, text: str) -> list[int]:
    return vocab.tokenize(text, add_special=True, parse_special=True)


def _words(text: str) -> list[str]:
    return text.split()


_ADJECTIVES = _words(
    "Silent Broken Golden Hidden Last Crimson Distant Endless Forgotten Gentle Hollow Iron Lonely Midnight Northern "
    "Painted Quiet Restless Secret Velvet Wandering Winter Burning Paper"
)
_NOUNS = _words(
    "Garden River Clock Harbour Mirror Orchard Bridge Letter Stranger Voyage Lighthouse Forest Empire Promise Shadow "
    "Summer Railway Kingdom Daughter Thief Window Island Doctor Winter"
)
_PLACES = _words("Riga Lisbon Havana Kyoto Bergen Marrakesh Vienna Tallinn Naples Bombay Dublin Prague")


def titles(count: int) -> list[str]:
    """Titles of films that were never made, with their years: none begins another one."""
    random = Random(5000)
    found: dict[str, None] = {}
    while len(found) < count:
        adjective, noun, other = random.choice(_ADJECTIVES), random.choice(_NOUNS), random.choice(_NOUNS)
        place, year = random.choice(_PLACES), random.randrange(1925, 2025)
        shapes = (
            f"The {adjective} {noun}",
            f"{adjective} {noun}",
            f"The {noun} of {place}",
            f"A {noun} in {place}",
            f"The {noun} and the {other}",
            f"{place}, {adjective} {place}",
        )
        found[f"{random.choice(shapes)} ({year})"] = None
    return list(found)
