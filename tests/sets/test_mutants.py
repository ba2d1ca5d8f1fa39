"""Files that were mutated, signed again and opened without `verify`: every method answers, or raises an error of ours.

A set from a damaged file may be a wrong set. It never ends in a panic, and never in a call that does not return.
"""

from __future__ import annotations

import copy
import pickle
import random
import struct
import zlib
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any as Anything

import numpy as np
import pytest
import tokentrie
from budget import cases
from tokentrie import Batch, Sampler, TokenTrieError, Trie, Vocab
from tokentrie.errors import TrieError
from tokentrie.sets import LiveSet

SIZE = 63
PIECES = [b"a", b"b", b"ab", b"ba", b"aba", b"bab", b" ", *(bytes([byte]) for byte in range(99, 99 + SIZE - 7))]
ROWS = [[1, 2], [1, 2, 3], [9], [4, 4, 4], [4, 5]]
VOCAB = Vocab.from_tokens(PIECES)
TABLE = {"start_token_id": 1, "prefix_weight_dict": {"1": ["5:0.5", "6:-1"], "1_5": ["7:2", "8:1", "2:0.25"]}}

SETS: dict[str, Callable[[], Trie]] = {
    "names": lambda: Trie.from_sequences(ROWS, ["REPLY", "REPLY_THREAD", "STÖP", "", "B"]),
    "equally long": lambda: Trie.from_sequences([[row % 5, row % 7, row] for row in range(30)]),
    "end tokens": lambda: Trie.from_sequences(ROWS).with_end_tokens([60, 61]),
    "several spellings": lambda: Trie.from_strings(VOCAB, ["ab", "abab", "bba", "a b"], tokenization="all"),
    "weights": lambda: Trie.from_prefix_table(TABLE),
}


def signed(data: bytearray) -> bytes:
    """The header's checksum, as somebody would compute it who forges a file."""
    (sections,) = struct.unpack_from("<I", data, 44)
    table = 64 + 32 * min(sections, 16)
    if len(data) >= table:
        struct.pack_into("<I", data, 60, zlib.crc32(data[64:table], zlib.crc32(data[:60])))
    return bytes(data)


