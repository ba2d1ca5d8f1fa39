"""The sets of legal values that the modes are compared on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import tokentrie
from tokentrie.bench import texts
from tokentrie.bench.grammars import Parts
from tokentrie.cli.demo import catalogue

NAMES = ("8-actions", "30-tools", "300-tools", "5000-titles", "form")


@dataclass(frozen=True)
class ValueSet:
    """One set: what the trie holds, and the same as text for the grammars."""

    name: str
    constraint: tokentrie.Trie | tokentrie.Form
    parts: Parts
    size: int
    unspeakable: str | None = None
    """Why there is no text for grammars, if there is none."""

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
        """Whether a text is one of the values."""
        return self._legal.fullmatch(text) is not None


def built_in(name: str, vocab: tokentrie.Vocab) -> ValueSet:
    """One of the sets that come along, by its name."""
    if name == "form":
        return _form()
    values = {
        "8-actions": lambda: _names(texts.ACTIONS),
        "30-tools": lambda: _names(catalogue.many(30, seed=0)),
        "300-tools": lambda: _names(catalogue.many(300, seed=0)),
        "5000-titles": lambda: texts.titles(5000),
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
            parts, problem = [], f"grammars need text, and a value of the payload is no UTF-8: {error.object!r}"
        yield ValueSet(path, trie, parts, len(trie), problem)


def _names(tools: list[catalogue.Tool]) -> list[str]:
    return [tool.name for tool in tools]


def _form() -> ValueSet:
    slots = {"action": _names(texts.ACTIONS), "priority": texts.PRIORITIES, "assignee": texts.PEOPLE}
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
