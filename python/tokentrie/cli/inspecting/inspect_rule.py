"""`tokentrie inspect` of a rule: how large it is, what may begin a text, some texts, and the automaton."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.inspecting import automaton, automaton_svg
from tokentrie.cli.inspecting.automaton import Automaton
from tokentrie.cli.loading import open_vocab, packaged_model, token_text
from tokentrie.cli.rules import RuleSource

# Tokens that are shown of those that may begin a text.
SHOWN = 12
# Characters of a text that are shown of those that people see.
LONGEST = 72
# States of an automaton that is printed, or drawn.
PRINTED = 32
# Texts of a grammar that are counted; of an automaton all are.
COUNTED = 1000


@dataclass(frozen=True)
class Texts:
    """Number of texts of a rule."""

    finite: bool | None
    """None if it was not found out."""
    count: int | None = None
    """All of them, if they were counted."""


def run(source: RuleSource, vocab_path: Path | None, samples: int, seed: int, svg: Path | None, as_json: bool) -> None:
    """Makes the rule, looks at it and prints."""
    rule = source.rule()
    regex = rule if isinstance(rule, tokentrie.Regex) else None
    table = Automaton.from_regex(regex) if regex else None
    if svg and (regex is None or regex.states > PRINTED):
        states = f"{regex.states:,} states" if regex else "no automaton"
        raise tokentrie.TokenTrieError(f"{svg}: automata of up to {PRINTED} states are drawn, and this has {states}")
    vocab = open_vocab(vocab_path)
    with console.working("looking at the rule"):
        legal = tokentrie.Sampler(vocab, rule).allowed().tolist()
        texts = _count_texts(rule, table)
        drawn = rule.samples(samples, seed)
    if as_json:
        console.print_json(_document(rule, source, table, texts, drawn, vocab, legal))
        return
    name = (vocab_path or packaged_model()).name
    screen = console.screen()
    screen.print(_heading(rule, source, table, texts))
    screen.print(_beginning(vocab, name, legal))
    for text in drawn:
        screen.print(Text(f"such as {console.quote_bytes(_shorten(text).encode())}"))
    if isinstance(rule, tokentrie.rules.Grammar):
        screen.print(Text("terminals " + "  ".join(map(console.printable, rule.terminals))))
    if regex and table:
        screen.print(_state_table(table) if regex.states <= PRINTED else _too_many(regex))
    if svg and table:
        automaton_svg.save(svg, table, source.regex or "")


def _count_texts(rule: tokentrie.rules.Rule, table: Automaton | None) -> Texts:
    if table:
        count = table.texts()
        return Texts(count is not None, count)
    try:
        return Texts(True, len(rule.texts(COUNTED)))
    except tokentrie.RuleError as error:
        # A rule with too many texts to count may have infinitely many.
        return Texts(False if "language is infinite" in str(error) else None)


def _heading(rule: tokentrie.rules.Rule, source: RuleSource, table: Automaton | None, texts: Texts) -> Text:
    sizes = []
    if isinstance(rule, tokentrie.Regex):
        sizes.append(console.count(rule.states, "state", "states"))
        if table:
            sizes.append(console.count(table.classes(), "class of bytes", "classes of bytes"))
    if isinstance(rule, tokentrie.rules.Grammar):
        sizes.append(console.count(len(rule.terminals), "terminal", "terminals"))
        sizes.append(console.count(rule.parser_states, "parser state", "parser states"))
        sizes.append(console.count(rule.lexer_states, "lexer state", "lexer states"))
    if texts.count is not None:
        sizes.append("1 text" if texts.count == 1 else f"{automaton.number(texts.count)} texts")
    else:
        sizes.append("no end of texts" if texts.finite is False else f"more than {COUNTED:,} texts")
    name = source.regex if source.regex is not None else source.grammar
    return Text().append(console.printable(name or '""'), style="bold").append(": " + ", ".join(sizes))


def _beginning(vocab: tokentrie.Vocab, name: str, legal: list[int]) -> Text:
    verb = "token" if len(legal) == 1 else "tokens"
    text = Text(f"at the start {len(legal):,} {verb} of {console.printable(name)}'s {len(vocab):,} are allowed: ")
    text.append("  ".join(console.quote_bytes(vocab[token]) for token in _some(legal)), style="cyan")
    return text.append(" …" if len(legal) > SHOWN else "")


def _some(legal: list[int]) -> list[int]:
    """From all over the vocabulary, where long tokens come late."""
    last = max(SHOWN - 1, 1)
    return legal if len(legal) <= SHOWN else [legal[place * (len(legal) - 1) // last] for place in range(SHOWN)]


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _state_table(table: Automaton) -> Table:
    shown = Table(box=None, header_style="dim", pad_edge=False)
    shown.add_column("state", justify="right", no_wrap=True)
    shown.add_column("end")
    shown.add_column("bytes", overflow="fold")
    shown.add_column("next", justify="right", no_wrap=True)
    for state, (end, ways) in enumerate(table.table):
        rows = [(automaton.ranges_text(ranges), str(after)) for ranges, after in ways] or [("", "")]
        for place, (found, after) in enumerate(rows):
            first = place == 0
            ends = Text("end" if end and first else "", style="green")
            shown.add_row(str(state) if first else "", ends, Text(found, style="cyan"), after)
    return shown


def _too_many(regex: tokentrie.Regex) -> Text:
    return Text(f"{regex.states:,} states: automata of up to {PRINTED} are printed", style="dim")


def _document(
    rule: tokentrie.rules.Rule,
    source: RuleSource,
    table: Automaton | None,
    texts: Texts,
    drawn: list[str],
    vocab: tokentrie.Vocab,
    legal: list[int],
) -> dict[str, Any]:
    document: dict[str, Any]
    if isinstance(rule, tokentrie.rules.Grammar):
        sizes = {"parser_states": rule.parser_states, "lexer_states": rule.lexer_states}
        document = {"grammar": source.grammar, "terminals": rule.terminals} | sizes
    else:
        assert isinstance(rule, tokentrie.Regex)
        small = table if rule.states <= PRINTED else None
        document = {"regex": rule.pattern, "states": rule.states, "classes": table.classes() if table else None}
        document["table"] = [_state(*row) for row in small.table] if small else None
    exact = texts.count is not None and texts.count < automaton.EXACT
    return document | {
        "finite": texts.finite,
        "texts": texts.count if exact else None,
        "samples": drawn,
        "vocabulary": len(vocab),
        "legal": len(legal),
        "legal_tokens": [{"token": token, "text": token_text(vocab, token)} for token in _some(legal)],
    }


def _state(end: bool, ways: list[tuple[automaton.Ranges, int]]) -> dict[str, Any]:
    return {"end": end, "ways": [{"bytes": ranges, "next": after} for ranges, after in ways]}
