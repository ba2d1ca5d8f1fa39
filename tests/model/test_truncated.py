"""Values that the limit or the context cuts off: an error that has what there is, or None with the reason."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import dataclass
from typing import Any, Literal

import pytest
import tokentrie
from models import copy_tiny, precise_model
from tokentrie import JsonSchema, Model, Regex
from tokentrie.errors import TruncatedError
from tokentrie.rules import Integer, ThinkGate

pytestmark = pytest.mark.model

ASK = [{"role": "user", "content": "please"}]


@dataclass
class Row:
    first: Literal[
        "a long text that has many more tokens than sixty-four of them, since it goes on and on, and on " * 3
    ]
    size: int


TYPED: dict[str, Any] = {
    "class": Row,
    "schema": JsonSchema(Row),
    "spec": {"json_schema": {"const": "abc def ghi " * 30}},
    "regex": Regex("(abc[0-9]){60}"),
    "int": Integer(10**9, 10**10),
    "list": ["one two three four five", "one two three four six"],
    "type": Literal["one two three four five", "one two three four six"],
}


@pytest.fixture(scope="module")
def model() -> Model:
    return precise_model("trained")


@pytest.mark.parametrize("name", TYPED)
def test_a_value_that_is_cut_off_is_an_error(model: Model, name: str) -> None:
    with pytest.raises(TruncatedError, match="cut off after 2 tokens: raise max_tokens, which is 2") as caught:
        model.generate("x", TYPED[name], max_tokens=2)
    partial = caught.value.partial
    assert isinstance(partial, tokentrie.Generated)
    assert (partial.value, partial.finish, partial.invalid) == (None, "max_tokens", str(caught.value))
    assert caught.value.text == partial.text != ""
    assert isinstance(caught.value, tokentrie.TokenTrieError)
    quiet = model.generate("x", TYPED[name], max_tokens=2, on_invalid="none")
    assert (quiet.value, quiet.invalid, quiet.text) == (None, str(caught.value), partial.text)
    assert pickle.loads(pickle.dumps(quiet)) == quiet
    with pytest.raises(TruncatedError) as several:
        model.generate("x", TYPED[name], max_tokens=2, n=2, mode="sampled", seed=1)
    assert [one.value for one in several.value.partial] == [None, None]
    with pytest.raises(TruncatedError):
        asyncio.run(model.agenerate("x", TYPED[name], max_tokens=2))
    with model.stream("x", TYPED[name], max_tokens=2) as stream, pytest.raises(TruncatedError):
        list(stream)


@pytest.mark.parametrize("name", TYPED)
def test_without_a_limit_a_value_is_whole(model: Model, name: str) -> None:
    out = model.generate("x", TYPED[name])
    assert out.value is not None
    assert (out.finish, out.invalid) == ("span", None)
    longest = {"class", "schema", "spec", "regex"}
    assert len(out.tokens) > 64 or name not in longest


def test_free_text_has_its_limit_and_what_stands_behind_a_value_too(model: Model) -> None:
    assert len(model.generate("Once upon a time").tokens) <= 64
    assert len(model.generate("Once upon a time", tokentrie.rules.Unconstrained()).tokens) <= 64
    whole = model.generate("x", TYPED["spec"])
    out = model.generate("x", TYPED["spec"], after="free")
    assert out.value == whole.value
    assert len(out.tokens) <= len(whole.tokens) + 64


def test_the_context_ends_what_has_no_end(model: Model) -> None:
    small = Model(n_ctx=64)
    with pytest.raises(TruncatedError, match=r"the context is full: .* n_ctx") as caught:
        small.generate("x", Regex("[a-z]{500}"))
    assert caught.value.partial.finish == "context_full"


def test_sets_promise_no_type(model: Model) -> None:
    trie = tokentrie.Trie.from_strings(model.vocab, ["one two three four five", "one two three four six"])
    assert model.generate("x", trie, max_tokens=1).value is None
    assert model.generate("x", None, max_tokens=1).value is None


def test_thinking_that_uses_the_limit_up_says_so(model: Model) -> None:
    gate = ThinkGate("<think>", "</think>", then=Integer(1, 9))
    with pytest.raises(TruncatedError, match="still thinking, and no value was begun after 4 tokens: raise max_tokens"):
        model.generate("x", gate, max_tokens=4)


def test_chats(model: Model) -> None:
    for asked in ({"constraint": Row}, {"response_format": Row}, {"constraint": Regex("[a-z]{400}")}):
        with pytest.raises(
            TruncatedError, match="content was cut off after 30 tokens: raise max_tokens, which is 30"
        ) as e:
            model.chat(ASK, max_tokens=30, thinking_budget=0, **asked)
        message = e.value.partial
        assert isinstance(message, tokentrie.Message)
        assert (message.finish, message.parsed, message.invalid) == ("max_tokens", None, str(e.value))
        assert e.value.text == message.content
        quiet = model.chat(ASK, max_tokens=30, thinking_budget=0, on_invalid="none", **asked)
        assert (quiet.parsed, quiet.invalid) == (None, str(e.value))
        # Asked again, it is cut off again; the model was told.
        with pytest.raises(TruncatedError):
            model.chat(ASK, max_tokens=30, thinking_budget=0, retries=1, **asked)
    assert model.chat(ASK, max_tokens=2).finish == "max_tokens"


def test_reasoning_that_uses_the_limit_up_says_so() -> None:
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n"
        "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}"
        "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
    )
    changes = {"tokenizer.chat_template": template}
    thinker = Model(copy_tiny("truncated", changes=changes), n_ctx=512, n_threads=1)
    with pytest.raises(TruncatedError, match=r"still reasoning, and no content was begun, after 3 tokens: .*budget"):
        thinker.chat(ASK, constraint=Integer(1, 9), max_tokens=3)
