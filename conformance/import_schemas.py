#!/usr/bin/env python3
"""Cases of other suites' schemas, from a checkout that you have: `python conformance/import_schemas.py FOLDER OUT`.

It reads what the official suite of JSON Schema has (lists of schemas, each with tests) and what MaskBench has (a schema
with tests in each file). Their licences stay theirs: nothing of them is kept here. Documents are written without white
space, and only those whose properties stand in the order of their schema: engines may hold to that order.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from generate import write
from reference.draw import Draw
from reference.schemas import written


def groups(path: Path) -> Iterator[tuple[str, Any, list[dict[str, Any]]]]:
    """Every schema of a file with its name and its tests."""
    found = json.loads(path.read_text("utf-8"))
    for number, group in enumerate(found if isinstance(found, list) else [found]):
        if isinstance(group, dict) and "schema" in group and isinstance(group.get("tests"), list):
            yield f"{path.stem} {group.get('description', number)}", group["schema"], group["tests"]


def in_order(document: Any, schema: Any) -> bool:
    """Whether the properties of a document stand in the order of its schema."""
    if isinstance(document, list):
        inner = schema.get("items") if isinstance(schema, dict) else None
        return all(in_order(one, inner) for one in document)
    if not isinstance(document, dict):
        return True
    known = schema.get("properties", {}) if isinstance(schema, dict) else {}
    if not isinstance(known, dict):
        return True
    places = [list(known).index(name) if name in known else len(known) for name in document]
    return places == sorted(places) and all(in_order(value, known.get(name)) for name, value in document.items())


def lines(folder: Path) -> Iterator[dict[str, Any]]:
    """The cases of all files below a folder."""
    pieces = [*Draw("schemas").vocabulary([]), b""]
    yield {"vocabulary": {"name": "schemas", "tokens": [piece.hex() for piece in pieces], "eog": [len(pieces) - 1]}}
    for path in sorted(folder.rglob("*.json")):
        for name, schema, tests in groups(path):
            texts: dict[str, list[str]] = {"accept": [], "refuse": []}
            for test in tests:
                if in_order(test["data"], schema):
                    texts["accept" if test["valid"] else "refuse"].append(written(test["data"]))
            if texts["accept"] or texts["refuse"]:
                yield {"case": f"schema {name}", "kind": "schema", "constraint": {"schema": schema}, "texts": texts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with JSON files of a suite")
    parser.add_argument("out", type=Path, help="the file of cases")
    options = parser.parse_args()
    if not options.folder.is_dir():
        raise SystemExit(f"import_schemas.py: there is no folder {options.folder}")
    print(f"{options.out}: {dict(write(options.out, lines(options.folder)))}")


if __name__ == "__main__":
    main()
