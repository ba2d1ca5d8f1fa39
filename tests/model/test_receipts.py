"""Receipts: what a generation was allowed, checked without the model. The chain has a twin here."""

from __future__ import annotations

import copy
import hashlib
import hmac
import json
import pickle
import random
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

import numpy as np
import pytest
import tokentrie
from budget import cases
from tokentrie import Model, Sampler
from tokentrie.errors import OptionError, ReceiptError
from tokentrie.receipts import verify_receipt

pytestmark = pytest.mark.model

SKIES = ["blue", "red and white", "red and black"]
PERSON = {
    "type": "object",
    "properties": {"n": {"enum": [1, 2]}, "s": {"type": "string", "maxLength": 3}},
    "required": ["n", "s"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def model() -> Model:
    # The same request has the same bits, whatever ran before.
    return Model(n_threads=1, batching="fixed", n_ctx=512)


def constraints(model: Model) -> dict[str, Any]:
    return {
        "texts": SKIES,
        "integer": tokentrie.rules.Integer(0, 999),
        "regex": tokentrie.Regex("[a-z ]{4,12}"),
        "schema": tokentrie.JsonSchema(PERSON),
        "lark": tokentrie.rules.Lark('start: "a" "b"? /[0-9]/'),
        "trie": tokentrie.Trie.from_strings(model.vocab, SKIES),
        "gate": tokentrie.rules.ThinkGate("<think>", "</think>", budget=4, then=["yes", "no"]),
        "sequence": tokentrie.rules.Sequence(["a", "b"], tokentrie.rules.Integer(0, 9)),
        "spec": {"then": [{"integer": {"min": 1, "max": 99}}, " kg"]},
        "type": Literal["one", "two"],
        "free": None,
    }


NAMES = ["texts", "integer", "regex", "schema", "lark", "trie", "gate", "sequence", "spec", "type", "free"]


def drawn(draw: random.Random, model: Model, name: str) -> dict[str, Any]:
    """Options that go with any constraint."""
    options: dict[str, Any] = {"max_tokens": draw.randint(1, 14), "skip_ahead": draw.random() < 0.7}
    options["on_invalid"] = "none"  # Many are cut off.
    if draw.random() < 0.6:
        options |= {"mode": "sampled", "seed": draw.randrange(1000), "temperature": draw.choice([0.5, 1.0, 3.0])}
    if name != "free" and draw.random() < 0.3:
        options |= {"after": "free"}
    if name in ("texts", "trie", "type") and draw.random() < 0.3:
        options |= {"end_tokens": [model.vocab.tokenize(".")[0]]}
    if (name == "free" or "after" in options) and draw.random() < 0.2:
        options |= {"stop": draw.choice(["e", "an"])}
    return options


PROMPTS = ["The sky is ", "The sky is", "A: ", [5, 6, 7], "é"]


def made(draw: random.Random, model: Model, names: list[str] = NAMES) -> tuple[dict[str, Any], Any, bytes | None]:
    name = draw.choice(names)
    constraint, key = constraints(model)[name], draw.choice([None, b"key"])
    out = model.generate(draw.choice(PROMPTS), constraint, receipt=key or True, **drawn(draw, model, name))
    assert out.receipt is not None
    return out.receipt, constraint, key


@pytest.mark.parametrize("name", NAMES)
def test_what_was_generated_holds(model: Model, name: str) -> None:
    draw, constraint = random.Random(name), constraints(model)[name]
    for _ in range(cases(300)):
        prompt, options = draw.choice(PROMPTS), drawn(draw, model, name)
        key = draw.choice([None, b"key", bytes(100)])
        plain = model.generate(prompt, constraint, **options)
        out = model.generate(prompt, constraint, receipt=key or True, **options)
        assert (plain.receipt, plain.text, plain.tokens) == (None, out.text, out.tokens), "it changes nothing"
        assert out.receipt is not None
        told = [step["token"] for step in out.receipt["steps"]]
        assert told[: len(out.tokens)] == out.tokens
        verify_receipt(out.receipt, constraint, vocab=model.vocab, key=key)
        verify_receipt(json.dumps(out.receipt, indent=1), constraint, vocab=model.vocab, key=key)


def sealed(receipt: dict[str, Any], key: bytes | None) -> str:
    """The chain, as docs/receipts.md says it."""
    chain = hashlib.sha256()

    def say(said: bytes) -> None:
        chain.update(struct.pack("<Q", len(said)) + said)

    def ids(tokens: list[int]) -> bytes:
        return b"".join(struct.pack("<I", token) for token in tokens)

    say(b"tokentrie receipt")
    say(struct.pack("<I", receipt["receipt"]))
    say(receipt["vocabulary"].encode())
    say((receipt["constraint"] or "").encode())
    if isinstance(receipt["prompt"], str):
        say(receipt["prompt"].encode())
    else:
        say(b"tokens")
        say(ids(receipt["prompt"]))
    ends = receipt["end_tokens"]
    say(bytes([receipt["constraint"] is not None, receipt["free"], receipt["keyed"], ends is not None]))
    say(ids(ends or []))
    link = chain.digest()
    for step in receipt["steps"]:
        said = link + struct.pack("<I", step["token"])
        if branch := step.get("branch"):
            for share in (branch["mass"], branch["probability"], branch["runner_up"]):
                said += struct.pack("<Q", round(share * 1e9))
            said += branch["mask"].encode()
        said += b"\1" if step.get("dropped") else b""
        link = hashlib.sha256(said).digest()
    return link.hex() if key is None else hmac.new(key, link, "sha256").hexdigest()


def altered(draw: random.Random, receipt: dict[str, Any]) -> dict[str, Any]:
    """Another receipt: one thing is changed."""
    other = copy.deepcopy(receipt)
    steps, step = other["steps"], draw.choice(other["steps"])
    branches = [one["branch"] for one in steps if "branch" in one]
    match draw.randrange(9):
        case 0:
            step["token"] = (step["token"] + draw.randrange(1, 2000)) % 2048
        case 1 if branches:
            share = draw.choice(["mass", "probability", "runner_up"])
            branch = draw.choice(branches)
            branch[share] = abs(branch[share] - draw.choice([1, 10, 10**6]) / 1e9)
        case 2 if branches:
            branch = draw.choice(branches)
            branch["mask"] = hashlib.sha256(branch["mask"].encode()).hexdigest()
        case 3:
            steps.remove(step)
        case 4:
            steps.insert(draw.randrange(len(steps) + 1), copy.deepcopy(step))
        case 5:
            other["prompt"] = "Another" if draw.random() < 0.5 else [1, 2]
        case 6:
            name = draw.choice(["vocabulary", "constraint", "seal"])
            other[name] = hashlib.sha256(str(other[name]).encode()).hexdigest()
        case 7:
            other["free"] = not other["free"]
        case _:
            other["end_tokens"] = None if other["end_tokens"] else [draw.randrange(2048)]
    return other


def test_what_was_changed_is_refused(model: Model) -> None:
    draw = random.Random(1)
    tried = 0
    while tried < cases(20_000):
        receipt, constraint, key = made(draw, model)
        assert sealed(receipt, key) == receipt["seal"], "the chain is what the docs say"
        for _ in range(20):
            other = altered(draw, receipt)
            if other == receipt or not other["steps"]:
                continue
            tried += 1
            with pytest.raises(ReceiptError):
                verify_receipt(other, constraint, vocab=model.vocab, key=key)


def test_tokens_and_masks_of_a_resealed_receipt_are_those_of_the_constraint(model: Model) -> None:
    """Who has no key to fear can seal anew: shares are his word then, and nothing else is."""
    draw, tried = random.Random(2), 0
    while tried < cases(3000):
        receipt, constraint, key = made(draw, model, NAMES[:-1])
        for _ in range(10):
            other = copy.deepcopy(receipt)
            step = draw.choice(other["steps"])
            if "branch" in step:
                step["branch"]["mask"] = hashlib.sha256(b"x").hexdigest()
            elif draw.random() < 0.5:
                step["token"] = (step["token"] + draw.randrange(1, len(model.vocab))) % len(model.vocab)
            else:
                step["branch"] = {"mass": 0.5, "probability": 0.5, "runner_up": 0.5, "mask": "00" * 32}
            other["seal"] = sealed(other, key)
            tried += 1
            with pytest.raises(ReceiptError, match=r"steps\[\d+\]"):
                verify_receipt(other, constraint, vocab=model.vocab, key=key)


ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**64, -(2**64), 10**400, 1.5, -0.0, 1e308,
    float("nan"), float("inf"), "", "x", "\ud800", "\0" * 100, "00" * 32, [], [[]], [0], [-1], [2**40], [True], ["x"],
    [None], {}, {"a": 1}, [{}], b"x", object(), {1, 2}, (1, 2), [1] * 3000,
]  # fmt: skip


def places(of: Any) -> Iterator[tuple[Any, Any]]:
    """Every list or dict inside, with each of its keys."""
    for key, value in of.items() if isinstance(of, dict) else enumerate(of):
        yield of, key
        if isinstance(value, (dict, list)):
            yield from places(value)


def test_a_forged_field_of_any_kind_is_a_receipt_error(model: Model) -> None:
    draw, tried = random.Random(3), 0
    while tried < cases(6000):
        receipt, constraint, key = made(draw, model)
        for _ in range(20):
            other = copy.deepcopy(receipt)
            for _ in range(draw.choice([1, 1, 2])):
                inside, at = draw.choice(list(places(other)))
                if draw.random() < 0.15:
                    del inside[at]
                else:
                    inside[at] = copy.deepcopy(draw.choice(ODD))
            with suppress(Exception):
                other["seal"] = sealed(other, key)
            if other == receipt:
                continue
            tried += 1
            # What the seal alone says may be any: without a key, shares are the word of who seals.
            with suppress(ReceiptError):
                verify_receipt(other, constraint, vocab=model.vocab, key=key)
    for text in ("\ud800", "", "{", "null", "[]", "1", "{}", b"\xff", '{"receipt": 1e999}', {1: object()}):
        with pytest.raises(ReceiptError, match="no receipt"):
            verify_receipt(text, None, vocab=model.vocab)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_ends_that_no_generation_has_are_refused(model: Model, name: str) -> None:
    """With a seal that fits: the option that would have been refused is no receipt either."""
    constraint = constraints(model)[name]
    receipt = model.generate("A: ", constraint, receipt=True, max_tokens=12, on_invalid="none").receipt
    assert receipt is not None
    for end_tokens, free in (
        ([], False),
        ([5], False),
        ([2**31 - 1], False),
        (None, True),
        ([5], True),
        ([5] * 99, True),
    ):
        other = receipt | {"end_tokens": end_tokens, "free": free}
        other["seal"] = sealed(other, None)
        if name == "free" and end_tokens is None:
            verify_receipt(other, constraint, vocab=model.vocab)  # nothing follows free text but free text
            continue
        with suppress(ReceiptError):
            verify_receipt(other, constraint, vocab=model.vocab)
    if name == "free":
        other = receipt | {"end_tokens": [5], "free": False}
        other["seal"] = sealed(other, None)
        with pytest.raises(ReceiptError):
            verify_receipt(other, constraint, vocab=model.vocab)


def test_shares_and_masks_are_those_of_the_rows(model: Model) -> None:
    prompt = [5, 6, 7]
    trie = tokentrie.Trie.from_strings(model.vocab, SKIES)
    out = model.generate(prompt, trie, receipt=True)
    assert out.receipt is not None
    sampler, text = Sampler(model.vocab, trie), list(prompt)
    for step in out.receipt["steps"]:
        allowed = sampler.allowed()
        if "branch" not in step:
            assert allowed.tolist() == [step["token"]]
        else:
            row = model.logits(text).astype(np.float64)
            weights = np.exp(row - row.max())
            legal = weights[allowed]
            branch = step["branch"]
            others = np.delete(legal, np.flatnonzero(allowed == step["token"]))
            chosen = weights[step["token"]]
            assert branch["mass"] == pytest.approx(legal.sum() / weights.sum(), abs=1e-6)
            assert branch["probability"] == pytest.approx(chosen / legal.sum(), abs=1e-6)
            assert branch["runner_up"] == pytest.approx(others.max() / legal.sum(), abs=1e-6)
            words = np.zeros((len(model.vocab) + 31) // 32, dtype=np.int32)
            sampler.fill_bitmask(words)
            assert branch["mask"] == hashlib.sha256(words.astype("<i4").tobytes()).hexdigest()
        sampler.accept(step["token"])
        text.append(step["token"])


def test_several_results_and_slots_have_receipts() -> None:
    with Model(n_threads=1, slots=2) as model:
        several = model.generate("The sky is ", SKIES, mode="sampled", seed=1, n=3, receipt=True)
        for out in several:
            assert out.receipt is not None
            verify_receipt(out.receipt, SKIES, vocab=model.vocab)
            assert pickle.loads(pickle.dumps(out)).receipt == out.receipt


def test_texts_that_come_once_are_those_of_a_list(model: Model) -> None:
    def texts() -> Iterator[str]:
        yield from SKIES

    listed = model.generate("The sky is ", SKIES, receipt=True).receipt
    assert model.generate("The sky is ", texts(), receipt=True).receipt == listed
    assert listed is not None
    for given in (texts(), tuple(SKIES)):
        verify_receipt(listed, given, vocab=model.vocab)


def test_what_does_not_fit_is_said(model: Model) -> None:
    out = model.generate("The sky is ", SKIES, receipt=b"key")
    receipt: dict[str, Any] = out.receipt or {}

    def refused(match: str, **given: Any) -> None:
        wanted = {"receipt": receipt, "constraint": SKIES, "vocab": model.vocab, "key": b"key"} | given
        with pytest.raises(ReceiptError, match=match):
            verify_receipt(**wanted)

    refused("sealed with a key: give it", key=None)
    refused("the seal does not fit", key=b"another")
    refused("of another constraint", constraint=["blue", "green"])
    refused("of another constraint", constraint=None)
    refused(
        "of another vocabulary", vocab=tokentrie.Vocab.from_tokens([b"a", b"b"]), constraint=tokentrie.rules.Integer()
    )
    refused("unknown field `more`", receipt=receipt | {"more": 1})
    refused("missing field `seal`", receipt={name: value for name, value in receipt.items() if name != "seal"})
    refused("version 2", receipt=receipt | {"receipt": 2})
    for text in ("", "{", "[]", "1", '{"receipt": 1e99}', b"\xff"):
        refused("no receipt", receipt=text)
    plain = model.generate("The sky is ", SKIES, receipt=True).receipt
    refused("sealed without a key", receipt=plain)
    for wrong in (None, 1, "key"):
        with pytest.raises(TypeError, match="receipt must be a bool or the bytes of a key"):
            model.generate("A", SKIES, receipt=wrong)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="a key has a byte at least"):
        model.generate("A", SKIES, receipt=b"")
    with pytest.raises(TypeError, match="key must be bytes"):
        verify_receipt(receipt, SKIES, vocab=model.vocab, key="key")  # type: ignore[arg-type]
    form = tokentrie.Form("a", tokentrie.Slot("b", SKIES))
    for options in ({"mode": "exact"}, {"probabilities": True}):
        with pytest.raises(OptionError, match="the receipt of a form is of its tokens"):
            model.generate("A", form, receipt=True, **options)


def forms(model: Model) -> list[Any]:
    slot, text, sky = tokentrie.Slot, tokentrie.Text, tokentrie.Trie.from_strings(model.vocab, SKIES)
    word, number, person = tokentrie.Regex(" ?[a-z]{1,5}"), tokentrie.rules.Integer(), tokentrie.JsonSchema(PERSON)
    pattern = tokentrie.Regex("[a-z ]*")
    data = ["a ", {"slot": "b", "value": {"choice": ["red", "blue"]}}, {"text": "c", "stop": ["e"], "max_tokens": 5}]
    return [
        tokentrie.Form("Sky: ", slot("sky", SKIES), ". Why: ", text("why", stop=[".", "\n"], max_tokens=8), " End."),
        tokentrie.Form('{"a": "', text("a", stop='"', max_tokens=6), '", "b": ', slot("b", number), "}"),
        tokentrie.Form(slot("t", sky), "! ", text("r", stop="the", max_tokens=9)),
        {"form": data},
        {"sequence": [{"form": data}]},
        tokentrie.Form(slot("n", tokentrie.rules.Integer(0, 999)), " and", slot("w", word), slot("x", ["a", "ab"])),
        tokentrie.Form("(", slot("e", ["", "so"]), slot("f", ["", "it is"]), ") some", slot("p", person)),
        tokentrie.Form(text("q", stop="?", max_tokens=7, pattern=pattern), "x", slot("y", ["1", "12"])),
    ]


@pytest.mark.parametrize("number", range(8))
def test_what_was_filled_into_a_form_holds(model: Model, number: int) -> None:
    draw, form = random.Random(number), forms(model)[number]
    dropped = 0
    for _ in range(cases(300)):
        prompt, key = draw.choice(PROMPTS), draw.choice([None, b"key"])
        options: dict[str, Any] = {
            "mode": "sampled",
            "seed": draw.randrange(1000),
            "temperature": draw.choice([1.0, 4.0]),
        }
        plain = model.generate(prompt, form, **options)
        out = model.generate(prompt, form, receipt=key or True, **options)
        assert (plain.receipt, plain.text, plain.tokens) == (None, out.text, out.tokens), "it changes nothing"
        assert out.receipt is not None
        assert out.receipt["seal"] == sealed(out.receipt, key)
        assert [step["token"] for step in out.receipt["steps"] if not step.get("dropped")] == out.tokens
        dropped += sum(step.get("dropped", False) for step in out.receipt["steps"])
        verify_receipt(out.receipt, form, vocab=model.vocab, key=key)
        verify_receipt(json.dumps(out.receipt), form, vocab=model.vocab, key=key)
        for _ in range(3):
            other = altered_form(draw, out.receipt)
            other["seal"] = sealed(other, key)
            if other != out.receipt:
                with pytest.raises(ReceiptError):
                    verify_receipt(other, form, vocab=model.vocab, key=key)
    assert dropped > 0 or number > 3


def altered_form(draw: random.Random, receipt: dict[str, Any]) -> dict[str, Any]:
    """Another receipt, of which somebody sealed what cannot be: one token is told otherwise."""
    other = copy.deepcopy(receipt)
    steps = other["steps"]
    at = draw.randrange(len(steps))
    branches = [step for step in steps if "branch" in step]
    match draw.randrange(4):
        case 0:
            steps[at] = {**steps[at], "dropped": not steps[at].get("dropped", False)}
        case 1:
            branch = {"mass": 1, "probability": 1, "runner_up": 0, "mask": "0"}
            steps.insert(at, {"token": steps[at]["token"], "branch": branch})
        case 2 if branches:
            draw.choice(branches)["branch"]["mask"] = "0" * 64
        case _:
            # Behind the end of the form nothing comes, and a token of free text has a branch.
            steps.append({"token": draw.randrange(2000)})
    for step in steps:
        if not step.get("dropped", True):
            del step["dropped"]
    return other


RING = {"name": "ring", "parameters": {"type": "object", "properties": {"times": {"type": "integer"}}}}
SING = {"name": "sing", "parameters": {"type": "object", "properties": {"what": {"enum": ["la", "do"]}}}}
SAID = [
    [{"role": "user", "content": "Ring twice, please."}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "<|im_end|> Sing"}],
    [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "é"}],
]