def mutant(whole: bytes, draw: random.Random) -> bytes:
    data = bytearray(whole)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        words = len(data) // 4
        one, other = 4 * draw.randrange(11, words), 4 * draw.randrange(11, words)
        match draw.randrange(6):
            case 0:
                place = draw.randrange(len(data))
                data[place] ^= 1 << draw.randrange(8)
            case 1:
                value = draw.choice([0, 1, 2, 3, 7, 62, 63, 64, 2**16, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1])
                struct.pack_into("<I", data, one, value)
            case 2:
                (value,) = struct.unpack_from("<I", data, one)
                struct.pack_into("<I", data, one, (value + draw.choice([-2, -1, 1, 2])) % 2**32)
            case 3:
                data[one : one + 4], data[other : other + 4] = data[other : other + 4], data[one : one + 4]
            case 4:
                data[one : one + 4] = data[other : other + 4]
            case _ if draw.randrange(4) == 0:
                del data[draw.randrange(len(data) // 2, len(data)) :]
            case _:
                data[draw.randrange(64, len(data))] = draw.randrange(256)
    return signed(data)


def walked(sampler: Sampler, draw: random.Random) -> None:
    for _ in range(8):
        _ = (sampler.state, sampler.leaf, sampler.open, sampler.forced())
        sampler.fill_bitmask(np.zeros(2, np.int32))
        sampler.apply(np.zeros(SIZE, np.float32))
        allowed = sampler.allowed()
        if sampler.state == "complete" or not len(allowed):
            return
        sampler.accept(int(draw.choice(list(allowed))))


def batched(trie: Trie, draw: random.Random) -> None:
    batch = Batch(trie, rows=2, vocab=SIZE)
    for _ in range(6):
        logits = np.array([[draw.random() for _ in range(SIZE)] for _ in range(2)], np.float32)
        batch.apply(logits)
        batch.accept(batch.select(logits))


def rows(prefixes: list[list[int]]) -> np.ndarray:
    return np.zeros((len(prefixes), SIZE), np.float32)


def some_tokens(trie: Trie, draw: random.Random) -> list[int]:
    leaf = trie.leaf(draw.randrange(len(trie)))
    tokens = leaf.tokens if leaf else []
    return tokens[: draw.randrange(len(tokens) + 1)]


def some(leaves: Iterable[Anything]) -> list[Anything]:
    return list(islice(leaves, 99))


Call = Callable[[Trie, random.Random, Path], Anything]


def of_filtered(trie: Trie, draw: random.Random, _: Path) -> None:
    left = trie.filtered(deny=[draw.randrange(len(trie))]).filtered(deny=[draw.randrange(len(trie))])
    _ = (left.trie, left.allowed_leaves, len(left), left == left, hash(left), repr(left), [1, 2] in left)
    _ = (left.allowed(), left.forced(), left + "a", "a" + left)
    walked(Sampler(SIZE, left), draw)
    left.to_trie()
    pickle.loads(pickle.dumps(left))


def of_live(trie: Trie, draw: random.Random, _: Path) -> None:
    live = LiveSet(trie, VOCAB)
    live.change(remove=[some_tokens(trie, draw)])
    live.change(add=[[3, 3, 3]] if trie.names is None else Trie.from_sequences([[3, 3, 3]], names=["three"]))
    _ = (live.allowed(), live.patches, len(live), [1, 2] in live, repr(live), live.copy())
    walked(Sampler(SIZE, live), draw)
    live.to_trie()
    live.compact()


def of_arrays(trie: Trie, draw: random.Random, _: Path) -> None:
    for verify in (False, True):
        arrays = trie.arrays(verify=verify)
        for name in dir(arrays):
            if not name.startswith("_") and name != "leaf_at":
                _ = getattr(arrays, name)
        arrays.end_nodes()
        for node in (-1, 0, 3, arrays.nodes, 2**31):
            arrays.leaf_at(node)


METHODS: dict[str, Call] = {
    "allowed": lambda t, d, _: (t.allowed(), t.allowed(some_tokens(t, d))),
    "arrays": of_arrays,
    "complete": lambda t, d, _: (t.complete("RE"), t.complete(b"", None), t.complete("a", vocab=VOCAB)),
    "difference": lambda t, d, _: t.difference(SETS["names"]()),
    "end_tokens": lambda t, d, _: t.end_tokens,
    "end_weight": lambda t, d, _: t.end_weight(some_tokens(t, d)),
    "filter": lambda t, d, _: t.filter(lambda leaf: leaf.index % 2 == 0),
    "filtered": of_filtered,
    "find": lambda t, d, _: (
        [t.find(row) for row in [*ROWS, some_tokens(t, d), [0]]],
        t.find("a", vocab=VOCAB),
        t.find("REPLY"),
    ),
    "fingerprint": lambda t, d, _: t.fingerprint,
    "forced": lambda t, d, _: (t.forced(), t.forced(some_tokens(t, d))),
    "heal_bytes": lambda t, d, _: t.heal_bytes,
    "input_rows": lambda t, d, _: t.input_rows,
    "intersection": lambda t, d, _: (t.intersection(SETS["names"]()), SETS["names"]().intersection(t)),
    "is_tree": lambda t, d, _: t.is_tree,
    "is_weighted": lambda t, d, _: t.is_weighted,
    "isdisjoint": lambda t, d, _: (t.isdisjoint(t), t.isdisjoint(SETS["names"]())),
    "issubset": lambda t, d, _: (t.issubset(SETS["names"]()), t <= t, t < SETS["names"]()),
    "issuperset": lambda t, d, _: (t.issuperset(SETS["names"]()), t >= t, t > SETS["names"]()),
    "leaf": lambda t, d, _: [repr(t.leaf(index)) for index in range(-1, min(len(t), 100) + 1)],
    "leaf_set": lambda t, d, _: (t.leaf_set(["REPLY", "B"]), list(~t.leaf_set([0]))[:9]),
    "leaves": lambda t, d, _: (some(t.leaves()), some(t.leaves(some_tokens(t, d)))),
    "names": lambda t, d, _: t.names,
    "nbytes": lambda t, d, _: t.nbytes,
    "nodes": lambda t, d, _: t.nodes,
    "report": lambda t, d, _: t.report,
    "sample": lambda t, d, _: [t.sample(d.randint(1, min(len(t), 99)), seed=1) for _ in range(3)],
    "save": lambda t, d, folder: t.save(folder / "again.ttrie"),
    "symmetric_difference": lambda t, d, _: (t.symmetric_difference(SETS["end tokens"]()), t ^ SETS["names"]()),
    "to_bytes": lambda t, d, _: t.to_bytes(),
    "to_gbnf": lambda t, d, _: t.to_gbnf(VOCAB),
    "to_json_schema_enum": lambda t, d, _: t.to_json_schema_enum(),
    "to_numpy": lambda t, d, _: (t.to_numpy(), t.to_numpy(table=True)),
    "to_regex": lambda t, d, _: t.to_regex(),
    "to_svg": lambda t, d, _: (t.to_svg(), t.to_svg(VOCAB, 1, 1), t._repr_svg_()),
    "union": lambda t, d, _: (t.union(), t.union(SETS["names"]()), t | t),
    "weights": lambda t, d, _: (t.weights(), t.weights(some_tokens(t, d))),
    "with_end_tokens": lambda t, d, _: t.with_end_tokens([3]).to_bytes(),
    "without_weights": lambda t, d, _: t.without_weights().to_bytes(),
}
MAKERS = {"from_bytes", "from_numpy", "from_payload", "from_prefix_table", "from_sequences", "from_strings", "open"}
OTHERS: dict[str, Call] = {
    "operators": lambda t, d, _: (t == t, hash(t), repr(t), t + "a", "a" + t, [1, 2] in t, some(t)),
    "copies": lambda t, d, _: (copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t.without_weights()))),
    "pickle": lambda t, d, _: pickle.loads(pickle.dumps(t)),
    "levels": lambda t, d, _: tokentrie._native._levels(t),
    "outline": lambda t, d, _: tokentrie._native._outline(t, 2, 2),
    "live": of_live,
    "sampler": lambda t, d, _: walked(Sampler(SIZE, t), d),
    "ended": lambda t, d, _: walked(Sampler(SIZE, t, end_tokens=[61]), d),
    "batch": lambda t, d, _: batched(t, d),
    "choose": lambda t, d, _: tokentrie.sets.choose(rows, t, vocab=SIZE),
    "beams": lambda t, d, _: tokentrie.sets.beam_search(rows, t, 3, vocab=SIZE),
}


