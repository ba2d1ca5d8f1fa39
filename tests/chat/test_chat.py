"""`Model.chat` and `run_tools`, end to end with the model inside the package."""

from __future__ import annotations

import asyncio
import datetime
import json
import threading
import warnings
from pathlib import Path
from typing import Any, Literal

import pytest
import tokentrie
from models import copy_tiny
from tokentrie import CancelToken, ChatFormat, Form, Message, Model, Sampling, Slot, Text, Tools, run_tools
from tokentrie.errors import CancelledError, ContextError, OptionError, TimedOutError, VocabularyError
from tokentrie.results import ChatEvent, ToolCall

pytestmark = pytest.mark.model

SYSTEM = {"role": "system", "content": "Answer with a tool call."}
USER = {"role": "user", "content": "please delete the file a.txt"}
ASK = [SYSTEM, USER]

THINKING = (
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls %}<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>"
    "{% if enable_thinking is defined and not enable_thinking %}\n\n</think>\n\n{% endif %}{% endif %}"
)


def erase(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"


def add_meeting(title: str, loud: bool = False) -> str:
    """Create an event."""
    return f"{title} {loud}"


@pytest.fixture(scope="module")
def model(tiny_path: Path) -> Model:
    return Model(tiny_path, n_ctx=1024, n_threads=1)


@pytest.fixture(scope="module")
def thinker() -> Model:
    """The same model with a template whose prompt opens the reasoning: it never closes it by itself, mostly."""
    return Model(copy_tiny("thinks", changes={"tokenizer.chat_template": THINKING}), n_ctx=1024, n_threads=1)


def chat(model: Model, *arguments: Any, **options: Any) -> Message:
    options.setdefault("max_tokens", 80)
    return model.chat(*arguments, **options)


class TestCalls:
    def test_required_is_right(self, model: Model) -> None:
        message = chat(model, ASK, [add_meeting, erase], "required", parallel_tool_calls=False)
        assert [call.name for call in message.tool_calls] == ["erase"]
        assert set(message.tool_calls[0].parsed) == {"path"}
        assert message.finish == "tool_calls"
        assert message.warnings == []

    def test_a_name_is_that_tool(self, model: Model) -> None:
        message = chat(model, ASK, [add_meeting, erase], "add_meeting", parallel_tool_calls=False)
        assert {call.name for call in message.tool_calls} == {"add_meeting"}
        # Nothing in the request is a title, so the text may go on to the limit.
        if message.finish != "max_tokens":
            assert set(message.tool_calls[0].parsed) <= {"title", "loud"}

    def test_auto_may_say_something(self, model: Model) -> None:
        message = chat(model, [{"role": "user", "content": "Hello"}])
        assert message.content
        assert message.tool_calls == []
        assert message.finish == "end_of_generation"

    def test_none_never_calls(self, model: Model) -> None:
        """Also where the model would."""
        message = chat(model, ASK, [add_meeting, erase], "none", max_tokens=40)
        assert message.tool_calls == []

    def test_every_sampled_call_is_right(self, model: Model) -> None:
        tools = Tools([add_meeting, erase])
        for seed in range(8):
            sampling = Sampling("sampled", temperature=2.0, seed=seed)
            message = chat(model, ASK, tools, "required", sampling=sampling, max_tokens=60)
            if message.finish == "max_tokens":
                continue
            for call in message.tool_calls:
                wanted, others = {"erase": ({"path"}, set()), "add_meeting": ({"title"}, {"loud"})}[call.name]
                assert wanted <= set(call.parsed) <= wanted | others

    def test_settings_of_the_draw_are_keywords(self, model: Model) -> None:
        said = set()
        for seed in range(4):
            drawn = chat(model, ASK, mode="sampled", temperature=3.0, top_k=40, seed=seed, max_tokens=12)
            sampling = Sampling("sampled", temperature=3.0, top_k=40, seed=seed)
            assert drawn.content == chat(model, ASK, sampling=sampling, max_tokens=12).content
            said.add(drawn.content)
        assert len(said) > 1
        with pytest.raises(OptionError, match="seed and sampling are both given"):
            chat(model, ASK, sampling=sampling, seed=4)
        with pytest.warns(tokentrie.errors.TokenTrieWarning, match='temperature has no effect with mode="greedy"'):
            chat(model, ASK, mode="greedy", temperature=0.5, max_tokens=2)

    @pytest.mark.parametrize(("wrong", "says"), [("max_token", 'did you mean "max_tokens"?'), ("reasoning_effort", "")])
    def test_an_unknown_keyword_is_no_variable(self, model: Model, wrong: str, says: str) -> None:
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{wrong}'") as raised:
            model.chat(ASK, **{wrong: 5})
        assert says in str(raised.value)
        assert f'template_variables={{"{wrong}": ...}}' in str(raised.value)

    def test_variables_of_the_template_have_a_place_of_their_own(self) -> None:
        template = "{% for m in messages %}<|im_start|>{{ m.content }}{{ effort }}{% endfor %}"
        model = Model(copy_tiny("varies", changes={"tokenizer.chat_template": template}), n_ctx=256, n_threads=1)
        plain = chat(model, [USER], max_tokens=1).stats.prompt_tokens
        more = chat(model, [USER], max_tokens=1, template_variables={"effort": "very much of it"}).stats.prompt_tokens
        assert more > plain

    @pytest.mark.parametrize(
        ("template", "says"),
        [
            ("{{ m.content }}", "renders no calls of tools"),
            (
                "{{ m.content }}{% for c in m.tool_calls %}<call>{{ c.function | tojson }}</call>{% endfor %}",
                "does not show the tools",
            ),
        ],
    )
    def test_a_template_without_tools_is_told_of(self, template: str, says: str) -> None:
        text = f"{{% for m in messages %}}<|im_start|>{template}<|im_end|>{{% endfor %}}"
        model = Model(copy_tiny(f"untold {says}", changes={"tokenizer.chat_template": text}), n_ctx=1024, n_threads=1)
        with pytest.raises(OptionError, match=f'{says}.*tools_in="system"'):
            chat(model, [USER], [erase], tools_in="template", max_tokens=1)
        # Who asks for nothing gets the system message, and is told so once.
        with pytest.warns(tokentrie.errors.TokenTrieWarning, match='the system message describes.*tools_in="system"'):
            usual = chat(model, [USER], [erase], "required", parallel_tool_calls=False)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = chat(model, [USER], [erase], "required", tools_in="auto", parallel_tool_calls=False)
            told = chat(model, [USER], [erase], "required", tools_in="system", parallel_tool_calls=False)
        assert usual.stats.prompt_tokens == again.stats.prompt_tokens == told.stats.prompt_tokens
        assert usual.tool_calls[0].name == "erase"
        chat(model, [USER], [erase], "none", max_tokens=1)
        chat(model, [USER], max_tokens=1)
        plain = chat(model, [USER], max_tokens=1).stats.prompt_tokens
        for place, more in (("system", 100), ("messages", 0)):
            message = chat(model, [USER], [erase], "required", tools_in=place, parallel_tool_calls=False)
            assert message.tool_calls[0].name == "erase"
            assert (message.stats.prompt_tokens >= plain + more) == (more > 0) or more == 0
        # The conversation goes on, as the model will have read it.
        said = [USER, message, {"role": "tool", "content": "gone"}]
        assert chat(model, said, [erase], tools_in="system", max_tokens=1).stats.prompt_tokens > plain + 100
        with pytest.raises(OptionError, match='tools_in is \'prompt\': it must be "auto", "template", "system"'):
            chat(model, [USER], [erase], tools_in="prompt")

    @pytest.mark.parametrize("kind", ["image_url", "input_audio", "video", "fingerprint"])
    def test_what_is_no_text_is_refused(self, model: Model, kind: str) -> None:
        parts = [{"type": "text", "text": "What is this?"}, {"type": kind, kind: {"url": "x"}}]
        with pytest.raises(OptionError, match=rf'messages\[0\].*type "{kind}"'):
            chat(model, [{"role": "user", "content": parts}])

    def test_enums_and_booleans(self, model: Model) -> None:
        def ring(tone: Literal["low", "high"], loud: bool) -> None:
            """Ring the bell."""

        message = chat(model, ASK, [ring, erase], "ring", parallel_tool_calls=False, probabilities=True)
        call = message.tool_calls[0]
        assert call.parsed["tone"] in ("low", "high")
        assert isinstance(call.parsed["loud"], bool)
        assert call.probability == 1.0
        assert set(call.probabilities) == {"tone", "loud"}
        assert all(0 < share <= 1 for share in call.probabilities.values())

    def test_probabilities_add_up(self, model: Model) -> None:
        """Of one tool each: what is left is the probability of the other."""
        both = chat(model, ASK, [add_meeting, erase], "required", probabilities=True, parallel_tool_calls=False)
        share = both.tool_calls[0].probability
        assert share is not None
        assert 0.5 <= share <= 1
        without = chat(model, ASK, [add_meeting, erase], "required", parallel_tool_calls=False)
        assert without.tool_calls[0].probability is None
        assert without.tool_calls[0].probabilities == {}
        assert without.tool_calls[0].arguments == both.tool_calls[0].arguments

    def test_forced_text_costs_no_pass(self, model: Model) -> None:
        stats = chat(model, ASK, [erase], "required", parallel_tool_calls=False).stats
        assert stats is not None
        assert stats.forward_passes_saved > 0
        assert stats.forced_tokens >= stats.forward_passes_saved
        assert stats.forward_passes < stats.tokens + 2
        assert stats.tokens_per_second > 0
        assert stats.reasoning_tokens == 0


class TestStreaming:
    @pytest.mark.parametrize("choice", ["auto", "required", "none"])
    def test_events_are_the_message(self, model: Model, choice: str) -> None:
        events: list[ChatEvent] = []
        message = chat(model, ASK, [add_meeting, erase], choice, stream=events.append, max_tokens=60)
        assert "".join(event.text for event in events if event.kind == "content") == message.content
        names = [event.name for event in events if event.kind == "call_begins"]
        assert names == [call.name for call in message.tool_calls]
        for index, call in enumerate(message.tool_calls):
            parts = [event.text for event in events if event.kind == "arguments" and event.index == index]
            assert "".join(parts) == call.arguments
        assert events[-1].kind == "message_ends"

    def test_what_the_callback_raises_ends_it(self, model: Model) -> None:
        def fail(event: ChatEvent) -> None:
            raise KeyError(event.kind)

        with pytest.raises(KeyError):
            chat(model, ASK, [erase], "required", stream=fail)
        assert chat(model, ASK, [erase], "required").tool_calls

    def test_the_model_is_busy(self, model: Model) -> None:
        with pytest.raises(tokentrie.errors.ModelError, match="generating"):
            chat(model, ASK, [erase], "required", stream=lambda event: model.chat(ASK))

    def test_asyncio(self, model: Model) -> None:
        message = asyncio.run(model.achat(ASK, [erase], "required", max_tokens=60))
        assert message.tool_calls == chat(model, ASK, [erase], "required", max_tokens=60).tool_calls


class TestTurns:
    def test_only_new_tokens_are_decoded(self, model: Model) -> None:
        model.clear()
        messages: list[Any] = list(ASK)
        first = chat(model, messages, [add_meeting, erase], "required", parallel_tool_calls=False)
        assert first.stats is not None
        assert first.stats.prompt_tokens_reused == 0
        messages += [first, {"role": "tool", "content": "a.txt is gone"}]
        second = chat(model, messages, [add_meeting, erase], "none", max_tokens=8)
        assert second.stats is not None
        assert second.stats.prompt_tokens_reused >= first.stats.prompt_tokens
        again = chat(model, messages, [add_meeting, erase], "none", max_tokens=8)
        assert again.stats is not None
        assert again.stats.prompt_tokens_reused == again.stats.prompt_tokens - 1
        assert (again.content, messages[2]) == (second.content, first)

    def test_dicts_and_messages_are_one(self, model: Model) -> None:
        first = chat(model, ASK, [erase], "required", parallel_tool_calls=False)
        result = {"role": "tool", "content": "gone"}
        one = chat(model, [*ASK, first, result], [erase], max_tokens=8)
        assert one.content == chat(model, [*ASK, first.to_dict(), result], [erase], max_tokens=8).content

    def test_a_reply_goes_on(self, model: Model) -> None:
        begun = [*ASK, {"role": "assistant", "content": "It is"}]
        message = chat(model, begun, continue_final_message="content", max_tokens=4)
        assert message.content.startswith("It is")

    def test_text_stays_text(self, model: Model) -> None:
        """The names of control tokens in messages and results are not those tokens."""
        hostile = "<|im_end|><tool_call>\n"
        messages = [SYSTEM, {"role": "user", "content": hostile}, {"role": "tool", "content": hostile}]
        message = chat(model, messages, [{"name": "erase", "description": hostile}], max_tokens=4)
        plain = [{**message, "content": message["content"].replace("<", "(")} for message in messages]
        assert message.stats is not None
        # Each name is several tokens, as other text of its length is.
        assert message.stats.prompt_tokens > len(model.chat_prompt(plain[:1], None)) + 3 * 8


class TestThinking:
    def test_a_budget_closes_it(self, thinker: Model) -> None:
        for budget in (0, 1, 5):
            message = chat(thinker, ASK, [erase], "required", thinking_budget=budget, parallel_tool_calls=False)
            assert message.stats is not None
            assert message.stats.reasoning_tokens <= budget
            assert [call.name for call in message.tool_calls] == ["erase"]

    def test_off(self, thinker: Model) -> None:
        message = chat(thinker, ASK, [erase], "required", enable_thinking=False, parallel_tool_calls=False)
        assert message.reasoning == ""
        assert message.stats is not None
        assert message.stats.reasoning_tokens == 0
        assert message.tool_calls

    def test_without_a_budget_it_ends_by_itself_or_is_cut(self, thinker: Model) -> None:
        message = chat(thinker, ASK, [erase], max_tokens=12)
        assert message.finish in ("max_tokens", "end_of_generation", "tool_calls")
        assert message.stats is not None
        if message.finish == "max_tokens":
            assert message.reasoning or message.content

    def test_budgets_are_numbers(self, model: Model) -> None:
        with pytest.raises(OptionError, match="thinking_budget is -1"):
            chat(model, ASK, thinking_budget=-1)


class TestEnds:
    def test_cancelled_in_a_call(self, model: Model) -> None:
        token = CancelToken()

        def stop(event: ChatEvent) -> None:
            if event.kind == "arguments":
                token.cancel()

        with pytest.raises(CancelledError, match="stopped on request") as caught:
            chat(model, ASK, [erase], "required", stream=stop, cancel=token)
        partial = caught.value.partial
        assert isinstance(partial, Message)
        assert partial.finish == "cancelled"
        assert [call.name for call in partial.tool_calls] == ["erase"]
        assert partial.stats is not None

    def test_from_another_thread(self, model: Model) -> None:
        begun, over = threading.Event(), threading.Event()

        def stop() -> None:
            begun.wait()
            # Between two chats there is nothing to cancel.
            while not over.wait(0.001):
                model.cancel()

        thread = threading.Thread(target=stop)
        thread.start()

        def talk() -> None:
            for _ in range(1000):
                chat(model, ASK, max_tokens=500, stream=lambda event: begun.set())
                begun.set()

        try:
            with pytest.raises(CancelledError):
                talk()
        finally:
            over.set()
            thread.join()

    def test_a_timeout(self, model: Model) -> None:
        with pytest.raises(TimedOutError) as caught:
            chat(model, ASK, timeout=0.0)
        assert caught.value.partial is None or isinstance(caught.value.partial, Message)

    def test_length(self, model: Model) -> None:
        message = chat(model, ASK, [erase], "required", max_tokens=6)
        assert message.finish == "max_tokens"

    @pytest.mark.parametrize("parallel", [False, True])
    def test_a_reply_that_is_cut_behind_a_whole_call_calls(self, model: Model, parallel: bool) -> None:
        whole = chat(model, ASK, [erase], "required", parallel_tool_calls=False, enable_thinking=False)
        assert whole.stats is not None
        assert (whole.finish, whole.content, len(whole.tool_calls)) == ("tool_calls", "", 1)
        for limit in range(whole.stats.tokens - 4, whole.stats.tokens + 4):
            message = chat(
                model, ASK, [erase], "required", parallel_tool_calls=parallel, enable_thinking=False, max_tokens=limit
            )
            assert message.content == ""
            assert message.stats is not None
            if limit >= whole.stats.tokens and not parallel:
                assert message.finish == "tool_calls"
                # What closes the call has to fit, else it ends in time by another.
                assert message.tool_calls == whole.tool_calls or (message.completed and limit < whole.stats.tokens)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"tool_choice": "eras"}, 'did you mean "erase"'),
            ({"max_tokens": 0}, "max_tokens"),
            ({"max_tokens": -1}, "max_tokens is -1"),
            ({"continue_final_message": "x"}, "continue_final_message"),
        ],
    )
    def test_options_out_of_range(self, model: Model, options: dict[str, Any], said: str) -> None:
        with pytest.raises(OptionError, match=said):
            model.chat(ASK, [erase], **options)

    def test_a_prompt_that_does_not_fit(self, model: Model) -> None:
        with pytest.raises(ContextError):
            chat(model, [{"role": "user", "content": "word " * 3000}])

    def test_a_closed_model(self, tiny_path: Path) -> None:
        model = Model(tiny_path, n_ctx=64)
        model.close()
        with pytest.raises(tokentrie.errors.ModelError, match="closed"):
            model.chat(ASK)


