"""Decisions: a state, and questions about it in the layout of `Model.decide`.

A state is a review, some facts, or a request; a question asks for yes or no, for one of some options, or for a level.
The state is the head of a document and every question a branch. Where a model must look for an answer is told as for
tools (see `guide.py`): a line of the list is known at its end, where its text and its meaning were read.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from random import Random

from drawn import chat, corpus, templates
from drawn.corpus import Action, Branch, Copy, Document
from drawn.lexicon import GRADES, NEUTRAL, OBJECTS, SENTIMENT_LEVELS, SENTIMENT_MEANINGS, STATES, SUBJECTS, VERBS
from drawn.templates import ASKED


@dataclass(frozen=True)
class DrawnQuestion:
    """A question with its options, each with what it means or nothing, and the place of the right one."""

    kind: str
    instructions: str
    options: tuple[tuple[str, str], ...]
    right: int

    def labels(self) -> list[str]:
        """Returns the label of each option where labels are read."""
        count = range(len(self.options))
        return [str(place) for place in count] if self.kind == "score" else [chr(ord("A") + place) for place in count]

    def lines(self, label: bool) -> list[str]:
        """The list of the options."""
        if self.kind == "predicate" and not any(meaning for _, meaning in self.options):
            return []
        said = [f"{mark}: {text}" for mark, (text, _) in zip(self.labels(), self.options, strict=True)]
        if not label or self.kind == "predicate":
            said = [f"- {text}" for text, _ in self.options]
        return [
            line + (f": {meaning}" if meaning else "") for line, (_, meaning) in zip(said, self.options, strict=True)
        ]

    def branch(self, label: bool = False, listed: bool = True) -> Branch:
        """The question after its state, and the right answer."""
        if self.kind == "predicate":
            label, ask = False, "Answer yes or no."
        elif label:
            ask = f"Answer with the {'number' if self.kind == 'score' else 'letter'} alone."
        else:
            ask = "Answer with one of these alone." if listed else "Answer with the name alone."
        lines = self.lines(label) if listed or label else []
        before = "\n\n" + self.instructions + "\n"
        prompt = (
            before + "".join(f"{line}\n" for line in lines) + ask + f"{chat.IM_END}\n" + chat.opened(thinking=False)
        )
        answer = self.labels()[self.right] if label else self.options[self.right][0]
        if self.kind == "predicate" or not lines:
            return Branch(prompt, answer + chat.IM_END)
        ends = list(itertools.accumulate((len(line) + 1 for line in lines), initial=len(before) - 1))[1:]
        mark = 0 if label else len("- ")
        starts = [end - len(line) + mark for end, line in zip(ends, lines, strict=True)]
        copy = Copy(0, 0, ends[self.right], in_head=False)
        return Branch(prompt, answer + chat.IM_END, copies=(copy,), lines=tuple(zip(starts, ends, strict=True)))


def ask(rng: Random, what: str, held_out: bool, **filled: str) -> str:
    """Instructions for a question."""
    return rng.choice(ASKED[what].pick(held_out)).format(**filled)


def is_so(instructions: str, truth: bool, meanings: tuple[str, str] = ("", "")) -> DrawnQuestion:
    """A question for yes or no."""
    return DrawnQuestion("predicate", instructions, (("yes", meanings[0]), ("no", meanings[1])), 0 if truth else 1)


def about_review(rng: Random, label: str, held_out: bool) -> DrawnQuestion:
    """Is it positive, which of the labels, how good is it?"""
    kind = rng.choice(("predicate", "predicate", "choice", "score"))
    if kind == "predicate":
        asked = rng.choice(corpus.LABELS)
        return is_so(ask(rng, asked, held_out), label == asked)
    if kind == "score":
        levels = rng.choice(SENTIMENT_LEVELS)
        right = ("negative", "neutral", "positive").index(label)
        return DrawnQuestion(kind, ask(rng, "how good", held_out), tuple((level, "") for level in levels), right)
    shown = rng.sample(corpus.LABELS, 3)
    if rng.random() < 0.3:
        shown.remove(rng.choice([one for one in shown if one != label]))
    explained = rng.random() < 0.3
    options = tuple((one, rng.choice(SENTIMENT_MEANINGS[one]) if explained else "") for one in shown)
    return DrawnQuestion(kind, ask(rng, "sentiment", held_out), options, shown.index(label))


@dataclass(frozen=True)
class Fact:
    """Fact about a thing: one word of a row of words that exclude each other."""

    subject: str
    row: list[str]
    stated: str


def facts(rng: Random, count: int, held_out: bool) -> tuple[str, list[Fact]]:
    """Some statements about different things."""
    told, said = [], []
    for subject in rng.sample(SUBJECTS, count):
        row = rng.choice((rng.choice(STATES), rng.choice(GRADES)))
        if not held_out and rng.random() < 0.25:
            row = rng.sample(NEUTRAL, 4)
        told.append(Fact(subject, row, rng.choice(row)))
        said.append(rng.choice(templates.FACTS.pick(held_out)).format(s=subject, a=told[-1].stated))
    return " ".join(said), told


def about_fact(rng: Random, fact: Fact, held_out: bool) -> DrawnQuestion:
    """Is it so, what is it, how much of it?"""
    kinds = ["predicate", "choice", *(["score"] if fact.row in GRADES else [])]
    kind = rng.choice(kinds)
    others = [word for word in fact.row if word != fact.stated]
    if kind == "predicate":
        truth = rng.random() < 0.5
        asked = fact.stated if truth else rng.choice(others)
        question = rng.choice(templates.QUESTIONS.pick(held_out))
        question = question.replace("it {q}", "the {s} {q}").replace("it is {q}", "the {s} is {q}")
        return is_so(question.format(s=fact.subject, q=asked), truth)
    if kind == "score":
        levels = fact.row if rng.random() < 0.7 else fact.row[::-1]
        options = tuple((level, "") for level in levels)
        return DrawnQuestion(
            kind, ask(rng, "how much", held_out, s=fact.subject, q=levels[-1]), options, levels.index(fact.stated)
        )
    shown = [fact.stated, *rng.sample(others, rng.randint(1, min(5, len(others))))]
    rng.shuffle(shown)
    options = tuple((word, "") for word in shown)
    return DrawnQuestion(kind, ask(rng, "what", held_out, s=fact.subject), options, shown.index(fact.stated))


def about_request(rng: Random, pairs: list[tuple[int, int]], target: int, held_out: bool) -> DrawnQuestion:
    """Does the user want it, and which of some actions: by name and meaning, or said in other words."""
    actions = [Action(verb, thing, "city") for verb, thing in pairs]
    if rng.random() < 0.25:
        truth = rng.random() < 0.5
        asked = target if truth else rng.choice([place for place in range(len(pairs)) if place != target])
        verb, thing = rng.choice(VERBS[pairs[asked][0]]), rng.choice(OBJECTS[pairs[asked][1]])
        return is_so(ask(rng, "wants", held_out, v=verb, o=corpus.article(rng, thing)), truth)
    patterns = templates.DESCRIPTIONS.pick(held_out)
    pattern = rng.choice(patterns) if rng.random() < 0.5 else ""
    means = [corpus.phrase(rng, pattern or rng.choice(patterns), action) for action in actions]
    if rng.random() < 0.3:
        options = tuple((corpus.phrase(rng, "{v} {o}", action), "") for action in actions)
    else:
        kind = rng.choice(("opaque", "opaque", "misleading", "matching"))
        options = tuple(zip(corpus.make_names(rng, actions, kind, held_out), means, strict=True))
    return DrawnQuestion("choice", ask(rng, "which", held_out), options, target)


def told(rng: Random, text: str, key: str) -> str:
    """The state: a text, sometimes as JSON."""
    return json.dumps({key: text}, ensure_ascii=False, separators=(",", ":")) if rng.random() < 0.15 else text


def document(rng: Random, branches: int, most: int, held_out: bool = False) -> Document:
    """A state and questions about it, in all readouts; lists have at most so many options."""
    kind = rng.random()
    asked: list[DrawnQuestion]
    if kind < 0.25:
        text, label = corpus.review(rng, held_out)
        state = told(rng, text, "review")
        asked = [about_review(rng, label, held_out) for _ in range(branches)]
    elif kind < 0.5:
        text, known = facts(rng, rng.choice((1, 1, 2, 3)), held_out)
        state = told(rng, text, "note")
        asked = [about_fact(rng, rng.choice(known), held_out) for _ in range(branches)]
    else:
        pairs = corpus.choose_pairs(rng, rng.randint(2, max(2, most)), rng.random() < 0.3, held_out)
        target = rng.randrange(len(pairs))
        action = Action(*pairs[target], "city")
        state = told(rng, corpus.phrase(rng, rng.choice(templates.REQUESTS.pick(held_out)), action), "request")
        asked = []
        for _ in range(branches):
            order = rng.sample(range(len(pairs)), len(pairs))
            asked.append(about_request(rng, [pairs[place] for place in order], order.index(target), held_out))
    doc = Document(f"{chat.IM_START}user\n{state}", [])
    for one in asked:
        closed = one.kind != "predicate" and {text for text, _ in one.options} <= set(corpus.LABELS)
        doc.branches.append(one.branch(rng.random() < 0.35, listed=not (closed and rng.random() < 0.15)))
    return doc
