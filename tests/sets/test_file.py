"""Saving a trie and opening it again, also under bad conditions: kills, full disks, two writers."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokentrie
from hypothesis import given
from hypothesis import strategies as st
from tokentrie import Model, Sampler, TokenTrieError, Trie, Vocab
from tokentrie.cli import main
from tokentrie.errors import TrieError, VocabularyError

SEQUENCES = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=5), min_size=1, max_size=20)
ROWS = [[1, 2], [1, 2, 3], [9], [4, 4, 4], [4, 5]]
NAMES = ["REPLY", "REPLY_THREAD", "STÖP", "", "B"]

SAVE = """
import sys, tokentrie
path, rows, seed, times = sys.argv[1], *map(int, sys.argv[2:])
trie = tokentrie.Trie.from_sequences([[seed, i >> 8, i & 255] for i in range(rows)], [str(i) for i in range(rows)])
print("ready", flush=True)
for _ in range(times):
    trie.save(path)
"""


@pytest.fixture
def trie() -> Trie:
    return Trie.from_sequences(ROWS, NAMES)


@pytest.fixture
def path(tmp_path: Path, trie: Trie) -> Path:
    path = tmp_path / "set.ttrie"
    trie.save(path)
    return path


def child(*args: object, code: str = SAVE) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout
    assert process.stdout.readline() == "ready\n"


@given(SEQUENCES, st.booleans())
def test_what_was_saved_comes_back(tmp_path_factory: Any, sequences: list[list[int]], named: bool) -> None:
    trie = Trie.from_sequences(sequences, [f"é{row}" for row in range(len(sequences))] if named else None)
    path = tmp_path_factory.getbasetemp() / "round-trip.ttrie"
    trie.save(str(path))
    for verify in (True, False):
        opened = Trie.open(path, verify=verify)
        assert opened == trie
        assert hash(opened) == hash(trie)
        assert list(opened) == list(trie)
        assert all(opened.find(leaf.tokens) == leaf.index for leaf in trie)
        assert set(opened.input_rows.tolist()) == {-1}


def test_an_open_trie_works_as_any_other(path: Path, trie: Trie) -> None:
    row = np.arange(10, dtype=np.float32)
    for constraint in (trie, Trie.open(path)):
        sampler = Sampler(10, constraint)
        assert sampler.allowed().tolist() == [1, 4, 9]
        assert sampler.advance(row) == [9]
        assert sampler.leaf
        assert sampler.leaf.name == "STÖP"


@pytest.mark.model
def test_a_model_chooses_from_a_file(tmp_path: Path, tiny_path: Path) -> None:
    model = Model(tiny_path)
    trie = Trie.from_strings(model.vocab, ["yes", "no", "never"])
    trie.save(tmp_path / "set.ttrie", model.vocab)
    opened = Trie.open(tmp_path / "set.ttrie", vocab=model.vocab)
    expected, choice = (model.choose("Really?", values) for values in (trie, opened))
    assert choice.name == expected.name
    assert choice.logprobs.tolist() == expected.logprobs.tolist()


def read_as_documented(path: Path) -> dict[str, Any]:
    """Another program, written after docs/file-format.md."""
    data = path.read_bytes()
    magic, order, version, length = struct.unpack_from("<8sIIQ", data)
    assert (magic, order, version, length) == (b"\x89ttrie\r\n", 0x01020304, 2, len(data))
    leaves, nodes, max_token, max_depth, n_vocab, count = struct.unpack_from("<6I", data, 24)
    table = data[64 : 64 + 32 * count]
    assert zlib.crc32(data[:60] + table) == struct.unpack_from("<I", data, 60)[0]
    parts = {}
    for kind, checksum, offset, size, zero in struct.iter_unpack("<IIQQQ", table):
        assert (offset % 64, zero) == (0, 0)
        parts[kind] = data[offset : offset + size]
        assert zlib.crc32(parts[kind]) == checksum
    tokens, first_child = (np.frombuffer(parts[kind], "<u4") for kind in (1, 2))
    assert len(tokens) == nodes
    assert first_child[-1] == nodes > first_child[-2]
    inner = set(np.frombuffer(parts[3], "<u4").tolist())
    found = []

    def visit(node: int, prefix: tuple[int, ...]) -> None:
        below = range(*first_child[node : node + 2]) if node + 1 < len(first_child) else range(0)
        if node and (not below or node in inner):
            found.append(prefix)
        for child in below:
            visit(child, (*prefix, int(tokens[child])))

    visit(0, ())
    assert len(found) == leaves
    assert max(map(max, found)) == max_token
    assert max(map(len, found)) == max_depth
    names = None
    if 6 in parts:
        ends = np.frombuffer(parts[7], "<u4").tolist()
        names = [parts[6][a:b].decode() for a, b in zip([0, *ends], ends, strict=False)]
    return {"leaves": found, "names": names, "n_vocab": n_vocab, "fingerprint": parts.get(8)}


@given(SEQUENCES, st.booleans(), st.booleans())
def test_another_program_can_read_it(tmp_path_factory: Any, rows: list[list[int]], named: bool, sized: bool) -> None:
    trie = Trie.from_sequences(rows, [f"é{row}" for row in range(len(rows))] if named else None)
    path = tmp_path_factory.getbasetemp() / "documented.ttrie"
    vocab = Vocab.from_tokens([b"%d" % token for token in range(7)]) if sized else None
    trie.save(path, vocab)
    read = read_as_documented(path)
    assert read["leaves"] == [tuple(leaf.tokens) for leaf in trie]
    assert read["names"] == ([leaf.name for leaf in trie] if named else None)
    assert read["n_vocab"] == (7 if sized else 0)
    assert read["fingerprint"] == (vocab.fingerprint.encode() if vocab else None)


class TestRefusals:
    def test_vocabularies(self, tmp_path: Path, trie: Trie) -> None:
        path = tmp_path / "set.ttrie"
        mine, other, small = (
            Vocab.from_tokens([name + b"%d" % i for i in range(n)]) for name, n in [(b"a", 12), (b"b", 12), (b"a", 9)]
        )
        trie.save(path, mine)
        assert Trie.open(path, vocab=mine) == Trie.open(path, vocab=12) == Trie.open(path) == trie
        with pytest.raises(VocabularyError, match=f"another vocabulary.*{mine.fingerprint}.*{other.fingerprint}"):
            Trie.open(path, vocab=other)
        with pytest.raises(VocabularyError, match="token id 9 is outside the vocabulary of 9 tokens"):
            Trie.open(path, vocab=small)
        with pytest.raises(VocabularyError, match="token id 9"):
            trie.save(path, 9)
        assert Trie.open(path) == trie

    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            (lambda data: b"", "cut off: it has 0 bytes"),
            (lambda data: b'{"modelId": "m"}', "not a .ttrie file"),
            (lambda data: data[:50], "cut off: it has 50 bytes and needs at least 64"),
            (lambda data: data[:-1], "cut off"),
            (lambda data: data + b"x", "damaged: length"),
            (
                lambda data: data[:12] + b"\x03\0\0\0" + data[16:],
                "version 3 of the format: this program reads version 2",
            ),
            (lambda data: data[:8] + bytes(reversed(data[8:12])) + data[12:], "byte order"),
            (lambda data: data[:30] + b"\x77" + data[31:], "damaged: header: the checksum"),
        ],
    )
    def test_contents(self, path: Path, damage: Callable[[bytes], bytes], message: str) -> None:
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(TrieError, match=message) as error:
            Trie.open(path)
        assert str(path) in str(error.value)
        assert isinstance(error.value, ValueError)

    def test_verify_finds_every_changed_byte(self, path: Path, trie: Trie) -> None:
        data = path.read_bytes()
        padding = 0
        for at in range(len(data)):
            # The file is replaced, never changed in place.
            (path.parent / "changed").write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
            os.replace(path.parent / "changed", path)
            try:
                assert Trie.open(path, verify=True) == trie
                padding += 1
            except TrieError:
                pass
        assert padding < 64 * 8

    def test_the_operating_system(self, tmp_path: Path, trie: Trie) -> None:
        with pytest.raises(FileNotFoundError) as error:
            Trie.open(tmp_path / "missing.ttrie")
        assert error.value.filename == str(tmp_path / "missing.ttrie")
        with pytest.raises(IsADirectoryError):
            Trie.open(tmp_path)
        with pytest.raises(FileNotFoundError):
            trie.save(tmp_path / "nowhere" / "set.ttrie")
        with pytest.raises(OSError, match="regular"):
            Trie.open(os.devnull)
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OSError, match="regular"):
            Trie.open(tmp_path / "pipe")
        with pytest.raises(TypeError):
            Trie.open(7)  # type: ignore[arg-type]

    def test_what_may_not_be_read(self, path: Path) -> None:
        path.chmod(0)
        # Root reads everything, so it becomes nobody first.
        code = """
