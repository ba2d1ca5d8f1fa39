"""Content of a chat: held to a constraint, ended by stop texts, told as it comes, asked for again."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import threading
from pathlib import Path
from typing import Annotated, Any, ClassVar

import jsonschema
import pytest
import tokentrie
from models import copy_tiny
from pydantic import BaseModel, Field, field_validator
from tokentrie import CancelToken, JsonSchema, Message, Model, Regex, Sampling, Text
from tokentrie.errors import CancelledError, InvalidValueError, OptionError
from tokentrie.results import ChatEvent
from tokentrie.rules import Integer
from tokentrie.streaming import ChatStream

pytestmark = pytest.mark.model

ASK = [{"role": "user", "content": "please delete the file a.txt"}]

OPTIONAL = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
OPENED = OPTIONAL.replace("assistant\n{% endif %}", "assistant\n<think>\n{% endif %}")
WRAPPED = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
    "{% if m.reasoning_content %}<|START_THINKING|>{{ m.reasoning_content }}<|END_THINKING|>{% endif %}"
    "<|START_RESPONSE|>{{ m.content }}<|END_RESPONSE|>{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEMPLATES = {"optional": OPTIONAL, "opened": OPENED, "wrapped": WRAPPED}


class Even(BaseModel):
    n: int

    @field_validator("n")
    @classmethod
    def is_even(cls, n: int) -> int:
        if n % 2 or n > 9:
            raise ValueError("it is odd")
        return n


@pytest.fixture(scope="module")
def model(tiny_path: Path) -> Model:
    return Model(tiny_path, n_ctx=2048, n_threads=1)


@pytest.fixture(scope="module", params=TEMPLATES)
def thinker(request: pytest.FixtureRequest) -> Model:
    template = TEMPLATES[request.param]
    return Model(copy_tiny(f"{request.param}", changes={"tokenizer.chat_template": template}), n_ctx=2048, n_threads=1)


def chat(model: Model, *arguments: Any, **options: Any) -> Any:
    """Without thinking: the model inside the package does it often."""
    options.setdefault("thinking_budget", 0)
    return model.chat(*arguments, **options)


class TestHeld:
    SCHEMA: ClassVar[Any] = {
        "type": "object",
        "properties": {"a": {"enum": ["</think>", "<|END_RESPONSE|>"]}},
        "required": ["a"],
    }

    def test_reasoning_is_free_and_content_obeys(self, thinker: Model) -> None:
        """Whatever stands before it; also content that begins as a marker does, or holds one."""
        held: list[tuple[Any, Any]] = [
            (Regex("<(b|i)>[0-9]{2}</(b|i)>"), Regex("<(b|i)>[0-9]{2}</(b|i)>").matches),
            (["<think", "<|END", "yes", "no"], ["<think", "<|END", "yes", "no"].__contains__),
            (JsonSchema(self.SCHEMA | {"additionalProperties": False}), JsonSchema(self.SCHEMA).matches),
            ({"integer": {"min": 100, "max": 199}}, lambda text: 100 <= int(text) <= 199),
        ]
        thought = 0
        reasons = thinker.chat_format.analysis.reasoning.mode != "none"
        for seed in range(12):
            sampling = Sampling("sampled", temperature=3.0, seed=seed)
            for constraint, matches in held:
                events: list[ChatEvent] = []
                message = thinker.chat(
                    ASK, constraint=constraint, sampling=sampling, thinking_budget=6, max_tokens=200,
                    stream=events.append,
                )  # fmt: skip
                assert message.finish == "span", message
                assert matches(message.content), message
                assert message.parsed is not None
                assert "".join(event.text for event in events if event.kind == "content") == message.content
                assert "".join(event.text for event in events if event.kind == "reasoning") == message.reasoning
                assert message.stats is not None
                assert message.stats.reasoning_tokens < 40, "each time that it begins it is closed"
                thought += bool(message.reasoning)
        assert reasons
        assert thought

    def test_values_are_parsed(self, model: Model) -> None:
        assert chat(model, ASK, constraint=Integer(1, 9)).parsed in range(1, 10)
        assert chat(model, ASK, constraint=["yes", "no"]).parsed in ("yes", "no")
        cut = chat(model, ASK, constraint=Regex("[a-z]{50}"), max_tokens=3, on_invalid="none")
        assert (cut.finish, cut.parsed) == ("max_tokens", None)
        assert "after 3 tokens: raise max_tokens, which is 3" in cut.invalid

    @pytest.mark.parametrize("seed", range(4))
    def test_a_value_that_is_whole_at_the_limit_is_whole(self, model: Model, seed: int) -> None:
        draw: dict[str, Any] = {"mode": "sampled", "temperature": 1.0, "seed": seed, "enable_thinking": False}
        choices: list[Any] = [["yes", "no"], ["a red one", "a blue one"], Regex("[a-f]{5}"), {"enum": [True, "x y"]}]
        for given in choices:
            constraint = JsonSchema(given) if isinstance(given, dict) else given
            whole = chat(model, ASK, constraint=constraint, **draw)
            assert whole.stats is not None
            limit = whole.stats.tokens
            at_limit = chat(model, ASK, constraint=constraint, max_tokens=limit, **draw)
            assert (at_limit.content, at_limit.finish, at_limit.parsed) == (whole.content, "span", whole.parsed)
            if limit > 1:
                cut = chat(model, ASK, constraint=constraint, max_tokens=limit - 1, on_invalid="none", **draw)
                assert (cut.finish, cut.parsed) == ("max_tokens", None)

    def test_nothing_stands_before_content_where_the_prompt_closed_the_thought(self, model: Model) -> None:
        rule = JsonSchema({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]})
        for seed in range(6):
            draw: dict[str, Any] = {"mode": "sampled", "temperature": 1.5, "seed": seed, "enable_thinking": False}
            message = chat(model, ASK, constraint=rule, max_tokens=120, on_invalid="none", **draw)
            assert message.stats is not None
            assert message.stats.reasoning_tokens == 0
            assert message.reasoning == ""
            if message.finish == "span":
                assert message.stats.tokens <= len(message.content.encode()) + 2

    def test_response_format(self, model: Model) -> None:
        schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
        schema["additionalProperties"] = False
        asked = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
        message = chat(model, ASK, response_format=asked)
        jsonschema.validate(json.loads(message.content), schema)
        assert message.parsed == json.loads(message.content)
        some = chat(model, ASK, response_format={"type": "json_object"}, max_tokens=30, on_invalid="none")
        assert some.content.startswith("{")
        plain = chat(model, ASK, response_format={"type": "text"}, max_tokens=8)
        assert plain.content == chat(model, ASK, max_tokens=8).content
        assert plain.parsed is None

    @pytest.mark.parametrize(
        ("asked", "says"),
        [
            ({"type": "json"}, r"response_format.type: invalid value: expected .*got \"json\""),
            ({}, 'response_format: the field "type" is missing'),
            ({"type": "json_schema"}, 'response_format.json_schema: the field "schema" is missing'),
            ({"type": "json_schema", "json_schema": {"schema": {"type": "strin"}}}, "strin"),
            ({"type": "text", "strict": True}, "response_format.strict: unknown field"),
        ],
    )
    def test_formats_that_are_none(self, model: Model, asked: Any, says: str) -> None:
        with pytest.raises(tokentrie.TokenTrieError, match=says):
            chat(model, ASK, response_format=asked)

    def test_beside_tools_there_are_calls_or_content(self, model: Model) -> None:
        def erase(path: str) -> None:
            """Delete a file."""

        found = {"calls": 0, "content": 0}
        for seed in range(12):
            drawn: dict[str, Any] = {"mode": "sampled", "temperature": 4.0, "seed": seed, "thinking_budget": 2}
            message = model.chat(ASK, [erase], constraint=Integer(10, 99), max_tokens=90, **drawn)
            if message.tool_calls:
                assert (message.content.strip(), message.parsed, message.finish) == ("", None, "tool_calls")
                assert isinstance(message.tool_calls[0].parsed["path"], str)
                found["calls"] += 1
            else:
                assert 10 <= message.parsed <= 99
                assert message.finish == "span"
                found["content"] += 1
        assert all(found.values()), found
        called = model.chat(ASK, [erase], "required", constraint=["yes"], max_tokens=90)
        assert (called.tool_calls[0].name, called.parsed, called.content.strip()) == ("erase", None, "")
        assert chat(model, ASK, [erase], "none", constraint=["yes"]).parsed == "yes"
        with pytest.raises(OptionError, match="both given"):
            chat(model, ASK, constraint=["yes"], response_format={"type": "text"})
        begun = [*ASK, {"role": "assistant", "content": "It"}]
        with pytest.raises(OptionError, match="from its beginning"):
            chat(model, begun, constraint=["yes"], continue_final_message="content")
        with pytest.raises(TypeError, match="response_format must be a dict"):
            chat(model, ASK, response_format="json")
        gate = tokentrie.rules.ThinkGate("<think>", "</think>", budget=3, then=Integer(1, 9))
        with pytest.raises(OptionError, match="a chat has thoughts of its own"):
            chat(model, ASK, constraint=gate)


class TestInvalid:
    def test_the_generation_is_not_lost(self, model: Model) -> None:
        odd = JsonSchema({"type": "object", "properties": {"n": {"const": 3}}, "required": ["n"]})
        with pytest.raises(InvalidValueError, match="it is odd") as parsed:
            JsonSchema(Even).parse('{"n": 3}')
        assert (parsed.value.text, parsed.value.partial) == ('{"n": 3}', None)
        assert odd.parse('{"n": 3}') == {"n": 3}
        lost = 0
        for seed in range(20):
            draw = Sampling("sampled", temperature=3.0, seed=seed)
            # Logits after a prefix that is kept differ in their last digits, so both draws begin without one.
            model.clear()
            out = model.generate("n: ", JsonSchema(Even), sampling=draw, on_invalid="none", max_tokens=60)
            reply = chat(model, ASK, constraint=Even, sampling=draw, on_invalid="none", max_tokens=60)
            for given, value in ((out, out.value), (reply, reply.parsed)):
                assert (given.invalid is None) == isinstance(value, Even) or given.finish == "max_tokens"
            if out.invalid is None:
                continue
            lost += 1
            model.clear()
            with pytest.raises(InvalidValueError, match="it is odd") as caught:
                model.generate("n: ", JsonSchema(Even), sampling=draw, max_tokens=60)
            assert caught.value.text == out.text
            assert isinstance(caught.value, ValueError)
            assert caught.value.partial == out or caught.value.partial.text == out.text  # type: ignore[union-attr]
            assert "it is odd" in str(caught.value.__cause__)
        assert lost > 3
        with pytest.raises(OptionError, match="on_invalid is 'x'"):
            model.generate("n: ", ["a"], on_invalid="x")  # type: ignore[arg-type]

    def test_it_is_asked_again(self, model: Model) -> None:
        class Never(BaseModel):
            n: Annotated[int, Field(ge=0, le=99)]

            @field_validator("n")
            @classmethod
            def is_good(cls, n: int) -> int:
                tried.append(n)
                if len(tried) < 3:
                    raise ValueError(f"{n} is not what I want")
                return n

        tried: list[int] = []
        prompts: list[int] = []
        said = list(ASK)
        message = chat(model, said, constraint=Never, retries=4, max_tokens=200)
        assert isinstance(message.parsed, Never)
        assert (len(tried), said) == (3, ASK)
        assert message.stats is not None
        prompts.append(message.stats.prompt_tokens)
        tried.clear()
        first = chat(model, ASK, constraint=Never, on_invalid="none", max_tokens=200)
        assert first.stats is not None
        assert first.stats.prompt_tokens < prompts[0], "what was wrong is told"
        tried.clear()
        with pytest.raises(InvalidValueError, match="not what I want") as caught:
            chat(model, ASK, constraint=Never, retries=0, max_tokens=200)
        assert isinstance(caught.value.partial, Message)
        for wrong in (-1, True, 1.5):
            with pytest.raises(OptionError, match="retries is"):
                chat(model, ASK, constraint=Never, retries=wrong)

    def test_slots_of_forms(self, model: Model) -> None:
        form = tokentrie.Form("It: ", tokentrie.Slot("it", JsonSchema(Even)), ".")
        for seed in range(20):
            draw = Sampling("sampled", temperature=3.0, seed=seed)
            out = model.generate("Say: ", form, sampling=draw, on_invalid="none")
            assert (out.values["it"] is None) == (out.invalid is not None)


class TestStop:
    def test_text_ends_before_it(self, model: Model) -> None:
        whole = model.generate("The sky", max_tokens=40)
        for begin in range(2, len(whole.text) - 6, 5):
            for length in (1, 3, 6):
                stop = whole.text[begin : begin + length]
                cut = whole.text.index(stop)
                steps: list[Any] = []
                out = model.generate("The sky", max_tokens=40, stop=stop, on_step=steps.append)
                assert out.text == whole.text[:cut] == "".join(step.text for step in steps)
                assert out.finish == "stop_text"
                assert out.tokens == whole.tokens[: len(out.tokens)]
                assert len(out.tokens) == len(steps)
                assert model.vocab.detokenize(out.tokens).startswith(out.text)
                slow = model.generate("The sky", max_tokens=40, stop=[stop, "\0never"], skip_ahead=False)
                assert (slow.text, slow.tokens) == (out.text, out.tokens)
                with model.stream("The sky", max_tokens=40, stop=stop) as stream:
                    assert "".join(stream) == out.text

    def test_what_may_begin_one_is_held_back_and_given_in_the_end(self, model: Model) -> None:
        whole = model.generate("The sky", max_tokens=12)
        never = whole.text[-3:] + "\0"
        steps: list[str] = []
        out = model.generate("The sky", max_tokens=12, stop=never, on_step=lambda step: steps.append(step.text))
        assert (out.text, out.finish) == (whole.text, whole.finish)
        assert "".join(steps) == whole.text

    def test_values(self, model: Model) -> None:
        kept = model.generate("Once upon", [" a"], after="free", max_tokens=20)
        stop = kept.text[4:7]
        out = model.generate("Once upon", [" a"], after="free", max_tokens=20, stop=stop)
        assert (out.value, out.finish) == (kept.value, "stop_text")
        assert out.text == kept.text[: kept.text.index(stop)]
        # Not inside the value, though " a" has a blank.
        blank = model.generate("Once upon", [" a"], after="free", max_tokens=20, stop=" ")
        assert blank.value == " a"
        assert blank.text.startswith(" a")
        assert " " not in blank.text[2:]

    def test_not_beside_a_constraint(self, model: Model, thinker: Model) -> None:
        for constraint in (["yes", "yes!"], Integer(1, 9), {"regex": "[a-z]{3}"}, int):
            with pytest.raises(OptionError, match=r"stop is not supported inside a constraint: .* after=\"free\""):
                model.generate("Is it? ", constraint, stop="e")
        assert model.generate("The sky", tokentrie.rules.Unconstrained(), max_tokens=9, stop="\0").finish != "span"
        for asked in ({"constraint": ["yes!", "yes?"]}, {"response_format": {"type": "json_object"}}):
            with pytest.raises(OptionError, match="stop is not supported beside constraint and response_format"):
                thinker.chat(ASK, stop="s", thinking_budget=3, **asked)

    def test_content_alone(self, model: Model, thinker: Model) -> None:
        def erase(path: str) -> None:
            """Delete a file."""

        whole = chat(model, ASK, max_tokens=40).content
        stop = whole[4:7]
        events: list[ChatEvent] = []
        message = chat(model, ASK, max_tokens=40, stop=["\0", stop], stream=events.append)
        assert message.content == whole[: whole.index(stop)]
        assert message.finish == "stop_text"
        assert "".join(event.text for event in events if event.kind == "content") == message.content
        assert events[-1].kind == "message_ends"
        # Calls are not content.
        call = chat(model, ASK, [erase], "required", stop=["e", '"'], max_tokens=80, parallel_tool_calls=False)
        assert call.tool_calls[0].name == "erase"

    @pytest.mark.parametrize(
        ("wrong", "error", "says"),
        [
            ("", OptionError, r"stop\[0\] is empty"),
            (["a", ""], OptionError, r"stop\[1\] is empty"),
            (["a"] * 300, OptionError, "stop has 300 texts"),
            ("a" * 70000, OptionError, r"stop\[0\] has 70000 bytes"),
            (5, TypeError, "stop must be a str or a list of str, not int"),
            ([b"a"], TypeError, r"stop\[0\]"),
        ],
    )
    def test_what_is_no_stop(self, model: Model, wrong: Any, error: type[Exception], says: str) -> None:
        for call in (model.generate, model.chat):
            with pytest.raises(error, match=says):
                call(ASK if call == model.chat else "x", stop=wrong)

    def test_forms_have_their_own(self, model: Model) -> None:
        with pytest.raises(OptionError, match="stop is not for forms"):
            model.generate("x", tokentrie.Form(Text("a", stop=".")), stop=".")


class TestEvents:
    def test_an_iterator(self, model: Model) -> None:
        whole = chat(model, ASK, max_tokens=30)
        with chat(model, ASK, stream=True, max_tokens=30) as stream:
            assert isinstance(stream, ChatStream)
            events = list(stream)
        assert "".join(event.text for event in events if event.kind == "content") == whole.content
        assert stream.result.content == whole.content
        assert list(stream) == []
        assert chat(model, ASK, stream=False, max_tokens=30).content == whole.content

    def test_leaving_ends_it(self, model: Model) -> None:
        with chat(model, ASK, stream=True, max_tokens=1500, constraint=Regex("[a-z ]{1400}")) as stream:
            next(stream)
        assert isinstance(stream.result, Message)
        assert stream.result.finish == "cancelled"
        lost = chat(model, ASK, stream=True, max_tokens=1500, constraint=Regex("[a-z ]{1400}"))
        next(lost)
        thread = lost._thread
        del lost
        gc.collect()
        thread.join(timeout=60)
        assert not thread.is_alive()

    def test_errors_come_out_of_it(self, model: Model) -> None:
        with pytest.raises(TypeError, match="max_token"):
            list(chat(model, ASK, stream=True, max_token=3))
        with pytest.raises(OptionError, match="tool_choice"):
            list(chat(model, ASK, [], "x", stream=True))

    def test_asyncio(self, model: Model) -> None:
        whole = chat(model, ASK, max_tokens=20).content

        async def read() -> list[str]:
            said = ["", "", "", ""]
            async for event in model.achat(ASK, thinking_budget=0, stream=True, max_tokens=20):
                said[0] += event.text
            async for event in await model.achat(ASK, thinking_budget=0, stream=True, max_tokens=20):
                said[1] += event.text

            async def hear(event: ChatEvent) -> None:
                await asyncio.sleep(0.001)
                assert threading.current_thread() is threading.main_thread()
                said[2] += event.text

            said[3] = (await model.achat(ASK, thinking_budget=0, stream=hear, max_tokens=20)).content
            async with model.achat(ASK, thinking_budget=0, stream=True, max_tokens=20) as stream:
                assert [event async for event in stream]
            return said

        assert asyncio.run(read()) == [whole] * 4

    def test_async_callbacks_are_awaited(self, model: Model) -> None:
        said: list[str] = []

        async def hear(event: Any) -> None:
            await asyncio.sleep(0)
            said.append(event.text)

        message = chat(model, ASK, stream=hear, max_tokens=12)
        assert "".join(said) == message.content
        said.clear()
        out = model.generate("The sky", on_step=hear, max_tokens=6)
        assert "".join(said) == out.text
        said.clear()

        async def inside() -> None:
            with pytest.raises(TypeError, match="use achat"):
                chat(model, ASK, stream=hear, max_tokens=12)
            await model.agenerate("The sky", on_step=hear, max_tokens=6)

        asyncio.run(inside())
        assert "".join(said) == out.text

        async def fail(event: ChatEvent) -> None:
            raise KeyError(event.kind)

        with pytest.raises(KeyError):
            chat(model, ASK, stream=fail, max_tokens=12)
        with pytest.raises(KeyError):
            asyncio.run(model.achat(ASK, thinking_budget=0, stream=fail, max_tokens=12))

    def test_a_cancelled_task_does_not_wait_for_a_callback(self, model: Model) -> None:
        async def main() -> None:
            begun = asyncio.Event()

            async def hang(event: ChatEvent) -> None:
                begun.set()
                await asyncio.sleep(3600)

            task = asyncio.ensure_future(model.achat(ASK, thinking_budget=0, stream=hang, max_tokens=50))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(asyncio.wait_for(main(), 60))
        assert chat(model, ASK, max_tokens=2).finish == "max_tokens"

    def test_a_token_ends_it(self, model: Model) -> None:
        cancel = CancelToken()
        stream = chat(model, ASK, stream=True, cancel=cancel, constraint=Regex("[a-z]{1400}"))
        next(stream)
        cancel.cancel()
        with pytest.raises(CancelledError):
            list(stream)

    def test_the_signature_names_everything(self, model: Model) -> None:
        names = set(inspect.signature(model.chat).parameters)
        assert {"stop", "constraint", "response_format", "on_invalid", "retries", "stream"} <= names
