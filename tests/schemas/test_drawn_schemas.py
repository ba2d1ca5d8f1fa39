"""Drawn schemas beside the package jsonschema: what may be written is valid, and what is valid may be written.

10^5 schemas in `./dev nightly`, some hundred otherwise.
"""

from __future__ import annotations

import itertools
import random
import warnings
from collections import Counter
from typing import Any

import pytest
import tokentrie
from budget import BUDGET

pytest.importorskip("jsonschema")

from drawn import Documents, Schemas
from exact import DRAFTS, escaped, judge, read, texts, written

SEED = 0 if BUDGET < 1 else random.SystemRandom().randrange(10**9)
"""Other schemas each time at full size."""
COUNT = 180 if BUDGET < 1 else int(100_000 * BUDGET)
VOCAB = tokentrie.Vocab.from_tokens([bytes([byte]) for byte in range(256)] + [b"<end>"], eog=[256], control=[256])
MOST_BYTES = 150
REFUSED = ("is not supported", "too large", "more than")


def rule_of(schema: Any) -> tokentrie.JsonSchema | str:
    """The rule, or why there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return tokentrie.JsonSchema(written(schema), whitespace="none")
        except tokentrie.RuleError as error:
            return str(error)


def walked(rule: tokentrie.JsonSchema, draw: random.Random) -> bytes | None:
    """A text of tokens that the mask allows, where it ended soon enough."""
    sampler, text = tokentrie.Sampler(VOCAB, rule, end_tokens=[256]), bytearray()
    while len(text) < MOST_BYTES:
        allowed = sampler.allowed().tolist()
        assert allowed, f"nothing may follow {bytes(text)!r}"
        if allowed == [256] or (256 in allowed and draw.random() < 0.4):
            return bytes(text)
        plain = [token for token in allowed if token < 127 and token != ord("\\")]
        ends = [token for token in plain if chr(token) in '"]}']
        token = draw.choice(ends) if ends and draw.random() < 0.35 else draw.choice(plain or allowed)
        if token == 256:
            return bytes(text)
        sampler.accept(token)
        text.append(token)
    return None


def has_line_end(value: Any) -> bool:
    """Whether Python reads `$` and `.` otherwise than ECMA-262 somewhere in it, or white space."""
    if isinstance(value, dict):
        return any(has_line_end(one) for pair in value.items() for one in pair)
    if isinstance(value, list):
        return any(map(has_line_end, value))
    odd = "\n\r\x85\u2028\u2029\x1c\x1d\x1e\x1f\ufeff"
    return isinstance(value, str) and any(char in odd for char in value)


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("formats", [False, True])
def test_what_may_be_written_is_what_is_valid(draft: str, formats: bool) -> None:
    if draft == "draft4" and formats:
        pytest.skip("the formats of other drafts are the same")
    seen: Counter[str] = Counter()
    for seed in range(SEED, SEED + max(1, COUNT // 9)):
        draw = random.Random(f"{draft} {formats} {seed}")
        schema = read(written(Schemas(draw, draft, formats=formats).whole()))
        validator = judge(schema, draft, formats=formats)
        documents = Documents(draw, schema)
        values = [read(written(documents.near())) for _ in range(20)]
        rule = rule_of(schema)
        if isinstance(rule, str):
            if "no document is allowed" in rule:
                seen["allows nothing"] += 1
                assert not any(map(validator.is_valid, values)), (seed, written(schema), rule)
            else:
                assert any(words in rule for words in REFUSED), (seed, written(schema), rule)
                seen["refused"] += 1
            continue
        seen["made"] += 1
        for _ in range(3):
            if (text := walked(rule, draw)) and not has_line_end(value := read(text)):
                assert validator.is_valid(value), (seed, written(schema), text)
                seen["walked"] += 1
        for value in values:
            is_valid = validator.is_valid(value)
            taken = next(filter(rule.matches, itertools.islice(texts(value, 40), 40)), None)
            assert (taken is not None) == is_valid, (seed, written(schema), written(value))
            seen["valid" if is_valid else "invalid"] += 1
            # What is written in escapes is the same, and need not be written so.
            text = escaped(value if taken is None else read(taken), draw)
            assert rule.matches(text) <= is_valid, (seed, written(schema), text)
    assert seen["made"] > 4 * seen["refused"], seen
    assert min(seen["valid"], seen["invalid"], seen["walked"]) > seen["made"], seen
