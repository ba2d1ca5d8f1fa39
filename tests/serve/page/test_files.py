"""The page as files: who gets them, under which headers, and that they are in the package. Needs no browser."""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Iterator
from email.message import Message
from importlib import resources
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from fastapi import FastAPI
from serve.application.in_process import InProcess
from serve.server import KEY, Server, serving
from tokentrie.serve import front

pytestmark = pytest.mark.model
FILES = resources.files("tokentrie.serve") / "page"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    with serving() as server:
        yield server


def names() -> list[str]:
    """All files of the page, as the index and the modules name them; those beside it are of the playground."""
    found, wanted = set(), ["index.html"]
    while wanted:
        name = posixpath.normpath(wanted.pop())
        if name in found or name.startswith("../"):
            continue
        found.add(name)
        text = (FILES / name).read_text(encoding="utf-8")
        wanted += re.findall(r'(?:href|src)="page/([^"]+)"', text)
        imported = re.findall(r'(?:from |import\()"(\.[^"]+)"', text)
        wanted += [posixpath.join(posixpath.dirname(name), one) for one in imported]
    return sorted(found)


def test_the_package_has_every_file_that_the_page_names_and_no_other() -> None:
    folder = Path(str(FILES))
    there = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert there == names()
    assert {"index.html", "main.js", "views/decide.js", "views/rules.js", "backend/server.js", "icon.svg"} < set(there)


def test_the_files_name_no_other_place() -> None:
    """No font, script or picture from elsewhere: the only addresses are names of formats."""
    text = "".join((FILES / name).read_text(encoding="utf-8") for name in names())
    assert set(re.findall(r"https?://[^\s\"'`)]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son[a-z]+=\"|innerHTML|eval\(", text)


@pytest.mark.parametrize(
    ("urls", "links"),
    [
        ([], ""),
        (["Documentation, https://example.org/d?a&b", "Tracker, https://example.org/t"], "documentation"),
        (["Repository, https://example.org/r", "Source, https://example.org/s"], "source"),
        (["Homepage, javascript:alert(1)", "Source, http://example.org", "Homepage"], ""),
    ],
)
def test_links_are_those_of_the_package(urls: list[str], links: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Message()
    for one in urls:
        told["Project-URL"] = one
    monkeypatch.setattr(front.metadata, "metadata", lambda _: told)
    asked = InProcess(app := FastAPI())
    front.show_page(app)
    status, text = asked.ask("GET", "/")
    asked.close()
    assert status == 200
    assert re.findall(r'<a href="(https://[^"]*)"[^>]*>([^<]*)</a>', text) == (
        [(html.escape(urls[0].split(", ")[1]), links)] if links else []
    )
    assert "javascript:alert" not in text


def test_the_page_needs_no_key_and_what_it_asks_for_does(guarded: Server) -> None:
    page = guarded.ask("GET", "/", key=None)
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    kinds = {"js": "javascript", "css": "text/css", "svg": "image/svg+xml"}
    for name in names():
        reply = guarded.ask("GET", f"/page/{name}", key=None)
        assert reply.status == 200, name
        assert kinds.get(name.rsplit(".", 1)[-1], "text/html") in reply.headers["content-type"]
        assert reply.body == (FILES / name).read_bytes()
    for path in (
        "/v1/models",
        "/v1/constraints",
        "/metrics",
        "/openapi.json",
        "/page",
        "/pages/x",
        "//page/index.html",
    ):
        assert guarded.ask("GET", path, key=None).status == 401, path
    for method in ("POST", "PUT", "DELETE"):
        assert guarded.ask(method, "/", {}, key=None).status == 401
        assert guarded.ask(method, "/page/main.js", {}, key=None).status == 401
        assert guarded.ask(method, "/", {}, key=KEY).status == 405
        assert guarded.ask(method, "/page/main.js", {}, key=KEY).status == 405


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/page/style/base.css"])
def test_nothing_runs_that_is_not_a_file_of_ours(guarded: Server, path: str) -> None:
    headers = guarded.ask("GET", path, key=None).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in headers["content-security-policy"]
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in headers


def test_who_has_a_file_asks_whether_it_is_the_same(guarded: Server) -> None:
    first = guarded.ask("GET", "/page/main.js", key=None)
    assert first.headers["cache-control"] == "no-cache"
    again = guarded.ask("GET", "/page/main.js", headers={"if-none-match": first.headers["etag"]}, key=None)
    assert (again.status, again.body) == (304, b"")
    head = guarded.ask("HEAD", "/", key=None)
    assert (head.status, head.body) == (200, b"")
    assert int(head.headers["content-length"]) == len(guarded.ask("GET", "/", key=None).body)


@pytest.mark.parametrize(
    "path",
    ["/page/nope.js", "/page/../front.py", "/page/..%2ffront.py", "/page/%2e%2e/front.py", "/page//etc/passwd",
     "/page/style", "/page/", "/page/style/../../front.py", "/page/main.js%00", "/page/" + "a" * 5000],
)  # fmt: skip
def test_only_files_of_the_page_are_read(guarded: Server, path: str) -> None:
    reply = guarded.ask("GET", path, key=None)
    assert reply.status == 404
    assert "FastAPI" not in reply.body.decode()