def drawn_chat(draw: random.Random) -> tuple[list[dict[str, str]], dict[str, Any]]:
    """A conversation, and what says what its reply may be."""
    options: dict[str, Any] = {"enable_thinking": draw.random() < 0.5}
    if draw.random() < 0.3:
        options["thinking_budget"] = draw.randrange(4)
    if draw.random() < 0.6:
        options |= {"tools": draw.choice([[RING], [RING, SING]]), "parallel_tool_calls": draw.random() < 0.5}
        options["tool_choice"] = draw.choice(["auto", "required", "ring", "none"])
        options["tools_in"] = draw.choice(["auto", "template", "system", "messages"])
    elif draw.random() < 0.7:
        options["constraint"] = draw.choice([SKIES, tokentrie.rules.Integer(0, 99), tokentrie.JsonSchema(PERSON)])
    return draw.choice(SAID), options


def test_what_a_chat_was_allowed_holds(model: Model) -> None:
    draw = random.Random(3)
    for _ in range(cases(600)):
        messages, options = drawn_chat(draw)
        how: dict[str, Any] = {"max_tokens": draw.randint(1, 30), "on_invalid": "none"}
        if draw.random() < 0.5:
            how |= {"mode": "sampled", "seed": draw.randrange(1000), "temperature": draw.choice([0.5, 2.0])}
        key = draw.choice([None, b"key"])
        plain = model.chat(messages, **options, **how)
        reply = model.chat(messages, receipt=key or True, **options, **how)
        assert (plain.receipt, plain.to_dict()) == (None, reply.to_dict()), "it changes nothing"
        receipt = reply.receipt
        assert receipt is not None
        assert receipt["constraint"] is not None
        assert sealed(receipt, key) == receipt["seal"]
        tokentrie.receipts.verify_chat_receipt(receipt, model.chat_format, messages, key=key, **options)
        tokentrie.receipts.verify_chat_receipt(json.dumps(receipt), model.chat_format, messages, key=key, **options)
        for _ in range(4):
            other = altered(draw, receipt)
            if other != receipt:
                with pytest.raises(ReceiptError):
                    tokentrie.receipts.verify_chat_receipt(other, model.chat_format, messages, key=key, **options)


