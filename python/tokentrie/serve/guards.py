"""Checks before any route: keys, sizes, encodings, request ids."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import functools
import hmac
import json
import sys
import time
import uuid
import zlib
from collections.abc import Sequence

import zstandard
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tokentrie.serve.errors import SYSTEM_ONE, WireError
from tokentrie.serve.metrics import Metrics

#: Routes that need no key: the page asks for one, and the routes that it calls are guarded.
OPEN, OPEN_FOLDER = {"/health", "/"}, "/page/"
#: Answers that System One's clients read an id of their own from.
WITH_OWN_ID = {SYSTEM_ONE, "/v1/models"}
#: Routes whose bodies may be as large as uploads.
UPLOADS = (("PUT", "PATCH"), "/v1/constraints/")
#: Most seconds for a body to arrive, and for an upload; a slower one is given up.
SLOWEST, SLOWEST_UPLOAD = 30.0, 600.0
#: Packed bodies of more bytes are unpacked on a thread.
SMALL = 1 << 16


class Guards:
    """Wraps an app. Errors here have the form of those of its routes."""

    def __init__(
        self, app: ASGIApp, *, keys: Sequence[str], max_body: int, max_upload: int, metrics: Metrics, log: bool
    ) -> None:
        self._app, self._keys, self._metrics = app, [key.encode() for key in keys], metrics
        self._max_body, self._max_upload, self._log = max_body, max_upload, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, began, status = scope["path"], time.perf_counter(), 500
        request_id = uuid.uuid4().hex

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                if path.rstrip("/") in WITH_OWN_ID:
                    headers["x-typesafe-request-id"] = request_id
            await send(message)

        self._metrics.running.inc()
        try:
            self._check(scope)
            await self._app(scope, await self._with_body(scope, receive), send_noted)
        except WireError as error:
            await error.response(path)(scope, receive, send_noted)
        finally:
            self._metrics.running.dec()
            # The route, and not the path: names are those of clients.
            known = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(known, str(status)).inc()
            seconds = time.perf_counter() - began
            self._metrics.seconds.labels(known).observe(seconds)
            if self._log:
                said = {"request": request_id, "method": scope["method"], "route": known, "status": status}
                _write({"time": _timestamp(), **said, "seconds": round(seconds, 6)})

    def _check(self, scope: Scope) -> None:
        is_known = scope["path"] in OPEN or scope["path"].startswith(OPEN_FOLDER)
        is_open = scope["method"] == "OPTIONS" or (is_known and scope["method"] in ("GET", "HEAD"))
        if not self._keys or is_open:
            return
        headers = Headers(scope=scope)
        scheme, _, key = headers.get("authorization", "").partition(" ")
        # Anthropic's clients have a header of their own.
        given = (key if scheme.lower() == "bearer" else headers.get("x-api-key", "")).strip().encode()
        # Every key is compared, so that the time reveals nothing.
        if not sum(hmac.compare_digest(given, one) for one in self._keys):
            raise WireError(
                "this server wants `Authorization: Bearer KEY` or `x-api-key: KEY` with one of its keys",
                status=401,
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )

    async def _with_body(self, scope: Scope, receive: Receive) -> Receive:
        """The whole body, unpacked, and no more of it than the limit."""
        if scope["method"] in ("GET", "HEAD", "DELETE", "OPTIONS"):
            return receive
        headers = MutableHeaders(scope=scope)
        encoding = headers.get("content-encoding", "identity").lower()
        if encoding not in ("identity", "gzip", "zstd"):
            raise WireError(f"Content-Encoding {encoding!r}: this server reads gzip and zstd", status=415)
        is_upload = scope["method"] in UPLOADS[0] and scope["path"].startswith(UPLOADS[1])
        limit, seconds = (self._max_upload, SLOWEST_UPLOAD) if is_upload else (self._max_body, SLOWEST)
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > limit:
            raise _too_large(limit)
        try:
            plain = await asyncio.wait_for(_read(receive, limit), seconds)
        except asyncio.TimeoutError:
            raise WireError(f"the body did not come within {seconds:.0f} s", status=408) from None
        if encoding != "identity":
            large = len(plain) > SMALL
            unpack = functools.partial(_decompress, encoding, plain, limit)
            plain = await asyncio.to_thread(unpack) if large else unpack()
        del headers["content-encoding"]
        headers["content-length"] = str(len(plain))
        given = False

        async def receive_again() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": plain, "more_body": False}

        return receive_again


def _timestamp() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")


def _write(said: dict[str, object]) -> None:
    """A line of the log, as a whole; nothing where nobody can read it."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(json.dumps(said) + "\n")
        sys.stderr.flush()


async def _read(receive: Receive, limit: int) -> bytes:
    body = bytearray()
    while (message := await receive())["type"] != "http.disconnect":
        body += message.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return bytes(body)
    raise WireError("the client went away", status=400)


def _decompress(encoding: str, body: bytes, limit: int) -> bytes:
    try:
        if encoding == "gzip":
            reader = zlib.decompressobj(wbits=31)
            plain = reader.decompress(body, limit + 1)
            is_whole = reader.eof
        else:
            packer = zstandard.ZstdDecompressor(max_window_size=1 << 27)
            with packer.stream_reader(body) as stream:
                plain = stream.read(limit + 1)
            is_whole = len(plain) > limit or _is_whole_frame(packer, body)
    except (zlib.error, zstandard.ZstdError) as error:
        raise WireError(f"invalid {encoding} in the body: {error}") from None
    if len(plain) > limit:
        raise _too_large(limit)
    if not is_whole:
        raise WireError(f"invalid {encoding} in the body: it is cut off")
    return plain


def _is_whole_frame(packer: zstandard.ZstdDecompressor, body: bytes) -> bool:
    """Returns True if a frame ends; a stream only stops. The output is known to be within the limit."""
    reader = packer.decompressobj()
    reader.decompress(body)
    return reader.eof


def _too_large(limit: int) -> WireError:
    return WireError(f"the body is larger than {limit:,} bytes", status=413)
