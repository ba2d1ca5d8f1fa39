"""The prompts and values that the benchmark brings along. The same ones on every machine; nothing is downloaded."""

from __future__ import annotations

from random import Random

from tokentrie.cli.demo.catalogue import Tool

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
