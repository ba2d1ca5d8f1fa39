"""Arrays are checked before anything is written."""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tokentrie import Sampler

V = 10


@pytest.fixture
def sampler(actions: str) -> Sampler:
    return Sampler(V, actions)


def read_only(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False
    return values


def misaligned(shape: int, dtype: type) -> np.ndarray:
    size = np.dtype(dtype).itemsize
    return np.zeros(shape * size + 1, np.uint8)[1:].view(dtype)


# What is wrong: how to make it, the error, what it must name. V = 10.
BAD_ROWS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "short": (lambda: np.zeros(V - 1, np.float32), ValueError, r"9 .*10"),
    "empty": (lambda: np.zeros(0, np.float32), ValueError, r"\b0 .*10"),
    "float64": (lambda: np.zeros(V), TypeError, "float32, not float64"),
    "int32": (lambda: np.zeros(V, np.int32), TypeError, "float32, not int32"),
    "complex": (lambda: np.zeros(V, np.complex64), TypeError, "float32, not complex64"),
    "objects": (lambda: np.zeros(V, object), TypeError, "float32, not object"),
    "other byte order": (lambda: np.zeros(V, np.dtype("f4").newbyteorder()), TypeError, "float32, not [<>]f4"),
    "every other": (lambda: np.zeros(2 * V, np.float32)[::2], ValueError, r"contiguous.*shape \[10\], strides \[8\]"),
    "reversed": (lambda: np.zeros(V, np.float32)[::-1], ValueError, r"contiguous.*strides \[-4\]"),
    "misaligned": (lambda: misaligned(V, np.float32), ValueError, "aligned"),
    "scalar": (lambda: np.zeros((), np.float32), ValueError, r"shape .*\[\]"),
    "cube": (lambda: np.zeros((1, 1, V), np.float32), ValueError, r"shape .*\[1, 1, 10\]"),
    "list": (lambda: [0.0] * V, TypeError, "float32 array, not list"),
    "none": (lambda: None, TypeError, "float32 array, not NoneType"),
    "bytes of another type": (lambda: array.array("d", [0.0] * V), TypeError, "float32, not float64"),
    "no number": (lambda: b"0" * 4 * V, TypeError, "float32, not uint8"),
}
BAD_TO_WRITE: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "float16": (lambda: np.zeros(V, np.float16), TypeError, "float32, not float16"),
    "read-only": (lambda: read_only(np.zeros(V, np.float32)), ValueError, "cannot be written"),
    "read-only rows": (lambda: read_only(np.zeros((2, V), np.float32)), ValueError, "cannot be written"),
    "read-only buffer": (lambda: np.zeros(V, np.float32).data.toreadonly(), ValueError, "cannot be written"),
    "broadcast": (lambda: np.broadcast_to(np.zeros(V, np.float32), (2, V)), ValueError, "overlap|cannot be written"),
    "overlapping": (
        lambda: np.lib.stride_tricks.as_strided(np.zeros(2 * V, np.float32), (3, V), (4, 4)),
        ValueError,
        "overlap",
    ),
    "Fortran order": (lambda: np.zeros((3, V), np.float32, order="F"), ValueError, "contiguous"),
    "short rows": (lambda: np.zeros((3, V - 1), np.float32), ValueError, "rows of 9 entries: at least 10"),
}


