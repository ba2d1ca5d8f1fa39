"""vLLM's own classes and loaders, with real tensors on the CPU: no engine and no GPU take part.

Its two interfaces, loaders, contexts, batch updates and sampling parameters are the real ones. What stands in for the
model runner is `Runner`: the tokens of its slots, which vLLM writes with kernels for a GPU.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tokentrie
from tokentrie import Sampler, TokenNotAllowedError, Trie

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("vllm", reason="vllm is not installed: pip install 'tokentrie[vllm]'")
v1 = pytest.importorskip("vllm.v1.sample.logits_processor", exc_type=ImportError)
v2 = pytest.importorskip("vllm.v1.worker.gpu.sample.logits_processor", exc_type=ImportError)

sys.path.insert(0, str(Path(__file__).parent))

from no_sync import NoSync
from tokentrie.integrations import _vllm_requests as requests
from tokentrie.integrations import vllm as adapter
from tokentrie.integrations._shared import rows
from tokentrie.integrations._shared.request_sets import RequestedConstraint
from tokentrie.integrations.vllm import RequestError, RequestSets, SlotWalk
from vllm import SamplingParams
from vllm.exceptions import VLLMValidationError

from examples import run_example, run_page

pytestmark = pytest.mark.filterwarnings("ignore")

N_VOCAB, END, SLOTS = 40, 2, 6
NAME = "tokentrie.integrations.vllm:TokenTrieProcessor"
LEAVES = {
    "colours": [[5, 6], [5, 7, 8], [9], [5, 7, 8, 10]],
    "tools": [[11, 12, 13], [11, 14], [20, 21, 22, 23, 24, 25]],
}


@pytest.fixture(autouse=True)
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "sets"
    folder.mkdir()
    for name, leaves in LEAVES.items():
        Trie.from_sequences(leaves).save(folder / f"{name}.ttrie")
    monkeypatch.setenv("TOKENTRIE_SETS", str(folder))
    monkeypatch.delenv("TOKENTRIE_TOKENIZER", raising=False)
    adapter._SETS.clear()
    return folder


def params(**extra: Any) -> Any:
    return SamplingParams(extra_args=extra or None)


def config(drafts: int = 0) -> Any:
    hf = SimpleNamespace(eos_token_id=END)
    model = SimpleNamespace(hf_text_config=hf, hf_config=hf, get_vocab_size=lambda: N_VOCAB)
    scheduler = SimpleNamespace(max_num_seqs=SLOTS)
    speculative = SimpleNamespace(num_speculative_tokens=drafts) if drafts else None
    return SimpleNamespace(model_config=model, scheduler_config=scheduler, speculative_config=speculative)


class Buffer:
    """A buffer of the model runner: on the device, and for some on the host."""

    def __init__(self, *shape: int) -> None:
        self.gpu = torch.zeros(*shape, dtype=torch.int32)
        self.np = self.gpu.numpy()


class Runner:
    """Slots with requests, their committed tokens and drafts."""

    def __init__(self, drafts: int, *, blocking: bool) -> None:
        self.drafts = drafts
        self.tokens, self.prompt, self.prefill, self.total = (
            Buffer(SLOTS, 64),
            Buffer(SLOTS),
            Buffer(SLOTS),
            Buffer(SLOTS),
        )
        states = v2.LogitsProcRequestState(
            device=torch.device("cpu"),
            max_num_reqs=SLOTS,
            vocab_size=N_VOCAB,
            all_token_ids=self.tokens,
            prompt_len=self.prompt,
            prefill_len=self.prefill,
            total_len=self.total,
        )
        (self.processor,) = v2.build_custom_logits_processors(config(drafts), states, False, [NAME])
        self.processor.walk = SlotWalk("cpu", SLOTS, N_VOCAB, [END], blocking=blocking)
        self.samplers: dict[int, Sampler | None] = {}

    def add(
        self, slot: int, prompt: list[int], output: list[int], extra: dict[str, Any], sampler: Sampler | None
    ) -> None:
        ids = prompt + output
        self.tokens.np[slot] = 33  # what stood there before
        self.tokens.np[slot, : len(ids)] = ids
        self.prompt.np[slot], self.prefill.np[slot] = len(prompt), len(ids)
        self.total.np[slot] = len(ids)
        assert self.processor.add_request(slot, params(**extra)) == (sampler is not None)
        if sampler is not None:
            sampler.accept(output)
        self.samplers[slot] = sampler

    def rows(self, order: list[int], drafts: dict[int, list[int]]) -> tuple[Any, Any]:
        """Logits and the context of a step, in vLLM's layout."""
        rows, place, inputs, position = [], [], [], []
        for slot in order:
            last = int(self.total.np[slot]) - 1
            for nth, token in enumerate([int(self.tokens.np[slot, last]), *drafts.get(slot, [])]):
                rows.append(slot)
                place.append(nth)
                inputs.append(token)
                position.append(last + nth)
        context = v2.LogitsContext(
            expanded_idx_mapping=torch.tensor(rows, dtype=torch.int32),
            idx_mapping=torch.tensor(order, dtype=torch.int32),
            idx_mapping_np=np.array(order, dtype=np.int32),
            expanded_local_pos=torch.tensor(place, dtype=torch.int32),
            input_ids=torch.tensor(inputs, dtype=torch.int32),
            pos=torch.tensor(position),
            seq_lens_upper_bound_np=self.total.np[order] + self.drafts,
        )
        return torch.randn(len(rows), N_VOCAB), context

    def commit(self, slot: int, tokens: list[int]) -> None:
        at = int(self.total.np[slot])
        self.tokens.np[slot, at : at + len(tokens)] = tokens
        self.total.np[slot] += len(tokens)


