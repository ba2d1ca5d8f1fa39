"""`run_tools` with several calls in a reply, and as a stream: what runs together, in which order results come, and what
is left where a reader has enough."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from tokentrie import Message, Model, run_tools
from tokentrie.chat import ToolRun, ToolStream, arun_tools
from tokentrie.errors import CancelledError
from tokentrie.results import ChatEvent, ToolCall

ASK = [{"role": "user", "content": "please delete the file a.txt"}]
OPTIONS: dict[str, Any] = {"tool_choice": "erase", "max_rounds": 2, "max_tokens": 60, "parallel_tool_calls": False}


class Script:
    """Says these messages, whatever it is asked: a model with several calls in a reply."""

    def __init__(self, *messages: Message) -> None:
        self._left, self.asked = [*messages], []

    def chat(self, messages: Any, tools: Any, choice: Any, *, stream: Any = None, **_: Any) -> Message:
        self.asked.append([*messages])
        message = self._left.pop(0)
        if stream is not None:
            stream(ChatEvent("message_ends", "", None, "", ""))
        return message

    async def achat(self, *arguments: Any, **options: Any) -> Message:
        return self.chat(*arguments, **options)


def calls(*named: tuple[str, str]) -> Message:
    made = [ToolCall(f"id{nth}", name, arguments) for nth, (name, arguments) in enumerate(named)]
    return Message(tool_calls=made, finish="tool_calls")


def said(run: ToolRun) -> list[str]:
    return [message["content"] for message in run.messages if isinstance(message, dict) and message["role"] == "tool"]


def erase(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"


def meeting(parties: int) -> tuple[Any, list[str]]:
    """A tool whose calls wait for each other: alone each would wait for ever."""
    here: list[str] = []

    async def meet(name: str) -> str:
        """Meet the others."""
        here.append(name)
        while len(here) < parties:
            await asyncio.sleep(0.001)
        return name.upper()

    return meet, here


THREE = calls(("meet", '{"name": "a"}'), ("erase", '{"path": "x"}'), ("meet", '{"name": "b"}'))


@pytest.mark.parametrize("how", ["run", "arun", "stream", "astream"])
def test_async_tools_of_one_reply_run_together(how: str) -> None:
    meet, here = meeting(2)
    model: Any = Script(THREE, Message("done", finish="end_of_generation"))

    async def streamed() -> ToolRun:
        async with arun_tools(model, ASK, [meet, erase], stream=True) as stream:
            told = [event.text async for event in stream if event.kind == "tool_result"]
        assert told == ["A", "x is gone", "B"]
        return stream.result

    if how == "run":
        run = run_tools(model, ASK, [meet, erase])
    elif how == "arun":
        run = asyncio.run(asyncio.wait_for(arun_tools(model, ASK, [meet, erase]), 20))
    elif how == "stream":
        with run_tools(model, ASK, [meet, erase], stream=True) as stream:
            events = [*stream]
        run = stream.result
        results = [(event.text, event.index, event.id, event.name) for event in events if event.kind == "tool_result"]
        assert results == [("A", 0, "id0", "meet"), ("x is gone", 1, "id1", "erase"), ("B", 2, "id2", "meet")]
        kinds = [event.kind for event in events]
        assert kinds == ["message_ends", "tool_result", "tool_result", "tool_result", "message_ends"]
    else:
        run = asyncio.run(asyncio.wait_for(streamed(), 20))
    assert sorted(here) == ["a", "b"]
    assert said(run) == ["A", "x is gone", "B"]
    assert (run.message.content, run.rounds) == ("done", 2)


@pytest.mark.parametrize("how", [run_tools, lambda *given, **options: asyncio.run(arun_tools(*given, **options))])
def test_one_that_fails_leaves_the_others(how: Any) -> None:
    async def fail(why: str) -> None:
        """Fail."""
        raise ValueError(why)

    async def work() -> str:
        """Work."""
        await asyncio.sleep(0.01)
        return "worked"

    made = calls(("fail", '{"why": "no"}'), ("work", "{}"), ("erase", '{"path": "x"}'))
    run = how(Script(made, Message("done")), ASK, [fail, work, erase])
    assert said(run) == ["error: ValueError: no", "worked", "x is gone"]
    with pytest.raises(ValueError, match="no"):
        how(Script(made, Message("done")), ASK, [fail, work, erase], on_error="raise")


def test_other_tools_run_one_after_the_other_on_a_thread() -> None:
    running: list[int] = []
    most: list[int] = []

    def slow(number: int) -> int:
        """Work slowly."""
        running.append(number)
        most.append(len(running))
        time.sleep(0.01)
        assert threading.current_thread() is not threading.main_thread()
        running.remove(number)
        return number

    made = calls(*((("slow", f'{{"number": {number}}}')) for number in range(4)))
    run = asyncio.run(arun_tools(Script(made, Message("done")), ASK, [slow]))
    assert said(run) == ["0", "1", "2", "3"]
    assert max(most) == 1


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(n_ctx=2048, n_threads=1)


@pytest.mark.model
def test_events_and_results_of_a_real_run(model: Model) -> None:
    with run_tools(model, ASK, [erase], stream=True, **OPTIONS) as stream:
        assert isinstance(stream, ToolStream)
        events = [*stream]
    run = stream.result
    again = run_tools(model, ASK, [erase], **OPTIONS)
    assert [str(message) for message in run.messages] == [str(message) for message in again.messages]
    kinds = [event.kind for event in events]
    assert kinds.count("message_ends") == run.rounds == 2
    at = kinds.index("tool_result")
    assert kinds.index("call_begins") < kinds.index("message_ends") < at
    assert events[at].text == said(run)[0]
    assert "".join(event.text for event in events[at + 1 :] if event.kind == "content") == run.message.content


@pytest.mark.model
def test_a_reader_that_has_enough_keeps_what_came(model: Model) -> None:
    with run_tools(model, ASK, [erase], stream=True, **OPTIONS) as stream:
        for event in stream:
            if event.kind == "tool_result":
                break
    run = stream.result
    assert said(run) == [event.text]
    assert run.rounds in (1, 2)
    # A chat and a generation, too.
    with model.chat(ASK, stream=True, max_tokens=200) as replies:
        first = next(replies)
    assert replies.result.content.startswith(first.text) or first.kind != "content"
    assert replies.result.finish in ("cancelled", "end_of_generation", "max_tokens")
    with model.stream("Once upon a time", max_tokens=500) as texts:
        begun = next(texts)
    assert texts.result.text.startswith(begun)

    async def leave() -> Message:
        async with model.achat(ASK, stream=True, max_tokens=200) as events:
            async for _ in events:
                break
        return events.result

    assert isinstance(asyncio.run(leave()), Message)


def test_leaving_ends_tools_that_wait() -> None:
    async def wait() -> str:
        """Wait."""
        await asyncio.sleep(3600)
        return ""

    async def leave() -> ToolRun:
        async with arun_tools(Script(calls(("wait", "{}")), Message("done")), ASK, [wait], stream=True) as stream:
            async for event in stream:
                assert event.kind == "message_ends"
                break
        return stream.result

    begun = time.monotonic()
    run = asyncio.run(leave())
    assert time.monotonic() - begun < 60
    assert said(run) == []
    assert run.rounds == 1


@pytest.mark.model
def test_another_cancel_is_an_error(model: Model) -> None:
    from tokentrie import CancelToken

    token = CancelToken()
    stream = run_tools(model, ASK, [erase], stream=True, cancel=token, **OPTIONS)
    token.cancel()
    with pytest.raises(CancelledError):
        _ = [*stream]
    with pytest.raises(CancelledError) as caught:
        _ = stream.result
    assert caught.value.partial is None or isinstance(caught.value.partial, ToolRun)
