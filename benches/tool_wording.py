"""Probability of the right tool under each wording by which a system message tells of tools (`tools_in="system"`).

python benches/tool_wording.py MODEL.gguf BFCL [CASES [FORMAT ...]]

BFCL is a folder with the data of the Berkeley function calling leaderboard: `pip download bfcl-eval --no-deps`,
unpacked, has it in `bfcl_eval/data`. For each case, way of writing calls and wording: the log-probability that a call
which is begun names the right tool, and whether that is the most probable one; in every fifth case also whether a
greedy reply goes on, with no constraint, to a call that fits one of the tools. Ctrl-C prints what was measured so far.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from tokentrie import Model

SETS = ("multiple", "simple_python")
TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string", "String": "string"}
MOST_TOKENS = 420
CALL_TOKENS = 48
EACH_GREEDY = 5

BEFORE = (
    "# Tools\n\nYou may call one or more tools to assist with the user query. Their signatures are within "
    "<tools></tools>:\n<tools>\n"
)
EACH = "</tools>\n\nFor each call write its name and its arguments in this format and in no other:\n"
HERMES = (
    "</tools>\n\nFor each function call, return a json object with function name and arguments within "
    "<tool_call></tool_call> XML tags:\n"
)


def as_json(text: str) -> dict[str, Any]:
    read = json.loads(text)
    assert isinstance(read, dict)
    return read


def of_elements(text: str) -> dict[str, Any]:
    return dict(re.findall(r"<parameter=([^>]*)>\n?(.*?)\n?</parameter>", text, re.DOTALL))


@dataclass(frozen=True)
class Way:
    """A way of writing calls: what stands before the name, between it and the arguments, and behind these."""

    start: str
    middle: str
    end: str
    write: Callable[[dict[str, Any]], str]
    read: Callable[[str], dict[str, Any]]

    def call(self, name: str, arguments: str) -> str:
        return f"{self.start}{name}{self.middle}{arguments}{self.end}"

    def fits(self, call: str, tools: list[Any]) -> bool:
        """Returns whether the text between start and end calls a tool with known arguments and all required ones."""
        name, _, arguments = call.partition(self.middle)
        named = [tool["function"] for tool in tools if tool["function"]["name"] == name.strip()]
        if not named:
            return False
        try:
            keys = set(self.read(arguments))
        except (ValueError, SyntaxError, AssertionError):
            return False
        schema = named[0]["parameters"]
        return set(schema.get("required", ())) <= keys <= set(schema["properties"])


def in_elements(arguments: dict[str, Any]) -> str:
    return "".join(f"<parameter={key}>\n{plain(value)}\n</parameter>\n" for key, value in arguments.items())


def in_json(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


WAYS = {
    "JSON": Way('<tool_call>\n{"name": "', '", "arguments": ', "}\n</tool_call>", in_json, as_json),
    "elements": Way("<tool_call>\n<function=", ">\n", "</function>\n</tool_call>", in_elements, of_elements),
}

PLAIN = {
    "capitals": ("NAME", {"ARGUMENT": "VALUE"}),
    "angle brackets": ("<name>", {"<argument>": "<value>"}),
    "snake case": ("tool_name", {"argument_name": "value"}),
}

#: What stands behind the tools, for each way of writing calls.
WORDINGS = {
    key: {name: EACH + way.call(tool, way.write(arguments)) for name, (tool, arguments) in PLAIN.items()}
    for key, way in WAYS.items()
}
UNQUOTED = '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
WORDINGS["JSON"] |= {
    "as Hermes": HERMES + UNQUOTED,
    "only its placeholders": EACH + UNQUOTED,
}


def known(parameters: Any) -> Any:
    """Parameters with the types of JSON Schema."""
    if isinstance(parameters, list):
        return [known(one) for one in parameters]
    if not isinstance(parameters, dict):
        return parameters
    done = {key: known(value) for key, value in parameters.items()}
    if isinstance(kind := done.get("type"), str):
        done["type"] = TYPES.get(kind, kind)
    return done


def cases(folder: Path) -> Iterator[Any]:
    """Tools, a question and its right call, from all sets in turns."""

    def of(name: str) -> Iterator[Any]:
        read = [(folder / sub / f"BFCL_v4_{name}.json").read_text(encoding="utf-8") for sub in (".", "possible_answer")]
        for asked, right in zip(*(map(json.loads, text.splitlines()) for text in read), strict=True):
            ((tool, arguments),) = right["ground_truth"][0].items()
            given = {
                key: next(one for one in values if one != "") for key, values in arguments.items() if "" not in values
            }
            tools = [{"type": "function", "function": known(one)} for one in asked["function"]]
            yield tools, asked["question"][0], tool, given

    return (case for several in zip_longest(*map(of, SETS)) for case in several if case is not None)


def told(wording: str, tools: list[Any], messages: list[Any]) -> list[Any]:
    """The messages, with tools in the system message."""
    text = BEFORE + "".join(json.dumps(tool, ensure_ascii=False) + "\n" for tool in tools) + wording
    if messages[0]["role"] == "system":
        return [{"role": "system", "content": f"{messages[0]['content']}\n\n{text}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def main() -> None:
    path, folder, *rest = sys.argv[1:]
    model = Model(path, n_ctx=2048, n_threads=1)
    left, ways = int(rest[0]) if rest else 60, rest[1:] or list(WAYS)
    interrupted: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: interrupted.append(number))
    keys = [(way, wording) for way in ways for wording in WORDINGS[way]]
    rows: dict[tuple[str, str], list[tuple[float, bool]]] = {key: [] for key in keys}
    fits: dict[tuple[str, str], list[bool]] = {key: [] for key in keys}
    interrupted: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: interrupted.append(number))
    for tools, messages, right, arguments in cases(Path(folder)):
        if interrupted or left == 0:
            break
        names = [tool["function"]["name"] for tool in tools]
        prompts = {
            (way, key): [*map(int, model.chat_prompt(told(WORDINGS[way][key], tools, messages)))] for way, key in rows
        }
        if max(map(len, prompts.values())) > MOST_TOKENS or not arguments:
            continue
        for key, prompt in prompts.items():
            way = WAYS[key[0]]
            begun = prompt + model.vocab.tokenize(way.start)
            choice = model.choose(begun, names)
            rows[key].append((float(choice.logprobs[names.index(right)]), choice.index == names.index(right)))
            if left % EACH_GREEDY == 0:
                free = model.generate(begun, max_tokens=CALL_TOKENS, stop=[way.end])
                fits[key].append(free.finish == "stop" and way.fits(free.text, tools))
        left -= 1
        print(f"{left} left", file=sys.stderr, end="\r")
    report(rows, fits)


def report(rows: dict[tuple[str, str], list[tuple[float, bool]]], fits: dict[tuple[str, str], list[bool]]) -> None:
    """The table of a record."""
    for name in dict.fromkeys(way for way, _ in rows):
        print(f"\n| {name} | right tool: median | mean | above capitals | best tool is right | valid call, greedy |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        base = np.array([row[0] for row in rows[name, "capitals"]])
        for key in WORDINGS[name]:
            names, best = np.array(rows[name, key]).T
            count, valid = len(names), fits[name, key]
            above = f"{int((names > base).sum())} of {count}, × {np.exp(np.median(names - base)):.2f}"
            print(
                f"| {key} | {np.median(names):.2f} | {names.mean():.2f} | {above} | {int(best.sum())} of {count} "
                f"| {sum(valid)} of {len(valid)} |"
            )


if __name__ == "__main__":
    main()