def sampler_of(name: str) -> Sampler:
    return Sampler(N_VOCAB, Trie.from_sequences(LEAVES[name]), end_tokens=[END], after="stop")


def expected(logits: Any, sampler: Sampler | None, drafts: list[int]) -> Any:
    """The row as the Sampler masks it; None after a draft that may not come, which is rejected anyway."""
    row = logits.numpy().copy()
    if sampler is not None:
        copy = sampler.clone()
        try:
            copy.accept(drafts)
        except TokenNotAllowedError:
            return None
        copy.apply(row)
    return torch.from_numpy(row)


class MixedSets(RequestSets):
    """Half of the sets as constraints of another kind that allow the same: these are walked on the host."""

    def asked(self, extra: Any) -> Any:
        asked = super().asked(extra)
        if asked is None or extra["tokentrie"] != "tools":
            return asked
        return RequestedConstraint(tokentrie.rules.Sequence(asked.constraint), asked.after, N_VOCAB)


@pytest.fixture
def mixed(request: pytest.FixtureRequest, sets: Path) -> bool:
    if request.param:
        adapter._SETS.append(MixedSets(sets))
    return bool(request.param)


KINDS = pytest.mark.parametrize("mixed", [False, True], ids=["tries", "mixed"], indirect=True)


@KINDS
@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "waits for nothing"])
@pytest.mark.parametrize("drafts", [0, 3])
@pytest.mark.parametrize("seed", range(6))
def test_v2_against_samplers(drafts: int, blocking: bool, seed: int, mixed: bool) -> None:
    """Requests come, are preempted and go; rows are in another order at every step, and some have drafts."""
    random, runner = np.random.default_rng(seed), Runner(drafts, blocking=blocking)
    for step in range(25):
        for slot in range(SLOTS):
            sampler = runner.samplers.get(slot)
            done = sampler is not None and sampler.state == "complete"
            if slot not in runner.samplers or done or random.random() < 0.05:
                name = [None, "colours", "tools"][random.integers(3)]
                made = sampler_of(name) if name else None
                # A preempted request comes back with what it has written.
                output: list[int] = []
                while made is not None and random.random() < 0.3 and len(output) < 2:
                    ahead = made.clone()
                    ahead.accept(output)
                    output.append(int(random.choice(ahead.allowed())))
                prompt = random.integers(0, N_VOCAB, 1 + random.integers(5)).tolist()
                runner.add(slot, prompt, output, {"tokentrie": name} if name else {}, made)
        runner.processor.apply_staged_writes()
        order = random.permutation(SLOTS)[: 2 + random.integers(SLOTS - 1)].tolist()
        drafted = {}
        for slot in order:
            drafted[slot] = random.integers(0, N_VOCAB, random.integers(drafts + 1)).tolist()
            sampler = runner.samplers[slot]
            ahead = sampler.clone() if sampler else None
            for nth in range(len(drafted[slot])):  # mostly drafts that may come
                if ahead is not None and random.random() < 0.8:
                    drafted[slot][nth] = int(random.choice(ahead.allowed()))
                    ahead.accept(drafted[slot][nth])
                else:
                    break
        logits, context = runner.rows(order, drafted)
        before = logits.clone()
        if blocking or mixed:
            masked = runner.processor.apply(logits, context)
        else:
            with NoSync():
                masked = runner.processor.apply(logits, context)
        for row, (slot, nth) in enumerate(
            zip(context.expanded_idx_mapping.tolist(), context.expanded_local_pos.tolist(), strict=True)
        ):
            wanted = expected(before[row], runner.samplers[slot], drafted[slot][:nth])
            if wanted is not None:
                assert torch.equal(masked[row], wanted), (step, slot, nth)
            elif not (mixed and slot in runner.processor.walk.on_host):
                assert not masked[row, [t for t in range(N_VOCAB) if t != END]].isfinite().any()
        # What is accepted: the longest part of the drafts that may come, or less, and one more token.
        for slot in order:
            sampler, taken = runner.samplers[slot], []
            for draft in drafted[slot][: random.integers(len(drafted[slot]) + 1)]:
                if sampler is not None and draft not in sampler.allowed():
                    break
                taken.append(draft)
                if sampler is not None:
                    sampler.accept(draft)
            last = int(random.choice(sampler.allowed())) if sampler is not None else 7
            if sampler is not None:
                sampler.accept(last)
            runner.commit(slot, [*taken, last])


