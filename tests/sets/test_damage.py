"""Files that were damaged and never verified: no face lets everything come, and all say how to find the damage."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any as Anything

import numpy as np
import pytest
from models import TINY
from tokentrie import Batch, Model, Sampler, TokenTrieError, Trie, Vocab
from tokentrie.errors import TrieError

SIZE = 63
"""Leaves 31 bits over the words of a mask."""
ROWS = [[1, 2], [1, 2, 3], [9], [4, 4, 4], [4, 5]]
PIECES = [b"a", b"b", b"ab", b"ba", b"aba", b"bab", b" "]
VALUES = ["cancel_meeting", "cancel_meeting_series"]
"""Whatever is chosen, most of the nodes are passed."""

CHILDREN, LAST_CHILDREN = 2, 1
"""The section that says which children a node has, and how many of its numbers are no node's."""


def childless(data: bytes) -> Iterator[bytes]:
    """The file with a node that lost its children: once for every node, with the header's checksum right."""
    (sections,) = struct.unpack_from("<I", data, 44)
    table = struct.iter_unpack("<IIQQQ", data[64 : 64 + 32 * sections])
    (begin, length) = next((offset, length) for kind, _, offset, length, _ in table if kind == CHILDREN)
    numbers = np.frombuffer(data[begin : begin + length], "<u4")
    for node in range(len(numbers) - LAST_CHILDREN):
        for first, last in ((numbers[node], numbers[node]), (numbers[node + 1], numbers[node + 1])):
            forged = numbers.copy()
            forged[node : node + 2] = first, last
            if (forged != numbers).any():
                yield data[:begin] + forged.tobytes() + data[begin + length :]


def damaged(trie: Trie, folder: Path) -> Iterator[Trie]:
    """Those of the files that can be opened without looking at all of them."""
    for number, data in enumerate(childless(trie.to_bytes())):
        path = folder / f"{number}.ttrie"
        path.write_bytes(data)
        with pytest.raises(TrieError):
            Trie.open(path, verify=True)
        with suppress(TrieError):
            yield Trie.open(path)


def graph() -> Trie:
    return Trie.from_strings(Vocab.from_tokens(PIECES), ["ab", "abab", "bba"], tokenization="all")


SETS: dict[str, Callable[[], Trie]] = {
    "tree": lambda: Trie.from_sequences(ROWS, ["REPLY", "REPLY_THREAD", "STOP", "", "B"]),
    "unnamed": lambda: Trie.from_sequences([[5, 6], [5, 7, 8], [62]]),
    "graph": graph,
}


def faces(sampler: Sampler) -> list[Callable[[], Anything]]:
    """What chooses or shows what may come. Each on a copy, with buffers that nothing may be written to."""
    logits, words = np.zeros(SIZE, np.float32), np.full(2, 7, np.int32)

    def unwritten(write: Callable[[Anything], None], buffer: np.ndarray) -> None:
        before = buffer.copy()
        try:
            write(buffer)
        finally:
            assert (buffer == before).all()

    copy = sampler.clone()
    return [
        lambda: unwritten(copy.apply, logits),
        lambda: unwritten(copy.fill_bitmask, words),
        lambda: copy.sample(logits),
        lambda: copy.advance(logits),
        copy.allowed,
        *(lambda token=token: copy.accept(token) for token in (0, 1, SIZE - 1)),
    ]


def walk(trie: Trie, **options: Anything) -> int:
    """Visits every state that can be reached, at most 300, and returns how many of them allowed nothing."""
    waiting, looked, closed = [Sampler(SIZE, trie, **options)], 0, 0
    while waiting and looked < 300:
        sampler = waiting.pop()
        looked += 1
        if sampler.state == "complete":
            assert sampler.leaf is not None or len(sampler.allowed()) == SIZE
            assert sampler.leaf is None or sampler.leaf.tokens
            continue
        assert sampler.state == "active"
        try:
            allowed = sampler.allowed().tolist()
        except TrieError:
            allowed = []
        if sampler.open:
            sampler.fill_bitmask(words := np.zeros(2, np.int32))
            assert words.view(np.uint32).tolist() == [2**32 - 1, 2**31 - 1]
        elif not allowed:
            closed += 1
            assert sampler.forced().size == 0
            for face in faces(sampler):
                with pytest.raises(TrieError, match=r"damaged.*verify=True"):
                    face()
            assert sampler.state == "active"
            continue
        else:
            assert len(allowed) < SIZE
            sampler.apply(row := np.zeros(SIZE, np.float32))
            assert np.flatnonzero(row == 0).tolist() == allowed
        for token in allowed:
            step = sampler.clone()
            step.accept(token)
            waiting.append(step)
    return closed


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("options", [{}, {"end_tokens": [61]}, {"end_tokens": [60], "after": "stop"}], ids=str)
def test_no_walk_ends_where_everything_is_allowed(name: str, options: dict[str, Anything], tmp_path: Path) -> None:
    trie = SETS[name]()
    assert walk(trie, **options) == 0
    closed = [walk(opened, **options) for opened in damaged(trie, tmp_path)]
    assert sum(closed) > 0, "some walk comes to where nothing follows"


