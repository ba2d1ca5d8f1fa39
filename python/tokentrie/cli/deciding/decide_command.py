"""The command `tokentrie decide` with its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tokentrie.cli import console
from tokentrie.cli.options import CTX, GPU_LAYERS, JSON, MODEL, THREADS, examples

app = typer.Typer(rich_markup_mode=None)

QUESTIONS = typer.Option(
    "--questions",
    "-q",
    metavar="FILE|JSON",
    help='An object with "questions" and options, as text or in a file; - is standard input.',
)
ROWS = typer.Option("--input", metavar="ROWS.jsonl|.csv|.parquet", help="The rows of a file; - is JSONL.")
FIELD = typer.Option(metavar="NAME", help="The field that is the state of a row; without it the row is, as JSON.")
TEMPLATE = typer.Option(metavar="TEXT", help=r"The state of a row, with fields such as {text}; \n is a line break.")


@app.command(
    epilog=examples(
        "decide --questions questions.json --state 'The lamp is on.'",
        "decide --questions questions.json --state-file letter.txt --json",
        "decide -q questions.json --input letters.jsonl --field text -o answers.csv",
        """decide -q '{"questions": {"on": {"type": "predicate"}}}' --state 'The lamp is on.'""",
    )
)
def decide(
    questions: Annotated[str, QUESTIONS],
    model: Annotated[Path | None, MODEL] = None,
    state: Annotated[str | None, typer.Option(metavar="TEXT", help="What the questions are about.")] = None,
    state_file: Annotated[
        Path | None, typer.Option("--state-file", metavar="FILE", help="The state from a file; - is standard input.")
    ] = None,
    json_state: Annotated[
        bool, typer.Option("--json-state", help="The state is JSON: data, or a conversation, a list of messages.")
    ] = False,
    calibration: Annotated[
        Path | None,
        typer.Option(metavar="C.json", help="What `tokentrie calibrate` made: probabilities are corrected by it."),
    ] = None,
    rows: Annotated[Path | None, ROWS] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT.csv|.jsonl|.parquet",
            help="The rows with their answers; - is standard output, as JSONL.",
        ),
    ] = None,
    field: Annotated[str | None, FIELD] = None,
    template: Annotated[str | None, TEMPLATE] = None,
    on_error: Annotated[
        Literal["raise", "skip", "return"],
        typer.Option(help='A faulty row: stop there, leave it out, or give it an "error" in place of answers.'),
    ] = "raise",
    restart: Annotated[
        bool, typer.Option("--restart", help="Throw away what the output holds, and begin anew.")
    ] = False,
    ctx: Annotated[int | None, CTX] = None,
    threads: Annotated[int | None, THREADS] = None,
    gpu_layers: Annotated[int, GPU_LAYERS] = 0,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Answer typed questions about a state, or about every row of a file, each with the probability of every option.

    The file of questions is JSON, such as {"questions": {"on": {"type": "predicate"}, "colour": {"type": "choice",
    "options": ["red", "blue"]}, "size": {"type": "score", "levels": ["small", "large"]}}}, with the options of
    Model.decide beside them: "permute", "prior", "threshold", "readout", ....
    """
    from tokentrie.cli.choosing.choose import check_usage
    from tokentrie.cli.deciding import dataset, decide
    from tokentrie.cli.source import Hardware

    check_usage(
        {"--state": state, "--state-file": state_file, "--input": rows},
        {"--output": output, "--field": field, "--template": template}
        | {"--on-error": None if on_error == "raise" else on_error, "--restart": restart or None},
    )
    hardware = Hardware(ctx, threads, gpu_layers)
    if rows is None:
        decide.run(model, questions, state, state_file, json_state, calibration, hardware, as_json)
        return
    if json_state:
        raise typer.BadParameter("a row without --field and --template is JSON already", param_hint="--json-state")
    job = dataset.Job(rows, output, field, template, on_error, restart)
    with console.beside(output):
        dataset.run(model, questions, calibration, job, hardware, as_json)


@app.command(epilog=examples("calibrate -q questions.json --input known.csv --field text --gold on=lit -o lamp.json"))
def calibrate(
    questions: Annotated[str, QUESTIONS],
    rows: Annotated[Path, ROWS],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="C.json", help="Where the calibration goes; - is standard output.")
    ],
    model: Annotated[Path | None, MODEL] = None,
    field: Annotated[str | None, FIELD] = None,
    template: Annotated[str | None, TEMPLATE] = None,
    gold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUESTION=FIELD",
            help="The field with the right answer; without any, each question's own name. May be repeated.",
        ),
    ] = None,
    ctx: Annotated[int | None, CTX] = None,
    threads: Annotated[int | None, THREADS] = None,
    gpu_layers: Annotated[int, GPU_LAYERS] = 0,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Find what makes the probabilities of questions honest, on rows whose answers are known.

    A temperature and a bias for each option are fitted, measured on rows that the fit has not seen, and written to a
    small file for `decide --calibration`, with fingerprints of the model and the questions. A row whose right answer is
    empty is left out. A few hundred rows are good, ten the least.
    """
    from tokentrie.cli.choosing.rows import Prompts
    from tokentrie.cli.deciding import calibrate as command
    from tokentrie.cli.source import Hardware

    fields = {}
    for one in gold or []:
        name, equals, of = one.partition("=")
        if not (name and equals and of) or name in fields:
            raise typer.BadParameter(f"{one!r}: write QUESTION=FIELD, once for a question", param_hint="--gold")
        fields[name] = of
    prompts = None if field is None and template is None else Prompts(field, template)
    with console.beside(output):
        command.run(model, questions, rows, prompts, fields, output, Hardware(ctx, threads, gpu_layers), as_json)
