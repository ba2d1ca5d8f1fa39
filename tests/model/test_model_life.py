"""Cancelling from another thread, closing, several models: the session stays usable or says that it is not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import tokentrie
from tokentrie import Model, Trie
from tokentrie.errors import CancelledError, ModelError

pytestmark = pytest.mark.model

PROMPT = "The next action is "
LONG = Trie.from_sequences([[7] * 1500])


@pytest.fixture
def model(tiny_path: Path) -> Model:
    return Model(tiny_path, n_ctx=1600, n_threads=1)


def generate_long(model: Model) -> None:
    model.generate(PROMPT, LONG, max_tokens=1500, skip_ahead=False)


def outcome(work: Callable[[], object]) -> tuple[threading.Thread, list[BaseException | None]]:
    """Runs `work` in a thread; what it raised is in the list when the thread is done."""
    raised: list[BaseException | None] = []

    def run() -> None:
        try:
            work()
            raised.append(None)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, raised


def test_cancel_ends_the_running_call(model: Model) -> None:
    before = model.choose(PROMPT, ["yes", "no"]).probabilities
    thread, raised = outcome(lambda: generate_long(model))
    while thread.is_alive():
        time.sleep(0.01)
        model.cancel()
    thread.join()
    assert isinstance(raised[0], CancelledError)
    assert "stopped on request" in str(raised[0])
    assert model.choose(PROMPT, ["yes", "no"]).probabilities == pytest.approx(before, abs=1e-3)


def test_cancel_ends_a_choice_of_many(model: Model) -> None:
    values = Trie.from_sequences([[a, b, c, 9] for a in range(30) for b in range(12) for c in range(10)])
    thread, raised = outcome(lambda: model.choose(PROMPT, values))
    while thread.is_alive():
        time.sleep(0.005)
        model.cancel()
    assert raised == [None] or isinstance(raised[0], CancelledError)
    assert model.generate(PROMPT, ["yes"]).text == "yes"


def test_cancel_without_a_call_does_nothing(model: Model) -> None:
    model.cancel()
    assert model.generate(PROMPT, ["yes"]).text == "yes"


def test_on_step_can_cancel(model: Model) -> None:
    with pytest.raises(CancelledError):
        model.generate(PROMPT, LONG, max_tokens=900, skip_ahead=False, on_step=lambda step: model.cancel())


def test_a_closed_model_says_so(model: Model) -> None:
    vocab = model.vocab
    model.close()
    model.close()
    calls: list[Callable[[], object]] = [
        lambda: model.generate(PROMPT, ["a"]),
        lambda: model.choose(PROMPT, ["a"]),
        lambda: list(model.choose_many([PROMPT], ["a"])),
        lambda: model.logits(PROMPT),
        lambda: model.chat_prompt([]),
        lambda: model.vocab,
        lambda: model.clear(),
    ]
    for call in calls:
        with pytest.raises(ModelError, match="the model is closed"):
            call()
    assert vocab.detokenize(vocab.tokenize("still here")) == "still here"
    assert repr(model).startswith("<tokentrie.Model: ")


def test_closing_while_in_use_ends_the_call(model: Model) -> None:
    thread, raised = outcome(lambda: generate_long(model))
    time.sleep(0.05)
    model.close()
    thread.join()
    assert raised == [None] or isinstance(raised[0], CancelledError)


def test_on_step_must_not_close(model: Model) -> None:
    with pytest.raises(ModelError, match="on_step must not close it"):
        model.generate(PROMPT, ["a", "b"], on_step=lambda step: model.close())


def test_with_closes(tiny_path: Path) -> None:
    with Model(tiny_path, n_threads=1) as model:
        choices = model.choose_many([PROMPT] * 40, ["a", "b"])
        assert next(choices).name in ("a", "b")
    with pytest.raises(ModelError, match="closed"):
        list(choices)


def test_several_models_in_several_threads(tiny_path: Path) -> None:
    models = [Model(tiny_path, n_ctx=256, n_threads=1) for _ in range(3)]
    expected = models[0].generate(PROMPT, ["yes", "no", "yes and no"]).text
    texts: list[str] = []

    def work(model: Model) -> None:
        texts.extend(model.generate(PROMPT, ["yes", "no", "yes and no"]).text for _ in range(10))

    threads = [threading.Thread(target=work, args=(model,)) for model in models for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == [expected] * 60


def test_errors_have_their_classes() -> None:
    assert issubclass(CancelledError, ModelError)
    assert issubclass(ModelError, tokentrie.TokenTrieError)
