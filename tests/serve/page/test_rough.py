"""What goes wrong: refusals, a key, a reload in the middle, a server that goes and comes back under an open page."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from serve.page.views import View
from serve.server import KEY, Server, serving

pytestmark = pytest.mark.model
Show = Callable[..., View]
#: A text that takes seconds.
LONG = {"Most tokens": "6000", "Temperature": "1"}
ENDLESS = "[a-z ]{50000}"


def running(server: Server) -> int:
    """Calls that run in the server."""
    text = server.ask("GET", "/metrics").body.decode()
    found = re.search(r'^tokentrie_engine_calls_running\{model="tiny"\} (\d+)', text, re.MULTILINE)
    assert found is not None
    return int(found[1])


def soon(condition: Callable[[], Any]) -> None:
    """Waits until something holds."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def writing(view: Show, server: Server) -> View:
    """A view that writes a long text, some of which is there."""
    write = view(server, "write")
    write.root.get_by_role("radio", name="Regex").check()
    write.field("The constraint").fill(ENDLESS)
    for label, value in LONG.items():
        write.field(label).fill(value)
    write.button("Write").click()
    write.root.locator(".held .token").nth(20).wait_for()
    return write


@pytest.mark.parametrize(
    ("kind", "constraint", "said"),
    [
        ("Regex", "(a", "constraint"),
        ("Grammar", "root ::= nope", "nope"),
        ("JSON Schema", '{"type": "nope"}', "nope"),
        ("JSON Schema", "{", "it is not JSON"),
        ("Form", '[{"slot": "a", "value": {"integer": {"mni": 1}}}]', "unknown field"),
        ("Choices", "", "there is no choice"),
    ],
)
def test_what_cannot_be_held_is_said_at_its_field(
    view: Show, server: Server, kind: str, constraint: str, said: str
) -> None:
    write = view(server, "write")
    write.root.get_by_role("radio", name=kind, exact=True).check()
    write.field("The constraint").fill(constraint)
    write.button("Write").click()
    assert said in write.alert()
    assert write.alert().count("constraint") == 1, "its field is named once"
    assert write.field("The constraint").get_attribute("aria-invalid") == "true"
    assert write.root.locator(".token").count() == 3, "those of the legend: nothing ran beside it"
    write.button("Write").wait_for()
    write.complaints.clear()  # of the answer that refuses it
    write.button("A pizza order").click()
    assert write.root.locator("[role=alert]").inner_text() == ""
    write.button("Write").click()
    write.told("Written")


def test_other_fields_are_named_too(view: Show, server: Server) -> None:
    decide = view(server)
    decide.root.get_by_label("option 1", exact=True).fill("negative")
    decide.button("Decide").click()
    assert re.search(r"questions\[0\].choices.*'negative' is given twice", decide.alert(), re.DOTALL)
    decide.root.get_by_role("radio", name="JSON").check()
    decide.field("Questions as JSON").fill("[")
    decide.root.get_by_role("radio", name="Form").click()
    assert "it is not JSON" in decide.alert()
    assert decide.root.get_by_role("radio", name="JSON").is_checked(), "what was typed is still there"
    chat = view(server, "chat")
    chat.button("A pizza").click()
    chat.field("Tools").fill('[{"type": "function", "function": {"name": "two words"}}]')
    chat.button("Send").click()
    assert "two words" in chat.alert()
    assert chat.field("Tools").get_attribute("aria-invalid") == "true"
    assert chat.field("Message").input_value() != "", "it can be sent again"
    sets = view(server, "sets")
    sets.field("Name").fill("../etc")
    sets.button("Put").click()
    assert sets.alert() != ""
    for one in (decide, chat, sets):
        one.complaints.clear()


def test_markup_of_models_and_visitors_is_text(view: Show, server: Server) -> None:
    markup = "<img src=x onerror=alert(1)><b>bold</b>"
    decide = view(server)
    decide.root.get_by_label("option 1", exact=True).fill(markup)
    decide.button("Decide").click()
    decide.told("answered in")
    assert decide.text(".verdict .bars .name") == markup
    write = view(server, "write")
    write.root.get_by_role("radio", name="Choices").check()
    write.field("The constraint").fill(markup)
    write.button("Write").click()
    write.told("Written")
    assert "".join(write.root.locator(".held .token").all_text_contents()).strip() == markup
    assert decide.page.locator("img").count() == write.page.locator("img").count() == 0


