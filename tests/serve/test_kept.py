"""Constraints in a folder: what is there after whatever happened."""

from __future__ import annotations

import http.client
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tokentrie
from budget import cases

pytest.importorskip("uvicorn")

from serve.server import KEY, Server, serving
from tokentrie.serve.errors import WireError
from tokentrie.serve.store import Quota, Store
from tokentrie.serve.store.references import resolve_names
from wasm_modules import IMEI

pytestmark = pytest.mark.model

TEXT, BYTES = "text/plain", "application/octet-stream"


@pytest.fixture(scope="module")
def model() -> Iterator[tokentrie.Model]:
    with tokentrie.Model() as model:
        yield model


@pytest.fixture(scope="module")
def vocab(model: tokentrie.Model) -> tokentrie.Vocab:
    return model.vocab


def put(server: Server, name: str, body: Any, media: str = "application/json", key: str = KEY) -> Any:
    return server.ask("PUT", f"/v1/constraints/{name}", body, {"content-type": media}, key=key)


def shown(server: Server) -> dict[str, Any]:
    return {one["name"]: one for one in server.ask("GET", "/v1/constraints").json()["data"]}


def kept(store: Store, name: str, body: bytes, media: str = TEXT) -> Any:
    """As a PUT does."""
    content, data = store.read(media, body)
    store.check(content)
    return store.store_content(name, content, data)[0]


