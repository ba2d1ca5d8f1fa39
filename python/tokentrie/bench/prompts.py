"""The prompts: those that come along, or those of a file."""

from __future__ import annotations

import json
from pathlib import Path

import tokentrie
from tokentrie.bench import texts
from tokentrie.bench.engines import Prompt
from tokentrie.cli.demo import catalogue
from tokentrie.cli.lines import as_text


def built_in(name: str, model: tokentrie.Model) -> list[Prompt]:
    """Of a set: a request with the tools that it may mean, or a title to repeat; for other sets requests alone."""
    vocab = model.vocab
    offers = {"8-actions": (texts.ACTIONS, texts.ABOUT_ACTIONS), "form": (texts.ACTIONS, texts.ABOUT_ACTIONS)}
    offers |= dict.fromkeys(("30-tools", "300-tools"), (catalogue.TOOLS, texts.ABOUT_TOOLS))
    if name in offers:
        tools, requests = offers[name]
        asked = [catalogue.prompt(vocab, tools, request) for request in requests]
        return [Prompt(text, _tokens(vocab, text)) for text in asked]
    if name == "5000-titles":
        return [_chat(model, "Repeat the text.", title) for title in texts.titles(len(texts.ABOUT_TOOLS))]
    return [_chat(model, "Answer with one name.", request) for request in texts.ABOUT_ANYTHING]


def _chat(model: tokentrie.Model, system: str, user: str) -> Prompt:
    """In the model's own chat format where it has one that takes this."""
    text = f"{system}\n{user}\n"
    try:
        tokens = model.chat_prompt([{"role": "system", "content": system}, {"role": "user", "content": user}])
    except tokentrie.ModelError:
        tokens = _tokens(model.vocab, text)
    return Prompt(text, tokens)


def of_file(path: Path, content: bytes, model: tokentrie.Model) -> list[Prompt]:
    """One a line, as it is; empty lines do not count. In a `.jsonl` file a line is a string or has one as "prompt".

    Raises:
        TokenTrieError: no prompt, an invalid line, or a prompt that leaves no room for an answer.
    """
    prompts = []
    jsonl = path.suffix.lower() in (".jsonl", ".ndjson")
    for number, line in enumerate(as_text(content, path).split("\n"), 1):
        if not line.strip():
            continue
        text = _json_prompt(f"{path}, line {number}", line) if jsonl else line
        tokens = _tokens(model.vocab, text)
        if not 0 < len(tokens) < model.n_ctx:
            room = f"the context has room for {model.n_ctx}"
            raise tokentrie.TokenTrieError(f"{path}, line {number}: a prompt of {len(tokens)} tokens: {room}")
        prompts.append(Prompt(text, tokens))
    if not prompts:
        raise tokentrie.TokenTrieError(f"{path}: no line with a prompt")
    return prompts


def _json_prompt(where: str, line: str) -> str:
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        raise tokentrie.TokenTrieError(f"{where}, column {error.colno}: {error.msg}") from error
    text = entry.get("prompt") if isinstance(entry, dict) else entry
    if not isinstance(text, str) or not text:
        raise tokentrie.TokenTrieError(f'{where}: neither a text nor an object with a text as "prompt"')
    return text


def _tokens(vocab: tokentrie.Vocab, text: str) -> list[int]:
    return vocab.tokenize(text, add_special=True, parse_special=True)
