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


def assert_near(found: dict[str, float], expected: dict[str, float], name: str) -> None:
    assert found.keys() == expected.keys(), (name, found)
    assert all(abs(share - expected[option]) < vectors["near"] for option, share in found.items()), (name, found)


for example in vectors["choices"]:
    choice = json.loads(said("choose", example["request"])[0])
    assert (choice["name"], choice["value"]) == (example["chosen"], example["value"]), (example["name"], choice)
    assert type(choice["value"]) is type(example["value"]), (example["name"], choice)
    assert_near(choice["probabilities"], example["probabilities"], example["name"])
for example in vectors["probabilities"]:
    found = json.loads(said("probability", example["request"])[0])
    assert (found["exact"], found["timed_out"]) == (example["exact"], False), (example["name"], found)
    for name, expected in example["found"].items():
        assert abs(found[name] - expected) < vectors["near"], (example["name"], name, found)
    if "share" in example:
        assert abs(found["text"]["share"] - example["share"]) < vectors["near"], (example["name"], found)
for example in vectors["forms"]:
    slots = json.loads(said("generate", example["request"])[1])["probabilities"]
    assert slots.keys() == example["probabilities"].keys(), (example["name"], slots)
    for slot, expected in example["probabilities"].items():
        assert_near(slots[slot], expected, example["name"])
for example in vectors["decisions"]:
    answers = json.loads(said("decide", example["request"])[0])[0]["answers"]
    assert answers.keys() == example["answers"].keys(), (example["name"], answers)
    for question, expected in example["answers"].items():
        found, options = answers[question], expected["probabilities"]
        assert [one["value"] for one in found["probabilities"]] == [one["value"] for one in options], found
        for one, other in zip(found["probabilities"], options, strict=True):
            assert abs(one["probability"] - other["probability"]) < vectors["near"], found
        if not isinstance(expected["value"], float):
            assert found["value"] == expected["value"], found
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
print("examples as in every host")
