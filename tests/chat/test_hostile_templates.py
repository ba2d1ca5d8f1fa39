"""Templates of strangers that want to end the process: each ends in a typed error, in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tokentrie import ChatTemplate, TemplateError

VECTORS = Path(__file__).parents[2] / "crates" / "chat-template" / "tests" / "vectors" / "hostile_templates.json"
MEGABYTES = 100
HANGS = 300


def peak() -> float:
    """The most memory that this process has had, in megabytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    """Renders every template and writes a line about each: its name before, and after it time, memory and outcome."""
    ChatTemplate("{{ 1 }}").render([])
    start = peak()
    for case in json.loads(VECTORS.read_text()):
        template = "".join(text * times for text, times in case["parts"])
        print(case["name"], end="\t", flush=True)
        began = time.perf_counter()
        try:
            ChatTemplate(template, "<s>", "</s>").render([{"role": "user", "content": "x"}])
            said = "rendered"
        except TemplateError:
            said = "refused"
        print(f"{time.perf_counter() - began:.3f}\t{peak() - start:.1f}\t{said}", flush=True)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured as Linux tells it")
def test_hostile_templates() -> None:
    cases = json.loads(VECTORS.read_text())
    may_render = {case["name"] for case in cases if case.get("may_render")}
    assert len(cases) - len(may_render) >= 60
    done = subprocess.run(
        [sys.executable, __file__],
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"{lines[-1:]}: {done.stderr}"
    assert [line[0] for line in lines] == [case["name"] for case in cases]
    assert {line[0] for line in lines if line[3] == "rendered"} <= may_render
    worst = max(lines, key=lambda line: float(line[1]))
    print(f"{len(lines)} templates, the slowest {worst[0]!r} in {worst[1]} s, the most memory {lines[-1][2]} MB")
    assert float(lines[-1][2]) < MEGABYTES


@pytest.mark.parametrize("name", ["'x' * 10**9", "range(10**12)"])
def test_the_process_goes_on(name: str) -> None:
    with pytest.raises(TemplateError, match="too much in line 1"):
        ChatTemplate(f"{{{{ {name} }}}}").render([])
    assert ChatTemplate("{{ 1 }}").render([]) == "1"


if __name__ == "__main__":
    main()
