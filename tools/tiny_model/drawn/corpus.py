"""The corpus: documents of one shared prompt head and several independent questions about it.

A tool list is expensive (hundreds of tokens) and an answer short, so one list serves many requests: the
questions are *branches* which see the head and themselves only (see `packing.py`). Names are drawn anew for
every document, most say nothing or the wrong thing about their tool, so only the list can be believed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from drawn import chat, templates
from drawn.chat import Parameter, Tool
from drawn.lexicon import (
    NEUTRAL,
    OBJECTS,
    REVIEW_SUBJECTS,
    SENTIMENT_CLAUSES,
    SENTIMENT_WORDS,
    STATES,
    SUBJECTS,
    VALUE_PHRASES,
    VERBS,
)
from drawn.naming import is_held_out, matching_name, misleading_name, opaque_name, syllables, value

LABELS = ["positive", "negative", "neutral"]
PAIRS = [(v, o) for v in range(len(VERBS)) for o in range(len(OBJECTS))]
TRAIN_PAIRS = [p for p in PAIRS if not is_held_out("pair", f"{p[0]}-{p[1]}")]
HELD_OUT_PAIRS = [p for p in PAIRS if is_held_out("pair", f"{p[0]}-{p[1]}")]


@dataclass(frozen=True)
class Copy:
    """Characters of an answer that stand in the head or in the question, from `start` on."""

    at: int
    length: int
    start: int
    in_head: bool


@dataclass(frozen=True)
class Look:
    """A key of an answer, decided from character `decision` on by the list and by the value in the question."""

    decision: int
    at: int
    length: int
    key: int
    value: int


@dataclass(frozen=True)
class Branch:
    """One question after the head, the answer that training predicts, and what in it is copied.

    `name` stands in the list, `value` in the question; either may be empty. `lines` are those of a list in the prompt:
    where what may be answered begins, and where the line ends.
    """

    prompt: str
    answer: str
    name: str = ""
    value: str = ""
    copies: tuple[Copy, ...] = ()
    looks: tuple[Look, ...] = ()
    lines: tuple[tuple[int, int], ...] = ()


@dataclass
class Document:
    """A head and its branches; `tools` and `targets` are for the evaluation."""

    head: str
    branches: list[Branch]
    tools: list[Tool] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Action:
    """Action of a tool: classes of the lexicon, and the type of its argument."""

    verb: int
    thing: int
    key: str


def article(rng: Random, noun: str) -> str:
    """The noun with an article or a possessive."""
    kind = rng.random()
    if kind < 0.4:
        return ("an " if noun[0] in "aeiou" else "a ") + noun
    return (("the ", "my ", "this ")[rng.choice((0, 0, 0, 1, 2))]) + noun


def phrase(rng: Random, pattern: str, action: Action, extra: str = "") -> str:
    """Fill a request or description pattern with random synonyms."""
    verb = rng.choice(VERBS[action.verb])
    thing = article(rng, rng.choice(OBJECTS[action.thing]))
    text = pattern.format(v=verb, V=verb.capitalize(), o=thing, x=extra)
    return text[0].upper() + text[1:] if rng.random() < 0.3 else text


def choose_pairs(rng: Random, count: int, dense: bool, held_out: bool) -> list[tuple[int, int]]:
    """Distinct verb-object pairs; a dense list takes them from few verbs and few objects."""
    pool = HELD_OUT_PAIRS if held_out else TRAIN_PAIRS
    if not dense:
        return rng.sample(pool, count)
    while True:
        # Pairs of one object or one verb until there are enough: every tool has close neighbours.
        chosen: dict[tuple[int, int], None] = {}
        for _ in range(50):
            side, member = rng.randrange(2), rng.choice(pool)
            block = [p for p in pool if p[side] == member[side]]
            chosen |= dict.fromkeys(rng.sample(block, min(len(block), rng.randint(2, max(2, count // 2)))))
            if len(chosen) >= count:
                return rng.sample(list(chosen)[:count], count)


def make_names(rng: Random, actions: list[Action], kind: str, held_out: bool) -> list[str]:
    """One name per action, none a prefix of another."""
    names: list[str] = []
    for action in actions:
        while True:
            pick = rng.choice(("opaque", "misleading", "matching")) if kind == "mixed" else kind
            if pick == "opaque":
                name = opaque_name(rng, held_out)
            elif pick == "matching":
                name = matching_name(rng, action.verb, action.thing, held_out)
            else:
                name = misleading_name(rng, held_out)
            if not any(name.startswith(n) or n.startswith(name) for n in names):
                names.append(name)
                break
    return names


def tool_list(
    rng: Random, count: int, *, kind: str, dense: bool, held_out: bool, with_key: float, no_description: bool = False
) -> tuple[list[Tool], list[Action]]:
    """A fresh list of tools and what each of them does."""
    pairs = choose_pairs(rng, count, dense, held_out)
    actions = [Action(v, o, rng.choice(list(VALUE_PHRASES))) for v, o in pairs]
    names = make_names(rng, actions, kind, held_out)
    patterns = templates.DESCRIPTIONS.pick(held_out)
    shared = rng.choice(patterns) if rng.random() < 0.3 else None
    tools = [
        Tool(
            name,
            "" if no_description else phrase(rng, shared or rng.choice(patterns), action),
            [Parameter(action.key)] if rng.random() < with_key else [],
        )
        for name, action in zip(names, actions, strict=True)
    ]
    return tools, actions


def request(rng: Random, action: Action, argument: str, held_out: bool) -> str:
    """Draws the request of a user for an action, with the argument's value if there is one."""
    extra = " " + rng.choice(VALUE_PHRASES[action.key]).format(argument) if argument else ""
    return phrase(rng, rng.choice(templates.REQUESTS.pick(held_out)), action, extra)


