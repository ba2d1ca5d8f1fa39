"""Writes the docstrings of the built module into its stub, so that editors show them. Signatures stay hand-written.

python tools/stubs.py            write them
python tools/stubs.py --check    say what differs, and end with 1 if anything does
"""

from __future__ import annotations

import argparse
import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
STUB = ROOT / "python" / "tokentrie" / "_native.pyi"

Documented = ast.ClassDef | ast.FunctionDef


def documented(scope: ast.Module | ast.ClassDef, before: str = "") -> Iterator[tuple[str, Documented]]:
    """Dotted name and node of all that has a docstring of its own in a stub. `__len__` and the like have Python's."""
    for node in scope.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield before + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from documented(node, f"{before}{node.name}.")


def wanted(module: ModuleType, name: str) -> str:
    """The docstring of what the module has under this dotted name; empty where it has none."""
    found: object = module
    for part in name.split("."):
        found = inspect.getattr_static(found, part, None)
    if isinstance(found, staticmethod | classmethod):
        found = found.__func__
    return inspect.cleandoc(getattr(found, "__doc__", None) or "")


def literal(text: str, indent: str) -> str:
    """The docstring as source: in triple quotes, raw where it has backslashes."""
    if '"""' in text or text.endswith(("\\", '"')) or text.startswith('"'):
        raise SystemExit(f"stubs: a docstring must not begin or end like this, or hold three quotes: {text!r}")
    lines = "\n".join(indent + line if line else "" for line in text.split("\n")).lstrip()
    end = f"\n{indent}" if "\n" in text else ""
    return f'{"r" if chr(92) in text else ""}"""{lines}{end}"""'


def written(source: str, module: ModuleType) -> tuple[str, list[str]]:
    """The stub with the docstrings of the module, and the names of what was different."""
    lines = source.splitlines(keepends=True)
    different = []
    for name, node in reversed(list(documented(ast.parse(source)))):
        text = wanted(module, name)
        if (ast.get_docstring(node) or "") == text:
            continue
        different.append(name)
        indent = " " * (node.col_offset + 4)
        doc = [f"{indent}{literal(text, indent)}\n"] if text else []
        first, head = node.body[0], header_end(node)
        if all(isinstance(part, ast.Expr) for part in node.body):  # a docstring, `...` or both
            end = first.col_offset if first.lineno == head else None
            header = lines[head - 1][:end].rstrip()
            lines[head - 1 : node.end_lineno] = [f"{header}\n", *doc] if doc else [f"{header} ...\n"]
        elif isinstance(first, ast.Expr):
            lines[first.lineno - 1 : first.end_lineno] = doc
        else:
            begin = min([first.lineno, *(decorator.lineno for decorator in getattr(first, "decorator_list", []))])
            lines[begin - 1 : begin - 1] = doc
    return "".join(lines), list(dict.fromkeys(reversed(different)))


def header_end(node: Documented) -> int:
    """The line that ends the header of a class or function."""
    if isinstance(node, ast.ClassDef):
        return max([node.lineno, *(base.end_lineno or 0 for base in node.bases)])
    assert node.returns is not None, f"{node.name} has no return type"
    return node.returns.end_lineno or node.lineno


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing")
    parser.add_argument("--stub", type=Path, default=STUB, help="the stub (%(default)s)")
    options = parser.parse_args(arguments)
    from tokentrie import _native

    stub, different = written(options.stub.read_text(encoding="utf-8"), _native)
    if options.check and different:
        what = f"the docstrings of {some(different)} are not those of the built module"
        print(f"{options.stub}: {what}: run `python tools/stubs.py`", file=sys.stderr)
        return 1
    if different:
        options.stub.write_text(stub, encoding="utf-8")
        settings = ["--quiet", "--config", str(ROOT / "pyproject.toml")]
        subprocess.run([sys.executable, "-m", "ruff", "format", *settings, str(options.stub)], check=True)
        print(f"{options.stub}: wrote the docstrings of {some(different)}")
    return 0


def some(names: list[str]) -> str:
    """The first few of them."""
    shown, more = names[:8], len(names) - 8
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


if __name__ == "__main__":
    sys.exit(main())
