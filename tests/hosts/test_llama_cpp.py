"""The sampler inside llama-cpp-python's own llama.cpp, on the tiny model."""

from __future__ import annotations

import gc
import os
import sys
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tokentrie
from tokentrie._native import _into_chain
from tokentrie.integrations import _llama_cpp_host as host
from tokentrie.integrations.llama_cpp import TokenTrieLogitsProcessor, TokenTrieSampler, vocab_of

llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")

COLOURS = [" blue", " red and white", " red and black", " red"]
PROMPTS = ["The sky is", "Her new car is", "1, 2, 3", "A flag"]
pytestmark = [
    # What llama-cpp-python itself does.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


def loaded(path: str, **settings: Any) -> Any:
    """One thread: two would wait for each other on a busy machine."""
    return llama_cpp.Llama(path, n_ctx=512, n_threads=1, n_threads_batch=1, verbose=False, **settings)


@pytest.fixture(scope="module")
def path() -> str:
    return os.path.join(os.path.dirname(tokentrie.__file__), "models", "tiny.gguf")


@pytest.fixture(scope="module")
def llm(path: str) -> Iterator[Any]:
    llm = loaded(path)
    yield llm
    llm.close()


@pytest.fixture(scope="module")
def model(path: str) -> tokentrie.Model:
    try:
        return tokentrie.Model(path, n_ctx=512, n_threads=1)
    except tokentrie.errors.ModelError as error:
        pytest.skip(str(error))


def ids(llm: Any, text: str) -> list[int]:
    return vocab_of(llm).tokenize(text, parse_special=True)


def generated(llm: Any, prompt: list[int], **settings: Any) -> list[int]:
    """All tokens up to the end of generation."""
    found = []
    for token in llm.generate(prompt, **settings):
        if token in vocab_of(llm).eog or len(found) == 32:
            break
        found.append(token)
    return found


def test_the_vocabulary_is_the_one_that_is_read_from_the_file(llm: Any, model: tokentrie.Model) -> None:
    vocab = vocab_of(llm)
    assert vocab is vocab_of(llm)
    assert (len(vocab), vocab.eog, vocab.control) == (len(model.vocab), model.vocab.eog, model.vocab.control)
    assert vocab.fingerprint == model.vocab.fingerprint
    for text in ["The sky is blue", " ", "<|im_end|> é 🙂", "a\n\nb", ""]:
        for special in (False, True):
            assert vocab.tokenize(text, special, special) == model.vocab.tokenize(text, special, special)
    assert list(tokentrie.Trie.from_strings(vocab, COLOURS)) == list(tokentrie.Trie.from_strings(model.vocab, COLOURS))


def test_a_saved_set_opens_with_the_vocabulary_of_the_host(llm: Any, model: tokentrie.Model, tmp_path: Any) -> None:
    tokentrie.Trie.from_strings(model.vocab, COLOURS).save(tmp_path / "set.ttrie")
    opened = tokentrie.Trie.open(tmp_path / "set.ttrie", vocab=vocab_of(llm))
    trie = TokenTrieSampler(llm, opened)
    llm.create_completion("The sky is", logits_processor=trie, temperature=0.0)
    assert trie.leaf is not None
    assert trie.leaf.name in COLOURS


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_same_tokens_as_our_own_runtime(llm: Any, model: tokentrie.Model, prompt: str) -> None:
    trie = TokenTrieSampler(llm, COLOURS)
    ours = tokentrie.Trie.from_strings(model.vocab, COLOURS)
    expected = model.generate(ids(llm, prompt), ours, end_tokens=model.vocab.eog)
    for settings in ({"temp": 0.0}, {"temp": 0.0, "top_k": 1}):
        assert generated(llm, ids(llm, prompt), logits_processor=trie, **settings) == expected.tokens
        assert trie.leaf == expected.leaf
    greedy = TokenTrieSampler(llm, COLOURS, mode="greedy")
    assert generated(llm, ids(llm, prompt), logits_processor=greedy, temp=1.5) == expected.tokens


def test_the_same_draws_as_our_own_runtime(llm: Any, model: tokentrie.Model) -> None:
    """With one seed: ours repeats llama.cpp's arithmetic, and the host's chain sees the legal tokens alone."""
    trie, ours = TokenTrieSampler(llm, COLOURS), tokentrie.Trie.from_strings(model.vocab, COLOURS)
    prompt, ends, seen = ids(llm, "The sky is"), model.vocab.eog, set()
    settings = {"top_k": 40, "top_p": 0.999, "min_p": 0.0}
    for seed in range(40):
        llm.set_seed(seed)
        tokens = generated(llm, prompt, logits_processor=trie, temp=5.0, **settings)
        out = model.generate(prompt, ours, mode="sampled", seed=seed, temperature=5.0, end_tokens=ends, **settings)
        assert tokens == out.tokens
        seen.add(tuple(tokens))
    assert len(seen) > 1


@pytest.mark.parametrize("mirostat", [1, 2])
def test_every_way_of_drawing_stays_inside_the_set(llm: Any, mirostat: int) -> None:
    trie = TokenTrieSampler(llm, COLOURS)
    for seed in range(10):
        out = llm.create_completion("The sky is", logits_processor=trie, mirostat_mode=mirostat, seed=seed)
        assert out["choices"][0]["text"] in COLOURS


def test_completion_chat_and_streams(llm: Any) -> None:
    trie = TokenTrieSampler(llm, COLOURS)
    asked: dict[str, Any] = {"logits_processor": trie, "temperature": 0.0, "max_tokens": 32}
    out = llm.create_completion("The sky is", **asked)
    assert out["choices"][0]["finish_reason"] == "stop"
    assert trie.leaf is not None
    assert out["choices"][0]["text"] == trie.leaf.name
    assert (trie.state, trie.counts["turned_off"], trie.counts["poisoned"]) == ("complete", 0, 0)

    stream = llm.create_completion("The sky is", stream=True, **asked)
    assert "".join(part["choices"][0]["text"] for part in stream) == trie.leaf.name

    messages = [{"role": "user", "content": "Name a colour."}]
    chat = llm.create_chat_completion(messages, **asked)
    assert chat["choices"][0]["message"]["content"] == trie.leaf.name
    parts = llm.create_chat_completion(messages, stream=True, **asked)
    said = "".join(part["choices"][0]["delta"].get("content") or "" for part in parts)
    assert said == trie.leaf.name == chat["choices"][0]["message"]["content"]


def test_a_stream_left_half_way_leaves_nothing_behind(llm: Any) -> None:
    trie = TokenTrieSampler(llm, COLOURS)
    stream = llm.create_completion("The sky is", stream=True, logits_processor=trie, temperature=0.0)
    next(stream)
    assert (trie.state, trie.leaf) == ("active", None)
    stream.close()
    text = llm.create_completion("The sky is", temperature=0.0, max_tokens=3)["choices"][0]["text"]
    assert text
    assert trie.leaf is None, "a request without the object is free"
    llm.create_completion("The sky is", logits_processor=trie, temperature=0.0)
    assert trie.leaf is not None


def test_free_text_after_the_value(llm: Any) -> None:
    trie = TokenTrieSampler(llm, [" blue", " red"], after="free")
    out = llm.create_completion("The sky is", logits_processor=trie, temperature=0.0, max_tokens=12)
    assert trie.leaf is not None
    assert out["choices"][0]["text"].startswith(trie.leaf.name)
    assert out["usage"]["completion_tokens"] > len(trie.leaf.tokens)


def test_payloads_sequences_and_paths(llm: Any) -> None:
    vocab = vocab_of(llm)
    leaves = {name: [{"name": name, "tokens": vocab.tokenize(name)}] for name in COLOURS[:2]}
    payload = {"descriptors": [{"path": path, "leaves": one} for path, one in leaves.items()]}
    trie = TokenTrieSampler(llm, payload)
    for path in COLOURS[:2]:
        trie.activate(path)
        assert llm.create_completion("x", logits_processor=trie)["choices"][0]["text"] == path
    with pytest.raises(tokentrie.errors.OptionError, match="green"):
        trie.activate("green")
    both = TokenTrieSampler(llm, tokentrie.rules.Sequence(COLOURS, [" or so", " indeed"]))
    text = llm.create_completion("The sky is", logits_processor=both, temperature=0.0)["choices"][0]["text"]
    assert [leaf.name for leaf in both.leaves] == [text[: text.index(" ", 1)], text[text.index(" ", 1) :]]


def test_a_draft_model_changes_nothing(path: str, llm: Any) -> None:
    drafts = pytest.importorskip("llama_cpp.llama_speculative").LlamaPromptLookupDecoding(num_pred_tokens=4)
    quick = loaded(path, draft_model=drafts)
    prompt = "red and white, red and black, red and"
    trie = TokenTrieSampler(quick, COLOURS)
    assert generated(quick, ids(llm, prompt), logits_processor=trie, temp=0.0) == generated(
        llm, ids(llm, prompt), logits_processor=TokenTrieSampler(llm, COLOURS), temp=0.0
    )
    with pytest.raises(tokentrie.errors.OptionError, match="draft"):
        TokenTrieLogitsProcessor(quick, COLOURS)
    quick.close()


def test_biases_come_first_and_do_not_undo_the_set(llm: Any) -> None:
    """`logit_bias=` makes llama-cpp-python extend the list of processors, and go on with what that returns."""
    vocab = vocab_of(llm)
    trie = TokenTrieSampler(llm, [" blue", " red"])
    for wanted in (" blue", " red"):
        bias = dict.fromkeys(set(vocab.tokenize(wanted)) - set(vocab.tokenize(" ")), 50.0)
        asked = {"logit_bias": {**bias, 5: 99.0}, "temperature": 0.0}
        assert llm.create_completion("The sky is", logits_processor=trie, **asked)["choices"][0]["text"] == wanted
        assert trie.leaf is not None
        assert trie.leaf.name == wanted
        slow = TokenTrieLogitsProcessor(llm, [" blue", " red"])
        assert llm.create_completion("The sky is", logits_processor=slow, **asked)["choices"][0]["text"] == wanted
    assert trie._others == [], "the object itself has not grown"


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_way_through_python_gives_the_same(llm: Any, prompt: str) -> None:
    fast = TokenTrieSampler(llm, COLOURS)
    expected = generated(llm, ids(llm, prompt), logits_processor=fast, temp=0.0)
    slow = TokenTrieLogitsProcessor(llm, COLOURS)
    assert generated(llm, ids(llm, prompt), logits_processor=slow, temp=0.0) == expected
    assert (slow.leaf, slow.error) == (fast.leaf, None)


# A chain owns its sampler and frees it once.


def test_the_chain_frees_its_sampler_once(llm: Any) -> None:
    trie = TokenTrieSampler(llm, COLOURS)
    handles = []
    for _ in range(50):
        llm.create_completion("The sky is", logits_processor=trie, temperature=0.0)
        handles.append(trie._handle)
    gc.collect()
    assert [handle.is_in_chain for handle in handles[:-1]] == [False] * 49
    assert handles[-1].is_in_chain, "until the next generation"
    llm.create_completion("The sky is", max_tokens=1)
    gc.collect()
    assert not handles[-1].is_in_chain
    assert handles[0].leaf == trie.leaf, "what is known of it stays"


def test_a_chain_of_ones_own(llm: Any) -> None:
    trie = TokenTrieSampler(llm, COLOURS)
    chain = host.internals().LlamaSampler()
    seen = []
    chain.add_custom(lambda row: seen.append(row.contents.size))
    chain.add_top_k(1)
    chain.add_custom(lambda row: seen.append(row.contents.size))
    chain.add_greedy()
    trie.put_first(chain)
    names = [host.lib().llama_sampler_name(host.lib().llama_sampler_chain_get(chain.sampler, at)) for at in (1, 2, 4)]
    assert names[0] == b"token-trie"
    assert [place for place, _ in chain.custom_samplers] == [0, 3]
    llm.reset()
    llm.eval(ids(llm, "The sky is"))
    token = chain.sample(llm._ctx)
    assert token in {vocab_of(llm).tokenize(value)[0] for value in COLOURS}
    assert seen == [len(vocab_of(llm)), 1]
    handle = trie._handle
    assert handle is not None
    assert handle.counts["accepted"] == 1
    chain.close()
    assert not handle.is_in_chain
    with pytest.raises(tokentrie.errors.ModelError, match="closed"):
        trie.put_first(chain)
    with pytest.raises(TypeError, match="chain"):
        trie.put_first(object())


def test_a_copy_of_a_chain_is_independent(llm: Any) -> None:
    trie = TokenTrieSampler(llm, COLOURS, mode="greedy")
    chain = host.internals().LlamaSampler()
    chain.add_greedy()
    trie.put_first(chain)
    copied = chain.clone()
    llm.reset()
    llm.eval(ids(llm, "The sky is"))
    assert copied.sample(llm._ctx) == chain.sample(llm._ctx)
    handle = trie._handle
    assert handle is not None
    assert handle.depth == 1
    copied.close()
    assert handle.is_in_chain
    chain.close()
    assert not handle.is_in_chain


# Illegal uses.


def test_another_model_and_a_list_around_it_are_refused(path: str, llm: Any) -> None:
    trie, other = (
        TokenTrieSampler(llm, COLOURS),
        loaded(path),
    )
    TokenTrieSampler(other, COLOURS)
    with pytest.raises(tokentrie.errors.OptionError, match="another model"):
        other.create_completion("x", logits_processor=trie)
    with pytest.raises(tokentrie.errors.OptionError, match="itself"):
        llm.create_completion("x", logits_processor=llama_cpp.LogitsProcessorList([trie]))
    other.close()


@pytest.fixture
def swallowed(monkeypatch: pytest.MonkeyPatch) -> list[BaseException | None]:
    """The exceptions that ctypes loses in callbacks."""
    found: list[BaseException | None] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: found.append(lost.exc_value))
    return found


