"""The commands with their options, and the handling of errors. The other files do the work, imported when needed."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

import tokentrie
from tokentrie.cli import completion, console, helping
from tokentrie.cli.chats import chat_command
from tokentrie.cli.deciding import decide_command
from tokentrie.cli.inspecting import inspect_command
from tokentrie.cli.options import (
    CHAT,
    CHOICE,
    CHOICES,
    CHOICES_FILE,
    CTX,
    DRAFT,
    GPU_LAYERS,
    GRAMMAR,
    JSON,
    JSON_SCHEMA,
    MODEL,
    MOST,
    PATH,
    PAYLOAD,
    PREFIX,
    PROMPT,
    PROMPT_FILE,
    REGEX,
    SEED,
    SET,
    SPEC,
    SUFFIX,
    SYSTEM,
    THREADS,
    examples,
    with_draw_settings,
)
from tokentrie.cli.serving import serve_command

USAGE, RUNTIME, INTERRUPTED = 2, 1, 130

app = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tokentrie {tokentrie.__version__}")
        raise typer.Exit


def _completion(shell: str | None) -> None:
    if shell is not None:
        typer.echo(completion.script(shell))
        raise typer.Exit


@app.callback(
    epilog=examples(
        "demo",
        'choose --prompt "The door is" --choices open,closed',
        "build names.txt -o names.ttrie",
        "choose --help",
    )
)
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    print_completion: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(completion.SHELLS),
            callback=_completion,
            is_eager=True,
            help='Print the completion script of a shell: eval "$(tokentrie --print-completion bash)"',
        ),
    ] = None,
) -> None:
    """Constrained decoding: choose, generate, chat and decide with a language model."""


@app.command(
    epilog=examples(
        "demo",
        "demo --json",
    )
)
def demo(
    model: Annotated[Path | None, MODEL] = None,
    request: Annotated[
        str | None,
        typer.Option("--request", "-r", metavar="TEXT", help="The user's request. Default: an example."),
    ] = None,
    tools: Annotated[int, typer.Option(min=8, max=2000, help="Number of tools.")] = 8,
    names: Annotated[int, typer.Option(min=100, max=2_000_000, help="Number of names.")] = 100_000,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed for the random lists.")] = 0,
    threads: Annotated[int | None, typer.Option(min=1, max=512, help=THREADS.help)] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Watch a model call a tool and pick one of 100,000 names."""
    from tokentrie.cli.demo.demo import run

    run(model, request, tools, names, seed, threads, as_json)


