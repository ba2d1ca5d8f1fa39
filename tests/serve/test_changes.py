"""Sets that are changed by `PATCH`: lists of texts and files, in memory and in a folder."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tokentrie

pytest.importorskip("uvicorn")

from serve.server import Reply, Server, serving

pytestmark = pytest.mark.model

NAMES = [f"colour {number}" for number in range(40)]
KINDS = ["text/plain", "application/octet-stream"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("--max-body", "20000") as server:
        yield server


@pytest.fixture(scope="module")
def vocab() -> tokentrie.Vocab:
    with tokentrie.Model() as model:
        return model.vocab


def put(server: Server, name: str, values: list[str], kind: str, vocab: tokentrie.Vocab) -> Reply:
    body = (
        "\n".join(values).encode() if kind == KINDS[0] else tokentrie.Trie.from_strings(vocab, values).to_bytes(vocab)
    )
    return server.ask("PUT", f"/v1/constraints/{name}", body, {"content-type": kind})


def patch(server: Server, name: str, change: Any, **headers: str) -> Reply:
    return server.ask("PATCH", f"/v1/constraints/{name}", change, {**headers})


def values(server: Server, name: str) -> set[str]:
    """What can be chosen; and a generation writes one of them."""
    chosen = server.ask("POST", "/v1/choose", {"prompt": "I like ", "set": name}).json()["values"]
    found = {one["value"] for one in chosen}
    asked = {"prompt": "I like ", "constraint": {"name": name}}
    assert server.ask("POST", "/v1/completions", asked).json()["choices"][0]["text"] in found
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_values_come_and_go(server: Server, vocab: tokentrie.Vocab, kind: str) -> None:
    there, tag = {*NAMES[:5]}, put(server, "set", NAMES[:5], kind, vocab).headers["etag"]
    for turn in range(8):
        add, remove = random.sample(NAMES, 4), random.sample(NAMES, 3)
        after = (there - {*remove}) | {*add}
        reply = patch(server, "set", {"add": add, "remove": remove}, **{"if-match": tag})
        said = reply.json()
        assert reply.status == 200, said
        kept = there - {*remove}
        assert (said["added"], said["removed"]) == (len({*add} - kept), len({*remove} & there)), turn
        assert said["size"] == len(after)
        assert values(server, "set") == after
        assert patch(server, "set", {"add": ["x"]}, **{"if-match": '"another"'}).status == 412
        there, tag = after, reply.headers["etag"]
    same = patch(server, "set", {"add": [*there]})
    assert (same.json()["added"], same.headers["etag"]) == (0, tag)


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_is_refused_and_changes_nothing(server: Server, vocab: tokentrie.Vocab, kind: str) -> None:
    put(server, "fixed", NAMES[:3], kind, vocab)
    before = server.ask("GET", "/v1/constraints/fixed").headers["etag"]
    for change in (
        {}, {"add": []}, {"add": "red"}, {"add": [1]}, {"add": [""]}, {"add": None}, {"remove": NAMES[:3]},
        {"add": ["a"], "set": 1}, [], "x", 7, {"add": ["\ud800"]}, {"add": ["a"], "remove": [["a"]]},
    ):  # fmt: skip
        assert patch(server, "fixed", change).status == 400, change
    assert patch(server, "nowhere", {"add": ["a"]}).status == 404
    assert server.ask("GET", "/v1/constraints/fixed").headers["etag"] == before
    server.ask("PUT", "/v1/constraints/rule", {"kind": "regex", "regex": "a+"})
    assert "no values" in patch(server, "rule", {"add": ["a"]}).json()["error"]["message"]


@pytest.mark.parametrize("kind", KINDS)
def test_no_change_of_several_clients_is_lost(server: Server, vocab: tokentrie.Vocab, kind: str) -> None:
    put(server, "many", NAMES[:1], kind, vocab)
    with ThreadPoolExecutor(8) as pool:
        replies = [*pool.map(lambda name: patch(server, "many", {"add": [name]}).status, NAMES)]
    assert replies == [200] * len(NAMES)
    assert values(server, "many") == {*NAMES}


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_confirmed_is_there_after_a_crash(tmp_path: Path, vocab: tokentrie.Vocab, kind: str) -> None:
    with serving("--sets", str(tmp_path)) as server:
        put(server, "set", NAMES[:3], kind, vocab)
        tag = patch(server, "set", {"add": NAMES[5:7], "remove": NAMES[:1]}).headers["etag"]
        server.process.kill()
    with serving("--sets", str(tmp_path)) as server:
        assert server.ask("GET", "/v1/constraints/set").headers["etag"] == tag
        assert values(server, "set") == {*NAMES[1:3], *NAMES[5:7]}
