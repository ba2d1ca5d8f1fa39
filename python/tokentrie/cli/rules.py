"""Rules of `generate` and `inspect` as options: a regular expression, a grammar, a JSON Schema; any spec."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.lines import as_text

EXAMPLES = ("json", "arithmetic", "c", "sql")
"""Grammars of the package; a file of such a name is given as ./json."""


@dataclass(frozen=True)
class RuleSource:
    """Rule options as they were given; at most one of them is not None."""

    regex: str | None = None
    grammar: str | None = None
    json_schema: str | None = None
    spec: str | None = None

    @property
    def options(self) -> dict[str, object]:
        """Returns the values of the options by name."""
        named = {"--regex": self.regex, "--grammar": self.grammar, "--json-schema": self.json_schema}
        return {**named, "--constraint": self.spec}

    @property
    def is_given(self) -> bool:
        """Returns True if any option is given."""
        return any(value is not None for value in self.options.values())

    @property
    def file(self) -> Path | None:
        """The file that has to be read, if one has."""
        if self.grammar is not None and self.grammar not in EXAMPLES:
            return Path(self.grammar)
        if self.json_schema is not None and not _is_json(self.json_schema):
            return Path(self.json_schema)
        if self.spec is not None and not _is_json(self.spec):
            return Path(self.spec)
        return None

    def rule(self) -> tokentrie.rules.Rule:
        """As `constraint`, where no spec is given."""
        made = self.constraint()
        assert isinstance(made, tokentrie.rules.Rule)
        return made

    def constraint(self) -> tokentrie.rules.Rule | tokentrie.rules.Spec:
        """Reads and makes it: before a model is loaded.

        Raises:
            BadParameter: what was given as the value of an option makes none.
            RuleError: what a file holds makes none; OptionError of a spec. OSError and others where it cannot be read.
        """
        try:
            content = as_text(console.read(self.file), self.file) if self.file else None
        except FileNotFoundError as error:
            if self.grammar is not None:
                problem = f"{error.strerror}, and the grammars of the package are {', '.join(EXAMPLES)}"
                raise FileNotFoundError(error.errno, problem, self.grammar) from None
            raise
        try:
            if self.regex is not None:
                return tokentrie.Regex(self.regex)
            if self.grammar in EXAMPLES:
                return tokentrie.rules.Grammar.example(self.grammar)  # type: ignore[arg-type]
            if self.grammar is not None:
                return tokentrie.rules.Grammar(content or "")
            if self.spec is not None:
                # The sets of a spec lie beside it.
                folder = self.file.parent if self.file and str(self.file) != "-" else None
                return tokentrie.constraint(content if content is not None else self.spec, sets=folder)
            schema = content if content is not None else self.json_schema
            return tokentrie.JsonSchema(schema or "")
        except (tokentrie.RuleError, tokentrie.errors.OptionError) as error:
            if self.file:
                raise type(error)(f"{self.file}: {error}") from None
            (name,) = [name for name, value in self.options.items() if value is not None]
            # The other lines point at the place, and messages have one line.
            raise typer.BadParameter(str(error).partition("\n")[0], param_hint=name) from None


def _is_json(text: str) -> bool:
    """Returns True if this is a schema, and not the name of a file with one."""
    return text.lstrip().startswith("{") or text.strip() in ("true", "false")
