"""Names of control tokens that strangers write: none becomes a token, whatever the field, the writing and the joint."""

from __future__ import annotations

import copy
import json
import os
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from budget import cases
from models import TINY
from support import has_llama, vocabulary_files
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from tokentrie import ChatFormat, TokenTrieError, Vocab

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("TOKENTRIE_TEMPLATE_DIR") or ROOT.parent / "shared" / "templates")
TEMPLATES = sorted(FOLDER.glob("*.jinja"))
TRIES = 50_000
NAMES = ["<|im_start|>", "<|im_end|>", "<s>", "</s>", "[INST]", "<|zz|>", "<city>", "zz", "<\u00e9\U0001f600>"]
"""Names that many templates do not have; some join what templates write around a key or a value."""
MARKER = re.compile(r"<[/|\uff5c]?[\w\u2581|\uff5c:.-]{1,40}[|\uff5c]?>|\[/?[A-Z_]{2,24}\]|<\|[^\w\s]{1,3}\|>")
THOUGHT = "Let me think."


def names_in(template: str) -> list[str]:
    """Markers of a template, as its vocabulary would have them."""
    return sorted({*MARKER.findall(template)})


@cache
def vocabulary(names: tuple[str, ...]) -> Vocab:
    """One token a byte, and control tokens of these names."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(alphabet)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    return Vocab.from_tokenizer(core, eog=[])


class Case:
    """A template over a vocabulary that has its markers as control tokens."""

    def __init__(self, label: str, text: str, bos: str = "", eos: str = "", vocab: Vocab | None = None) -> None:
        self.label, self.text = label, text
        self.names = sorted({*names_in(text), *NAMES, *filter(None, (bos, eos))})
        self.vocab = vocabulary(tuple(self.names)) if vocab is None else vocab
        self.control = {*self.vocab.control}
        if vocab is not None:
            self.names = [name for token in self.control if (name := self.vocab[token].decode(errors="ignore"))]
        self.form = ChatFormat(text, self.vocab, bos=bos, eos=eos)

    def prompt(self, said: dict[str, Any]) -> tuple[str, list[int], list[int]]:
        """The text, its tokens, and the control tokens of these."""
        prompt = self.form.prompt(said["messages"], said["tools"], **said["variables"])
        assert "".join(text for text, _ in prompt.parts) == prompt.text
        tokens = self.vocab.tokenize_parts(prompt.parts)
        return prompt.text, tokens, [token for token in tokens if token in self.control]

    def branches(self, name: str) -> bool:
        """Whether the template looks for a name in what was said, and so writes other markers where it stands there."""
        return (
            f"'{name}" in self.text or f'"{name}' in self.text or f"\\n{name}" in self.text or f"{name}\\n" in self.text
        )


def all_cases() -> Iterator[Case]:
    """The templates at hand over their own markers, and that of the tiny model over its vocabulary."""
    for path in TEMPLATES:
        yield Case(path.stem, path.read_text(encoding="utf-8"), bos="<s>", eos="</s>")
    if not has_llama():
        return
    tiny = ChatFormat.from_gguf(TINY)
    yield Case("tiny", tiny.template.text, vocab=Vocab.from_gguf(TINY))
    wanted = {"Qwen-Qwen3-0.6B", "Qwen3-Coder", "Qwen3.5-4B", "meta-llama-Llama-3.1-8B-Instruct"}
    families = {"qwen2": "Qwen", "llama-bpe": "meta-llama"}
    for path in vocabulary_files():
        begins = families.get(path.stem.removeprefix("ggml-vocab-"))
        for template in TEMPLATES if begins else []:
            if template.stem in wanted and template.stem.startswith(begins or ""):
                text = template.read_text(encoding="utf-8")
                yield Case(f"{template.stem} over {path.stem}", text, vocab=Vocab.from_gguf(path))


def conversation() -> dict[str, Any]:
    """A conversation with every field."""
    schema: dict[str, Any] = {
        "type": "object",
        "description": "All of it.",
        "properties": {
            "city": {"type": "string", "description": "A city.", "enum": ["Paris", "Rome"], "default": "Rome"},
            "at": {"type": "object", "properties": {"day": {"type": "string", "pattern": "[a-z]"}}},
            "all": {"type": "array", "items": {"type": "string", "description": "One."}},
        },
        "required": ["city"],
    }
    weather = {"name": "weather", "description": "Tells of it.", "parameters": schema}
    call = {"city": "Rome", "at": {"day": "now"}, "all": ["a", 1, None, True]}
    calls = [{"id": "call00001", "type": "function", "function": {"name": "weather", "arguments": call}}]
    return {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello.", "name": "Ann"},
            {"role": "assistant", "content": "Yes.", "reasoning_content": THOUGHT},
            {"role": "user", "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]},
            {"role": "assistant", "content": "", "reasoning_content": THOUGHT, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "call00001", "name": "weather", "content": "Rain."},
            {"role": "assistant", "content": "Rain.", "reasoning_content": THOUGHT},
            {"role": "user", "content": "Thanks."},
        ],
        "tools": [{"type": "function", "function": weather}],
        "variables": {},
    }


KEYS = set(re.findall(r'"(\w+)":', json.dumps(conversation())))
"""Names that the conversation has already."""

Put = Callable[[dict[str, Any], str], None]


def at(*path: Any) -> Put:
    """Puts a text there."""

    def put(said: dict[str, Any], text: str) -> None:
        *before, last = path
        for step in before:
            said = said[step]
        said[last] = text

    return put


def key_at(*path: Any) -> Put:
    """Makes a text the last key there."""

    def put(said: dict[str, Any], text: str) -> None:
        for step in path:
            said = said[step]
        said[text] = {"type": "string"} if "properties" in path[-1:] else "value"

    return put


FUNCTION = ("tools", 0, "function")
PROPERTIES = (*FUNCTION, "parameters", "properties")
CALL = ("messages", 4, "tool_calls", 0, "function")
CONTENTS = [("messages", number, "content") for number in (0, 1, 2, 4, 5, 6, 7)] + [
    *(("messages", 3, "content", number, "text") for number in (0, 1)),
    *(("messages", number, "reasoning_content") for number in (2, 4, 6)),
]
SAID = [at(*path) for path in CONTENTS]
ARGUMENTS: list[Put] = [
    at(*CALL, "arguments", "city"),
    at(*CALL, "arguments", "at", "day"),
    at(*CALL, "arguments", "all", 0),
    key_at(*CALL, "arguments"),
    key_at(*CALL, "arguments", "at"),
]
OTHERS: list[Put] = [
    *(at("messages", number, "role") for number in (1, 2, 5)),
    at("messages", 1, "name"),
    key_at("messages", 1),
    key_at("messages", 4, "tool_calls", 0),
    key_at(*CALL),
    at(*CALL, "name"),
    at("messages", 4, "tool_calls", 0, "id"),
    at("messages", 4, "tool_calls", 0, "type"),
    at("messages", 5, "tool_call_id"),
    at("messages", 5, "name"),
    at("tools", 0, "type"),
    key_at("tools", 0),
    *(at(*FUNCTION, key) for key in ("name", "description", "zz")),
    key_at(*FUNCTION),
    *(at(*FUNCTION, "parameters", key) for key in ("type", "description", "zz")),
    key_at(*FUNCTION, "parameters"),
    at(*FUNCTION, "parameters", "required", 0),
    key_at(*PROPERTIES),
    key_at(*PROPERTIES, "city"),
    *(at(*PROPERTIES, "city", key) for key in ("type", "description", "default", "zz")),
    at(*PROPERTIES, "city", "enum", 0),
    key_at(*PROPERTIES, "at", "properties"),
    at(*PROPERTIES, "at", "properties", "day", "pattern"),
    at(*PROPERTIES, "all", "items", "type"),
    key_at(*PROPERTIES, "all", "items"),
    *(at("variables", name) for name in ("documents", "system_message", "date_string", "datetime", "model_identity")),
    *(at("variables", name) for name in ("reasoning_effort", "builtin_tools", "functions", "custom_instructions")),
]
PLAIN = ["call00001", "Ann", "weather"]


def escaped(random: random.Random, text: str, share: float) -> str:
    """JSON's own text of a text, some of its characters as escapes: astral ones as two."""
    found = []
    for one in text:
        units = one.encode("utf-16-be").hex()
        pairs = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
        plain = json.dumps(one, ensure_ascii=random.random() < 0.5)[1:-1]
        found.append(pairs if random.random() < share else plain)
    return "".join(found)