def tool_document(
    rng: Random,
    count: int,
    branches: int,
    *,
    kind: str = "opaque",
    dense: bool = False,
    held_out: bool = False,
    mode: str = "name",
    with_list: bool = True,
) -> Document:
    """Requests about one list of tools; `mode` is "name" or "call"."""
    no_description = kind == "matching" and not held_out and rng.random() < 0.15
    with_key = 1.0 if mode == "call" else (0.0 if held_out else rng.choice((0.0, 0.0, 1.0)))
    tools, actions = tool_list(
        rng, count, kind=kind, dense=dense, held_out=held_out, with_key=with_key, no_description=no_description
    )
    ask = chat.ASK_CALL if mode == "call" else chat.ASK_NAME
    doc = Document(chat.system(tools if with_list else [], ask), [], tools)
    for _ in range(branches):
        target = rng.randrange(count)
        has_value = mode == "call" or (not held_out and rng.random() < 0.3)
        argument = value(rng, actions[target].key, held_out) if has_value else ""
        name = tools[target].name
        answer = chat.call(name, {actions[target].key: argument}) if mode == "call" else name
        thinking = held_out or rng.random() < 0.9  # an empty thought in the prompt changes nothing
        prompt = chat.user(request(rng, actions[target], argument, held_out), thinking)
        copied = (name if with_list else "", argument if mode == "call" else "")
        doc.branches.append(Branch(prompt, answer + chat.IM_END, *copied))
        doc.targets.append(target)
    return doc


def drill_document(rng: Random, count: int, branches: int) -> Document:
    """The lines of a list once more in other words, up to the marker: what comes next is the same line's name.

    The shortest question there is, and both sides look alike, so matching is learned here first.
    """
    kind = rng.choice(("opaque", "misleading"))
    tools, actions = tool_list(rng, count, kind=kind, dense=rng.random() < 0.3, held_out=False, with_key=0.0)
    doc = Document(chat.system(tools).removesuffix(f"{chat.IM_END}\n"), [], tools)
    for _ in range(branches):
        target = rng.randrange(count)
        text = phrase(rng, rng.choice(templates.DESCRIPTIONS.train), actions[target])
        doc.branches.append(Branch(text + chat.TOOL, tools[target].name + "\n", tools[target].name))
    return doc


def pair_document(rng: Random, count: int, branches: int) -> Document:
    """One known word a description and one a name: the simplest list that has to be read."""
    words = rng.sample(NEUTRAL, 2 * count)
    tools = [Tool(name, word) for name, word in zip(words[:count], words[count:], strict=True)]
    doc = Document(chat.system(tools).removesuffix(f"{chat.IM_END}\n"), [], tools)
    for _ in range(branches):
        tool = rng.choice(tools)
        doc.branches.append(Branch(tool.description + chat.TOOL, tool.name + "\n", tool.name))
    return doc