def test_a_model_that_never_heard_of_it_gives_nothing(
    path: str, llm: Any, swallowed: list[BaseException | None]
) -> None:
    """It calls the list as processors, in which exceptions are lost: then the row is closed."""
    other = loaded(path)
    row = np.zeros(len(vocab_of(llm)), dtype=np.float32)
    (refuse,) = TokenTrieSampler(llm, COLOURS)
    with pytest.raises(tokentrie.errors.OptionError, match="another model"):
        refuse(np.array([1], dtype=np.intc), row)
    assert np.flatnonzero(np.isfinite(row)).tolist() == vocab_of(llm).eog[:1]
    out = other.create_completion("x", logits_processor=TokenTrieSampler(llm, COLOURS), temperature=0.0)
    assert (out["choices"][0]["text"], "another model" in str(swallowed[0])) == ("", True)
    other.close()


def test_a_fault_in_python_closes_the_row(llm: Any, swallowed: list[BaseException | None]) -> None:
    slow = TokenTrieLogitsProcessor(llm, COLOURS)
    llm.create_completion("The sky is", logits_processor=slow, temperature=0.0)
    out = llm.create_completion("No", logits_processor=slow, temperature=0.0)
    assert swallowed == [slow.error]
    assert (out["choices"][0]["text"], out["choices"][0]["finish_reason"]) == ("", "stop")
    assert isinstance(slow.error, tokentrie.TokenTrieError)


