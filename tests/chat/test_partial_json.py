"""Values of documents that are not yet whole, cut anywhere: beside a naive twin that tries every way to close them."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from tokentrie import JsonSchema, Model
from tokentrie.partial_json import BegunJson

SIGNS = ["", "a", 'say "hi"', "\\", "\\\\", "tab\t", "é", "日本", "👍", "\u2028", ",:{}[]"]


def drawn(draw: random.Random, depth: int) -> Any:
    kind = draw.randrange(8 if depth else 5)
    if kind < 5:
        return [draw.choice(SIGNS) + draw.choice(SIGNS), draw.randrange(-99, 999), -1.5e30, None, True][kind]
    if kind < 6:
        return [drawn(draw, depth - 1) for _ in range(draw.randrange(4))]
    return {f"{draw.choice(SIGNS)}{nth}": drawn(draw, depth - 1) for nth in range(draw.randrange(4))}


def written(draw: random.Random, value: Any) -> str:
    how = draw.choice([{}, {"separators": (",", ":")}, {"indent": 1}])
    return json.dumps(value, ensure_ascii=draw.random() < 0.5, **how)


def is_begun(part: Any, whole: Any, is_last: bool = True) -> bool:
    """Returns whether a value is the beginning of another one: all is final but for the last text."""
    if type(part) is not type(whole):
        return False
    if isinstance(part, str):
        return whole.startswith(part) if is_last else part == whole
    if isinstance(part, list):
        ends = [is_last and nth == len(part) - 1 for nth in range(len(part))]
        return len(part) <= len(whole) and all(map(is_begun, part, whole, ends))
    if isinstance(part, dict):
        ends = [is_last and nth == len(part) - 1 for nth in range(len(part))]
        named = list(part) == list(whole)[: len(part)]
        return named and all(is_begun(part[name], whole[name], end) for name, end in zip(part, ends, strict=True))
    return bool(part == whole)


@pytest.mark.parametrize("seed", range(60))
def test_each_value_is_the_beginning_of_the_whole(seed: int) -> None:
    draw = random.Random(seed)
    value = drawn(draw, 4)
    text = written(draw, value)
    begun, before = BegunJson(), None
    at = 0
    while at < len(text):
        end = min(len(text), at + draw.choice([1, 1, 2, 7]))
        if begun.push(text[at:end]):
            part = begun.value()
            assert is_begun(part, value), (text[:end], part)
            assert before is None or part != before[0] or type(part) is not type(before[0]) or before[1] != text[:end]
            before = (part, text[:end])
        at = end
    if isinstance(value, (dict, list, str)):
        assert before is not None
        assert before[0] == value


def test_what_comes_is_there_at_once() -> None:
    begun = BegunJson()
    seen = [begun.value() for sign in '{"name": "An\\u00e9", "n": 12, "l": [1' if begun.push(sign)]
    assert seen == [
        {},
        {"name": ""},
        {"name": "A"},
        {"name": "An"},
        {"name": "Ané"},
        {"name": "Ané", "n": 12},
        {"name": "Ané", "n": 12, "l": []},
    ]
    assert begun.push("2]")
    assert begun.value()["l"] == [12]


def test_half_a_pair_is_no_text() -> None:
    begun = BegunJson()
    texts = [begun.value() for sign in '"a\\ud83d\\udc4d' if begun.push(sign)]
    assert texts == ["", "a", "a👍"]


@pytest.mark.model
def test_partials_of_a_stream() -> None:
    schema = JsonSchema(
        {
            "type": "object",
            "properties": {"name": {"enum": ["Ann Lee", "Bob Ray"]}, "ages": {"const": [1, 22, 3]}},
            "required": ["name", "ages"],
            "additionalProperties": False,
        }
    )
    stream = Model(n_ctx=512, n_threads=1).chat(
        [{"role": "user", "content": "Who?"}], constraint=schema, stream=True, max_tokens=80
    )
    values = [*stream.partials()]
    assert values[-1] == stream.result.parsed
    for part, more in itertools.pairwise(values):
        assert is_begun(part, more)
        assert part != more
    assert len(values) > 3
