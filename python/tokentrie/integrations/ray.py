"""Labelling data sets of any size with Ray Data: a pool of actors, each with a model and a set, over a cluster.

The prompts, the columns and their meaning are those of `tokentrie choose --input`, by the same code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import tokentrie
from tokentrie.integrations._shared.require import require

ROWS = 32
"""Rows that are decoded together unless something else is asked for."""
SAMPLES = ("a", " 0", "\n", "É")
"""Texts for fields, to find out what the prompts of a template begin with."""


class Chooser:
    """Chooses for the rows of batches: a class for `Dataset.map_batches`, with `batch_format="pyarrow"`.

    Each actor opens the model once and maps or makes the set once. Rows keep their columns and get "choice",
    "probability", "mass" (the probability of any value at all) and "probabilities" (a map, best first, six digits).

    Args:
        values: the legal values: a list of str, a Trie, a `.ttrie` file (mapped: the actors of a node share it), or a
            file of lines. Files must be there on every node.
        model: a GGUF file, there on every node. None: the tiny model inside the package.
        field: the column that is the prompt.
        template: the prompt with columns in braces, such as `"Review: {text}\\nLabel: "`. Names of control tokens count
            in the template alone: the text of rows stays text.
        chat: put the prompt of a row into the model's own chat template, as what the user says. Names of control tokens
            then count nowhere in it.
        system: the system message before it, such as the task; brings `chat`.
        answer_prefix: what the answer begins with in a chat, such as the `prefix` of the values.
        prefix, suffix: text around every value of a list or a file of lines, as for `Trie.from_strings`.
        top: score only what the best so many values need.
        on_error: a faulty row is raised, left out ("skip"), or gets a column "error" in place of a result ("return").
        group: rows that are decoded together. What a row gets depends on its group, in the last digits; with 1 it
            depends on the row alone, whatever the batches are.
        n_ctx, n_gpu_layers, precise: as for `Model`.
        n_threads: threads of a forward pass. None: the CPUs that Ray gives the actor (`num_cpus=`).

    Raises:
        OptionError: an argument is out of range, or the template is malformed.
        TokenTrieError: a file cannot be read; TrieError, VocabularyError: the values make no set; ModelError.

    Example:
        >>> import pyarrow
        >>> from tokentrie.integrations.ray import Chooser
        >>> label = Chooser(["good", "bad"], template="Review: {text}\\nLabel: ")  # for ds.map_batches(Chooser, ...)
        >>> rows = label(pyarrow.table({"text": ["I like it", "never again"]}))
        >>> rows.column_names
        ['text', 'choice', 'probability', 'mass', 'probabilities']
    """

    def __init__(
        self,
        values: Sequence[str] | tokentrie.Trie | str | PathLike[str],
        *,
        model: str | PathLike[str] | None = None,
        field: str | None = None,
        template: str | None = None,
        chat: bool = False,
        system: str | None = None,
        answer_prefix: str = "",
        prefix: str = "",
        suffix: str = "",
        top: int | None = None,
        on_error: Literal["raise", "skip", "return"] = "raise",
        group: int = ROWS,
        n_ctx: int | None = None,
        n_threads: int | None = None,
        n_gpu_layers: int = 0,
        precise: bool = False,
    ) -> None:
        # The command line is imported where it is needed: it brings typer and rich.
        from tokentrie.cli.choosing import dataset

        self._arrow = require("pyarrow", "ray")
        if on_error not in ("raise", "skip", "return"):
            raise tokentrie.errors.OptionError(f'on_error is {on_error!r}: it must be "raise", "skip" or "return"')
        if group < 1:
            raise tokentrie.errors.OptionError(f"group is {group}: it must be 1 or more")
        self._on_error, self._group = on_error, group
        self._prompts = _prompts(field, template)
        threads = assigned_cpus() if n_threads is None else n_threads
        opened = tokentrie.Model(model, n_ctx=n_ctx, n_gpu_layers=n_gpu_layers, n_threads=threads, precise=precise)
        trie = _trie(values, opened.vocab, prefix, suffix)
        turn = _turn(chat, system, answer_prefix)
        self._rows = dataset.Chooser(opened, trie, top, turn, self._prompts, _anchor(self._prompts, opened, turn))

    def __call__(self, batch: Any) -> Any:
        """The batch with its results.

        Args:
            batch: a pyarrow.Table.

        Returns:
            pyarrow.Table.

        Raises:
            TypeError: it is not a table: `map_batches` was not given `batch_format="pyarrow"`.
            TokenTrieError: a column is missing or has the name of a result, or, with `on_error="raise"`, a row is
                faulty.
        """
        if not isinstance(batch, self._arrow.Table):
            found = type(batch).__name__
            raise TypeError(f'a batch must be a pyarrow.Table, not {found}: map_batches(..., batch_format="pyarrow")')
        self._check(batch.column_names)
        made = list(self._results(batch.select(sorted(self._prompts.needed)).to_pylist()))
        if self._on_error == "skip":
            kept = [at for at, one in enumerate(made) if isinstance(one, dict)]
            batch, made = batch.take(self._arrow.array(kept, self._arrow.int64())), [made[at] for at in kept]
        for name, kind in self._columns().items():
            column = [_cell(one, name) for one in made]
            batch = batch.append_column(name, self._arrow.array(column, kind))
        return batch

    def _columns(self) -> dict[str, Any]:
        """Names and types of the columns that rows get: the same for every batch."""
        arrow = self._arrow
        found = {"choice": arrow.string(), "probability": arrow.float64(), "mass": arrow.float64()}
        found["probabilities"] = arrow.map_(arrow.string(), arrow.float64())
        return found | ({"error": arrow.string()} if self._on_error == "return" else {})

    def _check(self, names: Sequence[str]) -> None:
        shown = ", ".join(map(repr, names))
        if missing := self._prompts.needed - set(names):
            raise tokentrie.TokenTrieError(f"unknown column {min(missing)!r}: the columns are {shown}")
        if taken := self._columns().keys() & set(names):
            raise tokentrie.TokenTrieError(f"the column {min(taken)!r} has the name of a result: rename it")

    def _results(self, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any] | Exception]:
        """Returns for every row its results, or its error."""
        for start in range(0, len(rows), self._group):
            made = [self._tokens(row) for row in rows[start : start + self._group]]
            tokens = [one for one in made if not isinstance(one, Exception)]
            results = self._rows.results(tokens) if tokens else iter(())
            for at, one in enumerate(made, start):
                result = one if isinstance(one, Exception) else next(results)
                if isinstance(result, Exception) and self._on_error == "raise":
                    hint = 'on_error="skip" leaves such rows out, "return" keeps them with the reason'
                    raise tokentrie.TokenTrieError(f"row {at} of a batch of {len(rows)}: {result}; {hint}")
                yield result

    def _tokens(self, fields: dict[str, Any]) -> list[int] | Exception:
        from tokentrie.cli.rows.input import Row, RowError
        from tokentrie.cli.rows.parquet import as_json

        try:
            row = Row(0, {name: as_json(value) for name, value in fields.items()})
            return self._rows.prepare(row)
        except RowError as error:
            return error


def _cell(result: dict[str, Any] | Exception, name: str) -> Any:
    if name == "error":
        return str(result) if isinstance(result, Exception) else None
    if isinstance(result, Exception):
        return None
    return list(result[name].items()) if name == "probabilities" else result[name]


def _prompts(field: str | None, template: str | None) -> Any:
    import typer

    from tokentrie.cli.rows.input import Prompts

    if field is None and template is None:
        raise tokentrie.errors.OptionError("give field= or template=: what the prompt of a row is")
    try:
        return Prompts(field, template)
    except typer.BadParameter as error:
        raise tokentrie.errors.OptionError(f"template: {error.message}") from error


def _trie(values: Any, vocab: tokentrie.Vocab, prefix: str, suffix: str) -> tokentrie.Trie:
    """The set, checked as the command line checks it."""
    import typer

    from tokentrie.cli.source import Source

    if isinstance(values, tokentrie.Trie):
        if prefix or suffix:
            raise tokentrie.errors.OptionError("prefix and suffix go with texts: a Trie says the tokens already")
        return values
    path = Path(values) if isinstance(values, str | PathLike) else None
    set_file = path if path and path.suffix == ".ttrie" else None
    lines = None if set_file else path
    texts = [] if path else list(values)
    if path is None and not texts:
        raise tokentrie.errors.OptionError("values is empty: give at least one")
    try:
        source = Source(None, None, set_file, None, texts, lines, prefix, suffix)
        return source.trie(vocab, source.read(), distinct_names=True)
    except typer.BadParameter as error:
        raise tokentrie.errors.OptionError(f"values: {error.message}") from error


def _turn(chat: bool, system: str | None, answer_prefix: str) -> Any:
    from tokentrie.cli.choosing.turn import Turn

    if system == "":
        raise tokentrie.errors.OptionError("system is empty: leave it out, chat=True alone has no system message")
    if answer_prefix and not chat and system is None:
        raise tokentrie.errors.OptionError(
            "answer_prefix opens the answer of a chat: it goes with chat=True or system="
        )
    return Turn(chat, system, answer_prefix)


def _anchor(prompts: Any, model: tokentrie.Model, turn: Any) -> list[int]:
    """Returns the beginning that all prompts share: decoded once by an actor. Rows that differ are decoded alone."""
    from tokentrie.cli.rows.input import Row, RowError

    made = []
    for text in SAMPLES:
        try:
            parts = prompts.prompt_parts(Row(0, dict.fromkeys(prompts.needed, text)))
        except RowError:
            # A template that looks into objects, or writes numbers in some format.
            return []
        made.append(turn.tokens(model, parts))
    first, last = min(made), max(made)
    same = (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return first[: next(same, min(len(first), len(last)))]


def assigned_cpus() -> int | None:
    """CPUs that Ray gave the actor that this runs in; None outside."""
    # An actor of Ray has imported it.
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return None
    cpus = ray.get_runtime_context().get_assigned_resources().get("CPU")
    return max(1, int(cpus)) if cpus else None
