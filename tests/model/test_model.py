"""Generation with the tiny model of the package."""

from __future__ import annotations

import _thread
import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import payload, write_encoder
from tokentrie import Model, Sampler, Sampling, Trie
from tokentrie.errors import ContextError, ModelError, OptionError, PayloadError, TokenTrieWarning, VocabularyError
from tokentrie.results import Step

pytestmark = pytest.mark.model

PROMPT = "The next action is "
NAMES = ["REPLY", "REPLY_THREAD", "STOP", "send_mail"]


@pytest.fixture(scope="module")
def model(tiny_path: Path) -> Model:
    return Model(n_ctx=1024, n_threads=1)


def test_the_model_of_the_package(model: Model, tiny_path: Path) -> None:
    assert model.path == tiny_path
    assert model.n_ctx == 1024
    assert model.n_threads == 1
    default = Model()
    assert default.n_ctx == 4096
    assert default.n_threads >= 1
    assert repr(model).startswith("<tokentrie.Model: ")


def test_an_encoder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "encoder.gguf"
    write_encoder(path)
    with pytest.raises(ModelError, match=r'encoder\.gguf" is a "bert" model: only models that predict the next token'):
        Model(path)


def test_every_form_of_a_constraint(model: Model) -> None:
    trie = Trie.from_strings(model.vocab, NAMES)
    data = payload({leaf.name or "": leaf.tokens for leaf in trie})
    results = [
        model.generate(PROMPT, form) for form in (trie, data, json.dumps(data), json.dumps(data).encode(), NAMES)
    ]
    for out in results:
        assert out.leaf is not None
        assert out.leaf.name == out.text
        assert out.text in NAMES
        assert out.tokens == out.leaf.tokens
        assert out.finish == "span"
    # The list goes on inside the last token of the prompt, the others after it.
    assert len({out.text for out in results[:-1]}) == 1


def test_the_same_as_a_loop_over_logits(model: Model) -> None:
    """The chain inside llama.cpp and a sampler that owns the row must walk alike."""
    trie = Trie.from_strings(model.vocab, NAMES)
    prompt = model.vocab.tokenize(PROMPT, add_special=True, parse_special=True)
    for options in ({"mode": "greedy"}, {"mode": "sampled", "seed": 3}, {"mode": "sampled", "seed": 4, "top_k": 2}):
        sampler = Sampler(model.vocab, trie, after="stop", **options)  # type: ignore[arg-type]
        tokens: list[int] = []
        while sampler.state == "active":
            token = sampler.sample(model.logits(prompt + tokens))
            sampler.accept(token)
            tokens.append(token)
        if tokens[-1] in model.vocab.eog or sampler.leaf is None or tokens != sampler.leaf.tokens:
            tokens.pop()  # the token that ended an open leaf
        out = model.generate(prompt, trie, **options)  # type: ignore[arg-type]
        assert out.tokens == tokens
        assert out.leaf == sampler.leaf


def test_the_same_seed_draws_the_same(model: Model) -> None:
    runs = [model.generate(PROMPT, NAMES, mode=1, temperature=5.0, seed=seed) for seed in (1, 1, 2, 3, 4, 5, 6, 7)]
    assert runs[0].tokens == runs[1].tokens
    assert len({out.text for out in runs}) > 1
    again = model.generate(PROMPT, NAMES, mode="sampled", temperature=5.0)
    assert model.generate(PROMPT, NAMES, mode="sampled", temperature=5.0, seed=again.stats.seed).text == again.text


def test_statistics(model: Model) -> None:
    model.clear()
    out = model.generate(PROMPT, ["send_mail"], skip_ahead=False)
    stats = out.stats
    assert (stats.forced_tokens, stats.sampled_tokens) == (len(out.tokens), 0)
    assert (stats.forward_passes, stats.forward_passes_saved) == (len(out.tokens), 0)
    assert stats.tokens_decoded >= stats.forward_passes
    assert stats.n_threads == model.n_threads
    assert 0 < stats.prompt_seconds <= stats.seconds
    as_dict = stats.to_dict()
    assert json.loads(json.dumps(as_dict)) == as_dict
    assert as_dict == {name: getattr(stats, name) for name in as_dict}
    assert repr(stats).startswith("Stats(forward_passes=")
    assert repr(out).endswith("tokens, span>")


