"""Chat templates that nobody has seen: what is read of their replies, by what they are made of."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from typing import Any

import pytest
from budget import BUDGET, cases
from tokentrie import ChatFormat, Sampler, TokenTrieError, Vocab

pytest.importorskip("jinja2", reason="the package jinja2 is not installed")

from drawn_dialects import drawn
from drawn_replies import EOS, TOOLS, Case, Dialect

TRIED = cases(3000)
SEED = 0 if BUDGET < 1 else random.SystemRandom().randrange(10**9)
"""Other dialects each time at full size."""
END = 256


def vocabulary() -> Vocab:
    return Vocab.from_tokens([bytes([byte]) for byte in range(256)] + [b"<|end|>"], eog=[END], control=[END])


def read(form: ChatFormat, case: Case) -> str | None:
    """What of a reply is not read as it is meant."""
    found = form.parse(case.reply, TOOLS, generation_prompt=case.prompt, parallel_tool_calls=True)
    for what, have in (("content", found.content), ("reasoning", found.reasoning)):
        want = case.message.get(what) or ""
        if want.strip() != have.strip():
            return f"{what} is {have!r}, not {want!r}"
    want_calls = case.message.get("tool_calls") or []
    have_calls = found.tool_calls
    if len(want_calls) != len(have_calls):
        return f"{len(have_calls)} of {len(want_calls)} calls"
    for want_call, have_call in zip(want_calls, have_calls, strict=True):
        if want_call["function"]["name"] != have_call.name:
            return f"the name is {have_call.name!r}"
        try:
            arguments: Any = json.loads(have_call.arguments)
        except ValueError:
            arguments = have_call.arguments
        if arguments != want_call["function"]["arguments"]:
            return f"arguments are {have_call.arguments}"
    return None


def refused(form: ChatFormat, vocab: Vocab, case: Case, choice: str = "auto") -> str | None:
    """Where a reply is not allowed to go on."""
    constraint = form.constraint(
        TOOLS, vocab, tool_choice=choice, parallel_tool_calls=True, generation_prompt=case.prompt
    )
    sampler = Sampler(vocab, constraint)
    text = [*case.reply.encode(), END]
    try:
        sampler.accept(text)
    except TokenTrieError as error:
        return f"refused ({choice}): {error}"
    return None


def with_end(dialect: Dialect, case: Case) -> Case | None:
    """A reply with calls and the marker that ends it, where that is none that ends other turns."""
    usual, end = (end.strip() for end in dialect.ends)
    # A template that writes no calls does not say how their turns end.
    if dialect.axes.get("calls are") == "only told" or end in ("", usual, EOS) or case.name.endswith("before a name"):
        return None
    return Case(f"{case.name}, ended", case.prompt, case.reply + end, case.message, case.thinking)


def misread(dialect: Dialect, vocab: Vocab) -> tuple[str | None, str | None]:
    """What is wrong, and what the analysis itself says is."""
    form = ChatFormat(dialect.template, vocab, eos=EOS)
    for case in dialect.cases:
        wrong = read(form, case)
        # Who writes has no white space before a name that the template writes none before.
        if not wrong and not case.name.endswith("before a name"):
            wrong = refused(form, vocab, case)
            if not wrong and case.message.get("tool_calls") and not case.message.get("content"):
                wrong = refused(form, vocab, case, "required")
        if not wrong and case.message.get("tool_calls") and (ended := with_end(dialect, case)):
            case = ended
            wrong = read(form, case) or refused(form, vocab, case)
            if not wrong and not case.message.get("content"):
                wrong = refused(form, vocab, case, "required")
        if wrong:
            return f"{case.name}: {wrong}; {case.reply!r} after {case.prompt!r}", form.analysis.degraded
    for prompt, text in dialect.wrong:
        if not refused(form, vocab, Case("wrong name", prompt, text, {})):
            return f"a wrong name is allowed: {text!r} after {prompt!r}", form.analysis.degraded
    return None, form.analysis.degraded


def test_what_nobody_has_seen_is_understood() -> None:
    vocab = vocabulary()
    tried: Counter[tuple[str, str]] = Counter()
    failed: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    wrong, silent = [], 0
    for number in range(TRIED):
        dialect = drawn(f"{SEED} {number}")
        tried.update(dialect.axes.items())
        what, degraded = misread(dialect, vocab)
        if what is None:
            continue
        silent += degraded is None
        wrong.append(f"{dialect.seed}: {what}; called degraded: {degraded}")
        for axis in dialect.axes.items():
            failed[axis].append(dialect.seed)
    print(f"{TRIED - len(wrong)} of {TRIED} understood; {silent} of the others are not called degraded")
    for axis, count in sorted(tried.items()):
        print(f"{1 - len(failed[axis]) / count:7.2%} of {count:5} {axis[0]}: {axis[1]!r} {failed[axis][:3]}")
    told = "\n".join(wrong[:20])
    assert len(wrong) <= 0.015 * TRIED, told
    assert silent <= 0.0075 * TRIED, told


def test_dialects_are_the_same_for_a_seed_and_of_many_kinds() -> None:
    assert drawn("5") == drawn("5")
    axes = {axis for number in range(60) for axis in drawn(f"kinds {number}").axes}
    assert len(axes) > 30
