"""Chats with tools: calls of up to three arguments, thoughts, results, several calls, requests that fit no tool."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from random import Random

from drawn import arguments, chat, templates
from drawn.arguments import DrawnArgument
from drawn.chat import CALL_OPEN, IM_END, Tool
from drawn.corpus import HELD_OUT_PAIRS, TRAIN_PAIRS, Action, Branch, Copy, Document, Look, phrase, tool_list
from drawn.lexicon import NEUTRAL, VALUE_PHRASES
from drawn.naming import value

REFUSAL, REFUSAL_THOUGHT = "Sorry, no tool can do that.", "No tool can do that."
GREETING, GREETING_THOUGHT = "Hello! What can I do?", "This is a greeting."
GREETINGS = ["hello", "Hello!", "hi", "Hi.", "hey", "good morning", "Good day!", "hello, my friend"]
RESULT_THOUGHT = "I have the result."
PERSONAS = ["You are a helpful assistant.", "You help the user.", "Be brief.", "Use the tools.", "You can call tools."]
KINDS = ("call", "two", "next", "result", "none", "greeting")
MAY_CALL, MUST_CALL = (60, 10, 6, 8, 14, 2), (78, 12, 10, 0, 0, 0)
JOINERS = [" and ", ", and ", ", then ", " and then ", ". Then ", ", also "]


@dataclass(frozen=True)
class DrawnTool:
    """A tool, what it does, and where in the head its name and its keys begin."""

    tool: Tool
    action: Action
    at: int
    keys: dict[str, int]


@dataclass(frozen=True)
class DrawnRequest:
    """A request: its text, the tool that does it, the values, and where in the text they begin."""

    text: str
    target: DrawnTool
    values: list[DrawnArgument]
    places: dict[str, int]


def find(head: str, tools: list[Tool], actions: list[Action]) -> list[DrawnTool]:
    """Finds the position of every name in a head that lists these tools."""
    listed = []
    for tool, action in zip(tools, actions, strict=True):
        at = head.index(chat.TOOL + tool.name) + len(chat.TOOL)
        place, keys = at + len(tool.name) + 1, {}
        for parameter in tool.parameters:
            keys[parameter.name] = place
            place += len(parameter.text()) + 2
        listed.append(DrawnTool(tool, action, at, keys))
    return listed


class Answer:
    """The text of an answer as it grows, with where its parts come from."""

    def __init__(self) -> None:
        self.text = ""
        self.copies: list[Copy] = []
        self.looks: list[Look] = []

    def name(self, listed: DrawnTool) -> None:
        """The name of a tool, as it stands in the list."""
        self.copies.append(Copy(len(self.text), len(listed.tool.name), listed.at, in_head=True))
        self.text += listed.tool.name

    def call(self, asked: DrawnRequest, start: int) -> None:
        """A call of the tool; the request's text begins at `start` of the prompt."""
        begin = len(self.text)
        self.text += f'{CALL_OPEN}\n{{"name": "'
        self.name(asked.target)
        self.text += '", "arguments": '
        decision = len(self.text)
        self.text += "{"
        for number, one in enumerate(asked.values):
            key, place = one.parameter.name, start + asked.places[one.parameter.name]
            self.text += ', "' if number else '"'
            self.looks.append(Look(decision, len(self.text), len(key), asked.target.keys[key], place))
            self.text += f'{key}":'
            if isinstance(one.value, bool):
                self.copies.append(Copy(len(self.text), 1, place, in_head=False))
                self.text += " true" if one.value else " false"
                decision = len(self.text)
                continue
            self.text += ' "' if isinstance(one.value, str) else " "
            self.copies.append(Copy(len(self.text), len(one.shown), place, in_head=False))
            self.text += one.shown
            decision = len(self.text)
            self.text += '"' if isinstance(one.value, str) else ""
        self.text += f"}}}}\n{chat.CALL_CLOSE}"
        written = chat.call(asked.target.tool.name, {g.parameter.name: g.value for g in asked.values})
        assert self.text[begin:] == written, (self.text[begin:], written)

    def branch(self, prompt: str, skip: int = 0) -> Branch:
        """The finished answer; the first `skip` characters count as the prompt's."""
        copies = tuple(replace(c, at=c.at - skip) for c in self.copies)
        looks = tuple(replace(k, decision=k.decision - skip, at=k.at - skip) for k in self.looks)
        return Branch(prompt + self.text[:skip], self.text[skip:] + IM_END, copies=copies, looks=looks)


def ask(rng: Random, target: DrawnTool, held_out: bool) -> DrawnRequest:
    """A request that one tool fulfils, with values for its arguments."""
    values = arguments.given(rng, target.tool.parameters, held_out)
    extra, places = arguments.spoken(rng, values)
    text = phrase(rng, rng.choice(templates.REQUESTS.pick(held_out)), target.action, extra)
    start = text.index(extra)
    return DrawnRequest(text, target, values, {k: start + p for k, p in places.items()})


def result(rng: Random, held_out: bool) -> str:
    """Draws the result of a tool."""
    pick = rng.random()
    if pick < 0.3:
        return value(rng, rng.choice(list(VALUE_PHRASES)), held_out)
    if pick < 0.6:
        count = rng.choice((2, 3))
        return " ".join(value(rng, rng.choice(("title", "number", "city")), held_out) for _ in range(count))
    if pick < 0.75:
        return rng.choice(("done", "ok", "true", "false", "no result", "error", "saved", "sent"))
    return json.dumps({rng.choice(NEUTRAL): rng.choice((rng.randrange(1000), value(rng, "title", held_out), True))})


