"""What is looked at before a route: keys, sizes, encodings, request ids."""

from __future__ import annotations

import asyncio
import hmac
import time
import uuid
import zlib
from collections.abc import Sequence

import zstandard
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tokentrie.serve.errors import SYSTEM_ONE, WireError
from tokentrie.serve.metrics import Metrics

#: What needs no key.
OPEN = {"/health", "/"}
#: Answers that System One's clients read an id of their own from.
WITH_OWN_ID = {SYSTEM_ONE, "/v1/models"}
#: A body that comes more slowly than this is given up, in seconds.
SLOWEST = 30.0


class Guards:
    """Wraps an app. Errors here have the form of those of its routes."""

    def __init__(self, app: ASGIApp, *, keys: Sequence[str], max_body: int, metrics: Metrics) -> None:
        self._app, self._keys, self._max_body, self._metrics = app, [key.encode() for key in keys], max_body, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, began, status = scope["path"], time.perf_counter(), 500
        request_id = uuid.uuid4().hex

        async def sent(message: Message) -> None:
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
            await self._app(scope, await self._with_body(scope, receive), sent)
        except WireError as error:
            await error.response(path)(scope, receive, sent)
        finally:
            self._metrics.running.dec()
            known = path if "endpoint" in scope else "other"
            self._metrics.requests.labels(known, str(status)).inc()
            self._metrics.seconds.labels(known).observe(time.perf_counter() - began)

    def _check(self, scope: Scope) -> None:
        is_open = scope["method"] == "OPTIONS" or (scope["path"] in OPEN and scope["method"] in ("GET", "HEAD"))
        if not self._keys or is_open:
            return
        scheme, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
        # All keys are looked at, so that the time tells nothing.
        given = key.strip().encode()
        if not (sum(hmac.compare_digest(given, one) for one in self._keys) and scheme.lower() == "bearer"):
            raise WireError(
                "this server wants `Authorization: Bearer KEY` with one of its keys",
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
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._max_body:
            raise self._too_large()
        try:
            body = await asyncio.wait_for(self._read(receive), SLOWEST)
        except asyncio.TimeoutError:
            raise WireError(f"the body did not come within {SLOWEST:.0f} s", status=408) from None
        plain = self._unpacked(encoding, body)
        del headers["content-encoding"]
        headers["content-length"] = str(len(plain))
        given = False

        async def again() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": plain, "more_body": False}

        return again

    async def _read(self, receive: Receive) -> bytes:
        body = bytearray()
        while (message := await receive())["type"] != "http.disconnect":
            body += message.get("body", b"")
            if len(body) > self._max_body:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(body)
        raise WireError("the client went away", status=400)

    def _unpacked(self, encoding: str, body: bytes) -> bytes:
        if encoding == "identity":
            return body
        try:
            if encoding == "gzip":
                reader = zlib.decompressobj(wbits=31)
                plain = reader.decompress(body, self._max_body + 1)
                is_whole = reader.eof
            else:
                with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(body) as stream:
                    plain = stream.read(self._max_body + 1)
                is_whole = True
        except (zlib.error, zstandard.ZstdError) as error:
            raise WireError(f"the body is no {encoding}: {error}") from None
        if len(plain) > self._max_body:
            raise self._too_large()
        if not is_whole:
            raise WireError(f"the body breaks off: it is no whole {encoding}")
        return plain

    def _too_large(self) -> WireError:
        return WireError(f"the body is larger than {self._max_body:,} bytes", status=413)
