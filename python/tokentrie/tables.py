"""Choices and decisions as tables of pyarrow, pandas and polars, with the columns that the commands write."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from tokentrie import schemas
from tokentrie._native import OptionError

if TYPE_CHECKING:
    from tokentrie._native import Choices
    from tokentrie.questions import AskedQuestion

#: Columns of an answer, behind the name of its question, and one more where it was asked for.
ANSWER_PARTS, SCOPE = ("answer", "probability", "mass", "probabilities"), "out_of_scope"


def _columns(choices: Choices[Any], errors: bool) -> dict[str, list[Any]]:
    """The columns; those of a choice are None beside an error, and the value below a threshold."""
    names = ("choice", "probability", "mass", "probabilities")
    done: dict[str, list[Any]] = {name: [] for name in names}
    said = []
    for one in choices:
        failed = isinstance(one, Exception)
        said.append(str(one) if failed else None)
        row = (None,) * 4 if failed else (one.value, one.probability, one.mass, dict(one.items()))
        for name, value in zip(names, row, strict=True):
            done[name].append(value)
    return done | ({"error": said} if errors else {})


def to_arrow(choices: Choices[Any], prompts: Any, errors: bool) -> Any:
    """Implements `Choices.to_arrow`, whose documentation it has."""
    pyarrow = importlib.import_module("pyarrow")

    columns = _columns(choices, errors)
    numbered = any(isinstance(next(iter(row)), int) for row in columns["probabilities"] if row)
    key = "int" if numbered else "str"
    kinds = {"choice": key, "probabilities": f"{key} map", "error": "str"}
    return pyarrow.table({name: _array(values, kinds.get(name, "float")) for name, values in columns.items()})


def _array(values: list[Any], kind: str) -> Any:
    """Values as an array of pyarrow; a map is of what its name says to numbers."""
    pyarrow = importlib.import_module("pyarrow")

    plain = {"str": pyarrow.string(), "int": pyarrow.int64(), "bool": pyarrow.bool_(), "float": pyarrow.float64()}
    if kind in plain:
        return pyarrow.array(values, plain[kind])
    pairs = [row if row is None else list(row.items()) for row in values]
    return pyarrow.array(pairs, pyarrow.map_(plain[kind.removesuffix(" map")], pyarrow.float64()))


def to_pandas(choices: Choices[Any], prompts: Any, errors: bool) -> Any:
    """Implements `Choices.to_pandas`, whose documentation it has."""
    pandas = importlib.import_module("pandas")

    columns = _columns(choices, errors)
    index = prompts.index if isinstance(prompts, pandas.Series) else None
    if index is not None and choices.skipped:
        index = index.delete(choices.skipped)
    return pandas.DataFrame(columns, index=index)


class StateTable:
    """A table of pandas, polars or pyarrow, one or more columns of which are states to decide about. With `scope`
    answers have that column, too.

    Attributes: `table`; `names`, those of these columns; `is_one`, whether a state is the value of one column, and no
    dict.
    """

    def __init__(self, table: Any, column: Any, scope: bool) -> None:
        self.table, self._parts = table, (*ANSWER_PARTS, SCOPE) if scope else ANSWER_PARTS
        self._library = type(table).__module__.partition(".")[0]
        if self._library not in ("pandas", "polars", "pyarrow") or not hasattr(table, "shape"):
            kind = f"{self._library}.{type(table).__name__}"
            raise TypeError(f"states is a {kind}: expected a whole table of pandas, polars or pyarrow, or a list")
        names = self._names()
        if column is None:
            listed = ", ".join(map(repr, names))
            raise TypeError(f"states is a whole table: name the column of the states with column=, one of {listed}")
        self.is_one = isinstance(column, str)
        self.names: list[str] = [column] if self.is_one else list(column)
        for name in self.names:
            if name not in names:
                raise OptionError(f"unknown column {name!r}: the columns are {', '.join(map(repr, names))}")
        if not self.names:
            raise OptionError("column is empty: expected the name of a column, or some names")

    def _names(self) -> list[Any]:
        return list(self.table.column_names if self._library == "pyarrow" else self.table.columns)

    def __len__(self) -> int:
        return int(self.table.shape[0])

    def _column(self, name: str) -> Iterator[Any]:
        column = self.table[name]
        if self._library == "pyarrow":
            return chain.from_iterable(chunk.to_pylist() for chunk in column.iterchunks())
        return iter(column)

    def __iter__(self) -> Iterator[Any]:
        columns = [self._column(name) for name in self.names]
        if self.is_one:
            return columns[0]
        return (dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True))

    def check_names(self, questions: Mapping[str, AskedQuestion], errors: bool) -> None:
        """Raises where a column of the answers would have the name of one that is there."""
        names = self._names()
        for name in [*(f"{name}_{part}" for name in questions for part in self._parts), *["error"] * errors]:
            if name in names:
                raise OptionError(f"the table has a column {name!r} already: rename it, or the question")

    def with_answers(self, questions: Mapping[str, AskedQuestion], answers: Sequence[Any], on_error: str) -> Any:
        """Returns the table with the columns of the answers behind its own; an answer may be an error."""
        added: dict[str, tuple[list[Any], str]] = {}
        kept = [row for row, one in enumerate(answers) if on_error != "skip" or not isinstance(one, Exception)]
        for name, question in questions.items():
            kind, probabilities = _kinds(question)
            kinds = (kind, "float", "float", probabilities, "float")
            for place, (part, of) in enumerate(zip(self._parts, kinds, strict=False)):
                rows = (_answer_parts(answers[row], name, kind) for row in kept)
                added[f"{name}_{part}"] = [row[place] for row in rows], of
        if on_error == "return":
            errors = [str(one) if isinstance(one, Exception) else None for one in answers]
            added["error"] = errors, "str"
        whole = len(kept) == len(answers)
        if self._library == "pandas":
            frame = self.table if whole else self.table.iloc[kept]
            series = importlib.import_module("pandas").Series
            return frame.assign(
                **{name: series(values, frame.index, _pandas_type(kind)) for name, (values, kind) in added.items()}
            )
        if self._library == "polars":
            frame = self.table if whole else self.table[kept]
            return frame.with_columns([_series(name, values, kind) for name, (values, kind) in added.items()])
        table = self.table if whole else self.table.take(kept)
        for name, (values, kind) in added.items():
            table = table.append_column(name, _array(values, kind))
        return table


def _kinds(question: AskedQuestion) -> tuple[str, str]:
    """The kinds of an answer's value and of its probabilities. Options of several kinds are texts, as JSON."""
    if question.said["type"] == "score":
        return "float", "str map"
    found = {type(schemas.to_json_value(option)) for option in question.options}
    names = {str: "str", bool: "bool", int: "int"}
    kind = names.get(found.pop(), "str") if len(found) == 1 else "str"
    return kind, f"{kind} map"


