"""Calls as requests with a JSON form, and their answers as they were recorded: token for token the same.

`python tests/model/test_recorded_calls.py` records them anew, which changes results for users: say why in the commit.
"""

from __future__ import annotations

import json
import random
from functools import cache
from math import isnan
from pathlib import Path
from typing import Any

import pytest
import tokentrie
from tokentrie import Model

pytestmark = pytest.mark.model
PATH = Path(__file__).parents[1] / "vectors" / "calls.json"
#: How far a probability may be from the recorded one: passes of other widths, and processors with other vector units,
#: round otherwise.
NEAR = 1e-2
TURN = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
ABOUT = (
    "Calls on the model that the package carries, in the JSON form of requests, and what came of them. Tokens are the "
    "same everywhere; probabilities to 1e-2."
)


@cache
def model() -> Model:
    return Model(n_threads=1)


def answer(call: str, request: dict[str, Any]) -> dict[str, Any]:
    """What a request gives, without what depends on the machine."""
    given = dict(request)
    if call == "generate":
        sampling = given.pop("sampling", {})
        spec = given.pop("constraint", None)
        held = None if spec is None else tokentrie.constraint(spec)
        if given.pop("exact", False):
            sampling = {**sampling, "mode": "exact"}
        out = model().generate(given.pop("prompt"), held, **sampling, **given)
        return {
            "text": out.text,
            "tokens": out.tokens,
            "finish": out.finish,
            "value": out.leaf.name if out.leaf else None,
            "values": {name: str(value) for name, value in out.values.items()},
            "probabilities": out.probabilities,
            "logprobs": [known.logprob for known in out.logprobs],
            "completed": out.completed,
            "forced_tokens": out.stats.forced_tokens,
        }
    if call == "choose":
        choice = model().choose(given.pop("prompt"), given.pop("choices"), **given)
        return {
            "name": choice.name,
            "ranking": choice.ranking.tolist(),
            "probabilities": {name: None if isnan(share) else share for name, share in choice.probabilities.items()},
            "mass": choice.mass,
        }
    if call == "chat":
        message = model().chat(given.pop("messages"), **given)
        calls = [{"name": one.name, "arguments": json.loads(one.arguments)} for one in message.tool_calls]
        return {"content": message.content, "tool_calls": calls, "finish": message.finish}
    answers = model().decide(given.pop("state"), given.pop("questions"), **given)
    return {name: {"value": str(one.value), "probability": one.probability} for name, one in answers.items()}


def assert_same(given: Any, recorded: Any, place: str = "$") -> None:
    """That two answers are the same, numbers with a fraction to NEAR."""
    if isinstance(recorded, float) and isinstance(given, float):
        assert given == pytest.approx(recorded, abs=NEAR), place
    elif isinstance(recorded, dict):
        assert given.keys() == recorded.keys(), place
        for name, value in recorded.items():
            assert_same(given[name], value, f"{place}.{name}")
    elif isinstance(recorded, list):
        assert len(given) == len(recorded), place
        for number, value in enumerate(recorded):
            assert_same(given[number], value, f"{place}[{number}]")
    else:
        assert given == recorded, place


CALLS = json.loads(PATH.read_text(encoding="utf-8"))["calls"] if PATH.exists() else []


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_a_recorded_call_gives_the_same_tokens(number: int) -> None:
    recorded = CALLS[number]
    model().clear()
    assert_same(answer(recorded["call"], recorded["request"]), recorded["answer"])


