"""Choices as tables of pyarrow and pandas, with the columns that `tokentrie choose` writes."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokentrie._native import Choices


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
    maps = [row if row is None else list(row.items()) for row in columns["probabilities"]]
    numbered = any(isinstance(key, int) for row in maps if row for key, _ in row[:1])
    key = pyarrow.int64() if numbered else pyarrow.string()
    kinds = {"choice": key, "probabilities": pyarrow.map_(key, pyarrow.float64()), "error": pyarrow.string()}
    arrays = {
        name: pyarrow.array(maps if name == "probabilities" else values, kinds.get(name, pyarrow.float64()))
        for name, values in columns.items()
    }
    return pyarrow.table(arrays)


def to_pandas(choices: Choices[Any], prompts: Any, errors: bool) -> Any:
    """Implements `Choices.to_pandas`, whose documentation it has."""
    pandas = importlib.import_module("pandas")

    columns = _columns(choices, errors)
    index = prompts.index if isinstance(prompts, pandas.Series) else None
    if index is not None and choices.skipped:
        index = index.delete(choices.skipped)
    return pandas.DataFrame(columns, index=index)
