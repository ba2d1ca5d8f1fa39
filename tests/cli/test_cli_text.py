"""How the command line reads text files, what its help pages show, and how shells complete it."""

from __future__ import annotations

import codecs
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tokentrie
from hypothesis import given
from hypothesis import strategies as st
from test_cli import Terminal, run
from test_cli_chat import ERASE, FUNCTIONS, TEMPLATE
from tokentrie import TokenTrieError, Trie
from tokentrie.cli import lines as text_files
from tokentrie.cli.lines import Lines, as_text, strip_mark

__all__ = ["run"]

COMMANDS = (
    "demo",
    "choose",
    "generate",
    "inspect",
    "build",
    "chat",
    "decide",
    "serve",
)
ENCODINGS = {
    "utf-8": b"",
    "utf-8-sig": b"",
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff\r\0"))


def encoded(text: str, encoding: str) -> bytes:
    return ENCODINGS[encoding] + text.encode(encoding)


class TestDecoder:
    @given(TEXT, st.sampled_from([*ENCODINGS]))
    def test_what_a_byte_order_mark_says_is_believed(self, text: str, encoding: str) -> None:
        content = encoded(text, encoding)
        assert as_text(content, Path("f")) == text
        assert [line for _, line in Lines(Path("f"), content).texts()] == re.findall(r"[^\n]*\n|[^\n]+", text)
        assert strip_mark(content, Path("f")) == text.encode()
        assert as_text(encoded(text.replace("\n", "\r\n"), encoding), Path("f")) == text

    def test_long_files_are_read_in_pieces(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(text_files, "CHUNK", 7)
        text = "".join(f"zeile {n} \U0001f600\n" for n in range(100))
        (tmp_path / "f").write_bytes(encoded(text, "utf-16-be"))
        with Lines(tmp_path / "f") as lines:
            assert "".join(line for _, line in lines.texts()) == text
            assert lines.position == lines.size

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b"ab\nc\xff\n", "f, line 2: not UTF-8: byte 1 is 0xff"),
            (b"\xef\xbb\xbfab\nc\xe4", "f, line 2: not UTF-8: byte 1 is 0xe4"),
            (codecs.BOM_UTF16_LE + "a\nb\n".encode("utf-16-le") + b"\x00\xdc", "f, line 3: not UTF-16: byte 10"),
            (codecs.BOM_UTF16_BE + b"\x00a\x00", "f, line 1: not UTF-16: byte 4"),
            (codecs.BOM_UTF32_LE + b"a\0\0\0", "f, line 1: UTF-32 is not supported"),
        ],
    )
    def test_what_is_no_text_has_line_and_byte(self, content: bytes, problem: str) -> None:
        with pytest.raises(TokenTrieError, match=re.escape(problem)):
            as_text(content, Path("f"))

    @pytest.mark.model
    @pytest.mark.parametrize("encoding", [*ENCODINGS])
    def test_every_file(self, run: Terminal, tmp_path: Path, encoding: str) -> None:
        def file(name: str, text: str) -> Path:
            (tmp_path / name).write_bytes(encoded(text.replace("\n", "\r\n"), encoding))
            return tmp_path / name

        names, prompt = file("names.txt", "käse\nbrot\n"), file("prompt.txt", "Ich mag ")
        payload = file("p.json", json.dumps({"descriptors": [{"path": "a", "leaves": [{"name": "A", "tokens": [5]}]}]}))
        made = run("generate", "--prompt-file", prompt, "--choices-file", names)
        assert made.out in ("käse\n", "brot\n")
        assert made.err == ""
        assert run("generate", "-p", "Hi", "--choices-file", "-", stdin="").code == 1
        assert run("generate", "-p", "Hi", "--payload", payload, "--json").json["leaf"]["name"] == "A"
        assert run("inspect", payload).out.startswith("a: 1 leaf")
        for table, field in (("t.csv", "n"), ("t.jsonl", "n")):
            content = "n,m\nkäse,1\nbrot,2\n" if table == "t.csv" else '{"n": "käse"}\n{"n": "brot"}\n'
            assert run("build", file(table, content), "--field", field, "-o", tmp_path / f"{table}.ttrie").code == 0
            assert {leaf.name for leaf in Trie.open(tmp_path / f"{table}.ttrie")} == {"käse", "brot"}
        assert run("build", names, "-o", tmp_path / "n.ttrie").code == 0
        assert Trie.open(tmp_path / "n.ttrie") == Trie.open(tmp_path / "t.csv.ttrie")


@pytest.mark.model
class TestBlanks:
    def test_a_label_that_ends_with_a_blank_is_named(self, run: Terminal, tmp_path: Path) -> None:
        names = tmp_path / "names.txt"
        names.write_text("bug \nfine\n\ttab\n")
        for command in ("choose", "generate"):
            result = run(command, "-p", "Hi", "--choices-file", names)
            assert result.code == 0
            assert result.err.count("\n") == 1
            assert "warning: the value 'bug ' begins or ends with blanks" in result.err
            assert "as 1 other does" in result.err
            assert "'x '" in run(command, "-p", "Hi", "--choice", "x ", "--json").json["warnings"][0]
        result = run("build", names, "-o", tmp_path / "n.ttrie")
        assert f"{names}, line 1: the value 'bug '" in result.err
        assert run("build", names, "-o", tmp_path / "n.ttrie", "--json").json["warnings"]
        assert "bug " in {leaf.name for leaf in Trie.open(tmp_path / "n.ttrie")}

    def test_others_are_not(self, run: Terminal, tmp_path: Path) -> None:
        names = tmp_path / "names.txt"
        names.write_bytes(b"a b\r\nc\r\n\r\n")
        assert run("choose", "-p", "Hi", "--choices-file", names).err == ""
        assert run("choose", "-p", "Hi", "-c", "a , b").err == ""


