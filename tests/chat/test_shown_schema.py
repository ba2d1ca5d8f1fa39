"""The schema that a chat must fill is shown to the model, as text."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path
from typing import Annotated, Any

import pytest
import tokentrie
from models import copy_tiny
from pydantic import BaseModel, Field
from tokentrie import ChatFormat, JsonSchema, Model, Regex
from tokentrie.errors import OptionError

pytestmark = pytest.mark.model

ASK = [{"role": "user", "content": "How many beds?"}]
BRIEF = [{"role": "system", "content": "You are brief."}, *ASK]
#: Texts that would do harm where they were no text.
HOSTILE = ("<|im_end|>", "<|im_start|>system", "</s>", "<tool_call>", "{{ 1 }}", "{% raw %}", "\u0000", "é\n🙂", '"}')
NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system messages') }}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class Room(BaseModel):
    beds: int = Field(description="how many people sleep there")


@dataclasses.dataclass
class Flat:
    rooms: Annotated[int, Field(description="rooms without the kitchen")]


@pytest.fixture(scope="module")
def model(tiny_path: Path) -> Model:
    return Model(tiny_path, n_ctx=2048, n_threads=1)


def shown(model: Model, constraint: Any, messages: Any = ASK) -> list[dict[str, Any]]:
    """The messages with the schema, as they are rendered."""
    found: list[dict[str, Any]] = model.chat_format._with_schema(messages, constraint)
    return found


class TestWhatIsShown:
    @pytest.mark.parametrize(
        ("constraint", "said"),
        [
            (Room, "how many people sleep there"),
            (Flat, "rooms without the kitchen"),
            (JsonSchema(Room), "how many people sleep there"),
            (list[int], "integer"),
            ({"json_schema": {"type": "integer", "description": "a year"}}, "a year"),
            (tokentrie.constraint({"json_schema": {"enum": ["left", "right"]}}), "right"),
        ],
    )
    def test_schemas_reach_the_model(self, model: Model, constraint: Any, said: str) -> None:
        given = JsonSchema(constraint) if isinstance(constraint, type) and constraint in (Room, Flat) else constraint
        first, *others = shown(model, given)
        assert first["role"] == "system"
        assert said in first["content"]
        assert others == ASK

    @pytest.mark.parametrize(
        "constraint",
        [["yes", "no"], Regex("[0-9]{2}"), int, tokentrie.rules.Integer(1, 9), {"regex": "a"}, {"json_schema": True}],
    )
    def test_nothing_else_is(self, model: Model, constraint: Any) -> None:
        assert shown(model, constraint) == ASK
        with_it, without = (
            model.chat(ASK, constraint=constraint, max_tokens=4, on_invalid="none", thinking_budget=0, show_schema=flag)
            for flag in (True, False)
        )
        assert with_it.stats.prompt_tokens == without.stats.prompt_tokens

    def test_the_layout(self, model: Model) -> None:
        first, *_ = shown(model, JsonSchema(Room), BRIEF)
        assert first["content"] == (
            'You are brief.\n\nAnswer with JSON in this format:\n{\n  "beds": integer // how many people sleep there\n}'
        )

    def test_a_template_without_system_messages_gets_it_before_the_question(self) -> None:
        other = Model(copy_tiny("no_system", changes={"tokenizer.chat_template": NO_SYSTEM}), n_ctx=2048, n_threads=1)
        (first,) = shown(other, JsonSchema(Room))
        assert first["role"] == "user"
        assert first["content"].startswith("Answer with")
        assert first["content"].endswith("\n\nHow many beds?")
        other.chat(ASK, constraint=Room, max_tokens=4, on_invalid="none")

    def test_what_is_too_long_is_not_shown_and_says_so(self, model: Model) -> None:
        names = [f"name {number}" for number in range(2000)]
        with pytest.warns(
            tokentrie.errors.TokenTrieWarning, match=r"not shown .* more than 8192 bytes.*show_schema=False"
        ):
            message = model.chat(ASK, constraint={"json_schema": {"enum": names}}, thinking_budget=0)
        assert message.parsed in names
        assert message.stats.prompt_tokens < 200
        quiet = model.chat(ASK, constraint={"json_schema": {"enum": names}}, thinking_budget=0, show_schema=False)
        assert quiet.parsed in names


class TestThePrompt:
    def test_a_class_changes_it_and_the_option_leaves_it(self, model: Model) -> None:
        plain = len(model.chat_prompt(ASK))
        taken = {
            flag: model.chat(
                ASK, constraint=Room, max_tokens=4, on_invalid="none", show_schema=flag
            ).stats.prompt_tokens
            for flag in (True, False)
        }
        assert taken[False] == plain
        assert taken[True] == len(model.chat_prompt(shown(model, JsonSchema(Room)))) > plain

    def test_of_response_format_and_of_retries(self, model: Model) -> None:
        form = {"type": "json_schema", "json_schema": {"name": "room", "schema": Room.model_json_schema()}}
        options: dict[str, Any] = {"max_tokens": 4, "on_invalid": "none"}
        held = [model.chat(ASK, response_format=one, **options).stats.prompt_tokens for one in (form, Room)]
        assert min(held) > len(model.chat_prompt(ASK))
        again = model.chat(ASK, constraint=Room, retries=1, max_tokens=4, on_invalid="none").stats.prompt_tokens
        assert again > len(model.chat_prompt(shown(model, JsonSchema(Room))))
        plain = model.chat(ASK, response_format={"type": "json_object"}, **options).stats.prompt_tokens
        assert plain == len(model.chat_prompt(ASK))

    def test_a_receipt_is_of_the_prompt_with_it(self, model: Model) -> None:
        message = model.chat(ASK, constraint=Room, receipt=True, thinking_budget=0, max_tokens=60, on_invalid="none")
        options = {"constraint": Room, "thinking_budget": 0}
        tokentrie.receipts.verify_chat_receipt(message.receipt, model.chat_format, ASK, **options)
        with pytest.raises(tokentrie.errors.ReceiptError, match="prompt"):
            tokentrie.receipts.verify_chat_receipt(
                message.receipt, model.chat_format, ASK, show_schema=False, **options
            )

    def test_places_of_errors_stay_those_of_the_messages(self, model: Model) -> None:
        with pytest.raises(OptionError, match=r"messages\[0\]"):
            model.chat([{"role": "nobody", "content": "a"}], constraint=Room)

    def test_the_list_that_was_given_stays(self, model: Model) -> None:
        given = [dict(one) for one in BRIEF]
        model.chat(given, constraint=Room, max_tokens=4, on_invalid="none")
        assert given == BRIEF


def test_whatever_schemas_say_is_text(model: Model) -> None:
    """No text in a schema becomes a control token, and each description reaches the model, on one line."""
    draw = random.Random(20261129)
    control = set(model.vocab.control)
    expected = sum(token in control for token in model.chat_prompt([{"role": "system", "content": "a"}, *ASK]))
    for number in range(60):
        texts = ["".join(draw.choices(HOSTILE, k=draw.randint(1, 4))) + str(at) for at in range(4)]
        field = {"type": "string", "description": texts[0], "enum": [texts[1]]}
        schema: dict[str, Any] = {"type": "object", "description": texts[3], "properties": {texts[2]: field}}
        if number % 2:
            # No sketch says this.
            schema["minProperties"] = 1
            schema["allOf"] = [{}]
        messages = shown(model, {"json_schema": schema})
        tokens = model.chat_prompt(messages)
        assert sum(token in control for token in tokens) == expected, texts
        written = messages[0]["content"]
        if number % 2:
            assert json.loads(written.split("\n", 1)[1]) == schema
            continue
        _, about, opened, line, closed = written.split("\n")
        assert (about, opened, closed) == ("// " + " ".join(texts[3].split()), "{", "}")
        name, value = (json.dumps(text, ensure_ascii=False) for text in (texts[2], texts[1]))
        assert line == f"  {name}: {value} // optional: {' '.join(texts[0].split())}"


def test_a_format_without_a_model_has_it_too() -> None:
    plain = ChatFormat(NO_SYSTEM)
    (first,) = plain._with_schema(ASK, JsonSchema(Room))
    assert "how many people sleep there" in first["content"]
