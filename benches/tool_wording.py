"""How probable the right call is under each wording by which a system message tells of tools (`tools_in="system"`).

python benches/tool_wording.py MODEL.gguf BFCL [CASES]

BFCL is a folder with the data of the Berkeley function calling leaderboard: `pip download bfcl-eval --no-deps`,
unpacked, has it in `bfcl_eval/data`. For each case and wording: the log-probability that a reply begins a call, that
the call names the right tool, and that it has the right arguments, each after what stands before it.
"""

from __future__ import annotations

import json
import sys
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from tokentrie import Model

SETS = ("multiple", "live_multiple", "simple_python")
TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string", "String": "string"}
MOST_TOKENS = 700

BEFORE = (
    "# Tools\n\nYou may call one or more tools to assist with the user query. Their signatures are within "
    "<tools></tools>:\n<tools>\n"
)
EACH = "</tools>\n\nFor each call write its name and its arguments in this format and in no other:\n"
HERMES = (
    "</tools>\n\nFor each function call, return a json object with function name and arguments within "
    "<tool_call></tool_call> XML tags:\n"
)
CALL = '<tool_call>\n{"name": %s, "arguments": %s}\n</tool_call>'
START, MIDDLE = '<tool_call>\n{"name": "', '", "arguments": '

#: What stands behind the tools.
WORDINGS = {
    "capitals": EACH + CALL % ('"NAME"', '{"ARGUMENT": "VALUE"}'),
    "angle brackets": EACH + CALL % ('"<name>"', '{"<argument>": "<value>"}'),
    "snake case": EACH + CALL % ('"tool_name"', '{"argument_name": "value"}'),
    "as Hermes": HERMES + CALL % ("<function-name>", "<args-json-object>"),
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


def cases(folder: Path) -> Any:
    """Tools, a question and its right call, from all sets in turns."""

    def of(name: str) -> Any:
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
    text = BEFORE + "".join(json.dumps(tool, ensure_ascii=False) + "\n" for tool in tools) + WORDINGS[wording]
    if messages[0]["role"] == "system":
        return [{"role": "system", "content": f"{messages[0]['content']}\n\n{text}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def main() -> None:
    path, folder, *most = sys.argv[1:]
    model = Model(path, n_ctx=2048, n_threads=1)
    rows: dict[str, list[tuple[float, float, float, bool]]] = {wording: [] for wording in WORDINGS}
    left = int(most[0]) if most else 60

    def logprob(prompt: list[int], text: str) -> float:
        return float(model.choose(prompt, [text]).logprobs[0])

    for tools, messages, right, arguments in cases(Path(folder)):
        names = [tool["function"]["name"] for tool in tools]
        prompts = {key: [*map(int, model.chat_prompt(told(key, tools, messages)))] for key in WORDINGS}
        if max(map(len, prompts.values())) > MOST_TOKENS or not arguments:
            continue
        for key, prompt in prompts.items():
            begun = prompt + model.vocab.tokenize(START)
            choice = model.choose(begun, names)
            called = prompt + model.vocab.tokenize(START + right + MIDDLE)
            given = logprob(called, json.dumps(arguments, ensure_ascii=False))
            name = float(choice.logprobs[names.index(right)])
            rows[key].append((logprob(prompt, START), name, given, choice.index == names.index(right)))
        left -= 1
        print(f"{left} left", file=sys.stderr, end="\r")
        if left == 0:
            break
    print("| wording | begins a call | right tool: median | mean | above capitals | best tool is right | arguments |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    base = np.array([row[1] for row in rows["capitals"]])
    for key, several in rows.items():
        begins, name, given, best = np.array(several).T
        above = f"{int((name > base).sum())} of {len(name)}, × {np.exp(np.median(name - base)):.2f}"
        print(
            f"| {key} | {np.median(begins):.2f} | {np.median(name):.2f} | {name.mean():.2f} | {above} "
            f"| {int(best.sum())} of {len(name)} | {np.median(given):.2f} |"
        )


if __name__ == "__main__":
    main()
