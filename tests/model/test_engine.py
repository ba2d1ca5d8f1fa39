"""Many calls of one model at once: from threads, from an event loop, cancelled and closed in the middle."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tokentrie
from budget import cases
from tokentrie import Form, Regex, Slot
from tokentrie.errors import CancelledError, ModelError, QueueFullError, TimedOutError

pytestmark = pytest.mark.model
NAMES = ["delete_meeting", "show_window", "show_event", "show_car", "open_door", "close_door"]
TOOL = {
    "name": "delete_meeting",
    "description": "Delete a meeting.",
    "parameters": {
        "type": "object",
        "properties": {"title": {"type": "string", "maxLength": 12}},
        "required": ["title"],
    },
}


@pytest.fixture(scope="module")
def alone() -> tokentrie.Model:
    return tokentrie.Model(n_ctx=512, n_threads=1)


@pytest.fixture(scope="module")
def shared() -> tokentrie.Model:
    return tokentrie.Model(n_ctx=512, n_threads=1, slots=4)


def call(model: tokentrie.Model, number: int) -> Any:
    """One of several kinds of calls; what it gave, without what it took."""
    words = random.Random(number).sample(["red", "blue", "window", "meeting", "please", "show", "the", "delete"], 5)
    prompt = "Task: " + " ".join(words) + "\n"
    match number % 6:
        case 0:
            return model.generate(prompt, NAMES).leaf.name
        case 1:
            return [*model.choose(prompt, NAMES).probabilities.values()]
        case 2:
            return model.generate(prompt, Regex("[a-z]{3,9}( [a-z]{2,5})?!")).text
        case 3:
            form = Form('{"a": "', Slot("a", NAMES), '", "n": ', Slot("n", tokentrie.rules.Integer(0, 99)), "}")
            return model.generate(prompt, form).values
        case 4:
            messages = [{"role": "user", "content": " ".join(words)}]
            # One that was stopped has no call.
            calls = model.chat(messages, [TOOL], "required", max_tokens=60).to_dict().get("tool_calls", [])
            return [call["function"]["name"] for call in calls]
        case _:
            heard: list[str] = []
            out = model.generate(prompt, max_tokens=12, on_step=lambda step: heard.append(step.text))
            assert "".join(heard) == out.text, "each token was heard of, in order"
            return model.logits(prompt)


def bits(model: tokentrie.Model, prompt: str, kind: int) -> bytes:
    """What one request gave, to the last bit."""
    if kind == 0:
        return model.choose(prompt, NAMES).logprobs.tobytes()
    if kind == 1:
        return model.logits(prompt).tobytes()
    out = model.generate(prompt, max_tokens=9, mode="sampled", temperature=1.5, seed=7)
    return bytes(str(out.tokens), "ascii") + model.logits(prompt + out.text).tobytes()


def test_fixed_batching_gives_a_request_the_same_bits_whatever_else_runs() -> None:
    """Long and short prompts, with beginnings in common, in whichever slot, after whatever was there before."""
    story = "Once upon a time there was a window that wanted to meet a car. " * 12
    prompts = ["x", "Delete the meeting, please: ", story, story + "And then: ", story[:300] + "The end"]
    asked = [(prompt, kind) for prompt in prompts for kind in range(3)]
    with tokentrie.Model(n_ctx=512, slots=1, batching="fixed") as model:
        expected = {one: bits(model, *one) for one in asked}
    draw = random.Random(3)
    order = [draw.choice(asked) for _ in range(cases(1000))]
    with tokentrie.Model(n_ctx=512, slots=4, batching="fixed") as model, ThreadPoolExecutor(9) as pool:
        loads = [pool.submit(call, model, number) for number in range(cases(60))]
        given = list(pool.map(lambda one: bits(model, *one), order))
        for load in loads:
            load.result()
        assert model.engine is not None
        assert model.engine.tokens_reused > 0, "whole pieces of a prompt are kept for the next"
    assert [one for one, got in zip(order, given, strict=True) if got != expected[one]] == []


def test_other_words_for_batching_are_refused() -> None:
    with pytest.raises(tokentrie.errors.OptionError, match=r'batching is .never.: it must be "free" or "fixed"'):
        tokentrie.Model(batching="never")  # type: ignore[call-overload]
    with pytest.raises(tokentrie.errors.OptionError, match="slots is 0: it must be from 1 to 128"):
        tokentrie.Model(slots=0, batching="fixed")


def same(one: Any, other: Any) -> bool:
    # Rows that are computed beside others are rounded otherwise, and so are probabilities from them.
    if isinstance(one, np.ndarray):
        return np.allclose(one, other, atol=0.3)
    if isinstance(one, list) and one and isinstance(one[0], float):
        return np.allclose(one, other, atol=0.02)
    return bool(one == other)


def test_calls_from_threads_are_as_each_alone(alone: tokentrie.Model, shared: tokentrie.Model) -> None:
    numbers = range(cases(240))
    expected = [call(alone, number) for number in numbers]
    before = shared.engine
    assert before is not None
    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(lambda number: call(shared, number), numbers))
    wrong = [number for number in numbers if not same(expected[number], given[number])]
    # A choice between tokens that are as probable as each other may fall otherwise: rarely.
    assert len(wrong) <= len(numbers) // 20, [(expected[number], given[number]) for number in wrong]
    deadline = time.monotonic() + 5
    # A result may be there a moment before its call is counted as over.
    while (after := shared.engine) is not None and after.running and time.monotonic() < deadline:
        time.sleep(0.001)
    assert after is not None
    assert (after.running, after.queued, after.failed_passes) == (0, 0, 0)
    assert after.calls - before.calls >= len(numbers)


def test_calls_share_passes_and_beginnings(shared: tokentrie.Model) -> None:
    shared.clear()
    system = "You sort requests into tools. " * 12
    prompts = [f"{system}Request {number}: show the window\n" for number in range(8)]
    before = shared.engine
    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(lambda prompt: shared.generate(prompt, max_tokens=8), prompts))
    after = shared.engine
    assert before is not None
    assert after is not None
    alone = sum(out.stats.forward_passes for out in given)
    assert after.passes - before.passes < alone, "passes have tokens of several calls"
    length = len(shared.vocab.tokenize(system))
    assert after.tokens - before.tokens < 5 * length, "what all begin with is not decoded by each"
    assert after.tokens_reused > before.tokens_reused


def test_an_event_loop_runs_calls_together(shared: tokentrie.Model) -> None:
    async def several() -> list[Any]:
        calls = [shared.achoose(f"Is {number} large? ", ["yes", "no"]) for number in range(6)]
        return list(await asyncio.gather(*calls, shared.agenerate("Say ", NAMES)))

    given = asyncio.run(several())
    assert {choice.name for choice in given[:6]} <= {"yes", "no"}
    assert given[6].leaf.name in NAMES


def test_choose_many_beside_other_calls(alone: tokentrie.Model, shared: tokentrie.Model) -> None:
    prompts = [f"Review {number}: it is so {'great' if number % 2 else 'bad'}. " for number in range(40)]
    expected = [[*choice.probabilities.values()] for choice in alone.choose_many(prompts, ["positive", "negative"])]
    with ThreadPoolExecutor(2) as pool:
        others = pool.submit(lambda: [call(shared, number) for number in range(12)])
        given = [[*choice.probabilities.values()] for choice in shared.choose_many(prompts, ["positive", "negative"])]
        others.result()
    assert np.allclose(expected, given, atol=0.1)


def test_one_call_ends_and_others_go_on(shared: tokentrie.Model) -> None:
    cancel, begun = tokentrie.CancelToken(), threading.Event()

    def long(which: int) -> Any:
        try:
            on_step = (lambda _: begun.set()) if which == 0 else None
            return shared.generate("Once ", max_tokens=400, cancel=cancel if which == 0 else None, on_step=on_step)
        except CancelledError as error:
            return error

    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(long, which) for which in range(3)]
        assert begun.wait(30)
        cancel.cancel()
        cancelled, *others = [run.result() for run in runs]
    assert isinstance(cancelled, CancelledError)
    assert cancelled.partial.finish == "cancelled"
    assert all(not isinstance(out, Exception) for out in others)
    with pytest.raises(TimedOutError):
        shared.generate("Once ", max_tokens=400, timeout=0.001)


def test_what_a_listener_raises_ends_its_call_alone(shared: tokentrie.Model) -> None:
    def refuse(_: tokentrie.results.Step) -> None:
        raise ZeroDivisionError("no")

    with ThreadPoolExecutor(2) as pool:
        good = pool.submit(lambda: shared.generate("Once ", max_tokens=60))
        with pytest.raises(ZeroDivisionError):
            shared.generate("Once ", max_tokens=60, on_step=refuse)
        assert good.result().finish in {"max_tokens", "end_of_generation"}
    assert shared.generate("Say ", NAMES, on_step=lambda _: shared.choose("Is it? ", NAMES)).leaf.name in NAMES


def test_a_full_queue_says_so_at_once() -> None:
    model = tokentrie.Model(n_ctx=4096, n_threads=1, slots=2, max_queue=1)
    end, over = tokentrie.CancelToken(), []

    def long(prompt: str) -> None:
        try:
            # It ends no sooner.
            model.generate(prompt, Regex("[ab]{4000}"), max_tokens=4000, cancel=end)
        except CancelledError as error:
            over.append(error)

    threads = [threading.Thread(target=long, args=(f"{number} ",)) for number in range(3)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 30
    while (engine := model.engine) is not None and (engine.running, engine.queued) != (2, 1):
        assert time.monotonic() < deadline, engine
        time.sleep(0.001)
    with pytest.raises(QueueFullError, match="1 calls wait already"):
        model.generate("No ", max_tokens=1)
    end.cancel()
    for thread in threads:
        thread.join()
    assert len(over) == 3, "who waits is not lost"
    assert model.generate("Yes ", max_tokens=1).stats.sampled_tokens == 1


def test_urgent_calls_go_first() -> None:
    done: list[str] = []
    with tokentrie.Model(slots=2, n_ctx=1024) as model, ThreadPoolExecutor(4) as pool:

        def call(name: str, tokens: int, priority: int) -> None:
            model.generate(f"{name} ", Regex(r"[ab]{4000}"), max_tokens=tokens, priority=priority, on_invalid="none")
            done.append(name)

        def sent(name: str, tokens: int, priority: int, waits: int) -> Future[None]:
            call_of = pool.submit(call, name, tokens, priority)
            while model.engine.queued < waits:
                assert not call_of.done()
            return call_of

        all_calls = [pool.submit(call, "first", 500, 0), pool.submit(call, "second", 700, 0)]
        while model.engine.running < 2:
            pass
        # One slot is free when the first is over, and there the urgent one goes before the one that waits longer.
        all_calls += [sent("idle", 2, -1, 1), sent("urgent", 2, 1, 2)]
        for one in all_calls:
            one.result()
    assert done == ["first", "urgent", "idle", "second"]


def test_priorities_are_integers(shared: tokentrie.Model) -> None:
    for wrong in (2**31, -(2**31) - 1):
        with pytest.raises(OverflowError):
            shared.generate("A", priority=wrong)
    with pytest.raises(TypeError):
        shared.choose("A", ["a", "b"], priority="high")  # type: ignore[arg-type]
    assert shared.decide("It is on.", {"on": bool}, priority=3)["on"].kind == "predicate"
    assert shared.chat([{"role": "user", "content": "hi"}], max_tokens=2, priority=-3).stats.tokens == 2
    assert [choice.name for choice in shared.choose_many(["A"], ["x"], priority=1)] == ["x"]


def test_prompts_that_do_not_fit_concern_nobody_else(shared: tokentrie.Model) -> None:
    with pytest.raises(tokentrie.errors.ContextError, match="512"):
        shared.generate("word " * 600)
    with pytest.raises(tokentrie.errors.ContextError):
        shared.choose("word " * 600, NAMES)
    assert shared.generate("Say ", NAMES).leaf.name in NAMES
    for wrong in ({"slots": 0}, {"slots": 1000}, {"slots": -1}, {"max_queue": -1}, {"prefill_chunk": 0}):
        with pytest.raises(tokentrie.errors.OptionError):
            tokentrie.Model(**wrong)


def test_closing_ends_what_runs() -> None:
    model = tokentrie.Model(n_ctx=512, n_threads=1, slots=2)
    errors: list[BaseException] = []
    begun = threading.Event()

    def long() -> None:
        try:
            model.generate("Once ", max_tokens=400, on_step=lambda _: begun.set())
        except ModelError as error:
            errors.append(error)

    threads = [threading.Thread(target=long) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert begun.wait(30)
    model.close()
    for thread in threads:
        thread.join(30)
    assert len(errors) == 4
    with pytest.raises(ModelError, match="closed"):
        model.generate("Once ")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_is_told(shared: tokentrie.Model) -> None:
    child = os.fork()
    if child == 0:
        try:
            shared.generate("Once ")
        except ModelError as error:
            os._exit(0 if "forked" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_threads_that_open_cancel_and_drop() -> None:
    stop = time.monotonic() + cases(60)

    def churn(seed: int) -> int:
        draw, calls = random.Random(seed), 0
        while time.monotonic() < stop:
            model = tokentrie.Model(n_ctx=256, n_threads=1, slots=draw.choice([2, 3]))
            with ThreadPoolExecutor(3) as pool:
                runs = [pool.submit(call, model, draw.randrange(1000)) for _ in range(draw.randrange(1, 6))]
                if draw.random() < 0.5:
                    time.sleep(draw.random() / 50)
                    model.cancel() if draw.random() < 0.5 else model.close()
                for run in runs:
                    assert run.exception() is None or isinstance(run.exception(), ModelError), run.exception()
                    calls += 1
        return calls

    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(churn, range(3))) > 0


@pytest.mark.parametrize("slots", [1, 3])
def test_several_results_of_one_prompt(slots: int) -> None:
    """Each is what its seed gives alone, and the prompt is decoded once."""
    prompt = "The next actions are "
    # Else rows that are computed beside others differ in their last digits.
    with tokentrie.Model(n_ctx=512, n_threads=1, slots=slots, batching="fixed") as model:
        for constraint in (
            None,
            tokentrie.Regex("[a-z ]{4,12}"),
            tokentrie.rules.Integer(0, 999),
            ["yes", "no", "later"],
        ):
            options = {"mode": "sampled", "temperature": 2.0, "max_tokens": 12}
            alone = [model.generate(prompt, constraint, seed=7 + nth, **options) for nth in range(5)]
            several = model.generate(prompt, constraint, seed=7, n=5, **options)
            assert [out.stats.seed for out in several] == list(range(7, 12))
            assert [one.tokens for one in alone] == [other.tokens for other in several]
            assert len({out.stats.seed for out in model.generate(prompt, constraint, n=3, **options)}) == 3
        assert isinstance(model.generate(prompt, ["a"], n=1), list)
        awaited = asyncio.run(model.agenerate(prompt, ["yes", "no"], seed=7, n=3, mode="sampled"))
        assert [out.text for out in awaited] == [
            out.text for out in model.generate(prompt, ["yes", "no"], seed=7, n=3, mode="sampled")
        ]
        if slots > 1:
            before = model.engine.calls
            model.generate(prompt, ["yes", "no"], n=4, mode="sampled")
            assert model.engine.calls == before + 4


@pytest.mark.parametrize("slots", [1, 3])
def test_several_replies_to_one_chat(slots: int) -> None:
    """Each is what its seed gives alone, to the bit with `batching="fixed"`, read and held as one is."""

    def erase(path: str, sure: bool) -> str:
        """Delete a file."""
        return path

    messages = [{"role": "user", "content": "please delete the file a.txt"}]
    sampled = {"mode": "sampled", "temperature": 0.7, "max_tokens": 40, "on_invalid": "none"}
    with tokentrie.Model(n_ctx=1024, n_threads=1, slots=slots, batching="fixed") as model:
        for options in ({"tools": [erase], "tool_choice": "required"}, {"constraint": tokentrie.rules.Integer(0, 999)}):
            alone = [model.chat(messages, seed=7 + nth, **options, **sampled) for nth in range(5)]
            several = model.chat(messages, seed=7, n=5, **options, **sampled)
            # The ids of calls are drawn for each.
            said = [
                [(m.parsed, m.content, [(c.name, c.arguments) for c in m.tool_calls]) for m in all]
                for all in (alone, several)
            ]
            assert said[0] == said[1]
            assert all(message.stats.prompt_tokens == alone[0].stats.prompt_tokens for message in several)
            if "tools" in options:
                assert {call.name for message in several for call in message.tool_calls} == {"erase"}
            else:
                assert all(message.parsed in range(1000) or message.finish == "max_tokens" for message in several)
        assert isinstance(model.chat(messages, n=1, max_tokens=4), list)
        assert len(asyncio.run(model.achat(messages, n=2, **sampled))) == 2
        for wrong, text in (
            ({"n": 0}, "n is 0"),
            ({"n": 2, "retries": 1}, "retries"),
            ({"n": 2, "stream": lambda event: None}, "leave n out"),
        ):
            with pytest.raises(tokentrie.errors.OptionError, match=text):
                model.chat(messages, **wrong)
        with pytest.raises(tokentrie.errors.TimedOutError) as caught:
            model.chat(messages, n=4, timeout=0.05, **{**sampled, "max_tokens": 600, "temperature": 4.0})
        assert isinstance(caught.value.partial, list)


def test_several_results_end_together() -> None:
    with tokentrie.Model(n_ctx=512, n_threads=1, slots=2) as model:
        for wrong in (0, -1, 1025):
            with pytest.raises(tokentrie.errors.OptionError, match="n is"):
                model.generate("a", n=wrong)
        with pytest.raises(tokentrie.errors.OptionError, match="on_step"):
            model.generate("a", n=2, on_step=lambda step: None)
        wrong_types: Any = (3, "yes")
        for wrong in wrong_types:
            with pytest.raises(TypeError, match=f"on_step must be a function, not {wrong!r} of type"):
                model.generate("a", on_step=wrong)
            with pytest.raises(TypeError, match=f"stream, unless True, must be a function, not {wrong!r} of type"):
                model.chat([], stream=wrong)
        with pytest.warns(tokentrie.errors.TokenTrieWarning, match="gives the same 2 times"):
            first, second = model.generate("a", n=2, max_tokens=4)
        assert first.text == second.text
        with pytest.raises(tokentrie.errors.TimedOutError) as caught:
            model.generate("Once", Regex("[a-z]{400}"), n=4, mode="sampled", max_tokens=400, timeout=0.05)
        assert isinstance(caught.value.partial, list)
        # It can be used again at once.
        assert model.generate("Is it? ", ["yes", "no"]).value in ("yes", "no")
    with (
        tokentrie.Model(n_ctx=512, n_threads=1, slots=2, max_queue=1) as small,
        pytest.raises(tokentrie.errors.QueueFullError),
    ):
        small.generate("Once", n=64, mode="sampled", max_tokens=200)
