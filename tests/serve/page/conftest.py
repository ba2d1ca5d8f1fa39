"""A real browser, and pages in it that must not complain."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from serve.page.views import View
from serve.server import Server, serving

pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("--slots", "4", key=None) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    driver = pytest.importorskip("playwright.sync_api", reason="pip install playwright axe-playwright-python")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    if (path := next(filter(None, map(shutil.which, names)), None)) is None:
        pytest.skip("there is no Chromium on PATH")
    # A sandbox needs a user of its own, which a container may lack.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=options)
        yield browser
        browser.close()


@pytest.fixture
def view(browser: Any) -> Iterator[Callable[..., View]]:
    """Opens a view of a server's page. At the end its console must be empty, but for what a test forgives."""
    opened: list[View] = []

    def show(server: Server, name: str = "decide", **context: Any) -> View:
        opened.append(View(browser.new_context(**context), server.port, name))
        return opened[-1]

    yield show
    for one in opened:
        one.settle()
        one.context.close()
        assert not one.complaints
