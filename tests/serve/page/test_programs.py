"""What is copied runs as it stands: curl and Python against the server, with whatever a visitor typed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from serve.page.views import View
from serve.server import KEY, Server, serving

pytestmark = pytest.mark.model
Show = Callable[..., View]
#: What ends a text early in a shell, in Python or in JSON.
HARD = """it's "so" \\ great: $HOME `id` €\n'''%s{x}\u2028é"""


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    with serving() as server:
        yield server


def run(program: str, language: str, folder: Path) -> str:
    """What a program prints."""
    if language == "curl":
        if shutil.which("curl") is None:
            pytest.skip("there is no curl")
        command = ["bash", "-c", program.replace("curl ", "curl --silent --show-error --fail-with-body ", 1)]
    else:
        pytest.importorskip("openai" if "from openai" in program else "requests")
        command = [sys.executable, "-c", program]
    environment = {**os.environ, "TOKENTRIE_API_KEY": KEY}
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=300, cwd=folder, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def texts(printed: str, language: str, name: str) -> str:
    """The text of a stream of completions or chats as it was printed."""
    if language != "curl":
        return printed
    events = [json.loads(line[6:]) for line in printed.splitlines() if line.startswith("data: {")]
    parts = [choice for event in events for choice in event["choices"]]
    return "".join(part["text"] if name == "write" else json.dumps(part["delta"]) for part in parts)


@pytest.mark.parametrize("language", ["curl", "Python"])
@pytest.mark.parametrize("example", ["A review", "A door", "A conversation", "A ticket"])
def test_decisions(view: Show, server: Server, tmp_path: Path, language: str, example: str) -> None:
    decide = view(server)
    decide.button(example).click()
    answers = json.loads(run(decide.program(language), language, tmp_path))["answers"]
    decide.button("Decide").click()
    decide.told("answered in")
    assert len(decide.texts(".verdict")) == len(answers)
    for answer, told in zip(answers, decide.texts(".verdict h3"), strict=True):
        if answer["type"] == "choice":
            assert told.split("\n")[0] == answer["choice"]
    assert ("x_flips" in answers[0]) == (decide.field("Orders to average").input_value() != "1")


@pytest.mark.parametrize("language", ["curl", "Python"])
def test_texts_that_would_end_a_literal(view: Show, server: Server, tmp_path: Path, language: str) -> None:
    decide = view(server)
    decide.field("State").fill(HARD)
    decide.root.get_by_label("option 1", exact=True).fill(HARD.replace("\n", " "))
    answers = json.loads(run(decide.program(language), language, tmp_path))["answers"]
    assert answers[0]["probabilities"][0]["value"] == HARD.replace("\n", " ")
    asked = {
        "model": "tiny",
        "input": HARD,
        "questions": [{"type": "predicate", "instructions": "Is the review positive?"}],
        "permute": 6,
    }
    own = server.ask("POST", "/v1/decisions", asked).json()["answers"][0]
    assert answers[1]["probability"] == pytest.approx(own["probability"], rel=0.05)


@pytest.mark.parametrize("language", ["curl", "Python"])
@pytest.mark.parametrize(
    ("example", "pattern"),
    [
        ("A pizza order", r'\{"name": "order_pizza", "arguments": \{"size": "large", "count": \d\d?\}\}'),
        ("A verdict", "bad"),
        ("A date", "5 Apr 20.."),
        ("An answer", "yes, the door is .*"),
        ("A review as JSON", r'\{"verdict":.*\}'),
    ],
)
def test_writing(view: Show, server: Server, tmp_path: Path, language: str, example: str, pattern: str) -> None:
    write = view(server, "write")
    write.button(example).click()
    write.told("Written")
    program = write.program(language)
    assert "return_details" not in program
    assert re.fullmatch(pattern, texts(run(program, language, tmp_path), language, "write"))


@pytest.mark.parametrize("language", ["curl", "Python"])
def test_chats_with_their_turns(view: Show, server: Server, tmp_path: Path, language: str) -> None:
    chat = view(server, "chat")
    chat.button("A pizza").click()
    assert "order_pizza" in texts(run(chat.program(language), language, tmp_path), language, "chat")
    chat.button("Send").click()
    chat.told("1 call in")
    chat.button("Give the result").click()
    chat.told("0 calls in")
    chat.field("Message").fill("please get rid of the file with path b.txt")
    program = chat.program(language)
    assert program.count("tool_call_id") == 1
    assert "erase" in texts(run(program, language, tmp_path), language, "chat")


@pytest.mark.parametrize("language", ["curl", "Python"])
def test_sets_that_are_put_and_chosen_from(view: Show, guarded: Server, tmp_path: Path, language: str) -> None:
    """With a key, which the programs take from the environment."""
    sets = view(guarded, "sets")
    sets.page.get_by_label("API key").fill(KEY)
    sets.page.get_by_role("button", name="Use it").click()
    sets.page.get_by_text("tiny", exact=True).wait_for()
    sets.field("Name").fill(f"of-{language}")
    sets.field("Values").fill('it\'s\n"so"\n$HOME\né')
    program = sets.program(language)
    assert KEY not in program
    assert json.loads(run(program, language, tmp_path))["size"] == 4
    sets.button("Put").click()
    sets.told("is kept: set of 4 values, version 1.")  # the same content, so the same version
    sets.field("After").fill("He said: ")
    told = json.loads(run(sets.program(language), language, tmp_path))
    assert [*map(str, sorted(one["value"] for one in told["values"]))] == sorted(["it's", '"so"', "$HOME", "é"])

    (tmp_path / "names.csv").write_text("name,age\nAnn,3\nBob,4\n", encoding="utf-8")
    sets.reload()
    sets.field("Or a file").set_input_files(tmp_path / "names.csv")
    done: dict[str, Any] = json.loads(run(sets.program(language), language, tmp_path))
    assert (done["name"], done["size"]) == ("names", 2)
    sets.complaints.clear()  # of the answer that wanted a key


def test_a_click_copies(view: Show, server: Server) -> None:
    decide = view(server, permissions=["clipboard-read", "clipboard-write"])
    for language in ("Python", "TypeScript", "curl"):
        program = decide.program(language)
        decide.told(f"Copied as {language}")
        assert decide.page.evaluate("navigator.clipboard.readText()") == program
        assert "service is so awful" in program


def test_typescript_is_whole(view: Show, server: Server, tmp_path: Path) -> None:
    """Programs without a client are JavaScript: Node runs them."""
    if shutil.which("node") is None:
        pytest.skip("there is no Node")
    sets = view(server, "sets")
    path = tmp_path / "put.mjs"
    path.write_text(sets.program("TypeScript"), encoding="utf-8")
    done = subprocess.run(["node", path], check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("201 "), done.stderr
    for name, route in (("write", "completions"), ("decide", "decisions"), ("chat", "chat.completions")):
        program = view(server, name).program("TypeScript")
        assert program.startswith('import OpenAI from "openai";\n')
        assert f'client.{route}.create({{\n  model: "tiny",\n' in program