def test_stop_ends_the_call(view: Show, server: Server) -> None:
    write = writing(view, server)
    assert running(server) > 0
    write.button("Stop").click()
    write.told("Stopped.")
    soon(lambda: running(server) == 0)
    assert write.root.locator(".held .token").count() > 20, "what came is kept"
    assert write.root.locator("[role=alert]").inner_text() == ""
    assert write.button("Write").is_visible()
    write.complaints.clear()  # of the request that was stopped


def test_a_reload_in_the_middle_of_a_stream(view: Show, server: Server) -> None:
    write = writing(view, server)
    assert running(server) > 0
    write.page.reload()
    soon(lambda: running(server) == 0)
    write.complaints.clear()
    write.button("Write").click()
    write.told("Written")


def test_a_server_that_is_killed_and_comes_back_under_an_open_page(view: Show) -> None:
    with serving(key=None) as first:
        port = first.port
        write = writing(view, first)
        before = write.root.locator(".held .token").count()
        first.process.kill()
        assert "The stream broke off" in write.alert()
        assert write.root.locator(".held .token").count() >= before, "what came is kept"
        write.page.locator("#connection").filter(has_text="The server is gone").wait_for()
        write.button("A pizza order").click()
        write.button("Write").click()
        assert "does not answer" in write.alert()
    with serving("--port", str(port), key=None):
        write.page.locator("#connection").filter(has_text="The server is back").wait_for()
        write.button("Write").click()
        write.told("Written")
        assert write.root.locator("[role=alert]").inner_text() == ""
        write.complaints.clear()  # of a server that was not there


def test_a_restart_forgets_sets_and_the_page_sees_it(view: Show) -> None:
    with serving(key=None) as first:
        port = first.port
        sets = view(first, "sets")
        sets.button("Put").click()
        sets.told("is kept")
        assert first.stop() == 0
    with serving("--port", str(port), key=None):
        sets.button("Choose from it").click()
        assert "unknown constraint 'tools'" in sets.alert()
        sets.page.get_by_role("tab", name="Chat").click()
        sets.page.get_by_role("tab", name="Sets").click()
        sets.root.get_by_text("Nothing is kept yet").wait_for()
        assert not sets.root.locator("form.answer").is_visible()
        sets.button("Put").click()
        sets.told("version 1.")
        sets.root.locator("form.answer .bars li").first.wait_for()
        sets.settle()  # of what the chat says by itself
        sets.complaints.clear()


def test_a_server_that_stops_says_so_in_the_stream(view: Show) -> None:
    with serving("--drain", "0", key=None) as server:
        write = writing(view, server)
        assert server.stop() == 0
        assert re.search("stop|broke off|closed", write.alert())
        assert write.root.locator(".held .token").count() > 20
        write.complaints.clear()


def test_a_key_is_asked_for_and_kept_in_the_tab_alone(view: Show) -> None:
    with serving() as server:
        decide = view(server)
        decide.page.locator("#connection").filter(has_text="This server wants an API key.").wait_for()
        field = decide.page.get_by_label("API key")
        assert field.get_attribute("type") == "password"
        field.fill("another")
        field.press("Enter")
        decide.page.locator("#connection").filter(has_text="does not take this API key").wait_for()
        field.fill(KEY)
        field.press("Enter")
        decide.page.get_by_text("tiny", exact=True).wait_for()
        assert not field.is_visible()
        decide.button("Decide").click()
        decide.told("answered in")
        stored = "[JSON.stringify(localStorage), document.cookie, location.href, JSON.stringify(sessionStorage)]"
        local, cookie, address, session = decide.page.evaluate(stored)
        assert (local, cookie) == ("{}", "")
        assert KEY not in address
        assert KEY in session
        for language in ("curl", "Python", "TypeScript"):
            program = decide.program(language)
            assert KEY not in program
            assert "TOKENTRIE_API_KEY" in program
        decide.reload()
        decide.page.get_by_text("tiny", exact=True).wait_for()
        decide.complaints.clear()  # of the answers that wanted a key


def test_nothing_is_asked_of_another_place(view: Show, server: Server) -> None:
    shown = view(server)
    asked: list[str] = []
    shown.page.on("request", lambda request: asked.append(request.url))
    shown.reload()
    for tab in ("Write", "Chat", "Sets", "Decide"):
        shown.page.get_by_role("tab", name=tab).click()
    shown.button("Decide").click()
    shown.told("answered in")
    assert len(asked) > 10
    assert all(url.startswith(shown.url) for url in asked)
    assert shown.context.cookies() == []
