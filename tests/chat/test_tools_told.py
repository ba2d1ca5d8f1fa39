"""Tools that the system message tells of: each format shows a call, without capitals, that its own parser reads."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tokentrie import ChatFormat

HERE = Path(__file__).parents[2]
SMALL = HERE / "crates" / "chat-format" / "tests" / "templates"
REAL = Path(os.environ.get("TOKENTRIE_TEMPLATE_DIR") or HERE.parent / "shared" / "templates")
TEMPLATES = {path.stem: path for folder in (SMALL, REAL) for path in sorted(folder.glob("*.jinja"))}
TOOLS = [{"name": "ring", "description": "Rings.", "parameters": {"properties": {"loud": {"type": "string"}}}}]
#: The needles that calls are rendered with, and the placeholders of before.
CAPITALS = re.compile(r"THE_(NAME|VALUE)_OF|(?<![A-Z_])(NAME|ARGUMENT|VALUE)(?![A-Z_])")


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_call_that_is_shown_is_one(template: str) -> None:
    form = ChatFormat(TEMPLATES[template].read_text("utf-8"), tools_in="system")
    text = form.render([{"role": "user", "content": "Go."}], TOOLS, add_generation_prompt=False)
    if "Their signatures are within" not in text:
        pytest.skip("the template leaves out what a system message says")
    _, shown = re.split(
        r"in no other:\n|</?[a-z_]+> XML tags:\n", text.partition("Their signatures are")[2], maxsplit=1
    )
    assert not CAPITALS.search(shown[:300]), shown[:300]
    if "<function-name>" in shown:
        written = shown.replace("<function-name>", '"ring"').replace("<args-json-object>", '{"loud": "value"}')
    else:
        written = shown.replace("tool_name", "ring").replace("argument_name", "loud")
    quiet = form.prompt([{"role": "user", "content": "Go."}], enable_thinking=False).generation_prompt
    # The reply may begin inside a thought, or behind marks that the example has itself.
    read = [form.parse(written, TOOLS, generation_prompt=turn).tool_calls for turn in (quiet, None, "")]
    assert ["ring", {"loud": "value"}] in [[calls[0].name, calls[0].parsed] for calls in read if calls], written[:300]
