"""What all adapters in Python share: the protocol, and what an engine has to be able to do."""

from __future__ import annotations

import base64
import json
import sys
import time
from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from typing import Any


class RefusedError(Exception):
    """The engine says that it does not hold this: an honest answer, which is counted apart."""


class Engine(ABC):
    """One engine. An adapter overrides what its engine can do."""

    name = ""
    version = ""
    settings = ""
    """Which of its options the adapter sets, and why."""

    @abstractmethod
    def vocabulary(self, pieces: list[bytes], eog: list[int]) -> None:
        """Takes a vocabulary. A token without bytes is not text; those of `eog` end a generation."""

    @abstractmethod
    def compile(self, kind: str, constraint: dict[str, Any]) -> None:
        """Takes a constraint, and stands at its beginning. Raises `RefusedError` where the engine says no."""

    @abstractmethod
    def begin(self) -> None:
        """Goes back to the beginning of the constraint."""

    @abstractmethod
    def mask(self) -> tuple[bytes, float]:
        """The bits of what may come, 32-bit little-endian words, and the microseconds that the engine took."""

    def may_end(self) -> bool | None:
        """Whether the text may end here, where the mask does not say it by a token that ends a generation."""
        return None

    @abstractmethod
    def advance(self, token: int) -> bool:
        """Takes a token; `False` where it may not come."""

    def rollback(self, count: int) -> None:
        """Takes back the last tokens."""
        raise RefusedError("it takes no token back")

    def forced(self) -> bytes | None:
        """The text that must come now; `None` where the engine does not say."""
        return None

    def logprobs(self, constraint: dict[str, Any], seed: int, size: int) -> list[float]:
        """The log-probability of every sequence of a set under the model of the cases."""
        raise RefusedError("it gives no probabilities")


class PrefixEngine(Engine):
    """An engine that is asked with all tokens each time, and so takes any of them back."""

    written: list[int]

    @abstractmethod
    def following(self) -> Sequence[int]:
        """The tokens that may come after those that are written."""

    def advance(self, token: int) -> bool:
        if token not in self.following():
            return False
        self.written.append(token)
        return True

    def rollback(self, count: int) -> None:
        del self.written[-count:]


def bits(tokens: Sequence[int], size: int) -> bytes:
    """Some ids as the bits of a mask."""
    words = array("I", bytes(4 * -(-size // 32)))
    for token in tokens:
        words[token // 32] |= 1 << token % 32
    return words.tobytes()


class Clock:
    """Microseconds of a `with` block."""

    def __enter__(self) -> Clock:
        self._began = time.perf_counter_ns()
        return self

    def __exit__(self, *_: object) -> None:
        self.us = (time.perf_counter_ns() - self._began) / 1000


def answer(engine: Engine, asked: dict[str, Any]) -> dict[str, Any]:
    """One answer of the protocol."""
    do = asked["do"]
    if do == "hello":
        return {"engine": engine.name, "version": engine.version, "settings": engine.settings}
    if do == "vocabulary":
        engine.vocabulary([bytes.fromhex(piece) for piece in asked["tokens"]], asked["eog"])
    elif do == "compile":
        with Clock() as clock:
            engine.compile(asked["kind"], asked["constraint"])
        return {"us": clock.us}
    elif do == "begin":
        engine.begin()
    elif do == "mask":
        words, us = engine.mask()
        found: dict[str, Any] = {"bits": base64.b64encode(words).decode(), "us": us}
        end, forced = engine.may_end(), engine.forced() if asked.get("forced") else None
        return found | ({} if end is None else {"end": end}) | ({} if forced is None else {"forced": forced.hex()})
    elif do == "advance":
        for number, token in enumerate(asked["tokens"]):
            if not engine.advance(token):
                return {"refused_at": number}
    elif do == "rollback":
        engine.rollback(asked["tokens"])
    elif do == "score":
        return {"logprobs": engine.logprobs(asked["constraint"], asked["model"]["seed"], asked["size"])}
    return {}


def serve(engine: Engine) -> None:
    """Answers one line at a time until the input ends."""
    # What an engine prints must not get into the answers.
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        try:
            said = answer(engine, json.loads(line))
        except RefusedError as refused:
            said = {"refused": str(refused)}
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"[:400]}
        print(json.dumps(said), file=out, flush=True)
