"""Walks on a GPU are those on the CPU, wait for nothing, and go into a CUDA graph. Skipped where there is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokentrie
from budget import cases
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'tokentrie[torch]'")
if not torch.cuda.is_available():
    pytest.skip("torch sees no CUDA device", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).parent))

from tokentrie.integrations import device
from tokentrie.integrations import torch as adapter
from tokentrie.integrations.torch import ConstraintRows, TrieTensors

N_VOCAB, ROWS = 24, 4
TOKENS = st.integers(0, N_VOCAB - 1)
LEAVES = st.lists(st.lists(TOKENS, min_size=1, max_size=4), min_size=1, max_size=12)
LOGITS = st.sampled_from([0.0, -1.0, 2.5, float("-inf"), float("nan"), -0.0, 1e30, float("inf")])
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@contextmanager
def no_waiting() -> Iterator[None]:
    """Raises where a call waits for the device."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def same(there: Any, here: Any) -> None:
    """Bit for bit, NaN included."""
    back = there.cpu()
    assert back.dtype == here.dtype
    if back.is_floating_point():
        kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[back.element_size()]
        back, here = back.contiguous().view(kind), here.contiguous().view(kind)
    assert torch.equal(back, here)


@pytest.mark.parametrize("wide", [1024, 2], ids=["narrow", "wide"])
@pytest.mark.parametrize("dtype", sorted(DTYPES))
@settings(max_examples=cases(120), deadline=None)
@given(
    sets=st.lists(LEAVES, min_size=1, max_size=3),
    ends=st.none() | st.lists(TOKENS, min_size=1, max_size=2),
    after=st.sampled_from(["stop", "free"]),
    steps=st.lists(st.lists(TOKENS, min_size=ROWS, max_size=ROWS), max_size=5),
    values=st.lists(LOGITS, min_size=ROWS * (N_VOCAB + 2), max_size=ROWS * (N_VOCAB + 2)),
)
def test_it_is_what_the_cpu_does(
    wide: int, dtype: str, sets: Any, ends: Any, after: str, steps: Any, values: list[float]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter, "WIDE", wide)
        tries = [tokentrie.Trie.from_sequences(leaves) for leaves in sets]
        make: dict[str, Any] = {"vocab": N_VOCAB, "end_tokens": ends, "after": after}
        here, there = TrieTensors(tries, blocking=False, **make), TrieTensors(tries, "cuda", **make)
    numbers = [row % len(tries) for row in range(ROWS)]
    state, on_gpu = here.start(numbers), there.start(numbers)
    logits = torch.tensor(values).reshape(ROWS, N_VOCAB + 2).to(DTYPES[dtype])
    sent, base = logits.cuda(), torch.zeros(ROWS)
    sent_base = base.cuda()
    for taken in [[], *steps]:
        tokens = torch.tensor(taken)
        sent_tokens = tokens.cuda()
        with no_waiting():
            if taken:
                on_gpu = there.step(on_gpu, sent_tokens)
            masked, in_place = there.mask(sent, on_gpu), there.mask_(sent.clone(), on_gpu)
            best = there.top_children(sent, on_gpu, 3, sent_base, score="renormalised")
            children = there.children(on_gpu, capacity=ROWS * N_VOCAB)
            over, leaf, dead = there.finished(on_gpu), there.leaf(on_gpu), there.dead(on_gpu)
        if taken:
            state = here.step(state, tokens)
        same(on_gpu, state)
        same(masked, here.mask(logits, state))
        same(in_place, here.mask(logits, state))
        for one, other in zip(children, here.children(state, capacity=ROWS * N_VOCAB), strict=True):
            same(one, other)
        same(over, here.finished(state))
        same(leaf, here.leaf(state))
        same(dead, here.dead(state))
        want = here.top_children(logits, state, 3, base, score="renormalised")
        # What is equally good may come in another order.
        torch.testing.assert_close(best.scores.cpu(), want.scores, atol=1e-5, rtol=1e-5, equal_nan=True)


