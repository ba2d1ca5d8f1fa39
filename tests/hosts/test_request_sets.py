"""What a request to a server may ask for beside sets: any spec, over the server's tokenizer. No host is needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokentrie
from tokentrie.integrations.vllm import RequestError, RequestSets

tokenizers = pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")


@pytest.fixture
def source(tmp_path: Path) -> RequestSets:
    """A server with a tokenizer of bytes."""
    words = {piece: token for token, piece in enumerate(sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(words, []))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.save(str(tmp_path / "tokenizer.json"))
    return RequestSets(None, tmp_path, kept=2)


@pytest.mark.parametrize(
    "extra",
    [
        {"tokentrie": {"constraint": {"regex": "[ab]{2}"}}},
        {"tokentrie_constraint": '{"regex": "[ab]{2}"}'},
        {"tokentrie": {"constraint": {"form": [{"slot": "x", "value": {"choice": ["aa", "ba"]}}, "."]}}},
        {"tokentrie": {"constraint": {"json_schema": {"enum": ["a", "b"]}}, "after": "free"}},
    ],
)
def test_any_spec_is_a_constraint(source: RequestSets, extra: dict[str, Any]) -> None:
    asked = source.asked(extra)
    assert asked is not None
    assert asked.trie is None
    vocab = asked.vocab
    assert isinstance(vocab, tokentrie.Vocab)
    sampler = tokentrie.Sampler(vocab, asked.constraint)
    allowed = {vocab[int(token)] for token in sampler.allowed()}
    assert allowed <= {b"a", b"b", b'"'}
    assert allowed
    assert asked.after == extra.get("tokentrie", {}).get("after", "stop")
    again = source.asked(extra)
    assert again is not None
    assert again.constraint is asked.constraint, "it is kept"


@pytest.mark.parametrize(
    ("constraint", "says"),
    [
        ({"regex": "[a"}, "constraint"),
        ({"regexp": "a"}, "regexp"),
        ({"set": "tools"}, "no saved set"),
        ({"name": "tools"}, "registered"),
        ({"regex": "é" * 3000}, "a request may bring"),
        ("not JSON", "constraint"),
        (7, "constraint"),
    ],
)
def test_what_is_no_spec_fails_when_it_comes(tmp_path: Path, source: RequestSets, constraint: Any, says: str) -> None:
    source.most = 5000
    with pytest.raises(RequestError, match=says):
        source.asked({"tokentrie": {"constraint": constraint}})
    with pytest.raises(RequestError, match="suffix"):
        source.asked({"tokentrie": {"constraint": {"regex": "a"}, "suffix": "x"}})
    with pytest.raises(RequestError, match="TOKENTRIE_TOKENIZER"):
        RequestSets(None).asked({"tokentrie_constraint": json.dumps({"regex": "a"})})


def test_only_the_last_are_kept(source: RequestSets) -> None:
    def asked(number: int) -> Any:
        found = source.asked({"tokentrie": {"constraint": {"regex": f"a{{{number}}}"}}})
        assert found is not None
        return found.constraint

    one = asked(1)
    assert asked(1) is one
    asked(2), asked(3)
    assert asked(1) is not one
