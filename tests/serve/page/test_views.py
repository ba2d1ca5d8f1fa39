"""Each view does its job on the first click, with the real server, the tiny model and a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from serve.page.views import View
from serve.server import Server

pytestmark = pytest.mark.model
Show = Callable[..., View]


def share(text: str) -> float:
    """A probability as the page writes it."""
    found = re.fullmatch(r"([<>]?) ?(\d+(?:\.\d+)?) %", text)
    assert found is not None, f"{text!r} is not written as every other probability is"
    return {"<": 0.0, ">": 1.0}.get(found[1], float(found[2]) / 100)


def asked(server: Server, state: str, question: dict[str, Any], **more: Any) -> dict[str, Any]:
    body = {"model": "tiny", "input": state, "questions": [question], **more}
    return server.ask("POST", "/v1/decisions", body).json()["answers"][0]


def test_decide_shows_every_option_with_its_odds_before_a_click(view: Show, server: Server) -> None:
    decide = view(server)
    decide.told("2 answered in")
    assert decide.text(".verdict h3").startswith("negative")
    first = decide.root.locator(".verdict").first
    names = first.locator(".bars .name").all_inner_texts()
    assert names == ["positive", "negative", "neutral"]
    question = {
        "type": "choice",
        "instructions": "What is the sentiment of the review?",
        "choices": [{"value": name} for name in names],
    }
    told = [*map(share, first.locator(".row .share").all_inner_texts())]
    figures = first.locator(".figure dd").all_inner_texts()
    state = decide.field("State").input_value()
    for nth, readout in enumerate(("text", "label")):
        answer = asked(server, state, question, permute=6, readout=readout)
        assert told[nth::2] == pytest.approx([one["probability"] for one in answer["probabilities"]], abs=2e-3)
        mass, flips = (re.search(rf"([^a-z]*) {readout}", one) for one in figures)
        assert mass is not None
        assert flips is not None
        assert share(mass[1].strip()) == pytest.approx(answer["x_mass"], rel=0.5, abs=1e-5)
        assert share(flips[1].strip()) == pytest.approx(answer["x_flips"], abs=1e-3)
    assert len(decide.texts(".verdict")) == 2


def test_questions_are_edited_as_a_form_and_as_json(view: Show, server: Server) -> None:
    decide = view(server)
    decide.button("A door").click()
    decide.button("+ Question").click()
    decide.root.get_by_label("Kind of question 4").select_option("choice")
    decide.root.locator(".question").nth(3).get_by_label("What is asked").fill("What is open?")
    for number, (value, about) in enumerate([("door", "It opens"), ("lamp", "")], 1):
        option = decide.root.locator(".question").nth(3)
        option.get_by_label(f"option {number}", exact=True).fill(value)
        option.get_by_label(f"What option {number} means").fill(about)
    decide.root.get_by_label("Remove question 2").click()
    decide.root.get_by_role("radio", name="JSON").check()
    text = decide.field("Questions as JSON")
    questions = json.loads(text.input_value())
    choices = [{"value": "door", "description": "It opens"}, {"value": "lamp"}]
    assert questions[2] == {"type": "choice", "instructions": "What is open?", "choices": choices}
    assert [one["instructions"] for one in questions[:2]] == ["Is the door open?", "Is the door locked?"]
    levels = [{"label": "shut"}, {"label": "open"}]
    text.fill(json.dumps([{"type": "score", "instructions": "How open?", "levels": levels}]))
    decide.button("Decide").click()
    decide.told("1 answered in")
    assert decide.texts(".verdict .asked") == ["How open?"]
    decide.root.get_by_role("radio", name="Form").check()
    assert decide.field("What is asked").input_value() == "How open?"
    decide.root.get_by_label("Kind of question 1").select_option("choice")
    assert decide.field("option 2").input_value() == "open", "what was typed is kept"


def test_what_is_typed_while_it_asks_changes_no_answer(view: Show, server: Server) -> None:
    decide = view(server)
    decide.page.evaluate(
        """() => {
            document.querySelector('#panel-decide button.go').click();
            for (const one of document.querySelectorAll('#panel-decide select')) {
                one.value = 'score';
                one.dispatchEvent(new Event('change'));
            }
        }"""
    )
    decide.told("2 answered in")
    assert decide.texts(".verdict:first-of-type .bars .name") == ["positive", "negative", "neutral"]
    # Of two that are clicked at once the second is shown.
    decide.page.evaluate("document.querySelectorAll('#panel-decide .chip').forEach((one) => one.click())")
    decide.told("3 answered in")
    decide.page.wait_for_timeout(500)
    assert decide.texts(".verdict .asked") == ["Which team?", "How angry?", "Is a refund wanted?"]


def test_a_conversation_is_a_state(view: Show, server: Server) -> None:
    decide = view(server)
    decide.button("A conversation").click()
    decide.told("1 answered in")
    assert decide.text(".verdict h3").startswith("positive")


def test_write_streams_tokens_with_their_roles_and_rivals(view: Show, server: Server) -> None:
    write = view(server, "write")
    write.told("Written")
    held = write.root.locator(".side.held")
    text = "".join(held.locator(".token").all_text_contents())
    order = json.loads(text)
    assert order == {"name": "order_pizza", "arguments": {"size": "large", "count": 2}}
    roles = {role: held.locator(f".token.{role}").count() for role in ("chosen", "forced", "free")}
    assert roles["forced"] > 10 > roles["chosen"] > 0 == roles["free"]
    passes, saved = map(int, re.findall(r"\d+", held.locator(".meter b").inner_text()))
    assert saved == roles["forced"]
    assert passes == roles["chosen"]
    free = write.root.locator(".side.unheld")
    assert free.locator(".token.free").count() == free.locator(".token").count() > 0
    assert ", 0 saved" in free.locator(".meter b").inner_text()

    held.locator(".token.chosen").first.hover()
    card = held.locator(".card")
    assert "chosen among 3" in card.inner_text()
    rivals = [share(one) for one in card.locator("li > span:last-child").all_inner_texts()]
    assert len(rivals) == 3
    assert sum(rivals) == pytest.approx(1, abs=0.01)
    assert card.locator("li.taken").count() == 1
    held.locator(".token.forced").first.hover()
    assert "No other token is legal here" in card.inner_text()
    write.root.locator("h1").hover()
    card.wait_for(state="hidden")


#: What each example may be, and what the model says alone: near to it, and nothing that a program takes.
TWINS = {
    "A pizza order": (
        r'\{"name": "order_pizza", .*"size": "(small|medium|large)", "count": \d+\}\}',
        '"size": "larger"',
    ),
    "A verdict": ("good|bad|mixed", "negative"),
    "A date": (r"\d\d? [A-Z][a-z]{2} 20\d\d", "5 April 2026"),
    "An answer": ("(yes|no), the door is (open|closed)[.]", "yes"),
    "A review as JSON": (r'\{"verdict":"(good|bad|mixed)","stars":[1-5]\}', "negative"),
}


@pytest.mark.parametrize("example", TWINS)
def test_each_kind_of_constraint_holds_beside_a_plausible_twin(view: Show, server: Server, example: str) -> None:
    write = view(server, "write")
    write.button(example).click()
    write.told("Written")
    pattern, alone = TWINS[example]
    texts = ["".join(write.root.locator(f".side.{side} .token").all_text_contents()) for side in ("held", "unheld")]
    held, free = (text.removesuffix("∎").removesuffix("<|im_end|>") for text in texts)
    assert re.fullmatch(pattern, held, re.DOTALL)
    assert alone in free
    assert not re.fullmatch(pattern, free.strip(), re.DOTALL)
    chosen = write.root.locator(".side.held .token.chosen")
    for number in range(chosen.count()):
        chosen.nth(number).hover()
        rivals = [share(one) for one in write.texts(".held .card li > span:last-child")]
        assert rivals == sorted(rivals, reverse=True)
        assert len(rivals) > 1


def test_numbers_say_what_they_mean(view: Show, server: Server) -> None:
    decide = view(server)
    decide.told("2 answered in")
    first = decide.root.locator(".verdict").first
    for name in ("mass", "flips", "readout"):
        place = decide.root if name == "readout" else first
        button = place.get_by_role("button", name=f"What {name} means")
        tip = button.locator("xpath=..").get_by_role("tooltip")
        assert not tip.is_visible()
        for show in (button.hover, button.focus, button.click):
            show()
            tip.wait_for()
            box = tip.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            decide.page.keyboard.press("Escape")
            decide.root.locator("h1").hover()
            button.blur()
            tip.wait_for(state="hidden")
    # Escape hides what the keyboard has opened.
    button.focus()
    tip.wait_for()
    decide.page.keyboard.press("Escape")
    tip.wait_for(state="hidden")


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/v1/choose", "200 OK", '"choice": '),
        ("/v1/models", "200 OK", '"id": "tiny"'),
        ("/tokenize", "200 OK", '"tokens": ['),
        ("/health", "200 OK", '"status": "ok"'),
        ("/metrics", "200 OK", "tokentrie_"),
        ("/v1/embeddings", "200 OK", '"embedding": ['),
    ],
)
def test_each_route_can_be_tried(view: Show, server: Server, path: str, status: str, says: str) -> None:
    routes = view(server, "routes")
    route = routes.root.locator(".route").filter(has=routes.page.get_by_text(path, exact=True)).first
    route.locator("summary").click()
    route.get_by_role("button", name="Try it").click()
    route.locator("[role=status]").filter(has_text=status).wait_for()
    assert says in route.locator(".reply").inner_text()


def test_every_body_to_begin_with_is_taken(view: Show, server: Server) -> None:
    routes = view(server, "routes")
    known = server.ask("GET", "/openapi.json").json()["paths"]
    for path, method in [(one, way) for one, ways in known.items() for way in ways if way in ("post", "put")]:
        said = routes.root.locator(".route").filter(has=routes.page.get_by_text(path, exact=True))
        route = said.filter(has=routes.page.get_by_text(method.upper(), exact=True)).first
        route.locator("summary").click()
        route.get_by_role("button", name="Try it").click()
        expected = "501" if path == "/slots/{slot}" else "20"
        route.locator("[role=status]").filter(has_text=f"{expected}").wait_for()
        assert re.match(expected, route.locator("[role=status]").inner_text()), path
        route.locator("summary").click()
    server.ask("DELETE", "/v1/constraints/colours", key=None)
    routes.complaints.clear()


def test_chat_answers_its_first_example_when_it_is_opened(view: Show, server: Server) -> None:
    chat = view(server, "chat")
    chat.told("1 call in")
    assert chat.texts(".call header code") == ["order_pizza"]
    assert chat.texts(".turn.user p") == ["I want to buy a pizza with size large and count 2"]
    assert chat.field("Message").input_value() == ""
    # Once: it is not said again when the view comes back.
    chat.page.get_by_role("tab", name="Sets").click()
    chat.page.get_by_role("tab", name="Chat").click()
    chat.settle()
    assert chat.root.locator(".turn.user").count() == 1


def test_chat_shows_calls_while_they_are_written_and_takes_results(view: Show, server: Server) -> None:
    chat = view(server, "chat")
    chat.button("A pizza").click()
    # What the card of the call says, each time that it changes.
    chat.page.evaluate(
        """() => {
            window.seen = [];
            new MutationObserver(() => window.seen.push(document.querySelector('.call')?.textContent ?? ''))
                .observe(document.querySelector('.log'), {childList: true, subtree: true, characterData: true});
        }"""
    )
    chat.button("Send").click()
    chat.told("1 call in")
    card = chat.root.locator(".call")
    assert card.locator("header code").inner_text() == "order_pizza"
    rows = {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in card.locator("tr").all()}
    assert {name: cells[0] for name, cells in rows.items()} == {"size": '"large"', "count": "2"}
    assert share(rows["size"][1].strip()) > 0.9
    assert rows["count"][1].strip() == ""
    assert "among the names" in card.locator("header").inner_text()
    seen = chat.page.evaluate("window.seen")
    assert any(re.search(r'\{"size": "?$', text) for text in seen), "it was there before it was whole"
    chat.root.locator(".events summary").click()
    kinds = chat.texts(".events b")
    assert kinds == ["reasoning", "call begins", "arguments", "probabilities", "finish"]

    chat.field("Result of order_pizza").fill("two pizzas come")
    chat.button("Give the result").click()
    chat.root.locator(".turn.assistant").nth(1).wait_for()
    chat.told("0 calls in")
    assert chat.texts(".turn.tool p") == ["two pizzas come"]
    assert "two pizzas come" in chat.root.locator(".turn.assistant").nth(1).inner_text()
    chat.button("New conversation").click()
    assert chat.root.locator(".turn").count() == 0


def test_chat_shows_what_is_said_where_no_tool_fits(view: Show, server: Server) -> None:
    chat = view(server, "chat")
    chat.button("No tool fits").click()
    chat.button("Send").click()
    chat.told("0 calls in")
    assert chat.texts(".turn.assistant .content") == ["Sorry, no tool can do that."]
    assert chat.texts(".turn.assistant .thought") == ["No tool can do that."]
    assert chat.root.locator(".results").count() == 0


def test_chat_shows_parallel_calls(view: Show, server: Server) -> None:
    chat = view(server, "chat")
    chat.button("Two calls").click()
    chat.button("Send").click()
    chat.told("2 calls in")
    assert chat.texts(".call header code") == ["order_pizza", "erase"]
    assert chat.root.locator(".results textarea").count() == 2


def test_sets_are_put_found_shown_used_edited_and_deleted(view: Show, server: Server, tmp_path: Path) -> None:
    sets = view(server, "sets")
    sets.button("Put").click()
    sets.told("tools is kept: set of 7 values, version 1.")
    sets.root.locator("form.answer .bars li").first.wait_for()  # at once
    names, told = sets.texts("form.answer .bars .name"), [*map(share, sets.texts("form.answer .bars .share"))]
    assert names[0] == "play_music"
    assert told == sorted(told, reverse=True)
    messages = json.loads(sets.field("After").input_value())
    own = server.ask("POST", "/v1/choose", {"messages": messages, "set": "tools", "top": 5}).json()["values"]
    assert names == [one["value"] for one in own]
    assert told == pytest.approx([one["probability"] for one in own], abs=2e-3)

    path = tmp_path / "two cities.csv"
    path.write_text("city,people\nLisbon,545\nOsaka,2691\nLisbon,545\n", encoding="utf-8")
    sets.field("Or a file").set_input_files(path)
    assert sets.field("Name").input_value() == "two-cities"
    sets.field("Column").fill("city")
    sets.button("Put").click()
    sets.told("two-cities is kept: set of 2 values")
    assert sets.root.locator(".kept tbody tr").count() == 2
    sets.field("Search names").fill("CITIES")
    assert sets.texts(".kept tbody th") == ["two-cities"]
    sets.field("After").fill("She lives in ")
    sets.button("Choose from it").click()
    sets.root.locator("form.answer .bars li").first.wait_for()
    assert {*sets.texts("form.answer .bars .name")} == {"Lisbon", "Osaka"}
    sets.root.get_by_label("Delete two-cities").click()
    sets.told("two-cities is deleted")
    assert server.ask("GET", "/v1/constraints/two-cities").status == 404
    sets.field("Search names").fill("")
    assert sets.texts(".kept tbody th") == ["tools"]
    sets.root.get_by_label("Show tools").click()
    sets.root.locator("form.answer h2").get_by_text("tools", exact=True).wait_for()
    sets.field("A value").fill("water_plants")
    sets.button("Add").click()
    sets.told("water_plants came: set of 8 values, version 2.")
    sets.button("Add").click()
    sets.told("water_plants was there already")
    sets.field("A value").fill("play_music")
    sets.button("Take away").click()
    sets.told("play_music went: set of 7 values, version 3.")
    sets.field("A value").fill("")
    sets.button("Add").click()
    assert "add" in sets.alert()
    sets.complaints.clear()  # of the answer that refuses it
    sets.button("Choose from it").click()
    sets.root.locator("form.answer .bars li").first.wait_for()
    assert "play_music" not in sets.texts("form.answer .bars .name")
    assert server.ask("DELETE", "/v1/constraints/tools").status == 204


def test_views_have_addresses(view: Show, server: Server) -> None:
    shown = view(server, "chat")
    shown.page.get_by_role("tab", name="Sets").click()
    assert shown.page.url.endswith("#sets")
    shown.reload()
    shown.page.locator("#panel-sets h1").wait_for()
    assert shown.page.get_by_role("tab", name="Sets").get_attribute("aria-selected") == "true"
    assert shown.page.title() == "tokentrie: sets"


def test_routes_are_those_of_the_server_with_the_fields_of_their_requests(view: Show, server: Server) -> None:
    spec = server.ask("GET", "/openapi.json").json()
    routes = view(server, "routes")
    routes.root.locator(".route").first.wait_for()
    there = [(method.upper(), path) for path, methods in spec["paths"].items() for method in methods]
    shown = zip(routes.texts(".route .method"), routes.texts(".route summary code"), strict=True)
    assert [*shown] == there
    for path in ("/v1/chat/completions", "/v1/choose", "/v1/constraints/{name}"):
        bodies = [said["requestBody"] for said in spec["paths"][path].values() if "requestBody" in said]
        name = bodies[0]["content"]["application/json"]["schema"]["$ref"].split("/")[-1]
        route = routes.root.locator(".route", has=routes.page.get_by_text(path, exact=True)).filter(has_text=name)
        route.locator("summary").click()
        fields = route.get_by_role("region", name=f"Fields of {name}").locator("tbody th code").all_inner_texts()
        assert fields == [*spec["components"]["schemas"][name]["properties"]], path
