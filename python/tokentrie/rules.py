"""Rules over bytes, and what constrains nothing: all of them in one place.

Names that mean something else in Python's own modules (`Date`, `Time`, `DateTime`) and `Unconstrained` are only here.

Example:
    >>> from tokentrie import rules
    >>> rules.Date().matches("2024-02-29")
    True
"""

from tokentrie._native import RuleStats
from tokentrie.constraints import (
    Concatenation,
    Date,
    DateTime,
    Gbnf,
    Grammar,
    Integer,
    JsonSchema,
    Lark,
    Number,
    OneOf,
    Regex,
    Repeat,
    Rule,
    String,
    Time,
    Unconstrained,
    WasmRule,
)

__all__ = [
    "Concatenation",
    "Date",
    "DateTime",
    "Gbnf",
    "Grammar",
    "Integer",
    "JsonSchema",
    "Lark",
    "Number",
    "OneOf",
    "Regex",
    "Repeat",
    "Rule",
    "RuleStats",
    "String",
    "Time",
    "Unconstrained",
    "WasmRule",
]
