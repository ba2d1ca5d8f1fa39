"""Inside the real `generate` of transformers, against rows computed one by one without batch, padding or cache."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokentrie
from tokentrie import Sampler, Trie
from tokentrie.errors import OptionError, TrieError, VocabularyError
from tokentrie.sets import Leaf

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'tokentrie[transformers]'")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

sys.path.insert(0, str(Path(__file__).parent))

from tokentrie.integrations.transformers import (
    LegalHead,
    TokenTrieLogitsProcessor,
    generate,
    legal_head,
    prefix_allowed_tokens_fn,
    tree_of_model,
)

from examples import run_example, run_page

# transformers warns of its own plans.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")

N_VOCAB, END, PAD = 300, 2, 0
MODELS = Path(tokentrie.__file__).parent / "models"


@pytest.fixture(scope="module")
def model() -> Any:
    """A small Llama with random weights."""
    torch.manual_seed(5)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = transformers.LlamaConfig(vocab_size=N_VOCAB, num_key_value_heads=2, max_position_embeddings=128, **size)
    made = transformers.LlamaForCausalLM(config).eval()
    # Random weights of this size like nothing much: let them choose.
    with torch.no_grad():
        made.lm_head.weight.mul_(8)
    return made


@pytest.fixture(scope="module")
def trie() -> Trie:
    """Two hundred values of two to five tokens, some of which go on from others."""
    random = np.random.default_rng(3)
    return Trie.from_sequences([random.integers(3, 40, length).tolist() for length in [2, 3, 4, 5] * 50])


@pytest.fixture(scope="module")
def prompts() -> tuple[Any, Any]:
    """Three prompts, the first two padded on the left, and their mask."""
    ids = torch.randint(40, N_VOCAB, (3, 7), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    for row, padded in enumerate((3, 1)):
        ids[row, :padded], mask[row, :padded] = PAD, 0
    return ids, mask


def alone(model: Any, ids: Any, mask: Any, trie: Trie) -> list[list[int]]:
    """Greedy, row by row, every token from a fresh forward pass over all of them."""
    found = []
    for row, real in zip(ids, mask, strict=True):
        sampler, written = Sampler(N_VOCAB, trie, end_tokens=[END], after="stop"), []
        while sampler.state != "complete":
            with torch.no_grad():
                logits = model(torch.cat([row[real > 0], torch.tensor(written, dtype=torch.int64)])[None]).logits
            written.append(sampler.sample(logits[0, -1].numpy()))
            sampler.accept(written[-1])
        found.append(written)
    return found


def in_host(model: Any, prompts: tuple[Any, Any], **options: Any) -> Any:
    ids, mask = prompts
    return model.generate(ids, attention_mask=mask, pad_token_id=PAD, eos_token_id=END, max_new_tokens=8, **options)


def written(sequences: Any, length: int = 7) -> list[list[int]]:
    """What was written in each row, padding left out."""
    return [[token for token in row[length:].tolist() if token != PAD] for row in sequences]


def test_greedy(model: Any, trie: Trie, prompts: tuple[Any, Any]) -> None:
    processor = TokenTrieLogitsProcessor(trie, 7, end_tokens=[END])
    expected = alone(model, *prompts, trie)
    assert len({tuple(row) for row in expected}) > 1, "the prompts matter"
    for _ in range(2):  # one object serves one generation after the other
        sequences = in_host(model, prompts, logits_processor=[processor], do_sample=False)
        assert written(sequences) == expected
    leaves = processor.leaves(sequences)
    assert [leaf and leaf.tokens for leaf in leaves] == [row[:-1] for row in expected]
    assert repr(processor).startswith("<TokenTrieLogitsProcessor: 1 sets, 3 rows, ")


def test_beams_are_those_of_the_hosts_own_function(model: Any, trie: Trie, prompts: tuple[Any, Any]) -> None:
    options = {"num_beams": 6, "num_return_sequences": 6, "do_sample": False, "return_dict_in_generate": True}
    options["output_scores"] = True
    processor = TokenTrieLogitsProcessor(trie, 7, end_tokens=[END])
    ours = in_host(model, prompts, logits_processor=[processor], **options)
    function = prefix_allowed_tokens_fn(trie, 7, end_tokens=[END], vocab=N_VOCAB)
    theirs = in_host(model, prompts, prefix_allowed_tokens_fn=function, **options)
    assert ours.sequences.tolist() == theirs.sequences.tolist()
    assert torch.equal(ours.sequences_scores, theirs.sequences_scores)
    leaves = processor.leaves(ours.sequences)
    assert None not in leaves
    assert all(len({leaf.index for leaf in leaves[at : at + 6] if leaf}) == 6 for at in (0, 6, 12))


def test_a_walk_that_does_not_wait_gives_the_same(model: Any, trie: Trie, prompts: tuple[Any, Any]) -> None:
    """What runs on a GPU, on the CPU."""
    processor = TokenTrieLogitsProcessor(trie, 7, end_tokens=[END])
    expected = in_host(model, prompts, logits_processor=[processor], num_beams=4, do_sample=False)
    device = TokenTrieLogitsProcessor(trie, 7, end_tokens=[END])
    device._walk_on(torch.device("cpu")).blocking = False
    assert device.walk is not None
    device.walk._walk.blocking = False
    assert torch.equal(in_host(model, prompts, logits_processor=[device], num_beams=4, do_sample=False), expected)


def test_fewer_values_than_beams(model: Any, prompts: tuple[Any, Any]) -> None:
    """transformers fills up with ids that score -inf, and with what it has already at -1e9."""
    few = Trie.from_sequences([[5, 6], [5, 7], [8]])
    processor = TokenTrieLogitsProcessor(few, 7, end_tokens=[END])
    options: Any = {"num_beams": 5, "num_return_sequences": 5, "do_sample": False}
    options |= {"return_dict_in_generate": True, "output_scores": True}
    found = in_host(model, prompts, logits_processor=[processor], **options)
    leaves = [
        leaf if score > -1e6 else None
        for leaf, score in zip(processor.leaves(found.sequences), found.sequences_scores, strict=True)
    ]
    for at in (0, 5, 10):
        assert sorted(leaf.index for leaf in leaves[at : at + 5] if leaf) == [0, 1, 2]


def test_sampling(model: Any, trie: Trie, prompts: tuple[Any, Any]) -> None:
    processor = TokenTrieLogitsProcessor(trie, 7, end_tokens=[END])
    torch.manual_seed(0)
    sequences = in_host(model, prompts, logits_processor=[processor], do_sample=True, num_return_sequences=20)
    leaves = processor.leaves(sequences)
    assert None not in leaves
    assert len({leaf.index for leaf in leaves if leaf}) > 10


def test_a_set_for_each_prompt(model: Any, prompts: tuple[Any, Any]) -> None:
    tries = [Trie.from_sequences([[n, n + 1], [n, n + 2], [n + 3]]) for n in (5, 15, 25)]
    processor = TokenTrieLogitsProcessor(tries, 7, end_tokens=[END])
    for options in ({"do_sample": False}, {"num_beams": 2, "num_return_sequences": 2}, {"num_beams": 3}):
        sequences = in_host(model, prompts, logits_processor=[processor], **options)
        assert None not in processor.leaves(sequences)
        each = len(sequences) // 3
        assert [row[7].item() // 10 for row in sequences] == [n for n in (0, 1, 2) for _ in range(each)]


def test_assisted_generation_goes_back(model: Any, trie: Trie, prompts: tuple[Any, Any]) -> None:
    """Drafts are looked at one after the other, and the rejected ones are not there any more in the next call."""
    torch.manual_seed(9)
    assistant = transformers.LlamaForCausalLM(model.config).eval()
    one = (prompts[0][2:], prompts[1][2:])
    processor = TokenTrieLogitsProcessor(trie, 7, end_tokens=[END])
    plain = in_host(model, one, logits_processor=[processor], do_sample=False)
    processor.reset()
    assisted = in_host(model, one, logits_processor=[processor], do_sample=False, assistant_model=assistant)
    assert written(assisted) == written(plain)


@pytest.mark.parametrize("whole", [False, True])
def test_skipping_ahead(model: Any, trie: Trie, prompts: tuple[Any, Any], whole: bool) -> None:
    expected = alone(model, *prompts, trie)
    ids, mask = prompts
    make: Any = {"attention_mask": mask, "end_tokens": [END], "legal_head": not whole}
    skipped = generate(model, ids, trie, **make)
    plain = generate(model, ids, trie, skip_ahead=False, **make)
    assert skipped.tokens == plain.tokens == expected
    assert [leaf and leaf.tokens for leaf in skipped.leaves] == [row[:-1] for row in expected]
    assert plain.forward_passes == max(map(len, expected))
    assert skipped.forward_passes < plain.forward_passes
    assert skipped.sampled_tokens + skipped.forced_tokens == sum(map(len, expected))
    assert (skipped.sampled_tokens, skipped.forced_tokens) == (plain.sampled_tokens, plain.forced_tokens)
    assert whole or skipped.logits < 0.2 * 3 * N_VOCAB * skipped.forward_passes


def test_what_is_forced_before_any_choice(model: Any, prompts: tuple[Any, Any]) -> None:
    ids, mask = prompts
    only = generate(model, ids, Trie.from_sequences([[7, 8, 9]]), attention_mask=mask, end_tokens=[END])
    assert (only.tokens, only.forward_passes) == ([[7, 8, 9, END]] * 3, 0)
    begun = Trie.from_sequences([[7, 8, 9, 10], [7, 8, 11, 12]])
    found = generate(model, ids, begun, attention_mask=mask, end_tokens=[END])
    assert found.forward_passes == 1
    assert [row[:2] for row in found.tokens] == [[7, 8]] * 3
    cut = generate(model, ids, begun, attention_mask=mask, end_tokens=[END], max_tokens=3)
    assert [len(row) for row in cut.tokens] == [3, 3, 3]
    assert cut.leaves == [None] * 3


def test_drawing_with_a_seed(model: Any, trie: Trie, prompts: tuple[Any, Any]) -> None:
    ids, mask = (part[2:].expand(30, -1) for part in prompts)
    draw = [generate(model, ids, trie, end_tokens=[END], temperature=2.0, seed=seed) for seed in (1, 1, 2)]
    assert draw[0].tokens == draw[1].tokens != draw[2].tokens
    assert None not in draw[0].leaves
    cold = generate(model, ids, trie, end_tokens=[END], temperature=1e-6, seed=1)
    assert cold.tokens == alone(model, ids[:1], mask[:1], trie) * 30


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_head_of_legal_tokens(model: Any, trie: Trie, prompts: tuple[Any, Any], dtype: str) -> None:
    import copy

    typed = copy.deepcopy(model).to(getattr(torch, dtype))
    processor = TokenTrieLogitsProcessor(trie, 7, end_tokens=[END])
    options: Any = {"logits_processor": [processor], "return_dict_in_generate": True, "output_scores": True}
    whole = in_host(typed, prompts, do_sample=False, **options)
    with legal_head(typed, processor) as head:
        part = in_host(typed, prompts, do_sample=False, **options)
        beams = in_host(typed, prompts, num_beams=3, num_return_sequences=3, **options)
    assert "forward" not in vars(typed.lm_head), "the model is as it was"
    assert torch.equal(whole.sequences, part.sequences)
    for one, other in zip(whole.scores, part.scores, strict=True):
        assert torch.equal(one == -torch.inf, other == -torch.inf)
        legal = one > -torch.inf
        assert torch.allclose(one[legal], other[legal], rtol=1e-5 if dtype == "float32" else 2e-2, atol=1e-5)
    assert 0 < head.computed < 0.2 * head.whole
    assert None not in processor.leaves(beams.sequences)


def test_a_head_that_is_not_split(model: Any, prompts: tuple[Any, Any]) -> None:
    """Where most of the vocabulary is legal the whole head is computed, and where anything may come it has to be."""
    wide = Trie.from_sequences([[token] for token in range(3, 200)])
    processor = TokenTrieLogitsProcessor(wide, 7, end_tokens=[END])
    with legal_head(model, processor) as head:
        in_host(model, prompts, logits_processor=[processor], do_sample=False)
    assert head.computed == 3 * N_VOCAB + 3, "the first step whole, then the end token alone"
    with pytest.raises(OptionError, match=r"Embedding: only torch\.nn\.Linear"):
        LegalHead(torch.nn.Embedding(2, 2))


def test_the_packaged_model(trie: Trie) -> None:
    """Its GGUF, loaded by transformers, says what llama.cpp says with it."""
    pytest.importorskip("accelerate", reason="transformers loads a GGUF with the package accelerate")
    pytest.importorskip("gguf", reason="transformers loads a GGUF with the package gguf")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(MODELS, gguf_file="tiny.gguf").eval()
    try:
        ours = tokentrie.Model()
    except tokentrie.errors.ModelError as error:
        pytest.skip(f"this package has no models: {error}")
    names = ["blue", "red and white", "red and black", "green"]
    prompt = ours.vocab.tokenize("The sky is ", add_special=True)
    values = Trie.from_strings(ours.vocab, names, suffix="\n")
    found = generate(theirs, torch.tensor([list(prompt)]), values, end_tokens=list(ours.vocab.eog))
    assert found.leaves[0] is not None
    walked = ours.generate(prompt, values, end_tokens=list(ours.vocab.eog))
    assert found.leaves[0] == walked.leaf


OPTIONS = [
    {"do_sample": False},
    {"num_beams": 6, "num_return_sequences": 6, "do_sample": False},
    {"do_sample": True, "num_return_sequences": 8},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_other_kinds_are_walked_as_tries_are(
    model: Any, trie: Trie, prompts: tuple[Any, Any], options: dict[str, Any]
) -> None:
    """A Sequence of one set is no Trie and allows the same: both walks must write the same."""
    found = []
    for constraint in (trie, tokentrie.rules.Sequence(trie)):
        torch.manual_seed(3)
        processor = TokenTrieLogitsProcessor(constraint, 7, end_tokens=[END], vocab=N_VOCAB)
        sequences = in_host(model, prompts, logits_processor=[processor], **options)
        found.append((sequences.tolist(), [leaf and leaf.index for leaf in processor.leaves(sequences)]))
    assert processor.on_host
    assert processor.walk is None
    assert found[0] == found[1]


def test_other_kinds_go_back(model: Any, trie: Trie, prompts: tuple[Any, Any]) -> None:
    torch.manual_seed(9)
    assistant = transformers.LlamaForCausalLM(model.config).eval()
    one = (prompts[0][2:], prompts[1][2:])
    processor = TokenTrieLogitsProcessor(tokentrie.rules.Sequence(trie), 7, end_tokens=[END], vocab=N_VOCAB)
    plain = in_host(model, one, logits_processor=[processor], do_sample=False)
    processor.reset()
    assisted = in_host(model, one, logits_processor=[processor], do_sample=False, assistant_model=assistant)
    assert written(assisted) == written(plain)


@pytest.fixture(scope="module")
def vocab() -> Any:
    """Bytes, and some pairs of digits and letters."""
    tokens = [bytes([byte]) for byte in range(3, 256)] + [b"%d%d" % (n // 7, n % 7) for n in range(44)]
    return tokentrie.Vocab.from_tokens([b"<pad>", b"<s>", b"</s>", *tokens], eog=[END], control=[PAD, 1, END])


def test_rules(model: Any, prompts: tuple[Any, Any], vocab: Any) -> None:
    rules: Any = [
        tokentrie.Regex("[0-6]{4}-[0-6]{2}"),
        tokentrie.rules.Integer(100, 999),
        tokentrie.JsonSchema({"enum": [12, 34]}),
    ]
    processor = TokenTrieLogitsProcessor(rules, 7, vocab=vocab)
    for options in OPTIONS:
        sequences = in_host(model, prompts, logits_processor=[processor], **options)
        each = len(sequences) // 3
        for number, ids in enumerate(written(sequences)):
            text = b"".join(vocab[token] for token in ids if token != END).decode()
            # Beam search fills up with what is no text where there are fewer texts than beams.
            whole = ids[-1:] == [END] and rules[number // each].matches(text)
            assert whole or (options.get("num_beams") and number // each == 2), (text, number)
    ids, mask = prompts
    found = generate(model, ids, rules, attention_mask=mask, vocab=vocab)
    greedy = in_host(model, prompts, logits_processor=[processor], do_sample=False)
    assert found.tokens == written(greedy)
    with legal_head(model, processor) as head:
        assert torch.equal(in_host(model, prompts, logits_processor=[processor], do_sample=False), greedy)
    assert head.computed == head.whole, "of constraints on the host the head is computed whole"


def test_weights_act(model: Any, prompts: tuple[Any, Any]) -> None:
    """A set with weights, which tensors refuse, is walked on the host with them."""
    for token in (7, 8):
        table = {"225": ["7:0", "8:0"], "225_7": ["10:0"], "225_8": ["10:0"]}
        table["225"][token - 7] = f"{token}:1000"
        weighted = Trie.from_prefix_table({"prefix_weight_dict": table})
        processor = TokenTrieLogitsProcessor(weighted, 7, end_tokens=[END], vocab=N_VOCAB)
        assert processor.on_host
        sequences = in_host(model, prompts, logits_processor=[processor], do_sample=False)
        assert {row[0] for row in written(sequences)} == {token}


def test_no_rows_from_nowhere(trie: Trie) -> None:
    """Ids that do not go on from the rows of before are walked from the start."""
    processor = TokenTrieLogitsProcessor(trie, 1, end_tokens=[END])
    first = [leaf.tokens for leaf in trie][:4]
    ids = torch.tensor([[1, *tokens[:1]] for tokens in first])
    processor.follow(torch.ones(4, 1, dtype=torch.int64))
    processor.follow(ids)
    others = torch.tensor([[1, *tokens[:2]] for tokens in [leaf.tokens for leaf in trie][-4:]])
    states = processor.follow(others)
    assert not processor.walk.dead(states).any()  # type: ignore[union-attr]
    assert torch.equal(processor.follow(others.clone()), states)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda t: TokenTrieLogitsProcessor(t, 3), OptionError, "set 0 ends with no token that is known: end_tokens="),
        (lambda t: TokenTrieLogitsProcessor(t, -1, end_tokens=[2]), OptionError, "prompt_length is -1"),
        (
            lambda t: TokenTrieLogitsProcessor(tokentrie.rules.Unconstrained(), 3, end_tokens=[2]),
            OptionError,
            "vocab is missing",
        ),
        (lambda t: TokenTrieLogitsProcessor(tokentrie.Regex("a"), 3, end_tokens=[2], vocab=9), TypeError, "Vocab"),
        (lambda t: prefix_allowed_tokens_fn(t, 3, end_tokens=[]), OptionError, "end_tokens is empty"),
        (lambda t: TokenTrieLogitsProcessor([], 3, end_tokens=[2])(IDS, ROWS), (TrieError, ZeroDivisionError), ""),
        (
            lambda t: TokenTrieLogitsProcessor(t, 3, end_tokens=[2], vocab=20)(IDS, ROWS),
            VocabularyError,
            "outside the vocabulary of 20",
        ),
        (lambda t: TokenTrieLogitsProcessor(t, 9, end_tokens=[2])(IDS, ROWS), ValueError, "3 ids .* prompt has 9"),
        (lambda t: TokenTrieLogitsProcessor([t, t, t], 3, end_tokens=[2])(IDS, ROWS), OptionError, "2 rows for 3 sets"),
        (lambda t: TokenTrieLogitsProcessor(t, 3, end_tokens=[2])(IDS, ROWS.double()), TypeError, "float64"),
        (lambda t: generate(None, IDS[0], t), ValueError, "must have shape"),
        (lambda t: generate(None, IDS, t, temperature=-1.0), OptionError, "temperature -1.0"),
    ],
)
def test_bad_input(make: Any, error: Any, match: str, trie: Trie) -> None:
    with pytest.raises(error, match=match):
        make(trie)


IDS, ROWS = torch.ones(2, 3, dtype=torch.int64), torch.zeros(2, N_VOCAB)


def test_another_batch_in_the_middle(trie: Trie) -> None:
    processor = TokenTrieLogitsProcessor(trie, 3, end_tokens=[END])
    processor(IDS, ROWS)
    more = torch.cat([IDS, torch.full((2, 1), 5)], dim=1)
    processor(more, ROWS)
    with pytest.raises(OptionError, match=r"4 rows, but 2 .*reset\(\)"):
        processor(more.repeat(2, 1), ROWS.repeat(2, 1))
    processor.reset()
    processor(more.repeat(2, 1), ROWS.repeat(2, 1))
    processor(IDS[:1], ROWS[:1])  # nothing after the prompt: another generation


def test_the_table_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tokentrie.integrations.tree_decode")
    monkeypatch.delenv("TREE_DECODE_CONFIG", raising=False)
    with pytest.raises(OptionError, match="TREE_DECODE_CONFIG"):
        tree_of_model(tmp_path)
    monkeypatch.setenv("TREE_DECODE_CONFIG", "tree.json")
    (tmp_path / "tree.json").write_text('{"prefix_dict": {"225": [7, 8], "225_7": [9]}}')
    trie = tree_of_model(tmp_path)
    masked = TokenTrieLogitsProcessor(trie, 3)(IDS, ROWS)
    assert masked[0].isfinite().nonzero().flatten().tolist() == [7, 8]


def test_what_a_leaf_is(trie: Trie) -> None:
    assert isinstance(TokenTrieLogitsProcessor(trie, 0, end_tokens=[2]).tries[0].leaf(0), Leaf)


@pytest.mark.parametrize("found", [TokenTrieLogitsProcessor, prefix_allowed_tokens_fn, generate, legal_head, LegalHead])
def test_examples(found: Any) -> None:
    run_example(found)


def test_the_page() -> None:
    run_page("transformers.md")