@app.command(
    epilog=examples(
        'choose --prompt "Is the sky blue? " --choices yes,no',
        "choose --prompt-file prompt.txt --set names.ttrie --top 3",
        "choose --input reviews.csv --field text --choices good,bad -o labels.csv",
        'choose --input reviews.csv --template "Good? {text}" -c good,bad --gold label -o r.parquet',
    )
)
def choose(
    model: Annotated[Path | None, MODEL] = None,
    prompt: Annotated[str | None, PROMPT] = None,
    prompt_file: Annotated[Path | None, PROMPT_FILE] = None,
    payload: Annotated[Path | None, PAYLOAD] = None,
    path: Annotated[str | None, PATH] = None,
    set_file: Annotated[Path | None, SET] = None,
    choices: Annotated[str | None, CHOICES] = None,
    choice: Annotated[list[str] | None, CHOICE] = None,
    choices_file: Annotated[Path | None, CHOICES_FILE] = None,
    prefix: Annotated[str, PREFIX] = "",
    suffix: Annotated[str, SUFFIX] = "",
    chat: Annotated[bool, CHAT] = False,
    system: Annotated[str | None, SYSTEM] = None,
    top: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="Report the best N values only, and score only what they need.")
    ] = None,
    beam: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST,
            metavar="WIDTH",
            help="Beam search for large sets: fast, but may miss a better value.",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Minimum probability of a value; below it, none is chosen."),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(
            "--input",
            metavar="ROWS.jsonl|.csv|.parquet",
            help="Choose for every row of a file; - reads JSONL from standard input.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT.csv|.jsonl|.parquet",
            help="Output file with the rows and results; - writes JSONL to standard output.",
        ),
    ] = None,
    field: Annotated[str | None, typer.Option(metavar="NAME", help="Field with the prompt of a row.")] = None,
    template: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help=r"Template of the prompt, with fields such as {text}; \n is a line break."),
    ] = None,
    on_error: Annotated[
        Literal["raise", "skip", "return"],
        typer.Option(help='For an invalid row: stop, skip it, or write an "error" instead of a result.'),
    ] = "raise",
    skip_errors: Annotated[bool, typer.Option("--skip-errors", help="Same as --on-error return.")] = False,
    gold: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Field with the correct label; reports accuracy and a confusion matrix."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="P.svg|P.png", help="Plot the probabilities (needs matplotlib)."),
    ] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Discard existing output and start over.")] = False,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Run on a Ray cluster, from Parquet to a folder of Parquet: HOST:PORT, auto or local.",
        ),
    ] = None,
    ctx: Annotated[int | None, CTX] = None,
    threads: Annotated[int | None, THREADS] = None,
    gpu_layers: Annotated[int, GPU_LAYERS] = 0,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Show the probability of each allowed value after a prompt.

    With --input, each row of a file is written to --output with "choice", "probability", "mass" (the probability of
    any value at all) and "probabilities" (best first, six digits). The output file appears when all rows are done;
    until then NAME.partial collects them. Repeat the command to resume an interrupted run; NAME.run.json records it.
    With --output -, rows go to standard output as they are done, and messages to standard error.
    Names of control tokens are such tokens in --prompt and --template only, never in the text of a row or in a chat.
    """
    from tokentrie.cli.choosing import choose as command
    from tokentrie.cli.choosing.turn import Turn
    from tokentrie.cli.source import Hardware, Source, check_usage, prompt_text

    check_usage(
        {"--prompt": prompt, "--prompt-file": prompt_file, "--input": rows},
        {"--output": output, "--field": field, "--template": template, "--gold": gold}
        | {"--on-error": None if on_error == "raise" else on_error}
        | {"--skip-errors": skip_errors or None, "--restart": restart or None, "--ray": ray},
    )
    if beam is not None and rows is not None:
        raise typer.BadParameter("it goes with --prompt or --prompt-file", param_hint="--beam")
    if skip_errors and on_error == "skip":
        raise typer.BadParameter("--skip-errors keeps faulty rows, --on-error skip does not", param_hint="--on-error")
    source = Source(payload, path, set_file, choices, choice or [], choices_file, prefix, suffix)
    turn, hardware = Turn(chat, system, prefix), Hardware(ctx, threads, gpu_layers)
    if rows is None:
        text = prompt_text(prompt, prompt_file, source)
        command.run(model, text, source, turn, command.ScoringExtent(top, beam, threshold), plot, hardware, as_json)
    else:
        from tokentrie.cli.choosing import dataset

        passing = "return" if skip_errors else on_error
        if ray is not None and threshold is not None:
            raise typer.BadParameter("it does not go with --ray", param_hint="--threshold")
        job = dataset.Job(rows, output, field, template, passing, restart, turn, top, gold, plot, threshold)
        if ray is None:
            with console.redirect_messages(output):
                dataset.run(model, source, job, hardware, as_json)
        else:
            from tokentrie.cli.choosing import cluster

            cluster.run(model, source, job, hardware, ray, as_json)


@app.command(
    epilog=examples(
        'generate --prompt "The door is" --choices open,closed',
        'generate --prompt "Hi" --set names.ttrie --json',
        'generate --prompt "Hi" --payload payload.json --mode sampled --seed 7',
        'generate --prompt "Born on " --regex "(19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]"',
        'generate --prompt "Count: " --grammar arithmetic --json',
        'generate --prompt "Born in " --regex "(19|20)[0-9]{2}" --correct 16 --probability',
        'generate --chat --prompt "Is the sky blue?" --choices Yes,No',
    )
)
@with_draw_settings
def generate(
    model: Annotated[Path | None, MODEL] = None,
    prompt: Annotated[str | None, PROMPT] = None,
    prompt_file: Annotated[Path | None, PROMPT_FILE] = None,
    payload: Annotated[Path | None, PAYLOAD] = None,
    path: Annotated[str | None, PATH] = None,
    set_file: Annotated[Path | None, SET] = None,
    choices: Annotated[str | None, CHOICES] = None,
    choice: Annotated[list[str] | None, CHOICE] = None,
    choices_file: Annotated[Path | None, CHOICES_FILE] = None,
    prefix: Annotated[str, PREFIX] = "",
    suffix: Annotated[str, SUFFIX] = "",
    regex: Annotated[str | None, REGEX] = None,
    grammar: Annotated[str | None, GRAMMAR] = None,
    json_schema: Annotated[str | None, JSON_SCHEMA] = None,
    spec: Annotated[str | None, SPEC] = None,
    chat: Annotated[bool, CHAT] = False,
    system: Annotated[str | None, SYSTEM] = None,
    mode: Annotated[
        Literal["greedy", "sampled"], typer.Option(help="Take the most probable allowed token, or sample.")
    ] = "greedy",
    seed: Annotated[int | None, SEED] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, max=MOST, help="Maximum number of tokens. Default: as many as fit in the context."),
    ] = None,
    end_token: Annotated[
        list[str] | None,
        typer.Option(metavar="TOKEN", help="Token that may end a value: an id, or text that is one token. Repeatable."),
    ] = None,
    after: Annotated[
        Literal["stop", "free"], typer.Option(help="Stop after the value, or continue with free text.")
    ] = "stop",
    correct: Annotated[
        int | None,
        typer.Option(
            min=1, max=4096, metavar="N", help="Sample from the constraint as a whole, with N particles (slower)."
        ),
    ] = None,
    probability: Annotated[
        bool, typer.Option("--probability", help="Also report the probability of the constraint and of the text.")
    ] = False,
    receipt: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a receipt of the allowed tokens at each step, for tokentrie inspect."),
    ] = None,
    receipt_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the key that seals the receipt.")
    ] = None,
    ctx: Annotated[int | None, CTX] = None,
    threads: Annotated[int | None, THREADS] = None,
    gpu_layers: Annotated[int, GPU_LAYERS] = 0,
    draft: Annotated[str | None, DRAFT] = None,
    as_json: Annotated[bool, JSON] = False,
    **settings: float,
) -> None:
    """Generate one allowed value after a prompt.

    A set of values, or a rule: --regex, --grammar or --json-schema; --constraint takes any kind. --json prints the
    parsed value.
    """
    from tokentrie.cli import generate as command
    from tokentrie.cli.choosing.turn import Turn
    from tokentrie.cli.rules import RuleSource
    from tokentrie.cli.source import Hardware, Source, prompt_text

    rules = RuleSource(regex, grammar, json_schema, spec)
    source = Source(payload, path, set_file, choices, choice or [], choices_file, prefix, suffix, rules)
    text = prompt_text(prompt, prompt_file, source)
    if probability and after == "free":
        raise typer.BadParameter("not supported with --after free", param_hint="--probability")
    # Particles are drawn: greedy has no meaning here.
    mode = "sampled" if correct is not None else mode
    draw = command.Draw(mode, settings, seed, max_tokens, end_token or [], after, correct, probability)
    if receipt_key is not None and receipt is None:
        raise typer.BadParameter("a key seals a receipt: give --receipt", param_hint="--receipt-key")
    kept = command.ReceiptTarget(receipt, receipt_key)
    turn = Turn(chat, system, prefix)
    command.run(model, text, turn, source, draw, Hardware(ctx, threads, gpu_layers, draft), kept, as_json)


@app.command(
    epilog=examples(
        "build names.txt -o names.ttrie",
        "build reviews.csv --field label -o labels.ttrie",
        "build names.txt --suffix '\"' --refused bad.jsonl -o quoted.ttrie",
    )
)
def build(
    values: Annotated[
        Path,
        typer.Argument(metavar="VALUES", help="One value per line; .csv, .jsonl or .parquet; or .npy with token ids."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT.ttrie", help="Output file; - writes to standard output.")
    ],
    vocab: Annotated[
        Path | None,
        typer.Option(
            "--vocab", "-m", metavar="M", help="GGUF or tokenizer.json. Default: the vocabulary of the tiny model."
        ),
    ] = None,
    field: Annotated[
        str | None, typer.Option("--field", "--column", metavar="NAME", help="Column with the values.")
    ] = None,
    prefix: Annotated[str, PREFIX] = "",
    suffix: Annotated[str, SUFFIX] = "",
    tokenization: Annotated[
        Literal["canonical", "all"], typer.Option(help="The tokenization of the tokenizer only, or every tokenization.")
    ] = "canonical",
    open_end: Annotated[
        bool, typer.Option("--open-end", help="Allow a last token that extends past the end of the value.")
    ] = False,
    heal: Annotated[
        bool, typer.Option("--heal", help="Allow a first token that begins inside the prefix (token healing).")
    ] = False,
    refused: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl", help="Skip values that the tokenizer refuses, and list them here with the reasons."
        ),
    ] = None,
    memory: Annotated[
        str,
        typer.Option(
            metavar="SIZE", help="Memory for rows, such as 512M; the rest goes to temporary files (in TMPDIR)."
        ),
    ] = "512M",
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Build a .ttrie file from a file of values. It is written whole or not at all."""
    from tokentrie.cli import build as command

    job = command.Job(values, field, prefix, suffix, tokenization, open_end, heal, refused, command.size(memory))
    with console.redirect_messages(output):
        command.run(job, vocab, output, as_json)


