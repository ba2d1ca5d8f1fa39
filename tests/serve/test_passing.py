"""Options of the library that clients give under the library's own names."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from tokentrie.options import GenerateOptions, ReplyOptions
from tokentrie.serve.wire.chatting import ChatRequest
from tokentrie.serve.wire.completing import CompletionRequest
from tokentrie.serve.wire.generating import SERVERS, passing


def chat(**fields: Any) -> ChatRequest:
    return ChatRequest.model_validate({"messages": [{"role": "user", "content": "a"}], **fields})


def test_plain_options_pass_under_their_own_names() -> None:
    assert chat().model_options() == {}
    assert chat(complete=False, temperature=0.5, thinking_budget=3).model_options() == {"complete": False}
    said = CompletionRequest.model_validate({"prompt": "a", "skip_ahead": False, "after": "free", "seed": 1})
    assert said.model_options() == {"skip_ahead": False, "after": "free"}


@pytest.mark.parametrize("wrong", [{"complete": "no"}, {"complete": 1}])
def test_their_types_are_those_of_the_library(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="complete"):
        chat(**wrong)


@pytest.mark.parametrize("options", [GenerateOptions, ReplyOptions])
def test_what_the_server_says_itself_does_not_pass(options: type) -> None:
    fields = set(passing(options).model_fields)
    assert fields
    assert not fields & SERVERS
    assert fields <= set(options.__annotations__)


def test_an_option_that_is_added_passes() -> None:
    class Wider(ReplyOptions, total=False):
        invented: float

    assert set(passing(Wider).model_fields) == set(passing(ReplyOptions).model_fields) | {"invented"}
