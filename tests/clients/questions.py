"""What every client is asked to do: a chat, a stream with a tool call, a structured output, a decision."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

MODEL = "tiny"
MESSAGES: list[Any] = [{"role": "user", "content": "How warm is it in Rome?"}]
CITIES = ("Rome", "Oslo", "Lima")
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": [*CITIES]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


class Person(BaseModel):
    """What a structured output must be."""

    role: Literal["cook", "pilot"]
    is_here: bool


#: What decisions are about.
STATE = "My card was stolen in Rome, and somebody pays with it."
TEAMS = ("fraud", "cards", "travel")
LEVELS = ("calm", "worried", "angry")
QUESTIONS: list[dict[str, Any]] = [
    {
        "type": "choice",
        "name": "team",
        "instructions": "Who must answer?",
        "choices": [{"value": "fraud", "description": "money is gone"}, {"value": "cards"}, {"value": "travel"}],
    },
    {"type": "predicate", "name": "urgent", "instructions": "Is it urgent?"},
    {"type": "score", "name": "mood", "instructions": "The mood?", "levels": [{"label": one} for one in LEVELS]},
]
