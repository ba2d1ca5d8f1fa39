"""Puts the docstrings of a built module into its stub, so that editors show them.

Signatures are written by hand, in crates/tokentrie-py/_native.pyi. Builds and `./dev setup` make
python/tokentrie/_native.pyi of it, and wheels carry that.

    python build_backend/stubs.py MODULE STUB    MODULE: the built module's file; STUB: what to write
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

SIGNATURES = Path(__file__).resolve().parent.parent / "crates" / "tokentrie-py" / "_native.pyi"

Documented = ast.ClassDef | ast.FunctionDef


def documented(scope: ast.Module | ast.ClassDef, before: str = "") -> Iterator[tuple[str, Documented]]:
    """Dotted name and node of all that gets a docstring of its own in a stub. `__len__` and the like have Python's."""
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


def documented_stub(source: str, module: ModuleType) -> str:
    """A stub without docstrings, with those of the module. What the module does not have gets none."""
    lines = source.splitlines(keepends=True)
    for name, node in reversed(list(documented(ast.parse(source)))):
        text = wanted(module, name)
        if not text:
            continue
        indent = " " * (node.col_offset + 4)
        doc = f"{indent}{literal(text, indent)}\n"
        first, head = node.body[0], header_end(node)
        if isinstance(first, ast.Expr):  # `...`
            end = first.col_offset if first.lineno == head else None
            lines[head - 1 : node.end_lineno] = [f"{lines[head - 1][:end].rstrip()}\n", doc]
        else:
            begin = min([first.lineno, *(decorator.lineno for decorator in getattr(first, "decorator_list", []))])
            lines[begin - 1 : begin - 1] = [doc]
    return "".join(lines)


def header_end(node: Documented) -> int:
    """The line that ends the header of a class or function."""
    if isinstance(node, ast.ClassDef):
        return max([node.lineno, *(base.end_lineno or 0 for base in node.bases)])
    assert node.returns is not None, f"{node.name} has no return type"
    return node.returns.end_lineno or node.lineno


def loaded(file: Path) -> ModuleType:
    """The module in a file, alone."""
    loader = importlib.machinery.ExtensionFileLoader("_native", str(file))
    spec = importlib.util.spec_from_loader("_native", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def main(module: str, stub: str) -> None:
    source = SIGNATURES.read_text(encoding="utf-8")
    Path(stub).write_text(documented_stub(source, loaded(Path(module))), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
