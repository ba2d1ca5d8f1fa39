"""Chats on the command line: what `template` shows of templates and replies, and how `chat` talks."""

from __future__ import annotations

import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokentrie
from hypothesis import given
from hypothesis import strategies as st
from models import copy_tiny
from test_cli import Result, Terminal, run
from tokentrie.cli import main
from tokentrie.cli.chats.chat_shown import Arguments
from tokentrie.cli.inspecting import template_example

__all__ = ["run"]

TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls %}<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
REPLY = '<think>A bell.</think>Ding.<call>{"name": "ring", "arguments": {"tone": "low"}}</call>'
ERASE: dict[str, Any] = {
    "name": "erase",
    "description": "Delete a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
RING: dict[str, Any] = {
    "name": "ring",
    "parameters": {
        "type": "object",
        "properties": {"tone": {"enum": ["low", "high"]}},
        "required": ["tone"],
    },
}
FUNCTIONS = '''
from pathlib import Path
from typing import Literal

Path("executed").touch()


def ring(tone: Literal["low", "high"]) -> str:
    """Rings the bell."""
    return f"it rings {tone}"


def _hidden() -> None:
    raise AssertionError


if __name__ == "__main__":
    raise SystemExit("run as a script")
'''
ASK = "please delete the file a.txt"


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "chat.jinja"
    path.write_text(TEMPLATE)
    return path


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([ERASE, {"type": "function", "function": RING}]))
    return path


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tools.py"
    path.write_text(FUNCTIONS)
    return path


