"""The walk in torch operations is that of the Sampler, on the CPU, and looks at no value where it must not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budget import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from tokentrie import Batch, Regex, Sampler, TokenNotAllowedError, Trie, Vocab
from tokentrie.errors import OptionError, TrieError, VocabularyError

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'tokentrie[torch]'")

sys.path.insert(0, str(Path(__file__).parent))

from no_sync import NoSync
from tokentrie.integrations import torch as adapter
from tokentrie.integrations.torch import COMPLETE, DEAD, FREE, TrieTensors

from examples import run_example

N_VOCAB = 12
TOKENS = st.integers(0, N_VOCAB - 1)
LEAVES = st.lists(st.lists(TOKENS, min_size=1, max_size=4), min_size=1, max_size=12)
LOGITS = st.sampled_from([0.0, -1.0, 2.5, float("-inf"), float("nan"), -0.0, 1e30, float("inf")])
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@pytest.fixture(params=[1024, 2], ids=["narrow", "wide"])
def wide(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """From how many children on a node is walked by its table."""
    monkeypatch.setattr(adapter, "WIDE", request.param)
    return request.param


def vocab_of(eog: list[int]) -> Vocab:
    return Vocab.from_tokens([bytes([65 + token]) for token in range(N_VOCAB)], eog=eog)


def bits(row: torch.Tensor) -> list[int]:
    """What a row holds, NaN included."""
    return row.contiguous().view({2: torch.int16, 4: torch.int32}[row.element_size()]).tolist()


def masked_by_definition(sampler: Sampler, row: torch.Tensor) -> torch.Tensor:
    """The row as the Sampler masks it; what it keeps, with its bits in its own dtype."""
    single = row.float().numpy().copy()
    sampler.apply(single)
    gone = torch.from_numpy(single == -np.inf)
    starved = torch.from_numpy((single == 0) & ~(row.float().numpy() == 0))
    return torch.where(gone, torch.tensor(float("-inf"), dtype=row.dtype), torch.where(starved, 0, row).to(row.dtype))


def step_of(sampler: Sampler | None, token: int) -> Sampler | None:
    """The Sampler after the token; None where it may not come."""
    if sampler is None:
        return None
    after = sampler.clone()
    try:
        after.accept(token)
    except TokenNotAllowedError:
        return None
    return after


def compare(walk: TrieTensors, states: torch.Tensor, samplers: list[Sampler | None], logits: torch.Tensor) -> None:
    finished, leaf, dead = walk.finished(states), walk.leaf(states), walk.dead(states)
    before = logits.clone()
    masked = walk.mask(logits, states)
    assert [bits(row) for row in logits] == [bits(row) for row in before], "mask leaves its argument alone"
    strided = torch.full((len(states), logits.shape[1] + 3), 7.0, dtype=logits.dtype)
    strided[:, : logits.shape[1]] = logits
    in_place = walk.mask_(strided[:, : logits.shape[1]], states)
    assert (strided[:, logits.shape[1] :] == 7).all(), "nothing beyond the rows is written"
    children, roomy = walk.children(states), walk.children(states, capacity=8 * N_VOCAB)
    count = int(children.offsets[-1])
    assert roomy.offsets.tolist() == children.offsets.tolist()
    assert roomy.tokens.tolist() == children.tokens.tolist() + [-1] * (8 * N_VOCAB - count)
    assert roomy.states[:count].tolist() == children.states.tolist()
    for row, sampler in enumerate(samplers):
        assert bits(masked[row]) == bits(in_place[row])
        assert bool(dead[row]) == (sampler is None)
        if sampler is None:
            continue
        assert bool(finished[row]) == (sampler.state == "complete")
        assert int(leaf[row]) == (-1 if sampler.leaf is None or not finished[row] else sampler.leaf.index)
        expected = masked_by_definition(sampler, logits[row])
        expected[N_VOCAB:] = float("-inf")
        assert bits(masked[row]) == bits(expected)
        entries = slice(int(children.offsets[row]), int(children.offsets[row + 1]))
        allowed = sampler.allowed().tolist()
        assert children.tokens[entries].tolist() == (allowed if len(allowed) < N_VOCAB else [])
        for token, state in zip(children.tokens[entries], children.states[entries], strict=True):
            assert state == walk.step(states[row : row + 1], token[None])


@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "waits for nothing"])
@settings(max_examples=cases(120), deadline=None)
@given(
    sets=st.lists(LEAVES, min_size=1, max_size=3),
    ends=st.none() | st.lists(TOKENS, min_size=1, max_size=2),
    eog=st.lists(TOKENS, max_size=2),
    after=st.sampled_from(["stop", "free"]),
    tokens=st.lists(st.lists(TOKENS, min_size=4, max_size=4), max_size=6),
    values=st.lists(LOGITS, min_size=4 * (N_VOCAB + 2), max_size=4 * (N_VOCAB + 2)),
    dtype=st.sampled_from(sorted(DTYPES)),
    follow=st.booleans(),
)
@pytest.mark.usefixtures("wide")
def test_against_the_sampler(
    blocking: bool,
    sets: list[list[list[int]]],
    ends: list[int] | None,
    eog: list[int],
    after: str,
    tokens: list[list[int]],
    values: list[float],
    dtype: str,
    follow: bool,
) -> None:
    vocab, tries = vocab_of(eog), [Trie.from_sequences(leaves) for leaves in sets]
    walk = TrieTensors(tries, vocab=vocab, end_tokens=ends, after=after, blocking=blocking)
    numbers = [row % len(tries) for row in range(4)]
    # A batch without any stop leaves finished rows alone.
    stops = after if eog or ends else "free"
    make: Any = {"end_tokens": ends, "after": stops}
    samplers: list[Sampler | None] = [Sampler(vocab, tries[number], **make) for number in numbers]
    states = walk.start(numbers)
    logits = torch.tensor(values).reshape(4, N_VOCAB + 2).to(DTYPES[dtype])
    compare(walk, states, samplers, logits)
    for taken in tokens:
        if follow:  # a legal token, so that walks get deep
            taken = [
                int(sampler.allowed()[token % len(sampler.allowed())]) if sampler else token
                for sampler, token in zip(samplers, taken, strict=True)
            ]
        states = walk.step(states, torch.tensor(taken))
        samplers = [step_of(sampler, token) for sampler, token in zip(samplers, taken, strict=True)]
        compare(walk, states, samplers, logits)


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.usefixtures("wide")
@settings(max_examples=cases(40), deadline=None)
@given(st.lists(st.integers(0, 6), max_size=8))
def test_a_graph(blocking: bool, choices: list[int]) -> None:
    """Several sequences stand for one value, and several edges lead to one node."""
    vocab = Vocab.from_tokens([b"a", b"b", b"ab", b"ba", b"aba", b"bab", b" ", b"."], eog=[7])
    trie = Trie.from_strings(vocab, ["ab", "abab", "bba"], tokenization="all")
    walk = TrieTensors([Trie.from_sequences([[6]]), trie], vocab=vocab, blocking=blocking, end_tokens=[7])
    alone = TrieTensors(trie, vocab=vocab, blocking=blocking, end_tokens=[7])
    sampler = Sampler(vocab, trie, end_tokens=[7], after="stop")
    states, single = walk.start([1]), alone.start(1)
    for choice in choices:
        token = int(sampler.allowed()[choice % len(sampler.allowed())])
        sampler.accept(token)
        states, single = (one.step(at, torch.tensor([token])) for one, at in ((walk, states), (alone, single)))
        for one, at in ((walk, states), (alone, single)):
            assert one.children(at).tokens.tolist() == sampler.allowed().tolist()
            assert one.leaf(at).tolist() == [-1 if sampler.leaf is None or not one.finished(at) else sampler.leaf.index]


def best_by_definition(
    walk: TrieTensors, logits: torch.Tensor, states: torch.Tensor, base: torch.Tensor, k: int, score: str, rows: range
) -> list[tuple[int, int]]:
    found = []
    for row in rows:
        offsets, tokens, _ = walk.children(states[row : row + 1])
        if walk.finished(states[row : row + 1]) or base[row] == float("-inf"):
            continue
        anything = walk.mask(logits[row : row + 1], states[row : row + 1])[0, :N_VOCAB].isfinite().all()
        over = logits[row, :N_VOCAB] if score == "model" or anything else logits[row][tokens]
        total = float(over.double().logsumexp(0))
        found += [(-(float(base[row]) + float(logits[row, t]) - total), row, int(t)) for t in tokens[: offsets[-1]]]
    return [(row, token) for _, row, token in sorted(found)[:k]]


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("score", ["model", "renormalised"])
@pytest.mark.usefixtures("wide")
@settings(max_examples=cases(60), deadline=None)
@given(LEAVES, st.integers(1, 20), st.sampled_from([1, 2, 4]), st.integers(0, 2**31), st.booleans())
def test_top_children(
    blocking: bool, score: str, leaves: list[list[int]], k: int, groups: int, seed: int, ends: bool
) -> None:
    walk = TrieTensors(Trie.from_sequences(leaves), vocab=N_VOCAB, end_tokens=[3] if ends else None, blocking=blocking)
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(4, N_VOCAB + 1, generator=random)
    states = walk.step(walk.start(4), torch.tensor([leaf[0] for leaf in (leaves * 4)[:4]]))
    states = torch.where(torch.rand(4, generator=random) < 0.4, walk.start(4), states)
    base = torch.where(torch.rand(4, generator=random) < 0.2, float("-inf"), torch.randn(4, generator=random))
    found = walk.top_children(logits, states, k, base, score=score, groups=groups)
    assert len(found.tokens) <= k * groups
    pairs = [pair for pair in zip(found.parents.tolist(), found.tokens.tolist(), strict=True) if pair != (-1, -1)]
    size, expected = 4 // groups, []
    for group in range(groups):
        rows = range(group * size, (group + 1) * size)
        expected += best_by_definition(walk, logits, states, base, k, score, rows)
    assert pairs == expected
    for parent, token, state in zip(found.parents, found.tokens, found.states, strict=True):
        assert parent == -1 or state == walk.step(states[parent][None], token[None])
    if blocking and groups == 1:
        assert len(found.parents) == len(expected), "no filler"


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.usefixtures("wide")
@settings(max_examples=cases(60), deadline=None)
@given(
    LEAVES,
    st.integers(1, 20),
    st.lists(LOGITS, min_size=3 * N_VOCAB, max_size=3 * N_VOCAB),
    st.lists(st.integers(0, 9), max_size=4),
    st.sampled_from(["model", "renormalised"]),
    st.booleans(),
)
def test_against_the_batch(
    blocking: bool, leaves: list[list[int]], k: int, values: list[float], choices: list[int], score: Any, ends: bool
) -> None:
    """Odd logits and ties included."""
    trie, tokens = Trie.from_sequences(leaves), [3] if ends else None
    walk = TrieTensors(trie, vocab=N_VOCAB, end_tokens=tokens, blocking=blocking)
    rows = Batch(trie, rows=3, vocab=N_VOCAB, end_tokens=tokens)
    logits, states = torch.tensor(values).reshape(3, N_VOCAB), walk.start(3)
    base = torch.tensor([0.0, -1.5, float("-inf")])
    for choice in [*choices, 0]:
        masked = logits.clone()
        rows.apply(masked)
        assert [bits(row) for row in walk.mask(logits, states)] == [bits(row) for row in masked]
        assert walk.finished(states).tolist() == rows.finished.tolist()
        parents, chosen, scores = rows.top_children(logits, k, base.double().numpy(), score=score)
        found = walk.top_children(logits, states, k, base, score=score)
        real = found.parents >= 0
        assert found.parents[real].tolist() == parents.tolist()
        assert found.tokens[real].tolist() == chosen.tolist()
        assert np.allclose(found.scores[real].numpy(), scores, rtol=1e-6, atol=1e-5)
        taken = [int(rows.allowed(row)[(choice + row) % len(rows.allowed(row))]) for row in range(3)]
        rows.accept(taken)
        states = walk.step(states, torch.tensor(taken))


def test_ties_odd_logits_and_what_is_starved() -> None:
    walk = TrieTensors(Trie.from_sequences([[1], [2], [3]]), vocab=5)
    rows = torch.tensor([[0, 1.0, 1.0, 1.0, 9], [0, 1.0, float("nan"), float("-inf"), 9]])
    found = walk.top_children(rows, walk.start(2), 9, score="renormalised")
    assert list(zip(found.parents.tolist(), found.tokens.tolist(), strict=True)) == [(1, 1), (0, 1), (0, 2), (0, 3)]
    assert found.scores[0] == 0
    certain = torch.tensor([[0, float("inf"), 1.0, 1.0, 9]])
    assert walk.top_children(certain, walk.start(1), 9).scores.tolist() == [0.0]
    nothing = torch.full((1, 5), float("nan"))
    starved = walk.top_children(nothing, walk.start(1), 9)
    assert (starved.tokens.tolist(), starved.scores.tolist()) == ([1], [float("-inf")])


def calls(walk: TrieTensors, rows: int, device: str) -> Iterator[Any]:
    logits = torch.zeros(rows, N_VOCAB, device=device)
    states = walk.start(rows).to(device)
    for _ in range(3):
        states = walk.step(states, torch.ones(rows, dtype=torch.int64, device=device))
        yield states
        yield from (walk.mask(logits, states), walk.mask_(logits.clone(), states), walk.mask(logits, states, depth=1))
        yield from (walk.finished(states), walk.leaf(states), walk.dead(states))
        yield from walk.children(states, capacity=20)
        best = walk.top_children(logits, states, 3, torch.zeros(rows, device=device), groups=2)
        yield from best
        states = states[torch.where(best.parents < 0, 0, best.parents)[:rows]]


def calls_of(device: str) -> list[Any]:
    found = []
    for ends, after in (([3], "stop"), (None, "stop"), (None, "free")):
        tries = [Trie.from_sequences([[1, 1], [1, 1, 2], [1, 4], [5], [6], [7]]), Trie.from_sequences([[9]])]
        walk = TrieTensors(tries, device, vocab=N_VOCAB, end_tokens=ends, after=after, blocking=False)
        found.append((walk, device))
    return found


@pytest.mark.usefixtures("wide")
def test_no_step_waits_for_the_device() -> None:
    for walk, device in calls_of("cpu"):
        with NoSync():
            shapes = [tuple(value.shape) for value in calls(walk, 4, device)]
        assert len(shapes) > 30


@pytest.mark.usefixtures("wide")
def test_no_value_is_needed_at_all() -> None:
    """On a device that has none, the shapes are those of the CPU: they do not depend on values."""
    for (real, _), (walk, device) in zip(calls_of("cpu"), calls_of("meta"), strict=True):
        assert walk.device.type == "meta"
        assert [value.shape for value in calls(walk, 4, device)] == [value.shape for value in calls(real, 4, "cpu")]


def test_the_guard_notices() -> None:
    with NoSync(), pytest.raises(AssertionError, match="waits"):
        torch.ones(1).item()


def test_a_hint_of_the_depth_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "WIDE", 2)
    leaves = [[a, b, 0] for a in range(6) for b in range(a + 1)]
    walk = TrieTensors(Trie.from_sequences(leaves), vocab=N_VOCAB, blocking=False)
    logits, states = torch.randn(4, N_VOCAB), walk.start(4)
    for depth, tokens in enumerate(([0, 1, 2, 5], [0, 1, 2, 3], [0, 0, 0, 0])):
        assert torch.equal(walk.mask(logits, states), walk.mask(logits, states, depth=depth))
        one, other = (walk.top_children(logits, states, 5, depth=at) for at in (None, depth))
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
        states = walk.step(states, torch.tensor(tokens))


def test_sets_come_and_go() -> None:
    tries = [Trie.from_sequences([[n, n], [n, n, 1]]) for n in range(2, 6)]
    walk = TrieTensors(tries[0], vocab=N_VOCAB, end_tokens=[0])
    keeps = walk.step(walk.start(1), torch.tensor([2]))
    numbers = [walk.add(trie) for trie in tries[1:]]
    assert numbers == [1, 2, 3]
    states = walk.start([1, 2, None, 3])
    assert walk.children(states).tokens.tolist() == [3, 4, 5]
    walk.remove(2)
    with pytest.raises(OptionError, match="no set 2"):
        walk.start([2])
    assert walk.add(Trie.from_sequences([[7]])) == 2, "its number and its room are used again"
    assert walk.children(walk.start([2, 3])).tokens.tolist() == [7, 5]
    large = walk.add(Trie.from_sequences([[a, b, c] for a in range(9) for b in range(9) for c in range(9)]))
    assert len(walk.children(walk.start([large])).tokens) == 9
    assert walk.children(keeps).tokens.tolist() == [2], "states of others do not change"
    walk.remove(0)
    assert walk.children(walk.start([1, 2])).tokens.tolist() == [3, 7]
    for number in (1, 2, 3, large):
        walk.remove(number)
    assert walk.add(tries[0]) == 0
    assert walk.children(walk.start(1)).tokens.tolist() == [2]


def test_free_rows_keep_their_logits() -> None:
    for blocking in (True, False):
        walk = TrieTensors(Trie.from_sequences([[1]]), vocab=4, blocking=blocking)
        states = walk.start([None, 0])
        assert states.tolist() == [FREE, 0]
        masked = walk.mask(torch.arange(10.0).reshape(2, 5), states)
        no = float("-inf")
        assert masked.tolist() == [[0, 1, 2, 3, no], [no, 6, no, no, no]], "what pads the vocabulary may never come"
        states = walk.step(states, torch.tensor([3, 1]))
        assert states.tolist() == [FREE, 1]
        assert walk.finished(states).tolist() == [False, True]
        assert walk.leaf(states).tolist() == [-1, 0]


def test_an_illegal_token_kills_its_row_alone() -> None:
    for blocking in (True, False):
        walk = TrieTensors(Trie.from_sequences([[1, 2], [1, 3]]), vocab=8, end_tokens=[5], blocking=blocking)
        states = walk.step(walk.start(5), torch.tensor([1, 7, -1, 100, -(2**40)]))
        assert states.tolist() == [1, DEAD, DEAD, DEAD, DEAD]
        walk.check(states[:1])
        with pytest.raises(TokenNotAllowedError, match="rows 1, 2, 3, 4 took a token"):
            walk.check(states)
        assert walk.step(states, torch.tensor([2, 5, 5, 5, 5])).tolist() == [2, *[DEAD] * 4]
        # Nothing but what may follow a value: the row ends, and never says anything else.
        masked = walk.mask(torch.zeros(2, 8), states[:2])
        assert masked.isfinite().nonzero().tolist() == [[0, 2], [0, 3], [1, 5]]
        done = walk.step(walk.step(states[:1], torch.tensor([2])), torch.tensor([5]))
        assert done.tolist() == [COMPLETE - 2]


def test_a_set_that_stays_on_the_host(tmp_path: Path) -> None:
    trie = Trie.from_sequences([[a, b] for a in range(5) for b in range(a + 1)])
    trie.save(tmp_path / "set.ttrie")
    mapped = Trie.open(tmp_path / "set.ttrie")
    walk, other = TrieTensors(mapped, vocab=8, resident=False, verify=False), TrieTensors(trie, vocab=8)
    assert walk._sets.tokens.data_ptr() == mapped.arrays().tokens.ctypes.data, "nothing is copied"
    states, logits = walk.step(walk.start(3), torch.tensor([0, 3, 4])), torch.randn(3, 8)
    assert torch.equal(walk.mask(logits, states), other.mask(logits, states))
    assert walk.blocking
    assert walk.nbytes < 1000


def test_weights_are_lent_and_refused_on_a_device() -> None:
    """Rather than left out."""
    weighted = Trie.from_prefix_table({"prefix_weight_dict": {"225": ["7:0.5", "8:1"]}})
    weights = weighted.arrays().weights
    assert weights is not None
    assert weights[1:].tolist() == [0.5, 1.0]
    assert Trie.from_sequences([[7]]).arrays().weights is None
    with pytest.raises(TrieError, match="without_weights"):
        TrieTensors(weighted)
    walk = TrieTensors(weighted.without_weights())
    assert walk.children(walk.start(1)).tokens.tolist() == [7, 8]


def test_rules_have_no_arrays() -> None:
    with pytest.raises(TypeError, match="a Regex has no arrays for a device: LogitsConstraint and Batch take rules"):
        TrieTensors(Regex("[a-z]+"))


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    data = bytearray(Trie.from_sequences([[1, 2], [3]]).to_bytes())
    data[-1] ^= 1
    (tmp_path / "set.ttrie").write_bytes(data)
    damaged = Trie.open(tmp_path / "set.ttrie")
    with pytest.raises(TrieError, match="damaged"):
        TrieTensors(damaged)
    with pytest.raises(TrieError, match="damaged"):
        damaged.arrays()


def test_the_arrays_are_lent_and_read_only() -> None:
    trie = Trie.from_sequences([[1, 2], [1, 2, 3], [9]])
    arrays = trie.arrays()
    assert arrays.tokens.ctypes.data == trie.arrays().tokens.ctypes.data
    for array in (arrays.tokens, arrays.first_child, arrays.inner_terminals):
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    tokens = arrays.tokens
    del trie, arrays
    assert tokens.tolist() == [0, 1, 9, 2, 3], "an array keeps its trie alive"


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda w, s, x: w.mask(x.double(), s), TypeError, "float32, float16 or bfloat16, not torch.float64"),
        (lambda w, s, x: w.mask(x[:1], s), ValueError, r"shape \[2, V\], one row a state, not \[1, 5\]"),
        (lambda w, s, x: w.mask(x[:, :3], s), ValueError, "rows of 3 logits: at least 5"),
        (lambda w, s, x: w.mask(x, s.int()), TypeError, "states must be int64, not torch.int32"),
        (lambda w, s, x: w.mask(x, s[None]), ValueError, r"states must have shape \[rows\]"),
        (lambda w, s, x: w.mask(x.to("meta"), s), ValueError, "logits are on meta, this was made for cpu"),
        (lambda w, s, x: w.mask(x, s.to("meta")), ValueError, "states are on meta, the sets on cpu"),
        (lambda w, s, x: w.step(s, torch.zeros(2)), TypeError, "tokens must be integers, not torch.float32"),
        (lambda w, s, x: w.step(s, torch.zeros(3, dtype=torch.int64)), ValueError, r"tokens have shape \[3\]"),
        (lambda w, s, x: w.step(s, s.to("meta")), ValueError, "tokens are on meta, the sets on cpu"),
        (lambda w, s, x: w.top_children(x, s, 0), OptionError, "the 0 best"),
        (lambda w, s, x: w.top_children(x, s, 1, groups=3), OptionError, "3 groups of 2 rows"),
        (lambda w, s, x: w.top_children(x, s, 1, score="sum"), OptionError, "score must be"),
        (lambda w, s, x: w.top_children(x, s, 1, x), ValueError, r"scores have shape \[2, 5\]"),
        (lambda w, s, x: w.start([4]), OptionError, "no set 4"),
        (lambda w, s, x: w.add(Trie.from_sequences([[5]])), VocabularyError, "token id 5 is outside"),
        (lambda w, s, x: TrieTensors([]), TrieError, "no set to walk"),
        (lambda w, s, x: TrieTensors(Trie.from_sequences([[1]]), vocab=0), VocabularyError, "0 tokens"),
        (lambda w, s, x: TrieTensors(Trie.from_sequences([[1]]), vocab=3, end_tokens=[3]), VocabularyError, "id 3"),
        (lambda w, s, x: TrieTensors(Trie.from_sequences([[1]]), vocab=3, end_tokens=[-3]), VocabularyError, "id -3"),
        (lambda w, s, x: TrieTensors(Trie.from_sequences([[1]]), after="go"), OptionError, "after must be"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    walk = TrieTensors(Trie.from_sequences([[1, 2], [1, 3]]), vocab=5)
    logits = torch.zeros(2, 5)
    with pytest.raises(error, match=match):
        call(walk, walk.start(2), logits)
    assert (logits == 0).all(), "nothing was written"


def test_the_example() -> None:
    run_example(TrieTensors)
