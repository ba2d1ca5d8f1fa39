"""Results as tables of HTML, for notebooks. Markup in a text is escaped and shown as text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokentrie.chat import ToolRun
    from tokentrie.decisions import Answer, Answers
    from tokentrie.results import Choice, Generated, Message

#: Rows of a table, and characters of a cell.
MOST_ROWS, MOST_CHARACTERS = 20, 5000


class Bar(float):
    """A share of 1, drawn as a bar."""


def table(columns: Iterable[str], rows: Iterable[Iterable[object]], most: int = MOST_ROWS) -> str:
    """A table; of more rows than `most` the rest is counted."""
    columns, rows = list(columns), list(rows)
    head = "".join(f"<th>{escape(_visible(column))}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:most])
    more = f'<tr><td colspan="{len(columns)}">and {len(rows) - most:,} more</td></tr>' if len(rows) > most else ""
    return f"<table><tr>{head}</tr>{body}{more}</table>"


def _cell(value: object) -> str:
    if isinstance(value, Bar):
        share = min(max(value, 0.0), 1.0) if value == value else 0.0
        bar = f'<div style="background:#4878a8;height:0.9em;width:{100 * share:.1f}%"></div>'
        return f'<td style="width:12em">{bar}</td>'
    if isinstance(value, float):
        return f"<td>{value:.4f}</td>"
    text = str(value)
    cut = text[:MOST_CHARACTERS] + "…" * (len(text) > MOST_CHARACTERS)
    return f'<td style="text-align:left;white-space:pre-wrap">{escape(_visible(cut))}</td>'


def _visible(text: str) -> str:
    """Text without characters that no document may have: they become escapes."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


def _fields(fields: dict[str, object]) -> str:
    """A row for each field that says something."""
    return table(("", ""), ((name, value) for name, value in fields.items() if value not in (None, "", [], {})))


def _data(value: object) -> str:
    """A value as text: JSON where it is that."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return repr(value)


def choice(result: Choice[Any]) -> str:
    """A Choice: its values, the most probable first."""
    return table(("value", "probability", ""), ((key, share, Bar(share)) for key, share in result.items()))


def render_generated(result: Generated[Any]) -> str:
    """A Generated: text, values, and what it took."""
    values = {f"value {name}": _data(value) for name, value in result.values.items()}
    value = None if result.value is None or result.value == result.text else _data(result.value)
    said = {"text": result.text, "value": value, **values, "invalid": result.invalid, "finish": result.finish}
    stats = result.stats
    tokens = f"{len(result.tokens)}, {stats.forced_tokens} forced, {stats.forward_passes} forward passes"
    return _fields({**said, "tokens": tokens})


def message(result: Message) -> str:
    """A Message: reasoning, content, calls."""
    calls = {f"call {number}": f"{call.name} {call.arguments}" for number, call in enumerate(result.tool_calls, 1)}
    parsed = None if result.parsed in (None, result.content) else _data(result.parsed)
    said = {"reasoning": result.reasoning, "content": result.content, **calls, "parsed": parsed}
    return _fields({**said, "invalid": result.invalid, "warnings": "\n".join(result.warnings), "finish": result.finish})


def answer(result: Answer) -> str:
    """An Answer: its options."""
    shares = ((option, share, Bar(share)) for option, share in result.probabilities.items())
    return table((result.name, "probability", ""), shares)


def answers(result: Answers[Any]) -> str:
    """Answers: a row for each question."""
    rows = (
        (name, _data(one.value) if one.reason is None else f"none, {one.reason}", one.probability, Bar(one.probability))
        for name, one in result.items()
    )
    return table(("question", "answer", "probability", ""), rows, len(result))


def tool_run(result: ToolRun) -> str:
    """A ToolRun: its conversation."""
    said = [one if isinstance(one, dict) else one.to_dict() for one in result.messages]
    rows = ((one.get("role", ""), _content_text(one)) for one in said)
    return table(("role", "message"), rows, len(said))


def _content_text(one: dict[str, Any]) -> str:
    content = one.get("content")
    parts = [content if isinstance(content, str) else _data(content)] if content else []
    for call in one.get("tool_calls") or []:
        function = call.get("function", call)
        parts.append(f"calls {function.get('name')} {function.get('arguments')}")
    return "\n".join(parts)