def _answer_parts(answers: Any, name: str, kind: str) -> tuple[Any, ...]:
    """Value, probability, mass, probabilities and scope of an answer; None each beside an error."""
    if isinstance(answers, Exception):
        return (None,) * (len(ANSWER_PARTS) + 1)
    answer = answers[name]

    def plain(option: Any) -> Any:
        value = schemas.to_json_value(option)
        is_text = kind == "str" and not isinstance(value, str)
        return json.dumps(value) if is_text and option is not None else value

    value = answer.value if answer.kind == "score" else plain(answer.value)
    shares = {
        "none of these" if option is None and kind == "str" else plain(option): share
        for option, share in answer.probabilities.items()
        if share == share and not (option is None and kind != "str")
    }
    return value, answer.probability, answer.mass, shares, answer.out_of_scope


def _pandas_type(kind: str) -> Any:
    """The dtype of a column: values may be missing."""
    return {"float": "float64", "bool": "boolean", "int": "Int64"}.get(kind, "object")


def _series(name: str, values: list[Any], kind: str) -> Any:
    """Values as a series of polars; a map is a list of its options and probabilities."""
    polars = importlib.import_module("polars")

    plain = {"str": polars.String, "int": polars.Int64, "bool": polars.Boolean, "float": polars.Float64}
    if kind in plain:
        return polars.Series(name, values, plain[kind])
    pairs = [
        row if row is None else [{"option": option, "probability": share} for option, share in row.items()]
        for row in values
    ]
    fields = {"option": plain[kind.removesuffix(" map")], "probability": polars.Float64}
    return polars.Series(name, pairs, polars.List(polars.Struct(fields)))
