"""The page at `/`: files of the package, which load nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Request, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent / "page"
#: Nothing runs that is not a file of ours, nothing is sent elsewhere, and no other page shows this one in a frame.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-cache",  # who has an older version asks with its ETag
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class _Files(StaticFiles):
    """The files of the folder, with their ETags, to GET and HEAD."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file, under the headers of the page."""
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        return response


def show_page(app: FastAPI) -> None:
    """Adds the page to an application: `/`, and its files under `/page`."""
    files = _Files(directory=FOLDER)

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def page(request: Request) -> Response:
        return await files.get_response("index.html", request.scope)

    app.mount("/page", files)
