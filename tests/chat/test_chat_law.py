"""The law of chats: what is allowed can be written, what is written parses, and what parses is valid.

Random tools, then random legal tokens to the end of a reply, over every template and vocabulary that is at hand.
"""

from __future__ import annotations

import functools
import json
import os
import random
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budget import BUDGET, cases, every
from support import vocabulary_files
from tokentrie import ChatFormat, RuleError, Sampler, TemplateError, TokenTrieError, Vocab
from tokentrie.errors import OptionError, TokenTrieWarning

jsonschema = pytest.importorskip("jsonschema")

HERE = Path(__file__).parents[2]
SMALL = HERE / "crates" / "chat-format" / "tests" / "templates"
REAL = Path(os.environ.get("TOKENTRIE_TEMPLATE_DIR") or HERE.parent / "shared" / "templates")
TEMPLATES = {path.stem: path for folder in (SMALL, REAL) for path in sorted(folder.glob("*.jinja"))}
FAMILIES = {path.stem.removeprefix("ggml-vocab-"): path for path in vocabulary_files()}
VOCABULARIES = ["bytes", *FAMILIES]
MARKER = re.compile(r"<[|/]?[A-Za-z_|:/.\u2581\uff5c]+>|\[/?[A-Z_]+\]|<\uff5c[^\uff5c\s]+\uff5c>")

ALL = [(name, template, markers) for name in VOCABULARIES for template in TEMPLATES for markers in (False, True)]
SMALLEST = 2 * len(TEMPLATES)
TRIED = ALL[:SMALLEST] + [pytest.param(*one, marks=pytest.mark.model) for one in ALL[SMALLEST :: every()]]
"""All of them at full size, else those over the bytes alone and some of the others, which are read by llama.cpp."""
WALKS = cases(100) if BUDGET >= 1 else 3
"""How many replies each of them writes: at full size 10^5 all together."""
SEED = 0 if BUDGET < 1 else random.SystemRandom().randrange(10**9)
"""Other replies each time at full size."""
MOST_TOKENS = 2000
"""A reply of random tokens that ends where it may is far shorter."""


@functools.cache
def pieces(name: str) -> tuple[list[bytes], list[int], list[int]]:
    """The tokens of a vocabulary, those that end generation, and the control tokens."""
    if name == "bytes":
        return [bytes([byte]) for byte in range(256)] + [b"<|end|>"], [256], [256]
    vocab = Vocab.from_gguf(FAMILIES[name])
    return [vocab[token] for token in range(len(vocab))], vocab.eog, vocab.control


@functools.lru_cache(2)
def vocabulary(name: str, template: str | None) -> Vocab:
    """A vocabulary, with the markers of a template as control tokens."""
    known, eog, control = pieces(name)
    markers = sorted(set(MARKER.findall(TEMPLATES[template].read_text("utf-8")))) if template else []
    added = [marker.encode() for marker in markers if marker.encode() not in {known[token] for token in control}]
    control = [*control, *range(len(known), len(known) + len(added))]
    return Vocab.from_tokens(known + added, eog=eog, control=control)


@functools.cache
def noise(size: int) -> np.ndarray:
    return np.random.default_rng(5).gumbel(size=size + 4096).astype(np.float32)


@functools.lru_cache(2)
def weights(vocab: Vocab) -> np.ndarray:
    """Logits with which replies come to an end: what closes something is more probable."""
    row = np.zeros(len(vocab), np.float32)
    for token in range(len(vocab)):
        piece = vocab[token].strip()
        if piece[:1] in (b'"', b"}", b"]", b")", b">", b"'", b"<", b"{", b"[", b",", b":", b"|", b"/"):
            row[token] = 6 if len(piece) == 1 else 3
    row[vocab.eog] = 9
    return row


def closers(form: ChatFormat, tools: list[dict[str, Any]]) -> list[bytes]:
    """Texts that may end something that random tokens would not end."""

    def texts(found: Any) -> Iterator[str]:
        if isinstance(found, str):
            yield found
        elif isinstance(found, dict):
            for inside in found.values():
                yield from texts(inside)
        elif isinstance(found, list | tuple):
            for inside in found:
                yield from texts(inside)

    calls, analysis = form.analysis.calls, form.analysis
    known = element_ends(form, tools)
    known |= {analysis.reasoning.end, analysis.content.end, calls.section[1], *texts(calls.patterns), '"', "]", "'"}
    return [text.encode() for text in sorted(known) if text.strip() and not text.strip().isalnum()]


def element_ends(form: ChatFormat, tools: list[dict[str, Any]]) -> set[str]:
    """What ends a value where keys are elements; the items of an array are elements of one name."""
    styles = [style for style in argument_styles(form) if "elements" in style]
    names = {name for tool in tools for name in property_names(tool)} | {"item", "input"}
    return {f"{style['elements']['mark']}</{name}>" for style in styles for name in names}