TOOLS = [
    {"name": "book_room", "parameters": {"type": "object", "properties": {
        "guests": {"type": "integer", "minimum": 1, "maximum": 8}, "name": {"type": "string", "maxLength": 12}},
        "required": ["guests"]}},
    {"name": "set_light", "parameters": {"type": "object", "properties": {
        "state": {"enum": ["on", "off", "dim"]},
        "rooms": {"type": "array", "items": {"type": "string"}, "maxItems": 2}}, "required": ["state"]}},
    {"name": "stop"},
]  # fmt: skip
DOCUMENT = {"type": "object", "properties": {"city": {"enum": ["Bonn", "Oslo"]}, "nights": {"type": "integer",
    "minimum": 0, "maximum": 30}, "tags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3}},
    "required": ["city", "nights", "tags"], "additionalProperties": False}  # fmt: skip


def requests() -> list[tuple[str, dict[str, Any]]]:
    """Requests of every kind of constraint, greedy and drawn."""
    form = [
        "{\"on\": ", {"slot": "on", "value": {"choice": ["true", "false"]}}, ", \"at\": ",
        {"slot": "at", "value": {"time": {}}}, ", \"note\": \"", {"text": "note", "stop": "\"", "max_tokens": 8}, "\"}",
    ]  # fmt: skip
    specs: list[Any] = [
        {"choice": ["book_room", "set_light", "stop", "stop_all"]},
        {"choice": ["yes", "no"], "prefix": '"', "suffix": '"'},
        {"choice": ["red", "green", "blue"], "tokenization": "all"},
        {"regex": "(mon|tues|fri)day, [0-9]{2}:[0-5][0-9]"},
        {"integer": {"min": -20, "max": 1000}},
        {"number": {"min": 0, "max": 1, "fraction_digits": 3}},
        {"date": {"min": "2024-02-20", "max": "2025-03-01"}},
        {"time": {}},
        {"date_time": {"timespec": "minutes"}},
        {"string": {"min_chars": 2, "max_chars": 9, "quotes": True}},
        {"one_of": ["none", {"integer": {"min": 0, "max": 99}}]},
        {"then": ["no. ", {"integer": {"min": 1, "max": 40}}, ", ", {"date": {}}]},
        {"sequence": [{"choice": ["set_light", "stop"]}, {"choice": [" on", " off"]}]},
        {"gbnf": 'root ::= "[" item ("," item)? "]"\nitem ::= [0-9] [0-9]?'},
        {"grammar": 'sum : "1" | sum "+" "1" ;'},
        {"json_schema": DOCUMENT},
        {"json_schema": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3}},
        {"form": form},
    ]
    prompts = [TURN.format("Book a room for two."), TURN.format("Turn on the lights in the kitchen."), "The sky is "]
    drawn = random.Random(7)
    calls: list[tuple[str, dict[str, Any]]] = []
    for number, spec in enumerate(specs):
        prompt = prompts[number % 3]
        calls.append(("generate", {"prompt": prompt, "constraint": spec, "max_tokens": 60}))
        sampling = {"mode": "sampled", "seed": drawn.randrange(1000), "temperature": 0.9, "top_p": 0.95}
        calls.append(("generate", {"prompt": prompts[(number + 1) % 3], "constraint": spec, "sampling": sampling,
            "max_tokens": 60} | ({} if "form" in spec else {"logprobs": 0})))  # fmt: skip
        calls.append(("generate", {"prompt": prompt, "constraint": spec, "max_tokens": 60, "skip_ahead": False}))
    short = {"form": ["{\"room\": \"", {"slot": "room", "value": {"choice": ["A", "AB", "B"]}}, "\", \"guests\": ",
        {"slot": "guests", "value": {"integer": {"min": 1, "max": 12}}}, "}"]}  # fmt: skip
    calls.append(("generate", {"prompt": prompts[0], "constraint": short, "probabilities": True}))
    calls.append(("generate", {"prompt": prompts[1], "constraint": short, "exact": True}))
    calls.append(("generate", {"prompt": prompts[0], "max_tokens": 12}))
    calls.append(("generate", {"prompt": prompts[2], "max_tokens": 12, "stop": ["."]}))
    calls.append(("generate", {"prompt": prompts[2], "sampling": {"mode": "sampled", "seed": 3}, "max_tokens": 8}))
    for choices in (["yes", "no"], ["book_room", "book_rooms", "set_light", "stop"], [" blue", " red", " green"]):
        calls.extend(("choose", {"prompt": prompt, "choices": choices}) for prompt in prompts)
        calls.append(("choose", {"prompt": prompts[2], "choices": choices, "top": 1}))
    for text in ("Book a room for two.", "Turn on the lights.", "Stop it now."):
        ask = [{"role": "user", "content": text}]
        asked = [
            {"messages": ask, "tools": TOOLS, "tool_choice": choice} for choice in ("auto", "required", "set_light")
        ]
        calls.extend(("chat", request | {"max_tokens": 80}) for request in asked)
        calls.append(("chat", {"messages": ask, "constraint": ["yes", "no"]}))
        calls.append(("chat", {"messages": ask, "max_tokens": 10, "mode": "sampled", "seed": 5, "temperature": 0.8}))
    for state in ("Customer: I was charged twice.", "The lamp is on."):
        calls.append(("decide", {"state": state, "questions": {"team": ["billing", "access", "other"]}}))
        calls.append(("decide", {"state": state, "questions": {"urgent": ["yes", "no"]}, "readout": "label"}))
        calls.append(("decide", {"state": state, "questions": {"team": ["a", "b"]}, "permute": 2, "threshold": 0.6}))
    return calls


if __name__ == "__main__":
    made = []
    for call, request in requests():
        model().clear()
        made.append({"call": call, "request": request, "answer": answer(call, request)})
    lines = ",\n".join(f"    {json.dumps(one, ensure_ascii=False)}" for one in made)
    PATH.write_text(f'{{\n  "about": {json.dumps(ABOUT)},\n  "calls": [\n{lines}\n  ]\n}}\n', encoding="utf-8")
    print(f"{len(made)} calls")
