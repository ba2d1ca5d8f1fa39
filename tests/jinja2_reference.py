"""Jinja2 set up as transformers does, to compare with. Free of tokentrie."""

from __future__ import annotations

import functools
import json
from datetime import datetime
from typing import Any

import jinja2
import jinja2.ext
import jinja2.nodes
from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime(2024, 7, 26, 12, 5, 9)


class AssistantTracker(jinja2.ext.Extension):
    """`{% generation %}`, whose text is printed as it is."""

    tags = frozenset({"generation"})

    def parse(self, parser: Any) -> jinja2.nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_printed"), [], [], body).set_lineno(line)

    def _printed(self, caller: Any) -> str:
        return caller()


def tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message: str) -> None:
    raise TemplateError(message)


def environment() -> ImmutableSandboxedEnvironment:
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[AssistantTracker, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = NOW.strftime
    return made


ENVIRONMENT = environment()


@functools.lru_cache(4)
def compiled(template: str) -> jinja2.Template:
    return ENVIRONMENT.from_string(template)


def render(
    template: str,
    messages: list[Any],
    tools: list[Any] | None = None,
    *,
    add_generation_prompt: bool = True,
    bos: str = "<s>",
    eos: str = "</s>",
    **variables: Any,
) -> str:
    names = {"messages": messages, "tools": tools, "documents": None, "add_generation_prompt": add_generation_prompt}
    return compiled(template).render({**names, "bos_token": bos, "eos_token": eos, **variables})
