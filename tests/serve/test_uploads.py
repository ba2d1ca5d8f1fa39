"""Constraints that are put: every kind of body, what is refused, and their use by name."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import tokentrie

pytest.importorskip("uvicorn")

import zstandard
from budget import cases
from serve.server import KEY, Reply, Server, serving
from serve.test_server import mutated
from wasm_modules import IMEI, LETTERS, stepping

pytestmark = pytest.mark.model

COLOURS = ["red", "light blue", "dark green"]
TEXT, CSV, BYTES = "text/plain", "text/csv; charset=utf-8", "application/octet-stream"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("--max-body", "20000", "--max-upload", "300000") as server:
        yield server


@pytest.fixture(scope="module")
def model() -> Iterator[tokentrie.Model]:
    with tokentrie.Model() as model:
        yield model


@pytest.fixture
def name(server: Server) -> Iterator[str]:
    """A name that nothing stands for, before and after."""
    name = f"n{random.getrandbits(60)}"
    yield name
    server.ask("DELETE", path_of(name))


def path_of(name: str) -> str:
    return f"/v1/constraints/{name}"


def put(server: Server, name: str, body: Any, media: str | None = None, **headers: str) -> Reply:
    named = {"content-type": media} if media else {}
    return server.ask(
        "PUT", path_of(name), body, {**named, **{key.replace("_", "-"): one for key, one in headers.items()}}
    )


def chosen(server: Server, name: str, **more: Any) -> Any:
    reply = server.ask("POST", "/v1/choose", {"prompt": "The sky is ", "set": name, **more})
    assert reply.status == 200, reply.body
    return reply.json()


@pytest.mark.parametrize(
    ("media", "query", "body"),
    [
        (None, "", {"kind": "set", "values": COLOURS}),
        (None, "", {"kind": "spec", "spec": {"choice": COLOURS}}),
        (TEXT, "", "\n".join(COLOURS).encode()),
        (TEXT, "", "\ufeffred\r\n\r\nlight blue\r\nred\r\ndark green\r\n".encode()),
        (CSV, "?column=colour", b'id,colour\r\n1,red\r\n2,"light blue"\r\n3,\r\n4,dark green\r\n5,red\r\n'),
    ],
)
def test_a_list_of_texts_is_the_same_set_however_it_is_put(
    server: Server, name: str, media: str | None, query: str, body: Any
) -> None:
    reply = put(server, name + query, body, media)
    assert reply.status == 201, reply.body
    said = reply.json()
    digest = hashlib.sha256(b'{"choice":["red","light blue","dark green"]}').hexdigest()
    assert (said["name"], said["kind"], said["size"], said["version"]) == (name, "set", 3, 1)
    assert (said["digest"], reply.headers["etag"]) == (digest, f'"{digest}"')
    told = chosen(server, name)
    listed = server.ask("POST", "/v1/choose", {"prompt": "The sky is ", "values": COLOURS}).json()
    assert [one["value"] for one in told["values"]] == COLOURS
    assert [one["probability"] for one in told["values"]] == pytest.approx(
        [one["probability"] for one in listed["values"]], abs=0.01
    )
    best = chosen(server, name, top=2)["values"]
    assert len(best) == 2
    assert best[0]["probability"] >= best[1]["probability"]
    assert all(COLOURS[one["index"]] == one["value"] for one in best)


def test_a_payload_and_a_file_are_sets(server: Server, name: str, model: tokentrie.Model) -> None:
    leaves = [{"name": "STOP", "tokens": [12]}, {"name": "GO", "tokens": [15, 16]}]
    reply = put(server, name, {"kind": "set", "payload": {"descriptors": [{"path": "act", "leaves": leaves}]}})
    assert (reply.status, reply.json()["kind"], reply.json()["size"]) == (201, "set", 2), reply.body
    assert {one["value"] for one in chosen(server, name)["values"]} == {"STOP", "GO"}
    trie = tokentrie.Trie.from_strings(model.vocab, COLOURS)
    data = trie.to_bytes(model.vocab)
    reply = put(server, name, data, BYTES)
    assert (reply.status, reply.json()["kind"], reply.json()["size"]) == (200, "set", 3), reply.body
    assert reply.json()["digest"] == hashlib.sha256(data).hexdigest()
    told, own = chosen(server, name), model.choose("The sky is ", trie)
    assert [one["value"] for one in told["values"]] == own.names
    assert [one["probability"] for one in told["values"]] == pytest.approx([*own.probabilities.values()], abs=0.01)
    # Leaves without a name are what their tokens spell.
    ids = [model.vocab.tokenize(colour) for colour in COLOURS]
    assert put(server, name, tokentrie.Trie.from_sequences(ids).to_bytes(), BYTES).status == 200
    assert {one["value"] for one in chosen(server, name)["values"]} == {*COLOURS}
    assert chosen(server, name)["choice"] in COLOURS


@pytest.mark.parametrize(
    ("kind", "value", "values"),
    [
        ("regex", "[ab]{2}", ["aa", "ab", "ba", "bb"]),
        ("regex", "[ab]*", None),
        ("grammar", 'list : "a" | list "a" ;', None),
        ("lark", 'start: "a" | "b"', ["a", "b"]),
        ("json_schema", {"type": "object", "properties": {"set": {"enum": ["x"]}, "limits": {}}}, None),
    ],
)
def test_rules_are_put_and_those_with_few_texts_are_sets_too(
    server: Server, name: str, kind: str, value: Any, values: list[str] | None
) -> None:
    reply = put(server, name, {"kind": kind, kind: value})
    assert (reply.status, reply.json()["kind"]) == (201, kind), reply.body
    assert "size" not in reply.json()
    same = put(server, name + ".spec", {"kind": "spec", "spec": {kind: value}})
    assert (same.json()["digest"], same.json()["kind"]) == (reply.json()["digest"], kind)
    server.ask("DELETE", path_of(name + ".spec"))
    asked = server.ask("POST", "/v1/choose", {"prompt": "x ", "set": name})
    if values is None:
        assert asked.status == 400, asked.body
        assert asked.json()["error"]["message"]
    else:
        assert [one["value"] for one in asked.json()["values"]] == values


def test_a_form_keeps_what_its_names_stood_for(server: Server, name: str) -> None:
    inner = f"{name}.inner"
    put(server, inner, {"kind": "set", "values": ["one", "two"]})
    for reference in ("name", "set"):
        form = {"form": ["<", {"slot": "n", "value": {reference: inner}}, ">"]}
        reply = put(server, f"{name}.{reference}", {"kind": "spec", "spec": form})
        assert (reply.status, reply.json()["kind"]) == (201, "spec"), reply.body
    put(server, inner, {"kind": "set", "values": ["three"]})
    for reference in ("name", "set"):
        told = chosen(server, f"{name}.{reference}")
        assert {one["value"] for one in told["values"]} == {"<one>", "<two>"}
        server.ask("DELETE", path_of(f"{name}.{reference}"))
    with tokentrie.Model() as model:
        data = tokentrie.Trie.from_strings(model.vocab, ["one"]).to_bytes()
    put(server, inner, data, BYTES)
    told = put(server, name, {"kind": "spec", "spec": form})
    assert told.status == 400
    assert "saved set" in told.json()["error"]["message"]
    server.ask("DELETE", path_of(inner))


@pytest.mark.parametrize(
    ("body", "param", "says"),
    [
        ({}, "kind", "kind"),
        ({"kind": "sets", "values": ["a"]}, "kind", "expected one of"),
        ({"kind": ["set"], "values": ["a"]}, "kind", "expected one of"),
        ({"kind": "set"}, "values", "one of values and payload"),
        ({"kind": "set", "values": ["a"], "payload": {}}, "values", "one of"),
        ({"kind": "set", "values": ["a"], "regex": "a"}, "regex", "unknown field"),
        ({"kind": "regex", "regex": "a", "extra": 1}, "extra", "unknown field"),
        ({"kind": "regex"}, "regex", "give regex"),
        ({"kind": "regex", "regex": 7}, None, "$.regex"),
        ({"kind": "regex", "regex": "a("}, None, "unclosed group"),
        ({"kind": "grammar", "grammar": "x : ;;"}, None, "$.grammar"),
        ({"kind": "lark", "lark": "start: y"}, None, "no rule or terminal is named y"),
        ({"kind": "json_schema", "json_schema": {"type": "strin"}}, None, "strin"),
        ({"kind": "json_schema", "json_schema": {"$ref": "http://127.0.0.1:1/x"}}, None, "$ref"),
        ({"kind": "spec", "spec": "choice"}, "spec", "object"),
        ({"kind": "spec", "spec": {"choice": ["a"], "regex": "b"}}, None, "several"),
        ({"kind": "spec", "spec": {"nosuch": 1}}, None, "nosuch"),
        ({"kind": "spec", "spec": {"name": "nowhere"}}, None, "nowhere"),
        ({"kind": "spec", "spec": {"set": "../../etc/passwd"}}, None, "$.set"),
        ({"kind": "spec", "spec": {"regex": "a", "limits": {"seconds": 11}}}, "$.limits.seconds", "at most 10"),
        ({"kind": "spec", "spec": {"one_of": [{"regex": "a", "max_bytes": 1 << 29}]}}, "$.one_of[0].max_bytes", "most"),
        ({"kind": "set", "values": []}, "values", "at least one value"),
        ({"kind": "set", "values": "abc"}, "values", "list"),
        ({"kind": "set", "values": ["a", 7]}, "values.1", "text"),
        ({"kind": "set", "values": ["a", True]}, "values.1", "text"),
        ({"kind": "set", "values": ["a", ""]}, "values.1", "empty"),
        ({"kind": "set", "values": ["b", "a", "b"]}, "values", "'b' is given twice"),
        ({"kind": "set", "values": ["\ud800"]}, None, "surrogate"),
        ({"kind": "set", "payload": {"descriptors": []}}, None, "no usable leaf"),
        ({"kind": "set", "payload": {"descriptors": [{}, {}]}}, "payload", "one descriptor"),
        ({"kind": "set", "payload": {"descriptors": [{"path": "a", "leaves": [{"tokens": [10**8]}]}]}}, None, ""),
        ([], None, "object"),
        (b"", None, "invalid JSON"),
        (b"{", None, "invalid JSON"),
        (b"\xff\xfe", None, "invalid JSON"),
        (b'{"kind": "regex", "regex": "a", "regex": "b"}', "regex", "twice"),
        (b'{"kind": "set", "values": [NaN]}', None, "NaN"),
        (b"[" * 100_000, None, "nested"),
        (b'{"kind": "json_schema", "json_schema": ' + b'{"a":' * 20_000 + b"1" + b"}" * 20_001, None, "nested"),
    ],
)
def test_what_is_wrong_is_told_and_leaves_what_was_there(
    server: Server, name: str, body: Any, param: str | None, says: str
) -> None:
    before = put(server, name, {"kind": "regex", "regex": "b"})
    reply = put(server, name, body, "application/json")
    assert reply.status == 400, reply.body
    error = reply.json()["error"]
    assert says in error["message"]
    assert error["param"] == param
    assert server.ask("GET", path_of(name)).json() == before.json()


@pytest.mark.parametrize(
    ("media", "query", "body", "status", "says"),
    [
        ("application/wasm", "", b"\0asm", 400, "no module of WebAssembly"),
        ("application/wasm", "", b"\0asm\1\0\0\0" + b"\0" * 200_000, 400, "wasm"),
        ("application/xml", "", b"<a/>", 415, "application/xml"),
        ("", "", b"a", 415, "content type"),
        ("text/plain; charset=utf-16", "", "a".encode("utf-16"), 415, "utf-16"),
        (TEXT, "", b"a\nb\n\xff\n", 400, "line 3: not UTF-8"),
        (TEXT, "", b"\n\r\n", 400, "at least one value"),
        (TEXT, "?column=a", b"a", 400, "column"),
        (CSV, "", b"a,b\n1,2\n", 400, "'a', 'b'"),
        (CSV, "?column=c", b"a,b\n1,2\n", 400, "'a', 'b'"),
        (CSV, "?column=a", b"a,a\n1,2\n", 400, "column"),
        (CSV, "?column=a", b"a,b\n1,2\n3\n", 400, "line 3"),
        (CSV, "?column=a", b'a,b\n1,"2\n', 400, "malformed CSV"),
        (CSV, "?column=a", b"", 400, "column"),
        (BYTES, "", b"", 400, "cut off"),
        (BYTES, "", b"\x89ttrie\r\n" + b"\0" * 200, 400, ""),
    ],
)
def test_other_bodies_that_are_wrong(
    server: Server, name: str, media: str, query: str, body: bytes, status: int, says: str
) -> None:
    reply = put(server, name + query, body, media)
    assert (reply.status, says in reply.json()["error"]["message"]) == (status, True), reply.body
    assert server.ask("GET", path_of(name)).status == 404


def test_damaged_files_and_those_of_other_models_are_refused(server: Server, name: str, model: tokentrie.Model) -> None:
    trie = tokentrie.Trie.from_strings(model.vocab, [f"value {number}" for number in range(50)])
    data = trie.to_bytes(model.vocab)
    draw = random.Random(5)
    for _ in range(40):
        at = draw.randrange(len(data))
        damaged = data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
        cut = data[: draw.randrange(len(data))]
        assert put(server, name, cut, BYTES).status == 400
        # A bit between the sections is told of, or means nothing.
        reply = put(server, name, damaged, BYTES)
        assert reply.status == 400 or chosen(server, name)["choice"].startswith("value ")
    said = put(server, name, b"nothing of a file" * 99, BYTES).json()["error"]["message"]
    assert said.startswith("the body: not a .ttrie file")
    own = tokentrie.Vocab.from_tokens([b"a", b"b", b"c"])
    other = tokentrie.Trie.from_sequences([[0, 1]]).to_bytes(own)
    reply = put(server, f"{name}.other", other, BYTES)
    assert (reply.status, "vocabulary" in reply.json()["error"]["message"]) == (400, True)
    beyond = tokentrie.Trie.from_sequences([[len(model.vocab)]]).to_bytes()
    assert put(server, f"{name}.other", beyond, BYTES).status == 400


BOMBS = {
    "regex": [
        "(a|b)*a(a|b){30}",
        "a{2000000000}",
        "((a{1000}){1000}){1000}",
        "(" * 60_000 + ")" * 60_000,
        "[^a]{9999}",
    ],
    "grammar": ["\n".join(f'r{n} : "a{n}" | r{(n * 7 + 1) % 3000} "b" ;' for n in range(3000)), "a : " + "(" * 50_000],
    "lark": ["start: " + "(" * 20_000 + '"a"' + ")" * 20_000, 'start: ("a"~1..100000)~1..100000'],
    "json_schema": [
        {"type": "string", "pattern": "(a|b)*a(a|b){30}", "minLength": 10**9},
        {"allOf": [{"anyOf": [{"properties": {f"a{m}{n}": {}}} for n in range(12)]} for m in range(12)]},
        {"enum": [f"value {n}" for n in range(10_000)]},
    ],
}


@pytest.mark.parametrize("kind", BOMBS)
def test_bombs_are_refused_or_made_soon_while_others_are_answered(server: Server, name: str, kind: str) -> None:
    for bomb in BOMBS[kind]:
        with ThreadPoolExecutor(1) as pool:
            began = time.monotonic()
            running = pool.submit(put, server, name, {"kind": kind, kind: bomb})
            while not running.done():
                assert server.ask("GET", "/health").status == 200
                time.sleep(0.02)
            reply = running.result()
        assert reply.status in (200, 201, 400), reply.body
        assert time.monotonic() - began < 30
        assert reply.status < 400 or reply.json()["error"]["message"]


def test_what_takes_too_long_to_make_is_refused_in_time_and_ends_with_its_client(server: Server, name: str) -> None:
    """Each of its rules is within the limits of rules; all of them are minutes of work."""
    rules = [{"regex": f"(a|b|{chr(99 + n % 20)}{n})*a(a|b){{15}}"} for n in range(200)]
    body = {"kind": "spec", "spec": {"sequence": rules}}
    began = time.monotonic()
    with ThreadPoolExecutor(3) as pool:
        for reply in pool.map(lambda one: put(server, f"{name}.{one}", body), range(3)):
            assert (reply.status, "takes more than 5 s" in reply.json()["error"]["message"]) == (400, True), reply.body
    assert time.monotonic() - began < 60
    text = json.dumps(body).encode()
    head = f"PUT {path_of(name)} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(8)]
    for client in clients:
        client.sendall(head.encode() + text)
    time.sleep(0.5)
    for client in clients:
        client.close()
    # They do not take their time one after the other: nobody waits for them.
    began = time.monotonic()
    assert put(server, name, {"kind": "regex", "regex": "a"}).status == 201
    assert time.monotonic() - began < 8 / 4 * 5


@pytest.mark.parametrize(
    "bad",
    [
        "..%2f..%2fetc%2fpasswd", "%2e%2e", "a..b", ".hidden", "-x", "a%20b", "a%00b", "a%0Ab", "a%5cb", "x@1",
        "%C3%A4", "a" * 129, "..", "a/b", "%2fetc%2fpasswd", "a%25", "~", "a:b", "",
    ],
)  # fmt: skip
def test_names_lead_nowhere_else(server: Server, bad: str) -> None:
    for method, body in (("PUT", {"kind": "regex", "regex": "a"}), ("GET", None), ("DELETE", None)):
        reply = server.ask(method, path_of(bad), body)
        assert reply.status in (400, 404), (method, bad, reply.body)
        assert reply.json()["error"]["message"]
    assert bad not in [one["name"] for one in server.ask("GET", "/v1/constraints").json()["data"]]


def test_names_of_every_kind_that_is_allowed(server: Server) -> None:
    names = ["a", "0", "A.b-c_d", "pet.v1", "x" * 128, "a.json", "b.ttrie", "z."]
    for name in names:
        assert put(server, name, {"kind": "regex", "regex": "a"}).status == 201
    listed = server.ask("GET", "/v1/constraints").json()
    assert listed["object"] == "list"
    assert [one["name"] for one in listed["data"]] == sorted(names)
    for name in names:
        assert server.ask("GET", path_of(name)).json()["name"] == name
        gone = server.ask("DELETE", path_of(name))
        assert (gone.status, gone.body) == (204, b"")
        assert server.ask("DELETE", path_of(name)).status == 404


def test_tags_versions_and_conditions(server: Server, name: str) -> None:
    regex = {"kind": "regex", "regex": "[0-9]{4}"}
    assert put(server, name, regex, if_match="*").status == 412
    assert put(server, name, regex, if_match='"x"').status == 412
    first = put(server, name, regex, if_none_match="*")
    tag = first.headers["etag"]
    assert (first.status, first.json()["version"]) == (201, 1)
    assert put(server, name, regex, if_none_match="*").status == 412
    # The same again changes nothing.
    again = put(server, name, regex)
    assert (again.status, again.json()) == (200, first.json())
    other = {"kind": "regex", "regex": "[a-f]{2}"}
    assert put(server, name, other, if_match=f'"y", W/{tag}').status == 412, "a weak tag is none to be sure of"
    second = put(server, name, other, if_match=f'"y", {tag}')
    assert (second.status, second.json()["version"]) == (200, 2)
    assert second.headers["etag"] != tag
    read = server.ask("GET", path_of(name))
    assert (read.json(), read.headers["etag"]) == (second.json(), second.headers["etag"])
    for given, status in ((second.headers["etag"], 304), (tag, 200), ("*", 304), (f"W/{second.headers['etag']}", 304)):
        reply = server.ask("GET", path_of(name), None, {"if-none-match": given})
        assert (reply.status, reply.headers["etag"]) == (status, second.headers["etag"])
        assert (reply.body == b"") == (status == 304)
    assert server.ask("DELETE", path_of(name), None, {"if-match": tag}).status == 412
    assert server.ask("DELETE", path_of(name), None, {"if-match": second.headers["etag"]}).status == 204
    assert put(server, name, regex).json()["version"] == 1


def test_the_best_of_few_long_values_take_no_longer_than_all(server: Server, name: str, model: tokentrie.Model) -> None:
    """Looking for the best takes a pass for each token: of a value of 3,000 bytes that was minutes."""
    values = ["ab cd " * 250, "ef gh " * 250, "no"]
    put(server, name, {"kind": "set", "values": values})
    own = model.choose("x ", values)
    for asks in ({"set": name}, {"values": values}):
        before = _passes(server)
        told = server.ask("POST", "/v1/choose", {"prompt": "x ", "top": 2, **asks}).json()
        assert _passes(server) - before < 40
        assert [one["value"] for one in told["values"]] == [values[at] for at in [*own.ranking][:2]]
        assert [one["logprob"] for one in told["values"]] == pytest.approx(
            [own.logprobs[at] for at in [*own.ranking][:2]], rel=0.01
        )


def _passes(server: Server) -> float:
    text = server.ask("GET", "/metrics").body.decode()
    return float(text.partition('tokentrie_engine_passes_total{model="tiny"} ')[2].split()[0])


def test_faulty_questions_about_sets(server: Server, name: str) -> None:
    for asks, param in (
        ({"set": name}, "set"),
        ({"set": "../x"}, "set"),
        ({"set": name, "values": ["a"]}, "values"),
        ({}, "values"),
        ({"set": 7}, "set"),
    ):
        reply = server.ask("POST", "/v1/choose", {"prompt": "x ", **asks})
        assert (reply.status, reply.json()["error"]["param"]) == (400, param), reply.body
    put(server, name, "\n".join(map(str, range(10_001))).encode(), TEXT)
    reply = server.ask("POST", "/v1/choose", {"prompt": "x ", "set": name})
    assert (reply.status, reply.json()["error"]["param"]) == (400, "top")


def test_uploads_have_a_limit_of_their_own_packed_or_not(server: Server, name: str) -> None:
    lines = "\n".join(f"value {number}" for number in range(10_000)).encode()
    assert 20_000 < len(lines) < 300_000
    assert put(server, name, lines, TEXT).status == 201
    for encoding, packed in {"gzip": gzip.compress(lines), "zstd": zstandard.compress(lines)}.items():
        assert put(server, name, packed, TEXT, content_encoding=encoding).json()["size"] == 10_000
        assert put(server, name, packed[:-9], TEXT, content_encoding=encoding).status == 400, "it breaks off"
    large = lines * 4
    for encoding, body in {"identity": large, "gzip": gzip.compress(large), "zstd": zstandard.compress(large)}.items():
        assert put(server, name, body, TEXT, content_encoding=encoding).status == 413
    assert server.ask("POST", "/v1/choose", lines, {"content-type": "application/json"}).status == 413
    assert server.ask("GET", path_of(name)).json()["size"] == 10_000


def test_an_upload_that_is_cut_off_changes_nothing(server: Server, name: str) -> None:
    before = put(server, name, {"kind": "regex", "regex": "b"}).json()
    body = "\n".join(f"value {number}" for number in range(9000)).encode()
    for sent, chunked in ((len(body) // 2, False), (len(body) // 2, True), (0, False)):
        head = f"PUT {path_of(name)} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Type: {TEXT}\r\n"
        head += "Transfer-Encoding: chunked\r\n\r\n" if chunked else f"Content-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            part = body[:sent]
            client.sendall(head.encode() + (f"{sent:x}\r\n".encode() + part + b"\r\n" if chunked else part))
    end = time.monotonic() + 10
    while b"tokentrie_requests_running 1.0" not in server.ask("GET", "/metrics").body:
        assert time.monotonic() < end, "nobody waits for them"
    assert server.ask("GET", path_of(name)).json() == before


def test_writers_of_one_name_never_mix(server: Server, name: str) -> None:
    """Whoever comes last, all of the entry is of one of them."""
    bodies = {f"{w}": [f"{w} {number}" for number in range(20 + w)] for w in range(8)}
    done = threading.Event()

    def write(values: list[str]) -> list[int]:
        replies = [put(server, name, {"kind": "set", "values": values}) for _ in range(6)]
        assert {reply.status for reply in replies} <= {200, 201}
        assert all(reply.json()["size"] == len(values) for reply in replies)
        return [reply.status for reply in replies]

    def read() -> int:
        seen = 0
        while not done.is_set():
            if (reply := server.ask("POST", "/v1/choose", {"prompt": "x ", "set": name, "top": 40})).status == 200:
                values = reply.json()["values"]
                writers = {one["value"].split()[0] for one in values}
                assert len(writers) == 1
                assert len(values) == 20 + int(*writers)
                seen += 1
        return seen

    with ThreadPoolExecutor(10) as pool:
        reading = [pool.submit(read) for _ in range(2)]
        writing = [pool.submit(write, values) for values in bodies.values()]
        statuses = [status for one in writing for status in one.result()]
        done.set()
        assert sum(one.result() for one in reading) > 0
    assert statuses.count(201) == 1
    entry = server.ask("GET", path_of(name)).json()
    assert entry["size"] in range(20, 28)
    assert len(chosen(server, name)["values"]) == entry["size"]


def test_a_call_that_runs_keeps_the_set_it_began_with() -> None:
    with serving("--slots", "2") as server:
        old = [f"value number {number} of many" for number in range(900)]
        put(server, "s", {"kind": "set", "values": old})
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(chosen, server, "s", top=700)
            end = time.monotonic() + 60
            while b'tokentrie_engine_calls_running{model="tiny"} 1.0' not in server.ask("GET", "/metrics").body:
                assert time.monotonic() < end
            assert put(server, "s", {"kind": "set", "values": ["new"]}).status == 200
            assert [one["value"] for one in chosen(server, "s")["values"]] == ["new"]
            assert server.ask("DELETE", path_of("s")).status == 204
            assert not running.done(), "it was still running"
            assert {one["value"] for one in running.result()["values"]} <= {*old}


def test_quotas_are_told_and_leave_what_was_there() -> None:
    values = {"kind": "set", "values": [f"value {number}" for number in range(100)]}
    with serving("--max-sets", "3", "--max-sets-bytes", "3000") as server:
        first = put(server, "a", values)
        assert 1000 < first.json()["bytes"] < 1500
        # The same content is kept once, under any number of names.
        assert [put(server, name, values).status for name in "bc"] == [201, 201]
        told = put(server, "d", {"kind": "regex", "regex": "x"})
        assert (told.status, told.json()["error"]["code"]) == (413, "quota_exceeded")
        assert "--max-sets" in told.json()["error"]["message"]
        many = {"kind": "set", "values": [f"other {number}" for number in range(300)]}
        told = put(server, "c", many)
        assert (told.status, told.json()["error"]["code"]) == (413, "quota_exceeded")
        assert "3,000" in told.json()["error"]["message"]
        assert server.ask("GET", path_of("c")).json()["digest"] == first.json()["digest"]
        for name in "ab":
            server.ask("DELETE", path_of(name))
        # What is replaced no longer counts, where no other name has it.
        half = {"kind": "set", "values": [f"other {number}" for number in range(200)]}
        assert put(server, "c", half).status == 200


def test_keys_are_asked_for_and_routes_are_counted_by_route(server: Server, name: str) -> None:
    for method in ("PUT", "GET", "DELETE"):
        assert server.ask(method, path_of(name), b"x", key="wrong").status == 401
    assert server.ask("GET", "/v1/constraints", key=None).status == 401
    assert server.ask("POST", path_of(name), {}).status == 405
    server.ask("GET", path_of(name))
    text = server.ask("GET", "/metrics").body.decode()
    assert 'path="/v1/constraints/{name}"' in text
    assert name not in text, "names of clients are no labels"


def test_a_module_is_a_rule(server: Server, name: str) -> None:
    written = base64.b64encode(IMEI).decode()
    reply = put(server, name, IMEI, "application/wasm")
    assert (reply.status, reply.json()["kind"], reply.json()["version"]) == (201, "wasm", 1)
    same = put(server, name, {"kind": "wasm", "wasm": written})
    assert (same.status, same.json()["digest"]) == (200, reply.json()["digest"])
    for held in ({"name": name}, {"wasm": written}, {"form": ["IMEI ", {"slot": "n", "value": {"name": name}}, "."]}):
        body = {"prompt": "My phone: ", "constraint": held, "max_tokens": 40}
        answer = server.ask("POST", "/v1/completions", body)
        assert answer.status == 200, answer.body
        text = answer.json()["choices"][0]["text"].removeprefix("IMEI ").removesuffix(".")
        assert tokentrie.rules.WasmRule(IMEI).matches(text), text
    # Nobody raises the limits of the server, and what a module does wrong is told.
    over = {"kind": "spec", "spec": {"wasm": written, "limits": {"steps": 10**12}}}
    assert put(server, name, over).status == 400
    for step in ("000b", "03400c000b42000b"):
        bad = stepping(step)
        for told in (
            put(server, name, bad, "application/wasm"),
            server.ask(
                "POST",
                "/v1/completions",
                {"prompt": "x", "constraint": {"wasm": base64.b64encode(bad).decode()}, "max_tokens": 4},
            ),
        ):
            assert told.status == 400, told.body
            assert "step(0, 0)" in told.json()["error"]["message"]
    assert server.ask("GET", path_of(name)).json()["digest"] == reply.json()["digest"]


def test_no_mutated_upload_is_the_fault_of_the_server(server: Server, name: str) -> None:
    draw = random.Random(11)
    leaves = [{"name": "a", "tokens": [5, 6]}, {"name": "b", "tokens": [7]}]
    form = {"form": ["<", {"slot": "n", "value": {"choice": ["a", "b"]}}, {"text": "t", "stop": "."}]}
    asks: list[Any] = [
        {"kind": "set", "values": ["a", "b"]},
        {"kind": "set", "payload": {"descriptors": [{"path": "p", "leaves": leaves}]}},
        {"kind": "regex", "regex": "[a-c]+"},
        {"kind": "gbnf", "gbnf": 'root ::= "a"'},
        {"kind": "wasm", "wasm": base64.b64encode(LETTERS).decode()},
        {"kind": "json_schema", "json_schema": {"type": "array", "items": {"enum": ["x", 1]}, "maxItems": 3}},
        {"kind": "spec", "spec": form},
        {"kind": "spec", "spec": {"think": {"end": "x", "then": {"then": [{"integer": {"min": 1}}, " kg"]}}}},
        {"kind": "spec", "spec": {"regex": "a", "max_bytes": 1000, "limits": {"seconds": 1, "steps": 1000}}},
    ]
    statuses = set()
    for _ in range(cases(4000)):
        body = json.dumps(mutated(draw, draw.choice(asks))).encode()
        body = body[: draw.randrange(len(body))] if draw.random() < 0.05 else body
        media = draw.choice(["application/json"] * 8 + [TEXT, CSV, BYTES])
        tags = {"if-match": draw.choice(['"', "*", 'W/"x"', ",,", "\xff"])} if draw.random() < 0.1 else {}
        reply = server.ask("PUT", path_of(name), body, {"content-type": media, **tags})
        assert reply.status < 500, (media, body, reply.body)
        assert reply.status < 400 or reply.json()["error"]["message"]
        statuses.add(reply.status)
        if reply.status < 400 and draw.random() < 0.3 and reply.json()["bytes"] < 4000:
            # What was taken can be asked for, or is told to be no set.
            told = server.ask("POST", "/v1/choose", {"prompt": "x ", "set": name, "top": 2})
            assert told.status in (200, 400), (body, told.body)
    assert {200, 400, 412} <= statuses


def test_a_million_names_are_a_set() -> None:
    values = [f"item {number:06d}" for number in range(10**6)]
    table = io.StringIO()
    csv.writer(table).writerows([("name",), *((value,) for value in values)])
    bodies = {
        "application/json": (json.dumps({"kind": "set", "values": values}).encode(), ""),
        TEXT: ("\n".join(values).encode(), ""),
        "text/csv": (table.getvalue().encode(), "?column=name"),
    }
    with serving() as server:
        digests = set()
        for media, (body, query) in bodies.items():
            began = time.monotonic()
            reply = put(server, "large" + query, body, media)
            print(f"{media}: {time.monotonic() - began:.2f} s for {len(body) / 1e6:.0f} MB")
            assert reply.json()["size"] == 10**6
            digests.add(reply.json()["digest"])
        assert len(digests) == 1
        assert server.ask("GET", "/v1/constraints").json()["data"][0]["size"] == 10**6
        assert server.ask("DELETE", path_of("large")).status == 204