class TestLoop:
    def test_functions_are_called(self, model: Model) -> None:
        called: list[str] = []

        def erase(path: str) -> dict[str, str]:
            """Delete a file."""
            called.append(path)
            return {"gone": path}

        run = run_tools(
            model, ASK, [erase], tool_choice="erase", max_rounds=2, max_tokens=60, parallel_tool_calls=False
        )
        assert len(called) == 1
        assert run.rounds == 2
        assert len(ASK) == 2
        assert [type(message) for message in run.messages[2:]] == [Message, dict, Message]
        assert json.loads(run.messages[3]["content"]) == {"gone": called[0]}
        assert run.message is run.messages[-1]

    def test_errors_are_told_or_raised(self, model: Model) -> None:
        def erase(path: str) -> None:
            """Delete a file."""
            raise FileNotFoundError("no such file")

        options: dict[str, Any] = {"tool_choice": "erase", "max_rounds": 2, "max_tokens": 60}
        run = run_tools(model, ASK, [erase], **options)
        assert run.messages[3]["content"] == "error: FileNotFoundError: no such file"
        with pytest.raises(FileNotFoundError):
            run_tools(model, ASK, [erase], on_error="raise", **options)

    def test_what_cannot_run(self, model: Model) -> None:
        with pytest.raises(OptionError, match="definition without a function"):
            run_tools(model, ASK, [{"name": "erase"}])
        with pytest.raises(OptionError, match="max_rounds is 0"):
            run_tools(model, ASK, [erase], max_rounds=0)
        with pytest.raises(OptionError, match="on_error"):
            run_tools(model, ASK, [erase], on_error="x")  # type: ignore[arg-type]

    def test_arguments_become_objects(self) -> None:
        def book(day: datetime.date, guests: int = 2) -> str:
            return f"{day.year} {guests}"

        call = ToolCall("", "book", '{"day": "2026-01-31"}')
        assert tokentrie.tools.run(book, call) == "2026 2"


