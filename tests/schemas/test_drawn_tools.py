"""Drawn schemas of tools, whose arguments are written in every style: what may be written is valid, and has an end."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from typing import Any

import pytest
from budget import cases

pytest.importorskip("jsonschema")

from drawn import Schemas
from exact import judge, read, written
from test_chat_law import SEED, TEMPLATES, Draw, vocabulary, walk
from tokentrie import ChatFormat, RuleError
from tokentrie.errors import TokenTrieWarning

STYLES = sorted(name for name, text in TEMPLATES.items() if len(text.read_text("utf-8")) < 4000)
COUNT = cases(120)
REFUSED = (
    "is not supported",
    "no value",
    "nothing",
    "exclude each other",
    "hold itself",
    "cannot write",
    "schema is false",
)


def without_excluding_types(schema: Any) -> Any:
    """The schema without each `type` that no value of the `enum` or `const` beside it has: the values win."""
    if isinstance(schema, list):
        return [without_excluding_types(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        word: one if word in ("enum", "const", "not", "if") else without_excluding_types(one)
        for word, one in schema.items()
    }
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    # A property may have the name of a keyword.
    if isinstance(listed, list) and isinstance(schema.get("type"), str | list):
        typed = judge({"type": schema["type"]})
        if listed and not any(typed.is_valid(read(written(value))) for value in listed):
            del kept["type"]
    return kept


class Drawn(Draw):
    """Tools whose arguments have schemas of all keywords."""

    def judge(self, arguments: str, schema: dict[str, Any]) -> None:
        judge(read(written(without_excluding_types(schema)))).validate(read(arguments))

    def tools(self) -> list[dict[str, Any]]:
        names = self.sample(["a", "b", "city"], self.randint(1, 3))
        defined: dict[str, Any] = {}
        properties = {}
        for name in names:
            schema = Schemas(self, "draft2020-12", formats=False).whole()
            if isinstance(schema, dict):
                # Those of two schemas have the same names.
                defined = schema.pop("$defs", {}) or defined
            properties[name] = schema
        whole: dict[str, Any] = {"type": "object", "properties": properties, "$defs": {"one": {}, "two": {}} | defined}
        whole["required"] = [name for name in names if self.random() < 0.7]
        if self.random() < 0.5:
            whole["additionalProperties"] = False
        # As a client has them: numbers are floats, and whole ones have 64 bits.
        whole = json.loads(written(whole), parse_int=lambda text: int(text) if len(text) < 19 else float(text))
        return [{"type": "function", "function": {"name": "ring", "description": "It rings.", "parameters": whole}}]


@pytest.mark.parametrize("template", STYLES)
def test_what_may_be_written_is_valid_in_every_style(template: str) -> None:
    seen: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TokenTrieWarning)
        # Python warns of patterns that JSON Schema takes.
        warnings.simplefilter("ignore", FutureWarning)
        vocab = vocabulary("bytes", None)
        form = ChatFormat(TEMPLATES[template].read_text("utf-8"), vocab)
        if not form.analysis.calls:
            form = form.with_tools_in("system")
        for seed in range(COUNT):
            draw = Drawn(f"{SEED} {template} {seed}")
            wrong, refused = None, ""
            try:
                wrong = walk(form, vocab, draw)
            except RuleError as error:
                refused = str(error)
            if refused:
                assert any(words in refused for words in REFUSED), (seed, refused)
                seen["refused"] += 1
                continue
            # Random letters may not end within so many.
            seen["long" if (wrong or "").startswith("no end") else "ended"] += 1
            assert wrong is None or wrong.startswith("no end"), f"seed {SEED} {template} {seed}: {wrong}"
    assert 4 * seen["ended"] > seen["refused"], seen
