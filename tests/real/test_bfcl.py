"""Real lists of tools and real answers, those of the Berkeley Function Calling Leaderboard, token by token."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from budget import every
from tokentrie import Model, Sampler, TokenNotAllowedError

sys.path.append(str(Path(__file__).parents[2] / "benches"))

# A source distribution has no benchmarks.
cases = pytest.importorskip("bfcl").cases

SETS = ("simple_python", "multiple", "live_simple", "live_multiple")


def is_taken(model: Model, reply: Any, text: str) -> bool:
    """Returns whether each token of a text may come, and its end; masks and `accept` must agree."""
    sampler = Sampler(model.vocab, reply)
    for token in model.vocab.tokenize(text, parse_special=True):
        allowed = bool(np.isin(token, sampler.allowed()))
        try:
            sampler.accept(int(token))
        except TokenNotAllowedError:
            assert not allowed
            return False
        assert allowed
    return sampler.state == "complete" or bool(np.isin(model.vocab.eog, sampler.allowed()).any())


def right_calls(case: Any) -> list[tuple[str, dict[str, Any]]]:
    """The first of the answers that count, of each call."""
    found = []
    for answer in case.answers or ():
        ((name, given),) = answer.items()
        arguments = {key: values[0] for key, values in given.items() if values and "" not in values}
        found.append((name, arguments))
    return found


@pytest.mark.parametrize("kind", SETS)
def test_right_answers_are_taken_and_others_refused(real: Model, bfcl: Path, kind: str) -> None:
    form = real.chat_format.with_tools_in("system")
    taken = refused = 0
    for case in itertools.islice(cases(bfcl, kind), 0, None, 12 * every()):
        ((name, arguments),) = right_calls(case)[:1] or [("", {})]
        schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in case.tools}
        if not name:
            continue
        fits = jsonschema.Draft202012Validator(schemas[name]).is_valid(arguments)
        prompt = form.prompt(case.messages, case.tools)
        reply = form.constraint(case.tools, real.vocab, "required", generation_prompt=prompt.generation_prompt)
        call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
        if not fits:
            assert not is_taken(real, reply, f"<tool_call>\n{call}\n</tool_call>"), call
            continue
        assert is_taken(real, reply, f"<tool_call>\n{call}\n</tool_call>"), f"{case.name}: {call}"
        taken += 1
        wrong = json.dumps({"name": name, "arguments": {**arguments, "no such argument": 1}})
        assert not is_taken(real, reply, f"<tool_call>\n{wrong}\n</tool_call>"), wrong
        refused += 1
    assert taken >= 2
    assert refused >= 2


@pytest.mark.filterwarnings("ignore::tokentrie.errors.TokenTrieWarning")  # some lists contradict themselves
def test_lists_that_are_kept_have_one_limit(real: Model, bfcl: Path) -> None:
    """Masks of lists that are forgotten are walked again, and are the same."""
    form, usual = real.chat_format.with_tools_in("system"), real.vocab.mask_limit
    kept = []
    for case in itertools.islice(cases(bfcl, "live_multiple"), 0, 60 * every(), every()):
        prompt = form.prompt(case.messages, case.tools)
        reply = form.constraint(case.tools, real.vocab, "required", generation_prompt=prompt.generation_prompt)
        kept.append((case, reply))
    try:
        answers = {}
        for limit in (usual, 1 << 19):
            real.vocab.mask_limit = limit
            for case, reply in kept:
                ((name, arguments),) = right_calls(case)[:1] or [(case.tools[0]["function"]["name"], {})]
                call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
                taken = is_taken(real, reply, f"<tool_call>\n{call}\n</tool_call>")
                assert answers.setdefault(case.name, taken) == taken
                # A mask in use is not forgotten.
                assert real.vocab.mask_bytes <= limit + len(real.vocab)
        assert any(answers.values())
    finally:
        real.vocab.mask_limit = usual
