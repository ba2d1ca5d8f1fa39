"""Contents of uploads: the constraint, its bytes and their digest; whether a model can follow it."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import tokentrie
from tokentrie import CancelToken, Model, Sampler, Trie
from tokentrie.files import only_files
from tokentrie.rules import Spec
from tokentrie.serve.errors import WireError
from tokentrie.serve.store.references import COMPILED
from tokentrie.sets import LiveSet

JSON, TRIE, WASM = ".json", ".ttrie", ".wasm"
#: A list of more texts than this is tokenised at its first use, not when it is put: that takes seconds.
CHECKED = 10_000
#: Kinds that need the format of a chat, and are made when they are used.
NEEDS_CHAT = {"reply"}
#: Priority before all other calls: the check of an upload generates one token.
FIRST = 1 << 30


Constraint: TypeAlias = Spec | Trie | LiveSet


@dataclass(frozen=True)
class Content:
    """A constraint and what identifies it. The same bytes have the same digest, whatever they were sent as."""

    constraint: Constraint
    kind: str
    size: int | None
    """The values of a set."""
    digest: str
    nbytes: int
    suffix: str
    fingerprint: str | None = None
    """The vocabulary of a `.ttrie`."""

    @property
    def values(self) -> int | None:
        """Returns the number of texts to tokenise; None if there are none."""
        return self.size if isinstance(self.constraint, Spec) and self.constraint.kind == "choice" else None

    @functools.cached_property
    def to_values(self) -> Spec | Trie:
        """Returns the values to choose from: of a live set a trie of its values now, made once."""
        return self.constraint.to_trie() if isinstance(self.constraint, LiveSet) else self.constraint

    def check(
        self, models: Sequence[Model], *, timeout: float | None = None, cancel: CancelToken | None = None
    ) -> None:
        """Raises what the library says, unless one of the models can follow it; TimedOutError after so many seconds."""
        if isinstance(self.constraint, LiveSet):
            return
        if (self.values or 0) > CHECKED or getattr(self.constraint, "kind", None) in NEEDS_CHAT:
            return
        problem: Exception | None = None
        for model in models:
            problem = self._problem(model, timeout, cancel)
            if problem is None:
                return
        if problem is not None:
            raise problem

    def _problem(self, model: Model, timeout: float | None, cancel: CancelToken | None) -> Exception | None:
        try:
            if isinstance(self.constraint, Trie):
                Sampler(model.vocab, self.constraint)
            else:
                # Only a generation can be cancelled while its constraint is made.
                model.generate(
                    model.vocab.tokenize("a"),
                    self.constraint,
                    max_tokens=1,
                    on_invalid="none",
                    priority=FIRST,
                    timeout=timeout,
                    cancel=cancel,
                )
        except (tokentrie.errors.CancelledError, tokentrie.errors.TimedOutError, tokentrie.errors.QueueFullError):
            raise
        except (tokentrie.TokenTrieError, TypeError, ValueError) as error:
            return error
        return None

    def map_trie(self, path: Path) -> Content:
        """Returns the content with its trie mapped from its file."""
        return replace(self, constraint=Trie.open(path)) if isinstance(self.constraint, Trie) else self


def digest_of(data: bytes) -> str:
    """Returns the digest of a content: SHA-256."""
    return hashlib.sha256(data).hexdigest()


def of_spec(text: str | Spec, names: Mapping[str, Any], size: int | None = None) -> tuple[Content, bytes]:
    """A spec, from JSON text; names in it are what they stand for now. With its bytes."""
    spec = tokentrie.constraint(text, names=dict(names)) if isinstance(text, str) else text
    if names:
        try:
            # What pickling writes has no names left.
            resolved: str = spec.__reduce__()[1][0]
        except tokentrie.errors.OptionError as error:
            said = f"{error}: name a saved set in the request that uses it, not in what is put"
            raise WireError(said, param="spec") from None
        if resolved != spec.to_json():
            spec = tokentrie.constraint(resolved)
    written = spec.to_json()
    kind = spec.kind if spec.kind in COMPILED else "set" if spec.kind in ("choice", "payload") else "spec"
    if size is None and kind == "set":
        size = _size(json.loads(written))
    data = written.encode()
    return Content(spec, kind, size, digest_of(data), len(data), JSON), data


def of_module(data: bytes) -> tuple[Content, bytes]:
    """A module of WebAssembly; raises RuleError where it is not a rule."""
    tokentrie.rules.WasmRule(data)
    return of_spec(json.dumps({"wasm": base64.b64encode(data).decode()}), {})


def of_trie(data: bytes, models: Sequence[Model]) -> Content:
    """A `.ttrie` file; raises what is wrong with it, or that it is for none of the models."""
    try:
        trie = Trie.from_bytes(data)
    except tokentrie.TokenTrieError as error:
        # A message begins with the path of a file, which is empty here: the body is named in its place.
        raise type(error)(f"the body{error}") from None
    return _trie(trie, data, models)


def of_file(path: Path, models: Sequence[Model]) -> Content:
    """A file that was kept before, or that somebody put there.

    Raises TokenTrieError, ValueError and OSError.
    """
    only_files(path)
    if path.suffix == JSON:
        content, _ = of_spec(path.read_text("utf-8"), {})
        return content
    if path.suffix == WASM:
        content, _ = of_module(path.read_bytes())
        return content
    return _trie(Trie.open(path, verify=True), path.read_bytes(), models)


def _trie(trie: Trie, data: bytes, models: Sequence[Model]) -> Content:
    # Its fingerprint stands in the file and is asked of a Vocab when it is read, not when it is walked.
    prints = {model.vocab.fingerprint for model in models}
    if trie.fingerprint is not None and trie.fingerprint not in prints:
        raise tokentrie.errors.VocabularyError("the .ttrie file is for another vocabulary than that of the models here")
    content = Content(trie, "set", len(trie), digest_of(data), len(data), TRIE, trie.fingerprint)
    content.check(models)
    return content


def _size(said: dict[str, Any]) -> int:
    if "choice" in said:
        return len(said["choice"])
    return len(Trie.from_payload(said["payload"], said.get("path")))