def test_a_grammar_beside_it_is_refused(llm: Any) -> None:
    trie, messages = TokenTrieSampler(llm, COLOURS), [{"role": "user", "content": "x"}]
    grammar = llama_cpp.LlamaGrammar.from_string('root ::= "x"', verbose=False)
    with pytest.raises(tokentrie.errors.OptionError, match="grammar"):
        llm.create_completion("x", logits_processor=trie, grammar=grammar)
    with pytest.raises(tokentrie.errors.OptionError, match="grammar"):
        llm.create_chat_completion(messages, logits_processor=trie, response_format={"type": "json_object"})


@pytest.mark.parametrize("made", [TokenTrieSampler, TokenTrieLogitsProcessor])
def test_wrong_arguments(llm: Any, path: str, made: Any) -> None:
    with pytest.raises(TypeError, match="Llama"):
        made("model.gguf", COLOURS)
    with pytest.raises(tokentrie.errors.TrieError):
        made(llm, [])
    with pytest.raises(tokentrie.errors.OptionError):
        made(llm, COLOURS, after="later")
    with pytest.raises(tokentrie.errors.VocabularyError, match="2 tokens"):
        made(llm, [" "], vocab=tokentrie.Vocab.from_tokens([b"a", b"b"]))
    with pytest.raises(tokentrie.errors.VocabularyError):
        made(llm, tokentrie.Trie.from_sequences([[10**6]]))
    closed = loaded(path)
    vocab = vocab_of(closed)
    closed.close()
    with pytest.raises(tokentrie.errors.ModelError, match="closed"):
        made(closed, COLOURS)
    with pytest.raises(tokentrie.errors.VocabularyError, match="closed"):
        vocab.tokenize("x")
    with pytest.raises(tokentrie.errors.OptionError, match="mode"):
        TokenTrieSampler(llm, COLOURS, mode="best")


