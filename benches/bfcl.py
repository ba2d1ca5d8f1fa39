"""The Berkeley Function Calling Leaderboard on a model, judged by the leaderboard's own checker.

python benches/bfcl.py [-m MODEL] [--cases N] [--categories multiple,...] [--modes free,...] [--json FILE] BFCL

BFCL is the folder `bfcl_eval` of the package bfcl-eval: `pip download --no-deps bfcl-eval`, unpacked. The same cases of
each category are answered in each mode, greedy, with the tools in the system message where the template has no tools:

- free: nothing constrains the reply; calls are read as the format reads them.
- auto: text or calls, and what is a call is held.
- required: a call must come.
- choice: the name is that of the highest exact probability, and the call is held to it.
- beside: another server of the same model at `--beside URL`, such as llama-server, with `tool_choice` "required".
- begun: the same with `parallel_tool_calls` false, after a last message of the assistant that begins a call: a server
  whose `required` lets any text come before the call is held to a call so.
- schema: the same server with a `response_format` in place of `tool_choice`: the schema of an object with the name and
  the arguments of one call.

conformance/agents/llama_server.jinja is a template by which llama-server (`--jinja --chat-template-file`) gives the
model the prompts that the other modes give it.

Each reply is printed and written to FILE as a line of JSON when it is there. A run with the same FILE goes on where
the last one ended, and `--cases 0` prints the tables of what is in it. Replies that are there are taken as they are:
another model wants another FILE.

A case of the categories `irrelevance` is right where no call comes. Intervals are those of Wilson, 95 %. Modes are
compared by McNemar's exact test over the cases that both answered.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import types
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Literal

import jsonschema
from tokentrie import Message, Model
from tokentrie.errors import TokenTrieError

CATEGORIES = [
    "simple_python",
    "multiple",
    "parallel",
    "live_simple",
    "live_multiple",
    "irrelevance",
    "live_irrelevance",
]
MODES = ["free", "auto", "required", "choice"]
#: Those of another server.
BESIDE = ["beside", "begun", "schema"]
CALL_OPENING = "<tool_call>\n"
TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string", "String": "string", "list": "array"}
#: Longer prompts are left out, so that a case takes seconds.
MOST_TOKENS = 1200
CALL_TOKENS = 192


def as_schema(given: Any) -> Any:
    """Returns parameters with the types of JSON Schema, and closed objects."""
    if isinstance(given, list):
        return [as_schema(one) for one in given]
    if not isinstance(given, dict):
        return given
    done = {key: as_schema(value) for key, value in given.items()}
    if isinstance(kind := done.get("type"), str):
        done["type"] = TYPES.get(kind, kind)
        if done["type"] == "object" and isinstance(done.get("properties"), dict):
            done.setdefault("additionalProperties", False)
    return done


@dataclass(frozen=True)
class Case:
    """A question: the functions as the leaderboard has them, and as tools; the answers that count as right."""

    name: str
    kind: str
    functions: list[Any]
    tools: list[Any]
    messages: list[Any]
    answers: list[Any] | None


def cases(data: Path, kind: str) -> Iterator[Case]:
    asked = [json.loads(line) for line in (data / f"BFCL_v4_{kind}.json").read_text(encoding="utf-8").splitlines()]
    right = data / "possible_answer" / f"BFCL_v4_{kind}.json"
    answers = {}
    if right.is_file():
        answers = {one["id"]: one["ground_truth"] for one in map(json.loads, right.read_text("utf-8").splitlines())}
    for one in asked:
        tools = [{"type": "function", "function": as_schema(function)} for function in one["function"]]
        yield Case(one["id"], kind, one["function"], tools, one["question"][0], answers.get(one["id"]))


def checker(package: Path) -> Any:
    """Returns the leaderboard's checker, without the clients of model vendors that its package would import."""
    sys.path.insert(0, str(package.parent))
    config: Any = types.ModuleType("bfcl_eval.constants.model_config")
    config.MODEL_CONFIG_MAPPING = defaultdict(lambda: types.SimpleNamespace(underscore_to_dot=False))
    sys.modules[config.__name__] = config
    from bfcl_eval.constants.enums import Language  # type: ignore[import-not-found]
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker  # type: ignore[import-not-found]

    def is_right(case: Case, calls: list[tuple[str, Any]]) -> bool:
        if "irrelevance" in case.kind:
            return not calls
        if not calls or not all(isinstance(arguments, dict) for _, arguments in calls):
            return False
        output = [{name: arguments} for name, arguments in calls]
        return bool(ast_checker(case.functions, output, case.answers, Language.PYTHON, case.kind, "-")["valid"])

    return is_right


