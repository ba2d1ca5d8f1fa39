"""Chats with tools, asked through tokentrie and llama.cpp as a user would; also writes `heldout_chats.jsonl`.

python evaluate_chats.py --model tiny.gguf
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby, permutations
from pathlib import Path
from typing import Any

import tokentrie

from drawn import heldout_chats
from drawn.chat import CALL_OPEN
from drawn.heldout_chats import Chat, read

MODEL = Path(__file__).with_name("out") / "tiny.gguf"


def reply(model: tokentrie.Model, prompt: str) -> str:
    """Returns the model's own reply, the most probable token each time."""
    return str(model.generate(prompt, max_tokens=200).text)


def same(one: Any, other: Any) -> bool:
    """Equal as JSON, where true is not 1; the order of keys does not matter."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def calls_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the names and arguments."""
    return [c["function"] for c in message.get("tool_calls", [])]


def orders(function: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Schemas of a call, one for each order of its arguments: the model writes them as the request has them."""
    parameters = function["parameters"]
    for keys in permutations(parameters["properties"]):
        arguments = parameters | {"properties": {k: parameters["properties"][k] for k in keys}}
        yield {
            "type": "object",
            "properties": {"name": {"const": function["name"]}, "arguments": arguments},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }


def held(model: tokentrie.Model, chat: Chat, text: str) -> Any:
    """The first call, with what the tools allow as a constraint from its marker on; `text` is what it says freely."""
    before = text.partition(CALL_OPEN)[0] if CALL_OPEN in text else ""
    rule = tokentrie.JsonSchema({"anyOf": [schema for t in chat.tools for schema in orders(t["function"])]})
    return model.generate(f"{chat.prompt}{before}{CALL_OPEN}\n", rule, max_tokens=160).value


def judge(model: tokentrie.Model, chat: Chat, text: str) -> dict[str, bool]:
    """Judges the parts of one answer."""
    got, want = read(text), chat.expected
    ours, right = calls_of(got), calls_of(want)
    measures = {"whole": same(ours, right) and got["content"] == want["content"]}
    if right:
        measures["names"] = [c["name"] for c in ours] == [c["name"] for c in right]
        measures["called"] = bool(ours)
        if chat.thinking and ours:
            # The names in a thought are in the order of the calls.
            thought = got.get("reasoning_content", "").removeprefix('I should call "').removesuffix('".')
            measures["thought = call"] = thought.split('" and "') == [c["name"] for c in ours]
        if len(right) == 1:
            measures["held"] = same(held(model, chat, text), right[0])
    if chat.thinking:
        measures["thought"] = got.get("reasoning_content") == want["reasoning_content"]
    return measures


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--per-task", type=int, default=200)
    parser.add_argument("--only", default="", help="only tasks whose name starts like this")
    parser.add_argument("--rows", type=int, default=0, help="write this many chats a task to heldout_chats.jsonl")
    parser.add_argument("--show", type=int, default=0, help="print this many wrong answers a task")
    options = parser.parse_args()
    drawn = list(heldout_chats.chats(options.seed, options.per_task))
    heldout_chats.check(drawn)
    if options.rows:
        heldout_chats.write(drawn, options.rows)
    model = tokentrie.Model(str(options.model), n_ctx=4096, n_threads=1)
    for task, group in groupby((c for c in drawn if c.task.startswith(options.only)), key=lambda chat: chat.task):
        hits: dict[str, list[bool]] = defaultdict(list)
        shown = 0
        for chat in group:
            text = reply(model, chat.prompt)
            measures = judge(model, chat, text)
            for measure, right in measures.items():
                hits[measure].append(right)
            if not measures["whole"] and shown < options.show:
                shown += 1
                print(f"{task}: {chat.prompt}\n>>> {text}\nwant {chat.expected}\n")
        print(f"{task:24}" + "  ".join(f"{m} {100 * sum(v) / len(v):5.1f} %" for m, v in hits.items()), flush=True)


if __name__ == "__main__":
    main()
