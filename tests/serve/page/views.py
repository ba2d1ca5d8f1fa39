"""A view of the page in a browser, by what a visitor sees."""

from __future__ import annotations

from typing import Any

VIEWS = ("decide", "write", "chat", "sets", "routes")


class View:
    """The page of a server, with one of its views shown."""

    def __init__(self, context: Any, port: int, name: str) -> None:
        self.context, self.name, self.complaints = context, name, []
        self.url = f"http://127.0.0.1:{port}/"
        self.page = context.new_page()
        self.page.set_default_timeout(60_000)  # of a machine that does much else
        self.page.on("console", lambda message: message.type in ("error", "warning") and self._note(message.text))
        self.page.on("pageerror", lambda error: self._note(str(error)))
        self.page.on("requestfailed", lambda request: self._note(f"{request.url}: {request.failure}"))
        self.asking = 0
        self.page.on("request", lambda _: self._count(1))
        for ended in ("requestfinished", "requestfailed"):
            self.page.on(ended, lambda _: self._count(-1))
        self.page.goto(self.url if name == VIEWS[0] else f"{self.url}#{name}")
        self.root.locator("h1").wait_for()
        self.settle()

    def _note(self, text: str) -> None:
        self.complaints.append(text)

    def _count(self, change: int) -> None:
        self.asking += change

    def settle(self) -> None:
        """Waits until nothing is asked any more, such as what a view does by itself; ten seconds at most."""
        quiet = 0
        for _ in range(100):
            self.page.wait_for_timeout(100)
            quiet = quiet + 1 if self.asking <= 0 else 0
            if quiet == 4:
                return

    @property
    def root(self) -> Any:
        """The part of the page that the view is."""
        return self.page.locator(f"#panel-{self.name}")

    def reload(self) -> None:
        """Loads the page again, once nothing is asked any more: what is cut off counts as failed."""
        self.settle()
        self.page.reload()
        self.settle()

    def button(self, name: str) -> Any:
        """A button of the view by its text."""
        return self.root.get_by_role("button", name=name, exact=True)

    def field(self, label: str) -> Any:
        """A field of the view by its label."""
        return self.root.get_by_label(label, exact=True)

    def text(self, selector: str) -> str:
        """What stands at the first of such places, once one is seen."""
        found = self.root.locator(selector).first
        found.wait_for()
        return str(found.inner_text())

    def texts(self, selector: str) -> list[str]:
        """What stands at each of such places."""
        return [*map(str, self.root.locator(selector).all_inner_texts())]

    def alert(self) -> str:
        """What the view says went wrong."""
        return self.text("[role=alert] .problem")

    def program(self, language: str) -> str:
        """The request of the view as a program, as the button of this name shows it."""
        self.root.locator(".copies").get_by_role("button", name=language, exact=True).click()
        return str(self.root.locator(".copies pre").text_content())

    def told(self, text: str) -> None:
        """Waits until a status of the view says so."""
        self.root.locator("[role=status]").filter(has_text=text).first.wait_for()
