"""Sources of the legal values of `choose` and `generate`, and the prompt before them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import typer

import tokentrie
from tokentrie.cli import console
from tokentrie.cli.inspecting import inspect_file
from tokentrie.cli.lines import as_text, blank_ends
from tokentrie.cli.rules import RuleSource


@dataclass(frozen=True)
class Hardware:
    """Hardware settings of the model."""

    n_ctx: int | None
    n_threads: int | None
    n_gpu_layers: int
    draft: str | None = None


@dataclass(frozen=True)
class Source:
    """The legal values: exactly one of a payload, a .ttrie file and texts of three kinds; and the text around them.

    Where a rule may be given too, it is one of them.
    """

    payload: Path | None
    path: str | None
    set_file: Path | None
    choices: str | None
    choice: list[str]
    choices_file: Path | None
    prefix: str
    suffix: str
    rules: RuleSource | None = None

    def __post_init__(self) -> None:
        exactly_one(
            {
                "--payload": self.payload,
                "--set": self.set_file,
                "--choices": self.choices,
                "--choice": self.choice or None,
                "--choices-file": self.choices_file,
            }
            | (self.rules.options if self.rules else {})
        )
        if self.path is not None and self.payload is None:
            raise typer.BadParameter("it needs --payload", param_hint="--path")
        if (self.payload or self.set_file) and (self.prefix or self.suffix):
            what = "a payload" if self.payload else "a .ttrie file"
            raise typer.BadParameter(f"{what} says the tokens already", param_hint="--prefix, --suffix")
        if self.is_rule and (self.prefix or self.suffix):
            raise typer.BadParameter("a rule says all of a text, so it goes in there", param_hint="--prefix, --suffix")

    @property
    def file(self) -> Path | None:
        """The file to read as a whole, if any. A .ttrie file is mapped."""
        return self.payload or self.choices_file or (self.rules.file if self.rules else None)

    @property
    def is_rule(self) -> bool:
        """Returns True for a rule, False for a set."""
        return self.rules is not None and self.rules.is_given

    def read(self) -> bytes | tokentrie.rules.Rule | tokentrie.rules.Spec:
        """Returns the content of the file, or the rule that was given, before a model is loaded."""
        if self.rules and self.rules.is_given:
            return self.rules.constraint()
        return console.read(self.file) if self.file else b""

    def constraint(
        self, vocab: tokentrie.Vocab, content: bytes | tokentrie.rules.Rule | tokentrie.rules.Spec
    ) -> tokentrie.Trie | tokentrie.rules.Rule | tokentrie.rules.Spec:
        """Returns the constraint over a vocabulary."""
        return self.trie(vocab, content) if isinstance(content, bytes) else content

    def trie(
        self,
        vocab: tokentrie.Vocab,
        content: bytes | tokentrie.rules.Rule | tokentrie.rules.Spec,
        distinct_names: bool = False,
    ) -> tokentrie.Trie:
        """The legal values in a vocabulary; `content` is that of the file.

        Args:
            distinct_names: no two leaves of a payload may have the same name. Equal texts are an error anyhow.
        """
        assert isinstance(content, bytes)
        if self.set_file:
            if not inspect_file.is_file(self.set_file) and self.set_file.is_file():
                problem = "is not a .ttrie file, which tokentrie build writes"
                hint = "--choices-file takes lines, --payload a payload"
                raise tokentrie.TokenTrieError(f"{self.set_file} {problem}: {hint}")
            return tokentrie.Trie.open(self.set_file, vocab=vocab)
        if self.payload:
            trie = tokentrie.Trie.from_payload(content, self.path, vocab=vocab)
            if distinct_names:
                self._check_distinct(leaf.name or "" for leaf in trie)
            return trie
        values = self._values(content)
        self._check_distinct(values)
        if blanks := [value for value in values if blank_ends(value)]:
            warn_of_blanks(blanks[0], len(blanks))
        trie = tokentrie.Trie.from_strings(vocab, values, self.prefix, self.suffix)
        if len(trie) < len(values):
            raise tokentrie.errors.VocabularyError("two values have the same tokens in this vocabulary")
        return trie

    def texts(self, content: bytes | tokentrie.rules.Rule | tokentrie.rules.Spec) -> list[str] | None:
        """The legal values, where they were given as texts; `content` is that of the file."""
        if self.payload or self.set_file or not isinstance(content, bytes):
            return None
        return self._values(content)

    def _values(self, content: bytes) -> list[str]:
        if self.choice:
            if not all(self.choice):
                raise typer.BadParameter("an empty value", param_hint="--choice")
            return self.choice
        if self.choices is not None:
            values = [value.strip() for value in self.choices.split(",")]
            if not all(values):
                raise typer.BadParameter(f"an empty value in {self.choices!r}", param_hint="--choices")
            return values
        assert self.choices_file is not None
        if content.startswith(inspect_file.MAGIC):
            raise tokentrie.TokenTrieError(f"{self.choices_file} is a .ttrie file: give it with --set")
        values = [line for line in as_text(content, self.choices_file).split("\n") if line]
        if not values:
            raise tokentrie.TokenTrieError(f"{self.choices_file}: no line with a value")
        return values

    def _check_distinct(self, names: Iterable[str]) -> None:
        ((name, count),) = Counter(names).most_common(1)
        if count == 1:
            return
        problem = f"the value {name!r} is given {count} times"
        if self.file:
            raise tokentrie.TokenTrieError(f"{self.file}: {problem}")
        raise typer.BadParameter(problem, param_hint="--choice" if self.choice else "--choices")


class Names:
    """Names of the leaves of a trie, looked up when they are needed: a set may be larger than the memory."""

    def __init__(self, trie: tokentrie.Trie, vocab: tokentrie.Vocab) -> None:
        self._trie, self._vocab = trie, vocab

    def __getitem__(self, leaf: int) -> str:
        """Its name; without one, the text of its tokens."""
        found = self._trie.leaf(int(leaf))
        if found is None:
            raise tokentrie.errors.TrieError(f"leaf {leaf} is not in the set: its file is damaged")
        return self._vocab.detokenize(found.tokens) if found.name is None else found.name


def warn_of_blanks(value: str, count: int, where: str = "") -> None:
    """A warning that names the first of `count` values that begin or end with blanks."""
    others = f", as {console.count(count - 1, 'other does', 'others do')}" if count > 1 else ""
    message = f"{where}the value {value!r} begins or ends with blanks, which are part of it{others}"
    warnings.warn(message, tokentrie.errors.TokenTrieWarning, stacklevel=2)


def prompt_text(prompt: str | None, file: Path | None, source: Source) -> str:
    """The prompt from one of its two options."""
    exactly_one({"--prompt": prompt, "--prompt-file": file})
    if file is None:
        return prompt or ""
    if str(file) == "-" == str(source.file):
        raise typer.BadParameter("standard input can be read only once", param_hint="--prompt-file")
    return as_text(console.read(file), file)


def exactly_one(options: dict[str, object]) -> None:
    """Refuses none or several of these options."""
    given = [name for name, value in options.items() if value is not None]
    if len(given) != 1:
        *names, last = options
        problem = f"give only one of {' and '.join(given)}" if given else f"give {', '.join(names)} or {last}"
        raise typer.BadParameter(problem, param_hint=given or list(options))


def check_usage(where: dict[str, object], of_rows: dict[str, object]) -> None:
    """One of the options that say where prompts come from; those about rows only with `--input`."""
    exactly_one(where)
    astray = [name for name, value in of_rows.items() if value is not None]
    if where["--input"] is None and astray:
        raise typer.BadParameter("it goes with --input", param_hint=astray)