import os, sys, tokentrie
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    tokentrie.Trie.open(sys.argv[1])
except PermissionError as error:
    print(error.filename)
"""
        assert child(path, code=code).communicate() == (f"{path}\n", "")


class TestWriting:
    def test_a_kill_at_any_moment_leaves_a_whole_file(self, path: Path, trie: Trie) -> None:
        killed = 0
        for attempt in range(25):
            process = child(path, 20_000, attempt, 1000)
            ready(process)
            time.sleep(0.002 * attempt)
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
            process.communicate()
            opened = Trie.open(path, verify=True)
            assert opened == trie or len(opened) == 20_000
        assert killed == 25

    def test_a_full_disk_leaves_the_old_file_alone(self, path: Path, trie: Trie) -> None:
        # What the limit does to a write is what a full disk does: an error after part of the bytes.
        code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))" + SAVE
        process = child(path, 20_000, 1, 1, code=code)
        _, errors = process.communicate()
        assert process.returncode == 1
        assert "OSError: [Errno 27] File too large" in errors
        assert Trie.open(path, verify=True) == trie
        assert os.listdir(path.parent) == [path.name]

    def test_two_writers(self, path: Path) -> None:
        writers = [child(path, 3_000 * seed, seed, 100) for seed in (1, 2)]
        for writer in writers:
            ready(writer)
        seen = set()
        while any(writer.poll() is None for writer in writers):
            seen.add(len(Trie.open(path, verify=True)))
        for writer in writers:
            assert (writer.communicate()[1], writer.returncode) == ("", 0)
        assert seen <= {5, 3_000, 6_000}
        assert len(Trie.open(path, verify=True)) in {3_000, 6_000}
        assert os.listdir(path.parent) == [path.name]

    def test_what_is_open_stays(self, path: Path, trie: Trie) -> None:
        opened = Trie.open(path)
        Trie.from_sequences([[7]]).save(path)
        assert len(Trie.open(path)) == 1
        path.unlink()
        assert list(opened) == list(trie)

    def test_readable_as_any_new_file(self, path: Path) -> None:
        other = path.with_name("other")
        other.write_bytes(b"")
        assert path.stat().st_mode == other.stat().st_mode

    def test_threads(self, path: Path, trie: Trie) -> None:
        problems: list[BaseException] = []

        def work() -> None:
            try:
                for _ in range(30):
                    trie.save(path)
                    assert Trie.open(path, verify=True) == trie
            except BaseException as error:
                problems.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []

    def test_pages_are_shared_and_read_when_needed(self, tmp_path: Path) -> None:
        path = tmp_path / "big.ttrie"
        rows = np.stack([np.arange(200_000) % 100, np.arange(200_000), np.arange(200_000)], axis=1)
        Trie.from_sequences(rows).save(path)
        size = path.stat().st_size
        code = """
