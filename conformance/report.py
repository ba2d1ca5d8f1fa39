"""Results as a table, in Markdown and as a page."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

STYLE = """
:root { color-scheme: light dark; --line: #8886; --right: #2a93; --refused: #8883; --wrong: #d443; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
table { border-collapse: collapse; font-size: 0.9rem; }
td, th { border: 1px solid var(--line); padding: 0.3rem 0.6rem; text-align: left; }
td.right { background: var(--right); } td.refused { background: var(--refused); } td.wrong { background: var(--wrong); }
summary { cursor: pointer; } code { font-size: 0.85rem; }
"""


def cell(told: dict[str, Any] | None) -> str:
    """What came of the cases of one kind."""
    if told is None:
        return "–"
    outcomes, count = told["outcomes"], sum(told["outcomes"].values())
    if outcomes["refused"] == count:
        return "refused"
    said = [f"**{outcomes['right']}** of {count}" if outcomes["right"] == count else f"{outcomes['right']} of {count}"]
    said += [f"{number} {name.replace('too ', '')}" for name, number in outcomes.items() if number and name != "right"]
    return ", ".join(said)


def kinds_of(results: dict[str, Any]) -> list[str]:
    """All kinds that were asked for, in the order of the cases."""
    return list(dict.fromkeys(kind for found in results.values() for kind in found["kinds"]))


def median(found: dict[str, Any]) -> str:
    """Microseconds a mask, the median of the kinds' medians."""
    times = [(told["mask_us"] or {}).get("0.5") for kind, told in found["kinds"].items() if kind != "hostile"]
    known = sorted(one for one in times if one)
    return f"{known[len(known) // 2]:.1f}" if known else "–"


def matrix(results: dict[str, Any]) -> str:
    """Engines by kinds of constraints, in Markdown."""
    kinds = kinds_of(results)
    lines = [f"| engine | {' | '.join(kinds)} | µs a mask |", "| --- |" + " --- |" * len(kinds) + " ---: |"]
    for found in results.values():
        cells = [cell(found["kinds"].get(kind)) for kind in kinds]
        lines.append(f"| {found['engine']} {found['version']} | {' | '.join(cells)} | {median(found)} |")
    return "\n".join(lines) + "\n"


def page(results: dict[str, Any]) -> str:
    """The same as a page of its own, with how each engine was asked and the first cases that were not right."""
    kinds = kinds_of(results)
    head = "".join(f"<th>{html.escape(kind)}</th>" for kind in kinds)
    rows, details = [], []
    for found in results.values():
        name = html.escape(f"{found['engine']} {found['version']}")
        cells = "".join(
            f"<td class={_class(found, kind)}>{cell(found['kinds'].get(kind)).replace('**', '')}</td>" for kind in kinds
        )
        rows.append(f"<tr><th>{name}</th>{cells}<td>{median(found)}</td></tr>")
        wrong = [(case, told) for case, told in found["cases"].items() if told != "refused"][:20]
        shown = "".join(f"<li>{html.escape(case)}: <code>{html.escape(told)}</code></li>" for case, told in wrong)
        about = f"{html.escape(found['settings'])}; {found['date']}, {html.escape(found['machine'])}"
        details.append(f"<details><summary>{name}</summary><p>{about}</p><ul>{shown}</ul></details>")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Constrained decoding: who holds what</title>'
        f"<style>{STYLE}</style><h1>Constrained decoding: who holds what</h1><p>Of how many cases each engine was "
        f"right. Refusals are honest answers; strict and loose are wrong masks.</p><table><tr><th>engine</th>{head}"
        f"<th>µs a mask</th></tr>{''.join(rows)}</table><h2>How they were asked</h2>{''.join(details)}</html>\n"
    )


def _class(found: dict[str, Any], kind: str) -> str:
    outcomes = found["kinds"].get(kind, {"outcomes": {"refused": 1}})["outcomes"]
    wrong = any(number for name, number in outcomes.items() if name not in ("right", "refused"))
    return "wrong" if wrong else "right" if outcomes.get("right") else "refused"


def worse(before: dict[str, Any], after: dict[str, Any], files: list[Path]) -> list[str]:
    """Cases of engines that were right before and are not any more. Files that were not asked then say nothing."""
    found = []
    for name in before.keys() & after.keys():
        known = before[name]["files"].split()
        asked = {case for path in files if path.stem in known for case in names_of(path)}
        lost = (after[name]["cases"].keys() - before[name]["cases"].keys()) & asked
        found += [f"{name}: {case}: {after[name]['cases'][case]}" for case in sorted(lost)]
    return found


def names_of(path: Path) -> list[str]:
    """The names of the cases in a file."""
    with path.open(encoding="utf-8") as file:
        return [line["case"] for line in map(json.loads, file) if "case" in line]
