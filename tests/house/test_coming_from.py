"""`docs/coming-from.md`: names of all rows are there, and rows that no block of the page runs do what they say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokentrie

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text("utf-8")
YES_OR_NO = 'root ::= "yes" | "no"'
pytestmark = pytest.mark.model


def test_each_name_of_the_tables_is_there() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    named = set(re.findall(r"tokentrie\.([A-Za-z_.]+)\b(?!\.)", "\n".join(row.split(" | ", 1)[1] for row in rows)))
    assert len(named) >= 12
    for name in named - {"integrations"}:
        found: Any = tokentrie
        for part in name.rstrip(".").split("."):
            found = getattr(found, part)


def test_a_model_and_a_vocabulary_are_read_from_a_file(tiny_path: Path) -> None:
    model = tokentrie.Model(str(tiny_path))
    assert model.generate("Is it? ", ["yes", "no"]).leaf.name in ("yes", "no")
    assert len(tokentrie.Vocab.from_gguf(str(tiny_path))) == len(model.vocab)


def test_a_vocabulary_is_made_of_a_tokenizer() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    assert len(tokentrie.Vocab.from_tokenizer(tokenizer)) == 3


@pytest.mark.parametrize(
    "given",
    [
        ["--constraint", json.dumps({"gbnf": YES_OR_NO})],
        ["--json-schema", json.dumps({"enum": ["yes", "no"]})],
    ],
    ids=lambda given: given[0],
)
def test_the_command_takes_grammars_and_schemas(given: list[str]) -> None:
    command = [sys.executable, "-m", "tokentrie", "generate", "-p", "Is it? ", *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\b(yes|no)\b", done.stdout)


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    pytest.importorskip("uvicorn")
    from serve.server import serving

    with serving() as listening:
        yield listening


def test_the_server_takes_a_grammar_as_others_do(server: Any) -> None:
    reply = server.ask("POST", "/v1/completions", {"prompt": "Is it? ", "grammar": YES_OR_NO, "max_tokens": 8})
    assert reply.json()["choices"][0]["text"] in ("yes", "no")


def test_the_server_decides_under_both_addresses(server: Any) -> None:
    question = {"type": "predicate", "name": "refund", "instructions": "Is it about a refund?"}
    body = {"model": "any", "input": "I was charged twice.", "questions": [question]}
    (answer,) = server.ask("POST", "/v1/decisions", body).json()["answers"]
    assert answer["name"] == "refund"
    other = {
        "model": "any",
        "state": "I was charged twice.",
        "questions": {"team": {"type": "choice", "criteria": {"a": "x", "b": "y"}}},
    }
    assert "team" in server.ask("POST", "/v1/systemone", other).json()["answers"]


def test_a_beam_never_leaves_the_set() -> None:
    trie = tokentrie.Trie.from_sequences([[10, 20, 30], [10, 21, 30], [11, 20, 31]], names=["a", "b", "c"])
    found = tokentrie.sets.beam_search(
        lambda rows: np.tile(np.arange(40, dtype=np.float32), (len(rows), 1)), trie, 3, vocab=40
    )
    assert {trie.leaf(trie.find(beam.tokens)).name for beam in found} == {"a", "b", "c"}
