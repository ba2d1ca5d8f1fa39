"""How keys and values are kept: what goes together, what is refused, and that answers stay answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokentrie

pytestmark = pytest.mark.model

CITIES = ["Paris", "London", "Rome", "Madrid"]
#: How far a probability may be from that of f32, by the numbers of the cache.
FAR = {"f32": 0.01, "f16": 0.02, "bf16": 0.05, "q8_0": 0.05, "q5_0": 0.2, "q4_0": 0.4}


def probabilities(**options: Any) -> Any:
    with tokentrie.Model(n_ctx=256, n_threads=1, **options) as model:
        return [*model.choose("The capital of France is ", CITIES).probabilities.values()]


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("kind", FAR)
def test_every_type_of_numbers_answers(kind: str, slots: int) -> None:
    exact = probabilities(precise=True)
    np.testing.assert_allclose(probabilities(cache_type=kind, slots=slots), exact, atol=FAR[kind])


def test_attention_and_passes() -> None:
    exact = probabilities(precise=True)
    for options in ({"flash_attention": True}, {"flash_attention": False}, {"n_batch": 64}, {"n_batch": 2048}):
        np.testing.assert_allclose(probabilities(**options), exact, atol=0.02)
    with tokentrie.Model(n_ctx=512, n_threads=1, batching="fixed", n_batch=32) as model:
        model.generate([5 + number % 90 for number in range(320)], max_tokens=1)
        assert model.engine is not None
        assert model.engine.passes >= 10


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cache_type": "q9"}, 'unknown cache_type "q9": it may be "f32", "f16"'),
        ({"cache_type": "q8_0", "precise": True}, 'cache_type "q8_0" is not supported with precise'),
        ({"flash_attention": True, "precise": True}, "flash_attention is not supported with precise"),
        (
            {"cache_type": "q4_0", "flash_attention": False},
            'cache_type "q4_0" is not supported without flash_attention',
        ),
        ({"n_batch": 0}, "n_batch is 0"),
    ],
)
@pytest.mark.parametrize("slots", [1, 2])
def test_what_does_not_go_together_is_refused(options: dict[str, Any], says: str, slots: int) -> None:
    with pytest.raises(tokentrie.errors.OptionError, match=says):
        tokentrie.Model(n_ctx=256, slots=slots, **options)


@pytest.mark.parametrize("options", [{"slots": 2}, {"batching": "fixed"}])
def test_an_engine_gathers_no_rows(options: dict[str, Any]) -> None:
    with pytest.raises(tokentrie.errors.OptionError, match="device_sampling is not supported with slots or fixed"):
        tokentrie.Model(n_ctx=256, device_sampling=True, **options)


def test_rows_that_the_device_gathers_give_the_same_texts() -> None:
    properties = {"age": {"type": "integer"}, "city": {"enum": CITIES}}
    schema = {"type": "object", "properties": properties, "required": ["age"]}
    tool = {"type": "function", "function": {"name": "look", "parameters": schema}}
    texts, gathered = [], []
    for device_sampling in (False, True):
        with tokentrie.Model(n_ctx=512, n_threads=1, device_sampling=device_sampling) as model:
            rule = tokentrie.JsonSchema(schema)
            out = [model.generate("A user: ", rule, seed=seed, max_tokens=60) for seed in (1, 2)]
            reply = model.chat([{"role": "user", "content": "Look!"}], [tool], tool_choice="required", max_tokens=60)
            whole = model.generate("A user: ", max_tokens=5)
            texts.append([*(one.text for one in out), reply.tool_calls[0].arguments, whole.text])
            gathered.append([one.stats.gathered_rows for one in (*out, reply, whole)])
    assert texts[0] == texts[1]
    assert gathered[0] == [0, 0, 0, 0]
    assert min(gathered[1][:3]) > 0 == gathered[1][3]


def test_a_prefix_of_other_numbers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "beginning.prefix"
    with tokentrie.Model(n_ctx=256, cache_type="q8_0") as model:
        model.save_prefix(path, "The lamp is on. " * 4)
        assert model.load_prefix(path) > 0
    with tokentrie.Model(n_ctx=256) as model:
        with pytest.raises(tokentrie.errors.ModelError, match="does not go into this context"):
            model.load_prefix(path)
        assert model.choose("The capital of France is ", CITIES).name in CITIES
