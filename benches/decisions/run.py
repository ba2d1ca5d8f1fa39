"""Decisions of a model or a server on questions with known answers.

python benches/decisions/run.py [-m MODEL] [-n COUNT] [--ways text,label,...] [--way 'NAME={"permute": 6}']
    [--server URL] [--json FILE] SET=PATH ...

| SET | PATH |
| --- | --- |
| reviews | source distribution of vaderSentiment: `pip download --no-deps --no-binary :all: vaderSentiment` |
| tools, calls | folder `bfcl_eval` of the package bfcl-eval: which of n tools, and is a call warranted |
| tiny | tools/tiny_model/heldout_decisions.jsonl: the world of the model in the package, for `-m tiny` |
| jevbench | public tasks of JevBench: a file of lines of JSON, or the folder |
| typed | test split of typed-decisions: its Parquet file, or lines of JSON |

The same questions are asked in each way; a question with options is asked again with the options reversed, and `flips`
is the share of those whose answer is then another option. Ways of the library are sets of options of `Model.decide`;
`single token` is the softmax over the logits of the first token of each label after the same prompt; `--server` asks
a server with `/v1/systemone` or `/v1/decisions`.

Each reply is written to FILE as a line of JSON when it is there. A run with the same FILE goes on where the last one
ended, and `-n 0` prints the table of what is in it. Another model wants another FILE.

`decided` is the largest share of answers, the surest first, of which at most 5 % are wrong; it is read off the same
answers, so a small set flatters it. Intervals are those of Wilson, 95 %. Milliseconds are those of a question whose
prompt is decoded from its first token on, of the processor where a model is asked. `by order` is the accuracy in each
of several orders, on average.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path

import measures
from question_sets import HELD_OUT, SETS, Item, read
from tokentrie import Model
from tokentrie.errors import TokenTrieError
from ways import ALL_ORDERS, OF_LIBRARY, SINGLE, OfLibrary, OfServer, OfSingleToken, Way

CONTEXT = 2048


@dataclass(frozen=True)
class Line:
    """Reply to a question in a way, or its error. Probabilities have the order of the set, however it was asked."""

    set: str
    id: str
    way: str
    is_reversed: bool
    gold: list[float]
    probabilities: list[float] | None
    mass: float | None
    seconds: float | None
    error: str | None = None
    #: The share of the orders that were asked in which the right option wins, if there are several.
    right_orders: float | None = None

    @property
    def key(self) -> tuple[str, str, str, bool]:
        return self.set, self.id, self.way, self.is_reversed


def ask(name: str, item: Item, way_name: str, way: Way, is_reversed: bool) -> Line:
    try:
        reply = way.ask(item.with_options_reversed() if is_reversed else item)
    except (TokenTrieError, OSError) as error:
        return Line(name, item.id, way_name, is_reversed, item.gold, None, None, None, str(error))
    found = reply.probabilities[::-1] if is_reversed else reply.probabilities
    right, orders = (item.with_options_reversed() if is_reversed else item).right, None
    if reply.winners:
        orders = sum(winner == right for winner in reply.winners) / len(reply.winners)
    return Line(name, item.id, way_name, is_reversed, item.gold, found, reply.mass, reply.seconds, None, orders)


def row(lines: list[Line]) -> str:
    """Returns the cells of a table for the replies of a way to a set."""
    plain = {line.id: line for line in lines if not line.is_reversed and line.probabilities}
    turned = {line.id: line for line in lines if line.is_reversed and line.probabilities}
    if not plain:
        return "0 | – | – | – | – | – | – | – | –"
    sure, scores = [], []
    for line in plain.values():
        assert line.probabilities is not None
        hit = measures.best(line.probabilities) == measures.best(line.gold)
        sure.append((max(line.probabilities), hit))
        scores.append(measures.brier(line.probabilities, line.gold))
    right = sum(hit for _, hit in sure)
    low, high = measures.wilson(right, len(sure))
    both = plain.keys() & turned.keys()
    flips = [
        measures.best(plain[one].probabilities or []) != measures.best(turned[one].probabilities or []) for one in both
    ]
    masses = [line.mass for line in plain.values() if line.mass is not None]
    seconds = [line.seconds for line in plain.values() if line.seconds is not None]
    by_order = [line.right_orders for line in plain.values() if line.right_orders is not None]
    return " | ".join(
        [
            str(len(sure)),
            f"{right / len(sure):.3f} ({low:.2f} to {high:.2f})",
            f"{statistics.mean(by_order):.3f}" if by_order else "–",
            f"{statistics.mean(scores):.2f}",
            f"{measures.calibration_error(sure):.2f}",
            f"{sum(flips) / len(flips):.2f}" if flips else "–",
            f"{measures.decided_share(sure):.2f}",
            f"{statistics.median(masses):.2g}" if masses else "–",
            f"{1e3 * statistics.median(seconds):.0f}",
        ]
    )


def table(lines: list[Line]) -> str:
    """Returns the table of a run, as Markdown."""
    groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        groups[line.set, line.way].append(line)
    head = "| set | way | questions | accuracy (95 %) | by order | Brier | ECE | flips | decided | mass | ms |"
    rows = [f"| {name} | {way} | {row(group)} |" for (name, way), group in groups.items()]
    return "\n".join([head, "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", *rows])


def read_lines(file: Path | None) -> list[Line]:
    """Returns what an earlier run wrote; a last line that was cut off counts as not written."""
    if file is None or not file.is_file():
        return []
    whole, _, _ = file.read_text(encoding="utf-8").rpartition("\n")
    return [Line(**json.loads(line)) for line in whole.splitlines()]


def run(sets: dict[str, list[Item]], ways: dict[str, Way], lines: list[Line], file: Path | None) -> None:
    """Adds the replies that are not there, sets in turns, so that a run that is stopped has some of each."""
    there = {line.key for line in lines}
    if file:
        # Half a line may be at the end.
        file.write_text("".join(json.dumps(asdict(line)) + "\n" for line in lines), encoding="utf-8")
    for turn in zip_longest(*([(name, item) for item in items] for name, items in sets.items())):
        for name, item in filter(None, turn):
            for is_reversed in (False, True) if item.kind == "choice" else (False,):
                for way_name, way in ways.items():
                    if (name, item.id, way_name, is_reversed) in there or (is_reversed and way_name in ALL_ORDERS):
                        continue
                    line = ask(name, item, way_name, way, is_reversed)
                    lines.append(line)
                    if file:
                        with file.open("a", encoding="utf-8") as out:
                            out.write(json.dumps(asdict(line)) + "\n")
                    if line.error:
                        print(f"{name} {item.id}, {way_name}: {line.error}", file=sys.stderr, flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("sets", nargs="*", metavar="SET=PATH", help=f"one of {', '.join(SETS)}")
    options.add_argument("-m", "--model", default="smollm2", help="a model as `Model` takes it; tiny is the own one")
    options.add_argument("-n", "--count", type=int, default=100, help="of each set")
    options.add_argument("--ways", default=f"text,label,{SINGLE}", help=f"of {', '.join(OF_LIBRARY)}, {SINGLE}")
    options.add_argument("--way", action="append", default=[], metavar="NAME=JSON", help="options of Model.decide")
    options.add_argument("--server", metavar="URL", help="of the endpoint, instead of a model")
    options.add_argument("--threads", type=int, help="of the model; by default those that it chooses by itself")
    options.add_argument("--json", type=Path, help="write each reply, and go on after those that are there")
    given = options.parse_args()
    paths = dict(one.partition("=")[::2] for one in given.sets)
    if unknown := paths.keys() - SETS.keys():
        options.error(f"unknown set {min(unknown)!r}: expected one of {', '.join(SETS)}")
    found = {name: read(name, Path(path or HELD_OUT), given.count) for name, path in paths.items()}
    lines = read_lines(given.json)
    if given.server and given.count:
        run(found, {given.server: OfServer(given.server, given.model)}, lines, given.json)
    elif given.count:
        own = {} if given.model == "tiny" else {"path": given.model}
        with Model(**own, n_ctx=CONTEXT, n_threads=given.threads) as model:
            asked = OF_LIBRARY | {name: json.loads(text) for name, _, text in (one.partition("=") for one in given.way)}
            names = [name for name in given.ways.split(",") if name] + [one.partition("=")[0] for one in given.way]
            of_library = {name: OfLibrary(model, options) for name, options in asked.items()}
            ways: dict[str, Way] = {**of_library, SINGLE: OfSingleToken(model, of_library["label"])}
            run(found, {name: ways[name] for name in names}, lines, given.json)
    print(table(lines))


if __name__ == "__main__":
    main()
