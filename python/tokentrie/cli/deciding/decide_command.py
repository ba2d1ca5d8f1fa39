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
    help='Object with "questions" and options, as text or a file; - reads standard input.',
)
ROWS = typer.Option(
    "--input",
    metavar="ROWS.jsonl|.csv|.parquet",
    help="Answer for every row of a file; - reads JSONL from standard input.",
)
FIELD = typer.Option(metavar="NAME", help="Field with the state of a row. Default: the whole row, as JSON.")
TEMPLATE = typer.Option(metavar="TEXT", help=r"Template of the state, with fields such as {text}; \n is a line break.")


@app.command(
    epilog=examples(
        "decide --questions questions.json --state 'The lamp is on.'",
        "decide --questions questions.json --state-file letter.txt --json",
        "decide -q questions.json --input letters.jsonl --field text -o answers.csv",
        """decide -q '{"questions": {"on": {"type": "predicate"}}}' --state 'The lamp is on.'""",
        "decide -q questions.json --input known.csv --field text --gold on=lit --calibrate on.json",
        "decide -q questions.json --input known.csv --field text --gold on=lit --diagnose",
    )
)
def decide(
    questions: Annotated[str, QUESTIONS],
    model: Annotated[Path | None, MODEL] = None,
    state: Annotated[str | None, typer.Option(metavar="TEXT", help="Text that the questions are about.")] = None,
    state_file: Annotated[
        Path | None, typer.Option("--state-file", metavar="FILE", help="File with the state; - reads standard input.")
    ] = None,
    json_state: Annotated[
        bool, typer.Option("--json-state", help="The state is JSON: data, or a list of messages.")
    ] = False,
    calibration: Annotated[
        Path | None,
        typer.Option(metavar="C.json", help="Calibration written by --calibrate; corrects the probabilities."),
    ] = None,
    order: Annotated[
        Literal["given", "independent", "balanced"] | None,
        typer.Option(help="Order of the listed options. Default for this and the options below: the questions file."),
    ] = None,
    order_confidence: Annotated[
        float | None,
        typer.Option(metavar="P", help="With balanced orders: stop when the winner is certain with this probability."),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(metavar="P", help="Give no answer if the largest probability is below this.")
    ] = None,
    target_accuracy: Annotated[
        float | None,
        typer.Option(metavar="P", help="With --calibration: give no answer below the threshold for this accuracy."),
    ] = None,
    escalate: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Think before answering where the two best options differ by less than this; with --input, for at "
            "most this share of each batch of rows (up to 32).",
        ),
    ] = None,
    think_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum number of tokens of a thought. Default: 64.")
    ] = None,
    out_of_scope: Annotated[
        bool,
        typer.Option("--out-of-scope", help="Report the probability that a state has nothing to do with the question."),
    ] = False,
    max_rows: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="With thousands of options: maximum number of rows of logits to read. Default: 2,048."
        ),
    ] = None,
    calibrate: Annotated[
        Path | None,
        typer.Option(metavar="C.json", help="Fit a calibration on rows with known answers, and write it here."),
    ] = None,
    gold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUESTION=FIELD",
            help="With --calibrate or --diagnose: field with the correct answer. Default for --calibrate: the "
            "name of the question. Repeatable.",
        ),
    ] = None,
    diagnose: Annotated[
        bool,
        typer.Option("--diagnose", help="Compare readouts and prompts on 20 rows."),
    ] = False,
    rows: Annotated[Path | None, ROWS] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT.csv|.jsonl|.parquet",
            help="Output file with the rows and answers; - writes JSONL to standard output.",
        ),
    ] = None,
    field: Annotated[str | None, FIELD] = None,
    template: Annotated[str | None, TEMPLATE] = None,
    on_error: Annotated[
        Literal["raise", "skip", "return"],
        typer.Option(help='For an invalid row: stop, skip it, or write an "error" instead of answers.'),
    ] = "raise",
    restart: Annotated[bool, typer.Option("--restart", help="Discard existing output and start over.")] = False,
    ctx: Annotated[int | None, CTX] = None,
    threads: Annotated[int | None, THREADS] = None,
    gpu_layers: Annotated[int, GPU_LAYERS] = 0,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Answer typed questions, with the probability of every option.

    The questions are about one state, or about every row of a file.

    The file of questions is JSON, such as {"questions": {"on": {"type": "predicate"}, "colour": {"type": "choice",
    "options": ["red", "blue"]}, "size": {"type": "score", "levels": ["small", "large"]}}}, with the options of
    Model.decide beside them: "permute", "prior", "threshold", "readout", ....

    --calibrate fits a temperature and a bias for each option on the rows of --input, evaluates them on held-out rows,
    and writes them with fingerprints of the model and the questions. Rows without a correct answer are skipped. Use a
    few hundred rows; the minimum is ten.

    --diagnose compares prompts on the first 20 rows of --input: each readout, with and without a prefix, the question
    after or before the state, and with examples if correct answers are given. It reports the total probability of the
    options and the accuracy.
    """
    from tokentrie.cli.deciding import dataset, decide
    from tokentrie.cli.rows.loop import Job
    from tokentrie.cli.source import Hardware, check_usage

    if diagnose and calibrate is not None:
        raise typer.BadParameter("--diagnose excludes --calibrate", param_hint="--diagnose")
    if calibrate is None and not diagnose:
        about: dict[str, object] = {"--state": state, "--state-file": state_file, "--input": rows}
        of_rows: dict[str, object] = {"--output": output, "--field": field, "--template": template}
        of_rows |= {"--on-error": None if on_error == "raise" else on_error, "--restart": restart or None}
        check_usage(about, of_rows)
        if gold:
            raise typer.BadParameter("it goes with --calibrate or --diagnose", param_hint="--gold")
    else:
        answers: dict[str, object] = {"--state": state, "--state-file": state_file, "--json-state": json_state or None}
        answers |= {"--output": output, "--on-error": None if on_error == "raise" else on_error}
        answers |= {"--restart": restart or None, "--calibration": calibration}
        answers |= {
            "--order": order if diagnose else None,
            "--order-confidence": order_confidence if diagnose else None,
        }
        answers |= {"--threshold": threshold, "--target-accuracy": target_accuracy, "--escalate": escalate}
        answers |= {"--think-tokens": think_tokens, "--out-of-scope": out_of_scope or None, "--max-rows": max_rows}
        if astray := [name for name, value in answers.items() if value is not None]:
            option = "--diagnose" if diagnose else "--calibrate"
            raise typer.BadParameter(f"{option} asks about rows and writes no answers", param_hint=astray)
        if rows is None:
            problem = "--diagnose needs rows" if diagnose else "--calibrate needs rows whose answers are known"
            raise typer.BadParameter(problem, param_hint="--input")
    given: dict[str, object] = {"order": order, "order_confidence": order_confidence, "threshold": threshold}
    given |= {"target_accuracy": target_accuracy, "escalate": escalate, "think_tokens": think_tokens}
    given |= {"out_of_scope": out_of_scope or None, "max_rows": max_rows}
    options = {name: value for name, value in given.items() if value is not None}
    hardware = Hardware(ctx, threads, gpu_layers)
    if rows is not None and (diagnose or calibrate is not None):
        from tokentrie.cli.rows.input import Prompts

        prompts = None if field is None and template is None else Prompts(field, template)
    if diagnose:
        from tokentrie.cli.deciding import diagnose as diagnosis

        assert rows is not None
        diagnosis.run(model, questions, rows, prompts, _fields(gold or []), hardware, as_json)
    elif calibrate is not None:
        from tokentrie.cli.deciding import calibrate as command

        assert rows is not None
        with console.redirect_messages(calibrate):
            command.run(model, questions, rows, prompts, _fields(gold or []), calibrate, options, hardware, as_json)
    elif rows is None:
        decide.run(model, questions, state, state_file, json_state, calibration, options, hardware, as_json)
    else:
        if json_state:
            raise typer.BadParameter("a row without --field and --template is JSON already", param_hint="--json-state")
        job = Job(rows, output, field, template, on_error, restart)
        with console.redirect_messages(output):
            dataset.run(model, questions, calibration, options, job, hardware, as_json)


def _fields(gold: list[str]) -> dict[str, str]:
    """The fields with the right answers, by question."""
    fields = {}
    for one in gold:
        name, equals, of = one.partition("=")
        if not (name and equals and of) or name in fields:
            raise typer.BadParameter(f"{one!r}: write QUESTION=FIELD, once for a question", param_hint="--gold")
        fields[name] = of
    return fields
