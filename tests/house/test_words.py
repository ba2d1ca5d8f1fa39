"""One name for one thing: the table of docs/names.md against what every host has."""

from __future__ import annotations

import importlib
import itertools
import json
import pickle
import re
import subprocess
import sys
import typing
from collections.abc import Callable
from pathlib import Path

import pytest
import tokentrie
from support import public_names

ROOT = Path(__file__).parents[2]
HEADING = "| what | Rust | Python | C | TypeScript |"


def rows() -> list[list[str]]:
    """The cells of the table, without its head."""
    page = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
    lines = page[page.index(HEADING) :].splitlines()[2:]
    table = [line.strip("|").split(" | ") for line in itertools.takewhile(bool, lines)]
    return [[cell.strip() for cell in row] for row in table]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def sources(pattern: str) -> str:
    found = "\n".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob(pattern)))
    assert found, f"nothing is {pattern}"
    return found


def in_rust(name: str, source: str) -> bool:
    """A type, a function, a field or a variant."""
    last = name.rsplit("::", 1)[-1]
    said = rf"pub (?:(?:const )?(?:fn|struct|enum|trait|type|mod) )?{last}\b"
    return bool(re.search(said, source) or ("::" in name and re.search(rf"^ +{last}\b[ ,({{]", source, re.MULTILINE)))


def in_python(name: str) -> bool:
    found: object = tokentrie
    for part in name.split("."):
        # A field of a dataclass is no attribute of the class.
        found = getattr(found, part, None) or getattr(found, "__dataclass_fields__", {}).get(part)
    return found is not None


def in_typescript(name: str, source: str) -> bool:
    last = name.rsplit(".", 1)[-1]
    return bool(re.search(rf"\b{last}\b", source))


@pytest.mark.model
def test_every_host_has_the_names_of_the_table() -> None:
    if not (ROOT / "crates").is_dir():
        pytest.skip("these tests stand alone, without the sources")
    table = rows()
    assert len(table) > 12
    assert all(len(row) == 5 for row in table), table
    rust = sources("crates/*/src/**/*.rs")
    header = sources("include/tokentrie.h")
    typescript = sources("hosts/typescript/src/**/*.ts")
    wrong = []
    for what, *cells in table:
        looked: list[tuple[str, Callable[[str], bool]]] = [
            ("Rust", lambda name: in_rust(name, rust)),
            ("Python", in_python),
            ("C", lambda name: name in header),
            ("TypeScript", lambda name: in_typescript(name, typescript)),
        ]
        for (host, has), cell in zip(looked, cells, strict=True):
            assert names(cell) or cell == "–", f"{what}: {host} has {cell!r}"
            wrong += [f"{what}: {host} has no {name}" for name in names(cell) if not has(name)]
    assert not wrong, "\n".join(wrong)


def test_what_moved_is_pickled_where_it_is() -> None:
    rules = tokentrie.rules
    for value in (rules.Unconstrained(), rules.Date(), rules.Time(utc=True), rules.DateTime()):
        assert getattr(importlib.import_module(type(value).__module__), type(value).__name__) is type(value)
        assert pickle.loads(pickle.dumps(value)) == value


def test_import_loads_only_the_engine() -> None:
    needless = ["asyncio", "numpy", "pydantic", "tokentrie.calibration", "tokentrie.chat", "tokentrie.decisions"]
    code = f"import sys, tokentrie; print([name for name in {needless} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_lazy_names_are_listed_and_unknown_ones_refused() -> None:
    assert {*tokentrie._LAZY_NAMES, *tokentrie._MODULES} <= set(tokentrie.__all__) <= set(dir(tokentrie))
    for name, module in tokentrie._LAZY_NAMES.items():
        assert getattr(tokentrie, name).__module__ == f"tokentrie.{module}"
    with pytest.raises(AttributeError, match=r"no attribute 'Dates'$"):
        _ = tokentrie.Dates  # type: ignore[attr-defined]


def test_the_top_level_is_small_and_names_the_module_of_the_rest() -> None:
    assert len(set(tokentrie.__all__) - set(tokentrie._MODULES)) <= 28
    for name, found in public_names().items():
        module, _, own = name.rpartition(".")
        place = importlib.import_module(f"tokentrie.{module}") if module else tokentrie
        assert getattr(place, own) is found
        if module and own[0].isupper():
            with pytest.raises(AttributeError, match=re.escape(f"it is tokentrie.{name}")):
                getattr(tokentrie, own)


def finishes_of_rust() -> list[str]:
    source = (ROOT / "crates/llama-sampler/src/runtime/generation/generated.rs").read_text(encoding="utf-8")
    body = source[source.index("impl Finish {") :]
    return re.findall(r'Self::\w+ => "(\w+)"', body[: body.index("\n}\n")])


def test_outputs_end_in_the_same_words_in_every_host() -> None:
    page = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
    table = page[page.index("| finish | meaning |") :].splitlines()[2:]
    words = [names(line)[0] for line in itertools.takewhile(bool, table)]
    assert len(words) == 8
    assert list(typing.get_args(tokentrie.results.Finish)) == words
    assert finishes_of_rust() == words
    header = (ROOT / "include" / "tokentrie.h").read_text(encoding="utf-8")
    numbers = {name.lower(): int(number) for name, number in re.findall(r"TOKENTRIE_FINISH_(\w+) (\d+)", header)}
    assert set(numbers) == {*words, "none", "error"}
    script = sources("hosts/typescript/src/ffi/abi.ts")
    listed = re.search(r"export const FINISHES = \[(.*?)\]", script, re.DOTALL)
    assert listed is not None
    assert {word: number for number, word in enumerate(re.findall(r'"(\w+)"', listed[1]))} == numbers


@pytest.mark.model
def test_every_result_becomes_a_dict_that_json_takes() -> None:
    classes = [getattr(tokentrie.results, name) for name in tokentrie.results.__all__]
    assert [one.__name__ for one in classes if not callable(getattr(one, "to_dict", None))] == []
    model, messages = tokentrie.Model(), [{"role": "user", "content": "Hello"}]
    decided = model.decide("The lamp is on.", {"on": bool})
    results = [
        model.generate("Once", max_tokens=2, logprobs=1),
        model.choose("The sky is ", ["blue", "red"]),
        model.beam("The sky is ", ["blue", "red"], 1)[0],
        model.chat(messages, max_tokens=2),
        tokentrie.run_tools(model, messages, [], max_tokens=2),
        decided,
        decided["on"],
        decided.stats,
    ]
    for result in results:
        assert json.loads(json.dumps(result.to_dict())), result
