"""Sentence patterns, each list split into what training sees and what only the evaluation sees."""

# fmt: off

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Split:
    """Two disjoint lists of one kind of pattern."""

    train: list[str]
    held_out: list[str]

    def __post_init__(self) -> None:
        assert not set(self.train) & set(self.held_out)

    def pick(self, held_out: bool) -> list[str]:
        """The patterns of one side of the split."""
        return self.held_out if held_out else self.train


# {v} verb, {o} object with article, {x} value phrase (with its own leading space, may be empty)
REQUESTS = Split(
    train=[
        "{v} {o}{x}", "{v} {o}{x}.", "please {v} {o}{x}", "Please {v} {o}{x}.", "can you {v} {o}{x}?",
        "Can you {v} {o}{x}?", "could you {v} {o}{x} for me", "I want to {v} {o}{x}", "I need to {v} {o}{x}.",
        "I would like to {v} {o}{x}", "help me {v} {o}{x}", "let us {v} {o}{x}", "{v} {o}{x} now",
        "{v} {o}{x} please", "it is time to {v} {o}{x}", "I have to {v} {o}{x} today", "go and {v} {o}{x}",
        "would you {v} {o}{x}, thanks", "my boss told me to {v} {o}{x}", "time to {v} {o}{x}!",
        "I'd like you to {v} {o}{x}.", "do me a favor and {v} {o}{x}", "hey, {v} {o}{x}",
        "we should {v} {o}{x} soon", "is it possible to {v} {o}{x}?", "what I need is to {v} {o}{x}",
        "{v} {o}{x} for me", "next, {v} {o}{x}", "{v} {o}{x} as soon as you can", "just {v} {o}{x}",
        "how do I {v} {o}{x}?", "they asked me to {v} {o}{x}", "ok, {v} {o}{x}, will you?",
        "Hello! {v} {o}{x}.",
    ],
    held_out=[
        "would you please {v} {o}{x}?", "I really have to {v} {o}{x} now", "hello, can you {v} {o}{x}",
        "we want you to {v} {o}{x}", "my friend told me to {v} {o}{x}.", "is it time to {v} {o}{x}?",
        "could you help me {v} {o}{x}?", "Thanks! Now {v} {o}{x}", "I was asked to {v} {o}{x} today.",
        "you should {v} {o}{x} for me please",
    ],
)

DESCRIPTIONS = Split(
    train=[
        "{V} {o}", "{V} {o}.", "{V} {o} for the user", "Tool to {v} {o}", "Use this to {v} {o}.", "{v} {o}",
        "Lets you {v} {o}", "Can {v} {o}.", "{V} {o} in the system", "Helps to {v} {o}", "To {v} {o}",
        "A tool that can {v} {o}.", "{V} {o} on request", "Call this to {v} {o}", "{V} {o} with one argument.",
    ],
    held_out=[
        "Use this tool to {v} {o}.", "{V} {o} when the user asks", "This can {v} {o}", "Helps you {v} {o}.",
    ],
)

# Word-list descriptions are matched by the words alone; {w} are one to three of them.
MENTIONS = Split(
    train=[
        "{w}", "{w}?", "something about {w}", "I need {w}", "tell me about {w}.", "{w} please",
        "what about {w}?", "give me {w}", "the one with {w}", "I am thinking of {w}.", "use {w}",
        "which one is {w}?",
    ],
    held_out=[
        "please, something with {w}", "I want the one about {w}", "do you have {w}?",
    ],
)

