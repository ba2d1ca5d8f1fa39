"""Pages that are made of declarations and the comments before them: the header of C, the types of TypeScript."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMENT = re.compile(r"^/\*\*\n((?: \*.*\n)+?) \*/\n((?:.+\n)+)", re.MULTILINE)


def words(comment: str) -> str:
    """A comment without its stars. Its names of functions are code."""
    text = re.sub(r"^ \* ?", "", comment, flags=re.MULTILINE).strip()
    return re.sub(r"(?<![`\w])((?:tokentrie|TOKENTRIE|llama|eliza)_\w+(?:\.\.\.|\(\))?)", r"`\1`", text)


def constant(declared: str) -> str | None:
    """The line of a table for a constant."""
    found = re.match(r"#define (\w+) (\S+)\n", declared)
    return found and f"| `{found[1]}` | {found[2]} |"


def name(declared: str) -> str:
    """Returns the name that a declaration of C declares."""
    if declared.startswith("typedef"):
        pointer = re.search(r"\(\*(\w+)\)", declared)
        return pointer[1] if pointer and not declared.startswith("typedef struct") else re.findall(r"\w+", declared)[-1]
    found = re.search(r"(\w+)\(", declared)
    return found[1] if found else declared.split()[-1]


def c_page() -> str:
    """The headers of the C library as a page."""
    headers = [(ROOT / "include" / file).read_text(encoding="utf-8") for file in ("tokentrie.h", "tokentrie_eliza.h")]
    header = "\n".join(headers)
    about = words(header[: header.index("*/")].removeprefix("/*").split("\n", 3)[3])
    constants, types, functions = ["| constant | value | |", "| --- | --- | --- |"], [], []
    for found in COMMENT.finditer(header):
        text, declared = words(found[1]), found[2]
        line = constant(declared)
        if line:
            constants.append(f"{line} {' '.join(text.split())} |")
            continue
        declared = re.sub(r"/\*\*\n +\* (.*)\n +\*/", r"/* \1 */", declared)
        entry = f"### {name(declared)}\n\n{text}\n\n```c\n{declared.strip()}\n```"
        (types if declared.startswith("typedef") else functions).append(entry)
    return "\n\n".join(
        [
            "# The header of the C library",
            "For whoever looks up a function, a type or a constant of `tokentrie.h` or `tokentrie_eliza.h`.",
            about,
            "## Functions",
            *functions,
            "## Types",
            *types,
            "## Constants",
            "\n".join(constants),
        ]
    )


TYPESCRIPT = ROOT / "hosts/typescript/src"
EXPORTED = re.compile(r"^export (?:type )?\{([^}]*)\} from \"\./([^\"]+)\.js\";", re.MULTILINE)
HIDDEN = re.compile(r"(?:static |readonly |async |get |set )*#|//|\}|\*|(?:private|protected|override) ")


def ended(text: str) -> bool:
    """Returns whether a head of a declaration is complete: what opened is closed, and a body or an end comes."""
    return text.endswith((" {", ";")) and text.count("(") == text.count(")")


def surface(lines: list[str]) -> list[str]:
    """Members of a class, each with the comment before it and without its body."""
    found: list[str] = []
    rest = iter(lines)
    comment: list[str] = []
    for line in rest:
        if line.startswith("  /**"):
            comment = [line]
            while not comment[-1].endswith("*/"):
                comment.append(next(rest))
            continue
        member = [line]
        while line.startswith("  ") and not line.startswith("  //") and not ended("\n".join(member)):
            member.append(next(rest))
        if member[-1].endswith(" {"):
            member[-1] = member[-1].removesuffix(" {") + ";"
            while next(rest) not in {"  }", "  };"}:
                pass
        if line.strip() and not HIDDEN.match(line.strip()) and "@internal" not in "".join(comment):
            found += [*comment, *member]
        comment = []
    return found


def declaration(source: str, name: str) -> str:
    """Returns the export of a TypeScript file with a name, with its comment and without bodies."""
    begins = rf"^(?:/\*\*(?:(?!\*/)[\s\S])*\*/\n)?export (?:\w+ )*?(class|interface|type|function\*?|const) {name}\b"
    parts = []
    for found in re.finditer(begins, source, re.MULTILINE):
        after = source[found.start() :]
        head = found.end() - found.start()
        if found[1] in {"class", "interface"}:
            text = after[: after.index("}\n" if after[head:].split("\n", 1)[0].endswith("{}") else "\n}\n", head) + 2]
            if found[1] == "class" and "\n" in text[head:].strip():
                first = text.index("{\n", head) + 1
                text = "\n".join([text[:first], *surface(text[first:].strip("\n").split("\n")[:-1]), "}"])
        else:
            cut = r"(?: \{|;)(?=\n)" if found[1].startswith("function") else r";(?=\n(?! ))"
            ends = (end.end() for end in re.finditer(cut, after) if end.start() >= head)
            text = (
                after[: next(end for end in ends if ended(after[head:end]))].removesuffix(" {").removesuffix(";") + ";"
            )
        parts.append(text.strip())
    assert parts, f"{name}: not found"
    return "\n\n".join(parts)


def typescript_page() -> str:
    """Returns the exports of the npm package, as its sources declare them."""
    index = (TYPESCRIPT / "index.ts").read_text(encoding="utf-8")
    entries: dict[str, str] = {}
    for listed, file in EXPORTED.findall(index):
        source = (TYPESCRIPT / f"{file}.ts").read_text(encoding="utf-8")
        for one in listed.split(","):
            name = one.strip().removeprefix("type ")
            if name:
                entries[name] = f"## {name}\n\n```ts\n{declaration(source, name)}\n```"
    title = "# What the npm package exports"
    whom = "For whoever looks up a class, a function or a type of `tokentrie` in bun or Node."
    return "\n\n".join([title, whom, *(entries[name] for name in sorted(entries, key=str.lower))])