def wilson(right: int, count: int, z: float = 1.96) -> tuple[float, float]:
    if count == 0:
        return 0.0, 1.0
    share, spread = right / count, z * z / count
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + spread)
    # Of none and of all an end is 0 or 1, but for rounding.
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True)
class Answer:
    """What came of a case in a mode."""

    id: str
    category: str
    mode: str
    right: bool
    #: Names, and arguments as the reply has them.
    calls: list[tuple[str, str]]
    #: Calls whose arguments are an object of JSON, and those that fit the schema of their tool.
    objects: int
    fitting: int
    text: str
    #: Forward passes after the prompt; of another server the tokens that it counts, or None.
    passes: int | None
    #: After the prompt.
    seconds: float
    error: str | None = None

    @property
    def wants_call(self) -> bool:
        return "irrelevance" not in self.category


class Caller:
    """Answers cases in every mode."""

    def __init__(self, model: Model, beside: str | None) -> None:
        self.model, self.beside = model, beside
        self.tools_in: Literal["template", "system"] = (
            "template" if model.chat_format.analysis.capabilities.tools else "system"
        )

    def prompt(self, case: Case) -> list[int]:
        """Returns the tokens that every mode begins with."""
        prompt = self.model.chat_format.with_tools_in(self.tools_in).prompt(case.messages, case.tools)
        return list(self.model.vocab.tokenize_parts(prompt.parts))

    def reply(self, case: Case, mode: str) -> tuple[list[tuple[str, str]], str, int | None]:
        """Returns the calls of a reply, its text, and its forward passes after the prompt."""
        if mode in BESIDE:
            return self.ask_other(case, mode, CALL_TOKENS)
        message, passes = self.message(case, mode)
        return [(call.name, call.arguments) for call in message.tool_calls], message.content, passes

    def message(self, case: Case, mode: str) -> tuple[Message, int]:
        options: dict[str, Any] = {"tools_in": self.tools_in, "max_tokens": CALL_TOKENS}
        if mode == "free":
            out = self.model.generate(self.prompt(case), max_tokens=CALL_TOKENS)
            message = self.model.chat_format.with_tools_in(self.tools_in).parse(out.text, case.tools)
            return message, out.stats.forward_passes
        choice: Any = mode
        passes = 0
        if mode == "choice":
            names = [tool["function"]["name"] for tool in case.tools]
            opening = self.model.vocab.tokenize(CALL_OPENING + '{"name": "', parse_special=True)
            best = self.model.choose([*self.prompt(case), *opening], names, suffix='"', end_tokens=None)
            choice, passes = {"type": "function", "function": {"name": names[best.index]}}, best.stats.forward_passes
        message = self.model.chat(case.messages, case.tools, choice, **options)
        return message, passes + message.stats.forward_passes

    def ask_other(self, case: Case, mode: str, max_tokens: int) -> tuple[list[tuple[str, str]], str, int | None]:
        body = {"messages": case.messages, "tools": case.tools, "temperature": 0, "max_tokens": max_tokens}
        if mode == "schema":
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "call", "schema": call_schema(case)},
            }
        else:
            body["tool_choice"] = "required"
        if mode == "begun":
            opening = {"role": "assistant", "content": CALL_OPENING}
            body |= {"messages": [*case.messages, opening], "parallel_tool_calls": False}
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(f"{self.beside}/v1/chat/completions", data, headers)
        with urllib.request.urlopen(asked, timeout=600) as answer:
            reply = json.load(answer)
        message = reply["choices"][0]["message"]
        called = [call["function"] for call in message.get("tool_calls") or ()]
        calls = [(call["name"], call["arguments"]) for call in called]
        text = message.get("content") or ""
        if mode == "schema" and isinstance(call := arguments_of(text), dict):
            calls = [(call.get("name", ""), json.dumps(call.get("arguments")))]
        return calls, text, reply.get("usage", {}).get("completion_tokens")

    def decode_prompt(self, case: Case, mode: str) -> None:
        """Has the prompt decoded, so that the first mode does not pay for what all modes share."""
        if mode not in BESIDE:
            self.model.logits(self.prompt(case))
            return
        # What is wrong shows in the reply itself.
        with suppress(OSError):
            self.ask_other(case, mode, 1)

    def answer(self, case: Case, mode: str, is_right: Callable[[Case, list[tuple[str, Any]]], bool]) -> Answer:
        self.decode_prompt(case, mode)
        began = time.perf_counter()
        calls: list[tuple[str, str]]
        error = None
        try:
            calls, text, passes = self.reply(case, mode)
        except (TokenTrieError, OSError) as problem:
            # A server says in the answer why it refuses.
            said = problem.read().decode(errors="replace") if isinstance(problem, urllib.error.HTTPError) else ""
            calls, text, passes, error = [], "", 0, f"{problem} {said}".strip()
        seconds = time.perf_counter() - began
        read = [(name, arguments_of(arguments)) for name, arguments in calls]
        return Answer(
            id=case.name,
            category=case.kind,
            mode=mode,
            right=error is None and is_right(case, read),
            calls=calls,
            objects=sum(isinstance(arguments, dict) for _, arguments in read),
            fitting=sum(fits(case, name, arguments) for name, arguments in read),
            text=text,
            passes=passes,
            seconds=seconds,
            error=error,
        )


