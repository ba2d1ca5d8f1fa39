"""Sets of questions with known answers, read from files that packages and public boards carry."""

from __future__ import annotations

import io
import json
import random
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

#: Longer states and options are left out, so that a question takes seconds.
MOST_CHARACTERS = 3000
HELD_OUT = Path(__file__).parents[2] / "tools" / "tiny_model" / "heldout_decisions.jsonl"
#: Movie reviews inside the source distribution of vaderSentiment: number, mean rating of 20 people, text.
REVIEWS = "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt"
ARCHIVE = "additional_resources/hutto_ICWSM_2014.tar.gz"


@dataclass(frozen=True)
class Item:
    """A question about a state, and the probability that each option is right: 1 and 0 where one is."""

    id: str
    #: "predicate", whose options are yes and no in this order, "choice" or "score".
    kind: str
    state: Any
    instructions: str
    #: What may be answered, and what it means.
    options: list[tuple[str, Any]]
    gold: list[float]

    @property
    def right(self) -> int:
        return max(range(len(self.gold)), key=self.gold.__getitem__)

    def with_options_reversed(self) -> Item:
        return replace(self, options=self.options[::-1], gold=self.gold[::-1])


def one_of(count: int, right: int) -> list[float]:
    return [float(place == right) for place in range(count)]


def yes_or_no(name: str, state: Any, instructions: str, is_yes: bool, meanings: Any = (None, None)) -> Item:
    options = list(zip(("yes", "no"), meanings, strict=True))
    return Item(name, "predicate", state, instructions, options, one_of(2, 0 if is_yes else 1))


def in_turns(*lists: list[Item]) -> list[Item]:
    """Returns the items of all lists, the first of each first; the shortest list says how many."""
    return [item for row in zip(*lists, strict=False) for item in row]


def reviews(path: Path) -> list[Item]:
    """Reviews that people find clearly good or bad, as many of each, in a drawn order."""
    text = path.read_bytes()
    if path.suffix != ".txt":
        with tarfile.open(path) as source:
            name = next(one for one in source.getnames() if one.endswith(ARCHIVE))
            inner = source.extractfile(name)
            assert inner is not None
            with tarfile.open(fileobj=io.BytesIO(inner.read())) as archive:
                file = archive.extractfile(REVIEWS)
                assert file is not None
                text = file.read()
    sides: tuple[list[Item], list[Item]] = ([], [])
    for line in text.decode("utf-8", "replace").splitlines():
        number, rating, said = line.split("\t", 2)
        if abs(float(rating)) >= 1:
            right = 0 if float(rating) > 0 else 1
            options: list[tuple[str, Any]] = [("positive", None), ("negative", None)]
            asked = "Is the review positive or negative?"
            sides[right].append(Item(number, "choice", said, asked, options, one_of(2, right)))
    for side in sides:
        random.Random(57).shuffle(side)
    return in_turns(*sides)


def _bfcl(package: Path, kind: str) -> Iterator[dict[str, Any]]:
    """Cases of the Berkeley Function Calling Leaderboard that are one message; the folder `bfcl_eval` is given."""
    for line in (package / "data" / f"BFCL_v4_{kind}.json").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        (messages, *_) = case["question"]
        if len(messages) == 1:
            yield case | {"said": messages[0]["content"]}


def which_tool(package: Path) -> list[Item]:
    """Requests, and the tools one of which answers each."""
    lists = []
    for kind in ("multiple", "live_multiple"):
        text = (package / "data" / "possible_answer" / f"BFCL_v4_{kind}.json").read_text(encoding="utf-8")
        answers = {one["id"]: one["ground_truth"] for one in map(json.loads, text.splitlines())}
        found = []
        for case in _bfcl(package, kind):
            options = [(tool["name"], tool.get("description")) for tool in case["function"]]
            (called,) = answers[case["id"]][0]
            names = [name for name, _ in options]
            if called in names and 1 < len(set(names)) == len(names):
                gold = one_of(len(names), names.index(called))
                found.append(Item(case["id"], "choice", case["said"], "Which tool answers the request?", options, gold))
        lists.append(found)
    return in_turns(*lists)