def test_a_model_is_freed_although_it_was_given_a_hook(path: str) -> None:
    passing = loaded(path)
    trie = TokenTrieSampler(passing, COLOURS)
    passing.create_completion("x", logits_processor=trie)
    left = weakref.ref(passing)
    gc.disable()
    try:
        del passing
        assert left() is None, "no cycle keeps it"
    finally:
        gc.enable()


def test_the_address_is_checked() -> None:
    with pytest.raises(tokentrie.errors.OptionError, match="0"):
        _into_chain(tokentrie.Sampler(4, tokentrie.Trie.from_sequences([[1]])), "greedy", 0)


def declared(**changed: Any) -> Any:
    """The types that llama-cpp-python declares, some of them changed."""
    library = host.lib()
    names = [*host.LAYOUT, "llama_sampler_i", "llama_version"]
    names += [f"llama_sampler_{name}" for name in ("init", "name", "apply", "free")]
    names += [f"llama_sampler_chain_{name}" for name in ("add", "n", "remove")]
    return SimpleNamespace(**{name: getattr(library, name) for name in names} | changed)


def test_a_library_of_an_unknown_version_is_refused() -> None:
    import ctypes

    def table(*fields: str) -> type:
        pointers = [(field, ctypes.c_void_p) for field in fields]
        return type("llama_sampler_i", (ctypes.Structure,), {"_fields_": pointers})

    host.check_layout(declared())
    for known in host.VERSIONS:
        host.check_layout(declared(llama_sampler_i=table(*host.TABLE[:known])))
    swapped = [*host.TABLE[:1], *host.TABLE[2:3], *host.TABLE[1:2], *host.TABLE[3:6]]
    for fields in ([], host.TABLE[:5], host.TABLE[:7], [*host.TABLE, "later"], swapped):
        with pytest.raises(tokentrie.errors.ModelError, match=r"llama-cpp-python .* is unknown: its table"):
            host.check_layout(declared(llama_sampler_i=table(*fields)))

    class Wider(ctypes.Structure):
        _fields_ = (("id", ctypes.c_int), ("logit", ctypes.c_double), ("p", ctypes.c_float))

    with pytest.raises(tokentrie.errors.ModelError, match="llama_token_data is laid out"):
        host.check_layout(declared(llama_token_data=Wider))
    without = declared()
    del without.llama_sampler_chain_remove
    with pytest.raises(tokentrie.errors.ModelError, match="no llama_sampler_chain_remove"):
        host.check_layout(without)


def test_a_class_that_makes_chains_in_another_way_is_refused(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = loaded(path)
    monkeypatch.delattr(llama_cpp.Llama, "_init_sampler")
    with pytest.raises(tokentrie.errors.ModelError, match="unknown way"):
        TokenTrieSampler(other, COLOURS)
    other.close()
