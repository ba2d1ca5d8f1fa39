"""Continuations of greedy tokens inside names of calls, in any tokens and in the tokenizer's own.

python benches/call_spelling.py MODEL.gguf BFCL [CASES]

BFCL as for `tool_wording.py`. For each case one required call is written under both spellings: whether the name is
spelled as the tokenizer spells it, which tool is named, and whether it is the right one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from tokentrie import Model
from tool_wording import MOST_TOKENS, cases


def closed(schema: Any) -> Any:
    """A schema whose objects take the keys alone that they name."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    done = {key: closed(value) for key, value in schema.items()}
    if done.get("type") == "object" and "properties" in done:
        done.setdefault("additionalProperties", False)
    return done


def is_canonical(model: Model, tokens: list[int], name: str) -> bool:
    """Returns whether the tokens of a reply cut its first name as the tokenizer cuts the text of the reply."""

    def cuts(tokens: list[int]) -> list[int]:
        ends = np.cumsum([len(model.vocab[token]) for token in tokens])
        return [int(end) for end in ends if start <= end <= start + len(name.encode())]

    text = model.vocab.detokenize(tokens)
    start = len(text[: text.index(name)].encode())
    return cuts(tokens) == cuts(list(map(int, model.vocab.tokenize(text, parse_special=True))))


def main() -> None:
    path, folder, *most = sys.argv[1:]
    model = Model(path, n_ctx=2048, n_threads=1)
    form = model.chat_format.with_tools_in("system")
    left = int(most[0]) if most else 60
    counts = dict.fromkeys(("cases", "not canonical", "other tool", "other call", "any right", "canonical right"), 0)
    for tools, messages, right, arguments in cases(Path(folder)):
        if not arguments or len(tools) < 2:
            continue
        tools = [{**tool, "function": closed(tool["function"])} for tool in tools]
        prompt = form.prompt(messages, tools)
        asked = list(map(int, model.vocab.tokenize(str(prompt), parse_special=True)))
        if len(asked) > MOST_TOKENS:
            continue
        called = {}
        for spelling in ("any", "canonical"):
            reply = form.constraint(
                tools, model.vocab, "required", generation_prompt=prompt.generation_prompt, spelling=spelling
            )
            out = model.generate(asked, reply, max_tokens=160)
            message = reply.parse(model.vocab.detokenize(out.tokens))
            (call, *_) = message.tool_calls
            called[spelling] = (call, is_canonical(model, out.tokens, call.name))
        (free, is_own), (own, holds) = called["any"], called["canonical"]
        assert holds, own
        counts["cases"] += 1
        counts["not canonical"] += not is_own
        counts["other tool"] += free.name != own.name
        counts["other call"] += (free.name, free.arguments) != (own.name, own.arguments)
        counts["any right"] += free.name == right
        counts["canonical right"] += own.name == right
        left -= 1
        print(f"{left} left", file=sys.stderr, end="\r")
        if left == 0:
            break
    print("| what | cases |\n| --- | ---: |")
    for key, count in counts.items():
        print(f"| {key} | {count} |")


if __name__ == "__main__":
    main()
