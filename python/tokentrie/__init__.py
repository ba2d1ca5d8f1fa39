"""Makes a language model choose from a finite set: fast, exact, with probabilities.

Examples in docstrings take `import tokentrie` and `import numpy as np` for granted.
"""

from typing import TYPE_CHECKING

from tokentrie import rules
from tokentrie._native import (
    Batch,
    CacheInfo,
    CancelledError,
    CancelToken,
    ChatConstraint,
    ChatEvent,
    ChatFormat,
    ChatParser,
    ChatPrompt,
    ChatStats,
    ChatTemplate,
    Choice,
    Choices,
    ChoiceStats,
    Concatenation,
    ContextError,
    Detokenizer,
    FilteredTrie,
    Form,
    Generated,
    Grammar,
    Hypothesis,
    Integer,
    JsonSchema,
    Lark,
    Leaf,
    LeafSet,
    Message,
    Model,
    ModelError,
    Number,
    OneOf,
    OptionError,
    PayloadError,
    Regex,
    Rule,
    RuleError,
    RuleStats,
    Sampler,
    Sampling,
    Sequence,
    Slot,
    Spec,
    Stats,
    Step,
    String,
    TemplateError,
    Text,
    ThinkGate,
    TimedOutError,
    TokenNotAllowedError,
    TokenTrieError,
    TokenTrieWarning,
    ToolCall,
    Tools,
    Trie,
    TrieArrays,
    TrieCache,
    TrieError,
    Vocab,
    VocabularyError,
    __version__,
    beam_search,
    choose,
    constraint,
)
from tokentrie.chat import ToolRun, run_tools
from tokentrie.chat_analysis import ChatAnalysis
from tokentrie.streaming import Stream

__all__ = [
    "Batch",
    "CacheInfo",
    "CancelToken",
    "CancelledError",
    "ChatAnalysis",
    "ChatConstraint",
    "ChatEvent",
    "ChatFormat",
    "ChatParser",
    "ChatPrompt",
    "ChatStats",
    "ChatTemplate",
    "Choice",
    "ChoiceStats",
    "Choices",
    "Concatenation",
    "ContextError",
    "Detokenizer",
    "FilteredTrie",
    "Form",
    "Generated",
    "Grammar",
    "Hypothesis",
    "Integer",
    "JsonSchema",
    "Lark",
    "Leaf",
    "LeafSet",
    "Message",
    "Model",
    "ModelError",
    "Number",
    "OneOf",
    "OptionError",
    "PayloadError",
    "Regex",
    "Rule",
    "RuleError",
    "RuleStats",
    "Sampler",
    "Sampling",
    "Sequence",
    "Slot",
    "Spec",
    "Stats",
    "Step",
    "Stream",
    "String",
    "TemplateError",
    "Text",
    "ThinkGate",
    "TimedOutError",
    "TokenNotAllowedError",
    "TokenTrieError",
    "TokenTrieWarning",
    "ToolCall",
    "ToolRun",
    "Tools",
    "Trie",
    "TrieArrays",
    "TrieCache",
    "TrieError",
    "Vocab",
    "VocabularyError",
    "__version__",
    "beam_search",
    "choose",
    "constraint",
    "rules",
    "run_tools",
]

if TYPE_CHECKING:
    # Former names, for type checkers.
    Any, Date, Session = rules.Unconstrained, rules.Date, TrieCache
else:
    _RENAMED = {"Any": "rules.Unconstrained", "Date": "rules.Date", "Session": "TrieCache"}

    def __getattr__(name):
        """Former names, which go with the next version."""
        if name not in _RENAMED:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from operator import attrgetter
        from sys import modules
        from warnings import warn

        warn(f"tokentrie.{name} is now tokentrie.{_RENAMED[name]}", DeprecationWarning, stacklevel=2)
        return attrgetter(_RENAMED[name])(modules[__name__])