# Commands with a file of their own.
app.add_typer(chat_command.app)
app.add_typer(inspect_command.app)
app.add_typer(decide_command.app)
app.add_typer(serve_command.app)


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code: 2 for wrong usage, 1 for other failures, 130 after Ctrl-C.

    Args:
        args: the arguments; those of the process if None.
    """
    if sys.stderr is None:
        # Standard error is closed. A file that a command opens would get its descriptor, and messages would go there.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (lives as long as the process)
    if sys.stdout is None:
        console.say("standard output is closed: nothing was done")
        return RUNTIME
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal cannot show must not make the command fail.
            stream.reconfigure(errors="backslashreplace")
    command = helping.readable(typer.main.get_command(app))
    try:
        completion.prepare()
        # Without arguments the help page is shown.
        args = list(sys.argv[1:] if args is None else args) or ["--help"]
        code = command.main(args=args, prog_name="tokentrie", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        # The program that reads standard output has ended.
        _drop_output()
        return RUNTIME
    except Exception as error:
        code, line = _explain(error, args or [])
        console.say(line)
        try:
            sys.stdout.flush()
        except OSError:
            _drop_output()
        return code
    if code == INTERRUPTED:
        console.say("interrupted")
    return code if isinstance(code, int) else 0


def _drop_output() -> None:
    """Discards the buffer of standard output, so that Python does not fail to write it when it closes the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain(error: Exception, args: Sequence[str]) -> tuple[int, str]:
    """Exit code and message of an error that the user can mend; raises any other error again."""
    match error:
        case tokentrie.errors.OptionError():
            return USAGE, f"{error} (see {_help_of(error, args)})"
        case Exception() if "surrogate" in str(error) and (place := _encoding_problem(args)):
            return USAGE, f"{place} (see {_help_of(error, args)})"
        case tokentrie.TokenTrieError() | UnicodeError():
            return getattr(error, "exit_code", RUNTIME), str(error)
        case OSError():
            return RUNTIME, f"{error.filename}: {error.strerror}" if error.filename else str(error)
    # Wrong usage. Some versions of typer have their own error classes, others use those of click.
    describe = getattr(error, "format_message", None)
    if describe is None:
        raise error
    return getattr(error, "exit_code", USAGE), f"{describe().rstrip('.')} (see {_help_of(error, args)})"


def _help_of(error: Exception, args: Sequence[str]) -> str:
    """The `--help` command for a failed call: for the command of the error, else for the first one in `args`."""
    if path := getattr(getattr(error, "ctx", None), "command_path", None):
        return f"{path} --help"
    commands = getattr(typer.main.get_command(app), "commands", {})
    name = next((arg for arg in args if arg in commands), None)
    return f"tokentrie {name} --help" if name else "tokentrie --help"


def _encoding_problem(args: Sequence[str]) -> str | None:
    """Names the argument that is not UTF-8, and its first invalid byte."""
    for number, arg in enumerate(args):
        place = next((at for at, char in enumerate(arg) if "\udc80" <= char <= "\udcff"), None)
        if place is None:
            continue
        before = args[number - 1] if number and args[number - 1].startswith("-") else ""
        option, equals, _ = arg.partition("=")
        name = option if equals and option.startswith("-") else before or f"argument {number + 1}"
        start = len(option) + 1 if name == option else 0
        name = {"-p": "--prompt"}.get(name, name)
        return f"invalid UTF-8 in {name} at byte {len(arg[start:place].encode('utf-8'))}"
    return None