def word_document(rng: Random, count: int, branches: int, drill: bool = False) -> Document:
    """Descriptions of unrelated words; the request mentions some of them: matching by the words alone."""
    names = make_names(rng, [Action(0, 0, "city")] * count, rng.choice(("opaque", "misleading")), held_out=False)
    bags: list[list[str]] = []
    taken: set[str] = set()
    for _ in range(count):
        bag: list[str] = []
        size = rng.randint(1, 4)
        while len(bag) < size:
            kind = rng.random()
            if kind < 0.4:
                word = rng.choice(NEUTRAL)
            elif kind < 0.7:
                word = rng.choice(rng.choice((VERBS, OBJECTS)))[0]
            else:
                word = syllables(rng, rng.choice((1, 2)))
            if word not in taken:
                taken.add(word)
                bag.append(word)
        bags.append(bag)
    tools = [Tool(n, rng.choice((" ", ", ", " and ")).join(b)) for n, b in zip(names, bags, strict=True)]
    head = chat.system(tools, "" if drill else chat.ASK_NAME)
    doc = Document(head.removesuffix(f"{chat.IM_END}\n") if drill else head, [], tools)
    for _ in range(branches):
        target = rng.randrange(count)
        if rng.random() < 0.15:
            words = tools[target].name
        else:
            bag = bags[target]
            words = rng.choice((" ", " and ")).join(rng.sample(bag, rng.randint(1, min(3, len(bag)))))
        if drill:
            doc.branches.append(Branch(words + chat.TOOL, tools[target].name + "\n", tools[target].name))
            continue
        text = rng.choice(templates.MENTIONS.train).format(w=words)
        doc.branches.append(Branch(chat.user(text), tools[target].name + chat.IM_END, tools[target].name))
        doc.targets.append(target)
    return doc


def fact_document(rng: Random, branches: int, held_out: bool = False) -> Document:
    """Yes/no questions about one stated fact; half of the asked values are the stated one."""
    subject = rng.choice(SUBJECTS)
    states = rng.choice(STATES)
    stated = rng.choice(states)
    if not held_out and rng.random() < 0.3:  # any two words: comparing must not need the lexicon
        subject, stated, *others = rng.sample(NEUTRAL, 6)
        states = [stated, *others]
    fact = rng.choice(templates.FACTS.pick(held_out)).format(s=subject, a=stated)
    ask = rng.choice(("Answer yes or no.", "Answer yes or no.", "")) if not held_out else "Answer yes or no."
    head = chat.system([], ask) + f"{chat.IM_START}user\n{fact}"
    doc = Document(head, [])
    for _ in range(branches):
        truth = rng.random() < 0.5
        asked = stated if truth else rng.choice([s for s in states if s != stated])
        question = rng.choice(templates.QUESTIONS.pick(held_out)).format(s=subject, q=asked)
        tail = f" {question}{chat.IM_END}\n{chat.IM_START}assistant\n"
        doc.branches.append(Branch(tail, ("yes" if truth else "no") + chat.IM_END))
    return doc


def review(rng: Random, held_out: bool) -> tuple[str, str]:
    """A short review, and its label."""
    label = rng.choice(LABELS)
    first, second = rng.sample(SENTIMENT_WORDS[label], 2)
    text = rng.choice(templates.REVIEWS.pick(held_out)).format(
        s=rng.choice(REVIEW_SUBJECTS), a=first, b=second, c=rng.choice(SENTIMENT_CLAUSES[label])
    )
    return text[0].upper() + text[1:], label


def review_document(rng: Random, branches: int, held_out: bool = False) -> Document:
    """Short reviews, each with one of three labels."""
    order = LABELS if held_out else rng.sample(LABELS, 3)
    doc = Document(chat.system([], f"Label the review: {order[0]}, {order[1]} or {order[2]}."), [])
    for _ in range(branches):
        text, label = review(rng, held_out)
        doc.branches.append(Branch(chat.user(text), label + chat.IM_END))
    return doc


def repeat_document(rng: Random, branches: int) -> Document:
    """Say the text again: plain copying, with values and names of every kind."""
    keys = list(VALUE_PHRASES)
    doc = Document(chat.system([], "Repeat the text."), [])
    for _ in range(branches):
        parts = [
            rng.choice((opaque_name(rng, False), value(rng, rng.choice(keys), False), rng.choice(NEUTRAL)))
            for _ in range(rng.randint(1, 4))
        ]
        text = " ".join(parts)
        doc.branches.append(Branch(chat.user(text), text + chat.IM_END, value=text))
    return doc
