"""`tokentrie serve`: opens models, listens, and stops in order."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import typer

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.lines import as_text
from tokentrie.cli.source import Hardware

TINY = "tiny"
#: Most seconds that calls take to end after they are told to.
SLOWEST_END = 10


@dataclass(frozen=True)
class Limits:
    """Limits on calls at once and on time."""

    slots: int
    max_queue: int
    precise: bool
    prefill_chunk: int
    tools_in: str
    show_schema: bool
    cache_type: str | None
    flash_attention: bool | None
    batch: int
    max_body: int
    timeout: float | None
    drain: int
    max_upload: int
    max_sets: int
    max_sets_bytes: int
    memory_growth: int


@dataclass(frozen=True)
class Tls:
    """The files of a certificate and of its key."""

    certificate: Path | None
    key: Path | None

    @classmethod
    def from_options(cls, certificate: Path | None, key: Path | None) -> Tls:
        """Returns the checked options, before a model is loaded.

        Raises:
            TokenTrieError: there is no certificate, or no key that is its own. OSError where it cannot be read.
        """
        for path in filter(None, (certificate, key)):
            console.read(path)
        if certificate is not None:
            import ssl

            try:
                # A key with a password is refused: perhaps nobody is there to type it.
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
            except ssl.SSLError as error:
                problem = "no certificate in PEM with its key"
                raise tokentrie.TokenTrieError(f"{certificate}: {problem}: {error.reason or error}") from None
        return cls(certificate, key)


def parse_model(given: str) -> tuple[str, Path | None]:
    """A model under its name: NAME=PATH, a path, or `tiny`, which is in the package."""
    if given == TINY:
        return TINY, None
    name, equals, path = given.partition("=")
    if equals and name and path and not Path(given).exists():
        return name, Path(path)
    return Path(given).stem, Path(given)


def response_templates(given: list[str], names: list[str]) -> dict[str, tokentrie.ResponseTemplate]:
    """Returns the response templates of files by the names of their models: NAME=PATH, or a path for the only model."""
    found: dict[str, tokentrie.ResponseTemplate] = {}
    for one in given:
        name, equals, path = one.partition("=")
        if not (equals and name in names):
            name, path = names[0], one
            if len(names) > 1:
                problem = f"{one}: there are several models: give NAME=FILE with one of {', '.join(names)}"
                raise typer.BadParameter(problem, param_hint="--response-template")
        if name in found:
            raise typer.BadParameter(f"{name} has two of them", param_hint="--response-template")
        text = as_text(console.read(Path(path)), Path(path))
        try:
            found[name] = tokentrie.ResponseTemplate(text)
        except tokentrie.TokenTrieError as error:
            raise typer.BadParameter(f"{path}: {error}", param_hint="--response-template") from None
    return found


def keys_of(path: Path | None) -> list[str]:
    """The keys of a file, one a line."""
    if path is None:
        return []
    lines = [line.strip() for line in as_text(console.read(path), path).splitlines()]
    keys = [line for line in lines if line and not line.startswith("#")]
    if not keys:
        raise typer.BadParameter(f"{path} has no key", param_hint="--api-key-file")
    return keys


def secret_of(path: Path | None) -> bytes | None:
    """Returns the content of a file, to the last byte."""
    if path is None:
        return None
    secret = console.read(path)
    if not secret:
        raise typer.BadParameter(f"{path} is empty", param_hint="--receipt-key")
    return secret


def is_local(host: str) -> bool:
    """Returns True if only this machine reaches an address."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def run(
    models: list[tuple[str, Path | None]],
    host: str,
    port: int,
    keys: list[str],
    cors: str | None,
    sets: Path | None,
    slot_files: Path | None,
    receipt_key: bytes | None,
    limits: Limits,
    hardware: Hardware,
    tls: Tls,
    log: bool,
    templates: dict[str, tokentrie.ResponseTemplate],
) -> None:
    """Serves until it is told to stop."""
    try:
        import uvicorn

        from tokentrie.serve.app import Settings, create_app
        from tokentrie.serve.models import Cache, Calls, ServedModel
        from tokentrie.serve.store import Quota
    except ImportError as error:
        raise tokentrie.errors.OptionError(
            f"`tokentrie serve` needs more: pip install 'tokentrie[serve]' ({error})"
        ) from None
    models = models or [(TINY, None)]
    if again := [name for number, (name, _) in enumerate(models) if name in {one for one, _ in models[:number]}]:
        raise typer.BadParameter(
            f"two models are named {again[0]!r}: give names, as in NAME=PATH", param_hint="--model"
        )
    listening = _listening(host, port)
    cache = Cache(limits.cache_type, limits.flash_attention, limits.batch)  # type: ignore[arg-type]
    calls = Calls(limits.slots, limits.max_queue, limits.precise, limits.prefill_chunk, cache, hardware.draft)
    opened = [
        (name, calls.open(path, hardware.n_ctx, hardware.n_gpu_layers, hardware.n_threads, templates.get(name)))
        for name, path in models
    ]
    served = [
        ServedModel(
            name,
            model,
            limits.timeout,
            receipt_key=receipt_key,
            tools_in=limits.tools_in,
            show_schema=limits.show_schema,
        )
        for name, model in opened
    ]
    threads = calls.threads(len(served))
    quota = Quota(limits.max_sets, limits.max_sets_bytes)
    settings = Settings(
        keys,
        limits.max_body,
        cors,
        threads,
        sets,
        limits.max_upload,
        quota,
        log,
        slot_files=slot_files,
        memory_growth=limits.memory_growth,
    )
    app = create_app(served, settings)

    class Server(uvicorn.Server):
        """Says where it listens, and ends by itself at the signals that end it."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            shown = f"[{host}]" if ":" in host else host
            print(
                f"listening on http{'s' if tls.certificate else ''}://{shown}:{listening.getsockname()[1]}", flush=True
            )

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # Streams that still run then end with an error that says why.
            asyncio.get_running_loop().call_later(limits.drain, app.state.models.stop)
            await super().shutdown(sockets)

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            def stop(number: int, frame: FrameType | None) -> None:
                self.handle_exit(number, frame)

            before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=limits.drain + SLOWEST_END,
        server_header=False,
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=64 << 10,
        ssl_certfile=tls.certificate,
        ssl_keyfile=tls.key,
    )
    Server(config).run(sockets=[listening])


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
        # Accepted connections inherit the option: without it an answer waits 40 ms until the client confirms its head.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        raise OSError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