def is_call_warranted(package: Path) -> list[Item]:
    """Requests that one of some tools can answer, and others."""

    def items(kinds: tuple[str, ...], is_yes: bool) -> list[Item]:
        def item(case: dict[str, Any]) -> Item:
            tools = {tool["name"]: tool.get("description") for tool in case["function"]}
            state = {"request": case["said"], "tools": tools}
            return yes_or_no(case["id"], state, "Can one of the tools answer the request?", is_yes)

        return in_turns(*([item(case) for case in _bfcl(package, kind)] for kind in kinds))

    wanted = items(("simple_python", "live_simple"), True)
    return in_turns(wanted, items(("irrelevance", "live_irrelevance"), False))


def tiny_world(path: Path) -> list[Item]:
    """Held-out questions of the world that the model in the package was trained on, tasks in turns."""
    tasks: dict[str, list[Item]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        said = json.loads(line)
        options = [(text, meaning or None) for text, meaning in said["options"]]
        gold = one_of(len(options), said["right"])
        name = f"{said['task']}_{number}"
        item = Item(name, said["kind"], said["state"], said["instructions"], options, gold)
        tasks.setdefault(said["task"], []).append(item)
    return in_turns(*tasks.values())


def _asked(name: str, state: Any, question: dict[str, Any], gold: dict[str, float]) -> Item:
    """A question as `/v1/systemone` has it; `gold` has the keys of its answers."""
    kind: str = question["type"]
    criteria: Any = question.get("criteria")
    options: list[tuple[str, Any]]
    if kind == "noul":
        keys, sides = ["true", "false"], criteria or {}
        options = [("yes", sides.get("true")), ("no", sides.get("false"))]
    elif kind == "choice":
        keys, options = list(criteria), list(criteria.items())
    else:
        keys = [str(level) for level in range(len(criteria))]
        options = [(as_text(level), None) for level in criteria]
    kinds = {"noul": "predicate", "choice": "choice", "score": "score"}
    asked = as_text(question.get("instructions") or "")
    return Item(name, kinds[kind], state, asked, options, [float(gold.get(key, 0)) for key in keys])


def jevbench(path: Path) -> list[Item]:
    """Tasks of JevBench: a file of its public part, or a folder of them."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    items = []
    for task in (json.loads(line) for file in files for line in file.read_text("utf-8").splitlines() if line.strip()):
        if task.get("expected") is not None:
            right = task["expected"]
            if task["question"]["type"] == "noul":
                right = {"yes": "true", "no": "false"}[right]
            items.append(_asked(str(task["id"]), task["state"], task["question"], {str(right): 1.0}))
    return items


def typed_decisions(path: Path) -> list[Item]:
    """Cases of typed-decisions, whose answers are distributions: its file of Parquet, or lines of JSON."""
    if path.suffix == ".parquet":
        import pyarrow.parquet

        rows = pyarrow.parquet.read_table(path).to_pylist()
    else:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def data(value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    return [
        _asked(f"{row['id']}/{name}", data(row["state"]), question, _distribution(data(row["gold"])[name]))
        for row in rows
        for name, question in data(row["questions"]).items()
    ]


def _distribution(gold: dict[str, Any]) -> dict[str, float]:
    """Returns the probability of each key, from a distribution or from an answer as servers give it."""
    if "noul" in gold:
        return {"true": gold["noul"], "false": 1 - gold["noul"]}
    shares = next((gold[key] for key in ("probabilities", "probs") if isinstance(gold.get(key), dict)), gold)
    if shares.keys() == {"yes", "no"}:
        return {"true": shares["yes"], "false": shares["no"]}
    return shares


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


SETS: dict[str, Callable[[Path], list[Item]]] = {
    "reviews": reviews,
    "tools": which_tool,
    "calls": is_call_warranted,
    "tiny": tiny_world,
    "jevbench": jevbench,
    "typed": typed_decisions,
}


def read(name: str, path: Path, count: int) -> list[Item]:
    """Returns the first items of a set that are short enough."""

    def length(item: Item) -> int:
        return len(as_text(item.state)) + len(as_text(item.options))

    return [item for item in SETS[name](path) if length(item) <= MOST_CHARACTERS][:count]
