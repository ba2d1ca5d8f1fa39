"""What batches do with rows on a device, done on the CPU: equal to what they do with rows in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tokentrie
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'tokentrie[torch]'")

from tokentrie.integrations import device
from torch.utils._python_dispatch import TorchDispatchMode

VOCABULARY = 24
LEAVES = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=3), min_size=1, max_size=8)
LOGITS = st.sampled_from([0.0, -1.0, 2.5, float("-inf"), float("nan"), -0.0, 3.0])


def batch_of(data: st.DataObject, **options: Any) -> tokentrie.Batch:
    trie = tokentrie.Trie.from_sequences(data.draw(LEAVES))
    ends = data.draw(st.sampled_from([None, [9], [2, 9]]))
    return tokentrie.Batch([trie, trie, None, trie], vocab=VOCABULARY, end_tokens=ends, **options)


def logits_of(data: st.DataObject, dtype: Any) -> Any:
    size = 4 * (VOCABULARY + 2)
    flat = data.draw(st.lists(LOGITS, min_size=size, max_size=size))
    return torch.tensor(flat, dtype=torch.float32).to(dtype).view(4, VOCABULARY + 2)


def same(one: Any, other: Any) -> None:
    """The same continuations; of those that are so close that rounding orders them, the same scores."""
    for left, right in zip(one, other, strict=True):
        assert left.dtype == right.dtype
    scores = other[2]
    np.testing.assert_allclose(one[2], scores, atol=1e-5)
    finite = np.where(np.isinf(scores), -1e9, scores)
    near = np.abs(finite[:, None] - finite[None, :]) < 1e-4
    alone = near.sum(axis=1) == 1
    if len(alone):
        alone &= ~near[-1]  # what was cut off may be as good as the last
    for left, right in zip(one[:2], other[:2], strict=True):
        np.testing.assert_array_equal(left[alone], right[alone])


@settings(deadline=None)
@given(data=st.data(), dtype=st.sampled_from([torch.float32, torch.float16, torch.bfloat16]))
def test_it_is_what_rows_in_memory_get(data: st.DataObject, dtype: Any) -> None:
    rows = batch_of(data)
    for _ in range(4):
        logits = logits_of(data, dtype)
        masked, there = logits.clone(), logits.clone()
        rows.apply(masked)
        device.apply(rows, there)
        bits = {2: torch.int16, 4: torch.int32}[logits.element_size()]
        assert torch.equal(masked.view(bits), there.view(bits))
        chosen = rows.select(logits)
        np.testing.assert_array_equal(device.select(rows, logits), chosen)
        for score in ("model", "renormalised", "given"):
            for groups in (None, 2):
                scores = [0.0, -0.5, -0.25, -np.inf]
                want = rows.top_children(logits, 5, scores, score, groups)  # type: ignore[arg-type]
                same(device.top_children(rows, logits, 5, scores, score, groups), want)
        rows.accept(chosen)


@settings(deadline=None)
@given(data=st.data())
def test_draws_are_the_same(data: st.DataObject) -> None:
    trie = tokentrie.Trie.from_sequences([[a, b] for a in range(4) for b in range(4)])
    one = tokentrie.Batch(trie, rows=4, vocab=VOCABULARY, mode="sampled", seed=5)
    other = one.clone()
    logits = logits_of(data, torch.float32)
    np.testing.assert_array_equal(device.select(one, logits), other.select(logits))
    assert one.starved == other.starved


class NoRows(TorchDispatchMode):
    """Fails where as much as a row of logits is copied to the host, as `.cpu()` on a device would."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if "_to_copy" in str(func) and isinstance(made, torch.Tensor):
            assert made.dtype != torch.float32 or made.numel() < VOCABULARY, "a row of logits is copied"
        return made


def test_no_row_is_copied() -> None:
    rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1, 2], [3, 4]]), rows=2, vocab=VOCABULARY)
    logits = torch.randn(2, VOCABULARY)
    with NoRows():
        device.apply(rows, logits)
        device.select(rows, logits)
        device.top_children(rows, logits, 2, score="given")


def test_tensors_elsewhere_come_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """`meta` is a device without memory: what is asked of it shows that `Batch` sends its tensors on."""
    rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1, 2], [3, 4]]), rows=2, vocab=VOCABULARY)
    logits = torch.zeros(2, VOCABULARY, device="meta")
    rows.apply(logits)
    for name in ("select", "top_children"):
        error = LookupError(name)
        monkeypatch.setattr(device, name, lambda *given, error=error: (_ for _ in ()).throw(error))
    with pytest.raises(LookupError, match="select"):
        rows.select(logits)
    with pytest.raises(LookupError, match="top_children"):
        rows.top_children(logits, 2)
    with pytest.raises(TypeError, match="on the CPU"):
        rows.fill_bitmask(torch.zeros(2, 1, dtype=torch.int32, device="meta"))


@pytest.mark.parametrize(
    ("logits", "error"),
    [
        (torch.zeros(2, VOCABULARY, dtype=torch.float64), TypeError),
        (torch.zeros(3, VOCABULARY), tokentrie.errors.OptionError),
        (torch.zeros(2, VOCABULARY - 1), ValueError),
        (torch.zeros(VOCABULARY), ValueError),
        (torch.zeros(VOCABULARY, 2).T, ValueError),
    ],
)
def test_refusals(logits: Any, error: type[Exception]) -> None:
    rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1, 2]]), rows=2, vocab=VOCABULARY)
    for call in (device.apply, device.select, lambda rows, logits: device.top_children(rows, logits, 2)):
        with pytest.raises(error):
            call(rows, logits)


def test_a_free_row_is_not_drawn_from() -> None:
    rows = tokentrie.Batch([None], vocab=VOCABULARY, mode="sampled", seed=1)
    with pytest.raises(tokentrie.errors.OptionError, match="row 0: every token is allowed there"):
        device.select(rows, torch.zeros(1, VOCABULARY))


def test_tensors_on_the_cpu_are_read_where_they_lie() -> None:
    rows = tokentrie.Batch(tokentrie.Trie.from_sequences([[1], [2]]), rows=2, vocab=VOCABULARY)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        logits = torch.zeros(2, VOCABULARY + 3, dtype=dtype, requires_grad=True)
        whole = torch.zeros(4, VOCABULARY + 3, dtype=dtype)
        whole[:, 2] = 1
        assert rows.select(whole[::2]).tolist() == [2, 2]
        rows.apply(whole[::2])
        assert torch.isinf(whole[0]).sum() == VOCABULARY + 1
        assert not torch.isinf(whole[1]).any()
        rows.apply(logits)
        assert torch.isinf(logits.detach()).sum() == 2 * (VOCABULARY + 1)
    rows.accept(torch.tensor([1, 2]))
    rows.reorder(torch.tensor([1, 0, 1]))
    assert [rows.leaf(row).index for row in range(3)] == [1, 0, 1]
    words = torch.zeros(3, 1, dtype=torch.int32)
    rows.fill_bitmask(words)
    assert (words != 0).all()
