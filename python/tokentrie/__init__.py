"""Constrained decoding: a language model emits only allowed text, exactly, with probabilities.

The names here are those that most programs need; the others stand in modules, which are imported at first use:
`rules`, `sets`, `decisions`, `receipts`, `results`, `errors`, `chat`, `streaming`, `explaining`.

Examples in docstrings take `import tokentrie` and `import numpy as np` for granted.
"""

from typing import TYPE_CHECKING

from tokentrie._native import (
    Batch,
    CancelToken,
    ChatFormat,
    ChatTemplate,
    ResponseTemplate,
    RuleError,
    Sampler,
    Sampling,
    TemplateError,
    TokenNotAllowedError,
    TokenTrieError,
    Tools,
    Trie,
    Vocab,
    __version__,
    constraint,
)
from tokentrie.model import Model

if TYPE_CHECKING:
    from tokentrie import chat, decisions, errors, explaining, receipts, results, rules, sets, streaming
    from tokentrie.chat import run_tools
    from tokentrie.decisions import Answers
    from tokentrie.results import Choice, Generated, Message
    from tokentrie.rules import Form, JsonSchema, Limits, Regex, Slot, Text

__all__ = [
    "Answers",
    "Batch",
    "CancelToken",
    "ChatFormat",
    "ChatTemplate",
    "Choice",
    "Form",
    "Generated",
    "JsonSchema",
    "Limits",
    "Message",
    "Model",
    "Regex",
    "ResponseTemplate",
    "RuleError",
    "Sampler",
    "Sampling",
    "Slot",
    "TemplateError",
    "Text",
    "TokenNotAllowedError",
    "TokenTrieError",
    "Tools",
    "Trie",
    "Vocab",
    "__version__",
    "chat",
    "constraint",
    "decisions",
    "errors",
    "explaining",
    "receipts",
    "results",
    "rules",
    "run_tools",
    "sets",
    "streaming",
]

_MODULES = ("chat", "decisions", "errors", "explaining", "receipts", "results", "rules", "sets", "streaming")

#: The module of each name that is imported at first use: they need asyncio, dataclasses and more, a sampler does not.
_LAZY_NAMES = {
    "Answers": "decisions",
    "Choice": "results",
    "Form": "rules",
    "Generated": "results",
    "JsonSchema": "rules",
    "Limits": "rules",
    "Message": "results",
    "Regex": "rules",
    "Slot": "rules",
    "Text": "rules",
    "run_tools": "chat",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _LAZY_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_place(name)}")
    value = getattr(import_module(f"{__name__}.{_LAZY_NAMES[name]}"), name)
    globals()[name] = value
    return value


def _place(name: str) -> str:
    """Returns the end of a message that names the module of a class; "" for other names, which may be modules."""
    if not name[:1].isupper():
        return ""
    from importlib import import_module

    places = [module for module in _MODULES if name in import_module(f"{__name__}.{module}").__all__]
    return f": it is tokentrie.{places[0]}.{name}" if places else ""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
