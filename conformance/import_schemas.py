#!/usr/bin/env python3
"""Cases of other suites' schemas, from a checkout that you have: `python import_schemas.py FOLDER OUT`.

It reads what the official suite of JSON Schema has (lists of schemas, each with tests) and what MaskBench has (a schema
with tests in each file). Their licences stay theirs: nothing of them is kept here. Documents are written without white
space, their properties in the order in which the schema names them: engines may hold to that order.
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

PROPERTIES = ("properties", "dependentSchemas", "dependentRequired", "dependencies")
"""Keywords whose values are schemas, or lists of names, by the name of a property."""
OTHERS = ("patternProperties", "$defs", "definitions")
"""The same by other names."""


def groups(path: Path) -> Iterator[tuple[str, Any, list[dict[str, Any]]]]:
    """Every schema of a file with its name and its tests."""
    found = json.loads(path.read_text("utf-8"))
    for number, group in enumerate(found if isinstance(found, list) else [found]):
        if isinstance(group, dict) and "schema" in group and isinstance(group.get("tests"), list):
            yield f"{path.stem} {group.get('description', number)}", group["schema"], group["tests"]


def named(schema: Any) -> Iterator[str]:
    """The names of properties in a schema, as they come in its text."""
    if isinstance(schema, list):
        for one in schema:
            yield from named(one)
    if not isinstance(schema, dict):
        return
    for keyword, inner in schema.items():
        if keyword in ("const", "enum"):
            yield from keys(inner)
        elif keyword == "required" and isinstance(inner, list):
            yield from inner
        elif keyword in (*PROPERTIES, *OTHERS) and isinstance(inner, dict):
            for name, one in inner.items():
                if keyword in PROPERTIES:
                    yield name
                yield from one if isinstance(one, list) else named(one)
        else:
            yield from named(inner)


def keys(value: Any) -> Iterator[str]:
    """The names in a value."""
    if isinstance(value, list):
        for one in value:
            yield from keys(one)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from keys(inner)


def in_order(document: Any, schema: Any, places: dict[str, int]) -> Any:
    """A document with its properties in the order in which the schema names them; the others come last, as they did.

    Where all are among the `properties` of its own schema, the order there counts.
    """
    schema = schema if isinstance(schema, dict) else {}
    if isinstance(document, list):
        return [in_order(one, schema.get("items"), places) for one in document]
    if not isinstance(document, dict):
        return document
    own = schema.get("properties")
    own = own if isinstance(own, dict) else {}
    if document.keys() <= own.keys():
        places = {name: place for place, name in enumerate(own)}
    names = sorted(document, key=lambda name: places.get(name, len(places)))
    return {name: in_order(document[name], own.get(name), places) for name in names}


def lines(folder: Path) -> Iterator[dict[str, Any]]:
    """The cases of all files below a folder."""
    pieces = [*Draw("schemas").vocabulary([]), b""]
    yield {"vocabulary": {"name": "schemas", "tokens": [piece.hex() for piece in pieces], "eog": [len(pieces) - 1]}}
    for path in sorted(folder.rglob("*.json")):
        for name, schema, tests in groups(path):
            names = dict.fromkeys(name for name in named(schema) if isinstance(name, str))
            places = {name: place for place, name in enumerate(names)}
            texts: dict[str, list[str]] = {"accept": [], "refuse": []}
            for test in tests:
                document = in_order(test["data"], schema, places)
                texts["accept" if test["valid"] else "refuse"].append(written(document))
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