def refusable(rng: Random, actions: list[Action], held_out: bool) -> Action:
    """Something that no tool of the list does; half of the time it shares a verb or an object with one of them."""
    pool = HELD_OUT_PAIRS if held_out else TRAIN_PAIRS
    near = rng.random() < 0.5
    there = {(a.verb, a.thing) for a in actions}
    verbs, things = {a.verb for a in actions}, {a.thing for a in actions}
    while True:
        pair = rng.choice(pool)
        if pair not in there and near == (pair[0] in verbs or pair[1] in things):
            return Action(*pair, "title")


def make(rng: Random, listed: list[DrawnTool], what: str, *, thinking: bool, silent: bool, held_out: bool) -> Branch:
    """One question: "call", "two" calls, "none" fits, a "greeting", a "result" to tell, or a "next" request.

    `silent` leaves the thought out although the prompt does not say so. In training the prompt opens some calls.
    """
    answer = Answer()
    forced = not held_out and what in ("call", "two", "next") and rng.random() < 0.15
    thinks = thinking and not silent and not forced

    def say(thought: str, reply: str) -> None:
        answer.text += (chat.thought(thought) if thinks else "") + reply

    if what == "none":
        pattern = rng.choice(templates.REQUESTS.pick(held_out))
        text = phrase(rng, pattern, refusable(rng, [t.action for t in listed], held_out))
        say(REFUSAL_THOUGHT, REFUSAL)
        return answer.branch(chat.user(text, thinking))
    if what == "greeting":
        say(GREETING_THOUGHT, GREETING)
        return answer.branch(chat.user(rng.choice(GREETINGS), thinking))
    first, *others = rng.sample(listed, min(2, len(listed)))
    asked = ask(rng, first, held_out)
    before = f"{chat.IM_START}user\n"
    if what in ("result", "next"):
        told = result(rng, held_out)
        call = chat.call(first.tool.name, {g.parameter.name: g.value for g in asked.values})
        kept = chat.thought(f'I should call "{first.tool.name}".') if thinks and what == "result" else ""
        history = chat.turn("user", asked.text) + chat.turn("assistant", kept + call) + chat.turn("tool", told)
        if what == "result":
            say(RESULT_THOUGHT, "The result:\n")
            answer.copies.append(Copy(len(answer.text), len(told), history.rindex("\n" + told) + 1, in_head=False))
            answer.text += told
            return answer.branch(history + chat.opened(thinking))
        before = history + chat.turn("assistant", f"The result:\n{told}") + before
        asked = ask(rng, rng.choice(listed), held_out)
    parts, text = [(asked, len(before))], asked.text
    if what == "two" and others:
        second = ask(rng, others[0], held_out)
        text = text.rstrip(".?!") + rng.choice(JOINERS)
        parts.append((second, len(before) + len(text)))
        text += second.text
    if thinks:
        answer.text += f'{chat.THINK_OPEN}\nI should call "'
        for number, (one, _) in enumerate(parts):
            answer.text += '" and "' if number else ""
            answer.name(one.target)
        answer.text += f'".\n{chat.THINK_CLOSE}\n\n'
    for number, (one, start) in enumerate(parts):
        answer.text += "\n" if number else ""
        answer.call(one, start)
    return answer.branch(f"{before}{text}{IM_END}\n{chat.opened(thinking)}", len(CALL_OPEN) if forced else 0)


def call_document(
    rng: Random,
    count: int,
    branches: int,
    *,
    what: str = "mixed",
    thinking: bool | None = None,
    dense: bool = False,
    held_out: bool = False,
) -> Document:
    """A list of tools with arguments and a chat about it; `thinking` is drawn for each question if it is None."""
    kind = "mixed" if held_out else rng.choice(("opaque", "opaque", "misleading", "mixed", "matching"))
    bare, actions = tool_list(rng, count, kind=kind, dense=dense, held_out=held_out, with_key=0.0)
    sizes = (1, 2, 3) if held_out else (0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3)
    tools = [replace(t, parameters=arguments.parameters(rng, rng.choice(sizes), held_out)) for t in bare]
    pick = 0.0 if held_out else rng.random()
    content = "" if pick < 0.55 else chat.ASK_CALL if pick < 0.7 else rng.choice(PERSONAS)
    head, must = chat.system(tools, content), content == chat.ASK_CALL
    listed = find(head, tools, actions)
    doc = Document(head, [], tools)
    for _ in range(branches):
        chosen = what
        if what == "mixed":
            [chosen] = rng.choices(KINDS, MUST_CALL if must else MAY_CALL)
        thinks = rng.random() < 0.5 if thinking is None else thinking
        doc.branches.append(make(rng, listed, chosen, thinking=thinks, silent=must, held_out=held_out))
    return doc


def bare_document(rng: Random, branches: int) -> Document:
    """No tools at all: greetings are answered, requests are not."""
    doc = Document(f"{chat.IM_START}user\n", [])
    for _ in range(branches):
        thinking, greeting = rng.random() < 0.5, rng.random() < 0.5
        text = rng.choice(GREETINGS)
        if not greeting:
            text = phrase(rng, rng.choice(templates.REQUESTS.train), Action(*rng.choice(TRAIN_PAIRS), "title"))
        thought, reply = (GREETING_THOUGHT, GREETING) if greeting else (REFUSAL_THOUGHT, REFUSAL)
        answer = (chat.thought(thought) if thinking else "") + reply + IM_END
        doc.branches.append(Branch(chat.user(text, thinking).removeprefix(doc.head), answer))
    return doc
