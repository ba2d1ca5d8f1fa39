"""The page at `/`: files of the package, which load nothing from elsewhere."""

from __future__ import annotations

import html
from importlib import metadata
from pathlib import Path

from fastapi import FastAPI, Request, Response
from starlette.responses import HTMLResponse
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


#: Links to the project in the page, and the metadata of their addresses, by the name that a visitor reads.
PLACE = "<!-- links -->"
LINKS = {"documentation": "documentation", "repository": "source", "source": "source", "homepage": "home page"}


def project_links() -> str:
    """Links to the documentation and the repository, as the metadata of the installed package name them."""
    links: dict[str, str] = {}
    for line in metadata.metadata("tokentrie").get_all("Project-URL") or ():
        name, _, address = line.partition(",")
        if (shown := LINKS.get(name.strip().lower())) and address.strip().startswith("https://"):
            links.setdefault(shown, html.escape(address.strip()))
    return "".join(f'<a href="{address}" rel="noreferrer">{shown}</a> ' for shown, address in links.items())


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
    links = project_links()
    index = (FOLDER / "index.html").read_text(encoding="utf-8").replace(PLACE, links)

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def page(request: Request) -> Response:
        if links:
            return HTMLResponse(index, headers=HEADERS)
        return await files.get_response("index.html", request.scope)

    app.mount("/page", files)
