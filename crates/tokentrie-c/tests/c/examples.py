"""Runs the examples that all hosts share through a program of C or C++: `examples.py PROGRAM MODEL`."""

import json
import subprocess
import sys
from pathlib import Path

program, model = sys.argv[1:]
vectors = json.loads((Path(__file__).parents[4] / "tests/vectors/examples.json").read_text(encoding="utf-8"))


def said(*arguments: object) -> list[str]:
    """What the program prints, line by line; texts are its arguments as they are, all else as JSON."""
    texts = [argument if isinstance(argument, str) else json.dumps(argument) for argument in arguments]
    return subprocess.run([program, model, *texts], check=True, capture_output=True, text=True).stdout.splitlines()


for example in vectors["generations"]:
    request = {"prompt": example["prompt"], "constraint": example["constraint"], "max_tokens": 64}
    tokens, result = said("generate", request)
    assert list(map(int, tokens.split())) == example["tokens"], (example["name"], tokens)
    result = json.loads(result)
    assert result["tokens"] == example["tokens"], (example["name"], result)
    assert result["values"] == example.get("values", {}), (example["name"], result)
reply = json.loads(said("chat", vectors["chat"]["request"])[0])
functions = [call["function"] for call in reply["message"]["tool_calls"]]
calls = [{"name": function["name"], "arguments": json.loads(function["arguments"])} for function in functions]
assert calls == vectors["chat"]["tool_calls"], calls
print(f"{len(vectors['generations']) + 1} examples as in every host")