def arguments_of(text: str) -> Any:
    """Returns the value of a text in JSON, such as the arguments of a call, or None where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def call_schema(case: Case) -> dict[str, Any]:
    """Returns the schema of one call of a case's tools."""

    def of_tool(tool: dict[str, Any]) -> dict[str, Any]:
        properties = {"name": {"const": tool["name"]}, "arguments": tool.get("parameters", {})}
        required = ["name", "arguments"]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    return {"anyOf": [of_tool(tool["function"]) for tool in case.tools]}


def fits(case: Case, name: str, arguments: Any) -> bool:
    schemas = {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in case.tools}
    if name not in schemas:
        return False
    return jsonschema.Draft202012Validator(schemas[name]).is_valid(arguments)


def mcnemar(first: int, second: int) -> float:
    """Returns the exact two-sided p of so many cases that only the first, and only the second, has right."""
    count = first + second
    if count == 0:
        return 1.0
    tail = sum(math.comb(count, k) for k in range(min(first, second) + 1))
    return float(min(1.0, 2 * tail / 2**count))


def row(answers: list[Answer]) -> str:
    """Returns the cells of a table that say how answers of a mode are."""
    cases = len(answers)
    right = sum(one.right for one in answers)
    low, high = wilson(right, cases)
    calls = sum(len(one.calls) for one in answers)
    # A reply without a call has none that is JSON.
    valid = sum(bool(one.calls) and one.objects == len(one.calls) for one in answers)
    passes = [one.passes for one in answers if one.passes is not None]
    each = f"{sum(passes) / len(passes):.1f}" if passes else "–"
    return (
        f"{right} of {cases} = {100 * right / cases:.0f} % ({100 * low:.0f} to {100 * high:.0f}) "
        f"| {100 * valid / cases:.0f} % | {sum(one.fitting for one in answers)} of {calls} "
        f"| {each} | {1e3 * sum(one.seconds for one in answers) / cases:.0f}"
    )


