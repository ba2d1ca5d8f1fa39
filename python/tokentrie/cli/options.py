"""Options that several commands have, and how the end of a help page is written."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

import tokentrie

MOST = 2**31 - 1

JSON = typer.Option("--json", help="Print one JSON document and nothing else.")
MODEL = typer.Option(
    "--model",
    "-m",
    metavar="M.gguf",
    help="GGUF model: a file, hf:OWNER/MODEL[:FILE] or smollm2; without it the tiny model inside the package.",
)
THREADS = typer.Option(min=1, max=512, help="Threads; without it the physical cores that may be used.")
PROMPT = typer.Option("--prompt", "-p", metavar="TEXT", help="Text before the value.")
PROMPT_FILE = typer.Option("--prompt-file", metavar="FILE", help="The prompt from a file; - is standard input.")
PAYLOAD = typer.Option("--payload", metavar="P.json", help="Legal values as a payload; - is standard input.")
PATH = typer.Option("--path", metavar="PATH", help="Descriptor of the payload; without it the first one.")
CHOICES = typer.Option("--choices", "-c", metavar="A,B,C", help="Legal values as text, between commas.")
CHOICES_FILE = typer.Option(
    "--choices-file", metavar="FILE", help="Legal values as text, one a line; - is standard input."
)
CTX = typer.Option("--ctx", min=1, max=MOST, help="Tokens of context; without it 4096 or what the model allows.")
SET = typer.Option("--set", metavar="NAMES.ttrie", help="Legal values as a file that tokentrie build made.")
CHOICE = typer.Option("--choice", metavar="VALUE", help="One legal value, commas and all. May be repeated.")
PREFIX = typer.Option(metavar="TEXT", help="End of the prompt: values are tokenized after it.")
SUFFIX = typer.Option(metavar="TEXT", help="Text that ends every value, such as a quote.")
CHAT = typer.Option("--chat", help="The prompt is a user's message: put it in the model's own chat template.")
SYSTEM = typer.Option(metavar="TEXT", help="The system message before it, such as the task; brings --chat.")
REGEX = typer.Option("--regex", metavar="PATTERN", help="A regular expression that the whole text matches.")
GRAMMAR = typer.Option(
    "--grammar",
    metavar="FILE|NAME",
    help="An LR(1) grammar in a file, or json, arithmetic, c or sql; - is standard input.",
)
JSON_SCHEMA = typer.Option(
    "--json-schema", metavar="FILE|JSON", help="A JSON Schema, as text or in a file; - is standard input."
)
SPEC = typer.Option(
    "--constraint",
    metavar="FILE|JSON",
    help="A spec (docs/specs.md), as text or in a file beside its sets; - is standard input.",
)
DRAFT = typer.Option(
    metavar="ngram|prompt|M.gguf",
    help="Source of drafts: an earlier text, the prompt or a small model (docs/drafts.md).",
)
SEED = typer.Option(min=0, max=2**32 - 1, help="Seed of the draw; without it another one every time.")
TOOL_CHOICE = typer.Option("--tool-choice", metavar="auto|none|required|NAME", help="Call that is required or allowed.")
TOOLS_IN = typer.Option(
    "--tools-in",
    metavar="auto|template|system|messages",
    help="Place that describes the tools; auto is the template, or system if it shows none or writes no calls.",
)
NO_THINKING = typer.Option("--no-thinking", help="Ask the template for no reasoning.")
THINKING_BUDGET = typer.Option(min=0, max=MOST, help="The most tokens of reasoning; then it is closed.")
GPU_LAYERS = typer.Option(min=0, max=MOST, help="Layers to put on a graphics card.")


def examples(*lines: str) -> str:
    """The end of a help page. A test runs them."""
    return "\b\nExamples:\n" + "\n".join(f"  tokentrie {line}" for line in lines)


def with_draw_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command one option for each setting of the draw, after `mode`; it gets them as keywords."""

    @functools.wraps(command)
    def run(**given: Any) -> None:
        command(**given)

    hints = get_type_hints(command, include_extras=True)
    parameters = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        parameters.append(parameter.replace(annotation=hints[parameter.name]))
        if parameter.name == "mode":
            parameters += [_option(*setting) for setting in tokentrie.Sampling.settings()]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _option(name: str, default: float, _range: str, about: str) -> inspect.Parameter:
    help_text = f"{about[0].upper()}{about[1:]}." if "penalty" in name else f"Of a draw: {about}."
    is_count = isinstance(default, int)
    option = typer.Option(help=help_text)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    annotation: Any = Annotated[int, option] if is_count else Annotated[float, option]
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
