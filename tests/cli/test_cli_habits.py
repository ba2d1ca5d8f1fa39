"""Errors of the command line that say what to write."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import tokentrie
from test_cli import Terminal
from tokentrie.cli.chats.chat import _cut_off

pytestmark = pytest.mark.model


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(capsys, monkeypatch)


@pytest.mark.parametrize("command", ["choose", "generate", "chat", "build", "inspect"])
def test_usage_errors_name_the_help_of_the_command(run: Terminal, command: str) -> None:
    result = run(command, "--no-such-option")
    assert result.code == 2
    assert f"(see tokentrie {command} --help)" in result.err
    assert "(see tokentrie --help)" in run("no-such-command").err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([b"-p", b"a\xffb"], "invalid UTF-8 in --prompt at byte 1"),
        ([b"--prompt", "é".encode() + b"\xff"], "invalid UTF-8 in --prompt at byte 2"),
        ([b"--prompt=a\xff"], "invalid UTF-8 in --prompt at byte 1"),
    ],
)
def test_text_that_is_no_utf_8_is_named(args: list[bytes], says: str) -> None:
    command = [os.fsencode(sys.executable), b"-m", b"tokentrie.cli", b"choose", b"--choices", b"yes,no", *args]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "PYTHONUTF8": "1"})
    assert done.returncode == 2
    assert says in done.stderr.decode()


def test_a_context_of_one_token_is_too_small(run: Terminal) -> None:
    result = run("choose", "-p", "Is it? ", "--choices", "yes,no", "--ctx", "1")
    assert result.code == 2
    assert "a context of 1 tokens (n_ctx) is too small: it needs at least 2" in result.err


def test_a_reply_that_is_all_reasoning_says_so() -> None:
    line = _cut_off(tokentrie.Message("", "hmm", finish="max_tokens"))
    assert line.startswith("cut off while reasoning")
    assert "raise --max-tokens" in line