def tables(answers: list[Answer]) -> str:
    """Returns the tables of a run, as Markdown."""
    lines = ["| category | mode | right (95 %) | JSON | calls that fit their schema | passes | ms |"]
    lines.append("| --- | --- | --- | ---: | --- | ---: | ---: |")
    groups: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    for one in answers:
        groups[one.category, one.mode].append(one)
    wanting: dict[str, dict[str, bool]] = defaultdict(dict)
    for one in answers:
        if one.wants_call:
            groups["all that want a call", one.mode].append(one)
            wanting[one.mode][one.id] = one.right
    lines += [f"| {category} | {mode} | {row(group)} |" for (category, mode), group in groups.items()]
    lines += ["", "| modes | cases | only the first right | only the second right | p (McNemar) |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    modes = list(wanting)
    for place, first in enumerate(modes):
        for second in modes[place + 1 :]:
            both = wanting[first].keys() & wanting[second].keys()
            ahead = sum(wanting[first][one] and not wanting[second][one] for one in both)
            behind = sum(wanting[second][one] and not wanting[first][one] for one in both)
            lines.append(f"| {first}, {second} | {len(both)} | {ahead} | {behind} | {mcnemar(ahead, behind):.2g} |")
    return "\n".join(lines)


def read_answers(file: Path | None) -> list[Answer]:
    """Returns what an earlier run wrote; a last line that was cut off counts as not written."""
    if file is None or not file.is_file():
        return []
    whole, _, _ = file.read_text(encoding="utf-8").rpartition("\n")
    read = [json.loads(line) for line in whole.splitlines()]
    return [Answer(**{**one, "calls": [(name, arguments) for name, arguments in one["calls"]]}) for one in read]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("package", type=Path, metavar="BFCL")
    options.add_argument("-m", "--model", default="smollm2")
    options.add_argument("-n", "--cases", type=int, default=100, help="of all categories together")
    options.add_argument("--categories", default=",".join(CATEGORIES))
    options.add_argument("--modes", default=",".join(MODES))
    options.add_argument("--threads", type=int, help="of the model; by default those that it chooses by itself")
    options.add_argument("--beside", metavar="URL", help="another server, for the modes `beside`, `begun` and `schema`")
    options.add_argument(
        "--json", type=Path, help="write each reply, a line each, and go on after those that are there"
    )
    given = options.parse_args()
    categories, modes = given.categories.split(","), given.modes.split(",")
    modes += ["beside"] if given.beside and not {*BESIDE} & {*modes} else []
    answers = read_answers(given.json)
    if given.cases:
        run(given, categories, modes, answers)
    print(tables(answers))
    for one in answers:
        if one.error:
            print(f"{one.id}, {one.mode}: {one.error}", file=sys.stderr)


def run(given: argparse.Namespace, categories: list[str], modes: list[str], answers: list[Answer]) -> None:
    """Adds the answers that are not there."""
    is_right = checker(given.package)
    there = {(one.id, one.mode) for one in answers}
    if given.json:
        # Half a line may be at the end.
        given.json.write_text("".join(json.dumps(asdict(one)) + "\n" for one in answers), encoding="utf-8")
    with Model(given.model, n_ctx=MOST_TOKENS + 4 * CALL_TOKENS, n_threads=given.threads) as model:
        caller = Caller(model, given.beside)
        each = -(-given.cases // len(categories))

        def chosen(category: str) -> list[Case]:
            """The first cases that are short enough."""
            asked = cases(given.package / "data", category)
            return list(islice((case for case in asked if len(caller.prompt(case)) <= MOST_TOKENS), each))

        # In turns, so that a run that is stopped has some of each.
        for turn in zip_longest(*map(chosen, categories)):
            for case in filter(None, turn):
                for mode in modes:
                    if (case.name, mode) in there:
                        continue
                    one = caller.answer(case, mode, is_right)
                    answers.append(one)
                    if given.json:
                        with given.json.open("a", encoding="utf-8") as out:
                            out.write(json.dumps(asdict(one)) + "\n")
                    said = "right" if one.right else one.error or "wrong"
                    calls = " ".join(f"{name}({arguments})" for name, arguments in one.calls)
                    print(
                        f"{one.id} {mode} {said} {1e3 * one.seconds:.0f} ms {calls[:200]}", file=sys.stderr, flush=True
                    )


if __name__ == "__main__":
    main()
