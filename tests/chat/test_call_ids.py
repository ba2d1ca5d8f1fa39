"""Ids of calls: each once in a conversation, also where the format has none; the same for a seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from models import copy_tiny
from tokentrie import Model
from tokentrie.results import ChatEvent

pytestmark = pytest.mark.model

ASK = [{"role": "user", "content": "please open two rooms"}]
TEMPLATES = Path(__file__).parents[2] / "crates" / "chat-format" / "tests" / "templates"
#: Formats that write ids: behind the name, beside the arguments, before the name, and numbers behind a name.
WITH_IDS = ("bracket-tags-with-ids", "json-list-with-ids", "id-before-name", "prefixed-names-with-numbers")


def open_room(room: str) -> str:
    """Open a room."""
    return f"{room} is open"


@pytest.fixture(scope="module")
def model(tiny_path: Path) -> Model:
    # What is in the cache from before must not change what is drawn.
    return Model(tiny_path, n_ctx=2048, n_threads=1, precise=True)


def turn(model: Model, said: list[Any], seed: int | None, **more: Any) -> Any:
    draw = {"mode": "sampled", "temperature": 1.5, "seed": seed, "max_tokens": 120} | more
    return model.chat(said, [open_room], "required", **draw)


def ids_of_a_conversation(model: Model, seed: int | None, turns: int = 3) -> list[str]:
    ids: list[str] = []
    said: list[Any] = [*ASK]
    for _ in range(turns):
        events: list[ChatEvent] = []
        message = turn(model, said, seed, stream=events.append)
        own = [call.id for call in message.tool_calls]
        for kind in ("call_begins", "call_ends"):
            assert [event.id for event in events if event.kind == kind][: len(own)] == own
        assert [call["id"] for call in message.to_dict()["tool_calls"]] == own
        ids += own
        results = [{"role": "tool", "tool_call_id": call.id, "content": "done"} for call in message.tool_calls]
        # A message may come back as an object or as a dict.
        said += [message if len(ids) % 2 else message.to_dict(), *results]
    return ids


def test_ids_are_unique_and_those_of_a_seed_are_the_same(model: Model) -> None:
    found = ids_of_a_conversation(model, 1)
    assert len({*found}) == len(found) >= 3
    assert all(len(one) == 9 and one.isalnum() and one.isascii() for one in found)
    assert found == ids_of_a_conversation(model, 1)
    assert not {*found} & {*ids_of_a_conversation(model, 2)}
    # Without a seed each reply has others, and the most probable reply always the same.
    assert turn(model, ASK, None).tool_calls[0].id != turn(model, ASK, None).tool_calls[0].id
    first, second = (model.chat(ASK, [open_room], "required", max_tokens=120).tool_calls[0].id for _ in range(2))
    assert first == second != ""
    several = model.chat(ASK, [open_room], "required", n=3, mode="sampled", seed=5, max_tokens=120)
    assert len({message.tool_calls[0].id for message in several}) == 3


@pytest.mark.parametrize("name", WITH_IDS)
def test_in_formats_with_ids(name: str) -> None:
    template = (TEMPLATES / f"{name}.jinja").read_text("utf-8")
    with Model(copy_tiny(f"ids-{name}", changes={"tokenizer.chat_template": template}), n_ctx=2048, n_threads=1) as one:
        found = ids_of_a_conversation(one, 3, 2)
        assert len({*found}) == len(found) >= 2
        assert all(found)
