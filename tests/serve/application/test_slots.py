"""Beginnings of prompts that are saved to files of a folder and restored, and what is refused of both."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

import tokentrie
from budget import cases
from serve.application.in_process import InProcess
from serve.server import serving
from tokentrie.serve import Settings, create_app
from tokentrie.serve.models import ServedModel

pytestmark = pytest.mark.model

#: Slots are chosen by what they hold where that is 32 tokens or more.
BEGINNING = "You sort letters." + " The bank writes about money, and nobody else does." * 4
MESSAGES = [{"role": "system", "content": BEGINNING}, {"role": "user", "content": "Hi <|im_end|>"}]


def opened(folder: Path | None, **options: Any) -> tuple[tokentrie.Model, InProcess]:
    model = tokentrie.Model(n_ctx=512, n_threads=1, **options)
    return model, InProcess(create_app([ServedModel("m", model, 60.0)], Settings(slot_files=folder)))


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[InProcess, Path]]:
    folder = tmp_path_factory.mktemp("slots")
    model, app = opened(folder, slots=2)
    with model:
        yield app, folder
        app.close()


def acted(app: InProcess, action: str | None, body: dict[str, Any], slot: object = 0) -> tuple[int, Any]:
    return app.ask("POST", f"/slots/{slot}" + ("" if action is None else f"?action={action}"), body)


@pytest.mark.parametrize(
    "beginning",
    [{"prompt": BEGINNING}, {"prompt": [*range(5, 65)]}, {"messages": MESSAGES}],
    ids=["text", "ids", "messages"],
)
def test_what_one_server_saved_another_does_not_decode_again(
    app: tuple[InProcess, Path], beginning: dict[str, Any]
) -> None:
    first, folder = app
    status, saved = acted(first, "save", {"filename": "a.prefix", **beginning})
    assert status == 200, saved
    assert (saved["id_slot"], saved["filename"]) == (0, "a.prefix")
    assert saved["n_written"] == (folder / "a.prefix").stat().st_size > 0
    model, other = opened(folder, slots=2)
    with model:
        status, restored = acted(other, "restore", {"filename": "a.prefix"}, 1)
        assert (status, restored["n_restored"], restored["n_read"]) == (200, saved["n_saved"], saved["n_written"])
        assert (restored["id_slot"], restored["timings"]["restore_ms"] > 0) == (1, True)
        if "messages" in beginning:
            more = [*MESSAGES, {"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Go on"}]
            asked = model.chat(more, max_tokens=1, on_invalid="none").stats
            assert asked.prompt_tokens_reused == saved["n_saved"], "the tokens are those of the chat"
        else:
            given = beginning["prompt"]
            more = given + " Go on" if isinstance(given, str) else [*given, 10]
            assert model.generate(more, max_tokens=1).stats.prompt_tokens_reused == saved["n_saved"]
        other.close()


def test_names_that_lead_elsewhere_are_refused(app: tuple[InProcess, Path], tmp_path: Path) -> None:
    asked, folder = app
    draw = random.Random(3)
    names = ["", ".", "..", "../a", "/etc/passwd", "a/b", "a\\b", ".hidden", "a..b", "a\0b", "a\nb", "é", "a" * 129]
    names += ["".join(draw.choices(string.printable + "/\\.", k=draw.randint(1, 20))) for _ in range(cases(400))]
    plain = set(string.ascii_letters + string.digits + "._-")
    before = {*folder.iterdir()}
    for name in names:
        if name and set(name) <= plain and name[0] not in "._-" and ".." not in name and len(name) < 129:
            continue
        for action in ("save", "restore"):
            status, told = acted(asked, action, {"filename": name, "prompt": "x"})
            assert (status, told["error"]["param"]) == (400, "filename"), name
    assert {*folder.iterdir()} == before
    outside = tmp_path / "outside.prefix"
    outside.write_bytes(b"secret")
    (folder / "link").symlink_to(outside)
    assert acted(asked, "restore", {"filename": "link"})[0] == 404
    (folder / "link").unlink()


@pytest.mark.parametrize(
    ("action", "body", "slot", "status", "param", "says"),
    [
        (None, {"filename": "a"}, 0, 400, "action", "save or restore"),
        ("erase", {"filename": "a"}, 0, 400, "action", "'erase'"),
        ("save", {"filename": "a"}, 0, 400, "prompt", "say which beginning"),
        ("save", {"filename": "a", "prompt": "x", "messages": MESSAGES}, 0, 400, "messages", "both"),
        ("save", {"filename": "a", "prompt": ""}, 0, 400, "prompt", ""),
        ("save", {"filename": "a", "prompt": [10**6]}, 0, 400, None, "1000000"),
        ("save", {"filename": "a", "prompt": "a b " * 900}, 0, 400, None, "--ctx"),
        ("save", {"filename": "a", "prompt": "x"}, 2, 400, "id", "slots 0 to 1"),
        ("save", {"filename": "a", "prompt": "x"}, -1, 400, "slot", ""),
        ("restore", {"filename": "none"}, 0, 404, "filename", "'none'"),
        ("restore", {"filename": "damaged"}, 0, 400, "filename", "holds no prefix"),
        ("restore", {}, 0, 400, "filename", ""),
    ],
)
def test_what_is_wrong_is_named(
    app: tuple[InProcess, Path], action: str | None, body: Any, slot: int, status: int, param: str | None, says: str
) -> None:
    asked, folder = app
    (folder / "damaged").write_bytes(b"no prefix at all")
    got, told = acted(asked, action, body, slot)
    assert (got, told["error"]["param"]) == (status, param), told
    assert says in told["error"]["message"]
    assert str(folder) not in told["error"]["message"], "where the folder lies is nobody's business"


def test_a_server_that_cannot_says_why() -> None:
    model, app = opened(None, slots=2)
    with model:
        status, told = acted(app, "save", {"filename": "a", "prompt": "x"})
        assert (status, told["error"]["code"]) == (501, "not_supported")
        assert "--slot-save-path" in told["error"]["message"]
        app.close()


def test_fixed_passes_have_no_beginnings_in_files(tmp_path: Path) -> None:
    model, app = opened(tmp_path, batching="fixed")
    with model:
        status, told = acted(app, "save", {"filename": "a", "prompt": "x"})
        assert (status, told["error"]["code"]) == (501, "not_supported")
        assert "--slots 2" in told["error"]["message"]
        app.close()
    assert not [*tmp_path.iterdir()]


def test_the_command_has_the_folder(tmp_path: Path) -> None:
    with serving("--slot-save-path", str(tmp_path / "new"), key=None) as server:
        reply = server.ask("POST", "/slots/3?action=save", {"filename": "a.prefix", "prompt": BEGINNING}, key=None)
        assert reply.status == 200, reply.body
        assert server.ask("POST", "/slots/3?action=restore", {"filename": "a.prefix"}, key=None).status == 200
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.prefix"]