def test_what_was_put_is_there_after_a_restart(tmp_path: Path, vocab: tokentrie.Vocab) -> None:
    folder = tmp_path / "sets"
    with serving("--sets", str(folder)) as server:
        put(server, "colours", {"kind": "set", "values": ["red", "blue"]})
        put(server, "code", {"kind": "regex", "regex": "[0-9]{4}"})
        put(server, "code", {"kind": "regex", "regex": "[a-f]{2}"})
        put(server, "saved", tokentrie.Trie.from_strings(vocab, ["one", "two"]).to_bytes(vocab), BYTES)
        put(server, "again", {"kind": "set", "values": ["red", "blue"]})
        put(server, "turned", {"kind": "set", "values": ["x"]})
        put(server, "turned", tokentrie.Trie.from_strings(vocab, ["y"]).to_bytes(vocab), BYTES)
        put(server, "gone", {"kind": "set", "values": ["x"]})
        server.ask("DELETE", "/v1/constraints/gone")
        before = shown(server)
        assert sorted(path.name for path in folder.iterdir()) == [
            "again@1.json", "code@2.json", "colours@1.json", "saved@1.ttrie", "turned@2.ttrie",
        ]  # fmt: skip
        assert os.path.samefile(folder / "again@1.json", folder / "colours@1.json"), "the same bytes are kept once"
        assert server.stop() == 0
    with serving("--sets", str(folder)) as server:
        assert shown(server) == before
        assert before["code"]["version"] == 2
        told = server.ask("POST", "/v1/choose", {"prompt": "The sky is ", "set": "turned"}).json()
        assert told["choice"] == "y"
        assert put(server, "code", {"kind": "regex", "regex": "z"}).json()["version"] == 3
        # A second one would overwrite what this one keeps.
        done = subprocess.run(
            [sys.executable, "-m", "tokentrie", "serve", "--port", "0", "--sets", str(folder)],
            check=False, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert (done.returncode > 0, len(done.stderr.strip().splitlines())) == (True, 1)
        assert "another server has this folder" in done.stderr


def test_replicas_read_one_folder_and_none_changes_it(tmp_path: Path, vocab: tokentrie.Vocab) -> None:
    from fastapi.testclient import TestClient
    from tokentrie.serve import Settings, create_app
    from tokentrie.serve.models import ServedModel

    trie = tokentrie.Trie.from_strings(vocab, ["one", "two"])
    trie.save(tmp_path / "numbers.ttrie", vocab)
    apps = [
        create_app([ServedModel("m", tokentrie.Model(slots=2), None)], Settings(sets=tmp_path, fixed_sets=True))
        for _ in range(2)
    ]
    with TestClient(apps[0]) as first, TestClient(apps[1]) as second:
        for client in (first, second):
            said = client.post("/v1/choose", json={"prompt": "The number ", "set": "numbers"}).json()
            assert said["choice"] in ("one", "two")
            for method, body in (("PUT", ["a"]), ("PATCH", {"add": ["b"]}), ("DELETE", None)):
                reply = client.request(method, "/v1/constraints/numbers", json=body)
                assert (reply.status_code, reply.json()["error"]["code"]) == (403, "fixed"), method
        with pytest.raises(OSError, match="another server has this folder"):
            create_app([ServedModel("m", tokentrie.Model(), None)], Settings(sets=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["numbers.ttrie"]


def test_files_of_a_user_are_found_and_damaged_ones_left_out(tmp_path: Path, vocab: tokentrie.Vocab) -> None:
    trie = tokentrie.Trie.from_strings(vocab, ["one", "two"])
    trie.save(tmp_path / "numbers.ttrie", vocab)
    (tmp_path / "size.json").write_text('{"then": [{"integer": {"min": 1, "max": 3}}, " kg"]}')
    (tmp_path / "phone.wasm").write_bytes(IMEI)
    (tmp_path / "half.wasm").write_bytes(IMEI[:90])
    whole = trie.to_bytes(vocab)
    (tmp_path / "cut.ttrie").write_bytes(whole[:-70])
    (tmp_path / "cut@4.json").write_text('{"choice": ["a"')
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "bits.ttrie").write_bytes(bytes([*whole[:200], whole[200] ^ 1, *whole[201:]]))
    (tmp_path / "refers.json").write_text('{"name": "numbers"}')
    (tmp_path / "deep.json").write_text('{"sequence": [' * 5000)
    (tmp_path / "text.json").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "folder.json").mkdir()
    own = tokentrie.Vocab.from_tokens([b"a", b"b"])
    tokentrie.Trie.from_sequences([[0, 1]]).save(tmp_path / "strange.ttrie", own)
    (tmp_path / "README.txt").write_text("not ours")
    (tmp_path / "colours@1.json.77.partial").write_text('{"choice"')
    (tmp_path / "theirs.partial").write_text("not ours either")
    os.mkfifo(tmp_path / "pipe.json")
    with serving("--sets", str(tmp_path)) as server:
        assert {name: one["size"] for name, one in shown(server).items() if "size" in one} == {"numbers": 2}
        assert [*shown(server)] == ["numbers", "phone", "size"]
        told = server.ask("POST", "/v1/choose", {"prompt": "It is ", "set": "numbers"}).json()
        assert told["choice"] in ("one", "two")
        assert not (tmp_path / "colours@1.json.77.partial").exists(), "it is nobody's"
        assert (tmp_path / "theirs.partial").exists()
        # What replaces a damaged file counts, now and later.
        assert put(server, "cut", {"kind": "set", "values": ["b"]}).json()["version"] == 5
        assert not (tmp_path / "cut@4.json").exists()
        assert not (tmp_path / "cut.ttrie").exists()
        assert server.ask("DELETE", "/v1/constraints/numbers").status == 204
        assert not (tmp_path / "numbers.ttrie").exists()
        assert server.stop() == 0
        assert server.process.stderr is not None
        lines = server.process.stderr.read().splitlines()
    damaged = ["bits.ttrie", "cut@4.json", "deep.json", "empty.json", "folder.json", "half.wasm", "pipe.json"]
    assert sorted(Path(line.partition(": left out: ")[0]).name for line in lines) == [
        *damaged, "refers.json", "strange.ttrie", "text.json",
    ]  # fmt: skip
    with serving("--sets", str(tmp_path)) as server:
        assert [*shown(server)] == ["cut", "phone", "size"]


def test_a_folder_that_is_none_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", tmp_path / "no" / "where"):
        done = subprocess.run(
            [sys.executable, "-m", "tokentrie", "serve", "--port", "0", "--sets", str(wrong)],
            check=False, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert (done.returncode > 0, done.stdout, len(done.stderr.strip().splitlines())) == (True, "", 1), done.stderr
        assert str(wrong) in done.stderr


def test_a_server_that_is_killed_while_it_writes_loses_nothing_that_it_confirmed(tmp_path: Path) -> None:
    """SIGKILL at any moment: each name has a whole content, the confirmed one or the one that was under way."""
    draw = random.Random(9)
    confirmed: dict[str, int] = {}
    begun: dict[str, int] = {}
    failed: list[Any] = []
    size = 20_000
    # Another test may get the port of a server that is gone: that one knows another key.
    key = f"key-{draw.random()}"
    for _ in range(max(3, cases(20))):
        with serving("--sets", str(tmp_path), "--api-key", key) as server:
            there = shown(server)
            assert not [*tmp_path.glob("*.partial")]
            for name, low in confirmed.items():
                said = server.ask("POST", "/v1/choose", {"prompt": "x ", "set": f"{name}.mark"}).json()
                mark = int(said["choice"])
                assert low <= mark <= begun[name], "an older one came back"
                assert there[name]["size"] == size
            stop = threading.Event()

            def write(name: str, server: Server = server, stop: threading.Event = stop) -> None:
                while not stop.is_set():
                    number = begun[name] = begun.get(name, 0) + 1
                    large = "\n".join(f"{number} {value}" for value in range(size)).encode()
                    mark = json.dumps({"kind": "set", "values": [str(number)]}).encode()
                    try:
                        replies = [put(server, name, large, TEXT, key), put(server, f"{name}.mark", mark, key=key)]
                    except (OSError, http.client.HTTPException):
                        return
                    if statuses := [one.status for one in replies if one.status not in (200, 201)]:
                        failed.extend(statuses if 401 not in statuses else [])
                        return
                    confirmed[name] = number

            writers = [threading.Thread(target=write, args=(f"w{number}",)) for number in range(3)]
            for one in writers:
                one.start()
            time.sleep(0.3 + draw.random())
            server.process.send_signal(signal.SIGKILL)
            stop.set()
            for one in writers:
                one.join()
    assert failed == []
    assert confirmed
    for path in tmp_path.glob("w*.json"):
        if ".mark" not in path.name:
            values = json.loads(path.read_text())["choice"]
            assert len(values) == size
            assert len({value.split()[0] for value in values}) == 1


def test_a_disk_that_takes_no_more_is_told_and_keeps_what_was_there(tmp_path: Path) -> None:
    with serving("--sets", str(tmp_path)) as server:
        before = put(server, "a", {"kind": "set", "values": ["x"]}).json()
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (10_000, 10_000))
        large = "\n".join(f"value {number}" for number in range(5000)).encode()
        for name in "ab":
            told = put(server, name, large, TEXT)
            assert (told.status, told.json()["error"]["code"]) == (507, "storage"), told.body
        assert shown(server) == {"a": before}
        assert [path.name for path in tmp_path.iterdir()] == ["a@1.json"]
        assert put(server, "b", {"kind": "set", "values": ["y"]}).status == 201
        assert server.ask("DELETE", "/v1/constraints/a").status == 204


def test_a_set_is_mapped_and_survives_its_file(tmp_path: Path, model: tokentrie.Model, vocab: tokentrie.Vocab) -> None:
    store = Store(tmp_path, [model])
    data = tokentrie.Trie.from_strings(vocab, ["one", "two"]).to_bytes(vocab)
    entry = kept(store, "s", data, BYTES)
    running = store.names()["s"]
    assert str(tmp_path / "s@1.ttrie") in repr(running.__reduce__()), "it is open from its file"
    kept(store, "s", b"three\n")
    assert not (tmp_path / "s@1.ttrie").exists()
    assert {*running.names} == {*entry.content.constraint.names} == {"one", "two"}
    assert store.names()["s"].to_dict() == {"choice": ["three"]}
    store.close()


def test_names_in_specs_stand_for_what_is_kept_now(model: tokentrie.Model, vocab: tokentrie.Vocab) -> None:
    store = Store(None, [model])
    kept(store, "colour", b"red\nblue\n")
    kept(store, "saved", tokentrie.Trie.from_strings(vocab, ["one", "two"]).to_bytes(vocab), BYTES)
    assert store.constraint({"name": "colour"}) is store.constraint({"set": "colour"}) is store.names()["colour"]
    form = {"form": [{"slot": "c", "value": {"set": "colour"}}, ", ", {"slot": "n", "value": {"name": "saved"}}]}
    made = store.constraint(form)
    kept(store, "colour", b"green\n")
    assert model.generate("The sky is ", made).values["c"] in ("red", "blue")
    out = model.generate("The sky is ", store.constraint(form)).values
    assert (out["c"], out["n"] in ("one", "two")) == ("green", True)
    for wrong in ({"name": "nowhere"}, {"set": "nowhere"}, {"sequence": [{"set": "../colour"}]}, 7, None, [], "x", {}):
        with pytest.raises((tokentrie.errors.OptionError, WireError)):
            store.constraint(wrong)
    with pytest.raises(WireError, match="at most 10"):
        store.constraint({"think": {"end": "x", "then": {"regex": "a", "limits": {"seconds": 60}}}})


def test_references_are_looked_for_where_specs_stand_and_nowhere_else() -> None:
    schema = {"properties": {"set": "a", "limits": {"seconds": 99}, "value": {"set": "a"}}, "set": "a"}
    for spec in (
        {"json_schema": schema},
        {"payload": {"set": "a", "value": {"set": "a"}}},
        {"choice": ["set", "a"]},
        {"reply": {"tools": [{"set": "a"}]}},
        {"form": ["set", {"text": "t", "stop": "set"}]},
        {"set": "other"},
        {"set": ["a"]},
    ):
        assert resolve_names(spec, {"a"}) == (spec, "set" in spec)
    inside = {"set": "a"}
    for outside, found in (
        ({"one_of": [inside, "b"]}, {"one_of": [{"name": "a"}, "b"]}),
        ({"then": ["b", inside]}, {"then": ["b", {"name": "a"}]}),
        ({"sequence": [{"sequence": [inside]}]}, {"sequence": [{"sequence": [{"name": "a"}]}]}),
        ({"form": [{"slot": "x", "value": inside}]}, {"form": [{"slot": "x", "value": {"name": "a"}}]}),
        ({"form": [{"text": "x", "pattern": inside}]}, {"form": [{"text": "x", "pattern": {"name": "a"}}]}),
        ({"think": {"end": "e", "then": inside}}, {"think": {"end": "e", "then": {"name": "a"}}}),
    ):
        assert resolve_names(outside, {"a"}) == (found, True)


def test_grammars_of_requests_are_made_in_seconds_wherever_they_stand(model: tokentrie.Model) -> None:
    five = {"limits": {"seconds": 5}}
    for said, found in (
        ({"regex": "a"}, {"regex": "a", **five}),
        ({"then": [{"gbnf": "root ::= [a]"}]}, {"then": [{"gbnf": "root ::= [a]", **five}]}),
        ({"lark": "g", "limits": {"seconds": 9, "bytes": 7}}, {"lark": "g", "limits": {"seconds": 5, "bytes": 7}}),
        ({"regex": "a", "limits": {"seconds": 2}}, {"regex": "a", "limits": {"seconds": 2}}),
        ({"regex": "a", "limits": "x"}, {"regex": "a", "limits": "x"}),
        ({"choice": ["regex"]}, {"choice": ["regex"]}),
    ):
        assert resolve_names(said, {}, 5) == (found, False)
    store = Store(None, [model])
    schema = {"json_schema": {"properties": {"name": {}, "set": {"type": "string"}}}}
    assert store.constraint(schema) is store.constraint(schema)


def test_versions_and_bytes_are_counted_by_content(tmp_path: Path, model: tokentrie.Model) -> None:
    for folder in (None, tmp_path):
        store = Store(folder, [model], Quota(2, 60))
        assert kept(store, "a", b"one\n").version == 1
        assert kept(store, "a", b"one\n").version == 1
        assert kept(store, "a", b"two\n").version == 2
        assert (
            kept(store, "b", b"two\n").content is store.names()["a"] or store.get("b").content is store.get("a").content
        )  # type: ignore[union-attr]
        with pytest.raises(WireError, match="--max-sets-bytes"):
            kept(store, "b", b"a value of more bytes than there may be, all in all\n")
        store.remove("a")
        with pytest.raises(WireError, match="unknown constraint 'a'"):
            store.remove("a")
        assert [one.name for one in store.list_entries()] == ["b"]
        store.close()
