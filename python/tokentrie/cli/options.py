"""Options shared by several commands, and the examples at the end of a help page."""

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
    help="GGUF model: a file, hf:OWNER/MODEL[:FILE] or smollm2. Default: the tiny model in the package.",
)
THREADS = typer.Option(min=1, max=512, help="Number of threads. Default: the available physical cores.")
PROMPT = typer.Option("--prompt", "-p", metavar="TEXT", help="Prompt text.")
PROMPT_FILE = typer.Option("--prompt-file", metavar="FILE", help="File with the prompt; - reads standard input.")
PAYLOAD = typer.Option(
    "--payload", metavar="P.json", help="JSON payload with the allowed values; - reads standard input."
)
PATH = typer.Option("--path", metavar="PATH", help="Descriptor in the payload. Default: the first.")
CHOICES = typer.Option("--choices", "-c", metavar="A,B,C", help="Allowed values, separated by commas.")
CHOICES_FILE = typer.Option(
    "--choices-file", metavar="FILE", help="File with one allowed value per line; - reads standard input."
)
CTX = typer.Option(
    "--ctx", min=1, max=MOST, help="Context size in tokens. Default: 4096, or the limit of the model if smaller."
)
SET = typer.Option("--set", metavar="NAMES.ttrie", help="File of allowed values, made by tokentrie build.")
CHOICE = typer.Option("--choice", metavar="VALUE", help="One allowed value; may contain commas. Repeatable.")
PREFIX = typer.Option(metavar="TEXT", help="End of the prompt; values are tokenized after it.")
SUFFIX = typer.Option(metavar="TEXT", help="Text that ends every value, such as a quote.")
CHAT = typer.Option("--chat", help="Send the prompt as a user message in the model's chat template.")
SYSTEM = typer.Option(metavar="TEXT", help="System message, such as the task; implies --chat.")
REGEX = typer.Option("--regex", metavar="PATTERN", help="Regular expression that the whole text must match.")
GRAMMAR = typer.Option(
    "--grammar",
    metavar="FILE|NAME",
    help="LR(1) grammar: a file, or json, arithmetic, c or sql; - reads standard input.",
)
JSON_SCHEMA = typer.Option(
    "--json-schema", metavar="FILE|JSON", help="JSON Schema, as text or a file; - reads standard input."
)
SPEC = typer.Option(
    "--constraint",
    metavar="FILE|JSON",
    help="Constraint in its JSON form (docs/specs.md), as text or a file beside its sets; - reads standard input.",
)
DRAFT = typer.Option(
    metavar="ngram|prompt|M.gguf",
    help="Source of draft tokens: earlier text, the prompt or a small model (docs/drafts.md).",
)
SEED = typer.Option(min=0, max=2**32 - 1, help="Seed for sampling. Default: a new one each time.")
TOOL_CHOICE = typer.Option(
    "--tool-choice", metavar="auto|none|required|NAME", help="Tool calls that are allowed or required."
)
TOOLS_IN = typer.Option(
    "--tools-in",
    metavar="auto|template|system|messages",
    help="Where the tools are described; auto: the template, or system if the template has no place for them.",
)
NO_THINKING = typer.Option("--no-thinking", help="Disable reasoning in the chat template.")
THINKING_BUDGET = typer.Option(min=0, max=MOST, help="Maximum number of reasoning tokens.")
GPU_LAYERS = typer.Option(min=0, max=MOST, help="Number of layers on the GPU.")


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
    help_text = f"{about[0].upper()}{about[1:]}." if "penalty" in name else f"Sampling: {about}."
    is_count = isinstance(default, int)
    option = typer.Option(help=help_text)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    annotation: Any = Annotated[int, option] if is_count else Annotated[float, option]
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
