"""Runs the suite of agents' tools.

Offline, against an engine of engines/: is a list accepted, in which time, and which calls may be written?
    python run.py [--vocabulary MODEL.gguf]
Against a server that speaks the chat API of OpenAI: is a list accepted, and is the call of the reply valid?
    python run.py --url http://127.0.0.1:8080/v1
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from calls import draw, judge_of
from lists import LISTS, size

#: Words by which servers say that a prompt is too long: the tools were taken then.
TOO_LONG = ("context", "exceed", "too long", "do not fit", "does not fit")
MOST_WHY = 160


#: Engines that run here, by the modules and the classes of their adapters.
ENGINES = {
    "tokentrie": ("tokentrie_tools", "Tokentrie"),
    "llguidance": ("llguidance_tools", "LLGuidance"),
    "llama-server": ("llama_server_tools", "LlamaServer"),
}


def offline(engine_name: str, lists: list[str], vocabulary: str | None, seed: int, most: int) -> list[dict[str, Any]]:
    """Returns the rows of an engine that runs here."""
    module, of_class = ENGINES[engine_name]
    engine = getattr(importlib.import_module(module), of_class)(vocabulary)
    print(f"{engine.name} {engine.version}, {engine.settings}", file=sys.stderr)
    # What is made once for a vocabulary is nobody's list.
    engine.compile(LISTS["pocket"]()[:1])
    engine.masks()
    rows = []
    for name in lists:
        tools = LISTS[name]()
        row: dict[str, Any] = {"list": name, "tools": len(tools), "bytes": size(tools)}
        rows.append(row)
        begun = time.process_time()
        try:
            engine.compile(tools)
        except RuntimeError as error:
            row |= {"accepted": False, "why": str(error)[:MOST_WHY]}
            continue
        row |= {"accepted": True, "construction s": round(time.process_time() - begun, 3)}
        for kind, seconds in zip(("first", "name"), engine.masks(), strict=True):
            row[f"{kind} mask ms"] = round(1000 * seconds, 2)
        taken = [(call, engine.accepts(call.tool, call.arguments)) for call in draw(tools, seed, most)]
        wrong = [call for call, is_taken in taken if is_taken and not call.is_valid]
        refused = [call for call, is_taken in taken if not is_taken and call.is_valid and not call.is_escaped]
        row["valid calls"] = sum(call.is_valid and not call.is_escaped for call, _ in taken)
        row["of them refused"] = len(refused)
        row["wrong calls"] = sum(not call.is_valid for call, _ in taken)
        row["of them taken"] = len(wrong)
        row["with escapes"] = sum(call.is_escaped for call, _ in taken)
        row["of these refused"] = sum(call.is_escaped and not is_taken for call, is_taken in taken)
        row["warnings"] = len(engine.warnings)
        for kind, some in (("taken, and wrong", wrong), ("refused, and valid", refused)):
            for call in some[:5]:
                print(f"{name}: {kind}: {call.tool} {call.arguments[:300]}", file=sys.stderr)
    return rows


def ask(
    url: str, model: str, tools: list[dict[str, Any]], messages: list[Any], body: dict[str, Any], limit: float
) -> Any:
    """Returns the status, the reason, the seconds to the first part, and the calls of a reply that is streamed."""
    asked = {"model": model, "messages": messages, "tools": tools, "tool_choice": "required", "stream": True} | body
    data = json.dumps(asked).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    request = urllib.request.Request(url.rstrip("/") + "/chat/completions", data, headers)
    begun, first, calls, finish = time.perf_counter(), None, {}, None
    try:
        with urllib.request.urlopen(request, timeout=limit) as answer:
            for line in answer:
                if not line.startswith(b"data: ") or line.strip() == b"data: [DONE]":
                    continue
                part = json.loads(line[6:])
                if "error" in part:
                    return 500, str(part["error"]), first, [], finish
                for choice in part.get("choices", ()):
                    finish = choice.get("finish_reason") or finish
                    delta = choice.get("delta", {})
                    if first is None and any(delta.get(key) for key in ("content", "reasoning_content", "tool_calls")):
                        first = time.perf_counter() - begun
                    for call in delta.get("tool_calls") or ():
                        known = calls.setdefault(call["index"], ["", ""])
                        function = call.get("function", {})
                        known[0] += function.get("name") or ""
                        known[1] += function.get("arguments") or ""
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode("utf-8", "replace"), None, [], None
    except (OSError, ValueError) as error:
        return 0, f"{type(error).__name__}: {error}", None, [], None
    return 200, "", first, list(calls.values()), finish


def reply_of(judges: dict[str, Any], calls: list[list[str]], finish: str | None) -> str:
    """Returns in a word what came: valid, invalid, cut off, or no call."""
    if not calls:
        return "cut off" if finish == "length" else "no call"
    for name, arguments in calls:
        try:
            value = json.loads(arguments)
        except ValueError:
            return "cut off" if finish == "length" else "invalid"
        if name not in judges or not judges[name].is_valid(value):
            return "invalid"
    return "valid"


def served(
    lists: list[str], url: str, model: str, body: dict[str, Any], limit: float, begin: str = ""
) -> list[dict[str, Any]]:
    """Returns the rows of a server."""
    begun = [{"role": "assistant", "content": begin}] if begin else []
    rows = []
    for name in lists:
        tools = LISTS[name]()
        wanted = tools[len(tools) // 2]["function"]["name"]
        question = [{"role": "user", "content": f"Call the tool {wanted}."}]
        status, why, first, calls, finish = ask(url, model, tools, [*question, *begun], body, limit)
        too_long = status in (400, 413) and any(word in why.lower() for word in TOO_LONG)
        row: dict[str, Any] = {"list": name, "tools": len(tools), "bytes": size(tools), "status": status}
        row["accepted"] = status == 200 or too_long
        row["first token s"] = None if first is None else round(first, 3)
        row["reply"] = (
            "prompt too long" if too_long else reply_of(judge_of(tools), calls, finish) if status == 200 else ""
        )
        if why:
            row["why"] = " ".join(why.split())[:MOST_WHY]
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Returns the rows as a table in Markdown."""
    names = list(dict.fromkeys(name for row in rows for name in row))

    def shown(value: Any) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        if value is None:
            return ""
        return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")

    numbers = {name for name in names if any(type(row.get(name)) in (int, float) for row in rows)}
    lines = [names, ["---:" if name in numbers else "---" for name in names]]
    lines += [[shown(row.get(name)) for name in names] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> int:
    """Runs the suite; 1 if a list is not accepted, a valid call is refused or a wrong one comes through."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="the address of a server, with its /v1")
    parser.add_argument("--model", default="default", help="the name of the model in requests")
    parser.add_argument("--body", type=json.loads, default={}, metavar="JSON", help="further fields of each request")
    parser.add_argument(
        "--begin",
        default="",
        metavar="TEXT",
        help="the last message is the assistant's and begins so: for a server whose `required` lets text come first",
    )
    parser.add_argument("--max-tokens", type=int, default=256, help="the most tokens of a reply")
    parser.add_argument("--limit", type=float, default=300, help="seconds without an answer after which a server hangs")
    parser.add_argument("--engine", choices=sorted(ENGINES), default="tokentrie")
    parser.add_argument("--vocabulary", metavar="MODEL.gguf", help="the vocabulary of the engine; else a tiny one")
    parser.add_argument("--calls", type=int, default=300, help="valid calls of each list")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="append", choices=sorted(LISTS), help="only this list; may be repeated")
    parser.add_argument("--out", type=Path, help="file for the rows as JSON")
    given = parser.parse_args()
    lists = given.list or list(LISTS)
    if given.url:
        body = {"max_tokens": given.max_tokens, "temperature": 0, **given.body}
        rows = served(lists, given.url, given.model, body, given.limit, given.begin)
    else:
        rows = offline(given.engine, lists, given.vocabulary, given.seed, given.calls)
    print(table(rows))
    if given.out:
        given.out.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    faults = ("of them refused", "of them taken")
    is_right = all(row["accepted"] and row.get("reply") != "invalid" for row in rows)
    return 0 if is_right and not any(row.get(fault) for row in rows for fault in faults) else 1


if __name__ == "__main__":
    sys.exit(main())
