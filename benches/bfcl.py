"""The Berkeley Function Calling Leaderboard on a model, judged by the leaderboard's own checker.

python benches/bfcl.py [-m MODEL] [-n CASES] [--modes free,required,...] [--sets multiple,...] [--json FILE] BFCL

BFCL is the folder `bfcl_eval` of the package bfcl-eval: `pip download --no-deps bfcl-eval`, unpacked. The same CASES of
each set are answered in each mode, greedy, with the tools in the system message where the template has no tools:

- free: nothing constrains the reply; calls are read as the format reads them.
- auto: text or calls, and what is a call is held.
- required: a call must come.
- choice: the name is that of the highest exact probability, and the call is held to it.

A case of the sets `irrelevance` is right where no call comes. Intervals are those of Wilson, 95 %.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import types
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
from tokentrie import Message, Model
from tokentrie.errors import TokenTrieError

SETS = ["simple_python", "multiple", "parallel", "live_simple", "live_multiple", "irrelevance", "live_irrelevance"]
MODES = ["free", "auto", "required", "choice"]
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


@dataclass
class Tally:
    """The counts of a mode over a set."""

    cases: int = 0
    right: int = 0
    calls: int = 0
    valid: int = 0
    passes: int = 0
    seconds: float = 0.0
    failed: list[str] = field(default_factory=list)

    def row(self) -> str:
        low, high = wilson(self.right, self.cases)
        each = max(1, self.cases)
        return (
            f"{self.right} of {self.cases} = {100 * self.right / each:.0f} % ({100 * low:.0f} to {100 * high:.0f}) "
            f"| {self.valid} of {self.calls} | {self.passes / each:.1f} | {1e3 * self.seconds / each:.0f}"
        )


def wilson(right: int, count: int, z: float = 1.96) -> tuple[float, float]:
    if count == 0:
        return 0.0, 1.0
    share, spread = right / count, z * z / count
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + spread)
    return middle - half, middle + half


class Caller:
    """Answers cases in every mode."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.tools_in = "template" if model.chat_format.analysis.capabilities.tools else "system"

    def prompt(self, case: Case) -> Any:
        return self.model.chat_format.with_tools_in(self.tools_in).prompt(case.messages, case.tools)

    def reply(self, case: Case, mode: str) -> tuple[Message, int]:
        """Returns the reply of a mode and its forward passes after the prompt."""
        options: dict[str, Any] = {"tools_in": self.tools_in, "max_tokens": CALL_TOKENS}
        if mode == "free":
            prompt = self.model.chat_prompt(case.messages, case.tools, tools_in=self.tools_in)
            out = self.model.generate(prompt, max_tokens=CALL_TOKENS)
            message = self.model.chat_format.with_tools_in(self.tools_in).parse(out.text, case.tools)
            return message, out.stats.forward_passes
        choice: Any = mode
        passes = 0
        if mode == "choice":
            names = [tool["function"]["name"] for tool in case.tools]
            begun = self.model.chat_prompt(case.messages, case.tools, tools_in=self.tools_in)
            opening = self.model.vocab.tokenize('<tool_call>\n{"name": "', parse_special=True)
            best = self.model.choose([*begun, *opening], names, suffix='"', end_tokens=None)
            choice, passes = {"type": "function", "function": {"name": names[best.index]}}, best.stats.forward_passes
        message = self.model.chat(case.messages, case.tools, choice, **options)
        return message, passes + message.stats.forward_passes


def read(message: Message) -> list[tuple[str, Any]]:
    return [(call.name, arguments_of(call.arguments)) for call in message.tool_calls]


def arguments_of(text: str) -> Any:
    """Returns the arguments of a call, or None where they are no JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def is_valid(case: Case, name: str, arguments: Any) -> bool:
    schemas = {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in case.tools}
    if name not in schemas:
        return False
    return jsonschema.Draft202012Validator(schemas[name]).is_valid(arguments)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("package", type=Path, metavar="BFCL")
    options.add_argument("-m", "--model", default="smollm2")
    options.add_argument("-n", "--cases", type=int, default=100, help="of all sets together")
    options.add_argument("--sets", default=",".join(SETS))
    options.add_argument("--modes", default=",".join(MODES))
    options.add_argument("--json", type=Path, help="write each reply, a line each")
    given = options.parse_args()
    sets, modes = given.sets.split(","), given.modes.split(",")
    is_right = checker(given.package)
    tallies: dict[tuple[str, str], Tally] = defaultdict(Tally)
    out = given.json.open("w") if given.json else None
    with Model(given.model, n_ctx=MOST_TOKENS + 4 * CALL_TOKENS) as model:
        caller = Caller(model)
        for kind in sets:
            left = -(-given.cases // len(sets))
            for case in cases(given.package / "data", kind):
                if left == 0:
                    break
                if len(model.vocab.tokenize(str(caller.prompt(case)), parse_special=True)) > MOST_TOKENS:
                    continue
                left -= 1
                for mode in modes:
                    tally = tallies[kind, mode]
                    began = time.perf_counter()
                    try:
                        message, passes = caller.reply(case, mode)
                    except TokenTrieError as error:
                        tally.cases += 1
                        tally.failed.append(f"{case.name}: {error}")
                        continue
                    calls = read(message)
                    tally.seconds += time.perf_counter() - began
                    tally.cases += 1
                    tally.passes += passes
                    tally.calls += len(calls)
                    tally.valid += sum(is_valid(case, *call) for call in calls)
                    right = is_right(case, calls)
                    tally.right += right
                    if out:
                        row = {"id": case.name, "mode": mode, "right": right, "calls": calls, "text": message.content}
                        out.write(json.dumps(row) + "\n")
                print(f"{kind}: {left} left", file=sys.stderr, end="\r", flush=True)
    print("| set | mode | right (95 %) | calls that fit their schema | passes | ms |")
    print("| --- | --- | --- | --- | ---: | ---: |")
    for (kind, mode), tally in tallies.items():
        print(f"| {kind} | {mode} | {tally.row()} |")
    for mode in modes:
        whole = Tally()
        for (kind, one), tally in tallies.items():
            if one == mode and "irrelevance" not in kind:
                for name in ("cases", "right", "calls", "valid", "passes", "seconds"):
                    setattr(whole, name, getattr(whole, name) + getattr(tally, name))
        print(f"| all that want a call | {mode} | {whole.row()} |")
    for (kind, mode), tally in tallies.items():
        for line in tally.failed:
            print(f"{kind}, {mode}: {line}", file=sys.stderr)


if __name__ == "__main__":
    main()
