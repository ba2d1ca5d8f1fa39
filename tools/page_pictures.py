"""The pictures of the page in `docs/`, from a server with the tiny model that listens:

tokentrie serve --port 8080 & python tools/page_pictures.py http://127.0.0.1:8080

Needs `pip install playwright` and Chromium. The fonts are those of the machine; Inter and JetBrains Mono come first.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

DOCS = Path(__file__).parents[1] / "docs"
SIZE = {"width": 1240, "height": 840}


def main() -> None:
    """Draws all pictures of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--chromium", default=shutil.which("chromium") or "chromium")
    given = parser.parse_args()
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=given.chromium, args=options)
        for view, scheme in (("decide", "light"), ("write", "dark")):
            page = browser.new_context(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce").new_page()
            page.goto(f"{given.url}/#{view}")
            root = page.locator(f"#panel-{view}")
            # Its first example runs by itself.
            root.locator("[role=status]").filter(has_text="Written" if view == "write" else "answered in").wait_for()
            if view == "write":
                root.locator(".held .token.chosen").first.hover()
            page.evaluate("scrollTo(0, 0)")
            path = DOCS / f"page-{view}.png"
            page.screenshot(path=path)
            print(f"{path}: {path.stat().st_size:,} bytes")
        browser.close()


if __name__ == "__main__":
    main()
