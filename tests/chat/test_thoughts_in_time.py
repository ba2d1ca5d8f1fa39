"""A thought ends for the sake of the value that must come after it, where the room runs out inside the thought."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest
import tokentrie
from budget import cases
from models import copy_tiny
from tokentrie import JsonSchema, Message, Model
from tokentrie.rules import Integer

pytestmark = pytest.mark.model

ASK: list[Any] = [{"role": "user", "content": "please delete the file a.txt"}]
OPTIONAL = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls %}<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% for t in tools %}{{ t | tojson }}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
OPENED = OPTIONAL.replace("assistant\n{% endif %}", "assistant\n<think>\n{% endif %}")
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "sure": {"type": "boolean"}},
    "required": ["path", "sure"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "erase", "description": "Deletes.", "parameters": SCHEMA}}]
VALUES: dict[str, Any] = {
    "list": ["yes", "no", "it cannot be said"],
    "number": Integer(100, 999),
    "schema": JsonSchema(SCHEMA),
}
MUCH = 90


@pytest.fixture(scope="module", params=[1, 2], ids=["alone", "engine"])
def thinker(request: pytest.FixtureRequest) -> Model:
    changes = {"tokenizer.chat_template": OPENED}
    return Model(copy_tiny("in_time", changes=changes), n_ctx=1024, n_threads=1, slots=request.param)


def endless(model: Model) -> dict[int, float]:
    """What keeps a model from ending a thought by itself."""
    return {token: -1e4 for token in range(len(model.vocab)) if b"<" in model.vocab[token] or token in model.vocab.eog}


def is_right(message: Message, kind: str) -> bool:
    if kind == "call":
        (call,) = message.tool_calls
        jsonschema.validate(json.loads(call.arguments), SCHEMA)
        return call.name == "erase"
    if kind == "schema":
        jsonschema.validate(json.loads(message.content), SCHEMA)
        return True
    return message.content in VALUES["list"] if kind == "list" else 100 <= int(message.content) <= 999


def asked(model: Model, kind: str, **options: Any) -> Message:
    held = {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False}
    given = held if kind == "call" else {"constraint": VALUES[kind]}
    message = model.chat(ASK, on_invalid="none", logit_bias=endless(model), **given, **options)
    assert isinstance(message, Message)
    return message


@pytest.mark.parametrize("kind", [*VALUES, "call"])
class TestThoughts:
    def test_they_end_just_in_time(self, thinker: Model, kind: str) -> None:
        message = asked(thinker, kind, max_tokens=MUCH)
        assert is_right(message, kind)
        assert message.completed
        assert message.finish == ("tool_calls" if kind == "call" else "span")
        assert message.reasoning
        stats = message.stats
        assert stats is not None
        # No more of the room is left over than the token that ends the turn takes.
        assert MUCH - 2 <= stats.tokens <= MUCH
        assert stats.reasoning_tokens > MUCH // 4

    def test_at_each_limit_there_is_a_value_or_no_room_for_one(self, thinker: Model, kind: str) -> None:
        draw = random.Random(f"{kind} 7")
        lengths = {}
        for limit in sorted(draw.sample(range(1, 70), cases(40))):
            sampling = tokentrie.Sampling(mode="sampled", temperature=1.5, seed=draw.randrange(1000))
            message = asked(thinker, kind, max_tokens=limit, sampling=sampling)
            assert message.stats is not None
            assert message.stats.tokens <= limit
            whole = message.finish not in ("max_tokens", "context_full")
            lengths[limit] = whole
            if whole:
                assert is_right(message, kind)
            else:
                assert message.parsed is None
                assert message.tool_calls == [] or limit < 60
        # Once there is room for a value there is one at every limit.
        shortest = min((limit for limit, whole in lengths.items() if whole), default=70)
        assert all(whole for limit, whole in lengths.items() if limit >= shortest), lengths

    def test_a_budget_ends_them_before(self, thinker: Model, kind: str) -> None:
        message = asked(thinker, kind, max_tokens=MUCH, thinking_budget=5)
        assert message.stats is not None
        assert message.stats.reasoning_tokens <= 6
        assert is_right(message, kind)

    def test_a_budget_above_the_room_changes_nothing(self, thinker: Model, kind: str) -> None:
        message = asked(thinker, kind, max_tokens=MUCH, thinking_budget=10_000)
        assert message.completed
        assert is_right(message, kind)

    def test_off(self, thinker: Model, kind: str) -> None:
        message = asked(thinker, kind, max_tokens=MUCH, complete=False)
        assert (message.finish, message.completed) == ("max_tokens", False)
        assert (message.content, message.tool_calls) == ("", [])
        assert message.stats is not None
        assert message.stats.tokens == MUCH


def test_free_content_leaves_them_alone(thinker: Model) -> None:
    message = thinker.chat(ASK, logit_bias=endless(thinker), max_tokens=30)
    assert (message.finish, message.completed, message.content) == ("max_tokens", False, "")
    message = thinker.chat(ASK, TOOLS, "auto", logit_bias=endless(thinker), max_tokens=30)
    assert (message.finish, message.completed, message.tool_calls) == ("max_tokens", False, [])


def test_where_the_context_ends(thinker: Model) -> None:
    message = thinker.chat(ASK, constraint=VALUES["schema"], logit_bias=endless(thinker))
    assert message.completed
    assert is_right(message, "schema")
