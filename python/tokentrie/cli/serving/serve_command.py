"""The command `tokentrie serve` with its options."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from tokentrie.cli.options import CTX, DRAFT, GPU_LAYERS, MOST, THREADS, examples
from tokentrie.cli.serving.config import WithConfig


class CacheType(str, enum.Enum):
    """Numbers of keys and values."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    Q8_0 = "q8_0"
    Q5_0 = "q5_0"
    Q4_0 = "q4_0"


class ToolsIn(str, enum.Enum):
    """Place in the prompt that describes the tools."""

    AUTO = "auto"
    SYSTEM = "system"
    TEMPLATE = "template"


app = typer.Typer(rich_markup_mode=None)

MODEL = typer.Option(
    "--model", "-m", metavar="[NAME=]M.gguf", help="A model, under a name if one is given. May be repeated."
)
KEY = typer.Option("--api-key", metavar="KEY", help="A key that requests must bring. May be repeated.")
SETS = typer.Option(metavar="FOLDER", help="Folder of uploaded constraints; without it they are kept in memory.")
SLOT_FILES = typer.Option(
    metavar="FOLDER", help="Folder in which POST /slots/0 saves and restores beginnings of prompts."
)
TOOLS_IN = typer.Option(help="Place that describes the tools; auto is system for a template that shows none.")
RESPONSE_TEMPLATE = typer.Option(
    metavar="[NAME=]FILE",
    help="A response template, by which the replies of a model are read: JSON of it, or a tokenizer_config.json. May be"
    " repeated, with the name of a model where there are several.",
)
NO_SHOW_SCHEMA = typer.Option(
    "--no-show-schema", help="Show no model the JSON Schema of its reply, unless a request asks for it."
)
CONFIG = typer.Option(
    "--config",
    metavar="FILE.toml",
    help="These options from a file, named as here without the dashes; those given here win over it.",
)
CACHE_TYPE = typer.Option(help="Numbers of keys and values; without it f16, or f32 with --precise.")
KEY_FILE = typer.Option("--api-key-file", metavar="FILE", help="A file of keys, one a line.")


@app.command(
    cls=WithConfig,
    epilog=examples("serve", "serve --model small=model.gguf --port 9000 --slots 8", "serve --api-key-file keys.txt"),
)
def serve(
    model: Annotated[list[str] | None, MODEL] = None,
    config: Annotated[Path | None, CONFIG] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
    api_key: Annotated[list[str] | None, KEY] = None,
    api_key_file: Annotated[Path | None, KEY_FILE] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Listen at a public address without a key.")] = False,
    slots: Annotated[int, typer.Option(min=1, max=128, help="Calls that run at once.")] = 4,
    max_queue: Annotated[int, typer.Option(min=0, max=100_000, help="Calls that may wait for a slot.")] = 256,
    precise: Annotated[
        bool, typer.Option("--precise", help="No answer depends on what runs beside it, to the last bit. Slower.")
    ] = False,
    prefill_chunk: Annotated[
        int,
        typer.Option(
            min=1, metavar="TOKENS", help="Share of long prompts in a forward pass that short replies are in, too."
        ),
    ] = 64,
    batch: Annotated[int, typer.Option(min=1, max=MOST, metavar="TOKENS", help="Tokens of a forward pass.")] = 512,
    cache_type: Annotated[CacheType | None, CACHE_TYPE] = None,
    flash_attention: Annotated[
        bool | None, typer.Option("--flash-attention/--no-flash-attention", help="Else llama.cpp chooses.")
    ] = None,
    tools_in: Annotated[ToolsIn, TOOLS_IN] = ToolsIn.AUTO,
    response_template: Annotated[list[str] | None, RESPONSE_TEMPLATE] = None,
    no_show_schema: Annotated[bool, NO_SHOW_SCHEMA] = False,
    max_body: Annotated[int, typer.Option(min=1024, metavar="BYTES", help="The largest request.")] = 16 << 20,
    sets: Annotated[Path | None, SETS] = None,
    slot_save_path: Annotated[Path | None, SLOT_FILES] = None,
    max_upload: Annotated[int, typer.Option(min=1024, metavar="BYTES", help="The largest upload.")] = 256 << 20,
    max_sets: Annotated[int, typer.Option(min=0, max=100_000, help="Constraints that are kept.")] = 1000,
    max_sets_bytes: Annotated[
        int, typer.Option(min=0, metavar="BYTES", help="The size of all constraints that are kept.")
    ] = 4 << 30,
    memory_growth: Annotated[
        int, typer.Option(min=0, metavar="BYTES", help="Beyond it, what was worked out for requests is forgotten.")
    ] = 256 << 20,
    timeout: Annotated[float | None, typer.Option(min=0, metavar="SECONDS", help="The longest call.")] = None,
    drain: Annotated[int, typer.Option(min=0, metavar="SECONDS", help="Time for running calls after TERM.")] = 30,
    receipt_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Receipts are sealed with what this holds.")
    ] = None,
    cors: Annotated[str | None, typer.Option(metavar="ORIGIN", help="A page that may ask.")] = None,
    log: Annotated[
        bool, typer.Option("--log", help="A line of JSON for each answer, on standard error, without its text.")
    ] = False,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE.pem", help="Serve https with this certificate.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE.pem", help="Its key, if that is elsewhere.")] = None,
    ctx: Annotated[int | None, CTX] = None,
    threads: Annotated[int | None, THREADS] = None,
    gpu_layers: Annotated[int, GPU_LAYERS] = 0,
    draft: Annotated[str | None, DRAFT] = None,
) -> None:
    """Answer chats, completions, responses and decisions over HTTP; keep sets and other constraints by name.

    Needs `pip install tokentrie[serve]`. Prints one line when it listens. It stops at Ctrl-C and TERM.
    """
    from tokentrie.cli.serving import serve as command
    from tokentrie.cli.source import Hardware

    named = [command.parse_model(one) for one in model or []]
    keys = [*(api_key or []), *command.keys_of(api_key_file)]
    if "" in keys:
        raise typer.BadParameter("a key is empty", param_hint="--api-key")
    if not keys and not insecure and not command.is_local(host):
        problem = f"{host} may be reached by others: give --api-key, or --insecure to serve without one"
        raise typer.BadParameter(problem, param_hint="--host")
    limits = command.Limits(
        slots,
        max_queue,
        precise,
        prefill_chunk,
        tools_in.value,
        not no_show_schema,
        cache_type and cache_type.value,
        flash_attention,
        batch,
        max_body,
        timeout,
        drain,
        max_upload,
        max_sets,
        max_sets_bytes,
        memory_growth,
    )
    secret = command.secret_of(receipt_key)
    if tls_key is not None and tls_cert is None:
        raise typer.BadParameter("it goes with --tls-cert", param_hint="--tls-key")
    templates = command.response_templates(response_template or [], [name for name, _ in named] or [command.TINY])
    tls, hardware = command.Tls.from_options(tls_cert, tls_key), Hardware(ctx, threads, gpu_layers, draft)
    command.run(named, host, port, keys, cors, sets, slot_save_path, secret, limits, hardware, tls, log, templates)
