"""The command line, run for real: in this process, and as a process of its own where that matters."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import tokentrie
from support import payload
from tokentrie.cli import main
from tokentrie.cli.demo import demo as cli_demo
from tokentrie.cli.inspecting.outline import Counts
from tokentrie.cli.loading import open_model

PAYLOAD = {
    "modelId": "m",
    "descriptors": [
        *payload({"TASK": [12, 84, 7], "TASK_LIST": [12, 84, 7, 9, 10], "NOTE": [12, 84, 8], "STOP": [99]})[
            "descriptors"
        ],
        *payload({"only [bold]": [300, 301, 302]}, path="x[]")["descriptors"],
    ],
}


@dataclass(frozen=True)
class Result:
    """What one call of the command line gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        document = json.loads(self.out)
        assert isinstance(document, dict)
        return document

    def fails(self, code: int, *parts: str) -> None:
        """One clear line and nothing else."""
        assert (self.code, self.out) == (code, "")
        assert self.err.startswith("tokentrie: ")
        assert self.err.count("\n") == 1
        assert all(part in self.err for part in parts), self.err


class Terminal:
    """Calls the command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *args: str | Path, stdin: str = "") -> Result:
        self._capsys.readouterr()
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = main([str(arg) for arg in args])
        return Result(code, *self._capsys.readouterr())


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tiny_path: Path) -> Terminal:
    return Terminal(capsys, monkeypatch)


@pytest.fixture
def payload_path(tmp_path: Path) -> Path:
    path = tmp_path / "payload.json"
    path.write_text(json.dumps(PAYLOAD))
    return path


def process(*args: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tokentrie.cli", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def demo(tiny_path: Path) -> dict[str, Any]:
    done = process("demo", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


@pytest.mark.model
class TestDemo:
    def test_every_answer_is_right(self, demo: dict[str, Any]) -> None:
        choice, call, names = demo["choice"], demo["call"], demo["names"]
        assert demo["request"] == "Please call off the conference at 10:30."
        assert choice["chosen"] == choice["most_probable"] == "cancel_meeting"
        assert max(choice["probabilities"].values()) == choice["probabilities"]["cancel_meeting"] > 0.9
        assert sum(choice["probabilities"].values()) == pytest.approx(1, abs=1e-5)
        assert json.loads(call["filled"]["text"]) == {"name": "cancel_meeting", "arguments": {"time": "10:30"}}
        assert call["free"]["text"] == call["filled"]["text"] + "</tool_call>"
        assert call["filled"]["stats"]["forward_passes"] < call["free"]["stats"]["forward_passes"] / 3
        assert names["trie"]["leaves"] == 100_000
        assert names["chosen"] == names["wanted"]
        assert names["stats"]["forward_passes"] <= 5

    @pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 9))])
    def test_whatever_name_is_asked_for(self, run: Terminal, seed: int) -> None:
        names = run("demo", "--seed", str(seed), "--json").json["names"]
        assert names["chosen"] == names["wanted"]

    def test_chooses_what_is_allowed(self, demo: dict[str, Any]) -> None:
        for run in (demo["choice"], demo["names"]):
            assert run["finish"] == "span"
            for step in run["steps"]:
                probabilities = {entry["token"]: entry["probability"] for entry in step["allowed"]}
                assert step["token"] in probabilities
                assert probabilities[step["token"]] == max(probabilities.values())
                assert sum(probabilities.values()) == pytest.approx(1, abs=1e-5)

    def test_marks_forced_steps(self, demo: dict[str, Any]) -> None:
        for run in (demo["choice"], demo["names"]):
            assert all(step["forced"] == (len(step["allowed"]) == 1) for step in run["steps"])
            assert run["stats"]["forced_tokens"] == sum(step["forced"] for step in run["steps"])
            assert any(step["forced"] for step in run["steps"])

    def test_the_steps_spell_the_choice(self, demo: dict[str, Any]) -> None:
        for run in (demo["choice"], demo["names"]):
            assert [step["token"] for step in run["steps"]][: len(run["tokens"])] == run["tokens"]
            assert "".join(step["text"] for step in run["steps"]).startswith(run["chosen"])
            assert [step["index"] for step in run["steps"]] == list(range(len(run["steps"])))

    @pytest.mark.parametrize("columns", [None, 80, 40, 200])
    @pytest.mark.parametrize("colour", ["NO_COLOR", "FORCE_COLOR"])
    def test_for_people(self, run: Terminal, colour: str, columns: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(colour, "1")
        if columns:
            monkeypatch.setenv("COLUMNS", str(columns))
        result = run("demo", "--names", "1000")
        assert result.code == 0
        plain = re.sub(r"\x1b\[[0-9;]*m", "", result.out)
        assert (plain != result.out) == (colour == "FORCE_COLOR")
        width = min(columns or 80, 80) if colour == "FORCE_COLOR" else 80
        assert max(map(len, plain.splitlines())) <= width
        for shown in ("tiny.gguf", "One of 1,000 names", "→ cancel_meeting", "unconstrained"):
            assert shown in plain
        assert sum("forced, no" in line for line in plain.splitlines()) >= 2 or width < 80
        assert plain.count("█") >= 5 if width == 40 else "█" * 30 in plain

    def test_the_real_model_is_offered_after_the_tiny_one(self, run: Terminal, tiny_path: Path) -> None:
        assert "demo -m smollm2" in run("demo", "--names", "100").out
        assert "demo -m smollm2" not in run("demo", "-m", str(tiny_path), "--names", "100").out

    def test_it_takes_few_forward_passes(self, demo: dict[str, Any]) -> None:
        """So that it is over in seconds on any machine."""
        parts = [demo["choice"]["stats"], demo["names"]["stats"], *(one["stats"] for one in demo["call"].values())]
        assert sum(part["forward_passes"] for part in parts) <= 50
        assert demo["model"]["n_threads"] == 1

    def test_another_request_and_list(self, run: Terminal) -> None:
        options = ["--tools", "9", "--seed", "5", "--names", "100"]
        document = run("demo", "--request", "Book a [hotel]", *options, "--json").json
        assert document["request"] == "Book a [hotel]"
        assert len(document["tools"]) == 9
        assert document["names"]["trie"]["leaves"] == 100

    def test_shrinks_a_list_that_does_not_fit(self, run: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cli_demo, "open_model", lambda path, *_: open_model(path, n_ctx=512))
        result = run("demo", "--tools", "300", "--names", "100")
        assert result.code == 0
        (title,) = [line for line in result.out.splitlines() if line.startswith("1. Which of")]
        assert 8 < int(title.split()[3]) < 100
        assert "(not 300: the context has room for 512 tokens)" in result.out

    def test_tries_contexts_up_to_what_the_model_allows(self) -> None:
        assert list(cli_demo._sizes(17_000)) == [17_000, 16_384, 8192]
        assert list(cli_demo._sizes(4096)) == []

    def test_a_request_that_never_fits(self, run: Terminal) -> None:
        result = run("demo", "--request", "word " * 9000, "--json")
        result.fails(1, "8192")


@pytest.mark.model
class TestGenerate:
    def test_one_of_the_choices(self, run: Terminal) -> None:
        result = run("generate", "--prompt", "The door is", "--choices", "open, closed")
        assert (result.code, result.err) == (0, "")
        assert result.out in ("open\n", "closed\n")

    def test_chat_puts_the_prompt_into_the_template(self, run: Terminal) -> None:
        said = ["--prompt", "Is the sky blue?", "--choices", "Yes,No"]
        plain = run("generate", *said, "--json").json
        with tokentrie.Model(n_threads=1) as model:
            for options, system in ((["--chat"], []), (["--system", "Be brief."], [("system", "Be brief.")])):
                messages = [{"role": role, "content": text} for role, text in (*system, ("user", said[1]))]
                found = run("generate", *said, *options, "--json").json
                assert found["stats"]["prompt_tokens"] == len(model.chat_prompt(messages))
                assert found["stats"]["prompt_tokens"] > plain["stats"]["prompt_tokens"]
                assert found["leaf"]["name"] in ("Yes", "No")

    def test_payload(self, run: Terminal, payload_path: Path) -> None:
        vocab = tokentrie.Model().vocab
        document = run("generate", "-p", "Hi", "--payload", payload_path, "--path", "x[]", "--json").json
        assert document["tokens"] == [300, 301, 302]
        assert document["text"] == vocab.detokenize([300, 301, 302])
        assert document["leaf"] == {"index": 0, "name": "only [bold]", "tokens": [300, 301, 302]}
        assert document["stats"]["forced_tokens"] == 3
        assert document["finish"] == "span"
        assert document["warnings"] == []

    def test_the_first_descriptor_without_a_path(self, run: Terminal, payload_path: Path) -> None:
        document = run("generate", "-p", "Hi", "--payload", payload_path, "--json", "--end-token", "<|im_end|>").json
        assert document["leaf"]["name"] in ("TASK", "TASK_LIST", "NOTE", "STOP")

    def test_the_same_seed_gives_the_same(self, run: Terminal) -> None:
        names = ",".join(f"{verb}_{thing}" for verb in ("open", "close", "find") for thing in ("door", "car", "map"))
        args = [
            "generate",
            "-p",
            "Hi",
            "-c",
            names,
            "--mode",
            "sampled",
            "--temperature",
            "4",
            "--threads",
            "1",
            "--json",
        ]
        by_seed = {seed: [run(*args, "--seed", str(seed)).json["text"] for _ in range(2)] for seed in range(6)}
        assert all(first == second for first, second in by_seed.values())
        assert len({first for first, _ in by_seed.values()}) > 1
        drawn = run(*args).json
        again = run(*args, "--seed", str(drawn["stats"]["seed"])).json
        assert again["tokens"] == drawn["tokens"]

    def test_files_and_standard_input(self, run: Terminal, tmp_path: Path, payload_path: Path) -> None:
        names = tmp_path / "names.txt"
        names.write_text("an apple\r\n\ntwo, pears\n")
        assert run("generate", "--prompt-file", "-", "--choices-file", names, stdin="I want").out in (
            "an apple\n",
            "two, pears\n",
        )
        assert run("generate", "-p", "Hi", "--choices-file", "-", stdin="käse\n").out == "käse\n"
        assert run("generate", "-p", "Hi", "--payload", "-", stdin=payload_path.read_text()).code == 0

    def test_a_value_that_was_cut_off(self, run: Terminal) -> None:
        args = ["generate", "-p", "Hi", "-c", "a long value that takes tokens", "--max-tokens", "2"]
        result = run(*args)
        assert result.code == 1
        assert result.err == "tokentrie: no value was completed: the output ended with max_tokens after 2 tokens\n"
        result = run(*args, "--json")
        assert (result.code, result.json["leaf"], result.json["finish"]) == (1, None, "max_tokens")

    def test_free_text_may_follow(self, run: Terminal) -> None:
        result = run("generate", "-p", "Hi", "-c", "yes", "--after", "free", "--max-tokens", "8", "--json")
        assert result.code == 0
        assert result.json["text"].startswith("yes")
        assert result.json["leaf"]["name"] == "yes"

    def test_dropped_leaves_are_reported(self, run: Terminal) -> None:
        text = json.dumps(payload({"near": [300], "far": [1_000_000]}))
        result = run("generate", "-p", "Hi", "--payload", "-", stdin=text)
        assert result.code == 0
        assert result.err.startswith("tokentrie: warning: payload: dropped 1 leaf")
        result = run("generate", "-p", "Hi", "--payload", "-", "--json", stdin=text)
        assert result.err == ""
        assert len(result.json["warnings"]) == 1

    def test_penalties_change_greedy_text(self, run: Terminal) -> None:
        text = ("generate", "-p", "One two", "--regex", "(a|b){12}")
        plain = run(*text)
        assert set(plain.out.strip()) == {plain.out[0]}
        result = run(*text, "--frequency-penalty", "50", "--penalty-last-n", "-1")
        assert (result.code, result.err) == (0, "")
        assert set(result.out.strip()) == {"a", "b"}

    def test_warnings_name_options_as_they_are_typed(self, run: Terminal) -> None:
        plain = run("generate", "-p", "Hi", "-c", "yes,no")
        assert plain.err == ""
        result = run("generate", "-p", "Hi", "-c", "yes,no", "--temperature", "0.5", "--top-p", "0.3")
        said = "--temperature and --top-p have no effect with --mode greedy: give --mode sampled"
        assert (result.code, result.out, result.err) == (0, plain.out, f"tokentrie: warning: {said}\n")
        assert run("generate", "-p", "Hi", "-c", "yes,no", "--top-k", "3", "--json").json["warnings"] == [
            "--top-k has no effect with --mode greedy: give --mode sampled"
        ]
        layers = run("generate", "-p", "Hi", "-c", "yes,no", "--gpu-layers", "3")
        assert layers.err.splitlines() in (
            [],  # of a build that uses graphics cards
            ["tokentrie: warning: --gpu-layers has no effect: this build of tokentrie uses no graphics card"],
        )

    @pytest.mark.parametrize(
        ("args", "parts"),
        [
            (["-c", "a"], ["--prompt or --prompt-file"]),
            (["-p", "Hi"], ["--choice, --choices-file, --regex, --grammar, --json-schema or --constraint"]),
            (["-p", "Hi", "-c", "a", "--choices-file", "f"], ["--choices and --choices-file"]),
            (["-p", "Hi", "--prompt-file", "f", "-c", "a"], ["--prompt and --prompt-file"]),
            (["--prompt-file", "-", "--payload", "-"], ["only once"]),
            (["-p", "Hi", "-c", "a", "--path", "x"], ["--path", "--payload"]),
            (["-p", "Hi", "-c", "a,,b"], ["--choices", "empty value", "a,,b"]),
            (["-p", "", "-c", "a"], ["prompt"]),
            (["-p", "Hi", "-c", "a", "--mode", "best"], ["--mode", "best"]),
            (["-p", "Hi", "-c", "a", "--top-p", "nan"], ["top_p", "NaN"]),
            (["-p", "Hi", "-c", "a", "--temperature", "hot"], ["--temperature"]),
            (["-p", "Hi", "-c", "a", "--top-k", "-1"], ["top_k is -1"]),
            (["-p", "Hi", "-c", "a", "--penalty-last-n", "-2"], ["penalty_last_n is -2", "from -1"]),
            (["-p", "Hi", "-c", "a", "--repeat-penalty", "0"], ["repeat_penalty is 0", "more than 0"]),
            (["-p", "Hi", "-c", "a", "--seed", "4294967296"], ["--seed", "4294967295"]),
            (["-p", "Hi", "-c", "a", "--max-tokens", "0"], ["--max-tokens"]),
            (["-p", "Hi", "-c", "a", "--ctx", "100000"], ["n_ctx", "100000"]),
            (["-p", "Hi", "-c", "a", "--end-token", "99999"], ["--end-token", "99999"]),
            (["-p", "Hi", "-c", "a", "--end-token", "more than one"], ["--end-token", "more than one"]),
        ],
    )
    def test_wrong_usage(self, run: Terminal, args: list[str], parts: list[str]) -> None:
        run("generate", *args).fails(2, *parts)

    def test_bad_files(self, run: Terminal, tmp_path: Path, payload_path: Path) -> None:
        bad = tmp_path / "bad"
        bad.write_bytes(b"\xff\xff")
        run("generate", "-m", tmp_path / "none.gguf", "-p", "Hi", "-c", "a").fails(1, "none.gguf")
        run("generate", "-m", bad, "-p", "Hi", "-c", "a").fails(1, "bad")
        run("generate", "-m", payload_path, "-p", "Hi", "-c", "a").fails(1, "payload.json")
        run("generate", "--prompt-file", tmp_path / "none", "-c", "a").fails(1, "none: No such file")
        run("generate", "--prompt-file", bad, "-c", "a").fails(1, "bad, line 1: not UTF-8: byte 0 is 0xff")
        run("generate", "-p", "Hi", "--choices-file", bad).fails(1, "bad, line 1: not UTF-8")
        run("generate", "-p", "Hi", "--choices-file", "-").fails(1, "no line with a value")
        run("generate", "-p", "Hi", "--payload", bad).fails(1, "payload, line 1")
        run("generate", "-p", "Hi", "--payload", payload_path, "--path", "y").fails(2, "y", "action")
        run("generate", "-p", "Hi " * 5000, "-c", "a").fails(1, "4096")

    def test_arguments_that_are_no_text(self, tiny_path: Path) -> None:
        for option, value in (("-p", b"\xff"), ("-c", b"\xff"), ("--end-token", b"\xff")):
            rest = {"-p": b"Hi", "-c": b"a"} | {option: value}
            args = [part for name, text in rest.items() for part in (name.encode(), text)]
            command = [sys.executable.encode(), b"-m", b"tokentrie.cli", b"generate", *args]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            Result(done.returncode, done.stdout, done.stderr).fails(2, "UTF-8")


class TestInspect:
    def test_counts_and_names(self, run: Terminal, payload_path: Path) -> None:
        result = run("inspect", payload_path)
        assert (result.code, result.err) == (0, "")
        sizes = [tokentrie.Trie.from_payload(PAYLOAD, path).nbytes for path in ("action", "x[]")]
        assert result.out.splitlines() == [
            f"action: 4 leaves, 8 nodes, {sizes[0]} bytes, at most 5 tokens, 4 of 12 steps forced (33 %)",
            "├── [12 84] (3 leaves)",
            "│   ├── [7] → TASK (2 leaves)",
            "│   │   └── [9 10] → TASK_LIST",
            "│   └── [8] → NOTE",
            "└── [99] → STOP",
            f"x[]: 1 leaf, 4 nodes, {sizes[1]} bytes, at most 3 tokens, 3 of 3 steps forced (100 %)",
            "└── [300 301 302] → only [bold]",
        ]

    @pytest.mark.model
    def test_text_of_tokens(self, run: Terminal, payload_path: Path, tiny_path: Path) -> None:
        vocab = tokentrie.Vocab.from_gguf(tiny_path)
        lines = run("inspect", payload_path, "--vocab", tiny_path, "--path", "x[]").out.splitlines()
        pieces = " ".join(json.dumps(vocab[token].decode()) for token in (300, 301, 302))
        assert lines[1:] == [f"└── [300 301 302] {pieces} → only [bold]"]

    def test_limits(self, run: Terminal, payload_path: Path) -> None:
        lines = run("inspect", payload_path, "--path", "action", "--max-children", "1").out.splitlines()
        assert lines[1:] == [
            "├── [12 84] (3 leaves)",
            "│   ├── [7] → TASK (2 leaves)",
            "│   │   └── [9 10] → TASK_LIST",
            "│   └── … 1 more (1 leaf)",
            "└── … 1 more (1 leaf)",
        ]
        lines = run("inspect", payload_path, "--path", "action", "--depth", "1").out.splitlines()
        assert lines[1:] == ["├── [12 84] (3 leaves)", "│   └── … (3 leaves)", "└── [99] → STOP"]

    def test_json(self, run: Terminal, payload_path: Path) -> None:
        document = run("inspect", "-", "--json", stdin=payload_path.read_text()).json
        action, other = document["descriptors"]
        assert [action["leaves"], action["nodes"], action["steps"], action["forced_steps"]] == [4, 8, 12, 4]
        assert other["tree"] == {
            "tokens": [300, 301, 302],
            "terminal": True,
            "name": "only [bold]",
            "leaves": 1,
            "children": [],
            "hidden": {"branches": 0, "leaves": 0},
        }

    def test_counts_agree_with_the_trie(self, run: Terminal) -> None:
        """Nodes and forced steps, counted by asking the trie at every prefix."""
        leaves = {f"n{i}": [int(digit) + 1 for digit in str(i * i)] for i in range(300)}
        trie = tokentrie.Trie.from_payload(payload(leaves))
        steps = [(leaf.tokens[:depth], leaf) for leaf in trie for depth in range(len(leaf.tokens))]
        forced = sum(len(trie.allowed(prefix)) == 1 and prefix not in trie for prefix, _ in steps if prefix)
        args = ["inspect", "-", "--json", "--depth", "20", "--max-children", "20"]
        (found,) = run(*args, stdin=json.dumps(payload(leaves))).json["descriptors"]
        assert (found["steps"], found["forced_steps"]) == (len(steps), forced)

        def nodes(node: dict[str, Any]) -> int:
            return len(node["tokens"]) + sum(map(nodes, node["children"]))

        assert nodes(found["tree"]) + 1 == trie.nodes

    def test_a_picture(self, run: Terminal, payload_path: Path, tmp_path: Path) -> None:
        picture = tmp_path / "trie.svg"
        result = run("inspect", payload_path, "--svg", picture)
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith("action: 4 leaves")
        drawing = picture.read_text(encoding="utf-8")
        assert drawing.startswith("<svg")
        assert "TASK_LIST" in drawing
        assert [path.name for path in tmp_path.iterdir() if path.suffix == ".partial"] == []
        nowhere = run("inspect", payload_path, "--svg", tmp_path / "no" / "trie.svg")
        assert nowhere.code == 1
        assert "No such file" in nowhere.err
        run("inspect", payload_path, "--svg", picture, "--json").fails(2, "--svg", "--json")

    def test_a_picture_of_several_sets(self, run: Terminal, payload_path: Path, tmp_path: Path) -> None:
        picture = tmp_path / "trie.svg"
        assert run("inspect", payload_path, "--svg", picture).code == 0
        root = ElementTree.parse(picture).getroot()
        texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
        for shown in ("action", "x[]", "7 → TASK (2 leaves)", "8 → NOTE", "99 → STOP", "300 301 302 → only [bold]"):
            assert shown in texts
        inner = [one for one in root if one.tag.endswith("svg")]
        assert len(inner) == 2
        ends = [float(one.attrib["y"]) + float(one.attrib["height"]) for one in inner]
        assert ends[0] < float(inner[1].attrib["y"])
        assert ends[1] <= float(root.attrib["height"])

    def test_a_picture_of_a_large_set_is_a_summary(self, run: Terminal, tmp_path: Path) -> None:
        trie = tokentrie.Trie.from_sequences(
            [[7, a, b] for a in range(10) for b in range(3 * a + 1)] + [[8, n] for n in range(300)]
        )
        file, picture = tmp_path / "large<&>.ttrie", tmp_path / "p.svg"
        trie.save(file)
        result = run("inspect", file, "--svg", picture)
        assert result.code == 0
        assert any(line.split() == ["[8]", "300", "300"] for line in result.out.splitlines())
        root = ElementTree.parse(picture).getroot()
        texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
        assert file.name in texts
        assert f"{len(trie):,} leaves, {trie.nodes:,} nodes, at most 3 tokens" in texts
        assert "300 ways on, 300 leaves" in texts
        levels = [f"{level.nodes:,} / {level.leaves:,}" for level in Counts(trie).levels]
        assert [text for text in texts if " / " in str(text)] == levels
        # With limits it is drawn as a tree again.
        assert run("inspect", file, "--depth", "1", "--svg", picture).code == 0
        assert "8 (300 leaves)" in picture.read_text(encoding="utf-8")

    def test_a_large_payload_is_cut(self, run: Terminal) -> None:
        leaves = {f"n{i}": [i // 100, i % 100, i] for i in range(5000)}
        result = run("inspect", "-", stdin=json.dumps(payload(leaves)))
        lines = result.out.splitlines()
        assert len(lines) == 1 + 12 * (1 + 12 + 1) + 1
        assert lines[-1] == "└── … 38 more (3,800 leaves)"

    @pytest.mark.model
    def test_dropped_leaves_are_reported(self, run: Terminal, tiny_path: Path) -> None:
        text = json.dumps(payload({"near": [300], "far": [1_000_000]}))
        result = run("inspect", "-", "--vocab", tiny_path, stdin=text)
        assert result.code == 0
        assert result.err.startswith("tokentrie: warning: payload: dropped 1 leaf")
        assert "far" not in result.out
        assert len(run("inspect", "-", "--vocab", tiny_path, "--json", stdin=text).json["warnings"]) == 1

    def test_names_cannot_move_the_cursor(self, run: Terminal) -> None:
        result = run("inspect", "-", stdin=json.dumps(payload({"\x1b[2J\u202ename\n": [1]}, path="a\rb")))
        assert result.out.splitlines()[0].startswith("a\\rb: 1 leaf")
        assert result.out.splitlines()[1] == "└── [1] → \\x1b[2J\\u202ename\\n"

    def test_deep_payloads(self, run: Terminal) -> None:
        chain = {f"n{length}": [7] * length for length in range(1, 900)}
        result = run("inspect", "-", "--depth", "200", "--json", stdin=json.dumps(payload(chain)))
        assert result.json["descriptors"][0]["nodes"] == 900
        result = run("inspect", "-", "--depth", "200", stdin=json.dumps(payload(chain)))
        assert result.code == 0

    def test_bad_files(self, run: Terminal, tmp_path: Path, payload_path: Path) -> None:
        run("inspect", tmp_path / "none").fails(1, "none: No such file")
        run("inspect", tmp_path).fails(1, "directory")
        run("inspect", "-").fails(1, "payload, line 1")
        run("inspect", "-", stdin='{"descriptors": [}').fails(1, "line 1, column 18")
        run("inspect", "-", stdin='{"descriptors": []}').fails(1, "no usable leaf")
        run("inspect", payload_path, "--path", "y").fails(2, "y", "action", "x[]")
        run("inspect", payload_path, "--vocab", payload_path).fails(1, "payload.json")


class TestUsage:
    @pytest.mark.parametrize("command", [[], ["choose"], ["demo"], ["generate"], ["inspect"]])
    def test_help(self, run: Terminal, command: list[str]) -> None:
        result = run(*command, "--help")
        assert run(*command, "-h") == result
        assert (result.code, result.err) == (0, "")
        assert "Usage: tokentrie" in result.out
        assert "--json" in result.out or not command

    def test_version(self, run: Terminal) -> None:
        assert run("--version") == Result(0, f"tokentrie {tokentrie.__version__}\n", "")

    def test_wrong_usage(self, run: Terminal) -> None:
        assert run() == run("--help")
        assert (run().code, run().err) == (0, "")
        run("invent").fails(2, "invent")
        run("inspect").fails(2, "FILE")
        run("demo", "--wrong").fails(2, "--wrong")
        run("demo", "--tools", "7").fails(2, "--tools")
        run("demo", "--tools", "many").fails(2, "--tools")
        run("inspect", "-", "--depth", "0").fails(2, "--depth")

    def test_interrupt(self, run: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
        def press_ctrl_c(*_: object) -> bytes:
            signal.raise_signal(signal.SIGINT)
            return b""

        monkeypatch.setattr("tokentrie.cli.console.read", press_ctrl_c)
        result = run("inspect", "-")
        assert (result.code, result.out, result.err.strip()) == (130, "", "tokentrie: interrupted")

    def test_a_reader_that_goes_away(self, payload_path: Path) -> None:
        command = [sys.executable, "-m", "tokentrie.cli", "inspect", str(payload_path)]
        for more in ([], ["--json"]):
            with subprocess.Popen(
                [*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as shell:
                assert shell.stdout is not None
                shell.stdout.close()
                assert shell.stderr is not None
                assert shell.stderr.read() == ""
            assert shell.returncode == 1

    def test_a_terminal_that_knows_only_ascii(self, payload_path: Path) -> None:
        done = process("inspect", payload_path, env=os.environ | {"PYTHONIOENCODING": "ascii"})
        assert (done.returncode, done.stderr) == (0, "")
        assert "STOP" in done.stdout


class TestInputsThatAreNoFiles:
    """Pipes wait for a writer, and devices may never end: one line, at once."""

    SAYS = "a pipe or a device is not supported (- reads standard input)"

    @pytest.fixture(params=["device", "pipe"])
    def endless(self, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
        if request.param == "device":
            return Path("/dev/zero")
        os.mkfifo(tmp_path / "pipe")
        return tmp_path / "pipe"

    def test_payloads_and_sets(self, run: Terminal, endless: Path, payload_path: Path) -> None:
        run("inspect", endless).fails(1, str(endless), self.SAYS)
        run("choose", "--payload", endless, "-p", "x").fails(1, str(endless), self.SAYS)
        run("choose", "--choices-file", endless, "-p", "x").fails(1, str(endless), self.SAYS)
        run("choose", "--choices", "a,b", "--prompt-file", endless).fails(1, str(endless), self.SAYS)
        run("inspect", endless, endless).fails(1, str(endless), "not a regular file")

    @pytest.mark.model
    def test_texts(self, run: Terminal, endless: Path, tmp_path: Path) -> None:
        run("build", endless, "-o", tmp_path / "out.ttrie").fails(1, str(endless), self.SAYS)
        for name in ("rows.jsonl", "rows.csv", "rows.parquet"):
            link = tmp_path / name
            link.symlink_to(endless)
            run("build", link, "--field", "x", "-o", tmp_path / "out.ttrie").fails(1, name, self.SAYS)
        rows = ("--input", tmp_path / "rows.jsonl", "--field", "x", "-o", tmp_path / "out.jsonl")
        run("choose", *rows, "-c", "a,b").fails(1, "rows.jsonl", self.SAYS)

    @pytest.mark.model
    def test_models_and_tokenizers(self, run: Terminal, endless: Path, payload_path: Path, tmp_path: Path) -> None:
        for name in ("model.gguf", "tokenizer.json"):
            (tmp_path / name).symlink_to(endless)
            run("inspect", payload_path, "--vocab", tmp_path / name).fails(1, name, "device")

    def test_standard_input_that_does_not_end(self, run: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tokentrie.cli.console.MOST_BYTES", 1 << 20)
        run("inspect", "-", stdin=" " * (1 << 20)).fails(1, "payload, line 1")
        run("inspect", "-", stdin=" " * ((1 << 20) + 1)).fails(1, "-: standard input is longer than 1 MiB")


@pytest.mark.skipif(sys.platform == "win32", reason="closes streams as a shell on Unix does")
class TestClosedStreams:
    """A file that a command opens would take the place of a stream that is closed."""

    @staticmethod
    def shell(redirect: str, *args: str | Path) -> subprocess.CompletedProcess[str]:
        line = f'exec "$0" -m tokentrie.cli "$@" {redirect}'
        command = ["sh", "-c", line, sys.executable, *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    def test_output(self, payload_path: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.ttrie"
        for args in (["--version"], ["--help"], ["inspect", payload_path], ["build", payload_path, "-o", out]):
            done = self.shell(">&-", *args)
            assert (done.returncode, done.stderr) == (1, "tokentrie: standard output is closed: nothing was done\n")
        assert not out.exists()

    def test_errors(self, payload_path: Path) -> None:
        assert self.shell("2>&-", "inspect", payload_path).returncode == 0
        done = self.shell("2>&-", "inspect", "/nowhere")
        assert (done.returncode, done.stdout) == (1, "")
        assert self.shell(">&- 2>&-", "inspect", payload_path).returncode == 1

    def test_input(self) -> None:
        done = self.shell("<&-", "inspect", "-")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "tokentrie: -: standard input is closed\n"

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
    def test_a_full_disk(self, payload_path: Path) -> None:
        done = self.shell("> /dev/full", "inspect", payload_path)
        assert (done.returncode, done.stderr) == (1, "tokentrie: [Errno 28] No space left on device\n")
