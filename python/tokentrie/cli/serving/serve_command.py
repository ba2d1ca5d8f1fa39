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

MODEL = typer.Option("--model", "-m", metavar="[NAME=]M.gguf", help="Model, with an optional name. Repeatable.")
KEY = typer.Option("--api-key", metavar="KEY", help="API key that requests must send. Repeatable.")
SETS = typer.Option(metavar="FOLDER", help="Folder for uploaded constraints. Default: memory.")
SLOT_FILES = typer.Option(metavar="FOLDER", help="Folder in which POST /slots/0 saves and restores prompt prefixes.")
TOOLS_IN = typer.Option(
    help="Where the tools are described; auto: the template, or system if the template has no place for them."
)
RESPONSE_TEMPLATE = typer.Option(
    metavar="[NAME=]FILE",
    help="Response template by which the replies of a model are parsed: JSON, or a tokenizer_config.json. Repeatable,"
    " with the name of a model if there are several.",
)
NO_SHOW_SCHEMA = typer.Option(
    "--no-show-schema", help="Do not show the JSON Schema of a reply to the model, unless a request asks for it."
)
CONFIG = typer.Option(
    "--config",
    metavar="FILE.toml",
    help="File with these options, named without the dashes; the command line takes precedence.",
)
CACHE_TYPE = typer.Option(help="Type of keys and values in the KV cache. Default: f16, or f32 with --precise.")
KEY_FILE = typer.Option("--api-key-file", metavar="FILE", help="File with one API key per line.")


@app.command(
    cls=WithConfig,
    epilog=examples("serve", "serve --model small=model.gguf --port 9000 --slots 8", "serve --api-key-file keys.txt"),
)
def serve(
    model: Annotated[list[str] | None, MODEL] = None,
    config: Annotated[Path | None, CONFIG] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = 8080,
    api_key: Annotated[list[str] | None, KEY] = None,
    api_key_file: Annotated[Path | None, KEY_FILE] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Allow a public address without an API key.")] = False,
    slots: Annotated[int, typer.Option(min=1, max=128, help="Number of concurrent calls.")] = 4,
    max_queue: Annotated[int, typer.Option(min=0, max=100_000, help="Number of calls that may wait for a slot.")] = 256,
    precise: Annotated[
        bool, typer.Option("--precise", help="Make answers independent of concurrent calls, bit for bit. Slower.")
    ] = False,
    prefill_chunk: Annotated[
        int,
        typer.Option(
            min=1, metavar="TOKENS", help="Maximum number of prompt tokens in a forward pass that also decodes replies."
        ),
    ] = 64,
    batch: Annotated[
        int, typer.Option(min=1, max=MOST, metavar="TOKENS", help="Maximum number of tokens of a forward pass.")
    ] = 512,
    cache_type: Annotated[CacheType | None, CACHE_TYPE] = None,
    flash_attention: Annotated[
        bool | None, typer.Option("--flash-attention/--no-flash-attention", help="Default: llama.cpp decides.")
    ] = None,
    tools_in: Annotated[ToolsIn, TOOLS_IN] = ToolsIn.AUTO,
    response_template: Annotated[list[str] | None, RESPONSE_TEMPLATE] = None,
    no_show_schema: Annotated[bool, NO_SHOW_SCHEMA] = False,
    max_body: Annotated[int, typer.Option(min=1024, metavar="BYTES", help="Maximum size of a request.")] = 16 << 20,
    sets: Annotated[Path | None, SETS] = None,
    slot_save_path: Annotated[Path | None, SLOT_FILES] = None,
    max_upload: Annotated[int, typer.Option(min=1024, metavar="BYTES", help="Maximum size of an upload.")] = 256 << 20,
    max_sets: Annotated[int, typer.Option(min=0, max=100_000, help="Maximum number of stored constraints.")] = 1000,
    max_sets_bytes: Annotated[
        int, typer.Option(min=0, metavar="BYTES", help="Maximum total size of stored constraints.")
    ] = 4 << 30,
    memory_growth: Annotated[
        int, typer.Option(min=0, metavar="BYTES", help="Growth at which cached masks and constraints are dropped.")
    ] = 256 << 20,
    timeout: Annotated[float | None, typer.Option(min=0, metavar="SECONDS", help="Maximum duration of a call.")] = None,
    drain: Annotated[
        int, typer.Option(min=0, metavar="SECONDS", help="Time to finish running calls after SIGTERM.")
    ] = 30,
    receipt_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the key that seals receipts.")
    ] = None,
    cors: Annotated[
        str | None, typer.Option(metavar="ORIGIN", help="Origin that may send requests from a browser.")
    ] = None,
    log: Annotated[
        bool, typer.Option("--log", help="Log each response as a line of JSON on standard error, without its text.")
    ] = False,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE.pem", help="Serve https with this certificate.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE.pem", help="Private key, if in another file.")] = None,
    ctx: Annotated[int | None, CTX] = None,
    threads: Annotated[int | None, THREADS] = None,
    gpu_layers: Annotated[int, GPU_LAYERS] = 0,
    draft: Annotated[str | None, DRAFT] = None,
) -> None:
    """Serve chats, completions, responses and decisions over HTTP.

    Stores sets and other constraints by name. Needs `pip install tokentrie[serve]`. Prints a line when it is ready, and
    stops on Ctrl-C or SIGTERM.
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