def test_v2_requests_without_a_set_are_left_alone() -> None:
    runner = Runner(0, blocking=False)
    runner.add(3, [1], [], {}, None)
    runner.processor.apply_staged_writes()
    logits, context = runner.rows([3], {})
    assert runner.processor.apply(logits, context) is logits
    assert logits.isfinite().all()


def test_a_request_with_an_unknown_set_fails_alone() -> None:
    validate = v2.build_custom_logits_processors_params_validator([NAME])
    validate(params(tokentrie="colours"))
    validate(params(other=3))
    validate(SamplingParams())
    with pytest.raises(VLLMValidationError, match="unknown set 'colors': the folder has colours, tools"):
        validate(params(tokentrie="colors"))
    with pytest.raises(VLLMValidationError, match="unknown set 'colors'"):
        v1.validate_logits_processors_parameters([NAME], params(tokentrie={"set": "colors"}))


def test_a_set_that_vanishes_ends_its_request_alone(sets: Path) -> None:
    runner = Runner(0, blocking=True)
    (sets / "tools.ttrie").unlink()
    runner.add(0, [1], [], {"tokentrie": "colours"}, sampler_of("colours"))
    assert runner.processor.add_request(1, params(tokentrie="tools"))
    runner.prompt.np[1] = runner.prefill.np[1] = runner.total.np[1] = 1
    runner.processor.apply_staged_writes()
    logits, context = runner.rows([0, 1], {})
    masked = runner.processor.apply(logits, context)
    assert [row.isfinite().nonzero().flatten().tolist() for row in masked] == [[5, 9], [END]]


def batch_update(builder: Any, size: int) -> Any:
    return builder.get_and_reset(size)