import sys, tokentrie
def private():
    with open("/proc/self/smaps_rollup") as lines:
        fields = dict(line.split()[:2] for line in lines if ":" in line.split()[0])
    return 1024 * (int(fields["Private_Dirty:"]))
tokentrie.Trie.open(sys.argv[1])
before = private()
tries = [tokentrie.Trie.open(sys.argv[1], verify=True) for _ in range(10)]
print(private() - before)
"""
        if not Path("/proc/self/smaps_rollup").exists():
            pytest.skip("no /proc/self/smaps_rollup")
        process = child(path, code=code)
        out, errors = process.communicate()
        assert errors == ""
        assert int(out) < size


class TestInspect:
    def test_counts_and_samples(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["inspect", str(path), "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert (document["leaves"], document["nodes"], document["max_depth"]) == (5, 9, 3)
        assert [level["nodes"] for level in document["levels"]] == [1, 3, 3, 2]
        assert [level["leaves"] for level in document["levels"]] == [0, 1, 2, 2]
        assert [leaf["tokens"] for leaf in document["sample"]] == sorted(ROWS)
        assert (document["steps"], document["forced_steps"]) == (11, 3)
        assert main(["inspect", str(path)]) == 0
        shown = capsys.readouterr().out
        assert "set.ttrie: 5 leaves, 9 nodes" in shown
        assert "[1 2 3]" in shown
        assert "REPLY_THREAD" in shown

    @pytest.mark.parametrize(("what", "name"), [("1 2", "REPLY"), ("4,5", "B"), ("STÖP", "STÖP"), ("", "")])
    def test_find(self, path: Path, capsys: pytest.CaptureFixture[str], what: str, name: str) -> None:
        assert main(["inspect", str(path), "--json", "--find", what]) == 0
        assert [leaf["name"] for leaf in json.loads(capsys.readouterr().out)["sample"]] == [name]

    def test_refusals(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for args, message in [
            (["--find", "1 9"], "no leaf has the tokens or the name '1 9'"),
        ]:
            assert main(["inspect", str(path), *args]) == 1
            shown = capsys.readouterr()
            assert shown.out == ""
            assert message in shown.err
        path.write_bytes(path.read_bytes()[:-3])
        assert main(["inspect", str(path)]) == 1
        assert "cut off" in capsys.readouterr().err

    def test_drawing(self, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        picture = tmp_path / "set.svg"
        assert main(["inspect", str(path), "--depth", "1", "--max-children", "2", "--svg", str(picture)]) == 0
        assert capsys.readouterr().out.splitlines()[-6:] == [
            "set.ttrie",
            "├── [1 2] → REPLY (2 leaves)",
            "│   └── … (1 leaf)",
            "├── [4] (2 leaves)",
            "│   └── … (2 leaves)",
            "└── … 1 more (1 leaf)",
        ]
        assert "leaves" in picture.read_text(encoding="utf-8")
        assert main(["inspect", str(path), "--json", "--depth", "1"]) == 0
        tree = json.loads(capsys.readouterr().out)["tree"]
        assert [child["tokens"] for child in tree["children"]] == [[1, 2], [4], [9]]
        assert [child["hidden"]["leaves"] for child in tree["children"]] == [1, 2, 0]
        assert main(["inspect", str(path), "--svg", str(picture)]) == 0
        # Without limits a small set is drawn whole.
        assert "REPLY" in picture.read_text(encoding="utf-8")

    @pytest.mark.model
    def test_text_of_tokens(self, tmp_path: Path, tiny_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        vocab = Vocab.from_gguf(tiny_path)
        Trie.from_strings(vocab, ["yes", "no"]).save(tmp_path / "set.ttrie", vocab)
        args = ["inspect", str(tmp_path / "set.ttrie"), "--vocab", str(tiny_path), "--svg", str(tmp_path / "set.svg")]
        assert main(args) == 0
        assert "yes" in capsys.readouterr().out
        assert (tmp_path / "set.svg").read_text().startswith("<svg")


@pytest.mark.model
def test_a_set_for_another_vocabulary_is_refused_wherever_it_is_used(tmp_path: Path) -> None:
    other = Vocab.from_tokens([bytes([byte]) for byte in range(256)])
    model = tokentrie.Model(n_threads=1)
    path, mine = tmp_path / "other.ttrie", tmp_path / "mine.ttrie"
    Trie.from_sequences([[97], [98]]).save(path, other)
    Trie.from_sequences([[97], [98]]).save(mine, model.vocab)
    trie, right = Trie.open(path), Trie.open(mine)
    assert (trie.fingerprint, right.fingerprint) == (other.fingerprint, model.vocab.fingerprint)
    assert Trie.from_sequences([[97]]).fingerprint is None
    assert model.generate("x", right).leaf is not None
    tokentrie.Sampler(other, trie)
    tokentrie.Sampler(256, trie)
    for use in (
        lambda: model.generate("x", trie),
        lambda: model.generate("x", trie, skip_ahead=False),
        lambda: model.choose("x", trie),
        lambda: list(model.choose_many(["x"], trie)),
        lambda: tokentrie.Sampler(model.vocab, trie),
        lambda: trie | right,
    ):
        with pytest.raises(tokentrie.errors.VocabularyError, match="vocabular"):
            use()
    assert len(trie | Trie.from_sequences([[99]])) == 3


def of_strings(vocab: Vocab, folder: Path, **options: Any) -> Trie:
    return Trie.from_strings(vocab, ["a", "ab", "ba"], **options)


def saved_and_opened(vocab: Vocab, folder: Path) -> Trie:
    of_strings(vocab, folder).save(path := folder / "plain.ttrie")
    return Trie.open(path)


def streamed(vocab: Vocab, folder: Path) -> Trie:
    return Trie.from_strings(vocab, iter(["a", "ab"]), path=folder / "streamed.ttrie")


KINDS: dict[str, Callable[[Vocab, Path], Any]] = {
    "strings": of_strings,
    "all tokenizations": lambda vocab, folder: of_strings(vocab, folder, tokenization="all"),
    "open end": lambda vocab, folder: of_strings(vocab, folder, open_end=True),
    "stream": lambda vocab, folder: Trie.from_strings(vocab, iter(["a", "ab"])),
    "streamed into a file": streamed,
    "sequences": lambda vocab, folder: Trie.from_sequences([[97], [98, 97]], ["x", "y"], vocab),
    "table": lambda vocab, folder: Trie.from_sequences(np.array([[97, 98], [98, 97]]), vocab=vocab),
    "saved without a vocabulary": saved_and_opened,
    "bytes": lambda vocab, folder: Trie.from_bytes(of_strings(vocab, folder).to_bytes()),
    "pickled": lambda vocab, folder: pickle.loads(pickle.dumps(of_strings(vocab, folder))),
    "pickled with ends": lambda vocab, folder: pickle.loads(
        pickle.dumps(of_strings(vocab, folder).with_end_tokens([5]))
    ),
    "union": lambda vocab, folder: Trie.from_sequences([[99]], ["c"]) | of_strings(vocab, folder),
    "selected": lambda vocab, folder: of_strings(vocab, folder).filter([True, False, True]),
    "sampled": lambda vocab, folder: of_strings(vocab, folder).sample(2, seed=1),
    "filtered": lambda vocab, folder: of_strings(vocab, folder).filtered(deny=[0]),
    "of filtered": lambda vocab, folder: of_strings(vocab, folder).filtered(deny=[0]).to_trie(),
    "live": lambda vocab, folder: tokentrie.sets.LiveSet(of_strings(vocab, folder), vocab),
    "of live": lambda vocab, folder: tokentrie.sets.LiveSet(of_strings(vocab, folder), vocab).to_trie(),
    "gated": lambda vocab, folder: tokentrie.rules.ThinkGate([5], [6], then=of_strings(vocab, folder)),
}
OF_MODELS: dict[str, Callable[[tokentrie.Model, Any], Any]] = {
    "generate": lambda model, given: model.generate("x", given, max_tokens=30),
    "no skip": lambda model, given: model.generate("x", given, skip_ahead=False, max_tokens=30),
    "choose": lambda model, given: model.choose("x", given),
    "choose many": lambda model, given: list(model.choose_many(["x"], given)),
    "sampler": lambda model, given: OF_VOCABULARIES["sampler"](model.vocab, given),
    "after": lambda model, given: model.generate("x", tokentrie.rules.Sequence(given, tokentrie.rules.Integer(0, 9))),
}
OF_VOCABULARIES: dict[str, Callable[[Vocab, Any], Any]] = {
    "sampler": lambda vocab, given: tokentrie.Sampler(vocab, given),
    "batch": lambda vocab, given: tokentrie.Batch(given, 2, vocab=vocab),
    "live": lambda vocab, given: tokentrie.sets.LiveSet(given, vocab),
    "choose": lambda vocab, given: tokentrie.sets.choose(
        lambda rows: np.zeros((len(rows), len(vocab)), np.float32), given, vocab=vocab
    ),
}


def told(use: Callable[[], Any]) -> str:
    """What is refused, as a class and a sentence."""
    try:
        use()
    except (TypeError, TokenTrieError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.model
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_for_one_vocabulary_is_refused_with_another(kind: str, tmp_path: Path) -> None:
    refused = r"VocabularyError: .*another vocabulary, \w{8}… of \d+ tokens, .* of \d+ tokens"
    with tokentrie.Model(n_threads=1) as model:
        # As many tokens, which mean other texts.
        other = Vocab.from_tokens([model.vocab[(token + 7) % len(model.vocab)] for token in range(len(model.vocab))])
        foreign, tried = KINDS[kind](model.vocab, tmp_path), 0
        tokentrie.Sampler(len(model.vocab), foreign)
        for name, use in OF_VOCABULARIES.items():
            if not told(lambda use=use: use(model.vocab, foreign)):
                assert re.search(refused, told(lambda use=use: use(other, foreign))), name
                tried += 1
        assert tried > 0
        # A vocabulary without a tokenizer cannot make all of them.
        made: list[Any] = []
        told(lambda: made.append(KINDS[kind](other, tmp_path)))
        for own in made:
            for name, use in OF_MODELS.items():
                if not told(lambda use=use: use(model, foreign)):
                    assert re.search(refused, told(lambda use=use, own=own: use(model, own))), name


def test_bare_ids_are_of_any_vocabulary() -> None:
    trie = Trie.from_sequences([[1], [2, 3]], vocab=10)
    assert trie.fingerprint is None
    for pieces in ([b"a", b"b", b"c", b"d"], [b"x", b"y", b"z", b"w", b"v"]):
        tokentrie.Sampler(Vocab.from_tokens(pieces), trie)
    vocab, other = Vocab.from_tokens([b"a", b"b"]), Vocab.from_tokens([b"b", b"a"])
    trie = Trie.from_strings(vocab, ["ab"], tokenization="all")
    assert trie == Trie.from_bytes(trie.to_bytes())
    with pytest.raises(VocabularyError, match="another vocabulary"):
        trie.to_bytes(other)
