"""Options from a file, and the files of `deploy/` that start the server elsewhere."""

from __future__ import annotations

import configparser
import inspect
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main
from tokentrie.cli.serving import serve, serve_command

DEPLOY = Path(__file__).parents[2] / "deploy"
COMMAND = typer.main.get_command(serve_command.app)

needs_toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib came with Python 3.11")
needs_files = pytest.mark.skipif(not DEPLOY.is_dir(), reason="only a checkout has deploy/")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the command would have served, instead of a server."""
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(serve, "run", lambda *given: calls.append(given))
    return calls


def run(*arguments: str) -> None:
    COMMAND.main([*arguments], standalone_mode=False)


@needs_toml
def test_options_of_a_file_are_those_of_the_command_line(ran: list[tuple[Any, ...]], tmp_path: Path) -> None:
    path, keys = tmp_path / "serve.toml", tmp_path / "keys.txt"
    keys.write_text("a-key\n")
    path.write_text(
        f'model = ["small=m.gguf", "tiny"]\nport = 9000\nslots = 3\nprecise = true\ntimeout = 2\nctx = 512\n'
        f'api-key-file = "{keys}"\nprefill-chunk = 32\ntools-in = "system"\ninsecure = false\n'
        'flash-attention = false\ncache-type = "bf16"\n'
    )
    run("--port", "0", f"--config={path}", "--slots", "5")
    run(
        *("--model", "small=m.gguf", "--model", "tiny", "--slots", "5", "--port", "0", "--precise", "--timeout", "2"),
        *("--no-flash-attention", "--cache-type", "bf16"),
        *("--ctx", "512", "--api-key-file", str(keys), "--prefill-chunk", "32", "--tools-in", "system"),
    )
    assert ran[0] == ran[1]
    assert ran[0][3] == ["a-key"]


@needs_toml
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("slot = 3", "unknown option 'slot': is slots meant?"),
        ("config = 'x'", "unknown option 'config'"),
        ("[serve]\nslots = 3", "unknown option 'serve'"),
        ("slots = '3'", "invalid slots: expected a whole number, got '3'"),
        ("slots = true", "invalid slots: expected a whole number, got True"),
        ("slots = 2.5", "invalid slots: expected a whole number, got 2.5"),
        ("precise = 1", "invalid precise: expected true or false, got 1"),
        ("model = 'tiny'", "invalid model: expected a list, each of it a text, got 'tiny'"),
        ("model = [1]", "invalid model: expected a list, each of it a text, got 1"),
        ("host = 5", "invalid host: expected a text, got 5"),
        ("slots = ", "invalid TOML"),
    ],
)
def test_what_a_file_says_wrong_is_named(ran: list[tuple[Any, ...]], tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "serve.toml"
    path.write_text(text)
    with pytest.raises(typer.BadParameter, match=re.escape(f"{path}: {says}")):
        run("--config", str(path))
    assert not ran


@needs_toml
def test_a_value_out_of_range_is_refused_as_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "serve.toml"
    path.write_text("slots = 0")
    with pytest.raises(typer.BadParameter, match="1"):
        run("--config", str(path))


@needs_files
@needs_toml
def test_the_example_of_a_file_is_read(ran: list[tuple[Any, ...]], tmp_path: Path) -> None:
    keys = tmp_path / "keys.txt"
    keys.write_text("a-key\n")
    path = tmp_path / "serve.toml"
    path.write_text((DEPLOY / "serve.toml").read_text().replace("/etc/tokentrie/keys.txt", str(keys)))
    run("--host", "0.0.0.0", "--config", str(path))
    assert ran[0][0] == [("small", Path("/models/model.gguf"))]


def options(words: list[str]) -> set[str]:
    return {word for word in words if word.startswith("--")}


@needs_files
def test_the_unit_of_systemd_starts_the_command() -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "tokentrie.service")
    words = shlex.split(unit["Service"]["ExecStart"])
    assert words[1] == "serve"
    known = {name for option in COMMAND.params for name in option.opts}
    assert options(words) <= known
    drain = inspect.signature(serve_command.serve).parameters["drain"].default
    assert int(unit["Service"]["TimeoutStopSec"]) >= drain + serve.SLOWEST_END
    if (systemd := shutil.which("systemd-analyze")) is not None:
        told = subprocess.run([systemd, "verify", DEPLOY / "tokentrie.service"], capture_output=True, text=True)
        assert "Unknown" not in told.stderr


@needs_files
def test_the_image_starts_the_command() -> None:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.partition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    kinds = [kind for kind, _, _ in lines]
    assert {*kinds} <= {"FROM", "RUN", "WORKDIR", "COPY", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    assert kinds.index("USER") < kinds.index("ENTRYPOINT"), "it does not run as root"
    starts = " ".join(rest for kind, _, rest in lines if kind in ("ENTRYPOINT", "CMD"))
    known = {name for option in COMMAND.params for name in option.opts}
    assert options(re.findall(r'"([^"]*)"', starts)) <= known


@needs_files
@pytest.mark.alone
def test_the_image_is_built_where_docker_is() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "buildx", "version"], capture_output=True).returncode != 0:
        pytest.skip("docker does not run here")
    if subprocess.run([docker, "info"], capture_output=True, timeout=60).returncode != 0:
        pytest.skip("docker does not run here")
    checked = [docker, "buildx", "build", "--check", "-f", str(DEPLOY / "Dockerfile"), str(DEPLOY.parent)]
    told = subprocess.run(checked, capture_output=True, text=True, timeout=300)
    assert told.returncode == 0, told.stderr