def test_a_cuda_graph_walks() -> None:
    """Step, mask and choice captured once and replayed: the values are those of a walk on the CPU."""
    random = np.random.default_rng(3)
    leaves = random.integers(1, 60, (500, 4))
    trie = tokentrie.Trie.from_sequences(leaves.tolist())
    walk = TrieTensors(trie, "cuda", vocab=64, end_tokens=[0])
    states, tokens = walk.start(32), torch.zeros(32, dtype=torch.int64, device="cuda")
    logits = torch.zeros(32, 64, device="cuda")

    def step() -> None:
        tokens.copy_(walk.mask(logits, states).argmax(dim=1))
        states.copy_(walk.step(states, tokens))

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    states.copy_(walk.start(32))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    states.copy_(walk.start(32))
    rows = tokentrie.Batch(trie, rows=32, vocab=64, end_tokens=[0])
    for _ in range(5):
        drawn = torch.from_numpy(random.standard_normal((32, 64)).astype(np.float32))
        logits.copy_(drawn)
        graph.replay()
        chosen = rows.select(drawn.numpy())
        np.testing.assert_array_equal(tokens.cpu().numpy(), chosen)
        rows.accept(chosen)
    assert bool(walk.finished(states).all())
    assert not bool(walk.dead(states).any())


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@settings(max_examples=cases(60), deadline=None)
@given(data=st.data())
def test_rows_of_a_batch_on_the_device(dtype: str, data: st.DataObject) -> None:
    trie = tokentrie.Trie.from_sequences(data.draw(LEAVES))
    ends = data.draw(st.sampled_from([None, [9], [2, 9]]))
    rows = tokentrie.Batch([trie, trie, None, trie], vocab=N_VOCAB, end_tokens=ends)
    for _ in range(3):
        flat = data.draw(st.lists(LOGITS, min_size=ROWS * (N_VOCAB + 2), max_size=ROWS * (N_VOCAB + 2)))
        logits = torch.tensor(flat).to(DTYPES[dtype]).view(ROWS, N_VOCAB + 2)
        here, there = logits.clone(), logits.cuda()
        rows.apply(here)
        device.apply(rows, there)
        same(there, here)
        chosen = rows.select(logits)
        np.testing.assert_array_equal(device.select(rows, logits.cuda()), chosen)
        rows.accept(chosen)


def test_every_kind_of_constraint() -> None:
    vocab = tokentrie.Vocab.from_tokens([bytes([one]) for one in range(256)], eog=[0])
    made = [tokentrie.Regex("[a-c]+x?"), tokentrie.Trie.from_sequences([[97, 98], [99, 100]]), None]
    rows = ConstraintRows(made, vocab)
    random = torch.Generator().manual_seed(1)
    for _ in range(3):
        logits = torch.randn(3, 256, generator=random)
        masked = rows.mask(logits)
        same(rows.mask(logits.cuda()), masked)
        rows.step(masked.argmax(dim=1))


def test_generate_of_transformers() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from tokentrie.integrations.transformers import TokenTrieLogitsProcessor

    torch.manual_seed(2)
    config = transformers.LlamaConfig(
        vocab_size=300,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        eos_token_id=2,
        pad_token_id=2,
        bos_token_id=1,
    )
    model = transformers.LlamaForCausalLM(config).cuda().eval()
    random = np.random.default_rng(4)
    leaves = {tuple(row) for row in random.integers(3, 300, (2000, 4)).tolist()}
    trie = tokentrie.Trie.from_sequences([list(row) for row in leaves])
    prompt = torch.tensor([[1, 5, 9], [1, 6, 7]], device="cuda")
    for options in ({"do_sample": False}, {"do_sample": True}, {"num_beams": 4, "num_return_sequences": 4}):
        processor = TokenTrieLogitsProcessor(trie, prompt_length=3, end_tokens=[2])
        out = model.generate(prompt, max_new_tokens=8, logits_processor=[processor], **options)
        for row in out[:, 3:].tolist():
            assert tuple(row[:4]) in leaves
            assert set(row[4:]) <= {2}
