"""For everybody: screen readers, keyboards, phones, dark and light."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from serve.page.views import VIEWS, View
from serve.server import Server

pytestmark = pytest.mark.model
Show = Callable[..., View]
#: What fades in is too pale for a moment.
STILL: dict[str, Any] = {"reduced_motion": "reduce"}
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True, **STILL}
#: Selected by standards, so that a new version of the checker brings no opinions.
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


def used(shown: View) -> View:
    """With all that comes when its first button is pressed."""
    if shown.name == "sets":
        shown.button("Put").click()
        shown.button("Choose from it").click()
        shown.root.locator("form.answer .bars li").first.wait_for()
        return shown
    if shown.name == "routes":
        for name in ("/v1/chat/completions", "/v1/decisions", "/health"):
            shown.root.locator("summary", has=shown.page.get_by_text(name, exact=True)).click()
        return shown
    if shown.name == "chat":
        shown.button("A pizza").click()
    shown.root.locator("button.go").click()
    shown.told({"decide": "answered in", "write": "Written", "chat": "1 call in"}[shown.name])
    if shown.name == "write":
        shown.root.locator(".held .token.chosen").first.focus()
    return shown


def faults(shown: View) -> list[str]:
    """What axe-core finds."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")
    found = axe.Axe().run(shown.page, options=RULES).response["violations"]
    return [f"{one['id']} ({one['impact']}): {[node['target'] for node in one['nodes']]}" for one in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", VIEWS)
def test_axe_finds_nothing(view: Show, server: Server, name: str, scheme: str) -> None:
    shown = view(server, name, color_scheme=scheme, **STILL)
    assert not faults(shown)
    assert not faults(used(shown))


@pytest.mark.parametrize("name", [name for name in VIEWS if name != "routes"])
def test_axe_finds_nothing_on_a_phone_and_where_something_is_wrong(view: Show, server: Server, name: str) -> None:
    shown = view(server, name, **PHONE)
    shown.page.get_by_role("button", name="Key").click()
    field = {"decide": "Orders to average", "write": "Most tokens", "chat": "Tools", "sets": "Name"}[name]
    shown.field(field).fill({"chat": "{", "sets": "../x"}.get(name, ""))
    shown.page.evaluate("document.querySelectorAll('form').forEach((form) => form.noValidate = true)")
    if name == "chat":
        shown.field("Message").fill("hello")
    shown.root.locator("button.go:visible").first.click()
    shown.alert()
    shown.complaints.clear()  # of the answer that refuses it
    assert not faults(shown)


def test_the_checker_finds_faults(view: Show, server: Server) -> None:
    shown = view(server, **STILL)
    shown.page.evaluate(
        """() => {
            document.querySelector('#panel-decide h1').style.color = '#ddd';
            document.querySelector('#panel-decide textarea').removeAttribute('id');
        }"""
    )
    assert {one.split(" ")[0] for one in faults(shown)} >= {"color-contrast", "label"}


@pytest.mark.parametrize("name", VIEWS)
def test_nothing_is_wider_than_a_phone(view: Show, server: Server, name: str) -> None:
    shown = used(view(server, name, **PHONE))
    assert shown.page.evaluate("document.scrollingElement.scrollWidth") <= 360
    # Only panels that scroll by themselves may hide something.
    wide = """() => [...document.querySelectorAll('body *')].filter((one) => {
        const box = one.getBoundingClientRect();
        const isOut = box.width > 0 && (box.right > innerWidth + 1 || box.left < -1);
        return isOut && !one.closest('pre, .scrolls, .unseen, .skip');
    }).map((one) => one.outerHTML.slice(0, 80))"""
    assert shown.page.evaluate(wide) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_scheme_is_the_visitors_until_the_button_says_otherwise(view: Show, server: Server, scheme: str) -> None:
    shown = view(server, color_scheme=scheme)

    def is_dark() -> bool:
        colour = shown.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        return int(colour.removeprefix("rgb(").split(",")[0]) < 128

    assert is_dark() == (scheme == "dark")
    for _ in range(2):
        before = is_dark()
        shown.page.get_by_role("button", name="Dark or light").click()
        assert is_dark() != before


def pressed(page: Any, keys: str, times: int = 1) -> None:
    for _ in range(times):
        page.keyboard.press(keys)


def focused(page: Any) -> str:
    """What has the focus, as a screen reader names it."""
    return page.evaluate(
        """() => {
            const one = document.activeElement;
            return one.getAttribute('aria-label') ?? one.labels?.[0]?.textContent ?? one.textContent;
        }"""
    )


def test_a_keyboard_is_enough(view: Show, server: Server) -> None:
    shown = view(server)
    page = shown.page
    pressed(page, "Tab")
    assert focused(page) == "To the content"
    pressed(page, "Tab", 2)
    assert focused(page) == "Decide"
    pressed(page, "ArrowRight")
    assert focused(page) == "Write"
    shown.name = "write"
    pressed(page, "End")
    pressed(page, "ArrowRight")
    assert focused(page) == "Decide", "from the last to the first"
    pressed(page, "ArrowRight")
    while focused(page) != "Prompt":
        pressed(page, "Tab")
    page.keyboard.press("Control+A")
    page.keyboard.type("An order: ")
    page.keyboard.press("Control+Enter")
    shown.told("Written")
    assert '"count": ' in "".join(shown.root.locator(".held .token").all_text_contents())

    while "forced" not in focused(page) and "chosen" not in focused(page):
        pressed(page, "Tab")
    pressed(page, "Home")
    seen = []
    for _ in range(shown.root.locator(".held .token").count()):
        seen.append(shown.root.locator(".held .card").inner_text())
        pressed(page, "ArrowRight")
    assert any("chosen among 3" in card for card in seen)
    assert any("forced" in card for card in seen)
    pressed(page, "Escape")
    assert not shown.root.locator(".held .card").is_visible()
    pressed(page, "Tab")
    assert ": free" in focused(page), "a strip is one stop: the next is the other one"
    while focused(page) != "Python":
        pressed(page, "Tab")
    pressed(page, "Enter")
    assert "from openai import OpenAI" in shown.root.locator(".copies pre").inner_text()


def test_changes_are_said_where_screen_readers_listen(view: Show, server: Server) -> None:
    shown = view(server)
    live = "[role=status], [role=alert], [role=log]"
    assert shown.root.locator(live).count() >= 2, "they are there before they say something"
    shown.button("Decide").click()
    shown.told("2 answered in")
    assert shown.page.locator("html").get_attribute("lang") == "en"
    assert shown.page.locator("h1:visible").count() == 1