def test_no_method_is_left_out() -> None:
    assert {name for name in dir(Trie) if not name.startswith("_")} == METHODS.keys() | MAKERS


def refused(call: Call, trie: Trie, seed: int, folder: Path) -> str | None:
    """What our own error says; any other is one of the test."""
    try:
        call(trie, random.Random(seed), folder)
    except (TokenTrieError, MemoryError) as error:
        return str(error)
    except BaseException as error:  # a panic is no Exception
        pytest.fail(f"seed {seed}: {type(error).__name__}: {error}")
    return None


def opened(path: Path) -> Trie | None:
    try:
        return Trie.open(path)
    except TrieError:
        return None


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.filterwarnings("ignore::tokentrie.errors.TokenTrieWarning")
def test_a_mutant_is_an_error_or_a_set(kind: str, tmp_path: Path) -> None:
    whole, path, tried, errors = SETS[kind]().to_bytes(), tmp_path / "set.ttrie", 0, 0
    for name, call in (METHODS | OTHERS).items():
        assert "damaged" not in (refused(call, Trie.from_bytes(whole), 1, tmp_path) or ""), name
    for seed in range(cases(4000)):
        path.write_bytes(mutant(whole, random.Random(f"{kind} {seed}")))
        if trie := opened(path):
            tried += 1
            errors += sum(refused(call, trie, seed, tmp_path) is not None for call in (METHODS | OTHERS).values())
    assert tried > cases(4000) / 4
    assert errors > tried


def test_damage_is_not_given_checksums_that_are_right(tmp_path: Path) -> None:
    path = tmp_path / "set.ttrie"
    data = bytearray(SETS["names"]().to_bytes())
    data[-1] ^= 1
    path.write_bytes(signed(data))
    trie = Trie.open(path)
    for call in (
        lambda: trie.save(tmp_path / "again.ttrie"),
        trie.to_bytes,
        lambda: trie | trie,
        lambda: trie.sample(1),
    ):
        with pytest.raises(TrieError, match="damaged"):
            call()
    assert not (tmp_path / "again.ttrie").exists()