@KINDS
@pytest.mark.parametrize("seed", range(8))
def test_v1_against_samplers(seed: int, mixed: bool) -> None:
    """vLLM's own batch update builder says what was removed, added, moved and exchanged."""
    random, builder = np.random.default_rng(seed), v1.BatchUpdateBuilder()
    processors = v1.build_logitsprocs(
        SimpleNamespace(**{**vars(config()), "speculative_config": None}), torch.device("cpu"), False, True
    )
    assert list(processors.all) == [], "a pooling model has none"
    made = adapter.TokenTrieProcessor(config(), torch.device("cpu"), False)
    loaded = v1.LogitsProcessors([made])
    assert loaded.non_argmax_invariant == [made], "greedy requests need it too"
    batch: list[tuple[Sampler | None, list[int]]] = []
    for _ in range(25):
        # Removed places are filled by new requests, or by the last ones of the batch.
        gone = [place for place in range(len(batch)) if random.random() < 0.2]
        for place in gone:
            builder.removed_append(place)
        while random.random() < 0.6 and (len(batch) < SLOTS or gone):
            name = [None, "colours", "tools"][random.integers(3)]
            request = (sampler_of(name) if name else None, [])
            place = builder.pop_removed()
            if place is None:
                if len(batch) == SLOTS:
                    break
                place = len(batch)
                batch.append(request)
            else:
                gone.remove(place)
                batch[place] = request
            builder.added.append((place, params(tokentrie=name) if name else params(), [1, 2], request[1]))
        for place in sorted(gone):  # vLLM condenses: the last request moves into the lowest hole
            while batch and len(batch) - 1 in gone:
                gone.remove(len(batch) - 1)
                batch.pop()
            if place >= len(batch):
                continue
            builder.moved.append((len(batch) - 1, place, v1.MoveDirectionality.UNIDIRECTIONAL))
            batch[place] = batch.pop()
            gone.remove(place)
        if len(batch) > 1 and random.random() < 0.4:
            one, other = random.choice(len(batch), 2, replace=False).tolist()
            builder.moved.append((one, other, v1.MoveDirectionality.SWAP))
            batch[one], batch[other] = batch[other], batch[one]
        made.update_state(batch_update(builder, len(batch)))
        if not batch:
            continue
        logits = torch.randn(len(batch), N_VOCAB)
        before = logits.clone()
        masked = made.apply(logits)
        for place, (sampler, outputs) in enumerate(batch):
            assert torch.equal(masked[place], expected(before[place], sampler, []))
            token = int(random.choice(sampler.allowed())) if sampler is not None else 7
            if sampler is not None:
                sampler.accept(token)
            outputs.append(token)  # the engine appends to the list that it gave


@pytest.mark.parametrize("name", ["colours", "tools"])
@KINDS
@pytest.mark.parametrize("withheld", [[-1], [5, -1], [-1, -1]])
def test_v1_ends_a_request_whose_tokens_are_withheld(name: str, withheld: list[int], mixed: bool) -> None:
    """As vLLM does with asynchronous scheduling, where it was not told that a processor wants them."""
    made = adapter.TokenTrieProcessor(config(), torch.device("cpu"), False)
    builder, outputs, other = v1.BatchUpdateBuilder(), [], []
    builder.added += [(0, params(tokentrie=name), [1], outputs), (1, params(tokentrie="colours"), [1], other)]
    made.update_state(builder.get_and_reset(2))
    made.apply(torch.zeros(2, N_VOCAB))
    outputs += withheld
    other.append(5)
    for _ in range(2):
        masked = made.apply(torch.zeros(2, N_VOCAB))
        assert [row.isfinite().nonzero().flatten().tolist() for row in masked] == [[END], [6, 7]]
        outputs[len(outputs) - 1] = 6  # too late


def test_v1_ends_a_request_whose_tokens_were_taken_back() -> None:
    made = adapter.TokenTrieProcessor(config(), torch.device("cpu"), False)
    builder, outputs = v1.BatchUpdateBuilder(), [5, 7]
    builder.added.append((0, params(tokentrie="colours"), [1], outputs))
    made.update_state(builder.get_and_reset(1))
    made.apply(torch.zeros(1, N_VOCAB))
    outputs.pop()
    masked = made.apply(torch.zeros(1, N_VOCAB))
    assert masked[0].isfinite().nonzero().flatten().tolist() == [END]


