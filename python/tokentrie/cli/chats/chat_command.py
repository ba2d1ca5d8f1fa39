"""The command `tokentrie chat` with its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tokentrie.cli.options import (
    CTX,
    DRAFT,
    GPU_LAYERS,
    JSON,
    MODEL,
    MOST,
    NO_THINKING,
    SEED,
    THINKING_BUDGET,
    THREADS,
    TOOL_CHOICE,
    TOOLS_IN,
    examples,
)

app = typer.Typer(rich_markup_mode=None)


@app.command(
    epilog=examples(
        'chat --prompt "please delete the file a.txt" --tools tools.json --max-tokens 60',
        'chat --prompt "Hello" --system "You are brief." --max-tokens 8 --json',
        'chat --prompt "ring the bell" --tools tools.py --run --tool-choice ring --max-tokens 60',
    )
)
def chat(
    model: Annotated[Path | None, MODEL] = None,
    tools: Annotated[
        Path | None,
        typer.Option(
            "--tools",
            metavar="FILE.json|FILE.py",
            help="Tools that the model may call: JSON definitions, or Python functions.",
        ),
    ] = None,
    run_tools: Annotated[
        bool, typer.Option("--run", help="Execute the Python file of --tools and the functions that are called.")
    ] = False,
    tool_choice: Annotated[str, TOOL_CHOICE] = "auto",
    tools_in: Annotated[str, TOOLS_IN] = "auto",
    no_thinking: Annotated[bool, NO_THINKING] = False,
    thinking_budget: Annotated[int | None, THINKING_BUDGET] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="Maximum number of tokens of a reply. Default: as many as fit.")
    ] = None,
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="System message.")] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", "-p", metavar="TEXT", help="Answer this message and exit.")
    ] = None,
    temperature: Annotated[float, typer.Option(help="Sampling temperature; 0 is greedy.")] = 0.0,
    seed: Annotated[int | None, SEED] = None,
    ctx: Annotated[int | None, CTX] = None,
    threads: Annotated[int | None, THREADS] = None,
    gpu_layers: Annotated[int, GPU_LAYERS] = 0,
    draft: Annotated[str | None, DRAFT] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Chat with a model. Tool calls are always valid: a name from the list, and arguments that match the schema.

    On a terminal, /reset starts a new conversation, /save FILE.json writes it, /quit or Ctrl-D exits, and Ctrl-C stops
    a reply. Otherwise each line of standard input is a message. For tools from a JSON file, you enter each result as a
    line; functions of a Python file are executed, which needs --run.
    """
    from tokentrie.cli.chats import chat as command
    from tokentrie.cli.source import Hardware

    settings = command.Settings(
        tool_choice, tools_in, not no_thinking, thinking_budget, max_tokens, system, temperature, seed, as_json
    )
    command.run(model, tools, run_tools, settings, prompt, Hardware(ctx, threads, gpu_layers, draft))
