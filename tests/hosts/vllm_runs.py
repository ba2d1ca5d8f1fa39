"""vLLM's processes as tests start them: its engine on a file of requests, and its server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import tokentrie

HERE = Path(__file__).parent
PYTHON = Path(tokentrie.__file__).parents[1]


def environment(folder: Path, settings: dict[str, str]) -> dict[str, str]:
    """That of vLLM's processes, with the model and the sets of a folder. The entry points are those of the project, and
    what the tests add to vLLM."""
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    points = {group: dict(named) for group, named in project["entry-points"].items()}
    points["vllm.general_plugins"]["keep_async"] = "keep_async:keep"
    if settings["VLLM_USE_V2_MODEL_RUNNER"] == "1":
        points["triton.backends"] = {"cpu": "interpreted"}
        settings = {**settings, "TRITON_INTERPRET": "1"}
    info = folder / f"path {settings['VLLM_USE_V2_MODEL_RUNNER']}" / "tokentrie-0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tokentrie\nVersion: 0\n", encoding="utf-8")
    lines = [f"[{group}]\n" + "".join(f"{a} = {b}\n" for a, b in named.items()) for group, named in points.items()]
    (info / "entry_points.txt").write_text("".join(lines), encoding="utf-8")
    ours = {
        "PYTHONPATH": os.pathsep.join(map(str, (info.parent, PYTHON, HERE / "vllm_cpu"))),
        "TOKENTRIE_SETS": str(folder / "sets"),
        "TOKENTRIE_TOKENIZER": str(folder / "model"),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "2"),
    }
    return {**os.environ, **ours, **settings}


def run_engine(
    folder: Path, name: str, settings: dict[str, str], options: dict[str, Any], batches: dict[str, Any]
) -> dict[str, Any]:
    """What `vllm_cpu/engine.py` says of these batches, by name; `failed`, with the log, where it said nothing."""
    asked, written = folder / f"{name}.asked", folder / f"{name}.json"
    asked.write_text(json.dumps([*batches.values()]), encoding="utf-8")
    arguments = [str(folder / "model"), json.dumps(options), str(asked), str(written)]
    try:
        ended = subprocess.run(
            [sys.executable, str(HERE / "vllm_cpu" / "engine.py"), *arguments],
            env=environment(folder, settings), cwd=folder, capture_output=True, text=True, timeout=3600,
        )  # fmt: skip
        log = ended.stdout + ended.stderr
    except subprocess.TimeoutExpired as late:
        log = f"{late}: {late.stderr!r}"
    if not written.is_file():
        return {"failed": "\n".join(line for line in log.splitlines() if "Error" in line) + log[-3000:]}
    said = json.loads(written.read_text(encoding="utf-8"))
    # Batches behind one that ended the engine have no answers.
    said["answers"] = dict(zip(batches, said["answers"], strict=False))
    said["log"] = log[-3000:]
    return dict(said)


@contextmanager
def running_server(folder: Path, options: dict[str, Any]) -> Iterator[str]:
    """`vllm serve` with these options, and where it listens. An option that is True is a flag."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {"model": folder / "model", "served-model-name": "tiny", "host": "127.0.0.1", "port": port, **options}
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    for name, value in given.items():
        command += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    log = folder / "server.log"
    with log.open("w", encoding="utf-8") as written:
        settings = environment(folder, {"VLLM_USE_V2_MODEL_RUNNER": "0"})
        process = subprocess.Popen(command, env=settings, cwd=folder, stdout=written, stderr=written)
    try:
        place, began = f"http://127.0.0.1:{port}", time.monotonic()
        while True:
            assert process.poll() is None, log.read_text(encoding="utf-8")[-4000:]
            assert time.monotonic() - began < 600, "the server does not start"
            try:
                with urlopen(f"{place}/health", timeout=5):
                    break
            except OSError:
                time.sleep(1)
        yield place
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


def post(server: str, route: str, **body: Any) -> tuple[int, Any]:
    defaults = {"model": "tiny", "max_tokens": 20, "temperature": 0}
    data = json.dumps({**defaults, **body}).encode()
    asked = Request(f"{server}/v1/{route}", data, {"Content-Type": "application/json"})
    try:
        with urlopen(asked, timeout=300) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, error.read().decode()
