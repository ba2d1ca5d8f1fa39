"""Text as it grows, calls that are ended from outside, and asyncio."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokentrie
from tokentrie import CancelToken, Form, Generated, Model, Regex, Slot, Text, Trie, Vocab
from tokentrie.errors import CancelledError, OptionError, TimedOutError, VocabularyError
from tokentrie.results import Step
from tokentrie.rules import Sequence
from tokentrie.streaming import Detokenizer

pytestmark = pytest.mark.model
LONG = {"constraint": Regex("[a-z ]{2000}"), "max_tokens": 900}


@pytest.fixture(scope="module")
def model(tiny_path: Path) -> Model:
    return Model(tiny_path, n_ctx=1024, n_threads=1)


def forms() -> list[Form]:
    made = []
    for stop in ("\n", '"', ". ", " the", "e", "ing "):
        for length in (1, 3, 24):
            note, mood = Text("note", stop=stop, max_tokens=length), Slot("mood", ["good", "bad"])
            made.append(Form("Note: ", note, stop, " Mood: ", mood))
            made.append(Form('{"a": "', note, f'{stop}", "b": ', Text("b", stop="\n", max_tokens=5)))
    return made


CONSTRAINTS: list[Callable[[Model], Any]] = [
    lambda _: None,
    lambda _: ["blue", "red and white", "red and black", "größer", "🙂 fine"],
    lambda model: Trie.from_strings(model.vocab, ["blue", "bluer", "red"], heal=True),
    lambda model: Trie.from_strings(model.vocab, ["search web", "search notes"], tokenization="all"),
    lambda model: Sequence(Trie.from_strings(model.vocab, ["a ", "b "]), Trie.from_strings(model.vocab, ["x", "y"])),
    lambda _: tokentrie.rules.Unconstrained(),
]


@pytest.mark.parametrize("make", CONSTRAINTS)
@pytest.mark.parametrize("mode", ["greedy", "sampled"])
@pytest.mark.parametrize("skip_ahead", [True, False])
def test_steps_are_the_tokens_and_the_text(
    model: Model, make: Callable[[Model], Any], mode: Any, skip_ahead: bool
) -> None:
    hot: Any = {"temperature": 2.0} if mode == "sampled" else {}
    for seed in range(4):
        steps: list[Step] = []
        out = model.generate(
            "The sky is",
            make(model),
            mode=mode,
            seed=seed,
            skip_ahead=skip_ahead,
            max_tokens=24,
            **hot,
            on_step=steps.append,
        )
        check_steps(steps, out)


@pytest.mark.parametrize("mode", ["greedy", "sampled"])
def test_steps_of_forms_are_never_taken_back(model: Model, mode: Any) -> None:
    for seed, form in enumerate(forms()):
        steps: list[Step] = []
        out = model.generate("Once upon a time", form, mode=mode, seed=seed, on_step=steps.append)
        check_steps(steps, out)


def test_what_on_step_raises_once_is_raised(model: Model) -> None:
    """Several tokens of a text become certain at once: those after the first must not make it forgotten."""
    form = Form("a: ", Text("a", stop=" the man and", max_tokens=30), Slot("b", ["x", "y"]))
    expected = len(model.generate("Once upon a time", form).tokens)
    for index in range(expected):

        def fail(step: Step, index: int = index) -> None:
            if step.index == index:
                raise KeyError(index)

        with pytest.raises(KeyError):
            model.generate("Once upon a time", form, on_step=fail)


def check_steps(steps: list[Step], out: Generated) -> None:
    kept = [step for step in steps if step.index < len(out.tokens)]
    assert [step.token for step in kept] == out.tokens
    assert [step.index for step in steps] == list(range(len(steps)))
    text = "".join(step.text for step in steps)
    assert out.text.startswith(text)
    assert out.text[len(text) :] in ("", "\ufffd")


def test_a_stream_is_the_text_of_generate(model: Model) -> None:
    for constraint in [None, ["blue", "red and white"], *forms()[:8]]:
        expected = model.generate("The sky is", constraint, max_tokens=20)
        seen: list[Step] = []
        stream = model.stream("The sky is", constraint, max_tokens=20, on_step=seen.append)
        parts = list(stream)
        assert all(parts)
        assert "".join(parts) == expected.text == stream.result.text
        assert stream.result.tokens == expected.tokens
        assert seen
        assert list(stream) == [], "it stays at its end"


def test_a_stream_raises_what_generate_raises(model: Model) -> None:
    with pytest.raises(TypeError, match=r"stream\(\) .*max_token"):
        model.stream("x", max_token=5)  # type: ignore[call-arg]
    stream = model.stream("x", [])
    with pytest.raises(tokentrie.errors.TrieError):
        next(stream)
    with pytest.raises(tokentrie.errors.TrieError):
        _ = stream.result

    def fail(step: Step) -> None:
        raise KeyError(step.index)

    with pytest.raises(KeyError):
        list(model.stream("x", on_step=fail))


@pytest.mark.parametrize("leave", ["close", "with", "forget", "token"])
def test_leaving_a_stream_ends_the_generation(model: Model, leave: str) -> None:
    token = CancelToken()
    stream = model.stream("Once upon a time", cancel=token, **LONG)
    next(stream)
    if leave == "close":
        stream.close()
        stream.close()
    elif leave == "with":
        with stream:
            next(stream)
    elif leave == "token":
        token.cancel()
        with pytest.raises(CancelledError):
            list(stream)
    else:
        del stream
    assert token.cancelled
    began = time.perf_counter()
    model.generate("Next", ["A", "B"])
    assert time.perf_counter() - began < 5


def test_a_token_ends_its_own_call_and_no_other(model: Model) -> None:
    token = CancelToken()
    with pytest.raises(CancelledError, match="stopped on request after 3 generated tokens") as caught:
        model.generate("Once", on_step=lambda step: token.cancel() if step.index == 2 else None, cancel=token)
    partial = caught.value.partial
    assert partial is not None
    assert (partial.finish, len(partial.tokens)) == ("cancelled", 3)
    assert partial.tokens == model.generate("Once", max_tokens=3).tokens
    assert partial.text == model.vocab.detokenize(partial.tokens)
    with pytest.raises(CancelledError):
        model.generate("Once", cancel=token)
    with pytest.raises(CancelledError) as caught:
        model.choose("Once ", ["a", "b"], cancel=token)
    assert caught.value.partial is None
    with pytest.raises(CancelledError):
        list(model.choose_many(["Once "], ["a", "b"], cancel=token))
    assert model.generate("Once", max_tokens=3, cancel=CancelToken()).tokens == partial.tokens


def test_the_partial_result_of_a_form(model: Model) -> None:
    token = CancelToken()
    form = Form("Mood: ", Slot("mood", ["good", "bad"]), " Note: ", Text("note", stop="\n\n\n", max_tokens=200))
    with pytest.raises(CancelledError) as caught:
        model.generate("Diary. ", form, on_step=lambda step: token.cancel() if step.index > 9 else None, cancel=token)
    partial = caught.value.partial
    assert partial is not None
    assert set(partial.values) == {"mood"}
    assert partial.text.startswith(f"Mood: {partial.values['mood']} Note: ")


def test_time_is_limited(model: Model) -> None:
    began = time.perf_counter()
    with pytest.raises(TimedOutError, match=r"timeout of 0\.1 s was over after \d+ generated tokens") as caught:
        model.generate("Once upon a time", timeout=0.1, on_step=lambda _: time.sleep(0.02), **LONG)
    assert time.perf_counter() - began < 5
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.partial
    assert 0 < len(caught.value.partial.tokens) < 900
    with pytest.raises(TimedOutError):
        model.choose("Once ", ["a", "b"], timeout=0)
    assert model.choose("Once ", ["a", "b"], timeout=float("inf")).name in ("a", "b")
    for wrong in (-1.0, float("nan")):
        with pytest.raises(OptionError, match="timeout is"):
            model.generate("Once", timeout=wrong)


def test_who_waits_can_be_cancelled(model: Model) -> None:
    token = CancelToken()
    with model.stream("Once upon a time", on_step=lambda _: time.sleep(0.01), **LONG) as stream:
        next(stream)
        with pytest.raises(TimedOutError, match="while it waited for another call"):
            model.generate("Once", timeout=0.05)
        threading.Timer(0.1, token.cancel).start()
        with pytest.raises(CancelledError, match="while it waited for another call"):
            model.choose("Once ", ["a", "b"], cancel=token)
        assert next(stream), "the call that ran goes on"


def test_asyncio(model: Model) -> None:
    async def run() -> None:
        out, choice = await asyncio.gather(
            model.agenerate("The sky is ", ["blue", "red"]), model.achoose("The sky is ", ["blue", "red"])
        )
        assert out.leaf is not None
        assert {out.leaf.name, choice.name} <= {"blue", "red"}
        text = ""
        async for part in (stream := model.stream("The sky is", max_tokens=12)):
            text += part
        assert text == stream.result.text

        ticks = 0
        task = asyncio.create_task(model.agenerate("Once", on_step=lambda _: time.sleep(0.005), **LONG))
        while ticks < 5:
            await asyncio.sleep(0.01)
            ticks += 1
        task.cancel()
        began = time.perf_counter()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.perf_counter() - began < 2
        with pytest.raises(TimedOutError):
            await model.agenerate("Once", timeout=0.05, on_step=lambda _: time.sleep(0.02), **LONG)

        async def read() -> None:
            async for _ in model.stream("Once", on_step=lambda _: time.sleep(0.005), **LONG):
                pass

        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(read(), 0.1)
        assert (await model.agenerate("Next", ["A", "B"])).leaf

    asyncio.run(run())


def test_the_end_of_the_program_ends_a_stream(tiny_path: Path) -> None:
    program = (
        f"import tokentrie, time\nmodel = tokentrie.Model({str(tiny_path)!r}, n_ctx=1500, n_threads=1)\n"
        "stream = model.stream('Once', max_tokens=1400, on_step=lambda step: time.sleep(0.05))\n"
        "print(len(next(stream)) > 0)\n"
    )
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
    assert time.perf_counter() - began < 30


@pytest.mark.parametrize("text", ["", "plain", "größer 🙂 naïve", "日本語 and 🏳️‍🌈", "a\x00b\ufffd"])
def test_parts_of_a_text_are_the_text(model: Model, text: str) -> None:
    tokens = model.vocab.tokenize(text, add_special=False)
    growing = Detokenizer(model.vocab)
    parts = [growing.push(token) for token in tokens]
    assert "".join(parts) + growing.finish() == text
    assert growing.push(tokens) + growing.finish() == text


def test_bytes_that_are_no_text() -> None:
    vocab = Vocab.from_tokens([b"\xe2", b"\x82", b"\xac", b"\xff", b"x"])
    growing = Detokenizer(vocab)
    assert [growing.push(token) for token in (0, 1, 2, 3, 0, 4, 0)] == ["", "", "€", "\ufffd", "", "\ufffdx", ""]
    assert (growing.finish(), growing.finish()) == ("\ufffd", "")
    with pytest.raises(VocabularyError, match="token id 5"):
        growing.push(5)
    with pytest.raises(TypeError):
        growing.push("x")  # type: ignore[arg-type]