# {s} subject, {a} stated value, {q} asked value
FACTS = Split(
    train=[
        "The {s} is {a}.", "The {s} was {a}.", "My {s} is {a}.", "Note that the {s} is {a}.",
        "I see that the {s} is {a}.", "We know that the {s} is {a}.", "They say the {s} is {a}.",
        "Fact: the {s} is {a}.", "Look, the {s} is {a}.", "Today the {s} is {a}.", "the {s} is {a}.",
    ],
    held_out=[
        "I know that the {s} is {a}.", "Today, my {s} is {a}.", "It is a fact that the {s} is {a}.",
    ],
)
QUESTIONS = Split(
    train=[
        "Is the {s} {q}?", "is the {s} {q}?", "Is it {q}?", "Would you say the {s} is {q}?",
        "Can we say that the {s} is {q}?", "The {s} is {q}, right?", "Is it true that the {s} is {q}?",
        "Do you think it is {q}?", "Was the {s} {q}?",
    ],
    held_out=[
        "Is it right that the {s} is {q}?", "Do you say the {s} is {q}?", "So, is the {s} {q}?",
    ],
)

# {s} subject, {a} adjective, {b} second adjective, {c} clause
REVIEWS = Split(
    train=[
        "The {s} was {a}.", "The {s} is {a} and {b}.", "What a {a} {s}, {c}.", "{c}. The {s} was {a}.",
        "A {a} {s}.", "{a} {s}, {c}!", "I found the {s} {a}.", "The {s}: {a}.", "My {s} is {a}, {c}.",
        "{c}, the {s} is {b}.", "This {s} is {a}.", "{a} and {b} {s}", "The {s} we had was {a}. {c}.",
        "It was a {a} {s}.", "{c}.",
    ],
    held_out=[
        "I think the {s} was {a}.", "The {s} is so {a}, and {c}.", "We had a {a} {s} today. {c}.",
        "{c}: a {a} and {b} {s}.",
    ],
)

# Questions of decisions; {s} subject, {q} value, {v} verb, {o} object with article
ASKED = {
    "positive": Split(
        train=["Is the review positive?", "positive", "Is the customer happy?", "Did they like it?", "happy",
               "Is this praise?"],
        held_out=["Is this review positive?", "Is the customer happy with it?"],
    ),
    "negative": Split(
        train=["Is the review negative?", "negative", "Is the customer unhappy?", "Is this a complaint?", "unhappy",
               "Should we say sorry?"],
        held_out=["Is this review negative?", "Is the customer unhappy with it?"],
    ),
    "neutral": Split(
        train=["Is the review neutral?", "neutral", "Is it neither good nor bad?"],
        held_out=["Is this review neutral?", "Is the review neither good nor bad?"],
    ),
    "sentiment": Split(
        train=["What is the sentiment?", "sentiment", "Which label fits?", "Label the review.", "label",
               "What does it say?", "The sentiment of the review"],
        held_out=["What is the sentiment of the review?", "Which sentiment is it?"],
    ),
    "how good": Split(
        train=["How good is it?", "mood", "How does the customer feel?", "Rate the review.", "rating",
               "How happy are they?"],
        held_out=["How happy is the customer?", "How good is the review?"],
    ),
    "how much": Split(
        train=["How {q} is it?", "How {q} is the {s}?", "{s}", "Rate the {s}.", "the level of the {s}"],
        held_out=["How {q} would you say the {s} is?", "Say how {q} the {s} is."],
    ),
    "what": Split(
        train=["What is the {s}?", "{s}", "How is the {s}?", "Which word fits the {s}?", "the {s}",
               "What do we know of the {s}?"],
        held_out=["What is said of the {s}?", "Which of these is the {s}?"],
    ),
    "wants": Split(
        train=["Does the user want to {v} {o}?", "Is this a request to {v} {o}?", "{v} {o}", "Should we {v} {o}?",
               "Do they want to {v} {o}?"],
        held_out=["Does the customer want to {v} {o}?", "Is the user asking to {v} {o}?"],
    ),
    "which": Split(
        train=["Which tool fits?", "tool", "What does the user want?", "Which one?", "action", "Who can help?", "team",
               "Which of these is it?", "What should we do?"],
        held_out=["Which tool does the user need?", "What is the request?"],
    ),
}
