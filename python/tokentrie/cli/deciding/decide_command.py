"""The command `tokentrie decide` with its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tokentrie.cli.options import CTX, GPU_LAYERS, JSON, MODEL, THREADS, examples

app = typer.Typer(rich_markup_mode=None)


@app.command(
    epilog=examples(
        "decide --questions questions.json --state 'The lamp is on.'",
        "decide --questions questions.json --state-file letter.txt --json",
    )
)
def decide(
    questions: Annotated[
        Path,
        typer.Option(
            "--questions", "-q", metavar="Q.json", help='An object with "questions" and options; - is standard input.'
        ),
    ],
    model: Annotated[Path | None, MODEL] = None,
    state: Annotated[str | None, typer.Option(metavar="TEXT", help="What the questions are about.")] = None,
    state_file: Annotated[
        Path | None, typer.Option("--state-file", metavar="FILE", help="The state from a file; - is standard input.")
    ] = None,
    json_state: Annotated[
        bool, typer.Option("--json-state", help="The state is JSON: data, or a conversation, a list of messages.")
    ] = False,
    ctx: Annotated[int | None, CTX] = None,
    threads: Annotated[int | None, THREADS] = None,
    gpu_layers: Annotated[int, GPU_LAYERS] = 0,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Answer typed questions about a state, each with the probability of every option.

    The file of questions is JSON, such as {"questions": {"on": {"type": "predicate"}, "colour": {"type": "choice",
    "options": ["red", "blue"]}, "size": {"type": "score", "levels": ["small", "large"]}}}, with the options of
    Model.decide beside them: "permute", "prior", "threshold", "readout", ....
    """
    from tokentrie.cli.deciding.decide import run
    from tokentrie.cli.source import Hardware

    run(model, questions, state, state_file, json_state, Hardware(ctx, threads, gpu_layers), as_json)
