"""Bad values for a set and bad places to save it: a clear error, nothing lost, no partial file.

The command line runs for real, as a process of its own where the system is what fails.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import vocabulary_files
from test_cli import Result, Terminal
from tokentrie import Trie, Vocab
from tokentrie.cli.lines import LONGEST_LINE
from tokentrie.errors import TrieError, VocabularyError

pytestmark = pytest.mark.model

COLUMN = ["--field", "name"]
BUILD = [sys.executable, "-m", "tokentrie.cli", "build"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tiny_path: Path) -> Terminal:
    return Terminal(capsys, monkeypatch)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A set that is there already, alone in its folder."""
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / "set.ttrie"
    Trie.from_sequences([[1], [2]]).save(path)
    return path


def untouched(out: Path) -> None:
    assert Trie.open(out, verify=True) == Trie.from_sequences([[1], [2]])
    assert os.listdir(out.parent) == [out.name]


def finished(process: subprocess.Popen[str]) -> Result:
    printed, said = process.communicate()
    return Result(process.returncode, printed, said)


def start(*args: object) -> subprocess.Popen[str]:
    command = [str(part) for part in args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class TestValues:
    @pytest.mark.parametrize("name", ["v.txt", "v.csv", "v.jsonl", "header.csv", "blank.txt"])
    def test_none(self, run: Terminal, tmp_path: Path, out: Path, name: str) -> None:
        source = tmp_path / name
        source.write_text({"header.csv": "name\n", "blank.txt": "\n\r\n\n"}.get(name, ""))
        columns = COLUMN if source.suffix != ".txt" else []
        run("build", source, *columns, "-o", out).fails(1, f"{source}: holds no value, so the set has no leaf")
        untouched(out)

    def test_none_in_a_program(self, run: Terminal, tmp_path: Path, out: Path) -> None:
        for rows in ([], np.zeros((0, 3), np.int32)):
            with pytest.raises(TrieError, match="the set has no leaf"):
                Trie.from_sequences(rows)
        np.save(tmp_path / "rows.npy", np.zeros((0, 3), np.int32))
        run("build", tmp_path / "rows.npy", "-o", out).fails(1, "the set has no leaf")
        np.save(tmp_path / "rows.npy", np.zeros((3, 0), np.int32))
        run("build", tmp_path / "rows.npy", "-o", out).fails(1, "row 0 is empty")
        untouched(out)

    @pytest.mark.parametrize("name", ["v.txt", "v.csv", "v.jsonl"])
    def test_a_line_of_a_gigabyte(self, tmp_path: Path, out: Path, name: str, tiny_path: Path) -> None:
        source = tmp_path / name
        source.write_text('name\n"a"\n')
        os.truncate(source, 1 << 30)
        columns = COLUMN if source.suffix != ".txt" else []
        if source.suffix == ".jsonl":
            source.write_text('{"name": "a"}\n{"name": "b"}\n')
            os.truncate(source, 1 << 30)
        with start(*BUILD, source, *columns, "-o", out) as process:
            assert process.stdout
            assert process.stderr
            printed, said = process.stdout.read(), process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        Result(process.returncode, printed, said).fails(1, f"{source}, line 3: longer than 16 MiB")
        # What this process has held counts as held by its children.
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert 1024 * used.ru_maxrss < max(400e6, 1024 * own + 1e6)
        untouched(out)

    def test_a_value_of_the_longest_length_and_one_over_it(self, run: Terminal, tmp_path: Path, out: Path) -> None:
        source = tmp_path / "v.txt"
        source.write_bytes(b"a\n" + b"b" * LONGEST_LINE + b"\n")
        run("build", source, "-o", out).fails(1, "line 2: longer than 16 MiB")
        untouched(out)
        source.write_bytes(b"a\n" + b"b" * (LONGEST_LINE // 16) + b"\n")
        assert run("build", source, "-o", out).code == 0
        assert [len(leaf.name or "") for leaf in Trie.open(out, verify=True)] == [1, LONGEST_LINE // 16]

    @pytest.mark.parametrize(
        ("name", "content", "where"),
        [
            ("v.txt", b"good\nab\xc3(\n", "line 2: not UTF-8: byte 2 is 0xc3"),
            ("v.csv", b"\xef\xbb\xbfname\ngood\n\xff\n", "line 3: not UTF-8: byte 0 is 0xff"),
            ("v.jsonl", b'{"name": "good"}\n{"name": "\xed\xa0\x80"}\n', "line 2: not UTF-8: byte 10 is 0xed"),
            ("v.jsonl", b'{"name": "good"}\n{"name": "\\ud800"}\n', "line 2: invalid text: half a surrogate pair"),
        ],
    )
    def test_no_text(self, run: Terminal, tmp_path: Path, out: Path, name: str, content: bytes, where: str) -> None:
        (tmp_path / name).write_bytes(content)
        columns = COLUMN if name != "v.txt" else []
        run("build", tmp_path / name, *columns, "-o", out).fails(1, f"{tmp_path / name}, {where}")
        untouched(out)

    def test_nul_bytes_are_text(self, run: Terminal, tmp_path: Path, tiny_path: Path) -> None:
        vocab, values = Vocab.from_gguf(tiny_path), ["a\0b", "\0", "a", "\0\0"]
        made = []
        for name in ("v.txt", "v.csv", "v.jsonl"):
            source, columns = tmp_path / name, COLUMN
            if name == "v.txt":
                source.write_text("".join(f"{value}\n" for value in values))
                columns = []
            elif name == "v.csv":
                with source.open("w", newline="") as file:
                    csv.writer(file).writerows([["name"], *([value] for value in values)])
            else:
                source.write_text("".join(json.dumps({"name": value}) + "\n" for value in values))
            if name == "v.csv" and sys.version_info < (3, 11):
                run("build", source, *columns, "-o", tmp_path / "set.ttrie").fails(1, "NUL")
                continue
            assert run("build", source, *columns, "-o", tmp_path / "set.ttrie").code == 0
            made.append(Trie.open(tmp_path / "set.ttrie", vocab=vocab, verify=True))
        assert all(trie == made[0] == Trie.from_strings(vocab, values) for trie in made)
        for leaf in made[0]:
            assert b"".join(vocab[token] for token in leaf.tokens).decode() == leaf.name

    def test_all_refused(self, run: Terminal, tmp_path: Path, out: Path) -> None:
        # After "ye" the tokenizer joins what begins with "s".
        source, bad = tmp_path / "v.txt", tmp_path / "bad.jsonl"
        source.write_text("s\n\ns!\n")
        args = ["build", source, "-o", out, "--prefix", "ye", "--refused", bad]
        run(*args).fails(1, f"{source}: all values are refused: see {bad}")
        assert [json.loads(line)["line"] for line in bad.read_text().splitlines()] == [1, 3]
        untouched(out)

    def test_ids_outside_the_vocabulary(self, run: Terminal, tmp_path: Path, out: Path, tiny_path: Path) -> None:
        vocab, source = Vocab.from_gguf(tiny_path), tmp_path / "ids.npy"
        largest = len(vocab) - 1
        for dtype, token, limit in [
            (np.int32, largest + 1, f"is outside the vocabulary of {len(vocab)} tokens"),
            (np.int64, -1, "must be from 0 to 2147483647"),
            (np.uint64, 2**63, "must be from 0 to 2147483647"),
        ]:
            rows = np.array([[1, 2], [3, token]], dtype=dtype)
            message = f"row 1, position 1: token id {token} {limit}"
            with pytest.raises(VocabularyError, match=message):
                Trie.from_sequences(rows, vocab=vocab)
            np.save(source, rows)
            run("build", source, "-o", out).fails(1, message)
            untouched(out)
        np.save(source, np.array([[1, 2], [3, largest]]))
        assert run("build", source, "-o", out).code == 0


class TestFiles:
    def test_a_set_for_another_vocabulary(self, run: Terminal, tmp_path: Path, tiny_path: Path) -> None:
        if not (others := vocabulary_files()):
            pytest.skip("TOKENTRIE_VOCAB_DIR names no folder with GGUF files")
        source, out = tmp_path / "v.txt", tmp_path / "set.ttrie"
        source.write_text("a\nb\n")
        assert run("build", source, "-o", out).code == 0
        assert run("inspect", out, "--vocab", tiny_path).code == 0
        run("inspect", out, "--vocab", others[0]).fails(1, f"{out}: saved for another vocabulary: its fingerprint is")

    def test_a_full_disk(self, tmp_path: Path, out: Path) -> None:
        """A file system of a megabyte, which only this process and its children see."""
        source, disk, small = tmp_path / "v.txt", tmp_path / "disk", tmp_path / "small.txt"
        source.write_text("".join(f"value {number}\n" for number in range(50_000)))
        small.write_text("a\nb\n")
        disk.mkdir()
        # To be read by sh: what is in the file system is gone with it.
        code = f"""
mount -t tmpfs -o size=1m tmpfs {disk} || exit 77
{" ".join(BUILD)} {small} -o {disk}/set.ttrie || exit 78
cp {disk}/set.ttrie {tmp_path}/before
{" ".join(BUILD)} {source} -o {disk}/set.ttrie
code=$?
cmp {disk}/set.ttrie {tmp_path}/before || exit 79
ls -A {disk}
exit $code
"""
        result = None
        if shutil.which("unshare"):
            result = finished(start("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", code))
        if result is None or result.code == 77 or "unshare" in result.err:
            pytest.skip("no file system can be mounted here; a file size limit is tested elsewhere")
        assert result.err == f"tokentrie: {disk}/set.ttrie: No space left on device\n"
        assert result.code == 1
        assert result.out.splitlines()[-1] == "set.ttrie"

    def test_folders_that_may_not_be_read_or_written(self, tmp_path: Path, out: Path, tiny_path: Path) -> None:
        source, closed, vocab = tmp_path / "v.txt", tmp_path / "closed", tmp_path / "tiny.gguf"
        source.write_text("a\n")
        shutil.copy(tiny_path, vocab)
        closed.mkdir()
        for path in (tmp_path, *tmp_path.parents):
            if path.name.startswith("pytest-of-"):
                path.chmod(0o755)
                break
            path.chmod(0o755)
        closed.chmod(0)
        out.parent.chmod(0o555)
        # Root may do everything, so it becomes nobody, who may not even import: that comes first.
        code = """
import os, sys
import tokentrie.cli.inspecting.inspect_set
from tokentrie.cli import main
source, closed, vocab, out, other = sys.argv[1:]
assert main(["build", source, "-m", vocab, "-o", other]) == 0
os.remove(other)
if os.geteuid() == 0:
    os.seteuid(65534)
assert main(["build", source, "-m", vocab, "-o", out]) == 1
assert main(["build", closed + "/v.txt", "-m", vocab, "-o", other]) == 1
assert main(["inspect", closed + "/v.ttrie"]) == 1
"""
        try:
            process = start(sys.executable, "-c", code, source, closed, vocab, out, tmp_path / "other.ttrie")
            result = finished(process)
        finally:
            closed.chmod(0o755)
            out.parent.chmod(0o755)
        assert result.err.splitlines() == [
            f"tokentrie: {out.parent}: Permission denied",
            f"tokentrie: {closed}/v.txt: Permission denied",
            f"tokentrie: {closed}/v.ttrie: Permission denied",
        ]
        assert result.code == 0
        untouched(out)
        assert not (tmp_path / "other.ttrie").exists()

    def test_what_is_no_file_stays_what_it_is(self, run: Terminal, tmp_path: Path) -> None:
        source, pipe = tmp_path / "v.txt", tmp_path / "pipe"
        source.write_text("a\n")
        os.mkfifo(pipe)
        run("build", source, "-o", pipe).fails(1, "pipe", "not a regular file")
        run("build", source, "-o", tmp_path / "set.ttrie", "--refused", pipe).fails(1, "pipe: Not a regular file")
        run("build", source, "-o", tmp_path).fails(1, "Is a directory")
        assert pipe.is_fifo()
        assert sorted(os.listdir(tmp_path)) == ["pipe", "v.txt"]

    def test_two_builds_at_once(self, tmp_path: Path, out: Path, tiny_path: Path) -> None:
        vocab, sets = Vocab.from_gguf(tiny_path), []
        sources = [tmp_path / "one.txt", tmp_path / "two.txt"]
        for count, source in zip((20_000, 30_000), sources, strict=True):
            source.write_text("".join(f"{source.name} {number}\n" for number in range(count)))
            sets.append(Trie.from_strings(vocab, source.read_text().splitlines()))
        builds = [start(*BUILD, source, "-o", out) for source in sources * 2]
        while any(build.poll() is None for build in builds):
            assert len(Trie.open(out, verify=True)) in (2, 20_000, 30_000)
        assert [finished(build).err for build in builds] == [""] * 4
        assert Trie.open(out, vocab=vocab, verify=True) in sets
        assert os.listdir(out.parent) == [out.name]