def test_the_end_of_the_model_follows_end_tokens_of_a_set() -> None:
    walk, sampler = SlotWalk("cpu", 1, N_VOCAB, [END]), RequestSets()
    walk.assign(0, sampler.asked({"tokentrie": {"sequences": [[5, 6]], "end_tokens": [3, 4]}}))
    walk.flush()
    legal = []
    for token in (5, 6, 4, END):
        masked = walk.tensors.mask(torch.zeros(1, N_VOCAB), walk.states)
        legal.append(masked[0].isfinite().nonzero().flatten().tolist())
        walk.states = walk.tensors.step(walk.states, torch.tensor([token]))
    assert legal == [[5], [6], [3, 4], [END]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("seed", range(5))
def test_rows_are_masked_by_words(dtype: Any, seed: int) -> None:
    """Against token after token, rows narrower and wider than the words, and rows without a usable logit."""
    random = np.random.default_rng(seed)
    for width in (1, 31, 32, 40, 64, 70):
        words = random.integers(-(2**31), 2**31, (3, 2), dtype=np.int32) & random.integers(-(2**31), 2**31, (3, 2))
        words = words.astype(np.int32)
        logits = torch.from_numpy(random.normal(size=(5, width)).astype(np.float32)).to(dtype)
        logits[:, :: 1 + random.integers(3)] = random.choice([0.5, -np.inf, np.nan])
        before, at = logits.clone(), random.permutation(5)[:3].tolist()
        rows.put_words_(logits, at, words)
        for row in range(5):
            wanted = before[row].tolist()
            if row in at:
                word = words[at.index(row)].view(np.uint32).tolist()
                legal = [i for i in range(min(width, 64)) if word[i // 32] >> i % 32 & 1]
                wanted = [value if i in legal else -np.inf for i, value in enumerate(wanted)]
                if legal and not any(value > -np.inf for value in wanted):
                    wanted = [0.0 if i == legal[0] else -np.inf for i in range(width)]
            assert np.array_equal(logits[row].float().numpy(), np.array(wanted, np.float32), equal_nan=True)


def served(*, v2: bool, drafts: int = 0, pooling: bool = False, named: Any = None) -> Any:
    """What of a server's configuration says whether our processor takes part."""
    made = config(drafts)
    made.use_v2_model_runner = v2
    made.model_config.runner_type = "pooling" if pooling else "generate"
    made.model_config.logits_processors = named
    return made


def test_the_processor_is_named_where_vllm_then_shows_it_all_tokens() -> None:
    def named(**given: Any) -> Any:
        made = served(**given)
        requests.name_processor(made)
        requests.name_processor(made)
        return made.model_config.logits_processors

    assert named(v2=False) == [NAME]
    assert named(v2=False, named=["a:B"]) == ["a:B", NAME]
    assert named(v2=False, named=[NAME]) == [NAME]
    assert named(v2=False, named=[adapter.TokenTrieProcessor]) == [adapter.TokenTrieProcessor]
    # Named there, the server would not start, for requests without sets either.
    assert named(v2=False, drafts=3) is named(v2=False, pooling=True) is named(v2=True) is None


def test_what_is_found_leaves_the_work_to_what_is_named() -> None:
    for entry, works in ((NAME, False), ("a:B", True)):
        found = adapter.InstalledProcessor(served(v2=False, named=[entry]), torch.device("cpu"), False)
        builder = v1.BatchUpdateBuilder()
        builder.added.append((0, params(tokentrie="colours"), [1], []))
        found.update_state(builder.get_and_reset(1))
        assert (not found.apply(torch.zeros(1, N_VOCAB)).isfinite().all()) == works
        assert found.is_argmax_invariant() != works
    idle = adapter.InstalledProcessor(served(v2=True, named=[NAME]), SimpleNamespace())
    assert isinstance(idle, v2.LogitsProcessor)
    assert idle.add_request(0, params(tokentrie="colours")) is False
    logits = torch.zeros(1, N_VOCAB)
    assert idle.apply(logits, None) is logits


def test_requests_that_a_server_cannot_hold(monkeypatch: pytest.MonkeyPatch, sets: Path) -> None:
    held = params(tokentrie="colours")
    for made in (served(v2=True), served(v2=True, drafts=3), served(v2=False)):
        requests.validate_for(made, held)
    requests.validate_for(served(v2=False, drafts=3), params())
    with pytest.raises(RequestError, match="speculative decoding is not supported"):
        requests.validate_for(served(v2=False, drafts=3), held)
    Trie.from_sequences([[5, 41], [40, 6]]).save(sets / "larger.ttrie")
    for extra, match in (
        ("larger", "token ids 40, 41 are outside the vocabulary of 40"),
        ({"set": "colours", "end_tokens": [99]}, "token id 99 is outside"),
        ({"sequences": [[40 + n] for n in range(20)]}, "40, 41, 42, 43, 44, 45, 46, 47 and others are outside"),
    ):
        with pytest.raises(RequestError, match=match):
            requests.validate_for(served(v2=True), params(tokentrie=extra))
    with pytest.raises(RequestError, match="over 41 tokens, the model has 40"):
        RequestedConstraint(tokentrie.Regex("a"), "stop", 41).check(40)
    monkeypatch.setattr("vllm.platforms.current_platform.is_tpu", lambda: True, raising=False)
    with pytest.raises(RequestError, match="on TPUs"):
        requests.validate_for(served(v2=False), held)


def test_a_process_that_was_not_prepared_refuses_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_PLUGINS", "other")
    requests.validate(params())
    with pytest.raises(RequestError, match="VLLM_PLUGINS is 'other' and leaves out 'tokentrie'"):
        adapter.TokenTrieProcessor.validate_params(params(tokentrie="colours"))
    monkeypatch.setenv("VLLM_PLUGINS", "other,tokentrie")
    adapter.TokenTrieProcessor.validate_params(params(tokentrie="colours"))
    monkeypatch.setattr(requests, "FAULTS", ["no module named 'vllm.engine'"])
    with pytest.raises(RequestError, match="not supported by this version of vLLM: no module"):
        adapter.InstalledProcessor.validate_params(params(tokentrie="colours"))


def test_this_version_of_vllm_can_be_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "FAULTS", [])
    adapter.register()
    adapter.register()
    assert requests.FAULTS == []
    from vllm.entrypoints.openai.completion.protocol import CompletionRequest

    asked = CompletionRequest(prompt="a", use_beam_search=True, vllm_xargs={"tokentrie_set": "colours"})
    with pytest.raises(VLLMValidationError, match="use_beam_search is not supported"):
        asked.to_beam_search_params(5, {})
    CompletionRequest(prompt="a", use_beam_search=True, vllm_xargs={"other": 1}).to_beam_search_params(5, {})


def test_both_loaders_take_the_class() -> None:
    from vllm.v1.sample.logits_processor.interface import LogitsProcessor as FirstInterface
    from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor as SecondInterface

    found = adapter.TokenTrieProcessor
    assert issubclass(found, FirstInterface)
    assert issubclass(found, SecondInterface)
    assert v1._load_logitsprocs_by_fqcns([NAME]) == [found]
    first = found(config(), torch.device("cpu"), False)
    assert isinstance(first, FirstInterface)
    assert not first.is_argmax_invariant()
    assert isinstance(Runner(0, blocking=True).processor, SecondInterface)


def test_the_entry_point() -> None:
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    points = project["entry-points"]
    for group in ("vllm.logits_processors", "vllm.general_plugins"):
        module, name = points[group][requests.PLUGIN].split(":")
        assert callable(getattr(import_module(module), name))
    assert requests.PROCESSOR == NAME


@pytest.mark.parametrize(
    ("extra", "values"),
    [
        ({"tokentrie": "tools"}, LEAVES["tools"]),
        ({"tokentrie_set": "tools"}, LEAVES["tools"]),
        ({"tokentrie": {"path": "colours.ttrie"}}, LEAVES["colours"]),
        ({"tokentrie": {"path": "./colours.ttrie"}}, LEAVES["colours"]),
        ({"tokentrie": {"sequences": [[3, 4], [5]]}}, [[3, 4], [5]]),
        (
            {
                "tokentrie_payload": json.dumps(
                    {"descriptors": [{"path": "a", "leaves": [{"name": "x", "tokens": [6]}]}]}
                )
            },
            [[6]],
        ),
        (
            {"tokentrie": {"payload": {"descriptors": [{"path": "a", "leaves": [{"name": "x", "tokens": [6]}]}]}}},
            [[6]],
        ),
    ],
)
def test_how_a_request_names_its_set(extra: dict[str, Any], values: list[list[int]], sets: Path) -> None:
    source = RequestSets(sets, vocab=N_VOCAB)
    asked = source.asked(extra)
    assert asked is not None
    assert asked.trie == Trie.from_sequences(values) or asked.trie.names == ["x"]
    again = source.asked(extra)
    assert again is not None
    assert again.trie is asked.trie, "it is kept"
    assert source.asked({"else": 1}) is source.asked(None) is source.asked({}) is None


@pytest.mark.parametrize(
    ("extra", "match"),
    [
        ({"tokentrie": 5}, "a name or a dict, not int"),
        ({"tokentrie": {}}, "one of set, path, .* not none"),
        ({"tokentrie": None}, "a name or a dict, not NoneType"),
        ({"tokentrie_": "tools"}, "no argument ''"),
        ({"tokentrie-set": "tools"}, "unknown argument 'tokentrie-set'"),
        ({"Tokentrie": "tools"}, "unknown argument 'Tokentrie'"),
        ({"tokentrie": "tools", "tokentrie_set": "colours"}, "set is given twice"),
        ({"tokentrie": {"set": "tools", 5: 6}}, "no argument '5'"),
        ({"tokentrie": {"set": "tools", "end_tokens": [N_VOCAB]}}, "token id 40 is outside the vocabulary of 40"),
        ({"tokentrie": {}, "tokentrie_after": "stop"}, "one of set, path, .* not none"),
        ({"tokentrie": {"set": "tools", "path": "x"}}, "not set and path"),
        ({"tokentrie": {"set": "../tools"}}, "a name, not a path"),
        ({"tokentrie": {"set": "..", "after": "stop"}}, "a name, not a path"),
        ({"tokentrie": {"set": ["tools"]}}, "set must be a str"),
        ({"tokentrie": {"path": "../secret.ttrie"}}, r"unknown path '../secret\.ttrie'"),
        ({"tokentrie": {"path": "/etc/passwd"}}, "unknown path '/etc/passwd'"),
        ({"tokentrie": {"path": "link.ttrie"}}, r"unknown path 'link\.ttrie'"),
        ({"tokentrie": {"path": "down/secret.ttrie"}}, "unknown path 'down/"),
        ({"tokentrie": {"path": "notes.txt"}}, r"unknown path 'notes\.txt'"),
        ({"tokentrie": {"set": "damaged"}}, "set: .*damaged"),
        ({"tokentrie": {"payload": "{"}}, "payload: .*line 1"),
        ({"tokentrie": {"sequences": [[3], []]}}, "sequences: .*row 1"),
        ({"tokentrie": {"sequences": [[N_VOCAB]]}}, "sequences: .*40"),
        ({"tokentrie": {"set": "large"}}, "token id 99 is outside the vocabulary of 40"),
        ({"tokentrie": {"choices": ["a"]}}, "TOKENTRIE_TOKENIZER"),
        ({"tokentrie": {"choices": "a"}}, "choices must be a list of str"),
        ({"tokentrie": {"set": "tools", "after": "go"}}, "after must be"),
        ({"tokentrie": {"set": "tools", "end_tokens": "x"}}, "set: "),
        ({"tokentrie": {"set": "tools", "end": [2]}}, "no argument 'end'"),
        ({"tokentrie": {"sequences": [[3]] * 400}}, "a request may bring 1000"),
    ],
)
def test_bad_requests(extra: dict[str, Any], match: str, sets: Path) -> None:
    secret = Trie.from_sequences([[1]])
    secret.save(sets.parent / "secret.ttrie")
    (sets / "link.ttrie").symlink_to(sets.parent / "secret.ttrie")
    (sets / "down").symlink_to(sets.parent)
    (sets / "notes.txt").write_text("no set")
    Trie.from_sequences([[99]]).save(sets / "large.ttrie")
    data = bytearray(Trie.from_sequences([[1, 2], [3]]).to_bytes())
    data[-1] ^= 1
    (sets / "damaged.ttrie").write_bytes(data)
    with pytest.raises(RequestError, match=match):
        RequestSets(sets, vocab=N_VOCAB, most=1000).asked(extra)


def test_a_server_without_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOKENTRIE_SETS")
    with pytest.raises(RequestError, match="TOKENTRIE_SETS"):
        RequestSets.of_environment().asked({"tokentrie": "tools"})


def test_texts(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    words = {piece: token for token, piece in enumerate(sorted(alphabet))}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(words, []))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.save(str(tmp_path / "tokenizer.json"))
    asked = RequestSets(None, tmp_path).asked({"tokentrie_choices": ["yes", "no"], "tokentrie_suffix": "\n"})
    assert asked is not None
    assert asked.trie.names == ["no", "yes"]
    template = (
        "{% for m in messages %}{{ bos_token }}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}<call>"
        "{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}</call>{% endfor %}{{ eos_token }}"
        "{% endfor %}{% if add_generation_prompt %}{{ bos_token }}assistant: {% endif %}"
        "{% for tool in tools or [] %}{{ tool | tojson }}{% endfor %}"
    )
    reply = {"reply": {"tools": [{"type": "function", "function": {"name": "ring"}}], "tool_choice": "required"}}
    sequence = {"sequence": [{"regex": "x"}, reply, {"json_schema": {"properties": {"reply": {}}}}]}
    for value in (json.dumps(reply), sequence):
        with pytest.raises(RequestError, match='give "template"'):
            RequestSets(None, tmp_path).asked({"tokentrie": {"constraint": value}})
    settings = {
        "bos_token": {"content": "["},
        "eos_token": "]",
        "chat_template": [{"name": "default", "template": template}],
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    for value in (json.dumps(reply), sequence):
        assert RequestSets(None, tmp_path).asked({"tokentrie": {"constraint": value}}) is not None
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "chat_template.jinja").write_text(template)
    for place in (tmp_path, tmp_path / "tokenizer.json"):
        assert RequestSets(None, place).asked({"tokentrie": {"constraint": reply}}) is not None
    (tmp_path / "chat_template.jinja").write_text("{% if %}")
    with pytest.raises(RequestError, match="constraint: "):
        RequestSets(None, tmp_path).asked({"tokentrie": {"constraint": reply}})


def test_sets_are_kept_and_let_go(sets: Path) -> None:
    walk, source = SlotWalk("cpu", 3, N_VOCAB, [END]), RequestSets(sets, kept=4)
    for turn in range(60):
        walk.assign(turn % 3, source.asked({"tokentrie": {"sequences": [[5 + turn % 30, 6]], "end_tokens": [3]}}))
        walk.flush()
        assert walk.tensors.children(walk.states[turn % 3][None]).tokens.tolist() == [5 + turn % 30]
    assert len(walk._known) <= 12
    assert walk.tensors.nbytes < 20_000


def test_a_replaced_file_is_read_anew(sets: Path) -> None:
    source = RequestSets(sets)
    before = source.asked({"tokentrie": "tools"})
    Trie.from_sequences([[30]]).save(sets / "tools.ttrie")
    os.utime(sets / "tools.ttrie", (1, 1))
    after = source.asked({"tokentrie": "tools"})
    assert before is not None
    assert after is not None
    assert [len(asked.trie) for asked in (before, after)] == [3, 1]


@pytest.mark.parametrize("found", [SlotWalk, RequestError])
def test_examples(found: Any) -> None:
    run_example(found)


def test_the_page() -> None:
    run_page("vllm.md")
