"""Options from a file: `--config FILE.toml`."""

from __future__ import annotations

import difflib
import enum
import inspect
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from tokentrie.cli import console
from tokentrie.cli.lines import as_text

OPTION = "--config"
#: Types of TOML values, by the type of the option; `true` is not a number, and a number is not text.
KINDS: dict[type, tuple[str, tuple[type, ...]]] = {
    bool: ("true or false", (bool,)),
    int: ("a whole number", (int,)),
    float: ("a number", (int, float)),
    str: ("a text", (str,)),
}


class WithConfig(TyperCommand):
    """A command whose options may stand in a file: they are read before those of the command line, which win."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts what the file says before what was given."""
        function = inspect.unwrap(self.callback) if self.callback is not None else None
        own = _paths(args)
        from_file = [word for path in own for word in _words(path, _types(function))] if function is not None else []
        return super().parse_args(ctx, [*from_file, *args])


def _paths(args: Sequence[str]) -> Iterator[Path]:
    for number, word in enumerate(args):
        if word == "--":
            return
        if word == OPTION and number + 1 < len(args):
            yield Path(args[number + 1])
        if word.startswith(f"{OPTION}="):
            yield Path(word.removeprefix(f"{OPTION}="))


def _types(function: Any) -> dict[str, Any]:
    """The type of each option of a command by its name without the dashes."""
    return {name.replace("_", "-"): kind for name, kind in get_type_hints(function).items() if name != "return"}


def _words(path: Path, known: Mapping[str, Any]) -> list[str]:
    """The options of a file as the command line has them.

    Raises:
        typer.BadParameter: the file is not TOML, or an option in it is unknown or has a value of another type.
    """
    try:
        import tomllib
    except ImportError:
        raise _wrong("files of options need Python 3.11 or later: give the options themselves") from None
    try:
        given = tomllib.loads(as_text(console.read(path), path))
    except tomllib.TOMLDecodeError as error:
        raise _wrong(f"{path}: invalid TOML: {error}") from None
    options, words = {name: kind for name, kind in known.items() if f"--{name}" != OPTION}, []
    for name, value in given.items():
        if (kind := options.get(name)) is None:
            near = difflib.get_close_matches(name, options, 1)
            may = f": is {near[0]} meant?" if near else f"; it may be {', '.join(sorted(options))}"
            raise _wrong(f"{path}: unknown option {name!r}{may}")
        for one in _values(f"{path}: invalid {name}", kind, value):
            if isinstance(one, bool):
                # An option that is off by default has no form that turns it off.
                words += [f"--{name}"] if one else [f"--no-{name}"] if kind is not bool else []
            else:
                words.append(f"--{name}={one}")
    return words


def _values(place: str, kind: Any, value: Any) -> list[Any]:
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(one for one in get_args(kind) if one is not type(None))
    is_list = get_origin(kind) is list
    inner = get_args(kind)[0] if is_list else kind
    name, may = KINDS[str if issubclass(inner, (Path, enum.Enum)) else inner]
    expected = f"a list, each of it {name}" if is_list else name
    if is_list != isinstance(value, list):
        raise _wrong(f"{place}: expected {expected}, got {value!r}")
    values = value if is_list else [value]
    for one in values:
        if not isinstance(one, may) or isinstance(one, bool) != (inner is bool):
            raise _wrong(f"{place}: expected {expected}, got {one!r}")
    return values


def _wrong(message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint=OPTION)
