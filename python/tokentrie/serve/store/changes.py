"""`PATCH`: values that come to a set and go from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

import tokentrie
from tokentrie import Model
from tokentrie.rules import Spec
from tokentrie.serve.errors import WireError
from tokentrie.serve.store import contents
from tokentrie.serve.store.contents import Content, digest_of
from tokentrie.sets import LiveSet

#: After so many changes one trie is made of all.
MOST_PATCHES = 10_000

Text = Annotated[str, Field(min_length=1)]


class SetChange(BaseModel):
    """Values by their texts. Those that go do so before others come."""

    model_config = ConfigDict(extra="forbid", strict=True)

    add: list[Text] = []
    remove: list[Text] = []


@dataclass(frozen=True)
class ChangedSet:
    """A set after a change."""

    content: Content
    data: bytes
    """Form of the change in a folder."""
    added: int
    removed: int


def apply_change(content: Content, change: SetChange, models: Sequence[Model], *, is_kept: bool) -> ChangedSet:
    """Returns the changed set; the given one stays as it is.

    A `.ttrie` gets an overlay, which costs what is changed, unless its bytes are wanted (`is_kept`). A list of texts
    is made anew.

    Raises WireError, and what the library says, where it is not a set or nothing would be left.
    """
    if not change.add and not change.remove:
        raise WireError("give one of add and remove", param="add")
    constraint = content.constraint
    if isinstance(constraint, Spec):
        if constraint.kind != "choice":
            message = f"a constraint of kind {content.kind!r} has no values that come and go: put it again"
            raise WireError(message, param="name")
        return _of_texts(constraint, change)
    vocab = next((one.vocab for one in models if one.vocab.fingerprint == content.fingerprint), models[0].vocab)
    live = constraint.copy() if isinstance(constraint, LiveSet) else LiveSet(constraint, vocab)
    added, removed = live.change(change.add, change.remove)
    if not added and not removed:
        return ChangedSet(content, b"", 0, 0)
    if is_kept:
        trie = live.to_trie()
        data = trie.to_bytes(vocab)
        made = replace(content, constraint=trie, size=len(trie), nbytes=len(data), digest=digest_of(data))
        return ChangedSet(made, data, added, removed)
    if live.patches > MOST_PATCHES:
        live.compact()
    # All that is known of it without looking at all values.
    said = json.dumps([content.digest, change.add, change.remove]).encode()
    nbytes = content.nbytes + sum(len(text.encode()) for text in change.add)
    made = replace(content, constraint=live, size=len(live), nbytes=nbytes, digest=digest_of(said))
    return ChangedSet(made, b"", added, removed)


def _of_texts(spec: Spec, change: SetChange) -> ChangedSet:
    values: list[str] = json.loads(spec.to_json())["choice"]
    gone, before = {*change.remove}, {*values}
    left = [value for value in values if value not in gone]
    coming = dict.fromkeys(text for text in change.add if text not in before or text in gone)
    if not left and not coming:
        raise WireError("nothing would be left: a set has at least one value", param="remove")
    content, data = contents.of_spec(tokentrie.constraint([*left, *coming]), {}, len(left) + len(coming))
    return ChangedSet(content, data, len(coming), len(values) - len(left))