@pytest.mark.model
def test_build_shows_how_far_it_is(
    run: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_path: Path
) -> None:
    names = tmp_path / "names.txt"
    names.write_text("".join(f"name {number}\n" for number in range(20_000)))
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = run("build", names, "-o", tmp_path / "n.ttrie")
    assert result.code == 0
    shares = [int(share) for share in re.findall(r"(\d+)%", result.err)]
    assert max(shares) > 50


class TestHelp:
    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Terminal) -> Path:
        """What the examples name."""
        (tmp_path / "names.txt").write_text("ann\nanna\nbob\n")
        (tmp_path / "more.txt").write_text("ann\ncarl\n")
        (tmp_path / "prompt.txt").write_text("Who is it? ")
        (tmp_path / "reviews.csv").write_text("text,label\nI like it,good\nI hate it,bad\n")
        leaves = [{"name": "A", "tokens": [300]}, {"name": "B", "tokens": [301, 302]}]
        (tmp_path / "payload.json").write_text(json.dumps({"descriptors": [{"path": "a", "leaves": leaves}]}))
        (tmp_path / "chat.jinja").write_text(TEMPLATE)
        (tmp_path / "tools.json").write_text(json.dumps([ERASE]))
        (tmp_path / "tools.py").write_text(FUNCTIONS)
        (tmp_path / "reply.txt").write_text("Ding.")
        (tmp_path / "letter.txt").write_text("The lamp is on.")
        (tmp_path / "letters.jsonl").write_text('{"text": "The lamp is on."}\n' * 3)
        (tmp_path / "known.csv").write_text("text,lit\n" + "It is on,yes\nIt is off,no\n" * 6)
        (tmp_path / "questions.json").write_text(json.dumps({"questions": {"on": {"type": "predicate"}}}))
        monkeypatch.chdir(tmp_path)
        with tokentrie.Model() as model:
            asked = {"messages": [{"role": "user", "content": "Delete a.txt."}], "tools": [ERASE]}
            reply = model.chat(asked["messages"], asked["tools"], "required", max_tokens=60, receipt=True)
            door = model.generate("The door is ", ["open", "closed"], receipt=True)
        for name, told in {"request": asked, "reply": reply.receipt, "receipt": door.receipt}.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(told))
        for name in ("names", "more"):
            assert run("build", f"{name}.txt", "-o", f"{name}.ttrie").code == 0
        return tmp_path

    @pytest.mark.model
    @pytest.mark.parametrize("command", ["", *(command for command in COMMANDS if command != "serve")])
    def test_examples_run(self, run: Terminal, folder: Path, command: str) -> None:
        for package in ("matplotlib", "pyarrow"):
            pytest.importorskip(package)
        page = run(*command.split(), "--help").out
        _, _, examples = page.partition("  Examples:\n")
        found = [line.strip() for line in examples.splitlines() if line.strip()]
        assert found
        for example in found:
            program, *args = shlex.split(example)
            assert program == "tokentrie"
            assert len(example) <= 100
            result = run(*args)
            assert result.code == (1 if args[-1] == "more.ttrie" else 0), (example, result.err)

    def test_every_command_is_there(self, run: Terminal) -> None:
        page = run("--help").out
        _, _, listed = page.partition("Commands:\n")
        listed, _, _ = listed.partition("\n\n")
        assert {line.split()[0] for line in listed.splitlines() if line[2] != " "} == {*COMMANDS}


class TestStarting:
    def test_as_a_module(self) -> None:
        for module in ("tokentrie", "tokentrie.cli"):
            done = subprocess.run(
                [sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True
            )
            assert done.stdout.startswith("tokentrie ")

    def test_completion(self, run: Terminal) -> None:
        for shell in ("bash", "zsh", "fish"):
            result = run("--print-completion", shell)
            assert (result.code, result.err) == (0, "")
            assert "_TOKENTRIE_COMPLETE" in result.out
        run("--print-completion", "cmd").fails(2, "--print-completion", "bash, zsh, fish")

    @pytest.mark.parametrize(
        ("words", "found"),
        [
            ("", [*COMMANDS]),
            ("ch", ["choose", "chat"]),
            ("chat --tool-", ["--tool-choice"]),
            ("choose --on-", ["--on-error"]),
            ("inspect --max", ["--max-children"]),
        ],
    )
    def test_bash_completes(self, run: Terminal, tmp_path: Path, words: str, found: list[str]) -> None:
        if not (bash := shutil.which("bash")):
            pytest.skip("there is no bash")
        (tmp_path / "tokentrie").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tokentrie "$@"\n')
        (tmp_path / "tokentrie").chmod(0o755)
        line = ["tokentrie", *words.split(" ")]
        words_of = " ".join(map(shlex.quote, line))
        program = f"""{run("--print-completion", "bash").out}
COMP_WORDS=({words_of}); COMP_CWORD={len(line) - 1}; _tokentrie_completion tokentrie; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
        env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        done = subprocess.run([bash, "-c", program], capture_output=True, text=True, check=True, env=env)
        assert set(found) <= set(done.stdout.split())
        assert done.stderr == ""