ANOTHER = r"another (conversation|constraint)"


def meant(options: dict[str, Any]) -> dict[str, Any]:
    """Who is not to think has no tokens for it."""
    return options if options["enable_thinking"] else {"thinking_budget": 0, **options}


def test_a_chat_of_other_words_or_settings_is_refused(model: Model) -> None:
    draw, tried = random.Random(4), 0
    while tried < cases(600):
        (messages, options), (others, other) = drawn_chat(draw), drawn_chat(draw)
        reply = model.chat(messages, max_tokens=8, receipt=True, on_invalid="none", **options)
        assert reply.receipt is not None
        said = [*messages[:-1], {"role": "user", "content": "Another"}]
        with pytest.raises(ReceiptError, match=ANOTHER):
            tokentrie.receipts.verify_chat_receipt(reply.receipt, model.chat_format, said, **options)
        if meant(options) != meant(other):
            tried += 1
            with pytest.raises(ReceiptError, match=ANOTHER):
                tokentrie.receipts.verify_chat_receipt(reply.receipt, model.chat_format, others, **other)


def test_receipts_of_chats_are_checked_by_the_file_alone_and_come_with_all_replies(model: Model) -> None:
    messages, file = SAID[0], tokentrie.ChatFormat.from_gguf(model.path)
    several = model.chat(messages, [RING], n=3, mode="sampled", seed=1, max_tokens=12, receipt=True)
    stream = model.chat(messages, [RING], stream=True, max_tokens=12, receipt=b"key")
    list(stream)
    assert pickle.loads(pickle.dumps(several[0])).receipt == several[0].receipt
    for reply in several:
        tokentrie.receipts.verify_chat_receipt(reply.receipt or {}, file, messages, [RING])
    tokentrie.receipts.verify_chat_receipt(stream.result.receipt or {}, file, messages, [RING], key=b"key")
    prompt = file.prompt(messages, [RING])
    held = file.constraint([RING], model.vocab, parallel_tool_calls=True, generation_prompt=prompt.generation_prompt)
    verify_receipt(several[0].receipt or {}, held, vocab=model.vocab)
    bare = tokentrie.ChatFormat(file.template)
    with pytest.raises(TypeError, match="vocab is not given"):
        tokentrie.receipts.verify_chat_receipt(several[0].receipt or {}, bare, messages, [RING])
    tokentrie.receipts.verify_chat_receipt(several[0].receipt or {}, bare, messages, [RING], vocab=model.vocab)


def test_content_that_is_no_data_has_no_fingerprint_but_is_walked(model: Model) -> None:
    trie = tokentrie.Trie.from_strings(model.vocab, SKIES)
    receipt = model.chat(SAID[0], constraint=trie, receipt=True).receipt
    assert receipt is not None
    assert receipt["constraint"] is None
    tokentrie.receipts.verify_chat_receipt(receipt, model.chat_format, SAID[0], constraint=trie)
    other = tokentrie.Trie.from_strings(model.vocab, ["no"])
    with pytest.raises(ReceiptError, match=r"steps\[\d+\]"):
        tokentrie.receipts.verify_chat_receipt(receipt, model.chat_format, SAID[0], constraint=other)
