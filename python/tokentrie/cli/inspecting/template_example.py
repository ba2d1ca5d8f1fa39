"""An example conversation for a chat template, and the markers in its rendering."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import tokentrie

SYSTEM, USER = "Answer briefly.", "How warm is it in Oslo?"
REASONING, CONTENT, RESULT = "Only a tool knows.", "Let me look.", "12 degrees"
# Some formats want ids of nine letters and digits.
IDS = ("call00001", "call00002")
# Some templates want every argument described.
TOOLS: list[dict[str, Any]] = [
    {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "where"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "description": "of what"},
            },
            "required": ["city"],
        },
    },
    {
        "name": "alarm",
        "description": "Sets an alarm.",
        "parameters": {
            "type": "object",
            "properties": {"minutes": {"type": "integer", "description": "from now"}},
            "required": ["minutes"],
        },
    },
]
DEEPEST = 4
SAMPLES: dict[Any, Any] = {"string": "Oslo", "integer": 12, "number": 1.5, "boolean": True, "null": None}


@dataclass(frozen=True)
class Example:
    """An example conversation as a template renders it."""

    text: str
    generation_prompt: str
    left_out: list[str]
    """Descriptions of what the template refuses."""
    calls: list[tokentrie.results.ToolCall] = field(default_factory=list)


@dataclass(frozen=True)
class Piece:
    """A part of the rendered text, and what it is if it is a marker."""

    text: str
    name: str | None = None


def render_example(form: tokentrie.ChatFormat, tools: tokentrie.Tools | None) -> Example:
    """The example, with as much in it as the template takes.

    Raises:
        TemplateError: it refuses even a message of a user.
    """
    tools = tools if tools is not None and len(tools) else tokentrie.Tools(TOOLS)
    calls = _calls(tools, form.analysis.capabilities.parallel_tool_calls)
    user, system = {"role": "user", "content": USER}, {"role": "system", "content": SYSTEM}
    full = tokentrie.Message(CONTENT, REASONING, calls)
    results = [{"role": "tool", "tool_call_id": c.id, "name": c.name, "content": RESULT} for c in calls]
    plain, bare = tokentrie.Message(CONTENT, REASONING), tokentrie.Message("", REASONING, calls)
    one, bare_one = (tokentrie.Message(text, REASONING, calls[:1]) for text in (CONTENT, ""))
    attempts: list[tuple[list[Any], list[tokentrie.results.ToolCall], list[str]]] = [
        ([system, user, full, *results], calls, []),
        ([user, full, *results], calls, ["a system message"]),
        ([system, user, bare, *results], calls, ["content beside reasoning and calls"]),
        ([system, user, one, results[0]], [one.tool_calls[0]], ["a second call"]),
        ([system, user, bare_one, results[0]], [one.tool_calls[0]], ["content beside reasoning, a second call"]),
        ([user, full], calls, ["a system message", "results of tools"]),
        ([system, user, plain, user], [], ["calls of tools"]),
        ([user, plain, user], [], ["a system message", "calls of tools"]),
    ]
    for messages, made, left_out in attempts:
        with contextlib.suppress(tokentrie.TemplateError):
            prompt = form.prompt(messages, tools)
            return Example(prompt.text, prompt.generation_prompt, left_out, made)
    prompt = form.prompt([user])
    return Example(prompt.text, prompt.generation_prompt, ["all but a message of a user"])


def _calls(tools: tokentrie.Tools, parallel: bool) -> list[tokentrie.results.ToolCall]:
    found = [one["function"] for one in tools.definitions[: 2 if parallel else 1]]
    made = []
    for number, one in zip(IDS, found, strict=False):
        arguments = sample(one.get("parameters") or {})
        made.append(
            tokentrie.results.ToolCall(number, one["name"], json.dumps(arguments if arguments is not None else {}))
        )
    return made


def sample(schema: Any, depth: int = 0) -> Any:
    """A value such as a schema describes: for people to look at, not for a validator."""
    if not isinstance(schema, dict):
        return "Oslo"
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(key), list) and schema[key]:
            return sample(schema[key][0], depth + 1) if depth < DEEPEST else None
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "array":
        return [sample(schema.get("items"), depth + 1)] if depth < DEEPEST else []
    if kind == "object" or "properties" in schema or depth == 0:
        properties = schema.get("properties")
        inside = properties if isinstance(properties, dict) and depth < DEEPEST else {}
        return {key: sample(one, depth + 1) for key, one in inside.items()}
    return SAMPLES.get(kind, "Oslo") if isinstance(kind, str) or kind is None else "Oslo"


def pieces(example: Example, analysis: tokentrie.chat.ChatAnalysis) -> list[Piece]:
    """The text cut at its markers."""
    text, tail = example.text, example.generation_prompt
    end = len(text) - len(tail) if tail and text.endswith(tail) else len(text)
    everywhere, in_reply = _of_turns(analysis), _of_replies(analysis)
    # Markers of a reply may be any text, such as a bracket: they are looked for in the reply alone.
    asked = text.find(USER)
    begin = asked + len(USER) if asked >= 0 else 0
    answered = text.find(RESULT, begin, end) if example.calls else -1
    over = answered if answered >= 0 else end
    found: list[Piece] = []
    opened: set[str] = set() if analysis.content.start else {"content"}
    place, plain, last = 0, 0, ""
    while place < end:
        markers = everywhere | in_reply if begin <= place < over else everywhere
        # The marker that ends reasoning may end other parts too.
        fits = (one for one in markers if text.startswith(one, place) and _is_open(markers[one], opened))
        hit = max(fits, key=len, default=None)
        if hit is None and begin <= place < over:
            hit = max((one for one in everywhere if text.startswith(one, place)), key=len, default=None)
            markers = everywhere
        if hit is None or place + len(hit) > end:
            place += 1
            continue
        found += [Piece(text[plain:place])] if plain < place else []
        # The text between a key and its value may also be the text before all arguments.
        name = "value" if last == "key" and markers[hit] == "arguments" else markers[hit]
        found.append(Piece(hit, name))
        last = name
        if name.endswith("begins"):
            opened.add(name.split()[0])
        elif name == "reasoning ends":
            opened.discard("reasoning")
        place = plain = place + len(hit)
    found += [Piece(text[plain:end])] if plain < end else []
    return [*found, Piece(text[end:], "generation prompt")] if end < len(text) else found


def _is_open(name: str, opened: set[str]) -> bool:
    return name not in ("reasoning ends", "content ends") or name.split()[0] in opened


def _of_turns(analysis: tokentrie.chat.ChatAnalysis) -> dict[str, str]:
    named = [(token, "token") for token in analysis.preserved_tokens]
    named += [(text, "ends the turn") for text in analysis.stops]
    # Longer ones win, so a token inside the beginning of a turn is part of it.
    named += [(analysis.turns.assistant, "assistant's turn"), (analysis.turns.user, "user's turn")]
    return _usable(named)


def _of_replies(analysis: tokentrie.chat.ChatAnalysis) -> dict[str, str]:
    named = [(text, "joint") for text in analysis.joints]
    calls = analysis.calls
    if calls:
        for pattern in calls.patterns:
            named += [*_of_arguments(pattern["parts"]), *_of_pattern(pattern["parts"])]
        named += [(calls.between, "between calls")] if isinstance(calls.between, str) else []
        named += [(calls.section[0], "calls begin"), (calls.section[1], "calls end")]
    content, reasoning = analysis.content, analysis.reasoning
    named += [(text, "content begins") for text in [*content.other_starts, content.start]]
    named += [(content.end, "content ends")]
    named += [(reasoning.start, "reasoning begins"), (reasoning.end, "reasoning ends")]
    return _usable(named)


def _of_pattern(parts: list[Any]) -> Iterator[tuple[str, str]]:
    """The texts of a call, named by what they stand before."""
    texts = [place for place, part in enumerate(parts) if isinstance(part, dict) and isinstance(part.get("text"), str)]
    for place in texts:
        after = parts[place + 1] if place + 1 < len(parts) else None
        kind = after if isinstance(after, str) else next(iter(after), "") if isinstance(after, dict) else ""
        if place == 0:
            name = "call begins"
        elif after is None:
            name = "call ends"
        else:
            name = "name" if kind == "name" else "id" if kind == "id" else "arguments"
        yield parts[place]["text"], name


def _of_arguments(parts: list[Any]) -> Iterator[tuple[str, str]]:
    """Returns the texts around keys and values if arguments are not JSON, and the keys of calls that are objects."""
    for part in parts:
        if isinstance(part, dict) and "object" in part:
            fields = part["object"]["fields"]
            yield from ((f"{json.dumps(text)}:", kind) for one in fields for kind, text in one.items())
        kinds = part.get("arguments") if isinstance(part, dict) else None
        for written in kinds.values() if isinstance(kinds, dict) else ():
            for quote in written.get("quotes", []):
                yield quote["mark"], "quote"
            yield from ((one["text"], "value") for one in written.get("between_key_and_value", []))
            yield written.get("key_start", ""), "key"
            yield written.get("value_end", ""), "value ends"


def _usable(named: list[tuple[str, str]]) -> dict[str, str]:
    """Returns the texts to look for: with their white space and, as it may be more or less, without. Later ones win."""
    return {form: name for text, name in named for form in (text.strip(), text) if form.strip()}