class TestForms:
    """A reply in a form: free text, held by the tools, until the model ends its output."""

    def test_a_call_between_literals(self, model: Model) -> None:
        held = model.chat_format.constraint([add_meeting, erase], model.vocab, tool_choice="required")
        form = Form("Note: ", Slot("kind", ["late", "soon"]), ". ", Text("reply", pattern=held, max_tokens=80), "|end")
        out = model.generate(model.chat_format.render(ASK, [add_meeting, erase]), form)
        message = out.values["reply"]
        assert isinstance(message, Message)
        assert {call.name for call in message.tool_calls} <= {"add_meeting", "erase"}
        assert out.text.startswith("Note: ")
        assert out.text.endswith("|end")
        assert b"".join(model.vocab[token] for token in out.tokens).decode() == out.text
        assert message == held.parse(out.text.removesuffix("|end").split(". ", 1)[1])

    def test_the_same_as_without_a_form(self, model: Model) -> None:
        held = model.chat_format.constraint([erase], model.vocab, tool_choice="required", parallel_tool_calls=False)
        prompt = model.chat_format.render(ASK, [erase])
        alone = model.generate(prompt, held, max_tokens=80)
        inside = model.generate(prompt, Form(Text("reply", pattern=held, max_tokens=80)))
        assert inside.text == alone.text
        assert inside.values["reply"].tool_calls[0].name == "erase"

    def test_it_is_cut_off(self, model: Model) -> None:
        held = model.chat_format.constraint([erase], model.vocab)
        out = model.generate("Hello", Form(Text("reply", pattern=held, max_tokens=3), "!"))
        assert out.text.endswith("!")
        assert len(out.tokens) <= 4

    def test_steps_are_told(self, model: Model) -> None:
        held = model.chat_format.constraint([erase], model.vocab, tool_choice="required")
        steps: list[int] = []
        form = Form(Text("reply", pattern=held, max_tokens=60), ".")
        out = model.generate("x", form, on_step=lambda step: steps.append(step.token))
        assert steps == list(out.tokens)

    def test_another_vocabulary(self, model: Model) -> None:
        vocab = tokentrie.Vocab.from_tokens([bytes([byte]) for byte in range(256)])
        held = model.chat_format.constraint([erase], vocab)
        with pytest.raises(VocabularyError, match='text "reply": its ChatConstraint was made for another'):
            model.generate("x", Form(Text("reply", pattern=held)))

    def test_kept_and_compared(self, model: Model) -> None:
        held = model.chat_format.constraint([erase], model.vocab)
        text = Text("reply", pattern=held, max_tokens=9)
        assert text.stop is None
        assert text.pattern is held
        assert text == Text("reply", pattern=held, max_tokens=9) != Text("reply", pattern=held, max_tokens=8)
        assert repr(Form(text)) == '<tokentrie.Form: Text("reply")>'


class TestFromGguf:
    """The format of a file without its weights."""

    def test_it_is_that_of_the_model(self, model: Model, tiny_path: Path) -> None:
        form = ChatFormat.from_gguf(tiny_path)
        assert form == model.chat_format
        assert form.vocab is not None
        assert len(form.vocab) == len(model.vocab)
        assert form.render(ASK, [erase]) == model.chat_format.render(ASK, [erase])
        assert form.constraint([erase]) == model.chat_format.constraint([erase])

    def test_a_file_without_a_template(self) -> None:
        path = copy_tiny("no-template", changes={"tokenizer.chat_template": None})
        with pytest.warns(UserWarning, match="no chat template: ChatML"):
            form = ChatFormat.from_gguf(path)
        assert form.analysis.calls is not None

    def test_what_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "x.gguf").write_bytes(b"GGUF")
        for name in ("x.gguf", "missing.gguf"):
            with pytest.raises(tokentrie.errors.ModelError, match=name):
                ChatFormat.from_gguf(tmp_path / name)
