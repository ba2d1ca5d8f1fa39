"""`PUT`, `PATCH`, `GET` and `DELETE` of `/v1/constraints`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from tokentrie import CancelToken
from tokentrie.errors import TimedOutError
from tokentrie.serve.errors import RETRY_AFTER, WireError
from tokentrie.serve.models import Models
from tokentrie.serve.store.changes import SetChange, apply_change
from tokentrie.serve.store.contents import Content
from tokentrie.serve.store.folder import NAME
from tokentrie.serve.store.named import Condition, Entry, Store

PATH = "/v1/constraints"
#: Time limit for making a constraint of an upload, in seconds.
MAKING = 5.0
#: Constraints that are made at once, and those that may wait for it.
MAKERS, MOST_WAITING = 4, 64


def router(store: Store, models: Models) -> APIRouter:
    """The routes of a store, which is closed when the application ends."""
    makers, patching = _Makers(store, models), asyncio.Lock()

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        yield
        store.close()

    routes = APIRouter(lifespan=lifespan)

    @routes.put(PATH + "/{name}", summary="Put a constraint")
    async def put_constraint(request: Request, name: str) -> Response:
        """A set (lines, CSV, JSON, `.ttrie`) or a rule under a name; `If-Match` guards what is there."""
        _check_name(name)
        store.check_changes()
        condition = _condition(request)
        # What cannot be kept is not read.
        condition(store.get(name))
        media, column = request.headers.get("content-type", ""), request.query_params.get("column")
        content, data = await asyncio.to_thread(store.read, media, await request.body(), column)
        await makers.check(request, content)
        entry, is_new = await asyncio.to_thread(store.store_content, name, content, data, condition)
        return JSONResponse(entry.to_json(), 201 if is_new else 200, _headers(entry))

    @routes.patch(PATH + "/{name}", summary="Change a set")
    async def patch(request: Request, name: str, change: SetChange) -> Response:
        """Adds and removes names; running requests keep the set that they began with."""
        store.check_changes()
        condition, served = _condition(request), [one.model for one in models.list_models()]
        # Changes run one after the other, so that only a PUT can come between.
        async with patching:
            while True:
                before = _get_entry(store, name)
                condition(before)
                found = await asyncio.to_thread(apply_change, before.content, change, served, is_kept=store.is_kept)
                await makers.check(request, found.content)
                try:
                    entry, _ = await asyncio.to_thread(
                        store.store_content, name, found.content, found.data, _still(before)
                    )
                except _OtherError:
                    continue
                said = {"added": found.added, "removed": found.removed}
                return JSONResponse(entry.to_json() | said, headers=_headers(entry))

    @routes.get(PATH + "/{name}", summary="A constraint")
    async def get(request: Request, name: str) -> Response:
        """Returns the content of a name, with its version and its ETag."""
        entry = _get_entry(store, name)
        known = _tags(request, "if-none-match")
        if known is not None and ("*" in known or _tag(entry) in {one.removeprefix("W/") for one in known}):
            return Response(None, 304, _headers(entry))
        return JSONResponse(entry.to_json(), headers=_headers(entry))

    @routes.get(PATH, summary="Constraints")
    async def list_all() -> dict[str, Any]:
        """All constraints that were put."""
        return {"object": "list", "data": [entry.to_json() for entry in store.list_entries()]}

    @routes.delete(PATH + "/{name}", summary="Delete a constraint")
    async def delete(request: Request, name: str) -> Response:
        """Forgets what stands under a name."""
        await asyncio.to_thread(store.remove, name, _condition(request))
        return Response(None, 204)

    return routes


def _get_entry(store: Store, name: str) -> Entry:
    if (entry := store.get(name)) is None:
        raise WireError(f"unknown constraint {name!r}: GET /v1/constraints lists them", status=404, param="name")
    return entry


class _OtherError(Exception):
    """The name has got another content meanwhile."""


def _still(before: Entry) -> Condition:
    def check(entry: Entry | None) -> None:
        if entry is not before:
            raise _OtherError

    return check


def _check_name(name: str) -> None:
    if NAME.fullmatch(name) is None:
        message = (
            f"invalid name {name[:200]!r}: expected letters, digits, '.', '_' and '-', at most 128, "
            "the first a letter or digit, without '..'"
        )
        raise WireError(message, param="name")


class _Makers:
    """Makes some constraints at once, so that there is time for requests."""

    def __init__(self, store: Store, models: Models) -> None:
        self._store, self._models = store, models
        self._free, self._waiting = asyncio.Semaphore(MAKERS), 0

    async def check(self, request: Request, content: Content) -> None:
        """Raises what is wrong with it. A client that goes ends it."""
        if self._waiting >= MOST_WAITING:
            again = {"Retry-After": RETRY_AFTER}
            raise WireError(f"{MOST_WAITING} uploads are already waiting", status=429, code="queue_full", headers=again)
        self._waiting += 1
        try:
            async with self._free:
                await self._models.first.call(request, lambda *, cancel: self._check(content, cancel))
        finally:
            self._waiting -= 1

    def _check(self, content: Content, cancel: CancelToken) -> None:
        try:
            self._store.check(content, timeout=MAKING, cancel=cancel)
        except TimedOutError:
            if any(one.model.engine is not None and one.model.engine.queued for one in self._models.list_models()):
                raise
            message = f"the {content.kind} takes more than {MAKING:.0f} s to make: make it smaller"
            raise WireError(message) from None


def _tag(entry: Entry) -> str:
    return f'"{entry.content.digest}"'


def _headers(entry: Entry) -> dict[str, str]:
    return {"ETag": _tag(entry)}


def _tags(request: Request, header: str) -> set[str] | None:
    """The tags of a header; None where it is not there."""
    given = request.headers.getlist(header)
    return {tag.strip() for line in given for tag in line.split(",")} if given else None


def _condition(request: Request) -> Condition:
    """Returns the condition that `If-Match` and `If-None-Match` set for a change."""
    match, none = _tags(request, "if-match"), _tags(request, "if-none-match")

    def check(entry: Entry | None) -> None:
        if match is not None and (entry is None or not {"*", _tag(entry)} & match):
            raise _precondition_error("If-Match", entry)
        if none is not None and entry is not None and {"*", _tag(entry)} & {one.removeprefix("W/") for one in none}:
            raise _precondition_error("If-None-Match", entry)

    return check


def _precondition_error(header: str, entry: Entry | None) -> WireError:
    now = "there is none" if entry is None else f"it is {_tag(entry)}"
    return WireError(
        f"{header}: the constraint is another than expected: {now}", status=412, code="precondition_failed"
    )
