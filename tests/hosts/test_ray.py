"""Ray Data on a real cluster of two nodes on this machine: Parquet to Parquet, with a worker killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tokentrie
from tokentrie.cli import main
from tokentrie.integrations.ray import Chooser

ray = pytest.importorskip("ray", reason="Ray is not installed")
pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
pytestmark = [
    pytest.mark.model,
    # What Ray itself does.
    pytest.mark.filterwarnings("ignore"),
]

VALUES = ["good", "bad", "so so"]
TEMPLATE = "Review: {text}\nLabel: "
ROWS, FILES = 240, 6
OPTIONS: dict[str, Any] = {"template": TEMPLATE, "n_ctx": 256, "n_threads": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with reviews, and a set beside them."""
    folder = tmp_path_factory.mktemp("ray")
    (folder / "rows.parquet").mkdir()
    texts = [f"{word} {what} number {n}" for n in range(ROWS // 4) for word in ("nice", "bad") for what in ("a", "bed")]
    for at in range(FILES):
        part = range(at * ROWS // FILES, (at + 1) * ROWS // FILES)
        table = pyarrow.table({"id": list(part), "text": [texts[row] for row in part]})
        parquet.write_table(table, folder / "rows.parquet" / f"{at}.parquet", row_group_size=16)
    tokentrie.Trie.from_strings(tokentrie.Model().vocab, VALUES).save(folder / "labels.ttrie")
    return folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    small = {"num_cpus": 3, "object_store_memory": 100 << 20, "include_dashboard": False}
    with pytest.MonkeyPatch.context() as settings:
        settings.setenv("RAY_USAGE_STATS_ENABLED", "0")
        cluster = Cluster(initialize_head=True, head_node_args=small)
        cluster.add_node(num_cpus=3, object_store_memory=100 << 20)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        try:
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


def table_of(path: Path) -> Any:
    """All rows of a folder of files, in the order of their ids."""
    return pyarrow.concat_tables([parquet.read_table(file) for file in sorted(path.glob("*.parquet"))]).sort_by("id")


def in_one_process(folder: Path, **options: Any) -> Any:
    return Chooser(folder / "labels.ttrie", **OPTIONS, **options)(table_of(folder / "rows.parquet"))


def labelled(folder: Path, out: Path, chooser: Any = Chooser, **options: Any) -> Any:
    rows = ray.data.read_parquet(str(folder / "rows.parquet"), override_num_blocks=FILES)
    arguments = {"values": str(folder / "labels.ttrie"), **OPTIONS, **options}
    results = rows.map_batches(
        chooser, fn_constructor_kwargs=arguments, concurrency=2, num_cpus=2, batch_size=32, batch_format="pyarrow"
    )
    results.write_parquet(str(out))
    return table_of(out)


def test_two_nodes_give_what_one_process_gives(cluster: Any, folder: Path, tmp_path: Path) -> None:
    assert len([node for node in ray.nodes() if node["Alive"]]) == 2
    expected = in_one_process(folder, group=1)
    assert len(set(expected["choice"].to_pylist())) > 1
    got = labelled(folder, tmp_path / "out", group=1)
    assert got.schema.names == ["id", "text", "choice", "probability", "mass", "probabilities"]
    assert got.to_pylist() == expected.to_pylist(), "to the last digit"


def test_groups_change_only_digits(cluster: Any, folder: Path, tmp_path: Path) -> None:
    got, expected = labelled(folder, tmp_path / "out"), in_one_process(folder)
    assert got["choice"].to_pylist() == expected["choice"].to_pylist()
    for one, other in zip(got.to_pylist(), expected.to_pylist(), strict=True):
        assert one["probability"] == pytest.approx(other["probability"], abs=0.01)


def test_a_worker_killed_in_the_middle_changes_nothing(cluster: Any, folder: Path, tmp_path: Path) -> None:
    class Dying(Chooser):
        """Kills its own process once, before the second batch of whichever actor gets there first."""

        def __init__(self, marks: str, **options: Any) -> None:
            super().__init__(**options)
            self.marks, self.done = Path(marks), 0
            (self.marks / str(os.getpid())).write_text(ray.get_runtime_context().get_node_id())

        def __call__(self, batch: Any) -> Any:
            self.done += 1
            # So that both actors work.
            while len([*self.marks.iterdir()]) < 2:
                time.sleep(0.05)
            if self.done == 2:
                try:
                    (self.marks / "killed").touch(exist_ok=False)
                except FileExistsError:
                    return super().__call__(batch)
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__call__(batch)

    (tmp_path / "marks").mkdir()
    got = labelled(folder, tmp_path / "out", Dying, marks=str(tmp_path / "marks"), group=1)
    assert (tmp_path / "marks" / "killed").exists()
    seen = [mark.read_text() for mark in (tmp_path / "marks").iterdir() if mark.name != "killed"]
    assert len(seen) >= 3, "another process has taken over"
    assert len(set(seen)) == 2, "an actor takes two of the three CPUs of a node: both nodes work"
    assert got.to_pylist() == in_one_process(folder, group=1).to_pylist()


def test_a_faulty_row_ends_the_job_with_its_reason(cluster: Any) -> None:
    rows = ray.data.from_arrow(pyarrow.table({"text": ["fine", None]}))
    settings: dict[str, Any] = {"concurrency": 1, "batch_format": "pyarrow"}
    faulty = rows.map_batches(Chooser, fn_constructor_kwargs={"values": VALUES, **OPTIONS}, **settings)
    with pytest.raises(Exception, match="row 1 of a batch of 2: the field 'text' is null"):
        faulty.take_all()
    kept = {"values": VALUES, "on_error": "return", **OPTIONS}
    found = rows.map_batches(Chooser, fn_constructor_kwargs=kept, **settings).take_all()
    assert [row["error"] for row in found] == [None, "the field 'text' is null, not text"]
    assert [row["choice"] is None for row in found] == [False, True]


def test_threads_are_those_that_ray_gives(cluster: Any) -> None:
    @ray.remote(num_cpus=2)
    class Actor:
        def threads(self) -> int:
            options = {name: value for name, value in OPTIONS.items() if name != "n_threads"}
            return int(Chooser(VALUES, **options)._rows._model.n_threads)

    assert ray.get(Actor.remote().threads.remote()) == 2


def command(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def test_the_command_line(cluster: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One file in one process, and the same rows on the cluster."""
    parquet.write_table(table_of(folder / "rows.parquet"), tmp_path / "rows.parquet")
    asked = ["--template", TEMPLATE.replace("\n", "\\n"), "--threads", 1, "--ctx", 256, "--gold", "text", "--json"]
    asked += [argument for value in VALUES for argument in ("--choice", value)]
    alone = ["choose", "--input", tmp_path / "rows.parquet", "-o", tmp_path / "one.parquet", *map(str, asked)]
    code, said, wrong = command(capsys, *alone)
    assert (code, json.loads(said)["rows"]) == (0, ROWS), wrong
    out = tmp_path / "many.parquet"
    together = ["choose", "--input", folder / "rows.parquet", "-o", out, "--ray", cluster.address, *map(str, asked)]
    code, said, wrong = command(capsys, *together)
    assert code == 0, wrong
    report = json.loads(said.splitlines()[-1])  # Ray tells of workers that earlier tests killed, on stdout
    assert (report["rows"], report["errors"], report["actors"]) == (ROWS, 0, 4)
    assert sum(report["labels"].values()) == ROWS
    one, many = parquet.read_table(tmp_path / "one.parquet"), parquet.read_table(out)
    assert many.schema.names == one.schema.names
    for column in ("id", "text", "choice"):
        assert many[column].to_pylist() == one[column].to_pylist(), "in the order of the input"
    assert many["probability"].to_pylist() == pytest.approx(one["probability"].to_pylist(), abs=0.01)

    code, _, wrong = command(capsys, *together)
    assert (code, "--restart" in wrong) == (1, True)
    code, _, wrong = command(capsys, *together, "--restart", "--set", "none.ttrie")
    assert (code, out.exists()) == (2, True), wrong


def test_the_command_line_says_what_is_wrong(
    cluster: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, out = folder / "rows.parquet", tmp_path / "out.parquet"
    given = ["--choice", "a", "--field", "text", "--ray", cluster.address]
    for arguments, status, words in (
        (["--input", "rows.csv", "-o", out], 2, "--input"),
        (["--input", rows, "-o", "out.csv"], 2, "--output"),
        (["--input", tmp_path / "none.parquet", "-o", out], 1, "none.parquet"),
        (["--input", rows, "-o", out, "--gold", "label"], 1, "'label'"),
        (["--input", rows, "-o", out, "--threads", "9"], 1, "--threads 9"),
        (["--input", rows, "-o", out, "--field", "words"], 1, "'words'"),
        (["--prompt", "x"], 2, "--input"),
    ):
        code, said, wrong = command(capsys, "choose", *given, *arguments)
        assert (code, said) == (status, "")
        assert words in wrong
        assert wrong.strip().count("\n") <= 2, "no trace"
        assert not out.exists()


# Without a cluster.


def rows(*texts: str | None) -> Any:
    return pyarrow.table({"text": pyarrow.array(texts, pyarrow.string())})


def test_values_come_in_every_way(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("\n".join(VALUES) + "\n")
    trie = tokentrie.Trie.from_strings(tokentrie.Model().vocab, VALUES)
    batch = rows("nice", "horrid")
    ways = [VALUES, tuple(VALUES), trie, folder / "labels.ttrie", str(tmp_path / "labels.txt")]
    found = [Chooser(way, **OPTIONS)(batch).to_pylist() for way in ways]
    assert all(one == found[0] for one in found)


def test_errors_are_kept_left_out_or_raised() -> None:
    batch = rows("nice", None, "horrid")
    kept = Chooser(VALUES, **OPTIONS, on_error="return")(batch).to_pylist()
    assert [row["error"] is None for row in kept] == [True, False, True]
    left = Chooser(VALUES, **OPTIONS, on_error="skip")(batch).to_pylist()
    assert [row["text"] for row in left] == ["nice", "horrid"]
    assert left == [{name: row[name] for name in left[0]} for row in (kept[0], kept[2])]
    with pytest.raises(tokentrie.TokenTrieError, match="row 1 of a batch of 3"):
        Chooser(VALUES, **OPTIONS)(batch)
    with pytest.raises(tokentrie.TokenTrieError, match=r"row 0 .* tokens"):
        Chooser(VALUES, **OPTIONS)(rows("long " * 400))
    empty = Chooser(VALUES, **OPTIONS, on_error="skip")(rows())
    assert (empty.num_rows, empty.schema.names[-1]) == (0, "probabilities")


def test_a_row_depends_on_itself_alone_with_groups_of_one() -> None:
    texts = [f"{word} one" for word in ("nice", "bad", "green", "quite long and quite odd")]
    alone = Chooser(VALUES, **OPTIONS, group=1)
    whole = alone(rows(*texts)).to_pylist()
    again = [alone(rows(text)).to_pylist()[0] for text in reversed(texts)]
    assert whole == again[::-1]
    odd = Chooser(VALUES, field="text", n_ctx=256, n_threads=1, group=1)
    assert odd(rows(*texts)).to_pylist() == [odd(rows(text)).to_pylist()[0] for text in texts]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"values": []}, "at least one"),
        ({"values": ["a", "a"]}, "2 times"),
        ({"values": ["a"], "group": 0}, "group is 0"),
        ({"values": ["a"], "on_error": "ignore"}, "on_error is 'ignore'"),
        ({"values": ["a"], "template": "{text"}, "template"),
        ({"values": ["a"], "template": None}, "give field= or template="),
        ({"values": "none.ttrie"}, "none.ttrie"),
        ({"values": ["a"], "model": "none.gguf"}, "none.gguf"),
    ],
)
def test_wrong_arguments(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises((tokentrie.TokenTrieError, OSError), match=words):
        Chooser(**(OPTIONS | wrong))


def test_wrong_batches() -> None:
    label = Chooser(VALUES, **OPTIONS)
    with pytest.raises(TypeError, match='batch_format="pyarrow"'):
        label({"text": ["a"]})
    with pytest.raises(tokentrie.TokenTrieError, match=r"unknown column 'text': the columns are 'other'"):
        label(pyarrow.table({"other": ["a"]}))
    with pytest.raises(tokentrie.TokenTrieError, match="'choice' has the name of a result"):
        label(pyarrow.table({"text": ["a"], "choice": ["b"]}))