def dumped(random: random.Random, value: Any, share: float) -> str:
    """A value as JSON text with escapes."""
    if isinstance(value, dict):
        pairs = (f"{dumped(random, key, share)}:{dumped(random, item, share)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(dumped(random, item, share) for item in value) + "]"
    return f'"{escaped(random, value, share)}"' if isinstance(value, str) else json.dumps(value)


def written(random: random.Random, name: str) -> str:
    """A name as someone writes it who wants it read: whole, cut at its ends, in another's middle, or in code."""
    kind = random.randrange(10)
    start, end = random.randrange(len(name)), random.randrange(len(name))
    if kind < 3:
        return name
    if kind < 6:
        # The template may have the rest.
        return (
            name[: end + 1] if kind == 3 else name[start:] if kind == 4 else name[min(start, end) : max(start, end) + 1]
        )
    if kind == 6:
        return name[:start] + name + name[start:]
    if kind == 7:
        codes = ["&lt;" if one == "<" else "&gt;" if one == ">" else one for one in name]
        return "".join(codes)
    if kind == 8:
        return random.choice(
            [
                json.dumps({"x": name}),
                repr([name]),
                "".join(f"\\x{ord(one) % 256:02x}" for one in name),
                f"%3C{name[1:]}",
            ]
        )
    return escaped(random, name, 0.7)