@pytest.mark.parametrize(("make", "error", "says"), BAD_ROWS.values(), ids=BAD_ROWS)
@pytest.mark.parametrize("method", ["sample", "advance", "apply"])
def test_bad_rows(sampler: Sampler, method: str, make: Callable[[], Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        getattr(sampler, method)(make())
    assert sampler.accepted == sampler.starved == 0


@pytest.mark.parametrize(("make", "error", "says"), BAD_TO_WRITE.values(), ids=BAD_TO_WRITE)
def test_bad_to_write(sampler: Sampler, make: Callable[[], Any], error: type[Exception], says: str) -> None:
    rows = make()
    with pytest.raises(error, match=says):
        sampler.apply(rows)
    assert not np.any(np.asarray(rows)), "nothing was written"


@pytest.mark.parametrize("method", ["sample", "advance"])
def test_only_one_row_is_sampled(sampler: Sampler, method: str) -> None:
    with pytest.raises(ValueError, match=r"shape \[V\], not \[2, 10\]"):
        getattr(sampler, method)(np.zeros((2, V), np.float32))


def test_rows_that_are_read_need_not_be_writable(sampler: Sampler, row: np.ndarray) -> None:
    assert sampler.sample(read_only(row)) == 5
    assert sampler.sample(np.broadcast_to(np.float32(1), V).copy()) == 2


def masked(rows: np.ndarray) -> np.ndarray:
    expected = np.full_like(rows, -np.inf)
    expected[..., [2, 5]] = rows[..., [2, 5]]
    return expected


@pytest.mark.parametrize("width", [V, V + 1, V + 54])
def test_rows_may_be_wider_than_the_vocabulary(sampler: Sampler, width: int) -> None:
    for rows in (np.random.rand(width), np.random.rand(3, width)):
        row = rows.astype(np.float32)
        expected = masked(row)
        sampler.apply(row)
        assert row.tobytes() == expected.tobytes()


def test_rows_may_be_strided(sampler: Sampler) -> None:
    whole = np.random.rand(6, V + 7).astype(np.float32)
    for part in (np.s_[::2, :V], np.s_[::-1, :], np.s_[4:1:-2, 2 : V + 2], np.s_[:0], np.s_[1:2, :V]):
        rows = whole.copy()
        expected = rows.copy()
        expected[part] = masked(rows[part])
        sampler.apply(rows[part])
        assert rows.tobytes() == expected.tobytes(), "nothing outside the rows is touched"


def test_kept_logits_keep_their_exact_bits(sampler: Sampler) -> None:
    row = np.zeros(V, np.float32)
    row.view(np.uint32)[[2, 5]] = [0x7FC12345, 0x80000000]  # a NaN with a payload, and -0.0
    sampler.apply(row)
    assert row.view(np.uint32)[[2, 5]].tolist() == [0x7FC12345, 0x80000000]


def test_anything_with_the_buffer_protocol(sampler: Sampler) -> None:
    values = array.array("f", range(V))
    assert sampler.sample(values) == sampler.sample(memoryview(values)) == 5
    sampler.apply(values)
    assert [i for i, value in enumerate(values) if value > float("-inf")] == [2, 5]
    words = array.array("i", [7])
    sampler.fill_bitmask(words)
    assert words[0] == 1 << 2 | 1 << 5


def test_subclasses_and_maps(sampler: Sampler, tmp_path: Any) -> None:
    rows = np.memmap(tmp_path / "rows", np.float32, "w+", shape=(2, V))
    sampler.apply(rows)
    assert np.flatnonzero(rows[1] > -np.inf).tolist() == [2, 5]


def test_no_array_is_held_across_calls(sampler: Sampler) -> None:
    values = array.array("f", range(V))
    row = np.arange(V, dtype=np.float32)
    sampler.apply(values)
    sampler.apply(row)
    sampler.sample(row)
    values.append(1.0)  # an exported buffer cannot grow
    row.resize(2 * V, refcheck=True)


BAD_WORDS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "short": (lambda: np.zeros(1, np.int32), ValueError, "rows of 1 entries: at least 2"),
    "unsigned": (lambda: np.zeros(2, np.uint32), TypeError, "int32, not uint32"),
    "int64": (lambda: np.zeros(2, np.int64), TypeError, "int32, not int64"),
    "read-only": (lambda: read_only(np.zeros(2, np.int32)), ValueError, "cannot be written"),
    "every other": (lambda: np.zeros(4, np.int32)[::2], ValueError, "contiguous"),
    "list": (lambda: [0, 0], TypeError, "int32 array, not list"),
    "cube": (lambda: np.zeros((1, 1, 2), np.int32), ValueError, "shape"),
}


@pytest.mark.parametrize(("make", "error", "says"), BAD_WORDS.values(), ids=BAD_WORDS)
def test_bad_words(actions: str, make: Callable[[], Any], error: type[Exception], says: str) -> None:
    words = make()
    with pytest.raises(error, match=says):
        Sampler(40, actions).fill_bitmask(words)
    assert not np.any(np.asarray(words)), "nothing was written"


def test_words(actions: str) -> None:
    words = np.full((2, 4), -1, np.int32)
    sampler = Sampler(40, actions)
    sampler.fill_bitmask(words[:, :3])
    assert words.tolist() == [[1 << 2 | 1 << 5, 0, 0, -1]] * 2
    sampler.deactivate()
    sampler.fill_bitmask(words)
    assert words.tolist() == [[-1, 255, 0, 0]] * 2, "every bit of the vocabulary and no other"
