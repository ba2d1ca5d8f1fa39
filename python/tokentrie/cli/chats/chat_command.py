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
            "--tools", metavar="FILE.json|FILE.py", help="Tools that may be called: definitions, or functions."
        ),
    ] = None,
    run_tools: Annotated[
        bool, typer.Option("--run", help="Execute the Python file of --tools, and the functions that are called.")
    ] = False,
    tool_choice: Annotated[str, TOOL_CHOICE] = "auto",
    tools_in: Annotated[str, TOOLS_IN] = "auto",
    no_thinking: Annotated[bool, NO_THINKING] = False,
    thinking_budget: Annotated[int | None, THINKING_BUDGET] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="The most tokens of a reply; without it what has room.")
    ] = None,
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="The system message.")] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", "-p", metavar="TEXT", help="Answer this message, and end.")
    ] = None,
    temperature: Annotated[float, typer.Option(help="Temperature of the draw; 0 takes the best token.")] = 0.0,
    seed: Annotated[int | None, SEED] = None,
    ctx: Annotated[int | None, CTX] = None,
    threads: Annotated[int | None, THREADS] = None,
    gpu_layers: Annotated[int, GPU_LAYERS] = 0,
    draft: Annotated[str | None, DRAFT] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Chat with a model. Its calls of tools are always right: an offered name, arguments as the schema has them.

    On a terminal: /reset begins anew, /save FILE.json writes the conversation, /quit or Ctrl-D ends, Ctrl-C ends a
    reply. Elsewhere each line of standard input is a message. Results of tools from a JSON file are asked for, a line
    each; functions of a Python file run themselves, which executes code and so needs --run.
    """
    from tokentrie.cli.chats import chat as command
    from tokentrie.cli.source import Hardware

    settings = command.Settings(
        tool_choice, tools_in, not no_thinking, thinking_budget, max_tokens, system, temperature, seed, as_json
    )
    command.run(model, tools, run_tools, settings, prompt, Hardware(ctx, threads, gpu_layers, draft))