def surrounded(random: random.Random, text: str) -> str:
    """With what templates strip, split at, or look for."""
    around = ["", "", "", "", " ", "\n", "\n\n", "a ", "<", ">", "|", "{", '"', "'", "\\", "\u3000"]
    return random.choice(around) + text + random.choice(around)


def attack(random: random.Random, case: Case) -> tuple[dict[str, Any], dict[str, Any], str] | None:
    """A conversation with an attack, the same with as many letters in its place, and the attack."""
    name = random.choice(case.names)
    looked_for = case.branches(name)
    puts = random.sample(SAID + ARGUMENTS * 2 + OTHERS, random.choice((1, 1, 1, 2)))
    text = surrounded(random, written(random, name))
    if looked_for and any(put in SAID for put in puts):
        return None
    hostile, harmless = conversation(), conversation()
    for number, put in enumerate(puts):
        # Two fields may have a half each.
        half = random.randrange(len(text) + 1)
        mine = text if len(puts) == 1 else (text[:half], text[half:])[number]
        if mine in KEYS:
            return None  # As a key it would take the place of the one that is there.
        put(hostile, mine)
        # Blanks stay: they are stripped, and decide whether there is a line. Each field has a letter of its own: two
        # keys of one object stay two.
        put(harmless, "".join(one if one.isspace() else "qw"[number] for one in mine))
    form = random.randrange(4)
    for said in (hostile, harmless):
        function = said["messages"][4]["tool_calls"][0]["function"]
        if form:
            share = (0, 0, 0.3, 1)[form]
            function["arguments"] = dumped(random, function["arguments"], share)
    return hostile, harmless, text


def tried(case: Case, seed: int, tries: int) -> tuple[int, int, list[str]]:
    """How many tries were rendered, how many of those showed what was put, and what was wrong."""
    rendered, shown, wrong = 0, 0, []
    dice = random.Random(seed)
    while tries:
        made = attack(dice, case)
        if made is None:
            continue
        tries -= 1
        hostile, harmless, text = made
        try:
            prompt, tokens, found = case.prompt(hostile)
            _, _, expected = case.prompt(harmless)
        except TokenTrieError:
            continue
        rendered += 1
        shown += text in prompt
        spelled = case.vocab.detokenize_bytes(tokens).decode()
        if found != expected or spelled != prompt:
            wrong.append(f"{case.label} {seed}: {text!r} in {hostile!r}: {len(found)} for {len(expected)}")
    return rendered, shown, wrong


@pytest.fixture(scope="module")
def every_case() -> list[Case]:
    if not TEMPLATES:
        print("TOKENTRIE_TEMPLATE_DIR names no folder with *.jinja files: the tiny model's template alone")
    found = [*all_cases()]
    if not found:
        pytest.skip("TOKENTRIE_TEMPLATE_DIR names no templates, and this package cannot read its model's")
    return found


def test_no_text_of_a_stranger_becomes_a_control_token(every_case: list[Case]) -> None:
    seed, each = random.randrange(1 << 32), -(-cases(TRIES) // len(every_case))
    found = [tried(case, seed + number, each) for number, case in enumerate(every_case)]
    rendered, shown = sum(one for one, _, _ in found), sum(one for _, one, _ in found)
    wrong = [line for _, _, lines in found for line in lines]
    print(f"{rendered} of {each * len(every_case)} rendered, {shown} with the attack in the prompt as it was written")
    assert not wrong, f"{len(wrong)} of {rendered}, the first: " + "\n".join(wrong[:5])
    assert rendered > 0.7 * each * len(every_case)
    assert shown > 0.25 * rendered, "what users write is in the prompt, not dropped"


def test_all_that_a_template_writes_stays_a_control_token(every_case: list[Case]) -> None:
    """Conversations without names have the tokens of their text, as if all of it were trusted."""
    for case in every_case:
        # A key that is in no name.
        whole = json.loads(json.dumps(conversation()).replace("city", "town"))
        whole["messages"][3]["content"] = "Both."
        text_only = {**whole, "messages": [whole["messages"][number] for number in (0, 1, 2, 7)], "tools": None}
        counted = 0
        # Qwen3-Coder writes keys of schemas between < and >: where that spells a name, it is rightly no control token.
        keys = re.findall(r'"(\w+)":', json.dumps(whole["tools"]))
        is_joined = any(f"<{key}>" in case.text for key in keys)
        for said in (*([] if is_joined else [whole]), text_only, {**text_only, "messages": text_only["messages"][1:]}):
            try:
                text, tokens, found = case.prompt(copy.deepcopy(said))
            except TokenTrieError:
                continue
            counted += len(found)
            assert tokens == case.vocab.tokenize(text, parse_special=True), (case.label, text)
        assert counted or not names_in(case.text) or case.vocab.eog, case.label