def test_steps_are_seen(model: Model) -> None:
    steps: list[Step] = []
    out = model.generate(PROMPT, NAMES, on_step=steps.append)
    assert [step.index for step in steps] == list(range(len(steps)))
    assert [step.token for step in steps][: len(out.tokens)] == out.tokens
    trie = Trie.from_strings(model.vocab, NAMES, prefix=" ", heal=True)
    assert steps[0].allowed.tolist() == trie.allowed().tolist()
    for step in steps:
        assert step.allowed.dtype == np.int32
        assert step.probabilities.dtype == np.float32
        open_leaf = out.tokens[: step.index] in trie  # any token may end it, so children alone do not sum to 1
        assert 0 <= step.probabilities.sum() <= 1 + 1e-5
        assert open_leaf or step.probabilities.sum() == pytest.approx(1, abs=1e-5)
    assert "allowed" in repr(steps[0])


def test_without_a_constraint(model: Model) -> None:
    out = model.generate(PROMPT, max_tokens=5)
    assert out.leaf is None
    assert len(out.tokens) <= 5
    assert out.finish in {"max_tokens", "end_of_generation"}
    row = model.logits(PROMPT)
    assert out.tokens[:1] in ([int(row.argmax())], [])


def test_after_free_goes_on(model: Model) -> None:
    out = model.generate(PROMPT, ["STOP"], after="free", max_tokens=12)
    assert out.leaf is not None
    assert out.text.startswith("STOP")
    assert out.finish in {"max_tokens", "end_of_generation"}


def test_free_text_is_drawn_in_a_way_of_its_own(model: Model) -> None:
    hot = Sampling("sampled", temperature=5.0, seed=3)
    plain = model.generate(PROMPT, ["STOP"], after="free", max_tokens=12)
    drawn = model.generate(PROMPT, ["STOP"], after="free", max_tokens=12, free_sampling=hot)
    again = model.generate(PROMPT, ["STOP"], after="free", max_tokens=12, free_sampling=hot)
    assert drawn.text == again.text != plain.text
    assert drawn.text.startswith("STOP")
    for options in ({"after": "stop"}, {"after": "free", "skip_ahead": False}):
        with pytest.raises(OptionError, match="free_sampling"):
            model.generate(PROMPT, ["STOP"], free_sampling=hot, **options)  # type: ignore[arg-type]


def test_end_tokens_without_a_value_are_refused(model: Model) -> None:
    with pytest.raises(OptionError, match="free text has none"):
        model.generate(PROMPT, end_tokens=[1])


def test_end_tokens_close_the_span(model: Model) -> None:
    quote = model.vocab.tokenize('"')
    assert len(quote) == 1
    out = model.generate(PROMPT, NAMES, end_tokens=quote)
    assert out.leaf is not None
    assert out.text == f'{out.leaf.name}"'


def test_logits(model: Model) -> None:
    ids = model.vocab.tokenize(PROMPT * 3)
    whole = model.logits(ids)
    assert (whole.dtype, whole.shape) == (np.dtype(np.float32), (len(model.vocab),))
    assert np.isfinite(whole).all()
    assert (model.logits(np.array(ids)) == whole).all()
    whole[:] = 0
    assert (model.logits(ids) != 0).any(), "the row is a copy"
    model.logits(ids[:-3])
    np.testing.assert_allclose(model.logits(ids), fresh(ids), atol=0.3)  # what was held is not computed again
    assert (model.logits([5]) == model.logits([5])).all()
    with pytest.raises(OptionError, match="no tokens"):
        model.logits([])


def fresh(ids: list[int]) -> np.ndarray:
    return Model(n_ctx=1024, n_threads=1).logits(ids)


REJECTED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "prompt too long": ({"prompt": [5] * 2000}, ContextError, "2000 tokens after 0 .* room for 1024 .*n_ctx"),
    "no prompt": ({"prompt": []}, OptionError, "no tokens"),
    "prompt outside": ({"prompt": [5, 10**9]}, VocabularyError, "token id 1000000000 at position 1"),
    "prompt negative": ({"prompt": [-5]}, VocabularyError, "prompt, position 0: token id -5"),
    "prompt of another type": ({"prompt": 5.0}, TypeError, "float"),
    "bad payload": ({"constraint": "{"}, PayloadError, "line 1"),
    "constraint of another type": ({"constraint": 5}, TypeError, "int"),
    "values of another type": ({"constraint": [1]}, TypeError, "int"),
    "trie outside": ({"constraint": Trie.from_sequences([[10**9]])}, VocabularyError, "1000000000"),
    "no tokens": ({"max_tokens": 0}, OptionError, "max_tokens is 0"),
    "fewer than none": ({"max_tokens": -1}, OptionError, "max_tokens is -1"),
    "temperature": ({"temperature": -1.0}, OptionError, "temperature is -1"),
    "mode": ({"mode": "best"}, OptionError, "mode is 'best'"),
    "after": ({"after": "never"}, OptionError, "after is 'never'"),
    "end tokens outside": ({"end_tokens": [10**9]}, VocabularyError, "end tokens: token id 1000000000"),
}


