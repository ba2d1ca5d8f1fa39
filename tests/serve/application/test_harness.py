"""What evaluation harnesses and clients of llama-server ask for: logprobs of prompts, the template, the properties."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")

import tokentrie
from budget import cases
from serve.application.in_process import InProcess
from tokentrie.serve.errors import of_library
from tokentrie.serve.models import ServedModel
from tokentrie.serve.wire.templating import TemplateRequest, prompt_of

pytestmark = pytest.mark.model

WORDS = ["The", " lamp", " is", " on", "\n", "größer", " 12", "<|im_start|>", " user", "😀"]
PLAIN = "{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }}\n{% endfor %}[assistant] "
TOOL = {
    "type": "function",
    "function": {"name": "find_lamp", "description": "Finds.", "parameters": {"type": "object"}},
}
USER = {"role": "user", "content": "Hi"}


@pytest.fixture(scope="module", params=["free", "fixed", "alone"])
def model(request: pytest.FixtureRequest) -> Iterator[tokentrie.Model]:
    how: dict[str, Any] = {"free": {"slots": 2}, "fixed": {"batching": "fixed"}, "alone": {}}[request.param]
    # Rows agree to 1e-4 then, however tokens are put into passes; but weights of 8 bits add their own rounding.
    with tokentrie.Model(n_ctx=512, n_threads=1, precise=True, **how) as model:
        yield model


def completed(app: InProcess, **body: Any) -> Any:
    status, told = app.ask("POST", "/v1/completions", {"temperature": 0, "max_tokens": 1, "echo": True, **body})
    assert status == 200, told
    return told


def one_by_one(model: tokentrie.Model, tokens: list[int]) -> list[float]:
    """The logarithms of the probabilities, from a row for each beginning."""
    known = []
    for length in range(1, len(tokens)):
        row = model.logits(tokens[:length]).astype(np.float64)
        known.append(float(row[tokens[length]] - row.max() - np.log(np.exp(row - row.max()).sum())))
    return known


def test_an_echo_tells_how_probable_each_token_of_the_prompt_was(app: InProcess, model: tokentrie.Model) -> None:
    draw = random.Random(5)
    for _ in range(cases(40)):
        text = "".join(draw.choices(WORDS, k=draw.randint(1, 60)))
        tokens = [*map(int, model.vocab.tokenize(text, parse_special=draw.random() < 0.5))]
        told = completed(app, prompt=[tokens], logprobs=1, seed=1234)
        (choice,), n = told["choices"], len(tokens)
        found = choice["logprobs"]
        assert len({len(found[name]) for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")}) == 1
        assert len(found["tokens"]) == n + told["usage"]["completion_tokens"]
        assert (found["token_logprobs"][0], found["top_logprobs"][0]) == (None, None)
        np.testing.assert_allclose(found["token_logprobs"][1:n], one_by_one(model, tokens), atol=5e-2)
        # Whether a token was the greedy one is told by equality, as harnesses have it.
        for position in range(1, n):
            best = int(np.argmax(model.logits(tokens[:position])))
            top = max(found["top_logprobs"][position].values())
            assert found["token_logprobs"][position] <= top
            if best == tokens[position]:
                assert found["token_logprobs"][position] == pytest.approx(top, abs=5e-2)
        whole = model.vocab.detokenize(tokens)
        assert choice["text"].startswith(whole)
        places = found["text_offset"]
        assert places[0] == 0
        assert places == sorted(places)
        assert max(places) <= len(choice["text"])


def test_a_prompt_alone_and_several_with_texts(app: InProcess, model: tokentrie.Model) -> None:
    told = completed(app, prompt=["The lamp is on", "Hi"], logprobs=0, max_tokens=0, n=2)
    assert [choice["text"] for choice in told["choices"]] == [*["The lamp is on"] * 2, *["Hi"] * 2]
    assert told["usage"]["completion_tokens"] == 0
    for choice in told["choices"]:
        known = choice["logprobs"]["token_logprobs"]
        assert known[0] is None
        assert all(one <= 0 for one in known[1:])
    for wrong, param in (({"stream": True}, "echo"), ({"echo": False, "max_tokens": 0}, "max_tokens")):
        body = {"prompt": "Hi", "logprobs": 1, "echo": True, "max_tokens": 1, **wrong}
        status, refused = app.ask("POST", "/v1/completions", body)
        assert (status, refused["error"]["param"]) == (400, param)


def test_a_prompt_takes_few_passes(model: tokentrie.Model) -> None:
    if model.engine is None:
        pytest.skip("it counts no passes")
    tokens = [5 + number % 200 for number in range(300)]
    before = model.engine.passes
    assert len(model._prompt_logprobs(tokens, 0, tokentrie._native.OpenCall(None, None, 0))) == 299
    assert model.engine.passes - before <= 5


def test_the_template_and_the_properties(app: InProcess, model: tokentrie.Model) -> None:
    status, told = app.ask("POST", "/apply-template", {"messages": [USER]})
    assert status == 200
    assert [*model.vocab.tokenize(told["prompt"], parse_special=True)] == model.chat_prompt([USER])
    _, told = app.ask("POST", "/apply-template", {"messages": [USER], "tools": [TOOL]})
    assert "find_lamp" in told["prompt"]
    variables = {"messages": []}
    status, told = app.ask("POST", "/apply-template", {"messages": [USER], "chat_template_kwargs": variables})
    assert (status, told["error"]["param"]) == (400, "chat_template_kwargs.messages")
    _, told = app.ask("GET", "/props")
    assert told["default_generation_settings"]["n_ctx"] == model.n_ctx
    assert told["total_slots"] == (1 if model.engine is None else model.engine.slots)
    assert told["chat_template"] == model.chat_template.text


@pytest.mark.parametrize(("place", "shown"), [("auto", True), ("system", True), ("template", False)])
def test_tools_go_where_the_template_can_show_them(model: tokentrie.Model, place: str, shown: bool) -> None:
    said = TemplateRequest(messages=[USER], tools=[{"type": "function", "function": {"name": "find_lamp"}}])
    plain: Any = SimpleNamespace(chat_format=tokentrie.ChatFormat(PLAIN, model.vocab))
    for of, is_told in ((model, True), (plain, shown)):
        served = ServedModel("m", of, None, tools_in=place)
        assert ("find_lamp" in prompt_of(served, said).text) is is_told
        asked = said.model_copy(update={"tools_in": "messages"})
        assert "find_lamp" not in prompt_of(ServedModel("m", plain, None, tools_in=place), asked).text


def test_how_a_call_ended_has_the_same_words_in_answers_and_metrics(app: InProcess) -> None:
    reasons = set()
    for most in (1, 200):
        told = completed(app, prompt="The sky is ", max_tokens=most, structured_outputs={"choice": ["blue", "red"]})
        reasons.add(told["choices"][0]["finish_reason"])
    assert "stop" in reasons
    _, text = app.ask("GET", "/metrics")
    told_by_metrics = {
        line.split('reason="')[1].split('"')[0] for line in text.splitlines() if "finished_total{" in line
    }
    assert told_by_metrics == reasons


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (tokentrie.errors.QueueFullError("3 calls wait already: try again later, or raise max_queue"), "--max-queue"),
        (tokentrie.errors.ContextError("9 tokens do not fit: the context has room for 8"), "--ctx"),
        (tokentrie.errors.OptionError('give tools_in="system" to describe them'), '"tools_in": "system"'),
        (tokentrie.errors.OptionError("penalty_last_n is -2: it must be from -1 to 9"), "repeat_last_n"),
    ],
)
def test_errors_name_what_a_client_or_who_starts_the_server_can_say(error: Exception, says: str) -> None:
    told = of_library(error).message
    assert says in told
    assert not any(word in told for word in ("max_queue", "n_ctx", 'tools_in="', "penalty_last_n"))
