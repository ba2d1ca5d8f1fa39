"""Constraint of a request, under all the names that clients have for it."""

from __future__ import annotations

import contextlib
import difflib
import json
from collections.abc import Callable, Iterator
from typing import Any, Literal

from pydantic import BaseModel

import tokentrie
from tokentrie._native import Spec
from tokentrie.serve.errors import WireError
from tokentrie.serve.store import Constraint, Store

#: Similarity cutoff for "did you mean".
MEANT = 0.85
#: Fields of other servers that ask for a constraint, or once did.
REFUSED = (
    "guided_json", "guided_regex", "guided_choice", "guided_grammar", "guided_decoding_backend",
    "guided_whitespace_pattern", "guided_json_object", "grammar_lazy", "structural_tag", "regex", "ebnf", "json_object",
    "choice", "functions", "function_call", "format", "schema", "response_schema",
)  # fmt: skip
STRUCTURED = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")
#: Formatting-only options.
WRITTEN = ("disable_any_whitespace", "whitespace_pattern", "disable_additional_properties", "disable_fallback")


class ConstraintFields(BaseModel):
    """The fields of a request that ask for a constraint. Others that do are refused by name."""

    constraint: dict[str, Any] | None = None
    structured_outputs: dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    grammar: str | None = None
    json_schema: dict[str, Any] | bool | None = None
    whitespace: Literal["compact", "flexible"] | None = None

    def asks(self) -> str | None:
        """The only one of the fields that asks for a constraint.

        Raises:
            WireError: two of them, or one that is not supported.
        """
        for name in REFUSED:
            if (self.model_extra or {}).get(name) not in (None, False):
                raise WireError(f"{name} is not supported by this server: use `constraint`", param=name)
        for name in self.model_extra or {}:
            if meant := difflib.get_close_matches(name, READ, 1, MEANT):
                raise WireError(f"{name} is not supported by this server: did you mean {meant[0]}?", param=name)
        given = [name for name in READ if getattr(self, name) is not None]
        if (self.response_format or {}).get("type") == "text" and len(given) > 1:
            given.remove("response_format")
        if len(given) > 1:
            raise WireError(f"{given[0]} and {given[1]} are both given: give one of them", param=given[1])
        return given[0] if given else None

    def build_constraint(self, store: Store) -> Constraint | None:
        """Returns the constraint of the text, if any.

        Raises:
            WireError: one that cannot be held, or one that is faulty.
        """
        if (name := self.asks()) is None:
            return None
        try:
            spec = READ[name](getattr(self, name))
            if spec is not None and name != "constraint" and "json_schema" in spec and self.whitespace is not None:
                spec.setdefault("whitespace", self.whitespace)
            return None if spec is None else store.constraint(spec)
        except (tokentrie.TokenTrieError, TypeError, ValueError, RecursionError) as error:
            raise WireError(f"{name}: {error}", param=name) from None

    @contextlib.contextmanager
    def name_field(self) -> Iterator[None]:
        """Names the field of an error that is found only once the vocabulary is known."""
        try:
            yield
        except (tokentrie.errors.OptionError, tokentrie.RuleError) as error:
            if (name := self.asks()) is None or not str(error).startswith("$"):
                raise
            raise WireError(f"{name}{str(error)[1:]}", param=name) from None


def _read_structured(given: dict[str, Any]) -> dict[str, Any] | None:
    """Reads the fields of vLLM's `structured_outputs`."""
    if unknown := [name for name in given if name not in STRUCTURED + WRITTEN and given[name] is not None]:
        place = f"structured_outputs.{unknown[0]}"
        raise WireError(f"{place} is not supported by this server", param=place)
    kinds = [name for name in STRUCTURED if given.get(name) not in (None, False)]
    if len(kinds) != 1:
        raise WireError(f"structured_outputs: give exactly one of {', '.join(STRUCTURED)}", param="structured_outputs")
    (kind,) = kinds
    value, place = given[kind], f"structured_outputs.{kind}"
    if given.get("disable_additional_properties"):
        place = "structured_outputs.disable_additional_properties"
        raise WireError(f"{place} is not supported: give additionalProperties in the schema", param=place)
    if kind in ("json", "structural_tag") and isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise WireError(f"{place}: invalid JSON: {error}", param=place) from None
    if kind == "structural_tag":
        try:
            return _format({"type": kind, **_object(value, place)})
        except tokentrie.TokenTrieError as error:
            raise WireError(f"{place}: {error}", param=place) from None
    if kind in ("json", "json_object"):
        spaces = "none" if given.get("disable_any_whitespace") else given.get("whitespace_pattern")
        spec = {"json_schema": {"type": "object"} if kind == "json_object" else value}
        return spec if spaces is None else spec | {"whitespace": spaces}
    return _grammar(value) if kind == "grammar" else {kind: value}


def _object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WireError(f"{place}: expected an object, got {value!r}", param=place)
    return value


def _format(given: dict[str, Any]) -> dict[str, Any] | None:
    """OpenAI's `response_format`, structural tags, and llama-server's, which may have the schema beside a type."""
    spec = Spec._of_response_format(given, "compact")
    return spec and spec.to_dict()


def _grammar(given: Any) -> dict[str, Any]:
    """llama.cpp's grammars are told by their arrows; others are Lark."""
    if isinstance(given, str) and "::=" not in given:
        return {"lark": given}
    return {"gbnf": given}


#: The fields, and how each says a spec.
READ: dict[str, Callable[[Any], dict[str, Any] | None]] = {
    "constraint": dict,
    "structured_outputs": _read_structured,
    "response_format": _format,
    "grammar": _grammar,
    "json_schema": lambda schema: {"json_schema": schema},
}