@pytest.mark.parametrize(("wrong", "error", "says"), REJECTED.values(), ids=REJECTED)
def test_rejected(model: Model, wrong: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        model.generate(**{"prompt": PROMPT, "constraint": NAMES, **wrong})
    assert model.generate(PROMPT, NAMES).leaf is not None, "the model can be used again"


@pytest.mark.parametrize(
    "wrong", [{"n_ctx": 0}, {"n_ctx": 10**9}, {"n_threads": 0}, {"n_threads": 10**6}, {"n_gpu_layers": -2}]
)
def test_numbers_out_of_range(wrong: dict[str, int], tiny_path: Path) -> None:
    (name, value), *_ = wrong.items()
    with pytest.raises(OptionError, match=f"{name} is {value}: it must be from"):
        Model(**wrong)  # type: ignore[arg-type]


def test_a_full_context_ends_the_output(tiny_path: Path) -> None:
    small = Model(n_ctx=32, n_threads=1)
    with pytest.raises(ContextError, match="room for 32"):
        small.generate([5] * 33)
    out = small.generate([5] * 30, Trie.from_sequences([[7] * 20]))
    assert out.finish == "context_full"
    assert out.leaf is None


def test_dropped_leaves_are_warned_of(model: Model) -> None:
    with pytest.warns(TokenTrieWarning, match="dropped 1 leaf"):
        out = model.generate(PROMPT, payload({"IN": [7], "OUT": [10**9]}))
    assert out.leaf is not None


def test_an_exception_of_the_callback_is_raised(model: Model) -> None:
    def stop(step: Step) -> None:
        raise KeyError(step.index)

    with pytest.raises(KeyError, match="0"):
        model.generate(PROMPT, max_tokens=500, on_step=stop)
    assert model.generate(PROMPT, NAMES).leaf is not None


def test_the_callback_cannot_wait_for_itself(model: Model) -> None:
    with pytest.raises(ModelError, match="must not use it"):
        model.generate(PROMPT, NAMES, on_step=lambda step: model.logits([5]))
    assert model.generate(PROMPT, NAMES).leaf is not None


LONG = Trie.from_sequences([[7] * 900])


@pytest.fixture
def interrupted_soon() -> Iterator[None]:
    """Ctrl-C in a moment, as Python sees it by default."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    yield
    timer.join()
    signal.signal(signal.SIGINT, handler)


def generate_for_seconds(model: Model, seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        model.generate(PROMPT, LONG, max_tokens=900, skip_ahead=False)


def test_control_c_stops_between_two_decodes(model: Model, interrupted_soon: None) -> None:
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        generate_for_seconds(model, 60)
    assert time.perf_counter() - started < 20
    assert model.generate(PROMPT, NAMES).leaf is not None


def test_control_c_stops_waiting_for_another_thread(tiny_path: Path, interrupted_soon: None) -> None:
    model = Model(n_ctx=1024, n_threads=1)
    busy, stop = threading.Event(), threading.Event()

    def on_step(step: Step) -> None:
        busy.set()
        stop.wait(60)

    other = threading.Thread(target=model.generate, args=(PROMPT,), kwargs={"max_tokens": 1, "on_step": on_step})
    other.start()
    assert busy.wait(60)
    with pytest.raises(KeyboardInterrupt):
        model.logits([5])
    assert other.is_alive()
    stop.set()
    other.join()
    assert model.logits([5]).shape == (len(model.vocab),)


def test_other_threads_run_during_a_generation(model: Model) -> None:
    done = threading.Event()
    counted = 0

    def count() -> None:
        nonlocal counted
        while not done.wait(0.001):
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    rounds = 8
    for _ in range(rounds):
        model.generate(PROMPT, LONG, max_tokens=100, skip_ahead=False)
    done.set()
    thread.join()
    assert counted > 2 * rounds, "between two calls it may count once"


def test_layers_for_a_graphics_card_that_is_not_there(tiny_path: Path) -> None:
    with pytest.warns(TokenTrieWarning, match="n_gpu_layers has no effect"):
        Model(tiny_path, n_threads=1, n_gpu_layers=2)