class TestTemplate:
    def test_json_is_the_analysis(self, run: Terminal, template: Path) -> None:
        expected = tokentrie.ChatFormat(TEMPLATE).analysis.to_dict()
        assert run("inspect", template, "--json").json == expected
        assert run("inspect", "-", "--json", stdin=TEMPLATE).json == expected

    def test_shown(self, run: Terminal, template: Path) -> None:
        result = run("inspect", template)
        assert (result.code, result.err) == (0, "")
        lines = {line.split("  ")[0]: line for line in result.out.splitlines()}
        assert '"<think>" … "</think>"' in lines["reasoning"]
        assert "json-object, arguments json" in lines["calls"]
        assert '"<|assistant|>"' in lines["generation prompt"]
        example = result.out.partition("example:\n")[2]
        for marker in (
            "<think>[reasoning begins]Only a tool knows.</think>[reasoning ends]Let me look.",
            '<call>[call begins]{"name":[name] "weather", "arguments":[arguments] {"city"',
            "</call>[call ends]",
            "<|assistant|>[assistant's turn]",
        ):
            assert marker in example
        assert example.rstrip().endswith("<|assistant|>[generation prompt]")
        assert "\x1b" not in result.out

    def test_in_colour_names_need_no_brackets(
        self, run: Terminal, template: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
        out = run("inspect", template).out
        assert re.search(r"\x1b\[[0-9;]*m<think>\x1b\[0m\x1b\[[0-9;]*m reasoning begins ", out)
        assert "[reasoning begins]" not in out

    def test_markers_are_found_where_they_are(self) -> None:
        """All pieces together are the prompt; a marker in what a user says is none."""
        form = tokentrie.ChatFormat(TEMPLATE)
        example = template_example.render_example(form, None)
        assert example.left_out == []
        pieces = template_example.pieces(example, form.analysis)
        assert "".join(piece.text for piece in pieces) == example.text
        names = [piece.name for piece in pieces if piece.name]
        assert names.index("reasoning begins") < names.index("reasoning ends") < names.index("call begins")
        assert names.count("call begins") == names.count("call ends") == 2

    @pytest.mark.skipif("TOKENTRIE_TEMPLATE_DIR" not in os.environ, reason="TOKENTRIE_TEMPLATE_DIR names no templates")
    def test_templates_of_models(self) -> None:
        for path in sorted(Path(os.environ["TOKENTRIE_TEMPLATE_DIR"]).glob("*.jinja")):
            form = tokentrie.ChatFormat(path.read_text(encoding="utf-8"))
            try:
                example = template_example.render_example(form, None)
            except tokentrie.TemplateError:
                continue
            pieces = template_example.pieces(example, form.analysis)
            assert "".join(piece.text for piece in pieces) == example.text, path.name
            names = {piece.name for piece in pieces}
            calls = form.analysis.calls
            # Some were trained on calls that their templates do not render.
            if calls and example.calls and not form.analysis.families:
                assert names & {"calls begin", "call begins", "name"}, path.name
            # Some write none after a tool's result.
            if example.generation_prompt and example.text.endswith(example.generation_prompt):
                assert pieces[-1].name == "generation prompt", path.name

    def test_tools_stand_in_the_example(self, run: Terminal, template: Path, tools: Path) -> None:
        out = run("inspect", template, "--tools", tools).out
        assert '"name":[name] "erase"' in out
        assert '{"tone": "low"}' in out
        tools.write_text("[]")
        assert '"weather"' in run("inspect", template, "--tools", tools).out

    def test_nothing_of_a_template_moves_the_cursor(self, run: Terminal) -> None:
        result = run("inspect", "-", stdin="\x1b[2J" + TEMPLATE.replace("think", "th\x1bink"))
        assert result.code == 0
        assert "\\x1b[2J" in result.out
        assert "\x1b" not in result.out

    def test_what_it_refuses_is_left_out(self, run: Terminal, tmp_path: Path) -> None:
        path = tmp_path / "strict.jinja"
        refusing = "{% if messages[0].role == 'system' or m.role == 'tool' %}{{ raise_exception('no') }}{% endif %}"
        path.write_text("{% for m in messages %}" + refusing + TEMPLATE.removeprefix("{% for m in messages %}"))
        out = run("inspect", path).out
        assert "which the template refuses" in out
        assert "How warm is it in Oslo?" in out

    @pytest.mark.model
    def test_of_the_model(self, run: Terminal, tiny_path: Path) -> None:
        expected = tokentrie.Model().chat_format.analysis.to_dict()
        assert run("inspect", tiny_path, "--json").json == expected

    @pytest.mark.model
    def test_a_model_without_a_template(self, run: Terminal) -> None:
        path = copy_tiny("cli-no-template", changes={"tokenizer.chat_template": None})
        result = run("inspect", path)
        assert result.code == 0
        assert result.err.count("\n") == 1
        assert "no chat template: ChatML is used" in result.err
        assert "ChatML, the default" in result.out
        assert run("inspect", path, "--json").json["tool_calls"]["function"] == "json-object"

    @pytest.mark.parametrize(
        ("args", "stdin", "code", "parts"),
        [
            (["-"], "{% if %}", 1, ["-:", "line 1"]),
            (["-", "--parse", "-"], "", 2, ["--parse", "only once"]),
            (["missing.jinja"], "", 1, ["missing.jinja"]),
            (["-", "--tools", "missing.json"], TEMPLATE, 1, ["missing.json"]),
        ],
    )
    def test_errors(self, run: Terminal, args: list[str], stdin: str, code: int, parts: list[str]) -> None:
        run("inspect", *args, stdin=stdin).fails(code, *parts)

    @pytest.mark.parametrize(
        ("text", "part"),
        [("{", "invalid JSON"), ("3", "no list of tools"), ('[{"x": 1}]', "tool 0"), ("[3]", "tool"), ("[" * 9**5, "")],
    )
    def test_tools_that_are_none(self, run: Terminal, template: Path, tmp_path: Path, text: str, part: str) -> None:
        path = tmp_path / "bad.json"
        path.write_text(text)
        run("inspect", template, "--tools", path).fails(1, str(path), part)


class TestParse:
    def test_events_with_the_byte(self, run: Terminal, template: Path, tmp_path: Path) -> None:
        reply = tmp_path / "reply.txt"
        reply.write_text(REPLY)
        document = run("inspect", template, "--parse", reply, "--json").json
        assert document["bytes"] == len(REPLY)
        expected = tokentrie.ChatFormat(TEMPLATE).parse(REPLY)
        assert document["message"] == expected.to_dict()
        events = document["events"]
        assert [event["byte"] for event in events] == sorted(event["byte"] for event in events)
        for kind, text in (("reasoning", "A bell."), ("content", "Ding."), ("arguments", '{"tone": "low"}')):
            assert "".join(event.get("text", "") for event in events if event["kind"] == kind) == text
        begins = next(event for event in events if event["kind"] == "call_begins")
        assert (begins["name"], begins["index"]) == ("ring", 0)
        assert REPLY.index('ring"') < begins["byte"] < REPLY.index("low")
        assert run("inspect", template, "--parse", "-", "--json", stdin=REPLY).json == document

    def test_shown(self, run: Terminal, template: Path) -> None:
        result = run("inspect", template, "--parse", "-", stdin=REPLY)
        assert (result.code, result.err) == (0, "")
        assert re.search(r'\d+–\d+ +reasoning +"A bell\."', result.out)
        assert re.search(r"\d+ +call_begins 0 +ring", result.out)
        assert re.search(r'call +ring \{"tone": "low"\}', result.out)

    def test_bytes_that_are_no_text(self, run: Terminal, template: Path, tmp_path: Path) -> None:
        reply = tmp_path / "reply.bin"
        reply.write_bytes(b"a\xff\x1b[2Jb")
        result = run("inspect", template, "--parse", reply)
        assert result.code == 0
        assert "\x1b" not in result.out

    def test_tools_say_what_a_call_is(self, run: Terminal, template: Path, tools: Path) -> None:
        unknown = REPLY.replace("ring", "wipe")
        calls = run("inspect", template, "--parse", "-", "--json", stdin=unknown).json["message"]["tool_calls"]
        assert [call["function"]["name"] for call in calls] == ["wipe"]
        result = run("inspect", template, "--tools", tools, "--parse", "-", "--json", stdin=unknown)
        assert "tool_calls" not in result.json["message"] or result.json["warnings"]


class TestArguments:
    @given(st.data())
    def test_of_any_parts(self, data: st.DataObject) -> None:
        """Cut anywhere: what is highlighted are the values of the keys, at the top alone."""
        value = data.draw(st.sampled_from(['"l\\"ow"', "true", "12"]))
        text = f'{{"a": {{"tone": "x"}}, "tone" : {value}, "b": ["tone", "tone"]}}'
        scanner = Arguments({"tone"})
        found = ""
        while text:
            size = data.draw(st.integers(1, len(text)))
            found += "".join(part for part, chosen in scanner.feed(text[:size]) if chosen)
            text = text[size:]
        assert found == value


@pytest.mark.model
class TestChat:
    def test_one_reply(self, run: Terminal) -> None:
        result = run("chat", "-p", "Hello", "--max-tokens", "4")
        assert result.code == 0
        # The model inside the package thinks first.
        cut = "(cut off while reasoning, after 4 tokens: raise --max-tokens, or give a --thinking-budget below it\\n)?"
        assert re.fullmatch(cut + r"[\d,]+ tokens/s, \d tokens?, \d forward passe?s? saved\n", result.err)

    def test_json_is_the_message(self, run: Terminal, tools: Path) -> None:
        result = run("chat", "-p", ASK, "--tools", tools, "--tool-choice", "erase", "--max-tokens", "60", "--json")
        assert (result.code, result.err) == (0, "")
        expected = tokentrie.Model().chat(
            [{"role": "user", "content": ASK}], json.loads(tools.read_text()), "erase", max_tokens=60
        )
        assert result.json == expected.to_dict()

    def test_tools_are_told_of_where_the_template_shows_none(self, run: Terminal, tools: Path) -> None:
        text = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"
        path = copy_tiny("cli-no-tools", changes={"tokenizer.chat_template": text})
        args = ["chat", "-p", ASK, "--model", path, "--tools", tools, "--tool-choice", "erase", "--max-tokens", "60"]
        run(*args, "--tools-in", "template").fails(2, 'tools_in="system"')
        told = run(*args, "--json")
        result = run(*args, "--tools-in", "system", "--json")
        assert (result.code, result.json["tool_calls"][0]["function"]["name"]) == (0, "erase")
        assert (told.code, told.json, "the system message describes the tools" in told.err) == (0, result.json, True)
        run(*args, "--tools-in", "prompt").fails(2, "prompt", '"messages"')

    def test_lines_are_messages(self, run: Terminal) -> None:
        result = run("chat", "--max-tokens", "3", "--system", "Be brief.", "--json", stdin="Hello\n\n/quit\n")
        messages = [json.loads(line) for line in result.out.splitlines()]
        assert [message["role"] for message in messages] == ["assistant", "assistant"]

    def test_definitions_take_results_from_lines(
        self, run: Terminal, tools: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        said = replying(monkeypatch, called("erase"), tokentrie.Message("Done.", finish="end_of_generation"))
        run("chat", "--tools", tools, stdin=f"{ASK}\nit is gone\n")
        assert [message["role"] for message in said[1] if isinstance(message, dict)] == ["user", "tool"]
        assert said[1][-1]["content"] == "it is gone"

    def test_with_prompt_definitions_are_not_answered(
        self, run: Terminal, tools: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        said = replying(monkeypatch, called("erase"))
        assert run("chat", "--tools", tools, "-p", ASK).code == 0
        assert len(said) == 1

    def test_python_is_executed_only_when_told(self, run: Terminal, functions: Path) -> None:
        run("chat", "-p", ASK, "--tools", functions).fails(2, "--run", "executed")
        assert not Path("executed").exists()

    def test_functions_run(self, run: Terminal, functions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        said = replying(
            monkeypatch, called("ring", '{"tone": "low"}'), tokentrie.Message("Done.", finish="end_of_generation")
        )
        result = run("chat", "-p", ASK, "--tools", functions, "--run")
        assert result.code == 0
        assert "ring → it rings low\n" in result.out
        assert said[1][-1] == {"role": "tool", "tool_call_id": "", "name": "ring", "content": "it rings low"}

    def test_on_a_screen_names_and_enums_are_highlighted(
        self, run: Terminal, tools: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
        out = run("chat", "-p", "ring the bell", "--tools", tools, "--tool-choice", "ring", "--max-tokens", "300").out
        assert "\x1b[1;36mring\x1b[0m" in out
        assert re.search(r'\x1b\[1;33m"', out)

    def test_functions_run_with_the_model(self, run: Terminal, functions: Path) -> None:
        args = ["--tools", functions, "--run", "--tool-choice", "ring", "--max-tokens", "200"]
        result = run("chat", "-p", "ring the bell", *args)
        assert result.code == 0
        assert "_hidden" not in result.out

    @pytest.mark.parametrize(
        ("args", "code", "parts"),
        [
            (["--run"], 2, ["--run", "--tools"]),
            (["--tools", "-"], 2, ["--tools", "standard input"]),
            (["-p", "x", "--tools", "missing.json"], 1, ["missing.json"]),
            (["-p", "x", "--tools", "missing.py", "--run"], 1, ["missing.py"]),
            (["-p", "x", "--seed", "1"], 2, ["--seed", "--temperature"]),
            (["-p", "x", "--temperature", "-1"], 2, ["temperature"]),
            (["-p", "x", "--tool-choice", "required"], 2, ["no tools"]),
            (["-m", "missing.gguf", "-p", "x"], 1, ["missing.gguf"]),
        ],
    )
    def test_errors(self, run: Terminal, args: list[str], code: int, parts: list[str]) -> None:
        run("chat", *args).fails(code, *parts)

    def test_python_that_fails(self, run: Terminal, functions: Path) -> None:
        for text, part in (("1 / 0", "ZeroDivisionError"), ("x = 3", "no function"), ("def f(*a): ...", "by name")):
            functions.write_text(text)
            run("chat", "-p", "x", "--tools", functions, "--run").fails(1, str(functions), part)

    def test_definitions_are_not_run(self, run: Terminal, tools: Path) -> None:
        run("chat", "-p", "x", "--tools", tools, "--run").fails(2, "--run", "no functions")


def called(name: str, arguments: str = "{}") -> tokentrie.Message:
    return tokentrie.Message("", "", [tokentrie.results.ToolCall("", name, arguments)], (), "tool_calls")


def replying(monkeypatch: pytest.MonkeyPatch, *replies: tokentrie.Message) -> list[list[Any]]:
    """Makes the model say this; returns the conversations that it is given."""
    said: list[list[Any]] = []

    class Fake:
        def __init__(self, *args: Any, **named: Any) -> None:
            self.path, self.vocab, self.n_threads = Path(__file__), [], 1

        def chat(self, messages: list[Any], *args: Any, **named: Any) -> tokentrie.Message:
            said.append(list(messages))
            return replies[len(said) - 1]

    monkeypatch.setattr(tokentrie, "Model", Fake)
    return said


class Keyboard(io.TextIOWrapper):
    """Standard input that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Types lines into a chat."""

    def type_in(*lines: str, args: tuple[str | Path, ...] = ()) -> Result:
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", Keyboard(io.BytesIO("".join(f"{line}\n" for line in lines).encode())))
        return Result(main(["chat", *map(str, args)]), *capsys.readouterr())

    return type_in


@pytest.mark.model
class TestOnATerminal:
    def test_commands(self, typed: Callable[..., Result], tmp_path: Path) -> None:
        first, second = tmp_path / "a.json", tmp_path / "b.json"
        lines = ["Hello", f"/save {first}", "/reset", f"/save {second}", "/what", "/save", "/quit", "not said"]
        result = typed(*lines, args=("--max-tokens", "2", "--system", "Be brief."))
        assert result.code == 0
        assert [one["role"] for one in json.loads(first.read_text())] == ["system", "user", "assistant"]
        assert [one["role"] for one in json.loads(second.read_text())] == ["system"]
        assert "no command /what" in result.err
        assert result.err.count("tokens/s") == 1
        assert "toy model" in result.err

    def test_an_error_ends_a_turn_and_not_the_chat(self, typed: Callable[..., Result], tmp_path: Path) -> None:
        saved = tmp_path / "chat.json"
        lines = ["long " * 300, f"/save {tmp_path / 'no' / 'x.json'}", "Hello", f"/save {saved}"]
        result = typed(*lines, args=("--ctx", "256", "--max-tokens", "2"))
        assert result.code == 0
        assert "No such file" in result.err
        assert [one["content"] for one in json.loads(saved.read_text())][:1] == ["Hello"]

    def test_results_are_asked_for(
        self, typed: Callable[..., Result], tools: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        said = replying(monkeypatch, called("erase"), tokentrie.Message("Done.", finish="end_of_generation"))
        result = typed(ASK, "gone", args=("--tools", tools))
        assert "result of erase: " in result.out
        assert said[1][-1]["content"] == "gone"

    def test_calls_without_results_are_left_out(
        self, typed: Callable[..., Result], tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After so many rounds, and where the input ends before there is a result."""
        saved = tmp_path / "chat.json"
        said = replying(monkeypatch, *(called("erase") for _ in range(20)))
        result = typed(ASK, *(["gone"] * 7), f"/save {saved}", ASK, args=("--tools", tools))
        assert result.code == 0
        assert len(said) == 9
        assert result.err.count("calls that have no result are left out") == 2
        *_, answered, last = json.loads(saved.read_text())
        assert (answered["role"], last) == ("tool", {"role": "assistant", "content": ""})

    def test_an_interrupted_function_takes_its_message_back(
        self, typed: Callable[..., Result], functions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        functions.write_text("def ring() -> str:\n    raise KeyboardInterrupt\n")
        replying(monkeypatch, called("ring"))
        saved = tmp_path / "chat.json"
        result = typed(ASK, f"/save {saved}", args=("--tools", functions, "--run"))
        assert result.code == 0
        assert "interrupted" in result.err
        assert json.loads(saved.read_text()) == []

    def test_json_needs_messages(self, typed: Callable[..., Result]) -> None:
        typed("Hello", args=("--json",)).fails(2, "--json", "--prompt")

    @pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no pseudo terminals")
    def test_control_c_ends_the_reply_and_keeps_the_chat(self, tmp_path: Path) -> None:
        """With a terminal of its own: Ctrl-C in a reply, then a file with what was said, then Ctrl-D."""
        saved = tmp_path / "chat.json"
        main_end, end = os.openpty()
        env = os.environ | {"TERM": "xterm-256color"}
        # Any token is as good as any other, so the reply goes on for thousands of them.
        draw = ["--ctx", "8192", "--temperature", "1000", "--seed", "1"]
        args = [sys.executable, "-m", "tokentrie", "chat", *draw]
        process = subprocess.Popen(args, stdin=end, stdout=end, stderr=end, env=env, start_new_session=True)
        os.close(end)
        try:
            read(main_end, b"> ")
            os.write(main_end, b"Hello\n")
            read(main_end, b"Hello\r\n", more=20)
            os.kill(process.pid, signal.SIGINT)
            read(main_end, b"> ")
            os.write(main_end, f"/save {saved}\n".encode())
            # Only at the prompt is it the end: before, the terminal may forget it.
            shown = read(main_end, b"messages")
            if b"> " not in shown.partition(b"messages")[2]:
                read(main_end, b"> ")
            os.write(main_end, b"\x04")
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.wait()
            os.close(main_end)
        user, assistant = json.loads(saved.read_text())
        assert user == {"role": "user", "content": "Hello"}
        assert assistant["content"]


def read(end: int, until: bytes, more: int = 0) -> bytes:
    """What a terminal shows up to a text, and so many bytes after it."""
    shown, deadline = b"", time.monotonic() + 60
    while until not in shown or len(shown.partition(until)[2]) < more:
        ready, _, _ = select.select([end], [], [], max(0, deadline - time.monotonic()))
        assert ready, shown
        shown += os.read(end, 65536)
    return shown