def property_names(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        names = schema.get("propertyNames", {})
        listed = names.get("enum", []) if isinstance(names, dict) else []
        yield from (name for name in listed if isinstance(name, str))
    if isinstance(schema, dict | list):
        for inside in schema.values() if isinstance(schema, dict) else schema:
            yield from property_names(inside)


def has_open_object(schema: Any) -> bool:
    """Whether keys may come that it does not name."""
    if isinstance(schema, list):
        return any(map(has_open_object, schema))
    if not isinstance(schema, dict):
        return False
    is_open = schema.get("type") == "object" and "additionalProperties" not in schema
    return is_open or any(map(has_open_object, schema.values()))


def argument_styles(form: ChatFormat) -> list[dict[str, Any]]:
    parts = [part for pattern in form.analysis.calls.patterns for part in pattern["parts"] if isinstance(part, dict)]
    return [part["arguments"] for part in parts if isinstance(part.get("arguments"), dict)]


def likely_closers(form: ChatFormat, tools: list[dict[str, Any]]) -> list[bytes]:
    """Those that end long texts: of reasoning, of values between tags, of strings in quotes of their own."""
    styles = argument_styles(form)
    found = [style["tagged"]["value_end"] for style in styles if "tagged" in style]
    found += [quote["mark"] for style in styles for kind in style.values() for quote in kind.get("quotes", [])]
    found += sorted(element_ends(form, tools))
    return [text.encode() for text in [form.analysis.reasoning.end, *found] if text]


@functools.lru_cache(2)
def control_tokens(vocab: Vocab) -> dict[bytes, int]:
    return {vocab[token]: token for token in vocab.control}


def spelled(vocab: Vocab, text: bytes) -> list[int]:
    """A text in the longest tokens, and its markers in control tokens: no other end a thought where it has them."""
    tokens: list[int] = []
    control = control_tokens(vocab)
    while text:
        token = max(
            (control[name] for name in control if text.startswith(name)), key=lambda one: len(vocab[one]), default=-1
        )
        if token < 0:
            token = int(vocab.prefix_tokens(text)[-1])
        tokens.append(token)
        text = text[len(vocab[token]) :]
    return tokens


class Draw(random.Random):
    """What a case is drawn from. `patterns` has those of the inputs of custom tools, by the names of these."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.custom_tools = random.Random(seed)
        self.patterns: dict[str, str] = {}

    def schema(self, depth: int) -> dict[str, Any]:
        kinds = ["string", "integer", "number", "boolean", "enum", "null", "const", "any"]
        kind = self.choice(kinds + ["array", "object", "object"] * (depth > 0))
        if kind == "string":
            return {"type": "string"} | ({"maxLength": self.randint(1, 9)} if self.random() < 0.8 else {})
        if kind == "integer":
            low = self.randint(-20, 20)
            held = {"minimum": low, "maximum": low + self.randint(0, 90)} if self.random() < 0.5 else {}
            return {"type": "integer"} | held
        if kind == "enum":
            return {"enum": self.sample(["red", "blue", "a b", "x", 1, 2.5, None, True, "é", 'he said "no"'], 3)}
        if kind == "const":
            return {"const": self.choice(["v1", 7, False])}
        if kind == "any":
            return {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 5}]}
        if kind == "array":
            found = {"type": "array", "items": self.schema(depth - 1), "maxItems": self.randint(1, 4)}
            return found | ({"minItems": 1} if self.random() < 0.5 else {})
        if kind == "object":
            return self.object(depth - 1)
        return {"type": kind}

    def object(self, depth: int) -> dict[str, Any]:
        names = self.sample(["a", "b", "city", "max_rows", "path", "unit", "to-do"], self.randint(0, 3))
        found: dict[str, Any] = {"type": "object", "properties": {name: self.schema(depth) for name in names}}
        found["required"] = [name for name in names if self.random() < 0.7]
        if (drawn := self.random()) < 0.7:
            found["additionalProperties"] = False
        elif drawn < 0.85:
            # Few names, so that one would soon come twice.
            found["additionalProperties"] = self.schema(0)
            found["propertyNames"] = {"enum": [*names, "k", "kk"]}
        return found

    def judge(self, arguments: str, schema: dict[str, Any]) -> None:
        """Raises where arguments are not valid."""
        jsonschema.validate(json.loads(arguments), schema)

    def tools(self) -> list[dict[str, Any]]:
        names = self.sample(["ring", "ring_twice", "x1", "get_weather", "all", "a", "multi_tool"], self.randint(1, 3))
        return [self.custom(name) if self.custom_tools.random() < 0.2 else self.function(name) for name in names]

    def function(self, name: str) -> dict[str, Any]:
        return {"type": "function", "function": {"name": name, "description": "Does it.", "parameters": self.object(2)}}

    def grammar(self, depth: int) -> tuple[str, str]:
        """A grammar in Lark, and the regular expression of its texts."""
        draw = self.custom_tools
        kind = draw.choice(["text", "text", "class"] + ["then", "or", "repeat", "maybe"] * (depth > 0))
        if kind == "text":
            text = draw.choice(
                ["a", "x = 1\n", 'say "no"', "\\\\n", "<b>&", "</", "é", "😀", "{}", "'", "\t", "]", "#, "]
            )
            return json.dumps(text, ensure_ascii=False), re.escape(text)
        if kind == "class":
            found = draw.choice(["[a-c]", "[^x]", '[\\n"]', "[0-9]+", ".{2}", "[ab]*c"])
            return f"/{found}/", found
        one, other = self.grammar(depth - 1), self.grammar(depth - 1)
        if kind == "then":
            return f"({one[0]} {other[0]})", f"(?:{one[1]}{other[1]})"
        if kind == "or":
            return f"({one[0]} | {other[0]})", f"(?:{one[1]}|{other[1]})"
        low, high = (0, 1) if kind == "maybe" else (draw.randint(0, 2), draw.randint(2, 3))
        return f"({one[0]})~{low}..{high}", f"(?:{one[1]}){{{low},{high}}}"

    def custom(self, name: str) -> dict[str, Any]:
        draw = self.custom_tools
        lark, pattern = self.grammar(3)
        ways = {"lark": f"start: part\npart: {lark}", "regex": pattern}
        syntax = draw.choice([*ways])
        grammar = {"syntax": syntax, "definition": ways[syntax]}
        self.patterns[name] = pattern
        return {"type": "custom", "custom": {"name": name, "format": {"type": "grammar", "grammar": grammar}}}


def twice(arguments: str, is_open: bool) -> str | None:
    """A key that arguments have twice; inside them, too, where no schema lets values of any kind come."""
    found: list[list[str]] = []

    def read(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        found.append([key for number, key in enumerate(keys) if key in keys[:number]])
        return dict(pairs)

    json.loads(arguments, object_pairs_hook=read)
    # The outermost object ends last.
    return next((keys[0] for keys in (found[-1:] if is_open else found) if keys), None)


def refusal(sampler: Sampler, token: int) -> str | None:
    """Why a token is not accepted, if it is not."""
    try:
        sampler.clone().accept(token)
    except TokenTrieError as error:
        return str(error)
    return None


def walk(form: ChatFormat, vocab: Vocab, draw: Draw) -> str | None:
    """What was wrong in one reply, or None."""
    tools = draw.tools()
    parallel, budget = draw.random() < 0.5, draw.choice([None, None, 0, 1, 5])
    names = [tool[tool["type"]]["name"] for tool in tools]
    other = draw.custom_tools
    allowed = other.sample(tools, other.randint(1, len(tools)))
    some = {"type": "allowed_tools", "allowed_tools": {"mode": other.choice(["auto", "required"]), "tools": allowed}}
    choice: Any = draw.choice(["required", "required", names[0], "auto"])
    choice = some if other.random() < 0.2 else choice
    may_call = {tool[tool["type"]]["name"] for tool in allowed} if choice is some else {*names}
    may_call &= {choice} if choice in names else may_call
    must_call = some["allowed_tools"]["mode"] == "required" if choice is some else choice != "auto"
    try:
        turn = form.prompt([{"role": "user", "content": "Go."}], tools).generation_prompt
    except TemplateError:
        return None  # Some templates recurse for ever into a schema without a type.
    options: dict[str, Any] = {"tool_choice": choice, "parallel_tool_calls": parallel, "generation_prompt": turn}
    try:
        constraint = form.constraint(tools, vocab, thinking_budget=budget, **options)
    except OptionError as error:
        if "is read otherwise" not in str(error):
            raise
        return None  # A tool that is named as what the format writes before content.
    except RuleError as error:
        if not draw.patterns or "no text of it can be written in this format" not in str(error):
            raise
        return None  # A text that every input has ends values in this format.
    # After a required call a reply may end: by these tokens, where each token of the row would compete otherwise.
    sampler = Sampler(vocab, constraint, end_tokens=vocab.eog if must_call else None)
    row, sound = weights(vocab), noise(len(vocab))
    drawn = np.empty_like(row)
    said: list[int] = []
    ends, likely = closers(form, tools), likely_closers(form, tools)

    def told(what: str) -> str:
        text = b"".join(vocab[token] for token in said)
        return f"{what}: {text!r} after {turn!r}, {options | {'thinking_budget': budget}}, {tools}"

    while sampler.state == "active" and len(said) < MOST_TOKENS:
        at = draw.randrange(4096)
        if draw.random() < 0.06:
            first = draw.sample(likely, sum(draw.random() < 0.3 for _ in likely))
            for text in first + draw.sample(ends, len(ends)):
                whole = spelled(vocab, text)
                try:
                    sampler.accept(whole)
                except TokenTrieError:
                    continue
                said.extend(whole)
                break
            if sampler.state != "active":
                break
        try:
            token = sampler.sample(np.add(row, sound[at : at + len(vocab)], out=drawn))
        except RuleError as error:
            return told(f"a dead end ({error})")
        if draw.random() < 0.3:
            legal = sampler.allowed()
            if token not in legal:
                return told(f"{token} was drawn and is not allowed")
            if len(legal) < 16:
                token = int(draw.choice(legal))
            for place in draw.sample(range(len(legal)), min(4, len(legal))):
                other = int(legal[place])
                if refused := refusal(sampler, other):
                    said.append(other)
                    return told(f"allowed() lists {other}, which is refused ({refused})")
        try:
            sampler.accept(token)
        except Exception as error:
            said.append(token)
            return told(f"{token} was drawn and is refused ({error})")
        if token in vocab.eog:
            break
        said.append(token)
    is_cut = len(said) >= MOST_TOKENS
    parser = form.parser(tools, generation_prompt=turn, tool_choice=choice)
    at = 0
    while at < len(said):
        size = draw.randint(1, 9)
        parser.push(said[at : at + size])
        at += size
    message = parser.finish(partial=is_cut)
    if message != form.parse(said, tools, generation_prompt=turn, tool_choice=choice, partial=is_cut):
        return told("in parts it is another message")
    if is_cut:
        # Many calls, keys that a schema does not name, and thoughts without a budget end only by chance.
        thinks = budget is None and bool(message.reasoning) and not message.tool_calls
        is_long = not must_call or len(message.tool_calls) > 3 or thinks or any(map(has_open_object, tools))
        return None if is_long else told("no end")
    calls = message.tool_calls
    if must_call and not calls:
        return told("no call")
    if must_call and not parallel and len(calls) > 1:
        return told(f"{len(calls)} calls")
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools if tool["type"] == "function"}
    for call in calls:
        if call.name not in may_call:
            return told(f"calls {call.name!r}")
        if (call.kind == "custom") != (call.name in draw.patterns):
            return told(f"{call.name!r} is {call.kind}")
        if call.kind == "custom":
            if not re.fullmatch(draw.patterns[call.name], call.arguments):
                return told(f"{call.arguments!r} does not match {draw.patterns[call.name]!r}")
            continue
        if (key := twice(call.arguments, has_open_object(schemas[call.name]))) is not None:
            return told(f"{call.arguments} has {key!r} twice")
        try:
            draw.judge(call.arguments, schemas[call.name])
        except (ValueError, jsonschema.ValidationError) as error:
            return told(f"{call.arguments} is not valid: {error.message if hasattr(error, 'message') else error}")
    return None


@pytest.mark.parametrize(("name", "template", "with_markers"), TRIED)
def test_what_is_allowed_can_be_written_and_is_valid(name: str, template: str, with_markers: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TokenTrieWarning)
        vocab = vocabulary(name, template if with_markers else None)
        form = ChatFormat(TEMPLATES[template].read_text("utf-8"), vocab)
        if not form.analysis.calls:
            form = form.with_tools_in("system")
        for seed in range(WALKS):
            if wrong := walk(form, vocab, Draw(f"{SEED} {template} {name} {seed}")):
                pytest.fail(f"seed {SEED} {template} {name} {seed}: {wrong}")


TOKENIZED = [(name, template) for name in FAMILIES for template in TEMPLATES]
"""Those of which the tokenizer is known: names, keys and values of enums come in its own tokens."""


@pytest.mark.model
@pytest.mark.parametrize(("name", "template"), TOKENIZED[:: 2 * every()])
def test_the_same_where_names_come_in_the_tokenizers_own_tokens(name: str, template: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TokenTrieWarning)
        vocab = tokenized(name)
        form = ChatFormat(TEMPLATES[template].read_text("utf-8"), vocab)
        if not form.analysis.calls:
            form = form.with_tools_in("system")
        for seed in range(WALKS):
            if wrong := walk(form, vocab, Draw(f"{SEED} {template} {name} {seed}")):
                pytest.fail(f"seed {SEED} {template} {name} {seed}: {wrong}")


@functools.lru_cache(2)
def tokenized(name: str) -> Vocab:
    return Vocab.from_gguf(FAMILIES[name])
