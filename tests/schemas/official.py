"""The official suite of JSON Schema: how many of its schemas are held, draft by draft.

    python tests/schemas/official.py [--fetch] [--draft draft7] [--show strict] [--ratchet] [FOLDER]

FOLDER is `tests` of the suite, as the source distribution of the package jsonschema has it; `--fetch` downloads that
into target/schemas. Its licence stays its own: nothing of it is kept here. `--ratchet` keeps the numbers in held.json,
below which the tests let none fall.

A schema is right if every document of it is taken or refused as the suite says; refused if it makes no rule, unless no
document of it is valid; strict and loose say which side is wrong. Values count, not how they are written: documents are
written without white space, whole numbers without a point, members in any order in which they are taken.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import tokentrie
from exact import DRAFTS, read, texts

ROOT = Path(__file__).resolve().parents[2]
HELD = Path(__file__).with_name("held.json")
FETCHED = ROOT / "target" / "schemas"
URIS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
}
UNASKED = {
    "optional/zeroTerminatedFloats": "asks whether 1.0 is 1 in languages that tell them apart: values are asked here",
    "optional/content": "asks for what later drafts call an annotation",
}
OUTCOMES = ("right", "refused", "strict", "loose", "strict and loose")


def fetch() -> Path:
    """Downloads the source distribution of jsonschema and returns the folder of its suite."""
    if not list(FETCHED.glob("jsonschema-*/json/tests")):
        FETCHED.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*command, "--dest", str(FETCHED), "jsonschema==4.26.0"], check=True)
        for archive in FETCHED.glob("jsonschema-*.tar.gz"):
            with tarfile.open(archive) as inside:
                inside.extractall(FETCHED, filter="data")
    return found() or sys.exit(f"official.py: no suite in {FETCHED}")


def found() -> Path | None:
    """The folder of the suite: what TOKENTRIE_SCHEMA_SUITE names, or what was fetched."""
    if named := os.environ.get("TOKENTRIE_SCHEMA_SUITE"):
        return Path(named)
    return next(iter(FETCHED.glob("jsonschema-*/json/tests")), None)


def groups(folder: Path, draft: str) -> Iterator[tuple[str, Any, list[dict[str, Any]]]]:
    """Every schema of a draft with its name and its tests."""
    for path in sorted((folder / draft).rglob("*.json")):
        name = path.relative_to(folder / draft).with_suffix("").as_posix()
        if name in UNASKED:
            continue
        for group in read(path.read_bytes()):
            schema = group["schema"]
            if isinstance(schema, dict) and draft in URIS:
                schema = {"$schema": URIS[draft], **schema}
            yield f"{name}: {group['description']}", schema, group["tests"]


def rule_of(name: str, schema: Any) -> tokentrie.JsonSchema | str:
    """The rule, or why there is none. Formats say nothing but where the suite asks for them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return tokentrie.JsonSchema(written_schema(schema), whitespace="none", **options(name))
        except tokentrie.RuleError as error:
            return str(error)


def options(name: str) -> dict[str, Any]:
    """What a file of the suite needs said."""
    is_annotation = name.startswith("format:")
    return (
        {"formats": "annotate"} if is_annotation and "formats" in tokentrie.JsonSchema.__init__.__kwdefaults__ else {}
    )


def written_schema(schema: Any) -> str:
    return texts(schema, most=1)[0]


def outcome(name: str, schema: Any, tests: list[dict[str, Any]]) -> tuple[str, str]:
    """How a schema is held, and what shows it."""
    rule = rule_of(name, schema)
    if isinstance(rule, str):
        is_nothing = "no document is allowed" in rule and not any(test["valid"] for test in tests)
        return ("right", "") if is_nothing else ("refused", rule)
    wrong: dict[str, str] = {}
    for test in tests:
        ways = texts(test["data"])
        if test["valid"] and not any(map(rule.matches, ways)):
            wrong.setdefault("strict", f"{test['description']}: {ways[0]}")
        elif not test["valid"] and (taken := next(filter(rule.matches, ways), None)):
            wrong.setdefault("loose", f"{test['description']}: {taken}")
    return " and ".join(sorted(wrong, reverse=True)) or "right", "; ".join(wrong.values())


def count(folder: Path, draft: str) -> tuple[Counter[str], list[tuple[str, str, str]]]:
    """How many schemas of a draft are held how, and those that are not held right."""
    counts: Counter[str] = Counter()
    others = []
    for name, schema, tests in groups(folder, draft):
        how, why = outcome(name, schema, tests)
        counts[how] += 1
        if how != "right":
            others.append((how, name, why))
    return counts, others


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="`tests` of the suite")
    parser.add_argument("--fetch", action="store_true", help="download the suite into target/schemas")
    parser.add_argument("--draft", choices=DRAFTS, action="append", help="only this draft")
    parser.add_argument("--show", choices=OUTCOMES[1:], action="append", default=[], help="print these schemas")
    parser.add_argument("--ratchet", action="store_true", help="keep the numbers of all drafts")
    options = parser.parse_args()
    folder = options.folder or (fetch() if options.fetch else found())
    if folder is None or not folder.is_dir():
        raise SystemExit("official.py: no suite: name its folder, or --fetch")
    print(f"| draft | schemas | {' | '.join(OUTCOMES)} |\n| --- | {'---: | ' * (len(OUTCOMES) + 1)}".rstrip())
    held = {}
    for draft in options.draft or DRAFTS:
        counts, others = count(folder, draft)
        print(f"| {draft} | {counts.total()} | {' | '.join(str(counts[how]) for how in OUTCOMES)} |")
        for how, name, why in others:
            if how in options.show:
                print(f"  {how}: {name}\n    {why}")
        held[draft] = {"right": counts["right"], "refused": counts["refused"]}
    if options.ratchet and not options.draft:
        HELD.write_text(json.dumps(held, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