def test_a_leaf_is_told_from_damage(tmp_path: Path) -> None:
    """The state itself is not enough: after the last token of a value everything may come."""
    SETS["tree"]().save(path := tmp_path / "set.ttrie")
    sampler = Sampler(SIZE, Trie.open(path))
    sampler.accept([1, 2, 3])
    assert (sampler.state, len(sampler.allowed())) == ("complete", SIZE)


def test_all_of_a_vocabulary_that_leaves_31_bits_over() -> None:
    for size in (1, 31, 32, 33, 63, 64, 95):
        sampler = Sampler(size, Trie.from_sequences([[0]]))
        sampler.accept(0)
        words = np.full(4, 5, np.int32)
        sampler.fill_bitmask(words)
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        assert bits[:size].all(), size
        assert not bits[size:].any(), size


def refusals(call: Callable[[Trie], None], trie: Trie, folder: Path) -> int:
    """How many of the damaged sets are refused with a way to find the damage; the others must do."""

    def refused(opened: Trie) -> bool:
        try:
            call(opened)
        except TrieError as error:
            return "verify=True" in str(error) or pytest.fail(f"does not say how to find the damage: {error}")
        return False

    return sum(map(refused, list(damaged(trie, folder))[:60]))


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(TINY, n_ctx=256, n_threads=1)


@pytest.mark.parametrize("tokenization", ["canonical", "all"])
class TestModel:
    @pytest.mark.model
    @pytest.mark.parametrize("skip_ahead", [True, False])
    @pytest.mark.parametrize("mode", ["greedy", "sampled"])
    def test_generate(
        self, model: Model, tokenization: Anything, skip_ahead: bool, mode: Anything, tmp_path: Path
    ) -> None:
        hot: Anything = {"temperature": 3.0} if mode == "sampled" else {}

        def call(opened: Trie) -> None:
            out = model.generate("Next: ", opened, mode=mode, max_tokens=40, skip_ahead=skip_ahead, seed=1, **hot)
            assert (out.finish, out.leaf is None) == ("span", False)

        call(trie := Trie.from_strings(model.vocab, VALUES, tokenization=tokenization))
        assert refusals(call, trie, tmp_path) > 0

    @pytest.mark.model
    def test_choose(self, model: Model, tokenization: Anything, tmp_path: Path) -> None:
        def call(opened: Trie) -> None:
            assert model.choose("Next: ", opened).mass <= 1.0 + 1e-6

        call(trie := Trie.from_strings(model.vocab, VALUES, tokenization=tokenization))
        assert refusals(call, trie, tmp_path) > 0


def test_a_file_that_is_changed_while_it_is_used(tmp_path: Path) -> None:
    """Ids that are raised in place: an error, or no token of it, and never a read outside of the row."""
    path = tmp_path / "set.ttrie"
    Trie.from_sequences(ROWS).save(path)
    data = path.read_bytes()
    (sections,) = struct.unpack_from("<I", data, 44)
    table = list(struct.iter_unpack("<IIQQQ", data[64 : 64 + 32 * sections]))
    for raised in (SIZE, 2**30, 2**32 - 1):
        path.write_bytes(data)
        sampler, batch = Sampler(SIZE, Trie.open(path)), Batch(Trie.open(path), rows=2, vocab=SIZE)
        with path.open("r+b") as file:
            for _, _, offset, length, _ in table:
                file.seek(offset)
                file.write(struct.pack("<I", raised) * (length // 4))
        for call in (
            lambda logits, sampler=sampler: sampler.apply(logits[0]),
            lambda logits, sampler=sampler: sampler.sample(logits[0]),
            lambda logits, batch=batch: batch.apply(logits),
            lambda logits, batch=batch: batch.select(logits),
            lambda _, sampler=sampler: sampler.allowed(),
            lambda _, sampler=sampler: sampler.forced(),
        ):
            logits = np.zeros((2, SIZE), np.float32)
            with suppress(TokenTrieError):
                call(logits)
        with pytest.raises(TokenTrieError, match="damaged, or was changed while it was used"):
            sampler.sample(np.zeros(SIZE, np.float32))
